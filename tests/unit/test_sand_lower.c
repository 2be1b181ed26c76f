/*
 * Bodies at rest stand on the ground that was written: clearance on a slope beside the formula, and
 * which bodies are lowered by how much.
 */
#include "sand/patch/manager_data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SIDE = 9 };

/* A cube of a metre: its corners are its skin. */
static const float corners_m[8][3] = {{-.5f, -.5f, -.5f}, {.5f, -.5f, -.5f}, {-.5f, .5f, -.5f},
                                      {.5f, .5f, -.5f},   {-.5f, -.5f, .5f}, {.5f, -.5f, .5f},
                                      {-.5f, .5f, .5f},   {.5f, .5f, .5f}};
static const struct convert_place place = {.low = {2, 1}, .z_m = -3};

/* h = slope x */
static struct heightfield *slope_of(float slope)
{
    const struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, 0, 0};
    float heights_m[SIDE * SIDE];
    struct err err;
    struct heightfield *field;

    for (int i = 0; i < SIDE * SIDE; i++)
        heights_m[i] = slope * (float)(i % SIDE);
    field = heightfield_create(&spec, heights_m, &err);
    assert_non_null(field);
    return field;
}

static struct patch_member cube_at(float x, float y, float z)
{
    return (struct patch_member){.is_in = true,
                                 .body.shape = {.skin_m = corners_m, .skin_count = 8},
                                 .pose = {.x = {x, y, z}, .q = {0, 0, 0, 1}}};
}

static void clearance_is_that_of_the_nearest_corner(void **state)
{
    struct heightfield *field = slope_of(0.25f);
    struct patch_member cube = cube_at(2, 2, 6);

    (void)state;
    /* local (2, 2, 6) is (4, 3, 3); the corner at x 4.5 is nearest: 2.5 over 1.125 */
    assert_float_equal(patch_body_clearance_m(&cube.body.shape, &place, &cube.pose, field), 1.375,
                       1e-5);
    cube.pose.q[1] = sinf(0.5f);
    cube.pose.q[3] = cosf(0.5f); /* a radian about y: the corner (0.5, -0.5) sinks */
    assert_float_equal(patch_body_clearance_m(&cube.body.shape, &place, &cube.pose, field),
                       (float)(3 - 0.5 * (sin(1) + cos(1)) - 0.25 * (4 + 0.5 * (cos(1) - sin(1)))),
                       1e-4);
    cube.pose.x[0] = 1e3f;
    assert_true(isinf(patch_body_clearance_m(&cube.body.shape, &place, &cube.pose, field)));
    heightfield_unref(field);
}

static void bodies_are_lowered_onto_the_ground(void **state)
{
    struct heightfield *field = slope_of(0);
    struct patch *patch = calloc(1, sizeof *patch);

    (void)state;
    patch->start.place = place;
    patch->member_count = 5;
    patch->members[0] = cube_at(2, 2, 3 + 1.6f); /* on the next one */
    patch->members[1] = cube_at(2, 2, 3 + 0.58f);
    patch->members[2] = cube_at(5, 5, 3 + 0.4f); /* in the ground */
    patch->members[3] = cube_at(5, 2, 3 + 4);    /* in the air */
    patch->members[4] = cube_at(2, 5, 3 + 0.7f);
    patch->members[4].is_in = false;
    manager_lower(patch, field, 0.445);
    assert_float_equal(patch->members[0].lowered_m, 0.08, 1e-5);
    assert_float_equal(patch->members[1].lowered_m, 0.08, 1e-5);
    assert_true(patch->members[2].lowered_m == 0 && patch->members[3].lowered_m == 0 &&
                patch->members[4].lowered_m == 0);
    free(patch);
    heightfield_unref(field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clearance_is_that_of_the_nearest_corner),
        cmocka_unit_test(bodies_are_lowered_onto_the_ground),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
