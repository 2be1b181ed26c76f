/*
 * Slabs.
 *
 * Problem: a heightfield of 8192² samples is 1,024 tiles of 275 kB that are freed one by one. With
 * malloc three quarters of building it are page faults (67,000 of 4 kB, 100 of 133 ms), and an edit
 * pays them again for each tile it remakes. Approach: mappings of 8 MiB, aligned to their size, so
 * that a block finds its slab by its address; MADV_HUGEPAGE; a bit for each free block. Slabs with
 * a free block are in a list; the first is used. Pages are first touched by the caller, outside the
 * lock.
 *
 * 29 tiles of 286 kB fill 8 MiB but for 1 %; of 4 MiB, which 14 of them fill, 5 % were lost, and
 * huge pages make it memory that is there. What no block has touched takes none.
 *
 * A slab stays while one of its blocks is used: at worst a mostly deleted or replaced field holds
 * more than it needs, but its free blocks are reused first.
 *
 * Address sanitizer sees each block as one of malloc's: it then detects use after free.
 *
 * Tried and dropped: mallopt (a threshold beyond the tiles' size makes the heap keep freed memory
 * under a living block, without use of huge pages), one mapping for a field (cannot be given back
 * tile by tile without splitting huge pages).
 */
#include "base/slab.h"

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__wasm__) /* has no mappings */
#define SLAB_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_IS_MALLOC 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SLAB_IS_MALLOC 1
#endif

#ifdef SLAB_IS_MALLOC

void *slab_alloc(struct slab_pool *pool, size_t bytes)
{
    (void)pool;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void slab_free(struct slab_pool *pool, void *block)
{
    (void)pool;
    free(block);
}

#else

#include <sys/mman.h>

/* At the start of its SLAB_BYTES, before the blocks; pool->lock guards all. */
struct slab {
    struct slab *next, **link; /* in pool->partial: the pointer to this; else NULL */
    uint64_t free, all;        /* a bit for each block */
};

enum { HEADER_BYTES = 64 };
_Static_assert(sizeof(struct slab) <= HEADER_BYTES, "the blocks begin after the header");

static void list_add(struct slab_pool *pool, struct slab *slab)
{
    slab->next = pool->partial;
    slab->link = &pool->partial;
    if (slab->next != NULL)
        slab->next->link = &slab->next;
    pool->partial = slab;
}

static void list_remove(struct slab *slab)
{
    *slab->link = slab->next;
    if (slab->next != NULL)
        slab->next->link = slab->link;
    slab->link = NULL;
}

/* SLAB_BYTES at a multiple of themselves. */
static struct slab *slab_map(size_t block_bytes)
{
    char *map =
        mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)map & (SLAB_BYTES - 1);
    struct slab *slab = (struct slab *)(void *)(map + before);

    if (before > 0)
        munmap(map, before);
    munmap(map + before + SLAB_BYTES, SLAB_BYTES - before);
    madvise(slab, SLAB_BYTES, MADV_HUGEPAGE); /* where there are none, small pages do */
    size_t blocks = (SLAB_BYTES - HEADER_BYTES) / block_bytes;

    slab->all = ~0ull >> (64 - (blocks < 64 ? blocks : 64));
    slab->free = slab->all;
    slab->link = NULL;
    return slab;
}

/* A slab with a free block, at the head of the list; NULL without memory. */
static struct slab *partial_slab(struct slab_pool *pool)
{
    if (pool->partial == NULL) {
        struct slab *slab = slab_map(pool->block_bytes);

        if (slab == NULL)
            return NULL;
        list_add(pool, slab);
        pool->empty++;
    }
    return pool->partial;
}

void *slab_alloc(struct slab_pool *pool, size_t bytes)
{
    size_t block_bytes = (bytes + 63) / 64 * 64;
    void *block = NULL;

    CHECK(bytes >= SLAB_BYTES / 128 && bytes <= SLAB_BYTES / 2 - HEADER_BYTES);
    pthread_mutex_lock(&pool->lock);
    if (pool->block_bytes == 0)
        pool->block_bytes = block_bytes; /* once, before there is a block: slab_free reads it */
    CHECK(pool->block_bytes == block_bytes);
    struct slab *slab = partial_slab(pool);

    if (slab != NULL) {
        unsigned i = (unsigned)__builtin_ctzll(slab->free);

        pool->empty -= slab->free == slab->all;
        slab->free &= slab->free - 1;
        if (slab->free == 0)
            list_remove(slab);
        block = (char *)slab + HEADER_BYTES + i * block_bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    return block;
}

void slab_free(struct slab_pool *pool, void *block)
{
    if (block == NULL)
        return;
    size_t offset = (uintptr_t)block & (SLAB_BYTES - 1);
    struct slab *slab = (struct slab *)(void *)((char *)block - offset);
    uint64_t bit = 1ull << (offset - HEADER_BYTES) / pool->block_bytes;

    pthread_mutex_lock(&pool->lock);
    CHECK((slab->free & bit) == 0 && (slab->all & bit) != 0);
    slab->free |= bit;
    if (slab->link == NULL)
        list_add(pool, slab);
    bool is_given_back = slab->free == slab->all && pool->empty > 0;

    if (is_given_back)
        list_remove(slab);
    else
        pool->empty += slab->free == slab->all;
    pthread_mutex_unlock(&pool->lock);
    if (is_given_back)
        munmap(slab, SLAB_BYTES);
}

#endif
