/*
 * Requests for patches while the device is being opened: they wait in a queue, and are answered in
 * order of arrival, as soon as the device is known.
 */
#ifndef KOTA_API_PATCH_WAIT_QUEUE_H
#define KOTA_API_PATCH_WAIT_QUEUE_H

#include "api/call.h"
#include "sand/material.h"
#include "sand/sand.h"

/* How long a request waits at most: ERR_BUSY then. */
#define PATCH_WAIT_MS_MAX 10000u

struct patch_wait_queue;

/* NULL: ERR_NO_MEMORY. */
struct patch_wait_queue *patch_wait_queue_create(struct err *err);
/* Joins its thread, if there ever was one; nothing may wait any more. NULL is fine. */
void patch_wait_queue_destroy(struct patch_wait_queue *queue);

/* Does a request wait? Later ones queue after them. Any thread. */
bool patch_wait_queue_is_busy(struct patch_wait_queue *queue);

/*
 * Defers the request of this call until there is a pool of that scale. Later `again` is called
 * once with it on the queue's thread, as the handler: true when another thread finishes the
 * request, false when its answer is complete. Where the pool is not there in time, the request is
 * answered here (ERR_BUSY), and when the daemon stops. ERR_BUSY: orders_max wait already;
 * ERR_NO_MEMORY, ERR_INTERNAL (no thread): it is not deferred.
 */
enum err_code patch_wait_queue_wait(
    struct patch_wait_queue *queue, struct call *call, enum granular_scale scale,
    bool (*again)(struct http_request *request, struct http_reply *reply), struct err *err);

/*
 * The same for a request that is deferred already, and however many wait. ERR_NO_MEMORY,
 * ERR_INTERNAL: it is still the caller's. Any thread.
 */
enum err_code patch_wait_queue_add(
    struct patch_wait_queue *queue, struct http_request *request, struct http_reply *reply,
    struct sand *sand, enum granular_scale scale,
    bool (*again)(struct http_request *request, struct http_reply *reply), struct err *err);

#endif
