/*
 * `make bench-all`: what a tile costs when it is made, when it is kept, and when the client has it;
 * and what reading a block costs at each level.
 *
 * A field of hills and noise, 4097×4097 samples. Times are medians of rounds that are interleaved
 * in one run; ratios only: times of one machine mean nothing on another.
 *
 *   made    block_read, the tag's work is left out, tile_image_encode
 *   kept    the block's name, a look-up, a copy of the bytes
 *   304     the block's name, a look-up by a tag
 */
#include "api/tile_cache.h"
#include "support/bench_time.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 4097, ROUNDS = 7, KEPT_CALLS = 200 };

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench_tiles: %s\n", what);
    exit(1);
}

static struct heightfield *hills(void)
{
    const struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct random random = {4};
    float *samples = malloc((size_t)SIDE * SIDE * sizeof *samples);
    struct heightfield *field;
    struct err err = {.msg = "no memory"};

    must(samples != NULL, "no memory");
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            samples[(size_t)r * SIDE + (size_t)c] =
                (float)(200 * sin(c / 310.0) * cos(r / 270.0) + 20 * sin((c + r) / 17.0) +
                        random_in(&random, -0.3, 0.3));
    field = heightfield_create(&spec, samples, &err);
    must(field != NULL, err.msg);
    free(samples);
    return field;
}

struct bench {
    struct heightfield *field;
    struct tile_cache *cache;
    float *block;
    uint8_t *answer; /* where bytes are copied to */
    uint64_t sum;    /* so that nothing is lifted out of its loop */
};

static struct tile_key key_of(const struct bench *bench, const struct block_place *place,
                              enum tile_format format)
{
    struct tile_key key = {{0, 0},     place->level,          place->column,
                           place->row, (uint16_t)place->kind, (uint16_t)format};

    block_source(bench->field, place, key.source);
    return key;
}

static double made_s(struct bench *bench, const struct block_place *place, enum tile_format format)
{
    struct tile_key key = key_of(bench, place, format);
    struct tile_image image;
    struct tile_entry *entry;
    struct err err;
    double start = bench_now_s(), taken;

    block_read(bench->field, place, bench->block);
    must(tile_image_encode(format, BLOCK_SIDE, BLOCK_SIDE, bench->block, &image, &err) == ERR_OK,
         "no tile");
    taken = bench_now_s() - start;
    entry = tile_entry_create(&key, "\"tag\"", &image, &err);
    must(entry != NULL, "no entry");
    tile_cache_put(bench->cache, entry);
    tile_entry_unref(entry);
    free(image.bytes.at);
    return taken;
}

static double found_s(struct bench *bench, const struct block_place *place, enum tile_format format,
                      const char *match)
{
    double start = bench_now_s();

    for (int i = 0; i < KEPT_CALLS; i++) {
        struct tile_key key = key_of(bench, place, format);
        struct tile_entry *entry =
            tile_cache_find(bench->cache, &key, match, match ? strlen(match) : 0);

        must(entry != NULL, "nothing is kept");
        if (!match || !tile_tag_matches(match, strlen(match), entry->tag)) {
            memcpy(bench->answer, entry->bytes, entry->length);
            bench->sum += bench->answer[(size_t)i % entry->length];
        }
        tile_entry_unref(entry);
    }
    return (bench_now_s() - start) / KEPT_CALLS;
}

static void formats(struct bench *bench)
{
    static const char *const names[] = {"png16", "terrarium", "f32"};
    const struct block_place place = {0, 3, 5, BLOCK_SAMPLED};
    double made[3][ROUNDS], kept[3][ROUNDS], known[3][ROUNDS];

    for (int round = 0; round < ROUNDS; round++)
        for (int f = 0; f < 3; f++) {
            made[f][round] = made_s(bench, &place, (enum tile_format)f);
            kept[f][round] = found_s(bench, &place, (enum tile_format)f, NULL);
            known[f][round] = found_s(bench, &place, (enum tile_format)f, "\"tag\"");
        }
    printf("a tile: how many times faster than making it\n  %-10s %10s %10s\n", "format", "kept",
           "304");
    for (int f = 0; f < 3; f++) {
        double cost = bench_median(made[f], ROUNDS);

        printf("  %-10s %10.0f %10.0f\n", names[f], cost / bench_median(kept[f], ROUNDS),
               cost / bench_median(known[f], ROUNDS));
    }
}

static void levels(struct bench *bench)
{
    static const char *const names[] = {"sampled", "min", "max"};
    uint32_t last = block_level_last(heightfield_spec(bench->field));
    double base = 0;

    printf("reading a block: in times of level 0, sampled\n  %-10s", "level");
    for (uint32_t level = 0; level <= last; level++)
        printf(" %6u", level);
    printf("\n");
    for (int kind = 0; kind < 3; kind++) {
        printf("  %-10s", names[kind]);
        for (uint32_t level = 0; level <= last; level++) {
            const struct block_place place = {level, 0, 0, (enum block_kind)kind};
            double times[ROUNDS];

            for (int round = 0; round < ROUNDS; round++) {
                double start = bench_now_s();

                block_read(bench->field, &place, bench->block);
                times[round] = bench_now_s() - start;
                bench->sum += (uint64_t)fabsf(bench->block[0]);
            }
            if (kind == 0 && level == 0)
                base = bench_median(times, ROUNDS);
            printf(" %6.2f", bench_median(times, ROUNDS) / base);
        }
        printf("\n");
    }
}

int main(void)
{
    struct err err;
    struct bench bench = {.field = hills(),
                          .cache = tile_cache_create(64 << 20, &err),
                          .block = malloc(BLOCK_SAMPLES * sizeof(float)),
                          .answer = malloc(1 << 20)};

    must(bench.cache && bench.block && bench.answer, "no memory");
    formats(&bench);
    levels(&bench);
    fprintf(stderr, "# %llu\n", (unsigned long long)bench.sum);
    tile_cache_destroy(bench.cache);
    heightfield_unref(bench.field);
    free(bench.block);
    free(bench.answer);
    return 0;
}
