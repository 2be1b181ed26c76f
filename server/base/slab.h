/*
 * Slabs: many large blocks of one size (tiles of terrain), out of huge pages.
 *
 * A block of 275 kB from malloc is a mapping of its own, or a piece of a heap that cannot shrink:
 * 68 page faults each time, or memory that is not returned to the system. A pool maps SLAB_BYTES at
 * once, with advice for huge pages, reuses free blocks, and unmaps a slab when none of its blocks
 * is used (but for one, kept for the next).
 */
#ifndef KOTA_BASE_SLAB_H
#define KOTA_BASE_SLAB_H

#include <pthread.h>
#include <stddef.h>

enum { SLAB_BYTES = 8 << 20 };

struct slab;

struct slab_pool {
    pthread_mutex_t lock;
    size_t block_bytes;   /* of the first block, and of all others */
    struct slab *partial; /* slabs with a free block; lock */
    unsigned empty;       /* how many of them have no block in use; lock */
};

#define SLAB_POOL_INIT                                                                             \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/*
 * A block of this size, aligned to 64 bytes, its content undefined. NULL without memory. The size
 * is the same in each call of one pool, between 64 KiB and 4 MiB; of less than 128 KiB a slab has
 * only 64 blocks. Any thread; O(1).
 */
void *slab_alloc(struct slab_pool *pool, size_t bytes);
void slab_free(struct slab_pool *pool, void *block); /* NULL is fine */

#endif
