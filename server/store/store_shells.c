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
    const struct sql_value model = sql_blob(shell->model, sizeof shell->model);
    const struct sql_value version = sql_integer(shell->version);

    CHECK(store->is_in_transaction && !store->has_failed);
    if (store_exec(store, "DELETE FROM shell WHERE model = ?1 AND version <> ?2",
                   SQL_VALUES(model, version), "cannot delete older shells", err))
        return err->code;
    return store_exec(store,
                      "INSERT INTO shell SELECT NULL, ?1, ?2, ?3, row_crc(?1, ?2, ?3, ?4), "
                      "?4 WHERE EXISTS (SELECT 1 FROM model WHERE hash = ?1) "
                      "ON CONFLICT (model, version, radius_um) DO UPDATE SET "
                      "crc = excluded.crc, data = excluded.data",
                      SQL_VALUES(model, version, sql_integer(shell->radius_um),
                                 sql_blob(shell->bytes, shell->length)),
                      "cannot write a shell", err);
}

static enum err_code find(struct store *store, sqlite3 *db, const struct store_shell *key,
                          void **bytes, size_t *length, struct err *err)
{
    static const char sql[] = "SELECT crc = row_crc(model, version, radius_um, data), data "
                              "FROM shell WHERE model = ?1 AND version = ?2 AND radius_um = ?3";
    struct rows rows =
        rows_open(db, sql,
                  SQL_VALUES(sql_blob(key->model, sizeof key->model), sql_integer(key->version),
                             sql_integer(key->radius_um)));
    sqlite3_stmt *row = rows.row;
    bool is_there = rows_next(&rows);

    if (is_there && sqlite3_column_int(row, 0) != 1) {
        err_set(err, ERR_DAMAGED, "a kept shell is damaged (checksum)");
    } else if (is_there) {
        size_t size = (size_t)sqlite3_column_bytes(row, 1);

        *bytes = malloc(size ? size : 1);
        if (*bytes) {
            memcpy(*bytes, size ? sqlite3_column_blob(row, 1) : "", size);
            *length = size;
        } else {
            err_set(err, ERR_NO_MEMORY, "no memory for a shell");
        }
    } else if (rows.rc != SQLITE_DONE) {
        store_sqlite_error(store, db, rows.rc, false, "shells cannot be read", err);
    }
    rows_close(&rows);
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
    return store_exec(store, "DELETE FROM shell WHERE model NOT IN (SELECT hash FROM model)", NULL,
                      "cannot delete shells", err);
}

enum err_code shells_check(struct store *store, struct err *err)
{
    static const char sql[] = "SELECT count(*) FROM shell WHERE crc IS NOT "
                              "row_crc(model, version, radius_um, data) OR "
                              "model NOT IN (SELECT hash FROM model)";
    struct rows rows = rows_open(store->db, sql, NULL);
    long long damaged = rows_next(&rows) ? sqlite3_column_int64(rows.row, 0) : 0;
    int rc = rows_close(&rows);

    *err = (struct err){0};
    if (rc != SQLITE_ROW)
        return store_sqlite_error(store, store->db, rc, false, "shells cannot be read", err);
    if (damaged)
        return err_set(err, ERR_DAMAGED, "kept shells are damaged (checksum): %lld", damaged);
    return ERR_OK;
}
