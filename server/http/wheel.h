/*
 * Deadlines of many connections on one timer.
 */
#ifndef KOTA_HTTP_WHEEL_H
#define KOTA_HTTP_WHEEL_H

#include <stdint.h>

#define HTTP_WHEEL_SLOTS 256

/* Zeroed before first use. */
struct http_timer {
    struct http_timer *previous, *next; /* in its slot; next is NULL when it is in none */
    uint64_t tick;                      /* of the slot */
    uint64_t deadline_ms;               /* 0: none */
};

struct http_wheel {
    struct http_timer slots[HTTP_WHEEL_SLOTS]; /* heads of rings */
    uint64_t tick_ms;
    uint64_t tick; /* the last one that was handled */
};

typedef void (*http_timer_expired)(struct http_timer *timer);

/* tick_ms is the resolution: a timer expires at most two ticks late and never early. */
void http_wheel_init(struct http_wheel *wheel, uint64_t now_ms, uint64_t tick_ms);

/* A later deadline only notes the number; an earlier one moves the timer. 0 means none. O(1). */
void http_wheel_set(struct http_wheel *wheel, struct http_timer *timer, uint64_t deadline_ms);
void http_wheel_remove(struct http_timer *timer);

/*
 * Calls expired for each timer whose deadline has passed, after taking it off the wheel. The
 * callback may set, remove or free that timer and any other.
 */
void http_wheel_advance(struct http_wheel *wheel, uint64_t now_ms, http_timer_expired expired);

#endif
