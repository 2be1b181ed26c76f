/*
 * Meshes that the daemon does not read, as OBJ.
 */
#ifndef KOTA_CLIENT_CONVERT_H
#define KOTA_CLIENT_CONVERT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Is this an ending of files that assimp reads and the daemon does not? Without the point. */
bool convert_knows(const char *ending);

/*
 * The polygons of a file in the text of OBJ, all its parts where the file's own tree puts them, in
 * its units and axes.
 *
 * ending  tells assimp the format
 * obj     out: *length bytes, freed by free()
 *
 * ERR_NO_DEVICE  there is no assimp here: the message says what to install
 * ERR_BAD_INPUT  assimp cannot read it, or crashes; ERR_TOO_LARGE, ERR_NO_MEMORY
 */
enum err_code convert_to_obj(const char *bytes, size_t count, const char *ending, char **obj,
                             size_t *length, struct err *err);

#endif
