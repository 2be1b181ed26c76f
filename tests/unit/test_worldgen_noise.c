/*
 * Noise, grids and rows on threads: the ground the generator stands on. The pinned numbers hold
 * the promise that a seed means the same terrain on every machine.
 */
#include "deploy/demo/grid.h"
#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"

#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_close(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s is %.17g, not %.17g within %g", what, got, want, tolerance);
}

static void hashes_are_the_same_on_every_machine(void **state)
{
    static const struct {
        uint32_t x, y, seed, hash;
    } cases[] = {{0, 0, 0, 0x00000000},
                 {1, 0, 0, 0xb2580d36},
                 {0, 1, 0, 0xaba90a03},
                 {0, 0, 1, 0x84393268},
                 {0xffffffff, 7, 9, 0xe428e66d}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t hash = noise_hash(cases[i].x, cases[i].y, cases[i].seed);

        if (hash != cases[i].hash)
            fail_msg("noise_hash(%u, %u, %u) is 0x%08x, not 0x%08x", cases[i].x, cases[i].y,
                     cases[i].seed, hash, cases[i].hash);
    }
}

static void gradient_noise_is_zero_on_its_lattice(void **state)
{
    (void)state;
    for (int x = -3; x <= 3; x++)
        for (int y = -3; y <= 3; y++)
            assert_close(noise_gradient(x, y, 5), 0, 0, "noise on the lattice");
}

static void noise_stays_in_its_range_and_has_no_steps(void **state)
{
    struct noise_sum sum = {.wavelength = 3, .octaves = 6, .gain = 0.5};
    uint64_t seed = 20240517;
    struct random random = {seed};
    double least = 1, greatest = -1;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        double x = random_in(&random, -900, 900), y = random_in(&random, -900, 900);
        double here = noise_gradient(x, y, 3), ridged = noise_ridged(&sum, x, y, 3);
        double fbm = noise_fbm(&sum, x, y, 3);

        if (!(fabs(here) <= 1 && fabs(fbm) <= 1 && ridged >= 0 && ridged <= 1))
            fail_msg("seed %llu: at %.17g, %.17g noise %g, fbm %g, ridged %g",
                     (unsigned long long)seed, x, y, here, fbm, ridged);
        assert_close(noise_gradient(x + 1e-7, y, 3), here, 1e-6, "noise a tiny step further");
        least = here < least ? here : least;
        greatest = here > greatest ? here : greatest;
    }
    if (least > -0.7 || greatest < 0.7)
        fail_msg("noise only spans %g..%g", least, greatest);
}

static void seeds_give_different_noise(void **state)
{
    int same = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        same += noise_hash((uint32_t)i, 4, 1) == noise_hash((uint32_t)i, 4, 2);
    assert_int_equal(same, 0);
}

static struct grid parabola(void)
{
    struct grid grid = {.origin_x_m = -3, .origin_y_m = 5, .spacing_m = 0.5};
    struct err err;

    assert_int_equal(grid_create(&grid, 9, 7, &err), ERR_OK);
    for (uint32_t r = 0; r < 7; r++)
        for (uint32_t c = 0; c < 9; c++) {
            double x = grid_x(&grid, c), y = grid_y(&grid, r);

            grid.at[r * 9 + c] = (float)(0.5 * x * x - x * y + 0.25 * y * y + 3);
        }
    return grid;
}

static void bicubic_goes_through_samples_and_keeps_parabolas(void **state)
{
    struct grid grid = parabola();

    (void)state;
    for (uint32_t c = 0; c < 9; c++)
        assert_close(grid_bicubic(&grid, grid_x(&grid, c), grid_y(&grid, 3)), grid.at[27 + c], 0,
                     "bicubic at a sample");
    for (double x = -2.5; x < 0.4; x += 0.13)
        for (double y = 5.5; y < 7.4; y += 0.17)
            assert_close(grid_bicubic(&grid, x, y), 0.5 * x * x - x * y + 0.25 * y * y + 3, 1e-5,
                         "bicubic of a parabola");
    grid_destroy(&grid);
}

static void a_hole_is_as_wide_as_the_cells_that_touch_it(void **state)
{
    struct grid grid = parabola();

    (void)state;
    grid.at[3 * 9 + 4] = NAN;
    assert_true(isnan(grid_bicubic(&grid, grid_x(&grid, 4), grid_y(&grid, 3))) != 0);
    assert_true(isnan(grid_bicubic(&grid, grid_x(&grid, 3) + 0.1, grid_y(&grid, 3))) != 0);
    assert_true(isfinite(grid_bicubic(&grid, grid_x(&grid, 3), grid_y(&grid, 3))) != 0);
    assert_true(isfinite(grid_bicubic(&grid, grid_x(&grid, 2) + 0.1, grid_y(&grid, 3))) != 0);
    assert_true(isfinite(grid_bicubic(&grid, grid_x(&grid, 5) + 0.1, grid_y(&grid, 3))) != 0);
    grid_destroy(&grid);
}

static void count_rows(void *context, uint32_t first, uint32_t end)
{
    uint8_t *done = context;

    for (uint32_t row = first; row < end; row++)
        done[row]++;
}

static void every_row_is_done_once(void **state)
{
    static const uint32_t threads[] = {1, 2, 3, 7}, rows[] = {0, 1, 5, 1000}, pieces[] = {1, 16};

    (void)state;
    for (int i = 0; i < 4 * 4 * 2; i++) {
        uint8_t done[1001] = {0};
        uint32_t count = rows[i / 4 % 4];

        parallel_rows(threads[i % 4], count, pieces[i / 16], count_rows, done);
        for (uint32_t row = 0; row <= 1000; row++)
            if (done[row] != (row < count))
                fail_msg("%u threads, %u rows: row %u was done %u times", threads[i % 4], count,
                         row, done[row]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_the_same_on_every_machine),
        cmocka_unit_test(gradient_noise_is_zero_on_its_lattice),
        cmocka_unit_test(noise_stays_in_its_range_and_has_no_steps),
        cmocka_unit_test(seeds_give_different_noise),
        cmocka_unit_test(bicubic_goes_through_samples_and_keeps_parabolas),
        cmocka_unit_test(a_hole_is_as_wide_as_the_cells_that_touch_it),
        cmocka_unit_test(every_row_is_done_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
