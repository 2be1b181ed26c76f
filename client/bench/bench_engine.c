/*
 * A load generator: epoll over plain sockets, one thread.
 *
 * Problem: a generator that costs more a request than the server hides every difference between
 * servers, and one that waits for an answer before it sends the next request hides every stall of
 * the server from its own latencies (coordinated omission).
 *
 * Approach: requests are ready bytes (bench_shots.h) and answers are only measured
 * (bench_answer.h), so a request costs a write, a read and a share of an epoll_wait.
 * Closed loop: each connection has `depth` requests on the way, written at once; when the last of
 * them is answered the next ones go. Open loop: request i is due at start + i / rate. Whatever
 * connection is free takes it; when none is, it waits, and its time runs from when it was due. Due
 * requests are sent after each read, so that a long iteration delays none of them.
 *
 * What is measured begins after the warm-up: an answer counts when its request was sent (open: due)
 * after that. The server's processor time is that of its process, user and system, to the
 * nanosecond (clock_getcpuclockid).
 *
 * Invariants: a connection holds the due times of its requests on the way in times[], in order; it
 * is in the list of free ones exactly when it may send in an open loop.
 */
#include "client/bench/bench_engine.h"

#include "base/clock.h"

#include "client/bench/bench_answer.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 * 1024)
#define EVENTS 64
#define CLOSED_WAIT_NS 100000000u
#define TELL_NS 100000000u
#define NS 1e9

struct lane {
    int fd;
    const char *unsent;
    size_t unsent_bytes;
    bool waits_to_write;
    size_t first, on_way; /* a ring in times[] */
    uint64_t *times;      /* [depth] ns */
    struct lane *next;    /* free */
    struct bench_answer answer;
};

struct engine {
    const struct bench_load *load;
    struct bench_result *result;
    struct lane *lanes;
    uint64_t *times;
    char *buffer;
    int epoll;
    size_t shot; /* the next one */
    struct lane *free, *last_free;
    uint64_t start_ns, measure_ns, end_ns;
    uint64_t sent, answered, sent_max;
    uint64_t last_answer_ns;
    bool is_measuring;
    clockid_t server_clock;
    double client_cpu_s, server_cpu_s; /* when measuring began */
    uint64_t measured_ns;
};

static double clock_s(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0)
        return NAN;
    return (double)now.tv_sec + (double)now.tv_nsec / NS;
}

/* ---- connections ----------------------------------------------------------------------------- */

static enum err_code lost(struct err *err, const char *what)
{
    return err_set(err, ERR_BUSY, "%s: %s", what, strerror(errno));
}

static enum err_code lane_open(struct engine *engine, struct lane *lane, struct err *err)
{
    const struct bench_load *load = engine->load;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane};
    struct timeval patience = {.tv_sec = (time_t)ceil(load->timeout_s)};
    int yes = 1;

    lane->fd = socket(load->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (lane->fd < 0)
        return lost(err, "no socket");
    setsockopt(lane->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(lane->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(lane->fd, (const struct sockaddr *)&load->address, load->address_length) != 0)
        return lost(err, "no connection");
    if (epoll_ctl(engine->epoll, EPOLL_CTL_ADD, lane->fd, &event) != 0)
        return lost(err, "epoll");
    return ERR_OK;
}

static enum err_code engine_open(struct engine *engine, struct err *err)
{
    const struct bench_load *load = engine->load;

    engine->lanes = calloc(load->connections, sizeof *engine->lanes);
    engine->times = calloc(load->connections * load->depth, sizeof *engine->times);
    engine->buffer = malloc(READ_BYTES);
    if (!engine->lanes || !engine->times || !engine->buffer)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < load->connections; i++) {
        engine->lanes[i].fd = -1;
        engine->lanes[i].times = engine->times + i * load->depth;
    }
    engine->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (engine->epoll < 0)
        return lost(err, "epoll");
    for (size_t i = 0; i < load->connections; i++)
        if (lane_open(engine, &engine->lanes[i], err))
            return err->code;
    return ERR_OK;
}

static void engine_close(struct engine *engine)
{
    for (size_t i = 0; engine->lanes && i < engine->load->connections; i++)
        if (engine->lanes[i].fd >= 0)
            close(engine->lanes[i].fd);
    if (engine->epoll >= 0)
        close(engine->epoll);
    free(engine->lanes);
    free(engine->times);
    free(engine->buffer);
}

/* ---- sending --------------------------------------------------------------------------------- */

static enum err_code want_write(struct engine *engine, struct lane *lane, bool wants,
                                struct err *err)
{
    struct epoll_event event = {.events = wants ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = lane};

    if (lane->waits_to_write == wants)
        return ERR_OK;
    lane->waits_to_write = wants;
    return epoll_ctl(engine->epoll, EPOLL_CTL_MOD, lane->fd, &event) == 0 ? ERR_OK
                                                                          : lost(err, "epoll");
}

static enum err_code send_rest(struct engine *engine, struct lane *lane, struct err *err)
{
    ssize_t sent = send(lane->fd, lane->unsent, lane->unsent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return lost(err, "a connection broke");
    if (sent > 0) {
        engine->result->bytes_out += (uint64_t)sent;
        lane->unsent += sent;
        lane->unsent_bytes -= (size_t)sent;
    }
    return want_write(engine, lane, lane->unsent_bytes > 0, err);
}

/* Puts `count` further requests on the way, in one write; nothing may be unsent. */
static enum err_code shoot(struct engine *engine, struct lane *lane, size_t count, uint64_t due_ns,
                           struct err *err)
{
    const struct bench_shots *shots = engine->load->shots;
    size_t depth = engine->load->depth;
    size_t start = shots->starts[engine->shot], end = shots->starts[engine->shot + count];

    for (size_t i = 0; i < count; i++)
        lane->times[(lane->first + lane->on_way++) % depth] = due_ns;
    engine->sent += count;
    engine->shot = (engine->shot + count) % shots->count;
    lane->unsent = shots->bytes + start;
    lane->unsent_bytes = end - start;
    return send_rest(engine, lane, err);
}

static enum err_code shoot_batch(struct engine *engine, struct lane *lane, uint64_t now,
                                 struct err *err)
{
    uint64_t left = engine->sent_max - engine->sent;
    size_t count = engine->load->depth;

    if (now >= engine->end_ns || left == 0)
        return ERR_OK;
    return shoot(engine, lane, count < left ? count : (size_t)left, now, err);
}

static bool may_shoot(const struct engine *engine, const struct lane *lane)
{
    return lane->on_way < engine->load->depth && lane->unsent_bytes == 0;
}

static void set_free(struct engine *engine, struct lane *lane)
{
    lane->next = NULL;
    if (engine->free)
        engine->last_free->next = lane;
    else
        engine->free = lane;
    engine->last_free = lane;
}

static uint64_t due_ns(const struct engine *engine, uint64_t i)
{
    return engine->start_ns + (uint64_t)((double)i * NS / engine->load->rate);
}

/* Open loop: sends the due requests, as far as connections are free. */
static enum err_code shoot_due(struct engine *engine, uint64_t now, struct err *err)
{
    while (engine->free && engine->sent < engine->sent_max) {
        uint64_t due = due_ns(engine, engine->sent);
        struct lane *lane = engine->free;

        if (due > now)
            break;
        engine->free = lane->next;
        if (shoot(engine, lane, 1, due, err))
            return err->code;
        if (may_shoot(engine, lane))
            set_free(engine, lane);
    }
    return ERR_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void count_answer(struct engine *engine, struct lane *lane, uint64_t now)
{
    struct bench_result *result = engine->result;
    uint64_t since = lane->times[lane->first];

    lane->first = (lane->first + 1) % engine->load->depth;
    lane->on_way--;
    engine->answered++;
    if (!engine->is_measuring || since < engine->measure_ns)
        return;
    result->requests++;
    result->failed += lane->answer.status >= 400;
    bench_histogram_add(&result->latency, now > since ? now - since : 0);
}

static enum err_code take_answers(struct engine *engine, struct lane *lane, size_t length,
                                  uint64_t now, struct err *err)
{
    const char *at = engine->buffer;

    while (length) {
        size_t used;
        bool is_done;

        if (lane->on_way == 0)
            return err_set(err, ERR_INTERNAL, "an answer came that nobody asked for");
        if (bench_answer_take(&lane->answer, at, length, &used, &is_done, err))
            return err->code;
        at += used;
        length -= used;
        if (is_done)
            count_answer(engine, lane, now);
    }
    return ERR_OK;
}

static enum err_code read_lane(struct engine *engine, struct lane *lane, struct err *err)
{
    ssize_t length = recv(lane->fd, engine->buffer, READ_BYTES, MSG_DONTWAIT);
    bool could_shoot = may_shoot(engine, lane);
    uint64_t now;

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return ERR_OK;
    if (length < 0)
        return lost(err, "a connection broke");
    if (length == 0 && lane->answer.status >= 400)
        return err_set(err, ERR_BUSY,
                       "the server closed a connection after %llu answers, the last with status %d",
                       (unsigned long long)engine->answered, lane->answer.status);
    if (length == 0)
        return err_set(err, ERR_BUSY, "the server closed a connection after %llu answers",
                       (unsigned long long)engine->answered);
    now = monotonic_ns();
    engine->result->bytes_in += (uint64_t)length;
    engine->last_answer_ns = now;
    if (take_answers(engine, lane, (size_t)length, now, err))
        return err->code;
    if (engine->load->rate > 0) {
        if (!could_shoot && may_shoot(engine, lane))
            set_free(engine, lane);
        return shoot_due(engine, now, err);
    }
    return lane->on_way == 0 ? shoot_batch(engine, lane, now, err) : ERR_OK;
}

static enum err_code turn_lane(struct engine *engine, const struct epoll_event *event,
                               struct err *err)
{
    struct lane *lane = event->data.ptr;
    bool could_shoot = may_shoot(engine, lane);

    if (event->events & EPOLLOUT && lane->unsent_bytes) {
        if (send_rest(engine, lane, err))
            return err->code;
        if (engine->load->rate > 0 && !could_shoot && may_shoot(engine, lane))
            set_free(engine, lane);
    }
    return event->events & ~(uint32_t)EPOLLOUT ? read_lane(engine, lane, err) : ERR_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void begin_measuring(struct engine *engine, uint64_t now)
{
    engine->is_measuring = true;
    engine->measured_ns = now;
    engine->result->bytes_in = engine->result->bytes_out = 0;
    engine->client_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    engine->server_cpu_s = engine->load->server ? clock_s(engine->server_clock) : NAN;
}

static void end_measuring(struct engine *engine)
{
    struct bench_result *result = engine->result;

    result->elapsed_s = (double)(monotonic_ns() - engine->measured_ns) / NS;
    result->client_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - engine->client_cpu_s;
    result->server_cpu_s =
        engine->load->server ? clock_s(engine->server_clock) - engine->server_cpu_s : NAN;
}

/* How long may the loop sleep? */
static struct timespec patience(const struct engine *engine, uint64_t now)
{
    uint64_t wait = CLOSED_WAIT_NS;

    if (engine->load->is_busy)
        return (struct timespec){0};
    if (engine->load->rate > 0 && engine->free && engine->sent < engine->sent_max) {
        uint64_t due = due_ns(engine, engine->sent);

        wait = due > now ? due - now : 0;
    }
    if (!engine->is_measuring && engine->measure_ns > now && engine->measure_ns - now < wait)
        wait = engine->measure_ns - now;
    return (struct timespec){(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
}

/* A closed loop ends by its time, or like an open one when all have been sent and answered. */
static bool is_over(const struct engine *engine, uint64_t now)
{
    bool all_sent = engine->sent == engine->sent_max;

    if (engine->load->rate <= 0 && now >= engine->end_ns)
        return true;
    return all_sent && engine->answered == engine->sent;
}

/* By time, or by requests when so many end it. */
static void report(const struct engine *engine, uint64_t now)
{
    double all_s = (double)(engine->end_ns - engine->start_ns) / NS;
    double share = engine->load->requests_max
                       ? (double)engine->answered / (double)engine->load->requests_max
                       : (double)(now - engine->start_ns) / NS / all_s;

    if (engine->load->requests_max) /* then its latency is unknown */
        all_s = share > 0 ? (double)(now - engine->start_ns) / NS / share : 0;
    engine->load->report(engine->load->report_context, share * all_s, all_s);
}

static enum err_code run_loop(struct engine *engine, struct err *err)
{
    struct epoll_event events[EVENTS];
    uint64_t timeout_ns = (uint64_t)(engine->load->timeout_s * NS);

    for (uint64_t now = monotonic_ns(), next = now; !is_over(engine, now); now = monotonic_ns()) {
        struct timespec wait;
        int count;

        if (engine->load->report && now >= next) {
            report(engine, now);
            next = now + TELL_NS;
        }
        if (!engine->is_measuring && now >= engine->measure_ns)
            begin_measuring(engine, now);
        if (engine->load->rate > 0 && shoot_due(engine, now, err))
            return err->code;
        if (engine->answered < engine->sent && now > engine->last_answer_ns + timeout_ns)
            return err_set(err, ERR_BUSY, "no answer within %g s", engine->load->timeout_s);
        if (engine->answered == engine->sent)
            engine->last_answer_ns = now;
        wait = patience(engine, now);
        count = epoll_pwait2(engine->epoll, events, EVENTS, &wait, NULL);
        if (count < 0 && errno != EINTR)
            return lost(err, "epoll");
        for (int i = 0; i < count; i++)
            if (turn_lane(engine, &events[i], err))
                return err->code;
    }
    return ERR_OK;
}

static enum err_code begin(struct engine *engine, struct err *err)
{
    const struct bench_load *load = engine->load;
    double whole_s = load->warm_up_s + load->duration_s;

    engine->start_ns = engine->last_answer_ns = monotonic_ns();
    engine->measure_ns = engine->start_ns + (uint64_t)(load->warm_up_s * NS);
    engine->end_ns = engine->start_ns + (uint64_t)(whole_s * NS);
    engine->sent_max = load->rate > 0 ? (uint64_t)(load->rate * whole_s) : UINT64_MAX;
    if (load->requests_max && load->requests_max < engine->sent_max)
        engine->sent_max = load->requests_max;
    if (engine->start_ns >= engine->measure_ns)
        begin_measuring(engine, engine->start_ns);
    for (size_t i = 0; i < load->connections; i++) {
        if (load->rate > 0)
            set_free(engine, &engine->lanes[i]);
        else if (shoot_batch(engine, &engine->lanes[i], engine->start_ns, err))
            return err->code;
    }
    return ERR_OK;
}

enum err_code bench_run(const struct bench_load *load, struct bench_result *result, struct err *err)
{
    struct engine engine = {.load = load, .result = result, .epoll = -1};
    enum err_code code = ERR_OK;

    memset(result, 0, sizeof *result);
    if (load->server && clock_getcpuclockid(load->server, &engine.server_clock) != 0)
        return err_set(err, ERR_BAD_INPUT, "there is no process %ld", (long)load->server);
    if (engine_open(&engine, err) || begin(&engine, err) || run_loop(&engine, err))
        code = err->code;
    if (code == ERR_OK && engine.is_measuring)
        end_measuring(&engine);
    engine_close(&engine);
    return code;
}
