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
 * The polygons of a file in the text of OBJ, all its parts placed by the file's own tree, in its
 * units and axes.
 *
 * ending  the format, for assimp
 * obj     out: *length bytes, freed by free()
 * step    out: assimp rounds to float32; the greatest step of it at the file's coordinates, in its
 *         units
 *
 * ERR_NO_DEVICE  there is no assimp here: the message names the package
 * ERR_BAD_INPUT  assimp cannot read it, or crashes; ERR_TOO_LARGE, ERR_NO_MEMORY
 */
enum err_code convert_to_obj(const char *bytes, size_t count, const char *ending, char **obj,
                             size_t *length, double *step, struct err *err);

#endif
