/*
 * The world: changes, revisions, and readers that never see anything but a whole snapshot.
 */
#include "world/world.h"
#include "tests/support/pause.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 5, CHANGES = 1000, READERS = 2 };

/* A field whose samples all have one height. */
static struct heightfield *flat(float height_m)
{
    struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float heights_m[SIDE * SIDE];
    struct err err;
    struct heightfield *field;

    for (size_t i = 0; i < SIDE * SIDE; i++)
        heights_m[i] = height_m;
    field = heightfield_create(&spec, heights_m, &err);
    assert_non_null(field);
    return field;
}

static struct world_change change_of(enum world_change_kind kind, const char *locale,
                                     const char *layer)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    snprintf(change.locale_id, sizeof change.locale_id, "%s", locale);
    snprintf(change.layer_id, sizeof change.layer_id, "%s", layer);
    return change;
}

static enum err_code put_locale(struct world *world, const char *locale, struct err *err)
{
    struct world_change change = change_of(WORLD_PUT_LOCALE, locale, "");

    return world_apply(world, &change, err);
}

static enum err_code put_layer(struct world *world, const char *locale, const char *layer,
                               float height_m, struct err *err)
{
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);

    change.layer = layer_create_heightfield(layer, flat(height_m), err);
    assert_non_null(change.layer);
    return world_apply(world, &change, err);
}

static enum err_code delete (struct world *world, const char *locale, const char *layer,
                             struct err *err) {
    struct world_change change = change_of(layer[0] ? WORLD_DELETE_LAYER : WORLD_DELETE_LOCALE,
                                           locale, layer);

    return world_apply(world, &change, err);
}

static struct world *make_world(size_t readers, const struct world_limits *limits)
{
    struct err err;
    struct world *world = world_create(readers, limits, NULL, &err);

    assert_non_null(world);
    return world;
}

/* Every change is followed by a look at the whole snapshot. */
static void assert_valid(struct world *world)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    struct err err = {.code = ERR_OK};

    if (!snapshot_validate(snapshot, &err))
        fail_msg("snapshot %llu: %s", (unsigned long long)snapshot->serial, err.msg);
    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
}

static uint64_t revision_of(struct world *world, const char *locale)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    const struct locale *found = snapshot_locale(snapshot, locale);
    uint64_t revision = found ? found->revision : 0;

    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
    return revision;
}

static void each_change_adds_one_to_the_revision(void **state)
{
    struct world *world = make_world(1, &world_limits_default);
    struct err err;

    (void)state;
    world_readers_begin(world);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 1);
    assert_int_equal(put_layer(world, "a", "ground", 3, &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 2);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "ground", 4, &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "other", 4, &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 5);
    assert_valid(world);
    assert_int_equal(delete (world, "a", "other", &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 6);
    assert_int_equal(delete (world, "a", "", &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 0);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(revision_of(world, "a"), 8); /* the deletion was 7: no revision comes twice */
    assert_valid(world);
    world_destroy(world);
}

static void what_is_not_there_is_refused_and_changes_nothing(void **state)
{
    struct world *world = make_world(1, &world_limits_default);
    struct err err;

    (void)state;
    assert_int_equal(put_layer(world, "none", "ground", 1, &err), ERR_LOCALE_UNKNOWN);
    assert_non_null(strstr(err.msg, "none"));
    assert_int_equal(delete (world, "none", "", &err), ERR_LOCALE_UNKNOWN);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(delete (world, "a", "ground", &err), ERR_LAYER_UNKNOWN);
    assert_non_null(strstr(err.msg, "ground"));
    assert_int_equal(revision_of(world, "a"), 1);
    assert_valid(world);
    world_destroy(world);
}

static void locales_stand_in_the_order_of_their_ids(void **state)
{
    static const char *const ids[] = {"m", "b", "z", "a", "Z", "k", "0", "_", "-"};
    struct world *world = make_world(1, &world_limits_default);
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(put_locale(world, ids[i], &err), ERR_OK);
        assert_valid(world);
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(revision_of(world, ids[i]), 1);
        assert_int_equal(delete (world, ids[i], "", &err), ERR_OK);
        assert_valid(world);
    }
    world_destroy(world);
}

static void another_triangulation_wraps_every_field(void **state)
{
    struct world *world = make_world(1, &world_limits_default);
    struct world_change change = change_of(WORLD_PUT_LOCALE, "a", "");
    const struct world_snapshot *snapshot;
    struct err err;

    (void)state;
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "ground", 1, &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "roof", 2, &err), ERR_OK);
    change.manifest.triangulation = TRIANGULATION_ALTERNATING;
    assert_int_equal(world_apply(world, &change, &err), ERR_OK);
    assert_valid(world);
    /* what comes later is split the locale's way, too */
    assert_int_equal(put_layer(world, "a", "late", 3, &err), ERR_OK);
    assert_valid(world);
    snapshot = world_pin(world, 0);
    assert_int_equal(snapshot_locale(snapshot, "a")->layer_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            heightfield_spec(snapshot_locale(snapshot, "a")->layers[i]->field)->triangulation,
            TRIANGULATION_ALTERNATING);
    world_unpin(world, 0, snapshot);
    world_destroy(world);
}

static void limits_refuse_and_name_themselves(void **state)
{
    struct world_limits limits = world_limits_default;
    const struct world_snapshot *snapshot;
    struct world *world;
    struct err err;

    (void)state;
    limits.locales_max = 2;
    world = make_world(1, &limits);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(put_locale(world, "b", &err), ERR_OK);
    assert_int_equal(put_locale(world, "c", &err), ERR_WORLD_FULL);
    assert_true(err.has_limit && err.limit == 2 && err.got == 3);
    assert_int_equal(put_locale(world, "b", &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "ground", 1, &err), ERR_OK);
    snapshot = world_pin(world, 0);
    limits.bytes_max = snapshot->memory_bytes + 100;
    world_unpin(world, 0, snapshot);
    world_set_limits(world, &limits);
    assert_int_equal(put_layer(world, "a", "more", 1, &err), ERR_WORLD_FULL);
    assert_true(err.has_limit && err.limit == limits.bytes_max && err.got > limits.bytes_max);
    assert_int_equal(put_layer(world, "a", "ground", 2, &err), ERR_OK);
    assert_valid(world);
    world_destroy(world);
}

/* A world may hold more than it takes: it was loaded under other limits. */
static void a_world_beyond_its_limits_may_still_shrink(void **state)
{
    struct world_limits limits = world_limits_default;
    struct world *world;
    struct err err;

    (void)state;
    world = make_world(1, &limits);
    for (const char *id = "a\0b\0c\0"; *id; id += 2) {
        assert_int_equal(put_locale(world, id, &err), ERR_OK);
        assert_int_equal(put_layer(world, id, "ground", 1, &err), ERR_OK);
    }
    limits.locales_max = 1;
    limits.bytes_max = 1;
    world_set_limits(world, &limits);
    assert_int_equal(put_layer(world, "a", "more", 1, &err), ERR_WORLD_FULL);
    assert_int_equal(delete (world, "a", "ground", &err), ERR_OK);
    assert_int_equal(delete (world, "b", "", &err), ERR_OK);
    assert_valid(world);
    world_destroy(world);
}

static void a_pinned_snapshot_stays_as_it_was(void **state)
{
    struct world *world = make_world(2, &world_limits_default);
    const struct world_snapshot *old;
    struct box3 box;
    struct err err;

    (void)state;
    world_readers_begin(world);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "ground", 7, &err), ERR_OK);
    old = world_pin(world, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(put_layer(world, "a", "ground", (float)i, &err), ERR_OK);
        world_reader_quiet(world, 0);
        world_reader_quiet(world, 1);
    }
    assert_int_equal(delete (world, "a", "", &err), ERR_OK);
    assert_true(snapshot_validate(old, &err));
    assert_int_equal(snapshot_locale(old, "a")->revision, 2);
    assert_true(heightfield_bounds(snapshot_locale(old, "a")->layers[0]->field, &box));
    assert_true(box.min.z == 7 && box.max.z == 7);
    world_unpin(world, 1, old);
    world_destroy(world);
}

/* ---- readers on threads, while the writer publishes ------------------------------------------ */

struct reading {
    struct world *world;
    size_t reader;
    atomic_bool *is_over;
    uint64_t reads, faults, last_revision;
};

/* Each layer of a snapshot must have the height that the first one has: whole or not at all. */
static bool is_whole(const struct locale *locale)
{
    for (size_t i = 0; i < locale->layer_count; i++) {
        struct ground_point ground;

        heightfield_height(locale->layers[i]->field, (struct vec2){1.25, 2.5},
                           INTERPOLATION_TRIANGLE, &ground);
        if (ground.status != GROUND_OK || ground.height_m != floor(ground.height_m))
            return false;
    }
    return true;
}

static void *read_until_over(void *argument)
{
    struct reading *r = argument;

    while (!atomic_load(r->is_over)) {
        const struct world_snapshot *held[3];

        world_reader_quiet(r->world, r->reader);
        for (size_t i = 0; i < 3; i++) {
            const struct locale *locale;

            held[i] = world_pin(r->world, r->reader);
            locale = snapshot_locale(held[i], "a");
            r->reads++;
            r->faults += !locale || !is_whole(locale) || locale->revision < r->last_revision;
            r->last_revision = locale ? locale->revision : 0;
        }
        for (size_t i = 0; i < 3; i++)
            world_unpin(r->world, r->reader, held[2 - i]);
    }
    world_reader_gone(r->world, r->reader);
    return NULL;
}

static void readers_see_whole_snapshots_while_the_writer_publishes(void **state)
{
    struct world_limits limits = world_limits_default;
    struct reading readings[READERS];
    pthread_t threads[READERS];
    atomic_bool is_over = false;
    struct world *world;
    struct world_stats stats;
    struct err err;

    (void)state;
    limits.retired_max = 4; /* so that the writer is held back, too */
    world = make_world(READERS, &limits);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    assert_int_equal(put_layer(world, "a", "ground", 0, &err), ERR_OK);
    world_readers_begin(world);
    for (size_t i = 0; i < READERS; i++) {
        readings[i] = (struct reading){world, i, &is_over, 0, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_until_over, &readings[i]), 0);
    }
    for (int i = 0; i < CHANGES; i++) {
        enum err_code code = i % 50 == 49 ? put_locale(world, "a", &err)
                                          : put_layer(world, "a", "ground", (float)i, &err);

        if (code != ERR_OK)
            fail_msg("change %d: %s", i, err.msg);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        if (readings[i].faults != 0 || readings[i].reads == 0)
            fail_msg("reader %zu: %llu faults in %llu reads", i,
                     (unsigned long long)readings[i].faults, (unsigned long long)readings[i].reads);
    }
    world_stats(world, &stats);
    assert_int_equal(stats.publications, CHANGES + 2);
    assert_true(stats.retired <= 4);
    world_destroy(world);
}

static void old_snapshots_are_freed_once_readers_have_passed(void **state)
{
    struct world *world = make_world(1, &world_limits_default);
    struct world_stats stats = {.publications = 0};
    struct err err;

    (void)state;
    world_readers_begin(world);
    world_reader_quiet(world, 0);
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(put_layer(world, "a", "ground", (float)i, &err), ERR_OK);
    world_stats(world, &stats);
    assert_int_equal(stats.reclaimed, 0); /* the reader has not passed since */
    for (int i = 0; i < 5000 && stats.reclaimed < 11; i++) {
        world_reader_quiet(world, 0);
        pause_ms(2);
        world_stats(world, &stats);
    }
    assert_int_equal(stats.reclaimed, 11);
    world_destroy(world);
}

static void count_done(void *context, const struct world_outcome *outcome)
{
    atomic_fetch_add((atomic_int *)context, outcome->code == ERR_OK ? 1 : 1000000);
}

static void what_was_submitted_is_done_before_the_end(void **state)
{
    struct world *world = make_world(1, &world_limits_default);
    atomic_int done = 0;
    struct err err;

    (void)state;
    assert_int_equal(put_locale(world, "a", &err), ERR_OK);
    for (int i = 0; i < 200; i++) {
        struct world_change change = change_of(WORLD_PUT_LAYER, "a", "ground");

        change.layer = layer_create_heightfield(change.layer_id, flat((float)i), &err);
        assert_non_null(change.layer);
        change.done = count_done;
        change.context = &done;
        assert_int_equal(world_submit(world, &change, &err), ERR_OK);
    }
    world_destroy(world);
    assert_int_equal(atomic_load(&done), 200);
}

static void ids_are_letters_digits_dash_and_underscore(void **state)
{
    static const char *const good[] = {
        "a", "A-z_09", "-", "_",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    static const char *const bad[] = {
        "",    " ",   "a b",
        "a/b", "a.b", "\xc3\xa9",
        "a\n", "%41", "01234567890123456789012345678901234567890123456789012345678901234"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!world_id_is_valid(good[i], strlen(good[i])))
            fail_msg("refused: \"%s\"", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (world_id_is_valid(bad[i], strlen(bad[i])))
            fail_msg("accepted: \"%s\"", bad[i]);
    assert_false(world_id_is_valid("a\0b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_adds_one_to_the_revision),
        cmocka_unit_test(what_is_not_there_is_refused_and_changes_nothing),
        cmocka_unit_test(locales_stand_in_the_order_of_their_ids),
        cmocka_unit_test(another_triangulation_wraps_every_field),
        cmocka_unit_test(limits_refuse_and_name_themselves),
        cmocka_unit_test(a_world_beyond_its_limits_may_still_shrink),
        cmocka_unit_test(a_pinned_snapshot_stays_as_it_was),
        cmocka_unit_test(readers_see_whole_snapshots_while_the_writer_publishes),
        cmocka_unit_test(old_snapshots_are_freed_once_readers_have_passed),
        cmocka_unit_test(what_was_submitted_is_done_before_the_end),
        cmocka_unit_test(ids_are_letters_digits_dash_and_underscore),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
