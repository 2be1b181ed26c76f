/*
 * What durability costs: the commit of an edit beside a bare SQLite commit of as many bytes, and a
 * start beside reading the database's file.
 *
 *   commit   begin, log an edit of 128×128 samples, commit; beside INSERT of a 64 KiB blob into a
 *            table of one column, in a database of its own, WAL and FULL as ours. Rounds take
 *            turns, medians.
 *   start    store_open and store_load of a layer of 8192×8192 samples beside `cat` of kota.db to
 *            nowhere, both with a warm page cache
 *
 * Run it in a folder on the disk that is meant: TMPDIR, else /tmp.
 */
#include "store/store.h"

#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 128, ROUNDS = 400, STARTS = 7, FIELD = 8192 };

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench_store: %s\n", what);
    exit(1);
}

static float *random_heights(size_t count, uint64_t seed)
{
    struct random random = {seed};
    float *heights = malloc(count * sizeof *heights);

    must(heights != NULL, "no memory");
    for (size_t i = 0; i < count; i++)
        heights[i] = (float)random_in(&random, 0, 1000);
    return heights;
}

/* ---- the world ------------------------------------------------------------------------------ */

struct world {
    char folder[200];
    struct store *store;
    uint64_t revision;
    struct err err;
};

static void world_log(struct world *w, const struct sample_rect *rect, const float *heights)
{
    struct store_edit edit = {.locale = "hills",
                              .layer = "ground",
                              .source = "bench",
                              .revision = ++w->revision,
                              .sequence = w->revision,
                              .has_rect = rect != NULL,
                              .heights_m = heights};

    if (rect)
        edit.rect = *rect;
    must(store_log(w->store, &edit, &w->err) == ERR_OK, w->err.msg);
}

static void world_open(struct world *w)
{
    struct store_options options = {.directory = w->folder};

    w->store = store_open(&options, &w->err);
    must(w->store != NULL, w->err.msg);
}

static void world_make(struct world *w, const char *folder, uint32_t side)
{
    struct heightfield_spec spec = {side, side, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct store_locale locale = {.id = "hills", .rotation = {0, 0, 0, 1}, .gravity = {0, 0, -1}};
    struct store_layer layer = {.locale = "hills", .id = "ground", .kind = STORE_HEIGHTFIELD};
    float *heights = random_heights((size_t)side * side, 1);
    struct heightfield *field = heightfield_create(&spec, heights, &w->err);

    must(field != NULL, w->err.msg);
    free(heights);
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    w->revision = 0;
    world_open(w);
    must(store_begin(w->store, &w->err) == ERR_OK, w->err.msg);
    must(store_put_locale(w->store, &locale, &w->err) == ERR_OK, w->err.msg);
    layer.field = field;
    must(store_put_layer(w->store, &layer, &w->err) == ERR_OK, w->err.msg);
    world_log(w, NULL, NULL);
    must(store_commit(w->store, &w->err) == ERR_OK, w->err.msg);
    heightfield_unref(field);
}

/* ---- commits -------------------------------------------------------------------------------- */

static sqlite3 *bare_open(const char *folder)
{
    char path[256];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/bare.db", folder);
    must(sqlite3_open(path, &db) == SQLITE_OK, "no bare database");
    must(sqlite3_exec(db,
                      "PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                      "CREATE TABLE t(data BLOB)",
                      NULL, NULL, NULL) == SQLITE_OK,
         "no bare table");
    return db;
}

static double bare_commit(sqlite3_stmt *insert, const float *heights)
{
    double start = bench_now_s();

    sqlite3_bind_blob(insert, 1, heights, SIDE * SIDE * sizeof *heights, SQLITE_STATIC);
    must(sqlite3_step(insert) == SQLITE_DONE, "the bare commit fails");
    sqlite3_reset(insert);
    return bench_now_s() - start;
}

static double our_commit(struct world *w, const struct sample_rect *rect, const float *heights)
{
    double start = bench_now_s();

    must(store_begin(w->store, &w->err) == ERR_OK, w->err.msg);
    world_log(w, rect, heights);
    must(store_commit(w->store, &w->err) == ERR_OK, w->err.msg);
    return bench_now_s() - start;
}

static void print_commits(const char *top)
{
    static double bare_s[ROUNDS], our_s[ROUNDS];
    struct random random = {3};
    float *heights = random_heights(SIDE * SIDE, 2);
    struct world w;
    char folder[200];
    sqlite3 *bare;
    sqlite3_stmt *insert;

    snprintf(folder, sizeof folder, "%s/commits", top);
    world_make(&w, folder, 2048);
    bare = bare_open(folder);
    must(sqlite3_prepare_v2(bare, "INSERT INTO t VALUES (?1)", -1, &insert, NULL) == SQLITE_OK,
         "no statement");
    for (size_t i = 0; i < ROUNDS; i++) {
        struct sample_rect rect = {random_below(&random, 2048 - SIDE),
                                   random_below(&random, 2048 - SIDE), SIDE, SIDE};

        heights[0] = (float)i;
        bare_s[i] = bare_commit(insert, heights);
        our_s[i] = our_commit(&w, &rect, heights);
    }
    sqlite3_finalize(insert);
    sqlite3_close(bare);
    store_close(w.store);
    free(heights);
    double b = bench_median(bare_s, ROUNDS), o = bench_median(our_s, ROUNDS);

    printf("\nCommit of an edit of %d×%d samples beside a bare SQLite commit of the same bytes: "
           "%.0f µs, %.0f µs\n\n",
           SIDE, SIDE, 1e6 * o, 1e6 * b);
    bench_row_most("Store", "commit of an edit of 128×128", "SQLite, the same bytes", o / b, 2,
                   NULL);
}

/* ---- start ---------------------------------------------------------------------------------- */

static bool on_locale(void *context, const struct store_locale *locale, struct err *err)
{
    (void)context, (void)locale, (void)err;
    return true;
}

static bool on_layer(void *context, struct store_loaded_layer *layer, struct err *err)
{
    (void)err;
    *(struct heightfield **)context = layer->field;
    return true;
}

static bool on_edit(void *context, const struct store_edit *edit, struct err *err)
{
    (void)context, (void)edit, (void)err;
    return true;
}

static void on_damage(void *context, const char *locale, const char *message)
{
    (void)context, (void)locale;
    must(false, message);
}

static double our_start(struct world *w)
{
    struct heightfield *field = NULL;
    struct store_sink sink = {&field, on_locale, on_layer, on_edit, on_damage, NULL};
    double start = bench_now_s(), took;

    world_open(w);
    must(store_load(w->store, &sink, &w->err) == ERR_OK && field, w->err.msg);
    took = bench_now_s() - start;
    heightfield_unref(field);
    store_close(w->store);
    return took;
}

static double cat(const char *folder)
{
    char command[256];
    double start;

    snprintf(command, sizeof command, "cat '%s/kota.db' >/dev/null", folder);
    start = bench_now_s();
    must(system(command) == 0, command);
    return bench_now_s() - start;
}

static void print_starts(const char *top)
{
    double cat_s[STARTS], our_s[STARTS];
    struct world w;
    char folder[200];

    snprintf(folder, sizeof folder, "%s/starts", top);
    world_make(&w, folder, FIELD);
    store_close(w.store);
    cat(folder);
    for (size_t i = 0; i < STARTS; i++) {
        cat_s[i] = cat(folder);
        our_s[i] = our_start(&w);
    }
    double c = bench_median(cat_s, STARTS), o = bench_median(our_s, STARTS);

    printf("\nStart with a layer of %d² samples beside `cat` of its file, page cache warm: "
           "%.0f ms, %.0f ms\n\n",
           FIELD, 1e3 * o, 1e3 * c);
    bench_row_most("Store", "load of 8192², checksums and pyramid", "cat of the database", o / c,
                   10, NULL);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char top[100], command[128];

    snprintf(top, sizeof top, "%.60s/kota-bench-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(top) != NULL, "no temporary folder");
    print_commits(top);
    print_starts(top);
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    must(system(command) == 0, command);
    return 0;
}
