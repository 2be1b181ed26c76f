/*
 * Encoded tiles within a bound.
 *
 * Encoding a block takes milliseconds, most of them zlib's, and a world is read far more often than
 * changed. What is kept is found by a hash table of chains and ordered by use in a ring; both links
 * are in the entry, so that nothing is allocated under the lock. An entry counts with its own
 * structure; the table beside them takes 1/256 of the bound.
 *
 * References: one is the cache's while the entry is in it, one is each answer's while it copies.
 * Evicted entries are released after the lock, so that no thread waits for freeing.
 *
 * Dropped: invalidation by edits. Keys are made of the serials of the field's tiles, so a hit is
 * never wrong, and unused entries are evicted first.
 *
 * Invariants: an entry is in the table exactly when it is in the ring; bytes is the sum of the
 * entries' sizes and at most bytes_max.
 */
#include "api/tile_cache.h"

#include "base/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET_BYTES = 2048 }; /* of the bound a bucket */
enum { BUCKETS_MIN = 16, BUCKETS_MAX = 1 << 24 };

struct tile_slot {
    struct tile_entry entry; /* first: an entry is its slot */
    atomic_uint refs;
    struct tile_slot *chain;         /* the next of the bucket */
    struct tile_slot *newer, *older; /* the ring */
    uint8_t body[];
};

struct tile_cache {
    pthread_mutex_t lock;  /* guards everything below */
    struct tile_slot ring; /* ring.older is the newest, ring.newer the oldest */
    struct tile_slot **buckets;
    size_t bucket_count; /* a power of two; constant */
    struct tile_cache_stats stats;
};

_Static_assert(sizeof(struct tile_key) == 32, "a key has no padding");

/* ---- entries --------------------------------------------------------------------------------- */

struct tile_entry *tile_entry_create(const struct tile_key *key, const char *tag,
                                     const struct tile_image *image, struct err *err)
{
    size_t length = image ? image->bytes.length : 0;
    struct tile_slot *slot = malloc(sizeof *slot + length);

    CHECK(strlen(tag) < TILE_TAG_BYTES);
    if (!slot) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tile");
        return NULL;
    }
    *slot = (struct tile_slot){.entry = {.key = *key, .has_body = image != NULL}, .refs = 1};
    strcpy(slot->entry.tag, tag);
    slot->entry.bytes = slot->body;
    slot->entry.length = length;
    if (image) {
        slot->entry.media_type = image->media_type;
        slot->entry.codes = image->codes;
        memcpy(slot->body, image->bytes.at, length);
    }
    return &slot->entry;
}

/* SplitMix64's finalizer (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* One word into a lane: each step can be undone, so that another word is another lane. */
static uint64_t absorb(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ (lane >> 32);
}

/* Four lanes: in one each multiplication would wait for the one before. */
void tile_tag_of(const void *values, size_t count, size_t value_bytes, const char *form,
                 char out[static TILE_TAG_BYTES])
{
    const char *at = values;
    uint64_t lane[4] = {0x6b6f7461, 0x74696c65, 0x74616773, 0x6c616e65}, word[4], first, second;

    for (size_t left = count * value_bytes; left > 0;) {
        size_t bytes = left < sizeof word ? left : sizeof word;

        if (bytes < sizeof word)
            memset(word, 0, sizeof word);
        memcpy(word, at, bytes);
        lane[0] = absorb(lane[0], word[0]);
        lane[1] = absorb(lane[1], word[1]);
        lane[2] = absorb(lane[2], word[2]);
        lane[3] = absorb(lane[3], word[3]);
        at += bytes;
        left -= bytes;
    }
    first = mix(mix(mix(mix(lane[0] + count) ^ lane[1]) ^ lane[2]) ^ lane[3]);
    second = mix(mix(mix(mix(lane[3] - count) ^ lane[2]) ^ lane[1]) ^ lane[0]);
    snprintf(out, TILE_TAG_BYTES, "\"%016llx%016llx-%s\"", (unsigned long long)first,
             (unsigned long long)second, form);
}

static struct tile_slot *slot_of(struct tile_entry *entry)
{
    return (struct tile_slot *)entry;
}

void tile_entry_unref(struct tile_entry *entry)
{
    if (entry && atomic_fetch_sub(&slot_of(entry)->refs, 1) == 1)
        free(entry);
}

static uint64_t weight(const struct tile_slot *slot)
{
    return sizeof *slot + slot->entry.length;
}

bool tile_tag_matches(const char *match, size_t match_length, const char *tag)
{
    const char *at = match, *end = match ? match + match_length : NULL;
    size_t length = strlen(tag);

    while (at && at < end) {
        const char *quote = memchr(at, '"', (size_t)(end - at));

        if (*at == '*')
            return true;
        if (*at == ' ' || *at == '\t' || *at == ',') {
            at++;
            continue;
        }
        if (!quote)
            return false;
        if ((size_t)(end - quote) >= length && memcmp(quote, tag, length) == 0)
            return true;
        quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
        at = quote ? quote + 1 : NULL;
    }
    return false;
}

/* ---- the table and the ring: under the lock -------------------------------------------------- */

static size_t bucket_of(const struct tile_cache *cache, const struct tile_key *key)
{
    uint64_t place = ((uint64_t)key->column << 32 | key->row) * 0x9e3779b97f4a7c15u;
    uint64_t form = (uint64_t)key->level << 32 | (uint32_t)key->kind << 16 | key->format;
    uint64_t h = (key->source[0] ^ place) + form * 0xd6e8feb86659fd93u;

    return (size_t)(h ^ (h >> 32)) & (cache->bucket_count - 1);
}

static struct tile_slot **find(struct tile_cache *cache, const struct tile_key *key)
{
    struct tile_slot **at = &cache->buckets[bucket_of(cache, key)];

    while (*at && memcmp(&(*at)->entry.key, key, sizeof *key) != 0)
        at = &(*at)->chain;
    return at;
}

static void ring_remove(struct tile_slot *slot)
{
    slot->newer->older = slot->older;
    slot->older->newer = slot->newer;
}

static void ring_add_newest(struct tile_cache *cache, struct tile_slot *slot)
{
    slot->newer = &cache->ring;
    slot->older = cache->ring.older;
    slot->older->newer = slot;
    cache->ring.older = slot;
}

/* Removes the entry at *at; its reference goes to the list *gone. */
static void take_out(struct tile_cache *cache, struct tile_slot **at, struct tile_slot **gone)
{
    struct tile_slot *slot = *at;

    *at = slot->chain;
    ring_remove(slot);
    cache->stats.bytes -= weight(slot);
    cache->stats.entries--;
    slot->chain = *gone;
    *gone = slot;
}

/* ---- the cache ------------------------------------------------------------------------------- */

struct tile_cache *tile_cache_create(uint64_t bytes_max, struct err *err)
{
    struct tile_cache *cache = calloc(1, sizeof *cache);
    size_t count = BUCKETS_MIN;

    while (count < BUCKETS_MAX && count < bytes_max / BUCKET_BYTES)
        count *= 2;
    if (cache)
        cache->buckets = calloc(count, sizeof(struct tile_slot *));
    if (!cache || !cache->buckets) {
        free(cache);
        err_set(err, ERR_NO_MEMORY, "no memory for the tile cache");
        return NULL;
    }
    CHECK(pthread_mutex_init(&cache->lock, NULL) == 0);
    cache->bucket_count = count;
    cache->stats.bytes_max = bytes_max;
    cache->ring.newer = cache->ring.older = &cache->ring;
    return cache;
}

static void let_go(struct tile_slot *gone)
{
    while (gone) {
        struct tile_slot *next = gone->chain;

        tile_entry_unref(&gone->entry);
        gone = next;
    }
}

void tile_cache_destroy(struct tile_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->bucket_count; i++)
        let_go(cache->buckets[i]);
    pthread_mutex_destroy(&cache->lock);
    free(cache->buckets);
    free(cache);
}

struct tile_entry *tile_cache_find(struct tile_cache *cache, const struct tile_key *key,
                                   const char *match, size_t match_length)
{
    struct tile_slot *slot;

    pthread_mutex_lock(&cache->lock);
    slot = *find(cache, key);
    if (slot && !slot->entry.has_body && !tile_tag_matches(match, match_length, slot->entry.tag))
        slot = NULL;
    if (slot) {
        ring_remove(slot);
        ring_add_newest(cache, slot);
        atomic_fetch_add(&slot->refs, 1);
        cache->stats.hits++;
    }
    pthread_mutex_unlock(&cache->lock);
    return slot ? &slot->entry : NULL;
}

void tile_cache_put(struct tile_cache *cache, struct tile_entry *entry)
{
    struct tile_slot *slot = slot_of(entry), *gone = NULL;
    struct tile_slot **at;
    bool is_kept;

    pthread_mutex_lock(&cache->lock);
    cache->stats.misses++;
    at = find(cache, &entry->key);
    is_kept = weight(slot) <= cache->stats.bytes_max &&
              (!*at || entry->has_body || !(*at)->entry.has_body);
    if (is_kept && *at)
        take_out(cache, at, &gone);
    while (is_kept && cache->stats.bytes + weight(slot) > cache->stats.bytes_max) {
        take_out(cache, find(cache, &cache->ring.newer->entry.key), &gone);
        cache->stats.evicted++;
    }
    if (is_kept) {
        at = &cache->buckets[bucket_of(cache, &entry->key)];
        slot->chain = *at;
        *at = slot;
        ring_add_newest(cache, slot);
        atomic_fetch_add(&slot->refs, 1);
        cache->stats.bytes += weight(slot);
        cache->stats.entries++;
    }
    pthread_mutex_unlock(&cache->lock);
    let_go(gone);
}

void tile_cache_stats(struct tile_cache *cache, struct tile_cache_stats *out)
{
    pthread_mutex_lock(&cache->lock);
    *out = cache->stats;
    pthread_mutex_unlock(&cache->lock);
}

bool tile_cache_validate(struct tile_cache *cache, struct err *err)
{
    uint64_t in_ring = 0, in_table = 0, bytes = 0;
    bool is_sound = true;

    pthread_mutex_lock(&cache->lock);
    for (struct tile_slot *slot = cache->ring.older; slot != &cache->ring; slot = slot->older) {
        is_sound = is_sound && slot->older->newer == slot && *find(cache, &slot->entry.key) == slot;
        bytes += weight(slot);
        in_ring++;
    }
    for (size_t i = 0; i < cache->bucket_count; i++)
        for (struct tile_slot *slot = cache->buckets[i]; slot; slot = slot->chain)
            in_table++;
    if (!is_sound || in_ring != in_table || in_ring != cache->stats.entries ||
        bytes != cache->stats.bytes || bytes > cache->stats.bytes_max) {
        err_set(err, ERR_INTERNAL,
                "%llu in the ring, %llu in the table, %llu counted; %llu bytes, %llu counted",
                (unsigned long long)in_ring, (unsigned long long)in_table,
                (unsigned long long)cache->stats.entries, (unsigned long long)bytes,
                (unsigned long long)cache->stats.bytes);
        is_sound = false;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_sound;
}
