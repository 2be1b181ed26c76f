/*
 * Questions to a moved layer, in its own frame.
 *
 * Problem: sixty layers move sixty times a second; a tree cannot be rebuilt for each move. Approach
 * (text Q): each layer has its quadtree in its own frame. A yaw is about gravity, so the tree
 * fits every such pose, "down" is the same in both frames, and distances along gravity and the t of
 * a ray need no change. The query is transformed into the frame, the answer out of it. In a tilted
 * layer "down" is another direction in each pose, so its floors are found by rays
 * (mesh_floor_along).
 *
 * A point is transformed once, so all polygons of a layer are tested at the same place: a
 * watertight mesh stays watertight. The rounding of the transform is within the tolerances of the
 * mesh: a point that an earlier answer put on a floor is on that floor, and a floor is not its own
 * ceiling. Parts of an answer that the query determines are not transformed back: a contact is on
 * the query's gravity line, a hit on the query's ray.
 */
#include "world/ask/layer_ask.h"

enum { TOGETHER = 64 }; /* of a batch; their data stays in the first-level cache */

#define WALL_COSINE 1e-12 /* between normal and gravity: vertical, but for the rounding of a turn */

struct vec3 layer_own_down(const struct layer *layer, struct vec3 point)
{
    if (layer->space.frame != MESH_CARTESIAN)
        return mesh_space_gravity(layer->space, point);
    return layer->motion.is_tilted ? motion_turn_in(&layer->motion, layer->gravity)
                                   : layer->gravity;
}

bool layer_own_floor(const struct layer *layer, struct vec3 point, double reach_up_m,
                     struct mesh_contact *out)
{
    return layer->motion.is_tilted
               ? mesh_floor_along(layer->mesh, point, layer_own_down(layer, point), reach_up_m, out)
               : mesh_floor(layer->mesh, point, reach_up_m, out);
}

bool layer_own_ceiling(const struct layer *layer, struct vec3 point, double above_m, double lift_m,
                       struct mesh_contact *out)
{
    return layer->motion.is_tilted
               ? mesh_ceiling_along(layer->mesh, point, layer_own_down(layer, point), above_m,
                                    lift_m, out)
               : mesh_ceiling(layer->mesh, point, above_m, lift_m, out);
}

/* The contact at its distance from the point of the query. */
static void contact_out(const struct layer *layer, struct vec3 asked, struct mesh_contact *contact)
{
    const struct motion *motion = &layer->motion;

    if (gravity_is_minus_z(layer->gravity) && !motion->is_tilted)
        contact->point =
            (struct vec3){asked.x, asked.y, contact->point.z + motion->pose.translation.z};
    else
        contact->point = vec3_add(asked, vec3_scale(layer->gravity, contact->distance_m));
    contact->normal = motion_turn_out(motion, contact->normal);
}

bool moved_mesh_floor(const struct layer *layer, struct vec3 point, double reach_up_m,
                      struct mesh_contact *out)
{
    const struct motion *motion = &layer->motion;

    if (!layer_own_floor(layer, motion_point_in(motion, point),
                         reach_up_m + motion_rounding(motion, point), out))
        return false;
    contact_out(layer, point, out);
    return true;
}

/* The heights of a tilted layer. */
static void tilted_heights(const struct layer *layer, const struct vec3 *points, size_t count,
                           struct mesh_height *out)
{
    for (size_t i = 0; i < count; i++) {
        struct mesh_contact top;

        out[i] = (struct mesh_height){NAN, MESH_NO_POLYGON};
        if (moved_mesh_floor(layer, points[i], INFINITY, &top))
            out[i] = (struct mesh_height){-vec3_dot(top.point, layer->gravity), top.polygon};
    }
}

void layer_mesh_heights(const struct layer *layer, const struct vec3 *points, size_t count,
                        struct mesh_height *out)
{
    const struct motion *motion = &layer->motion;
    double shift = -vec3_dot(motion->pose.translation, layer->gravity);
    struct vec3 own[TOGETHER];

    if (!layer->is_moved) {
        mesh_floor_heights(layer->mesh, points, count, INFINITY, out);
        return;
    }
    if (motion->is_tilted) {
        tilted_heights(layer, points, count, out);
        return;
    }
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

        for (size_t k = 0; k < some; k++)
            own[k] = motion_point_in(motion, points[i + k]);
        mesh_floor_heights(layer->mesh, own, some, INFINITY, out + i);
        for (size_t k = 0; k < some; k++)
            out[i + k].height_m += shift;
    }
}

bool moved_mesh_ceiling(const struct layer *layer, struct vec3 point, double above_m, double lift_m,
                        struct mesh_contact *out)
{
    const struct motion *motion = &layer->motion;
    double rounding = motion_rounding(motion, point);

    if (!layer_own_ceiling(layer, motion_point_in(motion, point), above_m + rounding,
                           lift_m - rounding, out))
        return false;
    contact_out(layer, point, out);
    return true;
}

/* A ray as the layer sees it. */
static struct ray ray_in(const struct motion *motion, const struct ray *ray)
{
    struct ray own = *ray;

    own.origin = motion_point_in(motion, ray->origin);
    own.direction = motion_turn_in(motion, ray->direction);
    return own;
}

struct vec3 layer_normal_out(const struct layer *layer, struct vec3 normal, struct vec3 toward)
{
    struct vec3 out = motion_turn_out(&layer->motion, normal);
    double along = vec3_dot(out, layer->gravity);

    if (!layer->motion.is_tilted) /* gravity is the mesh's own, and the mesh has chosen the side */
        return out;
    if (fabs(along) < WALL_COSINE)
        along = vec3_dot(out, toward);
    return along > 0 ? vec3_opposite(out) : out;
}

static void ray_hit_out(const struct layer *layer, const struct ray *ray, struct mesh_hit *hit)
{
    const struct motion *motion = &layer->motion;

    if (gravity_is_minus_z(layer->gravity) && !motion->is_tilted && ray->direction.x == 0 &&
        ray->direction.y == 0)
        hit->point =
            (struct vec3){ray->origin.x, ray->origin.y, hit->point.z + motion->pose.translation.z};
    else
        hit->point = vec3_add(ray->origin, vec3_scale(ray->direction, hit->t));
    hit->normal = layer_normal_out(layer, hit->normal, ray->direction);
}

bool moved_mesh_ray(const struct layer *layer, const struct ray *ray, enum ray_mode mode,
                    struct mesh_hit *hit)
{
    struct ray own = ray_in(&layer->motion, ray);

    if (!mesh_ray(layer->mesh, &own, mode, hit))
        return false;
    ray_hit_out(layer, ray, hit);
    return true;
}

void layer_mesh_rays(const struct layer *layer, const struct ray *rays, size_t count,
                     enum ray_mode mode, struct mesh_hit *hits)
{
    struct ray own[TOGETHER];

    if (!layer->is_moved) {
        mesh_rays(layer->mesh, rays, count, mode, hits);
        return;
    }
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

        for (size_t k = 0; k < some; k++)
            own[k] = ray_in(&layer->motion, &rays[i + k]);
        mesh_rays(layer->mesh, own, some, mode, hits + i);
        for (size_t k = i; k < i + some; k++)
            if (hits[k].t < INFINITY)
                ray_hit_out(layer, &rays[k], &hits[k]);
    }
}

void layer_mesh_trace(const struct layer *layer, const struct ray *ray,
                      struct ray_tree_trace *trace)
{
    struct ray own = layer->is_moved ? ray_in(&layer->motion, ray) : *ray;

    mesh_ray_trace(layer->mesh, &own, trace);
}

struct mesh_axes layer_mesh_axes(const struct layer *layer)
{
    struct mesh_axes axes = mesh_axes(layer->mesh);

    if (!layer->is_moved)
        return axes;
    axes.origin = motion_point_out(&layer->motion, axes.origin);
    for (int i = 0; i < 3; i++)
        axes.axis[i] = motion_turn_out(&layer->motion, axes.axis[i]);
    return axes;
}

size_t layer_mesh_leaves(const struct layer *layer, const double area[4], struct mesh_leaf *out,
                         size_t capacity)
{
    struct mesh_axes axes = layer_mesh_axes(layer);
    struct box3 around, own = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    if (!layer_bounds(layer, &around) || area[0] > around.max.x || area[2] < around.min.x ||
        area[1] > around.max.y || area[3] < around.min.y)
        return 0;
    for (int corner = 0; corner < 8; corner++) {
        struct vec3 p = {
            corner & 1 ? fmin(area[2], around.max.x) : fmax(area[0], around.min.x),
            corner & 2 ? fmin(area[3], around.max.y) : fmax(area[1], around.min.y),
            corner & 4 ? around.max.z : around.min.z,
        };
        struct vec3 from = vec3_sub(p, axes.origin);

        p = (struct vec3){vec3_dot(from, axes.axis[0]), vec3_dot(from, axes.axis[1]),
                          vec3_dot(from, axes.axis[2])};
        own = box3_union(own, (struct box3){p, p});
    }
    return mesh_leaves(layer->mesh, &own, out, capacity);
}
