/*
 * The inside of the store, private to store/; other rooms include store.h.
 *
 *   store.c             open, close, transactions, errors, numbers
 *   store_schema.c      the database file: created, migrated, recognised; checksums of rows
 *   store_row_cache.c   the small tables in memory, and how they are written
 *   store_write.c       locales, layers, the log, models
 *   store_materialise.c stale tiles, from logged edits
 *   store_meshes.c      stale meshes, from logged edits
 *   store_files.c       meshes/
 *   store_checkpoint.c  the WAL
 *   store_load.c        the whole, verified; store_tiles.c: a layer's tiles on several threads
 *   store_shells.c      shells of models
 *   store_poses.c       poses of moved layers
 *   store_pins.c        values of locales that are kept under names
 *   store_history.c     who made each revision, and what was there before
 *   store_bases.c       values of locales whose tiles forks share
 *   store_applied.c     the applied position in a shared log
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
    STORE_STATEMENTS_MAX = 64
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blobs are little-endian");

/*
 * Durable renames, for a test's VFS: xFileControl of an open file. SQLITE_NOTFOUND: rename(2) and
 * fsync(2) of the folder are used.
 */
enum {
    STORE_FCNTL_RENAME = 0x6b6f7401,        /* const char *: the file's new path */
    STORE_FCNTL_SYNC_DIRECTORY = 0x6b6f7402 /* of the file; NULL */
};

/* Takes damage, of a locale or of none (""). */
typedef void (*store_report)(void *context, const char *locale, const char *message);

/* ---- the small tables in memory --------------------------------------------------- */

struct row_cache_locale {
    struct store_locale row;
    uint64_t applied_rev, log_first, log_last;
    uint64_t log_next;              /* store_load: the next revision of its log */
    uint32_t layers, left_edits;    /* left: of its pending rows, those that are left */
    bool is_damaged;                /* found by store_load: its tiles and files are not written */
    struct row_cache_layer *first;  /* in the order of their positions */
    size_t at;                      /* in locales */
    struct row_cache_locale *chain; /* of those with its hash */
    bool has_history;               /* the next two are known */
    uint64_t history_last, history_bytes; /* last 0: it has no rows */
};

struct row_cache_layer {
    struct row_cache_layer *next; /* of the locale */
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    uint32_t position;
    enum store_layer_kind kind;
    int role;
    struct heightfield_spec spec; /* STORE_HEIGHTFIELD; triangulation is the locale's */
    double gravity[3];            /* STORE_MESH */
    uint8_t mesh[STORE_HASH_BYTES], polygons[STORE_HASH_BYTES];
    char base[STORE_ID_MAX + 1]; /* tiles without a row are those of this locale's layer of the same
                                    id, in its pin "/base_revision"; "": each has a row */
    uint64_t base_revision;
    uint64_t since; /* with a base: rows before that revision are of another layer */
    uint64_t
        *behind; /* bit ty · tile_cols + tx: samples of that tile are in the log only; or NULL */
    uint64_t behind_count;
    bool is_left; /* its samples stay in the log by the last store_materialise */
};

struct row_cache_pin {
    char name[STORE_ID_MAX + 1];
    struct store_locale value; /* the locale's id, the pin's revision, the manifest then */
    uint32_t layers;
    uint32_t named; /* layers, of locales and of pins, whose base it is */
};

struct row_cache_pin_layer {
    char pin[STORE_ID_MAX + 1];
    uint64_t revision;            /* of the pin */
    struct row_cache_layer layer; /* without `behind` */
    bool has_pose;
    struct store_pose pose;
};

/* A row of the log whose samples are not in tiles, or whose polygons are not in files. */
struct row_cache_pending {
    uint64_t sequence, revision;
    char locale[STORE_ID_MAX + 1], layer[STORE_ID_MAX + 1];
    bool is_of_polygons;
    bool is_left;            /* in the log, by the last store_materialise */
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

struct row_cache {
    struct row_cache_locale **locales; /* they stay where they are, as their layers do */
    struct row_cache_locale **chains;  /* [chain_count], a power of two; by the hash of the id */
    size_t chain_count;
    struct row_cache_pin *pins;
    struct row_cache_pin_layer *pin_layers;
    struct row_cache_pending *pending; /* rising sequence */
    size_t locale_count, locale_room, pending_count, pending_room;
    size_t pin_count, pin_room, pin_layer_count, pin_layer_room;
    uint64_t models;
    uint64_t behind_tiles, pending_bytes;
    size_t polygon_edits;   /* of the pending rows */
    uint64_t polygon_bytes; /* of pending_bytes */
    size_t left_edits;      /* of the pending rows */
    uint64_t left_bytes;    /* of pending_bytes */
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
    pthread_mutex_t running;        /* held during a checkpoint */
};

/* The file of a path: 0, 0 when none yet. */
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
    bool is_read_only, is_immutable; /* immutable: no WAL, not open elsewhere */
    unsigned threads;
    struct crew *crew; /* NULL: the caller's thread */
    int lock;          /* descriptor, -1 */
    _Atomic uint64_t loaded_tiles, tiles_to_load;

    sqlite3 *db; /* the writer's */
    struct file_place database,
        wal; /* that it has open; the WAL's from the first commit at latest */
    struct statement statements[STORE_STATEMENTS_MAX];
    size_t statement_count;
    struct row_cache cache;
    bool is_loaded;                                /* by store_load: damage has been reported */
    bool is_cached, is_in_transaction, has_failed; /* failed: only rollback is allowed */
    uint64_t history_max;                          /* bytes, of one locale */
    char *op_row;                                  /* the result of store_find_op */
    struct old_file *old_files;                    /* oldest first */
    size_t old_file_count, old_file_room;

    struct checkpointer checkpointer;
    atomic_uint_least64_t wal_frames; /* in use, as the last commit left it */
    uint64_t wal_blocked_at;          /* writer: frames when a reader was last in the way */
    atomic_uint temporary;            /* number of the next temporary file */

    pthread_mutex_t stats_mutex; /* guards stats */
    struct store_stats stats;    /* is_read_only, cause, reason: set once */
    struct err failure;          /* with is_read_only: the error */
};

/* ---- store.c --------------------------------------------------------------------------------- */

/* Is it an errno of a disk, a quota or a file that can take no more? */
bool store_is_full(int error);

/* The code that an SQLite result means when reading (damage) or writing; never ERR_OK. */
enum err_code store_code(int rc, bool is_writing);

/* err from an SQLite result; the path and SQLite's own text are for the log only. */
enum err_code store_sqlite_error(struct store *store, sqlite3 *db, int rc, bool is_writing,
                                 const char *what, struct err *err);

/* The same in a write: the store is read-only from here on (but for want of memory). */
enum err_code store_write_error(struct store *store, int rc, const char *what, struct err *err);

/* Read-only from here on, for the reason in err. */
void store_poison(struct store *store, const struct err *err);
bool store_has_failed(struct store *store);

/*
 * Are kota.db and its WAL still under their names? Writes to a file that was removed or replaced
 * succeed and are lost with the process. ERR_READ_ONLY, and the store becomes read-only.
 */
enum err_code store_check_names(struct store *store, struct err *err);

/* A prepared statement of the writer's connection, reset; NULL with err. sql is a literal. */
sqlite3_stmt *store_statement(struct store *store, const char *sql, struct err *err);

/* A parameter of a statement; texts and blobs are borrowed until it has run. */
struct sql_value {
    enum { SQL_NULL, SQL_INTEGER, SQL_TEXT, SQL_BLOB, SQL_END } of;
    int64_t integer;
    const void *bytes;
    uint64_t length;
};
static inline struct sql_value sql_integer(uint64_t value)
{
    return (struct sql_value){.of = SQL_INTEGER, .integer = (int64_t)value};
}
static inline struct sql_value sql_text(const char *text)
{
    return (struct sql_value){.of = SQL_TEXT, .bytes = text};
}
static inline struct sql_value sql_blob(const void *bytes, uint64_t length)
{
    return (struct sql_value){.of = SQL_BLOB, .bytes = bytes, .length = length};
}
/* ?1, ?2, … of a statement */
#define SQL_VALUES(...) ((const struct sql_value[]){__VA_ARGS__, {.of = SQL_END}})
void sql_bind(sqlite3_stmt *statement, const struct sql_value *values);

/* store_statement with its parameters; values NULL: it has none. */
sqlite3_stmt *store_ask(struct store *store, const char *sql, const struct sql_value *values,
                        struct err *err);
/* Runs a statement that returns no row. */
enum err_code store_exec(struct store *store, const char *sql, const struct sql_value *values,
                         const char *what, struct err *err);

/*
 * The rows of a statement of its own: rows_open, rows_next while it is true, rows_close, which
 * returns SQLITE_DONE after the last row, SQLITE_ROW before it, or the error.
 */
struct rows {
    sqlite3_stmt *row; /* the row that rows_next has reached */
    int rc;
};
struct rows rows_open(sqlite3 *db, const char *sql, const struct sql_value *values);
bool rows_next(struct rows *rows);
int rows_close(struct rows *rows);

/* The transaction has failed: ERR_NO_MEMORY */
enum err_code store_no_memory(struct store *store, const char *what, struct err *err);

/* Steps a statement that returns no row, and resets it. */
enum err_code store_run(struct store *store, sqlite3_stmt *statement, const char *what,
                        struct err *err);

/* Text that may have bytes of a damaged file, as one line of printable ASCII. out[size] */
void store_clean(const char *text, char *out, size_t size);

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

/* ---- store_row_cache.c ----------------------------------------------------------------------- */

/*
 * Reads the small tables again; locales that were marked as damaged stay so. damage, when not NULL,
 * is called for each damaged row, whose locale is marked; otherwise a damaged row is an error.
 * ERR_DAMAGED, ERR_NO_MEMORY.
 */
enum err_code row_cache_load(struct store *store, store_report damage, void *context,
                             struct err *err);
void row_cache_free(struct row_cache *cache);

/* NULL: none. */
struct row_cache_locale *row_cache_locale(const struct row_cache *cache, const char *id);
struct row_cache_layer *row_cache_layer(const struct row_cache *cache, const char *locale,
                                        const char *id);
/* The first layer of a locale, which need not be there; the others follow by `next`. */
struct row_cache_layer *row_cache_first(const struct row_cache *cache, const char *locale);

/* A new one, with its ids set, a layer as the last of a locale that is there; NULL without memory.
 */
struct row_cache_locale *row_cache_add_locale(struct row_cache *cache, const char *id);
struct row_cache_layer *row_cache_add_layer(struct row_cache *cache, const char *locale,
                                            const char *id);
void row_cache_remove_layer(struct row_cache *cache, struct row_cache_layer *layer);
void row_cache_remove_locale(struct row_cache *cache,
                             struct row_cache_locale *locale); /* it has none */

/* A new pin, and a new layer of one; NULL without memory. */
struct row_cache_pin *row_cache_add_pin(struct row_cache *cache);
struct row_cache_pin_layer *row_cache_add_pin_layer(struct row_cache *cache);

/* Is it of that layer? */
bool row_cache_is_of(const struct row_cache_pending *row, const struct row_cache_layer *layer);
/* Do the samples of a pending row touch a tile of its layer? */
bool row_cache_touches(const struct heightfield_spec *spec, const struct row_cache_pending *row,
                       uint32_t tx, uint32_t ty);
/* Marks the tiles of a rectangle as stale. */
enum err_code row_cache_mark_behind(struct row_cache *cache, struct row_cache_layer *layer,
                                    const struct sample_rect *rect, struct err *err);

/* Notes samples as not in tiles. No effect when there is no such layer. */
enum err_code row_cache_add_pending(struct row_cache *cache,
                                    const struct row_cache_pending *pending, struct err *err);
void row_cache_clear_behind(struct row_cache *cache, struct row_cache_layer *layer);

/* Rows as they are in the cache, to the database. */
enum err_code row_cache_write_store(struct store *store, struct err *err);
enum err_code row_cache_write_locale(struct store *store, const struct row_cache_locale *locale,
                                     struct err *err);

/* ---- rows ------------------------------------------------------------------------------------ */

/* Binds title, gravity, translation, rotation, open_sky, triangulation, geo from `at` on. */
void bind_manifest(sqlite3_stmt *write, int at, const struct store_locale *v);
/* Binds a layer's values as ?1 to ?12, in the order of LAYER_VALUES; its base as the next three. */
void bind_layer(sqlite3_stmt *write, const struct row_cache_layer *layer);
void bind_base(sqlite3_stmt *write, int at, const struct row_cache_layer *layer);
#define LAYER_VALUES                                                                               \
    "locale, id, position, kind, role, cols, rows, leaf_cells, grid, gravity, mesh, polygons"

/* Text of a column into text[size]; false when it does not fit or is no text. */
bool column_text(sqlite3_stmt *row, int column, char *text, size_t size);
/* A blob of exactly that length. */
bool column_bytes(sqlite3_stmt *row, int column, void *bytes, size_t length);

/* ---- store_write.c --------------------------------------------------------------------------- */

/* Drops the samples of pending rows that `is_gone` names, from the log and the cache. */
enum err_code store_drop_logged(struct store *store,
                                bool (*is_gone)(const void *context,
                                                const struct row_cache_pending *row),
                                const void *context, struct err *err);

/* Writes a layer's row as it is in the cache. */
enum err_code store_write_layer_row(struct store *store, const struct row_cache_layer *layer,
                                    struct err *err);

/*
 * Writes the stale tiles of a layer from its field, as of a revision; they are stale no more.
 * is_of_log: the field is the tiles with the samples of the log, and no other.
 */
enum err_code tiles_write_behind(struct store *store, struct row_cache_layer *layer,
                                 const struct heightfield *field, uint64_t revision, bool is_of_log,
                                 struct err *err);

/* Inserts or replaces one tile of a field. */
enum err_code store_write_tile(struct store *store, const struct row_cache_layer *layer,
                               const struct heightfield *field, uint64_t revision, uint32_t tx,
                               uint32_t ty, struct err *err);

/*
 * A row of the log from a statement whose columns are EDIT_COLUMNS; texts and blobs are
 * borrowed from the statement. False when the row's checksum is wrong.
 */
#define EDIT_COLUMNS                                                                               \
    "sequence, locale, rev, kind, layer, source, op_id, request, rect, bounds, answer, "           \
    "has_samples, crc = row_crc(sequence, locale, rev, kind, layer, source, op_id, request, "      \
    "rect, bounds, answer, has_samples)"
enum { EDIT_COLUMN_COUNT = 13, EDIT_COLUMN_ANSWER = 10, EDIT_COLUMN_HAS_SAMPLES = 11 };
bool edit_row_read(sqlite3_stmt *row, struct store_edit *out);

/* ---- store_shells.c -------------------------------------------------------------------------- */

/* Deletes the shells without a model, in the open transaction. */
enum err_code shells_sweep(struct store *store, struct err *err);
/* Reads all: ERR_DAMAGED when a checksum is wrong, or one has no model. */
enum err_code shells_check(struct store *store, struct err *err);

/* ---- store_poses.c --------------------------------------------------------------------------- */

/* A pose as the doubles of a blob: their number. And back; false when they are of no pose. */
enum { POSE_NUMBERS_MAX = 8 };
size_t pose_numbers(const struct store_pose *pose, double numbers[POSE_NUMBERS_MAX]);
bool pose_column(sqlite3_stmt *row, int column, struct store_pose *out);

/* Removes the poses of a locale that is deleted. */
enum err_code poses_drop_locale(struct store *store, const char *locale, struct err *err);
/*
 * Fills the poses of a locale's layers and its transform_seq. ERR_DAMAGED: the checksum of a row is
 * wrong, or it belongs to none of the layers.
 */
enum err_code poses_load(struct store *store, const char *locale, uint64_t *transform_seq,
                         struct store_loaded_layer *layers, size_t count, struct err *err);
/* Number of rows without a locale; -1: the table cannot be read. */
long poses_without_locale(struct store *store);

/* Shortens a locale's log to log_rows_max rows and those that are still needed. */
enum err_code store_trim_log(struct store *store, struct row_cache_locale *locale, struct err *err);

/* ---- store_pins.c ---------------------------------------------------------------------------- */

/*
 * A tile is about to be replaced, or removed (next NULL): what pins need of it goes to kept_tile.
 * *next, the revision that the new row would get, becomes that of the last pin where the new row is
 * also that pin's. Where no pin needs the tile, nothing happens.
 */
enum err_code pins_keep_tile(struct store *store, const struct row_cache_layer *layer, uint32_t tx,
                             uint32_t ty, uint64_t *next, struct err *err);

/*
 * The files of a mesh layer are about to be replaced by those of `revision` (0: by others, or by
 * none), and its logged edits up to there to be removed: pins that need those edits get files of
 * their own, or the new ones, whose names are in `now`.
 */
enum err_code pins_keep_mesh(struct store *store, const struct row_cache_layer *before,
                             const struct row_cache_layer *now, uint64_t revision, struct err *err);

/* All of a layer is about to be removed or replaced. */
enum err_code pins_keep_layer(struct store *store, const struct row_cache_layer *layer,
                              struct err *err);

/* Removes the pins of a locale that is deleted, and what only they needed; not those that are
 * bases. */
enum err_code pins_drop_locale(struct store *store, const char *locale, struct err *err);

/* Removes a pin, which is there, and what no other pin needs. */
enum err_code pins_drop(struct store *store, const char *locale, const char *name, struct err *err);

/* Writes the row of a pin that is in the cache, and the rows of its layers. */
enum err_code pins_write_count(struct store *store, struct err *err);
enum err_code pins_write(struct store *store, const struct row_cache_pin *pin, struct err *err);
enum err_code pins_write_layer(struct store *store, const struct row_cache_pin_layer *pinned,
                               struct err *err);

/* The pin of that name, or the layer of one; NULL: none. */
struct row_cache_pin *pins_find(struct row_cache *cache, const char *locale, const char *name);
const struct row_cache_pin_layer *pins_find_layer(const struct row_cache *cache, const char *locale,
                                                  const char *pin, const char *id);

/* ---- store_bases.c --------------------------------------------------------------------------- */

/* Is it a base, and no pin that has a name? */
bool base_is(const struct row_cache_pin *pin);

/* The layer of the base that a layer names; NULL: it names none, or that is not there. */
const struct row_cache_pin_layer *base_of(const struct row_cache *cache,
                                          const struct row_cache_layer *layer);

/* A layer that names a base comes (1), or goes (-1). */
void base_count(struct row_cache *cache, const struct row_cache_layer *layer, int change);

/* Removes the bases that no layer names; none while a locale is damaged. */
enum err_code bases_sweep(struct store *store, struct err *err);

/* Does a layer name each base? */
bool bases_are_named(const struct store *store);

/*
 * A tile as the base of a layer has it: its samples, without a gap. samples_m[rows][cols]
 * ERR_DAMAGED, ERR_NO_MEMORY
 */
enum err_code base_read_tile(struct store *store, const struct row_cache_layer *layer, uint32_t tx,
                             uint32_t ty, float *samples_m, struct err *err);

/* Reports layers whose base is not there; in a read-only store without damaged locales also bases
 * that no layer names. */
void bases_check(struct store *store, store_report report, void *context);

/* ---- store_history.c ------------------------------------------------------------------------- */

/* Appends edit->past and removes what is beyond the bound; past NULL: removes all. */
enum err_code history_append(struct store *store, struct row_cache_locale *locale,
                             const struct store_edit *edit, struct err *err);
/* Removes the history of a locale. */
enum err_code history_drop_locale(struct store *store, const char *locale, struct err *err);
/* Reads all: reports rows that are damaged or missing. An error: the table cannot be read. */
enum err_code history_check(struct store *store, void (*report)(void *context, const char *message),
                            void *context, struct err *err);

/* ---- store_meshes.c -------------------------------------------------------------------------- */

/* Does the log have edits of a mesh, after one revision up to another one? */
bool meshes_are_logged(const struct row_cache *cache, const struct row_cache_layer *layer,
                       uint64_t after, uint64_t upto);

/*
 * Applies the logged edits of a layer up to a revision to the contents of its files; *is_behind:
 * there were some.
 */
enum err_code meshes_apply_log(struct store *store, const struct row_cache_layer *layer,
                               uint64_t revision_max, struct store_loaded_layer *out,
                               struct err *err);

/* ---- store_applied.c ------------------------------------------------------------------------- */

/* Reports damaged rows. An error: the tables cannot be read. */
enum err_code applied_check(struct store *store, store_report report, void *context,
                            struct err *err);

/* ---- store_files.c --------------------------------------------------------------------------- */

enum err_code files_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons, uint8_t mesh_name[32],
                              uint8_t polygons_name[32], struct err *err);
enum err_code files_load_mesh(struct store *store, const uint8_t name[32], struct mesh **out,
                              struct err *err);
enum err_code files_load_polygons(struct store *store, const uint8_t name[32],
                                  struct polygon_set *out, struct err *err);
/* Removes files that no layer of the cache names. */
void files_sweep(struct store *store);
/* The layer named these files until now. */
void files_note_old(struct store *store, const struct row_cache_layer *layer);
/* Removes those of them that have not been named for an hour. */
void files_sweep_old(struct store *store);
/* Renames a file that is synced, durably. An SQLite code. */
int files_rename(struct store *store, const char *from, const char *to);

/* ---- store_checkpoint.c ---------------------------------------------------------------------- */

enum err_code checkpointer_start(struct store *store, struct err *err);
void checkpointer_stop(struct store *store);
/* After a commit. */
void checkpointer_notify(struct store *store);
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

/* Where a tile's samples are. */
struct tile_row {
    int64_t number, revision;
    uint32_t crc;
    int codec, bytes;
    bool is_there, is_kept; /* kept: in kept_tile */
};

/* A state of a layer, with which others that are loaded later share tiles. */
struct tiles_loaded {
    struct heightfield *field; /* a reference; NULL: none */
    struct tile_row *rows;     /* malloc */
    uint64_t revision;
    const struct heightfield *base; /* borrowed, of tiles without a row; NULL: there are none */
};
void tiles_loaded_free(struct tiles_loaded *loaded);
/* A copy with references of its own. False without memory. */
bool tiles_loaded_copy(const struct tiles_loaded *from, struct tiles_loaded *out);

/*
 * pin     NULL: the layer as it is. Else of that pin
 * loaded  NULL, or another state of the layer, whose tiles are shared where they are the same; out:
 *         this one
 * base    of a layer that names one, else NULL
 */
struct heightfield *tiles_load(struct store *store, struct tile_readers *readers,
                               const struct row_cache_layer *layer,
                               const struct row_cache_pin_layer *pin,
                               enum triangulation triangulation, struct tiles_loaded *loaded,
                               const struct tiles_loaded *base, struct err *err);

/* The heightfields of all bases, for a load: each once, shared by those that name it. */
struct bases;
struct bases *bases_load(struct store *store, struct tile_readers *readers, struct err *err);
void bases_free(struct bases *bases); /* NULL is fine */
/*
 * The base of a layer: ERR_OK, and *out is NULL where it names none. ERR_DAMAGED: it cannot be
 * read.
 */
enum err_code bases_find(const struct bases *bases, const struct row_cache_layer *layer,
                         const struct tiles_loaded **out, struct err *err);
/* The last base made of a layer, whose tiles it may share; NULL: none. */
const struct tiles_loaded *bases_last(const struct bases *bases,
                                      const struct row_cache_layer *layer);

/* Reports kept tiles that no pin needs. */
enum err_code pins_check(struct store *store, store_report report, void *context, struct err *err);

/* One row's samples out of the log, rect.cols · rect.rows of them. */
struct overlay {
    uint64_t revision;
    struct sample_rect rect;
    float *heights_m; /* malloc */
};
enum err_code overlay_read(struct store *store, const struct row_cache_pending *pending,
                           struct overlay *out, struct err *err);
/* Writes the part of a rectangle that a tile of cols × rows samples has. */
void overlay_apply(const struct overlay *overlay, uint32_t tx, uint32_t ty, uint32_t cols,
                   uint32_t rows, size_t stride, float *samples_m);

#endif
