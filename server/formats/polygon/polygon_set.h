/*
 * Polygons as a file has them, and the limits of their counts.
 */
#ifndef KOTA_FORMATS_POLYGON_SET_H
#define KOTA_FORMATS_POLYGON_SET_H

#include "base/err.h"
#include "terrain/instances/instance.h"
#include "terrain/vec.h"

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

/*
 * Polygon i has the vertices corners[starts[i]] .. corners[starts[i+1]-1], in the file's order, so
 * that i is "the polygon's index in the uploaded file": of an OBJ the i-th f line; of the others
 * the i-th polygon when the nodes are walked depth first, children and meshes in the file's order
 * (a mesh that several nodes use counts for each). A node that mirrors turns its polygons' corners
 * around, so that their front stays the front. Points and lines are no polygons; polygons of a file
 * have at least 3 corners, which may coincide; a set that was edited also has gaps without corners
 * (polygon_edit.h). starts[polygon_count + 1], starts[0] is 0. All malloc.
 *
 * A set with instances has the polygons of meshes that are in several places once; i counts those
 * of the instances, one after another, as of copies. Such a set has no gaps.
 */
struct polygon_set {
    struct vec3 *vertices; /* metres, finite; some may belong to no polygon */
    size_t vertex_count;
    uint32_t *corners;
    uint32_t *starts;
    size_t polygon_count;
    struct mesh_instances instances; /* in the order of the file's nodes; count 0: none */
    uint64_t instances_copied;       /* of its file: uses of meshes that are used again, copied */
    double precision_m; /* of a file whose reader has rounded to float32: the greatest step of
                           float32 at its coordinates, in metres; 0: the file's own numbers */
};

/* Frees all and makes it empty; an empty one stays so. */
void polygon_set_free(struct polygon_set *set);

/* ERR_TOO_LARGE with limit and got when one of the counts is over its limit. */
enum err_code polygon_check_counts(const char *what, uint64_t vertices, uint64_t polygons,
                                   uint64_t corners, const struct polygon_limits *limits,
                                   struct err *err);

/* An empty *out gets arrays for so many; the counts were checked. ERR_NO_MEMORY leaves it empty. */
enum err_code polygon_set_allocate(size_t vertices, size_t polygons, size_t corners,
                                   struct polygon_set *out, struct err *err);

/* Numbers that polygons have, gaps included: of the copies of instances. O(instances). */
size_t polygon_set_numbers(const struct polygon_set *set);
size_t polygon_set_corners(const struct polygon_set *set); /* of those */

/*
 * The set without instances: itself, or copies in *made, which polygon_set_free() frees in any
 * case. The same set gives the same bytes. NULL: ERR_NO_MEMORY, or ERR_TOO_LARGE over 2^32.
 */
const struct polygon_set *polygon_set_flat(const struct polygon_set *set, struct polygon_set *made,
                                           struct err *err);

/*
 * Instances as bytes, behind those of a set in its stored and sent forms, little-endian: uint64
 * count, the axis (3 x float64), then of each translation, cos, sin (5 x float64), first, count
 * (uint32). None: no bytes.
 */
size_t polygon_instances_bytes(const struct polygon_set *set);
void polygon_instances_put(const struct polygon_set *set, void *to);

/* Reads the rest of such a form into a set that has all else and no instances. False: no such
 * bytes, or (err) no memory. */
bool polygon_instances_take(const void *bytes, size_t length, struct polygon_set *set,
                            struct err *err);

#endif
