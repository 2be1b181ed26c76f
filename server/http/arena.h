/*
 * The memory of one request: taken piece by piece, freed once. The first block belongs to the
 * owner, so a small request needs no malloc at all. One thread at a time.
 */
#ifndef KOTA_HTTP_ARENA_H
#define KOTA_HTTP_ARENA_H

#include <stddef.h>

struct http_arena_block;

struct http_arena {
    struct http_arena_block *blocks; /* all that were malloc'd */
    char *at;                        /* free part of the current block */
    size_t left_bytes;
    size_t total_bytes; /* of the malloc'd blocks */
    size_t limit_bytes;
    char *first;
    size_t first_bytes;
};

/* first[first_bytes] is borrowed for the arena's life and must be 16-byte aligned. */
void http_arena_init(struct http_arena *arena, char *first, size_t first_bytes, size_t limit_bytes);

#define HTTP_ARENA_ALIGN ((size_t)16)

/* For http_arena_alloc: where the current block has no room. */
void *http_arena_alloc_more(struct http_arena *arena, size_t bytes);

/* 16-byte aligned, not zeroed; NULL when malloc fails or the limit is reached. */
static inline void *http_arena_alloc(struct http_arena *arena, size_t bytes)
{
    size_t rounded = (bytes + !bytes + HTTP_ARENA_ALIGN - 1) & ~(HTTP_ARENA_ALIGN - 1);
    char *piece = arena->at;

    if (bytes > arena->left_bytes || rounded > arena->left_bytes)
        return http_arena_alloc_more(arena, bytes);
    arena->at += rounded;
    arena->left_bytes -= rounded;
    return piece;
}

/* For http_arena_reset. */
void http_arena_free_blocks(struct http_arena *arena);

/* Frees every block but the first; the arena can be used again. */
static inline void http_arena_reset(struct http_arena *arena)
{
    if (arena->blocks)
        http_arena_free_blocks(arena);
    arena->at = arena->first;
    arena->left_bytes = arena->first_bytes;
}

#endif
