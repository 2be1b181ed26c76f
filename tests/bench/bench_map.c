/*
 * Ground for benchmarks: a source of 1025² at 160 m, enlarged to any side. The source is Puget
 * Sound (0.1 m a code: a coast, plains, hills and steep mountains, and no holes, which the peers
 * could not have), or, with KOTA_BENCH_SEED, noise whose shape is drawn by that seed: ground that
 * nobody tuned for.
 */
#include "tests/bench/bench_map.h"

#include "formats/raster/raster.h"
#include "support/test_data.h"
#include "support/bench_rows.h"
#include "support/random.h"
#include "deploy/demo/enlarge.h"
#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 7, THREADS = 2 };

struct job {
    const struct grid *from;
    uint32_t side;
    float *out;
};

static void enlarge(void *context, uint32_t first, uint32_t end)
{
    const struct job *job = context;

    enlarge_rows(job->from, job->side, SEED, first, end, job->out + (size_t)first * job->side);
}

static float *allocate(size_t count)
{
    float *at = malloc(count * sizeof *at);

    if (at == NULL)
        exit(1);
    return at;
}

static bool read_puget(struct grid *from)
{
    size_t length = 0;
    uint8_t *bytes = test_data_read("rasters/puget_1k/puget_1k.png", &length);
    struct raster_options options = {.height_scale = 0.1};
    struct raster raster;
    struct err err;

    if (bytes == NULL) {
        fprintf(stderr, "no test data (KOTA_TEST_DATA): rows on real terrain are left out\n");
        return false;
    }
    if (raster_decode(RASTER_PNG, bytes, length, &options, NULL, &raster, &err)) {
        fprintf(stderr, "puget_1k.png: %s\n", err.msg);
        exit(1);
    }
    free(bytes);
    *from = (struct grid){.cols = raster.cols, .rows = raster.rows, .spacing_m = 1};
    from->at = allocate(grid_count(from));
    memcpy(from->at, raster.heights_m, grid_count(from) * sizeof *from->at);
    raster_free(&raster);
    return true;
}

/* Plains (fBm) and mountains (ridges) of drawn sizes and heights; water at 0. */
static void draw(uint32_t seed, struct grid *from)
{
    struct random random = {seed};
    struct noise_sum plains = {random_in(&random, 60, 600), 8, random_in(&random, 0.35, 0.6)};
    struct noise_sum ridges = {random_in(&random, 60, 400), 8, random_in(&random, 0.4, 0.7)};
    double plain_m = random_in(&random, 20, 400), ridge_m = random_in(&random, 200, 3500);
    double water_m = random_in(&random, -0.5, 0.3) * plain_m;

    *from = (struct grid){.cols = 1025, .rows = 1025, .spacing_m = 1};
    from->at = allocate(grid_count(from));
    for (uint32_t row = 0; row < from->rows; row++)
        for (uint32_t col = 0; col < from->cols; col++) {
            double low = noise_fbm(&plains, col, row, seed) * plain_m - water_m;
            double share = smooth_step(-0.2, 0.4, noise_fbm(&plains, row, col, seed + 1));
            double z = low + share * ridge_m * noise_ridged(&ridges, col, row, seed + 2);

            from->at[(size_t)row * from->cols + col] = (float)(z > 0 ? z : 0);
        }
}

bool bench_map(uint32_t side, struct field_map *map)
{
    uint32_t seed = bench_seed();
    struct grid from;

    if (seed != 0)
        draw(seed, &from);
    else if (!read_puget(&from))
        return false;

    struct job job = {&from, side, allocate((size_t)side * side)};

    parallel_rows(THREADS, side, 8, enlarge, &job);
    *map = (struct field_map){.heights_m = job.out,
                              .side = side,
                              .spacing_m = 160.0f * 1024 / (float)(side - 1),
                              .min_m = job.out[0],
                              .max_m = job.out[0]};
    for (size_t i = 0; i < (size_t)side * side; i++) {
        map->min_m = job.out[i] < map->min_m ? job.out[i] : map->min_m;
        map->max_m = job.out[i] > map->max_m ? job.out[i] : map->max_m;
    }
    free(from.at);
    return true;
}

struct heightfield *bench_map_field(const struct field_map *map)
{
    double spacing_m = (double)map->spacing_m;
    struct heightfield_spec spec = {map->side, map->side,          0, 0, spacing_m,
                                    spacing_m, TRIANGULATION_ANTI, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, map->heights_m, &err);

    if (field == NULL) {
        fprintf(stderr, "heightfield_create: %s\n", err.msg);
        exit(1);
    }
    return field;
}
