/*
 * Lights and their trees.
 *
 * A slot is a light over a mesh: the number of points that were queried, and the tree if there is
 * one. There are LIGHTS_REMEMBERED_MAX slots, allocated with the cache; they are in a ring by use
 * and in chains by name. Ski rental: the tree is built once the cost of rays has reached the cost
 * of building it, which is 2-competitive (Karlin, Manasse, Rudolph, Sleator: Competitive snoopy
 * caching, 1988).
 *
 * A tree has about the bytes of its mesh. A tree that would be larger than the bound is not begun;
 * one that has become larger is dropped. While a tree is built its slot is marked, so that it is
 * built once. Evicted trees are freed after the lock is released.
 *
 * Invariants: `bytes` is the sum of the trees in the slots, and at most bytes_max; every slot is in
 * the ring, and in one chain when it has a name.
 */
#include "world/values/light_cache.h"

#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 2048, NONE = UINT16_MAX };

/* No padding: compared and hashed as bytes. */
struct light_key {
    uint8_t content[32];
    struct vec3 toward;
};

enum slot_state { SLOT_RAYS, SLOT_BUILDING, SLOT_TREE, SLOT_REFUSED };

struct slot {
    struct light_key key;
    bool is_named;
    enum slot_state state;
    uint64_t points; /* queried so far */
    struct shadow_index *tree;
    uint16_t chain;
    uint16_t newer, older; /* the ring */
};

struct light_cache {
    pthread_mutex_t lock; /* guards everything below */
    struct slot slots[LIGHTS_REMEMBERED_MAX];
    uint16_t buckets[BUCKETS];
    uint16_t newest; /* its newer is the oldest */
    struct light_cache_stats stats;
};

enum { KEY_WORDS = 7 };

_Static_assert(sizeof(struct light_key) == KEY_WORDS * sizeof(uint64_t), "a key has no padding");

struct light_cache *light_cache_create(uint64_t bytes_max, struct err *err)
{
    struct light_cache *cache = calloc(1, sizeof *cache);

    if (!cache) {
        err_set(err, ERR_NO_MEMORY, "no memory for lights");
        return NULL;
    }
    CHECK(pthread_mutex_init(&cache->lock, NULL) == 0);
    for (uint16_t i = 0; i < LIGHTS_REMEMBERED_MAX; i++) {
        cache->slots[i].chain = NONE;
        cache->slots[i].newer = (uint16_t)((i + LIGHTS_REMEMBERED_MAX - 1) % LIGHTS_REMEMBERED_MAX);
        cache->slots[i].older = (uint16_t)((i + 1) % LIGHTS_REMEMBERED_MAX);
    }
    for (size_t i = 0; i < BUCKETS; i++)
        cache->buckets[i] = NONE;
    cache->stats.bytes_max = bytes_max;
    return cache;
}

void light_cache_destroy(struct light_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < LIGHTS_REMEMBERED_MAX; i++)
        shadow_index_unref(cache->slots[i].tree);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---- slots: under the lock ------------------------------------------------------------------- */

static struct light_key key_of(const struct mesh *mesh, const struct light *light)
{
    struct vec3 to = light->toward;
    struct light_key key;

    memcpy(key.content, mesh_content(mesh), sizeof key.content);
    key.toward = (struct vec3){to.x + 0, to.y + 0, to.z + 0}; /* -0 is 0 */
    return key;
}

static uint16_t *bucket_of(struct light_cache *cache, const struct light_key *key)
{
    uint64_t word[KEY_WORDS], hash = 0;

    memcpy(word, key, sizeof word);
    for (size_t i = 0; i < KEY_WORDS; i++)
        hash = (hash ^ word[i] ^ hash >> 29) * 0x9e3779b97f4a7c15u;
    return &cache->buckets[(hash >> 40) % BUCKETS];
}

static struct slot *slot_find(struct light_cache *cache, const struct light_key *key)
{
    for (uint16_t i = *bucket_of(cache, key); i != NONE; i = cache->slots[i].chain)
        if (memcmp(&cache->slots[i].key, key, sizeof *key) == 0)
            return &cache->slots[i];
    return NULL;
}

static uint16_t index_of(const struct light_cache *cache, const struct slot *slot)
{
    return (uint16_t)(slot - cache->slots);
}

static void slot_touch(struct light_cache *cache, struct slot *slot)
{
    uint16_t at = index_of(cache, slot), newest = cache->newest, oldest;

    if (at == newest)
        return;
    cache->slots[slot->newer].older = slot->older;
    cache->slots[slot->older].newer = slot->newer;
    oldest = cache->slots[newest].newer;
    slot->newer = oldest;
    slot->older = newest;
    cache->slots[newest].newer = at;
    cache->slots[oldest].older = at;
    cache->newest = at;
}

/* Its tree, which the caller frees after the lock is released; may be NULL. */
static struct shadow_index *tree_take(struct light_cache *cache, struct slot *slot)
{
    struct shadow_index *tree = slot->tree;

    if (tree) {
        cache->stats.trees--;
        cache->stats.bytes -= shadow_index_bytes(tree);
        cache->stats.evicted++;
        slot->tree = NULL;
        slot->state = SLOT_RAYS;
        slot->points = 0;
    }
    return tree;
}

/* The oldest slot under a new name. */
static struct slot *slot_rename(struct light_cache *cache, const struct light_key *key,
                                struct shadow_index **old)
{
    struct slot *slot = &cache->slots[cache->slots[cache->newest].newer];
    uint16_t *at;

    *old = tree_take(cache, slot);
    if (slot->is_named) {
        at = bucket_of(cache, &slot->key);
        while (&cache->slots[*at] != slot)
            at = &cache->slots[*at].chain;
        *at = slot->chain;
    } else {
        cache->stats.lights++;
    }
    at = bucket_of(cache, key);
    slot->key = *key;
    slot->is_named = true;
    slot->state = SLOT_RAYS;
    slot->points = 0;
    slot->chain = *at;
    *at = index_of(cache, slot);
    return slot;
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool has_paid(const struct light_cache *cache, const struct slot *slot,
                     const struct mesh_stats *mesh, size_t points)
{
    uint64_t price = mesh->polygons < LIGHT_POINTS_LEAST ? LIGHT_POINTS_LEAST : mesh->polygons;

    return slot->state == SLOT_RAYS && mesh->bytes <= cache->stats.bytes_max &&
           slot->points + points >= price;
}

enum light_answer light_cache_ask(struct light_cache *cache, const struct mesh *mesh,
                                  const struct mesh_stats *size, const struct light *light,
                                  size_t points, struct shadow_index **tree)
{
    struct light_key key = key_of(mesh, light);
    enum light_answer answer = LIGHT_BY_RAYS;
    struct shadow_index *old = NULL;
    struct slot *slot;

    pthread_mutex_lock(&cache->lock);
    slot = slot_find(cache, &key);
    if (!slot)
        slot = slot_rename(cache, &key, &old);
    slot_touch(cache, slot);
    if (slot->tree) {
        *tree = shadow_index_ref(slot->tree);
        answer = LIGHT_BY_TREE;
        cache->stats.hits++;
    } else if (has_paid(cache, slot, size, points)) {
        answer = LIGHT_BUILD;
    } else {
        slot->points += points;
        cache->stats.misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    shadow_index_unref(old);
    return answer;
}

/* Puts a new tree (NULL: there is none) into its slot, if the slot has the same name still. */
static void tree_keep(struct light_cache *cache, const struct light_key *key,
                      struct shadow_index *tree)
{
    struct shadow_index *gone[LIGHTS_REMEMBERED_MAX];
    size_t gone_count = 0;
    uint64_t bytes = tree ? shadow_index_bytes(tree) : 0;
    struct slot *slot;

    pthread_mutex_lock(&cache->lock);
    cache->stats.builds += tree != NULL;
    cache->stats.refused += tree == NULL || bytes > cache->stats.bytes_max;
    slot = slot_find(cache, key);
    if (slot && slot->state == SLOT_BUILDING) {
        slot_touch(cache, slot);
        slot->state = SLOT_REFUSED;
        if (tree && bytes <= cache->stats.bytes_max) {
            for (uint16_t at = cache->slots[cache->newest].newer;
                 cache->stats.bytes + bytes > cache->stats.bytes_max; at = cache->slots[at].newer)
                if (cache->slots[at].tree)
                    gone[gone_count++] = tree_take(cache, &cache->slots[at]);
            slot->state = SLOT_TREE;
            slot->tree = shadow_index_ref(tree);
            cache->stats.trees++;
            cache->stats.bytes += bytes;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    while (gone_count > 0)
        shadow_index_unref(gone[--gone_count]);
    shadow_index_unref(tree);
}

void light_cache_build(struct light_cache *cache, const struct mesh *mesh,
                       const struct light *light)
{
    struct light_key key = key_of(mesh, light);
    bool is_mine;
    struct slot *slot;
    struct err err;

    pthread_mutex_lock(&cache->lock);
    slot = slot_find(cache, &key);
    is_mine = slot && slot->state == SLOT_RAYS;
    if (is_mine)
        slot->state = SLOT_BUILDING;
    pthread_mutex_unlock(&cache->lock);
    if (is_mine)
        tree_keep(cache, &key, shadow_index_create(mesh, light->toward, &err));
}

void light_cache_stats(struct light_cache *cache, struct light_cache_stats *out)
{
    pthread_mutex_lock(&cache->lock);
    *out = cache->stats;
    pthread_mutex_unlock(&cache->lock);
}

/* ---- validation ------------------------------------------------------------------------------ */

static enum err_code check(struct light_cache *cache, struct err *err)
{
    uint64_t trees = 0, bytes = 0, named = 0, chained = 0;
    uint16_t at = cache->newest;

    for (size_t i = 0; i < LIGHTS_REMEMBERED_MAX; i++) {
        const struct slot *slot = &cache->slots[i];

        if ((slot->state == SLOT_TREE) != (slot->tree != NULL) || (slot->tree && !slot->is_named))
            return err_set(err, ERR_INTERNAL, "slot %zu and its tree disagree", i);
        trees += slot->tree != NULL;
        bytes += slot->tree ? shadow_index_bytes(slot->tree) : 0;
        named += slot->is_named;
    }
    for (size_t i = 0; i < BUCKETS; i++)
        for (uint16_t k = cache->buckets[i]; k != NONE; k = cache->slots[k].chain)
            if (bucket_of(cache, &cache->slots[k].key) != &cache->buckets[i] ||
                ++chained > LIGHTS_REMEMBERED_MAX)
                return err_set(err, ERR_INTERNAL, "chain %zu is broken", i);
    for (size_t i = 0; i < LIGHTS_REMEMBERED_MAX; i++) {
        if (cache->slots[cache->slots[at].older].newer != at || (i > 0 && at == cache->newest))
            return err_set(err, ERR_INTERNAL, "the ring is broken");
        at = cache->slots[at].older;
    }
    if (at != cache->newest || trees != cache->stats.trees || bytes != cache->stats.bytes ||
        bytes > cache->stats.bytes_max || named != cache->stats.lights || chained != named)
        return err_set(err, ERR_INTERNAL, "%llu trees of %llu bytes, counted %llu of %llu",
                       (unsigned long long)trees, (unsigned long long)bytes,
                       (unsigned long long)cache->stats.trees,
                       (unsigned long long)cache->stats.bytes);
    return ERR_OK;
}

bool light_cache_validate(struct light_cache *cache, struct err *err)
{
    enum err_code code;

    pthread_mutex_lock(&cache->lock);
    code = check(cache, err);
    pthread_mutex_unlock(&cache->lock);
    return code == ERR_OK;
}
