/*
 * A shared log in memory, in the place of server/replica/: for tests of what follows one, in one
 * process. It is linked before the library, whose functions it replaces.
 *
 * A test opens an engine; each cluster_create is a node at it. Faults are asked for by the fields
 * of fake_engine: away, an append that is lost before or after its commit, a log that forgets.
 */
#ifndef KOTA_TESTS_SUPPORT_FOLLOW_FAKE_CLUSTER_H
#define KOTA_TESTS_SUPPORT_FOLLOW_FAKE_CLUSTER_H

#include "replica/cluster.h"

#include <pthread.h>

enum { FAKE_ENTRIES_MAX = 4096, FAKE_LOCALES_MAX = 64, FAKE_BLOBS_MAX = 4096, FAKE_NODES_MAX = 8 };

struct fake_entry {
    struct cluster_entry entry; /* data and blobs are malloc */
};

struct fake_locale {
    char id[CLUSTER_ID_MAX + 1];
    uint64_t revision, first; /* first: of the entries */
    uint64_t snapshot;
    char snapshot_op[CLUSTER_OP_ID_MAX + 1];
    void *body;
    size_t body_bytes;
};

struct fake_blob {
    uint8_t hash[CLUSTER_HASH_BYTES];
    void *bytes;
    size_t length;
};

extern struct fake_engine {
    pthread_mutex_t mutex;
    char identity[33];
    bool is_away;
    bool is_away_for_adoption; /* as if it went away just before */
    bool loses_answer;         /* the next append commits, and its answer is lost: in doubt */
    bool loses_request;        /* the next append does not commit: in doubt as well */
    uint64_t stale_fence;
    int connects;
    struct fake_entry *entries[FAKE_ENTRIES_MAX];
    size_t entry_count;
    struct fake_locale locales[FAKE_LOCALES_MAX];
    size_t locale_count;
    struct fake_blob blobs[FAKE_BLOBS_MAX];
    size_t blob_count;
    struct cluster *nodes[FAKE_NODES_MAX];
    size_t appends, conflicts, holds, snapshots_put, snapshots_read, adoptions;
    struct cluster *holder; /* of all locales */
    /* Set by a test while nodes run. */
    _Atomic(struct cluster *) deaf; /* this node hears of no news */
    _Atomic bool hangs;             /* questions for heads are not answered */
    const char *rival;              /* a locale that another node has always just adopted */
    const char *lease_holder;       /* of all ground; NULL: nobody */
    size_t leases;                  /* that are held */
    /* Called before entries are read, without the mutex; NULL: nothing. */
    void (*_Atomic before_read)(struct cluster *node, const char *locale);
    /* Called before an append is looked at, without the mutex; NULL: nothing. */
    void (*_Atomic before_append)(struct cluster *node);
} fake;

void fake_set_away(bool is_away);

struct fake_entry *fake_entry_at(const char *locale, uint64_t revision);

/* Entries of a locale outside of [first, last] go. */
void fake_trim(const char *locale, uint64_t first, uint64_t last);

/* For tests, while nodes run: a standby that had less took over, and this is the last revision. */
void fake_fall_back(const char *locale, uint64_t last);

/* For tests, while nodes run: the first of the entries. */
uint64_t fake_first(const char *locale);

/* The engine is a new one: empty, with another identity. */
void fake_reset(void);

#endif
