/*
 * The server as a whole: see http.h.
 *
 * All sockets listen before the first of their threads starts, so that after a failure nothing was
 * served. With SO_REUSEPORT a second daemon of the same user could share the port without noticing
 * and take half of the clients; a probe without that option finds out first. An inherited socket
 * (socket activation) is owned by this process, and all loops accept from it.
 *
 * Settings that a reload may change are tables: made, published by one pointer, never changed.
 *
 * Stopping makes every loop drain and joins them; how a loop ends is in loop.c.
 */
#include "http/server_data.h"

#include "base/check.h"
#include "http/loop.h"
#include "http/pool.h"
#include "http/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define LOOPS_MAX 256

const struct http_limits http_limits_default = {
    .target_bytes_max = 8 * 1024,
    .header_bytes_max = 16 * 1024,
    .header_count_max = 64,
    .body_bytes_max = (size_t)64 * 1024 * 1024,
    .bodies_bytes_max = (size_t)1024 * 1024 * 1024,
    .answers_bytes_max = (size_t)1024 * 1024 * 1024,
    .loop_body_bytes_max = 64 * 1024,
    .connections_max = 10000,
    .connections_per_address_max = 2000,
    .idle_ms = 60000,
    .header_ms = 10000,
    .body_ms = 60000,
    .write_ms = 30000,
    .streams_max = 4096,
    .stream_silence_ms = 15000,
    .park_ms_max = 2000,
    .queue_ms_max = 1000,
    .queued_max = 1000,
};

/* Is the port free of any other listener? Port 0 always is. */
static enum err_code probe_port(const char *host, uint16_t port, struct err *err)
{
    struct sockaddr_storage address;
    struct sockaddr *any = (struct sockaddr *)&address;
    int fd, yes = 1, status = 0;

    memset(&address, 0, sizeof address);
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)(void *)&address) != 0 &&
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)(void *)&address) != 0)
        return err_set(err, ERR_BAD_INPUT, "'%s' is not a numeric IPv4 or IPv6 address", host);
    if (port == 0)
        return ERR_OK;
    fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, ERR_BUSY, "cannot make a socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, any,
             any->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                       : sizeof(struct sockaddr_in6)) != 0)
        status = errno;
    close(fd);
    if (status)
        return err_set(err, ERR_BUSY, "cannot listen on %s port %u: %s", host, port,
                       strerror(status));
    return ERR_OK;
}

/* scheme://host[:port] as browsers send it, or null. */
static bool is_origin(const char *at, size_t length)
{
    const size_t scheme = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    const size_t host = scheme + 3;

    if (length == 4 && memcmp(at, "null", 4) == 0)
        return true;
    return scheme > 0 && host < length && memcmp(at + scheme, "://", 3) == 0 &&
           host + strcspn(at + host, ",/?#@*ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length;
}

static enum err_code make_cors(struct http_server *server, const char *origin, struct err *err)
{
    const char *at = origin;

    server->has_cors = origin != NULL;
    if (!origin)
        return ERR_OK;
    for (size_t i = 0; origin[i]; i++)
        if ((unsigned char)origin[i] <= 0x20 || (unsigned char)origin[i] >= 0x7f)
            return err_set(err, ERR_BAD_INPUT, "the CORS origin holds byte 0x%02x",
                           (unsigned char)origin[i]);
    for (size_t length;; at += length + 1) {
        length = strcspn(at, ",");
        if (length > HTTP_ORIGIN_BYTES_MAX)
            return err_limit(err, ERR_BAD_INPUT, HTTP_ORIGIN_BYTES_MAX, (double)length,
                             "a CORS origin has more than %d bytes", HTTP_ORIGIN_BYTES_MAX);
        if (strcmp(origin, "*") != 0 && !is_origin(at, length))
            return err_set(err, ERR_BAD_INPUT,
                           "the CORS origin '%.*s' is none: scheme://host[:port] in small letters, "
                           "with nothing after it, as browsers send it",
                           (int)length, at);
        if (at[length] == '\0')
            break;
    }
    server->cors_origins = strcmp(origin, "*") == 0 ? NULL : origin;
    server->cors_length =
        (size_t)snprintf(server->cors, sizeof server->cors,
                         "%sAccess-Control-Expose-Headers: Accept-Ranges, Content-Range, "
                         "Kota-Revision, Kota-Offset, Kota-Scale, "
                         "Kota-Rect, Kota-Grid, Kota-State, Kota-Step, Kota-Granules, Kota-Cols, "
                         "Kota-Rows, Kota-Spacing, Kota-Origin, "
                         "Kota-Staleness, Kota-Layout, ETag, Location, X-Request-Id, Retry-After, "
                         "Idempotency-Replayed, "
                         "Server-Timing\r\n",
                         server->cors_origins ? "Vary: Origin\r\n"
                                              : "Access-Control-Allow-Origin: *\r\n"
                                                "Timing-Allow-Origin: *\r\n");
    CHECK(server->cors_length < sizeof server->cors);
    return ERR_OK;
}

static size_t loop_count_for(size_t wanted)
{
    if (wanted == 0)
        wanted = uv_available_parallelism();
    return wanted > LOOPS_MAX ? LOOPS_MAX : wanted;
}

static bool is_same(const struct http_settings *a, const struct http_settings *b)
{
    return memcmp(&a->limits, &b->limits, sizeof a->limits) == 0 &&
           a->slow_request_ms == b->slow_request_ms && a->access_log == b->access_log;
}

/*
 * Readers hold a table no longer than a request, but are not counted, so all tables are kept. One
 * that there was already is taken again, so that they are as many as there were different ones.
 */
static enum err_code settings_publish(struct http_server *server,
                                      const struct http_settings *wanted, struct err *err)
{
    struct http_settings *at = server->kept;

    while (at && !is_same(at, wanted))
        at = at->next;
    if (!at) {
        at = malloc(sizeof *at);
        if (!at)
            return err_set(err, ERR_NO_MEMORY, "no memory for the limits");
        *at = *wanted;
        at->next = server->kept;
        server->kept = at;
    }
    atomic_store_explicit(&server->settings, at, memory_order_release);
    atomic_store_explicit(&server->answers.most, at->limits.answers_bytes_max,
                          memory_order_relaxed);
    return ERR_OK;
}

static void free_server(struct http_server *server)
{
    while (server->kept) {
        struct http_settings *next = server->kept->next;

        free(server->kept);
        server->kept = next;
    }
    http_router_finish(&server->router);
    http_peers_destroy(server->peers);
    http_pool_destroy(server->pool);
    free(server->loops);
    free(server);
}

static void request_returned(struct http_request *request)
{
    http_request_arrive(request, HTTP_RETURNED);
}

static struct http_server *create(const struct http_config *config, const struct http_app *app,
                                  struct err *err)
{
    struct http_server *server = calloc(1, sizeof *server);
    struct http_settings settings;
    uint64_t seed = uv_hrtime();

    if (!server) {
        err_set(err, ERR_NO_MEMORY, "no memory for the server");
        return NULL;
    }
    if (getrandom(&seed, sizeof seed, 0) < 0)
        seed ^= (uint64_t)getpid() << 32;
    server->app = *app;
    server->limits = config->limits;
    server->listener = config->has_listener ? config->listener : -1;
    server->unix_listener = config->has_unix_listener ? config->unix_listener : -1;
    server->is_inherited = config->is_inherited;
    server->probes_only = config->probes_only;
    server->port = config->port;
    snprintf(server->host, sizeof server->host, "%s", config->host);
    server->loop_count = loop_count_for(config->loops);
    server->loops = calloc(server->loop_count, sizeof *server->loops);
    server->peers = http_peers_create(config->limits.connections_max, seed);
    if (!server->loops || !server->peers ||
        !http_router_init(&server->router, app->routes, app->route_count)) {
        err_set(err, ERR_NO_MEMORY, "no memory for the server");
        free_server(server);
        return NULL;
    }
    memset(&settings, 0, sizeof settings);
    settings.limits = config->limits;
    settings.slow_request_ms = config->slow_request_ms;
    settings.access_log = config->access_log;
    err->code = ERR_OK;
    if (settings_publish(server, &settings, err) == ERR_OK &&
        make_cors(server, config->cors_allow_origin, err) == ERR_OK && !config->probes_only)
        server->pool = http_pool_create(&server->limits, app->route_count, request_returned, err);
    if (err->code != ERR_OK) {
        free_server(server);
        return NULL;
    }
    return server;
}

/* Ends the first `started` loops, whose threads run, and the other `created` ones. */
static void end_loops(struct http_server *server, size_t started, size_t created)
{
    atomic_store_explicit(&server->is_draining, true, memory_order_release);
    for (size_t i = 0; i < created; i++)
        http_loop_wake(server->loops[i]);
    for (size_t i = 0; i < created; i++)
        http_loop_join(server->loops[i], i < started);
}

static void free_loops(struct http_server *server, size_t created)
{
    for (size_t i = 0; i < created; i++)
        http_loop_free(server->loops[i]);
}

struct http_server *http_server_start(const struct http_config *config, const struct http_app *app,
                                      struct err *err)
{
    struct http_server *server;
    size_t created = 0, started = 0;

    if (config->host[0] && !config->has_listener && probe_port(config->host, config->port, err))
        return NULL;
    server = create(config, app, err);
    if (!server)
        return NULL;
    while (created < server->loop_count) {
        server->loops[created] =
            http_loop_create(server, created, config->host, &server->port, err);
        if (!server->loops[created])
            break;
        created++;
    }
    while (created == server->loop_count && started < created &&
           http_loop_start(server->loops[started], err) == ERR_OK)
        started++;
    if (started == server->loop_count)
        return server;
    end_loops(server, started, created);
    free_loops(server, created);
    free_server(server);
    return NULL;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

size_t http_server_loops(const struct http_server *server)
{
    return server->loop_count;
}

void http_server_wake(struct http_server *server)
{
    for (size_t i = 0; i < server->loop_count; i++)
        http_loop_wake(server->loops[i]);
}

uint64_t http_server_iterations(const struct http_server *server, size_t loop_index)
{
    CHECK(loop_index < server->loop_count);
    return atomic_load_explicit(&server->loops[loop_index]->counters.iterations,
                                memory_order_relaxed);
}

enum err_code http_server_set(struct http_server *server, const struct http_limits *limits,
                              uint32_t slow_request_ms, bool access_log, struct err *err)
{
    struct http_settings wanted;

    memset(&wanted, 0, sizeof wanted);
    wanted.limits = *limits;
    wanted.limits.connections_max = server->limits.connections_max;
    wanted.limits.workers = server->limits.workers;
    wanted.limits.queue_ms_max = server->limits.queue_ms_max;
    wanted.limits.queued_max = server->limits.queued_max;
    wanted.slow_request_ms = slow_request_ms;
    wanted.access_log = access_log;
    return settings_publish(server, &wanted, err);
}

void http_server_drain(struct http_server *server, uint32_t drain_ms)
{
    server->drain_ms = drain_ms;
    end_loops(server, server->loop_count, server->loop_count);
}

void http_server_free(struct http_server *server)
{
    free_loops(server, server->loop_count);
    free_server(server);
}

void http_server_stop(struct http_server *server, uint32_t drain_ms)
{
    if (!server)
        return;
    http_server_drain(server, drain_ms);
    http_server_free(server);
}

static void add(uint64_t *sum, const _Atomic uint64_t *counter)
{
    *sum += atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_loop(const struct http_loop_counters *counters, struct http_counters *out)
{
    add(&out->accepted, &counters->accepted);
    add(&out->rejected, &counters->rejected);
    add(&out->open, &counters->open);
    add(&out->requests, &counters->requests);
    add(&out->bytes_in, &counters->bytes_in);
    add(&out->bytes_out, &counters->bytes_out);
    add(&out->timeouts, &counters->timeouts);
    add(&out->parse_errors, &counters->parse_errors);
    add(&out->write_errors, &counters->write_errors);
    add(&out->shed, &counters->shed);
    add(&out->latency_us_sum, &counters->latency_us_sum);
    add(&out->streams, &counters->streams);
    add(&out->streams_opened, &counters->streams_opened);
    add(&out->streams_rejected, &counters->streams_rejected);
    for (size_t r = 0; r < HTTP_STREAM_ENDS; r++)
        add(&out->streams_ended[r], &counters->streams_ended[r]);
    add(&out->iteration_us_sum, &counters->iteration_us_sum);
    for (size_t b = 0; b < HTTP_LATENCY_BUCKETS; b++) {
        add(&out->latency_count[b], &counters->latency_count[b]);
        add(&out->iteration_count[b], &counters->iteration_count[b]);
    }
}

void http_server_loop_counters(const struct http_server *server, size_t loop,
                               struct http_counters *out)
{
    CHECK(loop < server->loop_count);
    memset(out, 0, sizeof *out);
    add_loop(&server->loops[loop]->counters, out);
}

void http_server_counters(const struct http_server *server, struct http_counters *out)
{
    struct http_pool_numbers pool = {0};

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < server->loop_count; i++)
        add_loop(&server->loops[i]->counters, out);
    out->loops = server->loop_count;
    out->body_bytes = atomic_load_explicit(&server->body_bytes, memory_order_relaxed);
    if (server->pool)
        http_pool_numbers(server->pool, &pool);
    out->workers = pool.workers;
    out->workers_busy = pool.busy;
    out->queued = pool.queued;
    out->queue_wait_ms = pool.wait_ms;
}

void http_server_route_counters(const struct http_server *server, size_t route,
                                struct http_route_counters *out)
{
    CHECK(route <= server->app.route_count);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < server->loop_count; i++) {
        const struct http_loop_route_counters *counters = &server->loops[i]->route_counters[route];

        for (size_t c = 0; c < 6; c++)
            add(&out->by_class[c], &counters->by_class[c]);
        add(&out->latency_us_sum, &counters->latency_us_sum);
        for (size_t b = 0; b < HTTP_ROUTE_LATENCY_BUCKETS; b++)
            add(&out->latency_count[b], &counters->latency_count[b]);
    }
}
