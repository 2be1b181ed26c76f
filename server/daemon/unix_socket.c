/*
 * A Unix socket that listens: see unix_socket.h.
 *
 * Problem: the path outlives a process that was killed, and bind(2) then fails for ever; but to
 * remove any path would take the socket of a running daemon away from it. Approach: connect first,
 * and remove the path only after ECONNREFUSED: it is a socket and no process listens. Two daemons
 * that start at the same time at a path of a dead one could both do so; the later one then has the
 * path, and the other removes nothing at its end, since the path is no longer its socket.
 *
 * The mode is set between bind(2) and listen(2): before that a connection is refused, so umask(2),
 * which is of all threads, is not touched. Source: unix(7).
 */
#include "daemon/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

static enum err_code remove_stale(const struct sockaddr_un *address, struct err *err)
{
    const char *path = address->sun_path;
    struct stat status;
    int fd, why;

    if (lstat(path, &status) != 0)
        return ERR_OK; /* bind(2) says what is wrong, if anything */
    if (!S_ISSOCK(status.st_mode))
        return err_set(err, ERR_BAD_INPUT, "unix:%s: the path is there and no socket", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, ERR_BUSY, "cannot make a socket: %s", strerror(errno));
    why = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    if (why == ECONNREFUSED && unlink(path) != 0)
        return err_set(err, ERR_BUSY, "unix:%s: the stale socket cannot be removed: %s", path,
                       strerror(errno));
    if (why == 0 || why == EAGAIN)
        return err_set(err, ERR_BUSY, "cannot listen on unix:%s: another process does", path);
    if (why != ECONNREFUSED && why != ENOENT)
        return err_set(err, ERR_BUSY, "unix:%s: %s", path, strerror(why));
    return ERR_OK;
}

enum err_code unix_socket_open(struct unix_socket *out, const char *path, unsigned mode,
                               struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;

    err->code = ERR_OK;
    if (strlen(path) >= sizeof address.sun_path)
        return err_set(err, ERR_BAD_INPUT, "unix:%.40s…: the path has more than %zu bytes", path,
                       sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    if (remove_stale(&address, err))
        return err->code;
    out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (out->fd < 0)
        return err_set(err, ERR_BUSY, "cannot make a socket: %s", strerror(errno));
    if (bind(out->fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        if (chmod(path, (mode_t)mode) == 0 && lstat(path, &status) == 0 &&
            listen(out->fd, BACKLOG) == 0) {
            out->device = status.st_dev;
            out->inode = status.st_ino;
            return ERR_OK;
        }
        err_set(err, ERR_BUSY, "cannot listen on unix:%s: %s", path, strerror(errno));
        unlink(path);
    } else {
        err_set(err, ERR_BUSY, "cannot listen on unix:%s: %s", path, strerror(errno));
    }
    close(out->fd);
    out->fd = -1;
    return err->code;
}

void unix_socket_close(struct unix_socket *socket, const char *path)
{
    struct stat status;

    if (socket->fd < 0)
        return;
    if (lstat(path, &status) == 0 && status.st_dev == socket->device &&
        status.st_ino == socket->inode)
        unlink(path);
    close(socket->fd);
    socket->fd = -1;
}
