/*
 * Polygons as a file has them, and the limits of their counts.
 */
#ifndef KOTA_FORMATS_POLYGON_SET_H
#define KOTA_FORMATS_POLYGON_SET_H

#include "base/err.h"
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
 */
struct polygon_set {
    struct vec3 *vertices; /* metres, finite; some may belong to no polygon */
    size_t vertex_count;
    uint32_t *corners;
    uint32_t *starts;
    size_t polygon_count;
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

#endif
