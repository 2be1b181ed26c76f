/*
 * The queue of requests that wait for the device of the patches.
 *
 * Problem: the device is opened with the first patch, and OpenGL takes a second or more, longer on
 * few cores; a client that requested a patch then had to retry. Approach: all checks without the
 * device are done first (patch_decode.c); the request is deferred, so that it holds no loop and no
 * worker, and waits here. One thread runs them one after another once the device is open, which
 * keeps their order; it starts with the first request that waits, and then sleeps until the end. It
 * runs the whole call again, on the snapshot that the request has pinned: auto may choose another
 * scale when the size of the pool is known. All wait equally long at most, so the first of the
 * queue is the first whose time is over.
 *
 * Invariants: a held request is answered exactly once; after that its memory is not touched. A
 * queue that is destroyed is empty: the server waits for deferred requests before it ends.
 */
#include "api/calls/patch_wait_queue.h"

#include "base/check.h"
#include "base/timed_wait.h"
#include "base/clock.h"
#include "sand/sand.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A request that waits; in the request's memory. */
struct held {
    struct held *next;
    struct http_request *request;
    struct http_reply *reply;
    struct sand *sand;
    enum granular_scale scale;
    double until_s;
    bool (*again)(struct http_request *request, struct http_reply *reply);
};

struct patch_wait_queue {
    pthread_mutex_t mutex;
    pthread_cond_t is_wanted;
    pthread_t thread;
    bool has_thread, is_over;
    struct held *first, **last;
    size_t count; /* with the one that is being answered */
};

/* The request may be freed when this returns. */
static void answer(const struct held *held)
{
    struct http_request *request = held->request;
    struct err err = {.code = ERR_OK};

    sand_wait(held->sand, held->scale, held->until_s - monotonic_s(), &err);
    if (err.code == ERR_NO_DEVICE)
        err.code = ERR_OK; /* another node may have one */
    if (err.code == ERR_OK && http_request_is_abandoned(request))
        err_set(&err, ERR_BUSY, "given up: nobody waits for the answer");
    if (err.code != ERR_OK)
        http_reply_problem(held->reply, &err);
    else if (held->again(request, held->reply))
        return;
    http_request_finish(request);
}

static void *run(void *context)
{
    struct patch_wait_queue *queue = context;

    pthread_setname_np(pthread_self(), "patch queue");
    pthread_mutex_lock(&queue->mutex);
    while (!queue->is_over || queue->first) {
        struct held *held = queue->first;

        if (!held) {
            pthread_cond_wait(&queue->is_wanted, &queue->mutex);
            continue;
        }
        queue->first = held->next;
        if (!queue->first)
            queue->last = &queue->first;
        pthread_mutex_unlock(&queue->mutex);
        answer(held);
        pthread_mutex_lock(&queue->mutex);
        queue->count--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

struct patch_wait_queue *patch_wait_queue_create(struct err *err)
{
    struct patch_wait_queue *queue = calloc(1, sizeof *queue);

    if (!queue) {
        err_set(err, ERR_NO_MEMORY, "no memory for the queue of patches");
        return NULL;
    }
    pthread_mutex_init(&queue->mutex, NULL);
    timed_wait_init(&queue->is_wanted);
    queue->last = &queue->first;
    return queue;
}

void patch_wait_queue_destroy(struct patch_wait_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->mutex);
    CHECK(!queue->first);
    queue->is_over = true;
    pthread_cond_signal(&queue->is_wanted);
    pthread_mutex_unlock(&queue->mutex);
    if (queue->has_thread)
        pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->is_wanted);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

bool patch_wait_queue_is_busy(struct patch_wait_queue *queue)
{
    bool is;

    pthread_mutex_lock(&queue->mutex);
    is = queue->count > 0;
    pthread_mutex_unlock(&queue->mutex);
    return is;
}

/* The mutex is held. */
static enum err_code need_thread(struct patch_wait_queue *queue, struct err *err)
{
    sigset_t all, old;
    int failed;

    if (queue->has_thread)
        return ERR_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&queue->thread, NULL, run, queue);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return err_set(err, ERR_INTERNAL, "no thread for the queue of patches: %s",
                       strerror(failed));
    queue->has_thread = true;
    return ERR_OK;
}

/* The mutex is held. */
static void append(struct patch_wait_queue *queue, struct held *held)
{
    *queue->last = held;
    queue->last = &held->next;
    queue->count++;
    pthread_cond_signal(&queue->is_wanted);
}

static struct held *hold(struct http_request *request, struct http_reply *reply, struct sand *sand,
                         enum granular_scale scale,
                         bool (*again)(struct http_request *request, struct http_reply *reply),
                         struct err *err)
{
    struct held *held = http_request_alloc(request, sizeof *held);

    err->code = ERR_OK;
    if (!held)
        err_set(err, ERR_NO_MEMORY, "no memory to wait for the device");
    else
        *held = (struct held){.request = request,
                              .reply = reply,
                              .sand = sand,
                              .scale = scale,
                              .until_s = monotonic_s() + PATCH_WAIT_MS_MAX * 1e-3,
                              .again = again};
    return held;
}

enum err_code patch_wait_queue_add(
    struct patch_wait_queue *queue, struct http_request *request, struct http_reply *reply,
    struct sand *sand, enum granular_scale scale,
    bool (*again)(struct http_request *request, struct http_reply *reply), struct err *err)
{
    struct held *held = hold(request, reply, sand, scale, again, err);

    if (!held)
        return err->code;
    pthread_mutex_lock(&queue->mutex);
    if (need_thread(queue, err) == ERR_OK)
        append(queue, held);
    pthread_mutex_unlock(&queue->mutex);
    return err->code;
}

enum err_code patch_wait_queue_wait(
    struct patch_wait_queue *queue, struct call *call, enum granular_scale scale,
    bool (*again)(struct http_request *request, struct http_reply *reply), struct err *err)
{
    const size_t most = call_limits(call)->sand.orders_max;
    struct held *held = hold(call->request, call->reply, call->api->sand, scale, again, err);

    if (!held)
        return err->code;
    pthread_mutex_lock(&queue->mutex);
    if (queue->count >= most)
        err_limit(err, ERR_BUSY, (double)most, (double)queue->count,
                  "%zu requests wait for the device of the patches already", queue->count);
    else if (need_thread(queue, err) == ERR_OK) {
        http_request_defer(call->request); /* the queue may be faster than this thread */
        call->is_deferred = true;
        append(queue, held);
    }
    pthread_mutex_unlock(&queue->mutex);
    return err->code;
}
