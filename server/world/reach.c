/*
 * Reaches: see reach.h.
 */
#include "world/reach.h"

#include "world/locate.h"

static double sum_of(struct vec3 v)
{
    return fabs(v.x) + fabs(v.y) + fabs(v.z);
}

/* How far a box's corners, by these half sides, are from the line along gravity through its middle.
 */
static double across_of(struct vec3 half, struct vec3 gravity)
{
    double most = 0;

    for (int corner = 0; corner < 4; corner++) { /* the other four lie opposite */
        struct vec3 to = {corner & 1 ? -half.x : half.x, corner & 2 ? -half.y : half.y, half.z};

        to = vec3_sub(to, vec3_scale(gravity, vec3_dot(to, gravity)));
        most = fmax(most, vec3_length(to));
    }
    return most;
}

struct reach reach_of(const struct locale *locale)
{
    const struct placement *placement = &locale->manifest.placement;
    struct vec3 low = locale->bounds.min, high = locale->bounds.max;
    struct vec3 half = vec3_scale(vec3_sub(high, low), 0.5), middle = vec3_add(low, half);
    double slack_m = REACH_SLACK * (sum_of(placement->translation) + sum_of(low) + sum_of(high));
    struct reach reach = {.ball_m = -1, .across_m = -1};

    if (!locale->has_bounds)
        return reach;
    reach.ball_m = reach.across_m = INFINITY;
    if (!vec3_is_finite(half))
        return reach;
    reach.middle = placement_to_world(placement, middle);
    reach.ball_m = vec3_length(half) + slack_m;
    if (locale_space(locale).frame == MESH_CARTESIAN) {
        struct vec3 gravity = locale_gravity(locale, middle);

        reach.gravity = placement_turn_to_world(placement, gravity);
        reach.across_m = across_of(half, gravity) + slack_m;
    }
    return reach;
}

struct reach_ray reach_ray_of(const struct ray *world)
{
    return (struct reach_ray){world->origin, vec3_unit(world->direction),
                              world->t_max * vec3_length(world->direction)};
}
