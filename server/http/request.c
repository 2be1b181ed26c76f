/*
 * Requests: see request.h and, for the functions of handlers, http.h.
 *
 * A request object is large (its first arena block and the reply's headers are inside) and is kept
 * in a pool of its loop, so that an ordinary request needs no malloc. A body of known small length
 * goes into the arena; any other grows by doubling in memory of its own, and every byte of that is
 * charged to one budget of the server: announcing 64 MiB costs nothing, sending it does.
 *
 * A request returns from a worker, or from the owner of a deferred one, through a list that any
 * thread may push to and only the loop empties. `finishing` counts the threads between their push
 * and their wake-up: the loop may end its life only when there is none, since the wake-up still
 * touches it.
 */
#include "http/request.h"

#include "base/check.h"
#include "http/connection_data.h"
#include "http/loop_data.h"
#include "http/server_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL_REQUESTS_MAX 64
#define BODY_ARENA_BYTES ((size_t)2048)
#define BODY_FIRST_BYTES ((size_t)16 * 1024)

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Eight hexadecimal digits, one a byte: each half-byte is moved to a byte of its own. */
static uint64_t hex_digits(uint32_t value)
{
    const uint64_t each = 0x0101010101010101u;
    uint64_t x = value, above_9;

    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    above_9 = (x + 6 * each) >> 4 & each;
    return x + '0' * each + above_9 * ('a' - '0' - 10);
}

static void write_id(struct http_loop *loop, char *id)
{
    uint64_t value = mix(loop->id_state += 0x9e3779b97f4a7c15u);
    uint64_t low = hex_digits((uint32_t)value), high = hex_digits((uint32_t)(value >> 32));

    memcpy(id, &high, 8);
    memcpy(id + 8, &low, 8);
    id[HTTP_ID_BYTES] = '\0';
}

static bool is_id(struct span value)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return value.length > 0 && value.length <= HTTP_ID_BYTES_MAX;
}

/* 00-(32 hex)-(16 hex)-(2 hex), lower case, neither number all zero. W3C Trace Context, 3.2.2. */
static bool is_trace(struct span value)
{
    static const char form[] = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
    static const char zeros[] = "00000000000000000000000000000000";

    _Static_assert(sizeof form - 1 == HTTP_TRACE_BYTES, "the form has every byte");
    if (value.length != HTTP_TRACE_BYTES)
        return false;
    for (size_t i = 0; i < HTTP_TRACE_BYTES; i++) {
        char c = value.at[i];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');

        if (form[i] == 'h' ? !is_hex : c != form[i])
            return false;
    }
    return memcmp(value.at + 3, zeros, 32) != 0 && memcmp(value.at + 36, zeros, 16) != 0;
}

static struct http_request *new_request(struct http_loop *loop)
{
    struct http_request *request = aligned_alloc(64, (sizeof *request + 63) & ~(size_t)63);

    if (!request)
        return NULL;
    memset(request, 0, sizeof *request);
    request->loop = loop;
    request->reply.budget = &loop->server->answers;
    http_reply_reset(&request->reply);
    http_arena_init(&request->arena, request->first, sizeof request->first,
                    HTTP_REQUEST_ARENA_BYTES_MAX);
    return request;
}

struct http_request *http_request_take(struct http_loop *loop, struct http_connection *connection)
{
    struct http_request *request = loop->free_requests;

    if (request) {
        loop->free_requests = request->next;
        loop->free_request_count--;
    } else {
        request = new_request(loop);
        if (!request)
            return NULL;
    }
    request->next = NULL;
    request->connection = connection;
    memset(&request->route, 0,
           offsetof(struct http_request, route_index) - offsetof(struct http_request, route));
    request->route_index = loop->server->app.route_count;
    request->target.is_asterisk = false;
    request->target.path = (struct span){NULL, 0};
    request->target.segment_count = request->target.item_count = 0;
    request->match.param_count = 0;
    atomic_store_explicit(&request->is_abandoned, false, memory_order_relaxed);
    request->started_ns = loop->clock_ns;
    request->build_us = 0;
    write_id(loop, request->id);
    request->id_length = HTTP_ID_BYTES;
    request->trace[0] = '\0';
    return request;
}

static void drop_body(struct http_request *request)
{
    if (request->body_charged) {
        atomic_fetch_sub_explicit(&request->loop->server->body_bytes, request->body_charged,
                                  memory_order_relaxed);
        http_spares_give(&request->loop->spares, request->body, request->body_capacity);
    }
    request->body = NULL;
    request->body_length = request->body_capacity = request->body_charged = 0;
}

void http_request_release(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    const struct http_app *app = &loop->server->app;

    if (request->grant)
        app->grant_release(app->context, request->grant);
    request->grant = NULL;
    drop_body(request);
    http_reply_reset(&request->reply);
    http_arena_reset(&request->arena);
    request->connection = NULL;
    if (loop->free_request_count >= POOL_REQUESTS_MAX) {
        http_request_free(request);
        return;
    }
    request->next = loop->free_requests;
    loop->free_requests = request;
    loop->free_request_count++;
}

void http_request_free(struct http_request *request)
{
    http_reply_free(&request->reply);
    free(request);
}

static size_t grown_capacity(const struct http_request *request, size_t needed)
{
    size_t capacity = request->body_capacity ? request->body_capacity : BODY_FIRST_BYTES;

    while (capacity < needed)
        capacity *= 2;
    if (request->head.has_content_length && capacity > request->head.content_length)
        capacity = (size_t)request->head.content_length;
    return capacity;
}

/* A body that becomes large goes on in the memory of an earlier one, if there is some. */
static void move_to_spare(struct http_request *request)
{
    size_t capacity;
    char *spare = http_spares_take(&request->loop->spares, &capacity);

    if (!spare)
        return;
    memcpy(spare, request->body, request->body_length);
    free(request->body);
    request->body = spare;
    request->body_capacity = capacity;
}

static enum err_code grow_body(struct http_request *request, size_t needed, struct err *err)
{
    struct http_server *server = request->loop->server;
    size_t capacity = grown_capacity(request, needed), more;
    size_t most = http_limits_now(server)->bodies_bytes_max, held;
    char *body;

    if (request->head.has_content_length && request->head.content_length <= BODY_ARENA_BYTES) {
        request->body_capacity = (size_t)request->head.content_length;
        request->body = http_arena_alloc(&request->arena, request->body_capacity);
        return request->body ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory for the body");
    }
    if (capacity >= HTTP_SPARE_BYTES_MIN && request->body_charged > 0 &&
        request->body_capacity < HTTP_SPARE_BYTES_MIN)
        move_to_spare(request);
    if (capacity < request->body_capacity)
        capacity = request->body_capacity;
    more = capacity - request->body_charged;
    held = atomic_fetch_add_explicit(&server->body_bytes, more, memory_order_relaxed) + more;
    body = held > most                          ? NULL
           : capacity == request->body_capacity ? request->body
                                                : realloc(request->body, capacity);
    if (!body) {
        atomic_fetch_sub_explicit(&server->body_bytes, more, memory_order_relaxed);
        if (held <= most)
            return err_set(err, ERR_NO_MEMORY, "no memory for a body of %zu bytes", needed);
        return err_set(err, ERR_BUSY, "the bodies of all requests together exceed %zu bytes", most);
    }
    request->body = body;
    request->body_capacity = request->body_charged = capacity;
    return ERR_OK;
}

enum err_code http_request_append_body(struct http_request *request, const char *at, size_t length,
                                       struct err *err)
{
    if (length > request->body_bytes_max - request->body_length)
        return err_limit(err, ERR_BODY_TOO_LARGE, (double)request->body_bytes_max,
                         (double)(request->body_length + length),
                         "the body has more than %zu bytes", request->body_bytes_max);
    if (length > request->body_capacity - request->body_length &&
        grow_body(request, request->body_length + length, err))
        return err->code;
    memcpy(request->body + request->body_length, at, length);
    request->body_length += length;
    return ERR_OK;
}

struct span http_request_body(const struct http_request *request)
{
    return (struct span){request->body ? request->body : "", request->body_length};
}

void http_request_set_sink(struct http_request *request, const struct http_sink *sink,
                           void *context)
{
    CHECK(!request->sink && !request->is_begun && request->route->place == HTTP_ON_WORKER);
    request->sink = sink;
    request->sink_context = context;
}

void *http_request_take_sink(struct http_request *request)
{
    void *context = request->sink ? request->sink_context : NULL;

    request->sink = NULL;
    return context;
}

void http_request_run_sink(struct http_request *request)
{
    const struct http_sink *sink = request->sink;
    struct err err;

    if (http_request_is_abandoned(request)) {
        sink->drop(http_request_take_sink(request));
        return;
    }
    if (sink->take(request->sink_context, request->body, request->body_length, &err))
        http_reply_problem(&request->reply, &err);
    request->sunk_bytes += request->body_length;
    request->body_length = 0;
}

bool http_request_body_announced(const struct http_request *request, uint64_t *bytes)
{
    *bytes = request->head.content_length;
    return request->head.has_content_length;
}

struct span http_request_media_type(const struct http_request *request)
{
    return request->head.media_type;
}

const struct http_route *http_request_route(const struct http_request *request)
{
    return request->route;
}

struct span http_request_target(struct http_request *request)
{
    const struct http_target *target = &request->target;
    size_t query = target->query.at ? target->query.length + 1 : 0;
    char *text = http_request_alloc(request, target->path.length + query + 1);

    if (!text)
        return (struct span){NULL, 0};
    memcpy(text, target->path.at, target->path.length);
    if (query > 0) {
        text[target->path.length] = '?';
        memcpy(text + target->path.length + 1, target->query.at, target->query.length);
    }
    return (struct span){text, target->path.length + query};
}

struct span http_request_param(const struct http_request *request, size_t n)
{
    CHECK(n < request->match.param_count);
    return request->match.params[n];
}

/* The first field of that name from the i-th on; NULL: none. */
static const struct http_field *find_field(const struct http_request *request, size_t i,
                                           const char *name)
{
    size_t length = strlen(name);

    for (; i < request->head.field_count; i++) {
        const struct http_field *field = &request->head.fields[i];

        if (field->name.length == length && memcmp(field->name.at, name, length) == 0)
            return field;
    }
    return NULL;
}

struct span http_request_header(const struct http_request *request, const char *name)
{
    const struct http_field *field = find_field(request, 0, name);

    return field ? field->value : (struct span){NULL, 0};
}

bool http_request_header_is_repeated(const struct http_request *request, const char *name)
{
    const struct http_field *field = find_field(request, 0, name);

    return field && find_field(request, (size_t)(field - request->head.fields) + 1, name);
}

void http_request_take_ids(struct http_request *request)
{
    struct span id = http_request_header(request, "x-request-id");
    struct span trace = http_request_header(request, "traceparent");

    if (id.at && is_id(id) && !http_request_header_is_repeated(request, "x-request-id")) {
        memcpy(request->id, id.at, id.length);
        request->id[id.length] = '\0';
        request->id_length = (uint8_t)id.length;
    }
    if (trace.at && is_trace(trace) && !http_request_header_is_repeated(request, "traceparent")) {
        memcpy(request->trace, trace.at, HTTP_TRACE_BYTES);
        request->trace[HTTP_TRACE_BYTES] = '\0';
    }
}

bool http_request_has_header_prefix(const struct http_request *request, const char *prefix)
{
    size_t length = strlen(prefix);

    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http_field *field = &request->head.fields[i];

        if (field->name.length >= length && memcmp(field->name.at, prefix, length) == 0)
            return true;
    }
    return false;
}

size_t http_request_query_count(const struct http_request *request)
{
    return request->target.item_count;
}

const struct http_query_item *http_request_query_items(const struct http_request *request)
{
    return request->target.items;
}

bool http_request_is_head(const struct http_request *request)
{
    return request->head.is_head;
}

bool http_request_peer_is_loopback(const struct http_request *request)
{
    return request->peer.is_loopback;
}

bool http_request_peer_is_in(const struct http_request *request,
                             const struct http_networks *networks)
{
    return http_networks_have(networks, request->peer.address);
}

bool http_request_peer_uid(const struct http_request *request, uint32_t *uid)
{
    *uid = request->peer.uid;
    return request->peer.has_uid;
}

size_t http_request_loop(const struct http_request *request)
{
    return request->loop->index;
}

void *http_request_alloc(struct http_request *request, size_t bytes)
{
    return http_arena_alloc(&request->arena, bytes);
}

void http_request_set_user(struct http_request *request, void *user)
{
    request->user = user;
}

void http_request_set_grant(struct http_request *request, void *grant)
{
    CHECK(!request->grant);
    request->grant = grant;
}

void http_request_set_flow(struct http_request *request, uint32_t flow)
{
    request->flow = flow;
}

void http_request_set_note(struct http_request *request, void *note)
{
    request->note = note;
}

void *http_request_note(const struct http_request *request)
{
    return request->note;
}

struct span http_request_id(const struct http_request *request)
{
    return (struct span){request->id, request->id_length};
}

void http_request_peer_address(const struct http_request *request, char *out, size_t size)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    out[0] = '\0';
    if (request->peer.has_uid)
        snprintf(out, size, "uid-%u", (unsigned)request->peer.uid);
    else if (request->connection &&
             getpeername(request->connection->fd, (struct sockaddr *)&address, &length) == 0)
        uv_ip_name((struct sockaddr *)&address, out, size);
}

bool http_request_first_charge(struct http_request *request)
{
    const bool is_first = !request->is_charged;

    request->is_charged = true;
    return is_first;
}

void *http_request_grant(const struct http_request *request)
{
    return request->grant;
}

void *http_request_user(const struct http_request *request)
{
    return request->user;
}

void *http_request_app_context(const struct http_request *request)
{
    return request->loop->server->app.context;
}

void http_request_defer(struct http_request *request)
{
    CHECK(request->is_begun && !request->is_returned);
    request->is_deferred = true;
}

void http_request_built(struct http_request *request, double build_ms)
{
    request->build_us = (uint64_t)(build_ms * 1000);
}

void http_request_arrive(struct http_request *request, enum http_arrival arrival)
{
    struct http_loop *loop = request->loop;
    _Atomic(struct http_request *) *list = &loop->arrived[arrival];
    struct http_request *head = atomic_load_explicit(list, memory_order_relaxed);

    atomic_fetch_add_explicit(&loop->finishing, 1, memory_order_relaxed);
    do
        request->next_arrived[arrival] = head;
    while (!atomic_compare_exchange_weak_explicit(list, &head, request, memory_order_release,
                                                  memory_order_relaxed));
    wake_send(&loop->wake);
    atomic_fetch_sub_explicit(&loop->finishing, 1, memory_order_release);
}

void http_request_finish(struct http_request *request)
{
    http_request_arrive(request, HTTP_FINISHED);
}

bool http_request_is_on_loop(const struct http_request *request)
{
    return request->is_on_loop;
}

bool http_request_may_offload(const struct http_request *request)
{
    return request->may_offload;
}

void http_request_offload(struct http_request *request)
{
    CHECK(request->may_offload && !request->is_deferred);
    request->is_offloaded = true;
}

void http_request_park(struct http_request *request)
{
    CHECK(request->is_on_loop && !request->is_deferred && !request->is_offloaded);
    CHECK(!request->is_last_try && !request->stream);
    request->is_parking = true;
}

bool http_request_is_last_try(const struct http_request *request)
{
    return request->is_last_try;
}

bool http_request_is_abandoned(const struct http_request *request)
{
    return atomic_load_explicit(&request->is_abandoned, memory_order_relaxed);
}
