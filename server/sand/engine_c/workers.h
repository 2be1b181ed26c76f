#ifndef KOTA_SAND_WORKERS_H
#define KOTA_SAND_WORKERS_H

/*
 * A few threads that stay, for many short pieces of parallel work: a step of the solver has three
 * and takes a millisecond.
 */

#include <stdint.h>

struct workers;

/* Items first <= item < end; which thread does them is left open. */
typedef void workers_job(void *context, uint32_t first, uint32_t end);

/*
 * `threads` counts the caller; 0 counts as 1. The first run starts the others, with the niceness of
 * its caller; those that cannot be started are done without. NULL without memory.
 */
struct workers *workers_create(uint32_t threads);

/* NULL does nothing. */
void workers_destroy(struct workers *workers);

/* Does items 0..count in pieces of `piece` >= 1 on all threads; returns when all is done. One
   thread makes all runs. */
void workers_run(struct workers *workers, uint32_t count, uint32_t piece, workers_job *job,
                 void *context);

#endif
