/*
 * The inside of a world, private to world/; other rooms include world.h.
 *
 *   world.c    readers, epochs, publication, the queue, life
 *   writer.c   the loop of the writer's thread
 *   group_commit.c  groups of changes that share a transaction: made, committed, published,
 *              answered; commit_shared.c: the same with a log that several daemons share
 *   change.c   one change against a draft of the next snapshot; kinds/: a file a kind of change
 *   builds.c   the list of builds of meshes that are under way
 *   builder.c  trees of meshes rebuilt, and files of meshes written, after edits
 *   move.c     moving layers: published without a commit, at rest after a while, written later
 *   lease.c    leases of ground, for other threads
 *   persist.c  between the world's values and the store's; history.c: the row of the history
 *   revert.c   what earlier edits have replaced
 *   follow*.c  a log that other daemons share (follow.h); record.c: its bytes
 */
#ifndef KOTA_WORLD_WORLD_DATA_H
#define KOTA_WORLD_WORLD_DATA_H

#include "world/builds.h"
#include "world/write/ops.h"
#include "world/world.h"

#include <pthread.h>
#include <stdatomic.h>

/* The state of one reader. */
struct reader {
    _Alignas(64) _Atomic uint64_t seen; /* the epoch at its last quiet moment */
    struct world_snapshot *current;     /* the one it met last, held; reader's thread only */
};

/* Changes that are made together or not at all; or the load of the store. */
struct change_group {
    struct change_group *next;
    bool is_load;
    void (*done)(void *context, const struct err *err); /* of the group; may be NULL */
    void *context;
    uint64_t queued_us; /* CLOCK_MONOTONIC */

    /* during its group commit, group_commit.c */
    struct change_result *results; /* [count]; NULL: not made, or without memory */
    bool is_on_draft; /* made against changes of the same commit, which are not published yet */
    bool is_refused;  /* by the shared log: it is not made again */
    struct err err;

    size_t count;
    struct world_change changes[];
};

/* The revision at which a locale was deleted: a new one of that id continues from it. */
struct tombstone {
    char locale_id[WORLD_ID_MAX + 1];
    uint64_t revision;
};

struct tombstones {
    struct tombstone *at;
    size_t count, capacity;
    uint64_t dropped; /* the greatest revision of dropped tombstones */
};

struct damage {
    char locale_id[WORLD_ID_MAX + 1];
    char message[320];
};

struct world {
    _Atomic(struct world_snapshot *) published;
    _Atomic uint64_t epoch;
    struct reader *readers;
    size_t reader_count;        /* the last one is that of world_hold */
    pthread_mutex_t hold_mutex; /* of it */
    struct world_limits limits; /* the writer's own, but for the start */
    _Atomic uint64_t writer_turns;
    struct store *store;          /* NULL: in memory only */
    struct follow *follow;        /* NULL: no log is shared */
    struct history_list *history; /* without a store */
    struct feed *feed;
    struct moves *moves;
    pthread_t writer;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    struct change_group *first, **last;
    struct change_group *first_move, **last_move; /* only moves, which wait for no commit */
    size_t queued_count;
    struct lease_order *leases;     /* that wait, in order */
    struct world_snapshot *garbage; /* without holders, for the writer to free */
    bool is_stopping, is_poked;
    struct world_limits wanted; /* the writer's limits from its next iteration on */
    struct world_stats counted;
    struct world_revision revisions[WORLD_REVISIONS_MAX];

    struct builds builds; /* of meshes, under way */

    pthread_mutex_t wake_mutex; /* guards the two below; held during a call */
    void (*wake)(void *context);
    void *wake_context;
    struct world_audit audit; /* constant once changes come; made NULL: none */

    /* the writer's thread only */
    struct world_snapshot *retired; /* oldest first */
    struct world_snapshot **retired_last;
    size_t retired_count;
    uint64_t sequence;            /* of the last published change */
    struct tombstones tombstones; /* without a store */
    struct ops *ops;              /* as this */
    struct builder *builder;
    bool is_store_broken;
    bool had_moves; /* the last commit was of moves: now the others */

    /* set by the load, constant then */
    struct damage *damages;
    size_t damage_count;
    char (*stored)[WORLD_ID_MAX + 1]; /* ids of all locales in the store, sorted */
    size_t stored_count;
};

/* ---- world.c, for the writer ----------------------------------------------------------------- */

/* Waits while too many old snapshots cannot be freed. */
void world_make_room(struct world *world);

/* Publishes; takes the reference on `next`. The readers are to be woken then. */
void world_publish(struct world *world, struct world_snapshot *next);

/* Calls the wake function, so that readers pass their quiet moment and streams are written. */
void world_wake(struct world *world);

/* Releases snapshots that every reader has passed, and frees those without holders. */
void world_reclaim(struct world *world);

/* Of two ids, for qsort and bsearch. */
int world_id_order(const void *a, const void *b);

/* Something is to be done for the writer. Under the mutex. */
void world_signal(struct world *world);

/* ---- kinds/kind.c ---------------------------------------------------------------------------- */

/* CHECKs that each kind has all that it needs and that numbers are used once. */
void change_kinds_check(void);

/* Is it published without a commit? */
bool change_is_of_pose(enum world_change_kind kind);

/* ---- follow/follow.c, for world.c ------------------------------------------------------------ */

/* NULL and ERR_NO_MEMORY. */
struct follow *follow_create(const struct world_sharing *sharing, struct err *err);
void follow_free(struct follow *follow); /* NULL is fine */

/* Ends a wait of the writer's thread for the log. Any thread. */
void follow_wake(struct follow *follow);

/* ---- group_commit.c -------------------------------------------------------------------------- */

/* The most groups of one commit. */
enum { COMMIT_GROUPS_MAX = 256 };

/* Makes the groups of a list (at least one), commits, publishes, answers; takes them. */
void group_commit_run(struct world *world, struct change_group *groups);

/* ---- writer.c -------------------------------------------------------------------------------- */

void *writer_main(void *world);

/* Is there anything to do at once? Under the mutex. */
bool writer_has_work(const struct world *world);

/* ---- change.c -------------------------------------------------------------------------------- */

/* The snapshot in the making and the counters that go with it. */
struct draft {
    struct world *world;
    struct world_snapshot *snapshot; /* borrowed while it is the published one, else a reference */
    bool is_own;
    uint64_t sequence;
    struct tombstones deleted; /* locales that the draft deletes */
    bool is_followed;          /* others have made these changes: no limit refuses them */
};

/* Publishes the draft, which must be its own; between the two calls the results are announced. */
void draft_publish_begin(struct draft *draft);
void draft_publish_end(struct draft *draft);

/* The draft becomes `next`, which it takes; on error (next is NULL, or too large) it stays. */
enum err_code draft_advance(struct draft *draft, struct world_snapshot *next, struct err *err);

/* The last revision of a locale that is not in the draft; 0: it is new. */
enum err_code draft_last_revision(const struct draft *draft, const char *locale_id,
                                  uint64_t *revision, struct err *err);

/* One change that was made in a draft, or found to be a repeat. */
struct change_result {
    const struct world_change *change;
    struct locale *before, *after; /* references; NULL: none */
    struct locale *from;           /* WORLD_FORK: a reference on the other one, as it was then */
    const struct layer *layer;     /* that was put or edited; after's */
    struct edit_outcome outcome;   /* WORLD_EDIT, WORLD_REVERT */
    uint32_t first_polygon;        /* WORLD_EDIT_POLYGONS, as the next member */
    struct mesh_import import;
    struct feed_event event;
    bool is_new;
    bool is_repeat;
    int64_t time_ms; /* when it was made, for the history */
    bool is_nothing; /* it would change nothing: `after` is a reference to `before` */
    void *answer;    /* malloc: of a repeat the first answer, else the one to be stored */
    size_t answer_bytes;
};

void draft_begin(struct draft *draft, struct world *world);
/* Frees the draft's snapshot unless it was published, and the rest. */
void draft_end(struct draft *draft);

/* A draft that begins as a copy of `draft`, which must not change meanwhile. */
void draft_fork(const struct draft *draft, struct draft *out);
/* `draft` becomes its fork, which is empty afterwards. */
void draft_join(struct draft *draft, struct draft *fork);

/*
 * Makes the change in the draft, or finds that it was made before. On error the draft is as it was.
 * *result is to be freed by result_finish in any case.
 */
enum err_code change_make(struct draft *draft, const struct world_change *change,
                          struct change_result *result, struct err *err);
void result_finish(struct change_result *result);

/* Has it rows for the store: is it neither a move, nor a repeat, nor a question? */
bool result_is_durable(const struct change_result *result);

/* No locale, no event: a model, or values that are derived from one. */
bool result_is_of_model(const struct change_result *result);

/* Is it the same revision of its locale with other pins? */
bool result_is_of_pin(const struct change_result *result);

/* Is it a revision of its locale? */
bool result_is_of_locale(const struct change_result *result);

/* Has it left the draft as it was: a repeat, or a question? */
bool result_makes_nothing(const struct change_result *result);

/* Appends a published result to the feed, and calls its kind. */
void result_announce(struct world *world, const struct change_result *result);

/* The outcome that the change's callbacks get. */
struct world_outcome result_outcome(const struct change_result *result, const struct err *err);

/* ---- move.c ---------------------------------------------------------------------------------- */

/* Seconds until move_poll has something to do; INFINITY: not before the next move. */
double move_wait_s(const struct world *world);

/* Publishes layers that have come to rest, and writes poses, if it is time. */
void move_poll(struct world *world);

/* Writes all poses, at the end. */
void move_finish(struct world *world);

/* ---- builder.c ------------------------------------------------------------------------------- */

/* The thread that rebuilds trees and writes files of meshes. NULL and ERR_NO_MEMORY, or
 * ERR_INTERNAL. */
struct builder *builder_create(struct world *world, struct err *err);
/* Joins the thread and frees its results; NULL is fine. */
void builder_destroy(struct builder *builder);

/* Polygons of the result's layer were edited. Writer. */
void builder_note(struct builder *builder, const struct change_result *result);

/* A load found edits of a layer in the log that its files do not have. Writer. */
void builder_note_behind(struct builder *builder, const char *locale, const char *layer);

/* Takes a finished job, and starts the next one. Writer. */
void builder_poll(struct world *world);

/* Seconds until builder_poll has something to do; INFINITY: it will wake the writer. */
double builder_wait_s(const struct world *world);

/* Waits for the job under way and writes the files of all meshes with edits in the log. */
void builder_finish(struct world *world);

/* ---- lease.c --------------------------------------------------------------------------------- */

/* Runs the queued orders; is_over: refuses new leases. With a shared log. */
void lease_poll(struct world *world, bool is_over);

/* Frees orders that came after the writer had ended: releases, which end with the log's node. */
void lease_finish(struct world *world);

/* ---- revert.c -------------------------------------------------------------------------------- */

void revert_plan_free(struct revert_plan *plan); /* NULL is fine */

/* ---- persist.c ------------------------------------------------------------------------------- */

/* An upper bound of the moves of a locale between two writes of its transform_seq. */
#define PERSIST_SEQ_SPARE ((uint64_t)1 << 20)

/* A layer's pose as it is stored. */
struct store_pose persist_pose_row(const struct layer *layer);

/* A value with its layers in these poses, at rest; the others unmoved. NULL and ERR_NO_MEMORY. */
struct locale *persist_posed(const struct locale *value, const struct world_poses *poses,
                             struct err *err);

/* Writes the pose of one layer, as it is in the snapshot. */
enum err_code persist_pose(struct store *store, const struct locale *locale,
                           const struct layer *layer, struct err *err);

/* Writes the locale's transform_seq + spare, where it has one. */
enum err_code persist_transform_seq(struct store *store, const struct locale *locale,
                                    uint64_t spare, struct err *err);

/* Rows of a locale's manifest, of its end at a revision, and of one of its layers. */
enum err_code persist_manifest(struct store *store, const struct locale *locale, struct err *err);
enum err_code persist_tombstone(struct store *store, const struct locale *locale, uint64_t revision,
                                struct err *err);
enum err_code persist_layer(struct store *store, const struct locale *locale,
                            const struct layer *layer, struct err *err);

/* Keeps the rows as they are, which are the value's, under a name. */
enum err_code persist_pin(struct store *store, const char *name, const struct locale *value,
                          struct err *err);

/* Writes a result into the store's open transaction: values, then its row of the log. */
enum err_code persist_result(struct store *store, const struct change_result *result,
                             struct err *err);

/*
 * Replaces all rows of a locale (NULL: deleted at that revision) and its pins, with its event as
 * the only row of its log. from: another locale that it shares with, or NULL.
 */
enum err_code persist_replacement(struct store *store, const char *locale_id,
                                  const struct locale *locale, const struct locale *from,
                                  const struct feed_event *event, struct err *err);
enum err_code persist_model(struct store *store, const struct model *model, struct err *err);

/* Fills the world's draft, tombstones, feed and damages. Writer's thread. */
enum err_code persist_load(struct world *world, struct draft *draft, struct err *err);

/* For store_materialise: context is a const struct world_snapshot *. */
const struct heightfield *persist_field_of(void *context, const char *locale, const char *layer);

#endif
