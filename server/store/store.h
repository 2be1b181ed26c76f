/*
 * The durable state of a world: one SQLite database in the data directory, and files named by their
 * content beside it (design, section 5).
 *
 *   DIR/kota.db         locales, layers, tiles, the log of edits, models (server/store/schema/)
 *   DIR/meshes/HASH.*   images of meshes and the polygons they were built of; written, synced and
 *                       renamed before the COMMIT that names them; store_load removes
 *                       unreferenced files
 *   DIR/lock            held while a process uses the directory
 *
 * One thread at a time uses a store, except where noted: the main thread for store_open and
 * store_load, then the writer's. The store has values of terrain and formats under names; the
 * world's meaning of them is not used here.
 *
 * Edits of a heightfield are durable by their row in the log, which has their outcome (edit.h). The
 * touched tiles are stale until store_materialise writes them and removes the logged samples; the
 * store has a list of stale tiles. Edits of a mesh's polygons are logged, too; its files are
 * written when the log has much of the mesh (store_put_mesh), else at the end, and a load applies
 * the logged edits.
 *
 * Errors of a write: ERR_DISK_FULL and ERR_READ_ONLY. After either, and after any error at COMMIT,
 * the store is read-only until it is opened again: SQLite's state in memory may differ from the
 * disk, so nothing is retried. A failed transaction is not acknowledged; after a restart it is
 * there as a whole or not at all.
 */
#ifndef KOTA_STORE_STORE_H
#define KOTA_STORE_STORE_H

#include "base/err.h"
#include "formats/polygon/polygon_edit.h"
#include "terrain/field/edit.h"
#include "terrain/field/heightfield.h"
#include "terrain/mesh/mesh.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_ID_MAX = 64,        /* characters of a locale's, a layer's or a model's id */
    STORE_TITLE_MAX = 256,    /* bytes of a title */
    STORE_OP_ID_MAX = 128,    /* characters of an op_id */
    STORE_SOURCE_MAX = 32,    /* characters of an edit's source */
    STORE_REQUEST_BYTES = 32, /* of the hash of a request */
    STORE_HASH_BYTES = 32,
    STORE_ORIGIN_MAX = 2 * STORE_ID_MAX + 1 /* characters of "locale@pin" */
};

/* NORMAL loses acknowledged edits in a power cut: it is there for the test that shows it. */
enum store_sync { STORE_SYNC_FULL, STORE_SYNC_NORMAL };

struct crew;

struct store_options {
    const char *directory; /* created, with its parents, if absent (not when read-only) */
    const char *vfs;       /* SQLite's name of one; NULL: the default. Also used for the files in
                              meshes/, so that a test's VFS sees every byte that is written */
    enum store_sync sync;
    uint64_t wal_bytes_max; /* 0: 1 GiB; a write that finds more is refused with ERR_BUSY */
    uint64_t log_rows_max;  /* rows of the log for a locale, 0: 10,000 */
    bool is_read_only;      /* for verification: writes nothing, takes no lock */
    unsigned threads;       /* that load tiles; 0: one a core */
    struct crew *crew;      /* that makes the indexes of meshes, as long as the store is open; NULL:
                               the caller's thread */
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

/* Rolls back an open transaction, checkpoints, closes. NULL is fine. */
void store_close(struct store *store);

/* ---- values ---------------------------------------------------------------------------------- */

struct store_locale {
    char id[STORE_ID_MAX + 1];
    uint64_t revision; /* of the last committed change */
    bool is_deleted;   /* only the revision is left of it, so that a new one continues from it */
    char title[STORE_TITLE_MAX + 1];
    double gravity[3], translation[3], rotation[4];
    bool open_sky;
    enum triangulation triangulation;
    bool has_geo;
    double geo_lat_deg, geo_lng_deg;
    uint32_t crs;                      /* an EPSG code; 0: none; only without geo */
    char origin[STORE_ORIGIN_MAX + 1]; /* of a fork: what it was made of, "" else */
    uint64_t origin_revision;
    uint64_t transform_seq; /* only from store_load; written by store_put_transform_seq */
};

/* The pose of a moved layer. */
struct store_pose {
    double translation[3], yaw_deg, rotation[4]; /* all 0: the yaw */
    uint64_t transform_seq;                      /* of the layer's last move */
};

enum store_layer_kind { STORE_HEIGHTFIELD, STORE_MESH };

struct store_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    uint32_t position; /* in the locale's order */
    uint64_t revision; /* of the locale with it; 0: the last committed one */
    enum store_layer_kind kind;
    int role;                        /* as the world numbers them */
    const struct heightfield *field; /* STORE_HEIGHTFIELD */
    const struct mesh *mesh;         /* STORE_MESH, as the next two members */
    const struct polygon_set *polygons;
    double gravity[3]; /* the mesh was built for it */
};

/* One row of the log: one revision. */
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
    const void *polygons; /* an edit of a mesh's polygons, polygon_edit_encode; else NULL */
    size_t polygons_bytes;
    bool has_bounds;
    struct box3 bounds;
    const void *answer; /* with an op_id: the answer, in the caller's encoding */
    size_t answer_bytes;
    const struct store_past *past; /* its row of the history; NULL: none */
};

/* One row of a locale's history: who made a revision, when, and what was there before. */
enum { STORE_AUTHOR_MAX = 64, STORE_NOTE_MAX = 256 }; /* bytes */
struct store_past {
    uint64_t revision;
    int64_t time_ms; /* since 1970 */
    int kind;        /* as the world numbers them */
    char layer[STORE_ID_MAX + 1];
    char source[STORE_SOURCE_MAX + 1];
    char author[STORE_AUTHOR_MAX + 1]; /* "": none is known */
    char note[STORE_NOTE_MAX + 1];
    bool is_birth; /* the revision made the locale */
    bool has_rect;
    struct sample_rect rect;
    bool has_before;        /* the samples that it replaced are held */
    const float *before_m;  /* [rect.rows][rect.cols], where they are and were asked for */
    const uint8_t *changed; /* then, bit i % 8 of byte i / 8: was sample i changed? NULL: all */
    const struct store_packed_past *packed; /* as they are stored, where that was asked for */
};

struct store_model {
    char id[STORE_ID_MAX + 1];
    uint8_t hash[STORE_HASH_BYTES]; /* BLAKE2b-256 of the bytes, by the store */
    char media_type[64];
    const void *bytes;
    size_t length;
};

/* A shell of a model, in the encoding of server/sand/body/shell.h. */
struct store_shell {
    uint8_t model[STORE_HASH_BYTES]; /* of the model's bytes */
    uint32_t version;                /* of the making */
    uint32_t radius_um;              /* of its spheres, micrometres */
    const void *bytes;
    size_t length; /* > 0 */
};

/* ---- one transaction ------------------------------------------------------------------------- */

/*
 * begin … commit, or begin … rollback. After an error of any call in between only rollback is
 * allowed. ERR_BUSY from begin: the WAL is at its limit, because a reader (a backup) prevents its
 * checkpoint; try again later.
 */
enum err_code store_begin(struct store *store, struct err *err);
enum err_code store_commit(struct store *store, struct err *err);
void store_rollback(struct store *store);

/* Inserts or replaces a locale's row; is_deleted removes its layers and tiles, too. */
enum err_code store_put_locale(struct store *store, const struct store_locale *locale,
                               struct err *err);

/*
 * Inserts or replaces a layer with all its tiles or its mesh's files. Its logged samples that are
 * not in tiles yet are removed: the tiles are newer.
 */
enum err_code store_put_layer(struct store *store, const struct store_layer *layer,
                              struct err *err);
enum err_code store_drop_layer(struct store *store, const char *locale, const char *layer,
                               struct err *err);

/*
 * Writes, or removes, the pose of an existing mesh layer. It is removed with its layer, but not
 * when the layer is replaced.
 */
enum err_code store_put_pose(struct store *store, const char *locale, const char *layer,
                             const struct store_pose *pose, struct err *err);
enum err_code store_drop_pose(struct store *store, const char *locale, const char *layer,
                              struct err *err);
/* The transform_seq from which an existing locale continues. An equal row writes nothing. */
enum err_code store_put_transform_seq(struct store *store, const char *locale, uint64_t seq,
                                      struct err *err);

/*
 * Changes samples of an existing heightfield without a row of samples in the log: writes the tiles
 * that `field`, of the same size, does not share with `was`, and stale ones, as of a revision; the
 * samples in the log are removed.
 */
enum err_code store_put_field(struct store *store, const char *locale, const char *layer,
                              const struct heightfield *was, const struct heightfield *field,
                              uint64_t revision, struct err *err);

/* The pose of a moved layer, as a pin keeps it. */
struct store_pin_pose {
    char layer[STORE_ID_MAX + 1];
    struct store_pose pose;
};

/*
 * Keeps the locale's rows as they are under a name, in the place of an older pin of that name: the
 * manifest, the layers and what they name, transform_seq and poses[count]. O(layers).
 * store_drop_pin removes one, which is there, and what no other pin needs. A locale's pins are
 * removed with it.
 */
enum err_code store_put_pin(struct store *store, const char *locale, const char *name,
                            uint64_t transform_seq, const struct store_pin_pose *poses,
                            size_t count, struct err *err);
enum err_code store_drop_pin(struct store *store, const char *locale, const char *name,
                             struct err *err);

/*
 * Puts the layers of another locale, as they are (pin NULL) or as a pin has them, into a locale
 * that has none. Tiles are shared (store_bases.c), and files of meshes; O(layers). Edits of
 * polygons that are only in the log are not in it: such a mesh is to be put (store_put_layer).
 */
enum err_code store_put_fork(struct store *store, const char *locale, const char *from,
                             const char *pin, struct err *err);

/* Does some layer share the tiles of another locale? */
bool store_has_forks(const struct store *store);
/* Does a locale, or a pin of it, share tiles with another one? */
bool store_shares(const struct store *store, const char *locale, const char *other);

/* The number of locales, one a fork of the next, in whose rows a tile of the layer may be; 0: it
 * has all its own. */
unsigned store_base_depth(const struct store *store, const char *locale, const char *layer);

/*
 * Appends a row to the log and, with `past`, to the history; sets the locale's revision, and marks
 * the tiles that its samples touch as stale.
 */
enum err_code store_log(struct store *store, const struct store_edit *edit, struct err *err);

enum err_code store_put_model(struct store *store, const struct store_model *model,
                              struct err *err);

/* The model is there. */
enum err_code store_drop_model(struct store *store, const char *id, struct err *err);

/*
 * Inserts or replaces the shell of a model, version and radius; removes shells of that model of
 * other versions. No effect when no model has that content: shells are removed with the last such
 * model.
 */
enum err_code store_put_shell(struct store *store, const struct store_shell *shell,
                              struct err *err);

/*
 * The shell of the key's model, version and radius, as of the last commit: *bytes is malloc, or
 * NULL when there is none. ERR_DAMAGED: its checksum is wrong; it is to be made and put again.
 * Any thread.
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
 * A store may be a copy of a log that several daemons follow (server/replica/). It has the identity
 * of the log, and for each locale the last entry that was applied. Other calls do not use these
 * rows.
 */

enum { STORE_IDENTITY_MAX = 32 };

struct store_shared_log {
    char identity[STORE_IDENTITY_MAX + 1]; /* "": none */
    char node[STORE_ID_MAX + 1];           /* the name of this directory's daemon; "": none */
};

struct store_applied {
    char locale[STORE_ID_MAX + 1]; /* or "/models" */
    uint64_t revision;
    char op_id[STORE_OP_ID_MAX + 1]; /* of the entry */
};

/* Empty without one. ERR_DAMAGED. */
enum err_code store_get_shared_log(struct store *store, struct store_shared_log *out,
                                   struct err *err);

/* In a transaction, as the next three. */
enum err_code store_put_shared_log(struct store *store, const struct store_shared_log *log,
                                   struct err *err);
/* Removes the rows about the log and about all locales in it. */
enum err_code store_leave_shared_log(struct store *store, struct err *err);
enum err_code store_put_applied(struct store *store, const struct store_applied *applied,
                                struct err *err);

/*
 * Removes a locale, damaged or not, its deletion and its log included, without a trace, so that it
 * can be put at any revision. Files of meshes stay until the next load. What forks share with it
 * goes, too (store_shares): each of them is to be forgotten and put again after that; until then a
 * load finds it damaged.
 */
enum err_code store_forget_locale(struct store *store, const char *locale, struct err *err);
/* The same of all models, and of their shells. */
enum err_code store_forget_models(struct store *store, struct err *err);

/* Each row that can be trusted, by locale; false ends the reading with err. */
enum err_code store_each_applied(struct store *store,
                                 bool (*take)(void *context, const struct store_applied *applied,
                                              struct err *err),
                                 void *context, struct err *err);

/* ---- history --------------------------------------------------------------------------------- */

/*
 * Bytes of the history of one locale, 0: none is kept. A locale's oldest rows go first, when they
 * are an eighth more. Until the first call none is kept. Writer.
 */
void store_set_history_max(struct store *store, uint64_t bytes_max);
uint64_t store_history_max(const struct store *store);

struct store_history_question {
    const char *locale;
    uint64_t after, upto; /* revisions after < r <= upto */
    bool is_newest_first;
    bool wants_before;
    bool wants_packed;
    bool is_writer; /* rows of the open transaction, too; else any thread, as of the last commit */
};

/*
 * The rows of a locale, in order, to `take`, until it returns false (then with err, if it set one).
 * *since: all revisions after it up to the last commit's are held; UINT64_MAX: none is. take may be
 * NULL. What a row points to is borrowed for the time of the callback.
 * ERR_DAMAGED  a row's checksum is wrong
 */
typedef bool (*store_take_past)(void *context, const struct store_past *row, struct err *err);
enum err_code store_history(struct store *store, const struct store_history_question *question,
                            uint64_t *since, store_take_past take, void *context, struct err *err);

/* The samples of a row as they are stored, for a history elsewhere. */
struct store_packed_past {
    int codec;  /* 0: there are none */
    void *data; /* malloc */
    size_t length;
};
/* None, where the row has none or they are far too many for the bound. ERR_NO_MEMORY */
enum err_code store_past_pack(const struct store_past *past, uint64_t bytes_max,
                              struct store_packed_past *out, struct err *err);
/* before_m and changed of *past become those of *plain, malloc. ERR_DAMAGED, ERR_NO_MEMORY */
enum err_code store_past_unpack(const struct store_packed_past *packed, struct store_past *past,
                                void **plain, struct err *err);
/* What a row counts against the bound. */
uint64_t store_past_bytes(const struct store_past *past, const struct store_packed_past *packed);
/*
 * Writes a row out of another store's history, with past->packed: after the last one of the locale,
 * or as its first. The last of them is of the locale's revision. Nothing with a bound of 0.
 */
enum err_code store_put_past(struct store *store, const char *locale, const struct store_past *past,
                             struct err *err);

/* ---- logged edits that are not in tiles or files --------------------------------------------- */

/*
 * Counts of logged edits that are to be written to tiles; edits of polygons apart. Edits of forks
 * that the last store_materialise left in the log, because they are few, are not counted. O(1).
 */
struct store_behind {
    uint64_t tiles, log_bytes, edits;
    uint64_t polygon_edits, polygon_bytes;
};
void store_behind(const struct store *store, struct store_behind *out);

/*
 * In one transaction of its own: writes the stale tiles from the layer's current heightfield, which
 * `field_of` returns (NULL: no such layer), and removes the samples in the log and rows beyond
 * log_rows_max. ERR_DISK_FULL or ERR_READ_ONLY as any write.
 */
typedef const struct heightfield *(*store_field_of)(void *context, const char *locale,
                                                    const char *layer);
enum err_code store_materialise(struct store *store, store_field_of field_of, void *context,
                                struct err *err);

/* Edits of a mesh layer that are in the log and not in its files. O(rows that are not in files). */
struct store_mesh_behind {
    uint64_t edits, bytes;
};
void store_mesh_behind(const struct store *store, const char *locale, const char *layer,
                       struct store_mesh_behind *out);

/*
 * In one transaction of its own: sets the files of an existing mesh layer to those of `mesh` and
 * `polygons`, which include its edits up to `revision`, and removes those edits from the log. Files
 * that were unreferenced for an hour are removed. Errors as of any write.
 */
enum err_code store_put_mesh(struct store *store, const char *locale, const char *layer,
                             const struct mesh *mesh, const struct polygon_set *polygons,
                             uint64_t revision, struct err *err);

/*
 * Writes the files of a mesh before the transaction that names them (store_put_layer writes missing
 * ones). Any thread. ERR_DISK_FULL does not make the store read-only here.
 */
enum err_code store_save_mesh(struct store *store, const struct mesh *mesh,
                              const struct polygon_set *polygons, struct err *err);

/* ---- load and verify ------------------------------------------------------------------------- */

/*
 * Everything in the store, in this order: each locale (deleted ones, too), its layers in their
 * order with all logged samples applied, its pins from the newest to the oldest, each with its
 * layers; then the log's rows, oldest first, without samples. `layer` takes its arguments; tiles
 * that a pin has in common with what came before are shared. pin NULL: pins are only verified. A
 * callback that returns false ends the load with its err.
 *
 * damage  a damaged tile, mesh or row; locale is "" when it is unknown. The message names locale,
 *         layer and tile. A locale with damage is reported only here, so that no half of one is
 *         served. The load continues.
 */
struct store_loaded_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    enum store_layer_kind kind;
    int role;
    struct heightfield *field;
    struct mesh *mesh; /* over the mapped file; rebuilt where the log has edits of it */
    struct polygon_set polygons;
    bool is_behind;     /* it has */
    bool is_current;    /* of a pin: the mesh is that of the locale's layer; mesh is NULL then */
    const char *shares; /* of a fork: the mesh is that of the layer of the same id in this locale,
                           which came before; mesh is NULL then. NULL: no */
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
    bool (*pin)(void *context, const char *name, const struct store_locale *value, struct err *err);
};

/*
 * Loads and verifies: the checksum of every row, that every tile is there, that aprons agree, that
 * revisions have no gap, the content hash of every mesh. Removes unreferenced files in meshes/
 * (not when read-only).
 */
enum err_code store_load(struct store *store, const struct store_sink *sink, struct err *err);

/*
 * The greatest sequence in the log, rows of damaged locales included: the world continues from it.
 * After store_load.
 */
enum err_code store_last_sequence(struct store *store, uint64_t *out, struct err *err);

/* All models, for their list; bytes are borrowed for the time of the callback. */
enum err_code store_models(struct store *store,
                           bool (*model)(void *context, const struct store_model *model,
                                         struct err *err),
                           void *context, struct err *err);

/*
 * store_load without a result, and SQLite's own integrity_check: `kotad --check`. on_damage is
 * called for each error. Returns their number, or -1 with err when the store cannot be read at all.
 */
long store_check(struct store *store, void (*on_damage)(void *context, const char *message),
                 void *context, struct err *err);

/* ---- numbers --------------------------------------------------------------------------------- */

struct store_stats {
    bool is_read_only;   /* after an error */
    enum err_code cause; /* ERR_DISK_FULL or ERR_READ_ONLY then */
    char reason[160];    /* the error, then */
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
