/*
 * Damage: a bit that has flipped or an end that is missing is named, or does not matter; no height
 * is ever wrong, no locale is seen by half, nothing crashes.
 */
#include "store/store.h"

#include "support/long_form.h"
#include "support/random.h"
#include "support/store_fixture.h"
#include "base/content_hash.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* Two locales, "hills" of 600×300 with edits in the log and "lake" of 40×30, and a mesh; with forks
 * also hills before the edits: its pin "start" and its fork "twin". The edits are in tiles then. */
struct sample {
    char folder[256], copy[300];
    struct model_layer *hills, *lake;
    struct model_layer *start; /* NULL: without forks */
    uint64_t hills_revision;
    struct err err;
};

static void log_row(struct sample *s, struct store *store, struct store_edit *edit)
{
    store_must(store_log(store, edit, &s->err), &s->err);
}

static void put_layers(struct sample *s, struct store *store)
{
    const struct model_layer *layers[] = {s->hills, s->lake};
    uint64_t sequence = 0;

    store_must(store_begin(store, &s->err), &s->err);
    for (int i = 0; i < 2; i++) {
        struct store_locale row = store_test_locale(layers[i]->locale, 1);
        struct store_edit made = {.revision = 1, .sequence = ++sequence};
        struct heightfield *field = model_layer_field(layers[i]);
        struct store_layer put = store_test_layer(layers[i], field);

        memcpy(made.locale, layers[i]->locale, sizeof made.locale);
        store_must(store_put_locale(store, &row, &s->err), &s->err);
        store_must(store_put_layer(store, &put, &s->err), &s->err);
        log_row(s, store, &made);
        heightfield_unref(field);
    }
    store_must(store_commit(store, &s->err), &s->err);
}

static void put_mesh(struct sample *s, struct store *store)
{
    struct polygon_set polygons;
    struct mesh *mesh = store_test_mesh(7, &polygons);
    struct store_layer put = {.locale = "lake",
                              .id = "deck",
                              .position = 1,
                              .kind = STORE_MESH,
                              .mesh = mesh,
                              .polygons = &polygons,
                              .gravity = {0, 0, -1}};
    struct store_edit made = {.locale = "lake", .revision = 2, .sequence = 3};

    store_must(store_begin(store, &s->err), &s->err);
    store_must(store_put_layer(store, &put, &s->err), &s->err);
    log_row(s, store, &made);
    store_must(store_commit(store, &s->err), &s->err);
    mesh_unref(mesh);
    polygon_set_free(&polygons);
}

static void edit_hills(struct sample *s, struct store *store, struct random *random)
{
    uint64_t revision = ++s->hills_revision;
    struct store_edit edit = model_layer_edit(s->hills, 50, revision, 100 + revision, random);
    struct store_past past = {.revision = revision,
                              .author = "alice",
                              .has_rect = true,
                              .rect = edit.rect,
                              .before_m = edit.heights_m};

    snprintf(edit.op_id, sizeof edit.op_id, "op-%llu", (unsigned long long)revision);
    edit.answer = "{}";
    edit.answer_bytes = 2;
    edit.past = &past;
    store_must(store_begin(store, &s->err), &s->err);
    log_row(s, store, &edit);
    store_must(store_commit(store, &s->err), &s->err);
    model_layer_apply(s->hills, &edit.rect, edit.heights_m);
    free((void *)(uintptr_t)edit.heights_m);
}

static void pin_and_fork(struct sample *s, struct store *store)
{
    struct random random = {99};
    struct store_locale twin = store_test_locale("twin", 1);
    struct store_edit made = {.locale = "twin", .revision = 1, .sequence = 4};
    const struct heightfield_spec *spec = &s->hills->spec;

    s->start = model_layer_make("twin", "ground", spec->cols, spec->rows, &random);
    memcpy(s->start->heights_m, s->hills->heights_m,
           (size_t)spec->cols * spec->rows * sizeof *s->start->heights_m);
    store_must(store_begin(store, &s->err), &s->err);
    store_must(store_put_pin(store, "hills", "start", 0, NULL, 0, &s->err), &s->err);
    store_must(store_put_locale(store, &twin, &s->err), &s->err);
    store_must(store_put_fork(store, "twin", "hills", NULL, &s->err), &s->err);
    log_row(s, store, &made);
    store_must(store_commit(store, &s->err), &s->err);
}

static const struct heightfield *hills_field(void *context, const char *locale, const char *layer)
{
    (void)layer;
    assert_string_equal(locale, "hills");
    return context;
}

/* A closed store; or, with a WAL left behind, the files as they were while it was open. */
static void sample_make_with(struct sample *s, bool has_wal, bool has_forks)
{
    struct random random = {99};
    struct store *store;

    memset(s, 0, sizeof *s);
    store_folder_make(s->folder);
    snprintf(s->copy, sizeof s->copy, "%s.copy", s->folder);
    s->hills = model_layer_make("hills", "ground", 600, 300, &random);
    s->lake = model_layer_make("lake", "ground", 40, 30, &random);
    store = store_must_open(s->folder);
    put_layers(s, store);
    put_mesh(s, store);
    if (has_forks)
        pin_and_fork(s, store);
    if (has_wal) { /* its tables in the database, the edits in the WAL */
        store_close(store);
        store = store_must_open(s->folder);
    }
    s->hills_revision = 1;
    store_set_history_max(store, 1 << 20);
    for (int i = 0; i < 6; i++)
        edit_hills(s, store, &random);
    if (has_forks) {
        struct heightfield *field = model_layer_field(s->hills);

        store_must(store_materialise(store, hills_field, field, &s->err), &s->err);
        heightfield_unref(field);
    }
    if (has_wal) {
        char from[300];

        snprintf(from, sizeof from, "%s.open", s->folder);
        store_folder_copy(s->folder, from);
        store_close(store);
        store_folder_copy(from, s->folder);
        store_folder_remove(from);
    } else {
        store_close(store);
    }
}

static void sample_make(struct sample *s, bool has_wal)
{
    sample_make_with(s, has_wal, false);
}

static void sample_free(struct sample *s)
{
    store_folder_remove(s->folder);
    store_folder_remove(s->copy);
    model_layer_free(s->hills);
    model_layer_free(s->lake);
    if (s->start)
        model_layer_free(s->start);
}

/* What a load of the copy says. */
struct verdict {
    bool is_refused; /* store_open or store_load gave an error */
    size_t damages;
    char message[320];
    char locales[16 * (STORE_ID_MAX + 2)]; /* those with damage: " a b c " */
    bool has_hills, has_lake;
};

static void expect_right(const struct sample *s, const struct loaded *loaded)
{
    const struct store_loaded_layer *hills = loaded_layer(loaded, "hills", "ground");
    const struct store_loaded_layer *lake = loaded_layer(loaded, "lake", "ground");
    const struct store_loaded_layer *deck = loaded_layer(loaded, "lake", "deck");
    const struct store_locale *locale = loaded_locale(loaded, "hills");

    if (hills)
        model_layer_expect(s->hills, hills->field);
    if (lake)
        model_layer_expect(s->lake, lake->field);
    if ((lake != NULL) != (deck != NULL) || (deck && mesh_bounds(deck->mesh).min.x != 70))
        fail_msg("half of lake is there");
    if ((locale != NULL) != (hills != NULL))
        fail_msg("half of hills is there");
    if (locale && (locale->revision != s->hills_revision || strcmp(locale->title, "Hügel") != 0))
        fail_msg("hills is at revision %llu", (unsigned long long)locale->revision);
    if (loaded->damage_count == 0 && loaded->code == ERR_OK && !(hills && lake))
        fail_msg("a locale is gone without a word");
}

static void expect_right_forks(const struct sample *s, const struct loaded *loaded)
{
    const struct store_loaded_layer *twin = loaded_layer(loaded, "twin", "ground");
    const struct store_loaded_layer *pinned = loaded_layer_of(loaded, 1, "hills", "ground");

    if (twin)
        model_layer_expect(s->start, twin->field);
    if (pinned)
        model_layer_expect(s->start, pinned->field);
    if ((loaded_layer(loaded, "hills", "ground") != NULL) != (pinned != NULL))
        fail_msg("hills is there without its pin");
    if (loaded->damage_count == 0 && loaded->code == ERR_OK && !(twin && pinned))
        fail_msg("a fork or a pin is gone without a word");
}

static struct verdict load_copy(const struct sample *s)
{
    struct store_options options = {.directory = s->copy, .threads = 2};
    struct verdict v = {.damages = 0};
    struct err err;
    struct store *store = store_open(&options, &err);
    struct loaded *loaded;

    if (!store) {
        v.is_refused = true;
        snprintf(v.message, sizeof v.message, "%s", err.msg);
        assert_true(err.code == ERR_DAMAGED || err.code == ERR_BAD_INPUT);
        return v;
    }
    loaded = loaded_make(store);
    expect_right(s, loaded);
    if (s->start)
        expect_right_forks(s, loaded);
    v.is_refused = loaded->code != ERR_OK;
    v.damages = loaded->damage_count;
    v.has_hills = loaded_locale(loaded, "hills") != NULL;
    v.has_lake = loaded_locale(loaded, "lake") != NULL;
    snprintf(v.message, sizeof v.message, "%s", v.is_refused ? loaded->err.msg : loaded->damage[0]);
    snprintf(v.locales, sizeof v.locales, " ");
    for (size_t i = 0; i < loaded->damage_count && i < 16; i++) {
        strcat(v.locales, loaded->damage_locale[i]);
        strcat(v.locales, " ");
    }
    if (v.is_refused)
        assert_true(loaded->code == ERR_DAMAGED);
    if (v.is_refused || v.damages)
        assert_true(strlen(v.message) > 0);
    loaded_free(loaded);
    store_close(store);
    return v;
}

static long file_bytes(const char *path)
{
    struct stat is;

    assert_int_equal(stat(path, &is), 0);
    return is.st_size;
}

static void flip(const char *path, long at, int bit)
{
    FILE *f = fopen(path, "r+b");
    int byte;

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(byte ^ 1 << bit, f);
    assert_int_equal(fclose(f), 0);
}

/* Half of the flips go to pages that hold rows, for most of the file are tiles. */
static void flip_and_cut(bool has_wal, bool has_forks)
{
    struct sample s;
    char path[400];
    unsigned refused = 0, damaged = 0, harmless = 0;

    sample_make_with(&s, has_wal, has_forks);
    snprintf(path, sizeof path, "%s/kota.db", s.copy);
    for (uint64_t seed = 0; seed < long_form(200, 60); seed++) {
        struct random random = {seed};
        struct verdict v;
        long bytes, at;

        store_folder_copy(s.folder, s.copy);
        bytes = file_bytes(path);
        at = (long)random_below(&random, (uint32_t)bytes);
        if (seed % 4 == 0)
            at = (long)random_below(&random, 10 * 16384);
        if (seed % 8 == 1)
            at = (long)random_below(&random, 400);
        if (seed % 10 == 9)
            assert_int_equal(truncate(path, at), 0);
        else
            flip(path, at, (int)random_below(&random, 8));
        print_message("# seed %llu, byte %ld\n", (unsigned long long)seed, at);
        v = load_copy(&s);
        refused += v.is_refused;
        damaged += !v.is_refused && v.damages;
        harmless += !v.is_refused && !v.damages;
    }
    print_message("# %u refused, %u with damage, %u as they were\n", refused, damaged, harmless);
    assert_true(refused > 0 && damaged > 0);
    sample_free(&s);
}

static void no_flip_or_cut_gives_a_wrong_height(void **state)
{
    (void)state;
    flip_and_cut(false, false);
}

static void nor_with_a_wal_left_behind(void **state)
{
    (void)state;
    flip_and_cut(true, false);
}

static void nor_with_pins_and_forks(void **state)
{
    (void)state;
    flip_and_cut(false, true);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void execute(const char *folder, const char *sql)
{
    char path[400], *said = NULL;
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/kota.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
    sqlite3_close(db);
}

/* SQLite finds nothing wrong with these; the checksums and counts do. */
static void a_value_or_row_that_is_changed_is_found(void **state)
{
    static const struct {
        const char *sql, *locale;
    } cases[] = {
        {"UPDATE locale SET title = 'Hugel' WHERE id = 'hills'", "hills"},
        {"UPDATE locale SET revision = revision - 1 WHERE id = 'hills'", "hills"},
        {"UPDATE locale SET geo = NULL WHERE id = 'lake'", "lake"},
        {"UPDATE locale SET id = 'hillz' WHERE id = 'hills'", "hills"},
        {"DELETE FROM locale WHERE id = 'lake'", "lake"},
        {"UPDATE layer SET grid = zeroblob(32) WHERE locale = 'hills'", "hills"},
        {"UPDATE layer SET role = 2 WHERE id = 'deck'", "lake"},
        {"UPDATE layer SET locale = 'hills' WHERE id = 'deck'", "lake"},
        {"DELETE FROM layer WHERE id = 'deck'", "lake"},
        {"DELETE FROM layer WHERE locale = 'hills'", "hills"},
        {"DELETE FROM edit WHERE sequence = 104", "hills"},
        {"DELETE FROM edit WHERE sequence = (SELECT max(sequence) FROM edit)", "hills"},
        {"DELETE FROM edit WHERE sequence = 1", "hills"},
        {"UPDATE edit SET op_id = 'op' WHERE sequence = 103", "hills"},
        {"UPDATE edit SET answer = '[]' WHERE sequence = 103", "hills"},
        {"UPDATE edit SET rect = zeroblob(16) WHERE sequence = 103", "hills"},
        {"UPDATE edit SET data = zeroblob(length(data)) WHERE sequence = 103", "hills"},
        {"UPDATE edit SET codec = NULL, data = NULL WHERE sequence = 103", "hills"},
        {"UPDATE edit SET codec = 0, data = x'00' WHERE sequence = 1", "hills"},
        {"DELETE FROM tile WHERE ty = 1 AND tx = 2", "hills"},
        {"UPDATE tile SET tx = 7 WHERE ty = 1 AND tx = 2", "hills"},
        {"UPDATE tile SET rev = 2 WHERE ty = 1 AND tx = 2", "hills"},
        {"UPDATE tile SET codec = 1 WHERE ty = 1 AND tx = 2", "hills"},
        {"UPDATE tile SET layer = 'x' WHERE ty = 1 AND tx = 2", "hills"},
        {"UPDATE store SET locales = 3", ""},
        {"DELETE FROM store", ""},
    };
    struct sample s;

    (void)state;
    sample_make(&s, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verdict v;
        char named[16];

        store_folder_copy(s.folder, s.copy);
        execute(s.copy, cases[i].sql);
        v = load_copy(&s);
        if (v.is_refused || v.damages == 0)
            fail_msg("%s: %s", cases[i].sql, v.is_refused ? v.message : "nothing was found");
        snprintf(named, sizeof named, " %s ", cases[i].locale);
        if (!strstr(v.locales, cases[i].locale[0] ? named : ""))
            fail_msg("%s: locales '%s': %s", cases[i].sql, v.locales, v.message);
        if (strcmp(cases[i].locale, "hills") == 0 && (v.has_hills || !v.has_lake))
            fail_msg("%s: it is served, or the other is not", cases[i].sql);
    }
    sample_free(&s);
}

/* What shares a damaged tile is not served; what does not share it is. */
static void a_row_of_a_pin_or_a_fork_that_is_changed_is_found(void **state)
{
    static const struct {
        const char *sql, *locales; /* not served */
    } cases[] = {
        {"UPDATE layer SET since = since + 1 WHERE locale = 'twin'", "twin"},
        {"UPDATE layer SET base_rev = base_rev + 1 WHERE locale = 'twin'", "twin"},
        {"UPDATE locale SET origin = 'lake' WHERE id = 'twin'", "twin"},
        {"UPDATE kept_tile SET data = zeroblob(length(data))", "hills twin"},
        {"UPDATE kept_tile SET rev = rev + 1", "hills twin"},
        {"DELETE FROM kept_tile", "hills twin"},
        {"UPDATE pin SET title = 'x' WHERE name = 'start'", "hills"},
        {"UPDATE pin_layer SET role = 2 WHERE pin = 'start'", "hills"},
        {"UPDATE pin_layer SET since = 1 WHERE pin = '/1'", "hills twin"},
        {"UPDATE pin SET rev = rev + 1 WHERE name = '/1'", "hills twin"},
        {"UPDATE tile SET data = zeroblob(length(data)) WHERE locale = 'lake'", "lake"},
    };
    struct sample s;

    (void)state;
    sample_make_with(&s, false, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const ids[] = {"hills", "lake", "twin"};
        struct store *store;
        struct loaded *loaded;

        store_folder_copy(s.folder, s.copy);
        execute(s.copy, cases[i].sql);
        store = store_must_open(s.copy);
        loaded = loaded_make(store);
        expect_right_forks(&s, loaded);
        for (size_t k = 0; k < 3; k++)
            if ((loaded_locale(loaded, ids[k]) == NULL) != !!strstr(cases[i].locales, ids[k]))
                fail_msg("%s: %s is %sserved", cases[i].sql, ids[k],
                         loaded_locale(loaded, ids[k]) ? "" : "not ");
        loaded_free(loaded);
        store_close(store);
    }
    sample_free(&s);
}

static void append_message(void *context, const char *message)
{
    char *all = context;

    strncat(all, message, 4000 - strlen(all));
    strncat(all, "\n", 4000 - strlen(all));
}

static long check_copy(const struct sample *s, char said[4096])
{
    struct store_options options = {.directory = s->copy, .is_read_only = true};
    struct err err;
    struct store *store = store_open(&options, &err);
    long found;

    said[0] = '\0';
    if (!store)
        fail_msg("%s", err.msg);
    found = store_check(store, append_message, said, &err);
    store_close(store);
    return found;
}

/* Opens the copy, makes a change there, and closes it. */
static void change_copy(struct sample *s, const char *drops_pin, const char *deletes)
{
    struct store *store = store_must_open(s->copy);

    loaded_free(loaded_make(store));
    store_must(store_begin(store, &s->err), &s->err);
    if (drops_pin)
        store_must(store_drop_pin(store, drops_pin, "start", &s->err), &s->err);
    if (deletes) {
        struct store_locale gone = store_test_locale(deletes, 2);
        struct store_edit row = {.revision = 2, .sequence = 200};

        gone.is_deleted = true;
        snprintf(row.locale, sizeof row.locale, "%s", deletes);
        store_must(store_put_locale(store, &gone, &s->err), &s->err);
        log_row(s, store, &row);
    }
    store_must(store_commit(store, &s->err), &s->err);
    store_close(store);
}

static void what_a_damaged_fork_names_stays_until_it_is_mended(void **state)
{
    struct sample s;
    struct verdict v;
    char said[4096];

    (void)state;
    sample_make_with(&s, false, true);
    store_folder_copy(s.folder, s.copy);
    execute(s.copy, "UPDATE layer SET since = since + 1 WHERE locale = 'twin'");
    change_copy(&s, "hills", NULL);
    execute(s.copy, "UPDATE layer SET since = since - 1 WHERE locale = 'twin'");
    assert_int_equal(check_copy(&s, said), 0);
    /* a base that nothing names is left while another locale is damaged, and then removed */
    execute(s.copy, "UPDATE tile SET rev = rev + 9 WHERE locale = 'lake'");
    change_copy(&s, NULL, "twin");
    execute(s.copy, "UPDATE tile SET rev = rev - 9 WHERE locale = 'lake'");
    assert_int_equal(check_copy(&s, said), 1);
    assert_non_null(strstr(said, "no fork needs"));
    model_layer_free(s.start);
    s.start = NULL;
    v = load_copy(&s);
    assert_true(!v.is_refused && v.damages == 0 && v.has_hills && v.has_lake);
    assert_int_equal(check_copy(&s, said), 0);
    sample_free(&s);
}

static void a_declaration_that_is_changed_is_found(void **state)
{
    struct sample s;
    struct verdict v;

    (void)state;
    sample_make(&s, false);
    store_folder_copy(s.folder, s.copy);
    execute(s.copy, "DROP INDEX edit_op_id");
    v = load_copy(&s);
    assert_true(v.is_refused);
    sample_free(&s);
}

static const struct heightfield *no_field(void *context, const char *locale, const char *layer)
{
    (void)context;
    (void)layer;
    fail_msg("it asks for a field of %s", locale);
    return NULL;
}

/* Also after a rollback, which makes it read its tables again. */
static void logged_samples_of_a_damaged_locale_stay(void **state)
{
    static const char broken[] = "UPDATE tile SET rev = 77 WHERE ty = 0 AND tx = 1";
    static const char whole[] = "UPDATE tile SET rev = 1 WHERE ty = 0 AND tx = 1";
    struct sample s;
    struct store *store;
    struct loaded *loaded;
    struct verdict v;

    (void)state;
    sample_make(&s, false);
    store_folder_copy(s.folder, s.copy);
    execute(s.copy, broken);
    store = store_must_open(s.copy);
    loaded = loaded_make(store);
    assert_int_equal(loaded->damage_count, 1);
    loaded_free(loaded);
    store_must(store_begin(store, &s.err), &s.err);
    store_rollback(store);
    store_must(store_materialise(store, no_field, NULL, &s.err), &s.err);
    store_close(store);
    execute(s.copy, whole);
    v = load_copy(&s);
    assert_int_equal(v.damages, 0);
    assert_true(v.has_hills && v.has_lake);
    sample_free(&s);
}

static void damage_of_no_locale_makes_it_read_only(void **state)
{
    struct sample s;
    struct store *store;
    struct store_stats stats;

    (void)state;
    sample_make(&s, false);
    store_folder_copy(s.folder, s.copy);
    execute(s.copy, "UPDATE store SET locales = 3");
    store = store_must_open(s.copy);
    loaded_free(loaded_make(store));
    store_stats(store, &stats);
    assert_true(stats.is_read_only);
    assert_int_equal(stats.cause, ERR_READ_ONLY);
    assert_int_equal(store_begin(store, &s.err), ERR_READ_ONLY);
    store_close(store);
    sample_free(&s);
}

/* ---- a tile --------------------------------------------------------------------------------- */

/* A cache: what is damaged is not given out, told by the check, and mended by the next put. */
static void a_damaged_shell_is_told_and_mended(void **state)
{
    static const char *const damage[] = {
        "UPDATE shell SET data = x'00'",
        "UPDATE shell SET data = CAST('a shell' AS TEXT)",
        "UPDATE shell SET crc = crc + 1",
        "UPDATE shell SET crc = x'00'",
        "UPDATE shell SET radius_um = 50000 WHERE radius_um = 100000",
    };
    struct store_model model = {
        .id = "rock", .media_type = "model/obj", .bytes = "v 1 2 3", .length = 7};
    struct store_shell shell = {.version = 1, .radius_um = 100000, .bytes = "a shell", .length = 7};
    struct store *store;
    struct sample s;

    (void)state;
    sample_make(&s, false);
    content_hash(model.bytes, model.length, shell.model);
    store = store_must_open(s.folder);
    loaded_free(loaded_make(store));
    store_must(store_begin(store, &s.err), &s.err);
    store_must(store_put_model(store, &model, &s.err), &s.err);
    store_must(store_put_shell(store, &shell, &s.err), &s.err);
    store_must(store_commit(store, &s.err), &s.err);
    store_close(store);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        struct store_shell key = shell;
        char said[4096];
        struct verdict v;
        size_t length;
        void *bytes;

        store_folder_copy(s.folder, s.copy);
        assert_int_equal(check_copy(&s, said), 0);
        execute(s.copy, damage[i]);
        v = load_copy(&s);
        assert_true(!v.is_refused && v.damages == 0 && v.has_hills && v.has_lake);
        assert_int_equal(check_copy(&s, said), 1);
        assert_non_null(strstr(said, "shells are damaged"));
        store = store_must_open(s.copy);
        loaded_free(loaded_make(store));
        key.radius_um = i == 4 ? 50000 : 100000;
        assert_int_equal(store_find_shell(store, &key, &bytes, &length, &s.err), ERR_DAMAGED);
        assert_null(bytes);
        store_must(store_begin(store, &s.err), &s.err);
        key.bytes = "another";
        store_must(store_put_shell(store, &key, &s.err), &s.err);
        store_must(store_commit(store, &s.err), &s.err);
        store_must(store_find_shell(store, &key, &bytes, &length, &s.err), &s.err);
        assert_memory_equal(bytes, "another", 7);
        free(bytes);
        store_close(store);
        assert_int_equal(check_copy(&s, said), 0);
    }
    sample_free(&s);
}

static void a_flipped_byte_of_a_tile_is_named(void **state)
{
    struct sample s;
    struct verdict v;
    char said[4096];

    (void)state;
    sample_make(&s, false);
    store_folder_copy(s.folder, s.copy);
    assert_int_equal(check_copy(&s, said), 0);
    execute(s.copy, "UPDATE tile SET data = CAST(substr(data, 1, 70000) || x'ff' || "
                    "substr(data, 70002) AS BLOB) WHERE locale = 'hills' AND ty = 0 AND tx = 1");
    v = load_copy(&s);
    assert_false(v.is_refused);
    assert_int_equal(v.damages, 1);
    assert_string_equal(v.locales, " hills ");
    assert_non_null(strstr(v.message, "locale hills, layer ground, tile (1, 0)"));
    assert_true(v.has_lake && !v.has_hills);
    assert_int_equal(check_copy(&s, said), 1);
    assert_non_null(strstr(said, "locale hills, layer ground, tile (1, 0)"));
    sample_free(&s);
}

static void a_damaged_or_missing_mesh_file_is_named(void **state)
{
    static const char *const damage[] = {
        "printf x | dd of=$(ls meshes/*.qota) bs=1 seek=5000 conv=notrunc 2>/dev/null",
        "printf x | dd of=$(ls meshes/*.qota) bs=1 seek=90 conv=notrunc 2>/dev/null",
        "printf x | dd of=$(ls meshes/*.polygons) bs=1 seek=50 conv=notrunc 2>/dev/null",
        "truncate -s 100 meshes/*.qota",
        "truncate -s 0 meshes/*.polygons",
        "rm meshes/*.qota",
    };
    struct sample s;

    (void)state;
    sample_make(&s, false);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char command[700];
        struct verdict v;

        store_folder_copy(s.folder, s.copy);
        snprintf(command, sizeof command, "cd '%s' && %s", s.copy, damage[i]);
        assert_int_equal(system(command), 0);
        v = load_copy(&s);
        if (v.damages != 1 || !strstr(v.message, "locale lake, layer deck: file "))
            fail_msg("%s: %s", damage[i], v.damages ? v.message : "nothing was found");
        assert_true(v.has_hills && !v.has_lake);
    }
    sample_free(&s);
}

static void an_empty_file_is_no_new_world(void **state)
{
    struct sample s;
    struct verdict v;
    char path[400];

    (void)state;
    sample_make(&s, false);
    store_folder_copy(s.folder, s.copy);
    snprintf(path, sizeof path, "%s/kota.db", s.copy);
    assert_int_equal(truncate(path, 0), 0);
    v = load_copy(&s);
    assert_true(v.is_refused);
    assert_non_null(strstr(v.message, "kota.db"));
    sample_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flip_or_cut_gives_a_wrong_height),
        cmocka_unit_test(nor_with_a_wal_left_behind),
        cmocka_unit_test(nor_with_pins_and_forks),
        cmocka_unit_test(a_row_of_a_pin_or_a_fork_that_is_changed_is_found),
        cmocka_unit_test(a_value_or_row_that_is_changed_is_found),
        cmocka_unit_test(what_a_damaged_fork_names_stays_until_it_is_mended),
        cmocka_unit_test(a_declaration_that_is_changed_is_found),
        cmocka_unit_test(logged_samples_of_a_damaged_locale_stay),
        cmocka_unit_test(damage_of_no_locale_makes_it_read_only),
        cmocka_unit_test(a_damaged_shell_is_told_and_mended),
        cmocka_unit_test(a_flipped_byte_of_a_tile_is_named),
        cmocka_unit_test(a_damaged_or_missing_mesh_file_is_named),
        cmocka_unit_test(an_empty_file_is_no_new_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
