/*
 * A file that appears whole or not at all.
 */
#ifndef KOTA_CLIENT_TARGET_H
#define KOTA_CLIENT_TARGET_H

#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

/* One at a time in a process. */
struct target {
    FILE *file;
    char *name; /* its name while it grows */
    char *wanted;
};

/*
 * Begins a file beside the wanted one, under a name of its own. From here to target_keep or
 * target_drop SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGQUIT take it away before they end the
 * process. ERR_INTERNAL: it cannot be written there.
 */
enum err_code target_open(struct target *target, const char *wanted, struct err *err);

/* More bytes; the shape that call_stream.take has, target being the context. */
enum err_code target_take(void *target, const char *bytes, size_t length, struct err *err);

/* All of it is on the disk; then it gets its name, and replaces a file of that name. */
enum err_code target_keep(struct target *target, struct err *err);

/* Removes the file unless it was kept. Also after target_keep, and of a target that is zero. */
void target_drop(struct target *target);

#endif
