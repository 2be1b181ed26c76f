/*
 * Memory of large arrays with random reads: in huge pages, where the system has them, so that a
 * read does not miss the TLB.
 */
#ifndef KOTA_BASE_HUGE_H
#define KOTA_BASE_HUGE_H

#include <stddef.h>

/* At two cache lines at least; to be given to free(). NULL: no memory. */
void *huge_alloc(size_t bytes);

#endif
