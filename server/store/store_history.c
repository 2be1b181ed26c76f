/*
 * History: who made each revision of a locale, when, and the samples that were there before
 * (docs/internals/history.md).
 *
 * Problem: the log loses its samples when tiles are written, and it never had what they replaced.
 * To revert one author's edits needs both, long after. Approach: a row a revision in a table of its
 * own, written in the transaction of the edit, with the samples before, compressed. A table sorted
 * by locale and revision: a commit touches one more page, and rows are read in order without an
 * index. Samples that are long for a page of it are in a table of their own, and the row has their
 * number: in a table sorted by a key, SQLite puts all beyond a quarter page on overflow pages.
 *
 * Invariant: the rows of a locale are those of its last revisions, without a gap. Where a revision
 * has none (a store of an older build, a bound of 0 for a while, a shared log) the history begins
 * again after it. A locale's oldest rows are removed when it has an eighth more bytes than its
 * bound, so that most edits remove nothing.
 *
 * Rows are checked when they are read, and by --check; a load does not read them, since nothing
 * that is served depends on them.
 */
#include "store/store_data.h"

#include "base/check.h"
#include "formats/content_coding.h"
#include "formats/float_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { CODEC_ALL = 1, CODEC_CHANGED = 2 };
enum { ROW_BYTES = 128 }; /* what a row counts besides its texts and its samples */
enum {
    SAMPLES_MAX = 1 << 28
}; /* of one row; more, or far too many for the bound, are not
                                         held */
/* Bytes of samples; with more, a row may exceed a quarter of a page and get an overflow page. */
enum { IN_ROW_MAX = 3500 };

/* The samples of a row of history, which may be in history_data, and their length. */
#define LONG(what) "(SELECT " what " FROM history_data AS long WHERE long.number = history.data)"
#define DATA "iif(typeof(data) = 'integer', " LONG("long.data") ", data)"
#define DATA_LENGTH "iif(typeof(data) = 'integer', " LONG("length(long.data)") ", length(data))"
#define DATA_IS_GOOD "data_crc = row_crc(locale, rev, codec, " DATA ")"
#define ROW_SIZE "length(author) + length(note) + coalesce(" DATA_LENGTH ", 0) + 128"
#define CHECKED "locale, rev, time, kind, layer, source, author, note, is_birth, rect"

_Static_assert(ROW_BYTES == 128, "as in ROW_SIZE");

void store_set_history_max(struct store *store, uint64_t bytes_max)
{
    store->history_max = bytes_max;
}

uint64_t store_history_max(const struct store *store)
{
    return store->history_max;
}

static size_t bits_of(size_t samples)
{
    return (samples + 7) / 8;
}

/* ---- writing -------------------------------------------------------------------------------- */

enum err_code store_past_pack(const struct store_past *past, uint64_t bytes_max,
                              struct store_packed_past *out, struct err *err)
{
    const uint64_t samples = (uint64_t)past->rect.cols * past->rect.rows;
    const size_t bits = past->changed ? bits_of((size_t)samples) : 0;
    const size_t bytes = (size_t)samples * sizeof(float);
    struct raster_bytes packed;
    uint8_t *plain;

    *out = (struct store_packed_past){.codec = 0};
    err->code = ERR_OK;
    if (!past->before_m || samples > SAMPLES_MAX || bytes / 2 > bytes_max)
        return ERR_OK;
    plain = malloc(bytes + bits);
    if (!plain)
        return err_set(err, ERR_NO_MEMORY, "no memory for the history");
    float_layout_write(LAYOUT_DELTA, past->before_m, past->rect.cols, past->rect.rows, plain);
    if (bits > 0)
        memcpy(plain + bytes, past->changed, bits);
    if (content_coding_pack(CODING_ZSTD, plain, bytes + bits, &packed, err) == ERR_OK)
        *out = (struct store_packed_past){past->changed ? CODEC_CHANGED : CODEC_ALL, packed.at,
                                          packed.length};
    free(plain);
    return err->code;
}

uint64_t store_past_bytes(const struct store_past *past, const struct store_packed_past *packed)
{
    return ROW_BYTES + strlen(past->author) + strlen(past->note) + packed->length;
}

static enum err_code insert(struct store *store, const char *locale, const struct store_past *past,
                            const struct store_packed_past *packed, struct err *err)
{
    const struct sql_value none = {.of = SQL_NULL};
    const bool has_data = packed->data != NULL, is_long = has_data && packed->length > IN_ROW_MAX;

    if (is_long && store_exec(store, "INSERT INTO history_data VALUES (NULL, ?1)",
                              SQL_VALUES(sql_blob(packed->data, packed->length)),
                              "cannot write the history", err))
        return err->code;
    return store_exec(
        store,
        "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "row_crc(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10), row_crc(?1, ?2, ?11, ?12), ?11, "
        "coalesce(?13, ?12))",
        SQL_VALUES(sql_text(locale), sql_integer(past->revision),
                   sql_integer((uint64_t)past->time_ms), sql_integer((uint64_t)past->kind),
                   sql_text(past->layer), sql_text(past->source), sql_text(past->author),
                   sql_text(past->note), sql_integer(past->is_birth),
                   past->has_rect ? sql_blob(&past->rect, sizeof past->rect) : none,
                   has_data ? sql_integer((uint64_t)packed->codec) : none,
                   has_data ? sql_blob(packed->data, packed->length) : none,
                   is_long ? sql_integer((uint64_t)sqlite3_last_insert_rowid(store->db)) : none),
        "cannot write the history", err);
}

static enum err_code know(struct store *store, struct row_cache_locale *locale, struct err *err)
{
    sqlite3_stmt *read;
    int rc;

    if (locale->has_history)
        return ERR_OK;
    read = store_ask(store, "SELECT max(rev), total(" ROW_SIZE ") FROM history WHERE locale = ?1",
                     SQL_VALUES(sql_text(locale->row.id)), err);
    if (!read)
        return err->code;
    rc = sqlite3_step(read);
    if (rc == SQLITE_ROW) {
        locale->history_last = (uint64_t)sqlite3_column_int64(read, 0);
        locale->history_bytes = (uint64_t)sqlite3_column_double(read, 1);
        locale->has_history = true;
    }
    sqlite3_reset(read);
    return rc == SQLITE_ROW ? ERR_OK
                            : store_write_error(store, rc, "the history cannot be read", err);
}

/* The last of the oldest rows that are to go, and their bytes. */
static enum err_code find_cut(struct store *store, const struct row_cache_locale *locale,
                              uint64_t *cut, uint64_t *bytes, struct err *err)
{
    const uint64_t surplus = locale->history_bytes - store->history_max;
    sqlite3_stmt *read =
        store_ask(store, "SELECT rev, " ROW_SIZE " FROM history WHERE locale = ?1 ORDER BY rev",
                  SQL_VALUES(sql_text(locale->row.id)), err);
    int rc = SQLITE_ROW;

    if (!read)
        return err->code;
    while (*bytes < surplus && (rc = sqlite3_step(read)) == SQLITE_ROW) {
        *cut = (uint64_t)sqlite3_column_int64(read, 0);
        *bytes += (uint64_t)sqlite3_column_int64(read, 1);
    }
    sqlite3_reset(read);
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? ERR_OK
               : store_write_error(store, rc, "the history cannot be read", err);
}

/* Removes the rows of a locale up to a revision. */
static enum err_code remove_rows(struct store *store, const char *locale, uint64_t upto,
                                 struct err *err)
{
    static const char what[] = "cannot shorten the history";
    const struct sql_value *of = SQL_VALUES(sql_text(locale), sql_integer(upto));

    if (store_exec(store,
                   "DELETE FROM history_data WHERE number IN (SELECT data FROM history "
                   "WHERE locale = ?1 AND rev <= ?2 AND typeof(data) = 'integer')",
                   of, what, err))
        return err->code;
    return store_exec(store, "DELETE FROM history WHERE locale = ?1 AND rev <= ?2", of, what, err);
}

static enum err_code trim(struct store *store, struct row_cache_locale *locale, struct err *err)
{
    uint64_t cut = 0, bytes = 0;

    if (locale->history_bytes <= store->history_max + store->history_max / 8)
        return ERR_OK;
    if (find_cut(store, locale, &cut, &bytes, err))
        return err->code;
    locale->history_bytes -= bytes < locale->history_bytes ? bytes : locale->history_bytes;
    return remove_rows(store, locale->row.id, cut, err);
}

enum err_code history_drop_locale(struct store *store, const char *locale, struct err *err)
{
    struct row_cache_locale *cached = row_cache_locale(&store->cache, locale);

    if (cached && cached->has_history && cached->history_last == 0)
        return ERR_OK;
    if (cached) {
        cached->has_history = true;
        cached->history_last = cached->history_bytes = 0;
    }
    return remove_rows(store, locale, INT64_MAX, err);
}

static enum err_code put(struct store *store, struct row_cache_locale *locale,
                         const struct store_past *past, const struct store_packed_past *packed,
                         struct err *err)
{
    if (insert(store, locale->row.id, past, packed, err))
        return err->code;
    locale->history_last = past->revision;
    locale->history_bytes += store_past_bytes(past, packed);
    return trim(store, locale, err);
}

enum err_code store_put_past(struct store *store, const char *locale_id,
                             const struct store_past *past, struct err *err)
{
    struct row_cache_locale *locale = row_cache_locale(&store->cache, locale_id);

    CHECK(store->is_in_transaction && !store->has_failed && locale && past->packed);
    err->code = ERR_OK;
    if (store->history_max == 0 || know(store, locale, err))
        return err->code;
    CHECK(locale->history_last == 0 || locale->history_last + 1 == past->revision);
    return put(store, locale, past, past->packed, err);
}

enum err_code history_append(struct store *store, struct row_cache_locale *locale,
                             const struct store_edit *edit, struct err *err)
{
    const struct store_past *past = edit->past;
    struct store_packed_past packed;

    if (know(store, locale, err) || ((!past || locale->history_last + 1 != edit->revision) &&
                                     history_drop_locale(store, locale->row.id, err)))
        return err->code;
    if (!past)
        return ERR_OK;
    CHECK(past->revision == edit->revision && (!past->before_m || past->has_rect));
    if (store_past_pack(past, store->history_max, &packed, err)) {
        store->has_failed = true;
        return err->code;
    }
    put(store, locale, past, &packed, err);
    free(packed.data);
    return err->code;
}

/* ---- reading -------------------------------------------------------------------------------- */

#define PAST_COLUMNS                                                                               \
    "rev, time, kind, layer, source, author, note, is_birth, rect, codec, crc = row_crc(" CHECKED  \
    ")"
enum { PAST_CODEC = 9, PAST_IS_GOOD, PAST_DATA_IS_GOOD, PAST_DATA };

static bool past_read(sqlite3_stmt *row, struct store_past *out)
{
    bool is_good = sqlite3_column_int(row, PAST_IS_GOOD) == 1;

    *out = (struct store_past){.revision = (uint64_t)sqlite3_column_int64(row, 0),
                               .time_ms = sqlite3_column_int64(row, 1),
                               .kind = sqlite3_column_int(row, 2),
                               .is_birth = sqlite3_column_int(row, 7) != 0,
                               .has_before = sqlite3_column_type(row, PAST_CODEC) != SQLITE_NULL};
    is_good &= column_text(row, 3, out->layer, sizeof out->layer);
    is_good &= column_text(row, 4, out->source, sizeof out->source);
    is_good &= column_text(row, 5, out->author, sizeof out->author);
    is_good &= column_text(row, 6, out->note, sizeof out->note);
    out->has_rect = column_bytes(row, 8, &out->rect, sizeof out->rect);
    return is_good && (!out->has_before || out->has_rect);
}

enum err_code store_past_unpack(const struct store_packed_past *packed, struct store_past *past,
                                void **plain, struct err *err)
{
    const uint64_t samples = (uint64_t)past->rect.cols * past->rect.rows;
    const size_t bytes = (size_t)samples * sizeof(float);
    const size_t length = bytes + (packed->codec == CODEC_CHANGED ? bits_of((size_t)samples) : 0);
    uint8_t *laid_out;
    float *heights_m;

    *plain = NULL;
    if (samples == 0 || samples > SAMPLES_MAX)
        return err_set(err, ERR_DAMAGED, "history: revision %llu has no such rectangle",
                       (unsigned long long)past->revision);
    laid_out = malloc(length);
    heights_m = malloc(length);
    if (!laid_out || !heights_m) {
        free(laid_out);
        free(heights_m);
        return err_set(err, ERR_NO_MEMORY, "no memory for the history");
    }
    if (ZSTD_decompress(laid_out, length, packed->data, packed->length) != length) {
        err_set(err, ERR_DAMAGED, "history: the samples of revision %llu cannot be read",
                (unsigned long long)past->revision);
    } else {
        float_layout_read(LAYOUT_DELTA, laid_out, past->rect.cols, past->rect.rows, heights_m);
        memcpy((uint8_t *)heights_m + bytes, laid_out + bytes, length - bytes);
        past->before_m = heights_m;
        past->changed = length > bytes ? (const uint8_t *)heights_m + bytes : NULL;
    }
    free(laid_out);
    *plain = heights_m;
    return err->code;
}

/* The samples of a row as they are stored; their checksum is good. */
static enum err_code read_packed(sqlite3_stmt *row, const struct store_past *past,
                                 struct store_packed_past *packed, struct err *err)
{
    *packed = (struct store_packed_past){sqlite3_column_int(row, PAST_CODEC),
                                         (void *)(uintptr_t)sqlite3_column_blob(row, PAST_DATA),
                                         (size_t)sqlite3_column_bytes(row, PAST_DATA)};
    if (sqlite3_column_int(row, PAST_DATA_IS_GOOD) != 1)
        return err_set(err, ERR_DAMAGED, "history: revision %llu is damaged (checksum)",
                       (unsigned long long)past->revision);
    return ERR_OK;
}

static enum err_code unpack(sqlite3_stmt *row, struct store_past *past, void **plain,
                            struct err *err)
{
    struct store_packed_past packed;

    return read_packed(row, past, &packed, err) ? err->code
                                                : store_past_unpack(&packed, past, plain, err);
}

static bool take_row(sqlite3_stmt *row, const struct store_history_question *question,
                     store_take_past take, void *context, struct err *err)
{
    struct store_packed_past packed = {.codec = 0};
    struct store_past past;
    void *plain = NULL;
    bool goes_on = false;

    if (!past_read(row, &past))
        err_set(err, ERR_DAMAGED, "history of locale %s: revision %llu is damaged (checksum)",
                question->locale, (unsigned long long)past.revision);
    else if (past.has_before && question->wants_before)
        unpack(row, &past, &plain, err);
    else if (past.has_before && question->wants_packed)
        read_packed(row, &past, &packed, err);
    past.packed = question->wants_packed ? &packed : NULL;
    if (!err->code)
        goes_on = take(context, &past, err);
    free(plain);
    return goes_on;
}

static enum err_code read_since(struct store *store, sqlite3 *db, const char *locale,
                                uint64_t *since, struct err *err)
{
    struct rows rows =
        rows_open(db, "SELECT rev, is_birth FROM history WHERE locale = ?1 ORDER BY rev LIMIT 1",
                  SQL_VALUES(sql_text(locale)));
    int rc;

    *since = UINT64_MAX;
    if (rows_next(&rows))
        *since =
            sqlite3_column_int(rows.row, 1) ? 0 : (uint64_t)sqlite3_column_int64(rows.row, 0) - 1;
    rc = rows_close(&rows);
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? ERR_OK
               : store_sqlite_error(store, db, rc, false, "the history cannot be read", err);
}

static enum err_code read_rows(struct store *store, sqlite3 *db,
                               const struct store_history_question *question, store_take_past take,
                               void *context, struct err *err)
{
    const uint64_t after = question->after > INT64_MAX ? INT64_MAX : question->after;
    const uint64_t upto = question->upto > INT64_MAX ? INT64_MAX : question->upto;
    char sql[1024];
    struct rows rows;
    int rc;

    snprintf(sql, sizeof sql,
             "SELECT " PAST_COLUMNS "%s FROM history WHERE locale = ?1 AND rev > ?2 AND rev <= ?3 "
             "ORDER BY rev%s",
             question->wants_before || question->wants_packed ? ", " DATA_IS_GOOD ", " DATA : "",
             question->is_newest_first ? " DESC" : "");
    rows = rows_open(db, sql,
                     SQL_VALUES(sql_text(question->locale), sql_integer(after), sql_integer(upto)));
    while (rows_next(&rows) && take_row(rows.row, question, take, context, err))
        continue;
    rc = rows_close(&rows);
    if (!err->code && rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_sqlite_error(store, db, rc, false, "the history cannot be read", err);
    return err->code;
}

enum err_code store_history(struct store *store, const struct store_history_question *question,
                            uint64_t *since, store_take_past take, void *context, struct err *err)
{
    sqlite3 *db = store->db;
    int rc = question->is_writer ? SQLITE_OK : store_connect(store, store->path, false, &db);

    err->code = ERR_OK;
    if (rc == SQLITE_OK && !question->is_writer) /* one state for both */
        rc = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        store_sqlite_error(store, db, rc, false, "cannot be opened for its history", err);
    else if (read_since(store, db, question->locale, since, err) == ERR_OK && take)
        read_rows(store, db, question, take, context, err);
    if (!question->is_writer)
        sqlite3_close(db);
    return err->code;
}

/* ---- the check ------------------------------------------------------------------------------ */

struct checked {
    char locale[STORE_ID_MAX + 1];
    uint64_t last;
};

/* All rows of a locale are read: the last is of its revision. */
static void check_end(struct store *store, const struct checked *at,
                      void (*report)(void *context, const char *message), void *context)
{
    const struct row_cache_locale *locale = row_cache_locale(&store->cache, at->locale);
    char message[256];

    if (at->last == 0 || (locale && locale->row.revision == at->last))
        return;
    snprintf(message, sizeof message,
             "locale %s: its history ends at revision %llu, which is not its own", at->locale,
             (unsigned long long)at->last);
    report(context, message);
}

static void check_row(struct store *store, sqlite3_stmt *row, struct checked *at,
                      void (*report)(void *context, const char *message), void *context)
{
    char locale[STORE_ID_MAX + 1] = "?", message[256];
    struct err err = {.code = ERR_OK};
    struct store_past past;
    void *plain = NULL;
    bool is_next, is_good = column_text(row, PAST_DATA + 1, locale, sizeof locale);

    is_good &= past_read(row, &past) && sqlite3_column_int(row, PAST_DATA_IS_GOOD) == 1;
    if (is_good && past.has_before)
        is_good = unpack(row, &past, &plain, &err) == ERR_OK;
    free(plain);
    if (strcmp(locale, at->locale) != 0) {
        check_end(store, at, report, context);
        *at = (struct checked){.last = 0};
        snprintf(at->locale, sizeof at->locale, "%s", locale);
    }
    is_next = at->last == 0 || past.revision == at->last + 1;
    at->last = past.revision;
    if (is_good && is_next)
        return;
    snprintf(message, sizeof message, "locale %s: the history's row of revision %llu is %s", locale,
             (unsigned long long)past.revision,
             is_good ? "not the next one" : "damaged (checksum)");
    report(context, message);
}

/* Each row of history_data is of a row of history. */
static void check_long(struct store *store, void (*report)(void *context, const char *message),
                       void *context)
{
    struct rows rows = rows_open(store->db,
                                 "SELECT 1 FROM history_data WHERE number NOT IN (SELECT data "
                                 "FROM history WHERE typeof(data) = 'integer') LIMIT 1",
                                 NULL);

    if (rows_next(&rows) || rows.rc != SQLITE_DONE)
        report(context, "table history_data has samples that no row of the history has");
    rows_close(&rows);
}

enum err_code history_check(struct store *store, void (*report)(void *context, const char *message),
                            void *context, struct err *err)
{
    static const char sql[] = "SELECT " PAST_COLUMNS ", " DATA_IS_GOOD ", " DATA ", locale "
                              "FROM history ORDER BY locale, rev";
    struct checked at = {.last = 0};
    struct rows rows = rows_open(store->db, sql, NULL);
    int rc;

    *err = (struct err){0};
    while (rows_next(&rows))
        check_row(store, rows.row, &at, report, context);
    check_end(store, &at, report, context);
    rc = rows_close(&rows);
    if (rc == SQLITE_NOMEM)
        return err_set(err, ERR_NO_MEMORY, "no memory to read the history");
    if (rc != SQLITE_DONE)
        report(context, "table history cannot be read to its end");
    check_long(store, report, context);
    return ERR_OK;
}
