/*
 * Streams: answers that do not end (server-sent events); see stream.h and http.h.
 *
 * Problem: a thousand readers follow the events, some of them slowly, some of them vanished, and
 * none of them may hold memory, a snapshot, or the loop.
 *
 * Approach: nothing is pushed. A stream is pulled when it may have events: at its start, after a
 * wake-up of the server, and when its output has been sent. It holds at most
 * HTTP_STREAM_OUTPUT_BYTES of output; further events stay in their source, where the application
 * detects a reader that is too far behind. The kernel's buffer is kept small, so that a stalled
 * reader is detected soon. The request is over when the head is sent.
 *
 * After a wake-up the loop pulls STREAMS_PER_ITERATION streams (loop.c) and serves its other
 * connections before the next ones: 1,000 streams with one message each take about 10 ms of system
 * calls. A stream that was pulled goes to the end of the list, so that all have the same share.
 *
 * A peer that takes nothing for write_ms is dropped by its connection's deadline; one that has
 * vanished (no acknowledgement) by TCP_USER_TIMEOUT.
 *
 * Invariants: a stream is in the loop's list from begin to over; each that was made is counted in
 * server->streams until it is freed, and its `ended` is called exactly once.
 *
 * Source: WHATWG HTML, section 9.2 (server-sent events), for the comment that breaks the silence.
 */
#include "http/stream.h"

#include "base/check.h"
#include "http/loop_data.h"
#include "http/server_data.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define KERNEL_BYTES (64 * 1024)

/* ---- making ---------------------------------------------------------------------------------- */

enum err_code http_reply_stream(struct http_request *request, struct http_reply *reply,
                                const struct http_stream_calls *calls, void *context,
                                struct err *err)
{
    struct http_loop *loop = request->loop;
    struct http_server *server = loop->server;
    struct http_stream *stream;
    size_t most = http_limits_now(server)->streams_max, before;

    CHECK(request->is_begun && request->is_on_loop && !request->stream && !reply->is_endless);
    if (request->head.is_head) {
        reply->is_endless = true;
        calls->ended(context, HTTP_STREAM_OVER);
        return ERR_OK;
    }
    before = atomic_fetch_add_explicit(&server->streams, 1, memory_order_relaxed);
    stream = before < most ? calloc(1, sizeof *stream) : NULL;
    if (!stream) {
        atomic_fetch_sub_explicit(&server->streams, 1, memory_order_relaxed);
        http_count(&loop->counters.streams_rejected, 1);
        if (before < most)
            return err_set(err, ERR_NO_MEMORY, "no memory for a stream");
        return err_limit(err, ERR_BUSY, (double)most, (double)before + 1,
                         "all %zu streams are taken", most);
    }
    stream->calls = *calls;
    stream->context = context;
    stream->grant = request->grant;
    request->grant = NULL;
    request->stream = stream;
    reply->is_endless = true;
    return ERR_OK;
}

/* Frees it and calls `ended`. */
static void finish(struct http_server *server, struct http_stream *stream,
                   enum http_stream_end reason)
{
    struct http_stream_calls calls = stream->calls;
    void *context = stream->context;

    if (stream->grant)
        server->app.grant_release(server->app.context, stream->grant);
    atomic_fetch_sub_explicit(&server->streams, 1, memory_order_relaxed);
    free(stream);
    calls.ended(context, reason);
}

void http_stream_cancel(struct http_request *request)
{
    struct http_stream *stream = request->stream;

    request->stream = NULL;
    if (stream)
        finish(request->loop->server, stream, HTTP_STREAM_LEFT);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void link_last(struct http_loop *loop, struct http_stream *stream)
{
    stream->next = NULL;
    stream->previous = loop->last_stream;
    if (loop->last_stream)
        loop->last_stream->next = stream;
    else
        loop->streams = stream;
    loop->last_stream = stream;
    loop->stream_count++;
}

static void unlink_stream(struct http_loop *loop, struct http_stream *stream)
{
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        loop->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    else
        loop->last_stream = stream->previous;
    loop->stream_count--;
}

void http_streams_wake(struct http_loop *loop)
{
    loop->streams_due = loop->stream_count;
}

struct http_stream *http_streams_next(struct http_loop *loop)
{
    struct http_stream *stream = loop->streams;

    if (!stream || loop->streams_due == 0) {
        loop->streams_due = 0;
        return NULL;
    }
    loop->streams_due--;
    unlink_stream(loop, stream);
    link_last(loop, stream);
    stream->is_due = true;
    return stream;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* A small buffer in the kernel, and a bound on how long it waits for a peer that is silent. */
static void tune_socket(struct http_connection *connection)
{
    const struct http_limits *limits = http_limits_now(connection->loop->server);
    unsigned timeout_ms = limits->write_ms < UINT32_MAX / 3 ? 3 * limits->write_ms : UINT32_MAX;
    int bytes = KERNEL_BYTES;

    setsockopt(connection->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

void http_stream_begin(struct http_connection *connection, struct http_request *request)
{
    struct http_loop *loop = connection->loop;
    struct http_stream *stream = request->stream;

    request->stream = NULL;
    stream->connection = connection;
    stream->is_due = true;
    stream->sent_ms = uv_now(&loop->uv);
    connection->stream = stream;
    connection->lingered_bytes = 0;
    link_last(loop, stream);
    http_count(&loop->counters.streams, 1);
    http_count(&loop->counters.streams_opened, 1);
    tune_socket(connection);
}

void http_stream_over(struct http_connection *connection, enum http_stream_end reason)
{
    struct http_loop *loop = connection->loop;
    struct http_stream *stream = connection->stream;

    if (!stream)
        return;
    connection->stream = NULL;
    connection->close_after = connection->linger_after = true;
    unlink_stream(loop, stream);
    http_uncount(&loop->counters.streams);
    http_count(&loop->counters.streams_ended[reason], 1);
    finish(loop->server, stream, reason);
}

static uint32_t grant_left_ms(const struct http_stream *stream)
{
    const struct http_loop *loop = stream->connection->loop;
    const struct http_app *app = &loop->server->app;

    return stream->grant ? app->grant_left_ms(app->context, loop->index, stream->grant)
                         : UINT32_MAX;
}

bool http_stream_pull(struct http_connection *connection, bool *is_broken)
{
    struct http_stream *stream = connection->stream;
    size_t before = connection->output.bytes;

    *is_broken = false;
    if (!stream->is_due || !http_stream_has_room(stream))
        return false;
    stream->is_due = false;
    if (grant_left_ms(stream) == 0) {
        http_stream_over(connection, HTTP_STREAM_OVER);
        return false;
    }
    stream->calls.pull(stream->context, stream);
    *is_broken = stream->is_failed;
    if (stream->is_failed)
        http_stream_over(connection, HTTP_STREAM_LEFT);
    else if (stream->is_ending)
        http_stream_over(connection, stream->reason);
    return connection->output.bytes > before;
}

uint64_t http_stream_deadline_ms(const struct http_stream *stream)
{
    const struct http_loop *loop = stream->connection->loop;
    const uint64_t silence_ms = stream->sent_ms + http_limits_now(loop->server)->stream_silence_ms;
    const uint64_t grant_ms = uv_now(&loop->uv) + grant_left_ms(stream);

    return silence_ms < grant_ms ? silence_ms : grant_ms;
}

void http_stream_look(struct http_connection *connection)
{
    struct http_stream *stream = connection->stream;

    if (grant_left_ms(stream) == 0) {
        http_stream_over(connection, HTTP_STREAM_OVER);
        return;
    }
    if (http_stream_deadline_ms(stream) > uv_now(&connection->loop->uv))
        return;
    stream->sent_ms = uv_now(&connection->loop->uv);
    if (connection->output.bytes > 0)
        return;
    if (stream->calls.silent)
        stream->calls.silent(stream->context, stream);
    if (connection->output.bytes == 0)
        http_stream_write(stream, ":\n\n", 3);
}

/* ---- called by pull -------------------------------------------------------------------------- */

bool http_stream_has_room_for(const struct http_stream *stream, size_t bytes)
{
    return !stream->is_failed && !stream->is_ending &&
           stream->connection->output.bytes + bytes <= HTTP_STREAM_OUTPUT_BYTES;
}

bool http_stream_has_room(const struct http_stream *stream)
{
    return http_stream_has_room_for(stream, HTTP_STREAM_OUTPUT_BYTES - HTTP_STREAM_FILL_BYTES +
                                                HTTP_STREAM_ROOM_BYTES);
}

bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length)
{
    struct http_connection *connection = stream->connection;
    struct http_output *output = &connection->output;

    if (stream->is_failed || length > HTTP_STREAM_OUTPUT_BYTES - output->bytes ||
        output->bytes > HTTP_STREAM_OUTPUT_BYTES) {
        stream->is_failed = true;
        return false;
    }
    stream->sent_ms = uv_now(&connection->loop->uv);
    for (size_t part; length; bytes = (const char *)bytes + part, length -= part) {
        char *at;

        part = length < HTTP_OUTPUT_CHUNK_BYTES ? length : HTTP_OUTPUT_CHUNK_BYTES;
        at = http_output_reserve(output, &connection->loop->chunks, part);
        if (!at) {
            stream->is_failed = true;
            return false;
        }
        memcpy(at, bytes, part);
        http_output_advance(output, part);
    }
    return true;
}

void http_stream_end(struct http_stream *stream, enum http_stream_end reason)
{
    stream->is_ending = true;
    stream->reason = reason;
}
