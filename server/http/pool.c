/*
 * Workers: see pool.h.
 *
 * Problem: libuv's pool has one queue without an end. When batches arrive faster than the cores
 * finish them, each waits for all before it: 400 batches of 34 ms made all requests wait 8 s, in
 * the median, and a small tile just as long. Approach: threads of our own and a queue that is
 * bounded by the time that the next one would wait. That is estimated: the cost of a request is its
 * route's recent cost for each 256 bytes of bodies about as large (the cost of a tiny one does not
 * predict that of a large one). The newest is refused as soon as its wait would exceed
 * limits.queue_ms_max, so accepted requests are answered in bounded time; against a wrong estimate,
 * also when the oldest has waited that long. A request that has waited twice as long is refused
 * when a worker takes it: a late refusal costs less than late answers for all that follow. Two
 * lanes: requests estimated below SMALL_NS go first, and large requests never hold the last worker.
 * So a tile does not wait for batches, and nothing large need be cut in pieces.
 *
 * Requests of one name of a token are a flow, and the flows of a lane have equal shares of the
 * workers: each request is tagged with the time at which its flow would begin it if the flow had a
 * machine of its own, and the smallest tag is next (start-time fair queueing). A flow that floods
 * waits for itself: the wait of a new request counts of each other flow no more than its own has
 * queued. There are FLOWS queues and no allocation; more names share them.
 *
 * A disk or a machine that stalls for seconds is no load: the requests that waited are done at once
 * when it resumes, and refusing them would not help. So waiting time is measured by a clock that
 * counts at most QUIET_NS between two events of the pool (a request is queued, taken or finished).
 *
 * Invariants: under the mutex: cost_ns of a lane or flow is the sum of the estimates in it;
 * large_running <= workers - 1; a request is in one lane, or with one worker, or with its loop.
 *
 * Workers are SCHED_BATCH and nicer than loops: a loop that wakes goes first where cores are short.
 * Without the second a loop waited 3 to 6 ms for a core beside a flood of batches. Not SCHED_IDLE:
 * loops that are never idle would stop them.
 *
 * Source: M. Welsh, D. Culler, "Adaptive Overload Control for Busy Internet Servers", 2003, for
 * refusing at the door by observed delay. P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing",
 * 1996.
 */
#include "http/pool.h"

#include "base/background.h"
#include "base/check.h"
#include "http/request.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define WORKERS_MIN 4
#define WORKERS_MAX 256
#define UNIT_BYTES 256
#define SIZE_CLASSES 24 /* powers of two of units: 2 GiB */
#define UNIT_NS_FIRST 4000.0
#define FIRST_NS_MAX 50e6 /* the most that the first of a kind counts */
#define UNIT_NS_MIN 100.0
#define LEARNING 0.125
#define SURPRISE_MAX 8.0 /* times the estimate: one that was held up teaches no more */
#define SMALL_NS 5e6
#define NS_A_MS 1e6
#define QUIET_NS 100000000u

enum { FLOWS = 64 };

enum lane_name { LANE_SMALL, LANE_LARGE, LANES };

struct flow {
    struct http_request *first, *last;
    double cost_ns;   /* of those that wait */
    double finish_ns; /* the tag at which the last one would end */
    size_t queued;
};

struct lane {
    struct flow flows[FLOWS];
    double cost_ns, now_ns; /* now_ns: the tag of the request that was begun last */
};

struct worker {
    struct http_pool *pool;
    uv_thread_t thread;
    bool is_busy, is_large;
    double cost_ns; /* estimated */
    uint64_t started_ns;
};

struct http_pool {
    uv_mutex_t mutex; /* guards everything below but the configuration */
    uv_cond_t work_came;
    struct worker *workers; /* [worker_count] */
    size_t worker_count;    /* configuration */
    size_t queued_max;      /* configuration */
    double queue_ns_max;    /* configuration */
    void (*returned)(struct http_request *request);
    /* [route_count][SIZE_CLASSES]; 0: not known yet; written under the mutex */
    _Atomic double *unit_ns;
    struct lane lanes[LANES];
    size_t queued, busy, large_running;
    bool has_flows;              /* there was a request of a flow but 0 */
    uint64_t clock_ns, event_ns; /* without quiet spans; the last event by the real clock */
    bool is_ending;
};

/* ---- estimates ------------------------------------------------------------------------------- */

static uint64_t body_bytes_of(const struct http_request *request)
{
    return request->sunk_bytes + request->body_length;
}

static double units_of(uint64_t body_bytes)
{
    return 1 + (double)body_bytes / UNIT_BYTES;
}

static size_t class_of(uint64_t body_bytes)
{
    int exponent;

    frexp(units_of(body_bytes), &exponent);
    return (size_t)(exponent < 1 ? 0 : exponent > SIZE_CLASSES ? SIZE_CLASSES - 1 : exponent - 1);
}

static void learn(struct http_pool *pool, size_t route, uint64_t body_bytes, double taken_ns)
{
    double now = fmax(taken_ns / units_of(body_bytes), UNIT_NS_MIN);
    _Atomic double *unit_ns = &pool->unit_ns[route * SIZE_CLASSES + class_of(body_bytes)];
    double known = atomic_load_explicit(unit_ns, memory_order_relaxed);

    if (known > 0)
        known += LEARNING * (fmin(now, SURPRISE_MAX * known) - known);
    else
        known = fmin(now, fmax(FIRST_NS_MAX / units_of(body_bytes), UNIT_NS_FIRST));
    atomic_store_explicit(unit_ns, known, memory_order_relaxed);
}

/* The work in a lane before a new request of that flow; NULL: of a flow that had queued all. */
static double ahead_in(const struct lane *lane, const struct flow *own, double cost_ns)
{
    double ahead_ns = 0;

    if (!own)
        return lane->cost_ns;
    for (size_t i = 0; i < FLOWS; i++) {
        const struct flow *flow = &lane->flows[i];

        ahead_ns += flow == own ? flow->cost_ns : fmin(flow->cost_ns, own->cost_ns + cost_ns);
    }
    return ahead_ns;
}

/* The wait of a new request in that lane; 0 while a worker is free for it. own: as ahead_in. */
static double wait_ns(const struct http_pool *pool, enum lane_name lane, const struct flow *own,
                      double cost_ns, uint64_t now_ns)
{
    size_t workers =
        lane == LANE_SMALL ? pool->worker_count - pool->large_running : pool->worker_count - 1;
    double ahead_ns = lane == LANE_LARGE ? pool->lanes[LANE_SMALL].cost_ns : 0;

    ahead_ns += ahead_in(&pool->lanes[lane], own, cost_ns);
    if (ahead_ns <= 0 && pool->busy < pool->worker_count &&
        (lane == LANE_SMALL || pool->large_running < workers))
        return 0;
    for (size_t i = 0; i < pool->worker_count; i++) {
        const struct worker *worker = &pool->workers[i];

        if (worker->is_busy && (lane == LANE_LARGE || !worker->is_large))
            ahead_ns += fmax(worker->cost_ns - (double)(now_ns - worker->started_ns), 0);
    }
    return ahead_ns / (double)workers;
}

/* An event; returns the pool's clock. Under the mutex. */
static uint64_t clock_event(struct http_pool *pool)
{
    uint64_t now_ns = uv_hrtime(), passed_ns = now_ns - pool->event_ns;

    pool->clock_ns += passed_ns < QUIET_NS ? passed_ns : QUIET_NS;
    pool->event_ns = now_ns;
    return pool->clock_ns;
}

/* ---- at the door ----------------------------------------------------------------------------- */

static bool is_open(struct http_pool *pool, enum lane_name lane, uint32_t flow_id, double cost_ns,
                    struct err *err)
{
    const struct flow *flow = &pool->lanes[lane].flows[flow_id % FLOWS];
    double waited_ns =
        (double)(clock_event(pool) - (flow->first ? flow->first->queued_ns : pool->clock_ns));
    double expected_ns = wait_ns(pool, lane, flow, cost_ns, uv_hrtime());
    double most_ms = pool->queue_ns_max / NS_A_MS;
    double worse_ms = ceil(fmax(expected_ns, waited_ns) / NS_A_MS);
    size_t places = pool->has_flows ? pool->queued_max / 2 : pool->queued_max; /* of one flow */

    if (pool->queued >= pool->queued_max)
        err_limit(err, ERR_BUSY, (double)pool->queued_max, (double)pool->queued + 1,
                  "%zu requests wait for a worker already", pool->queued);
    else if (flow->queued >= places)
        err_limit(err, ERR_BUSY, (double)places, (double)flow->queued + 1,
                  "%zu requests of this name wait for a worker already", flow->queued);
    else if (worse_ms > most_ms)
        err_limit(err, ERR_BUSY, most_ms, worse_ms,
                  "the request would wait %.0f ms for a worker, and at most %.0f ms are waited",
                  worse_ms, most_ms);
    else
        return true;
    err->retry_in_s = (unsigned)fmin(fmax(ceil(worse_ms / 1000), 1), 3600);
    return false;
}

static double cost_of(const struct http_pool *pool, size_t route, uint64_t body_bytes)
{
    double unit_ns = atomic_load_explicit(
        &pool->unit_ns[route * SIZE_CLASSES + class_of(body_bytes)], memory_order_relaxed);

    return (unit_ns > 0 ? unit_ns : UNIT_NS_FIRST) * units_of(body_bytes);
}

bool http_pool_has_room(struct http_pool *pool, const struct http_request *request,
                        uint64_t body_bytes, struct err *err)
{
    double cost_ns = cost_of(pool, request->route_index, body_bytes);
    bool has_room;

    uv_mutex_lock(&pool->mutex);
    has_room =
        is_open(pool, cost_ns < SMALL_NS ? LANE_SMALL : LANE_LARGE, request->flow, cost_ns, err);
    uv_mutex_unlock(&pool->mutex);
    return has_room;
}

static void enqueue(struct http_pool *pool, struct http_request *request)
{
    struct lane *lane = &pool->lanes[request->is_large ? LANE_LARGE : LANE_SMALL];
    struct flow *flow = &lane->flows[request->flow % FLOWS];

    request->next = NULL;
    request->start_ns = fmax(lane->now_ns, flow->finish_ns);
    flow->finish_ns = request->start_ns + request->cost_ns;
    if (flow->last)
        flow->last->next = request;
    else
        flow->first = request;
    flow->last = request;
    flow->cost_ns += request->cost_ns;
    lane->cost_ns += request->cost_ns;
    flow->queued++;
    pool->queued++;
    pool->has_flows |= request->flow != 0;
    uv_cond_signal(&pool->work_came);
}

bool http_pool_push(struct http_pool *pool, struct http_request *request, struct err *err)
{
    bool is_taken;

    uv_mutex_lock(&pool->mutex);
    request->cost_ns = cost_of(pool, request->route_index, body_bytes_of(request));
    request->is_large = request->cost_ns >= SMALL_NS;
    is_taken = is_open(pool, request->is_large ? LANE_LARGE : LANE_SMALL, request->flow,
                       request->cost_ns, err);
    if (is_taken) {
        request->queued_ns = pool->clock_ns;
        enqueue(pool, request);
    }
    uv_mutex_unlock(&pool->mutex);
    return is_taken;
}

void http_pool_push_sink(struct http_pool *pool, struct http_request *request)
{
    uv_mutex_lock(&pool->mutex);
    request->cost_ns = 0;
    request->is_large = false;
    request->queued_ns = clock_event(pool);
    enqueue(pool, request);
    uv_mutex_unlock(&pool->mutex);
}

/* ---- a worker -------------------------------------------------------------------------------- */

/* The flow whose first request has the smallest tag, of equal ones the oldest; NULL: none. */
static struct flow *next_flow(struct lane *lane)
{
    struct flow *next = NULL;

    for (size_t i = 0; i < FLOWS; i++) {
        struct flow *flow = &lane->flows[i];

        if (flow->first && (!next || flow->first->start_ns < next->first->start_ns ||
                            (flow->first->start_ns <= next->first->start_ns &&
                             flow->first->queued_ns < next->first->queued_ns)))
            next = flow;
    }
    return next;
}

/* The next one that may run; NULL: none. */
static struct http_request *take(struct http_pool *pool)
{
    bool may_be_large = pool->large_running < pool->worker_count - 1;
    struct lane *lane = &pool->lanes[LANE_SMALL];
    struct flow *flow = next_flow(lane);
    struct http_request *request;

    if (!flow && may_be_large) {
        lane = &pool->lanes[LANE_LARGE];
        flow = next_flow(lane);
    }
    if (!flow)
        return NULL;
    request = flow->first;
    flow->first = request->next;
    flow->cost_ns -= request->cost_ns;
    lane->cost_ns -= request->cost_ns;
    lane->now_ns = request->start_ns;
    if (!flow->first) {
        flow->last = NULL;
        flow->cost_ns = 0; /* no rest of rounding */
    }
    request->next = NULL;
    if (!next_flow(lane))
        lane->cost_ns = 0;
    flow->queued--;
    pool->queued--;
    return request;
}

static void note_start(struct worker *worker, const struct http_request *request)
{
    worker->is_busy = true;
    worker->is_large = request->is_large;
    worker->cost_ns = request->cost_ns;
    worker->started_ns = uv_hrtime();
    worker->pool->busy++;
    worker->pool->large_running += worker->is_large;
}

static void note_end(struct worker *worker)
{
    struct http_pool *pool = worker->pool;

    worker->is_busy = false;
    pool->busy--;
    pool->large_running -= worker->is_large;
    if (worker->is_large && next_flow(&pool->lanes[LANE_LARGE]))
        uv_cond_signal(&pool->work_came);
}

/* Without the mutex. True when the handler has run. */
static bool serve(const struct http_pool *pool, struct http_request *request, uint64_t clock_ns)
{
    double waited_ms = floor((double)(clock_ns - request->queued_ns) / NS_A_MS);
    double most_ms = 2 * pool->queue_ns_max / NS_A_MS;
    struct err err;

    if (request->is_at_sink) {
        http_request_run_sink(request);
        return false;
    }
    if (http_request_is_abandoned(request)) {
        err_set(&err, ERR_BUSY, "given up: nobody waits for the answer");
        http_reply_problem(&request->reply, &err);
        return false;
    }
    if (waited_ms > most_ms) {
        err_limit(&err, ERR_BUSY, most_ms, waited_ms,
                  "the request has waited %.0f ms for a worker, and at most %.0f ms are waited",
                  waited_ms, most_ms);
        http_reply_problem(&request->reply, &err);
        request->is_shed = true;
        return false;
    }
    request->route->handler(request, &request->reply);
    return true;
}

static void work(void *argument)
{
    const struct sched_param param = {0};
    struct worker *worker = argument;
    struct http_pool *pool = worker->pool;
    struct http_request *request;

    (void)sched_setscheduler(0, SCHED_BATCH, &param); /* without these all works as well */
    background_enter();
    uv_mutex_lock(&pool->mutex);
    for (;;) {
        size_t route;
        uint64_t body_bytes, clock_ns;
        bool has_run;

        while (!(request = take(pool)) && !pool->is_ending)
            uv_cond_wait(&pool->work_came, &pool->mutex);
        if (!request)
            break;
        clock_ns = clock_event(pool);
        note_start(worker, request);
        route = request->route_index;
        body_bytes = body_bytes_of(request);
        uv_mutex_unlock(&pool->mutex);
        has_run = serve(pool, request, clock_ns);
        uv_mutex_lock(&pool->mutex);
        if (has_run)
            learn(pool, route, body_bytes, (double)(uv_hrtime() - worker->started_ns));
        clock_event(pool);
        note_end(worker);
        uv_mutex_unlock(&pool->mutex);
        pool->returned(request); /* it is its loop's again, which goes before this thread now */
        uv_mutex_lock(&pool->mutex);
    }
    uv_mutex_unlock(&pool->mutex);
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t worker_count_for(size_t wanted)
{
    if (wanted == 0) {
        wanted = uv_available_parallelism();
        wanted = wanted < WORKERS_MIN ? WORKERS_MIN : wanted;
    }
    return wanted < 2 ? 2 : wanted > WORKERS_MAX ? WORKERS_MAX : wanted;
}

static enum err_code start_workers(struct http_pool *pool, size_t count, struct err *err)
{
    sigset_t all, before;
    int status = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pool->worker_count = count; /* before the first of them checks */
    for (size_t i = 0; i < count && status == 0; i++) {
        pool->workers[i].pool = pool;
        status = uv_thread_create(&pool->workers[i].thread, work, &pool->workers[i]);
        if (status != 0) {
            uv_mutex_lock(&pool->mutex);
            pool->worker_count = i;
            uv_mutex_unlock(&pool->mutex);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status ? err_set(err, ERR_BUSY, "cannot start a worker: %s", uv_strerror(status))
                  : ERR_OK;
}

struct http_pool *http_pool_create(const struct http_limits *limits, size_t route_count,
                                   void (*returned)(struct http_request *request), struct err *err)
{
    struct http_pool *pool = calloc(1, sizeof *pool);
    size_t count = worker_count_for(limits->workers);

    if (pool) {
        pool->workers = calloc(count, sizeof *pool->workers);
        pool->unit_ns = calloc((route_count + 1) * SIZE_CLASSES, sizeof *pool->unit_ns);
    }
    if (!pool || !pool->workers || !pool->unit_ns) {
        if (pool) {
            free(pool->workers);
            free(pool->unit_ns);
        }
        free(pool);
        err_set(err, ERR_NO_MEMORY, "no memory for the workers");
        return NULL;
    }
    pool->queued_max = limits->queued_max;
    pool->queue_ns_max = (double)limits->queue_ms_max * NS_A_MS;
    pool->returned = returned;
    pool->event_ns = uv_hrtime();
    CHECK(uv_mutex_init(&pool->mutex) == 0 && uv_cond_init(&pool->work_came) == 0);
    if (start_workers(pool, count, err)) {
        http_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void http_pool_destroy(struct http_pool *pool)
{
    if (!pool)
        return;
    uv_mutex_lock(&pool->mutex);
    CHECK(pool->queued == 0);
    pool->is_ending = true;
    uv_cond_broadcast(&pool->work_came);
    uv_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->worker_count; i++)
        CHECK(uv_thread_join(&pool->workers[i].thread) == 0);
    uv_cond_destroy(&pool->work_came);
    uv_mutex_destroy(&pool->mutex);
    free(pool->unit_ns);
    free(pool->workers);
    free(pool);
}

void http_pool_numbers(struct http_pool *pool, struct http_pool_numbers *out)
{
    uv_mutex_lock(&pool->mutex);
    *out = (struct http_pool_numbers){
        .workers = pool->worker_count,
        .busy = pool->busy,
        .queued = pool->queued,
        .wait_ms = (uint64_t)(wait_ns(pool, LANE_LARGE, NULL, 0, uv_hrtime()) / NS_A_MS),
    };
    uv_mutex_unlock(&pool->mutex);
}
