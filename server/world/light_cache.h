/*
 * Trees of meshes under lights (terrain/mesh_light.h), kept within a bound of bytes.
 *
 * A tree is made only when it pays: when a light has been asked about a mesh for as many points as
 * the mesh has polygons, or four times as many of a light at a place, in one batch or in many, rays
 * have cost about what the tree will. So ten thousand lights that are asked about once cost their
 * rays and nothing else. What is kept is named by the mesh's content and the light's direction or
 * place, so it never goes stale; the least recently asked goes first. Any thread; a lock is held
 * for a look-up, never while a tree is made.
 */
#ifndef KOTA_WORLD_LIGHT_CACHE_H
#define KOTA_WORLD_LIGHT_CACHE_H

#include "terrain/mesh_light.h"

enum {
    LIGHTS_REMEMBERED_MAX = 1024, /* lights of meshes, with a tree or without */
    LIGHT_POINTS_LEAST = 256,     /* points before a tree is made, however small the mesh */
    LIGHT_PLACE_TIMES = 32        /* a light at a place needs so many times the points */
};

struct light {
    bool is_place;
    struct vec3 toward; /* unit, against the way the light travels */
    struct vec3 place;
};

struct light_cache;

/* bytes_max 0: no tree is made. NULL and ERR_NO_MEMORY. */
struct light_cache *light_cache_create(uint64_t bytes_max, struct err *err);
/* Trees that somebody still holds live on. NULL is fine. */
void light_cache_destroy(struct light_cache *cache);

enum light_answer {
    LIGHT_BY_RAYS, /* ask mesh_ray */
    LIGHT_BY_TREE, /* *tree is set: a new reference */
    LIGHT_BUILD    /* make the tree with light_cache_build, and ask again; or leave the loop */
};

/*
 * How to ask a mesh, of that size, about `points` more points under a light. LIGHT_BUILD counts
 * nothing, and whoever does not build may come again.
 */
enum light_answer light_cache_ask(struct light_cache *cache, const struct mesh *mesh,
                                  const struct mesh_stats *size, const struct light *light,
                                  size_t points, struct mesh_light **tree);

/*
 * Makes the tree and keeps it, if it has one and it fits; a light without one is not tried again as
 * long as it is remembered. Others that ask meanwhile are told to use rays. Takes long.
 */
void light_cache_build(struct light_cache *cache, const struct mesh *mesh,
                       const struct light *light);

struct light_cache_stats {
    uint64_t builds;    /* trees that were made */
    uint64_t refused;   /* that could not be, or were larger than the bound */
    uint64_t evicted;   /* trees that were let go */
    uint64_t hits;      /* questions to a mesh that a tree answered; each a batch or a part of it */
    uint64_t misses;    /* that rays answered */
    uint64_t lights;    /* remembered now */
    uint64_t trees;     /* kept now */
    uint64_t bytes;     /* of them */
    uint64_t bytes_max; /* constant */
};

void light_cache_stats(struct light_cache *cache, struct light_cache_stats *out);

/* Recomputes counts, bytes and every link. For tests. */
bool light_cache_validate(struct light_cache *cache, struct err *err);

#endif
