/*
 * Shares by name: how much of the daemon the requests under one name of a token have used. Tokens
 * of one name have one share, whatever list of tokens they come from.
 */
#ifndef KOTA_API_SHARE_H
#define KOTA_API_SHARE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHARE_NAME_MAX = 64, SHARES_LISTED_MAX = 100 };

/* One name. Its members are read and written by any thread; the name is constant. */
struct share {
    char name[SHARE_NAME_MAX + 1];
    uint32_t flow; /* above 0, no other share's: its queue at the workers */
    atomic_uint_fast64_t requests, items, refused;
    atomic_uint_fast64_t request_free_ns, item_free_ns; /* the buckets, see share_take */
    uint32_t refs;                                      /* of the table's mutex */
    struct share *next;
};

struct shares;

/* NULL: ERR_NO_MEMORY. All calls: any thread. */
struct shares *shares_create(struct err *err);
/* No share may be held any more. */
void shares_destroy(struct shares *shares);

/* The share of that name, with a reference. NULL without memory. Those without one are kept while
 * their buckets are not full, so that a reload or a new token does not fill them. */
struct share *share_of(struct shares *shares, const char *name);
void share_release(struct shares *shares, struct share *share);

/*
 * Takes n requests or items from a bucket that is refilled at `rate` a second and holds one
 * second's worth, at least one. False: nothing was taken, and *wait_s is when it may be tried again
 * (for ever too early where n is more than the bucket holds).
 *
 * free_ns is a member of a share: the time at which the bucket will be full again. Lock-free.
 * Source: the generic cell rate algorithm (ITU-T I.371), the token bucket in one number.
 */
bool share_take(atomic_uint_fast64_t *free_ns, double rate, double n, uint64_t now_ns,
                double *wait_s);

/* Calls f for at most SHARES_LISTED_MAX names under which something was asked. */
void shares_each(struct shares *shares, void (*f)(void *context, const struct share *share),
                 void *context);

#endif
