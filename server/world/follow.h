/*
 * A world that shares its log with other daemons: the inside, for the files of this room only
 * (world.h has what others see).
 *
 *   follow.c           what others appended; what this world appends; how far it is
 *   follow_join.c      which log, at the start and after each new connection; adoption; divergence
 *   follow_snapshot.c  snapshots, made and taken
 *
 * All of it runs on the writer's thread, which owns the log, but where it says otherwise.
 */
#ifndef KOTA_WORLD_FOLLOW_H
#define KOTA_WORLD_FOLLOW_H

#include "cluster/cluster.h"
#include "world/record.h"
#include "world/world_data.h"

/*
 * Begins the op_id under which a locale comes into the log that one daemon alone had. Until the log
 * is known to have it, the store keeps FOLLOW_ADOPTING in the place of this beginning.
 */
#define FOLLOW_ADOPTED "~adopt-"
#define FOLLOW_ADOPTING "~adopt+" /* as long */

/* A locale as the log and the store have it; or the models. */
struct followed {
    char locale[WORLD_ID_MAX + 1];
    uint64_t applied;                  /* here; 0: nothing */
    char op_id[CLUSTER_OP_ID_MAX + 1]; /* of that entry */
    bool is_served;                    /* this node follows it */
    bool is_in_log;
    uint64_t head, first, snapshot; /* in the log, as of the last look */
    bool is_ours;                   /* the last entry that was applied was appended here */
    bool is_adopting;               /* applied by an adoption that the log may not have */
    bool is_doubtful; /* the log may have lost what is applied: to be compared, then taken anew */
    uint64_t coming;  /* under the mutex: it is on its way, up to that revision */
    char reason[320]; /* why it cannot be followed; "": it can */
};

struct follow {
    struct cluster *log;
    char node[WORLD_ID_MAX + 1];
    char locales[CLUSTER_URL_MAX + 1]; /* pattern */
    uint64_t snapshot_every, keep_entries, quiet_us;

    /* the writer's; what it changes of these three it changes under the mutex */
    struct followed *at; /* by locale */
    size_t count, room;
    char identity[STORE_IDENTITY_MAX + 1]; /* of the store's log, "": none */
    bool is_started;                       /* the store is loaded */
    bool is_starting;                      /* nobody reads yet */
    bool is_joined;
    bool has_refused;           /* it is not this store's log: final */
    uint64_t connects;          /* of cluster_stats, when the log was last compared */
    bool has_news;              /* look at the heads */
    bool is_in_step;            /* everything that the last look saw is applied */
    uint64_t snapshot_after_us; /* one could not be made: not again before then */
    struct cluster_entry *sent; /* that were appended and are not in the store yet, without data */
    size_t sent_count;

    pthread_mutex_t mutex; /* guards what follows, for other threads */
    struct world_shared told;
    _Atomic uint64_t in_step_us; /* when it was last known that everything is applied; 0: never */
    _Atomic bool is_stale;       /* it is not known now */
};

/* ---- follow.c ---------------------------------------------------------------------------------
 */

/* NULL and ERR_NO_MEMORY. */
struct follow *follow_create(const struct world_sharing *sharing, struct err *err);

struct followed *follow_find(struct follow *follow, const char *locale);
/* Sets what is applied: when it is published, and before readers are woken. */
void follow_set_applied(struct follow *follow, struct followed *followed, uint64_t revision,
                        const char *op_id);
/* The one of that id, made if need be. NULL and ERR_NO_MEMORY. */
struct followed *follow_add(struct follow *follow, const char *locale, struct err *err);

/* It is on its way to where the log has it: who asks for it is not told that there is none. */
void follow_say_coming(struct follow *follow, struct followed *followed);

/* The log has lost what is applied of it. */
void follow_doubt(struct follow *follow, struct followed *followed);

/* Where each locale stands in the log. */
enum err_code follow_read_heads(struct follow *follow, struct err *err);

/* Blobs of the log, for record.h. */
struct record_source follow_source(struct follow *follow);

/* Puts those blobs that the log does not have: all of them, or `most`; *is_all: no more are to be
 * put. */
enum err_code follow_put_blobs(struct follow *follow, const struct record *record, struct err *err);
enum err_code follow_put_some(struct follow *follow, const struct record *record, size_t most,
                              bool *is_all, struct err *err);

/* After the load: the first look, and all that there is to follow. ERR_CONFLICT as follow_join. */
enum err_code follow_start(struct world *world, struct err *err);

/* One look at the log: joins, follows for a bounded while, makes snapshots. */
void follow_look(struct world *world);

/*
 * Until everything is applied that the log has, or an error: ERR_UNAVAILABLE, ERR_BUSY (the daemon
 * stops), …. A locale that cannot be followed is left where it is, which is no error.
 */
enum err_code follow_all(struct world *world, struct err *err);

/*
 * Appends what these steps made, in one transaction. Errors and *at (a step's index) as of
 * cluster_append. After ERR_OK: follow_persist in the store's open transaction, then
 * follow_applied after its commit, or follow_dropped.
 */
enum err_code follow_append(struct world *world, const struct step *const *steps, size_t count,
                            size_t *at, struct err *err);
enum err_code follow_persist(struct world *world, struct err *err);
void follow_applied(struct world *world);
void follow_dropped(struct world *world);
void follow_count_race(struct follow *follow);

/* Waits until there is something to do, at most ms (-1: no end). */
void follow_wait(struct world *world, int ms);
void follow_free(struct follow *follow); /* NULL is fine */

/* ---- follow_join.c ----------------------------------------------------------------------------
 */

/* What the store knows of the log, once. */
enum err_code follow_read_store(struct world *world, struct err *err);

/*
 * Compares store and log. ERR_UNAVAILABLE: later. ERR_CONFLICT: this store is not of this log; it
 * stays so.
 */
enum err_code follow_join(struct world *world, struct err *err);

/* Looks whether the log still has what was applied; marks what it has not. */
enum err_code follow_compare(struct world *world, struct err *err);

/* ---- follow_snapshot.c ------------------------------------------------------------------------
 */

/* The locale (or the models) as the newest snapshot has it, or empty where there is none. */
enum err_code follow_take_anew(struct world *world, struct followed *followed, struct err *err);

/* Makes a snapshot of what is due. False: nothing was. */
bool follow_make_snapshot(struct world *world);

/* The bytes of a locale, or of the models, as they are published. */
enum err_code follow_record(struct world *world, const char *locale, struct record *out,
                            struct err *err);

/* A locale that is not to be here goes, store and all. Says on its way that it was not deleted. */
enum err_code follow_forget(struct world *world, struct followed *followed, struct err *err);

#endif
