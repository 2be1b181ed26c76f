/*
 * A copy of ground beside its daemon: the same questions to both, answers compared bit for bit.
 */
#ifndef KOTA_TESTS_REPLICA_COMPARE_H
#define KOTA_TESTS_REPLICA_COMPARE_H

#include "client/ground/kota-ground.h"
#include "client/lib/kota.h"
#include "support/random.h"

/* Where points are drawn, in the locale's frame. */
struct replica_place {
    const char *locale;
    bool has_heights;
    bool may_be_absent; /* the copy has bounds: what it says to be absent is left out */
    double min[3], max[3];
};

struct replica_count {
    uint64_t compared, differ, absent;
    char first[256]; /* the first difference */
};

/*
 * `count` questions of each kind; the two must be at one revision. False: the daemon refuses (its
 * message is in counted->first).
 */
bool replica_compare(struct kota_client *client, const struct kota_ground_view *view,
                     const struct replica_place *place, struct random *random, size_t count,
                     struct replica_count *counted);

#endif
