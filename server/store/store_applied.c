/*
 * The applied position of a store in a shared log.
 *
 * Problem: after a crash a daemon must know which entries of the shared log its tables have, each
 * exactly once, and whether the log is still the one that it followed. Approach: a row for each
 * locale, written with the change in one transaction. It has the op_id of its entry, because a
 * revision is ambiguous where a log was restored from an older copy.
 *
 * A damaged row is damage of its locale, which can be replaced from the log. To that end a locale
 * can be removed as a whole (store_forget_locale), rows of its log included.
 */
#include "store/store_data.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum err_code store_put_applied(struct store *store, const struct store_applied *applied,
                                struct err *err)
{
    CHECK(store->is_in_transaction && !store->has_failed);
    return store_exec(store,
                      "INSERT OR REPLACE INTO applied VALUES (?1, ?2, ?3, row_crc(?1, ?2, ?3))",
                      SQL_VALUES(sql_text(applied->locale), sql_integer(applied->revision),
                                 sql_text(applied->op_id)),
                      "cannot write where the shared log is", err);
}

static bool read_applied(sqlite3_stmt *row, struct store_applied *out)
{
    bool is_good = column_text(row, 0, out->locale, sizeof out->locale);

    out->revision = (uint64_t)sqlite3_column_int64(row, 1);
    return column_text(row, 2, out->op_id, sizeof out->op_id) && is_good &&
           sqlite3_column_int(row, 3) == 1;
}

/* All rows; false in is_good: this one cannot be trusted. */
static enum err_code each_row(struct store *store,
                              bool (*take)(void *context, const struct store_applied *applied,
                                           bool is_good, struct err *err),
                              void *context, struct err *err)
{
    static const char sql[] =
        "SELECT locale, rev, op_id, crc = row_crc(locale, rev, op_id) FROM applied "
        "ORDER BY locale";
    struct rows rows = rows_open(store->db, sql, NULL);
    bool goes_on = true;
    int rc;

    *err = (struct err){0};
    while (goes_on && rows_next(&rows)) {
        struct store_applied applied = {.revision = 0};
        bool is_good = read_applied(rows.row, &applied);

        goes_on = take(context, &applied, is_good, err);
    }
    rc = rows_close(&rows);
    if (goes_on && rc != SQLITE_DONE)
        return store_sqlite_error(store, store->db, rc, false, "table applied cannot be read", err);
    return err->code;
}

struct each {
    bool (*take)(void *context, const struct store_applied *applied, struct err *err);
    void *context;
};

static bool give_good(void *context, const struct store_applied *applied, bool is_good,
                      struct err *err)
{
    const struct each *each = context;

    return !is_good || each->take(each->context, applied, err);
}

enum err_code store_each_applied(struct store *store,
                                 bool (*take)(void *context, const struct store_applied *applied,
                                              struct err *err),
                                 void *context, struct err *err)
{
    return each_row(store, give_good, &(struct each){take, context}, err);
}

/* ---- which log ------------------------------------------------------------------------------ */

enum err_code store_put_shared_log(struct store *store, const struct store_shared_log *log,
                                   struct err *err)
{
    CHECK(store->is_in_transaction && !store->has_failed);
    return store_exec(store,
                      "INSERT OR REPLACE INTO shared_log VALUES (1, ?1, ?2, row_crc(1, ?1, ?2))",
                      SQL_VALUES(sql_text(log->identity), sql_text(log->node)),
                      "cannot write which log is shared", err);
}

enum err_code store_leave_shared_log(struct store *store, struct err *err)
{
    CHECK(store->is_in_transaction && !store->has_failed);
    if (store_exec(store, "DELETE FROM applied", NULL, "cannot leave the shared log", err))
        return err->code;
    return store_exec(store, "DELETE FROM shared_log", NULL, "cannot leave the shared log", err);
}

enum err_code store_get_shared_log(struct store *store, struct store_shared_log *out,
                                   struct err *err)
{
    static const char sql[] = "SELECT identity, node, crc = row_crc(id, identity, node) "
                              "FROM shared_log";
    struct rows rows = rows_open(store->db, sql, NULL);
    bool is_good = true;
    int rc;

    *err = (struct err){0};
    *out = (struct store_shared_log){.identity = ""};
    if (rows_next(&rows)) {
        is_good = column_text(rows.row, 0, out->identity, sizeof out->identity);
        is_good &= column_text(rows.row, 1, out->node, sizeof out->node);
        is_good &= sqlite3_column_int(rows.row, 2) == 1;
    }
    rc = rows_close(&rows);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return store_sqlite_error(store, store->db, rc, false, "table shared_log cannot be read",
                                  err);
    return is_good ? ERR_OK
                   : err_set(err, ERR_DAMAGED,
                             "%.160s: the row of the table shared_log is damaged "
                             "(checksum)",
                             store->path);
}

/* ---- damage --------------------------------------------------------------------------------- */

struct reporting {
    store_report report;
    void *context;
};

static bool report_bad(void *context, const struct store_applied *applied, bool is_good,
                       struct err *err)
{
    const struct reporting *reporting = context;
    char locale[STORE_ID_MAX + 1], message[192];

    (void)err;
    if (is_good)
        return true;
    store_clean(applied->locale[0] != '\0' ? applied->locale : "?", locale, sizeof locale);
    snprintf(message, sizeof message,
             "locale %s: where it is in the shared log is damaged "
             "(checksum)",
             locale);
    reporting->report(reporting->context, locale, message);
    return true;
}

enum err_code applied_check(struct store *store, store_report report, void *context,
                            struct err *err)
{
    struct store_shared_log log;

    if (store_get_shared_log(store, &log, err) == ERR_DAMAGED) {
        report(context, "", err->msg);
        err->code = ERR_OK;
    }
    if (err->code || each_row(store, report_bad, &(struct reporting){report, context}, err))
        return err->code;
    return ERR_OK;
}

/* ---- a locale that is to be replaced ------------------------------------------------------- */

static enum err_code run_on_locale(struct store *store, const char *sql, const char *locale,
                                   struct err *err)
{
    return store_exec(store, sql, SQL_VALUES(sql_text(locale)), "cannot remove a locale", err);
}

/* Samples in rows of the log that are about to go. */
static void forget_pending(struct row_cache *cache, const char *locale)
{
    size_t kept = 0;

    for (size_t i = 0; i < cache->pending_count; i++) {
        const struct row_cache_pending *row = &cache->pending[i];

        if (strcmp(row->locale, locale) == 0)
            cache->pending_bytes -= (uint64_t)row->rect.cols * row->rect.rows * sizeof(float);
        else
            cache->pending[kept++] = *row;
    }
    cache->pending_count = kept;
}

/* All pins, those too that are the bases of forks. */
static enum err_code drop_pins(struct store *store, const char *locale, struct err *err)
{
    const struct row_cache *cache = &store->cache;

    err->code = ERR_OK;
    for (size_t i = cache->pin_count; i-- > 0;) {
        const struct row_cache_pin pin = cache->pins[i];

        if (strcmp(pin.value.id, locale) == 0 && pins_drop(store, locale, pin.name, err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code store_forget_locale(struct store *store, const char *locale, struct err *err)
{
    struct row_cache *cache = &store->cache;
    struct row_cache_locale *row = row_cache_locale(cache, locale);

    CHECK(store->is_in_transaction && !store->has_failed);
    if (drop_pins(store, locale, err))
        return err->code;
    forget_pending(cache, locale);
    while (row && row->first) {
        base_count(cache, row->first, -1);
        row_cache_remove_layer(cache, row->first);
    }
    if (run_on_locale(store, "DELETE FROM tile WHERE locale = ?1", locale, err) ||
        run_on_locale(store, "DELETE FROM layer WHERE locale = ?1", locale, err) ||
        run_on_locale(store, "DELETE FROM edit WHERE locale = ?1", locale, err) ||
        poses_drop_locale(store, locale, err) || history_drop_locale(store, locale, err) ||
        run_on_locale(store, "DELETE FROM applied WHERE locale = ?1", locale, err) ||
        run_on_locale(store, "DELETE FROM locale WHERE id = ?1", locale, err))
        return err->code;
    if (!row)
        return ERR_OK;
    row_cache_remove_locale(cache, row);
    return bases_sweep(store, err) ? err->code : row_cache_write_store(store, err);
}

enum err_code store_forget_models(struct store *store, struct err *err)
{
    CHECK(store->is_in_transaction && !store->has_failed);
    if (store_exec(store, "DELETE FROM model", NULL, "cannot remove models", err))
        return err->code;
    store->cache.models = 0;
    return shells_sweep(store, err) ? err->code : row_cache_write_store(store, err);
}
