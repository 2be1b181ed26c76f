/*
 * The surface of a patch: held against a search of all spheres for each point; on the edge, and
 * without spheres, it is the ground.
 */
#include "sand/convert/surface.h"

#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

enum { SIDE = 24, CELLS = 8, SPHERES = 400, POINTS_A_SIDE = 8 };

static const double radius_m = 0.1;

static double slope_at(double x, double y)
{
    return 3 + 0.2 * (x - 100) - 0.1 * (y - 200);
}

/* An inclined plane: its triangles are the plane itself. */
static struct heightfield *field_make(void)
{
    const struct heightfield_spec spec = {SIDE, SIDE, 100, 200, 0.5, 1, 0, 0};
    float samples[SIDE * SIDE];
    struct heightfield *field;
    struct err err;

    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            samples[r * SIDE + c] = (float)slope_at(100 + 0.5 * c, 200 + r);
    field = heightfield_create(&spec, samples, &err);
    assert_non_null(field);
    return field;
}

static const struct convert_place place = {
    .samples = {4, 6, CELLS + 1, CELLS + 1},
    .low = {102, 206},
    .size_m = {0.5 * CELLS, CELLS},
    .spacing_m = {0.5, 1},
    .depth_m = 1,
    .z_m = 1,
    .lowest_m = 2,
    .peak_m = 4,
};

static void spheres_make(struct random *random, float (*spheres)[4])
{
    for (int i = 0; i < SPHERES; i++) {
        spheres[i][0] = (float)(random_in(random, 0, 1) * place.size_m[0]);
        spheres[i][1] = (float)(random_in(random, 0, 1) * place.size_m[1]);
        spheres[i][2] = (float)(0.5 + 2 * random_in(random, 0, 1));
        spheres[i][3] = i % 5 == 0 ? 2.0F : -1.0F;
    }
    spheres[7][0] = NAN;
    spheres[8][2] = INFINITY;
    spheres[9][1] = -INFINITY;
}

/* The highest cap at a point, or the bed. */
static double point_of(const float (*spheres)[4], double x, double y)
{
    double top = -INFINITY;

    for (int i = 0; i < SPHERES; i++) {
        const double dx = x - (double)spheres[i][0], dy = y - (double)spheres[i][1];
        const double under = radius_m * radius_m - dx * dx - dy * dy;

        if (spheres[i][3] < 0 && isfinite(spheres[i][2]) && under > 0)
            top = fmax(top, (double)spheres[i][2] + sqrt(under));
    }
    x = fmin(fmax(x, 0), place.size_m[0]);
    y = fmin(fmax(y, 0), place.size_m[1]);
    return top > -INFINITY ? place.z_m + top
                           : slope_at(place.low.x + x, place.low.y + y) - place.depth_m;
}

static double sample_of(const float (*spheres)[4], const struct surface_grid *grid, uint32_t c,
                        uint32_t r)
{
    double sum = 0;

    for (int j = 0; j < POINTS_A_SIDE; j++)
        for (int i = 0; i < POINTS_A_SIDE; i++)
            sum += point_of(spheres, (c + (i + 0.5) / POINTS_A_SIDE - 0.5) * grid->step_m[0],
                            (r + (j + 0.5) / POINTS_A_SIDE - 0.5) * grid->step_m[1]);
    return sum / (POINTS_A_SIDE * POINTS_A_SIDE);
}

static void samples_are_the_mean_of_the_highest_caps(void **state)
{
    static float spheres[SPHERES][4];
    struct random random = {20261121};
    struct heightfield *field = field_make();
    struct err err = {.code = ERR_OK};

    (void)state;
    for (uint32_t per_cell = 1; per_cell <= 2; per_cell++) {
        struct surface_grid grid;
        float *heights_m;

        spheres_make(&random, spheres);
        assert_int_equal(surface_grid_make(&place, per_cell, 1000, &grid, &err), ERR_OK);
        assert_int_equal(grid.cols, CELLS * per_cell + 1);
        assert_int_equal(grid.rows, CELLS * per_cell + 1);
        heights_m = calloc((size_t)grid.cols * grid.rows, sizeof *heights_m);
        assert_non_null(heights_m);
        assert_int_equal(surface_measure(field, &place, (const float(*)[4])spheres, SPHERES,
                                         radius_m, &grid, heights_m, &err),
                         ERR_OK);
        for (uint32_t r = 0; r < grid.rows; r++) {
            for (uint32_t c = 0; c < grid.cols; c++) {
                const bool is_edge = c == 0 || r == 0 || c + 1 == grid.cols || r + 1 == grid.rows;
                const double want = is_edge ? slope_at(place.low.x + c * grid.step_m[0],
                                                       place.low.y + r * grid.step_m[1])
                                            : sample_of((const float(*)[4])spheres, &grid, c, r);

                assert_near(heights_m[r * grid.cols + c], want, 1e-5);
            }
        }
        free(heights_m);
    }
    heightfield_unref(field);
}

static void without_spheres_it_is_the_ground(void **state)
{
    struct heightfield *field = field_make();
    struct surface_grid grid;
    float heights_m[(2 * CELLS + 1) * (2 * CELLS + 1)];
    struct err err = {.code = ERR_OK};

    (void)state;
    assert_int_equal(surface_grid_make(&place, 2, 1000, &grid, &err), ERR_OK);
    assert_int_equal(surface_measure(field, &place, NULL, 0, radius_m, &grid, heights_m, &err),
                     ERR_OK);
    for (uint32_t r = 0; r < grid.rows; r++)
        for (uint32_t c = 0; c < grid.cols; c++)
            assert_near(heights_m[r * grid.cols + c],
                        slope_at(place.low.x + c * 0.25, place.low.y + r * 0.5), 1e-5);
    heightfield_unref(field);
}

static void too_many_samples_are_refused(void **state)
{
    struct surface_grid grid;
    struct err err = {.code = ERR_OK};

    (void)state;
    assert_int_equal(surface_grid_make(&place, 2, 17 * 17, &grid, &err), ERR_OK);
    assert_int_equal(surface_grid_make(&place, 2, 17 * 17 - 1, &grid, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "17 x 17"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_the_mean_of_the_highest_caps),
        cmocka_unit_test(without_spheres_it_is_the_ground),
        cmocka_unit_test(too_many_samples_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
