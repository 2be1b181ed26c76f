/*
 * Puget Sound (1025², 160 m, 0.1 m a code) enlarged to any side. It has a coast, plains, hills and
 * steep mountains, and no holes, which the peers could not have.
 */
#include "tests/bench/bench_map.h"

#include "formats/raster.h"
#include "support/test_data.h"
#include "worldgen/enlarge.h"
#include "worldgen/parallel.h"

#include <stdio.h>
#include <stdlib.h>

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

bool bench_map(uint32_t side, struct field_map *map)
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
    struct grid from = {
        .cols = raster.cols, .rows = raster.rows, .spacing_m = 1, .at = raster.heights_m};
    struct job job = {&from, side, malloc((size_t)side * side * sizeof *job.out)};

    if (job.out == NULL)
        exit(1);
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
    raster_free(&raster);
    free(bytes);
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
