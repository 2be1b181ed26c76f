/*
 * World-space bounding sphere and gravity cylinder of a locale: a coarse test before the exact one.
 *
 * The exact test is that of a locale's boxes in its own frame: four cache lines and two square
 * roots a locale, and most locales are elsewhere. Here a locale is one cache line: a sphere around
 * its bounds and an infinite cylinder around the sphere's centre, along its gravity. Both are
 * larger than the bounds by more than all roundings of a placement, so a locale that is culled
 * cannot answer.
 */
#ifndef KOTA_WORLD_BOUNDING_SPHERE_H
#define KOTA_WORLD_BOUNDING_SPHERE_H

#include "world/values/locale.h"

#include <math.h>
#include <stdbool.h>

struct bounding_sphere {
    struct vec3 middle;  /* of the bounds, in the world */
    struct vec3 gravity; /* unit; {0, 0, 0} where it is radial */
    double ball_m;       /* the ball's radius; < 0: the locale has no bounds */
    double across_m;     /* the cylinder's; INFINITY where gravity is radial */
};

/* Of the locale in its placement. O(1). */
struct bounding_sphere bounding_sphere_of(const struct locale *locale);

/* A ray of the world, prepared for many spheres. */
struct bounding_sphere_ray {
    struct vec3 origin, direction; /* unit */
    double length_m;
};

struct bounding_sphere_ray bounding_sphere_ray_of(const struct ray *world);

/* Of numbers of a point, more than a turn and a difference round: 64 units in the last place. */
#define BOUNDING_SPHERE_SLACK 1e-12

/* Is the offset from a centre within the radius? It was computed of the point `world`. */
static inline bool bounding_sphere_is_within(struct vec3 off, double radius_m, struct vec3 world)
{
    double most =
        radius_m + BOUNDING_SPHERE_SLACK * (fabs(world.x) + fabs(world.y) + fabs(world.z));

    return radius_m >= 0 && !(vec3_dot(off, off) > most * most); /* NaN: not left out */
}

/* False where the line of the locale's gravity through a point of the world misses its bounds. */
static inline bool bounding_sphere_meets_gravity(const struct bounding_sphere *sphere,
                                                 struct vec3 world)
{
    struct vec3 off = vec3_sub(world, sphere->middle);

    off = vec3_sub(off, vec3_scale(sphere->gravity, vec3_dot(off, sphere->gravity)));
    return bounding_sphere_is_within(off, sphere->across_m, world);
}

/* False where the ray misses the locale's bounds. */
static inline bool bounding_sphere_meets_ray(const struct bounding_sphere *sphere,
                                             const struct bounding_sphere_ray *ray)
{
    struct vec3 off = vec3_sub(sphere->middle, ray->origin);
    double along_m = vec3_dot(off, ray->direction);

    along_m = along_m < 0 ? 0 : along_m > ray->length_m ? ray->length_m : along_m;
    return bounding_sphere_is_within(vec3_sub(off, vec3_scale(ray->direction, along_m)),
                                     sphere->ball_m, ray->origin);
}

/* Cuts the stretch *enter..*leave of t down to where origin + t · direction is in the box; false
 * when nothing is left. */
static inline bool box3_clip(const struct box3 *box, struct vec3 origin, struct vec3 direction,
                             double *enter, double *leave)
{
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    const double from[3] = {origin.x, origin.y, origin.z};
    const double to[3] = {direction.x, direction.y, direction.z};

    for (int i = 0; i < 3; i++) {
        double a, b;

        if (to[i] == 0) {
            if (!(from[i] >= low[i] && from[i] <= high[i]))
                return false;
            continue;
        }
        a = (low[i] - from[i]) / to[i];
        b = (high[i] - from[i]) / to[i];
        *enter = fmax(*enter, fmin(a, b));
        *leave = fmin(*leave, fmax(a, b));
    }
    return *enter <= *leave;
}

#endif
