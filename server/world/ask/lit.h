/*
 * Light and shadow: does a light reach a point of a locale, and which surface is in between?
 *
 * A light is directional or a point. The query is a ray from the point towards the light, and its
 * answers are those of locale_ray to the bit: trees of lights
 * (world/values/light_cache.h) only save time.
 */
#ifndef KOTA_WORLD_LIT_H
#define KOTA_WORLD_LIT_H

#include "world/values/light_cache.h"
#include "world/ask/query.h"

/*
 * Surfaces this near to the point, along the ray, or this near to a point light, are ignored.
 * Relative to the largest coordinate, which counts as 1 m at least: the precision of a float32 that
 * a client read and sent back.
 */
#define LIT_NEAR_RELATIVE 1e-6

#define LIGHT_PLACE_MAX_M 1e12 /* a coordinate of a light at a place, as of a vertex */

/* A light that travels along `direction`, which need not be unit. False: it is zero. */
bool light_from_direction(struct vec3 direction, struct light *out);
struct light light_at_place(struct vec3 place);

/*
 * The ray from a point to a light: it begins start_m metres from the point, t counts metres.
 * False: the point is at the light, so nothing can be in between.
 */
bool light_ray(const struct light *light, struct vec3 point, struct ray *out, double *start_m);

/* A light over chosen layers, prepared for queries. */
struct lighting {
    const struct layer_choice *choice;
    struct light light;
    struct shadow_index *trees[LOCALE_LAYERS_MAX]; /* of the choice's layers; NULL: by rays */
};

/*
 * Prepares for `points` points. Borrows the choice; holds trees until lighting_close.
 *
 * cache      NULL: rays for all
 * may_build  trees that pay off are built here, which takes long
 *
 * False: a tree would pay off, and may not be built here; nothing is held.
 */
bool lighting_open(struct lighting *lighting, const struct layer_choice *choice,
                   const struct light *light, size_t points, struct light_cache *cache,
                   bool may_build);
void lighting_close(struct lighting *lighting);

enum { LIT_TOGETHER_MAX = 64 };

/*
 * The first hit on the way to the light, of up to LIT_TOGETHER_MAX points (finite): out[count], t
 * in metres from the point; INFINITY and the rest untouched where the point is lit.
 */
void lighting_occluders(const struct lighting *lighting, const struct vec3 *points, size_t count,
                        struct locale_hit *out);

/* Only whether they are lit: is_lit[count], 1 or 0. Faster. */
void lighting_lit(const struct lighting *lighting, const struct vec3 *points, size_t count,
                  uint8_t *is_lit);

#endif
