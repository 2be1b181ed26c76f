/*
 * Light and shadow: does a light reach a point of a locale, and what stands in between?
 *
 * A light is far away, with a direction, or a point. The question is a ray from the point towards
 * the light, and its answers are those of locale_ray to the bit: trees of lights
 * (world/light_cache.h) only save time.
 */
#ifndef KOTA_WORLD_LIT_H
#define KOTA_WORLD_LIT_H

#include "world/light_cache.h"
#include "world/query.h"

/*
 * What is this near to the point, along the ray, is not in its way; nor what is this near to a
 * light at a place. Relative to the largest coordinate, which counts as 1 m at least: the
 * precision of a float32 that a client read and sent back.
 */
#define LIT_NEAR_RELATIVE 1e-6

#define LIGHT_PLACE_MAX_M 1e12 /* a coordinate of a light at a place, as of a vertex */

/* A light that travels along `direction`, which need not be unit. False: it is zero. */
bool light_from_direction(struct vec3 direction, struct light *out);
struct light light_at_place(struct vec3 place);

/*
 * The ray from a point to a light: it begins start_m metres from the point, t counts metres.
 * False: there is nothing between, the point is at the light.
 */
bool light_ray(const struct light *light, struct vec3 point, struct ray *out, double *start_m);

/* A light over chosen layers, ready to be asked. */
struct lighting {
    const struct layer_choice *choice;
    struct light light;
    struct mesh_light *trees[LOCALE_LAYERS_MAX]; /* of the choice's layers; NULL: by rays */
};

/*
 * Gets ready for `points` points. Borrows the choice; holds trees until lighting_close.
 *
 * cache      NULL: rays for all
 * may_build  trees that pay are made here, which takes long
 *
 * False: a tree pays, and may not be made here; nothing is held.
 */
bool lighting_open(struct lighting *lighting, const struct layer_choice *choice,
                   const struct light *light, size_t points, struct light_cache *cache,
                   bool may_build);
void lighting_close(struct lighting *lighting);

enum { LIT_TOGETHER_MAX = 64 };

/*
 * Of up to LIT_TOGETHER_MAX points (finite) what is first on the way to the light: out[count], t in
 * metres from the point; INFINITY and the rest untouched where the point is lit.
 */
void lighting_occluders(const struct lighting *lighting, const struct vec3 *points, size_t count,
                        struct locale_hit *out);

/* Only whether they are lit: is_lit[count], 1 or 0. Faster. */
void lighting_lit(const struct lighting *lighting, const struct vec3 *points, size_t count,
                  uint8_t *is_lit);

#endif
