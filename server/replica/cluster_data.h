/*
 * The inside of the shared log, private to replica/.
 *
 * link.c     the connection: made, watched, lost, made again
 * schema.c   set-up of a new connection: settings, tables, statements
 * ask.c      queries in the pipeline, in order, each with its deadline
 * append.c, follow.c, blobs.c, snapshots.c, leases.c   the calls
 * cluster.c  creation, waiting, news, numbers
 *
 * Each query ("ask") is one transaction: its statements up to one synchronisation of the pipeline,
 * so a failed one is rolled back as a whole by the engine without another message. Only
 * cluster_hold leaves a transaction open.
 */
#ifndef KOTA_REPLICA_CLUSTER_DATA_H
#define KOTA_REPLICA_CLUSTER_DATA_H

#include "replica/cluster.h"

#include "base/wake.h"
#include "replica/binary.h"
#include "replica/conninfo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

enum {
    CLUSTER_APPEND_BYTES_MAX = 256 << 20,
    CLUSTER_READ_BYTES_MAX = 16 << 20, /* one cluster_read ends after the entry that exceeds it */
    CLUSTER_PART_BYTES = 4 << 20,      /* of a blob */
    CLUSTER_LEASE_CELLS_MAX = 4096,
    CLUSTER_SCHEMA_MAX = 40 /* letters, digits and _: needs no quotes */
};

/* ---- statements (schema.c) ---- */

#define CLUSTER_STATEMENTS(X)                                                                      \
    X(APPEND)                                                                                      \
    X(HOLD)                                                                                        \
    X(END_STOPPED)                                                                                 \
    X(HEADS)                                                                                       \
    X(HEAD)                                                                                        \
    X(FIND_OP)                                                                                     \
    X(OP_AT)                                                                                       \
    X(READ)                                                                                        \
    X(PUT_BLOB)                                                                                    \
    X(TOUCH_BLOBS)                                                                                 \
    X(HAVE_BLOBS)                                                                                  \
    X(GET_BLOB)                                                                                    \
    X(GET_BLOBS)                                                                                   \
    X(BLOB_DAMAGED)                                                                                \
    X(BLOBS_UNVERIFIED)                                                                            \
    X(BLOBS_VERIFIED)                                                                              \
    X(CLAIM_SNAPSHOT)                                                                              \
    X(RENEW_CLAIM)                                                                                 \
    X(CONFIRM_SNAPSHOT)                                                                            \
    X(TRIM)                                                                                        \
    X(COLLECT)                                                                                     \
    X(GET_SNAPSHOT)                                                                                \
    X(ADOPT)                                                                                       \
    X(TAKE_LEASE)                                                                                  \
    X(RENEW_LEASES)                                                                                \
    X(LEASE_HOLDER)                                                                                \
    X(LET_GO)                                                                                      \
    X(LET_GO_OLD)                                                                                  \
    X(SIGN_OF_LIFE)                                                                                \
    X(NODES)                                                                                       \
    X(SIGN_OFF)                                                                                    \
    X(PUT_POSES)                                                                                   \
    X(POSES)

enum statement {
#define CLUSTER_STATEMENT_ENUM(name) STATEMENT_##name,
    CLUSTER_STATEMENTS(CLUSTER_STATEMENT_ENUM)
#undef CLUSTER_STATEMENT_ENUM
        STATEMENT_COUNT
};

/* ---- asks (ask.c) ---- */

enum ask_end {
    ASK_OPEN,
    ASK_DONE,
    ASK_REFUSED, /* a statement failed: sqlstate, message, detail; it had no effect */
    ASK_LOST     /* the connection was lost before the answer: it may have been done */
};

struct ask {
    struct cluster *cluster;
    struct ask *next;
    unsigned sent;  /* statements */
    unsigned index; /* of the statement whose result comes next */
    enum ask_end end;
    bool is_warned; /* the engine gave a warning with it */
    bool has_failed_to_send;
    uint64_t deadline_ms; /* of the loop's clock; later when bytes flow (cluster.moved_ms) */
    char sqlstate[6], message[200], detail[160];
    PGresult *kept; /* set by take: the result that is not freed after it */
    /* Rows of statement `index`: borrowed. NULL: they are of no interest. */
    void (*take)(struct ask *ask, unsigned index, const PGresult *result);
    /* At the end of an ask without a waiting caller; may free it. */
    void (*ended)(struct ask *ask);
    void *context;
};

/* Statements of an ask, which begins as {0} with take, ended and context. */
void ask_statement(struct cluster *cluster, struct ask *ask, enum statement statement,
                   const struct params *params);
void ask_sql(struct cluster *cluster, struct ask *ask, const char *sql);
/* Sends the added statements; the ask must live until it has ended. */
void ask_send(struct cluster *cluster, struct ask *ask);
/* Turns the loop until it has ended. ERR_OK or ERR_UNAVAILABLE with a message. */
enum err_code ask_wait(struct cluster *cluster, struct ask *ask, struct err *err);
/* ERR_UNAVAILABLE for an ask that the engine has refused; the engine's message is only logged. */
enum err_code ask_refused(const struct ask *ask, struct err *err);
/* Sends and waits. */
enum err_code ask_run(struct cluster *cluster, struct ask *ask, struct err *err);
/* The most frequent kind: one statement. */
enum err_code ask_one(struct cluster *cluster, enum statement statement,
                      const struct params *params,
                      void (*take)(struct ask *ask, unsigned index, const PGresult *result),
                      void *context, struct err *err);
/* For link.c: bytes have arrived; the connection is lost. */
void asks_read(struct cluster *cluster);
void asks_lost(struct cluster *cluster);

/* ---- the connection (link.c) ---- */

enum link_state {
    LINK_PAUSING,    /* none yet; the timer restarts */
    LINK_CONNECTING, /* libpq's handshake */
    LINK_SETTING_UP, /* schema.c */
    LINK_READY
};

/* Why a host was no use. */
enum link_fault { LINK_AWAY, LINK_REFUSES };

void link_start(struct cluster *cluster);
void link_stop(struct cluster *cluster);
/* Drops the connection; it is made again after a pause. */
void link_lose(struct cluster *cluster, const char *why);
/* While it is being made: this host is no use, the next one. */
void link_no_use(struct cluster *cluster, enum link_fault fault, const char *why);
/* The set-up is over. */
void link_is_ready(struct cluster *cluster);
/* Sends libpq's buffer, and watches the socket for the needed events. */
void link_flush(struct cluster *cluster);

/* ---- the set-up (schema.c) ---- */

void setup_begin(struct cluster *cluster);
/* There is something to read. */
void setup_read(struct cluster *cluster);

/* ---- the cluster ---- */

struct watch; /* link.c: a uv_poll_t that outlives its socket until libuv has closed it */

struct held_lease {
    uint64_t fence, deadline_ms; /* of lease_clock_ms */
    bool is_lost;
};

struct cluster {
    struct conninfo info;
    char schema[CLUSTER_SCHEMA_MAX + 1];
    char node[CLUSTER_ID_MAX + 1], url[CLUSTER_URL_MAX + 1], locales[CLUSTER_URL_MAX + 1];
    char instance[33];
    uint32_t wait_ms, poll_ms, lease_ms;

    uv_loop_t loop;
    struct wake wake;
    uv_poll_t woken;
    uv_timer_t link_timer, ask_timer, beat_timer, poll_timer, wait_timer;

    enum link_state state;
    PGconn *conn;
    struct watch *watch;
    size_t host;                      /* the one that is tried or connected */
    uint32_t pause_ms;                /* the next one */
    size_t fruitless;                 /* hosts tried in this round */
    bool was_away_once, refused_once; /* in the first round, for cluster_create */
    char why[256];                    /* why it is away */
    char logged[256];                 /* the last reason that was logged */
    char parting[128];                /* the engine's last words in this session */
    int setup_step, setup_version;    /* schema.c */
    bool setup_flags[3];
    char setup_error[256], setup_state[6];
    char identity[33], setup_identity[33]; /* of this log; of the one that is looked at */

    struct ask *first, *last; /* in the pipeline, in order */
    uint64_t moved_ms;        /* when bytes were last sent or received, by the loop's clock */
    bool is_held;             /* cluster_hold's transaction is open */
    bool has_news, is_beating, has_released_old;
    bool has_timed_out; /* cluster_wait's timer */

    /* For all threads: in a word of their own. The compiler tests adjacent flags with one load of
     * their word, which ThreadSanitizer reports as a race with the other members in it. */
    _Alignas(uint64_t) atomic_bool is_woken;
    atomic_bool is_away;

    pthread_mutex_t mutex; /* guards the members below */
    struct held_lease *leases;
    size_t lease_count, lease_room;
    struct cluster_node *nodes;
    size_t node_count;
    uint32_t patch_slots, patches;
    bool has_contact, was_other_instance;
    uint64_t contact_ns; /* uv_hrtime of the engine's last word */
    struct cluster_stats stats;
};

/* Adds to a number of stats. */
void cluster_count(struct cluster *cluster, uint64_t *number, uint64_t by);
/* Runs due events of the loop without waiting; then: is the engine reachable? Else sets err. */
enum err_code cluster_ready(struct cluster *cluster, struct err *err);
/* ERR_UNAVAILABLE; why is for the log only: libpq names addresses, roles and databases. */
enum err_code cluster_away(const struct cluster *cluster, struct err *err);
/* leases.c, for link.c: the connection is made, or lost. */
void beat_start(struct cluster *cluster);
void beat_stop(struct cluster *cluster);
/* leases.c: releases all leases, and removes the row among the nodes. */
void beat_goodbye(struct cluster *cluster);

/* follow.c: over all that a reader gets of an entry, its revision and its locale. */
void entry_digest(const struct cluster_entry *entry, const char *node,
                  uint8_t out[CLUSTER_HASH_BYTES]);

/* snapshots.c: unreferenced blobs older than that; at most once in pause_ms. For tests. */
enum err_code cluster_collect(struct cluster *cluster, uint32_t older_ms, uint32_t pause_ms,
                              uint64_t *went, struct err *err);

#endif
