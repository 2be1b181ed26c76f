/*
 * The course of one exchange: see exchange.h.
 *
 *   bytes -> head check -> llhttp -> target, route, authorization -> body -> handler -> answer
 *
 * The head is accepted whole: once the head check (head.h) has found its end, it is copied into the
 * request's arena and llhttp splits it there, so that all spans stay valid until the request ends.
 * Bodies do without llhttp: a length is counted, chunks have their own check (chunks.h).
 *
 * A request that is refused before its body (unknown path, wrong method, no authority) is answered
 * at once. If the body is small it is read and dropped after that, and the connection kept; if it
 * is large, chunked or waits for 100 Continue, the connection closes.
 *
 * A body with a sink (http.h) is read until there is a piece; then a worker takes that, and reading
 * goes on when the request is back, so a sender is not faster than its sink. What a sink holds may
 * take long to free: when its request was not handled, a worker does that, too, after the answer.
 *
 * A handler on the loop that takes long offloads itself: it begins again on a worker. Its work so
 * far is lost, but the cost of a request need not be known before.
 *
 * A handler, or request_begin, that waits for the application's next state parks: the request ends
 * for the application and begins again after the next wake-up, with the same bytes. So a wait holds
 * neither a thread nor a snapshot.
 *
 * One request at a time: while the application has one, nothing is taken. Answers are therefore
 * in order by construction.
 *
 * Invariant: connection->request is the request being read or handled; it is NULL in
 * the states HEAD and DISCARD.
 */
#include "http/exchange.h"

#include "base/check.h"
#include "base/log.h"
#include "http/answer.h"
#include "http/connection.h"
#include "http/loop.h"
#include "http/pool.h"
#include "http/server_data.h"
#include "http/stream.h"

#include <inttypes.h>
#include <string.h>

/* A refused body up to this size is read to keep the connection. */
#define DISCARD_BYTES_MAX ((uint64_t)64 * 1024)
#define LOGGED_PATH_BYTES 256
/* The time that the batches of one iteration may take of a loop; shorter bodies do not count. */
#define ITERATION_NS_MAX 2000000u
#define SHORT_BODY_BYTES ((size_t)1024)
#define SHED_LOG_MS 1000

/* ---- answering ------------------------------------------------------------------------------- */

static void log_request(const struct http_request *request, size_t bytes, uint64_t us)
{
    const struct http_server *server = request->loop->server;
    int status = request->reply.status;
    bool is_ours = status >= 500 && request->is_begun; /* not a refusal while draining */
    const struct http_settings *settings = http_settings(server);
    bool is_slow = settings->slow_request_ms && us > (uint64_t)settings->slow_request_ms * 1000;
    struct span path = request->target.path;
    /* connections rejected before their request cannot fill the log */
    bool is_failed = is_ours || (status >= 400 && path.at);
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char *name = "-";

    if (request->route && request->route->is_probe && !is_slow)
        return; /* they come every second, and the reason of a failure is in the log */
    if (!settings->access_log && (request->is_shed || (!is_failed && !is_slow)))
        return;
    if (!path.at)
        path = (struct span){"-", 1};
    for (size_t i = 0; i < 5; i++)
        if ((unsigned)request->head.method == 1u << i)
            name = names[i];
    if (request->head.is_head || request->head.is_options)
        name = request->head.is_head ? "HEAD" : "OPTIONS";
    log_write_traced(is_ours || is_slow ? LOG_WARN : LOG_INFO, request->id, request->trace,
                     "%s %.*s %d %zu bytes %" PRIu64 " us%s%s%s", name,
                     path.length < LOGGED_PATH_BYTES ? (int)path.length : LOGGED_PATH_BYTES,
                     path.at, status, bytes, us, is_slow ? " slow" : "",
                     request->reply.log_only[0] ? ": " : "", request->reply.log_only);
}

static void count_request(const struct http_request *request, uint64_t us)
{
    struct http_loop *loop = request->loop;
    struct http_loop_counters *counters = &loop->counters;
    struct http_loop_route_counters *route = &loop->route_counters[request->route_index];
    size_t bucket = http_latency_bucket(us);

    http_count(&counters->requests, 1);
    http_count(&counters->latency_us_sum, us);
    http_count(&counters->latency_count[bucket], 1);
    http_count(&route->by_class[request->reply.status / 100], 1);
    http_count(&route->latency_us_sum, us);
    http_count(&route->latency_count[(bucket + 1) / 2], 1); /* two of those make one of these */
}

static void decide_to_close(struct http_connection *connection, const struct http_request *request)
{
    if (!request->head.wants_keep_alive)
        connection->close_after = true;
    if (request->loop->is_draining && !connection->close_after)
        connection->close_after = connection->linger_after = true;
}

/* Encodes the answer of a request whose peer is still there; a stream begins. */
static size_t answer(struct http_connection *connection, struct http_request *request)
{
    struct err err;
    size_t bytes;
    bool ok;

    if (request->reply.is_failed && request->reply.is_made) {
        connection->close_after = true;
        return 0;
    }
    if (request->reply.is_failed) {
        err_set(&err, ERR_NO_MEMORY, "no memory for the answer");
        http_reply_problem(&request->reply, &err);
    }
    if (!request->reply.is_endless)
        decide_to_close(connection, request);
    bytes = http_answer_encode(connection, request,
                               connection->close_after || request->reply.is_endless, &ok);
    if (!ok || (request->reply.is_endless && !request->stream))
        connection->close_after = true;
    else if (request->reply.is_endless)
        http_stream_begin(connection, request);
    return bytes;
}

/* A worker takes the body so far, or drops the sink. The loop does not end before it is back. */
static void push_to_sink(struct http_request *request)
{
    request->is_at_sink = true;
    request->loop->requests_begun++;
    http_pool_push_sink(request->loop->server->pool, request);
}

void http_exchange_release(struct http_request *request)
{
    if (!request->sink) {
        http_request_release(request);
        return;
    }
    request->connection = NULL;
    atomic_store_explicit(&request->is_abandoned, true, memory_order_relaxed);
    push_to_sink(request);
}

/* The reply is complete: sends it, counts and logs it, ends the request. */
static void complete(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    struct http_loop *loop = request->loop;
    const struct http_app *app = &loop->server->app;
    uint64_t us;
    size_t bytes = 0;

    loop->clock_ns = uv_hrtime();
    loop->is_clock_fresh = true;
    us = (loop->clock_ns - request->started_ns) / 1000;
    if (connection)
        bytes = answer(connection, request);
    if (request->stream)
        http_stream_cancel(request);
    count_request(request, us);
    log_request(request, bytes, us);
    if (request->is_begun) {
        if (app->request_end)
            app->request_end(app->context, request);
        loop->requests_begun--;
    }
    http_exchange_release(request);
    if (connection) {
        connection->request = NULL;
        connection->state = connection->stream ? HTTP_CONNECTION_STREAM : HTTP_CONNECTION_HEAD;
    } else {
        http_loop_something_ended(loop);
    }
}

void http_exchange_fail(struct http_connection *connection, const struct err *err)
{
    struct http_request *request = connection->request;

    if (!request) {
        request = http_request_take(connection->loop, connection);
        if (!request) {
            connection->close_after = true;
            return;
        }
        request->head = connection->head;
        request->started_ns = uv_hrtime();
        connection->request = request;
    }
    connection->close_after = connection->linger_after = true;
    http_reply_problem(&request->reply, err);
    complete(request);
}

/* ---- handling -------------------------------------------------------------------------------- */

/* The handler has returned: answers, unless a deferred request is not finished yet. */
static bool returned(struct http_request *request)
{
    request->is_returned = true;
    if (request->is_deferred && !request->is_finished)
        return false;
    complete(request);
    return true;
}

static void note_shed(struct http_loop *loop, const char *why)
{
    uint64_t now_ms = uv_now(&loop->uv);

    http_count(&loop->counters.shed, 1);
    if (loop->shed_logged_ms && now_ms - loop->shed_logged_ms < SHED_LOG_MS)
        return;
    loop->shed_logged_ms = now_ms ? now_ms : 1;
    log_warn("overload, requests are refused: %s", why);
}

/* The next piece may come; or the request ends, by an error or because its peer has left. */
static bool back_from_sink(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    struct http_loop *loop = request->loop;

    request->is_at_sink = false;
    loop->requests_begun--;
    if (!connection) {
        http_exchange_release(request);
        http_loop_something_ended(loop);
        return false;
    }
    connection->state = HTTP_CONNECTION_BODY;
    connection->body_since_ms += uv_now(&loop->uv) - connection->sink_since_ms;
    if (request->reply.status >= 400) {
        connection->close_after = connection->linger_after = true;
        complete(request);
    }
    return true;
}

bool http_exchange_arrived(struct http_request *request, enum http_arrival arrival)
{
    if (request->is_at_sink)
        return back_from_sink(request);
    if (arrival == HTTP_RETURNED) {
        if (request->is_shed)
            note_shed(request->loop, "they have waited too long for a worker");
        return returned(request);
    }
    CHECK(!request->is_finished);
    request->is_finished = true;
    if (!request->is_returned)
        return false;
    complete(request);
    return true;
}

/* No worker will have time: the request is refused. */
static void shed(struct http_request *request, const struct err *err)
{
    request->is_shed = true;
    note_shed(request->loop, err->msg);
    http_reply_problem(&request->reply, err);
}

/* ---- parking --------------------------------------------------------------------------------- */

/* The handler cannot answer yet: the request ends for the application, and waits. */
static void park(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    const struct http_app *app = &loop->server->app;

    http_reply_reset(&request->reply);
    if (app->request_end)
        app->request_end(app->context, request);
    loop->requests_begun--;
    request->user = NULL;
    request->is_begun = request->is_parking = request->may_offload = false;
    request->is_parked = true;
    if (request->park_until_ms == 0)
        request->park_until_ms = uv_now(&loop->uv) + http_limits_now(loop->server)->park_ms_max;
    request->next_parked = NULL;
    request->previous_parked = loop->last_parked;
    if (loop->last_parked)
        loop->last_parked->next_parked = request;
    else
        loop->parked = request;
    loop->last_parked = request;
    loop->parked_count++;
}

void http_exchange_unpark(struct http_request *request)
{
    struct http_loop *loop = request->loop;

    if (!request->is_parked)
        return;
    if (request->previous_parked)
        request->previous_parked->next_parked = request->next_parked;
    else
        loop->parked = request->next_parked;
    if (request->next_parked)
        request->next_parked->previous_parked = request->previous_parked;
    else
        loop->last_parked = request->previous_parked;
    loop->parked_count--;
    request->is_parked = false;
}

/*
 * Of a route by size. All batches of one iteration together have ITERATION_NS_MAX of the loop;
 * later ones go to a worker, so that small requests after them are answered soon.
 */
static bool stays_on_loop(const struct http_loop *loop, size_t body_bytes)
{
    if (body_bytes > http_limits_now(loop->server)->loop_body_bytes_max)
        return false;
    return body_bytes <= SHORT_BODY_BYTES || loop->clock_ns - loop->iteration_ns < ITERATION_NS_MAX;
}

/* Begins the request for the application and runs its handler, or has a worker run it. */
static void handle(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    const struct http_app *app = &loop->server->app;
    enum http_place place = request->route->place;
    struct err err;

    request->is_begun = request->is_on_loop = true;
    loop->requests_begun++;
    if (app->request_begin)
        app->request_begin(app->context, request);
    if (place == HTTP_BY_SIZE) {
        request->may_offload = stays_on_loop(loop, request->body_length);
        place = request->may_offload ? HTTP_ON_LOOP : HTTP_ON_WORKER;
    }
    if (request->body_length > SHORT_BODY_BYTES && place == HTTP_ON_LOOP)
        http_connection_flush_writes(loop);
    if (place == HTTP_ON_LOOP && !request->is_parking)
        request->route->handler(request, &request->reply);
    request->is_on_loop = false;
    if (request->is_parking) {
        park(request);
        return;
    }
    if (place == HTTP_ON_LOOP && !request->is_offloaded) {
        returned(request);
        return;
    }
    if (request->is_offloaded)
        http_reply_reset(&request->reply);
    request->may_offload = false;
    if (http_pool_push(loop->server->pool, request, &err))
        return;
    shed(request, &err);
    returned(request);
}

void http_exchange_retry(struct http_request *request, bool is_last)
{
    http_exchange_unpark(request);
    request->is_last_try = is_last || request->loop->is_draining;
    request->started_ns = uv_hrtime(); /* a wait by Kota-Min-Revision is no latency */
    handle(request);
}

static void dispatch(struct http_connection *connection, struct http_request *request)
{
    const struct http_loop *loop = request->loop;

    connection->state = HTTP_CONNECTION_HANDLING;
    request->started_ns = loop->clock_ns;
    request->is_last_try = loop->is_draining || http_limits_now(loop->server)->park_ms_max == 0 ||
                           connection->peer_ended;
    handle(request);
}

/* ---- from head to route ---------------------------------------------------------------------- */

static void answer_options(struct http_request *request, const char *allow)
{
    struct http_reply *reply = &request->reply;

    http_reply_status(reply, 204);
    http_reply_header(reply, "Allow", "%s", allow);
    if (!request->loop->server->has_cors)
        return;
    http_reply_header(reply, "Access-Control-Allow-Methods", "%s", allow);
    http_reply_header(reply, "Access-Control-Allow-Headers",
                      "Authorization, Content-Type, If-Match, If-None-Match, If-Range, "
                      "Idempotency-Key, Kota-Layout, Kota-Min-Revision, Last-Event-ID, Range, "
                      "X-Request-Id, traceparent");
    http_reply_header(reply, "Access-Control-Max-Age", "86400");
}

/* Is the target's route for probes? */
static bool is_for_probes(const struct http_request *request)
{
    const struct http_router *router = &request->loop->server->router;
    struct http_match match;

    http_router_find(router, &request->target, METHOD_GET, &match);
    return match.route < router->route_count && router->routes[match.route].is_probe;
}

/* Beyond the limits, or on a listener of their own, nothing but probes is answered. */
static enum err_code admit_probes(struct http_request *request, struct err *err)
{
    const struct http_connection *connection = request->connection;
    bool is_reserve = connection->reserve != ERR_OK;

    if ((!is_reserve && !request->loop->server->probes_only) || is_for_probes(request)) {
        request->head.wants_keep_alive = request->head.wants_keep_alive && !is_reserve;
        return ERR_OK;
    }
    if (!is_reserve)
        return err_set(err, ERR_NOT_FOUND, "there is nothing but probes and counters here");
    request->head.wants_keep_alive = false;
    return http_connection_refuse(connection, err);
}

static enum err_code nothing_there(const struct http_request *request, struct err *err)
{
    struct span path = request->target.path;
    int shown = path.length < LOGGED_PATH_BYTES ? (int)path.length : LOGGED_PATH_BYTES;
    char guess[LOGGED_PATH_BYTES];

    err_set(err, ERR_NOT_FOUND, "there is nothing at the path %.*s", shown, path.at);
    if (http_router_guess(&request->loop->server->router, &request->target, guess, sizeof guess))
        err_set(err, ERR_NOT_FOUND, "there is nothing at the path %.*s (did you mean %s?)", shown,
                path.at, guess);
    return err_at(err, "path");
}

static enum err_code find_route(struct http_request *request, bool *is_answered, struct err *err)
{
    const struct http_router *router = &request->loop->server->router;
    struct http_match *match = &request->match;
    struct span path = request->target.path;
    int shown = path.length < LOGGED_PATH_BYTES ? (int)path.length : LOGGED_PATH_BYTES;
    char allow[96];

    if (request->target.is_asterisk) {
        if (!request->head.is_options)
            return err_set(err, ERR_BAD_REQUEST, "the target * is for OPTIONS only");
        http_router_allow_text(~0u, allow, sizeof allow);
        answer_options(request, allow);
        *is_answered = true;
        return ERR_OK;
    }
    http_router_find(router, &request->target, request->head.method, match);
    if (match->allowed == 0)
        return nothing_there(request, err);
    if (request->head.is_options) {
        http_router_allow_text(match->allowed, allow, sizeof allow);
        answer_options(request, allow);
        *is_answered = true;
        return ERR_OK;
    }
    if (match->route == router->route_count) {
        http_router_allow_text(match->allowed, allow, sizeof allow);
        err_set(err, ERR_METHOD_NOT_ALLOWED, "%.*s does not take this method, but %s", shown,
                path.at, allow);
        http_reply_problem(&request->reply, err);
        http_reply_header(&request->reply, "Allow", "%s", allow);
        *is_answered = true;
        return ERR_OK;
    }
    request->route_index = match->route;
    request->route = &router->routes[match->route];
    return ERR_OK;
}

static enum err_code check_length(struct http_request *request, struct err *err)
{
    const struct http_limits *limits = http_limits_now(request->loop->server);
    size_t most =
        request->route->body_bytes_max ? request->route->body_bytes_max : limits->body_bytes_max;

    request->body_bytes_max = request->sink ? SIZE_MAX : most;
    if (request->head.content_length > request->body_bytes_max)
        return err_limit(err, ERR_BODY_TOO_LARGE, (double)most,
                         (double)request->head.content_length,
                         "the body has %" PRIu64 " bytes; at most %zu are taken",
                         request->head.content_length, most);
    return ERR_OK;
}

/*
 * A body that a worker will have to take is not read when no worker would have time. A body of
 * unknown length counts as empty until it is complete.
 */
static bool has_worker(struct http_request *request)
{
    struct http_server *server = request->loop->server;
    struct err err;
    uint64_t bytes = request->head.content_length;
    bool is_for_worker = request->route->place == HTTP_ON_WORKER ||
                         (request->route->place == HTTP_BY_SIZE &&
                          bytes > http_limits_now(server)->loop_body_bytes_max);

    if (!is_for_worker || (bytes == 0 && !request->head.is_chunked) ||
        http_pool_has_room(server->pool, request, bytes, &err))
        return true;
    shed(request, &err);
    return false;
}

static bool has_body(const struct http_head *head)
{
    return head->is_chunked || head->content_length > 0;
}

/* The application looks at a request whose body is to come; true when it has refused it. */
static bool begin_body(struct http_request *request)
{
    const struct http_app *app = &request->loop->server->app;

    if (!app->body_begin || !has_body(&request->head))
        return false;
    app->body_begin(app->context, request, &request->reply);
    if (request->reply.status >= 400)
        return true;
    http_reply_reset(&request->reply);
    return false;
}

/* All checks before the body; *is_answered when the reply is already made. */
static enum err_code admit(struct http_request *request, bool *is_answered, struct err *err)
{
    const struct http_app *app = &request->loop->server->app;
    const struct http_head *head = &request->head;

    if (http_target_parse(&request->target, head->target, &request->arena, err) ||
        admit_probes(request, err) || find_route(request, is_answered, err))
        return err->code;
    if (*is_answered)
        return ERR_OK;
    if (head->expects_other)
        return err_set(err, ERR_EXPECTATION_FAILED, "only Expect: 100-continue is understood");
    /* a proxy that reads the last of several would see another request than this server does */
    if (head->repeated)
        return err_set(err, ERR_BAD_REQUEST, "there is more than one %s header", head->repeated);
    if (app->authorize && app->authorize(app->context, request, request->route, err))
        return err->code;
    *is_answered = begin_body(request);
    if (*is_answered)
        return ERR_OK;
    if (check_length(request, err))
        return err->code;
    *is_answered = !has_worker(request);
    return ERR_OK;
}

/* Answers now. A small body is read and dropped after that, for any other the connection ends. */
static void refuse_body(struct http_connection *connection, struct http_request *request,
                        bool waits_for_continue)
{
    connection->discard_bytes = request->head.content_length;
    connection->linger_after = true;
    if (waits_for_continue || request->head.is_chunked ||
        request->head.content_length > DISCARD_BYTES_MAX)
        connection->close_after = true;
    complete(request);
    if (connection->close_after)
        return;
    connection->linger_after = false;
    connection->state = HTTP_CONNECTION_DISCARD;
}

/* After the head: answers or dispatches a request without a body, else waits for the body. */
static void go_on(struct http_connection *connection, struct http_request *request,
                  bool is_answered, bool more_bytes_follow)
{
    const struct http_head *head = &request->head;
    bool waits = head->expects_continue && !head->is_1_0;

    if (!has_body(head)) {
        if (is_answered)
            complete(request);
        else
            dispatch(connection, request);
        return;
    }
    if (head->is_chunked)
        memset(&request->chunks, 0, offsetof(struct http_chunks, line));
    connection->body_received = 0;
    connection->body_since_ms = uv_now(&request->loop->uv);
    if (is_answered) {
        refuse_body(connection, request, waits);
        return;
    }
    connection->state = HTTP_CONNECTION_BODY;
    if (waits && !more_bytes_follow && !http_answer_continue(connection))
        connection->close_after = true;
}

/* Copies the head into the request's own memory and parses it there. */
static enum err_code parse_head(struct http_request *request, const char *at, struct err *err)
{
    struct http_head *head = &request->head;
    char *text = http_arena_alloc(&request->arena, head->length);
    struct http_field *fields =
        http_arena_alloc(&request->arena, head->line_count * sizeof *fields);

    if (!text || !fields)
        return err_set(err, ERR_NO_MEMORY, "no memory for the request");
    memcpy(text, at, head->length);
    return http_head_parse(head, text, fields, http_limits_now(request->loop->server), err);
}

/* Begins the request whose checked head is at `at`. */
static void begin(struct http_connection *connection, const char *at, bool more_bytes_follow)
{
    struct http_request *request = http_request_take(connection->loop, connection);
    struct err err;
    bool is_answered = false;

    if (!request) {
        connection->close_after = true;
        return;
    }
    connection->request = request;
    connection->has_asked = true;
    request->head = connection->head;
    memset(&connection->head, 0, sizeof connection->head);
    connection->head_since_ms = 0;
    request->peer = connection->peer;
    if (parse_head(request, at, &err)) {
        http_count(&connection->loop->counters.parse_errors, err.code != ERR_NO_MEMORY);
        http_exchange_fail(connection, &err);
        return;
    }
    http_request_take_ids(request);
    if (admit(request, &is_answered, &err)) {
        http_reply_problem(&request->reply, &err);
        is_answered = true;
    }
    go_on(connection, request, is_answered, more_bytes_follow);
}

/* ---- feeding --------------------------------------------------------------------------------- */

static size_t feed_head(struct http_connection *connection, const char *at, size_t length)
{
    struct http_loop *loop = connection->loop;
    size_t head_bytes;
    struct err err;

    switch (http_head_feed(&connection->head, at, length, http_limits_now(loop->server), &err)) {
    case HTTP_HEAD_MORE:
        return 0;
    case HTTP_HEAD_BAD:
        http_count(&loop->counters.parse_errors, 1);
        http_exchange_fail(connection, &err);
        return 0;
    default:
        head_bytes = connection->head.length;
        begin(connection, at, length > head_bytes);
        return head_bytes;
    }
}

/* The first run of the body in at[0..length), how many bytes that takes, and whether it ends. */
static enum err_code measure_body(struct http_connection *connection, const char *at, size_t length,
                                  size_t *used, struct span *data, bool *is_last, struct err *err)
{
    struct http_request *request = connection->request;
    const struct http_limits *limits = http_limits_now(connection->loop->server);

    if (request->head.is_chunked) {
        if (http_chunks_feed(&request->chunks, at, length, request->body_bytes_max, limits, used,
                             data, err))
            return err->code;
        *is_last = request->chunks.is_done;
        return ERR_OK;
    }
    *used = length;
    if (*used > request->head.content_length - connection->body_received)
        *used = (size_t)(request->head.content_length - connection->body_received);
    *data = (struct span){at, *used};
    *is_last = connection->body_received + *used == request->head.content_length;
    return ERR_OK;
}

static size_t feed_body(struct http_connection *connection, const char *at, size_t length)
{
    struct http_request *request = connection->request;
    struct span data = {at, 0};
    struct err err;
    size_t used = 0;
    bool is_last = false;

    if (measure_body(connection, at, length, &used, &data, &is_last, &err)) {
        http_count(&connection->loop->counters.parse_errors, err.code == ERR_BAD_REQUEST);
        http_exchange_fail(connection, &err);
        return 0;
    }
    if (data.length && http_request_append_body(request, data.at, data.length, &err)) {
        http_exchange_fail(connection, &err);
        return 0;
    }
    connection->body_received += used;
    if (is_last) {
        dispatch(connection, request);
    } else if (request->sink && request->body_length >= HTTP_SINK_BYTES) {
        connection->state = HTTP_CONNECTION_HANDLING;
        connection->sink_since_ms = uv_now(&request->loop->uv);
        push_to_sink(request);
    }
    return used;
}

static size_t feed_discarded(struct http_connection *connection, size_t length)
{
    uint64_t left = connection->discard_bytes - connection->body_received;
    size_t used = length < left ? length : (size_t)left;

    connection->body_received += used;
    if (connection->body_received == connection->discard_bytes)
        connection->state = HTTP_CONNECTION_HEAD;
    return used;
}

static size_t feed(struct http_connection *connection, const char *at, size_t length)
{
    if (connection->state == HTTP_CONNECTION_HEAD)
        return feed_head(connection, at, length);
    if (connection->state == HTTP_CONNECTION_BODY)
        return feed_body(connection, at, length);
    return feed_discarded(connection, length);
}

size_t http_exchange_feed(struct http_connection *connection, const char *at, size_t length)
{
    struct http_loop *loop = connection->loop;
    size_t used = 0;

    if (!loop->is_clock_fresh)
        loop->clock_ns = uv_hrtime();
    loop->is_clock_fresh = false;
    if (loop->iteration_ns == 0)
        loop->iteration_ns = loop->clock_ns;
    while (used < length && http_connection_takes_input(connection)) {
        size_t taken = feed(connection, at + used, length - used);

        if (taken == 0)
            break;
        used += taken;
    }
    return used;
}
