/*
 * One loop: its thread, its listening socket, its connections, timers, pools and counters.
 * Everything but the members named atomic belongs to the loop's thread.
 */
#ifndef KOTA_HTTP_LOOP_DATA_H
#define KOTA_HTTP_LOOP_DATA_H

#include "base/wake.h"
#include "http/http.h"
#include "http/output.h"
#include "http/router.h"
#include "http/spares.h"
#include "http/wheel.h"

#include <stdatomic.h>
#include <time.h>
#include <uv.h>

#define HTTP_LISTENERS_MAX ((size_t)2) /* TCP, and a Unix socket */
#define HTTP_READS_MAX ((size_t)64)
#define HTTP_READ_BYTES ((size_t)64 * 1024)
#define HTTP_LATENCY_BUCKETS 20
#define HTTP_ROUTE_LATENCY_BUCKETS 11

struct http_server;
struct http_request;
struct http_connection;
struct http_stream;

/* The bucket of a time: i for one below 2^i · 8 µs, the last one for all others. */
static inline size_t http_latency_bucket(uint64_t us)
{
    size_t bucket = us < 8 ? 0 : 61 - (size_t)__builtin_clzll(us);

    return bucket < HTTP_LATENCY_BUCKETS ? bucket : HTTP_LATENCY_BUCKETS - 1;
}

/* Written by one thread, read by any: relaxed atomics on cache lines of their own. */
struct http_loop_counters {
    _Atomic uint64_t accepted, rejected, open, requests, bytes_in, bytes_out;
    _Atomic uint64_t timeouts, parse_errors, write_errors, shed;
    _Atomic uint64_t iterations; /* waits for events */
    _Atomic uint64_t latency_us_sum;
    _Atomic uint64_t streams, streams_opened, streams_rejected;
    _Atomic uint64_t streams_ended[HTTP_STREAM_ENDS];
    _Atomic uint64_t latency_count[HTTP_LATENCY_BUCKETS];
    _Atomic uint64_t iteration_us_sum, iteration_count[HTTP_LATENCY_BUCKETS];
};

struct http_loop_route_counters {
    _Atomic uint64_t by_class[6];
    _Atomic uint64_t latency_us_sum, latency_count[HTTP_ROUTE_LATENCY_BUCKETS];
};

/* The bytes of one read. */
struct http_read {
    struct http_connection *connection;
    const char *at; /* in read_buffer */
    size_t length;
};

struct http_loop {
    uv_loop_t uv;
    uv_poll_t listeners[HTTP_LISTENERS_MAX];
    int listener_fds[HTTP_LISTENERS_MAX];
    size_t listener_count;
    struct wake wake;
    uv_poll_t woken;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t tick;
    uv_timer_t drain_timer;
    uv_poll_t highest; /* only while the loop is made, see loop.c */
    uv_thread_t thread;
    struct http_server *server;
    size_t index;
    bool is_draining, is_ending, is_ticking;
    bool is_deaf;      /* the listeners are closed, or being closed */
    size_t late_count; /* connections accepted while draining; the end does not wait for them */
    bool accept_waits; /* without memory or files for another connection: does not listen */

    struct http_wheel wheel;
    struct http_chunk_pool chunks;
    struct http_request *free_requests;
    size_t free_request_count;
    struct http_spares spares;
    struct http_connection *connections; /* a list */
    size_t connection_count;
    size_t rejected_count;                             /* of them, turned away and lingering */
    size_t reserve_count;                              /* of them, for probes beyond the limits */
    size_t requests_begun;                             /* and not ended */
    struct http_read reads[HTTP_READS_MAX];            /* read in this iteration and not updated yet
                                                        * */
    size_t read_count, reads_processed, reads_flushed; /* each at most the one before */
    struct http_stream *streams, *last_stream;         /* a list */
    size_t stream_count;
    size_t streams_due;                        /* from the list's front, since the last wake-up */
    struct http_request *parked, *last_parked; /* a list */
    size_t parked_count;
    uint64_t id_state;
    uint64_t reject_logged_ms, shed_logged_ms;
    uint64_t iteration_ns; /* the first input of this iteration; 0: none yet */
    uint64_t clock_ns;     /* when input was taken, or the last answer was complete */
    uint64_t date_ns;      /* clock_ns of the last check of the date */
    time_t date_second;
    char date[40]; /* "Date: …\r\n" */
    size_t date_length;
    bool is_clock_fresh; /* clock_ns is from when this input was read, or the answer before it */
    char *read_buffer;   /* [HTTP_READ_BYTES] */
    size_t read_bytes;   /* of it, with unprocessed reads */
    size_t bulk_count;   /* large pieces that were read or sent in this iteration */
    size_t bulk_share;   /* as many as in the one before, at least 1 */

    _Alignas(64) struct http_loop_counters counters;
    struct http_loop_route_counters *route_counters; /* [route_count + 1] */
    /* [HTTP_ARRIVALS], pushed by any thread */
    _Alignas(64) _Atomic(struct http_request *) arrived[2];
    atomic_uint finishing;
    atomic_bool is_woken; /* by http_loop_wake, since the last check */
};

/* The only writer is the loop's thread, so no locked instruction is needed. */
static inline void http_count(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value + more, memory_order_relaxed);
}

static inline void http_uncount(_Atomic uint64_t *counter)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value - 1, memory_order_relaxed);
}

#endif
