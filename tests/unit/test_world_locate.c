/*
 * Points of the world to locales: placements, borders, hints; against containment asked of each
 * locale by itself.
 */
#include "world/ask/locate.h"

#include "tests/support/random.h"
#include "world/ask/query.h"
#include "world/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/near.h"

enum { SEED = 1996, ROUNDS = 3000, LOCALES = 12 };

static struct err err;

static const struct placement identity = {.rotation = {0, 0, 0, 1}};

static void put_locale(struct world *world, const char *id, const struct placement *placement,
                       struct vec3 gravity)
{
    struct world_change change = {.kind = WORLD_PUT_LOCALE, .manifest = locale_manifest_default};

    snprintf(change.locale_id, sizeof change.locale_id, "%s", id);
    change.manifest.placement = *placement;
    change.manifest.gravity = gravity;
    assert_int_equal(locale_manifest_check(&change.manifest, &err), ERR_OK);
    assert_int_equal(world_apply(world, &change, &err), ERR_OK);
}

/* A floor of one rectangle across gravity -Z or -X, at height 0. */
static void put_floor(struct world *world, const char *id, struct vec3 gravity, double width,
                      double depth)
{
    struct world_change change = {.kind = WORLD_PUT_LAYER, .layer_id = "floor"};
    struct polygon_set set;

    assert_int_equal(polygon_set_allocate(4, 1, 4, &set, &err), ERR_OK);
    for (uint32_t i = 0; i < 4; i++) {
        double u = i == 1 || i == 2 ? width : 0, v = i >= 2 ? depth : 0;

        set.vertices[i] = gravity.z < 0 ? (struct vec3){u, v, 0} : (struct vec3){0, u, v};
        set.corners[i] = i;
    }
    set.starts[1] = 4;
    snprintf(change.locale_id, sizeof change.locale_id, "%s", id);
    change.layer = layer_create_mesh("floor", LAYER_GROUND, &set, gravity, NULL, &err);
    assert_non_null(change.layer);
    assert_int_equal(world_apply(world, &change, &err), ERR_OK);
}

static const struct vec3 down = {0, 0, -1};

static struct world *make_world(void)
{
    struct world *world = world_create(1, &world_limits_default, NULL, &err);

    assert_non_null(world);
    world_readers_begin(world);
    return world;
}

static void assert_located(const struct world_snapshot *snapshot, const char *what,
                           struct vec3 world, const char *hint, const char *expected)
{
    struct located got;

    snapshot_locate(snapshot, world, hint, 0, &got);
    if ((got.locale == NULL) != (expected == NULL) ||
        (expected && strcmp(got.locale->id, expected) != 0))
        fail_msg("%s: got %s, expected %s", what, got.locale ? got.locale->id : "none",
                 expected ? expected : "none");
}

static void a_placement_turns_then_moves(void **state)
{
    const struct placement quarter = {{100, 200, 300}, {0, 0, sqrt(0.5), sqrt(0.5)}};
    struct random random = {SEED};
    struct vec3 got = placement_to_world(&quarter, (struct vec3){1, 2, 3});

    (void)state;
    assert_near(got.x, 98, 1e-12); /* x becomes y, y becomes -x */
    assert_near(got.y, 201, 1e-12);
    assert_near(got.z, 303, 1e-12);
    for (int i = 0; i < 1000; i++) {
        struct locale_manifest manifest = locale_manifest_default;
        struct vec3 p = {random_in(&random, -9, 9), random_in(&random, -9, 9), 3}, back;
        double *q = manifest.placement.rotation;

        for (int k = 0; k < 4; k++)
            q[k] = random_in(&random, -1, 1);
        double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);

        for (int k = 0; k < 4; k++)
            q[k] /= length;
        manifest.placement.translation = (struct vec3){-5, 7, 1000};
        back = placement_to_locale(&manifest.placement, placement_to_world(&manifest.placement, p));
        assert_near(vec3_length(vec3_sub(back, p)), 0, 1e-11);
    }
}

/* `left` 0..10 × 0..10; `right` begins at x = 10, turned by a quarter. */
static struct world *neighbours(void)
{
    const struct placement quarter = {{20, 0, 0}, {0, 0, sqrt(0.5), sqrt(0.5)}};
    struct world *world = make_world();

    put_locale(world, "left", &identity, down);
    put_floor(world, "left", down, 10, 10);
    put_locale(world, "right", &quarter, down);
    put_floor(world, "right", down, 10, 10);
    return world;
}

static const struct {
    const char *what;
    struct vec3 point;
    const char *hint, *expected;
} moves[] = {
    {"in the left one", {5, 5, 1}, NULL, "left"},
    {"in the right one", {15, 5, 1}, NULL, "right"},
    {"on the border, from nowhere", {10, 5, 1}, NULL, "left"},
    {"on the border, from the left", {10, 5, 1}, "left", "left"},
    {"on the border, from the right", {10, 5, 1}, "right", "right"},
    {"a hair right of it, from the left", {10 + 5e-7, 5, 1}, "left", "left"},
    {"a hair right of it, from nowhere", {10 + 5e-7, 5, 1}, NULL, "right"},
    {"a hair left of it, from the right", {10 - 5e-7, 5, 1}, "right", "right"},
    {"more than a hair right of it", {10 + 5e-6, 5, 1}, "left", "right"},
    {"more than a hair left of it", {10 - 5e-6, 5, 1}, "right", "left"},
    {"a hair beyond a corner, from the left", {-5e-7, -5e-7, 1}, "left", "left"},
    {"a hair beyond a corner, from nowhere", {-5e-7, -5e-7, 1}, NULL, NULL},
    {"a hair below the floor, from the left", {5, 5, -5e-7}, "left", "left"},
    {"below the floor", {5, 5, -1e-3}, "left", NULL},
    {"far away", {500, 5, 1}, "left", NULL},
    {"from a locale that is not there", {5, 5, 1}, "atlantis", "left"},
};

static void a_hint_keeps_a_point_on_its_side(void **state)
{
    struct world *world = neighbours();
    const struct world_snapshot *snapshot = world_pin(world, 0);

    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        assert_located(snapshot, moves[i].what, moves[i].point, moves[i].hint, moves[i].expected);
    world_unpin(world, 0, snapshot);
    world_destroy(world);
}

static void turned_neighbours_leave_no_gap(void **state)
{
    /* both turned by the same odd angle: world coordinates of their border are all rounded */
    const double angle = 0.7;
    const struct placement left = {{1e4, -3e4, 50}, {0, 0, sin(angle / 2), cos(angle / 2)}};
    struct placement right = left;
    struct world *world = make_world();
    const struct world_snapshot *snapshot;
    int of_left = 0, of_right = 0;

    (void)state;
    right.translation = placement_to_world(&left, (struct vec3){10, 0, 0});
    put_locale(world, "left", &left, down);
    put_floor(world, "left", down, 10, 10);
    put_locale(world, "right", &right, down);
    put_floor(world, "right", down, 10, 10);
    snapshot = world_pin(world, 0);
    for (int i = 0; i < 1000; i++) {
        struct vec3 on_border = placement_to_world(&left, (struct vec3){10, 0.01 * i, 1});
        struct located got;

        snapshot_locate(snapshot, on_border, NULL, 0, &got);
        if (!got.locale)
            fail_msg("point %d of the border (%.17g, %.17g) is in neither", i, on_border.x,
                     on_border.y);
        of_left += strcmp(got.locale->id, "left") == 0;
        of_right += strcmp(got.locale->id, "right") == 0;
        assert_located(snapshot, "from the left", on_border, "left", "left");
        assert_located(snapshot, "from the right", on_border, "right", "right");
    }
    print_message("%d left, %d right\n", of_left, of_right);
    world_unpin(world, 0, snapshot);
    world_destroy(world);
}

/* The first locale that contains the point, each asked by itself. */
static const char *search(const struct world_snapshot *snapshot, struct vec3 world,
                          const char *hint)
{
    const char *first = NULL;

    for (size_t i = 0; i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot_at(snapshot, i);
        struct layer_choice choice;
        bool has_floor, has_ceiling;

        assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
        if (locale_contains(&choice, placement_to_locale(&locale->manifest.placement, world),
                            &has_floor, &has_ceiling) != CONTAINED_INSIDE)
            continue;
        if (hint && strcmp(hint, locale->id) == 0)
            return locale->id;
        first = first ? first : locale->id;
    }
    return first;
}

static void random_locales_agree_with_asking_each(void **state)
{
    struct random random = {SEED};
    struct world *world = make_world();
    const struct world_snapshot *snapshot;
    int found = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < LOCALES; i++) {
        const struct vec3 gravity = i % 3 == 0 ? (struct vec3){-1, 0, 0} : down;
        struct placement placement = {
            {random_in(&random, 0, 20), random_in(&random, 0, 20), random_in(&random, 0, 20)},
            {1, 0, 0, 0}};
        double angle = random_in(&random, 0, 3);
        char id[16];

        placement.rotation[0] = sin(angle) / sqrt(2);
        placement.rotation[1] = sin(angle) / sqrt(2);
        placement.rotation[3] = cos(angle);
        snprintf(id, sizeof id, "l%02d", i * 7 % LOCALES);
        put_locale(world, id, &placement, gravity);
        put_floor(world, id, gravity, random_in(&random, 2, 15), random_in(&random, 2, 15));
    }
    snapshot = world_pin(world, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct vec3 point = {random_in(&random, -5, 30), random_in(&random, -5, 30),
                             random_in(&random, -5, 30)};
        char hint[16];
        bool has_hint = random_below(&random, 2) == 0;
        const char *expected;

        snprintf(hint, sizeof hint, "l%02d", (int)random_below(&random, LOCALES));
        expected = search(snapshot, point, has_hint ? hint : NULL);
        assert_located(snapshot, "random", point, has_hint ? hint : NULL, expected);
        found += expected != NULL;
    }
    assert_true(found > ROUNDS / 10 && found < ROUNDS);
    world_unpin(world, 0, snapshot);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_placement_turns_then_moves),
        cmocka_unit_test(a_hint_keeps_a_point_on_its_side),
        cmocka_unit_test(turned_neighbours_leave_no_gap),
        cmocka_unit_test(random_locales_agree_with_asking_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
