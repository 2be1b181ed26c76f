/*
 * Line of sight and profiles.
 */
#include "terrain/sight.h"

#include "support/brute_force.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/near.h"

/* A ridge of 10 m along x = 10 on flat ground, 21×21 samples at 1 m. */
static struct heightfield *ridge_field(void)
{
    static float samples[21 * 21];
    static const struct heightfield_spec spec = {21, 21, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct err err;

    for (int r = 0; r < 21; r++)
        samples[r * 21 + 10] = 10;
    return heightfield_create(&spec, samples, &err);
}

static void sight_lines_by_hand(void **state)
{
    static const struct {
        const char *what;
        struct vec3 from, to;
        bool is_visible;
        double t;
    } cases[] = {
        {"over the ridge", {2, 5, 12}, {18, 5, 12}, true, 0},
        {"into the ridge", {2, 5, 5}, {18, 5, 5}, false, 7.5 / 16},
        {"touches the crest on its way", {2, 5, 10}, {18, 5, 10}, false, 0.5},
        {"from the crest to the foot", {10, 5, 10}, {9, 5, 0}, true, 0},
        {"from the crest to the plain", {10, 5, 10}, {1, 6, 0}, true, 0},
        {"from plain to plain through the ridge", {2, 5, 0}, {18, 5, 0}, false, 7. / 16},
        {"along flat ground, touching", {1, 1, 0}, {8, 7, 0}, true, 0},
        {"ends a float32 rounding below the ground", {1, 1, -4e-7}, {8, 7, 3}, true, 0},
        {"through the ground from below", {2, 5, -1}, {4, 5, 1}, false, 0.5},
        {"below the ground all along", {2, 5, -1}, {18, 5, -1}, true, 0},
        {"from flank to flank inside the ridge", {9.5, 5, 5}, {10.5, 5, 5}, false, 0},
        {"from inside the ground up to its surface", {2, 5, -3}, {4, 5, 0}, true, 0},
        {"from the surface down into the ground", {4, 5, 0}, {2, 5, -3}, true, 0},
        {"a point", {2, 5, 1}, {2, 5, 1}, true, 0},
        {"beside the field", {-5, 5, 1}, {-5, 9, 1}, true, 0},
        {"into the field from outside", {-5, 5, 1}, {25, 5, 1}, false, 14.1 / 30},
    };
    struct heightfield *field = ridge_field();

    (void)state;
    assert_non_null(field);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ray_hit hit = {.t = -1};
        bool is_visible = heightfield_line_of_sight(field, cases[i].from, cases[i].to, &hit);

        if (is_visible != cases[i].is_visible || (!is_visible && fabs(hit.t - cases[i].t) > 1e-5))
            fail_msg("%s: %s, t %g, expected %s, %g", cases[i].what,
                     is_visible ? "visible" : "blocked", hit.t,
                     cases[i].is_visible ? "visible" : "blocked", cases[i].t);
    }
    heightfield_unref(field);
}

static void sight_lines_agree_with_brute_force(void **state)
{
    struct random random = {21};
    float samples[30 * 40];
    struct heightfield_spec spec = {30, 40, -3, 7, 0.5, 2, TRIANGULATION_ALTERNATING, 4};
    struct brute_field brute;
    struct heightfield *field;
    struct err err;

    (void)state;
    for (size_t i = 0; i < 30 * 40; i++)
        samples[i] = random_below(&random, 12) ? (float)random_in(&random, 0, 3) : NAN;
    field = heightfield_create(&spec, samples, &err);
    assert_non_null(field);
    brute_field_init(&brute, &spec, samples);
    for (int n = 0; n < 5000; n++) {
        struct vec3 from = {random_in(&random, -4, 13), random_in(&random, 5, 90),
                            random_in(&random, 0, 6)};
        struct vec3 to = {random_in(&random, -4, 13), random_in(&random, 5, 90),
                          random_in(&random, 0, 6)};
        struct ray ray = {from, vec3_sub(to, from), 1};
        struct brute_hit want = brute_field_ray(&brute, &ray, 1e-9);
        struct ray_hit hit = {.t = INFINITY};
        bool is_visible = heightfield_line_of_sight(field, from, to, &hit);

        if ((is_visible ? !isinf(want.t) && !want.near_border : fabs(hit.t - want.t) > 1e-6) &&
            fabs(want.t - 1) > 1e-5 && want.t > 1e-5)
            fail_msg("line %d (seed 21): t %.12g, brute force %.12g", n, hit.t, want.t);
    }
    brute_field_finish(&brute);
    heightfield_unref(field);
}

static void a_path_is_measured_along_its_corners(void **state)
{
    static const struct vec2 points[] = {{0, 0}, {3, 4}, {3, 4}, {3, 10}};
    static const struct {
        double distance, x, y;
    } cases[] = {{-1, 0, 0}, {0, 0, 0},   {2.5, 1.5, 2}, {5, 3, 4},
                 {8, 3, 7},  {11, 3, 10}, {99, 3, 10},   {2.5, 1.5, 2}};
    struct profile_path path;

    (void)state;
    profile_path_init(&path, points, 4);
    assert_near(path.length_m, 11, 1e-12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vec2 at = profile_path_at(&path, cases[i].distance);

        assert_near(at.x, cases[i].x, 1e-12);
        assert_near(at.y, cases[i].y, 1e-12);
    }
}

static void steps_include_both_ends(void **state)
{
    static const struct vec2 points[] = {{0, 0}, {10, 0}};
    static const struct {
        double step, count;
    } cases[] = {{10, 2}, {5, 3}, {3, 5}, {0.1, 101}, {11, 2}, {1e-300, 1e301}};
    struct profile_path path;

    (void)state;
    profile_path_init(&path, points, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = profile_step_count(&path, cases[i].step);

        if (fabs(got - cases[i].count) > 1e-9 * cases[i].count)
            fail_msg("step %g: %.17g samples, expected %g", cases[i].step, got, cases[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sight_lines_by_hand),
        cmocka_unit_test(sight_lines_agree_with_brute_force),
        cmocka_unit_test(a_path_is_measured_along_its_corners),
        cmocka_unit_test(steps_include_both_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
