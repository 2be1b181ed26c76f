/*
 * Which grids are taken to be in degrees although metres were expected.
 */
#include "base/degree_grid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void small_cells_on_the_globe_that_do_not_begin_at_zero_are_suspected(void **state)
{
    static const struct {
        double origin[2], spacing[2], size[2];
        bool suspected;
    } cases[] = {
        {{-104.6, 39.5}, {0.000277, 0.000277}, {0.035, 0.035}, true}, /* one arc-second */
        {{-180, -90}, {1.0 / 60, 1.0 / 60}, {360, 180}, true},        /* a globe */
        {{0.008, -89.99}, {0.0167, 0.0167}, {359.99, 179.9}, true},   /* one from 0 to 360 */
        {{7, 46}, {0.0008, 0.0005}, {1, 1}, true},
        {{0, 0}, {0.01, 0.01}, {10, 10}, false},            /* a scan of a few square metres */
        {{0.005, 0.005}, {0.01, 0.01}, {10, 10}, false},    /* the same by the middles of cells */
        {{-104.6, 39.5}, {0.25, 0.25}, {50, 50}, false},    /* a survey */
        {{400000, 5600000}, {0.05, 0.05}, {10, 10}, false}, /* a place on a map */
        {{100, 80}, {0.05, 0.05}, {10, 10.2}, false},       /* beyond the pole */
        {{350, 10}, {0.05, 0.05}, {10.2, 10}, false},       /* beyond a turn */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double metres[2];

        if (degree_grid_suspected(cases[i].origin, cases[i].spacing, cases[i].size, metres) !=
            cases[i].suspected)
            fail_msg("case %zu: expected %d", i, cases[i].suspected);
    }
}

static void the_metres_are_those_of_the_middle_latitude(void **state)
{
    const double origin[2] = {7, 59.5}, spacing[2] = {0.001, 0.001}, size[2] = {1, 1};
    double metres[2];

    (void)state;
    assert_true(degree_grid_suspected(origin, spacing, size, metres));
    /* a degree at latitude 60 on WGS84: 55,800 m and 111,412 m */
    if (fabs(metres[0] - 55.800) > 0.001 || fabs(metres[1] - 111.412) > 0.001)
        fail_msg("%.17g x %.17g m", metres[0], metres[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_cells_on_the_globe_that_do_not_begin_at_zero_are_suspected),
        cmocka_unit_test(the_metres_are_those_of_the_middle_latitude),
    };

    return cmocka_run_group_tests_name("degree_grid", tests, NULL, NULL);
}
