/* Reading a locale directory: the heightfields that kotad reads. */
#ifndef KOTA_DEMO_LOCALE_FILE_H
#define KOTA_DEMO_LOCALE_FILE_H

#include "terrain/field/heightfield.h"

#include <stdint.h>

/* The whole of a file, malloc, at most length_max bytes, with a 0 after it; NULL on error. */
uint8_t *file_read(const char *path, size_t length_max, size_t *length, struct err *err);

/*
 * The first layer of DIR/locale.json as a heightfield with the locale's triangulation; the caller
 * gives the reference back. NULL on error: ERR_NOT_FOUND, ERR_BAD_INPUT with the file and member,
 * ERR_UNPROCESSABLE when the layer is a mesh.
 */
struct heightfield *locale_read(const char *dir, struct err *err);

#endif
