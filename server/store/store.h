/*
 * The durable state of a world: one SQLite database in the data directory, and files named by their
 * content beside it (design, section 5).
 *
 *   DIR/kota.db         locales, layers, tiles, the log of edits, models (server/store/schema/)
 *   DIR/meshes/HASH.*   images of meshes and the polygons they were built of; written, synced and
 *                       renamed before the COMMIT that names them; what nobody names is removed by
 *                       store_load
 *   DIR/lock            held while a process uses the directory
 *
 * One thread at a time uses a store, but where it says otherwise: the main thread for store_open
 * and store_load, then the writer's. Nothing here knows locales as the world does; what is stored
 * are values of terrain and formats under names.
 *
 * A heightfield's edits are logged as their outcome (terrain/edit.h) and are durable by that; its
 * tiles are brought up to date later (store_materialise), which also lets go of the logged samples.
 * The store remembers which tiles are behind. Edits of a mesh's polygons are logged alike; its
 * files are written when the log has much of it (store_put_mesh), else at the end, and a load makes
 * the edits that are logged.
 *
 * Errors of a write: ERR_DISK_FULL and ERR_READ_ONLY. After either, and after any error at COMMIT,
 * the store is read-only until it is opened again: SQLite's state in memory and what reached the
 * disk may differ, so nothing is tried twice. What failed is not acknowledged; whether it is there
 * after a restart is open, but it is there whole or not at all.
 */
#ifndef KOTA_STORE_STORE_H
#define KOTA_STORE_STORE_H

#include "base/err.h"
#include "formats/polygon_edit.h"
#include "terrain/edit.h"
#include "terrain/heightfield.h"
#include "terrain/mesh.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_ID_MAX = 64,        /* characters of a locale's, a layer's or a model's id */
    STORE_TITLE_MAX = 256,    /* bytes of a title */
    STORE_OP_ID_MAX = 128,    /* characters of an op_id */
    STORE_SOURCE_MAX = 32,    /* characters of an edit's source */
    STORE_REQUEST_BYTES = 32, /* of the hash of a request */
    STORE_HASH_BYTES = 32
};

/* NORMAL loses acknowledged edits in a power cut: it is there for the test that shows it. */
enum store_sync { STORE_SYNC_FULL, STORE_SYNC_NORMAL };

struct store_options {
    const char *directory; /* created, with its parents, if absent (not when read-only) */
    const char *vfs;       /* SQLite's name of one; NULL: the default. Also used for the files in
                              meshes/, so that a test's VFS sees every byte that is written */
    enum store_sync sync;
    uint64_t wal_bytes_max; /* 0: 1 GiB; a write that finds more is refused with ERR_BUSY */
    uint64_t log_rows_max;  /* rows of the log kept for a locale, 0: 10,000 */
    bool is_read_only;      /* for verification: nothing is written, the lock is not taken */
    unsigned threads;       /* that load tiles; 0: one a core */
};

struct store;

/*
 * Opens or creates; migrates the schema step by step (PRAGMA user_version).
 *
 * ERR_CONFLICT   another process holds the directory
 * ERR_DAMAGED    the file is no database, or damaged so that it cannot be opened
 * ERR_BAD_INPUT  the directory cannot be made or written; a schema newer than this program
 * ERR_DISK_FULL, ERR_NO_MEMORY
 * NULL on error; the message names the file.
 */
struct store *store_open(const struct store_options *options, struct err *err);

/* Ends a transaction that is open without a commit, checkpoints what it can, closes. NULL is fine.
 */
void store_close(struct store *store);

/* ---- values ------------------------------------------------------------------------------------
 */

struct store_locale {
    char id[STORE_ID_MAX + 1];
    uint64_t revision; /* of the last committed change */
    bool is_deleted;   /* only the revision is left of it, so that a new one goes on counting */
    char title[STORE_TITLE_MAX + 1];
    double gravity[3], translation[3], rotation[4];
    bool open_sky;
    enum triangulation triangulation;
    bool has_geo;
    double geo_lat_deg, geo_lng_deg;
    uint64_t transform_seq; /* out of store_load alone; put by store_put_pose */
};

/* Where a layer stands that was moved. */
struct store_pose {
    double translation[3], yaw_deg;
    uint64_t transform_seq; /* of the layer's last move */
    uint64_t locale_seq;    /* where its locale's transform_seq goes on; 0 out of store_load */
};

enum store_layer_kind { STORE_HEIGHTFIELD, STORE_MESH };

struct store_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    uint32_t position; /* in the locale's order */
    enum store_layer_kind kind;
    int role;                        /* as the world numbers them */
    const struct heightfield *field; /* STORE_HEIGHTFIELD */
    const struct mesh *mesh;         /* STORE_MESH, as what follows */
    const struct polygon_set *polygons;
    double gravity[3]; /* the mesh was built for it */
};

/* One row of the log: what one revision was. */
struct store_edit {
    char locale[STORE_ID_MAX + 1];
    uint64_t revision;            /* one more than the locale's last */
    uint64_t sequence;            /* one more than the world's last: over all locales, from 1 */
    int kind;                     /* as the world numbers them */
    char layer[STORE_ID_MAX + 1]; /* "": it concerns all layers, or none */
    char source[STORE_SOURCE_MAX + 1];
    char op_id[STORE_OP_ID_MAX + 1];      /* "": none; at most one row of the store has it */
    uint8_t request[STORE_REQUEST_BYTES]; /* hash of the request, with an op_id */
    bool has_rect;
    struct sample_rect rect;
    const float
        *heights_m; /* [rect.rows][rect.cols]: the new samples; NULL: not an edit of samples */
    const void *polygons; /* an edit of a mesh's polygons, polygon_edit_encode; NULL: it is none */
    size_t polygons_bytes;
    bool has_bounds;
    struct box3 bounds;
    const void *answer; /* with an op_id: what was answered, as the caller encodes it */
    size_t answer_bytes;
};

struct store_model {
    char id[STORE_ID_MAX + 1];
    uint8_t hash[STORE_HASH_BYTES]; /* BLAKE2b-256 of the bytes, by the store */
    char media_type[64];
    const void *bytes;
    size_t length;
};

/* What was made of a model for the sand, as its caller encodes it (server/sand/shell.h). */
struct store_shell {
    uint8_t model[STORE_HASH_BYTES]; /* of the model's bytes */
    uint32_t version;                /* of the making */
    uint32_t radius_um;              /* of its spheres, micrometres */
    const void *bytes;
    size_t length; /* > 0 */
};

/* ---- one transaction ---------------------------------------------------------------------------
 */

/*
 * begin … commit, or begin … rollback. After an error of any call in between, rollback is the only
 * one that is allowed. ERR_BUSY from begin: the WAL is at its limit, because a reader (a backup)
 * keeps it from being checkpointed; try again later.
 */
enum err_code store_begin(struct store *store, struct err *err);
enum err_code store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);

/* A locale's row, new or anew; with is_deleted its layers and tiles go, too. */
enum err_code store_put_locale(struct store *store, const struct store_locale *locale,
                               struct err *err);

/*
 * A layer, new or in the place of the one of its id, with all its tiles or its mesh's files.
 * Samples that are logged for it and not yet in its tiles are let go: the tiles are newer.
 */
enum err_code store_put_layer(struct store *store, const struct store_layer *layer,
                              struct err *err);
enum err_code store_drop_layer(struct store *store, const char *locale, const char *layer,
                               struct err *err);

/*
 * The pose of a mesh layer that is there, and its locale's transform_seq; or none any more. A pose
 * goes with its layer, but not when the layer is put anew.
 */
enum err_code store_put_pose(struct store *store, const char *locale, const char *layer,
                             const struct store_pose *pose, struct err *err);
enum err_code store_drop_pose(struct store *store, const char *locale, const char *layer,
                              struct err *err);

/*
 * Appends a row to the log, sets the locale's revision, and remembers the tiles that its samples
 * touch as behind.
 */
enum err_code store_log(struct store *store, const struct store_edit *edit, struct err *err);

enum err_code store_put_model(struct store *store, const struct store_model *model,
                              struct err *err);

/* The model is there. */
enum err_code store_drop_model(struct store *store, const char *id, struct err *err);

/*
 * Keeps a shell, new or in the place of the one of its model, version and radius; shells of that
 * model of other versions go. Nothing when no model has that content (any more): shells go with
 * the last that has it.
 */
enum err_code store_put_shell(struct store *store, const struct store_shell *shell,
                              struct err *err);

/*
 * The shell of the key's model, version and radius, as of the last commit: *bytes is malloc, or
 * NULL when there is none. ERR_DAMAGED: it is there and not what was written; to be made and put
 * again. Any thread.
 */
enum err_code store_find_shell(struct store *store, const struct store_shell *key, void **bytes,
                               size_t *length, struct err *err);

/*
 * The row with that op_id, rows of the open transaction included. ERR_OK and *found; the pointers
 * in *out stay good until the next call.
 */
enum err_code store_find_op(struct store *store, const char *op_id, bool *found,
                            struct store_edit *out, struct err *err);

/*
 * The revision at which a locale of that id was deleted, changes of the open transaction included;
 * 0: it never was, or it is there.
 */
enum err_code store_find_deleted(struct store *store, const char *locale, uint64_t *revision,
                                 struct err *err);

/* ---- a log that others share -------------------------------------------------------------------
 *
 * A store may hold what stands in a log that several daemons follow (server/cluster/). It remembers
 * which log, and for each locale the last entry that it holds. Nothing of this is looked at by the
 * other calls.
 */

enum { STORE_IDENTITY_MAX = 32 };

struct store_shared_log {
    char identity[STORE_IDENTITY_MAX + 1]; /* "": none */
    char node[STORE_ID_MAX + 1];           /* the name that this directory's daemon has; "": none */
};

struct store_applied {
    char locale[STORE_ID_MAX + 1]; /* or "/models" */
    uint64_t revision;
    char op_id[STORE_OP_ID_MAX + 1]; /* of the entry */
};

/* Empty when there is none. ERR_DAMAGED. */
enum err_code store_get_shared_log(struct store *store, struct store_shared_log *out,
                                   struct err *err);

/* In a transaction, as the next three. */
enum err_code store_put_shared_log(struct store *store, const struct store_shared_log *log,
                                   struct err *err);
/* Of no log any more: its rows and those of all locales in it go. */
enum err_code store_leave_shared_log(struct store *store, struct err *err);
enum err_code store_put_applied(struct store *store, const struct store_applied *applied,
                                struct err *err);

/*
 * All of a locale goes, damaged or not, its deletion and its log included, as if it had never been
 * there: to be put anew at any revision. Files of meshes stay until the next load.
 */
enum err_code store_forget_locale(struct store *store, const char *locale, struct err *err);
/* The same of all models, and of their shells. */
enum err_code store_forget_models(struct store *store, struct err *err);

/* Each row that can be trusted, by locale; false ends the reading with err. */
enum err_code store_each_applied(struct store *store,
                                 bool (*take)(void *context, const struct store_applied *applied,
                                              struct err *err),
                                 void *context, struct err *err);

/* ---- behind the log ----------------------------------------------------------------------------
 */

/* What is logged and not yet in tiles; edits of polygons by themselves. No cost. */
struct store_behind {
    uint64_t tiles, log_bytes, edits;
    uint64_t polygon_edits, polygon_bytes;
};
void store_behind(const struct store *store, struct store_behind *out);

/*
 * In one transaction of its own: writes the tiles that are behind, as `field_of` gives the layer's
 * current heightfield (NULL: the layer is gone), and lets go of the samples in the log and of rows
 * beyond log_rows_max. ERR_DISK_FULL or ERR_READ_ONLY as any write.
 */
typedef const struct heightfield *(*store_field_of)(void *context, const char *locale,
                                                    const char *layer);
enum err_code store_materialise(struct store *store, store_field_of field_of, void *context,
                                struct err *err);

/* Edits of a mesh layer that are in the log and not in its files. O(rows of the log not let go). */
struct store_mesh_behind {
    uint64_t edits, bytes;
};
void store_mesh_behind(const struct store *store, const char *locale, const char *layer,
                       struct store_mesh_behind *out);

/*
 * In one transaction of its own: the files of a mesh layer that is there are those of `mesh` and
 * `polygons`, which hold its edits up to `revision`; those are let go of the log. Files that nobody
 * names any more for an hour are removed. Errors as of any write.
 */
enum err_code store_put_mesh(struct store *store, const char *locale, const char *layer,
                             const struct mesh *mesh, const struct polygon_set *polygons,
                             uint64_t revision, struct err *err);

/*
 * Writes the files of a mesh ahead of the transaction that names them (store_put_layer writes what
 * is missing). Any thread. ERR_DISK_FULL does not make the store read-only here.
 */
enum err_code store_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons, struct err *err);

/* ---- load and verify ---------------------------------------------------------------------------
 */

/*
 * Everything in the store, in this order: each locale (deleted ones, too), its layers in their
 * order with all logged samples applied, then the log's rows, oldest first, without samples. What
 * `layer` gets it takes. A callback that returns false ends the load with its err.
 *
 * damage  something that cannot be trusted: a tile, a mesh, a row; locale is "" when it cannot be
 *         told. The message names locale, layer and tile. Of a locale with damage nothing else is
 *         told (its id goes to `damage` instead), so that nobody sees half of it. The load goes on.
 */
struct store_loaded_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    enum store_layer_kind kind;
    int role;
    struct heightfield *field;
    struct mesh *mesh; /* over the mapped file; built anew where the log has edits of it */
    struct polygon_set polygons;
    bool is_behind; /* it has */
    double gravity[3];
    bool has_pose;
    struct store_pose pose;
};

struct store_sink {
    void *context;
    bool (*locale)(void *context, const struct store_locale *locale, struct err *err);
    bool (*layer)(void *context, struct store_loaded_layer *layer, struct err *err);
    bool (*edit)(void *context, const struct store_edit *edit, struct err *err);
    void (*damage)(void *context, const char *locale, const char *message);
};

/*
 * Loads and verifies: the checksum of every row, that every tile is there, that aprons agree, that
 * revisions have no gap, the content hash of every mesh. Removes files in meshes/ that nobody names
 * (not when read-only).
 */
enum err_code store_load(struct store *store, const struct store_sink *sink, struct err *err);

/*
 * The greatest sequence in the log, rows of damaged locales included, which are not told: where the
 * world's counting goes on. After store_load.
 */
enum err_code store_last_sequence(struct store *store, uint64_t *out, struct err *err);

/* All models, for their list; bytes are borrowed for the time of the callback. */
enum err_code store_models(struct store *store,
                           bool (*model)(void *context, const struct store_model *model,
                                         struct err *err),
                           void *context, struct err *err);

/*
 * store_load into nothing, and SQLite's own integrity_check: `kotad --check`. say is called for
 * each thing that is wrong. Returns how many, or -1 with err when the store cannot be read at all.
 */
long store_check(struct store *store, void (*say)(void *context, const char *message),
                 void *context, struct err *err);

/* ---- numbers -----------------------------------------------------------------------------------
 */

struct store_stats {
    bool is_read_only;   /* after an error */
    enum err_code cause; /* ERR_DISK_FULL or ERR_READ_ONLY then */
    char reason[160];    /* what failed, then */
    uint64_t database_bytes, wal_bytes, wal_bytes_max;
    uint64_t commits, commit_us_sum;
    uint64_t commit_count[20]; /* bucket i: below 2^i · 64 µs; the last one is open */
    uint64_t checkpoints, checkpoints_blocked; /* blocked: a reader kept frames in the WAL */
    uint64_t behind_tiles, behind_bytes;
};

/* Of store_load: tiles that have been read, of how many (0: not known yet). Any thread. */
void store_load_progress(struct store *store, uint64_t *done, uint64_t *total);

/* Any thread. */
void store_stats(struct store *store, struct store_stats *out);

/* mkdir -p, each new folder's name made durable. False with errno. */
bool store_make_directory(const char *path);

#endif
