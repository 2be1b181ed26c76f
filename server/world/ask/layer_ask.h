/*
 * Questions to a mesh layer in the locale's frame, in any pose: the functions of mesh.h with
 * points, normals and heights of the locale. The bits are those of mesh.h where the layer was never
 * moved. Any thread that holds a snapshot.
 */
#ifndef KOTA_WORLD_LAYER_ASK_H
#define KOTA_WORLD_LAYER_ASK_H

#include "terrain/mesh/mesh_trace.h"
#include "world/values/layer.h"

static inline bool gravity_is_minus_z(struct vec3 gravity)
{
    return gravity.x == 0 && gravity.y == 0 && gravity.z == -1;
}

/* Of a moved layer; use the functions below. */
bool moved_mesh_floor(const struct layer *layer, struct vec3 point, double reach_up_m,
                      struct mesh_contact *out);
bool moved_mesh_ceiling(const struct layer *layer, struct vec3 point, double above_m, double lift_m,
                        struct mesh_contact *out);
bool moved_mesh_ray(const struct layer *layer, const struct ray *ray, enum ray_mode mode,
                    struct mesh_hit *hit);

/* As mesh_floor. Under gravity -Z the contact is exactly below the point. */
static inline bool layer_mesh_floor(const struct layer *layer, struct vec3 point, double reach_up_m,
                                    struct mesh_contact *out)
{
    return layer->is_moved ? moved_mesh_floor(layer, point, reach_up_m, out)
                           : mesh_floor(layer->mesh, point, reach_up_m, out);
}

/* As mesh_floor_heights from beyond everything, bit for bit the heights of layer_mesh_floor. */
void layer_mesh_heights(const struct layer *layer, const struct vec3 *points, size_t count,
                        struct mesh_height *out);

static inline bool layer_mesh_ceiling(const struct layer *layer, struct vec3 point, double above_m,
                                      double lift_m, struct mesh_contact *out)
{
    return layer->is_moved ? moved_mesh_ceiling(layer, point, above_m, lift_m, out)
                           : mesh_ceiling(layer->mesh, point, above_m, lift_m, out);
}

static inline bool layer_mesh_ray(const struct layer *layer, const struct ray *ray,
                                  enum ray_mode mode, struct mesh_hit *hit)
{
    return layer->is_moved ? moved_mesh_ray(layer, ray, mode, hit)
                           : mesh_ray(layer->mesh, ray, mode, hit);
}

/* layer_mesh_ray of many, as mesh_rays. */
void layer_mesh_rays(const struct layer *layer, const struct ray *rays, size_t count,
                     enum ray_mode mode, struct mesh_hit *hits);

/* mesh_ray_trace, and the frame of its boxes in the locale. */
void layer_mesh_trace(const struct layer *layer, const struct ray *ray,
                      struct ray_tree_trace *trace);
struct mesh_axes layer_mesh_axes(const struct layer *layer);

/* mesh_leaves of those over a rectangle of the locale's plan: x0, y0, x1, y1. */
size_t layer_mesh_leaves(const struct layer *layer, const double area[4], struct mesh_leaf *out,
                         size_t capacity);

/* ---- in the layer's own frame ---------------------------------------------------------------- */

/* Where gravity pulls at a point; zero where it has no direction. */
struct vec3 layer_own_down(const struct layer *layer, struct vec3 point);

/* As mesh_floor and mesh_ceiling, along that. */
bool layer_own_floor(const struct layer *layer, struct vec3 point, double reach_up_m,
                     struct mesh_contact *out);
bool layer_own_ceiling(const struct layer *layer, struct vec3 point, double above_m, double lift_m,
                       struct mesh_contact *out);

/* A normal of the moved mesh in the locale: against gravity, of what is vertical there against
 * `toward`, a direction of the locale. */
struct vec3 layer_normal_out(const struct layer *layer, struct vec3 normal, struct vec3 toward);

/* ---- in the locale --------------------------------------------------------------------------- */

/* How fast the layer goes at a point of the locale, m/s; zero where it was never moved. */
static inline struct vec3 layer_velocity(const struct layer *layer, struct vec3 point)
{
    return layer->is_moved ? motion_velocity(&layer->motion, point) : (struct vec3){0, 0, 0};
}

#endif
