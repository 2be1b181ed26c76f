/*
 * The members of a connection.
 */
#ifndef KOTA_HTTP_CONNECTION_DATA_H
#define KOTA_HTTP_CONNECTION_DATA_H

#include "http/head.h"
#include "http/output.h"
#include "http/peers.h"
#include "http/wheel.h"

#include <uv.h>

/* While more waits to be sent, no further request is taken. */
#define HTTP_OUTPUT_STOP_BYTES ((size_t)256 * 1024)

struct http_loop;
struct http_request;
struct http_stream;

/* The first three take input. */
enum http_connection_state {
    HTTP_CONNECTION_HEAD,     /* waits for a request, or for the rest of its head */
    HTTP_CONNECTION_BODY,     /* waits for the rest of a body */
    HTTP_CONNECTION_DISCARD,  /* answered; drops the body before the next request */
    HTTP_CONNECTION_HANDLING, /* the application has the request, or it is parked */
    HTTP_CONNECTION_STREAM,   /* answered by a stream; input is dropped */
    HTTP_CONNECTION_LINGER,   /* answered and shut down; further input is dropped */
    HTTP_CONNECTION_CLOSED    /* uv_close was called */
};

/* The members that every request uses come first, on few cache lines. */
struct http_connection {
    uv_poll_t poll;
    int fd;
    int polled; /* the events that poll waits for; 0: it is stopped */
    struct http_loop *loop;
    struct http_request *request;
    struct http_stream *stream; /* not NULL in the state STREAM */
    enum http_connection_state state;
    enum err_code reserve; /* not ERR_OK: why it is beyond the limits, and for probes only */
    bool is_counted;       /* in the server's and the address's count; else it was rejected */
    bool is_late;          /* accepted while the loop was draining */
    bool has_asked;        /* a request was taken; without one, the first is probably on its way */
    bool is_reading;
    bool is_writing;   /* the socket is full: waits until it takes more */
    bool peer_ended;   /* end of file was read */
    bool close_after;  /* no further request is taken; close when all is sent */
    bool linger_after; /* and let the peer read the answer first */
    struct http_output output;
    size_t pending_length;
    uint64_t head_since_ms;                       /* first byte of an incomplete head; 0: none */
    uint64_t read_deadline_ms, write_deadline_ms; /* 0: none */
    struct http_timer timer;
    struct http_peer peer;
    struct http_head head; /* of a head that has begun */

    char *pending; /* read but not taken yet; begins with the head that head describes */
    size_t pending_capacity;
    struct http_connection *previous, *next;
    uint64_t body_since_ms;
    uint64_t sink_since_ms;                    /* a worker has a piece: not the sender's time */
    uint64_t body_received;                    /* bytes on the wire, framing included */
    uint64_t discard_bytes;                    /* length of the body that is dropped */
    uint64_t reserve_until_ms;                 /* 0: not set yet */
    uint64_t probe_at_ms;                      /* is a peer that has ended gone? 0: not asked */
    uint64_t linger_since_ms, linger_until_ms; /* of the state LINGER */
    uint64_t lingered_ms;                      /* when something came last in it */
    size_t lingered_bytes;                     /* dropped while it lingers, or is a stream */
};

/* May the next bytes be taken now? */
static inline bool http_connection_takes_input(const struct http_connection *connection)
{
    return connection->state <= HTTP_CONNECTION_DISCARD && !connection->close_after &&
           connection->output.bytes < HTTP_OUTPUT_STOP_BYTES;
}

#endif
