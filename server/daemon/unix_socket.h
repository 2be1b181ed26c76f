/*
 * The Unix socket of --listen unix:PATH.
 */
#ifndef KOTA_DAEMON_UNIX_SOCKET_H
#define KOTA_DAEMON_UNIX_SOCKET_H

#include "base/err.h"

#include <sys/types.h>

struct unix_socket {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/*
 * Makes a socket that listens at path. A socket that is there already is replaced if no process
 * answers at it. Nobody can connect before the socket has its mode.
 *
 * ERR_BAD_INPUT  the path is too long, or something else is there
 * ERR_BUSY       a process answers there; the system refused
 */
enum err_code unix_socket_open(struct unix_socket *out, const char *path, unsigned mode,
                               struct err *err);

/* Closes it, and removes the path if it is still this socket. */
void unix_socket_close(struct unix_socket *socket, const char *path);

#endif
