/*
 * A probe without curl: images and units need no other program than the daemon itself.
 *
 * One connection, one request, and of the answer only the status line and the detail of a problem
 * document matter. Everything together has one deadline, so that a daemon that accepts and does not
 * answer is unhealthy in time.
 */
#include "daemon/healthcheck.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_BYTES_MAX = 8192 };

struct probe {
    char host[CONFIG_HOST_MAX];
    uint16_t port;
    const char *unix_path; /* NULL: TCP */
    int64_t until_ms;
};

static enum err_code port_of_file(const char *path, uint16_t *port, struct err *err)
{
    FILE *stream = path[0] != '\0' ? fopen(path, "re") : NULL;
    unsigned got = 0;

    if (path[0] == '\0')
        return err_set(err, ERR_BAD_INPUT, "--listen has port 0, and no --port-file says which");
    if (!stream)
        return err_set(err, ERR_BUSY, "port file %s: %s", path, strerror(errno));
    if (fscanf(stream, "%5u", &got) != 1 || got == 0 || got > 65535)
        err_set(err, ERR_BUSY, "port file %s holds no port", path);
    fclose(stream);
    *port = (uint16_t)got;
    return err->code;
}

static enum err_code probe_of(const struct config *config, struct probe *probe, struct err *err)
{
    const char *host = config->host;

    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    if (strcmp(host, "::") == 0)
        host = "::1";
    snprintf(probe->host, sizeof probe->host, "%s", host);
    probe->port = config->port;
    probe->until_ms = (int64_t)monotonic_ms() + HEALTHCHECK_MS;
    probe->unix_path = host[0] == '\0' ? config->unix_path : NULL;
    if (probe->unix_path) {
        strcpy(probe->host, "localhost"); /* of the Host header */
        return ERR_OK;
    }
    return config->port == 0 ? port_of_file(config->port_file, &probe->port, err) : ERR_OK;
}

/* Waits for the socket; false when the time is over. */
static bool wait_for(const struct probe *probe, int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    int64_t left = probe->until_ms - (int64_t)monotonic_ms();

    return left > 0 && poll(&poll_fd, 1, (int)left) == 1;
}

static enum err_code failed(const struct probe *probe, const char *what, struct err *err)
{
    if (probe->unix_path)
        return err_set(err, ERR_BUSY, "unix:%s: %s", probe->unix_path, what);
    return err_set(err, ERR_BUSY, "%s port %u: %s", probe->host, probe->port, what);
}

/* A connection to a Unix socket is made at once, or refused. */
static int connect_to_unix(const struct probe *probe, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", probe->unix_path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    failed(probe, strerror(errno), err);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int connect_to(const struct probe *probe, struct err *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(probe->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(probe->port)};
    bool is_v4 = inet_pton(AF_INET, probe->host, &v4.sin_addr) == 1;
    const void *address = is_v4 ? (const void *)&v4 : (const void *)&v6;
    int fd, status = 0;
    socklen_t length = sizeof status;

    if (!is_v4 && inet_pton(AF_INET6, probe->host, &v6.sin6_addr) != 1) {
        failed(probe, "this is no numeric address", err);
        return -1;
    }
    fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, address, is_v4 ? sizeof v4 : sizeof v6) != 0)
        status = errno;
    if (fd >= 0 && status == EINPROGRESS &&
        (!wait_for(probe, fd, POLLOUT) ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &length) != 0))
        status = ETIMEDOUT;
    if (fd >= 0 && status == 0)
        return fd;
    failed(probe, strerror(fd < 0 ? errno : status), err);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The whole answer, until its sender closes. */
static size_t receive(const struct probe *probe, int fd, char *out, size_t size)
{
    size_t length = 0;

    while (length < size && wait_for(probe, fd, POLLIN)) {
        ssize_t got = recv(fd, out + length, size - length, 0);

        if (got < 0 && errno == EAGAIN)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    return length;
}

/* The text of "detail" in a problem document, up to its first escape; "" when there is none. */
static void detail_of(const char *answer, char *out, size_t size)
{
    static const char member[] = "\"detail\":\"";
    const char *at = strstr(answer, member);

    out[0] = '\0';
    if (at)
        snprintf(out, size, "%.*s", (int)strcspn(at + sizeof member - 1, "\"\\"),
                 at + sizeof member - 1);
}

enum err_code healthcheck(const struct config *config, struct err *err)
{
    struct probe probe;
    char request[128 + CONFIG_HOST_MAX], answer[ANSWER_BYTES_MAX + 1], detail[120], what[200];
    unsigned status = 0;
    size_t length;
    int fd, wanted;

    err->code = ERR_OK;
    if (probe_of(config, &probe, err) ||
        (fd = probe.unix_path ? connect_to_unix(&probe, err) : connect_to(&probe, err)) < 0)
        return err->code;
    wanted = snprintf(request, sizeof request,
                      strchr(probe.host, ':')
                          ? "GET /readyz HTTP/1.1\r\nHost: [%s]\r\nConnection: close\r\n\r\n"
                          : "GET /readyz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                      probe.host);
    length = send(fd, request, (size_t)wanted, MSG_NOSIGNAL) == wanted
                 ? receive(&probe, fd, answer, sizeof answer - 1)
                 : 0;
    answer[length] = '\0';
    close(fd);
    if (sscanf(answer, "HTTP/1.1 %3u", &status) != 1)
        return failed(&probe, length == 0 ? "no answer" : "this is no kotad", err);
    if (status == 200)
        return ERR_OK;
    detail_of(answer, detail, sizeof detail);
    snprintf(what, sizeof what, "/readyz is %u%s%s", status, detail[0] ? ": " : "", detail);
    return failed(&probe, what, err);
}
