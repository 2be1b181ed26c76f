/*
 * Lights over a locale: the trees that are kept, their bound, many threads at once, and that nobody
 * can tell if there was a tree.
 */
#include "world/ask/lit.h"

#include "support/mesh_oracle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { POINTS = 2000, THREADS = 4 };

static const struct vec3 down = {0, 0, -1};

static struct polygon_set set_of(struct soup *soup)
{
    struct polygon_set set = {.vertices = soup->vertices,
                              .vertex_count = soup->vertex_count,
                              .corners = soup->corners,
                              .starts = soup->starts,
                              .polygon_count = soup->polygon_count};

    *soup = (struct soup){0};
    return set;
}

/* Two layers of a random soup each. */
static struct locale *locale_make(uint64_t seed)
{
    struct layer *layers[2];
    struct random random = {seed};
    struct err err;

    for (size_t i = 0; i < 2; i++) {
        struct soup soup = {0};

        oracle_soup(&random, (struct vec3){0, 0, 1}, 40, &soup);
        struct polygon_set set = set_of(&soup);

        layers[i] = layer_create_mesh(i ? "high" : "low", LAYER_GROUND, &set, down, NULL, &err);
        assert_non_null(layers[i]);
    }
    struct locale *locale = locale_assemble("here", 1, &locale_manifest_default, layers, 2, &err);

    assert_non_null(locale);
    return locale;
}

static struct layer_choice all(const struct locale *locale)
{
    struct layer_choice choice;
    struct err err;

    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    return choice;
}

static struct light light_number(uint64_t number)
{
    struct random random = {number};
    struct light light;

    assert_true(light_from_direction(oracle_direction(&random), &light));
    return light;
}

static void expect_valid(struct light_cache *cache)
{
    struct err err;

    if (!light_cache_validate(cache, &err))
        fail_msg("%s", err.msg);
}

/* How many of the points are in shadow; each answer is locale_ray's, bit by bit. */
static unsigned check_points(const struct lighting *lighting, const struct vec3 *points,
                             size_t count)
{
    unsigned shadows = 0;

    for (size_t first = 0; first < count; first += LIT_TOGETHER_MAX) {
        size_t some = count - first < LIT_TOGETHER_MAX ? count - first : LIT_TOGETHER_MAX;
        struct locale_hit hits[LIT_TOGETHER_MAX];
        uint8_t is_lit[LIT_TOGETHER_MAX];

        lighting_occluders(lighting, points + first, some, hits);
        lighting_lit(lighting, points + first, some, is_lit);
        for (size_t i = 0; i < some; i++) {
            struct locale_hit want;
            struct ray ray;
            double start_m;
            bool is_hit = light_ray(&lighting->light, points[first + i], &ray, &start_m) &&
                          locale_ray(lighting->choice, &ray, RAY_LIGHT, &want, NULL);

            assert_int_equal(is_lit[i], !is_hit);
            assert_int_equal(isinf(hits[i].at.t), !is_hit);
            shadows += is_hit;
            if (!is_hit)
                continue;
            assert_true(hits[i].at.t == want.at.t + start_m);
            assert_memory_equal(&hits[i].at.point, &want.at.point, sizeof want.at.point);
            assert_memory_equal(&hits[i].at.normal, &want.at.normal, sizeof want.at.normal);
            assert_int_equal(hits[i].polygon, want.polygon);
            assert_ptr_equal(hits[i].layer, want.layer);
        }
    }
    return shadows;
}

static void points_fill(struct vec3 *points, uint64_t seed)
{
    struct random random = {seed};

    for (size_t i = 0; i < POINTS; i++)
        points[i] = (struct vec3){random_in(&random, -30, 30), random_in(&random, -30, 30),
                                  random_in(&random, -20, 20)};
}

static void trees_do_not_change_answers(void **state)
{
    static struct vec3 points[POINTS];
    struct locale *locale = locale_make(3);
    struct layer_choice choice = all(locale);
    struct err err;
    struct light_cache *cache = light_cache_create((uint64_t)1 << 30, &err);
    struct light_cache_stats stats;
    unsigned shadows = 0;

    (void)state;
    points_fill(points, 1);
    for (uint64_t i = 0; i < 24; i++) {
        struct light light = i % 4 ? light_number(i) : light_at_place(points[i]);
        struct lighting lighting;

        if (i == 5) /* along gravity */
            assert_true(light_from_direction(down, &light));
        assert_true(lighting_open(&lighting, &choice, &light, POINTS, cache, true));
        assert_int_equal(lighting.trees[0] != NULL, i % 4 != 0 && i != 5);
        shadows += check_points(&lighting, points, POINTS);
        lighting_close(&lighting);
        expect_valid(cache);
    }
    light_cache_stats(cache, &stats);
    assert_int_equal(stats.builds, 2 * 17);
    assert_int_equal(stats.trees, 2 * 17);
    assert_true(shadows > 5000);
    light_cache_destroy(cache);
    locale_unref(locale);
}

static void a_tree_is_made_when_rays_have_cost_as_much(void **state)
{
    struct locale *locale = locale_make(4);
    struct layer_choice choice = all(locale);
    struct err err;
    struct light_cache *cache = light_cache_create((uint64_t)1 << 30, &err);
    struct light_cache_stats stats;
    struct light light = light_number(9);
    struct lighting lighting;
    size_t price = LIGHT_POINTS_LEAST;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        if (locale->layers[i]->mesh_stats.polygons > price)
            price = locale->layers[i]->mesh_stats.polygons;
    /* a loop does not build, and asks again what it was refused */
    assert_false(lighting_open(&lighting, &choice, &light, price, cache, false));
    assert_true(lighting_open(&lighting, &choice, &light, LIGHT_POINTS_LEAST - 1, cache, false));
    assert_null(lighting.trees[0]);
    lighting_close(&lighting);
    assert_false(lighting_open(&lighting, &choice, &light, price, cache, false));
    assert_true(lighting_open(&lighting, &choice, &light, price, cache, true));
    assert_non_null(lighting.trees[0]);
    assert_non_null(lighting.trees[1]);
    lighting_close(&lighting);
    /* now it is there for a single point, on a loop, too */
    assert_true(lighting_open(&lighting, &choice, &light, 1, cache, false));
    assert_non_null(lighting.trees[0]);
    lighting_close(&lighting);
    light_cache_stats(cache, &stats);
    assert_int_equal(stats.builds, 2);
    /* lights that are asked once are forgotten in their order, and their trees with them */
    for (uint64_t i = 0; i < LIGHTS_REMEMBERED_MAX; i++) {
        struct light other = light_number(1000 + i);

        assert_true(lighting_open(&lighting, &choice, &other, 1, cache, false));
        lighting_close(&lighting);
    }
    expect_valid(cache);
    light_cache_stats(cache, &stats);
    assert_int_equal(stats.lights, LIGHTS_REMEMBERED_MAX);
    assert_int_equal(stats.trees, 0);
    assert_int_equal(stats.bytes, 0);
    assert_int_equal(stats.evicted, 2);
    light_cache_destroy(cache);
    locale_unref(locale);
}

/* Lights at ten thousand places cost their rays; far ones, asked about much, their trees. */
static void ten_thousand_lights_are_bounded(void **state)
{
    static struct vec3 points[POINTS];
    struct locale *locale = locale_make(7);
    struct layer_choice choice = all(locale);
    struct random random = {12};
    struct err err;
    struct light_cache *cache = light_cache_create(16 * locale->layers[0]->mesh_stats.bytes, &err);
    struct light_cache_stats stats;
    struct lighting lighting;

    (void)state;
    points_fill(points, 8);
    for (uint64_t i = 0; i < 10000; i++) {
        struct light light = light_at_place((struct vec3){
            random_in(&random, -30, 30), random_in(&random, -30, 30), random_in(&random, -9, 30)});

        assert_true(lighting_open(&lighting, &choice, &light, 1, cache, false));
        if (i % 64 == 0)
            check_points(&lighting, points + i % POINTS / 64 * 64, 8);
        lighting_close(&lighting);
    }
    light_cache_stats(cache, &stats);
    assert_int_equal(stats.builds + stats.lights + stats.misses, 0);
    for (uint64_t i = 0; i < 10000; i++) {
        struct light light = light_number(i);

        assert_true(lighting_open(&lighting, &choice, &light, 1, cache, false));
        lighting_close(&lighting);
    }
    light_cache_stats(cache, &stats);
    assert_int_equal(stats.builds, 0);
    assert_int_equal(stats.lights, LIGHTS_REMEMBERED_MAX);
    assert_int_equal(stats.misses, 2 * 10000);
    for (uint64_t i = 0; i < 200; i++) {
        struct light light = light_number(10000 + i);

        assert_true(lighting_open(&lighting, &choice, &light, POINTS, cache, true));
        check_points(&lighting, points, 64);
        lighting_close(&lighting);
        expect_valid(cache);
    }
    light_cache_stats(cache, &stats);
    assert_true(stats.builds > 300 && stats.evicted > 100 && stats.trees > 2);
    assert_int_equal(stats.builds + stats.refused, 400);
    assert_true(stats.hits >= stats.builds && stats.bytes <= stats.bytes_max);
    light_cache_destroy(cache);
    locale_unref(locale);
}

static void zero_and_places_at_the_light(void **state)
{
    struct light light;
    struct ray ray;
    double start_m;

    (void)state;
    assert_false(light_from_direction((struct vec3){0, 0, 0}, &light));
    assert_true(light_from_direction((struct vec3){0, 0, -5e-324}, &light));
    assert_true(light.toward.z == 1);
    assert_true(light_ray(&light, (struct vec3){0, 0, 100}, &ray, &start_m));
    assert_true(fabs(start_m - 1e-4) < 1e-18 && ray.t_max == INFINITY);
    assert_true(ray.origin.z == 100 + start_m);
    light = light_at_place((struct vec3){5, 5, 5});
    assert_false(light_ray(&light, (struct vec3){5, 5, 5}, &ray, &start_m));
    assert_false(light_ray(&light, (struct vec3){5, 5, 5 + 9e-6}, &ray, &start_m));
    assert_true(light_ray(&light, (struct vec3){5, 5, 4}, &ray, &start_m));
    assert_true(ray.direction.z == 1 && fabs(ray.t_max - (1 - 10e-6)) < 1e-15);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct crowd {
    struct layer_choice choice;
    struct light_cache *cache;
    struct vec3 points[POINTS];
};

static void *ask_all(void *context)
{
    struct crowd *crowd = context;

    for (uint64_t i = 0; i < 60; i++) {
        struct light light = i % 3 ? light_number(i % 12) : light_at_place(crowd->points[i % 12]);
        struct lighting lighting;

        assert_true(lighting_open(&lighting, &crowd->choice, &light, 600, crowd->cache, true));
        check_points(&lighting, crowd->points + i * 16, 64);
        lighting_close(&lighting);
        expect_valid(crowd->cache);
    }
    return NULL;
}

static void many_threads_stay_within_the_bound(void **state)
{
    struct locale *locale = locale_make(5);
    static struct crowd crowd;
    struct light_cache_stats stats;
    pthread_t threads[THREADS];
    struct err err;

    (void)state;
    crowd.choice = all(locale);
    /* room for about four of 24 trees */
    crowd.cache = light_cache_create(5 * locale->layers[0]->mesh_stats.bytes, &err);
    points_fill(crowd.points, 6);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &crowd), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    light_cache_stats(crowd.cache, &stats);
    assert_true(stats.evicted > 0 && stats.trees > 0 && stats.bytes <= stats.bytes_max);
    assert_int_equal(stats.builds, stats.trees + stats.evicted);
    light_cache_destroy(crowd.cache);
    locale_unref(locale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_do_not_change_answers),
        cmocka_unit_test(a_tree_is_made_when_rays_have_cost_as_much),
        cmocka_unit_test(ten_thousand_lights_are_bounded),
        cmocka_unit_test(zero_and_places_at_the_light),
        cmocka_unit_test(many_threads_stay_within_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
