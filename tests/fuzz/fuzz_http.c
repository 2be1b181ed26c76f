/*
 * Fuzzer of the request path: bytes -> head check -> llhttp -> route -> body -> handler -> answer,
 * on a connection without a socket.
 *
 * The first byte chooses how the rest is cut. Each input is fed twice, whole and in pieces, each
 * piece in memory of its exact size; both times as many requests must be answered and as many of
 * them well. Limits are small, so that they are reached.
 */
#include "base/check.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/exchange.h"
#include "http/loop.h"
#include "http/server_data.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handle(struct http_request *request, struct http_reply *reply)
{
    struct span body = http_request_body(request);
    char *copy = http_request_alloc(request, body.length);

    memcpy(copy, body.at, body.length);
    http_reply_append(reply, copy, body.length);
    const struct http_query_item *items = http_request_query_items(request);

    for (size_t i = 0; i < http_request_query_count(request); i++) {
        struct span name = items[i].name, value = items[i].value;

        http_reply_append(reply, name.at, name.length);
        http_reply_append(reply, value.at, value.length);
        http_reply_header(reply, "X-Query", "%.*s", (int)value.length, value.at);
    }
}

static void handle_params(struct http_request *request, struct http_reply *reply)
{
    struct span param = http_request_param(request, 0);
    struct err err;

    err_set(&err, ERR_NOT_FOUND, "%.*s", (int)param.length, param.at);
    err_at(&err, "/%.*s", (int)param.length, param.at);
    http_reply_problem(reply, &err);
}

static const struct http_route routes[] = {
    {METHOD_GET, "/", handle, HTTP_ON_LOOP, 0, false},
    {METHOD_POST, "/", handle, HTTP_BY_SIZE, 0, false},
    {METHOD_PUT, "/a", handle, HTTP_ON_LOOP, 8, false},
    {METHOD_GET, "/p/{x}", handle_params, HTTP_ON_LOOP, 0, false},
};
#define ROUTES (sizeof routes / sizeof *routes)

static struct http_server server;
static struct http_settings settings;
static struct http_loop loop;
static struct http_loop_route_counters route_counters[ROUTES + 1];

static void start_once(void)
{
    static const char cors[] = "Access-Control-Allow-Origin: *\r\n";

    if (server.app.routes)
        return;
    log_init(LOG_WARN, LOG_TEXT); /* a line a request would be most of the time */
    server.app.routes = routes;
    server.app.route_count = ROUTES;
    settings.limits = http_limits_default;
    settings.limits.target_bytes_max = 64;
    settings.limits.header_bytes_max = 512;
    settings.limits.header_count_max = 8;
    settings.limits.body_bytes_max = 128;
    settings.limits.loop_body_bytes_max = 128;
    server.limits = settings.limits;
    atomic_store(&server.settings, &settings);
    server.has_cors = true;
    memcpy(server.cors, cors, sizeof cors);
    server.cors_length = sizeof cors - 1;
    CHECK(http_router_init(&server.router, routes, ROUTES));
    loop.server = &server;
    loop.route_counters = route_counters;
    CHECK(uv_loop_init(&loop.uv) == 0);
}

struct tally {
    uint64_t answered, well;
};

static struct tally tally_now(void)
{
    struct tally tally = {atomic_load(&loop.counters.requests), 0};

    for (size_t i = 0; i <= ROUTES; i++)
        tally.well += atomic_load(&route_counters[i].by_class[2]);
    return tally;
}

/* Takes as much as can be taken of pending[*length]; what is left moves to the front. */
static void feed_all(struct http_connection *connection, char *pending, size_t *length)
{
    size_t used;

    do {
        char *exact = malloc(*length ? *length : 1);

        memcpy(exact, pending, *length);
        used = http_exchange_feed(connection, exact, *length);
        free(exact);
        CHECK(used <= *length);
        *length -= used;
        memmove(pending, pending + used, *length);
        http_output_clear(&connection->output, &loop.chunks);
    } while (used && *length);
}

/* A connection's life with data in pieces of at most `step` bytes. */
static struct tally run(const uint8_t *data, size_t size, size_t step)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    char *pending = malloc(size ? size : 1);
    size_t pending_length = 0;
    struct tally before = tally_now(), after;

    connection->loop = &loop;
    loop.id_state = 0;
    for (size_t at = 0; at < size && !connection->close_after; at += step) {
        size_t length = size - at < step ? size - at : step;

        memcpy(pending + pending_length, data + at, length);
        pending_length += length;
        feed_all(connection, pending, &pending_length);
    }
    if (connection->request)
        http_request_release(connection->request);
    free(pending);
    free(connection);
    CHECK(atomic_load(&server.body_bytes) == 0);
    CHECK(loop.requests_begun == 0);
    after = tally_now();
    return (struct tally){after.answered - before.answered, after.well - before.well};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tally whole, cut;

    if (size < 2)
        return 0;
    start_once();
    whole = run(data + 1, size - 1, size);
    cut = run(data + 1, size - 1, (size_t)data[0] % 64 + 1);
    CHECK(whole.answered == cut.answered);
    CHECK(whole.well == cut.well);
    return 0;
}
