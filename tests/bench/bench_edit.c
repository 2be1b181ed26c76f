/*
 * `make bench`: what an edit of a large heightfield costs beside building its pyramid anew, and
 * what a sample costs in memory.
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
 * Rounds are interleaved, medians taken. Each edit writes other heights than the one before, and at
 * the end the field must be, bit for bit, the one that heightfield_create makes of the edited
 * array. Ratios only: times of one machine mean nothing on another.
 */
#include "support/random.h"
#include "support/same_field.h"
#include "terrain/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 8192, EDIT_SIDE = 128, ROUNDS = 5, EDITS = 200, PLACES = 3 };

static const double GOAL_TIMES = 100, GOAL_BYTES = 4.5;

static const struct place {
    const char *name;
    uint32_t column, row; /* in a tile */
} places[PLACES] = {
    {"within a tile", 64, 64},
    {"across a seam", 192, 64},
    {"across a corner", 192, 192},
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

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
    start = now_s();
    struct heightfield *next = heightfield_with_samples(bench->field, &rect, bench->heights, &err);

    if (next == NULL)
        die(err.msg);
    heightfield_unref(bench->field);
    bench->field = next;
    double took_s = now_s() - start;

    for (uint32_t row = 0; row < EDIT_SIDE; row++)
        memcpy(bench->samples + (size_t)(rect.row + row) * SIDE + rect.column,
               bench->heights + (size_t)row * EDIT_SIDE, EDIT_SIDE * sizeof(float));
    return took_s;
}

/* Seconds of building every tile's pyramid and the one above where the samples stand. */
static double pyramid_s(struct bench *bench)
{
    struct heightfield *field = bench->field;
    double start = now_s();

    for (uint32_t i = 0; i < field->tile_cols * field->tile_rows; i++)
        if (!tile_seal(field->tiles[i]))
            die("an infinite sample");
    heightfield_build_top(field, 0, 0, field->tile_cols - 1, field->tile_rows - 1);
    return now_s() - start;
}

static double create_s(struct bench *bench)
{
    double start = now_s();
    struct heightfield *field = create(bench->samples);
    double took_s = now_s() - start;
    char where[80];

    if (!same_field(field, bench->field, where, sizeof where))
        die(where);
    heightfield_unref(field);
    return took_s;
}

static bool print_edits(struct bench *bench)
{
    double edit[PLACES][ROUNDS * EDITS], pyramid[ROUNDS], anew[ROUNDS];
    bool is_good = true;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EDITS; i++)
            for (int p = 0; p < PLACES; p++)
                edit[p][round * EDITS + i] = edit_s(bench, &places[p]);
        pyramid[round] = pyramid_s(bench);
        anew[round] = create_s(bench);
    }
    double pyramid_median = median(pyramid, ROUNDS), anew_median = median(anew, ROUNDS);

    printf("\nAn edit of %d×%d samples in a heightfield of %d²: times faster than\n\n  %-16s %18s "
           "%22s\n",
           EDIT_SIDE, EDIT_SIDE, SIDE, "", "its pyramid anew", "heightfield_create");
    for (int p = 0; p < PLACES; p++) {
        double edit_median = median(edit[p], (size_t)ROUNDS * EDITS);
        double times = pyramid_median / edit_median;

        printf("  %-16s %15.0f %s %22.0f\n", places[p].name, times,
               times >= GOAL_TIMES ? "ok" : "BELOW", anew_median / edit_median);
        is_good = is_good && times >= GOAL_TIMES;
    }
    return is_good;
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
    bool is_good = print_edits(&bench);

    is_good = print_memory(&bench, resident) && is_good;
    printf("\n%s\n", is_good ? "an edit and a sample cost what they may"
                             : "an edit or a sample costs MORE than it may");
    heightfield_unref(bench.field);
    free(bench.samples);
    free(bench.heights);
    return is_good ? 0 : 1;
}
