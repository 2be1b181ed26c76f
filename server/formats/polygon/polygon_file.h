/*
 * Polygon files: bytes become polygons. OBJ, PLY and STL are read by kota, glTF and GLB by gltf.c,
 * AC3D and COLLADA by assimp; the last four in a process of their own (assimp_import.h). Bytes in,
 * values out. Hostile bytes are errors, bounded by the limits.
 */
#ifndef KOTA_FORMATS_POLYGON_FILE_H
#define KOTA_FORMATS_POLYGON_FILE_H

#include "formats/polygon/polygon_set.h"

#include <stdbool.h>

enum { POLYGON_FILE_BYTES_MAX = 256 << 20 }; /* for every format */

struct polygon_options {
    bool up_y;    /* the file's up axis is Y: (x, y, z) becomes (x, -z, y) */
    double scale; /* metres per unit, greater than 0 */
    /* unit, in metres with Z up: what a file has in several places, turned about this axis only,
     * is in the set once, with instances (glTF); zero: copies of it */
    struct vec3 axis;
};

extern const struct polygon_options polygon_options_default; /* Z up, scale 1 */

/* By the name's ending, in any case: obj glb gltf ply stl ac acc ac3d dae. */
bool polygon_format_of_name(const char *name, enum polygon_format *out);

/* By a media type, in any case, parameters ignored. */
bool polygon_format_of_media_type(const char *media_type, enum polygon_format *out);

/*
 * Decodes bytes[length]. NULL options or limits: the defaults. A unit that COLLADA or glTF states
 * counts before the scale; COLLADA's up_axis does not: only options->up_y decides.
 *
 * ERR_BAD_INPUT      malformed, truncated, an index out of range, a vertex that is not finite: says
 *                    the line (OBJ, AC3D) or assimp's message; a bad option
 * ERR_TOO_LARGE      over a limit, with limit and got
 * ERR_UNPROCESSABLE  no polygons; or assimp took too long
 * ERR_NO_MEMORY, ERR_INTERNAL  this machine's fault: no memory, no process
 *
 * *out is empty unless ERR_OK. OBJ: O(length), memory exactly that of *out. Others: a fork, then
 * assimp's, within POLYGON_JAIL_*. Any thread.
 */
enum err_code polygon_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                             const struct polygon_options *options,
                             const struct polygon_limits *limits, struct polygon_set *out,
                             struct err *err);

#endif
