/*
 * Threads for parallel loops.
 *
 * A run is a number (generation), a job and a counter of items that threads take pieces from. The
 * caller publishes the job under the lock, works itself, and waits until the helpers that joined
 * have left. Helpers wait on a condition, after a short spin: the next loop of a solver's step
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

enum { WORKERS_MAX = 64, SPINS = 200 };

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t begun;   /* generation changed, or stop */
    pthread_cond_t left;    /* inside became 0 */
    atomic_uint generation; /* written under lock */
    unsigned inside;        /* helpers in the run; lock */
    bool stop;              /* lock */

    workers_job *job;
    void *context;
    uint32_t count, piece;
    atomic_uint next;

    unsigned wanted, helpers; /* helpers: 0 until the first run; of the thread that runs */
    pthread_t thread[WORKERS_MAX];
};

static void work(struct workers *workers)
{
    for (;;) {
        uint32_t first = atomic_fetch_add(&workers->next, 1);

        /* pieces are counted, not items: no overflow near 2^32 */
        if ((uint64_t)first * workers->piece >= workers->count)
            return;
        first *= workers->piece;
        workers->job(workers->context, first,
                     workers->count - first > workers->piece ? first + workers->piece
                                                             : workers->count);
    }
}

static void *helper(void *arg)
{
    struct workers *workers = arg;
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
        workers->inside++;
        CHECK(pthread_mutex_unlock(&workers->lock) == 0);

        work(workers);

        CHECK(pthread_mutex_lock(&workers->lock) == 0);
        if (--workers->inside == 0)
            CHECK(pthread_cond_signal(&workers->left) == 0);
        CHECK(pthread_mutex_unlock(&workers->lock) == 0);
    }
}

struct workers *workers_create(uint32_t threads)
{
    struct workers *workers = calloc(1, sizeof(*workers));

    if (!workers)
        return NULL;
    CHECK(pthread_mutex_init(&workers->lock, NULL) == 0);
    CHECK(pthread_cond_init(&workers->begun, NULL) == 0);
    CHECK(pthread_cond_init(&workers->left, NULL) == 0);
    workers->wanted = threads > WORKERS_MAX ? WORKERS_MAX : threads > 0 ? threads - 1 : 0;
    return workers;
}

static void helpers_start(struct workers *workers)
{
    while (workers->helpers < workers->wanted &&
           pthread_create(&workers->thread[workers->helpers], NULL, helper, workers) == 0)
        workers->helpers++;
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
        CHECK(pthread_join(workers->thread[i], NULL) == 0);
    CHECK(pthread_cond_destroy(&workers->begun) == 0);
    CHECK(pthread_cond_destroy(&workers->left) == 0);
    CHECK(pthread_mutex_destroy(&workers->lock) == 0);
    free(workers);
}

void workers_run(struct workers *workers, uint32_t count, uint32_t piece, workers_job *job,
                 void *context)
{
    CHECK(piece >= 1);
    if (workers->helpers < workers->wanted && count > piece)
        helpers_start(workers);
    if (workers->helpers == 0 || count <= piece) {
        if (count > 0)
            job(context, 0, count);
        return;
    }
    CHECK(pthread_mutex_lock(&workers->lock) == 0);
    /* a late worker of the run before may just check for work that is left of it */
    while (workers->inside > 0)
        CHECK(pthread_cond_wait(&workers->left, &workers->lock) == 0);
    workers->job = job;
    workers->context = context;
    workers->count = count;
    workers->piece = piece;
    atomic_store(&workers->next, 0);
    atomic_fetch_add(&workers->generation, 1);
    CHECK(pthread_cond_broadcast(&workers->begun) == 0);
    CHECK(pthread_mutex_unlock(&workers->lock) == 0);

    work(workers);

    CHECK(pthread_mutex_lock(&workers->lock) == 0);
    while (workers->inside > 0)
        CHECK(pthread_cond_wait(&workers->left, &workers->lock) == 0);
    CHECK(pthread_mutex_unlock(&workers->lock) == 0);
}
