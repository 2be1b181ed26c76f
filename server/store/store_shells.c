/*
 * Shells of models: spheres that the sand derives from a model (server/sand/body/shell.h).
 *
 * A lost shell costs only time: so rows are not counted, and a damaged one is an error only of the
 * call that reads it; to put it again repairs it. Shells are removed with the last model of their
 * content, and with the first shell of a newer version.
 *
 * Workers read them, which have no connection; one is opened for each read. That takes about a
 * millisecond, to make a shell some hundred, and no idle connection is held for a patch.
 */
#include "store/store_data.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum err_code store_put_shell(struct store *store, const struct store_shell *shell, struct err *err)
{
    sqlite3_stmt *older, *write;

    CHECK(store->is_in_transaction && !store->has_failed);
    older = store_statement(store, "DELETE FROM shell WHERE model = ?1 AND version <> ?2", err);
    if (!older)
        return err->code;
    sqlite3_bind_blob(older, 1, shell->model, sizeof shell->model, SQLITE_STATIC);
    sqlite3_bind_int64(older, 2, shell->version);
    if (store_run(store, older, "cannot delete older shells", err))
        return err->code;
    write = store_statement(store,
                            "INSERT INTO shell SELECT NULL, ?1, ?2, ?3, row_crc(?1, ?2, ?3, ?4), "
                            "?4 WHERE EXISTS (SELECT 1 FROM model WHERE hash = ?1) "
                            "ON CONFLICT (model, version, radius_um) DO UPDATE SET "
                            "crc = excluded.crc, data = excluded.data",
                            err);
    if (!write)
        return err->code;
    sqlite3_bind_blob(write, 1, shell->model, sizeof shell->model, SQLITE_STATIC);
    sqlite3_bind_int64(write, 2, shell->version);
    sqlite3_bind_int64(write, 3, shell->radius_um);
    sqlite3_bind_blob64(write, 4, shell->bytes, shell->length, SQLITE_STATIC);
    return store_run(store, write, "cannot write a shell", err);
}

static enum err_code find(struct store *store, sqlite3 *db, const struct store_shell *key,
                          void **bytes, size_t *length, struct err *err)
{
    static const char sql[] = "SELECT crc = row_crc(model, version, radius_um, data), data "
                              "FROM shell WHERE model = ?1 AND version = ?2 AND radius_um = ?3";
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_bind_blob(row, 1, key->model, sizeof key->model, SQLITE_STATIC);
        sqlite3_bind_int64(row, 2, key->version);
        sqlite3_bind_int64(row, 3, key->radius_um);
        rc = sqlite3_step(row);
    }
    if (rc == SQLITE_ROW && sqlite3_column_int(row, 0) != 1) {
        err_set(err, ERR_DAMAGED, "a kept shell is damaged (checksum)");
    } else if (rc == SQLITE_ROW) {
        size_t size = (size_t)sqlite3_column_bytes(row, 1);

        *bytes = malloc(size ? size : 1);
        if (*bytes) {
            memcpy(*bytes, size ? sqlite3_column_blob(row, 1) : "", size);
            *length = size;
        } else {
            err_set(err, ERR_NO_MEMORY, "no memory for a shell");
        }
    } else if (rc != SQLITE_DONE) {
        store_sqlite_error(store, db, rc, false, "shells cannot be read", err);
    }
    sqlite3_finalize(row);
    return err->code;
}

enum err_code store_find_shell(struct store *store, const struct store_shell *key, void **bytes,
                               size_t *length, struct err *err)
{
    sqlite3 *db = NULL;
    int rc = store_connect(store, store->path, false, &db);

    *bytes = NULL;
    *length = 0;
    err->code = ERR_OK;
    if (rc != SQLITE_OK)
        store_sqlite_error(store, db, rc, false, "cannot be opened for its shells", err);
    else
        find(store, db, key, bytes, length, err);
    sqlite3_close(db);
    return err->code;
}

enum err_code shells_sweep(struct store *store, struct err *err)
{
    sqlite3_stmt *sweep = store_statement(
        store, "DELETE FROM shell WHERE model NOT IN (SELECT hash FROM model)", err);

    return sweep ? store_run(store, sweep, "cannot delete shells", err) : err->code;
}

enum err_code shells_check(struct store *store, struct err *err)
{
    static const char sql[] = "SELECT count(*) FROM shell WHERE crc IS NOT "
                              "row_crc(model, version, radius_um, data) OR "
                              "model NOT IN (SELECT hash FROM model)";
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
    long long damaged = 0;

    *err = (struct err){0};
    if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        damaged = sqlite3_column_int64(row, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    if (rc != SQLITE_OK)
        return store_sqlite_error(store, store->db, rc, false, "shells cannot be read", err);
    if (damaged)
        return err_set(err, ERR_DAMAGED, "kept shells are damaged (checksum): %lld", damaged);
    return ERR_OK;
}
