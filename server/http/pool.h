/*
 * The workers: threads that run handlers which would hold a loop, and the queue in front of them.
 */
#ifndef KOTA_HTTP_POOL_H
#define KOTA_HTTP_POOL_H

#include "http/http.h"

struct http_pool;
struct http_request;

struct http_pool_numbers {
    uint64_t workers, busy, queued, wait_ms; /* wait_ms: of a new large request */
};

/* `returned` is called on a worker's thread for each request whose handler has returned. */
struct http_pool *http_pool_create(const struct http_limits *limits, size_t route_count,
                                   void (*returned)(struct http_request *request), struct err *err);
/* Joins the workers; nothing may wait or run any more. NULL is allowed. */
void http_pool_destroy(struct http_pool *pool);

/*
 * Would that request, with so many bytes of body, be taken now? False: *err is ERR_BUSY with limit,
 * got and when its queue will be shorter. Cost O(workers); any thread.
 */
bool http_pool_has_room(struct http_pool *pool, const struct http_request *request,
                        uint64_t body_bytes, struct err *err);

/*
 * Queues a begun request. False, and *err, when it would wait too long or too many wait. A worker
 * runs its handler; when it has waited much longer than expected, or its client has gone, it gets a
 * problem document instead. Loop thread.
 */
bool http_pool_push(struct http_pool *pool, struct http_request *request, struct err *err);

/* Queues a request for its sink, among the short jobs. Never refused. Loop thread. */
void http_pool_push_sink(struct http_pool *pool, struct http_request *request);

void http_pool_numbers(struct http_pool *pool, struct http_pool_numbers *out);

#endif
