/*
 * The edit log that several daemons share, in PostgreSQL 15 or newer (docs/cluster.md).
 *
 * Nothing here depends on terrain: an entry is bytes under (locale, revision), a blob is bytes
 * under their hash, a snapshot is bytes that name blobs. The world makes and reads them (record.h).
 *
 *   append   entries of one transaction, each exactly one revision after its locale's last
 *   follow   entries of other nodes, in the order of revisions
 *   lease    the right to change an area later, with a fence that an append can be bound to
 *   nodes    the other nodes, and their capacity
 *
 * One thread owns a cluster, the world's writer: every call is for it, except those for "any
 * thread". There is one connection, in pipeline mode, on a libuv loop of the owner's; no thread is
 * made. A call that queries the engine runs that loop until the answer is there, the connection is
 * lost, or no byte was sent or received for wait_ms (a query that takes 6 wait_ms is given up,
 * too). Meanwhile notifications are noted and leases are renewed.
 *
 * A lost connection is made again in the background, with a growing pause; until then calls fail at
 * once with ERR_UNAVAILABLE ("the shared log is away"). It is made again only to the same log.
 * Names of hosts are resolved by the system, which blocks the owner; addresses do not block.
 *
 * Errors of all calls: ERR_UNAVAILABLE, ERR_NO_MEMORY; ERR_DAMAGED when the engine has impossible
 * data (a wrong hash, a gap between revisions).
 */
#ifndef KOTA_REPLICA_CLUSTER_H
#define KOTA_REPLICA_CLUSTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLUSTER_ID_MAX = 64,        /* characters of a locale's, layer's or node's id */
    CLUSTER_OP_ID_MAX = 128,    /* characters of an op_id */
    CLUSTER_SOURCE_MAX = 32,    /* characters of an entry's source */
    CLUSTER_URL_MAX = 256,      /* bytes of a node's address */
    CLUSTER_HASH_BYTES = 32,    /* BLAKE2b-256 */
    CLUSTER_REQUEST_BYTES = 32, /* hash of a request */
    CLUSTER_READ_MAX = 128      /* entries that one cluster_read brings */
};

struct cluster_options {
    const char *conninfo; /* libpq's; several hosts are tried in turn */
    const char *schema;   /* where its tables are; NULL: "kota" */
    const char *node;     /* this node's id, one of a kind */
    const char *url;      /* where others send clients to; "": nowhere */
    uint32_t patch_slots; /* patches of sand that it can take; 0: no device */
    const char *locales;  /* the pattern it serves, for the table of nodes; "": all */
    uint32_t wait_ms;     /* for one answer of the engine, from the last byte; 0: 10,000 */
    uint32_t poll_ms;     /* between polls without a notification; 0: 3,000 */
    uint32_t lease_ms;    /* 0: 10,000; renewed after a third of it */
};

struct cluster;

/*
 * Connects once and makes or migrates the schema. ERR_BAD_INPUT: conninfo cannot be read, the
 * engine is older than 15, the schema is newer than this program, the role may not; then NULL.
 * An engine that is away is no error: cluster_is_away, and it is tried again.
 */
struct cluster *cluster_create(const struct cluster_options *options, struct err *err);
/* Releases its leases and removes its row among the nodes if the engine is reachable. NULL is
 * fine. */
void cluster_destroy(struct cluster *cluster);

/* Makes the cluster_wait that is under way, or else the next, return. Any thread. */
void cluster_wake(struct cluster *cluster);

/*
 * Runs the loop until cluster_wake, news (a notification, poll_ms over, connected again), or
 * timeout_ms (-1: no end). True: there is news; call cluster_heads.
 */
bool cluster_wait(struct cluster *cluster, int timeout_ms);

bool cluster_is_away(const struct cluster *cluster);

/* The identity of this log: made once with its schema, unique. [33], hexadecimal. */
enum err_code cluster_identity(struct cluster *cluster, char out[33], struct err *err);

/* ---- entries --------------------------------------------------------------------------------- */

struct cluster_entry {
    char locale[CLUSTER_ID_MAX + 1];   /* or "/models", whose revisions count changes of models */
    uint64_t revision;                 /* one more than the locale's last */
    char op_id[CLUSTER_OP_ID_MAX + 1]; /* never "": one of a kind in the whole log */
    /* In a call's first entry of a locale: the op_id that the appender has at revision - 1. Where
     * the log has another one there, the append is in conflict. "": not compared. */
    char before[CLUSTER_OP_ID_MAX + 1];
    uint8_t request[CLUSTER_REQUEST_BYTES]; /* 0 where op_id was made by the node */
    int kind;                               /* as the world numbers them */
    char layer[CLUSTER_ID_MAX + 1];
    char source[CLUSTER_SOURCE_MAX + 1];
    char node[CLUSTER_ID_MAX + 1]; /* the appending node; set by cluster_append */
    bool has_rect;
    uint32_t rect[4]; /* column, row, cols, rows */
    uint64_t fence;   /* 0: none; else of a lease that must be held when it is committed */
    const void *data;
    size_t bytes;
    const uint8_t (*blobs)[CLUSTER_HASH_BYTES]; /* that data names; they are put before */
    size_t blob_count;
};

/*
 * Appends all of the entries or none, in one transaction and one round trip; returns when that is
 * durable in the engine. Entries of one locale are in the order of their revisions.
 *
 * ERR_CONFLICT             a locale is not at the entry's revision - 1, or has another entry there
 *                          than `before`, an op_id is in the log (or was until at most an hour ago:
 *                          older trimmed ones are forgotten), or a blob is missing: follow, make
 *                          the changes again, append again
 * ERR_TOO_LARGE            more than 256 MiB of data
 * ERR_PRECONDITION_FAILED  a fence is stale: err's message names it, *at is the entry's index
 * ERR_UNAVAILABLE          the engine is unreachable. Nothing was appended, unless *in_doubt: then
 *                          the commit may or may not happen; following shows it.
 *
 * When the connection is lost before the answer, it is made again within wait_ms, the op_ids are
 * searched in the log, and missing entries are appended again with the same op_ids.
 */
enum err_code cluster_append(struct cluster *cluster, const struct cluster_entry *entries,
                             size_t count, size_t *at, bool *in_doubt, struct err *err);

/*
 * Pessimistic fallback after repeated conflicts: locks the locales' rows (in the order of their
 * ids) in a transaction that the next cluster_append ends, so that no other node can append
 * meanwhile. Follow between the two. cluster_release: ends it without an append.
 */
enum err_code cluster_hold(struct cluster *cluster, const char (*locales)[CLUSTER_ID_MAX + 1],
                           size_t count, struct err *err);
void cluster_release(struct cluster *cluster);

/* A locale's position in the log. */
struct cluster_head {
    char locale[CLUSTER_ID_MAX + 1];
    uint64_t revision;
    uint64_t first;    /* the oldest revision with its entry; revision + 1: none */
    uint64_t snapshot; /* the newest verified snapshot's revision; 0: none */
};

/* All locales: *heads is malloc, ordered by id. */
enum err_code cluster_heads(struct cluster *cluster, struct cluster_head **heads, size_t *count,
                            struct err *err);

/*
 * The op_id of the entry at a revision; "" when there is none. A node compares it with the op_id of
 * its last applied revision: they differ when the log has lost applied entries.
 */
enum err_code cluster_op_at(struct cluster *cluster, const char *locale, uint64_t revision,
                            char op_id[CLUSTER_OP_ID_MAX + 1], struct err *err);

/*
 * Locale and revision of the entry with an op_id, also for an hour after it was trimmed: after a
 * conflict it shows whether that was the own change. ERR_NOT_FOUND.
 */
enum err_code cluster_find_op(struct cluster *cluster, const char *op_id,
                              char locale[CLUSTER_ID_MAX + 1], uint64_t *revision, struct err *err);

/*
 * Entries with revision > after, in order, CLUSTER_READ_MAX at most; *count of them. `take`'s entry
 * is borrowed for the call; false ends the reading with its err. The loop is not turned while
 * `take` runs, and it may call cluster_get_blob.
 * ERR_NOT_FOUND: the log was trimmed past `after` + 1: a snapshot first.
 */
enum err_code cluster_read(struct cluster *cluster, const char *locale, uint64_t after,
                           bool (*take)(void *context, const struct cluster_entry *entry,
                                        struct err *err),
                           void *context, size_t *count, struct err *err);

/* ---- blobs and snapshots --------------------------------------------------------------------- */

/* An existing one is not written; its time of writing is renewed, so that no trim removes it. */
enum err_code cluster_put_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               const void *bytes, size_t length, struct err *err);

/*
 * Puts missing ones: one query which those are, then some MiB in flight at a time, without waiting
 * for each. `bytes` returns those of hashes[index], or NULL and an error, which ends it. It is
 * called only for missing ones, once, in no order; it must not call the cluster. *made, NULL
 * before, is freed when they are sent.
 */
enum err_code cluster_put_blobs(struct cluster *cluster,
                                const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                const void *(*bytes)(void *context, size_t index, size_t *length,
                                                     void **made, struct err *err),
                                void *context, struct err *err);

/* Which of them are there: out[count]. One question. Those that are have their time renewed. */
enum err_code cluster_have_blobs(struct cluster *cluster,
                                 const uint8_t (*hashes)[CLUSTER_HASH_BYTES], size_t count,
                                 bool *out, struct err *err);

/* malloc; the hash was checked. ERR_NOT_FOUND. */
enum err_code cluster_get_blob(struct cluster *cluster, const uint8_t hash[CLUSTER_HASH_BYTES],
                               void **bytes, size_t *length, struct err *err);

/*
 * A snapshot of a locale at a revision: read back, compared, marked as verified; then entries up to
 * keep revisions before it are deleted, older snapshots and unreferenced blobs, too.
 * ERR_CONFLICT: there is one of this revision or a newer one.
 */
enum err_code cluster_put_snapshot(struct cluster *cluster, const char *locale, uint64_t revision,
                                   const char *op_id, const void *bytes, size_t length,
                                   const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                                   uint64_t keep, struct err *err);

/*
 * The newest verified snapshot: *bytes is malloc; op_id that of its revision.
 * ERR_NOT_FOUND: there is none.
 */
enum err_code cluster_get_snapshot(struct cluster *cluster, const char *locale, uint64_t *revision,
                                   char op_id[CLUSTER_OP_ID_MAX + 1], void **bytes, size_t *length,
                                   struct err *err);

/*
 * Puts a locale that only this node has into the log: its row at `revision`, and its snapshot.
 * ERR_CONFLICT: the log has it. ERR_NOT_FOUND: one of the blobs is missing.
 */
enum err_code cluster_adopt(struct cluster *cluster, const char *locale, uint64_t revision,
                            const char *op_id, const void *bytes, size_t length,
                            const uint8_t (*blobs)[CLUSTER_HASH_BYTES], size_t blob_count,
                            struct err *err);

/* ---- poses of moved layers ------------------------------------------------------------------- */

enum { CLUSTER_POSE_NUMBERS = 8 };

struct cluster_pose {
    char locale[CLUSTER_ID_MAX + 1], layer[CLUSTER_ID_MAX + 1];
    uint64_t number;   /* set by the log: rises with each pose that any node puts */
    uint64_t revision; /* of the locale at the node that has put it */
    double numbers[CLUSTER_POSE_NUMBERS];
};

/*
 * Puts the last poses of some layers, each once. One of a layer that came or went after the pose's
 * revision is dropped. The log keeps the last pose of each layer, without waiting for the disk.
 */
enum err_code cluster_put_poses(struct cluster *cluster, const struct cluster_pose *poses,
                                size_t count, struct err *err);

/* Poses with a number above `after`, in their order, at most 1,024; those that this node has put
 * only with_own. *poses is malloc. */
enum err_code cluster_poses(struct cluster *cluster, uint64_t after, bool with_own,
                            struct cluster_pose **poses, size_t *count, struct err *err);

/* ---- leases ---------------------------------------------------------------------------------- */

/* Cells of a fixed grid over a locale's ground: [first_x, last_x] × [first_y, last_y]. */
struct cluster_area {
    char locale[CLUSTER_ID_MAX + 1];
    int64_t first_x, first_y, last_x, last_y;
};

/*
 * Takes all cells of an area, or none: inserted in sorted order, by the engine's clock. *fence is
 * greater than all earlier ones. Renewed until it is released or lost. 4,096 cells at most
 * (ERR_TOO_LARGE).
 * ERR_CONFLICT: a cell is leased; holder [CLUSTER_ID_MAX + 1] and err name the node and the time.
 */
enum err_code cluster_lease(struct cluster *cluster, const struct cluster_area *area,
                            uint64_t *fence, char *holder, struct err *err);
/* Another node that holds a cell of the area; "" if none does. holder [CLUSTER_ID_MAX + 1]. */
enum err_code cluster_holder(struct cluster *cluster, const struct cluster_area *area, char *holder,
                             struct err *err);
void cluster_unlease(struct cluster *cluster, uint64_t fence);
/* Has it been lost, as far as is known: not renewed in time, or taken by another? Any thread. */
bool cluster_is_lost(struct cluster *cluster, uint64_t fence);

/* ---- nodes ----------------------------------------------------------------------------------- */

enum { CLUSTER_LEASED_MAX = 1024 };

struct cluster_node {
    char id[CLUSTER_ID_MAX + 1];
    char url[CLUSTER_URL_MAX + 1];       /* printable ASCII without blanks; "": none */
    char locales[CLUSTER_URL_MAX + 1];   /* its pattern */
    uint32_t patch_slots, patches;       /* that it can take; that it has now */
    char leased[CLUSTER_LEASED_MAX + 1]; /* locales that it has leases in, a blank after each; those
                                          * that have no room are missing */
};

/* Sets the number of patches of this node, sent with its next heartbeat. Any thread. */
void cluster_set_patches(struct cluster *cluster, uint32_t patches);
void cluster_set_patch_slots(struct cluster *cluster, uint32_t slots);
/* As that, where the address is known only once this node listens; longer than CLUSTER_URL_MAX it
 * is cut off. Any thread. */
void cluster_set_url(struct cluster *cluster, const char *url);

/*
 * The nodes with a heartbeat within lease_ms, this one included, as of the last own heartbeat: a
 * copy, malloc. Any thread; no query.
 */
enum err_code cluster_nodes(struct cluster *cluster, struct cluster_node **nodes, size_t *count,
                            struct err *err);

/* ---- numbers --------------------------------------------------------------------------------- */

enum { CLUSTER_APPEND_BUCKETS = 20 };

struct cluster_stats {
    bool is_away;
    double contact_age_s; /* since the engine last answered; INFINITY: never */
    uint64_t connects, losses;
    uint64_t appends, entries;  /* transactions, and entries in them, that were acknowledged */
    uint64_t conflicts, fenced; /* transactions refused */
    uint64_t in_doubt, retried; /* connections lost under an append; appends sent again */
    uint64_t entries_read;
    uint64_t notifications, polls;
    uint64_t snapshots_put, snapshots_read, blobs_put, blobs_read;
    uint64_t leases_held, leases_taken, leases_refused, leases_lost;
    uint64_t append_us_sum;
    uint64_t append_count[CLUSTER_APPEND_BUCKETS]; /* bucket i: below 2^i · 64 µs; last open */
};
/* Any thread. */
void cluster_stats(struct cluster *cluster, struct cluster_stats *out);

#endif
