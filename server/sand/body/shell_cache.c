/*
 * A cache of shells.
 *
 * Problem: a shell takes a tenth of a second and more, and the same barrel falls again and again
 * (text S, 5.5, keeps its shells in files). Approach: shells are immutable and counted; the cache
 * holds one reference on each it keeps, in the order of use, and lets the oldest go beyond its
 * bound. What a body uses stays alive without it. The key is the hash of the model's file: a model
 * that is put again under its name with another shape is another model. A miss may still be in the
 * store, from before a restart; new shells are written there, too.
 */
#include "sand/body/shell_cache.h"

#include "base/log.h"
#include "sand/body/shell_store.h"
#include "sand/body/skin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SKIN_STEP 0.5 /* of a radius, between points of the surface */

struct shell_ref {
    struct shell shell;
    float (*skin_m)[3]; /* [skin_count] */
    uint32_t skin_count;
    struct layer *surface; /* the model as rays meet it */
    uint8_t hash[MODEL_HASH_BYTES];
    double radius_m;
    uint32_t refs;          /* atomic */
    struct shell_ref *next; /* the cache's list, newest use first */
    uint64_t bytes;
};

struct shell_cache {
    struct world *world;
    pthread_mutex_t mutex;
    struct shell_ref *first;
    uint64_t bytes_max;
    struct shell_cache_stats stats;
};

struct shell_cache *shell_cache_create(struct world *world, uint64_t bytes_max, struct err *err)
{
    struct shell_cache *cache = calloc(1, sizeof *cache);

    if (!cache) {
        err_set(err, ERR_NO_MEMORY, "no memory for the shells");
        return NULL;
    }
    cache->world = world;
    cache->bytes_max = bytes_max;
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void shell_ref_drop(void *ref)
{
    struct shell_ref *shell = ref;

    if (!shell || __atomic_sub_fetch(&shell->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    shell_free(&shell->shell);
    free(shell->skin_m);
    layer_unref(shell->surface);
    free(shell);
}

void shell_cache_destroy(struct shell_cache *cache)
{
    if (!cache)
        return;
    for (struct shell_ref *ref = cache->first, *next; ref; ref = next) {
        next = ref->next;
        shell_ref_drop(ref);
    }
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* The mutex is held. Takes it out of the list. */
static struct shell_ref *take_out(struct shell_cache *cache, const uint8_t *hash, double radius_m)
{
    for (struct shell_ref **at = &cache->first; *at; at = &(*at)->next) {
        struct shell_ref *ref = *at;

        if (ref->radius_m != radius_m || memcmp(ref->hash, hash, sizeof ref->hash) != 0)
            continue;
        *at = ref->next;
        return ref;
    }
    return NULL;
}

/* The mutex is held. */
static void put_first(struct shell_cache *cache, struct shell_ref *ref)
{
    ref->next = cache->first;
    cache->first = ref;
}

static struct shell_ref *find(struct shell_cache *cache, const struct model *model, double radius_m)
{
    struct shell_ref *ref;

    pthread_mutex_lock(&cache->mutex);
    ref = take_out(cache, model->hash, radius_m);
    if (ref) {
        put_first(cache, ref);
        cache->stats.hits++;
        __atomic_add_fetch(&ref->refs, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&cache->mutex);
    return ref;
}

/* The mutex is held. */
static void trim(struct shell_cache *cache)
{
    struct shell_ref **last;

    while (cache->stats.bytes > cache->bytes_max && cache->first) {
        for (last = &cache->first; (*last)->next; last = &(*last)->next)
            ;
        cache->stats.bytes -= (*last)->bytes;
        cache->stats.entries--;
        shell_ref_drop(*last);
        *last = NULL;
    }
}

/* Keeps a new shell, unless another thread has been faster. */
static void keep(struct shell_cache *cache, struct shell_ref *ref, bool is_loaded)
{
    struct shell_ref *other;

    pthread_mutex_lock(&cache->mutex);
    cache->stats.loaded += is_loaded;
    cache->stats.built += !is_loaded;
    other = take_out(cache, ref->hash, ref->radius_m);
    if (other) {
        put_first(cache, other);
    } else {
        __atomic_add_fetch(&ref->refs, 1, __ATOMIC_RELAXED);
        put_first(cache, ref);
        cache->stats.bytes += ref->bytes;
        cache->stats.entries++;
        trim(cache);
    }
    pthread_mutex_unlock(&cache->mutex);
}

/* From the store; false when it has none, or none that can be trusted. */
static bool load(struct shell_cache *cache, const struct model *model, double radius_m,
                 struct shell *out)
{
    struct err err = {.code = ERR_OK};

    if (shell_store_load(world_store(cache->world), model->hash, radius_m, out, &err))
        log_warn("the shell of model %s is made again: %s", model->id, err_for_log(&err));
    return err.code == ERR_OK && out->particles > 0;
}

static void build(struct shell_cache *cache, const struct model *model,
                  const struct polygon_set *mesh, double radius_m, struct shell *out,
                  struct err *err)
{
    struct err unkept = {.code = ERR_OK};

    if (shell_build(mesh, radius_m, 1, out, err) == ERR_OK &&
        shell_store_save(cache->world, model->hash, out, &unkept))
        log_warn("the shell of model %s is not kept: %s", model->id, err_for_log(&unkept));
}

static struct shell_ref *make(struct shell_cache *cache, const struct model *model, double radius_m,
                              const struct polygon_limits *limits, bool *is_loaded, struct err *err)
{
    struct shell_ref *ref = calloc(1, sizeof *ref);
    struct polygon_set mesh = {0};

    if (!ref) {
        err_set(err, ERR_NO_MEMORY, "no memory for a shell");
        return NULL;
    }
    if (polygon_decode(POLYGON_OBJ, model->bytes, model->length, NULL, limits, &mesh, err) ==
        ERR_OK) {
        *is_loaded = load(cache, model, radius_m, &ref->shell);
        if (!*is_loaded)
            build(cache, model, &mesh, radius_m, &ref->shell, err);
        if (err->code == ERR_OK)
            skin_points(&mesh, ref->shell.centre, SKIN_STEP * radius_m, &ref->skin_m,
                        &ref->skin_count, err);
        if (err->code == ERR_OK)
            ref->surface =
                layer_create_mesh("body", LAYER_GROUND, &mesh, (struct vec3){0, 0, -1}, NULL, err);
    }
    polygon_set_free(&mesh);
    if (err->code != ERR_OK) {
        shell_free(&ref->shell);
        free(ref->skin_m);
        free(ref);
        return NULL;
    }
    ref->refs = 1;
    ref->radius_m = radius_m;
    memcpy(ref->hash, model->hash, sizeof ref->hash);
    ref->bytes = sizeof *ref + ref->shell.particles * sizeof ref->shell.offsets_m[0] +
                 ref->skin_count * sizeof ref->skin_m[0] + ref->surface->memory_bytes;
    return ref;
}

struct shell_ref *shell_cache_get(struct shell_cache *cache, const struct model *model,
                                  double radius_m, const struct polygon_limits *limits,
                                  struct err *err)
{
    struct shell_ref *ref = find(cache, model, radius_m);
    bool is_loaded = false;

    err->code = ERR_OK;
    if (ref)
        return ref;
    ref = make(cache, model, radius_m, limits, &is_loaded, err);
    if (ref)
        keep(cache, ref, is_loaded);
    return ref;
}

void shell_ref_body(struct shell_ref *ref, double mass_kg, struct scaled_model *out)
{
    const struct vec3 centre = ref->shell.centre;

    *out = (struct scaled_model){
        .shape = shell_shape(&ref->shell, mass_kg),
        .center_m = {(float)centre.x, (float)centre.y, (float)centre.z},
        .skin_m = ref->skin_m,
        .skin_count = ref->skin_count,
        .surface = ref->surface,
        .owner = ref,
        .release = shell_ref_drop,
    };
}

void shell_cache_stats(struct shell_cache *cache, struct shell_cache_stats *out)
{
    pthread_mutex_lock(&cache->mutex);
    *out = cache->stats;
    pthread_mutex_unlock(&cache->mutex);
}
