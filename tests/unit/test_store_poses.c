/*
 * Poses of layers that were moved: they come back with their layers, and go with them.
 */
#include "store/store.h"

#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct place {
    char folder[256];
    struct store *store;
    struct mesh *mesh;
    struct polygon_set polygons;
    uint64_t sequence;
    struct err err;
};

static void log_change(struct place *p, uint64_t revision)
{
    struct store_edit edit = {
        .locale = "town", .source = "put", .revision = revision, .sequence = ++p->sequence};

    store_must(store_log(p->store, &edit, &p->err), &p->err);
}

/* In an open transaction: the locale, and a mesh that stands at (x, 2, 3). */
static void put_moved_deck(struct place *p, uint64_t revision, double x)
{
    struct store_locale locale = store_test_locale("town", revision);
    struct store_layer deck = {.locale = "town",
                               .id = "deck",
                               .kind = STORE_MESH,
                               .gravity = {0, 0, -1},
                               .mesh = p->mesh,
                               .polygons = &p->polygons};
    struct store_pose pose = {.translation = {x, 2, 3}, .yaw_deg = 90, .transform_seq = 7};

    store_must(store_put_locale(p->store, &locale, &p->err), &p->err);
    log_change(p, revision);
    store_must(store_put_layer(p->store, &deck, &p->err), &p->err);
    store_must(store_put_pose(p->store, "town", "deck", &pose, &p->err), &p->err);
    store_must(store_put_transform_seq(p->store, "town", 9, &p->err), &p->err);
}

static void open_place(struct place *p)
{
    memset(p, 0, sizeof *p);
    store_folder_make(p->folder);
    p->store = store_must_open(p->folder);
    p->mesh = store_test_mesh(1, &p->polygons);
    store_must(store_save_mesh(p->store, p->mesh, &p->polygons, &p->err), &p->err);
    store_must(store_begin(p->store, &p->err), &p->err);
    put_moved_deck(p, 1, 1);
    store_must(store_commit(p->store, &p->err), &p->err);
}

static void close_place(struct place *p)
{
    store_close(p->store);
    store_folder_remove(p->folder);
    mesh_unref(p->mesh);
    polygon_set_free(&p->polygons);
}

static struct loaded *restart(struct place *p)
{
    struct loaded *loaded;

    store_close(p->store);
    p->store = store_must_open(p->folder);
    loaded = loaded_make(p->store);
    loaded_expect_whole(loaded);
    return loaded;
}

static void a_pose_comes_back_with_its_layer(void **state)
{
    struct place p;
    struct loaded *loaded;
    const struct store_loaded_layer *deck;

    (void)state;
    open_place(&p);
    loaded = restart(&p);
    deck = loaded_layer(loaded, "town", "deck");
    assert_true(deck->has_pose);
    assert_true(deck->pose.translation[0] == 1 && deck->pose.translation[2] == 3);
    assert_true(deck->pose.yaw_deg == 90);
    assert_int_equal(deck->pose.transform_seq, 7);
    assert_int_equal(loaded_locale(loaded, "town")->transform_seq, 9);
    loaded_free(loaded);
    close_place(&p);
}

static void a_rotation_comes_back_to_the_bit(void **state)
{
    const struct store_pose pose = {
        .translation = {4, 5, 6}, .rotation = {0.1, -0.7, 0.1, 0.7000000001}, .transform_seq = 8};
    struct place p;
    struct loaded *loaded;
    const struct store_loaded_layer *deck;

    (void)state;
    open_place(&p);
    store_must(store_begin(p.store, &p.err), &p.err);
    store_must(store_put_pose(p.store, "town", "deck", &pose, &p.err), &p.err);
    store_must(store_commit(p.store, &p.err), &p.err);
    loaded = restart(&p);
    deck = loaded_layer(loaded, "town", "deck");
    assert_true(deck->has_pose);
    assert_memory_equal(&deck->pose, &pose, sizeof pose);
    loaded_free(loaded);
    close_place(&p);
}

/* The row that counts the locale's moves belongs to no layer. */
static void a_locale_that_comes_again_has_not_moved(void **state)
{
    struct place p;
    struct store_locale locale = store_test_locale("town", 2);
    struct loaded *loaded;

    (void)state;
    open_place(&p);
    store_must(store_begin(p.store, &p.err), &p.err);
    locale.is_deleted = true;
    store_must(store_put_locale(p.store, &locale, &p.err), &p.err);
    log_change(&p, 2);
    store_must(store_commit(p.store, &p.err), &p.err);
    loaded_free(restart(&p)); /* no row is left without its locale */
    store_must(store_begin(p.store, &p.err), &p.err);
    locale = store_test_locale("town", 3);
    store_must(store_put_locale(p.store, &locale, &p.err), &p.err);
    log_change(&p, 3);
    store_must(store_commit(p.store, &p.err), &p.err);
    loaded = restart(&p);
    assert_int_equal(loaded_locale(loaded, "town")->transform_seq, 0);
    loaded_free(loaded);
    close_place(&p);
}

static void a_layer_that_goes_takes_its_pose_along(void **state)
{
    struct place p;
    struct store_layer deck = {.locale = "town", .id = "deck", .kind = STORE_MESH};
    struct loaded *loaded;

    (void)state;
    open_place(&p);
    store_must(store_begin(p.store, &p.err), &p.err);
    store_must(store_drop_layer(p.store, "town", "deck", &p.err), &p.err);
    log_change(&p, 2);
    store_must(store_commit(p.store, &p.err), &p.err);
    loaded_free(restart(&p));
    store_must(store_begin(p.store, &p.err), &p.err);
    deck.mesh = p.mesh;
    deck.polygons = &p.polygons;
    store_must(store_put_layer(p.store, &deck, &p.err), &p.err);
    log_change(&p, 3);
    store_must(store_commit(p.store, &p.err), &p.err);
    loaded = restart(&p);
    assert_false(loaded_layer(loaded, "town", "deck")->has_pose);
    /* the locale's count goes on: no number comes twice */
    assert_int_equal(loaded_locale(loaded, "town")->transform_seq, 9);
    loaded_free(loaded);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pose_comes_back_with_its_layer),
        cmocka_unit_test(a_rotation_comes_back_to_the_bit),
        cmocka_unit_test(a_locale_that_comes_again_has_not_moved),
        cmocka_unit_test(a_layer_that_goes_takes_its_pose_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
