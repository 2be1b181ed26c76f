/*
 * Questions over thousands of locales, against asking each of them by itself: worlds of upright
 * neighbours, of heaps of turned ones, of patches on a globe, all while locales come, move and go.
 */
#include "world/values/locale_index.h"

#include "tests/support/random.h"
#include "world/ask/across.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 2031, LOCALES = 2000, CHANGES = 600, POINTS = 60, RAYS = 60, LAYERS = 64 };

static struct err err;
static struct layer *layers[LAYERS]; /* that locales share */

enum layout { GRID, HEAP, GLOBE, ONE_PLACE, LAYOUTS };
static const char *const layout_names[LAYOUTS] = {"grid", "heap", "globe", "one place"};

static struct vec3 any_direction(struct random *random)
{
    return vec3_unit((struct vec3){random_in(random, -1, 1), random_in(random, -1, 1),
                                   random_in(random, -1, 1)});
}

/* The rotation that takes z to a direction. */
static void turn_up(struct vec3 up, double rotation[4])
{
    struct vec3 axis = {-up.y, up.x, 0};
    double w = 1 + up.z, length = sqrt(axis.x * axis.x + axis.y * axis.y + w * w);

    rotation[0] = axis.x / length;
    rotation[1] = axis.y / length;
    rotation[2] = 0;
    rotation[3] = w / length;
}

static struct placement any_placement(struct random *random, enum layout layout, int i)
{
    struct placement out = {.rotation = {0, 0, 0, 1}};
    struct vec3 up = any_direction(random);

    switch (layout) {
    case GRID:
        out.translation = (struct vec3){10.0 * (i % 40) - 200, 10.0 * (i / 40) - 200, 0};
        break;
    case HEAP:
        out.translation = (struct vec3){random_in(random, -80, 80), random_in(random, -80, 80),
                                        random_in(random, -80, 80)};
        turn_up(up, out.rotation);
        break;
    case GLOBE:
        out.translation = vec3_scale(up, 100);
        turn_up(up, out.rotation);
        break;
    default:
        break;
    }
    return out;
}

/* 5 × 5 samples over 10 m by 10 m, some of them no-data. */
static struct layer *any_layer(struct random *random)
{
    const struct heightfield_spec spec = {
        .cols = 5, .rows = 5, .spacing_x_m = 2.5, .spacing_y_m = 2.5};
    float heights_m[25];
    struct layer *layer;

    for (int i = 0; i < 25; i++)
        heights_m[i] = random_below(random, 20) == 0 ? NAN : (float)random_in(random, -2, 2);
    layer = layer_create_heightfield("ground", heightfield_create(&spec, heights_m, &err), &err);
    assert_non_null(layer);
    return layer;
}

/* Every seventh has no layer. */
static struct locale *any_locale(struct random *random, enum layout layout, int i)
{
    struct locale_manifest manifest = locale_manifest_default;
    struct layer *layer = i % 7 == 3 ? NULL : layer_ref(layers[random_below(random, LAYERS)]);
    struct locale *locale;
    char id[WORLD_ID_MAX + 1];

    manifest.placement = any_placement(random, layout, i);
    assert_int_equal(locale_manifest_check(&manifest, &err), ERR_OK);
    snprintf(id, sizeof id, "%s%d", i % 3 ? "match-" : "m", i);
    locale = locale_assemble(id, 1, &manifest, &layer, layer != NULL, &err);
    assert_non_null(locale);
    return locale;
}

static void replace(struct world_snapshot **snapshot, const char *id, struct locale *locale)
{
    struct world_snapshot *next = snapshot_next(*snapshot, id, locale, &err);

    assert_non_null(next);
    snapshot_destroy(*snapshot);
    *snapshot = next;
    locale_unref(locale);
}

/* ---- each locale by itself ------------------------------------------------------------------- */

static bool is_shown(const void *context, const struct locale *locale)
{
    (void)context;
    return strstr(locale->id, "7") == NULL;
}

static const struct locale *locate_each(const struct world_snapshot *snapshot, struct vec3 world)
{
    const struct locale *locale;

    for (size_t at = 0; (locale = snapshot_step(snapshot, &at)) != NULL;) {
        const struct layer_choice all = {locale, locale->layers, locale->layer_count};
        bool has_floor, has_ceiling;

        if (locale_contains(&all, placement_to_locale(&locale->manifest.placement, world),
                            &has_floor, &has_ceiling) == CONTAINED_INSIDE)
            return locale;
    }
    return NULL;
}

struct each {
    const struct locale *nearest;
    double t;
    size_t met, met_nearly; /* boxes, up to the hit; those grown by a hair */
};

static bool meets(const struct locale *locale, const struct ray *ray, double by, double until)
{
    struct box3 box = locale->bounds;
    double enter = 0, leave = ray->t_max;

    box.min = vec3_sub(box.min, (struct vec3){by, by, by});
    box.max = vec3_add(box.max, (struct vec3){by, by, by});
    const double low[3] = {box.min.x, box.min.y, box.min.z};
    const double high[3] = {box.max.x, box.max.y, box.max.z};
    const double from[3] = {ray->origin.x, ray->origin.y, ray->origin.z};
    const double to[3] = {ray->direction.x, ray->direction.y, ray->direction.z};

    for (int i = 0; i < 3; i++) {
        double a = (low[i] - from[i]) / to[i], b = (high[i] - from[i]) / to[i];

        enter = fmax(enter, fmin(a, b));
        leave = fmin(leave, fmax(a, b));
    }
    return enter <= leave && enter <= until;
}

static struct each ray_each(const struct world_snapshot *snapshot, const struct ray *world)
{
    struct each out = {.nearest = NULL, .t = INFINITY};

    for (int pass = 0; pass < 2; pass++) {
        const struct locale *locale;

        for (size_t at = 0; (locale = snapshot_step(snapshot, &at)) != NULL;) {
            const struct layer_choice all = {locale, locale->layers, locale->layer_count};
            const struct placement *placement = &locale->manifest.placement;
            const struct ray ray = {placement_to_locale(placement, world->origin),
                                    placement_turn_to_locale(placement, world->direction),
                                    world->t_max};
            struct locale_hit hit;

            if (!locale->has_bounds)
                continue;
            if (pass == 1) {
                out.met += meets(locale, &ray, -1e-9, out.t);
                out.met_nearly += meets(locale, &ray, 1e-9, out.t + 1e-9);
            } else if (locale_ray(&all, &ray, RAY_CLOSEST, &hit, NULL) && hit.at.t < out.t) {
                out.nearest = locale; /* of the smallest id at the same t */
                out.t = hit.at.t;
            }
        }
    }
    return out;
}

/* ---- both ------------------------------------------------------------------------------------ */

static struct vec3 any_point(struct random *random, enum layout layout)
{
    double side_m = layout == ONE_PLACE ? 8 : layout == GLOBE ? 120 : 210;
    struct vec3 point = {random_in(random, -side_m, side_m), random_in(random, -side_m, side_m),
                         random_in(random, -side_m, side_m)};

    /* the surface of the globe, where most of it is */
    return layout == GLOBE ? vec3_scale(vec3_unit(point), random_in(random, 97, 110)) : point;
}

static int compare_points(const struct world_snapshot *snapshot, struct random *random,
                          enum layout layout)
{
    int found = 0;

    for (int i = 0; i < POINTS; i++) {
        struct vec3 point = any_point(random, layout);
        const struct locale *expected = locate_each(snapshot, point);
        struct located got;

        snapshot_locate(snapshot, point, NULL, 0, &got);
        if (got.locale != expected)
            fail_msg("%s: (%.17g, %.17g, %.17g) is in %s, not in %s", layout_names[layout], point.x,
                     point.y, point.z, expected ? expected->id : "none",
                     got.locale ? got.locale->id : "none");
        found += expected != NULL;
    }
    return found;
}

static int compare_rays(const struct world_snapshot *snapshot, struct random *random,
                        enum layout layout)
{
    struct crossing *crossings = malloc((snapshot->locale_count + 1) * sizeof *crossings);
    int found = 0;

    assert_non_null(crossings);
    for (int i = 0; i < RAYS; i++) {
        struct ray world = {any_point(random, layout), any_direction(random), 1e3};
        struct across_hit got;
        struct each expected;

        if (i % 3 == 0)
            world.direction = (struct vec3){1e-9, 1e-9, -1};
        expected = ray_each(snapshot, &world);
        snapshot_ray(snapshot, &world, RAY_CLOSEST, crossings, &got);
        if (got.locale != expected.nearest ||
            (got.locale && memcmp(&got.hit.at.t, &expected.t, sizeof expected.t) != 0))
            fail_msg("%s, ray %d: %s at %.17g, not %s at %.17g", layout_names[layout], i,
                     expected.nearest ? expected.nearest->id : "none", expected.t,
                     got.locale ? got.locale->id : "none", got.locale ? got.hit.at.t : INFINITY);
        if (got.crossed < expected.met || got.crossed > expected.met_nearly)
            fail_msg("%s, ray %d: %zu crossed, not %zu to %zu", layout_names[layout], i,
                     got.crossed, expected.met, expected.met_nearly);
        for (size_t k = 1; k < got.crossed; k++)
            assert_true(crossings[k - 1].t_enter <= crossings[k].t_enter);
        found += expected.nearest != NULL;
    }
    free(crossings);
    return found;
}

static void compare(const struct world_snapshot *snapshot, struct random *random,
                    enum layout layout)
{
    const struct world_snapshot shown = snapshot_showing(snapshot, is_shown, NULL);
    int points = compare_points(snapshot, random, layout);
    int rays = compare_rays(snapshot, random, layout);

    compare_points(&shown, random, layout);
    compare_rays(&shown, random, layout);
    print_message("%s: %zu locales, %d points and %d rays found one\n", layout_names[layout],
                  snapshot->locale_count, points, rays);
    assert_true(points > POINTS / 50 && points < POINTS && rays > RAYS / 50);
}

static void all_layouts_agree_with_asking_each(void **state)
{
    struct random random = {SEED};

    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < LAYERS; i++)
        layers[i] = any_layer(&random);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        struct world_snapshot *snapshot = snapshot_create(0, &err);

        assert_non_null(snapshot);
        for (int i = 0; i < LOCALES; i++) {
            struct locale *locale = any_locale(&random, (enum layout)layout, i * 701 % LOCALES);

            replace(&snapshot, locale->id, locale);
        }
        assert_int_equal(snapshot->locale_count, LOCALES);
        if (!snapshot_validate(snapshot, &err))
            fail_msg("%s", err.msg);
        compare(snapshot, &random, (enum layout)layout);
        for (int i = 0; i < CHANGES; i++) {
            int number = (int)random_below(&random, LOCALES);
            struct locale *locale = any_locale(&random, (enum layout)layout, number);
            char id[WORLD_ID_MAX + 1];

            memcpy(id, locale->id, sizeof id);
            if (i % 3 == 0) {
                locale_unref(locale);
                locale = NULL;
            }
            replace(&snapshot, id, locale);
            if (i % 200 == 0 && !snapshot_validate(snapshot, &err))
                fail_msg("change %d: %s", i, err.msg);
        }
        compare(snapshot, &random, (enum layout)layout);
        while (snapshot->locale_count > 0) {
            struct locale *locale =
                snapshot_at(snapshot, random_below(&random, (uint32_t)snapshot->locale_count));

            replace(&snapshot, locale->id, NULL);
            if (snapshot->locale_count % 500 == 0 && !snapshot_validate(snapshot, &err))
                fail_msg("%zu are left: %s", snapshot->locale_count, err.msg);
        }
        assert_null(snapshot->index);
        snapshot_destroy(snapshot);
    }
    for (int i = 0; i < LAYERS; i++)
        layer_unref(layers[i]);
}

/* Readers keep the snapshot that they hold. */
static void a_change_leaves_the_snapshot_before_it(void **state)
{
    struct random random = {SEED};
    struct world_snapshot *before = snapshot_create(0, &err), *after;
    struct locale *locale;

    (void)state;
    assert_non_null(before);
    for (int i = 0; i < LAYERS; i++)
        layers[i] = any_layer(&random);
    for (int i = 0; i < 300; i++) {
        locale = any_locale(&random, GRID, i);
        replace(&before, locale->id, locale);
    }
    locale = any_locale(&random, HEAP, 5);
    after = snapshot_next(before, locale->id, locale, &err);
    assert_non_null(after);
    assert_ptr_equal(snapshot_locale(after, locale->id), locale);
    assert_ptr_not_equal(snapshot_locale(before, locale->id), locale);
    locale_unref(locale);
    assert_true(snapshot_validate(before, &err));
    assert_true(snapshot_validate(after, &err));
    snapshot_destroy(before);
    assert_true(snapshot_validate(after, &err));
    snapshot_destroy(after);
    for (int i = 0; i < LAYERS; i++)
        layer_unref(layers[i]);
}

static void expect_cost(uint32_t cols, uint32_t rows)
{
    static float heights_m[257 * 257];
    const struct heightfield_spec spec = {
        .cols = cols, .rows = rows, .spacing_x_m = 1, .spacing_y_m = 1};
    struct heightfield *field = heightfield_create(&spec, heights_m, &err);
    struct layer *layer = layer_create_heightfield("ground", field, &err);
    struct locale *locale = locale_assemble("small", 1, &locale_manifest_default, &layer, 1, &err);
    uint64_t allowed = 3 * sizeof(float) * cols * rows + 2048;

    assert_non_null(locale);
    if (locale->memory_bytes > allowed)
        fail_msg("%u x %u: %llu bytes, allowed are %llu", cols, rows,
                 (unsigned long long)locale->memory_bytes, (unsigned long long)allowed);
    locale_unref(locale);
}

/* A locale of one field: three times its samples and 2 KB, counted; strips, too. */
static void a_small_locale_costs_what_it_holds(void **state)
{
    (void)state;
    for (uint32_t side = 2; side <= 257; side++)
        expect_cost(side, side);
    for (uint32_t cols = 2; cols <= 257; cols += cols < 40 ? 1 : 7)
        for (uint32_t rows = 2; rows <= 257; rows += rows < 40 ? 1 : 13)
            expect_cost(cols, rows);
    for (uint32_t side = 2; side <= 64; side += side < 18 ? 1 : 6) {
        expect_cost(side, 1000);
        expect_cost(1000, side);
    }
    expect_cost(2, 30000);
    expect_cost(30000, 2);
}

/* Of thousands of names those near the unknown one are looked at. */
static void the_name_that_was_meant_is_found(void **state)
{
    struct world_snapshot *snapshot = snapshot_create(0, &err);

    (void)state;
    assert_non_null(snapshot);
    for (int i = 0; i < 1000; i++) {
        char id[16];

        snprintf(id, sizeof id, "field-%04d", i);
        replace(&snapshot, id, locale_assemble(id, 1, &locale_manifest_default, NULL, 0, &err));
    }
    assert_int_equal(snapshot_no_locale(snapshot, "field-0777x", &err), ERR_LOCALE_UNKNOWN);
    assert_non_null(strstr(err.msg, "(did you mean field-0777?)"));
    snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_locale_costs_what_it_holds),
        cmocka_unit_test(all_layouts_agree_with_asking_each),
        cmocka_unit_test(a_change_leaves_the_snapshot_before_it),
        cmocka_unit_test(the_name_that_was_meant_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
