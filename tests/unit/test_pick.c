/*
 * Picking: cameras, matrices, logical tiles.
 */
#include "terrain/pick.h"

#include "support/random.h"
#include "terrain/plan_tile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static void assert_vec3(struct vec3 got, struct vec3 want, double slack, const char *what)
{
    if (!(vec3_length(vec3_sub(got, want)) <= slack))
        fail_msg("%s: (%.15g %.15g %.15g), expected (%.15g %.15g %.15g)", what, got.x, got.y, got.z,
                 want.x, want.y, want.z);
}

/* Looking north (+y) from the origin with 90 degrees, 200×100 pixels: corners at ±2, ±1. */
static void pixels_of_a_plain_camera(void **state)
{
    static const struct camera camera = {{0, 0, 0}, {0, 5, 0}, {0, 0, 2}, 90};
    static const struct {
        double pixel_x, pixel_y;
        struct vec3 direction;
    } cases[] = {
        {100, 50, {0, 1, 0}},
        {0, 0, {-2, 1, 1}},
        {200, 0, {2, 1, 1}},
        {200, 100, {2, 1, -1}},
        {100.5, 49.5, {0.01, 1, 0.01}},
        {100, 75, {0, 1, -0.5}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct viewport viewport = {200, 100, cases[i].pixel_x, cases[i].pixel_y};
        struct ray ray;
        struct err err;

        assert_int_equal(pick_camera_ray(&camera, &viewport, &ray, &err), ERR_OK);
        assert_vec3(ray.direction, vec3_unit(cases[i].direction), 1e-12, "direction");
        assert_vec3(ray.origin, camera.eye, 0, "origin");
        assert_true(isinf(ray.t_max));
    }
}

/* Column-major inverse of (perspective · view), built from the camera's own axes. */
static void inverse_view_projection(const struct camera *camera, double aspect, double near,
                                    double far, enum depth_range depth, double m[16])
{
    struct vec3 f = vec3_unit(vec3_sub(camera->target, camera->eye));
    struct vec3 r = vec3_unit(vec3_cross(f, camera->up)), u = vec3_cross(r, f);
    double tangent = tan(camera->fov_y_deg * 3.14159265358979323846 / 360);
    /* clip z = a·depth + b·w with depth = -view z; at near and far the ends of the range */
    double z0 = depth == DEPTH_GL ? -1 : 0;
    double a = (far - z0 * near) / (far - near), b = near * far * (z0 - 1) / (far - near);
    /* world = eye + d·(x·aspect·tangent·r + y·tangent·u + f), d = b / (z - a), w = 1/d */
    const struct vec3 axis[4] = {vec3_scale(r, aspect * tangent), vec3_scale(u, tangent),
                                 vec3_scale(camera->eye, 1 / b),
                                 vec3_add(f, vec3_scale(camera->eye, -a / b))};
    const double w[4] = {0, 0, 1 / b, -a / b};

    for (int i = 0; i < 4; i++) {
        m[4 * i] = axis[i].x;
        m[4 * i + 1] = axis[i].y;
        m[4 * i + 2] = axis[i].z;
        m[4 * i + 3] = w[i];
    }
}

static void a_matrix_gives_the_camera_s_ray(void **state)
{
    struct random random = {31};

    (void)state;
    for (int n = 0; n < 2000; n++) {
        struct camera camera = {
            {random_in(&random, -9, 9), random_in(&random, -9, 9), random_in(&random, 5, 9)},
            {random_in(&random, -9, 9), random_in(&random, -9, 9), random_in(&random, -3, 2)},
            {0, 0, 1},
            random_in(&random, 20, 100)};
        struct viewport viewport = {640, 360, random_in(&random, 0, 640),
                                    random_in(&random, 0, 360)};
        double near = random_in(&random, 0.05, 1), far = random_in(&random, 100, 1000), m[16];
        enum depth_range depth = (enum depth_range)(n % 3);
        bool is_reversed = depth == DEPTH_REVERSED;
        struct ray want, got;
        struct err err;

        assert_int_equal(pick_camera_ray(&camera, &viewport, &want, &err), ERR_OK);
        inverse_view_projection(&camera, 640. / 360, is_reversed ? far : near,
                                is_reversed ? near : far, depth, m);
        if (pick_unproject_ray(m, depth, &viewport, &got, &err))
            fail_msg("%s", err.msg);
        assert_vec3(got.direction, want.direction, 1e-9, "direction");
        /* the origin lies on the near plane, t_max reaches the far one */
        double ahead = vec3_dot(want.direction, vec3_unit(vec3_sub(camera.target, camera.eye)));
        struct vec3 origin = vec3_add(want.origin, vec3_scale(want.direction, near / ahead));

        assert_vec3(got.origin, origin, 1e-9, "origin");
        assert_near(got.t_max, (far - near) / ahead, 1e-6 * far / ahead);
    }
}

static void a_far_plane_at_infinity_is_taken(void **state)
{
    static const struct camera camera = {{1, 2, 3}, {4, 6, 3}, {0, 0, 1}, 60};
    static const struct viewport viewport = {100, 100, 50, 50};
    struct ray ray;
    struct err err;
    double m[16];

    (void)state;
    /* near 1, far to infinity: a = 1, b = -2 in the GL range */
    inverse_view_projection(&camera, 1, 1, 0x1p60, DEPTH_GL, m);
    for (int i = 0; i < 3; i++) { /* what the limit would be, without its rounding */
        m[8 + i] = (&camera.eye.x)[i] / -2;
        m[12 + i] = (&(struct vec3){0.6, 0.8, 0}.x)[i] + (&camera.eye.x)[i] / 2;
    }
    m[11] = -0.5;
    m[15] = 0.5;
    assert_int_equal(pick_unproject_ray(m, DEPTH_GL, &viewport, &ray, &err), ERR_OK);
    assert_vec3(ray.direction, (struct vec3){0.6, 0.8, 0}, 1e-12, "direction");
    assert_true(isinf(ray.t_max));
}

static void a_view_that_cannot_be_is_told(void **state)
{
    static const struct {
        struct camera camera;
        struct viewport viewport;
        const char *says;
    } cases[] = {
        {{{1, 1, 1}, {1, 1, 1}, {0, 0, 1}, 60}, {9, 9, 1, 1}, "eye and target"},
        {{{1, 1, 1}, {1, 1, 0}, {0, 0, 1}, 60}, {9, 9, 1, 1}, "up points along"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 0}, 60}, {9, 9, 1, 1}, "up is the zero"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 0}, {9, 9, 1, 1}, "fov_y_deg is 0"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 180}, {9, 9, 1, 1}, "fov_y_deg is 180"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {0, 9, 1, 1}, "viewport is 0"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {9, -9, 1, 1}, "viewport is 9×-9"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {9, 9, NAN, 1}, "pixel is not finite"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {9, 9, 1, NAN}, "pixel is not finite"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {9, 9, INFINITY, 1}, "pixel is not finite"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, NAN}, {9, 9, 1, 1}, "fov_y_deg is"},
        /* 0 times an infinite ratio of width to height */
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {1e300, 1e-300, 5e299, 0}, "ray is not finite"},
        {{{1, 1, 1}, {1, 2, 0}, {0, 0, 1}, 60}, {9, 9, 1e308, 1}, "ray is not finite"},
    };
    static const double matrices[][16] = {
        {0},
        /* far is (0, 0, 0, 0): its direction is no number, and nothing else is wrong */
        {[10] = -1, [11] = -1, [14] = 1, [15] = 1},
        {[0] = NAN, [5] = 1, [10] = 1, [15] = 1},
        {[0] = 1, [5] = 1, [10] = 1, [14] = NAN, [15] = 1},
        {[0] = 1, [5] = 1, [10] = 1, [15] = NAN},
        {[0] = 1, [5] = 1, [10] = 1e308, [14] = 1e308, [15] = 1e-10},
    };
    static const struct viewport viewports[] = {{9, 9, NAN, 1}, {9, 9, 1, INFINITY}};
    static const double plain[16] = {[0] = 1, [5] = 1, [10] = 1, [15] = 1};
    struct viewport viewport = {9, 9, 1, 1};
    struct ray ray;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pick_camera_ray(&cases[i].camera, &cases[i].viewport, &ray, &err),
                         ERR_UNPROCESSABLE);
        if (strstr(err.msg, cases[i].says) == NULL)
            fail_msg("case %zu says \"%s\", not \"%s\"", i, err.msg, cases[i].says);
    }
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (pick_unproject_ray(matrices[i], DEPTH_GL, &viewport, &ray, &err) != ERR_UNPROCESSABLE)
            fail_msg("matrix %zu gives a ray along %g, %g, %g", i, ray.direction.x, ray.direction.y,
                     ray.direction.z);
    assert_int_equal(pick_unproject_ray(plain, DEPTH_GL, &viewport, &ray, &err), ERR_OK);
    for (size_t i = 0; i < sizeof viewports / sizeof *viewports; i++) {
        assert_int_equal(pick_unproject_ray(plain, DEPTH_GL, &viewports[i], &ray, &err),
                         ERR_UNPROCESSABLE);
        assert_non_null(strstr(err.msg, "pixel is not finite"));
    }
}

static void a_tile_has_its_centre_on_the_surface_and_bounds_of_all_its_samples(void **state)
{
    enum { COLS = 11, ROWS = 8 };
    float samples[COLS * ROWS];
    struct heightfield_spec spec = {COLS, ROWS, 100, 200, 2, 5, TRIANGULATION_ANTI, 4};
    static const struct {
        uint32_t cell[2], side, column, row;
        double x0, y0, x1, y1;
    } cases[] = {
        {{0, 0}, 1, 0, 0, 100, 200, 102, 205},
        {{5, 6}, 4, 1, 1, 108, 220, 116, 235},
        {{9, 2}, 4, 2, 0, 116, 200, 120, 220},
        {{9, 6}, 64, 0, 0, 100, 200, 120, 235},
    };
    struct err err;
    struct heightfield *field;

    (void)state;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            samples[r * COLS + c] = (float)(r * 11 + c);
    field = heightfield_create(&spec, samples, &err);
    assert_non_null(field);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct logical_tile tile;
        struct ground_point ground;
        uint32_t c0 = cases[i].column * cases[i].side, r0 = cases[i].row * cases[i].side;
        uint32_t c1 = c0 + cases[i].side < COLS - 1 ? c0 + cases[i].side : COLS - 1;
        uint32_t r1 = r0 + cases[i].side < ROWS - 1 ? r0 + cases[i].side : ROWS - 1;

        pick_logical_tile(field, cases[i].cell, cases[i].side, &tile);
        assert_int_equal(tile.column, cases[i].column);
        assert_int_equal(tile.row, cases[i].row);
        assert_int_equal(tile.side, cases[i].side);
        assert_vec3(tile.bounds.min,
                    (struct vec3){cases[i].x0, cases[i].y0, (double)samples[r0 * COLS + c0]}, 1e-9,
                    "min");
        assert_vec3(tile.bounds.max,
                    (struct vec3){cases[i].x1, cases[i].y1, (double)samples[r1 * COLS + c1]}, 1e-9,
                    "max");
        assert_near(tile.center.x, (cases[i].x0 + cases[i].x1) / 2, 1e-9);
        heightfield_height(field, (struct vec2){tile.center.x, tile.center.y},
                           INTERPOLATION_TRIANGLE, &ground);
        assert_true(tile.center_on_surface);
        assert_near(tile.center.z, ground.height_m, 1e-9);
    }
    heightfield_unref(field);
}

static void a_tile_over_a_hole_has_no_centre_on_the_surface(void **state)
{
    static const float samples[9] = {0, 0, 0, 0, NAN, 0, 0, 0, 5};
    static const struct heightfield_spec spec = {3, 3, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    static const uint32_t cell[2] = {1, 1};
    struct logical_tile tile;
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    (void)state;
    assert_non_null(field);
    pick_logical_tile(field, cell, 2, &tile);
    assert_false(tile.center_on_surface);
    assert_true(isnan(tile.center.z));
    assert_near(tile.bounds.max.z, 5, 0);
    heightfield_unref(field);
}

/* Squared, from the centre of a hexagon. */
static long double hexagon_away(double side, int64_t q, int64_t r, double x, double y)
{
    long double dx = side * sqrtl(3) * ((long double)q + (long double)r / 2) - x;
    long double dy = side * 1.5L * (long double)r - y;

    return dx * dx + dy * dy;
}

/* As soon as near the origin: a search that begins far from the point would not end. */
static void hexagons_far_away_have_the_nearest_centre(void **state)
{
    static const int steps[6][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}};
    struct random random = {41};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        double side = random_in(&random, 0.5, 3), reach = pow(10, random_in(&random, 0, 11));
        double x = random_in(&random, -reach, reach), y = random_in(&random, -reach, reach);
        struct plan_tile tile;

        assert_true(plan_tile_at(PLAN_TILE_HEX, side, x, y, &tile));
        long double away = hexagon_away(side, tile.index[0], tile.index[1], x, y);

        assert_true(sqrtl(away) <= side * (1 + 1e-6));
        for (int k = 0; k < 6; k++)
            assert_true(away <= hexagon_away(side, tile.index[0] + steps[k][0],
                                             tile.index[1] + steps[k][1], x, y) +
                                    1e-6);
        assert_near(tile.center[0], x, side + reach * 1e-15);
        assert_near(tile.center[1], y, side + reach * 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_of_a_plain_camera),
        cmocka_unit_test(a_matrix_gives_the_camera_s_ray),
        cmocka_unit_test(a_far_plane_at_infinity_is_taken),
        cmocka_unit_test(a_view_that_cannot_be_is_told),
        cmocka_unit_test(a_tile_has_its_centre_on_the_surface_and_bounds_of_all_its_samples),
        cmocka_unit_test(a_tile_over_a_hole_has_no_centre_on_the_surface),
        cmocka_unit_test(hexagons_far_away_have_the_nearest_centre),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
