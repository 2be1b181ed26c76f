/*
 * The vertical line through a mesh, for contact and for rays that run along gravity; and rays at
 * some polygons. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_MESH_CONTACT_H
#define KOTA_TERRAIN_MESH_CONTACT_H

#include "terrain/mesh/mesh_data.h"

/*
 * The floors of the column at (x, y) in the mesh's frame: the highest with z <= limit, or, is_up,
 * the lowest with z >= limit. False when there is none. polygon is the piece's index.
 */
bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon);

/* polygon: UINT32_MAX where there is none. */
struct column_found {
    double best; /* z times sign */
    uint32_t polygon;
};

/*
 * The same by the tree of boxes only. sign: 1 for a floor, -1 for a ceiling; limit: z times sign.
 * For points beside the floor grid, and for meshes without one.
 */
struct column_found mesh_column_by_tree(const struct mesh *mesh, double x, double y, double sign,
                                        double limit);

/* The place at z of the mesh's frame on the vertical line through a point of the locale. */
struct vec3 mesh_column_point(const struct mesh *mesh, struct vec3 point, double z);

/* The leaf of the floor grid at (x, y) and its list, as pieces; false: beside the grid. */
struct ray_tree_trace;
bool mesh_column_trace(const struct mesh *mesh, double x, double y, struct ray_tree_trace *trace);

/* Unit, against gravity, in the locale's frame. */
struct vec3 mesh_floor_normal(const struct mesh *mesh, uint32_t polygon);

/*
 * mesh_ray, RAY_CLOSEST, as if the mesh had only these polygons (indices of pieces): the same bits
 * where the first polygon of the ray is among them. A ray along gravity is put to all.
 */
bool mesh_ray_among(const struct mesh *mesh, const struct ray *ray, const uint32_t *polygons,
                    size_t count, struct mesh_hit *hit);

/*
 * Finds equal polygons (mesh->same), before grid and trees are made. ERR_NO_MEMORY. About
 * 0.1 µs a polygon.
 */
enum err_code mesh_same_make(struct mesh *mesh, struct crew *crew, struct err *err);

/*
 * The same of a mesh that `old` became by an edit; map as mesh_rays_edit, kept: its first new
 * polygon.
 *
 * moved  out, freed by the caller: the map for grid and trees, in which the next equal polygon
 *        has the place of one that is gone; NULL: map is that
 */
enum err_code mesh_same_edit(struct mesh *mesh, const struct mesh *old, const uint32_t *map,
                             uint32_t kept, uint32_t **moved, struct err *err);

/* False and a message where a polygon is not equal to the one that replaces it. */
bool mesh_same_validate(const struct mesh *mesh, struct err *err);

/*
 * Makes the grid, and the tree of boxes, after mesh_same_make; without_rays: the tree only where
 * contact needs it. ERR_NO_MEMORY, ERR_TOO_LARGE, or the error of the pace. About 1 µs a triangle.
 */
enum err_code mesh_structures_make(struct mesh *mesh, const struct mesh_making *making,
                                   bool without_rays, struct err *err);

/*
 * Makes the tree of boxes. ERR_NO_MEMORY, ERR_TOO_LARGE, or the error of the pace. About 0.2 µs a
 * triangle.
 */
enum err_code mesh_rays_make(struct mesh *mesh, const struct mesh_making *making, struct err *err);

/*
 * The trees of a mesh that `old` became by an edit. map: the number that each of its polygons has
 * now, UINT32_MAX: gone; NULL: all as they were; moved: of mesh_same_edit. Those after them are
 * new. ERR_NO_MEMORY, or the error of the pace. About 60 bytes a triangle as a copy, and 0.2 µs for
 * each that was added since the first was made.
 */
enum err_code mesh_rays_edit(struct mesh *mesh, const struct mesh *old, const uint32_t *map,
                             const uint32_t *moved, const struct mesh_making *making,
                             struct err *err);
void mesh_rays_free(struct mesh_rays *rays);
size_t mesh_rays_bytes(const struct mesh_rays *rays);
bool mesh_rays_validate(const struct mesh *mesh, struct err *err);

/* The input of the trees, the first `count` polygons. */
struct ray_tree_polygons mesh_ray_polygons(const struct mesh *mesh, size_t count);

#endif
