/*
 * Connections: see connection.h.
 *
 * Reading: by uv_poll_t and one recv(2) for each time that a socket is readable: uv_tcp_t reads by
 * read(2), which costs the kernel more, and through two callbacks. Bytes that are left make the
 * socket readable in the next iteration. All connections of a loop read into the loop's one buffer;
 * only unprocessed bytes (half a head, requests pipelined after a busy one) are copied into
 * memory of the connection. An idle connection therefore holds no buffer, and a busy one at most
 * PENDING_STOP_BYTES plus one read, since reading stops there.
 *
 * An iteration of the loop has three stages: all connections are read, then answered, then sent.
 * Serving one connection after the other would evict the code of each stage from the nearest
 * caches. Large bodies and answers pass in pieces (piece_of). Between reading and answering, the
 * bytes of a connection are in the loop's buffer (loop->reads). Only other connections are read
 * meanwhile. Everything else that acts on connections processes these reads first (on_woken);
 * timers run after them.
 *
 * Writing: answers made in one iteration are gathered, and sent by send(2), which costs the kernel
 * less than write(2); the rest waits until the socket is writable. While more than
 * HTTP_OUTPUT_STOP_BYTES wait, no further request is taken: a client that does not read its answers
 * holds only its own memory.
 *
 * Deadlines: one for reading, one for writing, the earlier of the two on the loop's wheel. A head
 * must be complete header_ms after its first byte. A body gets body_ms and, for a large one, the
 * time that its bytes so far take at BODY_BYTES_PER_MS. A write must make progress in write_ms: its
 * deadline is set when the socket is full and taken back when it has taken something.
 *
 * A stream (stream.h) keeps the connection for itself after its request: input is dropped, and
 * its output is written like that of other answers. In one iteration it is pulled twice at most;
 * the output of the second pull waits for the next iteration, so that an endless stream does not
 * hold the loop.
 *
 * Closing: closing a socket with unread bytes resets it, and the reset may overtake the answer, or
 * reach a client that reads the answer only after it has sent everything. So after an error the
 * connection is shut down for writing first and input is dropped, unseen and not copied, until
 * the peer has ended (RFC 9112 section 9.6). That is bounded by time, not by bytes: by silence, by
 * the least rate of a body, and in all. The connection counts as open meanwhile. A rejected one
 * does not, and has a shorter time.
 *
 * A peer that has ended may wait for its answer, or be gone. Only one that is gone answers bytes by
 * a reset, so where work takes longer than PROBE_MS an interim answer is sent, which one that waits
 * ignores (RFC 9110 section 15.2). After a reset the work is given up.
 *
 * Invariant: after http_connection_close nothing here touches the connection but its callback.
 */
#include "http/connection.h"

#include "base/check.h"
#include "base/log.h"
#include "http/answer.h"
#include "http/exchange.h"
#include "http/request.h"
#include "http/loop.h"
#include "http/server_data.h"
#include "http/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PENDING_STOP_BYTES ((size_t)16 * 1024)
#define BODY_BYTES_PER_MS 16
#define LINGER_SILENCE_MS 5000
#define LINGER_MS_MAX 30000 /* and body_ms at most */
#define LINGER_REJECTED_MS 5000
#define LINGER_DRAINING_MS 500
#define DROPS_PER_ITERATION 8
#define WRITE_BUFFERS 16
#define BULK_READ_BYTES HTTP_READ_BYTES
#define BULK_SEND_BYTES ((size_t)128 * 1024)
#define PIECE_BYTES_MIN ((size_t)8 * 1024)
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#define REJECTED_LINGERING_MAX 64
#define ACCEPTS_PER_ITERATION 32
#define PROCESS_NS_MAX 200000u
#define RESERVE_CONNECTIONS 8
#define RESERVE_MS 1000
#define PROBE_MS 500

static void connection_update(struct http_connection *connection);
static void watch(struct http_connection *connection);
static void set_deadlines(struct http_connection *connection);

/* ---- closing --------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    struct http_loop *loop = connection->loop;

    http_output_clear(&connection->output, &loop->chunks);
    loop->late_count -= connection->is_late;
    free(connection->pending);
    free(connection);
    loop->connection_count--;
    http_connection_retry_accept(loop);
    http_loop_something_ended(loop);
}

static void unlink_connection(struct http_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        connection->loop->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
}

void http_connection_close(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    struct http_request *request = connection->request;

    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    http_stream_over(connection, HTTP_STREAM_LEFT);
    if (request && (request->is_begun || request->is_at_sink)) {
        request->connection = NULL;
        atomic_store_explicit(&request->is_abandoned, true, memory_order_relaxed);
    } else if (request) {
        http_exchange_unpark(request);
        http_exchange_release(request);
    }
    connection->request = NULL;
    connection->state = HTTP_CONNECTION_CLOSED;
    connection->is_reading = connection->is_writing = false;
    http_wheel_remove(&connection->timer);
    unlink_connection(connection);
    if (connection->is_counted) {
        http_peers_leave(loop->server->peers, connection->peer);
        atomic_fetch_sub_explicit(&loop->server->connections, 1, memory_order_relaxed);
        http_uncount(&loop->counters.open);
    } else if (connection->reserve != ERR_OK) {
        loop->reserve_count--;
    } else {
        loop->rejected_count--;
    }
    uv_close((uv_handle_t *)&connection->poll, on_closed);
    close(connection->fd);
}

static uint64_t earlier(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* All is sent: gives the peer time to end, and to read it. */
static void linger(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    uint64_t now_ms = uv_now(&loop->uv);
    uint64_t most_ms = connection->is_counted ? LINGER_MS_MAX : LINGER_REJECTED_MS;

    if (connection->peer_ended || shutdown(connection->fd, SHUT_WR) != 0) {
        http_connection_close(connection);
        return;
    }
    most_ms = earlier(most_ms, http_limits_now(loop->server)->body_ms);
    if (loop->is_draining)
        most_ms = earlier(most_ms, LINGER_DRAINING_MS);
    connection->state = HTTP_CONNECTION_LINGER;
    connection->linger_since_ms = connection->lingered_ms = now_ms;
    connection->linger_until_ms = now_ms + most_ms;
    connection->lingered_bytes = 0;
    free(connection->pending);
    connection->pending = NULL;
    connection->pending_length = connection->pending_capacity = 0;
}

/*
 * What one connection may have of an iteration: the less, the more have large bodies or answers. A
 * small request waits for `bytes` of all of them together.
 */
static size_t piece_of(const struct http_loop *loop, size_t bytes)
{
    const size_t piece = bytes / loop->bulk_share;

    return piece > PIECE_BYTES_MIN ? piece : PIECE_BYTES_MIN;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_failed(struct http_connection *connection)
{
    http_count(&connection->loop->counters.write_errors, 1);
    http_connection_close(connection);
}

static void sent(struct http_connection *connection, size_t bytes)
{
    connection->write_deadline_ms = 0;
    http_count(&connection->loop->counters.bytes_out, bytes);
    http_output_sent(&connection->output, &connection->loop->chunks, bytes);
}

/* The socket is full: the rest waits until it is writable. */
static void write_later(struct http_connection *connection)
{
    connection->is_writing = true;
    if (connection->write_deadline_ms == 0)
        connection->write_deadline_ms =
            uv_now(&connection->loop->uv) + http_limits_now(connection->loop->server)->write_ms;
}

static ssize_t write_many(struct http_connection *connection, size_t most)
{
    uv_buf_t buffers[WRITE_BUFFERS];
    unsigned count = http_output_buffers(&connection->output, most, buffers, WRITE_BUFFERS);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)buffers, .msg_iovlen = count};

    return sendmsg(connection->fd, &message, SEND_FLAGS);
}

/* The bytes that the socket took; 0 when it is full, below 0 when it is broken. */
static inline ssize_t try_write(struct http_connection *connection, size_t most)
{
    const struct http_chunk *chunk = connection->output.head;
    ssize_t written;

    do
        written = chunk == connection->output.tail
                      ? send(connection->fd, chunk->at, chunk->length < most ? chunk->length : most,
                             SEND_FLAGS)
                      : write_many(connection, most);
    while (written < 0 && errno == EINTR);
    return written < 0 && (errno == EAGAIN || errno == ENOBUFS) ? 0 : written;
}

/* Sends at most so many bytes; the rest waits until the socket is writable. */
static void send_some(struct http_connection *connection, size_t most)
{
    while (connection->output.bytes && !connection->is_writing) {
        ssize_t written = try_write(connection, most);

        if (written < 0) {
            write_failed(connection);
            return;
        }
        if (written > 0)
            sent(connection, (size_t)written);
        most -= (size_t)written;
        if (written == 0 || most == 0)
            write_later(connection);
    }
}

static void flush(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;

    send_some(connection, piece_of(loop, BULK_SEND_BYTES));
    loop->bulk_count += connection->is_writing;
}

/* Pulls the stream and sends its output. */
static void run_stream(struct http_connection *connection)
{
    bool is_broken, has_written = http_stream_pull(connection, &is_broken);

    flush(connection);
    if (has_written && connection->stream && connection->output.bytes == 0) {
        connection->stream->is_due = true;
        if (http_stream_pull(connection, &is_broken))
            write_later(connection);
    }
    if (is_broken || (connection->stream && connection->peer_ended))
        http_connection_close(connection);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool keep_pending(struct http_connection *connection, const char *at, size_t length)
{
    size_t needed = connection->pending_length + length;

    if (length == 0)
        return true;
    if (needed > connection->pending_capacity) {
        size_t capacity = connection->pending_capacity ? connection->pending_capacity : 1024;
        char *pending;

        while (capacity < needed)
            capacity *= 2;
        pending = realloc(connection->pending, capacity);
        if (!pending)
            return false;
        connection->pending = pending;
        connection->pending_capacity = capacity;
    }
    memcpy(connection->pending + connection->pending_length, at, length);
    connection->pending_length = needed;
    return true;
}

static void feed_pending(struct http_connection *connection)
{
    size_t used;

    if (connection->pending_length == 0)
        return;
    used = http_exchange_feed(connection, connection->pending, connection->pending_length);
    if (connection->stream)
        used = connection->pending_length;
    connection->pending_length -= used;
    if (connection->pending_length && used)
        memmove(connection->pending, connection->pending + used, connection->pending_length);
    if (connection->pending_length)
        return;
    free(connection->pending);
    connection->pending = NULL;
    connection->pending_capacity = 0;
}

static void take_bytes(struct http_connection *connection, const char *at, size_t length)
{
    size_t used = 0;

    if (connection->state == HTTP_CONNECTION_LINGER)
        return;
    if (connection->stream) {
        connection->lingered_bytes += length;
        if (connection->lingered_bytes > HTTP_STREAM_INPUT_BYTES_MAX)
            http_connection_close(connection);
        return;
    }
    if (connection->close_after)
        return;
    if (connection->pending_length == 0)
        used = http_exchange_feed(connection, at, length);
    if (connection->stream)
        return;
    if (!keep_pending(connection, at + used, length - used)) {
        http_connection_close(connection);
        return;
    }
    if (used == 0)
        feed_pending(connection);
}

static void read_ended(struct http_connection *connection)
{
    if (connection->state == HTTP_CONNECTION_LINGER) {
        http_connection_close(connection);
        return;
    }
    connection->peer_ended = true;
    connection->probe_at_ms = uv_now(&connection->loop->uv) + PROBE_MS;
    if (connection->request && connection->request->is_parked) {
        http_exchange_retry(connection->request, true);
        http_connection_continue(connection);
        return;
    }
    connection_update(connection);
}

/* Processes the bytes of one read. */
static void take_read(struct http_connection *connection, const char *at, size_t length)
{
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    http_count(&connection->loop->counters.bytes_in, length);
    take_bytes(connection, at, length);
}

/* A read without bytes: the end of input, an error, or nothing. */
static void take_no_read(struct http_connection *connection, ssize_t length, int error)
{
    http_connection_process_reads(connection->loop);
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    if (length == 0)
        read_ended(connection);
    else if (error != EAGAIN && error != EINTR)
        http_connection_close(connection);
}

/* The socket is broken: the input before that is still served. */
static void read_rest(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;

    http_connection_process_reads(loop);
    while (connection->state != HTTP_CONNECTION_CLOSED && connection->is_reading) {
        ssize_t length = recv(connection->fd, loop->read_buffer, HTTP_READ_BYTES, MSG_DONTWAIT);

        if (length <= 0) {
            take_no_read(connection, length, errno);
            return;
        }
        take_read(connection, loop->read_buffer, (size_t)length);
        connection_update(connection);
    }
}

/* Reads once; the bytes are processed at the end of the iteration, or when there are many. */
static void read_some(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    char *at = loop->read_buffer + loop->read_bytes;
    size_t room = HTTP_READ_BYTES - loop->read_bytes, piece = piece_of(loop, BULK_READ_BYTES);
    ssize_t length;

    if (connection->state == HTTP_CONNECTION_BODY && room > piece)
        room = piece;
    length = recv(connection->fd, at, room, MSG_DONTWAIT);
    loop->bulk_count += length >= (ssize_t)PIECE_BYTES_MIN;
    if (length <= 0) {
        take_no_read(connection, length, errno);
        return;
    }
    if (loop->read_count == 0) {
        loop->clock_ns = uv_hrtime();
        loop->is_clock_fresh = true;
        if (loop->iteration_ns == 0)
            loop->iteration_ns = loop->clock_ns;
    }
    loop->reads[loop->read_count++] = (struct http_read){connection, at, (size_t)length};
    loop->read_bytes += (size_t)length;
    if (loop->read_count == HTTP_READS_MAX || loop->read_bytes > HTTP_READ_BYTES / 2)
        http_connection_process_reads(loop);
}

static void update_processed(struct http_loop *loop)
{
    loop->is_clock_fresh = false;
    for (; loop->reads_flushed < loop->reads_processed; loop->reads_flushed++)
        connection_update(loop->reads[loop->reads_flushed].connection);
}

/* A connection that was closed meanwhile is freed after this. */
void http_connection_process_reads(struct http_loop *loop)
{
    uint64_t since_ns = 0;

    while (loop->reads_processed < loop->read_count) {
        const struct http_read *read = &loop->reads[loop->reads_processed];

        take_read(read->connection, read->at, read->length);
        loop->reads_processed++;
        if (since_ns == 0)
            since_ns = loop->clock_ns;
        if (loop->clock_ns - since_ns > PROCESS_NS_MAX) {
            update_processed(loop);
            since_ns = 0;
        }
    }
    update_processed(loop);
    loop->read_count = loop->reads_processed = loop->reads_flushed = 0;
    loop->read_bytes = 0;
}

void http_connection_flush_writes(struct http_loop *loop)
{
    for (size_t i = loop->reads_flushed; i < loop->reads_processed; i++)
        if (loop->reads[i].connection->state != HTTP_CONNECTION_CLOSED)
            flush(loop->reads[i].connection);
}

/*
 * While it lingers: discards input in the kernel. The reads of other connections stay in the
 * buffer.
 */
static void drop_some(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    char *at = loop->read_buffer + loop->read_bytes;
    size_t room = HTTP_READ_BYTES - loop->read_bytes;

    for (int i = 0; i < DROPS_PER_ITERATION; i++) {
        ssize_t length = recv(connection->fd, at, room, MSG_DONTWAIT | MSG_TRUNC);

        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (length <= 0) {
            http_connection_close(connection);
            return;
        }
        http_count(&loop->counters.bytes_in, (uint64_t)length);
        connection->lingered_bytes += (size_t)length;
        connection->lingered_ms = uv_now(&loop->uv);
        if ((size_t)length < room)
            break;
    }
    set_deadlines(connection);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct http_connection *connection = poll->data;

    if (status < 0) { /* and polled no more */
        connection->polled = 0;
        read_rest(connection);
        http_connection_close(connection);
        return;
    }
    if (events & UV_PRIORITIZED) { /* after the peer's end only a reset comes */
        http_connection_close(connection);
        return;
    }
    if (events & UV_WRITABLE && connection->is_writing) {
        connection->is_writing = false;
        flush(connection);
        if (connection->stream && !connection->is_writing)
            connection->stream->is_due = true;
        http_connection_continue(connection);
    }
    if (events & UV_READABLE && connection->state == HTTP_CONNECTION_LINGER)
        drop_some(connection);
    else if (events & UV_READABLE && connection->is_reading)
        read_some(connection);
}

/* Polls for the events of is_reading and is_writing, and for a reset by a peer that has ended. */
static void watch(struct http_connection *connection)
{
    int events = (connection->is_reading ? UV_READABLE : 0) |
                 (connection->is_writing ? UV_WRITABLE : 0) |
                 (connection->peer_ended ? UV_PRIORITIZED : 0);

    if (events == connection->polled)
        return;
    connection->polled = events;
    CHECK(uv_poll_start(&connection->poll, events, on_ready) == 0);
}

/* ---- after each step ------------------------------------------------------------------------- */

/* Every byte so far belongs to an answered request. */
static bool is_between_requests(const struct http_connection *connection)
{
    return connection->state == HTTP_CONNECTION_DISCARD ||
           (connection->state == HTTP_CONNECTION_HEAD && connection->pending_length == 0);
}

/* The peer sends no more: an incomplete request is an error. */
static void end_of_input(struct http_connection *connection)
{
    struct err err;

    if (is_between_requests(connection)) {
        connection->close_after = true;
        return;
    }
    err_set(&err, ERR_BAD_REQUEST, "the connection was closed in the middle of a request");
    http_exchange_fail(connection, &err);
}

/* Has the socket unread bytes? */
static bool has_arrived(const struct http_connection *connection)
{
    char byte;

    return recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Shortens the time to linger; input does not extend it. */
static void hurry(struct http_connection *connection)
{
    uint64_t latest_ms = uv_now(&connection->loop->uv) + LINGER_DRAINING_MS;

    connection->linger_until_ms = earlier(connection->linger_until_ms, latest_ms);
    if (connection->read_deadline_ms == 0 || connection->read_deadline_ms > latest_ms)
        connection->read_deadline_ms = latest_ms;
    http_wheel_set(&connection->loop->wheel, &connection->timer, connection->read_deadline_ms);
}

/*
 * A client with an earlier request expects that an idle connection may be closed, and retries. For
 * a first request on its way that would be a failure, so it has half a second. Bytes that have
 * arrived are answered in any case.
 */
static void drain_idle(struct http_connection *connection)
{
    bool is_head = connection->state == HTTP_CONNECTION_HEAD;

    if (is_head && has_arrived(connection))
        return; /* it is read in this iteration or the next */
    if (is_head && !connection->has_asked && !connection->peer_ended)
        hurry(connection);
    else
        http_connection_close(connection);
}

void http_connection_drain(struct http_connection *connection)
{
    if (connection->stream) {
        http_stream_over(connection, HTTP_STREAM_DRAINED);
        send_some(connection, SIZE_MAX);
        http_connection_close(connection);
        return;
    }
    if (connection->is_late && !connection->loop->is_deaf)
        return;
    if (connection->state != HTTP_CONNECTION_CLOSED && is_between_requests(connection) &&
        !connection->close_after && connection->output.bytes == 0) {
        drain_idle(connection);
    } else if (connection->state == HTTP_CONNECTION_LINGER) {
        hurry(connection);
    }
}

/* Silence, a trickle, or too long in all. */
static uint64_t linger_deadline(const struct http_connection *connection)
{
    uint64_t silence_ms = connection->lingered_ms + LINGER_SILENCE_MS;
    uint64_t trickle_ms = connection->linger_since_ms + LINGER_SILENCE_MS +
                          connection->lingered_bytes / BODY_BYTES_PER_MS;

    return earlier(connection->linger_until_ms, earlier(silence_ms, trickle_ms));
}

static void set_deadlines(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    const struct http_limits *limits = http_limits_now(loop->server);
    uint64_t now_ms = uv_now(&loop->uv);
    uint64_t earliest_ms;

    if (connection->state == HTTP_CONNECTION_LINGER) {
        connection->read_deadline_ms = linger_deadline(connection);
    } else if (connection->stream) {
        connection->read_deadline_ms = http_stream_deadline_ms(connection->stream);
    } else if (connection->request && connection->request->is_parked) {
        connection->read_deadline_ms = connection->request->park_until_ms;
    } else if (!http_connection_takes_input(connection)) {
        connection->read_deadline_ms =
            connection->state == HTTP_CONNECTION_HANDLING ? connection->probe_at_ms : 0;
    } else if (connection->state != HTTP_CONNECTION_HEAD) {
        connection->read_deadline_ms = connection->body_since_ms + limits->body_ms +
                                       connection->body_received / BODY_BYTES_PER_MS;
    } else if (connection->pending_length) {
        if (connection->head_since_ms == 0)
            connection->head_since_ms = now_ms ? now_ms : 1;
        connection->read_deadline_ms = connection->head_since_ms + limits->header_ms;
    } else {
        connection->head_since_ms = 0;
        connection->read_deadline_ms =
            now_ms + (loop->is_draining ? LINGER_DRAINING_MS : limits->idle_ms);
    }
    if (connection->reserve != ERR_OK && connection->state < HTTP_CONNECTION_HANDLING) {
        if (connection->reserve_until_ms == 0)
            connection->reserve_until_ms = now_ms + RESERVE_MS;
        if (connection->read_deadline_ms > connection->reserve_until_ms)
            connection->read_deadline_ms = connection->reserve_until_ms;
    }
    earliest_ms = connection->read_deadline_ms;
    if (connection->write_deadline_ms &&
        (earliest_ms == 0 || connection->write_deadline_ms < earliest_ms))
        earliest_ms = connection->write_deadline_ms;
    http_wheel_set(&loop->wheel, &connection->timer, earliest_ms);
}

/* Sends the output; takes more input where only the amount of output prevented that. */
static void send_and_take(struct http_connection *connection)
{
    bool was_blocked;

    do {
        was_blocked = connection->output.bytes >= HTTP_OUTPUT_STOP_BYTES;
        if (connection->peer_ended && http_connection_takes_input(connection))
            end_of_input(connection);
        flush(connection);
        if (!was_blocked || !http_connection_takes_input(connection))
            return;
        feed_pending(connection);
    } while (connection->state != HTTP_CONNECTION_CLOSED);
}

/* After any change: sends the output, closes a finished connection, sets polling and deadlines. */
static void connection_update(struct http_connection *connection)
{
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    if (connection->stream && !connection->loop->is_draining)
        run_stream(connection);
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    send_and_take(connection);
    if (connection->loop->is_draining)
        http_connection_drain(connection);
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    if (connection->close_after && !connection->request && connection->output.bytes == 0 &&
        connection->state != HTTP_CONNECTION_LINGER) {
        if (!connection->linger_after && connection->pending_length == 0) {
            http_connection_close(connection);
            return;
        }
        linger(connection);
        if (connection->state == HTTP_CONNECTION_CLOSED)
            return;
    }
    connection->is_reading =
        !connection->peer_ended && (connection->state == HTTP_CONNECTION_LINGER ||
                                    connection->stream || http_connection_takes_input(connection) ||
                                    (connection->state == HTTP_CONNECTION_HANDLING &&
                                     connection->pending_length < PENDING_STOP_BYTES));
    watch(connection);
    set_deadlines(connection);
}

void http_connection_continue(struct http_connection *connection)
{
    if (connection->state == HTTP_CONNECTION_CLOSED)
        return;
    feed_pending(connection);
    connection_update(connection);
}

/* Sends bytes to a peer that has ended: a reset comes back if it is gone. Once a connection. */
static void probe(struct http_connection *connection)
{
    connection->probe_at_ms = 0;
    if (!connection->request->head.is_1_0 && !http_answer_continue(connection)) {
        http_connection_close(connection);
        return;
    }
    connection_update(connection);
}

void http_connection_expired(struct http_timer *timer)
{
    struct http_connection *connection =
        (struct http_connection *)(void *)((char *)timer - offsetof(struct http_connection, timer));
    struct http_loop *loop = connection->loop;
    uint64_t now_ms = uv_now(&loop->uv);
    bool is_reading_late = connection->read_deadline_ms && connection->read_deadline_ms <= now_ms;
    struct err err;

    if (connection->write_deadline_ms && connection->write_deadline_ms <= now_ms) {
        http_count(&loop->counters.timeouts, 1);
        http_stream_over(connection, HTTP_STREAM_STALLED);
        http_connection_close(connection);
        return;
    }
    if (is_reading_late && connection->request && connection->request->is_parked) {
        http_exchange_retry(connection->request, true);
        http_connection_continue(connection);
        return;
    }
    if (is_reading_late && connection->state == HTTP_CONNECTION_HANDLING) {
        probe(connection);
        return;
    }
    if (is_reading_late && connection->stream) {
        http_stream_look(connection);
        connection_update(connection);
        return;
    }
    if (is_reading_late && connection->reserve != ERR_OK &&
        connection->state < HTTP_CONNECTION_HANDLING) {
        http_connection_refuse(connection, &err);
        http_exchange_fail(connection, &err);
        connection_update(connection);
        return;
    }
    if (is_reading_late &&
        (connection->state == HTTP_CONNECTION_LINGER ||
         (connection->state == HTTP_CONNECTION_HEAD && connection->pending_length == 0))) {
        http_connection_close(connection);
        return;
    }
    if (is_reading_late) {
        http_count(&loop->counters.timeouts, 1);
        err_set(&err, ERR_REQUEST_TIMEOUT, "the %s did not arrive in time",
                connection->state == HTTP_CONNECTION_BODY ? "body" : "request");
        http_exchange_fail(connection, &err);
    }
    connection_update(connection);
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* Counts the connection, or returns the limit that it exceeds. */
static enum err_code count(struct http_connection *connection)
{
    struct http_server *server = connection->loop->server;
    const struct http_limits *limits = http_limits_now(server);
    size_t before = atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed);

    if (before < limits->connections_max &&
        http_peers_enter(server->peers, connection->peer, limits->connections_per_address_max)) {
        connection->is_counted = true;
        http_count(&connection->loop->counters.open, 1);
        return ERR_OK;
    }
    atomic_fetch_sub_explicit(&server->connections, 1, memory_order_relaxed);
    return before < limits->connections_max ? ERR_TOO_MANY : ERR_BUSY;
}

/*
 * Beyond the limits each loop reserves a few connections for probes. Their time is short, so that a
 * flood does not hold them. When one address has too many, they are for loopback only.
 */
static bool take_reserve(struct http_connection *connection, enum err_code why)
{
    struct http_loop *loop = connection->loop;

    if (loop->reserve_count >= RESERVE_CONNECTIONS ||
        (why == ERR_TOO_MANY && !connection->peer.is_loopback))
        return false;
    connection->reserve = why;
    loop->reserve_count++;
    return true;
}

static enum err_code report_limit(const struct http_connection *connection, enum err_code why,
                                  struct err *err)
{
    const struct http_limits *limits = http_limits_now(connection->loop->server);
    bool is_all = why == ERR_BUSY;
    size_t most = is_all ? limits->connections_max : limits->connections_per_address_max;

    return err_limit(err, why, (double)most, (double)most + 1,
                     is_all ? "all %zu connections are taken; the few beyond are for probes"
                     : connection->peer.has_uid ? "this user holds %zu connections already"
                                                : "this address holds %zu connections already",
                     most);
}

enum err_code http_connection_refuse(const struct http_connection *connection, struct err *err)
{
    http_count(&connection->loop->counters.rejected, 1);
    return report_limit(connection, connection->reserve, err);
}

static void reject(struct http_connection *connection, const struct err *err)
{
    struct http_loop *loop = connection->loop;
    uint64_t now_ms = uv_now(&loop->uv);

    http_count(&loop->counters.rejected, 1);
    if (loop->reject_logged_ms == 0 || now_ms - loop->reject_logged_ms >= 1000) {
        loop->reject_logged_ms = now_ms ? now_ms : 1;
        log_warn("connection turned away: %s", err->msg);
    }
    if (++loop->rejected_count > REJECTED_LINGERING_MAX) {
        http_connection_close(connection);
        return;
    }
    http_exchange_fail(connection, err);
    connection_update(connection);
}

static void link_connection(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;

    connection->next = loop->connections;
    if (connection->next)
        connection->next->previous = connection;
    loop->connections = connection;
    http_loop_connection_opened(loop);
}

/* The file is the connection's, or closed. */
static bool open_connection(struct http_loop *loop, struct http_connection *connection, int fd)
{
    if (uv_poll_init(&loop->uv, &connection->poll, fd) != 0) {
        close(fd);
        return false;
    }
    connection->poll.data = connection;
    connection->fd = fd;
    connection->loop = loop;
    connection->is_late = loop->is_draining;
    loop->late_count += connection->is_late;
    link_connection(connection);
    return true;
}

static void begin_connection(struct http_connection *connection, const struct sockaddr *address)
{
    struct http_loop *loop = connection->loop;
    enum err_code why;
    struct err err;

    http_count(&loop->counters.accepted, 1);
    connection->peer =
        address->sa_family == AF_UNIX ? http_peer_of_unix(connection->fd) : http_peer_of(address);
    why = count(connection);
    if (why != ERR_OK && !take_reserve(connection, why)) {
        report_limit(connection, why, &err);
        reject(connection, &err);
        return;
    }
    connection_update(connection);
}

/* Connections that wait in the queue are accepted at a later tick, or when a connection has closed.
 */
static void accept_later(struct http_loop *loop, const char *why)
{
    uint64_t now_ms = uv_now(&loop->uv);

    loop->accept_waits = true;
    for (size_t i = 0; i < loop->listener_count; i++)
        uv_poll_stop(&loop->listeners[i]);
    http_loop_tick(loop); /* on_tick retries */
    if (loop->reject_logged_ms && now_ms - loop->reject_logged_ms < 1000)
        return;
    loop->reject_logged_ms = now_ms ? now_ms : 1;
    log_warn("no connection can be taken: %s: loop %zu stops listening for a while", why,
             loop->index);
}

/* Takes one; false when there is none, or none can be taken now. */
static bool accept_one(struct http_loop *loop, int listener_fd)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int fd;

    if (!connection) {
        accept_later(loop, "out of memory");
        return false;
    }
    do
        fd = accept4(listener_fd, (struct sockaddr *)&address, &length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0 && errno != EAGAIN)
        accept_later(loop, strerror(errno));
    if (fd < 0 || !open_connection(loop, connection, fd)) {
        free(connection);
        return fd >= 0;
    }
    begin_connection(connection, (const struct sockaddr *)&address);
    return true;
}

void http_connection_accept(struct http_loop *loop, const uv_poll_t *listener)
{
    const int fd = loop->listener_fds[listener - loop->listeners];

    for (int i = 0; i < ACCEPTS_PER_ITERATION && accept_one(loop, fd); i++)
        ;
}

void http_connection_retry_accept(struct http_loop *loop)
{
    if (!loop->accept_waits || loop->is_draining)
        return;
    loop->accept_waits = false;
    http_loop_listen(loop);
}
