/*
 * A world and its store: what was acknowledged is there after the end of the process, under the
 * same revisions, and a locale that is damaged is named and left out.
 */
#include "world/world.h"

#include "tests/support/change_make.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/pause.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

enum { COLS = 530, ROWS = 300, SAMPLES = COLS * ROWS };

struct ground {
    char directory[64];
    const char *vfs; /* NULL: SQLite's own */
    struct store *store;
    struct world *world;
};

static void start(struct ground *g)
{
    struct world_limits limits = world_limits_default;
    struct store_options options = {.directory = g->directory, .vfs = g->vfs};
    struct err err = {.code = ERR_OK};

    g->store = store_open(&options, &err);
    if (!g->store)
        fail_msg("%s", err.msg);
    limits.queue_max = 30000;
    g->world = world_create(1, &limits, g->store, &err);
    assert_non_null(g->world);
    if (world_load(g->world, &err))
        fail_msg("%s", err.msg);
    world_readers_begin(g->world);
}

static void stop(struct ground *g)
{
    world_destroy(g->world);
    store_close(g->store);
}

static int setup(void **state)
{
    struct ground *g = calloc(1, sizeof *g);

    strcpy(g->directory, "/tmp/kota-world-store-XXXXXX");
    if (!mkdtemp(g->directory))
        return -1;
    start(g);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct ground *g = *state;
    char command[128];

    stop(g);
    snprintf(command, sizeof command, "rm -rf %s", g->directory);
    free(g);
    return system(command);
}

static void restart(struct ground *g)
{
    stop(g);
    start(g);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void apply(struct ground *g, struct world_change change)
{
    struct err err = {.code = ERR_OK};

    if (world_apply(g->world, &change, &err))
        fail_msg("%s", err.msg);
}

static void put_field(struct ground *g, const char *locale, const char *layer, const float *heights)
{
    struct heightfield_spec spec = {COLS, ROWS, 5, -7, 2, 3, TRIANGULATION_ANTI, 0};
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    struct err err;

    change.layer = layer_create_heightfield(layer, heightfield_create(&spec, heights, &err), &err);
    assert_non_null(change.layer);
    apply(g, change);
}

/* A square roof of two triangles at a height. */
static void put_mesh(struct ground *g, const char *locale, const char *layer, double z)
{
    static const uint32_t corners[6] = {0, 1, 2, 0, 2, 3}, starts[3] = {0, 3, 6};
    const struct vec3 square[4] = {{0, 0, z}, {10, 0, z}, {10, 10, z}, {0, 10, z}};

    apply(g, change_of_mesh(locale, layer, square, 4, corners, starts, (struct mesh_space){0}));
}

static void edit(struct ground *g, const char *locale, struct sample_rect rect, float *samples,
                 float height)
{
    struct world_change change = change_of(WORLD_EDIT, locale, "ground");
    size_t count = (size_t)rect.cols * rect.rows;
    float *heights = malloc(count * sizeof *heights);

    for (size_t i = 0; i < count; i++) {
        heights[i] = height;
        samples[(rect.row + i / rect.cols) * COLS + rect.column + i % rect.cols] = height;
    }
    change.edit = (struct edit){.kind = EDIT_SET, .rect = rect, .heights_m = heights};
    apply(g, change);
}

/* ---- what is there --------------------------------------------------------------------------- */

static const struct locale *look(struct ground *g, const char *id,
                                 const struct world_snapshot **pinned)
{
    *pinned = world_pin(g->world, 0);
    return snapshot_locale(*pinned, id);
}

static void assert_ground(struct ground *g, const char *id, uint64_t revision, const float *samples)
{
    const struct world_snapshot *pinned;
    const struct locale *locale = look(g, id, &pinned);
    const struct heightfield *field;
    struct err err;

    assert_non_null(locale);
    assert_int_equal(locale->revision, revision);
    if (!locale_validate(locale, &err))
        fail_msg("%s", err.msg);
    field = locale_layer(locale, "ground")->field;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        float is = heightfield_sample(field, i % COLS, i / COLS);

        if (memcmp(&is, &samples[i], sizeof is) != 0)
            fail_msg("sample %u, %u is %g, not %g", i % COLS, i / COLS, (double)is,
                     (double)samples[i]);
    }
    world_unpin(g->world, 0, pinned);
}

static void edits_survive_many_restarts(void **state)
{
    struct ground *g = *state;
    float *samples = calloc(SAMPLES, sizeof *samples);
    struct random r = {7};
    uint64_t revision = 2;

    apply(g, change_of(WORLD_PUT_LOCALE, "a", ""));
    put_field(g, "a", "ground", samples);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 40; i++) {
            struct sample_rect rect = {0, 0, 1 + random_below(&r, 30), 1 + random_below(&r, 30)};

            rect.column = random_below(&r, COLS - rect.cols + 1);
            rect.row = random_below(&r, ROWS - rect.rows + 1);
            edit(g, "a", rect, samples,
                 random_below(&r, 10) == 0 ? __builtin_nanf("") : (float)random_in(&r, -50, 50));
            revision++;
        }
        if (round % 2 == 0)
            pause_ms(300); /* some are written to their tiles, some stay in the log */
        assert_ground(g, "a", revision, samples);
        restart(g);
        assert_ground(g, "a", revision, samples);
    }
    free(samples);
}

static void locales_and_layers_come_back_as_they_were(void **state)
{
    struct ground *g = *state;
    float *samples = calloc(SAMPLES, sizeof *samples);
    struct world_change manifest = change_of(WORLD_PUT_LOCALE, "m", "");
    struct world_change utm = change_of(WORLD_PUT_LOCALE, "utm", "");
    const struct world_snapshot *pinned;
    const struct locale *locale;
    struct feed_event events[4];
    uint64_t after;
    bool held;

    strcpy(manifest.manifest.title, "Höhen");
    manifest.manifest.triangulation = TRIANGULATION_ALTERNATING;
    manifest.manifest.placement.translation = (struct vec3){1e6, 0.1, -3};
    manifest.manifest.open_sky = false;
    manifest.manifest.has_geo = true;
    manifest.manifest.geo_lat_deg = 42.5;
    apply(g, manifest);
    utm.manifest.crs = 25832;
    apply(g, utm);
    put_mesh(g, "m", "roof", 20);
    put_mesh(g, "m", "attic", 30);
    apply(g, change_of(WORLD_PUT_LOCALE, "gone", ""));
    apply(g, change_of(WORLD_DELETE_LOCALE, "gone", ""));
    apply(g, change_of(WORLD_DELETE_LAYER, "m", "roof"));
    put_mesh(g, "m", "roof", 21);
    restart(g);

    locale = look(g, "m", &pinned);
    assert_non_null(locale);
    assert_int_equal(locale->revision, 5);
    assert_memory_equal(&locale->manifest, &manifest.manifest, sizeof locale->manifest);
    assert_int_equal(locale->layer_count, 2);
    assert_string_equal(locale->layers[0]->id, "attic");
    assert_string_equal(locale->layers[1]->id, "roof");
    assert_int_equal(locale->layers[1]->role, LAYER_CEILING);
    assert_true(mesh_bounds(locale->layers[1]->mesh).max.z == 21);
    assert_null(snapshot_locale(pinned, "gone"));
    assert_memory_equal(&snapshot_locale(pinned, "utm")->manifest, &utm.manifest,
                        sizeof utm.manifest);
    world_unpin(g->world, 0, pinned);
    assert_true(world_is_stored(g->world, "gone"));
    assert_false(world_is_stored(g->world, "never"));

    assert_true(feed_find(world_feed(g->world), "m", 3, 5, &after));
    assert_int_equal(feed_read(world_feed(g->world), "m", &after, events, 4, &held), 2);
    assert_int_equal(events[0].revision, 4);
    apply(g, change_of(WORLD_PUT_LOCALE, "gone", ""));
    locale = look(g, "gone", &pinned);
    assert_int_equal(locale->revision, 3);
    world_unpin(g->world, 0, pinned);

    /* another gravity builds other meshes of the same polygons */
    manifest.manifest.gravity = (struct vec3){0, -1, 0};
    apply(g, manifest);
    restart(g);
    locale = look(g, "m", &pinned);
    assert_int_equal(locale->revision, 6);
    assert_true(locale->layers[0]->gravity.y == -1);
    world_unpin(g->world, 0, pinned);
    free(samples);
}

/* ---- changes that share a commit ------------------------------------------------------------- */

/* Holds the writer between two batches: what is submitted meanwhile is one batch. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_held, is_open;
};

static void hold(void *context, const struct world_outcome *outcome)
{
    struct gate *gate = context;

    (void)outcome;
    pthread_mutex_lock(&gate->mutex);
    gate->is_held = true;
    pthread_cond_broadcast(&gate->cond);
    while (!gate->is_open)
        pthread_cond_wait(&gate->cond, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void keep_code(void *context, const struct world_outcome *outcome)
{
    *(enum err_code *)context = outcome->code;
}

static void what_was_refused_by_a_change_that_was_never_made_is_told_of_the_disk(void **state)
{
    static struct random r = {5};
    struct ground *g = *state;
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct world_change changes[4];
    enum err_code codes[4] = {ERR_OK, ERR_OK, ERR_OK, ERR_OK};
    struct err err = {.code = ERR_OK};

    stop(g);
    fault_vfs_reset(&r);
    g->vfs = FAULT_VFS;
    start(g);
    apply(g, change_of(WORLD_PUT_LOCALE, "a", ""));
    for (int i = 0; i < 4; i++) {
        changes[i] = change_of(i == 0 ? WORLD_DELETE_LOCALE : WORLD_PUT_LOCALE, "a", "");
        changes[i].done = i == 3 ? hold : keep_code;
        changes[i].context = i == 3 ? (void *)&gate : &codes[i];
    }
    strcpy(changes[0].locale_id, "none");
    changes[1].if_revision = changes[2].if_revision = 2;
    assert_int_equal(world_submit(g->world, &changes[3], &err), ERR_OK);
    pthread_mutex_lock(&gate.mutex);
    while (!gate.is_held)
        pthread_cond_wait(&gate.cond, &gate.mutex);
    fault_vfs_arm(FAULT_SYNC, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(world_submit(g->world, &changes[i], &err), ERR_OK);
    gate.is_open = true;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.mutex);
    stop(g);
    assert_true(fault_vfs_has_fired());
    assert_int_equal(codes[0], ERR_LOCALE_UNKNOWN); /* whatever the disk does */
    assert_int_equal(codes[1], ERR_READ_ONLY);
    assert_int_equal(codes[2], ERR_READ_ONLY); /* not 412: revision 3 has never been */
    g->vfs = NULL;
    start(g);
}

static void a_damaged_tile_is_named_and_its_locale_left_out(void **state)
{
    struct ground *g = *state;
    float *samples = calloc(SAMPLES, sizeof *samples);
    const struct world_snapshot *pinned;
    struct world_change change = change_of(WORLD_PUT_LOCALE, "bad", "");
    char path[128];
    sqlite3 *db;
    struct err err;

    apply(g, change_of(WORLD_PUT_LOCALE, "bad", ""));
    put_field(g, "bad", "ground", samples);
    apply(g, change_of(WORLD_PUT_LOCALE, "good", ""));
    put_field(g, "good", "ground", samples);
    stop(g);
    snprintf(path, sizeof path, "%s/kota.db", g->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE tile SET data = zeroblob(length(data) - 1) || x'01' "
                                  "WHERE locale = 'bad' AND tx = 1 AND ty = 0",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
    start(g);
    assert_null(look(g, "bad", &pinned));
    world_unpin(g->world, 0, pinned);
    assert_non_null(world_damage(g->world, "bad"));
    assert_non_null(strstr(world_damage(g->world, NULL), "bad"));
    assert_null(world_damage(g->world, "good"));
    assert_ground(g, "good", 2, samples);
    assert_int_equal(world_apply(g->world, &change, &err), ERR_DAMAGED);
    free(samples);
}

/* ---- more deleted locales than anything in memory remembers ---------------------------------- */

static struct world_change change_of_locale(enum world_change_kind kind, int number)
{
    struct world_change change = change_of(kind, "", "");

    snprintf(change.locale_id, sizeof change.locale_id, "gone-%d", number);
    return change;
}

static uint64_t revision_of(struct ground *g, const char *id)
{
    const struct world_snapshot *snapshot = world_pin(g->world, 0);
    const struct locale *locale = snapshot_locale(snapshot, id);
    uint64_t revision = locale ? locale->revision : 0;

    world_unpin(g->world, 0, snapshot);
    world_reader_quiet(g->world, 0);
    return revision;
}

/* The writer makes no more snapshots than its reader lets go of. */
static void wait_for_all(struct ground *g)
{
    struct world_stats stats;

    do {
        world_reader_quiet(g->world, 0);
        pause_ms(1);
        world_stats(g->world, &stats);
    } while (stats.queued > 0);
}

static void ten_thousand_deleted_locales_go_on_counting(void **state)
{
    enum { GONE = 10050 };
    struct ground *g = *state;
    struct err err = {.code = ERR_OK};

    for (int i = 0; i < 2 * GONE; i++) {
        struct world_change change =
            change_of_locale(i % 2 ? WORLD_DELETE_LOCALE : WORLD_PUT_LOCALE, i / 2);

        if (world_submit(g->world, &change, &err))
            fail_msg("%s", err.msg);
    }
    wait_for_all(g);
    apply(g, change_of_locale(WORLD_PUT_LOCALE, 0));
    assert_int_equal(revision_of(g, "gone-0"), 3);
    apply(g, change_of_locale(WORLD_PUT_LOCALE, GONE - 1));
    assert_int_equal(revision_of(g, "gone-10049"), 3);
    apply(g, change_of(WORLD_PUT_LOCALE, "fresh", ""));
    assert_int_equal(revision_of(g, "fresh"), 1);
    restart(g);
    apply(g, change_of_locale(WORLD_PUT_LOCALE, 1));
    assert_int_equal(revision_of(g, "gone-1"), 3);
    assert_int_equal(revision_of(g, "gone-0"), 3);
    apply(g, change_of_locale(WORLD_DELETE_LOCALE, 0));
    apply(g, change_of_locale(WORLD_PUT_LOCALE, 0));
    assert_int_equal(revision_of(g, "gone-0"), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edits_survive_many_restarts, setup, teardown),
        cmocka_unit_test_setup_teardown(locales_and_layers_come_back_as_they_were, setup, teardown),
        cmocka_unit_test_setup_teardown(ten_thousand_deleted_locales_go_on_counting, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            what_was_refused_by_a_change_that_was_never_made_is_told_of_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_tile_is_named_and_its_locale_left_out, setup,
                                        teardown),
    };

    return cmocka_run_group_tests_name("world_store", tests, NULL, NULL);
}
