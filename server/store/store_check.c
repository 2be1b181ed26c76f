/*
 * Models, and the whole store verified without being used (`kotad --check`).
 *
 * The check is a load without a result, and two checks that are too long for a load: the models'
 * hashes and SQLite's integrity_check of all pages.
 */
#include "store/store_data.h"

#include "base/content_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- models --------------------------------------------------------------------------------- */

static bool read_model(sqlite3_stmt *row, struct store_model *out)
{
    uint8_t hash[STORE_HASH_BYTES];

    memset(out, 0, sizeof *out);
    if (!column_text(row, 0, out->id, sizeof out->id) ||
        !column_bytes(row, 1, out->hash, sizeof out->hash) ||
        !column_text(row, 2, out->media_type, sizeof out->media_type) ||
        sqlite3_column_int(row, 3) != 1)
        return false;
    out->bytes = sqlite3_column_blob(row, 4);
    out->length = (size_t)sqlite3_column_bytes(row, 4);
    content_hash(out->bytes ? out->bytes : "", out->length, hash);
    return memcmp(hash, out->hash, sizeof hash) == 0;
}

enum err_code store_models(struct store *store,
                           bool (*model)(void *context, const struct store_model *model,
                                         struct err *err),
                           void *context, struct err *err)
{
    static const char sql[] = "SELECT id, hash, media_type, "
                              "crc = row_crc(id, hash, media_type, data), data FROM model "
                              "ORDER BY id";
    struct rows rows = rows_open(store->db, sql, NULL);
    uint64_t count = 0;

    *err = (struct err){0};
    while (!err->code && rows_next(&rows)) {
        struct store_model read;

        count++;
        if (!read_model(rows.row, &read))
            err_set(err, ERR_DAMAGED, "model %s is damaged (checksum)", read.id);
        else if (!model(context, &read, err) && !err->code)
            err_set(err, ERR_INTERNAL, "the list of models was ended");
    }
    if (!err->code && rows.rc != SQLITE_DONE)
        store_sqlite_error(store, store->db, rows.rc, false, "models cannot be read", err);
    if (!err->code && store->is_cached && count != store->cache.models)
        err_set(err, ERR_DAMAGED, "%llu models are there of %llu", (unsigned long long)count,
                (unsigned long long)store->cache.models);
    rows_close(&rows);
    return err->code;
}

/* ---- the check ------------------------------------------------------------------------------ */

struct check {
    void (*on_damage)(void *context, const char *message);
    void *context;
    long found;
};

static bool drop_locale(void *context, const struct store_locale *locale, struct err *err)
{
    (void)context;
    (void)locale;
    (void)err;
    return true;
}

static bool drop_layer(void *context, struct store_loaded_layer *layer, struct err *err)
{
    (void)context;
    (void)err;
    heightfield_unref(layer->field);
    if (layer->mesh)
        mesh_unref(layer->mesh);
    polygon_set_free(&layer->polygons);
    return true;
}

static bool drop_edit(void *context, const struct store_edit *edit, struct err *err)
{
    (void)context;
    (void)edit;
    (void)err;
    return true;
}

static bool drop_model(void *context, const struct store_model *model, struct err *err)
{
    (void)context;
    (void)model;
    (void)err;
    return true;
}

static void report(void *context, const char *message)
{
    struct check *check = context;
    char line[256];

    store_clean(message, line, sizeof line);
    check->found++;
    check->on_damage(check->context, line);
}

static void report_damage(void *context, const char *locale, const char *message)
{
    (void)locale; /* the message names it */
    report(context, message);
}

static void check_pages(struct store *store, struct check *check)
{
    struct rows rows = rows_open(store->db, "PRAGMA integrity_check", NULL);

    while (rows_next(&rows)) {
        const char *found = (const char *)sqlite3_column_text(rows.row, 0);

        if (found && strcmp(found, "ok") != 0)
            report(check, found);
    }
    if (rows.rc != SQLITE_DONE)
        report(check, sqlite3_errmsg(store->db));
    rows_close(&rows);
}

long store_check(struct store *store, void (*on_damage)(void *context, const char *message),
                 void *context, struct err *err)
{
    struct check check = {on_damage, context, 0};
    struct store_sink sink = {&check, drop_locale, drop_layer, drop_edit, report_damage, NULL};

    if (store_load(store, &sink, err))
        return -1;
    if (store_models(store, drop_model, NULL, err)) {
        if (err->code != ERR_DAMAGED)
            return -1;
        report(&check, err_for_log(err));
    }
    if (shells_check(store, err)) {
        if (err->code != ERR_DAMAGED)
            return -1;
        report(&check, err_for_log(err));
    }
    if (history_check(store, report, &check, err))
        return -1;
    check_pages(store, &check);
    return check.found;
}
