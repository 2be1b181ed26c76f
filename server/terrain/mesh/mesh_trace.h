/*
 * Looks into a mesh: the boxes and polygons that a ray tests, and the leaves of the quadtree.
 */
#ifndef KOTA_TERRAIN_MESH_TRACE_H
#define KOTA_TERRAIN_MESH_TRACE_H

#include "terrain/bvh/ray_tree_trace.h"
#include "terrain/mesh/mesh.h"

/* The frame of boxes and leaves: (x, y, z) in it is origin + x axis[0] + y axis[1] + z axis[2]. */
struct mesh_axes {
    struct vec3 origin;
    struct vec3 axis[3]; /* unit, at right angles */
};

struct mesh_axes mesh_axes(const struct mesh *mesh);

/*
 * What the nearest hit of a ray takes: boxes of the tree of boxes, in the frame of mesh_axes, and
 * polygons, numbered as in struct mesh_hit, added to the trace. A ray along gravity takes a leaf of
 * the quadtree, as high as the mesh and at the leaf's depth, and its list. About ten times as long
 * as the ray.
 */
void mesh_ray_trace(const struct mesh *mesh, const struct ray *ray, struct ray_tree_trace *trace);

/* A leaf of the quadtree: a rectangle of the plan, in the frame of mesh_axes. */
struct mesh_leaf {
    double x_min, y_min, x_max, y_max;
    uint32_t depth;    /* levels of four quadrants below the root */
    uint32_t polygons; /* in its list */
};

/*
 * The leaves that meet a box of the same frame (its z does not count) into out, row by row of the
 * root. How many, or capacity + 1: there are more. A mesh without a quadtree, as one under radial
 * gravity, has none. O(capacity).
 */
size_t mesh_leaves(const struct mesh *mesh, const struct box3 *box, struct mesh_leaf *out,
                   size_t capacity);

#endif
