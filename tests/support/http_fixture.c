/*
 * The tests' server: see http_fixture.h. Handlers that wait do so on a semaphore that the test
 * posts, so that no test depends on time passing.
 */
#include "tests/support/http_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char static_bytes[20000];

static void reply_text(struct http_reply *reply, const char *text)
{
    http_reply_content_type(reply, "text/plain");
    http_reply_append(reply, text, strlen(text));
}

static void get_hello(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    reply_text(reply, "hello");
}

static void post_echo(struct http_request *request, struct http_reply *reply)
{
    struct span body = http_request_body(request);
    struct span type = http_request_media_type(request);
    char *copy = http_request_alloc(request, body.length + 1);

    http_reply_header(reply, "X-Media-Type", "%.*s", (int)type.length, type.at);
    http_reply_content_type(reply, "application/octet-stream");
    memcpy(copy, body.at, body.length);
    http_reply_append(reply, copy, body.length);
}

static void get_params(struct http_request *request, struct http_reply *reply)
{
    struct span a = http_request_param(request, 0), b = http_request_param(request, 1);

    http_reply_append(reply, a.at, a.length);
    http_reply_append(reply, "|", 1);
    http_reply_append(reply, b.at, b.length);
}

static void get_query(struct http_request *request, struct http_reply *reply)
{
    const struct http_query_item *items = http_request_query_items(request);

    for (size_t i = 0; i < http_request_query_count(request); i++) {
        http_reply_append(reply, items[i].name.at, items[i].name.length);
        http_reply_append(reply, "=", 1);
        http_reply_append(reply, items[i].value.at, items[i].value.length);
        http_reply_append(reply, ";", 1);
    }
}

struct span fixture_query(const struct http_request *request, const char *name)
{
    const struct http_query_item *items = http_request_query_items(request);

    for (size_t i = 0; i < http_request_query_count(request); i++)
        if (items[i].name.length == strlen(name) &&
            memcmp(items[i].name.at, name, strlen(name)) == 0)
            return items[i].value;
    return (struct span){NULL, 0};
}

static void get_worker(struct http_request *request, struct http_reply *reply)
{
    struct http_fixture *fixture = http_request_app_context(request);

    sem_post(&fixture->entered);
    sem_wait(&fixture->gate);
    reply_text(reply, "worker");
}

struct errand {
    struct http_fixture *fixture;
    struct http_request *request;
    struct http_reply *reply;
};

static void *run_errand(void *argument)
{
    struct errand *errand = argument;

    sem_post(&errand->fixture->entered);
    sem_wait(&errand->fixture->gate);
    reply_text(errand->reply, "deferred");
    http_request_finish(errand->request);
    free(errand);
    return NULL;
}

static void get_deferred(struct http_request *request, struct http_reply *reply)
{
    struct errand *errand = malloc(sizeof *errand);
    pthread_t thread;

    errand->fixture = http_request_app_context(request);
    errand->request = request;
    errand->reply = reply;
    http_request_defer(request);
    pthread_create(&thread, NULL, run_errand, errand);
    pthread_detach(thread);
}

static void get_large(struct http_request *request, struct http_reply *reply)
{
    struct span text = fixture_query(request, "bytes");
    size_t bytes = text.at ? strtoul(text.at, NULL, 10) : 0;
    char *at = http_reply_reserve(reply, bytes);

    memset(at, 'x', bytes);
    http_reply_advance(reply, bytes);
}

static void get_static(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    http_reply_static(reply, static_bytes, sizeof static_bytes);
}

static void get_empty(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    http_reply_status(reply, 204);
}

static void get_problem(struct http_request *request, struct http_reply *reply)
{
    struct err err;

    (void)request;
    http_reply_append(reply, "half an answer", 14);
    err_limit(&err, ERR_UNPROCESSABLE, 10000, 10001.5, "a \"quoted\" detail");
    err_at(&err, "/rays/%d/origin", 3);
    http_reply_problem(reply, &err);
}

static void get_huge(struct http_request *request, struct http_reply *reply)
{
    (void)request;
    http_reply_append(reply, "half an answer", 14);
    assert_null(http_reply_reserve(reply, (size_t)1 << 40));
}

/* Says where it was when it ended; on the loop it writes a little and moves. */
static void post_moving(struct http_request *request, struct http_reply *reply)
{
    if (http_request_may_offload(request)) {
        http_reply_status(reply, 201);
        http_reply_header(reply, "X-Lost", "yes");
        reply_text(reply, "half an answer");
        http_request_offload(request);
        return;
    }
    reply_text(reply, "from a worker");
}

static void get_patient(struct http_request *request, struct http_reply *reply)
{
    struct http_fixture *fixture = http_request_app_context(request);

    sem_post(&fixture->entered);
    while (!http_request_is_abandoned(request))
        poll(NULL, 0, 5);
    reply_text(reply, "for nobody");
}

struct fixture_sink {
    struct http_fixture *fixture;
    uint64_t sum;
    size_t bytes;
    unsigned pieces;
    bool fails, waits;
};

uint64_t fixture_sum(uint64_t sum, const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + (unsigned char)at[i] + 1;
    return sum;
}

static enum err_code sink_take(void *context, const char *at, size_t length, struct err *err)
{
    struct fixture_sink *sink = context;

    assert_in_range(length, HTTP_SINK_BYTES, 2 * HTTP_SINK_BYTES);
    if (sink->waits) {
        sem_post(&sink->fixture->entered);
        sem_wait(&sink->fixture->gate);
    }
    sink->sum = fixture_sum(sink->sum, at, length);
    sink->bytes += length;
    sink->pieces++;
    return sink->fails ? err_set(err, ERR_UNPROCESSABLE, "the sink fails") : ERR_OK;
}

static void sink_drop(void *context)
{
    struct fixture_sink *sink = context;

    atomic_fetch_add(&sink->fixture->dropped, 1);
    free(sink);
}

static void on_body(void *context, struct http_request *request, struct http_reply *reply)
{
    static const struct http_sink calls = {sink_take, sink_drop};
    struct http_fixture *fixture = context;
    struct fixture_sink *sink;
    struct err err;

    if (strcmp(http_request_route(request)->pattern, "/sink") != 0)
        return;
    http_reply_header(reply, "X-Before", "the body");
    if (fixture_query(request, "refuse").at) {
        err_set(&err, ERR_UNPROCESSABLE, "refused before the body");
        http_reply_problem(reply, &err);
        return;
    }
    sink = calloc(1, sizeof *sink);
    sink->fixture = fixture;
    sink->fails = fixture_query(request, "fail").at != NULL;
    sink->waits = fixture_query(request, "wait").at != NULL;
    atomic_fetch_add(&fixture->sinks, 1);
    http_request_set_sink(request, &calls, sink);
}

static void put_sink(struct http_request *request, struct http_reply *reply)
{
    struct fixture_sink *sink = http_request_take_sink(request);
    struct span rest = http_request_body(request);
    char text[80];

    if (!sink) {
        reply_text(reply, "no sink");
        return;
    }
    snprintf(text, sizeof text, "%zu %llu %u", sink->bytes + rest.length,
             (unsigned long long)fixture_sum(sink->sum, rest.at, rest.length), sink->pieces);
    reply_text(reply, text);
    free(sink);
}

static const struct http_route routes[] = {
    {METHOD_GET, "/hello", get_hello, HTTP_ON_LOOP, 0, false},
    {METHOD_POST, "/echo", post_echo, HTTP_BY_SIZE, 0, false},
    {METHOD_POST, "/small", post_echo, HTTP_BY_SIZE, 100, false},
    {METHOD_GET, "/params/{a}/{b}", get_params, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/query", get_query, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/worker", get_worker, HTTP_ON_WORKER, 0, false},
    {METHOD_GET, "/still", get_worker, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/deferred", get_deferred, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/handed-on", get_deferred, HTTP_ON_WORKER, 0, false},
    {METHOD_GET, "/large", get_large, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/static", get_static, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/empty", get_empty, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/problem", get_problem, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/huge", get_huge, HTTP_ON_LOOP, 0, false},
    {METHOD_GET, "/probe", get_hello, HTTP_ON_LOOP, 0, true},
    {METHOD_POST, "/moving", post_moving, HTTP_BY_SIZE, 0, false},
    {METHOD_GET, "/patient", get_patient, HTTP_ON_WORKER, 0, false},
    {METHOD_PUT, "/secret", post_echo, HTTP_ON_LOOP, 0, false},
    {METHOD_PUT, "/sink", put_sink, HTTP_ON_WORKER, 0, false},
};

_Static_assert(sizeof routes / sizeof *routes == FIXTURE_ROUTE_NONE, "see http_fixture.h");

static void on_begin(void *context, struct http_request *request)
{
    struct http_fixture *fixture = context;

    atomic_fetch_add(&fixture->begun, 1);
    http_request_set_user(request, fixture);
}

static void on_end(void *context, struct http_request *request)
{
    struct http_fixture *fixture = context;

    if (http_request_user(request) == fixture)
        atomic_fetch_add(&fixture->ended, 1);
}

static void on_quiet(void *context, size_t loop_index)
{
    struct http_fixture *fixture = context;

    (void)loop_index;
    atomic_fetch_add(&fixture->quiet, 1);
}

static void on_gone(void *context, size_t loop_index)
{
    struct http_fixture *fixture = context;

    (void)loop_index;
    atomic_fetch_add(&fixture->gone, 1);
}

static enum err_code authorize(void *context, struct http_request *request,
                               const struct http_route *route, struct err *err)
{
    struct span token = http_request_header(request, "authorization");

    (void)context;
    if (strcmp(route->pattern, "/secret") != 0 || token.at)
        return ERR_OK;
    return err_set(err, ERR_UNAUTHORIZED, "a token is needed");
}

struct http_config fixture_config(void)
{
    struct http_config config = {
        .host = "127.0.0.1", .loops = 1, .limits = http_limits_default, .cors_allow_origin = "*"};

    return config;
}

void fixture_start(struct http_fixture *fixture, const struct http_config *config)
{
    struct http_app app = {.routes = routes,
                           .route_count = sizeof routes / sizeof *routes,
                           .context = fixture,
                           .request_begin = on_begin,
                           .request_end = on_end,
                           .body_begin = on_body,
                           .loop_quiet = on_quiet,
                           .loop_gone = on_gone,
                           .authorize = authorize};
    const struct http_config defaults = fixture_config();
    struct err err;

    memset(static_bytes, 's', sizeof static_bytes);
    sem_init(&fixture->gate, 0, 0);
    sem_init(&fixture->entered, 0, 0);
    atomic_store(&fixture->begun, 0);
    atomic_store(&fixture->ended, 0);
    atomic_store(&fixture->quiet, 0);
    atomic_store(&fixture->gone, 0);
    atomic_store(&fixture->sinks, 0);
    atomic_store(&fixture->dropped, 0);
    fixture->server = http_server_start(config ? config : &defaults, &app, &err);
    if (!fixture->server)
        fail_msg("the server did not start: %s", err.msg);
    fixture->port = http_server_port(fixture->server);
}

void fixture_stop(struct http_fixture *fixture)
{
    /* After a failed test a handler may still wait. */
    fixture_open_gate(fixture, 1000);
    http_server_stop(fixture->server, 2000);
    fixture->server = NULL;
    assert_int_equal(atomic_load(&fixture->begun), atomic_load(&fixture->ended));
    sem_destroy(&fixture->gate);
    sem_destroy(&fixture->entered);
}

void fixture_open_gate(struct http_fixture *fixture, unsigned count)
{
    while (count--)
        sem_post(&fixture->gate);
}

void fixture_await_entered(struct http_fixture *fixture)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 600;
    if (sem_timedwait(&fixture->entered, &limit) != 0)
        fail_msg("no handler was entered within ten minutes");
}
