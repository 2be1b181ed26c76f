/*
 * The tile cache: the bound, who goes first, references, tags, many threads.
 */
#include "api/tile_cache.h"

#include "support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BODY_BYTES = 1000 };

static struct tile_key key_of(uint32_t n)
{
    return (struct tile_key){.source = {n * 7919u, n}, .level = n % 3, .column = n, .row = n / 2};
}

/* Entry n: a body of `length` bytes, each n's low byte; length 0: only the tag. */
static struct tile_entry *entry_of(uint32_t n, size_t length)
{
    struct tile_key key = key_of(n);
    struct tile_image image = {"image/png", {1, 2}, {malloc(length + 1), length}};
    struct tile_entry *entry;
    char tag[TILE_TAG_BYTES];
    struct err err;

    assert_non_null(image.bytes.at);
    memset(image.bytes.at, (int)(n & 255), length);
    snprintf(tag, sizeof tag, "\"tag-%u\"", n);
    entry = tile_entry_create(&key, tag, length ? &image : NULL, &err);
    assert_non_null(entry);
    free(image.bytes.at);
    return entry;
}

static void put(struct tile_cache *cache, uint32_t n, size_t length)
{
    struct tile_entry *entry = entry_of(n, length);
    struct err err = {.msg = ""};

    tile_cache_put(cache, entry);
    tile_entry_unref(entry);
    if (!tile_cache_validate(cache, &err))
        fail_msg("after entry %u: %s", n, err.msg);
}

static struct tile_entry *find(struct tile_cache *cache, uint32_t n, const char *match)
{
    struct tile_key key = key_of(n);

    return tile_cache_find(cache, &key, match, match ? strlen(match) : 0);
}

static bool holds(struct tile_cache *cache, uint32_t n)
{
    struct tile_entry *entry = find(cache, n, NULL);

    tile_entry_unref(entry);
    return entry != NULL;
}

static struct tile_cache *create(uint64_t bytes_max)
{
    struct err err;
    struct tile_cache *cache = tile_cache_create(bytes_max, &err);

    assert_non_null(cache);
    return cache;
}

/* Bytes that one entry with a body of `length` takes. */
static uint64_t weight(size_t length)
{
    struct tile_cache *cache = create(1 << 20);
    struct tile_cache_stats stats;

    put(cache, 1, length);
    tile_cache_stats(cache, &stats);
    tile_cache_destroy(cache);
    assert_true(stats.bytes > length);
    return stats.bytes;
}

static void what_was_put_is_found(void **state)
{
    struct tile_cache *cache = create(1 << 20);
    struct tile_entry *entry;
    struct tile_key other = key_of(5);
    struct tile_cache_stats stats;

    (void)state;
    put(cache, 5, BODY_BYTES);
    entry = find(cache, 5, NULL);
    assert_non_null(entry);
    assert_string_equal(entry->tag, "\"tag-5\"");
    assert_string_equal(entry->media_type, "image/png");
    assert_true(entry->has_body && entry->codes.offset_m == 1 && entry->codes.scale_m == 2);
    assert_int_equal(entry->length, BODY_BYTES);
    assert_int_equal(entry->bytes[BODY_BYTES - 1], 5);
    tile_entry_unref(entry);
    other.source[1]++;
    assert_null(tile_cache_find(cache, &other, NULL, 0));
    other = key_of(5);
    other.format = TILE_F32;
    assert_null(tile_cache_find(cache, &other, NULL, 0));
    tile_cache_stats(cache, &stats);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.entries, 1);
    tile_cache_destroy(cache);
}

static void the_least_recently_used_goes_first(void **state)
{
    struct tile_cache *cache = create(3 * weight(BODY_BYTES));
    struct tile_cache_stats stats;

    (void)state;
    for (uint32_t n = 0; n < 3; n++)
        put(cache, n, BODY_BYTES);
    assert_true(holds(cache, 0)); /* now 1 is the oldest */
    put(cache, 3, BODY_BYTES);
    assert_false(holds(cache, 1));
    assert_true(holds(cache, 2) && holds(cache, 0) && holds(cache, 3));
    put(cache, 4, BODY_BYTES); /* 2 was looked at first */
    assert_false(holds(cache, 2));
    assert_true(holds(cache, 0) && holds(cache, 3) && holds(cache, 4));
    tile_cache_stats(cache, &stats);
    assert_int_equal(stats.evicted, 2);
    assert_int_equal(stats.entries, 3);
    assert_int_equal(stats.bytes, 3 * weight(BODY_BYTES));
    tile_cache_destroy(cache);
}

static void the_bound_is_kept_whatever_comes(void **state)
{
    const uint64_t bytes_max = 40000;
    struct tile_cache *cache = create(bytes_max);
    struct random random = {20240611};
    struct tile_cache_stats stats;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint32_t n = random_below(&random, 60);

        if (random_below(&random, 3) == 0)
            tile_entry_unref(find(cache, n, NULL));
        else
            put(cache, n, random_below(&random, 9000));
    }
    tile_cache_stats(cache, &stats);
    assert_true(stats.bytes <= bytes_max && stats.entries > 2 && stats.evicted > 100);
    tile_cache_destroy(cache);
}

static void what_does_not_fit_drives_nothing_out(void **state)
{
    struct tile_cache *cache = create(2 * weight(BODY_BYTES));
    struct tile_cache *none = create(0);

    (void)state;
    put(cache, 1, BODY_BYTES);
    put(cache, 2, 3 * BODY_BYTES);
    assert_true(holds(cache, 1));
    assert_false(holds(cache, 2));
    put(none, 1, BODY_BYTES);
    put(none, 1, 0);
    assert_false(holds(none, 1));
    tile_cache_destroy(cache);
    tile_cache_destroy(none);
}

static void what_is_held_outlives_the_cache(void **state)
{
    struct tile_cache *cache = create(weight(BODY_BYTES));
    struct tile_entry *held;

    (void)state;
    put(cache, 7, BODY_BYTES);
    held = find(cache, 7, NULL);
    put(cache, 8, BODY_BYTES);
    assert_false(holds(cache, 7));
    assert_int_equal(held->bytes[0], 7);
    tile_cache_destroy(cache);
    assert_int_equal(held->bytes[BODY_BYTES - 1], 7);
    tile_entry_unref(held);
}

static void a_tag_alone_serves_only_who_has_it(void **state)
{
    struct tile_cache *cache = create(1 << 20);
    struct tile_entry *entry;

    (void)state;
    put(cache, 1, 0);
    assert_null(find(cache, 1, NULL));
    assert_null(find(cache, 1, "\"other\""));
    entry = find(cache, 1, "\"other\", \"tag-1\"");
    assert_true(entry && !entry->has_body);
    tile_entry_unref(entry);
    put(cache, 1, BODY_BYTES);
    put(cache, 1, 0); /* must not take the bytes away */
    entry = find(cache, 1, NULL);
    assert_true(entry && entry->has_body);
    tile_entry_unref(entry);
    tile_cache_destroy(cache);
}

static void tags_are_found_in_their_header(void **state)
{
    static const struct {
        const char *header;
        bool matches;
    } cases[] = {
        {"\"a-1\"", true},
        {"W/\"a-1\"", true},
        {"\"x\", \"a-1\"", true},
        {"\"x\",W/\"a-1\"", true},
        {"*", true},
        {" , \"a-1\"", true},
        {"\"a-12\"", false},
        {"\"a-1", false},
        {"a-1", false},
        {"", false},
        {"\"\"", false},
        {"\"x\" \"y\"", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tile_tag_matches(cases[i].header, strlen(cases[i].header), "\"a-1\"") !=
            cases[i].matches)
            fail_msg("If-None-Match: %s", cases[i].header);
    assert_false(tile_tag_matches(NULL, 0, "\"a-1\""));
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    struct tile_cache *cache;
    uint64_t seed;
    bool is_right;
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct random random = {worker->seed};

    for (int i = 0; i < 4000; i++) {
        uint32_t n = random_below(&random, 40);
        struct tile_entry *entry = find(worker->cache, n, NULL);

        if (!entry) {
            entry = entry_of(n, BODY_BYTES + n);
            tile_cache_put(worker->cache, entry);
        }
        worker->is_right = worker->is_right && entry->length == BODY_BYTES + n &&
                           entry->bytes[0] == n && entry->bytes[entry->length - 1] == n;
        tile_entry_unref(entry);
    }
    return NULL;
}

static void many_threads_see_whole_entries(void **state)
{
    struct tile_cache *cache = create(15 * weight(BODY_BYTES));
    struct worker workers[4];
    pthread_t threads[4];
    struct tile_cache_stats stats;
    struct err err;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){cache, i + 1, true};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].is_right);
    }
    assert_true(tile_cache_validate(cache, &err));
    tile_cache_stats(cache, &stats);
    assert_int_equal(stats.hits + stats.misses, 4 * 4000);
    assert_true(stats.evicted > 0);
    tile_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(the_bound_is_kept_whatever_comes),
        cmocka_unit_test(what_does_not_fit_drives_nothing_out),
        cmocka_unit_test(what_is_held_outlives_the_cache),
        cmocka_unit_test(a_tag_alone_serves_only_who_has_it),
        cmocka_unit_test(tags_are_found_in_their_header),
        cmocka_unit_test(many_threads_see_whole_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
