/*
 * Shared by pictures of ground: colours as linear light, their development into bytes,
 * and normals that do not show the facets.
 */
#ifndef KOTA_TERRAIN_SHADE_H
#define KOTA_TERRAIN_SHADE_H

#include "terrain/field_ray/ray.h"

/* Linear light, or the share of it that a surface gives back (0..1). */
struct colour {
    double r, g, b;
};

static inline struct colour colour_mix(struct colour a, struct colour b, double t)
{
    return (struct colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline struct colour colour_scale(struct colour a, double s)
{
    return (struct colour){a.r * s, a.g * s, a.b * s};
}

static inline struct colour colour_times(struct colour a, struct colour b)
{
    return (struct colour){a.r * b.r, a.g * b.g, a.b * b.b};
}

static inline struct colour colour_add(struct colour a, struct colour b)
{
    return (struct colour){a.r + b.r, a.g + b.g, a.b + b.b};
}

/* One channel of light as the byte of an sRGB picture, by a filmic curve. */
uint8_t shade_developed(double light);

/* The normal at a hit, interpolated from the samples around; the triangle's own beside a hole. */
struct vec3 shade_smooth_normal(const struct heightfield *field, const struct ray_hit *hit);

#endif
