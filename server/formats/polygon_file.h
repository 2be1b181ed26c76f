/*
 * Polygon files: bytes become polygons. OBJ is read here; glTF/GLB, PLY, STL, AC3D and COLLADA
 * through assimp, in a process of its own. Bytes in, values out. Hostile bytes are errors, bounded
 * by the limits.
 *
 * What is known about assimp and hostile bytes: its readers crash, hang and allocate without bound
 * on files that are not long to find (fuzzing 5.2.5 finds them within a minute). Therefore
 * polygon_decode() checks the signature and the counts of a header by itself, and then lets assimp
 * run in a forked child (base/jail.h) that can open no file and no socket and whose processor time,
 * wall time and memory are bounded; what the child sends back is checked as if it were a file. What
 * remains: a file that takes over assimp's code controls that child for at most POLYGON_JAIL_WALL_S
 * seconds, under the daemon's own user and with a copy of its memory, but with only a pipe to speak
 * through.
 */
#ifndef KOTA_FORMATS_POLYGON_FILE_H
#define KOTA_FORMATS_POLYGON_FILE_H

#include "base/err.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum polygon_format {
    POLYGON_OBJ, /* our own reader: v and f (any number of corners, negative indices, v/vt/vn) */
    POLYGON_GLB,
    POLYGON_GLTF, /* self-contained (data: buffers) */
    POLYGON_PLY,
    POLYGON_STL,
    POLYGON_AC3D,
    POLYGON_COLLADA
};

struct polygon_limits {
    uint64_t polygons_max; /* 2,000,000 */
    uint64_t corners_max;  /* 8,000,000 */
    uint64_t vertices_max; /* 8,000,000 */
};

extern const struct polygon_limits polygon_limits_default;

enum {
    POLYGON_FILE_BYTES_MAX = 256 << 20, /* for every format */
    POLYGON_JAIL_CPU_S = 20,            /* assimp's processor time for one file */
    POLYGON_JAIL_WALL_S = 60
};
#define POLYGON_JAIL_MEMORY_BYTES (UINT64_C(2) << 30) /* beside what the daemon has already */

struct polygon_options {
    bool up_y;    /* the file's up axis is Y: (x, y, z) becomes (x, -z, y) */
    double scale; /* metres per unit, greater than 0 */
};

extern const struct polygon_options polygon_options_default; /* Z up, scale 1 */

/*
 * Polygon i has the vertices corners[starts[i]] .. corners[starts[i+1]-1], in the file's order, so
 * that i is "the polygon's index in the uploaded file": of an OBJ the i-th f line; of the others
 * the i-th polygon when the nodes are walked depth first, children and meshes in the file's order
 * (a mesh that several nodes use counts for each). A node that mirrors turns its polygons' corners
 * around, so that their front stays the front. Points and lines are no polygons; polygons of a file
 * have at least 3 corners, which may coincide; a set that was edited also has gaps without corners
 * (polygon_edit.h). starts[polygon_count + 1], starts[0] is 0. All malloc.
 */
struct polygon_set {
    struct vec3 *vertices; /* metres, finite; some may belong to no polygon */
    size_t vertex_count;
    uint32_t *corners;
    uint32_t *starts;
    size_t polygon_count;
};

/* By the name's ending, in any case: obj glb gltf ply stl ac acc ac3d dae. */
bool polygon_format_of_name(const char *name, enum polygon_format *out);

/* By a media type, in any case, parameters ignored. */
bool polygon_format_of_media_type(const char *media_type, enum polygon_format *out);

/*
 * Decodes bytes[length]. NULL options or limits: the defaults. A unit that COLLADA or glTF states
 * counts before the scale; COLLADA's up_axis does not: options->up_y alone decides.
 *
 * ERR_BAD_INPUT      malformed, truncated, an index out of range, a vertex that is not finite: says
 *                    the line (OBJ, AC3D) or what assimp said; a bad option
 * ERR_TOO_LARGE      over a limit, with limit and got
 * ERR_UNPROCESSABLE  no polygons; or assimp took too long
 * ERR_NO_MEMORY, ERR_INTERNAL  this machine's fault: no memory, no process
 *
 * *out is empty unless ERR_OK. OBJ: O(length), memory exactly that of *out. Others: a fork, then
 * what assimp takes, within POLYGON_JAIL_*. Any thread.
 */
enum err_code polygon_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                             const struct polygon_options *options,
                             const struct polygon_limits *limits, struct polygon_set *out,
                             struct err *err);

/* Frees all and makes it empty; an empty one stays so. */
void polygon_set_free(struct polygon_set *set);

/* ERR_TOO_LARGE with limit and got when one of the counts is over its limit. */
enum err_code polygon_check_counts(const char *what, uint64_t vertices, uint64_t polygons,
                                   uint64_t corners, const struct polygon_limits *limits,
                                   struct err *err);

/* An empty *out gets arrays for so many; the counts were checked. ERR_NO_MEMORY leaves it empty. */
enum err_code polygon_set_allocate(size_t vertices, size_t polygons, size_t corners,
                                   struct polygon_set *out, struct err *err);

#endif
