/*
 * Polygons of layers edited in a world: revisions and events, poses, trees built anew behind the
 * scenes, readers meanwhile, and the store.
 */
#include "world/ask/query.h"
#include "world/world.h"

#include "tests/support/change_make.h"
#include "tests/support/pause.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

static void apply(struct world *world, const struct world_change *change)
{
    if (world_apply(world, change, &err))
        fail_msg("%s", err.msg);
}

/* side · side squares of a metre, at z. */
static struct polygon_set squares(uint32_t side, double x, double y, double z)
{
    struct polygon_set set;
    size_t count = (size_t)side * side;

    assert_int_equal(polygon_set_allocate(4 * count, count, 4 * count, &set, &err), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        double x0 = x + (double)(i % side), y0 = y + (double)(i / side);
        const struct vec3 v[4] = {
            {x0, y0, z}, {x0 + 1, y0, z}, {x0 + 1, y0 + 1, z}, {x0, y0 + 1, z}};

        memcpy(set.vertices + 4 * i, v, sizeof v);
        for (uint32_t k = 0; k < 4; k++)
            set.corners[4 * i + k] = (uint32_t)(4 * i + k);
        set.starts[i + 1] = (uint32_t)(4 * i + 4);
    }
    return set;
}

static void put_squares(struct world *world, const char *id, uint32_t side)
{
    struct world_change change = change_of(WORLD_PUT_LAYER, "a", id);
    struct polygon_set set = squares(side, 0, 0, 0);

    change.layer = layer_create_mesh(id, LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);
    assert_non_null(change.layer);
    apply(world, &change);
}

static struct world *make_world(size_t readers, struct store *store)
{
    struct world *world = world_create(readers, &world_limits_default, store, &err);
    struct world_change locale = change_of(WORLD_PUT_LOCALE, "a", "");

    assert_non_null(world);
    if (world_load(world, &err))
        fail_msg("%s", err.msg);
    if (!store)
        apply(world, &locale);
    return world;
}

/* Removes some numbers and adds a square of a metre at (x, y, z), unless z is NAN. */
static struct world_change edit_of(const char *layer, double x, double y, double z,
                                   const uint32_t *removed, size_t removed_count)
{
    struct world_change change = change_of(WORLD_EDIT_POLYGONS, "a", layer);

    if (!isnan(z))
        change.polygons.add = squares(1, x, y, z);
    change.polygons.removed = malloc((removed_count + 1) * sizeof(uint32_t));
    assert_non_null(change.polygons.removed);
    if (removed_count > 0)
        memcpy(change.polygons.removed, removed, removed_count * sizeof(uint32_t));
    change.polygons.removed_count = removed_count;
    return change;
}

/* By a thread that is reader 0, too. */
static void edit(struct world *world, const char *layer, double x, double y, double z,
                 const uint32_t *removed, size_t removed_count)
{
    struct world_change change = edit_of(layer, x, y, z, removed, removed_count);

    apply(world, &change);
    world_reader_quiet(world, 0);
}

/* The published layer, a reference. */
static struct layer *published(struct world *world, const char *id, uint64_t *revision)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    struct layer *layer = layer_ref((struct layer *)(uintptr_t)locale_layer(locale, id));

    if (revision)
        *revision = locale->revision;
    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
    return layer;
}

/* Height and number of the floor from far above; NAN: none. */
static double floor_at(struct world *world, const char *id, double x, double y, uint32_t *number)
{
    struct layer *layer = published(world, id, NULL);
    struct mesh_contact contact = {.polygon = UINT32_MAX};
    bool is_there = mesh_floor(layer->mesh, (struct vec3){x, y, 1000}, 0, &contact);

    if (number)
        *number = contact.polygon;
    layer_unref(layer);
    return is_there ? contact.point.z : NAN;
}

static uint64_t rebuilds(struct world *world)
{
    struct world_stats stats;

    world_stats(world, &stats);
    return stats.rebuilds;
}

static void an_edit_is_a_revision_and_told_with_its_box(void **state)
{
    struct world *world = make_world(1, NULL);
    struct feed_event events[8];
    struct layer *layer;
    uint64_t revision, after = 0;
    uint32_t number;
    size_t count;
    bool held;

    (void)state;
    world_readers_begin(world);
    put_squares(world, "m", 4);
    edit(world, "m", 1, 2, 7, (const uint32_t[]){0}, 1);
    layer = published(world, "m", &revision);
    assert_int_equal(revision, 3);
    assert_int_equal(polygon_set_count(layer_polygon_set(layer)), 16);
    assert_true(layer_validate(layer, &err));
    layer_unref(layer);
    assert_true(isnan(floor_at(world, "m", 0.5, 0.5, NULL)));
    assert_true(floor_at(world, "m", 1.5, 2.5, &number) == 7);
    assert_int_equal(number, 16);
    count = feed_read(world_feed(world), "a", &after, events, 8, &held);
    assert_int_equal(count, 3);
    assert_string_equal(events[2].source, "polygons");
    assert_string_equal(events[2].layer, "m");
    assert_true(events[2].has_bounds && !events[2].has_rect);
    assert_true(events[2].bounds.min.x == 0 && events[2].bounds.min.y == 0 &&
                events[2].bounds.min.z == 0);
    assert_true(events[2].bounds.max.x == 2 && events[2].bounds.max.y == 3 &&
                events[2].bounds.max.z == 7);
    world_destroy(world);
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    struct world *world = make_world(1, NULL);
    struct world_change none = edit_of("none", 0, 0, 1, NULL, 0);
    struct world_change far = edit_of("m", 0, 0, NAN, (const uint32_t[]){99}, 1);
    struct world_change last = edit_of("m", 0, 0, NAN, (const uint32_t[]){0, 1, 2, 3}, 4);
    struct world_change nan = edit_of("m", 0, 0, 1, NULL, 0);
    struct world_change flat = edit_of("m", 0, 0, 1, NULL, 0);
    uint64_t revision;

    (void)state;
    world_readers_begin(world);
    put_squares(world, "m", 2);
    nan.polygons.add.vertices[1].y = NAN;
    flat.polygons.add.vertices[2] = flat.polygons.add.vertices[3] = flat.polygons.add.vertices[1];
    assert_int_equal(world_apply(world, &none, &err), ERR_LAYER_UNKNOWN);
    assert_int_equal(world_apply(world, &far, &err), ERR_UNPROCESSABLE);
    assert_int_equal(world_apply(world, &last, &err), ERR_UNPROCESSABLE);
    assert_int_equal(world_apply(world, &nan, &err), ERR_BAD_INPUT);
    assert_int_equal(world_apply(world, &flat, &err), ERR_UNPROCESSABLE);
    layer_unref(published(world, "m", &revision));
    assert_int_equal(revision, 2);
    world_destroy(world);
}

static void a_moved_layer_is_edited_where_it_stands(void **state)
{
    struct world *world = make_world(1, NULL);
    struct world_change move = change_of(WORLD_MOVE_LAYER, "a", "m");
    struct feed_event events[8];
    struct layer *layer;
    uint64_t after = 0;
    size_t count;
    bool held;

    (void)state;
    world_readers_begin(world);
    put_squares(world, "m", 3);
    move.pose = (struct pose){.translation = {100, 0, 10}};
    apply(world, &move);
    edit(world, "m", 0, 0, 5, NULL, 0);
    layer = published(world, "m", NULL);
    assert_true(layer->is_moved && layer->motion.pose.translation.x == 100);
    assert_int_equal(layer->transform_seq, 1);
    layer_unref(layer);
    count = feed_read(world_feed(world), "a", &after, events, 8, &held);
    assert_true(events[count - 1].bounds.min.x == 100 && events[count - 1].bounds.max.z == 15);
    world_destroy(world);
}

/* Many edits: the tree is built anew, which nobody can tell from an answer or a revision. */
static void an_unbalanced_tree_is_built_anew_unseen(void **state)
{
    enum { EDITS = 200 };
    struct world *world = make_world(1, NULL);
    struct layer *layer;
    uint64_t revision, sequence;
    uint32_t number;

    (void)state;
    world_readers_begin(world);
    put_squares(world, "m", 20);
    for (int i = 0; i < EDITS; i++)
        edit(world, "m", 7 * i % 19, 5 * i % 17, 1 + 0.05 * i, NULL, 0);
    for (int i = 0; i < 2000 && rebuilds(world) == 0; i++)
        pause_ms(5);
    assert_true(rebuilds(world) > 0);
    sequence = feed_last(world_feed(world));
    assert_int_equal(sequence, 2 + EDITS);
    layer = published(world, "m", &revision);
    assert_int_equal(revision, 2 + EDITS);
    assert_true(layer_validate(layer, &err));
    assert_int_equal(polygon_set_count(layer_polygon_set(layer)), 400 + EDITS);
    layer_unref(layer);
    for (int i = 0; i < EDITS; i++) {
        assert_true(floor_at(world, "m", 7 * i % 19 + 0.5, 5 * i % 17 + 0.5, &number) ==
                    1 + 0.05 * i);
        assert_int_equal(number, 400 + i);
    }
    assert_true(floor_at(world, "m", 19.5, 19.5, &number) == 0);
    assert_int_equal(number, 399);
    world_destroy(world);
}

/* ---- readers meanwhile ----------------------------------------------------------------------- */

enum { READERS = 2, ROOFS = 400, SIDE = 24 };

/* One roof over a place: a revision has it at a height of its own. */
struct way {
    struct world *world;
    uint64_t first; /* revision before the first roof */
    atomic_bool is_over;
};

struct reading {
    struct way *way;
    size_t reader;
    uint64_t reads, faults;
    char fault[160];
};

static void read_once(struct reading *r)
{
    const struct world_snapshot *snapshot = world_pin(r->way->world, r->reader);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    struct layer_choice all = {locale, locale->layers, locale->layer_count};
    struct ray ray = {{10.5, 10.5, 10000}, {0, 0, -1}, INFINITY};
    double want = (double)(locale->revision - r->way->first);
    struct contacts contacts;
    struct locale_hit hit;
    bool is_hit = locale_ray(&all, &ray, RAY_CLOSEST, &hit, NULL);

    locale_contact(&all, (struct vec3){10.5, 10.5, 10000}, (struct contact_reach){0, INFINITY},
                   &contacts);
    r->reads++;
    if (!contacts.has_floor || contacts.floor.point.z != want || !is_hit ||
        hit.at.point.z != want) {
        snprintf(r->fault, sizeof r->fault, "at revision %llu the floor is %g, the ray's %g",
                 (unsigned long long)locale->revision,
                 contacts.has_floor ? contacts.floor.point.z : NAN, is_hit ? hit.at.point.z : NAN);
        r->faults++;
    }
    world_unpin(r->way->world, r->reader, snapshot);
}

static void *read_until_over(void *argument)
{
    struct reading *r = argument;

    while (!atomic_load(&r->way->is_over)) {
        world_reader_quiet(r->way->world, r->reader);
        for (int i = 0; i < 20; i++)
            read_once(r);
    }
    world_reader_gone(r->way->world, r->reader);
    return NULL;
}

static void readers_see_each_revision_whole(void **state)
{
    struct way way = {.world = make_world(READERS, NULL)};
    struct reading readings[READERS];
    pthread_t threads[READERS];

    (void)state;
    put_squares(way.world, "m", SIDE);
    way.first = 2;
    world_readers_begin(way.world);
    for (size_t i = 0; i < READERS; i++) {
        readings[i] = (struct reading){.way = &way, .reader = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_until_over, &readings[i]), 0);
    }
    for (uint32_t k = 1; k <= ROOFS; k++) { /* the one before goes as the next one comes */
        uint32_t before = SIDE * SIDE + k - 2;
        struct world_change change = edit_of("m", 10, 10, k, &before, k > 1);

        apply(way.world, &change);
    }
    atomic_store(&way.is_over, true);
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        if (readings[i].faults != 0)
            fail_msg("reader %zu: %llu faults in %llu reads: %s", i,
                     (unsigned long long)readings[i].faults, (unsigned long long)readings[i].reads,
                     readings[i].fault);
        assert_true(readings[i].reads > 0);
    }
    assert_true(rebuilds(way.world) > 0);
    world_destroy(way.world);
}

/* ---- the store ------------------------------------------------------------------------------- */

struct place {
    char directory[64];
    struct store *store;
    struct world *world;
};

static void open_place(struct place *p)
{
    struct store_options options = {.directory = p->directory, .log_rows_max = 20};

    p->store = store_open(&options, &err);
    if (!p->store)
        fail_msg("%s", err.msg);
    p->world = make_world(1, p->store);
    world_readers_begin(p->world);
}

static void close_place(struct place *p)
{
    world_destroy(p->world);
    store_close(p->store);
}

static void copy_place(const struct place *p, struct place *copy)
{
    char command[512];

    strcpy(copy->directory, "/tmp/kota-polygons-XXXXXX");
    assert_non_null(mkdtemp(copy->directory));
    /* in this order: what the database names is there */
    snprintf(command, sizeof command,
             "cp %s/kota.db* %s && { cp -r %s/meshes %s 2>/dev/null; test -d %s/meshes; }",
             p->directory, copy->directory, p->directory, copy->directory, copy->directory);
    assert_int_equal(system(command), 0);
}

static void remove_place(const struct place *p)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", p->directory);
    assert_int_equal(system(command), 0);
}

static void say(void *context, const char *message)
{
    (void)context;
    print_message("%s\n", message);
}

/* As `kotad --check`; how many edits of polygons its files have not. */
static uint64_t check_place(const struct place *p)
{
    const struct store_options options = {.directory = p->directory};
    struct store *store = store_open(&options, &err);
    struct store_behind behind;

    assert_non_null(store);
    assert_int_equal(store_check(store, say, NULL, &err), 0);
    store_behind(store, &behind);
    store_close(store);
    return behind.polygon_edits;
}

static void expect_roofs(struct place *p, uint32_t last, uint64_t revision)
{
    struct layer *layer;
    uint64_t now;
    uint32_t number;

    layer = published(p->world, "m", &now);
    assert_int_equal(now, revision);
    assert_true(layer_validate(layer, &err));
    assert_int_equal(polygon_set_count(layer_polygon_set(layer)), 100 + 1);
    layer_unref(layer);
    assert_true(floor_at(p->world, "m", 3.5, 3.5, &number) == last);
    assert_int_equal(number, 99 + last);
    assert_true(floor_at(p->world, "m", 7.5, 3.5, &number) == 0);
    assert_int_equal(number, 37);
}

/* The files as they are when the process is killed after an answer: a copy of them at that time. */
static void what_was_answered_is_there_after_a_kill(void **state)
{
    struct place p = {.directory = "/tmp/kota-polygons-XXXXXX"}, killed = {.store = NULL};
    struct world_change locale = change_of(WORLD_PUT_LOCALE, "a", "");
    uint32_t k;

    (void)state;
    assert_non_null(mkdtemp(p.directory));
    open_place(&p);
    apply(p.world, &locale);
    put_squares(p.world, "m", 10);
    for (k = 1; k <= 30; k++) {
        uint32_t before = 100 + k - 2;

        edit(p.world, "m", 3, 3, k, &before, k > 1);
        if (k % 10 == 0) { /* in the log alone, or in part */
            copy_place(&p, &killed);
            check_place(&killed);
            open_place(&killed);
            expect_roofs(&killed, k, 2 + k);
            edit(killed.world, "m", 7, 3, -5, NULL, 0); /* and goes on */
            close_place(&killed);
            open_place(&killed);
            assert_true(floor_at(killed.world, "m", 3.5, 3.5, NULL) == k);
            close_place(&killed);
            remove_place(&killed);
        }
    }
    close_place(&p);
    assert_int_equal(check_place(&p), 0); /* after a clean end the files hold it */
    open_place(&p);
    expect_roofs(&p, 30, 32);
    close_place(&p);
    remove_place(&p);
}

/* An image that was written in between holds some edits, the log the others. */
static void files_in_between_and_the_log_together_are_the_layer(void **state)
{
    struct place p = {.directory = "/tmp/kota-polygons-XXXXXX"}, killed = {.store = NULL};
    struct world_change locale = change_of(WORLD_PUT_LOCALE, "a", "");

    (void)state;
    assert_non_null(mkdtemp(p.directory));
    open_place(&p);
    apply(p.world, &locale);
    put_squares(p.world, "m", 10);
    for (uint32_t k = 1; k <= 150; k++) {
        uint32_t before = 100 + k - 2;

        edit(p.world, "m", 3, 3, k, &before, k > 1);
        if (k == 140)
            for (int i = 0; i < 2000 && rebuilds(p.world) == 0; i++)
                pause_ms(5);
    }
    assert_true(rebuilds(p.world) > 0);
    uint32_t last = 150;
    uint64_t behind = 0;

    for (copy_place(&p, &killed); (behind = check_place(&killed)) == 0; copy_place(&p, &killed)) {
        uint32_t before = 100 + last - 1; /* an image that holds them all was faster: one more */

        remove_place(&killed);
        assert_true(last < 250);
        edit(p.world, "m", 3, 3, ++last, &before, 1);
    }
    assert_in_range(behind, 1, last - 1);
    open_place(&killed);
    expect_roofs(&killed, last, last + 2);
    close_place(&killed);
    remove_place(&killed);
    close_place(&p);
    remove_place(&p);
}

static void another_gravity_and_a_new_file_let_go_of_the_log(void **state)
{
    struct place p = {.directory = "/tmp/kota-polygons-XXXXXX"}, killed = {.store = NULL};
    struct world_change locale = change_of(WORLD_PUT_LOCALE, "a", "");

    (void)state;
    assert_non_null(mkdtemp(p.directory));
    open_place(&p);
    apply(p.world, &locale);
    put_squares(p.world, "m", 10);
    edit(p.world, "m", 3, 3, 1, NULL, 0);
    locale.manifest.gravity = (struct vec3){0, 0, 1};
    apply(p.world, &locale);
    edit(p.world, "m", 3, 3, -2, NULL, 0);
    copy_place(&p, &killed);
    open_place(&killed);
    struct layer *layer = published(killed.world, "m", NULL);

    assert_int_equal(polygon_set_count(layer_polygon_set(layer)), 102);
    layer_unref(layer);
    close_place(&killed);
    remove_place(&killed);
    locale.manifest.gravity = (struct vec3){0, 0, -1};
    apply(p.world, &locale);
    put_squares(p.world, "m", 10);
    close_place(&p);
    assert_int_equal(check_place(&p), 0);
    open_place(&p);
    assert_true(floor_at(p.world, "m", 3.5, 3.5, NULL) == 0);
    close_place(&p);
    remove_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_is_a_revision_and_told_with_its_box),
        cmocka_unit_test(what_cannot_be_is_refused_and_changes_nothing),
        cmocka_unit_test(a_moved_layer_is_edited_where_it_stands),
        cmocka_unit_test(an_unbalanced_tree_is_built_anew_unseen),
        cmocka_unit_test(readers_see_each_revision_whole),
        cmocka_unit_test(what_was_answered_is_there_after_a_kill),
        cmocka_unit_test(files_in_between_and_the_log_together_are_the_layer),
        cmocka_unit_test(another_gravity_and_a_new_file_let_go_of_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
