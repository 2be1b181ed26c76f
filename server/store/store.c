/*
 * Opening, closing, transactions, errors and numbers of the store.
 *
 * Problem: acknowledged changes must survive the loss of power, and changes that could not be
 * written must not be acknowledged. Approach: SQLite's WAL with synchronous=FULL makes a COMMIT
 * durable before it returns. After an error in a write it is unknown which part reached the disk
 * (an fsync that failed once may succeed when it is tried again, with the data lost: "fsyncgate",
 * 2018). So the first error makes the store read-only until the file is opened, and read, again.
 *
 * Writes to a file that was removed or replaced succeed and are lost: so its name is checked before
 * BEGIN and after COMMIT.
 *
 * A lack of memory before COMMIT is no such error: nothing was written, rollback is enough. Nor is
 * a busy database before the first write.
 *
 * A rollback makes the cache (store_row_cache.c) stale; it is read again before the next write.
 */
#include "store/store.h"

#include "base/check.h"
#include "base/timed_wait.h"
#include "base/clock.h"
#include "store/store_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void store_clean(const char *text, char *out, size_t size)
{
    size_t n = 0;

    if (strncmp(text, "*** ", 4) == 0 && strchr(text, '\n')) /* integrity_check's heading */
        text = strchr(text, '\n') + 1;
    for (; *text != '\0' && n + 1 < size; text++) {
        if (*text == '\n' && text[1] == '\0')
            break;
        out[n++] = *text == '\n' ? ';' : *text < ' ' || *text > '~' ? '?' : *text;
    }
    out[n] = '\0';
}

/* ---- errors --------------------------------------------------------------------------------- */

bool store_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

enum err_code store_code(int rc, bool is_writing)
{
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return ERR_NO_MEMORY;
    case SQLITE_FULL:
        return ERR_DISK_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_BUSY;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return is_writing ? ERR_READ_ONLY : ERR_BAD_INPUT;
    default: /* corrupt, no database, an I/O error, a declaration that is not ours */
        return is_writing ? ERR_READ_ONLY : ERR_DAMAGED;
    }
}

/*
 * Was the error a full disk, quota or file size limit? SQLite has a code for ENOSPC only. The
 * connection's errno may be that of a later call; its two files have their own.
 */
static bool has_no_room(sqlite3 *db)
{
    static const int files[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};
    bool is_full = store_is_full(sqlite3_system_errno(db));

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sqlite3_file *file = NULL;
        int error = 0;

        if (sqlite3_file_control(db, "main", files[i], &file) == SQLITE_OK && file &&
            file->pMethods &&
            file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK)
            is_full = is_full || store_is_full(error);
    }
    return is_full;
}

enum err_code store_sqlite_error(struct store *store, sqlite3 *db, int rc, bool is_writing,
                                 const char *what, struct err *err)
{
    const char *reason = sqlite3_errstr(rc);
    int family = rc & 0xff;
    bool is_full = (family == SQLITE_IOERR || family == SQLITE_CANTOPEN) && db && has_no_room(db);

    err_set(err, is_full ? ERR_DISK_FULL : store_code(rc, is_writing),
            "kota.db: %s: %s (SQLite %d)", what, is_full ? "no space for it" : reason, rc);
    if (db && sqlite3_extended_errcode(db) == rc)
        reason = sqlite3_errmsg(db);
    return err_log_only(err, "%.140s: %.100s", store->path, reason);
}

bool store_has_failed(struct store *store)
{
    bool has_failed;

    pthread_mutex_lock(&store->stats_mutex);
    has_failed = store->stats.is_read_only;
    pthread_mutex_unlock(&store->stats_mutex);
    return has_failed;
}

void store_poison(struct store *store, const struct err *err)
{
    pthread_mutex_lock(&store->stats_mutex);
    if (!store->stats.is_read_only) {
        store->stats.is_read_only = true;
        store->stats.cause = err->code == ERR_DISK_FULL ? ERR_DISK_FULL : ERR_READ_ONLY;
        store->failure = *err;
        store->failure.code = store->stats.cause;
        snprintf(store->stats.reason, sizeof store->stats.reason, "%.*s",
                 (int)sizeof store->stats.reason - 1, err->msg);
    }
    pthread_mutex_unlock(&store->stats_mutex);
}

enum err_code store_write_error(struct store *store, int rc, const char *what, struct err *err)
{
    store->has_failed = true;
    if (store_sqlite_error(store, store->db, rc, true, what, err) != ERR_NO_MEMORY)
        store_poison(store, err);
    return err->code;
}

/* Notes which file the path names, or checks that it still is that one. */
static bool is_same_file(const char *path, struct file_place *known)
{
    struct stat now;

    if (stat(path, &now) != 0)
        return known->inode == 0;
    if (known->inode == 0)
        *known = (struct file_place){now.st_dev, now.st_ino};
    return now.st_dev == known->device && now.st_ino == known->inode;
}

enum err_code store_check_names(struct store *store, struct err *err)
{
    char wal[sizeof store->path + 8];
    bool is_there = is_same_file(store->path, &store->database);

    snprintf(wal, sizeof wal, "%s-wal", store->path);
    if (is_there && is_same_file(wal, &store->wal))
        return ERR_OK;
    err_set(err, ERR_READ_ONLY, "kota.db%s was removed or replaced while in use",
            is_there ? "-wal" : "");
    err_log_only(err, "%s", is_there ? wal : store->path);
    store_poison(store, err);
    return err->code;
}

/* ---- statements ----------------------------------------------------------------------------- */

sqlite3_stmt *store_statement(struct store *store, const char *sql, struct err *err)
{
    struct statement *s = store->statements;
    int rc;

    for (size_t i = 0; i < store->statement_count; i++, s++)
        if (s->sql == sql) {
            sqlite3_reset(s->prepared);
            sqlite3_clear_bindings(s->prepared);
            return s->prepared;
        }
    CHECK(store->statement_count < STORE_STATEMENTS_MAX);
    rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->prepared, NULL);
    if (rc != SQLITE_OK) {
        store_write_error(store, rc, "a statement cannot be prepared", err);
        return NULL;
    }
    s->sql = sql;
    store->statement_count++;
    return s->prepared;
}

enum err_code store_run(struct store *store, sqlite3_stmt *statement, const char *what,
                        struct err *err)
{
    int rc = sqlite3_step(statement);

    if (rc != SQLITE_DONE) {
        store_write_error(store, rc, what, err);
        sqlite3_reset(statement);
        return err->code;
    }
    sqlite3_reset(statement);
    return ERR_OK;
}

void sql_bind(sqlite3_stmt *statement, const struct sql_value *values)
{
    for (int at = 1; values && values->of != SQL_END; values++, at++)
        if (values->of == SQL_INTEGER)
            sqlite3_bind_int64(statement, at, values->integer);
        else if (values->of == SQL_TEXT)
            sqlite3_bind_text(statement, at, values->bytes, -1, SQLITE_STATIC);
        else if (values->of == SQL_BLOB)
            sqlite3_bind_blob64(statement, at, values->bytes, values->length, SQLITE_STATIC);
}

sqlite3_stmt *store_ask(struct store *store, const char *sql, const struct sql_value *values,
                        struct err *err)
{
    sqlite3_stmt *statement = store_statement(store, sql, err);

    if (statement)
        sql_bind(statement, values);
    return statement;
}

enum err_code store_exec(struct store *store, const char *sql, const struct sql_value *values,
                         const char *what, struct err *err)
{
    sqlite3_stmt *statement = store_ask(store, sql, values, err);
    enum err_code code;

    if (!statement)
        return err->code;
    code = store_run(store, statement, what, err);
    sqlite3_clear_bindings(statement);
    return code;
}

struct rows rows_open(sqlite3 *db, const char *sql, const struct sql_value *values)
{
    struct rows rows = {.row = NULL};

    rows.rc = sqlite3_prepare_v2(db, sql, -1, &rows.row, NULL);
    if (rows.rc == SQLITE_OK)
        sql_bind(rows.row, values);
    return rows;
}

bool rows_next(struct rows *rows)
{
    if (rows->rc == SQLITE_OK || rows->rc == SQLITE_ROW)
        rows->rc = sqlite3_step(rows->row);
    return rows->rc == SQLITE_ROW;
}

int rows_close(struct rows *rows)
{
    sqlite3_finalize(rows->row);
    return rows->rc;
}

enum err_code store_no_memory(struct store *store, const char *what, struct err *err)
{
    store->has_failed = true;
    return err_set(err, ERR_NO_MEMORY, "no memory for %s", what);
}

/* ---- open and close ------------------------------------------------------------------------- */

static enum err_code take_lock(struct store *store, struct err *err)
{
    char path[STORE_PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/lock", store->directory);
    store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (store->lock < 0)
        return err_set(err, store_is_full(errno) ? ERR_DISK_FULL : ERR_BAD_INPUT, "%.200s: %s",
                       path, strerror(errno));
    if (flock(store->lock, LOCK_EX | LOCK_NB) != 0)
        return err_set(err, ERR_CONFLICT, "%.200s: another process uses the directory", path);
    return ERR_OK;
}

/* Refuses a folder without write permission at the start, not at the first change. A full disk is
 * accepted: the data can be read. */
static enum err_code check_folder(const char *folder, struct err *err)
{
    char path[STORE_PATH_MAX + 32];
    int fd;

    snprintf(path, sizeof path, "%s/start.part", folder);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 && !store_is_full(errno))
        return err_set(err, ERR_BAD_INPUT, "the folder %.200s cannot be written: %s", folder,
                       strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return ERR_OK;
}

static enum err_code open_directory(struct store *store, struct err *err)
{
    char meshes[STORE_PATH_MAX + 16];

    if (store->is_read_only)
        return ERR_OK;
    snprintf(meshes, sizeof meshes, "%s/meshes", store->directory);
    if (!store_make_directory(store->directory) || !store_make_directory(meshes))
        return err_set(err, store_is_full(errno) ? ERR_DISK_FULL : ERR_BAD_INPUT,
                       "%.200s cannot be made: %s", store->directory, strerror(errno));
    if (check_folder(store->directory, err) || check_folder(meshes, err))
        return err->code;
    return take_lock(store, err);
}

static void take_options(struct store *store, const struct store_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    snprintf(store->directory, sizeof store->directory, "%s", options->directory);
    snprintf(store->path, sizeof store->path, "%s/kota.db", store->directory);
    if (options->vfs)
        snprintf(store->vfs_name, sizeof store->vfs_name, "%s", options->vfs);
    store->sync = options->sync;
    store->wal_bytes_max = options->wal_bytes_max ? options->wal_bytes_max : UINT64_C(1) << 30;
    store->log_rows_max = options->log_rows_max ? options->log_rows_max : 10000;
    store->is_read_only = options->is_read_only;
    store->crew = options->crew;
    store->threads = options->threads ? options->threads : cores > 0 ? (unsigned)cores : 1;
    store->stats.wal_bytes_max = store->wal_bytes_max;
}

struct store *store_open(const struct store_options *options, struct err *err)
{
    struct store *store = NULL;

    *err = (struct err){0};
    if (strlen(options->directory) >= STORE_PATH_MAX - 128) {
        err_limit(err, ERR_BAD_INPUT, STORE_PATH_MAX - 128, (double)strlen(options->directory),
                  "the data directory's path is too long");
        return NULL;
    }
    store = calloc(1, sizeof *store);
    if (!store) {
        err_set(err, ERR_NO_MEMORY, "no memory for a store");
        return NULL;
    }
    store->lock = -1;
    pthread_mutex_init(&store->stats_mutex, NULL);
    pthread_mutex_init(&store->checkpointer.mutex, NULL);
    pthread_mutex_init(&store->checkpointer.running, NULL);
    timed_wait_init(&store->checkpointer.wake);
    take_options(store, options);
    store->vfs = sqlite3_vfs_find(options->vfs);
    if (!store->vfs)
        err_set(err, ERR_BAD_INPUT, "SQLite has no VFS %s", options->vfs);
    else if (!open_directory(store, err) && !store_open_database(store, err) &&
             (store->is_read_only || !checkpointer_start(store, err)))
        return store;
    store_close(store);
    return NULL;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    checkpointer_stop(store);
    for (size_t i = 0; i < store->statement_count; i++)
        sqlite3_finalize(store->statements[i].prepared);
    /*
     * An open transaction is rolled back; the last connection checkpoints and removes the WAL. Not
     * after an error: the disk may differ from this process's view of it, and only a recovery reads
     * the WAL by its checksums.
     */
    if (store_has_failed(store))
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    CHECK(sqlite3_close(store->db) == SQLITE_OK);
    row_cache_free(&store->cache);
    free(store->op_row);
    free(store->old_files);
    if (store->lock >= 0)
        close(store->lock);
    pthread_cond_destroy(&store->checkpointer.wake);
    pthread_mutex_destroy(&store->checkpointer.running);
    pthread_mutex_destroy(&store->checkpointer.mutex);
    pthread_mutex_destroy(&store->stats_mutex);
    free(store);
}

/* ---- transactions --------------------------------------------------------------------------- */

/* Read-only already: the code and reason that it was then. */
static enum err_code remembered(struct store *store, struct err *err)
{
    enum err_code code = ERR_OK;

    pthread_mutex_lock(&store->stats_mutex);
    if (store->stats.is_read_only)
        code = (*err = store->failure).code;
    pthread_mutex_unlock(&store->stats_mutex);
    return code;
}

/* A store that was loaded may have damaged locales, which stay marked; it has no other damage. */
static void tolerate(void *context, const char *locale, const char *message)
{
    struct err *err = context;

    if (!locale[0])
        err_set(err, ERR_READ_ONLY, "%s", message);
}

static enum err_code read_row_cache(struct store *store, struct err *err)
{
    struct err damage = {.code = ERR_OK};

    if (row_cache_load(store, store->is_loaded ? tolerate : NULL, &damage, err) == ERR_OK) {
        if (!damage.code)
            return ERR_OK;
        *err = damage;
    }
    if (err->code == ERR_NO_MEMORY)
        return err->code;
    err->code = ERR_READ_ONLY;
    store_poison(store, err);
    return err->code;
}

enum err_code store_begin(struct store *store, struct err *err)
{
    sqlite3_stmt *begin;
    int rc;

    CHECK(!store->is_in_transaction);
    store->has_failed = false;
    if (store->is_read_only)
        return err_set(err, ERR_READ_ONLY, "%.200s is open for reading only", store->path);
    if (remembered(store, err) || store_check_names(store, err) ||
        checkpointer_make_room(store, err))
        return err->code;
    if (!store->is_cached && read_row_cache(store, err))
        return err->code;
    begin = store_statement(store, "BEGIN IMMEDIATE", err);
    if (!begin)
        return err->code;
    rc = sqlite3_step(begin);
    sqlite3_reset(begin);
    if ((rc & 0xff) == SQLITE_BUSY)
        return store_sqlite_error(store, store->db, rc, true, "another program writes", err);
    if (rc != SQLITE_DONE)
        return store_write_error(store, rc, "cannot begin", err);
    store->is_in_transaction = true;
    return ERR_OK;
}

static void count_commit(struct store *store, uint64_t us)
{
    enum { BUCKETS = sizeof store->stats.commit_count / sizeof *store->stats.commit_count };
    unsigned bucket = 0;

    while (bucket < BUCKETS - 1 && us >= UINT64_C(64) << bucket)
        bucket++;
    pthread_mutex_lock(&store->stats_mutex);
    store->stats.commits++;
    store->stats.commit_us_sum += us;
    store->stats.commit_count[bucket]++;
    store->stats.behind_tiles = store->cache.behind_tiles;
    store->stats.behind_bytes = store->cache.pending_bytes;
    pthread_mutex_unlock(&store->stats_mutex);
}

enum err_code store_commit(struct store *store, struct err *err)
{
    sqlite3_stmt *commit;
    uint64_t start = monotonic_us();
    int rc;

    CHECK(store->is_in_transaction && !store->has_failed);
    commit = store_statement(store, "COMMIT", err);
    rc = commit ? sqlite3_step(commit) : SQLITE_NOMEM;
    if (rc != SQLITE_DONE) {
        if (commit)
            store_write_error(store, rc, "cannot commit", err);
        if (commit)
            sqlite3_reset(commit);
        if (err->code == ERR_NO_MEMORY || err->code == ERR_BUSY)
            err->code = ERR_READ_ONLY; /* at COMMIT there is no way back */
        store_poison(store, err);
        store_rollback(store);
        return err->code;
    }
    sqlite3_reset(commit);
    store->is_in_transaction = false;
    if (store_check_names(store, err)) /* the committed data is in a file without its name */
        return err->code;
    count_commit(store, monotonic_us() - start);
    checkpointer_notify(store);
    return ERR_OK;
}

void store_rollback(struct store *store)
{
    if (!store->is_in_transaction)
        return;
    if (!sqlite3_get_autocommit(store->db) &&
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK) {
        struct err err;

        err_set(&err, ERR_READ_ONLY, "kota.db: cannot roll back");
        err_log_only(&err, "%.140s: %.100s", store->path, sqlite3_errmsg(store->db));
        store_poison(store, &err);
    }
    store->is_in_transaction = false;
    store->is_cached = false;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char name[STORE_PATH_MAX + 32];
    struct stat stat_of;

    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &stat_of) == 0 ? (uint64_t)stat_of.st_size : 0;
}

void store_stats(struct store *store, struct store_stats *out)
{
    pthread_mutex_lock(&store->stats_mutex);
    *out = store->stats;
    pthread_mutex_unlock(&store->stats_mutex);
    out->database_bytes = file_bytes(store->path, "");
    out->wal_bytes = file_bytes(store->path, "-wal");
}

void store_behind(const struct store *store, struct store_behind *out)
{
    out->tiles = store->cache.behind_tiles;
    out->log_bytes =
        store->cache.pending_bytes - store->cache.polygon_bytes - store->cache.left_bytes;
    out->edits = store->cache.pending_count - store->cache.polygon_edits - store->cache.left_edits;
    out->polygon_edits = store->cache.polygon_edits;
    out->polygon_bytes = store->cache.polygon_bytes;
}
