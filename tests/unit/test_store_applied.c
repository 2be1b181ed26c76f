/*
 * Where a store stands in a log that others share: kept in the transaction of the change, found
 * again, damaged, forgotten; and stores from before there was such a thing.
 */
#include "store/store.h"

#include "support/random.h"
#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

struct writer {
    char folder[256];
    struct store *store;
    struct random random;
    struct err err;
    uint64_t sequence;
};

static int setup(void **state)
{
    struct writer *w = calloc(1, sizeof *w);

    w->random.state = 5;
    store_folder_make(w->folder);
    w->store = store_must_open(w->folder);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct writer *w = *state;

    store_close(w->store);
    store_folder_remove(w->folder);
    free(w);
    return 0;
}

static void begin(struct writer *w)
{
    store_must(store_begin(w->store, &w->err), &w->err);
}

static void commit(struct writer *w)
{
    store_must(store_commit(w->store, &w->err), &w->err);
}

static void execute(const struct writer *w, const char *sql)
{
    char path[300];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/kota.db", w->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void put_applied(struct writer *w, const char *locale, uint64_t revision, const char *op_id)
{
    struct store_applied applied = {.revision = revision};

    strcpy(applied.locale, locale);
    strcpy(applied.op_id, op_id);
    store_must(store_put_applied(w->store, &applied, &w->err), &w->err);
}

static void log_row(struct writer *w, const char *locale, uint64_t revision)
{
    struct store_edit edit = {.revision = revision, .sequence = ++w->sequence};

    strcpy(edit.locale, locale);
    store_must(store_log(w->store, &edit, &w->err), &w->err);
}

/* A locale with a field, a mesh, and an edit that is not in tiles. */
static struct model_layer *put_all(struct writer *w, const char *locale, uint64_t revision)
{
    struct store_locale row = store_test_locale(locale, revision);
    struct model_layer *layer = model_layer_make(locale, "ground", 300, 20, &w->random);
    struct heightfield *field = model_layer_field(layer);
    struct store_layer put = store_test_layer(layer, field);
    struct store_layer roof = {.id = "roof", .kind = STORE_MESH, .position = 1};
    struct polygon_set polygons;
    struct mesh *mesh = store_test_mesh(3, &polygons);
    struct store_edit edit;

    store_must(store_put_locale(w->store, &row, &w->err), &w->err);
    store_must(store_put_layer(w->store, &put, &w->err), &w->err);
    strcpy(roof.locale, locale);
    roof.gravity[2] = -1;
    roof.mesh = mesh;
    roof.polygons = &polygons;
    store_must(store_put_layer(w->store, &roof, &w->err), &w->err);
    log_row(w, locale, revision);
    edit = model_layer_edit(layer, 5, revision + 1, ++w->sequence, &w->random);
    store_must(store_log(w->store, &edit, &w->err), &w->err);
    model_layer_apply(layer, &edit.rect, edit.heights_m);
    free((void *)(uintptr_t)edit.heights_m);
    heightfield_unref(field);
    mesh_unref(mesh);
    polygon_set_free(&polygons);
    return layer;
}

struct rows {
    struct store_applied at[8];
    size_t count;
};

static bool take_row(void *context, const struct store_applied *applied, struct err *err)
{
    struct rows *rows = context;

    (void)err;
    assert_true(rows->count < 8);
    rows->at[rows->count++] = *applied;
    return true;
}

static struct rows rows_of(struct writer *w)
{
    struct rows rows = {.count = 0};

    store_must(store_each_applied(w->store, take_row, &rows, &w->err), &w->err);
    return rows;
}

static void restart(struct writer *w)
{
    store_close(w->store);
    w->store = store_must_open(w->folder);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void what_is_applied_comes_back(void **state)
{
    struct writer *w = *state;
    struct store_shared_log log = {.identity = "0123456789abcdef0123456789abcdef",
                                   .node = "north-1"};
    struct store_shared_log got;
    struct rows rows;

    store_must(store_get_shared_log(w->store, &got, &w->err), &w->err);
    assert_string_equal(got.identity, "");
    loaded_free(loaded_make(w->store));
    begin(w);
    store_must(store_put_shared_log(w->store, &log, &w->err), &w->err);
    put_applied(w, "sea", 3, "~a");
    put_applied(w, "land", 1, "~b");
    put_applied(w, "/models", 9, "~c");
    put_applied(w, "land", 2, "key of a client");
    commit(w);
    begin(w);
    put_applied(w, "land", 3, "rolled back");
    store_rollback(w->store);
    restart(w);
    store_must(store_get_shared_log(w->store, &got, &w->err), &w->err);
    assert_string_equal(got.identity, log.identity);
    assert_string_equal(got.node, log.node);
    rows = rows_of(w);
    assert_int_equal(rows.count, 3);
    assert_string_equal(rows.at[0].locale, "/models");
    assert_string_equal(rows.at[1].locale, "land");
    assert_int_equal(rows.at[1].revision, 2);
    assert_string_equal(rows.at[1].op_id, "key of a client");
    loaded_free(loaded_make(w->store));
    begin(w);
    store_must(store_leave_shared_log(w->store, &w->err), &w->err);
    commit(w);
    store_must(store_get_shared_log(w->store, &got, &w->err), &w->err);
    assert_string_equal(got.identity, "");
    assert_int_equal(rows_of(w).count, 0);
}

static void a_forgotten_locale_leaves_nothing(void **state)
{
    struct writer *w = *state;
    struct model_layer *layers[2];
    struct loaded *loaded;
    struct store_behind behind;
    uint64_t deleted = 7;

    loaded_free(loaded_make(w->store));
    begin(w);
    layers[0] = put_all(w, "land", 4);
    layers[1] = put_all(w, "sea", 1);
    put_applied(w, "land", 5, "~a");
    commit(w);
    begin(w);
    store_must(store_forget_locale(w->store, "land", &w->err), &w->err);
    store_must(store_forget_locale(w->store, "never was", &w->err), &w->err);
    commit(w);
    store_behind(w->store, &behind);
    assert_int_equal(behind.edits, 1);
    assert_int_equal(rows_of(w).count, 0);
    store_must(store_find_deleted(w->store, "land", &deleted, &w->err), &w->err);
    assert_int_equal(deleted, 0);
    restart(w);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    assert_int_equal(loaded->locale_count, 1);
    model_layer_expect(layers[1], loaded_layer(loaded, "sea", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layers[0]);
    begin(w); /* and at an earlier revision than it had */
    layers[0] = put_all(w, "land", 2);
    commit(w);
    restart(w);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    assert_int_equal(loaded_locale(loaded, "land")->revision, 3);
    model_layer_expect(layers[0], loaded_layer(loaded, "land", "ground")->field);
    loaded_free(loaded);
    for (int i = 0; i < 2; i++)
        model_layer_free(layers[i]);
}

static void a_damaged_locale_can_be_forgotten(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer;
    struct loaded *loaded;

    loaded_free(loaded_make(w->store));
    begin(w);
    model_layer_free(put_all(w, "land", 1));
    model_layer_free(put_all(w, "sea", 1));
    commit(w);
    store_close(w->store);
    execute(w, "UPDATE tile SET data = zeroblob(8) WHERE locale = 'land' AND tx = 1;"
               "UPDATE layer SET role = 5 WHERE locale = 'land' AND id = 'roof';"
               "UPDATE locale SET title = 'x' WHERE id = 'land'");
    w->store = store_must_open(w->folder);
    loaded = loaded_make(w->store);
    assert_true(loaded->damage_count > 0);
    loaded_free(loaded);
    begin(w);
    store_must(store_forget_locale(w->store, "land", &w->err), &w->err);
    layer = put_all(w, "land", 9);
    commit(w);
    restart(w);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    model_layer_expect(layer, loaded_layer(loaded, "land", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
}

static void forgotten_models_are_gone(void **state)
{
    struct writer *w = *state;
    struct store_model model = {.id = "rock", .media_type = "model/obj", .bytes = "v", .length = 1};
    struct loaded *loaded;

    loaded_free(loaded_make(w->store));
    begin(w);
    store_must(store_put_model(w->store, &model, &w->err), &w->err);
    strcpy(model.id, "cow");
    store_must(store_put_model(w->store, &model, &w->err), &w->err);
    commit(w);
    begin(w);
    store_must(store_forget_models(w->store, &w->err), &w->err);
    store_must(store_put_model(w->store, &model, &w->err), &w->err);
    commit(w);
    restart(w);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    loaded_free(loaded);
    begin(w);
    store_must(store_drop_model(w->store, "cow", &w->err), &w->err);
    commit(w);
}

static void damaged_rows_are_told(void **state)
{
    struct writer *w = *state;
    struct store_shared_log log = {.identity = "aa", .node = "n"};
    struct loaded *loaded;
    struct rows rows;

    loaded_free(loaded_make(w->store));
    begin(w);
    model_layer_free(put_all(w, "land", 1));
    store_must(store_put_shared_log(w->store, &log, &w->err), &w->err);
    put_applied(w, "land", 2, "~a");
    put_applied(w, "sea", 2, "~b");
    commit(w);
    store_close(w->store);
    execute(w, "UPDATE applied SET rev = 7 WHERE locale = 'land'");
    w->store = store_must_open(w->folder);
    loaded = loaded_make(w->store);
    assert_int_equal(loaded->damage_count, 1);
    assert_string_equal(loaded->damage_locale[0], "land");
    assert_non_null(strstr(loaded->damage[0], "where it is in the shared log is damaged"));
    loaded_free(loaded);
    rows = rows_of(w);
    assert_int_equal(rows.count, 1);
    assert_string_equal(rows.at[0].locale, "sea");
    store_close(w->store);
    execute(w, "UPDATE shared_log SET identity = 'bb'");
    w->store = store_must_open(w->folder);
    assert_int_equal(store_get_shared_log(w->store, &log, &w->err), ERR_DAMAGED);
    loaded = loaded_make(w->store);
    assert_int_equal(loaded->damage_count, 2);
    loaded_free(loaded);
}

/* A store of version 3 has no tables for it and gets them; an older kotad then refuses it. */
static void an_older_store_is_migrated(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer;
    struct loaded *loaded;

    loaded_free(loaded_make(w->store));
    store_close(w->store);
    execute(w, "ALTER TABLE locale DROP COLUMN origin; ALTER TABLE locale DROP COLUMN origin_rev;"
               "ALTER TABLE layer DROP COLUMN base; ALTER TABLE layer DROP COLUMN base_rev;"
               "ALTER TABLE layer DROP COLUMN since;"
               "DROP TABLE history_data; DROP TABLE history; DROP TABLE kept_tile; DROP TABLE "
               "pin_layer; DROP TABLE pin; "
               "DROP TABLE pinned; "
               "DROP TABLE applied; DROP TABLE shared_log; PRAGMA user_version = 3");
    w->store = store_must_open(w->folder);
    loaded_free(loaded_make(w->store));
    begin(w);
    layer = put_all(w, "land", 1);
    commit(w);
    restart(w);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    model_layer_expect(layer, loaded_layer(loaded, "land", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
    begin(w);
    put_applied(w, "land", 2, "~a");
    commit(w);
    restart(w);
    assert_int_equal(rows_of(w).count, 1);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(what_is_applied_comes_back),
        FACT(a_forgotten_locale_leaves_nothing),
        FACT(a_damaged_locale_can_be_forgotten),
        FACT(forgotten_models_are_gone),
        FACT(damaged_rows_are_told),
        FACT(an_older_store_is_migrated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
