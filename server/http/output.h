/*
 * Bytes that wait to be sent on one connection: a list of chunks, small ones filled in place, large
 * bodies handed over without a copy.
 */
#ifndef KOTA_HTTP_OUTPUT_H
#define KOTA_HTTP_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define HTTP_OUTPUT_CHUNK_BYTES ((size_t)16 * 1024)

/* Bytes that the large answers of a server hold together. */
struct http_budget {
    atomic_size_t held;
    atomic_size_t most;
};

/* Adds `bytes` if they fit; any thread. */
bool http_budget_take(struct http_budget *budget, size_t bytes);
void http_budget_give(struct http_budget *budget, size_t bytes);

/* Memory of malloc() and its charge to the budget. */
struct http_owned {
    void *at; /* NULL: none */
    struct http_budget *budget;
    size_t charged;
};

struct http_chunk {
    struct http_chunk *next;
    const char *at; /* still to be sent */
    size_t length;
    size_t capacity;         /* of bytes[]; 0 when `at` is memory of another kind */
    struct http_owned owned; /* freed with the chunk */
    char bytes[];
};

/* Free chunks of one loop. Zeroed before first use. */
struct http_chunk_pool {
    struct http_chunk *free;
    size_t count;
};

struct http_output {
    struct http_chunk *head, *tail;
    size_t bytes; /* still to be sent */
};

/* Room for `bytes` (at most HTTP_OUTPUT_CHUNK_BYTES) in one piece; NULL without memory. */
char *http_output_reserve(struct http_output *output, struct http_chunk_pool *pool, size_t bytes);
/* Tells how much of the last reserve was written. */
void http_output_advance(struct http_output *output, size_t bytes);
/* Memory that outlives the output, or that it owns from here on. False without memory. */
bool http_output_hand_over(struct http_output *output, const void *at, size_t length,
                           struct http_owned owned);
/* Up to count buffers in order, of `most` bytes together; returns how many. */
unsigned http_output_buffers(const struct http_output *output, size_t most, uv_buf_t *buffers,
                             unsigned count);
/* The first `bytes` have been sent: frees them. */
void http_output_sent(struct http_output *output, struct http_chunk_pool *pool, size_t bytes);
void http_output_clear(struct http_output *output, struct http_chunk_pool *pool);
void http_chunk_pool_finish(struct http_chunk_pool *pool);

#endif
