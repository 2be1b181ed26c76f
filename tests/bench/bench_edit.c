/*
 * `make bench`: what an edit of a large heightfield costs beside building its pyramid anew, what
 * the pyramid costs beside reading the samples once, and what a sample costs in memory.
 *
 * The field is of 8192×8192 samples. Three edits of 128×128 samples: in the middle of a tile,
 * across one seam, across the corner of four tiles. An edit is heightfield_with_samples and the
 * unref of the field that it replaces: the whole change, copies of the tiles included. Beside it
 * stand
 *
 *   the pyramid   tile_seal of every tile and the pyramid above, over samples that are in place: no
 *                 copy, no allocation. What an edit without a pyramid in tiles could not do without
 *   everything    heightfield_create over the array: allocation and copy as well
 *
 * The same edits are also made in a world that lives in memory: from world_apply, through the queue
 * to the writer's thread, until the snapshot is published, its event is in the feed, and the caller
 * is awake again. A reader then pins the snapshot and looks.
 *
 *   a read pass   every sample once, in the order of the array: what memory itself costs. A
 *                 pyramid is measured beside it at 4096² and 8192²
 *
 * Times are CPU time of the thread, but for the world's edits, which are two threads' and by the
 * clock on the wall. Rounds are interleaved, medians taken. Each edit writes other heights than the
 * one before, and at the end the field must be, bit for bit, the one that heightfield_create makes
 * of the edited array. Ratios only: times of one machine mean nothing on another.
 */
#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"
#include "support/same_field.h"
#include "terrain/field/edit.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 8192, EDIT_SIDE = 128, ROUNDS = 5, EDITS = 60, PLACES = 3 };

static const double GOAL_TIMES = 300, GOAL_WORLD_TIMES = 100, GOAL_BYTES = 4.5, GOAL_PASSES = 8;

static const struct place {
    const char *name;
    uint32_t column, row; /* in a tile */
} places[PLACES] = {
    {"within a tile", 64, 64},
    {"across a seam", 192, 64},
    {"across a corner", 192, 192},
};

static void die(const char *what)
{
    fprintf(stderr, "bench_edit: %s\n", what);
    exit(1);
}

/* Bytes of the process that are in memory. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
        die("cannot read /proc/self/statm");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

struct bench {
    float *samples; /* what the field holds */
    float *heights; /* of the next edit */
    struct heightfield *field;
    unsigned edits;
    struct world *world; /* began with the same field */
};

static struct heightfield *create(const float *samples)
{
    static const struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    if (field == NULL)
        die(err.msg);
    return field;
}

/* Seconds of one edit; its heights are other than those before, and so is its tile. */
static double edit_s(struct bench *bench, const struct place *place)
{
    struct err err;
    double start;
    uint32_t tile = ++bench->edits * 37 % (31 * 31);
    struct sample_rect rect = {tile % 31 * 256 + place->column, tile / 31 * 256 + place->row,
                               EDIT_SIDE, EDIT_SIDE};

    for (uint32_t i = 0; i < EDIT_SIDE * EDIT_SIDE; i++)
        bench->heights[i] = (float)(i * 2654435761u % 1000 + bench->edits);
    start = bench_thread_s();
    struct heightfield *next = heightfield_with_samples(bench->field, &rect, bench->heights, &err);

    if (next == NULL)
        die(err.msg);
    heightfield_unref(bench->field);
    bench->field = next;
    double took_s = bench_thread_s() - start;

    for (uint32_t row = 0; row < EDIT_SIDE; row++)
        memcpy(bench->samples + (size_t)(rect.row + row) * SIDE + rect.column,
               bench->heights + (size_t)row * EDIT_SIDE, EDIT_SIDE * sizeof(float));
    return took_s;
}

/* ---- in a world ------------------------------------------------------------------------------ */

static struct world_change change_of(enum world_change_kind kind)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    strcpy(change.locale_id, "a");
    return change;
}

static void world_begin(struct bench *bench)
{
    struct world_change changes[2] = {change_of(WORLD_PUT_LOCALE), change_of(WORLD_PUT_LAYER)};
    struct err err = {.code = ERR_OK};

    bench->world = world_create(1, &world_limits_default, NULL, &err);
    strcpy(changes[1].layer_id, "ground");
    if (bench->world != NULL)
        changes[1].layer = layer_create_heightfield("ground", heightfield_ref(bench->field), &err);
    if (bench->world == NULL || changes[1].layer == NULL ||
        world_apply_all(bench->world, changes, 2, &err))
        die(err.msg);
    world_readers_begin(bench->world);
}

/* What a reader finds after the edit; seen must be its sample. */
static void world_look(struct bench *bench, const struct sample_rect *rect, float seen)
{
    const struct world_snapshot *snapshot = world_pin(bench->world, 0);
    const struct heightfield *field = snapshot_locale(snapshot, "a")->layers[0]->field;

    if (heightfield_sample(field, rect->column, rect->row) != seen)
        die("a reader does not see the edit");
    world_unpin(bench->world, 0, snapshot);
    world_reader_quiet(bench->world, 0);
}

/* Seconds from asking the world for an edit until it is published and announced. */
static double world_edit_s(struct bench *bench, const struct place *place)
{
    uint32_t tile = ++bench->edits * 37 % (31 * 31);
    struct world_change change = change_of(WORLD_EDIT);
    uint64_t before = feed_last(world_feed(bench->world));
    float *heights_m = malloc(EDIT_SIDE * EDIT_SIDE * sizeof *heights_m), first;
    struct err err = {.code = ERR_OK};
    double start;

    if (heights_m == NULL)
        die("no memory");
    for (uint32_t i = 0; i < EDIT_SIDE * EDIT_SIDE; i++)
        heights_m[i] = (float)(i * 2654435761u % 1000 + bench->edits);
    first = heights_m[0];
    change.edit = (struct edit){.kind = EDIT_SET,
                                .rect = {tile % 31 * 256 + place->column,
                                         tile / 31 * 256 + place->row, EDIT_SIDE, EDIT_SIDE},
                                .heights_m = heights_m};
    start = bench_now_s(); /* two threads */
    if (world_apply(bench->world, &change, &err))
        die(err.msg);
    double took_s = bench_now_s() - start;

    if (feed_last(world_feed(bench->world)) != before + 1)
        die("an edit is not in the feed");
    world_look(bench, &change.edit.rect, first);
    return took_s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Seconds of building every tile's pyramid and the one above where the samples stand. */
static double pyramid_s(struct heightfield *field)
{
    double start = bench_thread_s();

    for (uint32_t i = 0; i < field->tile_cols * field->tile_rows; i++)
        if (!tile_seal(field->tiles[i]))
            die("an infinite sample");
    heightfield_build_top(field, 0, 0, field->tile_cols - 1, field->tile_rows - 1);
    return bench_thread_s() - start;
}

/* Seconds of reading side² samples; their bits are summed so that all of them are needed. */
static double read_s(const float *samples, size_t side)
{
    typedef uint32_t lanes __attribute__((vector_size(16), aligned(4), may_alias));
    const lanes *at = (const lanes *)(const void *)samples;
    static volatile uint32_t kept;
    lanes sum[4] = {{0}};
    double start = bench_thread_s();

    for (size_t i = 0; i + 4 <= side * side / 4; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += at[i + k];
    for (size_t k = 0; k < 4; k++)
        kept += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
    return bench_thread_s() - start;
}

static double create_s(struct bench *bench)
{
    double start = bench_thread_s();
    struct heightfield *field = create(bench->samples);
    double took_s = bench_thread_s() - start;
    char where[80];

    if (!same_field(field, bench->field, where, sizeof where))
        die(where);
    heightfield_unref(field);
    return took_s;
}

static void edit_rows(const double edit_s_at[PLACES], const double world_s_at[PLACES],
                      double pyramid_median_s)
{
    for (int p = 0; p < PLACES; p++) {
        char work[96], note[64];

        snprintf(work, sizeof work, "edit of %d² in %d², %s", EDIT_SIDE, SIDE, places[p].name);
        snprintf(note, sizeof note, "%.0f µs and %.0f ms", 1e6 * edit_s_at[p],
                 1e3 * pyramid_median_s);
        bench_row("edits", work, "its pyramid anew", pyramid_median_s / edit_s_at[p], GOAL_TIMES,
                  note);
        snprintf(work, sizeof work, "edit of 128² in a world of 8192², until announced, %s",
                 places[p].name);
        snprintf(note, sizeof note, "%.0f µs and %.0f ms", 1e6 * world_s_at[p],
                 1e3 * pyramid_median_s);
        bench_row("edits", work, "its pyramid anew", pyramid_median_s / world_s_at[p],
                  GOAL_WORLD_TIMES, note);
    }
}

static bool print_edits(struct bench *bench)
{
    double edit[PLACES][ROUNDS * EDITS], in_world[PLACES][ROUNDS * EDITS];
    double pyramid[ROUNDS], anew[ROUNDS], edit_median[PLACES], world_median[PLACES];
    bool is_good = true;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EDITS; i++)
            for (int p = 0; p < PLACES; p++) {
                edit[p][round * EDITS + i] = edit_s(bench, &places[p]);
                in_world[p][round * EDITS + i] = world_edit_s(bench, &places[p]);
            }
        pyramid[round] = pyramid_s(bench->field);
        anew[round] = create_s(bench);
    }
    double pyramid_median = bench_median(pyramid, ROUNDS), anew_median = bench_median(anew, ROUNDS);

    printf("\nAn edit of %d×%d samples in a heightfield of %d²: times faster than\n\n  %-16s %18s "
           "%22s %28s\n",
           EDIT_SIDE, EDIT_SIDE, SIDE, "", "its pyramid anew", "heightfield_create",
           "in a world: pyramid anew");
    for (int p = 0; p < PLACES; p++) {
        edit_median[p] = bench_median(edit[p], (size_t)ROUNDS * EDITS);
        world_median[p] = bench_median(in_world[p], (size_t)ROUNDS * EDITS);
        double times = pyramid_median / edit_median[p];
        double world_times = pyramid_median / world_median[p];

        printf("  %-16s %15.0f %s %22.0f %25.0f %s\n", places[p].name, times,
               times >= GOAL_TIMES ? "ok" : "BELOW", anew_median / edit_median[p], world_times,
               world_times >= GOAL_WORLD_TIMES ? "ok" : "BELOW");
        is_good = is_good && times >= GOAL_TIMES && world_times >= GOAL_WORLD_TIMES;
    }
    edit_rows(edit_median, world_median, pyramid_median);
    return is_good;
}

/* The pyramid beside one pass over the same samples; field holds side² of them. */
static void print_passes(struct heightfield *field, const float *samples, uint32_t side)
{
    double pyramid[ROUNDS], pass[ROUNDS];
    char work[64], note[64];

    for (int round = 0; round < ROUNDS; round++) {
        pass[round] = read_s(samples, side);
        pyramid[round] = pyramid_s(field);
    }
    double pyramid_median = bench_median(pyramid, ROUNDS), pass_median = bench_median(pass, ROUNDS);

    snprintf(work, sizeof work, "full pyramid of %u²", side);
    snprintf(note, sizeof note, "%.1f and %.1f ms", 1e3 * pyramid_median, 1e3 * pass_median);
    bench_row_most("edits", work, "a read pass", pyramid_median / pass_median, GOAL_PASSES, note);
}

static void print_smaller_passes(const struct bench *bench)
{
    enum { SMALL = 4096 };
    static const struct heightfield_spec spec = {SMALL, SMALL, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, bench->samples, &err);

    if (field == NULL)
        die(err.msg);
    print_passes(field, bench->samples, SMALL);
    heightfield_unref(field);
}

static bool print_memory(const struct bench *bench, double resident)
{
    struct heightfield_stats stats;

    heightfield_stats(bench->field, &stats);
    double bytes = (double)stats.bytes / (double)stats.samples;
    double resident_each = resident / (double)stats.samples;
    bool is_good = bytes <= GOAL_BYTES && resident_each <= GOAL_BYTES;

    printf(
        "\nBytes a sample: %.3f as heightfield_stats counts, %.3f in memory (the process with the "
        "field less without) %s\n",
        bytes, resident_each, is_good ? "ok" : "ABOVE");
    bench_row_most("edits", "memory of a heightfield, bytes a sample", "1 byte", resident_each,
                   GOAL_BYTES, "lossless; the process with the field less without");
    return is_good;
}

int main(void)
{
    struct bench bench = {.samples = malloc(sizeof(float) * SIDE * SIDE),
                          .heights = malloc(sizeof(float) * EDIT_SIDE * EDIT_SIDE)};
    struct random random = {3};
    double before;

    if (bench.samples == NULL || bench.heights == NULL)
        die("no memory");
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        bench.samples[i] = (float)random_in(&random, 0, 1000);
    before = resident_bytes();
    bench.field = create(bench.samples);
    double resident = resident_bytes() - before;

    world_begin(&bench);
    bool is_good = print_edits(&bench);

    print_passes(bench.field, bench.samples, SIDE);
    print_smaller_passes(&bench);
    is_good = print_memory(&bench, resident) && is_good;
    printf("\n%s\n", is_good ? "an edit and a sample cost what they may"
                             : "an edit or a sample costs MORE than it may");
    world_destroy(bench.world);
    heightfield_unref(bench.field);
    free(bench.samples);
    free(bench.heights);
    return is_good ? 0 : 1;
}
