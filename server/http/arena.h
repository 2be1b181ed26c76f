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

/* 16-byte aligned, not zeroed; NULL when malloc fails or the limit is reached. */
void *http_arena_alloc(struct http_arena *arena, size_t bytes);

/* Frees every block but the first; the arena can be used again. */
void http_arena_reset(struct http_arena *arena);

#endif
