/*
 * A scripted server, a thread a connection; see fake_http.h.
 */
#include "support/fake_http.h"

#include "base/check.h"
#include "support/pause.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096 };

struct connection {
    struct fake_http *server;
    pthread_t thread;
    int fd;
    unsigned number;
};

struct fake_http {
    int fd;
    uint16_t port;
    pthread_t acceptor;
    fake_serve *serve;
    void *context;
    atomic_bool is_stopping;
    atomic_uint count;
    pthread_mutex_t lock; /* guards the fds against stop */
    struct connection connections[CONNECTIONS_MAX];
};

static void *serve_one(void *context)
{
    struct connection *connection = context;
    struct fake_http *server = connection->server;

    server->serve(server, connection->fd, connection->number, server->context);
    pthread_mutex_lock(&server->lock);
    close(connection->fd);
    connection->fd = -1;
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void *accept_all(void *context)
{
    struct fake_http *server = context;

    for (;;) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        unsigned number = atomic_load(&server->count);
        struct connection *connection = &server->connections[number];

        if (fd < 0 || atomic_load(&server->is_stopping)) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        CHECK(number < CONNECTIONS_MAX);
        *connection = (struct connection){.server = server, .fd = fd, .number = number};
        atomic_store(&server->count, number + 1); /* before its answer can be seen */
        CHECK(pthread_create(&connection->thread, NULL, serve_one, connection) == 0);
    }
}

struct fake_http *fake_http_start(fake_serve *serve, void *context)
{
    struct fake_http *server = calloc(1, sizeof(*server));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    CHECK(server);
    server->serve = serve;
    server->context = context;
    pthread_mutex_init(&server->lock, NULL);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(server->fd >= 0);
    CHECK(bind(server->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(server->fd, 1024) == 0);
    CHECK(getsockname(server->fd, (struct sockaddr *)&address, &size) == 0);
    server->port = ntohs(address.sin_port);
    CHECK(pthread_create(&server->acceptor, NULL, accept_all, server) == 0);
    return server;
}

uint16_t fake_http_port(const struct fake_http *server)
{
    return server->port;
}

unsigned fake_http_connections(struct fake_http *server)
{
    return atomic_load(&server->count);
}

void fake_http_stop(struct fake_http *server)
{
    unsigned count;

    atomic_store(&server->is_stopping, true);
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->fd);
    count = atomic_load(&server->count);
    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < count; i++)
        if (server->connections[i].fd >= 0)
            shutdown(server->connections[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(server->connections[i].thread, NULL);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

bool fake_read_request(int fd, char *text, size_t size)
{
    size_t length = 0, wanted = SIZE_MAX;

    for (;;) {
        char rest[4096];
        bool fits = length + 1 < size;
        ssize_t count =
            recv(fd, fits ? text + length : rest, fits ? size - 1 - length : sizeof(rest), 0);
        char *end;

        if (count <= 0)
            return false;
        length += (size_t)count;
        text[length < size ? length : size - 1] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end && wanted == SIZE_MAX) {
            char *header = strcasestr(text, "\r\nContent-Length: ");

            wanted =
                (size_t)(end + 4 - text) + (header && header < end ? (size_t)atol(header + 18) : 0);
        }
        if (length >= wanted)
            return true;
    }
}

bool fake_send_bytes(int fd, const void *bytes, size_t length)
{
    for (size_t from = 0; from < length;) {
        ssize_t count = send(fd, (const char *)bytes + from, length - from, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        from += (size_t)count;
    }
    return true;
}

bool fake_send(int fd, const char *text)
{
    return fake_send_bytes(fd, text, strlen(text));
}

void fake_wait_closed(int fd)
{
    char bytes[4096];

    while (recv(fd, bytes, sizeof(bytes), 0) > 0)
        continue;
}

bool fake_pause(struct fake_http *server, unsigned ms)
{
    for (unsigned i = 0; i < ms && !atomic_load(&server->is_stopping); i += 5)
        pause_ms(5);
    return !atomic_load(&server->is_stopping);
}
