/*
 * A world that shares its log with other daemons: the inside, private to world/ (world.h has the
 * contract).
 *
 * The entries of a locale are numbered from 1 on, each one more than the last. An entry of a pin
 * makes no revision, so the number is the revision plus the entries of pins so far.
 *
 *   follow.c           entries of other nodes; appending entries; the reported state
 *   follow_join.c      which log, at the start and after each new connection; adoption; divergence
 *   follow_snapshot.c  snapshots, made and taken
 *   follow_poses.c     poses of moved layers, both ways
 *
 * Functions are for the writer's thread, which owns the log, unless they say otherwise.
 */
#ifndef KOTA_WORLD_FOLLOW_H
#define KOTA_WORLD_FOLLOW_H

#include "replica/cluster.h"
#include "world/follow/record.h"
#include "world/world_data.h"

/*
 * Prefix of the op_id under which a locale of only one daemon is put into the log (adoption). Until
 * the log is known to have it, the store has the prefix FOLLOW_ADOPTING instead.
 */
#define FOLLOW_ADOPTED "~adopt-"
#define FOLLOW_ADOPTING "~adopt+" /* as long */

/* A locale as the log and the store have it; or the models. */
struct followed {
    char locale[WORLD_ID_MAX + 1];
    uint64_t applied;                  /* here: the entry's number; 0: nothing */
    uint64_t revision;                 /* of the locale then; pins are entries without one */
    char op_id[CLUSTER_OP_ID_MAX + 1]; /* of that entry */
    bool is_served;                    /* this node follows it */
    bool is_in_log;
    uint64_t head, first, snapshot; /* in the log, as of the last poll */
    bool is_ours;                   /* the last entry that was applied was appended here */
    bool is_adopting;               /* applied by an adoption that the log may not have */
    bool is_base;                   /* a fork of it waits until it is here */
    bool is_doubtful;     /* the log may have lost applied entries: to be compared, then replaced */
    uint64_t history_key; /* record_history_key; the writer's */
    uint64_t coming;      /* under the mutex: it is on its way, up to that revision */
    char reason[320];     /* why it cannot be followed; "": it can */
};

struct follow {
    struct cluster *log;
    char node[WORLD_ID_MAX + 1];
    char locales[CLUSTER_URL_MAX + 1]; /* pattern */
    uint64_t snapshot_every, keep_entries, quiet_us;

    /* the writer's; it changes these three only under the mutex */
    struct followed *at; /* by locale */
    size_t count, room;
    char identity[STORE_IDENTITY_MAX + 1]; /* of the store's log, "": none yet */
    bool is_started;                       /* the store is loaded */
    bool is_starting;                      /* no reader yet */
    bool is_joined;
    bool has_refused;              /* it is not this store's log: final */
    uint64_t connects;             /* of cluster_stats, when the log was last compared */
    char wanted[WORLD_ID_MAX + 1]; /* a fork that was being read waits for this locale; "": none */
    bool has_news;                 /* the heads are to be read */
    bool is_in_step;               /* everything that the last poll saw is applied */
    uint64_t pose_number;          /* of the last pose that was read from the log */
    uint64_t snapshot_after_us;    /* one could not be made: not again before then */
    struct cluster_entry *sent; /* that were appended and are not in the store yet, without data */
    size_t sent_count;

    pthread_mutex_t mutex; /* guards the members below, for other threads */
    struct world_shared reported;
    _Atomic uint64_t in_step_us; /* when it was last known that everything is applied; 0: never */
    _Atomic bool is_stale;       /* it is not known now */
};

/* ---- follow.c -------------------------------------------------------------------------------- */

struct followed *follow_find(struct follow *follow, const char *locale);
/* Sets the applied entry, after the publication and before readers are woken. */
void follow_set_applied(struct follow *follow, struct followed *followed, uint64_t applied,
                        uint64_t revision, const char *op_id);
/* The one of that id, made if need be. NULL and ERR_NO_MEMORY. */
struct followed *follow_add(struct follow *follow, const char *locale, struct err *err);

/* It is being fetched: readers wait for it instead of getting ERR_NOT_FOUND. */
void follow_mark_coming(struct follow *follow, struct followed *followed);

/* The log has lost applied entries of it. */
void follow_doubt(struct follow *follow, struct followed *followed);

/* Reads each locale's head from the log. */
enum err_code follow_read_heads(struct follow *follow, struct err *err);

/* Blobs of the log, for record.h. */
struct record_source follow_source(struct world *world);

/* Puts those blobs that the log does not have: all of them, or `most`; *is_all: no more are to be
 * put. */
enum err_code follow_put_blobs(struct follow *follow, const struct record *record, struct err *err);
enum err_code follow_put_some(struct follow *follow, const struct record *record, size_t most,
                              bool *is_all, struct err *err);

/* After the load: the first poll, until everything is applied. ERR_CONFLICT as follow_join. */
enum err_code follow_start(struct world *world, struct err *err);

/* Polls the log: joins, applies a bounded number of entries, makes snapshots. */
void follow_poll(struct world *world);

/*
 * Until everything is applied that the log has, or an error: ERR_UNAVAILABLE, ERR_BUSY (the daemon
 * stops), …. A locale that cannot be followed is left where it is, which is no error.
 */
enum err_code follow_all(struct world *world, struct err *err);

/*
 * Appends these results in one transaction. Errors and *at (the index of a result) as of
 * cluster_append. After ERR_OK: follow_persist in the store's open transaction, then
 * follow_applied after its commit, or follow_dropped.
 */
enum err_code follow_append(struct world *world, const struct change_result *const *results,
                            size_t count, size_t *at, struct err *err);
enum err_code follow_persist(struct world *world, struct err *err);
void follow_applied(struct world *world);
void follow_dropped(struct world *world);
void follow_count_race(struct follow *follow);

/* Waits until there is something to do, at most ms (-1: no end). */
void follow_wait(struct world *world, int ms);

/* ---- follow_join.c --------------------------------------------------------------------------- */

/* Reads the store's rows about the log, once. */
enum err_code follow_read_store(struct world *world, struct err *err);

/*
 * Compares store and log. ERR_UNAVAILABLE: later. ERR_CONFLICT: this store is not of this log; it
 * stays so.
 */
enum err_code follow_join(struct world *world, struct err *err);

/* Checks that the log still has the applied entries; marks locales where it does not. */
enum err_code follow_compare(struct world *world, struct err *err);

/* ---- follow_poses.c -------------------------------------------------------------------------- */

/* Puts the poses that this node was asked for into the log; later, where that is away. */
void follow_share_poses(struct world *world);

/* Queues the new poses of other nodes as moves. */
enum err_code follow_take_poses(struct world *world, struct err *err);

/* ---- follow_snapshot.c ----------------------------------------------------------------------- */

/* Replaces the locale (or the models) by the newest snapshot; by none where there is none. */
enum err_code follow_take_anew(struct world *world, struct followed *followed, struct err *err);

/* Makes a snapshot that is due. False: none was. */
bool follow_make_snapshot(struct world *world);

/* The bytes of a locale, or of the models, as they are published. */
enum err_code follow_record(struct world *world, const struct followed *f, struct record *out,
                            struct err *err);

/* Removes a locale that is not followed here any more, from the store, too; this is no deletion. */
enum err_code follow_forget(struct world *world, struct followed *followed, struct err *err);

#endif
