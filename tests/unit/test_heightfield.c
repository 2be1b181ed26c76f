/*
 * Heightfields: tiles, pyramid, samples, the three heights.
 */
#include "terrain/field/heightfield_data.h"
#include "terrain/kernels/simd.h"

#include "support/random.h"
#include "support/same_field.h"

#include <pthread.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/field_make.h"
#include "support/near.h"

static float *random_samples(struct random *random, size_t count, double holes)
{
    float *samples = malloc(count * sizeof *samples);

    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = random_in(random, 0, 1) < holes ? NAN : (float)random_in(random, -50, 50);
    return samples;
}

static void every_size_keeps_its_samples_and_validates(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2},     {2, 300},     {257, 257}, {258, 257},
                                        {256, 513}, {514, 259},   {1030, 3},  {700, 1025},
                                        {3, 1030},  {1290, 1290}, {5, 17},    {15, 18}};
    struct random random = {1};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t leaf = 1; leaf <= 256; leaf *= 4) {
            uint32_t cols = sizes[i][0], rows = sizes[i][1];
            float *samples = random_samples(&random, (size_t)cols * rows, 0.1);
            struct heightfield_spec spec = {cols, rows, 0, 0, 1, 1, TRIANGULATION_ANTI, leaf};
            struct heightfield *field = field_make(&spec, samples);

            for (uint32_t n = 0; n < 2000; n++) {
                uint32_t c = random_below(&random, cols), r = random_below(&random, rows);
                float want = samples[(size_t)r * cols + c], got = heightfield_sample(field, c, r);

                if (want != got && !(isnan(want) && isnan(got)))
                    fail_msg("%ux%u leaf %u: sample (%u, %u) is %g, was %g", cols, rows, leaf, c, r,
                             (double)got, (double)want);
            }
            heightfield_unref(field);
            free(samples);
        }
}

static void validate_finds_a_bound_that_is_off(void **state)
{
    struct random random = {2};
    float *samples = random_samples(&random, 600 * 300, 0);
    struct heightfield_spec spec = {600, 300, 0, 0, 1, 1, TRIANGULATION_ANTI, 8};
    struct heightfield *field = field_make(&spec, samples);
    struct err err;

    (void)state;
    field->tiles[1]->nodes[77].max += 1;
    assert_false(heightfield_validate(field, &err));
    field->tiles[1]->nodes[77].max -= 1;
    field->top[field->top_level[1].offset].min -= 1;
    assert_false(heightfield_validate(field, &err));
    field->top[field->top_level[1].offset].min += 1;
    field->tiles[0]->samples[TILE_CELLS] = 7; /* the apron: also in the next tile */
    assert_false(heightfield_validate(field, &err));
    field->tiles[0]->samples[TILE_CELLS] = samples[TILE_CELLS];
    assert_true(heightfield_validate(field, &err));
    field->tiles[2]->samples[88] = 0; /* of 600 columns the third tile has 0..87 */
    assert_false(heightfield_validate(field, &err));
    assert_non_null(strstr(err.msg, "beyond the field"));
    heightfield_unref(field);
    free(samples);
}

static void rect_bounds_equal_a_scan(void **state)
{
    struct random random = {3};
    float *samples = random_samples(&random, 530 * 300, 0.3);
    struct heightfield_spec spec = {530, 300, 0, 0, 1, 1, TRIANGULATION_ANTI, 8};
    struct heightfield *field = field_make(&spec, samples);

    (void)state;
    for (int n = 0; n < 300; n++) {
        uint32_t c0 = random_below(&random, 530), c1 = c0 + random_below(&random, 530 - c0);
        uint32_t r0 = random_below(&random, 300), r1 = r0 + random_below(&random, 300 - r0);
        struct bounds want = BOUNDS_EMPTY;
        struct bounds got = heightfield_rect_bounds(field, c0, r0, c1, r1);

        for (uint32_t r = r0; r <= r1; r++)
            for (uint32_t c = c0; c <= c1; c++)
                want = bounds_add(want, samples[r * 530 + c]);
        if (want.min != got.min || want.max != got.max)
            fail_msg("%u..%u × %u..%u: %g..%g, scan %g..%g", c0, c1, r0, r1, (double)got.min,
                     (double)got.max, (double)want.min, (double)want.max);
    }
    heightfield_unref(field);
    free(samples);
}

static void a_field_that_cannot_be_is_refused(void **state)
{
    static const float good[4] = {0}, infinite[4] = {0, 0, -INFINITY, 0};
    static const struct {
        struct heightfield_spec spec;
        const float *samples;
        const char *says;
    } cases[] = {
        {{1, 2, 0, 0, 1, 1, 0, 0}, good, "cols is 1"},
        {{2, 0, 0, 0, 1, 1, 0, 0}, good, "rows is 0"},
        {{2, 2000000, 0, 0, 1, 1, 0, 0}, good, "rows is 2000000"},
        {{2, 2, 0, 0, 0, 1, 0, 0}, good, "spacing is 0"},
        {{2, 2, 0, 0, 1, -1, 0, 0}, good, "spacing is 1, -1"},
        {{2, 2, 0, 0, NAN, 1, 0, 0}, good, "spacing is nan"},
        {{2, 2, 0, INFINITY, 1, 1, 0, 0}, good, "origin is 0, inf"},
        {{2, 2, 1e20, 0, 1, 1, 0, 0}, good, "vanishes"},
        {{2, 2, 0, 0, 1, 1, 0, 3}, good, "leaf_cells is 3"},
        {{2, 2, 0, 0, 1, 1, 0, 512}, good, "leaf_cells is 512"},
        {{2, 2, 0, 0, 1, 1, 0, 0}, infinite, "height (0, 1) is infinite"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;

        assert_null(heightfield_create(&cases[i].spec, cases[i].samples, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        if (strstr(err.msg, cases[i].says) == NULL)
            fail_msg("case %zu says \"%s\", not \"%s\"", i, err.msg, cases[i].says);
    }
}

static void heights_of_one_cell_by_hand(void **state)
{
    /* samples 0 2 / 6 20 on a cell of 2 m × 3 m at (10, 20) */
    static const float samples[4] = {0, 2, 6, 20};
    static const struct {
        double x, y;
        double nearest, bilinear, anti, main;
    } cases[] = {
        {10, 20, 0, 0, 0, 0},
        {12, 20, 2, 2, 2, 2},
        {10, 23, 6, 6, 6, 6},
        {12, 23, 20, 20, 20, 20},
        {10.5, 20.75, 0, 0.25 * 0.75 * 2 + 0.75 * 0.25 * 6 + 0.0625 * 20, 2, 5},
        {11.5, 20.75, 2, 0.75 * 0.75 * 2 + 0.25 * 0.25 * 6 + 0.25 * 0.75 * 20, 3, 6},
        {11.5, 22.25, 20, 0.1875 * 2 + 0.1875 * 6 + 0.5625 * 20, 12, 15},
        {11, 21.5, 20, 7, 4, 10},
    };
    (void)state;

    for (int t = 0; t < 2; t++) {
        struct heightfield_spec spec = {2, 2, 10, 20, 2, 3, (enum triangulation)t, 0};
        struct heightfield *field = field_make(&spec, samples);

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const double want[3] = {t ? cases[i].main : cases[i].anti, cases[i].bilinear,
                                    cases[i].nearest};

            for (int mode = 0; mode < 3; mode++) {
                struct ground_point got;

                heightfield_height(field, (struct vec2){cases[i].x, cases[i].y},
                                   (enum interpolation)mode, &got);
                if (got.status != GROUND_OK || fabs(got.height_m - want[mode]) > 1e-12)
                    fail_msg("triangulation %d mode %d at (%g, %g): %d %.17g, expected %.17g", t,
                             mode, cases[i].x, cases[i].y, got.status, got.height_m, want[mode]);
            }
        }
        heightfield_unref(field);
    }
}

static void outside_and_hole_are_different_answers(void **state)
{
    static const float samples[9] = {1, 1, 1, 1, NAN, 1, 1, 1, 1};
    static const struct heightfield_spec spec = {3, 3, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    static const struct {
        double x, y;
        enum ground_status status[3]; /* triangle, bilinear, nearest */
    } cases[] = {
        {-0.001, 1, {GROUND_OUTSIDE, GROUND_OUTSIDE, GROUND_OUTSIDE}},
        {1, 2.001, {GROUND_OUTSIDE, GROUND_OUTSIDE, GROUND_OUTSIDE}},
        {1e300, 0, {GROUND_OUTSIDE, GROUND_OUTSIDE, GROUND_OUTSIDE}},
        {1, 1, {GROUND_HOLE, GROUND_HOLE, GROUND_HOLE}},
        {0.2, 0.2, {GROUND_OK, GROUND_HOLE, GROUND_OK}},
        {0.9, 0.9, {GROUND_HOLE, GROUND_HOLE, GROUND_HOLE}},
        {0.5, 0, {GROUND_OK, GROUND_OK, GROUND_OK}},
        {2, 2, {GROUND_OK, GROUND_OK, GROUND_OK}},
        {2, 0.5, {GROUND_HOLE, GROUND_OK, GROUND_OK}},
        {1.8, 0.1, {GROUND_HOLE, GROUND_HOLE, GROUND_OK}},
        {0.5, 0.5, {GROUND_OK, GROUND_HOLE, GROUND_HOLE}}, /* on the hypotenuse of what is left */
    };
    struct heightfield *field = field_make(&spec, samples);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 3; mode++) {
            struct ground_point got;

            heightfield_height(field, (struct vec2){cases[i].x, cases[i].y},
                               (enum interpolation)mode, &got);
            if (got.status != cases[i].status[mode] ||
                isnan(got.height_m) != (got.status != GROUND_OK))
                fail_msg("mode %d at (%g, %g): status %d, expected %d", mode, cases[i].x,
                         cases[i].y, got.status, cases[i].status[mode]);
        }
    heightfield_unref(field);
}

static void the_corners_of_the_bounds_are_inside(void **state)
{
    struct random random = {4};

    (void)state;
    for (int n = 0; n < 2000; n++) {
        uint32_t cols = 2 + random_below(&random, 40), rows = 2 + random_below(&random, 40);
        float *samples = random_samples(&random, (size_t)cols * rows, 0);
        struct heightfield_spec spec = {cols,
                                        rows,
                                        random_in(&random, -1e6, 1e6),
                                        random_in(&random, -1e6, 1e6),
                                        random_in(&random, 0.01, 90),
                                        random_in(&random, 0.01, 90),
                                        TRIANGULATION_MAIN,
                                        0};
        struct heightfield *field = field_make(&spec, samples);
        struct ground_point got;
        struct box3 box;

        heightfield_bounds(field, &box);
        heightfield_height(field, (struct vec2){box.max.x, box.max.y}, INTERPOLATION_TRIANGLE,
                           &got);
        assert_int_equal(got.status, GROUND_OK);
        assert_int_equal(got.cell[0], cols - 2);
        assert_int_equal(got.cell[1], rows - 2);
        assert_near(got.height_m, (double)samples[(size_t)cols * rows - 1], 1e-5);
        heightfield_height(field, (struct vec2){box.min.x, box.min.y}, INTERPOLATION_NEAREST, &got);
        assert_near(got.height_m, (double)samples[0], 0);
        heightfield_unref(field);
        free(samples);
    }
}

static void another_triangulation_shares_the_tiles(void **state)
{
    struct random random = {5};
    float *samples = random_samples(&random, 300 * 20, 0);
    struct heightfield_spec spec = {300, 20, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct err err;
    struct heightfield *turned =
        heightfield_with_triangulation(field, TRIANGULATION_ALTERNATING, &err);

    (void)state;
    assert_non_null(turned);
    assert_ptr_equal(field->tiles[1], turned->tiles[1]);
    heightfield_unref(field);
    assert_true(heightfield_validate(turned, &err));
    assert_int_equal(heightfield_spec(turned)->triangulation, TRIANGULATION_ALTERNATING);
    heightfield_unref(turned);
    free(samples);
}

static void a_sample_costs_less_than_four_and_a_half_bytes(void **state)
{
    uint32_t side = 2049;
    float *samples = calloc((size_t)side * side, sizeof *samples);
    struct heightfield_spec spec = {side, side, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field = field_make(&spec, samples);
    struct heightfield_stats stats;

    (void)state;
    heightfield_stats(field, &stats);
    assert_int_equal(stats.tiles, 64);
    assert_int_equal(stats.samples, 2049 * 2049);
    if ((double)stats.bytes > 4.5 * (double)stats.samples)
        fail_msg("%g bytes per sample", (double)stats.bytes / (double)stats.samples);
    assert_true(stats.bytes > heightfield_tile_bytes(&spec));
    assert_true(stats.bytes < heightfield_tile_bytes(&spec) + 65536);
    heightfield_unref(field);
    free(samples);
}

/* ---- tile by tile
 * -------------------------------------------------------------------------------- */

/* A field whose tiles are written from an array, and what is done wrong on the way. */
struct piecewise {
    struct heightfield_spec spec;
    const float *samples;
    struct heightfield_builder *builder;
    atomic_uint next;
    uint32_t tiles;
    int64_t left_out; /* this tile is not begun; below 0: none */
    int64_t bent;     /* this tile's first sample is another */
};

static void *fill_tiles(void *context)
{
    struct piecewise *p = context;
    struct heightfield_tile_layout layout = heightfield_tile_layout(&p->spec);
    uint32_t i, cols, rows;
    struct err err;

    /* 7 is prime to the number of tiles: every tile once, in no order that the field knows */
    while ((i = atomic_fetch_add(&p->next, 1)) < p->tiles) {
        uint32_t tile = i * 7 % p->tiles;
        uint32_t column = tile % layout.tile_cols, row = tile / layout.tile_cols;
        float *to;

        if (tile == p->left_out)
            continue;
        to = heightfield_builder_begin(p->builder, column, row, &err);
        heightfield_tile_size(&p->spec, column, row, &cols, &rows);
        for (uint32_t r = 0; r < rows; r++)
            memcpy(to + r * heightfield_builder_stride(p->builder),
                   p->samples + (size_t)(row * TILE_CELLS + r) * p->spec.cols + column * TILE_CELLS,
                   cols * sizeof *to);
        if (tile == p->bent)
            to[0] += 1;
        if (heightfield_builder_seal(p->builder, column, row, &err))
            return (void *)1;
    }
    return NULL;
}

static struct heightfield *build(struct piecewise *p, int threads, struct err *err)
{
    struct heightfield_tile_layout layout = heightfield_tile_layout(&p->spec);
    pthread_t thread[4];
    void *failed = NULL;

    p->builder = heightfield_builder_create(&p->spec, err);
    assert_non_null(p->builder);
    p->tiles = layout.tile_cols * layout.tile_rows;
    atomic_init(&p->next, 0);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, fill_tiles, p), 0);
    for (int i = 0; i < threads; i++) {
        void *said;

        pthread_join(thread[i], &said);
        failed = said != NULL ? said : failed;
    }
    assert_null(failed);
    return heightfield_builder_finish(p->builder, err);
}

static void a_field_built_on_threads_is_the_same(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {257, 257}, {258, 2}, {700, 1025}, {1026, 513}};
    struct random random = {6};
    char where[80];
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int threads = 1; threads <= 4; threads++) {
            uint32_t cols = sizes[i][0], rows = sizes[i][1];
            float *samples = random_samples(&random, (size_t)cols * rows, 0.1);
            struct piecewise p = {.spec = {cols, rows, 0, 0, 1, 1, TRIANGULATION_MAIN, 4},
                                  .samples = samples,
                                  .left_out = -1,
                                  .bent = -1};
            struct heightfield *field = field_make(&p.spec, samples),
                               *built = build(&p, threads, &err);

            if (built == NULL)
                fail_msg("%ux%u: %s", cols, rows, err.msg);
            if (!same_field(field, built, where, sizeof where))
                fail_msg("%ux%u on %d threads: %s", cols, rows, threads, where);
            if (!heightfield_validate(built, &err))
                fail_msg("%ux%u on %d threads: %s", cols, rows, threads, err.msg);
            heightfield_unref(field);
            heightfield_unref(built);
            free(samples);
        }
}

static void tiles_that_do_not_fit_are_refused(void **state)
{
    struct random random = {7};
    float *samples = random_samples(&random, 600 * 300, 0);
    struct piecewise p = {.spec = {600, 300, 0, 0, 1, 1, TRIANGULATION_MAIN, 0}, /* 3 × 2 tiles */
                          .samples = samples,
                          .left_out = 4,
                          .bent = -1};
    struct err err;
    (void)state;

    assert_null(build(&p, 1, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_string_equal(err.msg, "tile (1, 1) is missing");
    p.left_out = -1;
    p.bent = 4; /* its low corner is in four tiles */
    assert_null(build(&p, 1, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "disagrees"));
    p.bent = 0; /* its low corner is its own */
    struct heightfield *field = build(&p, 1, &err);

    assert_non_null(field);
    heightfield_unref(field);
    p.spec.cols = 1;
    assert_null(heightfield_builder_create(&p.spec, &err));
    assert_non_null(strstr(err.msg, "cols is 1"));
    free(samples);
}

static void a_field_put_by_runs_of_rows_is_the_same(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {257, 257}, {258, 2}, {700, 513}, {1026, 515}};
    struct random random = {8};
    char where[80];
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t cols = sizes[i][0], rows = sizes[i][1], count;
        float *samples = random_samples(&random, (size_t)cols * rows, 0.1);
        struct heightfield_spec spec = {cols, rows, 0, 0, 1, 1, TRIANGULATION_MAIN, 4};
        struct heightfield_tile_layout layout = heightfield_tile_layout(&spec);
        struct heightfield_builder *builder = heightfield_builder_create(&spec, &err);
        struct heightfield *field = field_make(&spec, samples), *built;

        for (uint32_t r = 0; r < rows; r++) /* as a flipped source comes, every other size */
            for (uint32_t c = 0, row = i % 2 ? rows - 1 - r : r; c < cols; c += count) {
                count = 1 + random_below(&random, 400);
                count = count < cols - c ? count : cols - c;
                assert_int_equal(heightfield_builder_put(builder, c, row,
                                                         samples + (size_t)row * cols + c, count,
                                                         &err),
                                 ERR_OK);
            }
        for (uint32_t t = 0; t < layout.tile_cols * layout.tile_rows; t++)
            assert_int_equal(
                heightfield_builder_seal(builder, t % layout.tile_cols, t / layout.tile_cols, &err),
                ERR_OK);
        built = heightfield_builder_finish(builder, &err);
        if (!built || !same_field(field, built, where, sizeof where))
            fail_msg("%ux%u: %s", cols, rows, built ? where : err.msg);
        heightfield_unref(field);
        heightfield_unref(built);
        free(samples);
    }
}

static void an_infinite_height_in_a_tile_is_named(void **state)
{
    static const struct heightfield_spec spec = {300, 300, 0, 0, 1, 1, TRIANGULATION_MAIN, 0};
    (void)state;

    for (int sign = -1; sign <= 1; sign += 2) {
        struct err err;
        struct heightfield_builder *builder = heightfield_builder_create(&spec, &err);
        float *to = heightfield_builder_begin(builder, 1, 0, &err);

        for (uint32_t row = 0; row < TILE_SAMPLES; row++)
            for (uint32_t column = 0; column < TILE_SAMPLES; column++)
                if (column < 44)
                    to[row * TILE_SAMPLES + column] = 0;
                else
                    assert_true(isnan(to[row * TILE_SAMPLES + column]));
        to[7 * TILE_SAMPLES + 3] = (float)sign * INFINITY;
        assert_int_equal(heightfield_builder_seal(builder, 1, 0, &err), ERR_BAD_INPUT);
        assert_string_equal(err.msg, "height (259, 7) is infinite");
        assert_null(heightfield_builder_finish(builder, &err));
    }
    heightfield_builder_free(NULL);

    float *samples = calloc(300 * 300, sizeof *samples);
    struct err err;

    samples[7 * 300 + 259] = INFINITY;
    assert_null(heightfield_create(&spec, samples, &err));
    assert_string_equal(err.msg, "height (259, 7) is infinite");
    free(samples);
}

static bool same_bound(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a == 0 && b == 0);
}

static void column_bounds_are_the_scalar_ones(void **state)
{
    static const float odd[] = {NAN,    -NAN,    0,       -0.0f,    INFINITY, -INFINITY,
                                1e-45f, -1e-45f, 3.4e38f, -3.4e38f, 1,        -1};
    static float samples[TILE_SAMPLES * TILE_SAMPLES];
    (void)state;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random random = {seed};
        uint32_t rows = 1 + random_below(&random, 9), cols = 1 + random_below(&random, 257);
        float min[2][TILE_SAMPLES], max[2][TILE_SAMPLES];

        for (uint32_t i = 0; i < rows * TILE_SAMPLES; i++)
            samples[i] = odd[random_below(&random, seed % 2 ? 12 : 4)];
        tile_column_bounds_scalar(samples, TILE_SAMPLES, rows, cols, min[0], max[0]);
        tile_column_bounds(samples, TILE_SAMPLES, rows, cols, min[1], max[1]);
        for (uint32_t column = 0; column < cols; column++)
            if (!same_bound(min[0][column], min[1][column]) ||
                !same_bound(max[0][column], max[1][column]))
                fail_msg("seed %llu column %u: %g..%g, scalar %g..%g", (unsigned long long)seed,
                         column, (double)min[1][column], (double)max[1][column],
                         (double)min[0][column], (double)max[0][column]);
    }
}

/* A zero bound is +0 in the pyramid, whatever zeros the samples are, in whatever order. */
static void zero_bounds_are_positive(void **state)
{
    struct random random = {8};
    float *samples = malloc(300 * 300 * sizeof *samples);
    struct heightfield_spec spec = {300, 300, 0, 0, 1, 1, TRIANGULATION_MAIN, 1};
    float low, high;
    (void)state;

    for (uint32_t i = 0; i < 300 * 300; i++)
        samples[i] = random_below(&random, 2) ? 0 : -0.0f;
    struct heightfield *field = field_make(&spec, samples);

    for (uint32_t tile = 0; tile < 4; tile++)
        for (uint32_t i = 0; i <= field->tiles[tile]->level_offset[TILE_SHIFT]; i++) {
            struct bounds b = field->tiles[tile]->nodes[i];

            if (b.min <= b.max)
                assert_false(signbit(b.min) || signbit(b.max));
        }
    for (uint32_t n = 0; n < 100; n++) {
        uint32_t column = random_below(&random, 300), row = random_below(&random, 300);

        assert_true(heightfield_range(field, column, row, column + 2, row + 2, &low, &high));
        assert_false(signbit(low) || signbit(high));
    }
    field->tiles[2]->nodes[9].min = -0.0f;
    struct err err;

    assert_false(heightfield_validate(field, &err));
    heightfield_unref(field);
    free(samples);
}

static void a_serial_is_never_had_twice(void **state)
{
    static const float samples[4] = {0};
    static const struct heightfield_spec spec = {2, 2, 0, 0, 1, 1, TRIANGULATION_MAIN, 0};
    uint64_t last = 0;
    (void)state;

    for (int n = 0; n < 100; n++) { /* each in the memory of the one before, most likely */
        struct heightfield *field = field_make(&spec, samples);

        assert_true(heightfield_tile_serial(field, 0, 0) > last);
        last = heightfield_tile_serial(field, 0, 0);
        heightfield_unref(field);
    }
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* All ways to ask for `points` at one level of vectors against the one that has no vectors. */
static void expect_same_heights(const struct heightfield *field, const struct vec2 *points,
                                size_t count, enum interpolation mode, const char *what)
{
    struct ground_height *heights = malloc((count + 1) * sizeof *heights);
    double *plain = malloc((count + 1) * sizeof *plain);

    assert_true(heights != NULL && plain != NULL);
    for (size_t some = 0; some <= count; some = some < 70 || some == count ? some + 1 : count) {
        heights[some] = (struct ground_height){-7, GROUND_OK};
        plain[some] = -7;
        heightfield_heights(field, points, some, mode, heights);
        heightfield_heights_plain(field, points, some, mode, plain);
        assert_true(heights[some].height_m == -7 && plain[some] == -7); /* nothing behind them */
    }
    for (size_t i = 0; i < count; i++) {
        struct ground_point want;
        struct ground_height one = heightfield_interpolate(field, points[i], mode);

        heightfield_height(field, points[i], mode, &want);
        if (one.status != want.status || heights[i].status != want.status ||
            !same_double(one.height_m, want.height_m) ||
            !same_double(heights[i].height_m, want.height_m) ||
            !same_double(plain[i], want.height_m))
            fail_msg("%s, %s, (%.17g, %.17g): %.17g (%d), alone %.17g (%d), batch %.17g (%d), "
                     "plain %.17g",
                     what, simd_level_name(simd_level()), points[i].x, points[i].y, want.height_m,
                     (int)want.status, one.height_m, (int)one.status, heights[i].height_m,
                     (int)heights[i].status, plain[i]);
    }
    free(heights);
    free(plain);
}

/* Float32 in and out, at odd addresses, against the single questions. */
static void expect_same_f32(const struct heightfield *field, const struct vec2 *points,
                            size_t count, enum interpolation mode)
{
    const struct vec2 o = {field->spec.origin_x_m, field->spec.origin_y_m};
    const double base[3] = {o.x + 0.25, o.y - 0.125, 12.3};
    unsigned char *in = malloc(8 * count + 1), *out = malloc(4 * count + 2);

    assert_true(in != NULL && out != NULL);
    for (size_t some = 0; some <= count; some = some < 40 || some == count ? some + 1 : count) {
        bool is_finite = true;

        for (size_t i = 0; i < some; i++) {
            float at[2] = {(float)(points[i].x - base[0]), (float)(points[i].y - base[1])};

            is_finite &= isfinite(at[0]) && isfinite(at[1]);
            memcpy(in + 1 + 8 * i, at, 8);
        }
        out[1 + 4 * some] = 77;
        assert_int_equal(heightfield_heights_f32(field, in + 1, some, mode, base, out + 1),
                         is_finite);
        assert_int_equal(out[1 + 4 * some], 77); /* nothing behind them */
        for (size_t i = 0; i < some && is_finite; i++) {
            struct ground_point ground;
            float at[2], got;

            memcpy(at, in + 1 + 8 * i, 8);
            memcpy(&got, out + 1 + 4 * i, 4);
            heightfield_height(field,
                               (struct vec2){(double)at[0] + base[0], (double)at[1] + base[1]},
                               mode, &ground);
            float want = (float)(ground.height_m - base[2]);

            if (memcmp(&got, &want, 4) != 0 && !(isnan(got) && isnan(want)))
                fail_msg("%s, f32 (%.9g, %.9g): %.9g, want %.9g", simd_level_name(simd_level()),
                         (double)at[0], (double)at[1], (double)got, (double)want);
        }
    }
    free(in);
    free(out);
}

/* On samples and edges, between, on the outer edges, outside: with holes and without. */
static void the_height_alone_and_in_a_batch_has_the_same_bits(void **state)
{
    enum { POINTS = 5000, COLS = 300, ROWS = 270 };
    enum simd_level level = simd_level();
    struct random random = {31};
    struct vec2 points[POINTS];

    (void)state;
    for (int kind = 0; kind < 18 * SIMD_LEVELS; kind++) {
        enum triangulation triangulation = (enum triangulation)(kind % 3);
        enum interpolation mode = (enum interpolation)(kind / 3 % 3);

        if (!simd_select((enum simd_level)(kind / 18)))
            continue;
        float *samples = random_samples(&random, COLS * ROWS, kind / 9 % 2 ? 0.2 : 0);
        struct heightfield_spec spec = {COLS, ROWS, -7, 11, 0.3, 0.7, triangulation, 0};
        struct heightfield *field = field_make(&spec, samples);

        for (size_t i = 0; i < POINTS; i++) {
            double u = random_in(&random, -2, COLS + 1), v = random_in(&random, -2, ROWS + 1);

            u = i % 3 == 0 ? floor(u) : i % 3 == 1 ? floor(2 * u) / 2 : u;
            v = i % 5 == 0 ? floor(v) : i % 5 == 1 ? floor(v) + (u - floor(u)) : v;
            points[i] = (struct vec2){-7 + 0.3 * u, 11 + 0.7 * v};
        }
        expect_same_heights(field, points, POINTS, mode, "random");
        expect_same_f32(field, points, POINTS, mode);
        heightfield_unref(field);
        free(samples);
    }
    assert_true(simd_select(level));
}

/* Beside the bounds by one step of float64, no numbers, far origins, one cell, both zeros. */
static void the_height_alone_is_the_same_where_numbers_end(void **state)
{
    static const struct heightfield_spec specs[] = {
        {2, 2, 0, 0, 1, 1, TRIANGULATION_ANTI, 0},
        {3, 2, -1, 0, 0.1, 1e-300, TRIANGULATION_ANTI, 0},
        {40, 30, 0, 0, 2, 0.5, TRIANGULATION_ANTI, 0},
        {40, 30, 0x1p52, -0x1p53, 1, 2, TRIANGULATION_ANTI, 0},
        {270, 300, 1e9, -1e9 / 3, 0.1, 1.0 / 3, TRIANGULATION_ANTI, 0},
        {270, 300, 1e300, -1e300, 1e290, 1e285, TRIANGULATION_ANTI, 0},
    };
    const double odd[] = {NAN, -NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, -5e-324, 0, -0.0};
    enum { EDGES = 8, NUMBERS = EDGES * 3 + sizeof odd / sizeof *odd };
    enum simd_level level = simd_level();
    struct random random = {32};

    (void)state;
    for (size_t n = 0; n < sizeof specs / sizeof *specs * SIMD_LEVELS; n++) {
        const struct heightfield_spec *s = &specs[n / SIMD_LEVELS];
        const double origin[2] = {s->origin_x_m, s->origin_y_m};
        const double spacing[2] = {s->spacing_x_m, s->spacing_y_m};
        const double cells[2] = {s->cols - 1, s->rows - 1};
        double numbers[2][NUMBERS];
        struct vec2 points[NUMBERS * NUMBERS];

        if (!simd_select((enum simd_level)(n % SIMD_LEVELS)))
            continue;
        float *samples = random_samples(&random, (size_t)s->cols * s->rows, 0);

        for (size_t i = 0; i < (size_t)s->cols * s->rows; i++)
            if (random_below(&random, 4) != 0)
                samples[i] = random_below(&random, 2) ? 0 : -0.0f;
        struct heightfield *field = field_make(s, samples);

        for (int axis = 0; axis < 2; axis++) {
            const double places[EDGES] = {0,           1,    2,  cells[axis] - 1, cells[axis] - 0.5,
                                          cells[axis], 1.75, 0.5};
            size_t count = 0;

            for (int i = 0; i < EDGES; i++) {
                double at = origin[axis] + spacing[axis] * places[i];

                numbers[axis][count++] = nextafter(at, -INFINITY);
                numbers[axis][count++] = at;
                numbers[axis][count++] = nextafter(at, INFINITY);
            }
            memcpy(&numbers[axis][count], odd, sizeof odd);
        }
        for (size_t i = 0; i < NUMBERS * NUMBERS; i++)
            points[i] = (struct vec2){numbers[0][i % NUMBERS], numbers[1][i / NUMBERS]};
        expect_same_heights(field, points, NUMBERS * NUMBERS, INTERPOLATION_TRIANGLE, "odd");
        for (size_t i = 0; i < NUMBERS * NUMBERS; i++)
            expect_same_f32(field, points + i, 1, INTERPOLATION_TRIANGLE);
        heightfield_unref(field);
        free(samples);
    }
    assert_true(simd_select(level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_keeps_its_samples_and_validates),
        cmocka_unit_test(validate_finds_a_bound_that_is_off),
        cmocka_unit_test(rect_bounds_equal_a_scan),
        cmocka_unit_test(a_field_that_cannot_be_is_refused),
        cmocka_unit_test(heights_of_one_cell_by_hand),
        cmocka_unit_test(outside_and_hole_are_different_answers),
        cmocka_unit_test(the_corners_of_the_bounds_are_inside),
        cmocka_unit_test(the_height_alone_and_in_a_batch_has_the_same_bits),
        cmocka_unit_test(the_height_alone_is_the_same_where_numbers_end),
        cmocka_unit_test(another_triangulation_shares_the_tiles),
        cmocka_unit_test(a_sample_costs_less_than_four_and_a_half_bytes),
        cmocka_unit_test(a_field_built_on_threads_is_the_same),
        cmocka_unit_test(a_field_put_by_runs_of_rows_is_the_same),
        cmocka_unit_test(tiles_that_do_not_fit_are_refused),
        cmocka_unit_test(an_infinite_height_in_a_tile_is_named),
        cmocka_unit_test(column_bounds_are_the_scalar_ones),
        cmocka_unit_test(zero_bounds_are_positive),
        cmocka_unit_test(a_serial_is_never_had_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
