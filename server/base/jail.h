/*
 * Code that may crash, hang or use up memory runs in a child process with few rights, and answers
 * through a pipe. For libraries whose readers of hostile bytes cannot be checked.
 *
 *   jail_start(&jail, &limits, body, context, &err)   the child calls body(context, pipe)
 *   jail_read(&jail, block, bytes)                    the bytes of jail_write(); false: no
 *                                                     more
 *   jail_end(&jail)                                   always; returns how it ended
 *
 * The child is a fork: it sees a copy of our memory, so that body needs no arguments made flat. It
 * can open no file and no socket (RLIMIT_NOFILE 0), has no descriptor but the pipe and standard
 * error, writes no core, and dies with the thread that made it. What it sends is as hostile as the
 * bytes it read: check it.
 *
 * Any thread; threads may hold several. The caller must not use the library in its own process,
 * for a fork copies locks as they are. body may allocate: glibc keeps malloc sane across fork.
 */
#ifndef KOTA_BASE_JAIL_H
#define KOTA_BASE_JAIL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jail_limits {
    uint64_t memory_bytes; /* private memory beyond the parent's */
    unsigned cpu_s, wall_s;
};

struct jail {
    pid_t pid;
    int pipe;
};

enum jail_end {
    JAIL_DONE,      /* body returned */
    JAIL_CRASHED,   /* any other way */
    JAIL_TIMED_OUT, /* over cpu_s or wall_s */
    JAIL_UNTIED     /* the limits could not be set; body was not called */
};

/* ERR_INTERNAL, ERR_NO_MEMORY: no pipe, no process; there is then nothing to end. */
enum err_code jail_start(struct jail *jail, const struct jail_limits *limits,
                         void (*body)(void *context, int pipe), void *context, struct err *err);

/* Reads exactly bytes; false when the child wrote fewer, at any kind of end. */
bool jail_read(struct jail *jail, void *block, size_t bytes);

/* In the child: writes all of it; ends the child when the pipe is closed. */
void jail_write(int pipe, const void *block, size_t bytes);

/* Closes the pipe, which ends a child that still writes, and waits for it. */
enum jail_end jail_end(struct jail *jail);

#endif
