/*
 * The database file: created, recognised and migrated; the checksum of a row.
 *
 * Making: a new database is made whole under another name and renamed when it is on the disk. So
 * kota.db either is not there or has its tables; an empty file, or one without them, is damage and
 * not a new world. (SQLite itself treats an empty file as a new database.)
 *
 * Recognising: besides user_version, the declarations of tables in the file are compared with those
 * that the scripts of schema/ make in an empty database. A flipped bit in a declaration can change
 * the meaning of a value (an affinity, a key) without an error of SQLite.
 *
 * Migration: user_version is the number of the last script that ran; each later one runs in a
 * transaction of its own.
 *
 * Checksums: SQLite has none for the database file. Each row has the
 * CRC-32 of its values, computed by the SQL function row_crc, where it is written and where it is
 * read, so that no column can be forgotten on one side only.
 */
#include "store/store_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#ifndef KOTA_STORE_SCHEMA
#error "the build defines KOTA_STORE_SCHEMA, the folder of the scripts to embed"
#endif

#define SCRIPT(name, file)                                                                         \
    extern const char name[];                                                                      \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" KOTA_STORE_SCHEMA "/" file "\"\n"                                         \
            ".byte 0\n"                                                                            \
            ".popsection\n")

SCRIPT(store_schema_001, "001.sql");
SCRIPT(store_schema_002, "002.sql");
SCRIPT(store_schema_003, "003.sql");
SCRIPT(store_schema_004, "004.sql");
SCRIPT(store_schema_005, "005.sql");
SCRIPT(store_schema_006, "006.sql");
SCRIPT(store_schema_007, "007.sql");
SCRIPT(store_schema_008, "008.sql");
SCRIPT(store_schema_009, "009.sql");
SCRIPT(store_schema_010, "010.sql");
SCRIPT(store_schema_011, "011.sql");

enum { APPLICATION_ID = 0x6b6f7461 }; /* "kota" */

static const char *const scripts[] = {store_schema_001, store_schema_002, store_schema_003,
                                      store_schema_004, store_schema_005, store_schema_006,
                                      store_schema_007, store_schema_008, store_schema_009,
                                      store_schema_010, store_schema_011};
enum { SCHEMA_VERSION = sizeof scripts / sizeof *scripts };

/* ---- checksums of rows ---------------------------------------------------------------------- */

static uint32_t crc_head(uint32_t crc, char type, uint64_t length)
{
    uint8_t head[9] = {(uint8_t)type};

    memcpy(head + 1, &length, sizeof length);
    return (uint32_t)crc32_z(crc, head, sizeof head);
}

uint32_t row_crc_text(uint32_t crc, const char *text)
{
    size_t length = strlen(text);

    return (uint32_t)crc32_z(crc_head(crc, 't', length), (const Bytef *)text, length);
}

uint32_t row_crc_integer(uint32_t crc, int64_t value)
{
    return crc_head(crc, 'i', (uint64_t)value);
}

uint32_t row_crc_blob_head(uint32_t crc, size_t length)
{
    return crc_head(crc, 'b', length);
}

static uint32_t crc_value(uint32_t crc, sqlite3_value *value)
{
    uint64_t bits;
    double real;
    int type = sqlite3_value_type(value);
    const void *bytes;

    switch (type) {
    case SQLITE_INTEGER:
        return row_crc_integer(crc, sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        real = sqlite3_value_double(value);
        memcpy(&bits, &real, sizeof bits);
        return crc_head(crc, 'f', bits);
    case SQLITE_NULL:
        return crc_head(crc, 'n', 0);
    default:
        bytes = type == SQLITE_TEXT ? (const void *)sqlite3_value_text(value)
                                    : sqlite3_value_blob(value);
        crc = crc_head(crc, type == SQLITE_TEXT ? 't' : 'b', (uint64_t)sqlite3_value_bytes(value));
        return bytes ? (uint32_t)crc32_z(crc, bytes, (size_t)sqlite3_value_bytes(value)) : crc;
    }
}

static void row_crc(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint32_t crc = 0;

    for (int i = 0; i < count; i++)
        crc = crc_value(crc, values[i]);
    sqlite3_result_int64(context, crc);
}

/* ---- connections ---------------------------------------------------------------------------- */

static int connection_settings(struct store *store, sqlite3 *db, bool is_writer)
{
    const char *sql = "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF;";
    int rc;

    sqlite3_extended_result_codes(db, 1);
    rc = sqlite3_create_function_v2(db, "row_crc", -1,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                    row_crc, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db, 2000);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK || !is_writer)
        return rc;
    /* secure_delete, on by default in Debian, would write each page once more to blank it. A larger
     * page cache would grow with the log for ten minutes. */
    rc = sqlite3_exec(db,
                      "PRAGMA wal_autocheckpoint=0; PRAGMA secure_delete=OFF;"
                      "PRAGMA cache_size=-2048; PRAGMA journal_size_limit=16777216;"
                      "PRAGMA temp_store=MEMORY;",
                      NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    return sqlite3_exec(db,
                        store->sync == STORE_SYNC_FULL ? "PRAGMA synchronous=FULL"
                                                       : "PRAGMA synchronous=NORMAL",
                        NULL, NULL, NULL);
}

/* The path as a URI: SQLite interprets %, ? and #, and two slashes at the beginning. */
static char *immutable_uri(const char *path)
{
    char escaped[3 * (STORE_PATH_MAX + 16) + 1], *to = escaped;

    for (const char *c = path; *c; c++)
        if (strchr("%?#", *c))
            to += sprintf(to, "%%%02x", (unsigned)*c);
        else
            *to++ = *c;
    *to = '\0';
    return sqlite3_mprintf("file:%s%s?immutable=1", path[0] == '/' ? "//" : "", escaped);
}

int store_connect(struct store *store, const char *path, bool is_writer, sqlite3 **out)
{
    const char *vfs = store->vfs_name[0] ? store->vfs_name : NULL;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc;

    *out = NULL;
    if (store->is_immutable) {
        char *uri = immutable_uri(path);

        if (!uri)
            return SQLITE_NOMEM;
        rc = sqlite3_open_v2(uri, out, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs);
        sqlite3_free(uri);
    } else {
        flags |= store->is_read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
        rc = sqlite3_open_v2(path, out, flags, vfs);
    }
    if (rc == SQLITE_OK)
        rc = connection_settings(store, *out, is_writer);
    return rc;
}

/* ---- making one ----------------------------------------------------------------------------- */

static int run_script(sqlite3 *db, unsigned version)
{
    char pragma[64];
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, scripts[version - 1], NULL, NULL, NULL);
    snprintf(pragma, sizeof pragma, "PRAGMA user_version=%u", version);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, pragma, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static int fill_new(sqlite3 *db)
{
    char pragmas[160];
    int rc;

    snprintf(pragmas, sizeof pragmas,
             "PRAGMA page_size=%d; PRAGMA auto_vacuum=NONE; PRAGMA encoding='UTF-8';"
             "PRAGMA application_id=%d; PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL;",
             STORE_PAGE_BYTES, APPLICATION_ID);
    rc = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
    for (unsigned version = 1; rc == SQLITE_OK && version <= SCHEMA_VERSION; version++)
        rc = run_script(db, version);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "INSERT INTO store VALUES (1, 0, 0, row_crc(1, 0, 0))", NULL, NULL,
                          NULL);
    return rc == SQLITE_OK
               ? sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL)
               : rc;
}

/* Makes kota.db whole under another name, then renames it. */
static enum err_code make_database(struct store *store, struct err *err)
{
    static const char *const remains[] = {"", "-wal", "-shm", "-journal"};
    char path[sizeof store->path + 16], name[sizeof path + 16];
    sqlite3 *db = NULL;
    int rc;

    snprintf(path, sizeof path, "%s.new", store->path);
    for (size_t i = 0; i < sizeof remains / sizeof *remains; i++) {
        snprintf(name, sizeof name, "%s%s", path, remains[i]);
        unlink(name);
    }
    rc = sqlite3_open_v2(path, &db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE,
                         store->vfs_name[0] ? store->vfs_name : NULL);
    if (rc == SQLITE_OK)
        rc = connection_settings(store, db, true);
    if (rc == SQLITE_OK)
        rc = fill_new(db);
    if (rc != SQLITE_OK) {
        store_sqlite_error(store, db, rc, true, "cannot make a database", err);
        sqlite3_close(db);
        return err->code;
    }
    sqlite3_close(db);
    rc = files_rename(store, path, store->path);
    if (rc != SQLITE_OK)
        return store_sqlite_error(store, NULL, rc, true, "cannot name the new database", err);
    return ERR_OK;
}

/* ---- knowing one again ---------------------------------------------------------------------- */

static int pragma_integer(sqlite3 *db, const char *sql, int64_t *out)
{
    struct rows rows = rows_open(db, sql, NULL);

    *out = rows_next(&rows) ? sqlite3_column_int64(rows.row, 0) : 0;
    return rows_close(&rows) == SQLITE_ROW ? SQLITE_OK : rows.rc;
}

/* The checksum of all declarations, except tables of ANALYZE. */
static int declarations(sqlite3 *db, int64_t *crc)
{
    return pragma_integer(db,
                          "SELECT row_crc(group_concat(line)) FROM (SELECT type || name || "
                          "tbl_name || coalesce(sql, '') AS line FROM sqlite_schema "
                          "WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name)",
                          crc);
}

/* The declarations that the scripts make in an empty database. */
static int declarations_wanted(struct store *store, int64_t *crc)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);

    if (rc == SQLITE_OK)
        rc = connection_settings(store, db, false);
    for (unsigned version = 1; rc == SQLITE_OK && version <= SCHEMA_VERSION; version++)
        rc = run_script(db, version);
    if (rc == SQLITE_OK)
        rc = declarations(db, crc);
    sqlite3_close(db);
    return rc;
}

static enum err_code check_declarations(struct store *store, struct err *err)
{
    int64_t got, want, application, page_bytes;
    int rc = declarations(store->db, &got);

    if (rc == SQLITE_OK)
        rc = pragma_integer(store->db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = pragma_integer(store->db, "PRAGMA page_size", &page_bytes);
    if (rc == SQLITE_OK)
        rc = declarations_wanted(store, &want);
    if (rc != SQLITE_OK)
        return store_sqlite_error(store, store->db, rc, false, "its tables cannot be read", err);
    if (got != want || application != APPLICATION_ID || page_bytes != STORE_PAGE_BYTES)
        return err_set(err, ERR_DAMAGED, "%.200s: its tables are not those of a kota database",
                       store->path);
    return ERR_OK;
}

static enum err_code migrate(struct store *store, struct err *err)
{
    int64_t version;
    int rc = pragma_integer(store->db, "PRAGMA user_version", &version);

    if (rc != SQLITE_OK)
        return store_sqlite_error(store, store->db, rc, false, "cannot be read", err);
    if (version > SCHEMA_VERSION)
        return err_set(err, ERR_CONFLICT,
                       "%.160s has schema version %lld, made by a newer kotad; this one knows "
                       "versions up to %d. Start the newer one, or restore a backup",
                       store->path, (long long)version, (int)SCHEMA_VERSION);
    if (version < 1)
        return err_set(err, ERR_DAMAGED, "%.200s: schema version %lld: no kota database",
                       store->path, (long long)version);
    if (version < SCHEMA_VERSION && store->is_read_only)
        return err_set(err, ERR_BAD_INPUT,
                       "%.200s has schema version %lld and is to be opened for writing first",
                       store->path, (long long)version);
    while (version < SCHEMA_VERSION) {
        rc = run_script(store->db, (unsigned)++version);
        if (rc != SQLITE_OK)
            return store_sqlite_error(store, store->db, rc, true, "cannot be migrated", err);
    }
    return ERR_OK;
}

static enum err_code set_wal(struct store *store, struct err *err)
{
    struct rows rows = rows_open(store->db, "PRAGMA journal_mode=WAL", NULL);
    bool is_wal =
        rows_next(&rows) && strcmp((const char *)sqlite3_column_text(rows.row, 0), "wal") == 0;
    int rc = rows_close(&rows);

    if (rc == SQLITE_ROW && !is_wal)
        rc = SQLITE_CANTOPEN;
    if (rc != SQLITE_ROW)
        return store_sqlite_error(store, store->db, rc, false, "cannot use a WAL", err);
    return ERR_OK;
}

/*
 * SQLite opens a file without write permission for reading, and fails at the first change. So
 * permission is checked first, before SQLite makes a read-only -shm beside the file.
 */
static enum err_code check_file(struct store *store, struct err *err)
{
    int fd = open(store->path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_BAD_INPUT, "%.200s cannot be written: %s", store->path,
                       strerror(errno));
    close(fd);
    return ERR_OK;
}

/* The same for the files beside it. Other errors appear when they are read. */
static enum err_code check_log(struct store *store, struct err *err)
{
    int rc = sqlite3_exec(store->db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL);
    int family = rc & 0xff;

    if (family == SQLITE_READONLY || family == SQLITE_PERM || family == SQLITE_CANTOPEN)
        return err_set(err, ERR_BAD_INPUT, "%.200s-wal or -shm cannot be written: %s", store->path,
                       sqlite3_errstr(rc));
    return ERR_OK;
}

enum err_code store_open_database(struct store *store, struct err *err)
{
    int rc;

    if (access(store->path, F_OK) != 0) {
        if (errno != ENOENT || store->is_read_only)
            return err_set(err, ERR_BAD_INPUT, "%.200s: %s", store->path, strerror(errno));
        if (make_database(store, err))
            return err->code;
    }
    if (!store->is_read_only && check_file(store, err))
        return err->code;
    if (store->is_read_only) {
        char wal[sizeof store->path + 8];

        snprintf(wal, sizeof wal, "%s-wal", store->path);
        store->is_immutable = access(wal, F_OK) != 0;
    }
    rc = store_connect(store, store->path, !store->is_read_only, &store->db);
    if (rc != SQLITE_OK)
        return store_sqlite_error(store, store->db, rc, false, "cannot be opened", err);
    if (migrate(store, err) || check_declarations(store, err))
        return err->code;
    if (store->is_read_only)
        return ERR_OK;
    if (set_wal(store, err) || check_log(store, err))
        return err->code;
    return store_check_names(store, err);
}
