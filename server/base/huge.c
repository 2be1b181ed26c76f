/*
 * What is smaller than a huge page takes none, and of a larger one the last part is in small pages:
 * memory is worth more than that.
 */
#include "base/huge.h"

#include <stdlib.h>
#ifndef __wasm__
#include <sys/mman.h>
#endif

enum { LINES_BYTES = 128, HUGE_BYTES = 2 << 20 };

void *huge_alloc(size_t bytes)
{
    void *room;

    if (posix_memalign(&room, bytes < HUGE_BYTES ? LINES_BYTES : HUGE_BYTES, bytes))
        return NULL;
#ifndef __wasm__
    if (bytes >= HUGE_BYTES)
        (void)madvise(room, bytes - bytes % HUGE_BYTES, MADV_HUGEPAGE); /* or small pages do */
#endif
    return room;
}
