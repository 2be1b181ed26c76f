/*
 * Output of a connection: see output.h.
 *
 * Answers to pipelined requests are put into the same 16 KiB chunk and leave with one system call.
 * Chunks come from a pool of the loop and go back as soon as they are sent, so an idle connection
 * holds none. A large body keeps its own memory and only gets a chunk header.
 *
 * Invariants: bytes is the sum of the chunks' lengths; a chunk of length 0 is never in the list
 * except as the tail, between reserve and advance.
 */
#include "http/output.h"

#include "base/check.h"

#include <stdlib.h>

#define POOL_CHUNKS_MAX 64

bool http_budget_take(struct http_budget *budget, size_t bytes)
{
    size_t held = atomic_fetch_add_explicit(&budget->held, bytes, memory_order_relaxed) + bytes;

    if (held <= atomic_load_explicit(&budget->most, memory_order_relaxed))
        return true;
    http_budget_give(budget, bytes);
    return false;
}

void http_budget_give(struct http_budget *budget, size_t bytes)
{
    atomic_fetch_sub_explicit(&budget->held, bytes, memory_order_relaxed);
}

static void append(struct http_output *output, struct http_chunk *chunk)
{
    chunk->next = NULL;
    if (output->tail)
        output->tail->next = chunk;
    else
        output->head = chunk;
    output->tail = chunk;
}

static struct http_chunk *take_chunk(struct http_chunk_pool *pool)
{
    struct http_chunk *chunk = pool->free;

    if (chunk) {
        pool->free = chunk->next;
        pool->count--;
    } else {
        chunk = malloc(sizeof *chunk + HTTP_OUTPUT_CHUNK_BYTES);
        if (!chunk)
            return NULL;
    }
    chunk->at = chunk->bytes;
    chunk->length = 0;
    chunk->capacity = HTTP_OUTPUT_CHUNK_BYTES;
    chunk->owned = (struct http_owned){NULL, NULL, 0};
    return chunk;
}

static void drop_chunk(struct http_chunk_pool *pool, struct http_chunk *chunk)
{
    if (chunk->owned.charged)
        http_budget_give(chunk->owned.budget, chunk->owned.charged);
    if (chunk->owned.at)
        free(chunk->owned.at);
    if (chunk->capacity && pool->count < POOL_CHUNKS_MAX) {
        chunk->next = pool->free;
        pool->free = chunk;
        pool->count++;
        return;
    }
    free(chunk);
}

char *http_output_reserve(struct http_output *output, struct http_chunk_pool *pool, size_t bytes)
{
    struct http_chunk *tail = output->tail;

    CHECK(bytes <= HTTP_OUTPUT_CHUNK_BYTES);
    if (tail && tail->capacity) {
        size_t used = (size_t)(tail->at - tail->bytes) + tail->length;

        if (tail->capacity - used >= bytes)
            return tail->bytes + used;
    }
    tail = take_chunk(pool);
    if (!tail)
        return NULL;
    append(output, tail);
    return tail->bytes;
}

void http_output_advance(struct http_output *output, size_t bytes)
{
    output->tail->length += bytes;
    output->bytes += bytes;
}

bool http_output_hand_over(struct http_output *output, const void *at, size_t length,
                           struct http_owned owned)
{
    struct http_chunk *chunk = malloc(sizeof *chunk);

    if (!chunk)
        return false;
    chunk->at = at;
    chunk->length = length;
    chunk->capacity = 0;
    chunk->owned = owned;
    append(output, chunk);
    output->bytes += length;
    return true;
}

unsigned http_output_buffers(const struct http_output *output, size_t most, uv_buf_t *buffers,
                             unsigned count)
{
    unsigned used = 0;

    for (const struct http_chunk *chunk = output->head; chunk && used < count && most > 0;
         chunk = chunk->next) {
        const size_t length = chunk->length < most ? chunk->length : most;

        buffers[used++] = (uv_buf_t){.base = (char *)(uintptr_t)chunk->at, .len = length};
        most -= length;
    }
    return used;
}

void http_output_sent(struct http_output *output, struct http_chunk_pool *pool, size_t bytes)
{
    CHECK(bytes <= output->bytes);
    output->bytes -= bytes;
    while (output->head && bytes >= output->head->length) {
        struct http_chunk *chunk = output->head;

        bytes -= chunk->length;
        output->head = chunk->next;
        if (!output->head)
            output->tail = NULL;
        drop_chunk(pool, chunk);
    }
    if (bytes) {
        output->head->at += bytes;
        output->head->length -= bytes;
    }
}

void http_output_clear(struct http_output *output, struct http_chunk_pool *pool)
{
    http_output_sent(output, pool, output->bytes);
}

void http_chunk_pool_finish(struct http_chunk_pool *pool)
{
    while (pool->free) {
        struct http_chunk *chunk = pool->free;

        pool->free = chunk->next;
        free(chunk);
    }
    pool->count = 0;
}
