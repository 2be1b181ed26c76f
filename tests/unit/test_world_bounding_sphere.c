/*
 * Bounding spheres against the boxes that they contain: a sphere leaves out nothing that its box
 * meets, wherever in the world the locale is, and most of what is elsewhere is left out.
 */
#include "world/values/bounding_sphere.h"

#include "tests/support/random.h"
#include "world/ask/locate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SEED = 1997, LOCALES = 2000, POINTS = 40 };

static double sign(struct random *random)
{
    return random_below(random, 2) ? 1 : -1;
}

/* Of any size from 1e-6 to 10^decades. */
static double any_size(struct random *random, double decades)
{
    return sign(random) * pow(10, random_in(random, -6, decades));
}

static struct vec3 any_vector(struct random *random, double decades)
{
    return (struct vec3){any_size(random, decades), any_size(random, decades),
                         any_size(random, decades)};
}

static struct vec3 any_direction(struct random *random)
{
    return vec3_unit((struct vec3){random_in(random, -1, 1), random_in(random, -1, 1),
                                   random_in(random, -1, 1)});
}

/* Bounds and a manifest; no layers, so gravity is one direction. */
static struct locale any_locale(struct random *random)
{
    struct locale locale = {.has_bounds = true, .manifest = locale_manifest_default};
    double decades = random_in(random, 0, 9);
    struct vec3 size = any_vector(random, decades), at = any_vector(random, decades);
    struct vec3 axis = any_direction(random);
    double half_angle = random_in(random, 0, 3.2), *q = locale.manifest.placement.rotation;
    struct err err;

    q[0] = axis.x * sin(half_angle);
    q[1] = axis.y * sin(half_angle);
    q[2] = axis.z * sin(half_angle);
    q[3] = cos(half_angle);
    locale.manifest.placement.translation = any_vector(random, random_in(random, 0, 9));
    locale.manifest.gravity =
        random_below(random, 2) ? any_direction(random) : (struct vec3){0, 0, -1};
    assert_int_equal(locale_manifest_check(&locale.manifest, &err), ERR_OK);
    locale.bounds.min = at;
    locale.bounds.max = vec3_add(
        at, (struct vec3){fabs(size.x), fabs(size.y), random_below(random, 3) ? fabs(size.z) : 0});
    return locale;
}

/* On a corner, an edge, a side or within. */
static struct vec3 place_of(struct random *random, const struct box3 *box)
{
    double at[3];

    for (int i = 0; i < 3; i++)
        at[i] = random_below(random, 3) ? (double)random_below(random, 2) : random_in(random, 0, 1);
    return (struct vec3){box->min.x + at[0] * (box->max.x - box->min.x),
                         box->min.y + at[1] * (box->max.y - box->min.y),
                         box->min.z + at[2] * (box->max.z - box->min.z)};
}

static void what_the_box_meets_is_not_left_out(void **state)
{
    struct random random = {SEED};

    (void)state;
    for (int i = 0; i < LOCALES; i++) {
        const struct locale locale = any_locale(&random);
        const struct placement *placement = &locale.manifest.placement;
        struct bounding_sphere sphere = bounding_sphere_of(&locale);

        for (int k = 0; k < POINTS; k++) {
            struct vec3 place = place_of(&random, &locale.bounds);
            double by = k % 2 ? any_size(&random, 12) : 0;
            struct vec3 over = vec3_add(place, vec3_scale(locale.manifest.gravity, by));
            struct vec3 target = placement_to_world(placement, place);
            struct ray ray = {.origin = any_vector(&random, 9), .t_max = k % 3 ? 1 : INFINITY};
            struct bounding_sphere_ray asked;

            assert_true(
                bounding_sphere_meets_gravity(&sphere, placement_to_world(placement, over)));
            ray.direction = vec3_sub(target, ray.origin);
            asked = bounding_sphere_ray_of(&ray);
            assert_true(bounding_sphere_meets_ray(&sphere, &asked));
        }
    }
}

static void most_of_what_is_elsewhere_is_left_out(void **state)
{
    struct random random = {SEED + 1};
    int met = 0, hit = 0;

    (void)state;
    for (int i = 0; i < LOCALES; i++) {
        struct locale locale = any_locale(&random);
        struct vec3 side = {100, 50, 20};
        struct ray ray = {.origin = {0, 0, 0}, .t_max = INFINITY};
        struct bounding_sphere sphere;
        struct bounding_sphere_ray asked;
        struct vec3 there = {random_in(&random, -1e4, 1e4), random_in(&random, -1e4, 1e4), 0};

        locale.bounds = (struct box3){{0, 0, 0}, side};
        locale.manifest.placement.translation = there;
        sphere = bounding_sphere_of(&locale);
        met += bounding_sphere_meets_gravity(&sphere, (struct vec3){0, 0, 0});
        ray.direction = any_direction(&random);
        ray.direction.z = 0;
        asked = bounding_sphere_ray_of(&ray);
        hit += bounding_sphere_meets_ray(&sphere, &asked);
    }
    print_message("of %d locales %d may hold the point, %d may meet the ray\n", LOCALES, met, hit);
    assert_true(met < LOCALES / 50 && hit > 0 && hit < LOCALES / 50);
}

static void the_ray_ends_before_it(void **state)
{
    struct locale locale = {.has_bounds = true, .manifest = locale_manifest_default};
    struct ray ray = {{0, 0, 0}, {2, 0, 0}, 10};
    struct bounding_sphere sphere;
    struct bounding_sphere_ray asked;

    (void)state;
    locale.bounds = (struct box3){{30, -1, -1}, {40, 1, 1}};
    sphere = bounding_sphere_of(&locale);
    asked = bounding_sphere_ray_of(&ray);
    assert_false(bounding_sphere_meets_ray(&sphere, &asked));
    ray.t_max = 15;
    asked = bounding_sphere_ray_of(&ray);
    assert_true(bounding_sphere_meets_ray(&sphere, &asked));
    ray.direction.x = -2;
    asked = bounding_sphere_ray_of(&ray);
    assert_false(bounding_sphere_meets_ray(&sphere, &asked));
}

static void without_bounds_nothing_and_beyond_numbers_all(void **state)
{
    struct locale locale = {.manifest = locale_manifest_default};
    struct ray ray = {{0, 0, 0}, {1, 0, 0}, INFINITY};
    struct bounding_sphere_ray asked = bounding_sphere_ray_of(&ray);
    struct bounding_sphere sphere = bounding_sphere_of(&locale);

    (void)state;
    assert_false(bounding_sphere_meets_gravity(&sphere, (struct vec3){0, 0, 0}));
    assert_false(bounding_sphere_meets_ray(&sphere, &asked));
    locale.has_bounds = true;
    locale.bounds = (struct box3){{-1.7e308, -1.7e308, 0}, {1.7e308, 1.7e308, 1}};
    sphere = bounding_sphere_of(&locale);
    assert_true(bounding_sphere_meets_gravity(&sphere, (struct vec3){1e300, -1e300, 0}));
    assert_true(bounding_sphere_meets_ray(&sphere, &asked));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_box_meets_is_not_left_out),
        cmocka_unit_test(most_of_what_is_elsewhere_is_left_out),
        cmocka_unit_test(the_ray_ends_before_it),
        cmocka_unit_test(without_bounds_nothing_and_beyond_numbers_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
