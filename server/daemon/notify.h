/*
 * Messages to the service manager, and sockets from it: systemd's notification protocol and its
 * socket activation (sd_notify(3), sd_listen_fds(3)).
 *
 * Without a service manager (NOTIFY_SOCKET and LISTEN_FDS are not set) every call does nothing. No
 * call waits for a manager that does not read: a message without room is lost, and logged once. Any
 * thread, but for notify_sockets.
 */
#ifndef KOTA_DAEMON_NOTIFY_H
#define KOTA_DAEMON_NOTIFY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A line for `systemctl status`; printable. */
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* All is loaded and requests are taken; also after notify_reloading. */
void notify_ready(void);
/* The configuration is read again; notify_ready follows. */
void notify_reloading(void);
void notify_stopping(void);
/* The start takes longer: it is not given up for this time, from now. */
void notify_extend(uint64_t timeout_ms);
/* A sign of life, to be given within the time below. */
void notify_alive(void);
/* In which time a sign of life is wanted; 0: none is. */
uint64_t notify_watchdog_ms(void);

/*
 * The sockets that listen already, -1 where there is none. One is the main one unless its name
 * (FileDescriptorName=) is `ops`, and of the main ones one may be a Unix socket. Main thread,
 * before others are made; the sockets stay open as long as the process.
 *
 * ERR_BAD_INPUT  two of a kind; a number that cannot be read
 */
struct notify_sockets {
    int main, unix_main, ops;
};
enum err_code notify_sockets(struct notify_sockets *out, struct err *err);

/* Where a socket is bound. host[64] is numeric. ERR_BAD_INPUT: it listens on neither IPv4 nor IPv6.
 */
enum err_code notify_socket_address(int socket, char host[static 64], uint16_t *port,
                                    struct err *err);
/* The path of a Unix socket; "" if it is none, or has no path. */
void notify_socket_path(int socket, char path[static 108]);

#endif
