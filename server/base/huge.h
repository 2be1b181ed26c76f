/*
 * Memory of large arrays that are read in no order: in huge pages, where the system has any for who
 * asks, so that a look at a place does not wait for where its page is.
 */
#ifndef KOTA_BASE_HUGE_H
#define KOTA_BASE_HUGE_H

#include <stddef.h>

/* At a cache line at least; to be given to free(). NULL: no memory. */
void *huge_alloc(size_t bytes);

#endif
