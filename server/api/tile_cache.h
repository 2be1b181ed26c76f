/*
 * Encoded tiles that are kept within a bound of bytes.
 *
 * Entries are immutable, counted, and keyed by their sources (block.h), so they never go stale:
 * after an edit the keys are new, and the old entries are evicted as the least recently used. Any
 * thread; a lock is held for a look-up or an insertion, never while bytes are copied.
 */
#ifndef KOTA_API_TILE_CACHE_H
#define KOTA_API_TILE_CACHE_H

#include "formats/raster/tile_image.h"
#include "terrain/field/block.h"

enum { TILE_TAG_BYTES = 64 };

/* No padding: compared and hashed as bytes. */
struct tile_key {
    uint64_t source[2]; /* block_source; of a map's tile map_ground_source */
    uint32_t level, column, row;
    uint16_t kind, format; /* enum block_kind, enum tile_format; of a map's tile its options */
};

struct tile_entry {
    struct tile_key key;
    char tag[TILE_TAG_BYTES];  /* the ETag, quotes included */
    bool has_body;             /* else only the tag is known: enough for a 304 */
    const char *media_type;    /* static; with a body, like the next */
    struct height_codes codes; /* scale 0: none */
    const uint8_t *bytes;
    size_t length;
};

struct tile_cache;

/* bytes_max 0: nothing is kept. NULL and ERR_NO_MEMORY. */
struct tile_cache *tile_cache_create(uint64_t bytes_max, struct err *err);
/* Entries with references stay alive. NULL is fine. */
void tile_cache_destroy(struct tile_cache *cache);

/*
 * An entry of one reference: with the image's bytes, which it copies, or without (image NULL).
 * NULL and ERR_NO_MEMORY.
 */
struct tile_entry *tile_entry_create(const struct tile_key *key, const char *tag,
                                     const struct tile_image *image, struct err *err);
void tile_entry_unref(struct tile_entry *entry); /* NULL is fine */

/*
 * A new reference, or NULL. `match` is an If-None-Match header (length 0 for none): an entry
 * without a body is returned only when its tag is listed. Counts a hit. O(1).
 */
struct tile_entry *tile_cache_find(struct tile_cache *cache, const struct tile_key *key,
                                   const char *match, size_t match_length);

/*
 * Keeps an entry (a reference of its own) in the place of one of the same key, but never one
 * without a body in the place of one with; evicts the least recently used ones until all fit. One
 * larger than the cache is not kept. Counts a miss: something had to be made.
 */
void tile_cache_put(struct tile_cache *cache, struct tile_entry *entry);

/*
 * An ETag of 128 bits over the tile's values, numbers of 4 or 8 bytes, and the word for their form.
 */
void tile_tag_of(const void *values, size_t count, size_t value_bytes, const char *form,
                 char out[static TILE_TAG_BYTES]);

/* Is the tag in a header If-None-Match: `*`, or a list of tags (W/ before a tag is ignored)? */
bool tile_tag_matches(const char *match, size_t match_length, const char *tag);

struct tile_cache_stats {
    uint64_t hits, misses, evicted;
    uint64_t entries, bytes; /* kept now, without evicted ones that answers still hold */
    uint64_t bytes_max;
};

void tile_cache_stats(struct tile_cache *cache, struct tile_cache_stats *out);

/* Recomputes counts, bytes, the order's links and every chain. For tests. */
bool tile_cache_validate(struct tile_cache *cache, struct err *err);

#endif
