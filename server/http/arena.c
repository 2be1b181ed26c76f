/*
 * A bump allocator over a list of blocks: see arena.h.
 *
 * Small pieces come from the current block. A piece that does not fit opens a new block of
 * BLOCK_BYTES; a piece larger than half of that gets a block of its own, so that the rest of the
 * current one is not lost. Invariant: at is 16-byte aligned and left_bytes is a multiple of 16.
 * The limit counts malloc'd bytes, so that a hostile body cannot make a handler eat the machine.
 */
#include "http/arena.h"

#include "base/check.h"

#include <stdint.h>
#include <stdlib.h>

#define ALIGN HTTP_ARENA_ALIGN
#define BLOCK_BYTES ((size_t)32 * 1024)

struct http_arena_block {
    struct http_arena_block *next;
    size_t bytes;
    _Alignas(16) char data[];
};

void http_arena_init(struct http_arena *arena, char *first, size_t first_bytes, size_t limit_bytes)
{
    CHECK(((uintptr_t)first & (ALIGN - 1)) == 0);
    arena->blocks = NULL;
    arena->at = first;
    arena->left_bytes = arena->first_bytes = first_bytes & ~(ALIGN - 1);
    arena->total_bytes = 0;
    arena->limit_bytes = limit_bytes;
    arena->first = first;
}

static char *open_block(struct http_arena *arena, size_t bytes)
{
    struct http_arena_block *block;

    if (bytes > arena->limit_bytes - arena->total_bytes)
        return NULL;
    block = malloc(sizeof *block + bytes);
    if (!block)
        return NULL;
    block->bytes = bytes;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->total_bytes += bytes;
    return block->data;
}

void *http_arena_alloc_more(struct http_arena *arena, size_t bytes)
{
    char *piece;

    if (bytes > arena->limit_bytes)
        return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) & ~(ALIGN - 1) : ALIGN;
    if (bytes > BLOCK_BYTES / 2)
        return open_block(arena, bytes);
    piece = open_block(arena, BLOCK_BYTES);
    if (!piece)
        return NULL;
    arena->at = piece + bytes;
    arena->left_bytes = BLOCK_BYTES - bytes;
    return piece;
}

void http_arena_free_blocks(struct http_arena *arena)
{
    while (arena->blocks) {
        struct http_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
    arena->total_bytes = 0;
}
