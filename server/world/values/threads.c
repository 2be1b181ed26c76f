/*
 * Threads are made for each run and joined at its end: some 30 µs each, so a run is worth a
 * millisecond of work. Where one cannot be made there are fewer.
 */
#include "world/values/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct run {
    void (*work)(void *context, size_t part);
    void *context;
    size_t parts;
    atomic_size_t next;
};

static bool part_do(struct run *run)
{
    size_t part = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);

    if (part >= run->parts)
        return false;
    run->work(run->context, part);
    return true;
}

static void *helper(void *context)
{
    while (part_do(context))
        continue;
    return NULL;
}

static enum err_code parts_run(struct crew *crew, struct pace *pace,
                               void (*work)(void *context, size_t part), void *context,
                               size_t parts, struct err *err)
{
    const struct threads *threads = (const struct threads *)(const void *)crew;
    struct run run = {.work = work, .context = context, .parts = parts};
    pthread_t helpers[THREADS_MAX];
    unsigned started = 0;
    enum err_code code = ERR_OK;

    atomic_init(&run.next, 0);
    while (started + 1 < threads->count && started < THREADS_MAX && started + 1 < parts &&
           pthread_create(&helpers[started], NULL, helper, &run) == 0)
        started++;
    while (code == ERR_OK && part_do(&run)) {
        size_t begun = atomic_load_explicit(&run.next, memory_order_relaxed);

        pace_reach(pace, begun < parts ? begun : parts, parts);
        code = pace_step(pace, PACE_UNITS, err);
    }
    if (code != ERR_OK)
        atomic_store_explicit(&run.next, parts, memory_order_relaxed);
    for (unsigned i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    return code;
}

struct threads threads_of_machine(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return (struct threads){{parts_run}, count > 1 ? (unsigned)count : 1};
}
