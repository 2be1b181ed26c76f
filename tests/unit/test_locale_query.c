/*
 * Questions over several layers, against a plain search through the single ones; the plane under a
 * footprint; contact under any gravity against rays.
 */
#include "world/ask/query.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/near.h"

enum { SEED = 1996, LAYERS = 3, COLS = 24, ROWS = 17, ROUNDS = 4000 };

static struct err err;

static struct layer *random_layer(struct random *random, const char *id, double base_m)
{
    struct heightfield_spec spec = {
        COLS, ROWS, random_in(random, -20, 20), random_in(random, -20, 20),
        3,    4,    TRIANGULATION_ANTI,         0};
    float heights_m[COLS * ROWS];
    struct heightfield *field;

    for (size_t i = 0; i < COLS * ROWS; i++)
        heights_m[i] =
            random_below(random, 20) == 0 ? NAN : (float)(base_m + random_in(random, 0, 12));
    field = heightfield_create(&spec, heights_m, &err);
    assert_non_null(field);
    return layer_create_heightfield(id, field, &err);
}

static struct locale *random_locale(struct random *random, struct vec3 gravity)
{
    struct locale_manifest manifest = locale_manifest_default;
    struct locale *locale, *next;

    manifest.gravity = gravity;
    assert_int_equal(locale_manifest_check(&manifest, &err), ERR_OK);
    locale = locale_create("l", &manifest, &err);
    assert_non_null(locale);
    for (int i = 0; i < LAYERS; i++) {
        char id[16];
        struct layer *layer;

        snprintf(id, sizeof id, "n%d", i);
        layer = random_layer(random, id, 8.0 * i);
        next = locale_next(locale, NULL, layer, NULL, NULL, &err);
        assert_non_null(next);
        layer_unref(layer);
        locale_unref(locale);
        locale = next;
    }
    if (!locale_validate(locale, &err))
        fail_msg("%s", err.msg);
    return locale;
}

static struct vec3 random_point(struct random *random)
{
    return (struct vec3){random_in(random, -30, 100), random_in(random, -30, 100),
                         random_in(random, -10, 50)};
}

static void the_nearest_hit_of_all_layers_is_found(void **state)
{
    struct random random = {SEED};
    struct locale *locale = random_locale(&random, (struct vec3){0, 0, -1});
    struct layer_choice choice;
    int hits = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct vec3 from = random_point(&random), to = random_point(&random);
        struct ray ray = {from, vec3_sub(to, from), random_below(&random, 2) ? 1 : INFINITY};
        struct locale_hit hit = {.layer = NULL};
        double nearest = INFINITY;
        bool is_hit;

        for (size_t k = 0; k < locale->layer_count; k++) {
            struct ray_hit one;

            if (heightfield_ray(locale->layers[k]->field, &ray, RAY_CLOSEST, &one, NULL))
                nearest = fmin(nearest, one.t);
        }
        is_hit = locale_ray(&choice, &ray, RAY_CLOSEST, &hit, NULL);
        if (is_hit != isfinite(nearest) || (is_hit && hit.at.t != nearest))
            fail_msg("ray %d: got %.17g, expected %.17g", i, is_hit ? hit.at.t : INFINITY, nearest);
        assert_int_equal(locale_ray(&choice, &ray, RAY_ANY, &hit, NULL), is_hit);
        hits += is_hit;
    }
    assert_true(hits > ROUNDS / 10 && hits < ROUNDS);
    locale_unref(locale);
}

static void a_chosen_layer_is_asked_alone(void **state)
{
    struct random random = {SEED};
    struct locale *locale = random_locale(&random, (struct vec3){0, 0, -1});
    struct layer_choice choice;
    const struct layer *layer;

    (void)state;
    assert_int_equal(locale_choose(locale, "n1", &choice, &err), ERR_OK);
    assert_int_equal(choice.count, 1);
    assert_string_equal(choice.layers[0]->id, "n1");
    assert_int_equal(locale_choose(locale, "n9", &choice, &err), ERR_LAYER_UNKNOWN_OPTION);
    assert_int_equal(locale_choose_field(locale, NULL, &layer, &err), ERR_LAYER_AMBIGUOUS);
    assert_int_equal(locale_choose_field(locale, "n2", &layer, &err), ERR_OK);
    locale_unref(locale);
}

/* Floor and ceiling by looking at every height. */
static void search_heights(const struct locale *locale, struct vec3 p, double lifted,
                           double *floor_m, double *ceiling_m)
{
    double heights_m[LAYERS];
    size_t count = 0;

    for (size_t k = 0; k < locale->layer_count; k++) {
        struct ground_point ground;

        heightfield_height(locale->layers[k]->field, (struct vec2){p.x, p.y},
                           INTERPOLATION_TRIANGLE, &ground);
        if (ground.status == GROUND_OK)
            heights_m[count++] = ground.height_m;
    }
    *floor_m = -INFINITY;
    *ceiling_m = INFINITY;
    for (size_t k = 0; k < count; k++)
        if (heights_m[k] <= lifted)
            *floor_m = fmax(*floor_m, heights_m[k]);
    for (size_t k = 0; k < count; k++)
        if (heights_m[k] >= lifted && heights_m[k] > *floor_m)
            *ceiling_m = fmin(*ceiling_m, heights_m[k]);
}

static void contact_finds_the_highest_floor_and_the_lowest_ceiling(void **state)
{
    struct random random = {SEED + 1};
    struct locale *locale = random_locale(&random, (struct vec3){0, 0, -1});
    struct layer_choice choice;
    int floors = 0, ceilings = 0, holes = 0;

    (void)state;
    print_message("seed %d\n", SEED + 1);
    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct vec3 p = random_point(&random);
        double reach_m = random_below(&random, 3) ? 0 : random_in(&random, 0, 20);
        double floor_m, ceiling_m;
        struct contacts contacts;

        search_heights(locale, p, p.z + reach_m, &floor_m, &ceiling_m);
        locale_contact(&choice, p, (struct contact_reach){reach_m, INFINITY}, &contacts);
        assert_int_equal(contacts.has_floor, isfinite(floor_m));
        assert_int_equal(contacts.has_ceiling, isfinite(ceiling_m));
        if (contacts.has_floor) {
            assert_true(contacts.floor.point.z == floor_m);
            assert_true(contacts.floor.distance_m == fabs(p.z - floor_m));
            assert_true(contacts.floor.normal.z > 0);
            assert_near(cos(contacts.floor.slope_deg * (M_PI / 180)), contacts.floor.normal.z,
                        1e-12);
        }
        if (contacts.has_ceiling)
            assert_true(contacts.ceiling.point.z == ceiling_m);
        floors += contacts.has_floor;
        ceilings += contacts.has_ceiling;
        holes += contacts.status == CONTACT_HOLE;
    }
    assert_true(floors > 100 && ceilings > 100 && holes > 10);
    locale_unref(locale);
}

static void a_turned_gravity_gives_what_a_turned_world_gives(void **state)
{
    /* under a gravity that is -Z but for a hair, rays must find what heights find */
    struct random random = {SEED + 2};
    struct locale *turned = random_locale(&random, (struct vec3){1e-9, 0, -1});
    struct layer_choice choice, plain;
    struct locale straight = *turned;
    int floors = 0;

    (void)state;
    print_message("seed %d\n", SEED + 2);
    straight.manifest.gravity = (struct vec3){0, 0, -1};
    assert_int_equal(locale_choose(turned, NULL, &choice, &err), ERR_OK);
    assert_int_equal(locale_choose(&straight, NULL, &plain, &err), ERR_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct vec3 p = random_point(&random);
        struct contacts by_ray, by_height;

        locale_contact(&choice, p, (struct contact_reach){i % 2 ? 0 : INFINITY, INFINITY}, &by_ray);
        locale_contact(&plain, p, (struct contact_reach){i % 2 ? 0 : INFINITY, INFINITY},
                       &by_height);
        if (by_ray.has_floor != by_height.has_floor || by_ray.has_ceiling != by_height.has_ceiling)
            fail_msg("point %d (%.17g %.17g %.17g): the ray finds floor %d ceiling %d", i, p.x, p.y,
                     p.z, by_ray.has_floor, by_ray.has_ceiling);
        assert_int_equal(by_ray.status, by_height.status);
        if (by_ray.has_floor)
            assert_near(by_ray.floor.point.z, by_height.floor.point.z, 1e-5);
        if (by_ray.has_ceiling)
            assert_near(by_ray.ceiling.point.z, by_height.ceiling.point.z, 1e-5);
        floors += by_ray.has_floor;
    }
    assert_true(floors > 100);
    locale_unref(turned);
}

static void a_plane_goes_through_three_points(void **state)
{
    struct random random = {SEED + 3};

    (void)state;
    print_message("seed %d\n", SEED + 3);
    for (int i = 0; i < ROUNDS; i++) {
        struct vec3 up =
            vec3_unit((struct vec3){random_in(&random, -1, 1), random_in(&random, -1, 1), 1.5});
        struct vec3 points[3];
        struct plane plane;

        for (int k = 0; k < 3; k++)
            points[k] = random_point(&random);
        if (!plane_through(points, 3, up, &plane))
            continue;
        assert_true(vec3_dot(plane.normal, up) > 0);
        for (int k = 0; k < 3; k++)
            assert_near(vec3_dot(plane.normal, points[k]) + plane.d, 0, 1e-9 * 200);
    }
}

static void more_points_give_the_least_squares(void **state)
{
    static const struct vec3 up = {0, 0, 1};
    struct random random = {SEED + 4};

    (void)state;
    print_message("seed %d\n", SEED + 4);
    for (int i = 0; i < 200; i++) {
        struct vec3 points[8];
        struct plane plane;
        double best = 0;

        for (int k = 0; k < 8; k++)
            points[k] = random_point(&random);
        assert_true(plane_through(points, 8, up, &plane));
        for (int k = 0; k < 8; k++)
            best += pow((vec3_dot(plane.normal, points[k]) + plane.d) / plane.normal.z, 2);
        for (int k = 0; k < 50; k++) { /* no plane nearby is better */
            struct plane other = plane;
            double sum = 0;

            other.normal.x += random_in(&random, -1e-3, 1e-3);
            other.normal.y += random_in(&random, -1e-3, 1e-3);
            other.d += random_in(&random, -1e-2, 1e-2);
            for (int n = 0; n < 8; n++)
                sum += pow((vec3_dot(other.normal, points[n]) + other.d) / other.normal.z, 2);
            if (sum < best - 1e-9)
                fail_msg("round %d: %.17g is better than %.17g", i, sum, best);
        }
    }
}

static void points_on_a_line_span_no_plane(void **state)
{
    static const struct vec3 up = {0, 0, 1};
    const struct vec3 line[4] = {{0, 0, 0}, {1, 1, 5}, {2, 2, -3}, {5, 5, 1}};
    const struct vec3 above[3] = {{1, 2, 3}, {1, 2, 4}, {1, 2, 5}};
    struct plane plane;

    (void)state;
    assert_false(plane_through(line, 4, up, &plane));
    assert_false(plane_through(line, 3, up, &plane));
    assert_false(plane_through(above, 3, up, &plane));
    assert_false(plane_through(line, 2, up, &plane));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_hit_of_all_layers_is_found),
        cmocka_unit_test(a_chosen_layer_is_asked_alone),
        cmocka_unit_test(contact_finds_the_highest_floor_and_the_lowest_ceiling),
        cmocka_unit_test(a_turned_gravity_gives_what_a_turned_world_gives),
        cmocka_unit_test(a_plane_goes_through_three_points),
        cmocka_unit_test(more_points_give_the_least_squares),
        cmocka_unit_test(points_on_a_line_span_no_plane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
