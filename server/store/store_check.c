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
    sqlite3_stmt *row = NULL;
    uint64_t count = 0;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);

    *err = (struct err){0};
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        struct store_model read;

        rc = sqlite3_step(row);
        if (rc != SQLITE_ROW)
            break;
        count++;
        if (!read_model(row, &read))
            err_set(err, ERR_DAMAGED, "model %s is damaged (checksum)", read.id);
        else if (!model(context, &read, err) && !err->code)
            err_set(err, ERR_INTERNAL, "the list of models was ended");
        if (err->code)
            break;
    }
    if (!err->code && rc != SQLITE_DONE)
        store_sqlite_error(store, store->db, rc, false, "models cannot be read", err);
    if (!err->code && store->is_cached && count != store->cache.models)
        err_set(err, ERR_DAMAGED, "%llu models are there of %llu", (unsigned long long)count,
                (unsigned long long)store->cache.models);
    sqlite3_finalize(row);
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
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(store->db, "PRAGMA integrity_check", -1, &row, NULL);

    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        const char *found;

        rc = sqlite3_step(row);
        found = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
        if (found && strcmp(found, "ok") != 0)
            report(check, found);
    }
    if (rc != SQLITE_DONE)
        report(check, sqlite3_errmsg(store->db));
    sqlite3_finalize(row);
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
