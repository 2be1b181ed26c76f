/*
 * Where in the world a locale can answer at all, small enough to ask of every locale of a world.
 *
 * A locale's own boxes decide, in its own frame; but to come to them is four cache lines and two
 * square roots a locale, and most are elsewhere. Here a locale is a cache line: a ball around its
 * bounds and a cylinder without ends around that ball's middle, along its gravity. Both are larger
 * than the bounds by more than all roundings of a placement, so a locale that is left out has
 * nothing to say, and one that is not is asked.
 */
#ifndef KOTA_WORLD_REACH_H
#define KOTA_WORLD_REACH_H

#include "world/locale.h"

#include <math.h>
#include <stdbool.h>

struct reach {
    struct vec3 middle;  /* of the bounds, in the world */
    struct vec3 gravity; /* unit; {0, 0, 0} where it is radial */
    double ball_m;       /* the ball's radius; < 0: the locale has no bounds */
    double across_m;     /* the cylinder's; INFINITY where gravity is radial */
};

/* Of the locale as it stands. O(1). */
struct reach reach_of(const struct locale *locale);

/* A ray of the world, made ready to be asked of many reaches. */
struct reach_ray {
    struct vec3 origin, direction; /* unit */
    double length_m;
};

struct reach_ray reach_ray_of(const struct ray *world);

/* Of numbers of a point, more than a turn and a difference round: 64 units in the last place. */
#define REACH_SLACK 1e-12

/* Is what is `off` a middle within the radius? For the point `world`, of which it was made. */
static inline bool reach_is_within(struct vec3 off, double radius_m, struct vec3 world)
{
    double most = radius_m + REACH_SLACK * (fabs(world.x) + fabs(world.y) + fabs(world.z));

    return radius_m >= 0 && !(vec3_dot(off, off) > most * most); /* NaN: not left out */
}

/* False where the line of the locale's gravity through a point of the world misses its bounds. */
static inline bool reach_meets_gravity(const struct reach *reach, struct vec3 world)
{
    struct vec3 off = vec3_sub(world, reach->middle);

    off = vec3_sub(off, vec3_scale(reach->gravity, vec3_dot(off, reach->gravity)));
    return reach_is_within(off, reach->across_m, world);
}

/* False where the ray misses the locale's bounds. */
static inline bool reach_meets_ray(const struct reach *reach, const struct reach_ray *ray)
{
    struct vec3 off = vec3_sub(reach->middle, ray->origin);
    double along_m = vec3_dot(off, ray->direction);

    along_m = along_m < 0 ? 0 : along_m > ray->length_m ? ray->length_m : along_m;
    return reach_is_within(vec3_sub(off, vec3_scale(ray->direction, along_m)), reach->ball_m,
                           ray->origin);
}

#endif
