/*
 * The members of a stream; the functions for handlers are in http.h.
 *
 * Life of a stream: made by http_reply_stream while its request is handled, begun when the head has
 * been encoded (the request ends with that), over for one reason. Everything on the loop's thread.
 */
#ifndef KOTA_HTTP_STREAM_H
#define KOTA_HTTP_STREAM_H

#include "http/connection_data.h"
#include "http/http.h"
#include "http/request.h"

/* Bytes up to which small messages fill it; what is beyond that is for one large message. */
#define HTTP_STREAM_FILL_BYTES ((size_t)64 * 1024)
/* Free bytes for which http_stream_has_room is true. */
#define HTTP_STREAM_ROOM_BYTES ((size_t)16 * 1024)
/* What a peer may send on after its request; it is dropped. */
#define HTTP_STREAM_INPUT_BYTES_MAX ((size_t)64 * 1024)

struct http_stream {
    struct http_connection *connection;  /* NULL before it has begun */
    struct http_stream *previous, *next; /* in the loop's list */
    struct http_stream_calls calls;
    void *context;
    void *grant;      /* of its request; NULL: none */
    uint64_t sent_ms; /* when something was written last */
    bool is_due;      /* pull is to be called when there is room */
    bool is_failed;   /* a write found no memory or no room */
    bool is_ending;   /* http_stream_end was called */
    enum http_stream_end reason;
};

/*
 * The head is in the connection's output: the stream leaves its request and goes to the loop's
 * list.
 */
void http_stream_begin(struct http_connection *connection, struct http_request *request);
/* It could not begin: calls `ended`, frees it. Nothing without a stream. */
void http_stream_cancel(struct http_request *request);

/*
 * Calls pull, once, if it is due and there is room. True when something was written. Afterwards the
 * stream may be over: either it ended (the connection sends the rest and closes) or it failed
 * (*is_broken: close it now).
 */
bool http_stream_pull(struct http_connection *connection, bool *is_broken);

/*
 * Calls `ended`, counts, frees; the connection closes when all is sent. Nothing without a stream.
 */
void http_stream_over(struct http_connection *connection, enum http_stream_end reason);

/* When http_stream_look is due: the end of its silence, or of its grant. */
uint64_t http_stream_deadline_ms(const struct http_stream *stream);
/*
 * The stream has been silent for too long: a comment, unless something waits to be sent anyway. One
 * whose grant has ended is over.
 */
void http_stream_look(struct http_connection *connection);

/* Each stream of the loop is due once more. */
void http_streams_wake(struct http_loop *loop);
/* The next stream that is due, to be pulled; it goes to the end of the list. NULL: none is. */
struct http_stream *http_streams_next(struct http_loop *loop);

#endif
