/*
 * The inside of a world, for the files of this room only; everybody else uses world.h.
 *
 *   world.c    readers, epochs, publication, the queue, life
 *   writer.c   what the writer's thread does, and when
 *   batch.c    changes that share a commit: made, committed, published, answered
 *   change.c   one change against a draft of the next snapshot
 *   builder.c  trees of meshes built anew, and files of meshes, behind the edits
 *   move.c     layers that move: published without a commit, at rest after a while, kept later
 *   lease.c    rights to ground, for those who ask the writer for them
 *   persist.c  between the world's values and the store's
 *   follow*.c  a log that other daemons share (follow.h); record.c: its bytes
 */
#ifndef KOTA_WORLD_WORLD_DATA_H
#define KOTA_WORLD_WORLD_DATA_H

#include "world/ops.h"
#include "world/world.h"

#include <pthread.h>
#include <stdatomic.h>

/* What belongs to one reader. */
struct reader {
    _Alignas(64) _Atomic uint64_t seen; /* the epoch at its last quiet moment */
    struct world_snapshot *current;     /* the one it met last, held; reader's thread only */
};

/* Changes that are made together or not at all; or the load of the store. */
struct unit {
    struct unit *next;
    bool is_load;
    void (*done)(void *context, const struct err *err); /* of the unit; may be NULL */
    void *context;
    uint64_t queued_us; /* CLOCK_MONOTONIC */
    size_t count;
    struct world_change changes[];
};

/* The revision at which a locale was deleted: one of that id goes on from there. */
struct tombstone {
    char locale_id[WORLD_ID_MAX + 1];
    uint64_t revision;
};

struct tombstones {
    struct tombstone *at;
    size_t count, capacity;
    uint64_t dropped; /* the greatest revision of those that are kept no more */
};

struct damage {
    char locale_id[WORLD_ID_MAX + 1];
    char message[320];
};

struct world {
    _Atomic(struct world_snapshot *) published;
    _Atomic uint64_t epoch;
    struct reader *readers;
    size_t reader_count;
    struct world_limits limits; /* the writer's own, but for the start */
    _Atomic uint64_t writer_turns;
    struct store *store;   /* NULL: in memory only */
    struct follow *follow; /* NULL: no log is shared */
    struct feed *feed;
    struct moves *moves;
    pthread_t writer;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct unit *first, **last;
    struct unit *first_move, **last_move; /* moves alone, which wait for no commit */
    size_t queued_count;
    struct lease_order *leases;     /* that wait, in order */
    struct world_snapshot *garbage; /* let go by its last holder, for the writer to free */
    bool is_stopping, is_poked;
    struct world_limits wanted; /* the writer's limits from its next turn on */
    struct world_stats counted;
    struct world_revision revisions[WORLD_REVISIONS_MAX];

    pthread_mutex_t wake_mutex; /* guards the two below; held during a call */
    void (*wake)(void *context);
    void *wake_context;

    /* the writer's thread only */
    struct world_snapshot *retired; /* oldest first */
    struct world_snapshot **retired_last;
    size_t retired_count;
    uint64_t sequence;            /* of the last published change */
    struct tombstones tombstones; /* without a store */
    struct ops *ops;              /* as this */
    struct builder *builder;
    bool is_store_broken;
    bool had_moves; /* the last batch was of moves: now the others */

    /* set by the load, constant then */
    struct damage *damages;
    size_t damage_count;
    char (*stored)[WORLD_ID_MAX + 1]; /* ids of all locales in the store, in its order */
    size_t stored_count;
};

/* ---- world.c, for the writer ------------------------------------------------------------------
 */

/* Waits while too many old snapshots cannot be let go. */
void world_make_room(struct world *world);

/* Publishes; takes the reference on `next`. The readers are to be woken then. */
void world_publish(struct world *world, struct world_snapshot *next);

/* Calls the wake function, so that readers pass their quiet moment and followers look. */
void world_wake(struct world *world);

/* Lets go of what every reader has passed, and frees what nobody holds. */
void world_reclaim(struct world *world);

/* CLOCK_MONOTONIC. */
uint64_t world_now_us(void);

/* Something is to be done for the writer. Under the mutex. */
void world_signal(struct world *world);

/* ---- batch.c ------------------------------------------------------------------------------------
 */

/* The most units that one batch takes. */
enum { BATCH_CHANGES_MAX = 256 };

/* Makes the units of a list, commits, publishes, answers; takes them. */
void batch_run(struct world *world, struct unit *units);

/* ---- writer.c ---------------------------------------------------------------------------------
 */

void *writer_main(void *world);

/* Is there anything to do at once? Under the mutex. */
bool writer_has_work(const struct world *world);

/* ---- change.c ---------------------------------------------------------------------------------
 */

/* The snapshot in the making and the counters that go with it. */
struct draft {
    struct world *world;
    struct world_snapshot *snapshot; /* borrowed while it is the published one, else a reference */
    bool is_own;
    uint64_t sequence;
    struct tombstones buried; /* locales that the draft deletes */
    bool is_followed;         /* others have made these changes: no limit refuses them */
};

/*
 * Publishes what the draft has become; between the two the steps that led to it are announced. Not
 * of a draft that is nobody's own.
 */
void draft_publish_begin(struct draft *draft);
void draft_publish_end(struct draft *draft);

/* The draft becomes `next`, which it takes; on error (next is NULL, or too large) it stays. */
enum err_code draft_advance(struct draft *draft, struct world_snapshot *next, struct err *err);

/* One change as it stands in a draft. */
struct step {
    const struct world_change *change;
    struct locale *before, *after; /* references; NULL: none */
    const struct layer *layer;     /* that was put or edited; after's */
    struct edit_outcome outcome;   /* WORLD_EDIT */
    uint32_t first_polygon;        /* WORLD_EDIT_POLYGONS, as what follows */
    struct mesh_import import;
    bool is_of_model; /* no locale, no event */
    struct feed_event event;
    bool is_new;
    bool is_repeat;
    void *answer; /* malloc: of the first time when it is a repeat, else what is to be kept */
    size_t answer_bytes;
};

void draft_begin(struct draft *draft, struct world *world);
/* Lets go of the draft's snapshot unless it was taken, and of the rest. */
void draft_end(struct draft *draft);

/* A draft that begins where `draft` stands, which must not change meanwhile. */
void draft_fork(const struct draft *draft, struct draft *out);
/* `draft` becomes what its fork has become; the fork is empty then. */
void draft_join(struct draft *draft, struct draft *fork);

/*
 * Makes the change in the draft, or finds that it was made before. On error the draft is as it was.
 * *step is to be freed by step_finish in any case.
 */
enum err_code step_make(struct draft *draft, const struct world_change *change, struct step *step,
                        struct err *err);
void step_finish(struct step *step);

/* Has it made a revision, or changed what the store keeps with it: is it no move, no nothing? */
bool step_is_durable(const struct step *step);

/* Has it left the draft as it was: a repeat, or a question? */
bool step_makes_nothing(const struct step *step);

/* Tells the feed, and who follows moves, of a published step. */
void step_announce(struct world *world, const struct step *step);

/* What the change's callbacks are told of it. */
struct world_outcome step_outcome(const struct step *step, const struct err *err);

/* A locale's tombstone; when it is none of those kept, the greatest that was dropped, or 0. */
uint64_t tombstones_find(const struct tombstones *tombstones, const char *locale_id);
/* Adds or renews one; the oldest is dropped when there are too many, the new one without memory. */
void tombstones_add(struct tombstones *tombstones, const char *locale_id, uint64_t revision);

/* ---- move.c -----------------------------------------------------------------------------------
 */

/* Seconds of a clock that only grows. */
double move_now_s(void);

/* Makes a WORLD_MOVE_LAYER: step->after and step->layer, of the same revision. */
enum err_code move_make(struct draft *draft, struct step *step, struct err *err);

/* What a published step means for the moves that are told. */
void move_announce(struct world *world, const struct step *step);

/* Seconds until move_look has something to do; INFINITY: not before the next move. */
double move_wait_s(const struct world *world);

/* Publishes what has come to rest, and writes what is to be kept, if it is time. */
void move_look(struct world *world);

/* Writes what is to be kept, at the end. */
void move_finish(struct world *world);

/* ---- builder.c --------------------------------------------------------------------------------
 */

/* The thread that builds trees anew and writes files of meshes. NULL and ERR_NO_MEMORY, or
 * ERR_INTERNAL. */
struct builder *builder_create(struct world *world, struct err *err);
/* Joins the thread and lets go of what it made; NULL is fine. */
void builder_destroy(struct builder *builder);

/* What a published step means for it. Writer. */
void builder_note(struct builder *builder, const struct step *step);

/* The log has edits of a layer that its files have not, as a load has found. Writer. */
void builder_note_behind(struct builder *builder, const char *locale, const char *layer);

/* Takes what was built, and gives the next job. Writer. */
void builder_look(struct world *world);

/* Seconds until builder_look has something to do; INFINITY: not before it says so itself. */
double builder_wait_s(const struct world *world);

/* Waits for the job under way and writes the files of all meshes that are behind the log. */
void builder_finish(struct world *world);

/* ---- lease.c ----------------------------------------------------------------------------------
 */

/* Does what waits; is_over: refuses who asks for a lease. With a shared log. */
void lease_look(struct world *world, bool is_over);

/* Frees what came after the writer had ended: leases let go, which end with the log's node. */
void lease_finish(struct world *world);

/* ---- persist.c --------------------------------------------------------------------------------
 */

/* Writes the pose of one layer, as it is in the snapshot, and its locale's transform_seq + spare.
 */
enum err_code persist_pose(struct store *store, const struct locale *locale,
                           const struct layer *layer, uint64_t spare, struct err *err);

/* Writes a step into the store's open transaction. */
enum err_code persist_step(struct store *store, const struct step *step, struct err *err);

/*
 * A locale as it is (NULL: deleted at that revision), in the place of what the store had of it,
 * with its event as the only row of its log.
 */
enum err_code persist_anew(struct store *store, const char *locale_id, const struct locale *locale,
                           const struct feed_event *event, struct err *err);
enum err_code persist_model(struct store *store, const struct model *model, struct err *err);

/* Fills the world's draft, tombstones, feed and damages. Writer's thread. */
enum err_code persist_load(struct world *world, struct draft *draft, struct err *err);

/* For store_materialise: context is a const struct world_snapshot *. */
const struct heightfield *persist_field_of(void *context, const char *locale, const char *layer);

#endif
