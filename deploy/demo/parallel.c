/*
 * Rows are handed out by one atomic counter, in pieces: uneven rows (sky and mountain in a picture)
 * still end together, and there is no queue to own. Threads are started for each call; a call
 * is tens of milliseconds of work and more, a start some tens of microseconds.
 */
#include "deploy/demo/parallel.h"

#include "base/check.h"

#include <pthread.h>
#include <stdatomic.h>

struct parallel_job {
    _Atomic uint32_t next; /* the first row that is not taken */
    uint32_t rows, piece;
    parallel_work work;
    void *context;
};

static void *parallel_thread(void *argument)
{
    struct parallel_job *job = argument;

    for (;;) {
        uint32_t first = atomic_fetch_add_explicit(&job->next, job->piece, memory_order_relaxed);
        uint32_t left;

        if (first >= job->rows)
            return NULL;
        left = job->rows - first;
        job->work(job->context, first, first + (left < job->piece ? left : job->piece));
    }
}

void parallel_rows(uint32_t threads, uint32_t rows, uint32_t piece, parallel_work work,
                   void *context)
{
    struct parallel_job job = {.rows = rows, .piece = piece, .work = work, .context = context};
    pthread_t started[PARALLEL_THREADS_MAX];
    uint32_t count = 0;

    /* The counter overshoots by one piece a thread at most; it must not wrap. */
    CHECK(piece >= 1 && threads <= PARALLEL_THREADS_MAX &&
          (uint64_t)rows + (uint64_t)piece * (threads + 1) <= UINT32_MAX);
    while (count + 1 < threads && (uint64_t)(count + 1) * piece < rows &&
           !pthread_create(&started[count], NULL, parallel_thread, &job))
        count++;
    parallel_thread(&job);
    for (uint32_t i = 0; i < count; i++)
        CHECK(!pthread_join(started[i], NULL));
}
