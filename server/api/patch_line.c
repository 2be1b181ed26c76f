/*
 * The line of requests that wait for the device of the patches.
 *
 * Problem: OpenGL takes a second or more to open, longer where cores are short, while the ground is
 * served already; who asked for a patch then had to come back. Approach: what can be judged without
 * the device has been (patch_decode.c); the request is deferred, so that it holds no loop and no
 * worker, and waits here. One thread takes them one after another once the device is open, which
 * keeps their order; it is made for the first who waits, and then sleeps until the end. It runs the
 * whole call again, on the snapshot that the request has pinned: auto may choose another scale when
 * the size of the pool is known.
 * All wait equally long at most, so the first of the line is the first whose time is over.
 *
 * Invariants: a held request is answered exactly once; after that its memory is not touched. A line
 * that is destroyed is empty: the server waits for deferred requests before it ends.
 */
#include "api/patch_line.h"

#include "base/check.h"
#include "base/timed_wait.h"
#include "sand/sand.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One who waits; memory of its request. */
struct held {
    struct held *next;
    struct http_request *request;
    struct http_reply *reply;
    struct sand *sand;
    double until_s;
    bool (*again)(struct http_request *request, struct http_reply *reply);
};

struct patch_line {
    pthread_mutex_t mutex;
    pthread_cond_t is_wanted;
    pthread_t thread;
    bool has_thread, is_over;
    struct held *first, **last;
    size_t count; /* with the one that is being answered */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The request may be gone when this returns. */
static void answer(const struct held *held)
{
    struct http_request *request = held->request;
    struct err err = {.code = ERR_OK};

    sand_wait(held->sand, held->until_s - now_s(), &err);
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
    struct patch_line *line = context;

    pthread_setname_np(pthread_self(), "patch line");
    pthread_mutex_lock(&line->mutex);
    while (!line->is_over || line->first) {
        struct held *held = line->first;

        if (!held) {
            pthread_cond_wait(&line->is_wanted, &line->mutex);
            continue;
        }
        line->first = held->next;
        if (!line->first)
            line->last = &line->first;
        pthread_mutex_unlock(&line->mutex);
        answer(held);
        pthread_mutex_lock(&line->mutex);
        line->count--;
    }
    pthread_mutex_unlock(&line->mutex);
    return NULL;
}

struct patch_line *patch_line_create(struct err *err)
{
    struct patch_line *line = calloc(1, sizeof *line);

    if (!line) {
        err_set(err, ERR_NO_MEMORY, "no memory for the line of patches");
        return NULL;
    }
    pthread_mutex_init(&line->mutex, NULL);
    timed_wait_init(&line->is_wanted);
    line->last = &line->first;
    return line;
}

void patch_line_destroy(struct patch_line *line)
{
    if (!line)
        return;
    pthread_mutex_lock(&line->mutex);
    CHECK(!line->first);
    line->is_over = true;
    pthread_cond_signal(&line->is_wanted);
    pthread_mutex_unlock(&line->mutex);
    if (line->has_thread)
        pthread_join(line->thread, NULL);
    pthread_cond_destroy(&line->is_wanted);
    pthread_mutex_destroy(&line->mutex);
    free(line);
}

bool patch_line_is_busy(struct patch_line *line)
{
    bool is;

    pthread_mutex_lock(&line->mutex);
    is = line->count > 0;
    pthread_mutex_unlock(&line->mutex);
    return is;
}

/* The mutex is held. */
static enum err_code need_thread(struct patch_line *line, struct err *err)
{
    sigset_t all, old;
    int failed;

    if (line->has_thread)
        return ERR_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&line->thread, NULL, run, line);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return err_set(err, ERR_INTERNAL, "no thread for the line of patches: %s",
                       strerror(failed));
    line->has_thread = true;
    return ERR_OK;
}

enum err_code patch_line_wait(struct patch_line *line, struct call *call,
                              bool (*again)(struct http_request *request, struct http_reply *reply),
                              struct err *err)
{
    const size_t most = call_limits(call)->sand.orders_max;
    struct held *held = http_request_alloc(call->request, sizeof *held);

    if (!held)
        return err_set(err, ERR_NO_MEMORY, "no memory to wait for the device");
    *held = (struct held){.request = call->request,
                          .reply = call->reply,
                          .sand = call->api->sand,
                          .until_s = now_s() + PATCH_LINE_MS_MAX * 1e-3,
                          .again = again};
    err->code = ERR_OK;
    pthread_mutex_lock(&line->mutex);
    if (line->count >= most)
        err_limit(err, ERR_BUSY, (double)most, (double)line->count,
                  "%zu requests wait for the device of the patches already", line->count);
    else if (need_thread(line, err) == ERR_OK) {
        http_request_defer(call->request); /* the line may be faster than this thread */
        call->is_deferred = true;
        *line->last = held;
        line->last = &held->next;
        line->count++;
        pthread_cond_signal(&line->is_wanted);
    }
    pthread_mutex_unlock(&line->mutex);
    return err->code;
}
