/*
 * Threads for parallel loops.
 *
 * A run is a number (generation), a job and a share of the pieces for each thread. The caller
 * publishes the job under the lock, works itself, and waits until the helpers that joined have
 * left.
 * A thread does its own share first, nearly the same items in each run, whose memory is in its
 * core's cache; then it takes pieces from the end of the other shares. (With one counter for all,
 * each step moved spheres and lists from core to core: two threads were slower than one.)
 * Threads wait for each other on a condition, after a short spin: the next loop of a solver's step
 * usually comes within microseconds, and a sleeping thread takes longer than that to wake.
 *
 * Helpers are started by the first run: they take the niceness of the thread that runs, which may
 * have lowered it after it made them.
 *
 * Invariants: job, context, count and piece change only while `inside` is 0 and no helper can join
 * (joining needs the lock and a generation that it has not seen).
 */
#include "sand/engine_c/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"

enum { WORKERS_MAX = 64, SPINS = 200, CACHE_LINE_BYTES = 64 };

/* Pieces that one thread does first: from the front; others take from the end what it has left. */
struct share {
    _Alignas(CACHE_LINE_BYTES) _Atomic uint64_t left; /* first piece << 32 | end */
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t begun;   /* generation changed, or stop */
    pthread_cond_t left;    /* inside became 0 */
    atomic_uint generation; /* written under lock */
    atomic_uint inside;     /* helpers in the run; written under lock */
    bool stop;              /* lock */

    workers_job *job;
    void *context;
    uint32_t count, piece;
    struct share share[WORKERS_MAX + 1]; /* of the thread that runs, then of each helper */

    unsigned wanted, helpers; /* helpers: 0 until the first run; of the thread that runs */
    struct helper {
        struct workers *workers;
        unsigned share;
        pthread_t thread;
    } helper[WORKERS_MAX];
};

static void share_work(struct workers *workers, unsigned share, bool own)
{
    uint64_t left = atomic_load(&workers->share[share].left);

    while (left >> 32 < (uint32_t)left) {
        const uint64_t after = own ? left + ((uint64_t)1 << 32) : left - 1;

        if (!atomic_compare_exchange_weak(&workers->share[share].left, &left, after))
            continue;
        const uint32_t piece = own ? (uint32_t)(left >> 32) : (uint32_t)after;
        const uint32_t first = piece * workers->piece, rest = workers->count - first;

        workers->job(workers->context, first,
                     first + (rest < workers->piece ? rest : workers->piece));
        left = atomic_load(&workers->share[share].left);
    }
}

static void work(struct workers *workers, unsigned own)
{
    share_work(workers, own, true);
    for (unsigned i = 1; i <= workers->helpers; i++)
        share_work(workers, (own + i) % (workers->helpers + 1), false);
}

static void *helper(void *arg)
{
    const struct helper *self = arg;
    struct workers *workers = self->workers;
    unsigned seen = 0;

    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&workers->generation) == seen; i++)
            sched_yield();
        CHECK(pthread_mutex_lock(&workers->lock) == 0);
        while (!workers->stop && atomic_load(&workers->generation) == seen)
            CHECK(pthread_cond_wait(&workers->begun, &workers->lock) == 0);
        if (workers->stop) {
            CHECK(pthread_mutex_unlock(&workers->lock) == 0);
            return NULL;
        }
        seen = atomic_load(&workers->generation);
        atomic_fetch_add(&workers->inside, 1);
        CHECK(pthread_mutex_unlock(&workers->lock) == 0);

        work(workers, self->share);

        CHECK(pthread_mutex_lock(&workers->lock) == 0);
        if (atomic_fetch_sub(&workers->inside, 1) == 1)
            CHECK(pthread_cond_signal(&workers->left) == 0);
        CHECK(pthread_mutex_unlock(&workers->lock) == 0);
    }
}

struct workers *workers_create(uint32_t threads)
{
    struct workers *workers = aligned_alloc(CACHE_LINE_BYTES, sizeof(*workers));

    if (!workers)
        return NULL;
    *workers = (struct workers){0};
    CHECK(pthread_mutex_init(&workers->lock, NULL) == 0);
    CHECK(pthread_cond_init(&workers->begun, NULL) == 0);
    CHECK(pthread_cond_init(&workers->left, NULL) == 0);
    workers->wanted = threads > WORKERS_MAX ? WORKERS_MAX : threads > 0 ? threads - 1 : 0;
    return workers;
}

static void helpers_start(struct workers *workers)
{
    for (; workers->helpers < workers->wanted; workers->helpers++) {
        struct helper *self = &workers->helper[workers->helpers];

        *self = (struct helper){.workers = workers, .share = workers->helpers + 1};
        if (pthread_create(&self->thread, NULL, helper, self) != 0)
            break;
    }
    workers->wanted = workers->helpers;
}

void workers_destroy(struct workers *workers)
{
    if (!workers)
        return;
    CHECK(pthread_mutex_lock(&workers->lock) == 0);
    workers->stop = true;
    CHECK(pthread_cond_broadcast(&workers->begun) == 0);
    CHECK(pthread_mutex_unlock(&workers->lock) == 0);
    for (unsigned i = 0; i < workers->helpers; i++)
        CHECK(pthread_join(workers->helper[i].thread, NULL) == 0);
    CHECK(pthread_cond_destroy(&workers->begun) == 0);
    CHECK(pthread_cond_destroy(&workers->left) == 0);
    CHECK(pthread_mutex_destroy(&workers->lock) == 0);
    free(workers);
}

void workers_run(struct workers *workers, uint32_t count, uint32_t piece, workers_job *job,
                 void *context)
{
    CHECK(piece >= 1);
    const uint64_t pieces = ((uint64_t)count + piece - 1) / piece;

    if (workers->helpers < workers->wanted && count > piece)
        helpers_start(workers);
    if (workers->helpers == 0 || count <= piece) {
        if (count > 0)
            job(context, 0, count);
        return;
    }
    const unsigned threads = workers->helpers + 1;

    CHECK(pthread_mutex_lock(&workers->lock) == 0);
    /* a late worker of the run before may just check for work that is left of it */
    while (atomic_load(&workers->inside) > 0)
        CHECK(pthread_cond_wait(&workers->left, &workers->lock) == 0);
    workers->job = job;
    workers->context = context;
    workers->count = count;
    workers->piece = piece;
    for (unsigned i = 0; i < threads; i++) {
        atomic_store(&workers->share[i].left,
                     pieces * i / threads << 32 | pieces * (i + 1) / threads);
    }
    atomic_fetch_add(&workers->generation, 1);
    CHECK(pthread_cond_broadcast(&workers->begun) == 0);
    CHECK(pthread_mutex_unlock(&workers->lock) == 0);

    work(workers, 0);

    for (int i = 0; i < SPINS && atomic_load(&workers->inside) > 0; i++)
        sched_yield();
    CHECK(pthread_mutex_lock(&workers->lock) == 0);
    while (atomic_load(&workers->inside) > 0)
        CHECK(pthread_cond_wait(&workers->left, &workers->lock) == 0);
    CHECK(pthread_mutex_unlock(&workers->lock) == 0);
}
