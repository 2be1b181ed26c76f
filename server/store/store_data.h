/*
 * The inside of the store, for the files of this room only; everybody else uses store.h.
 *
 *   store.c             open, close, transactions, errors, numbers
 *   store_schema.c      the database file: how it is made, migrated, known; checksums of rows
 *   store_mirror.c      what is kept in memory of the small tables, and how it is written
 *   store_write.c       locales, layers, the log, models
 *   store_materialise.c tiles behind the log
 *   store_meshes.c      meshes behind the log
 *   store_files.c       meshes/
 *   store_checkpoint.c  the WAL
 *   store_load.c        the whole, verified; store_tiles.c: a layer's tiles on several threads
 *   store_shells.c      shells of models
 *   store_poses.c       where layers stand that were moved
 *   store_applied.c     where the store stands in a log that others share
 *   store_check.c       models, store_check
 */
#ifndef KOTA_STORE_STORE_DATA_H
#define KOTA_STORE_STORE_DATA_H

#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
    STORE_PAGE_BYTES = 16384,
    STORE_PATH_MAX = 3840, /* bytes of a path of the store's files */
    STORE_STATEMENTS_MAX = 48
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blobs are little-endian");

/*
 * What a test's VFS may know beyond SQLite's: durable names. Asked of an open file by xFileControl;
 * SQLITE_NOTFOUND: by rename(2) and fsync(2) of the folder.
 */
enum {
    STORE_FCNTL_RENAME = 0x6b6f7401,        /* const char *: the file's new path */
    STORE_FCNTL_SYNC_DIRECTORY = 0x6b6f7402 /* of the file; NULL */
};

/* ---- what is in memory of the small tables --------------------------------------------------- */

struct mirror_locale {
    struct store_locale row;
    uint64_t applied_rev, log_first, log_last;
    uint32_t layers;
    bool is_damaged; /* found by store_load: nothing of it is written behind the log */
};

struct mirror_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    uint32_t position;
    enum store_layer_kind kind;
    int role;
    struct heightfield_spec spec; /* STORE_HEIGHTFIELD; triangulation is the locale's */
    double gravity[3];            /* STORE_MESH */
    uint8_t mesh[STORE_HASH_BYTES], polygons[STORE_HASH_BYTES];
    uint64_t
        *behind; /* bit ty · tile_cols + tx: samples of that tile are in the log only; or NULL */
    uint64_t behind_count;
};

/* A row of the log whose samples are not in tiles, or whose polygons are not in files. */
struct mirror_pending {
    uint64_t sequence, revision;
    char locale[STORE_ID_MAX + 1], layer[STORE_ID_MAX + 1];
    bool is_of_polygons;
    uint64_t bytes;          /* of its data */
    struct sample_rect rect; /* of samples */
};

/* As the codec of a row's data. */
enum { LOG_SAMPLES = 0, LOG_POLYGONS = 1 };

/* A file in meshes/ that was named once. */
struct old_file {
    uint64_t since_us;
    uint8_t name[STORE_HASH_BYTES];
    bool is_image;
};

struct mirror {
    struct mirror_locale *locales;
    struct mirror_layer *layers;
    struct mirror_pending *pending; /* rising sequence */
    size_t sorted_count;            /* of locales */
    size_t locale_count, locale_room, layer_count, layer_room, pending_count, pending_room;
    uint64_t models;
    uint64_t behind_tiles, pending_bytes;
    size_t polygon_edits;   /* of the pending rows */
    uint64_t polygon_bytes; /* of pending_bytes */
};

/* ---- the store ------------------------------------------------------------------------------- */

struct statement {
    const char *sql; /* the literal's address is the key */
    sqlite3_stmt *prepared;
};

struct checkpointer {
    sqlite3 *db; /* the thread's */
    pthread_t thread;
    bool is_running;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t wake;
    bool is_ending, is_due;
    uint64_t commits, commits_done; /* all; when the last checkpoint began */
    uint64_t frames_done;           /* in the WAL then */
    pthread_mutex_t turn;           /* held by who checkpoints */
};

/* Which file a path named: 0, 0 when none yet. */
struct file_place {
    dev_t device;
    ino_t inode;
};

struct store {
    char directory[STORE_PATH_MAX], path[STORE_PATH_MAX + 16];
    char vfs_name[64]; /* "": the default */
    sqlite3_vfs *vfs;
    enum store_sync sync;
    uint64_t wal_bytes_max, log_rows_max;
    bool is_read_only, is_immutable; /* immutable: no WAL, nobody has it open */
    unsigned threads;
    int lock; /* descriptor, -1 */
    _Atomic uint64_t loaded_tiles, tiles_to_load;

    sqlite3 *db; /* the writer's */
    struct file_place database,
        wal; /* that it has open; the WAL's from the first commit at latest */
    struct statement statements[STORE_STATEMENTS_MAX];
    size_t statement_count;
    struct mirror mirror;
    bool is_loaded;                                  /* by store_load: damage has been told */
    bool is_mirrored, is_in_transaction, has_failed; /* failed: only rollback is allowed */
    char *op_row;                                    /* what store_find_op gave out */
    struct old_file *old_files;                      /* oldest first */
    size_t old_file_count, old_file_room;

    struct checkpointer checkpointer;
    atomic_uint_least64_t wal_frames; /* in use, as the last commit left it */
    uint64_t wal_blocked_at;          /* writer: frames when a reader was last in the way */
    atomic_uint temporary;            /* number of the next temporary file */

    pthread_mutex_t stats_mutex; /* guards stats */
    struct store_stats stats;    /* is_read_only, cause, reason: set once */
};

/* ---- store.c --------------------------------------------------------------------------------- */

/* The code that an SQLite result means when reading (damage) or writing; never ERR_OK. */
enum err_code store_code(int rc, bool is_writing);

/* err from an SQLite result: "FILE: what: SQLite's reason". */
enum err_code store_sqlite_error(struct store *store, sqlite3 *db, int rc, bool is_writing,
                                 const char *what, struct err *err);

/* The same in a write: the store is read-only from here on (but for want of memory). */
enum err_code store_write_error(struct store *store, int rc, const char *what, struct err *err);

/* Read-only from here on, for the reason in err. */
void store_poison(struct store *store, const struct err *err);
bool store_has_failed(struct store *store);

/*
 * Are kota.db and its WAL still under their names? What is written to a file that was removed or
 * replaced is gone with the process, and no write to it fails. ERR_READ_ONLY, and the store is so.
 */
enum err_code store_check_names(struct store *store, struct err *err);

/* A prepared statement of the writer's connection, reset; NULL with err. sql is a literal. */
sqlite3_stmt *store_statement(struct store *store, const char *sql, struct err *err);

/* Steps a statement that gives no row, and resets it. */
enum err_code store_run(struct store *store, sqlite3_stmt *statement, const char *what,
                        struct err *err);

/* What may hold bytes of a damaged file, as one line of printable ASCII. out[size] */
void store_clean(const char *text, char *out, size_t size);

/* Waits and clocks. */
uint64_t store_now_us(void);

/* ---- store_schema.c -------------------------------------------------------------------------- */

/* Opens a connection with the room's settings. */
int store_connect(struct store *store, const char *path, bool is_writer, sqlite3 **out);

/* Makes the database if there is none; checks and migrates it. Sets store->db. */
enum err_code store_open_database(struct store *store, struct err *err);

/*
 * The checksum of a row: CRC-32 over type, length and bytes of each value. In SQL it is
 * row_crc(value, …); by hand for blobs that are never a value in memory.
 */
uint32_t row_crc_text(uint32_t crc, const char *text);
uint32_t row_crc_integer(uint32_t crc, int64_t value);
uint32_t row_crc_blob_head(uint32_t crc, size_t length); /* then crc32_z over the bytes */

/* ---- store_mirror.c -------------------------------------------------------------------------- */

/*
 * Reads the small tables anew; locales that were marked as damaged stay so. damage, when not NULL,
 * is told of each row that cannot be trusted (such a row's locale is marked); otherwise such a row
 * is an error. ERR_DAMAGED, ERR_NO_MEMORY.
 */
typedef void (*mirror_damage)(void *context, const char *locale, const char *message);
enum err_code mirror_load(struct store *store, mirror_damage damage, void *context,
                          struct err *err);
void mirror_free(struct mirror *mirror);

struct mirror_locale *mirror_locale(struct mirror *mirror, const char *id); /* NULL: none */
struct mirror_layer *mirror_layer(struct mirror *mirror, const char *locale, const char *id);

/* A new one, with its ids set; NULL without memory. */
struct mirror_locale *mirror_add_locale(struct mirror *mirror, const char *id);
struct mirror_layer *mirror_add_layer(struct mirror *mirror, const char *locale, const char *id);
void mirror_remove_layer(struct mirror *mirror, struct mirror_layer *layer);
void mirror_remove_locale(struct mirror *mirror, struct mirror_locale *locale); /* it has none */

/* Remembers samples as not in tiles. Nothing when their layer is gone. */
enum err_code mirror_add_pending(struct mirror *mirror, const struct mirror_pending *pending,
                                 struct err *err);
void mirror_clear_behind(struct mirror *mirror, struct mirror_layer *layer);

/* Rows as they are in the mirror, to the database. */
enum err_code mirror_write_store(struct store *store, struct err *err);
enum err_code mirror_write_locale(struct store *store, const struct mirror_locale *locale,
                                  struct err *err);

/* The tiles that hold a sample of the rectangle: columns x0..x1, rows y0..y1. */
struct tile_span {
    uint32_t x0, y0, x1, y1;
};
struct tile_span tile_span(const struct heightfield_spec *spec, const struct sample_rect *rect);

/* ---- rows ------------------------------------------------------------------------------------ */

/* Text of a column into text[size]; false when it does not fit or is none. */
bool column_text(sqlite3_stmt *row, int column, char *text, size_t size);
/* A blob of exactly that length. */
bool column_bytes(sqlite3_stmt *row, int column, void *bytes, size_t length);

/* ---- store_write.c --------------------------------------------------------------------------- */

/* Drops the samples of pending rows that `is_gone` names, from the log and the mirror. */
enum err_code store_let_go(struct store *store,
                           bool (*is_gone)(const void *context, const struct mirror_pending *row),
                           const void *context, struct err *err);

/* Writes a layer's row as it is in the mirror. */
enum err_code store_write_layer_row(struct store *store, const struct mirror_layer *layer,
                                    struct err *err);

/* Writes one tile of a field, new or in the place of what was there. */
enum err_code store_write_tile(struct store *store, const struct mirror_layer *layer,
                               const struct heightfield *field, uint64_t revision, uint32_t tx,
                               uint32_t ty, struct err *err);

/*
 * A row of the log from a statement whose columns are EDIT_COLUMNS; texts and blobs as the
 * statement holds them. False when the row's checksum is wrong.
 */
#define EDIT_COLUMNS                                                                               \
    "sequence, locale, rev, kind, layer, source, op_id, request, rect, bounds, answer, "           \
    "has_samples, crc = row_crc(sequence, locale, rev, kind, layer, source, op_id, request, "      \
    "rect, bounds, answer, has_samples)"
enum { EDIT_COLUMN_COUNT = 13, EDIT_COLUMN_ANSWER = 10, EDIT_COLUMN_HAS_SAMPLES = 11 };
bool edit_row_read(sqlite3_stmt *row, struct store_edit *out);

/* ---- store_shells.c -------------------------------------------------------------------------- */

/* Deletes the shells whose model is gone, in the open transaction. */
enum err_code shells_sweep(struct store *store, struct err *err);
/* Reads all: ERR_DAMAGED when one is not what was written, or has no model. */
enum err_code shells_check(struct store *store, struct err *err);

/* ---- store_poses.c --------------------------------------------------------------------------- */

/* Removes the poses of a locale that is deleted. */
enum err_code poses_drop_locale(struct store *store, const char *locale, struct err *err);
/*
 * Fills the poses of a locale's layers and its transform_seq. ERR_DAMAGED: a row that is not what
 * was written, or belongs to none of the layers.
 */
enum err_code poses_load(struct store *store, const char *locale, uint64_t *transform_seq,
                         struct store_loaded_layer *layers, size_t count, struct err *err);
/* How many rows belong to no locale that is there; -1: the table cannot be read. */
long poses_without_locale(struct store *store);

/* Shortens a locale's log to log_rows_max rows and what is not let go. */
enum err_code store_trim_log(struct store *store, struct mirror_locale *locale, struct err *err);

/* ---- store_meshes.c -------------------------------------------------------------------------- */

/* Makes the edits of a layer that are logged in what its files hold; *is_behind when there were. */
enum err_code meshes_apply_log(struct store *store, const struct mirror_layer *layer,
                               struct store_loaded_layer *out, struct err *err);

/* ---- store_applied.c ------------------------------------------------------------------------- */

/* Tells of rows that cannot be trusted. An error: the tables cannot be read. */
enum err_code applied_check(struct store *store,
                            void (*tell)(void *context, const char *locale, const char *message),
                            void *context, struct err *err);

/* ---- store_files.c --------------------------------------------------------------------------- */

enum err_code files_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons, uint8_t mesh_name[32],
                              uint8_t polygons_name[32], struct err *err);
enum err_code files_load_mesh(struct store *store, const uint8_t name[32], struct mesh **out,
                              struct err *err);
enum err_code files_load_polygons(struct store *store, const uint8_t name[32],
                                  struct polygon_set *out, struct err *err);
/* Removes what no layer of the mirror names. */
void files_sweep(struct store *store);
/* The layer named these files until now. */
void files_note_old(struct store *store, const struct mirror_layer *layer);
/* Removes those of them that have not been named for an hour. */
void files_sweep_old(struct store *store);
/* Renames a file that is synced, durably. An SQLite code. */
int files_rename(struct store *store, const char *from, const char *to);

/* ---- store_checkpoint.c ---------------------------------------------------------------------- */

enum err_code checkpointer_start(struct store *store, struct err *err);
void checkpointer_stop(struct store *store);
/* After a commit. */
void checkpointer_tell(struct store *store);
/* Before a transaction: ERR_BUSY when the WAL is at its limit. */
enum err_code checkpointer_make_room(struct store *store, struct err *err);

/* ---- store_tiles.c --------------------------------------------------------------------------- */

/*
 * A layer's heightfield from its tiles, with the samples of the log that are not in them. A tile
 * that is missing or damaged is ERR_DAMAGED and named.
 */
struct tile_readers;
struct tile_readers *tile_readers_open(struct store *store, struct err *err);
void tile_readers_close(struct tile_readers *readers);
struct heightfield *tiles_load(struct store *store, struct tile_readers *readers,
                               const struct mirror_layer *layer, enum triangulation triangulation,
                               struct err *err);

#endif
