/*
 * A tree of boxes over the triangles of a mesh: the nearest point of the surface, and whether the
 * surface passes through itself.
 */
#ifndef KOTA_SAND_TRIANGLE_TREE_H
#define KOTA_SAND_TRIANGLE_TREE_H

#include "base/err.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed. Triangle i is corners[3 * i] .. corners[3 * i + 2], anticlockwise from outside. */
struct triangle_mesh {
    const struct vec3 *vertices; /* metres, finite */
    const uint32_t *corners;     /* [3 * triangles] */
    uint32_t triangles;
};

/* O(n) */
struct box3 triangle_mesh_bounds(const struct triangle_mesh *mesh);

struct triangle_tree;

/*
 * The mesh is borrowed for the tree's life and has at least one triangle; degenerate ones are
 * fine. NULL and ERR_NO_MEMORY. O(n log n).
 */
struct triangle_tree *triangle_tree_create(const struct triangle_mesh *mesh, struct err *err);
void triangle_tree_free(struct triangle_tree *tree); /* NULL is fine */

/*
 * The distance to the nearest point of the surface, if it is below `within_m` (INFINITY: always),
 * and that point, unless `nearest` is NULL; else within_m, and *nearest is untouched. Exact but for
 * rounding. O(log n) near the surface; any thread.
 */
double triangle_tree_nearest(const struct triangle_tree *tree, struct vec3 point, double within_m,
                             struct vec3 *nearest);

/*
 * Do two triangles pass through each other? With CROSSING_FOUND, their indices. Touching is not
 * passing: what rounding leaves in doubt is not reported. CROSSING_UNKNOWN: too many triangles lie
 * around each other to be compared. O(n log n) for usual meshes, bounded for all.
 */
enum crossing_answer { CROSSING_NONE, CROSSING_FOUND, CROSSING_UNKNOWN };
enum crossing_answer triangle_tree_crossing(const struct triangle_tree *tree, uint32_t pair[2]);

#endif
