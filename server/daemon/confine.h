/*
 * The rights that this process gives up for ever at its start: root, and all files but its own.
 *
 * Both are for the main thread before it makes any other: new threads inherit them, existing ones
 * do not.
 */
#ifndef KOTA_DAEMON_CONFINE_H
#define KOTA_DAEMON_CONFINE_H

#include "base/err.h"

#include <stddef.h>

/*
 * Becomes that user with its groups, if this is root. keeps_ports: binding ports below 1024 stays
 * allowed, and nothing else of root's rights.
 *
 * ERR_BAD_INPUT  no such user, the user is root, this process is not root
 */
enum err_code confine_user(const char *name, bool keeps_ports, struct err *err);

/* Makes a directory that root has just made the user's. ERR_BAD_INPUT, ERR_INTERNAL. */
enum err_code confine_give(const char *directory, const char *name, struct err *err);

enum confine_access { CONFINE_READ, CONFINE_WRITE, CONFINE_SOCKET };

/* What stays reachable: a file, or a directory with all below it; a Unix socket that is to be made.
 * "" is none.
 */
struct confine_path {
    const char *path;
    enum confine_access access;
};

/*
 * From here on no path but these can be opened, and beside them those that the system's libraries
 * read (/usr, /lib, /etc, /proc, /sys) and its devices (/dev). Descriptors that are open stay as
 * they are. A path that is not there is left out.
 *
 * Returns the version of Landlock that is in force; 0 when the kernel has none, with the reason in
 * err.
 */
int confine_files(const struct confine_path *paths, size_t count, struct err *err);

#endif
