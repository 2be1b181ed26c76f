/*
 * Shares by name: a hash table under a mutex, which is taken when a token is met for the first time
 * and when the shares are listed. A request only adds to its share's atomic numbers.
 */
#include "api/auth/share.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct shares {
    pthread_mutex_t mutex;
    struct share *buckets[BUCKETS]; /* by the hash of their names */
    uint32_t flow_last;
};

#define NS_A_SECOND 1e9

struct shares *shares_create(struct err *err)
{
    struct shares *shares = calloc(1, sizeof *shares);

    if (!shares) {
        err_set(err, ERR_NO_MEMORY, "no memory for the shares of tokens");
        return NULL;
    }
    pthread_mutex_init(&shares->mutex, NULL);
    return shares;
}

/* FNV-1a. */
static struct share **bucket_of(struct shares *shares, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &shares->buckets[hash % BUCKETS];
}

/* Drops shares without a reference whose buckets are full: a new one would be the same. */
static void drop_idle(struct share **at, uint64_t now_ns)
{
    while (*at) {
        struct share *share = *at;

        if (share->refs == 0 && atomic_load(&share->request_free_ns) <= now_ns &&
            atomic_load(&share->item_free_ns) <= now_ns) {
            *at = share->next;
            free(share);
        } else {
            at = &share->next;
        }
    }
}

void shares_destroy(struct shares *shares)
{
    if (!shares)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (shares->buckets[i]) {
            struct share *share = shares->buckets[i];

            shares->buckets[i] = share->next;
            free(share);
        }
    pthread_mutex_destroy(&shares->mutex);
    free(shares);
}

static struct share *add(struct shares *shares, struct share **bucket, const char *name)
{
    struct share *share = calloc(1, sizeof *share);

    if (!share)
        return NULL;
    strncpy(share->name, name, SHARE_NAME_MAX);
    share->flow = ++shares->flow_last;
    share->next = *bucket;
    *bucket = share;
    return share;
}

struct share *share_of(struct shares *shares, const char *name)
{
    struct share **bucket = bucket_of(shares, name), *share;

    pthread_mutex_lock(&shares->mutex);
    for (share = *bucket; share && strcmp(share->name, name) != 0;)
        share = share->next;
    if (!share) {
        drop_idle(bucket, monotonic_ns());
        share = add(shares, bucket, name);
    }
    if (share)
        share->refs++;
    pthread_mutex_unlock(&shares->mutex);
    return share;
}

void share_release(struct shares *shares, struct share *share)
{
    pthread_mutex_lock(&shares->mutex);
    share->refs--;
    pthread_mutex_unlock(&shares->mutex);
}

bool share_take(atomic_uint_fast64_t *free_ns, double rate, double n, uint64_t now_ns,
                double *wait_s)
{
    const double one_ns = NS_A_SECOND / rate, cost_ns = n * one_ns;
    const double room_ns = fmax(NS_A_SECOND, one_ns);
    uint_fast64_t was = atomic_load_explicit(free_ns, memory_order_relaxed);
    double ahead_ns;

    do {
        ahead_ns = (was > now_ns ? (double)(was - now_ns) : 0) + cost_ns;
        if (!(ahead_ns <= room_ns * (1 + 1e-9))) {
            *wait_s = (ahead_ns - room_ns) / NS_A_SECOND;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(free_ns, &was, now_ns + (uint64_t)ahead_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void shares_each(struct shares *shares, void (*f)(void *context, const struct share *share),
                 void *context)
{
    int count = 0;

    pthread_mutex_lock(&shares->mutex);
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct share *share = shares->buckets[i]; share; share = share->next)
            if (atomic_load(&share->requests) > 0 && count++ < SHARES_LISTED_MAX)
                f(context, share);
    pthread_mutex_unlock(&shares->mutex);
}
