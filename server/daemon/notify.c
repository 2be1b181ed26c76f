/*
 * systemd's protocols: datagrams of lines, and descriptors from 3 on.
 *
 * Problem: a service manager needs readiness, the watchdog's sign of life, reload and stop; and it
 * may open the socket before the daemon starts, so that no connection is refused while the daemon
 * is replaced. Approach: the two protocols are a few lines each, and by sd_notify(3) they are
 * stable and may be implemented without its library. That was tried and dropped: its sd_notify()
 * waits for ever when the manager does not read (ten datagrams fill its queue), and the drain
 * waited with it. Here a message that finds no room is lost. The socket is opened once, since
 * descriptors may be scarce later. RELOADING=1 carries MONOTONIC_USEC, which newer managers
 * (Type=notify-reload, systemd 253) need to distinguish reloads. Source: sd_notify(3),
 * sd_watchdog_enabled(3), sd_listen_fds(3), systemd.service(5).
 */
#include "daemon/notify.h"

#include "base/clock.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_SOCKET = 3, SOCKETS_MAX = 16 };

/* A number of the environment; false when it is not there. Nothing but digits counts as 0. */
static bool environment_number(const char *name, uint64_t *out)
{
    const char *text = getenv(name);
    char *end;

    if (!text)
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        *out = 0;
    return true;
}

/* Is the variable meant for this process, and not for its parent? */
static bool is_for_us(const char *name)
{
    uint64_t pid;

    return !environment_number(name, &pid) || pid == (uint64_t)getpid();
}

/* ---- messages -------------------------------------------------------------------------------- */

static int channel = -1;          /* connected to the manager; -1: there is none */
static const char *channel_fault; /* why there is none though there should be */

static void channel_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);

    if (length == 0)
        return;
    channel_fault = "NOTIFY_SOCKET is no path and no abstract name";
    if ((path[0] != '/' && path[0] != '@') || length >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    channel = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (channel >= 0 && connect(channel, (const struct sockaddr *)&address, size) == 0) {
        channel_fault = NULL;
        return;
    }
    channel_fault = "its socket cannot be reached";
    if (channel >= 0)
        close(channel);
    channel = -1;
}

static void send_text(const char *text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_bool is_told;
    const char *why;

    pthread_once(&once, channel_open);
    if (channel < 0 && !channel_fault)
        return;
    if (channel >= 0 && send(channel, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return;
    why = channel < 0 ? channel_fault : errno == EAGAIN ? "it does not read" : strerror(errno);
    if (!atomic_exchange(&is_told, true))
        log_warn("the service manager is not told %.40s: %s", text, why);
}

void notify_status(const char *format, ...)
{
    char text[256] = "STATUS=";
    va_list args;

    va_start(args, format);
    vsnprintf(text + 7, sizeof text - 7, format, args);
    va_end(args);
    send_text(text);
}

void notify_ready(void)
{
    send_text("READY=1");
}

void notify_reloading(void)
{
    char text[64];

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)monotonic_us());
    send_text(text);
}

void notify_stopping(void)
{
    send_text("STOPPING=1\nSTATUS=draining");
}

void notify_extend(uint64_t timeout_ms)
{
    char text[64];

    snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)timeout_ms * 1000);
    send_text(text);
}

void notify_alive(void)
{
    send_text("WATCHDOG=1");
}

uint64_t notify_watchdog_ms(void)
{
    uint64_t us;

    if (!environment_number("WATCHDOG_USEC", &us) || !is_for_us("WATCHDOG_PID") || us == 0)
        return 0;
    return us < 1000 ? 1 : us / 1000;
}

/* ---- sockets --------------------------------------------------------------------------------- */

enum err_code notify_socket_address(int socket, char host[static 64], uint16_t *port,
                                    struct err *err)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof address, size = sizeof(int);
    int is_listening = 0, type = 0;

    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0 ||
        getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 ||
        getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
        return err_set(err, ERR_BAD_INPUT, "LISTEN_FDS: descriptor %d is no socket: %s", socket,
                       strerror(errno));
    if (type != SOCK_STREAM || !is_listening ||
        (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return err_set(err, ERR_BAD_INPUT,
                       "LISTEN_FDS: descriptor %d is no TCP socket of IPv4 or IPv6 that listens",
                       socket);
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)&address;

        inet_ntop(AF_INET, &v4->sin_addr, host, 64);
        *port = ntohs(v4->sin_port);
    } else {
        const struct sockaddr_in6 *v6 = (const void *)&address;

        inet_ntop(AF_INET6, &v6->sin6_addr, host, 64);
        *port = ntohs(v6->sin6_port);
    }
    return ERR_OK;
}

static bool is_unix(int fd, struct sockaddr_un *address)
{
    socklen_t length = sizeof *address;

    memset(address, 0, sizeof *address);
    return getsockname(fd, (struct sockaddr *)address, &length) == 0 &&
           address->sun_family == AF_UNIX;
}

void notify_socket_path(int socket, char path[static 108])
{
    struct sockaddr_un address;

    snprintf(path, 108, "%s", is_unix(socket, &address) ? address.sun_path : "");
}

static enum err_code sort_sockets(char *names, uint64_t count, struct notify_sockets *out,
                                  struct err *err)
{
    char *rest = names;

    for (uint64_t i = 0; i < count; i++) {
        const char *name = rest ? strsep(&rest, ":") : NULL;
        const bool is_ops = name && strcmp(name, "ops") == 0;
        const int fd = FIRST_SOCKET + (int)i;
        struct sockaddr_un address;
        int *to = is_ops ? &out->ops : is_unix(fd, &address) ? &out->unix_main : &out->main;

        if (*to >= 0)
            return err_set(
                err, ERR_BAD_INPUT,
                "LISTEN_FDS: two sockets are handed over for the %s listener, it takes one",
                is_ops             ? "ops"
                : to == &out->main ? "main"
                                   : "Unix");
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return err_set(err, ERR_BAD_INPUT, "LISTEN_FDS: descriptor %d: %s", fd,
                           strerror(errno));
        *to = fd;
    }
    return ERR_OK;
}

enum err_code notify_sockets(struct notify_sockets *out, struct err *err)
{
    const char *given = getenv("LISTEN_FDNAMES");
    uint64_t count;
    char *names;

    *out = (struct notify_sockets){-1, -1, -1};
    err->code = ERR_OK;
    if (!environment_number("LISTEN_FDS", &count) || !getenv("LISTEN_PID") ||
        !is_for_us("LISTEN_PID"))
        return ERR_OK;
    if (count == 0 || count > SOCKETS_MAX)
        return err_limit(err, ERR_BAD_INPUT, SOCKETS_MAX, (double)count,
                         "LISTEN_FDS: \"%.20s\" is not a number of 1 to %d", getenv("LISTEN_FDS"),
                         SOCKETS_MAX);
    names = given ? strdup(given) : NULL;
    sort_sockets(names, count, out, err);
    free(names);
    return err->code;
}
