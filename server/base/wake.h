/*
 * Waking a loop from other threads.
 *
 *   another thread:  stores its data; wake_send(&wake)
 *   the loop:        polls wake.fd; when it is readable wake_take(&wake), then reads the data
 *
 * Not uv_async_send: in libuv 1.44 it marks a signal as half sent, writes, and marks it as sent,
 * and the loop that the write wakes spins until the second mark. Where cores are short it spins
 * away the time of the very thread that it waits for, milliseconds each time. Its test for a
 * pending signal is a relaxed load besides, so that data stored before could be missed.
 *
 * Here both sides exchange one flag, which orders all that was stored before: either wake_send
 * sees that the loop has not yet taken an earlier signal and will read the data after that, or it
 * writes.
 */
#ifndef KOTA_BASE_WAKE_H
#define KOTA_BASE_WAKE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct wake {
    int fd;
    atomic_bool is_pending;
};

/* False: no file is free; errno. */
static inline bool wake_open(struct wake *wake)
{
    atomic_init(&wake->is_pending, false);
    wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return wake->fd >= 0;
}

static inline void wake_close(struct wake *wake)
{
    close(wake->fd);
}

/* Any thread, and a handler of signals. */
static inline void wake_send(struct wake *wake)
{
    const uint64_t one = 1;

    if (atomic_exchange(&wake->is_pending, true))
        return;
    while (write(wake->fd, &one, sizeof one) < 0 && errno == EINTR) {
    } /* or the counter is full: then it is readable */
}

/* The loop's thread. */
static inline void wake_take(struct wake *wake)
{
    uint64_t count;

    if (read(wake->fd, &count, sizeof count) < 0)
        count = 0; /* sent, and its write comes later */
    atomic_exchange(&wake->is_pending, false);
}

#endif
