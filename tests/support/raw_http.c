/*
 * The tests' own HTTP client: see raw_http.h. It shares no code with the server, so that a mistake
 * in parsing cannot hide on both sides. Blocking sockets with a receive timeout; a test can hang
 * for ten seconds at most.
 */
#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

struct raw_client raw_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 600};
    struct raw_client client = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int yes = 1;

    assert_true(client.fd >= 0);
    setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(client.fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail_msg("cannot connect to port %u: %s", port, strerror(errno));
    return client;
}

void raw_close(struct raw_client *client)
{
    close(client->fd);
    free(client->buffer);
    *client = (struct raw_client){.fd = -1};
}

void raw_reset(struct raw_client *client)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    raw_close(client);
}

bool raw_try_send(struct raw_client *client, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length) {
        ssize_t sent = send(client->fd, at, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        length -= (size_t)sent;
    }
    return true;
}

void raw_send(struct raw_client *client, const void *bytes, size_t length)
{
    if (!raw_try_send(client, bytes, length))
        fail_msg("cannot send %zu bytes: %s", length, strerror(errno));
}

void raw_send_text(struct raw_client *client, const char *text)
{
    raw_send(client, text, strlen(text));
}

void raw_end_sending(struct raw_client *client)
{
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
}

/* Waits for more bytes; false at the end of the stream or after a reset. */
static bool read_more(struct raw_client *client)
{
    ssize_t got;

    if (client->start && client->length)
        memmove(client->buffer, client->buffer + client->start, client->length);
    client->start = 0;
    if (client->capacity - client->length < 65536) {
        client->capacity = client->capacity * 2 + 65536;
        client->buffer = realloc(client->buffer, client->capacity);
        assert_non_null(client->buffer);
    }
    got = recv(client->fd, client->buffer + client->length, client->capacity - client->length, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        fail_msg("no answer within ten seconds; have %zu bytes", client->length);
    if (got <= 0)
        return false;
    client->length += (size_t)got;
    return true;
}

static char *take(struct raw_client *client, size_t length)
{
    char *copy = malloc(length + 1);

    assert_non_null(copy);
    while (client->length < length)
        if (!read_more(client))
            fail_msg("the peer closed after %zu of %zu bytes", client->length, length);
    if (length)
        memcpy(copy, client->buffer + client->start, length);
    copy[length] = '\0';
    client->length -= length;
    client->start += length;
    return copy;
}

void raw_read_bytes(struct raw_client *client, void *out, size_t length)
{
    char *bytes = take(client, length);

    memcpy(out, bytes, length);
    free(bytes);
}

struct raw_answer raw_read(struct raw_client *client, bool is_head)
{
    struct raw_answer answer = {0};
    char length_text[32];
    const char *end = NULL;

    while (client->length == 0 ||
           (end = memmem(client->buffer + client->start, client->length, "\r\n\r\n", 4)) == NULL)
        if (!read_more(client))
            fail_msg("the peer closed after %zu bytes of a head", client->length);
    answer.head = take(client, (size_t)(end - client->buffer) - client->start + 4);
    if (sscanf(answer.head, "HTTP/1.1 %d ", &answer.status) != 1)
        fail_msg("not a status line: %.40s", answer.head);
    if (!is_head && raw_header(&answer, "Content-Length", length_text, sizeof length_text))
        answer.body_length = strtoul(length_text, NULL, 10);
    answer.body = take(client, answer.body_length);
    return answer;
}

void raw_answer_free(struct raw_answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct raw_answer){0};
}

void raw_expect(struct raw_client *client, int status, const char *body)
{
    struct raw_answer answer = raw_read(client, false);

    if (answer.status != status || (body && strcmp(answer.body, body) != 0))
        fail_msg("%d '%.200s' instead of %d '%s'", answer.status, answer.body, status,
                 body ? body : "(any)");
    raw_answer_free(&answer);
}

bool raw_header(const struct raw_answer *answer, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);

    for (const char *line = strstr(answer->head, "\r\n"); line && line[2] != '\r';
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':') {
            const char *value = line + 2 + length + 1;
            size_t value_length;

            value += strspn(value, " ");
            value_length = strcspn(value, "\r");
            assert_true(value_length < size);
            memcpy(out, value, value_length);
            out[value_length] = '\0';
            return true;
        }
    }
    return false;
}

bool raw_is_closed(struct raw_client *client)
{
    return client->length == 0 && !read_more(client);
}

bool raw_is_silent(struct raw_client *client, int wait_ms)
{
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};

    return client->length == 0 && poll(&wait, 1, wait_ms) == 0;
}

int raw_status_of(uint16_t port, const char *text)
{
    struct raw_client client = raw_connect(port);
    struct raw_answer answer;
    int status;

    raw_send_text(&client, text);
    answer = raw_read(&client, false);
    status = answer.status;
    raw_answer_free(&answer);
    raw_close(&client);
    return status;
}
