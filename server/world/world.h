/*
 * The world: one published snapshot, one thread that may publish the next, and readers that never
 * wait (design, section 2).
 *
 * A reader is a thread with an index 0..reader_count-1 (an HTTP loop). Between two calls of
 * world_reader_quiet it may load the snapshot with world_pin as often as it likes and keep it until
 * world_unpin; a pinned snapshot may be read on any thread.
 */
#ifndef KOTA_WORLD_WORLD_H
#define KOTA_WORLD_WORLD_H

#include "replica/cluster.h"
#include "store/store.h"
#include "terrain/field/edit.h"
#include "world/values/feed.h"
#include "world/values/moves.h"
#include "world/values/snapshot.h"

struct world_limits {
    size_t locales_max;            /* 100,000 */
    size_t models_max;             /* 1,000 */
    uint64_t bytes_max;            /* of all layers together, 8 GiB */
    size_t queue_max;              /* changes that wait, 1,000: ERR_BUSY */
    uint64_t edit_samples_max;     /* samples that one edit may change, 16,777,216 */
    size_t pins_max;               /* of one locale, 64 */
    uint64_t past_bytes_max;       /* that the last revisions of all locales hold, 256 MiB */
    uint64_t history_bytes_max;    /* in the store, of one locale, 64 MiB; 0: no history */
    struct polygon_limits polygon; /* of a mesh that is edited */
    size_t retired_max;            /* retired snapshots before the writer slows down, 64 */
};

extern const struct world_limits world_limits_default;

/*
 * The kinds of change: X(constant, its number, number of its entries in a shared log, its table).
 * The first number is in the rows of the store; log number 0: it is not recorded. Neither changes
 * once it is in use. The table is `const struct change_kind NAME` of a file in world/write/kinds/.
 *
 * PUT_LOCALE    manifest: a new locale, or the next revision of one
 * PUT_LAYER     layer: added, or in the place of the layer of that id; manifest: geo or crs of its
 *               file, which a locale gets that has neither and no other layer
 * EDIT          samples of a heightfield: layer_id, or "" for the locale's only one
 * PUT_MODEL, DELETE_MODEL  of no locale: no revision, no event, no op_id
 * FIND_OP       changes nothing: only op_id and request; was it made before?
 * MOVE_LAYER    pose: published at once, written later; no revision, no event, no op_id
 * KEEP_SHELL    store_put_shell: as of a model, and nothing is published
 * EDIT_POLYGONS polygons of a mesh layer: some added, some removed
 * PUT_PIN, DELETE_PIN  pin: the value of the locale under a name; no revision, no event, no op_id
 * RESTORE       pin: its value is the next revision
 * REVERT        revert: samples as they were before earlier edits
 * FORK          fork: a new locale that has the value of another one
 */
#define WORLD_CHANGE_KINDS(X)                                                                      \
    X(WORLD_PUT_LOCALE, 0, 1, put_locale_kind)                                                     \
    X(WORLD_DELETE_LOCALE, 1, 2, delete_locale_kind)                                               \
    X(WORLD_PUT_LAYER, 2, 3, put_layer_kind)                                                       \
    X(WORLD_DELETE_LAYER, 3, 4, delete_layer_kind)                                                 \
    X(WORLD_EDIT, 4, 5, edit_kind)                                                                 \
    X(WORLD_PUT_MODEL, 5, 6, put_model_kind)                                                       \
    X(WORLD_DELETE_MODEL, 6, 7, delete_model_kind)                                                 \
    X(WORLD_FIND_OP, 7, 0, find_op_kind)                                                           \
    X(WORLD_MOVE_LAYER, 8, 0, move_layer_kind)                                                     \
    X(WORLD_KEEP_SHELL, 9, 0, keep_shell_kind)                                                     \
    X(WORLD_EDIT_POLYGONS, 10, 8, edit_polygons_kind)                                              \
    X(WORLD_PUT_PIN, 11, 9, put_pin_kind)                                                          \
    X(WORLD_DELETE_PIN, 12, 10, delete_pin_kind)                                                   \
    X(WORLD_RESTORE, 13, 11, restore_kind)                                                         \
    X(WORLD_REVERT, 14, 12, revert_kind)                                                           \
    X(WORLD_FORK, 15, 13, fork_kind)

#define WORLD_CHANGE_CONSTANT(constant, number, log_number, table) constant = (number),
enum world_change_kind { WORLD_CHANGE_KINDS(WORLD_CHANGE_CONSTANT) };

/* Is a change of that kind one of a layer that its path names? */
bool world_is_of_layer(enum world_change_kind kind);

/* May its locale be missing, because it makes one? */
bool world_makes_locale(enum world_change_kind kind);

/* What must exist before a change: the locale, or for a change of a layer the layer. */
enum world_condition { WORLD_IF_ANY, WORLD_IF_PRESENT, WORLD_IF_ABSENT };

/* The outcome of a change; everything is borrowed for the time of the callback. */
struct world_outcome {
    enum err_code code;          /* ERR_OK: durable and published */
    const struct err *err;       /* when not ERR_OK */
    const struct locale *locale; /* as this change made it; NULL after WORLD_DELETE_LOCALE, on
                                    error, for a repeat, and of WORLD_FIND_OP */
    const struct locale *before; /* as it was before this change; NULL where locale is, and for a
                                    new one */
    uint64_t revision;           /* that this change made */
    bool is_new;                 /* the locale or layer was not there before */
    struct sample_rect rect;     /* WORLD_EDIT, WORLD_REVERT */
    const struct polygon_edit *polygons; /* WORLD_EDIT_POLYGONS, as the next three */
    const struct layer *layer;           /* as it is then */
    uint32_t first_polygon;    /* number of the first that was added; those that were dropped are
                                  gaps in the layer's set */
    struct mesh_import import; /* of those that were added */
    const char *pin;           /* the change's */
    const struct revert_plan *revert; /* the change's */
    const void *answer; /* of a repeat: the answer that `answer` returned the first time;
                                  else NULL */
    size_t answer_bytes;
};

/* On the writer's thread, once for each submitted change, after it was published or refused. */
typedef void (*world_done)(void *context, const struct world_outcome *outcome);

/*
 * Encodes the answer to a change with an op_id, which is stored with it. Called once, on the
 * writer's thread, before the commit. malloc, or NULL without memory.
 */
typedef void *(*world_answer)(void *context, const struct world_outcome *outcome, size_t *bytes);

enum { ORIGIN_TEXT_MAX = 64 };

/* Who asked for a change, and by what call: words of the audit's line. */
struct change_origin {
    char name[ORIGIN_TEXT_MAX + 1];    /* of the token, or "-"; "": there is no audit */
    char address[ORIGIN_TEXT_MAX + 1]; /* of the peer; "uid-1000" of the Unix socket */
    char request[ORIGIN_TEXT_MAX + 1]; /* X-Request-Id */
    const char *route;                 /* static: the name of the call */
};

/* Words of the history's row. */
struct change_author {
    char name[STORE_AUTHOR_MAX + 1]; /* of the token; "": none is known */
    char note[STORE_NOTE_MAX + 1];
    int64_t time_ms; /* of an entry of a shared log: when it was made; else 0 */
    bool is_set;     /* then: of an edit, history_is_set */
};

/* Poses of layers at a moment, of a value that is pinned. */
struct world_poses {
    uint64_t transform_seq;
    size_t count;
    struct store_pin_pose at[];
};

struct revert_plan;

/* What a fork is made of. */
struct world_fork {
    char from[WORLD_ID_MAX + 1];
    char pin[WORLD_ID_MAX + 1];    /* "": none */
    uint64_t revision;             /* 0: the present one, or the pin's */
    bool has_title, has_placement; /* its own, in the change's manifest */
};

struct world_change {
    enum world_change_kind kind;
    char locale_id[WORLD_ID_MAX + 1];
    char layer_id[WORLD_ID_MAX + 1];
    struct locale_manifest manifest;
    struct layer *layer;     /* WORLD_PUT_LAYER; taken, also on error. WORLD_EDIT_POLYGONS:
                                the next layer, made of `base` by the edit, or NULL */
    bool is_whole;           /* WORLD_PUT_LOCALE, without a store: the layers there are go */
    struct locale *prepared; /* WORLD_PUT_LOCALE: the next revision, made before, or NULL; taken.
                                WORLD_FORK of a shared log: the fork */
    char model_id[WORLD_ID_MAX + 1];      /* WORLD_PUT_MODEL, WORLD_DELETE_MODEL */
    struct model *model;                  /* WORLD_PUT_MODEL; taken */
    struct store_shell shell;             /* WORLD_KEEP_SHELL; shell.bytes is malloc and taken */
    struct edit edit;                     /* WORLD_EDIT; edit.heights_m is malloc and taken */
    struct polygon_edit polygons;         /* WORLD_EDIT_POLYGONS; its arrays are taken */
    struct layer *base;                   /* then: `layer` was made of it ahead, or NULL; taken */
    struct mesh_import import;            /* then: counts of the polygons in `layer` */
    struct pose pose;                     /* WORLD_MOVE_LAYER */
    bool is_followed;                     /* then: another node has put it into the shared log */
    char pin[WORLD_ID_MAX + 1];           /* WORLD_PUT_PIN, WORLD_DELETE_PIN, WORLD_RESTORE */
    struct world_poses *poses;            /* WORLD_PUT_PIN: those of the value, or NULL: the present
                                             ones; malloc, taken */
    struct revert_plan *revert;           /* WORLD_REVERT; taken */
    struct world_fork fork;               /* WORLD_FORK; manifest.from is set */
    uint64_t fence;                       /* of a lease that it is bound to; 0: none */
    const struct change_origin *origin;   /* for the hook of commits (world_set_audit); borrowed */
    bool has_bounds;                      /* WORLD_EDIT, WORLD_EDIT_POLYGONS: ERR_CLAIMS unless */
    double bounds_m[4];                   /* all that may change is within x0 y0 x1 y1, closed, in
                                             the frame of the locale */
    uint64_t if_revision;                 /* not 0: refused unless the locale is at this revision */
    enum world_condition condition;       /* else refused; a known op_id goes before both */
    char source[FEED_SOURCE_MAX + 1];     /* "": by the kind */
    struct change_author author;          /* for the history */
    char op_id[STORE_OP_ID_MAX + 1];      /* "": none. A known one changes nothing */
    uint8_t request[STORE_REQUEST_BYTES]; /* with an op_id: hash of the request */
    world_answer answer;                  /* with an op_id */
    world_done done;                      /* may be NULL */
    void *context;
};

/*
 * The errors of a change, besides those of its kind:
 * ERR_NOT_FOUND            no such locale or layer
 * ERR_PRECONDITION_FAILED  if_revision is not the locale's (or there is none), or the condition
 *                          does not hold; only a PUT of a missing locale is refused so, any other
 *                          change of one is ERR_NOT_FOUND
 * ERR_UNPROCESSABLE        the op_id is known from another request
 * ERR_DAMAGED              the locale could not be loaded from the store
 * ERR_READ_ONLY, ERR_DISK_FULL  the store cannot write it; reads go on
 * ERR_BUSY                 the queue is full; a backup keeps the WAL at its limit
 *
 * With a shared log also:
 * ERR_UNAVAILABLE          the log is unreachable; the message says if the outcome is unknown.
 *                          Reads, moves and repeats go on
 * ERR_PRECONDITION_FAILED  the change's fence is stale
 *
 * WORLD_MOVE_LAYER is published without a commit, before other queued changes. It is written to the
 * store within about a second, together with all moves of that time. Reads and moves go on when the
 * store can no longer be written.
 */

enum { WORLD_CHANGE_BUCKETS = 20 };

struct world_stats {
    uint64_t publications;     /* snapshots published since the start */
    uint64_t changes, refused; /* without each WORLD_FIND_OP of an op_id that is not known */
    uint64_t repeats;          /* of changes with a known op_id */
    uint64_t edits, edit_samples;
    uint64_t moves;                   /* of layers; not among the changes */
    uint64_t polygon_edits, rebuilds; /* of meshes; rebuilds are no changes */
    uint64_t locales, layers, memory_bytes;
    uint64_t pins, earlier_bytes; /* held by pins and earlier revisions, besides memory_bytes */
    uint64_t mesh_layers, mesh_polygons, mesh_bytes; /* of those */
    uint64_t queued, retired;
    uint64_t builds;    /* of meshes, under way */
    uint64_t reclaimed; /* snapshots freed */
    uint64_t damaged;   /* locales that could not be loaded */
    uint64_t change_us_sum;
    uint64_t change_count[WORLD_CHANGE_BUCKETS]; /* changes by the time from the queue to their
                                  answer: bucket i below 2^i · 64 µs; the last one is open */
};

/* The revisions of the first locales by id, for callers without a snapshot. */
enum { WORLD_REVISIONS_MAX = 100 };
struct world_revision {
    char locale_id[WORLD_ID_MAX + 1];
    uint64_t revision;
};

struct world;

/*
 * An empty world and its writer's thread. ERR_NO_MEMORY, ERR_INTERNAL (no thread); NULL then.
 * Without a store (NULL) changes live in memory and end with the process, and the log that answers
 * repeats is bounded. A store is borrowed; from here on it belongs to the writer's thread.
 */
struct world *world_create(size_t reader_count, const struct world_limits *limits,
                           struct store *store, struct err *err);

/*
 * Fills a new world from its store, before any other call, and from a shared log if that can be
 * reached. Damaged locales are left out, and world_damage reports them. ERR_DAMAGED: the store as a
 * whole cannot be read; ERR_NO_MEMORY; ERR_CONFLICT: the store is not of that log.
 */
enum err_code world_load(struct world *world, struct err *err);

/* ---- a log that several daemons share -----------------------------------------------------------
 *
 * With it a change is durable when the log has it; the store is a copy that follows. Each daemon
 * applies the entries of all in the order of their revisions and publishes them (replica/cluster.h,
 * docs/cluster.md).
 */

struct world_sharing {
    struct cluster *log;     /* borrowed; from here on the writer's */
    const char *node;        /* this node's id, in the store */
    const char *locales;     /* patterns with commas between: which are followed; "": all */
    uint64_t snapshot_every; /* entries after a snapshot before the next one */
    uint64_t keep_entries;   /* that stay before it */
    uint32_t poll_ms;        /* of the log; silence for twice as long counts as stale; 0: 3,000 */
};

/* As world_create, over a store. The log outlives the world. */
struct world *world_create_shared(size_t reader_count, const struct world_limits *limits,
                                  struct store *store, const struct world_sharing *sharing,
                                  struct err *err);

/* Does a pattern take a locale? Constant. */
bool world_pattern_takes(const char *pattern, const char *locale_id);

/* Is the locale followed here (true without a shared log)? Any thread. */
bool world_serves(const struct world *world, const char *locale_id);

/* Seconds since this world last knew that it had all; 0 while it does, and without a shared log;
 * INFINITY: never yet. Any thread, no lock. */
double world_staleness_s(const struct world *world);

/* The revision up to which a locale, there or deleted, has been applied; 0: none, or no shared log.
 * Any thread. */
uint64_t world_applied(struct world *world, const char *locale_id);

/* Does the log have a locale, or a newer state of it, that is being fetched? Any thread. */
bool world_is_coming(struct world *world, const char *locale_id);

struct world_shared {
    char node[WORLD_ID_MAX + 1];
    char identity[33];        /* of the log; "": not known yet */
    bool is_joined;           /* the store is known to be of that log */
    char reason[320];         /* why something cannot be followed, or the log is not this store's */
    uint64_t followed;        /* locales (models are one) */
    uint64_t behind;          /* of those, not at the log's revision */
    uint64_t lag;             /* the greatest distance of one, in revisions */
    uint64_t entries_applied; /* of others */
    uint64_t snapshots_taken; /* in the place of a locale */
    uint64_t snapshots_made;
    uint64_t divergences; /* the log had lost applied entries */
    uint64_t races_lost;  /* commits made again, because another node was faster */
};

/* False: there is no shared log. Any thread. */
bool world_shared(struct world *world, struct world_shared *out);

/* NULL: none. Its calls for any thread may be called on any thread. */
struct cluster *world_log(const struct world *world);

/* Finishes the queue, materialises, joins the writer, frees everything. All readers must be gone.
 */
void world_destroy(struct world *world);

/*
 * How the writer makes the readers pass world_reader_quiet soon; it may call this at any time from
 * its thread until it is set to NULL. Returns when no call of the former one is under way.
 */
void world_set_wake(struct world *world, void (*wake)(void *context), void *context);

/*
 * Hooks of the writer: `made` for each change with an origin that a commit has made, not for
 * repeats, then `flush` once, both before any of its changes is called back. Set before changes.
 */
struct world_audit {
    void (*made)(void *context, const struct world_change *change,
                 const struct world_outcome *outcome);
    void (*flush)(void *context);
    void *context;
};
void world_set_audit(struct world *world, const struct world_audit *audit);

/* ERR_CLAIMS: the rectangle is not within the bounds. Both are x0 y0 x1 y1, closed. */
enum err_code world_check_bounds(const double bounds_m[4], const double rect_m[4], struct err *err);

/*
 * Queues a change. On error it is not queued, done is not called, and its values are dropped:
 * ERR_BUSY when the queue is full, ERR_NO_MEMORY. Any thread.
 */
enum err_code world_submit(struct world *world, const struct world_change *change, struct err *err);

/* The same for several, as in world_apply_all. The revision that the last one has made, and the
 * error of the first that was refused, are those of all; each is called back. */
enum err_code world_submit_all(struct world *world, const struct world_change *changes,
                               size_t count, struct err *err);

/* Drops the values of a change that is not submitted. */
void world_drop(const struct world_change *change);

/* Queues a change and waits for its outcome. Any thread but the writer's and the readers'. */
enum err_code world_apply(struct world *world, const struct world_change *change, struct err *err);

/*
 * The same for several changes of one locale or of several, all or none: one commit, one
 * publication. Either all of them are moves or none is. Each is a revision of its locale. The error
 * is that of the first refused change.
 */
enum err_code world_apply_all(struct world *world, const struct world_change *changes, size_t count,
                              struct err *err);

/* Writes a mesh layer's files before its change (without a store: no effect). Any thread. */
enum err_code world_save_layer(struct world *world, const struct layer *layer, struct err *err);

/* The feed of all changes. Any thread. */
struct feed *world_feed(struct world *world);

/* The poses of layers that were moved. Any thread. */
struct moves *world_moves(struct world *world);

/* As store_history, with or without a store. Any thread, or the writer. */
enum err_code world_history(struct world *world, const struct store_history_question *question,
                            uint64_t *since, store_take_past take, void *context, struct err *err);

/* The store, for its numbers and models; NULL when there is none. */
struct store *world_store(struct world *world);

/*
 * The reason why a locale may be missing: a message about damage to that locale or to the store as
 * a whole; or NULL. id NULL: the first message. Set before serving begins, constant then. Any
 * thread.
 */
const char *world_damage(const struct world *world, const char *id);

/* Did the store have a locale of that id when it was loaded, deleted ones included? As above. */
bool world_is_stored(const struct world *world, const char *id);

/* The readers' threads are about to be started. Before this no reader holds anything back. */
void world_readers_begin(struct world *world);

/* The published snapshot, held for this reader until world_unpin. Reader's thread; never waits. */
const struct world_snapshot *world_pin(struct world *world, size_t reader);
void world_unpin(struct world *world, size_t reader, const struct world_snapshot *snapshot);

/* The same for a thread that is no reader, until world_release; waits for the writer at most. Any
 * thread. */
const struct world_snapshot *world_hold(struct world *world);
void world_release(struct world *world, const struct world_snapshot *snapshot);

/* The reader holds only its pinned snapshots. Reader's thread; never waits. */
void world_reader_quiet(struct world *world, size_t reader);

/* The reader's thread has ended: it no longer holds anything back. */
void world_reader_gone(struct world *world, size_t reader);

/* Other limits, from the next changes on; retired_max stays that of the start. Any thread. */
void world_set_limits(struct world *world, const struct world_limits *limits);

/*
 * Wakes the writer, and returns the number of its iterations: it grows between two calls
 * unless the writer hangs. Any thread; does not wait.
 */
uint64_t world_writer_turns(struct world *world);

/* Numbers of one moment. Any thread. */
void world_stats(struct world *world, struct world_stats *out);
struct builds *world_builds(struct world *world); /* builds.h */
/* out: [WORLD_REVISIONS_MAX]; returns how many there are. Any thread. */
size_t world_revisions(struct world *world, struct world_revision *out);

#endif
