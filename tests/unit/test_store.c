/*
 * The store as it is meant to be used: what is committed comes back after a restart, bit for bit.
 */
#include "store/store.h"

#include "support/store_fixture.h"
#include "base/content_hash.h"

#include <dirent.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { KIND_MANIFEST = 0, KIND_LAYER = 2 };

/* A world that is written: the next numbers, and what layers should be. */
struct writer {
    char folder[256];
    struct store *store;
    struct random random;
    struct err err;
    uint64_t sequence;
};

/* Around each test. */
static int writer_open(void **state)
{
    static struct writer w;

    memset(&w, 0, sizeof w);
    w.random.state = 1;
    store_folder_make(w.folder);
    w.store = store_must_open(w.folder);
    *state = &w;
    return 0;
}

static int writer_close(void **state)
{
    struct writer *w = *state;

    store_close(w->store);
    store_folder_remove(w->folder);
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

/* A row of the log without samples. */
static void log_change(struct writer *w, const char *locale, uint64_t revision, int kind)
{
    struct store_edit edit = {.revision = revision, .sequence = ++w->sequence, .kind = kind};

    snprintf(edit.locale, sizeof edit.locale, "%s", locale);
    snprintf(edit.source, sizeof edit.source, "put");
    store_must(store_log(w->store, &edit, &w->err), &w->err);
}

static void put_locale(struct writer *w, const char *id, uint64_t revision)
{
    struct store_locale locale = store_test_locale(id, revision);

    store_must(store_put_locale(w->store, &locale, &w->err), &w->err);
    log_change(w, id, revision, KIND_MANIFEST);
}

static void put_field(struct writer *w, const struct model_layer *layer, uint32_t position,
                      uint64_t revision)
{
    struct heightfield *field = model_layer_field(layer);
    struct store_layer put = store_test_layer(layer, field);

    put.position = position;
    store_must(store_put_layer(w->store, &put, &w->err), &w->err);
    log_change(w, layer->locale, revision, KIND_LAYER);
    heightfield_unref(field);
}

static void edit_field(struct writer *w, struct model_layer *layer, uint32_t side,
                       uint64_t revision)
{
    struct store_edit edit = model_layer_edit(layer, side, revision, ++w->sequence, &w->random);

    store_must(store_log(w->store, &edit, &w->err), &w->err);
    model_layer_apply(layer, &edit.rect, edit.heights_m);
    free((void *)(uintptr_t)edit.heights_m);
}

static void commit_edit(struct writer *w, struct model_layer *layer, uint32_t side,
                        uint64_t revision)
{
    begin(w);
    edit_field(w, layer, side, revision);
    commit(w);
}

/* The layer `ground` of a locale `hills`, committed as revisions 1 and 2. */
static struct model_layer *commit_ground(struct writer *w, uint32_t cols, uint32_t rows)
{
    struct model_layer *layer = model_layer_make("hills", "ground", cols, rows, &w->random);

    begin(w);
    put_locale(w, "hills", 1);
    put_field(w, layer, 0, 2);
    commit(w);
    return layer;
}

/* Closes and opens; the load must be whole. */
static struct loaded *restart(struct writer *w)
{
    struct loaded *loaded;

    store_close(w->store);
    w->store = store_must_open(w->folder);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    return loaded;
}

/* After a restart `ground` is the layer. */
static void expect_ground(struct writer *w, const struct model_layer *layer)
{
    struct loaded *loaded = restart(w);

    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
}

/* ---- locales and layers --------------------------------------------------------------------- */

static void a_locale_comes_back_bit_for_bit(void **state)
{
    struct writer *w = *state;
    struct store_locale want = store_test_locale("hills", 1);
    struct loaded *loaded;

    begin(w);
    put_locale(w, "hills", 1);
    commit(w);
    loaded = restart(w);
    assert_int_equal(loaded->locale_count, 1);
    assert_memory_equal(loaded->locales[0].gravity, want.gravity, sizeof want.gravity);
    assert_memory_equal(loaded->locales[0].translation, want.translation, sizeof want.translation);
    assert_memory_equal(loaded->locales[0].rotation, want.rotation, sizeof want.rotation);
    assert_memory_equal(&loaded->locales[0].geo_lng_deg, &want.geo_lng_deg, sizeof(double));
    assert_string_equal(loaded->locales[0].title, want.title);
    assert_int_equal(loaded->locales[0].revision, 1);
    assert_true(loaded->locales[0].open_sky && loaded->locales[0].has_geo);
    assert_int_equal(loaded->edit_count, 1);
    loaded_free(loaded);
}

static void layers_of_odd_sizes_come_back_in_their_order(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2},   {257, 257}, {256, 258}, {3, 700},
                                        {515, 2}, {300, 513}, {258, 256}, {513, 769}};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct model_layer *layers[COUNT];
    struct writer *w = *state;
    struct loaded *loaded;

    begin(w);
    put_locale(w, "hills", 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        char id[8];

        snprintf(id, sizeof id, "L%u", (i * 5 + 3) % COUNT); /* not in the order of names */
        layers[i] = model_layer_make("hills", id, sizes[i][0], sizes[i][1], &w->random);
        put_field(w, layers[i], i, 2 + i);
    }
    commit(w);
    loaded = restart(w);
    assert_int_equal(loaded->layer_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_string_equal(loaded->layers[i].id, layers[i]->id);
        assert_int_equal(loaded->layers[i].role, 1);
        model_layer_expect(layers[i], loaded->layers[i].field);
        model_layer_free(layers[i]);
    }
    loaded_free(loaded);
}

static void edits_come_back_applied(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer = commit_ground(w, 700, 530);
    struct loaded *loaded;
    struct store_behind behind;

    for (uint64_t revision = 3; revision < 60; revision++)
        commit_edit(w, layer, 300, revision);
    store_behind(w->store, &behind);
    assert_int_equal(behind.edits, 57);
    assert_true(behind.tiles > 0 && behind.tiles <= 9 && behind.log_bytes > 0);
    loaded = restart(w);
    assert_int_equal(loaded->locales[0].revision, 59);
    assert_int_equal(loaded->edit_count, 59);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
}

static void meshes_come_back_with_their_polygons(void **state)
{
    struct writer *w = *state;
    struct polygon_set polygons[2];
    struct mesh *meshes[2];
    struct loaded *loaded;

    begin(w);
    put_locale(w, "town", 1);
    for (int i = 0; i < 2; i++) { /* of one shape at two places */
        struct store_layer put = {
            .locale = "town", .position = (uint32_t)i, .kind = STORE_MESH, .gravity = {0, 0, -1}};

        meshes[i] = store_test_mesh(i, &polygons[i]);
        snprintf(put.id, sizeof put.id, "deck%d", i);
        put.role = i;
        put.mesh = meshes[i];
        put.polygons = &polygons[i];
        store_must(store_save_mesh(w->store, meshes[i], &polygons[i], &w->err), &w->err);
        store_must(store_put_layer(w->store, &put, &w->err), &w->err);
        log_change(w, "town", (uint64_t)i + 2, KIND_LAYER);
    }
    commit(w);
    loaded = restart(w);
    assert_int_equal(loaded->layer_count, 2);
    for (int i = 0; i < 2; i++) {
        const struct store_loaded_layer *layer = &loaded->layers[i];
        size_t length, want_length;
        const void *image = mesh_image(layer->mesh, &length);
        const void *want = mesh_image(meshes[i], &want_length);

        assert_int_equal(layer->role, i);
        assert_int_equal(length, want_length);
        assert_memory_equal(image, want, length);
        assert_true(mesh_validate(layer->mesh, &w->err));
        assert_int_equal(layer->polygons.polygon_count, 2);
        assert_memory_equal(layer->polygons.vertices, polygons[i].vertices,
                            4 * sizeof *polygons[i].vertices);
        assert_memory_equal(layer->polygons.corners, polygons[i].corners, 6 * sizeof(uint32_t));
        assert_memory_equal(layer->polygons.starts, polygons[i].starts, 3 * sizeof(uint32_t));
        mesh_unref(meshes[i]);
        polygon_set_free(&polygons[i]);
    }
    loaded_free(loaded);
}

static unsigned mesh_files(const struct writer *w)
{
    char path[300];
    unsigned count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "%s/meshes", w->folder);
    folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void mesh_files_that_nobody_names_go_at_the_next_load(void **state)
{
    struct writer *w = *state;
    struct polygon_set polygons;
    struct mesh *mesh = store_test_mesh(3, &polygons);
    char command[640];

    store_must(store_save_mesh(w->store, mesh, &polygons, &w->err), &w->err);
    snprintf(command, sizeof command, "touch %s/meshes/7.part %s/meshes/README", w->folder,
             w->folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(mesh_files(w), 4);
    loaded_free(restart(w));
    assert_int_equal(mesh_files(w), 1); /* not ours */
    mesh_unref(mesh);
    polygon_set_free(&polygons);
}

/* ---- what goes ------------------------------------------------------------------------------ */

static void a_deleted_locale_leaves_its_revision(void **state)
{
    struct writer *w = *state;
    struct store_locale locale = store_test_locale("hills", 3);
    struct model_layer *layer = commit_ground(w, 300, 20);
    struct loaded *loaded;

    commit_edit(w, layer, 20, 3);
    begin(w);
    locale.revision = 4;
    locale.is_deleted = true;
    store_must(store_put_locale(w->store, &locale, &w->err), &w->err);
    log_change(w, "hills", 4, KIND_MANIFEST);
    commit(w);
    loaded = restart(w);
    assert_int_equal(loaded->locale_count, 1);
    assert_true(loaded->locales[0].is_deleted);
    assert_int_equal(loaded->locales[0].revision, 4);
    assert_int_equal(loaded->layer_count, 0);
    assert_int_equal(loaded->edit_count, 4);
    loaded_free(loaded);
    begin(w); /* made again, it goes on counting */
    put_locale(w, "hills", 5);
    put_field(w, layer, 0, 6);
    commit(w);
    loaded = restart(w);
    assert_false(loaded->locales[0].is_deleted);
    assert_int_equal(loaded->locales[0].revision, 6);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
}

static void layers_behind_a_dropped_one_move_up(void **state)
{
    struct writer *w = *state;
    struct model_layer *layers[5];
    struct loaded *loaded;
    static const char *const want[] = {"C", "D", "E"};

    begin(w);
    put_locale(w, "hills", 1);
    for (uint32_t i = 0; i < 4; i++) {
        layers[i] = model_layer_make("hills", (char[]){(char)('A' + i), 0}, 5, 5, &w->random);
        put_field(w, layers[i], i, 2 + i);
    }
    commit(w);
    begin(w);
    store_must(store_drop_layer(w->store, "hills", "A", &w->err), &w->err);
    log_change(w, "hills", 6, KIND_LAYER);
    store_must(store_drop_layer(w->store, "hills", "B", &w->err), &w->err);
    log_change(w, "hills", 7, KIND_LAYER);
    layers[4] = model_layer_make("hills", "E", 5, 5, &w->random);
    put_field(w, layers[4], 2, 8); /* the third */
    commit(w);
    loaded = restart(w);
    assert_int_equal(loaded->layer_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(loaded->layers[i].id, want[i]);
        assert_int_equal(loaded->layers[i].field != NULL, 1);
    }
    for (int i = 0; i < 5; i++)
        model_layer_free(layers[i]);
    loaded_free(loaded);
}

static void a_layer_put_anew_lets_logged_samples_go(void **state)
{
    struct writer *w = *state;
    struct model_layer *old, *anew;
    struct store_behind behind;

    old = model_layer_make("hills", "ground", 700, 300, &w->random);
    anew = model_layer_make("hills", "ground", 90, 300, &w->random);
    begin(w);
    put_locale(w, "hills", 1);
    put_field(w, old, 0, 2);
    edit_field(w, old, 400, 3);
    commit(w);
    begin(w); /* before and behind it, in one transaction */
    edit_field(w, old, 400, 4);
    put_field(w, anew, 0, 5);
    edit_field(w, anew, 20, 6);
    commit(w);
    store_behind(w->store, &behind);
    assert_int_equal(behind.edits, 1);
    expect_ground(w, anew);
    model_layer_free(old);
    model_layer_free(anew);
}

static void a_rollback_leaves_nothing(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer, *dropped;
    struct loaded *loaded;
    struct store_behind behind;

    layer = model_layer_make("hills", "ground", 30, 30, &w->random);
    dropped = model_layer_make("hills", "ground", 30, 30, &w->random);
    begin(w);
    put_locale(w, "hills", 1);
    put_field(w, layer, 0, 2);
    commit(w);
    begin(w);
    edit_field(w, dropped, 20, 3);
    put_locale(w, "other", 1);
    store_rollback(w->store);
    commit_edit(w, layer, 20, 3);
    store_behind(w->store, &behind);
    assert_int_equal(behind.edits, 1);
    loaded = restart(w);
    assert_int_equal(loaded->locale_count, 1);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
    model_layer_free(dropped);
}

/* ---- the log -------------------------------------------------------------------------------- */

static void an_op_id_is_found_with_its_answer(void **state)
{
    struct writer *w = *state;
    struct store_edit edit = {.locale = "hills",
                              .revision = 2,
                              .sequence = 2,
                              .kind = 3,
                              .source = "http",
                              .op_id = "key \xc3\xa4 1",
                              .request = {1, 2, 3},
                              .answer = "{\"a\":\0}",
                              .answer_bytes = 7};
    struct store_edit found;
    bool is_found;

    begin(w);
    put_locale(w, "hills", 1);
    store_must(store_find_op(w->store, edit.op_id, &is_found, &found, &w->err), &w->err);
    assert_false(is_found);
    store_must(store_log(w->store, &edit, &w->err), &w->err);
    store_must(store_find_op(w->store, edit.op_id, &is_found, &found, &w->err), &w->err);
    assert_true(is_found); /* before the commit, too */
    commit(w);
    loaded_free(restart(w));
    for (int i = 0; i < 2; i++) {
        store_must(store_find_op(w->store, edit.op_id, &is_found, &found, &w->err), &w->err);
        assert_true(is_found);
        assert_string_equal(found.op_id, edit.op_id);
        assert_int_equal(found.revision, 2);
        assert_int_equal(found.kind, 3);
        assert_memory_equal(found.request, edit.request, sizeof edit.request);
        assert_int_equal(found.answer_bytes, 7);
        assert_memory_equal(found.answer, edit.answer, 7);
    }
    store_must(store_find_op(w->store, "", &is_found, &found, &w->err), &w->err);
    assert_false(is_found);
}

struct fields {
    struct model_layer *layer;
    struct heightfield *field;
    unsigned asked;
};

static const struct heightfield *field_of(void *context, const char *locale, const char *layer)
{
    struct fields *f = context;

    assert_string_equal(locale, f->layer->locale);
    assert_string_equal(layer, f->layer->id);
    f->asked++;
    if (!f->field)
        f->field = model_layer_field(f->layer);
    return f->field;
}

static void materialise(struct writer *w, struct model_layer *layer)
{
    struct fields f = {layer, NULL, 0};

    store_must(store_materialise(w->store, field_of, &f, &w->err), &w->err);
    heightfield_unref(f.field);
}

static void materialised_tiles_are_the_field(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer = commit_ground(w, 1030, 780);
    struct store_behind behind;
    struct loaded *loaded;

    for (uint64_t revision = 3; revision < 40; revision++) {
        commit_edit(w, layer, 90, revision);
        if (revision % 9 == 0) {
            materialise(w, layer);
            store_behind(w->store, &behind);
            assert_int_equal(behind.tiles + behind.edits + behind.log_bytes, 0);
        }
    }
    loaded = restart(w);
    assert_int_equal(loaded->edit_count, 39); /* rows stay */
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    store_behind(w->store, &behind);
    assert_int_equal(behind.edits, 3); /* remembered by the restart */
    materialise(w, layer);
    expect_ground(w, layer);
    model_layer_free(layer);
}

static void the_log_is_cut_to_its_rows(void **state)
{
    struct store_options options = {.log_rows_max = 10};
    struct writer *w = *state;
    struct model_layer *layer;
    struct loaded *loaded;

    layer = model_layer_make("hills", "ground", 30, 20, &w->random);
    store_close(w->store);
    options.directory = w->folder;
    w->store = store_open(&options, &w->err);
    assert_non_null(w->store);
    begin(w);
    put_locale(w, "hills", 1);
    put_locale(w, "other", 1);
    put_field(w, layer, 0, 2);
    commit(w);
    for (uint64_t revision = 3; revision < 40; revision++)
        commit_edit(w, layer, 5, revision);
    materialise(w, layer);
    loaded = restart(w);
    assert_int_equal(loaded->edit_count, 11);
    assert_string_equal(loaded->edits[0].locale, "other");
    assert_int_equal(loaded->edits[1].revision, 30);
    assert_int_equal(loaded->edits[10].revision, 39);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
}

static bool take_model(void *context, const struct store_model *model, struct err *err)
{
    struct store_model *models = context;

    (void)err;
    models[model->id[0] - 'a'] = *model;
    assert_memory_equal(model->bytes, "v 1 2 3", model->length);
    return true;
}

static void models_come_back(void **state)
{
    struct writer *w = *state;
    struct store_model rock = {
        .id = "b", .media_type = "model/obj", .bytes = "v 1 2 3", .length = 7};
    struct store_model list[3] = {{.length = 0}};

    for (int i = 0; i < 2; i++) { /* the second time in its place */
        begin(w);
        rock.length = 7 - (size_t)i;
        store_must(store_put_model(w->store, &rock, &w->err), &w->err);
        commit(w);
    }
    loaded_free(restart(w));
    store_must(store_models(w->store, take_model, list, &w->err), &w->err);
    assert_string_equal(list[1].media_type, "model/obj");
    assert_int_equal(list[1].length, 6);
    assert_int_equal(list[0].length + list[2].length, 0);
}

/* ---- the directory -------------------------------------------------------------------------- */

static void a_second_process_is_kept_out(void **state)
{
    struct writer *w = *state;
    struct store_options options = {.directory = w->folder};

    assert_null(store_open(&options, &w->err));
    assert_int_equal(w->err.code, ERR_CONFLICT);
    options.is_read_only = true; /* to verify is allowed */
    store_close(store_open(&options, &w->err));
}

static void execute(const char *folder, const char *sql)
{
    char path[300];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/kota.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static bool are_the_same(const char *a, const char *b)
{
    char command[700];

    snprintf(command, sizeof command, "diff -r '%s' '%s'", a, b);
    return system(command) == 0;
}

static void fail_with(void *context, const char *message)
{
    (void)context;
    fail_msg("%s", message);
}

static void expect_sound(const char *folder)
{
    struct store_options options = {.directory = folder, .is_read_only = true};
    struct err err;
    struct store *store = store_open(&options, &err);

    if (!store)
        fail_msg("%s", err.msg);
    assert_int_equal(store_check(store, fail_with, NULL, &err), 0);
    assert_int_equal(store_begin(store, &err), ERR_READ_ONLY);
    store_close(store);
}

static void a_store_is_checked_open_or_closed_and_left_as_it_is(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer = commit_ground(w, 300, 300);
    char copy[300];

    commit_edit(w, layer, 30, 3);
    expect_sound(w->folder);
    begin(w); /* it does not see what is under way */
    edit_field(w, layer, 30, 4);
    expect_sound(w->folder);
    commit(w);
    snprintf(copy, sizeof copy, "%s.copy", w->folder);
    store_folder_copy(w->folder, copy); /* a WAL is left behind */
    expect_sound(copy);
    store_folder_remove(copy);
    store_close(w->store);
    store_folder_copy(w->folder, copy);
    expect_sound(copy);
    assert_true(are_the_same(w->folder, copy));
    store_folder_remove(copy);
    w->store = store_must_open(w->folder);
    model_layer_free(layer);
}

static void a_newer_schema_is_refused(void **state)
{
    struct writer *w = *state;
    struct store_options options = {.directory = w->folder};

    store_close(w->store);
    execute(w->folder, "PRAGMA user_version = 99");
    w->store = store_open(&options, &w->err);
    assert_null(w->store);
    assert_int_equal(w->err.code, ERR_CONFLICT);
    assert_non_null(strstr(w->err.msg, "schema version 99"));
}

static void directories_are_made(void **state)
{
    struct writer *w = *state;
    char path[300];
    struct store_options options = {.directory = path};

    snprintf(path, sizeof path, "%s/a/b//c", w->folder);
    store_close(w->store);
    w->store = store_open(&options, &w->err);
    assert_non_null(w->store);
    store_close(w->store);
    snprintf(path, sizeof path, "%s/kota.db/x", w->folder);
    w->store = store_open(&options, &w->err);
    assert_null(w->store);
    assert_int_equal(w->err.code, ERR_BAD_INPUT);
    options.is_read_only = true;
    snprintf(path, sizeof path, "%s/none", w->folder);
    assert_null(store_open(&options, &w->err));
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- shells ---------------------------------------------------------------------------------- */

static void put_model(struct writer *w, const char *id, const char *bytes)
{
    struct store_model model = {.media_type = "model/obj", .bytes = bytes, .length = strlen(bytes)};

    snprintf(model.id, sizeof model.id, "%s", id);
    begin(w);
    store_must(store_put_model(w->store, &model, &w->err), &w->err);
    commit(w);
}

static void put_shell(struct writer *w, const char *model, uint32_t version, uint32_t radius_um,
                      const char *bytes)
{
    struct store_shell shell = {
        .version = version, .radius_um = radius_um, .bytes = bytes, .length = strlen(bytes)};

    content_hash(model, strlen(model), shell.model);
    begin(w);
    store_must(store_put_shell(w->store, &shell, &w->err), &w->err);
    commit(w);
}

/* bytes: NULL when there is none. */
static void expect_shell(struct writer *w, const char *model, uint32_t version, uint32_t radius_um,
                         const char *bytes)
{
    struct store_shell key = {.version = version, .radius_um = radius_um};
    size_t length;
    void *got;

    content_hash(model, strlen(model), key.model);
    store_must(store_find_shell(w->store, &key, &got, &length, &w->err), &w->err);
    assert_int_equal(got != NULL, bytes != NULL);
    assert_int_equal(length, bytes ? strlen(bytes) : 0);
    if (bytes)
        assert_memory_equal(got, bytes, length);
    free(got);
}

static void shells_come_back_and_go_with_their_model(void **state)
{
    struct writer *w = *state;

    put_model(w, "rock", "v 1");
    put_model(w, "stone", "v 1");
    put_model(w, "cow", "v 2");
    put_shell(w, "v 1", 1, 50000, "fine");
    put_shell(w, "v 1", 1, 100000, "medium");
    put_shell(w, "v 1", 1, 100000, "medium, again");
    put_shell(w, "v 2", 1, 100000, "a cow's");
    put_shell(w, "v 3", 1, 100000, "nobody's");
    loaded_free(restart(w));
    expect_shell(w, "v 1", 1, 50000, "fine");
    expect_shell(w, "v 1", 1, 100000, "medium, again");
    expect_shell(w, "v 1", 1, 200000, NULL);
    expect_shell(w, "v 1", 2, 50000, NULL);
    expect_shell(w, "v 3", 1, 100000, NULL);
    expect_sound(w->folder);

    put_shell(w, "v 1", 2, 50000, "newer"); /* and the older ones go */
    expect_shell(w, "v 1", 1, 100000, NULL);
    expect_shell(w, "v 1", 2, 50000, "newer");
    expect_shell(w, "v 2", 1, 100000, "a cow's");

    put_model(w, "rock", "v 4"); /* stone is still v 1 */
    expect_shell(w, "v 1", 2, 50000, "newer");
    begin(w);
    store_must(store_drop_model(w->store, "stone", &w->err), &w->err);
    commit(w);
    expect_shell(w, "v 1", 2, 50000, NULL);
    expect_shell(w, "v 2", 1, 100000, "a cow's");
    put_model(w, "cow", "v 5");
    expect_shell(w, "v 2", 1, 100000, NULL);
}

/* A store of version 1 has no table for them and gets it. */
static void an_older_store_is_migrated(void **state)
{
    struct writer *w = *state;
    struct store_options options = {.directory = w->folder, .is_read_only = true};

    put_model(w, "rock", "v 1 2 3");
    store_close(w->store);
    execute(w->folder,
            "ALTER TABLE locale DROP COLUMN origin; ALTER TABLE locale DROP COLUMN origin_rev;"
            "ALTER TABLE layer DROP COLUMN base; ALTER TABLE layer DROP COLUMN base_rev;"
            "ALTER TABLE layer DROP COLUMN since;"
            "DROP TABLE history_data; DROP TABLE history; DROP TABLE kept_tile; DROP TABLE "
            "pin_layer; DROP TABLE pin;"
            "DROP TABLE pinned; DROP TABLE applied; DROP TABLE shared_log; DROP TABLE pose;"
            "DROP TABLE shell; PRAGMA user_version = 1");
    w->store = store_open(&options, &w->err);
    assert_null(w->store);
    assert_non_null(strstr(w->err.msg, "to be opened for writing first"));
    w->store = store_must_open(w->folder);
    loaded_free(restart(w));
    put_shell(w, "v 1 2 3", 1, 50000, "fine");
    loaded_free(restart(w));
    expect_shell(w, "v 1 2 3", 1, 50000, "fine");
    expect_sound(w->folder);
}

/* ---- backups and the WAL -------------------------------------------------------------------- */

/* As `sqlite3 kota.db ".backup"` does, in one step. */
static void backup(const char *from, const char *to)
{
    char path[2][300];
    sqlite3 *db[2];
    sqlite3_backup *copying;

    snprintf(path[0], sizeof path[0], "%s/kota.db", from);
    snprintf(path[1], sizeof path[1], "%s/kota.db", to);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sqlite3_open(path[i], &db[i]), SQLITE_OK);
    copying = sqlite3_backup_init(db[1], "main", db[0], "main");
    assert_non_null(copying);
    assert_int_equal(sqlite3_backup_step(copying, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(copying), SQLITE_OK);
    for (int i = 0; i < 2; i++)
        sqlite3_close(db[i]);
}

static void a_backup_of_an_open_store_is_a_store(void **state)
{
    struct writer *w = *state;
    struct model_layer *layer = commit_ground(w, 300, 300);
    char folder[256];
    struct store *copy;
    struct loaded *loaded;

    commit_edit(w, layer, 30, 3);
    store_folder_make(folder);
    backup(w->folder, folder);
    copy = store_must_open(folder);
    loaded = loaded_make(copy);
    loaded_expect_whole(loaded);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    store_close(copy);
    store_folder_remove(folder);
    model_layer_free(layer);
}

/* Commits until one is refused or `commits` are made; how many were. */
static unsigned commit_many(struct writer *w, struct model_layer *layer, uint64_t *revision,
                            unsigned commits)
{
    for (unsigned i = 0; i < commits; i++) {
        if (store_begin(w->store, &w->err))
            return i;
        edit_field(w, layer, 128, ++*revision);
        commit(w);
    }
    return commits;
}

static void a_reader_fills_the_wal_to_its_limit_and_no_further(void **state)
{
    struct store_options options = {.wal_bytes_max = 4 << 20};
    struct writer *w = *state;
    struct model_layer *layer;
    struct store_stats stats;
    uint64_t revision = 2;
    char path[300];
    sqlite3 *reader;
    sqlite3_stmt *row;

    store_close(w->store);
    options.directory = w->folder;
    w->store = store_open(&options, &w->err);
    layer = commit_ground(w, 300, 300);
    /* without a reader the WAL never comes near it */
    assert_int_equal(commit_many(w, layer, &revision, 400), 400);
    store_stats(w->store, &stats);
    assert_true(stats.wal_bytes < options.wal_bytes_max);
    assert_true(stats.checkpoints > 0);
    snprintf(path, sizeof path, "%s/kota.db", w->folder);
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(reader, "SELECT * FROM edit", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_true(commit_many(w, layer, &revision, 1000) < 1000);
    assert_int_equal(w->err.code, ERR_BUSY);
    store_stats(w->store, &stats);
    assert_true(stats.wal_bytes < options.wal_bytes_max + (1 << 20));
    assert_true(stats.checkpoints_blocked > 0);
    assert_false(stats.is_read_only);
    sqlite3_finalize(row);
    sqlite3_close(reader);
    assert_int_equal(commit_many(w, layer, &revision, 50), 50);
    loaded_free(restart(w));
    model_layer_free(layer);
}

static void commits_are_counted(void **state)
{
    struct writer *w = *state;
    struct store_stats stats;
    uint64_t sum = 0;

    for (uint64_t revision = 1; revision < 8; revision++) {
        begin(w);
        put_locale(w, "hills", revision);
        commit(w);
    }
    store_stats(w->store, &stats);
    for (size_t i = 0; i < sizeof stats.commit_count / sizeof *stats.commit_count; i++)
        sum += stats.commit_count[i];
    assert_int_equal(stats.commits, 7);
    assert_int_equal(sum, 7);
    assert_true(stats.database_bytes > 0 && stats.wal_bytes > 0 && stats.commit_us_sum > 0);
    assert_false(stats.is_read_only);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, writer_open, writer_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(a_locale_comes_back_bit_for_bit),
        FACT(layers_of_odd_sizes_come_back_in_their_order),
        FACT(edits_come_back_applied),
        FACT(meshes_come_back_with_their_polygons),
        FACT(mesh_files_that_nobody_names_go_at_the_next_load),
        FACT(a_deleted_locale_leaves_its_revision),
        FACT(layers_behind_a_dropped_one_move_up),
        FACT(a_layer_put_anew_lets_logged_samples_go),
        FACT(a_rollback_leaves_nothing),
        FACT(an_op_id_is_found_with_its_answer),
        FACT(materialised_tiles_are_the_field),
        FACT(the_log_is_cut_to_its_rows),
        FACT(models_come_back),
        FACT(a_second_process_is_kept_out),
        FACT(a_store_is_checked_open_or_closed_and_left_as_it_is),
        FACT(shells_come_back_and_go_with_their_model),
        FACT(an_older_store_is_migrated),
        FACT(a_newer_schema_is_refused),
        FACT(directories_are_made),
        FACT(a_backup_of_an_open_store_is_a_store),
        FACT(a_reader_fills_the_wal_to_its_limit_and_no_further),
        FACT(commits_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
