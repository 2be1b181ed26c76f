/*
 * Erosion keeps its promises: mass, slopes, drainage, and the same bits for every thread count.
 */
#include "deploy/demo/erosion.h"

#include "deploy/demo/noise.h"
#include "deploy/demo/relief.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COLS = 71, ROWS = 53 };

static struct grid grid_make(void)
{
    struct grid grid = {.spacing_m = 4};
    struct err err;

    if (grid_create(&grid, COLS, ROWS, &err))
        fail_msg("%s", err.msg);
    return grid;
}

/* Steep and full of pits. */
static struct grid rough(void)
{
    struct noise_sum sum = {.wavelength = 60, .octaves = 5, .gain = 0.6};
    struct grid grid = grid_make();

    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++)
            grid.at[r * COLS + c] =
                (float)(100 + 120 * noise_fbm(&sum, grid_x(&grid, c), grid_y(&grid, r), 17));
    return grid;
}

static double mass(const struct grid *grid)
{
    double sum = 0;

    for (size_t i = 0; i < grid_count(grid); i++)
        sum += grid->at[i];
    return sum;
}

static void assert_finite(const struct grid *grid)
{
    for (size_t i = 0; i < grid_count(grid); i++)
        if (!isfinite(grid->at[i]))
            fail_msg("sample %zu is %g", i, (double)grid->at[i]);
}

/* Inner cells that no neighbour lies below. */
static size_t pit_count(const struct grid *grid)
{
    size_t pits = 0;

    for (uint32_t r = 1; r + 1 < grid->rows; r++)
        for (uint32_t c = 1; c + 1 < grid->cols; c++) {
            const float *at = grid->at + (size_t)r * grid->cols + c;
            int lower = 0;

            for (int way = 0; way < 8; way++)
                lower += at[drainage_step_y[way] * (int)grid->cols + drainage_step_x[way]] < at[0];
            pits += !lower;
        }
    return pits;
}

static void thermal_erosion_keeps_the_mass(void **state)
{
    struct grid ground = rough(), scratch = grid_make();
    double before = mass(&ground), after;

    (void)state;
    erosion_thermal(&ground, &scratch, 0.5, 200, 1);
    after = mass(&ground);
    if (fabs(after - before) > 1e-5 * before)
        fail_msg("%.9g m³ became %.9g", before, after);
    grid_destroy(&ground);
    grid_destroy(&scratch);
}

static void slopes_end_below_the_talus(void **state)
{
    struct grid ground = rough(), scratch = grid_make();
    double before = erosion_steepest(&ground), after;

    (void)state;
    erosion_thermal(&ground, &scratch, 0.5, 3000, 1);
    after = erosion_steepest(&ground);
    if (!(before > 1 && after <= 0.5 * 1.02))
        fail_msg("the steepest slope went from %g to %g, the talus is 0.5", before, after);
    assert_finite(&ground);
    grid_destroy(&ground);
    grid_destroy(&scratch);
}

static void gentle_ground_does_not_slide(void **state)
{
    struct grid ground = rough(), scratch = grid_make(), before = grid_make();
    double talus = erosion_steepest(&ground) * 1.001;

    (void)state;
    memcpy(before.at, ground.at, grid_count(&ground) * sizeof *ground.at);
    erosion_thermal(&ground, &scratch, talus, 5, 1);
    assert_memory_equal(before.at, ground.at, grid_count(&ground) * sizeof *ground.at);
    grid_destroy(&ground);
    grid_destroy(&scratch);
    grid_destroy(&before);
}

static void filling_only_raises_and_leaves_no_pit(void **state)
{
    struct grid ground = rough(), before = rough();
    struct err err;

    (void)state;
    assert_true(pit_count(&before) > 10);
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    for (size_t i = 0; i < grid_count(&ground); i++)
        if (ground.at[i] < before.at[i])
            fail_msg("sample %zu sank from %g to %g", i, (double)before.at[i],
                     (double)ground.at[i]);
    assert_int_equal(pit_count(&ground), 0);
    grid_destroy(&ground);
    grid_destroy(&before);
}

static void a_filled_bowl_is_as_deep_as_its_lowest_rim(void **state)
{
    struct grid ground = grid_make();
    struct err err;

    (void)state;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++)
            ground.at[r * COLS + c] = r && c && r + 1 < ROWS && c + 1 < COLS ? 1 : 10;
    ground.at[20 * COLS] = 7; /* the spout */
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    for (uint32_t r = 1; r + 1 < ROWS; r++)
        for (uint32_t c = 1; c + 1 < COLS; c++)
            if (!(ground.at[r * COLS + c] > 7 && ground.at[r * COLS + c] < 7.5f))
                fail_msg("cell %u, %u is filled to %g, the spout is at 7", c, r,
                         (double)ground.at[r * COLS + c]);
    grid_destroy(&ground);
}

static const struct rock soft[] = {{1.0f, 0.6f}};

static struct stream_power rivers(double sea_level_m)
{
    return (struct stream_power){.layers = soft,
                                 .layer_count = 1,
                                 .layer_thickness_m = 1,
                                 .sea_level_m = sea_level_m,
                                 .time_step = 0.05,
                                 .steps = 10,
                                 .seed = 3};
}

static void rivers_drain_everything_and_only_cut_down(void **state)
{
    struct stream_power spec = rivers(-INFINITY);
    struct grid ground = rough(), before = grid_make();
    struct drainage drainage;
    struct err err;

    (void)state;
    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    memcpy(before.at, ground.at, grid_count(&ground) * sizeof *ground.at);
    erosion_stream_power(&ground, &drainage, &spec, 1);
    if (!drainage_validate(&drainage, &err))
        fail_msg("%s", err.msg);
    assert_finite(&ground);
    assert_int_equal(pit_count(&ground), 0);
    assert_true(mass(&ground) < 0.98 * mass(&before));
    for (size_t i = 0; i < grid_count(&ground); i++)
        if (ground.at[i] > before.at[i] + 0.01f)
            fail_msg("cell %zu rose from %g to %g without uplift", i, (double)before.at[i],
                     (double)ground.at[i]);
    drainage_destroy(&drainage);
    grid_destroy(&ground);
    grid_destroy(&before);
}

static void no_cell_stands_steeper_over_its_receiver_than_its_rock_holds(void **state)
{
    struct stream_power spec = rivers(-INFINITY);
    struct grid ground = rough();
    struct drainage drainage;
    struct err err;

    (void)state;
    spec.steps = 1;
    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    erosion_stream_power(&ground, &drainage, &spec, 1);
    for (size_t i = 0; i < grid_count(&ground); i++) {
        double run_m = 4 * (drainage.receiver[i] < 4 ? 1 : sqrt(2)), rise_m;

        if (drainage.receiver[i] == DRAINAGE_OUTLET)
            continue;
        rise_m = ground.at[i] - ground.at[drainage_receiver(&drainage, i)];
        if (!(rise_m > 0 && rise_m <= 0.6 * run_m * 1.0001))
            fail_msg("cell %zu stands %g m over its receiver %g m away", i, rise_m, run_m);
    }
    drainage_destroy(&drainage);
    grid_destroy(&ground);
}

static void the_sea_is_an_outlet_and_stays(void **state)
{
    struct stream_power spec = rivers(90);
    struct grid ground = rough(), before = rough();
    struct drainage drainage;
    struct err err;
    size_t sea = 0;

    (void)state;
    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    assert_int_equal(drainage_fill(&ground, 90, 1e-3, &err), ERR_OK);
    erosion_stream_power(&ground, &drainage, &spec, 1);
    for (size_t i = 0; i < grid_count(&ground); i++) {
        if (before.at[i] > 90)
            continue;
        sea++;
        if (ground.at[i] < before.at[i] || ground.at[i] > before.at[i])
            fail_msg("sea cell %zu moved from %g to %g", i, (double)before.at[i],
                     (double)ground.at[i]);
    }
    assert_true(sea > 100);
    drainage_destroy(&drainage);
    grid_destroy(&ground);
    grid_destroy(&before);
}

static void water_on_a_plane_runs_in_its_direction_on_average(void **state)
{
    /* Down a plane that falls at atan(1/2) to the x axis: plain D8 would only ever go diagonally
     * or straight; the mean of the ways must point along the fall. */
    struct grid ground = grid_make();
    struct drainage drainage;
    struct err err;
    double x = 0, y = 0;

    (void)state;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++)
            ground.at[r * COLS + c] = (float)(1000 - 2.0 * c - 1.0 * r);
    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    drainage_route(&drainage, &ground, -INFINITY, 5, 1);
    for (size_t i = 0; i < grid_count(&ground); i++) {
        if (drainage.receiver[i] == DRAINAGE_OUTLET)
            continue;
        x += drainage_step_x[drainage.receiver[i]];
        y += drainage_step_y[drainage.receiver[i]];
    }
    if (fabs(y / x - 0.5) > 0.04)
        fail_msg("water runs at %g to the x axis, the plane falls at 0.5", y / x);
    drainage_destroy(&drainage);
    grid_destroy(&ground);
}

static void widened_valleys_are_lower_and_nothing_rises(void **state)
{
    struct valley_floor floors = {
        .area_min_m2 = 2000, .width = 0.3, .width_max_m = 20, .rise = 0.5};
    struct stream_power spec = rivers(-INFINITY);
    struct grid ground = rough(), before = grid_make();
    struct drainage drainage;
    struct err err;
    size_t lower = 0;

    (void)state;
    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    erosion_stream_power(&ground, &drainage, &spec, 1);
    memcpy(before.at, ground.at, grid_count(&ground) * sizeof *ground.at);
    assert_int_equal(erosion_widen(&ground, &drainage, &floors, &err), ERR_OK);
    for (size_t i = 0; i < grid_count(&ground); i++) {
        lower += ground.at[i] < before.at[i];
        if (ground.at[i] > before.at[i])
            fail_msg("cell %zu rose", i);
    }
    assert_true(lower > 100);
    drainage_destroy(&drainage);
    grid_destroy(&ground);
    grid_destroy(&before);
}

static uint64_t eroded_digest(uint32_t threads)
{
    struct stream_power spec = rivers(-INFINITY);
    struct grid ground = rough(), scratch = grid_make();
    struct drainage drainage;
    struct err err;
    uint64_t digest;

    assert_int_equal(drainage_create(&drainage, COLS, ROWS, &err), ERR_OK);
    assert_int_equal(drainage_fill(&ground, -INFINITY, 1e-3, &err), ERR_OK);
    erosion_stream_power(&ground, &drainage, &spec, threads);
    erosion_thermal(&ground, &scratch, 0.5, 20, threads);
    digest = grid_digest(&ground);
    drainage_destroy(&drainage);
    grid_destroy(&ground);
    grid_destroy(&scratch);
    return digest;
}

static void thread_count_changes_no_bit(void **state)
{
    uint64_t one = eroded_digest(1);

    (void)state;
    for (uint32_t threads = 2; threads <= 4; threads++)
        if (eroded_digest(threads) != one)
            fail_msg("%u threads give another ground than one", threads);
}

static double hills(double x, double y, uint32_t seed)
{
    struct noise_sum sum = {.wavelength = 200, .octaves = 4, .gain = 0.5};

    return 60 + 40 * noise_fbm(&sum, x, y, seed);
}

/* Two metres between samples, so that uplift and folds are interpolated from wider grids. */
static void a_relief_is_the_same_bits_for_every_thread_count(void **state)
{
    static const struct relief_spec spec = {
        .extent_x_m = 512,
        .extent_y_m = 300,
        .start = hills,
        .uplift = hills,
        .fold = hills,
        .layers = soft,
        .layer_count = 1,
        .layer_thickness_m = 10,
        .sea_level_m = -INFINITY,
        .talus = 0.8,
        .floors = {.area_min_m2 = 2000, .width = 0.1, .width_max_m = 20, .rise = 0.5},
        .levels = {{.steps = 5, .time_step = 0.2},
                   {.steps = 3, .time_step = 0.1, .detail_m = 5, .widen = true, .thermal = 3}}};
    static const uint64_t golden = 0x729cbb688225ba5f;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct grid ground;
        struct err err;
        uint64_t digest;

        assert_int_equal(relief_grow(&spec, 256, 7, threads, &ground, &err), ERR_OK);
        assert_int_equal(ground.cols, 256);
        assert_int_equal(ground.rows, 150);
        assert_finite(&ground);
        digest = grid_digest(&ground);
        grid_destroy(&ground);
        if (digest != golden)
            fail_msg("%u threads: 0x%016llx, not 0x%016llx", threads, (unsigned long long)digest,
                     (unsigned long long)golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thermal_erosion_keeps_the_mass),
        cmocka_unit_test(slopes_end_below_the_talus),
        cmocka_unit_test(gentle_ground_does_not_slide),
        cmocka_unit_test(filling_only_raises_and_leaves_no_pit),
        cmocka_unit_test(a_filled_bowl_is_as_deep_as_its_lowest_rim),
        cmocka_unit_test(rivers_drain_everything_and_only_cut_down),
        cmocka_unit_test(no_cell_stands_steeper_over_its_receiver_than_its_rock_holds),
        cmocka_unit_test(the_sea_is_an_outlet_and_stays),
        cmocka_unit_test(water_on_a_plane_runs_in_its_direction_on_average),
        cmocka_unit_test(widened_valleys_are_lower_and_nothing_rises),
        cmocka_unit_test(thread_count_changes_no_bit),
        cmocka_unit_test(a_relief_is_the_same_bits_for_every_thread_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
