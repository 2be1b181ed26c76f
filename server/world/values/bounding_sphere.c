/*
 * Reaches: see bounding_sphere.h.
 */
#include "world/values/bounding_sphere.h"

#include "world/values/placement.h"

static double sum_of(struct vec3 v)
{
    return fabs(v.x) + fabs(v.y) + fabs(v.z);
}

/* How far a box's corners, by these half sides, are from the line along gravity through its middle.
 */
static double across_of(struct vec3 half, struct vec3 gravity)
{
    double most = 0;

    for (int corner = 0; corner < 4; corner++) { /* the other four are opposite */
        struct vec3 to = {corner & 1 ? -half.x : half.x, corner & 2 ? -half.y : half.y, half.z};

        to = vec3_sub(to, vec3_scale(gravity, vec3_dot(to, gravity)));
        most = fmax(most, vec3_length(to));
    }
    return most;
}

struct bounding_sphere bounding_sphere_of(const struct locale *locale)
{
    const struct placement *placement = &locale->manifest.placement;
    struct vec3 low = locale->bounds.min, high = locale->bounds.max;
    struct vec3 half = vec3_scale(vec3_sub(high, low), 0.5), middle = vec3_add(low, half);
    double slack_m =
        BOUNDING_SPHERE_SLACK * (sum_of(placement->translation) + sum_of(low) + sum_of(high));
    struct bounding_sphere sphere = {.ball_m = -1, .across_m = -1};

    if (!locale->has_bounds)
        return sphere;
    sphere.ball_m = sphere.across_m = INFINITY;
    if (!vec3_is_finite(half))
        return sphere;
    sphere.middle = placement_to_world(placement, middle);
    sphere.ball_m = vec3_length(half) + slack_m;
    if (locale_space(locale).frame == MESH_CARTESIAN) {
        struct vec3 gravity = locale_gravity(locale, middle);

        sphere.gravity = placement_turn_to_world(placement, gravity);
        sphere.across_m = across_of(half, gravity) + slack_m;
    }
    return sphere;
}

struct bounding_sphere_ray bounding_sphere_ray_of(const struct ray *world)
{
    return (struct bounding_sphere_ray){world->origin, vec3_unit(world->direction),
                                        world->t_max * vec3_length(world->direction)};
}
