/*
 * Trees of meshes under lights (terrain/light/shadow_index.h), kept within a bound of bytes.
 *
 * A tree is built only when it pays off: when as many points were queried under a light as the mesh
 * has polygons, in one batch or in many, rays have cost about as much as the tree will. So ten
 * thousand lights that are used once cost only their rays. A tree is named by the mesh's content
 * and the light's direction, so it never becomes stale; the least recently used one is evicted
 * first. Any thread; a lock is held for a look-up, never while a tree is built.
 *
 * Only directional lights have trees. Rays to a point light are as fast without one.
 */
#ifndef KOTA_WORLD_LIGHT_CACHE_H
#define KOTA_WORLD_LIGHT_CACHE_H

#include "terrain/light/shadow_index.h"

enum {
    LIGHTS_REMEMBERED_MAX = 1024, /* lights of meshes, with a tree or without */
    LIGHT_POINTS_LEAST = 256,     /* points before a tree is made, however small the mesh */
};

struct light {
    bool is_place;
    struct vec3 toward; /* unit, against the way the light travels */
    struct vec3 place;
};

struct light_cache;

/* bytes_max 0: no tree is made. NULL and ERR_NO_MEMORY. */
struct light_cache *light_cache_create(uint64_t bytes_max, struct err *err);
/* Trees with other holders are freed by them. NULL is fine. */
void light_cache_destroy(struct light_cache *cache);

enum light_answer {
    LIGHT_BY_RAYS, /* use mesh_ray */
    LIGHT_BY_TREE, /* *tree is set: a new reference */
    LIGHT_BUILD    /* build the tree with light_cache_build, and look up again; or leave the loop */
};

/*
 * How to query a mesh of that size for `points` more points under a directional light. LIGHT_BUILD
 * does not count the points; a caller that does not build may call again.
 */
enum light_answer light_cache_ask(struct light_cache *cache, const struct mesh *mesh,
                                  const struct mesh_stats *size, const struct light *light,
                                  size_t points, struct shadow_index **tree);

/*
 * Builds the tree and stores it, if there is one and it fits; a light without one is not tried
 * again as long as it is remembered. Other threads use rays meanwhile. Takes long.
 */
void light_cache_build(struct light_cache *cache, const struct mesh *mesh,
                       const struct light *light);

struct light_cache_stats {
    uint64_t builds;    /* trees that were made */
    uint64_t refused;   /* that could not be, or were larger than the bound */
    uint64_t evicted;   /* evicted trees */
    uint64_t hits;      /* questions to a mesh that a tree answered; each a batch or a part of it */
    uint64_t misses;    /* about a far light that rays answered */
    uint64_t lights;    /* remembered now */
    uint64_t trees;     /* now */
    uint64_t bytes;     /* of them */
    uint64_t bytes_max; /* constant */
};

void light_cache_stats(struct light_cache *cache, struct light_cache_stats *out);

/* Recomputes counts, bytes and every link. For tests. */
bool light_cache_validate(struct light_cache *cache, struct err *err);

#endif
