/*
 * The members of a request; the functions for handlers are in http.h.
 *
 * Life: taken from its loop's pool when a head is complete, filled while the body comes in, given
 * to the application (begun), handled on the loop or on a worker, answered on the loop, released.
 * Between begin and end only the thread that handles it touches it; `connection` belongs to the
 * loop's thread at all times and is NULL once the peer is gone.
 */
#ifndef KOTA_HTTP_REQUEST_H
#define KOTA_HTTP_REQUEST_H

#include "http/arena.h"
#include "http/chunks.h"
#include "http/head.h"
#include "http/peers.h"
#include "http/reply.h"
#include "http/router.h"

#include <stdatomic.h>
#include <uv.h>

#define HTTP_REQUEST_FIRST_BYTES 4096
/* An id that is made has HTTP_ID_BYTES hexadecimal digits. */
enum { HTTP_ID_BYTES = 16, HTTP_ID_BYTES_MAX = 64, HTTP_TRACE_BYTES = 55 };
#define HTTP_REQUEST_ARENA_BYTES_MAX ((size_t)256 * 1024 * 1024)

struct http_loop;
struct http_connection;
struct http_stream;

/* The ways by which a request returns to its loop from another thread; a deferred one uses both. */
enum http_arrival { HTTP_RETURNED, HTTP_FINISHED, HTTP_ARRIVALS };

struct http_request {
    struct http_request *next; /* in the loop's pool, or in a lane of the workers */
    struct http_request *next_arrived[HTTP_ARRIVALS]; /* in lists of the loop */
    struct http_loop *loop;
    struct http_connection *connection;
    /* http_request_take clears these */
    const struct http_route *route; /* NULL: none */
    struct http_stream *stream;     /* made and not begun yet */
    void *user;
    void *grant;   /* of authorize; NULL: none, or with the stream */
    void *note;    /* of authorize */
    uint32_t flow; /* of authorize */
    bool is_charged;
    const struct http_sink *sink; /* NULL: the body is buffered, or the handler has the context */
    void *sink_context;
    uint64_t sunk_bytes;    /* of the body, that the sink has taken */
    uint64_t park_until_ms; /* 0: not parked yet */
    bool is_begun;          /* request_begin was called */
    bool is_returned;       /* the handler has returned */
    bool is_deferred;       /* set by the handler's thread before it returns */
    bool is_finished;       /* http_request_finish has arrived at the loop */
    bool may_offload;       /* runs on the loop, and could on a worker */
    bool is_offloaded;      /* the handler asked for it */
    bool is_on_loop;        /* the loop runs its handler or request_begin now */
    bool is_parking;        /* the handler asked for another try */
    bool is_parked;         /* it waits for that, in the loop's list */
    bool is_last_try;
    bool is_shed;    /* refused: no worker had time */
    bool is_at_sink; /* a worker has it for its sink, before it is begun or after its answer */
    struct http_peer peer;

    size_t route_index; /* the first that is not */
    struct http_head head;
    struct http_target target;
    struct http_match match;
    char *body;
    size_t body_length, body_capacity;
    size_t body_bytes_max;
    size_t body_charged;       /* of the server's budget */
    struct http_chunks chunks; /* of a chunked body */
    struct http_request *previous_parked, *next_parked;
    atomic_bool is_abandoned;
    char id[HTTP_ID_BYTES_MAX + 1]; /* X-Request-Id: the client's, or HTTP_ID_BYTES made */
    uint8_t id_length;
    char trace[HTTP_TRACE_BYTES + 1]; /* the client's traceparent; "": none */
    uint64_t started_ns;
    uint64_t build_us;        /* of it, for Server-Timing; 0: nothing was built */
    bool is_large;            /* of the two lanes of the workers */
    double cost_ns, start_ns; /* start_ns: its tag in its lane */
    uint64_t queued_ns;       /* when it was queued for a worker, by the pool's clock */
    struct http_reply reply;
    struct http_arena arena;
    _Alignas(16) char first[HTTP_REQUEST_FIRST_BYTES];
};

/* From the pool of the loop or new, but for its head; NULL without memory. Loop thread. */
struct http_request *http_request_take(struct http_loop *loop, struct http_connection *connection);
void http_request_release(struct http_request *request);
/*
 * Takes X-Request-Id (1 to 64 of A-Za-z0-9._-) and traceparent (W3C Trace Context, version 00) over
 * from the head, if they are there once and well formed; else the id that was made stays.
 */
void http_request_take_ids(struct http_request *request);
void http_request_free(struct http_request *request);
/*
 * The sink takes the body so far, or drops its data when the request is abandoned. An error is
 * in the reply. On a worker.
 */
void http_request_run_sink(struct http_request *request);
/* Hands it to its loop, which then calls http_exchange_arrived. Any thread. */
void http_request_arrive(struct http_request *request, enum http_arrival arrival);

/*
 * Adds to the body. ERR_TOO_LARGE over body_bytes_max, ERR_BUSY when all requests together hold
 * too much, ERR_NO_MEMORY. Loop thread.
 */
enum err_code http_request_append_body(struct http_request *request, const char *at, size_t length,
                                       struct err *err);

#endif
