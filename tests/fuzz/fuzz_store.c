/*
 * Fuzzer of the store's rows: a good database whose rows have been changed, then opened and read.
 *
 * The input is a list of changes: table and whether the row is sealed anew with its checksum, row,
 * column, kind of value, length, bytes. Sealed, the damage gets past the checksums to what reads
 * the values. What SQLite itself refuses is not made. Whatever is there then, opening and reading
 * it must end with errors or findings, and each field that is given out must be sound.
 *
 * The database is made once, and copied for each input, in memory (/dev/shm) where there is some.
 */
#include "base/check.h"
#include "store/store_data.h"
#include "terrain/mesh/mesh.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHANGES_MAX = 16, COLS = 300, ROWS = 2 }; /* two tiles */

static const struct table {
    const char *name;
    const char *columns[16];
    const char *seal;
} tables[] = {
    {"store", {"locales", "models"}, "crc = row_crc(id, locales, models)"},
    {"locale",
     {"id", "revision", "applied_rev", "log_first", "log_last", "layers", "is_deleted", "title",
      "gravity", "translation", "rotation", "open_sky", "triangulation", "geo"},
     "crc = row_crc(id, revision, applied_rev, log_first, log_last, layers, is_deleted, title, "
     "gravity, translation, rotation, open_sky, triangulation, geo)"},
    {"layer",
     {"locale", "id", "position", "kind", "role", "cols", "rows", "leaf_cells", "grid", "gravity",
      "mesh", "polygons"},
     "crc = row_crc(locale, id, position, kind, role, cols, rows, leaf_cells, grid, gravity, mesh, "
     "polygons)"},
    {"tile",
     {"locale", "layer", "ty", "tx", "rev", "codec", "data"},
     "crc = row_crc(locale, layer, ty, tx, rev, codec, data)"},
    {"edit",
     {"sequence", "locale", "rev", "kind", "layer", "source", "op_id", "request", "rect", "bounds",
      "answer", "has_samples", "codec", "data"},
     "crc = row_crc(sequence, locale, rev, kind, layer, source, op_id, request, rect, bounds, "
     "answer, has_samples), data_crc = row_crc(sequence, codec, data)"},
    {"model", {"id", "hash", "media_type", "data"}, "crc = row_crc(id, hash, media_type, data)"},
    {"shell",
     {"model", "version", "radius_um", "data"},
     "crc = row_crc(model, version, radius_um, data)"},
    {"pose", {"locale", "layer", "pose", "seq"}, "crc = row_crc(locale, layer, pose, seq)"},
};
enum { TABLES = sizeof tables / sizeof *tables };

static char folder[64], good[96], work[96];

/* ---- folders --------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    CHECK(remove(path) == 0);
    return 0;
}

static void remove_folder(const char *path)
{
    if (access(path, F_OK) == 0)
        CHECK(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

/*
 * A child that waits for the end of this process, whichever, and removes the folder then: libFuzzer
 * leaves by _Exit, which calls nothing that atexit was given, and a crash does so, too.
 */
static void remove_at_the_end(void)
{
    int ends[2];
    char byte;
    pid_t child;

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child != 0) {
        close(ends[0]); /* the other end closes with this process */
        return;
    }
    close(ends[1]);
    setsid(); /* what interrupts the fuzzer does not interrupt this */
    while (read(ends[0], &byte, 1) > 0)
        continue;
    remove_folder(folder);
    _exit(0);
}

/* An entry of `good` under the same name in `work`. */
static int copy_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    char to[sizeof work + 256];
    ssize_t left = (ssize_t)status->st_size, some;
    int in, out;

    (void)place;
    CHECK(snprintf(to, sizeof to, "%s%s", work, path + strlen(good)) < (int)sizeof to);
    if (kind == FTW_D) {
        CHECK(mkdir(to, 0700) == 0);
        return 0;
    }
    in = open(path, O_RDONLY | O_CLOEXEC);
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(kind == FTW_F && in >= 0 && out >= 0);
    for (; left > 0; left -= some) {
        some = sendfile(out, in, NULL, (size_t)left);
        CHECK(some > 0);
    }
    close(in);
    close(out);
    return 0;
}

static struct store *store_at(const char *directory, bool is_read_only)
{
    struct store_options options = {.directory = directory, .is_read_only = is_read_only};
    struct err err = {.code = ERR_OK};

    return store_open(&options, &err);
}

/* ---- the good one ---------------------------------------------------------------------------- */

static void put_locale(struct store *store, struct err *err)
{
    struct store_locale locale = {.id = "land",
                                  .revision = 1,
                                  .title = "Land",
                                  .gravity = {0, 0, -1},
                                  .rotation = {0, 0, 0, 1},
                                  .open_sky = true,
                                  .has_geo = true};
    struct store_edit made = {.locale = "land", .revision = 1, .sequence = 1};
    struct heightfield_spec spec = {COLS, ROWS, 0, 0, 1, 1, TRIANGULATION_MAIN, 16};
    float heights_m[COLS * ROWS];
    struct store_layer put = {.locale = "land", .id = "ground", .kind = STORE_HEIGHTFIELD};
    struct heightfield *field;

    for (int i = 0; i < COLS * ROWS; i++)
        heights_m[i] = i % 50 ? (float)(i % 7) : NAN;
    field = heightfield_create(&spec, heights_m, err);
    CHECK(field);
    put.field = field;
    CHECK(store_put_locale(store, &locale, err) == ERR_OK);
    CHECK(store_put_layer(store, &put, err) == ERR_OK);
    CHECK(store_log(store, &made, err) == ERR_OK);
    heightfield_unref(field);
}

static void put_mesh(struct store *store, struct err *err)
{
    static const struct vec3 vertices[] = {{0, 0, 0}, {4, 0, 1}, {0, 4, 0}, {4, 4, 2}};
    static const uint32_t corners[] = {0, 1, 2, 1, 3, 2}, starts[] = {0, 3, 6};
    struct polygon_soup soup = {vertices, 4, corners, starts, 2};
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct mesh *mesh = mesh_create(&soup, &options, NULL, err);
    struct polygon_set polygons;
    struct store_edit made = {.locale = "land", .revision = 2, .sequence = 2, .layer = "deck"};
    struct store_layer put = {.locale = "land",
                              .id = "deck",
                              .position = 1,
                              .kind = STORE_MESH,
                              .gravity = {0, 0, -1},
                              .polygons = &polygons,
                              .mesh = mesh};

    CHECK(mesh && polygon_set_allocate(4, 2, 6, &polygons, err) == ERR_OK);
    memcpy(polygons.vertices, vertices, sizeof vertices);
    memcpy(polygons.corners, corners, sizeof corners);
    memcpy(polygons.starts, starts, sizeof starts);
    CHECK(store_put_layer(store, &put, err) == ERR_OK);
    CHECK(store_log(store, &made, err) == ERR_OK);
    mesh_unref(mesh);
    polygon_set_free(&polygons);
}

static void put_edit(struct store *store, struct err *err)
{
    static const float heights_m[6] = {1, 2, 3, 4, 5, 6};
    struct store_edit edit = {.locale = "land",
                              .revision = 3,
                              .sequence = 3,
                              .layer = "ground",
                              .source = "edit",
                              .op_id = "op",
                              .has_rect = true,
                              .rect = {255, 0, 3, 2},
                              .heights_m = heights_m,
                              .has_bounds = true,
                              .answer = "{}",
                              .answer_bytes = 2};
    struct store_model model = {.id = "box", .media_type = "model/obj", .bytes = "v", .length = 1};
    struct store_shell shell = {.version = 1, .radius_um = 5, .bytes = "s", .length = 1};
    struct store_pose pose = {{1, 2, 3}, 45, .transform_seq = 8};

    CHECK(store_log(store, &edit, err) == ERR_OK);
    CHECK(store_put_model(store, &model, err) == ERR_OK);
    CHECK(store_put_pose(store, "land", "deck", &pose, err) == ERR_OK);
    CHECK(store_put_transform_seq(store, "land", 9, err) == ERR_OK);
    store_put_shell(store, &shell, err);
}

static void start_once(void)
{
    struct err err = {.code = ERR_OK};
    struct store *store;

    if (folder[0] != '\0')
        return;
    strcpy(folder,
           access("/dev/shm", W_OK) == 0 ? "/dev/shm/kota-fuzz-XXXXXX" : "/tmp/kota-fuzz-XXXXXX");
    CHECK(mkdtemp(folder));
    remove_at_the_end();
    snprintf(good, sizeof good, "%s/good", folder);
    snprintf(work, sizeof work, "%s/work", folder);
    store = store_at(good, false);
    CHECK(store && store_begin(store, &err) == ERR_OK);
    put_locale(store, &err);
    put_mesh(store, &err);
    put_edit(store, &err);
    CHECK(store_commit(store, &err) == ERR_OK);
    store_close(store);
}

/* ---- changes --------------------------------------------------------------------------------- */

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static void bind(sqlite3_stmt *change, struct input *input)
{
    const uint8_t kind = take(input);
    size_t length = take(input);
    sqlite3_int64 integer = 0;

    if (length > input->left)
        length = input->left;
    memcpy(&integer, input->at, length < 8 ? length : 8);
    switch (kind % 5) {
    case 0:
        sqlite3_bind_null(change, 1);
        break;
    case 1:
        sqlite3_bind_int64(change, 1, integer);
        break;
    case 2:
        sqlite3_bind_text(change, 1, (const char *)input->at, (int)length, SQLITE_TRANSIENT);
        break;
    case 3:
        sqlite3_bind_blob(change, 1, input->at, (int)length, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_bind_double(change, 1, (double)integer / 7);
        break;
    }
    input->at += length;
    input->left -= length;
}

static void change_row(sqlite3 *db, struct input *input)
{
    const uint8_t which = take(input), row = take(input) % 4, column = take(input);
    const struct table *table = &tables[which % 8 % TABLES];
    size_t columns = 0;
    sqlite3_stmt *change = NULL;
    char sql[600];

    while (columns < 16 && table->columns[columns])
        columns++;
    snprintf(sql, sizeof sql,
             "UPDATE %s SET %s = ?1 WHERE rowid = (SELECT rowid FROM %s LIMIT 1 OFFSET %d)",
             table->name, table->columns[column % columns], table->name, row);
    if (column == 255)
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE ?1 IS NOT NULL", table->name);
    CHECK(sqlite3_prepare_v2(db, sql, -1, &change, NULL) == SQLITE_OK);
    bind(change, input);
    sqlite3_step(change);
    sqlite3_finalize(change);
    snprintf(sql, sizeof sql, "UPDATE %s SET %s", table->name, table->seal);
    if (which & 8)
        sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool on_layer(void *context, struct store_loaded_layer *layer, struct err *err)
{
    (void)context;
    if (layer->kind == STORE_HEIGHTFIELD)
        CHECK(heightfield_validate(layer->field, err) && !layer->has_pose);
    if (layer->has_pose)
        for (size_t i = 0; i < 3; i++)
            CHECK(isfinite(layer->pose.translation[i]) && isfinite(layer->pose.yaw_deg));
    heightfield_unref(layer->field);
    mesh_unref(layer->mesh);
    polygon_set_free(&layer->polygons);
    return true;
}

static bool on_locale(void *context, const struct store_locale *locale, struct err *err)
{
    (void)context;
    (void)err;
    return strlen(locale->title) <= STORE_TITLE_MAX;
}

static bool on_edit(void *context, const struct store_edit *edit, struct err *err)
{
    (void)context;
    (void)err;
    return edit->sequence > 0;
}

static void on_damage(void *context, const char *locale, const char *message)
{
    (void)context;
    CHECK(strlen(locale) <= STORE_ID_MAX && strlen(message) > 0);
}

static bool on_model(void *context, const struct store_model *model, struct err *err)
{
    (void)context;
    (void)err;
    return model->length == 0 || model->bytes != NULL;
}

static void say(void *context, const char *message)
{
    (void)context;
    CHECK(message[0] != '\0');
}

static void read_all(void)
{
    const struct store_sink sink = {
        .locale = on_locale, .layer = on_layer, .edit = on_edit, .damage = on_damage};
    struct err err = {.code = ERR_OK};
    struct store *store = store_at(work, true);
    struct store_edit found;
    uint64_t sequence, done, total;
    bool is_found;

    if (!store)
        return;
    if (store_load(store, &sink, &err) == ERR_OK) {
        store_last_sequence(store, &sequence, &err);
        store_models(store, on_model, NULL, &err);
        store_find_op(store, "op", &is_found, &found, &err);
        store_load_progress(store, &done, &total);
        CHECK(done <= total);
    }
    store_check(store, say, NULL, &err);
    store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {bytes, size};
    struct store *store;

    start_once();
    remove_folder(work);
    CHECK(nftw(good, copy_entry, 8, FTW_PHYS) == 0);
    store = store_at(work, false);
    CHECK(store);
    for (int i = 0; i < CHANGES_MAX && input.left > 0; i++)
        change_row(store->db, &input);
    store_close(store);
    read_all();
    return 0;
}
