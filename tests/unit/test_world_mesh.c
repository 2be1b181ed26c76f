/*
 * Meshes in the world: what a layer keeps, revisions, memory, and gravity that changes.
 */
#include "world/ask/query.h"
#include "world/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

static const struct vec3 down = {0, 0, -1}, east = {1, 0, 0};

/* An upright wall at x = 10, one side of which faces west, and a floor at z = 0 on either side. */
static struct polygon_set room(void)
{
    static const struct vec3 vertices[] = {{0, 0, 0},  {20, 0, 0},  {20, 10, 0}, {0, 10, 0},
                                           {10, 0, 0}, {10, 10, 0}, {10, 10, 8}, {10, 0, 8}};
    static const uint32_t corners[] = {0, 1, 2, 3, 0, 0, 1, 4, 5, 6, 7};
    static const uint32_t starts[] = {0, 4, 7, 11};
    struct polygon_set set;

    assert_int_equal(polygon_set_allocate(8, 3, 11, &set, &err), ERR_OK);
    memcpy(set.vertices, vertices, sizeof vertices);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    return set;
}

enum { FLOOR, DEGENERATE, WALL }; /* indices in the room's file */

static struct layer *room_layer(const char *id, struct vec3 gravity)
{
    struct polygon_set set = room();
    struct mesh_import import;
    struct layer *layer = layer_create_mesh(id, LAYER_GROUND, &set, gravity, &import, &err);

    if (!layer)
        fail_msg("%s", err.msg);
    assert_null(set.vertices);
    assert_int_equal(import.kept, 2);
    assert_int_equal(import.dropped, 1);
    return layer;
}

static struct world_change change_of(enum world_change_kind kind, const char *layer)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    strcpy(change.locale_id, "a");
    snprintf(change.layer_id, sizeof change.layer_id, "%s", layer);
    return change;
}

static void apply(struct world *world, const struct world_change *change)
{
    if (world_apply(world, change, &err))
        fail_msg("change of kind %d: %s", (int)change->kind, err.msg);
}

static void put_room(struct world *world, const char *id, struct vec3 gravity)
{
    struct world_change change = change_of(WORLD_PUT_LAYER, id);

    change.layer = room_layer(id, gravity);
    apply(world, &change);
}

static void put_field(struct world *world, const char *id)
{
    const struct heightfield_spec spec = {2, 2, 0, 0, 20, 10, TRIANGULATION_ANTI, 0};
    const float heights_m[4] = {-1, -1, -1, -1};
    struct world_change change = change_of(WORLD_PUT_LAYER, id);

    change.layer = layer_create_heightfield(id, heightfield_create(&spec, heights_m, &err), &err);
    assert_non_null(change.layer);
    apply(world, &change);
}

static struct world *make_world(void)
{
    struct world *world = world_create(1, &world_limits_default, NULL, &err);
    struct world_change change = change_of(WORLD_PUT_LOCALE, "");

    assert_non_null(world);
    world_readers_begin(world);
    apply(world, &change);
    return world;
}

/* The locale as it stands, whole and valid; let go of by done(). */
static const struct world_snapshot *pinned;

static const struct locale *look(struct world *world)
{
    pinned = world_pin(world, 0);
    if (!snapshot_validate(pinned, &err))
        fail_msg("%s", err.msg);
    return snapshot_locale(pinned, "a");
}

static void done(struct world *world)
{
    world_unpin(world, 0, pinned);
    world_reader_quiet(world, 0);
}

/* What is under a point, by the polygon's index; -1: nothing. */
static int floor_under(const struct locale *locale, struct vec3 point)
{
    struct layer_choice choice;
    struct contacts contacts;

    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    locale_contact(&choice, point, (struct contact_reach){0, INFINITY}, &contacts);
    if (!contacts.has_floor)
        return -1;
    assert_non_null(contacts.floor.layer->mesh);
    return (int)contacts.floor.polygon;
}

static void a_mesh_is_put_replaced_and_deleted_as_revisions(void **state)
{
    struct world *world = make_world();
    struct world_change change = change_of(WORLD_DELETE_LAYER, "room");
    struct world_stats stats;
    const struct locale *locale;
    uint64_t bytes;

    (void)state;
    put_room(world, "room", down);
    put_room(world, "room", down);
    locale = look(world);
    assert_int_equal(locale->revision, 3);
    assert_int_equal(locale->layer_count, 1);
    assert_true(locale->bounds.max.x == 20 && locale->bounds.max.z == 8);
    assert_int_equal(locale->layers[0]->mesh_stats.polygons, 2);
    bytes = locale->layers[0]->memory_bytes;
    assert_true(bytes > locale->layers[0]->mesh_stats.bytes);
    assert_true(locale->memory_bytes > bytes);
    done(world);
    world_stats(world, &stats);
    assert_int_equal(stats.mesh_layers, 1);
    assert_int_equal(stats.mesh_polygons, 2);
    assert_int_equal(stats.mesh_bytes, bytes);
    apply(world, &change);
    locale = look(world);
    assert_int_equal(locale->revision, 4);
    assert_int_equal(locale->layer_count, 0);
    assert_false(locale->has_bounds);
    done(world);
    world_stats(world, &stats);
    assert_int_equal(stats.mesh_bytes, 0);
    world_destroy(world);
}

static void another_gravity_makes_floors_of_walls_and_keeps_indices(void **state)
{
    struct world *world = make_world();
    struct world_change change = change_of(WORLD_PUT_LOCALE, "");
    const struct locale *locale;
    const struct layer *before;

    (void)state;
    put_room(world, "room", down);
    locale = look(world);
    before = locale->layers[0];
    assert_int_equal(floor_under(locale, (struct vec3){5, 5, 3}), FLOOR);
    change.manifest.gravity = east;
    apply(world, &change);
    done(world);
    locale = look(world);
    assert_true(locale->layers[0] != before);
    assert_int_equal(floor_under(locale, (struct vec3){5, 5, 3}), WALL);
    assert_int_equal(floor_under(locale, (struct vec3){15, 5, 3}), -1);
    done(world);
    change.manifest.gravity = down;
    for (int i = 0; i < 3; i++) { /* the first one turns it back, the others find it fitting */
        apply(world, &change);
        locale = look(world);
        assert_int_equal(floor_under(locale, (struct vec3){15, 5, 3}), FLOOR);
        if (i > 0)
            assert_ptr_equal(locale->layers[0], before);
        before = locale->layers[0];
        done(world);
    }
    world_destroy(world);
}

static void a_prepared_revision_is_taken_where_it_fits(void **state)
{
    struct world *world = make_world();
    struct world_change change = change_of(WORLD_PUT_LOCALE, "");
    const struct locale *locale;
    struct locale *prepared;
    const struct mesh *kept, *late;

    (void)state;
    change.manifest.gravity = east;
    put_room(world, "kept", down);
    put_room(world, "late", down);
    put_field(world, "field");
    locale = look(world);
    assert_true(locale_needs_build(locale, &change.manifest));
    assert_false(locale_needs_build(locale, &locale_manifest_default));
    prepared = locale_next(locale, &change.manifest, NULL, NULL, NULL, &err);
    assert_non_null(prepared);
    kept = locale_layer(prepared, "kept")->mesh;
    late = locale_layer(prepared, "late")->mesh;
    done(world);
    put_room(world, "late", down); /* another writer was faster: this one is built anew */
    change.prepared = prepared;
    apply(world, &change);
    locale = look(world);
    assert_ptr_equal(locale_layer(locale, "kept")->mesh, kept);
    assert_ptr_not_equal(locale_layer(locale, "late")->mesh, late);
    assert_int_equal(floor_under(locale, (struct vec3){5, 5, 3}), WALL);
    assert_int_equal(locale->revision, 6);
    done(world);
    world_destroy(world);
}

static void a_mesh_built_for_an_older_gravity_is_built_anew(void **state)
{
    struct world *world = make_world();
    struct world_change change = change_of(WORLD_PUT_LOCALE, "");
    const struct locale *locale;

    (void)state;
    change.manifest.gravity = east;
    apply(world, &change);
    put_room(world, "room", down);
    locale = look(world);
    assert_int_equal(floor_under(locale, (struct vec3){5, 5, 3}), WALL);
    done(world);
    world_destroy(world);
}

static void polygons_that_leave_nothing_are_refused(void **state)
{
    struct polygon_set set = room(), none = {0};

    (void)state;
    set.polygon_count = 2; /* of the floor and the degenerate one only the latter: */
    set.starts[0] = 4;
    set.starts[1] = set.starts[2] = 7;
    assert_null(layer_create_mesh("a", LAYER_GROUND, &set, down, NULL, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    assert_null(layer_create_mesh("a", LAYER_GROUND, &none, down, NULL, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
}

static void a_world_without_room_refuses_a_mesh_and_stays_as_it_was(void **state)
{
    const struct world_limits limits = {
        .locales_max = 10, .bytes_max = 2000, .queue_max = 10, .retired_max = 10};
    struct world *world = world_create(1, &limits, NULL, &err);
    struct world_change put = change_of(WORLD_PUT_LOCALE, ""),
                        change = change_of(WORLD_PUT_LAYER, "room");

    (void)state;
    world_readers_begin(world);
    apply(world, &put);
    change.layer = room_layer("room", down);
    assert_int_equal(world_apply(world, &change, &err), ERR_WORLD_FULL);
    assert_int_equal(look(world)->layer_count, 0);
    done(world);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mesh_is_put_replaced_and_deleted_as_revisions),
        cmocka_unit_test(another_gravity_makes_floors_of_walls_and_keeps_indices),
        cmocka_unit_test(a_prepared_revision_is_taken_where_it_fits),
        cmocka_unit_test(a_mesh_built_for_an_older_gravity_is_built_anew),
        cmocka_unit_test(polygons_that_leave_nothing_are_refused),
        cmocka_unit_test(a_world_without_room_refuses_a_mesh_and_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
