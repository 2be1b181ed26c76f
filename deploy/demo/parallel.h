/*
 * Work over rows on several threads. Each row is done exactly once; which thread does it is left
 * open, so a row's result may depend on nothing but its index and on what is not written meanwhile.
 */
#ifndef KOTA_DEMO_PARALLEL_H
#define KOTA_DEMO_PARALLEL_H

#include <stdint.h>

enum { PARALLEL_THREADS_MAX = 256 };

/* Rows first <= row < end. */
typedef void (*parallel_work)(void *context, uint32_t first, uint32_t end);

/*
 * Calls work over 0..rows in pieces of `piece` >= 1 rows on up to `threads` threads, the caller's
 * included, and returns when all is done. When a thread cannot be started the others do its work.
 */
void parallel_rows(uint32_t threads, uint32_t rows, uint32_t piece, parallel_work work,
                   void *context);

#endif
