/*
 * Where the samples of a raster lie: geotransforms to spacing and origin, degrees to metres; and
 * the line that tells how far long work has come.
 */
#include "client/progress.h"
#include "formats/raster/georef.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct georef_source raster(double x0, double dx, double y0, double dy)
{
    struct georef_source out = {
        .cols = 11, .rows = 6, .has_transform = true, .transform = {x0, dx, 0, y0, 0, dy}};

    return out;
}

static void near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fmax(fabs(want), 1)))
        fail_msg("got %.17g, expected %.17g", got, want);
}

static void samples_are_the_middles_of_pixels(void **state)
{
    struct georef_source north_up = raster(1000, 10, 5000, -20);
    struct georef out;
    struct err err = {0};

    (void)state;
    assert_int_equal(georef_place(&north_up, &out, &err), ERR_OK);
    near(out.spacing_m[0], 10, 0);
    near(out.spacing_m[1], 20, 0);
    near(out.origin_m[0], 1005, 1e-15);
    near(out.origin_m[1], 5000 - 20 * 5.5, 1e-15);
    assert_true(out.is_y_flipped && !out.is_x_flipped && !out.has_geo);
}

static void a_raster_may_run_the_other_way(void **state)
{
    struct georef_source turned = raster(1000, -10, 5000, 20);
    struct georef out;
    struct err err = {0};

    (void)state;
    assert_int_equal(georef_place(&turned, &out, &err), ERR_OK);
    near(out.origin_m[0], 1000 - 105, 1e-15);
    near(out.origin_m[1], 5010, 1e-15);
    assert_true(out.is_x_flipped && !out.is_y_flipped);
}

static void feet_become_metres(void **state)
{
    struct georef_source feet = raster(100, 10, 200, -10);
    struct georef out;
    struct err err = {0};

    (void)state;
    feet.is_projected = true;
    feet.unit = 0.3048;
    assert_int_equal(georef_place(&feet, &out, &err), ERR_OK);
    near(out.spacing_m[0], 3.048, 1e-15);
    near(out.origin_m[0], 105 * 0.3048, 1e-15);
}

/* A degree at 42.5 N on WGS84: 82,274.2 m of longitude, 111,080.7 m of latitude (NIMA TR8350.2). */
static void degrees_are_those_of_the_middle_latitude(void **state)
{
    struct georef_source degrees = raster(1, 0.1, 42.8, -0.1);
    struct georef out;
    struct err err = {0};

    (void)state;
    degrees.is_geographic = true;
    degrees.unit = 0.017453292519943295;
    degrees.semi_major_m = 6378137;
    degrees.inverse_flattening = 298.257223563;
    assert_int_equal(georef_place(&degrees, &out, &err), ERR_OK);
    near(out.spacing_m[0], 8219.96, 2e-3);
    near(out.spacing_m[1], 11108.1, 2e-4);
    assert_true(out.has_geo);
    near(out.lat_deg, 42.5, 1e-12);
    near(out.lng_deg, 1.55, 1e-12);
    near(out.origin_m[0], -5 * out.spacing_m[0], 1e-12);
    near(out.origin_m[1], -2.5 * out.spacing_m[1], 1e-12);
    near(out.stretch, fabs(cos(0.73740) / cos(0.74176) - 1), 2e-2);
}

static void a_sphere_of_its_own_counts(void **state)
{
    struct georef_source mars = raster(0, 0.25, 1, -0.25);
    struct georef out;
    struct err err = {0};

    (void)state;
    mars.is_geographic = true;
    mars.semi_major_m = 3396190;
    assert_int_equal(georef_place(&mars, &out, &err), ERR_OK);
    near(out.spacing_m[1], 3396190 * 0.25 * acos(-1) / 180, 1e-9);
}

static void what_does_not_fit_is_refused(void **state)
{
    struct georef_source cases[] = {raster(0, 1, 0, -1), raster(0, 1, 0, -1), raster(0, 0, 0, -1),
                                    raster(0, NAN, 0, 1), raster(0, 1, 90.3, -0.1)};
    static const char *const words[] = {"does not say", "turned", "turned", "not finite",
                                        "latitude"};

    (void)state;
    cases[0].has_transform = false;
    cases[1].transform[2] = 0.1;
    cases[4].is_geographic = true;
    for (size_t i = 0; i < 5; i++) {
        struct georef out;
        struct err err = {0};

        if (georef_place(&cases[i], &out, &err) != ERR_BAD_INPUT || !strstr(err.msg, words[i]))
            fail_msg("case %zu: %d '%s', expected '%s'", i, (int)err.code, err.msg, words[i]);
    }
}

/* ---- progress ----------------------------------------------------------------------------- */

static void the_line_says_how_much_and_fits(void **state)
{
    static const struct {
        const char *unit;
        double done, all;
        size_t columns;
        const char *line;
    } cases[] = {
        {"B", 1536, 3072, 80, "import  [###############...............]   50%  1.5 KiB of 3.0 KiB"},
        {"B", 0, 3072, 50, "import  [.................]    0%  0 B of 3.0 KiB"},
        {"points", 20000, 0, 80, "import  20000 points, 10000 points/s"},
        {"s", 4, 2, 60, "import  [###########################]  100%  4.0 s of 2.0 s"},
        {"B", 1, 2, 12, "import   50"},
    };
    struct progress progress = {.what = "import"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[PROGRESS_BYTES_MAX];

        progress.unit = cases[i].unit;
        progress_line(&progress, cases[i].done, cases[i].all, 2, cases[i].columns, line);
        if (strcmp(line, cases[i].line) != 0)
            fail_msg("case %zu: '%s', expected '%s'", i, line, cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_the_middles_of_pixels),
        cmocka_unit_test(a_raster_may_run_the_other_way),
        cmocka_unit_test(feet_become_metres),
        cmocka_unit_test(degrees_are_those_of_the_middle_latitude),
        cmocka_unit_test(a_sphere_of_its_own_counts),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_line_says_how_much_and_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
