/*
 * May long work continue? Only the caller has a clock and the client; the worker calls this now and
 * then.
 */
#ifndef KOTA_BASE_PACE_H
#define KOTA_BASE_PACE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct pace {
    enum err_code (*ask)(void *context, struct err *err); /* ERR_OK: continue */
    void *context;
    uint64_t done; /* units of work since the last call */
};

/* A unit is about 0.1 µs: the answer is at most a millisecond or two old. */
enum { PACE_UNITS = 10000 };

/* After `units` more of work; NULL: always continue. Returns the error as it is. */
static inline enum err_code pace_step(struct pace *pace, uint64_t units, struct err *err)
{
    if (pace == NULL || (pace->done += units) < PACE_UNITS)
        return ERR_OK;
    pace->done = 0;
    return pace->ask(pace->context, err);
}

#endif
