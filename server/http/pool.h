/*
 * The workers: threads that run handlers which would hold a loop, and the queue in front of them.
 */
#ifndef KOTA_HTTP_POOL_H
#define KOTA_HTTP_POOL_H

#include "http/http.h"

struct http_pool;
struct http_request;

/* Why a request is not taken. */
struct http_refusal {
    struct err err;      /* ERR_BUSY with limit and got */
    unsigned retry_in_s; /* when the queue will be shorter, 1 at least */
};

struct http_pool_numbers {
    uint64_t workers, busy, queued, wait_ms; /* wait_ms: of a new large request */
};

/* `returned` is called on a worker's thread for each request whose handler has returned. */
struct http_pool *http_pool_create(const struct http_limits *limits, size_t route_count,
                                   void (*returned)(struct http_request *request), struct err *err);
/* Joins the workers; nothing may wait or run any more. NULL is allowed. */
void http_pool_destroy(struct http_pool *pool);

/*
 * Would a request of that route, with so many bytes of body, be taken now? False: *why has the
 * reason. Cost O(workers); any thread.
 */
bool http_pool_has_room(struct http_pool *pool, size_t route, uint64_t body_bytes,
                        struct http_refusal *why);

/*
 * Queues a begun request. False, and *why, when it would wait too long or too many wait. A worker
 * runs its handler; when it has waited much longer than expected, or its client has gone, it gets a
 * problem document instead. Loop thread.
 */
bool http_pool_push(struct http_pool *pool, struct http_request *request, struct http_refusal *why);

/* Queues a request for its sink, among the short jobs. Never refused. Loop thread. */
void http_pool_push_sink(struct http_pool *pool, struct http_request *request);

void http_pool_numbers(struct http_pool *pool, struct http_pool_numbers *out);

#endif
