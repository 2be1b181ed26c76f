/*
 * Memory of large arrays: in huge pages, where the system has them, so that a random read does not
 * miss the TLB, and so that the first write is a fault once in 2 MiB, not once in 4 KiB.
 */
#ifndef KOTA_BASE_HUGE_H
#define KOTA_BASE_HUGE_H

#include <stddef.h>

/* At two cache lines at least; to be given to free(). NULL: no memory. */
void *huge_alloc(size_t bytes);

#endif
