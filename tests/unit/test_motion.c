/*
 * Rigid motion: quarters are exact, in and out are inverse, the velocity is that of the material.
 */
#include "terrain/motion.h"

#include "support/mesh_oracle.h"
#include "support/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static const struct vec3 up = {0, 0, 1};

static void quarters_are_exact(void **state)
{
    static const struct {
        double yaw_deg;
        struct vec3 of_east;
    } cases[] = {{0, {1, 0, 0}},    {90, {0, 1, 0}},     {180, {-1, 0, 0}},  {270, {0, -1, 0}},
                 {360, {1, 0, 0}},  {-90, {0, -1, 0}},   {-180, {-1, 0, 0}}, {450, {0, 1, 0}},
                 {-720, {1, 0, 0}}, {999990, {0, -1, 0}}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pose pose = {.yaw_deg = cases[i].yaw_deg};
        struct motion motion = motion_at(&pose, up);
        struct vec3 got = motion_turn_out(&motion, (struct vec3){1, 0, 0});

        if (got.x != cases[i].of_east.x || got.y != cases[i].of_east.y || got.z != 0)
            fail_msg("%g degrees: (%.17g %.17g %.17g)", cases[i].yaw_deg, got.x, got.y, got.z);
    }
}

/* The same by another way: shares along two axes across, turned in the plane. */
static struct vec3 turned(struct vec3 axis, double yaw_deg, struct vec3 v)
{
    struct vec3 east, north, out;
    double angle = yaw_deg * M_PI / 180, x, y;

    oracle_axes(axis, &east, &north);
    x = vec3_dot(v, east);
    y = vec3_dot(v, north);
    out = vec3_add(vec3_scale(east, x * cos(angle) - y * sin(angle)),
                   vec3_scale(north, x * sin(angle) + y * cos(angle)));
    return vec3_add(out, vec3_scale(axis, vec3_dot(v, axis)));
}

static struct vec3 random_vector(struct random *random, double size)
{
    return vec3_scale(oracle_direction(random), random_in(random, 0, size));
}

static void turns_are_right_handed_about_the_axis_and_in_undoes_out(void **state)
{
    struct random random = {7};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct vec3 axis = i % 3 ? oracle_direction(&random) : up;
        struct pose pose = {.translation = random_vector(&random, 100),
                            .yaw_deg = random_in(&random, -720, 720)};
        struct motion motion = motion_at(&pose, axis);
        struct vec3 p = random_vector(&random, 50), out = motion_point_out(&motion, p);
        struct vec3 want = vec3_add(turned(axis, pose.yaw_deg, p), pose.translation);

        if (i % 2) {
            rotation_random(&random, pose.rotation);
            motion = motion_at(&pose, axis);
            out = motion_point_out(&motion, p);
            want = vec3_add(rotation_turn(pose.rotation, p), pose.translation);
        }
        assert_near(vec3_length(vec3_sub(out, want)), 0, 1e-12);
        assert_near(vec3_length(vec3_sub(motion_point_in(&motion, out), p)), 0, 1e-12);
        assert_near(vec3_length(motion_turn_out(&motion, p)), vec3_length(p), 1e-12);
        if (i % 6 == 0 && out.z != p.z + pose.translation.z)
            fail_msg("height %.17g was turned to %.17g", p.z, out.z);
    }
}

/* The rotation of a pose, turned on about an axis. */
static void spun(const struct pose *pose, struct vec3 axis, double by_deg, double out[4])
{
    double half = (pose_is_tilted(pose) ? by_deg : pose->yaw_deg + by_deg) * M_PI / 360;
    struct vec3 a = vec3_scale(axis, sin(half)), b = {0, 0, 0}, v;
    double w = cos(half), w2 = 1;

    if (pose_is_tilted(pose)) {
        b = (struct vec3){pose->rotation[0], pose->rotation[1], pose->rotation[2]};
        w2 = pose->rotation[3];
    }
    v = vec3_add(vec3_add(vec3_scale(b, w), vec3_scale(a, w2)), vec3_cross(a, b));
    out[0] = v.x, out[1] = v.y, out[2] = v.z;
    out[3] = w * w2 - vec3_dot(a, b);
}

static void the_velocity_is_that_of_the_material(void **state)
{
    struct random random = {11};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct vec3 axis = i % 3 ? oracle_direction(&random) : up;
        double seconds = 1e-6, spin_deg_s = random_in(&random, -300, 300);
        struct vec3 speed = random_vector(&random, 30), p = random_vector(&random, 50);
        struct pose before = {.translation = random_vector(&random, 100),
                              .yaw_deg = random_in(&random, -360, 360)};
        struct pose now = {.translation = vec3_add(before.translation, vec3_scale(speed, seconds)),
                           .yaw_deg = before.yaw_deg + spin_deg_s * seconds};

        if (i % 4 == 1)
            rotation_random(&random, before.rotation);
        if (i % 2)
            spun(&before, axis, spin_deg_s * seconds, now.rotation);
        struct motion then = motion_at(&before, axis), motion = motion_at(&now, axis);
        struct vec3 moved = motion_point_out(&motion, p), got, want;

        motion_came_from(&motion, &before, seconds);
        want = vec3_scale(vec3_sub(moved, motion_point_out(&then, p)), 1 / seconds);
        got = motion_velocity(&motion, moved);
        assert_near(vec3_length(vec3_sub(got, want)), 0, 1e-2);
    }
}

static void a_turn_goes_the_shorter_way_round(void **state)
{
    struct pose before = {.yaw_deg = 350}, now = {.yaw_deg = 10};
    struct motion motion = motion_at(&now, up);

    (void)state;
    motion_came_from(&motion, &before, 2);
    assert_near(motion.spin.z, 10 * M_PI / 180, 1e-12);
    assert_near(motion_velocity(&motion, (struct vec3){2, 0, 9}).y, 20 * M_PI / 180, 1e-12);
}

static void a_box_holds_what_was_in_it(void **state)
{
    struct random random = {13};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct vec3 axis = i % 2 ? oracle_direction(&random) : up;
        struct vec3 low = random_vector(&random, 20), high = vec3_add(low, (struct vec3){3, 4, 5});
        struct pose pose = {.translation = random_vector(&random, 100),
                            .yaw_deg = random_in(&random, -360, 360)};
        struct motion motion = motion_at(&pose, axis);
        struct box3 box = {low, high}, out = motion_box_out(&motion, &box);
        struct vec3 p = {random_in(&random, low.x, high.x), random_in(&random, low.y, high.y),
                         random_in(&random, low.z, high.z)};

        p = motion_point_out(&motion, p);
        assert_true(p.x >= out.min.x - 1e-9 && p.x <= out.max.x + 1e-9);
        assert_true(p.y >= out.min.y - 1e-9 && p.y <= out.max.y + 1e-9);
        assert_true(p.z >= out.min.z - 1e-9 && p.z <= out.max.z + 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quarters_are_exact),
        cmocka_unit_test(turns_are_right_handed_about_the_axis_and_in_undoes_out),
        cmocka_unit_test(the_velocity_is_that_of_the_material),
        cmocka_unit_test(a_turn_goes_the_shorter_way_round),
        cmocka_unit_test(a_box_holds_what_was_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
