/*
 * Connections: non-blocking sockets, watched by uv_poll.
 *
 * libuv's own streams write without MSG_NOSIGNAL, and a library must not raise SIGPIPE in a program
 * that does not expect it; they also copy nothing but own every buffer until a callback. So the
 * sockets are used directly: a request is sent from where it lies, as far as the socket takes it,
 * and the rest when it is writable.
 *
 * Reading continues while a body is being sent: a daemon that refuses it answers early. When
 * sending fails, the answer may still have arrived; it is read.
 *
 * An iteration reads 512 KiB at most, so that a fast peer does not keep the loop from its timers.
 *
 * uv_poll reports a socket in error as UV_EBADF and stops; the socket's state is then read by recv
 * and SO_ERROR.
 */
#include "client/lib/client.h"

#include "client/lib/error.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024, READS_A_TURN = 8 };

static void on_poll(uv_poll_t *handle, int status, int events);

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    struct kota_client *client = connection->client;

    response_free(&connection->response);
    text_free(&connection->head);
    free(connection);
    client_handle_closed(client);
}

void connection_close(struct connection *connection)
{
    struct kota_client *client = connection->client;

    if (connection->next)
        connection->next->previous = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        client->connections = connection->next;
    if (!connection->is_dedicated) {
        client->pooled--;
        if (connection->state == CONNECTION_CONNECTING)
            client->connecting--;
    }
    uv_poll_stop(&connection->poll);
    close(connection->fd);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static bool socket_begin(const struct sockaddr *address, socklen_t length, int *fd)
{
    int one = 1, code;

    *fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return false;
    setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    do
        code = connect(*fd, address, length);
    while (code && errno == EINTR);
    if (code == 0 || errno == EINPROGRESS)
        return true;
    code = errno;
    close(*fd);
    errno = code;
    return false;
}

static struct connection *connection_new(struct kota_client *client, int fd, size_t index,
                                         struct call *dedicated)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    double share_s = client->options.connect_timeout_s / (double)client->addresses.count;

    if (!connection)
        return NULL;
    connection->client = client;
    connection->fd = fd;
    connection->address = index;
    connection->is_dedicated = dedicated != NULL;
    connection->call = dedicated;
    connection->due_ms = now_ms() + (uint64_t)(1000 * (share_s > 0.05 ? share_s : 0.05)) + 1;
    if (uv_poll_init(client->loop, &connection->poll, fd)) {
        free(connection);
        return NULL;
    }
    connection->poll.data = connection;
    client->handles_open++;
    connection->next = client->connections;
    if (connection->next)
        connection->next->previous = connection;
    client->connections = connection;
    if (!dedicated) {
        client->pooled++;
        client->connecting++;
    } else {
        dedicated->connection = connection;
    }
    uv_poll_start(&connection->poll, UV_WRITABLE, on_poll);
    client_due(client, connection->due_ms);
    return connection;
}

bool connection_open(struct kota_client *client, size_t index, struct call *dedicated,
                     struct kota_error *error)
{
    for (; index < client->addresses.count; index++) {
        int fd;

        if (!socket_begin((const struct sockaddr *)&client->addresses.at[index],
                          client->addresses.length[index], &fd)) {
            error_set(error, KOTA_ERROR_CONNECT, "%s: %s", client->url.authority, strerror(errno));
            continue;
        }
        if (connection_new(client, fd, index, dedicated))
            return true;
        close(fd);
        return error_set(error, KOTA_ERROR_MEMORY, "no memory for a connection");
    }
    return false;
}

/* This address does not answer: on to the next one. */
static void connect_failed(struct connection *connection, const char *reason)
{
    struct kota_client *client = connection->client;
    struct call *dedicated = connection->call;
    size_t next = connection->address + 1;
    struct kota_error error;

    error_clear(&error);
    error_set(&error, KOTA_ERROR_CONNECT, "%s: %s", client->url.authority, reason);
    if (dedicated)
        dedicated->connection = NULL;
    connection->call = NULL;
    connection_close(connection);
    if (!connection_open(client, next, dedicated, &error))
        client_connect_failed(client, dedicated, &error);
    client_pump(client);
}

void connection_give_up(struct connection *connection)
{
    connect_failed(connection, "no connection within the time for one");
}

static void connection_rest(struct connection *connection)
{
    connection->state = CONNECTION_IDLE;
    connection->idle_since_ms = now_ms();
    uv_poll_start(&connection->poll, UV_READABLE, on_poll);
    if (!connection->client->owns_loop) /* a private one runs only while a caller waits */
        uv_unref((uv_handle_t *)&connection->poll);
}

static void connected(struct connection *connection)
{
    struct kota_client *client = connection->client;
    struct call *dedicated = connection->call;

    connection->due_ms = UINT64_MAX;
    if (dedicated) {
        connection->call = NULL;
        connection_begin(connection, dedicated);
        return;
    }
    client->connecting--;
    connection_rest(connection);
    client_pump(client);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void write_head(struct connection *connection, const struct call *call)
{
    const struct kota_client *client = connection->client;
    const struct kota_request *request = call->request;
    struct text *head = &connection->head;

    text_clear(head);
    text_adds(head, request->method);
    text_adds(head, " ");
    text_adds(head, text_string(&client->url.path));
    text_adds(head, text_string(&request->path));
    text_adds(head, " HTTP/1.1\r\nHost: ");
    text_adds(head, client->url.authority);
    text_adds(head, "\r\nUser-Agent: libkota/0.1\r\n");
    if (request->accept) {
        text_adds(head, "Accept: ");
        text_adds(head, request->accept);
        text_adds(head, "\r\n");
    }
    text_adds(head, text_string(&client->authorization));
    if (request->key[0]) {
        text_adds(head, "Idempotency-Key: ");
        text_adds(head, request->key);
        text_adds(head, "\r\n");
    }
    text_adds(head, text_string(&request->headers));
    if (request->media_type) {
        text_adds(head, "Content-Type: ");
        text_adds(head, request->media_type);
        text_adds(head, "\r\n");
    }
    if (request->media_type || strcmp(request->method, "POST") == 0 ||
        strcmp(request->method, "PUT") == 0 || strcmp(request->method, "PATCH") == 0) {
        text_adds(head, "Content-Length: ");
        text_add_uint(head, request->body_length);
        text_adds(head, "\r\n");
    }
    if (call->watch)
        watch_headers(call->watch, head);
    text_adds(head, "\r\n");
}

/* Sends as much as the socket takes; true: all was sent, or sending has failed. */
static bool send_more(struct connection *connection)
{
    const struct kota_request *request = connection->call->request;
    size_t head = connection->head.length, all = head + request->body_length;

    while (connection->sent < all && !connection->send_failed) {
        size_t in_body = connection->sent > head ? connection->sent - head : 0;
        struct iovec pieces[2] = {
            {.iov_base = connection->head.at + (connection->sent < head ? connection->sent : head),
             .iov_len = connection->sent < head ? head - connection->sent : 0},
            {.iov_base = (char *)(uintptr_t)request->body + in_body,
             .iov_len = request->body_length - in_body}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = request->body_length > 0 ? 2 : 1};
        ssize_t count = sendmsg(connection->fd, &message, MSG_NOSIGNAL);

        if (count >= 0)
            connection->sent += (size_t)count;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
        else if (errno != EINTR)
            connection->send_failed = true;
    }
    return true;
}

void connection_begin(struct connection *connection, struct call *call)
{
    struct kota_client *client = connection->client;
    struct response *response = &connection->response;
    bool is_head = strcmp(call->request->method, "HEAD") == 0;

    uv_ref((uv_handle_t *)&connection->poll);
    connection->state = CONNECTION_BUSY;
    connection->call = call;
    call->connection = connection;
    call->tries++;
    connection->sent = 0;
    connection->send_failed = false;
    response_free(response);
    *response = (struct response){.body_bytes_max = client->options.answer_bytes_max,
                                  .is_head_request = is_head};
    if (call->watch)
        watch_begin(call, response);
    response_begin(response);
    write_head(connection, call);
    if (!call->watch)
        calls_add(&client->sent, call);
    if (connection->head.is_broken) {
        struct kota_error error;

        error_clear(&error);
        error_set(&error, KOTA_ERROR_MEMORY, "no memory for the request");
        connection->call = NULL;
        connection_close(connection);
        call->connection = NULL;
        call_failed(call, &error, false);
        return;
    }
    uv_poll_start(&connection->poll,
                  send_more(connection) ? UV_READABLE : UV_READABLE | UV_WRITABLE, on_poll);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void broken(struct connection *connection, const struct kota_error *error, bool is_stale)
{
    struct kota_client *client = connection->client;
    struct call *call = connection->call;

    connection->call = NULL;
    call->connection = NULL;
    connection_close(connection);
    call_failed(call, error, is_stale);
    client_pump(client);
}

/* The peer has closed, or the connection broke (code, of errno). */
static void ended(struct connection *connection, int code)
{
    struct response *response = &connection->response;
    struct kota_error error;

    if (code == 0 && response_end(response)) {
        error_clear(&error);
        error_set(&error, KOTA_ERROR_LOST, "%s ended the stream",
                  connection->client->url.authority);
        broken(connection, &error, false);
        return;
    }
    error_clear(&error);
    error_set(&error, KOTA_ERROR_LOST, "%s: the connection %s%s %s",
              connection->client->url.authority, code ? "broke: " : "was closed",
              code ? strerror(code) : "",
              response->has_begun ? "in the answer" : "before an answer");
    broken(connection, &error, connection->is_reused && !response->has_begun);
}

static void answered(struct connection *connection)
{
    struct response *response = &connection->response;
    struct call *call = connection->call;
    struct kota_client *client = connection->client;
    size_t all = connection->head.length + call->request->body_length;
    bool keeps = response->keeps_alive && connection->sent == all && !connection->send_failed &&
                 !connection->is_dedicated && !client->is_closing;

    connection->call = NULL;
    call->connection = NULL;
    if (call->answer) {
        call->answer->status = response->status;
        call->answer->headers = response->headers;
        call->answer->body = response->body;
        response->headers = response->body = (struct text){0};
    }
    connection->is_reused = true;
    if (keeps)
        connection_rest(connection);
    else
        connection_close(connection);
    call_answered(call);
    client_pump(client);
}

/* What is there is read; false: the connection is gone, or has another call. */
static bool receive(struct connection *connection)
{
    struct call *call = connection->call;
    char bytes[READ_BYTES];

    for (int i = 0; i < READS_A_TURN; i++) {
        ssize_t count = recv(connection->fd, bytes, sizeof(bytes), 0);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (count <= 0) {
            ended(connection, count < 0 ? errno : 0);
            return false;
        }
        if (!response_feed(&connection->response, bytes, (size_t)count)) {
            struct kota_error error = connection->response.error;

            error.status = connection->response.status;
            if (error.kind)
                broken(connection, &error, false);
            else
                call_finish(call); /* the callback of a feed has ended it */
            return false;
        }
        if (connection->response.is_done) {
            if (call->watch && connection->response.is_stream)
                ended(connection, 0);
            else
                answered(connection);
            return false;
        }
    }
    return true;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct connection *connection = handle->data;
    int code = 0;
    socklen_t size = sizeof(code);

    if (connection->state == CONNECTION_CONNECTING) {
        if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &code, &size))
            code = errno;
        if (code || status < 0)
            connect_failed(connection, code ? strerror(code) : uv_strerror(status));
        else
            connected(connection);
        return;
    }
    if (connection->state == CONNECTION_IDLE) {
        /* closed by the peer, or unexpected bytes */
        connection_close(connection);
        return;
    }
    if (events & UV_WRITABLE && send_more(connection))
        uv_poll_start(handle, UV_READABLE, on_poll);
    if ((status < 0 || events & UV_READABLE) && receive(connection) && status < 0)
        ended(connection, ECONNRESET);
}
