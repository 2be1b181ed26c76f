/*
 * May long work continue, and how far is it? Only the caller has a clock and the client; the worker
 * calls this now and then.
 */
#ifndef KOTA_BASE_PACE_H
#define KOTA_BASE_PACE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* How far it is, for any thread to read. */
struct pace_progress {
    atomic_uint_fast64_t items; /* of all of the work; 0: not known yet */
    _Atomic double done;        /* share of the work, 0 to 1; never falls */
};

struct pace {
    enum err_code (*ask)(void *context, struct err *err); /* ERR_OK: continue; NULL: always */
    void *context;
    uint64_t done;                  /* units of work since the last call */
    struct pace_progress *progress; /* NULL: not reported */
    double first, share;            /* all that the worker does is this part of the progress */
    double from, to;                /* its stage is this part of that */
};

/* A unit is about 0.1 µs: the answer is at most a millisecond or two old. */
enum { PACE_UNITS = 10000 };

/* After `units` more of work; NULL: always continue. Returns the error as it is. */
static inline enum err_code pace_step(struct pace *pace, uint64_t units, struct err *err)
{
    if (pace == NULL || pace->ask == NULL || (pace->done += units) < PACE_UNITS)
        return ERR_OK;
    pace->done = 0;
    return pace->ask(pace->context, err);
}

/* The next stage of the work ends at this share of it; stages that are made again do not count. */
static inline void pace_stage(struct pace *pace, double end)
{
    if (pace == NULL || !(end > pace->to))
        return;
    pace->from = pace->to;
    pace->to = end;
}

/* So many parts of the stage are done. Of the caller's thread, as pace_step. */
static inline void pace_reach(struct pace *pace, size_t part, size_t parts)
{
    double now;

    if (pace == NULL || pace->progress == NULL)
        return;
    now = pace->from + (pace->to - pace->from) * (double)part / (double)parts;
    now = pace->first + pace->share * now;
    if (now > atomic_load_explicit(&pace->progress->done, memory_order_relaxed))
        atomic_store_explicit(&pace->progress->done, now, memory_order_relaxed);
}

/* How many items the work has, as soon as that is known. */
static inline void pace_items(struct pace *pace, uint64_t items)
{
    if (pace && pace->progress)
        atomic_store_explicit(&pace->progress->items, items, memory_order_relaxed);
}

/* All of it is done. */
static inline void pace_finish(struct pace *pace)
{
    if (pace && pace->progress)
        atomic_store_explicit(&pace->progress->done, 1, memory_order_relaxed);
}

#endif
