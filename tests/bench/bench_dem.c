/*
 * What a cold tile of a map costs, in units of its heights: 256² heights in one batch, at places
 * that are known. The tile decodes its address, projects its pixels, asks the heights, makes its
 * tag and encodes; nothing of it is in the cache.
 *
 *   bench_dem
 *
 * A field of hills, 4097² samples 2 m apart at 47° north; tiles of zoom 15, each asked once.
 */
#include "api/maps/map_ground.h"
#include "support/api_call.h"
#include "support/bench_rows.h"
#include "support/random.h"

#include <math.h>

enum { SIDE = 4097, PIXELS = 256, TILES = 24, ZOOM = 15, ROUNDS = 9 };
#define LAT_DEG 47.0
#define LNG_DEG 11.0

static void hills(struct api_test *t)
{
    const struct heightfield_spec spec = {SIDE, SIDE, -(double)(SIDE - 1), -(double)(SIDE - 1),
                                          2,    2,    TRIANGULATION_ANTI,  0};
    struct world_change put = {
        .kind = WORLD_PUT_LOCALE, .locale_id = "field", .manifest = locale_manifest_default};
    struct world_change layer = {
        .kind = WORLD_PUT_LAYER, .locale_id = "field", .layer_id = "ground"};
    struct random random = {4};
    float *samples = malloc((size_t)SIDE * SIDE * sizeof *samples);

    api_test_must(samples != NULL, "no memory");
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            samples[(size_t)r * SIDE + (size_t)c] =
                (float)(800 + 300 * sin(c / 310.0) * cos(r / 270.0) + 20 * sin((c + r) / 17.0) +
                        random_in(&random, -0.3, 0.3));
    put.manifest.has_geo = true;
    put.manifest.geo_lat_deg = LAT_DEG;
    put.manifest.geo_lng_deg = LNG_DEG;
    api_test_must(world_apply(t->world, &put, &t->err) == ERR_OK, t->err.msg);
    layer.layer =
        layer_create_heightfield("ground", heightfield_create(&spec, samples, &t->err), &t->err);
    api_test_must(layer.layer && world_apply(t->world, &layer, &t->err) == ERR_OK, t->err.msg);
    free(samples);
}

/* The first tile of a square of them in the middle of the field. */
static void corner(uint32_t *x, uint32_t *y)
{
    double lat = LAT_DEG * M_PI / 180, tiles = ldexp(1, ZOOM);

    *x = (uint32_t)((LNG_DEG + 180) / 360 * tiles) - 2;
    *y = (uint32_t)((1 - asinh(tan(lat)) / M_PI) / 2 * tiles) - 2;
}

struct bench {
    struct api_test test;
    uint32_t x, y;
    struct map_ground ground;
    struct vec2 points[PIXELS * PIXELS];
    double heights_m[PIXELS * PIXELS];
};

static double median_of(double (*one)(struct bench *b, int i, const char *ending), struct bench *b,
                        const char *ending)
{
    double times[TILES];

    for (int i = 0; i < TILES; i++)
        times[i] = one(b, i, ending);
    return bench_median(times, TILES);
}

static double tile_s(struct bench *b, int i, const char *ending)
{
    char tail[64];
    double start;

    tile_cache_destroy(b->test.api.tiles);
    b->test.api.tiles = tile_cache_create(1 << 24, &b->test.err);
    snprintf(tail, sizeof tail, "%d/%u/%u%s", ZOOM, b->x + (uint32_t)i % 4,
             b->y + (uint32_t)i / 4 % 4, ending);
    start = bench_thread_s();
    api_test_must(api_test_ask(&b->test, dem_get_answer, "field", tail, "", "", NULL, 0) == ERR_OK,
                  b->test.err.msg);
    return bench_thread_s() - start;
}

/* The same pixels' heights alone. */
static double heights_s(struct bench *b, int i, const char *ending)
{
    struct map_tile tile = {.scheme = MAP_MERCATOR,
                            .z = ZOOM,
                            .x = b->x + (uint32_t)i % 4,
                            .y = b->y + (uint32_t)i / 4 % 4,
                            .side = PIXELS};
    double lng_deg[PIXELS], lat_deg[PIXELS], start;

    (void)ending;
    map_tile_places(&tile, 0, 0, 0, lng_deg, lat_deg);
    geo_map_grid(&b->ground.map, lng_deg, PIXELS, lat_deg, PIXELS, 1e-3, b->points);
    start = bench_thread_s();
    locale_heights_plain(&b->ground.ground, b->points, PIXELS * PIXELS, INTERPOLATION_TRIANGLE,
                         b->heights_m);
    return bench_thread_s() - start;
}

int main(void)
{
    static const struct {
        const char *ending, *work;
        double asked;
    } forms[] = {{".f32", "a cold tile of 256², float32", 6},
                 {".png", "a cold tile of 256², PNG", 6}};
    struct bench *b = calloc(1, sizeof *b);
    struct call call = {0};
    double alone[ROUNDS], made[2][ROUNDS];
    char note[96];

    api_test_must(b != NULL, "no memory");
    api_test_open(&b->test);
    world_unpin(b->test.world, 0, b->test.snapshot);
    hills(&b->test);
    b->test.snapshot = world_pin(b->test.world, 0);
    corner(&b->x, &b->y);
    call.api = &b->test.api;
    call.snapshot = b->test.snapshot;
    call.locale = snapshot_locale(b->test.snapshot, "field");
    api_test_must(map_ground_open(&call, &b->ground, &b->test.err) == ERR_OK, b->test.err.msg);
    for (int round = 0; round < ROUNDS; round++) {
        alone[round] = median_of(heights_s, b, "");
        for (int f = 0; f < 2; f++)
            made[f][round] = median_of(tile_s, b, forms[f].ending);
    }
    for (int f = 0; f < 2; f++) {
        double own = bench_median(made[f], ROUNDS), beside = bench_median(alone, ROUNDS);

        snprintf(note, sizeof note, "%.2f and %.2f ms", 1e3 * own, 1e3 * beside);
        bench_row_most("maps", forms[f].work, "its heights in one batch", own / beside,
                       forms[f].asked, note);
    }
    api_test_close(&b->test);
    free(b);
    return 0;
}
