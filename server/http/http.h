/*
 * The HTTP/1.1 server: libuv loops, llhttp, a route table, limits. It knows no terrain.
 *
 * One thread runs one loop; each loop accepts on its own SO_REUSEPORT socket and owns its
 * connections, parsers, timers and counters. Handlers are plain synchronous functions, run on the
 * loop or on a worker by their route; a handler may also defer its answer and finish it from any
 * thread. Pipelined requests of a connection are answered in order. When the workers cannot keep
 * up, the newest requests for them are refused (503, pool.h); the loops still answer theirs.
 *
 * Before anything else the server answers OPTIONS (CORS preflight), HEAD (as GET without a body),
 * 404, 405 with Allow, 413, 414, 431 and all errors of framing, as application/problem+json.
 */
#ifndef KOTA_HTTP_HTTP_H
#define KOTA_HTTP_HTTP_H

#include "base/err.h"
#include "base/span.h"
#include "http/networks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name=value of a query, decoded. */
struct http_query_item {
    struct span name, value;
};

enum http_method {
    METHOD_GET = 1 << 0,
    METHOD_POST = 1 << 1,
    METHOD_PUT = 1 << 2,
    METHOD_PATCH = 1 << 3,
    METHOD_DELETE = 1 << 4
};

enum http_place {
    HTTP_ON_LOOP,   /* always short */
    HTTP_ON_WORKER, /* may take long: decode of uploads, encoding of tiles */
    HTTP_BY_SIZE    /* on the loop while the body is at most limits.loop_body_bytes_max */
};

struct http_request;
struct http_reply;
struct http_server;

typedef void (*http_handler)(struct http_request *request, struct http_reply *reply);

/* The first row, in the table's order, whose pattern and method fit is taken. */
struct http_route {
    enum http_method method;
    const char *pattern; /* "/v1/locales/{locale}/height": {name} takes one segment; the last one
                          * may have an ending: "/layers/{layer}.tif", before "/layers/{layer}" */
    http_handler handler;
    enum http_place place;
    size_t body_bytes_max; /* 0: limits.body_bytes_max */
    bool is_probe;         /* answered on reserved connections, and where probes_only is set */
};

struct http_limits {
    size_t target_bytes_max;    /* 8 KiB: 414 */
    size_t header_bytes_max;    /* request line and headers, 16 KiB: 431 */
    size_t header_count_max;    /* 64: 431 */
    size_t body_bytes_max;      /* 64 MiB: 413 */
    size_t bodies_bytes_max;    /* held by all requests together, 1 GiB: 503 */
    size_t answers_bytes_max;   /* of large answers, until they are sent, 1 GiB: 503 */
    size_t loop_body_bytes_max; /* 64 KiB: larger bodies of HTTP_BY_SIZE routes go to the pool */
    size_t connections_max;     /* per server, 10,000: beyond them a few for probes only, one
                                 * request each; else 503 and close */
    size_t connections_per_address_max;             /* 2,000: 429 and close */
    uint32_t idle_ms, header_ms, body_ms, write_ms; /* 60,000 / 10,000 / 60,000 / 30,000 */
    size_t streams_max;         /* answers that do not end, per server, 4,096: 503 */
    uint32_t stream_silence_ms; /* a stream that has sent nothing for so long sends a comment,
                                   15,000 */
    uint32_t park_ms_max;       /* how long http_request_park waits, 2,000 */
    size_t workers;             /* threads for long work; 0: one a core, 4 at least */
    uint32_t queue_ms_max;      /* that a request may wait for one, as expected, 1,000: 503 */
    size_t queued_max;          /* requests that wait for one, 1,000: 503 */
};

extern const struct http_limits http_limits_default;

/* What the application gives the server. Hooks may be NULL; they run on the loop's thread. */
struct http_app {
    const struct http_route *routes;
    size_t route_count;
    void *context;
    /* A request is complete and about to be handled: pin its snapshot. Loop thread. */
    void (*request_begin)(void *context, struct http_request *request);
    /* Its answer has been encoded: unpin. Loop thread, exactly once for each begin. */
    void (*request_end)(void *context, struct http_request *request);
    /*
     * A body is about to come: a reply of 400 or more refuses it at once, http_request_set_sink
     * takes it as it arrives; else it is buffered. After authorize, before request_begin. Loop
     * thread.
     */
    void (*body_begin)(void *context, struct http_request *request, struct http_reply *reply);
    /* Loop `loop_index` is about to wait for events: nothing unpinned is held. */
    void (*loop_quiet)(void *context, size_t loop_index);
    /* Loop `loop_index` has ended: it pins nothing. The last call on its thread. */
    void (*loop_gone)(void *context, size_t loop_index);
    /*
     * May this request be handled at all (tokens, origins)? ERR_OK or an error that becomes the
     * answer. Runs when the headers are complete, before a body is read, and not for OPTIONS.
     * Loop thread.
     */
    enum err_code (*authorize)(void *context, struct http_request *request,
                               const struct http_route *route, struct err *err);
    /*
     * What authorize has granted by http_request_set_grant, if it did: for how many milliseconds it
     * is still in force (UINT32_MAX: without end, 0: not any more), asked of the grants of streams,
     * loop thread; and its release, any thread. The grant of a stream is released with the stream,
     * which ends with it.
     */
    uint32_t (*grant_left_ms)(void *context, size_t loop_index, void *grant);
    void (*grant_release)(void *context, void *grant);
};

struct http_config {
    const char *host; /* numeric IPv4 or IPv6 address; "": no TCP */
    uint16_t port;    /* 0: a free one */
    int listener;     /* with has_listener: a socket that listens already, borrowed; host and port
                         are those that it is bound to. All loops accept from it */
    bool has_listener;
    int unix_listener; /* with has_unix_listener: the same for a Unix socket, beside the other */
    bool has_unix_listener;
    bool is_inherited; /* the sockets outlive this process: a drain leaves new peers in them */
    size_t loops;      /* 0: one a core */
    struct http_limits limits;
    uint32_t slow_request_ms; /* log requests slower than this; 0: never */
    bool probes_only;         /* no route but those that are is_probe, and no workers */
    bool access_log;          /* log every request but probes, not only the slow and failed */
    /* Pages that a browser may let read: "*", or origins with commas between; NULL: no others. */
    const char *cors_allow_origin;
};

/* Why a stream ended. */
enum http_stream_end {
    HTTP_STREAM_LEFT,    /* the peer has closed, or its connection broke */
    HTTP_STREAM_STALLED, /* it has not taken a byte for limits.write_ms */
    HTTP_STREAM_BEHIND,  /* the application: it cannot catch up any more */
    HTTP_STREAM_OVER,    /* the application: there is nothing more to come */
    HTTP_STREAM_DRAINED, /* the server stops */
    HTTP_STREAM_ENDS
};

struct http_counters {
    uint64_t accepted, rejected, open, requests, bytes_in, bytes_out;
    uint64_t timeouts, parse_errors, write_errors;
    uint64_t shed; /* requests refused because no worker had time */
    uint64_t workers, workers_busy, queued;
    uint64_t queue_wait_ms; /* that a large request would wait now, as expected */
    uint64_t latency_us_sum;
    uint64_t latency_count[20]; /* bucket i: below 2^i · 8 µs; the last one is open */
    uint64_t iteration_us_sum;
    uint64_t iteration_count[20]; /* iterations with input, by duration: the same */
    uint64_t loops, body_bytes;   /* body_bytes: held by the bodies of requests */
    uint64_t streams, streams_opened, streams_rejected;
    uint64_t streams_ended[HTTP_STREAM_ENDS]; /* by reason */
};

/* Requests of one route by class of status: by_class[4] counts 4xx. */
struct http_route_counters {
    uint64_t by_class[6];
    uint64_t latency_us_sum;
    uint64_t latency_count[11]; /* bucket i: below 4^i · 8 µs; the last one is open */
};

/*
 * Binds and starts the loops' threads, which block all signals; serves at once. config and app are
 * copied, what they point to must outlive the server. NULL on error (address in use, …).
 */
struct http_server *http_server_start(const struct http_config *config, const struct http_app *app,
                                      struct err *err);
uint16_t http_server_port(const struct http_server *server);
size_t http_server_loops(const struct http_server *server);

/* From any thread: wakes every loop, so that each passes loop_quiet soon. */
void http_server_wake(struct http_server *server);

/* The number of iterations of that loop: grows after each wake-up while its thread runs. */
uint64_t http_server_iterations(const struct http_server *server, size_t loop_index);

/*
 * Other limits for later requests, and for the log. connections_max, workers, queue_ms_max and
 * queued_max stay those of the start. A request sees the old or the new value of each limit.
 * ERR_NO_MEMORY. One thread at a time.
 */
enum err_code http_server_set(struct http_server *server, const struct http_limits *limits,
                              uint32_t slow_request_ms, bool access_log, struct err *err);

/*
 * Drains: closes idle connections at once, lets requests under way finish (Connection: close) for
 * at most drain_ms, then closes the rest, joins the threads and frees the server. As long as
 * something is under way new connections are taken and have one answer each, so that probes see the
 * drain; afterwards the port is closed. A handler that still runs then, or a deferred request that
 * is not finished yet, is waited for. NULL is allowed. Call from a thread that is not a loop.
 */
void http_server_stop(struct http_server *server, uint32_t drain_ms);

/*
 * The same in two steps: after the first the loops have ended, and only the counters may still be
 * read; the second frees the server.
 */
void http_server_drain(struct http_server *server, uint32_t drain_ms);
void http_server_free(struct http_server *server);

/* Sums over the loops; the numbers may be a moment old. Any thread. */
void http_server_counters(const struct http_server *server, struct http_counters *out);
/* The same of one loop, without the workers' counts (zero). loop < http_server_loops. */
void http_server_loop_counters(const struct http_server *server, size_t loop,
                               struct http_counters *out);
/* routes[i] of app.routes; the last one (index route_count) counts those that match none. */
void http_server_route_counters(const struct http_server *server, size_t route,
                                struct http_route_counters *out);

/* ---- a request: everything is borrowed until request_end ------------------------------------ */

struct span http_request_body(const struct http_request *request);
/* The media type in lower case without parameters ("application/json"), "" when there is none. */
struct span http_request_media_type(const struct http_request *request);
/* The row of app.routes; not NULL once the request is begun. */
const struct http_route *http_request_route(const struct http_request *request);
/* Path and query, undecoded; memory of the request. at is NULL without memory. */
struct span http_request_target(struct http_request *request);
/* The n-th {name} of the route's pattern, percent-decoded. */
struct span http_request_param(const struct http_request *request, size_t n);
/* Headers by lower-case name; combined with ", " never: the first one. */
struct span http_request_header(const struct http_request *request, const char *name);
/* Is it there more than once? */
bool http_request_header_is_repeated(const struct http_request *request, const char *name);
bool http_request_has_header_prefix(const struct http_request *request, const char *prefix);
/* Query items, percent-decoded ('+' is a space), in order: [http_request_query_count]. */
size_t http_request_query_count(const struct http_request *request);
const struct http_query_item *http_request_query_items(const struct http_request *request);
bool http_request_peer_is_loopback(const struct http_request *request);
/* The peer of a Unix socket is in them when ::1 is. */
bool http_request_peer_is_in(const struct http_request *request,
                             const struct http_networks *networks);
/* The user at the other end of a Unix socket; false: it is none. */
bool http_request_peer_uid(const struct http_request *request, uint32_t *uid);
size_t http_request_loop(const struct http_request *request);
/* Memory of this request, freed with it; 16-byte aligned; NULL when the limit is reached. */
void *http_request_alloc(struct http_request *request, size_t bytes);
/* One pointer for the application (set in request_begin). */
void http_request_set_user(struct http_request *request, void *user);
void *http_request_user(const struct http_request *request);
/* In authorize, once; see http_app. */
void http_request_set_grant(struct http_request *request, void *grant);
/*
 * In authorize: requests of one flow have one queue at the workers, and all queues have the same
 * share of their time. 0: those that nothing is known of.
 */
void http_request_set_flow(struct http_request *request, uint32_t flow);
/* One more pointer for the application, set in authorize; it stays though the request parks. */
void http_request_set_note(struct http_request *request, void *note);
void *http_request_note(const struct http_request *request);
/* X-Request-Id. */
struct span http_request_id(const struct http_request *request);
/* The peer's address, "uid-N" of a Unix socket, "" when it has gone. Loop thread. */
void http_request_peer_address(const struct http_request *request, char *out, size_t size);
/* True once a request, though its handler may begin again. */
bool http_request_first_charge(struct http_request *request);
/* NULL: none. */
void *http_request_grant(const struct http_request *request);
void *http_request_app_context(const struct http_request *request);

/*
 * Takes a body as it arrives, so that it need not be in memory at once, and no limit of a body's
 * size applies. While a piece is taken no more is read. Deadlines, drain and the queue of the
 * workers are those of any request. Both calls run on a worker, one at a time.
 *
 * take  the next bytes, without framing, HTTP_SINK_BYTES or a little more; an error is the answer,
 *       and the connection closes. The rest, which is all of a short body, is http_request_body
 * drop  frees context where the handler has not taken it: the peer has left, or was refused
 */
struct http_sink {
    enum err_code (*take)(void *context, const char *at, size_t length, struct err *err);
    void (*drop)(void *context);
};
#define HTTP_SINK_BYTES ((size_t)256 * 1024)
/* In body_begin, once, for a route of HTTP_ON_WORKER. sink is a constant. */
void http_request_set_sink(struct http_request *request, const struct http_sink *sink,
                           void *context);
/* In the handler: the context, now the caller's; NULL: there is no sink. */
void *http_request_take_sink(struct http_request *request);
/* In body_begin: the length of the body if the head says it. */
bool http_request_body_announced(const struct http_request *request, uint64_t *bytes);

/*
 * The handler returns without an answer; the request and its reply stay valid until some thread
 * has called http_request_finish, once. If the peer goes away meanwhile the answer is dropped.
 */
void http_request_defer(struct http_request *request);

/* How long a part of the work took that Server-Timing names: build. Before the answer. */
void http_request_built(struct http_request *request, double build_ms);
void http_request_finish(struct http_request *request);

/* Does the handler run on the loop? */
bool http_request_is_on_loop(const struct http_request *request);
/* Does the handler run on the loop, and may it be offloaded? Only for routes of HTTP_BY_SIZE. */
bool http_request_may_offload(const struct http_request *request);
/*
 * For a handler that may be offloaded and takes long: it returns, its reply is emptied, and it is
 * called again from its beginning, on a worker.
 */
void http_request_offload(struct http_request *request);
/*
 * Is the answer useless, because the connection is closed or the time to drain is over? A handler
 * that takes long checks this now and then and gives up. Any thread.
 */
bool http_request_is_abandoned(const struct http_request *request);

/*
 * The handler cannot answer yet and returns: its reply is emptied, request_end is called, and after
 * the next http_server_wake request_begin and the handler run again from the beginning. After
 * limits.park_ms_max http_request_is_last_try is true and it must answer. A parked request holds no
 * thread, nor what request_begin pins; its memory (http_request_alloc) stays. Only in a handler
 * that runs on the loop, or in request_begin of any route: then the handler is not called. A
 * handler that may be offloaded may park before. When the peer stops sending, or the server drains,
 * the last try follows at once.
 */
void http_request_park(struct http_request *request);
bool http_request_is_last_try(const struct http_request *request);

/* Largest body of an answer, at any limits. */
#define HTTP_REPLY_BODY_BYTES_MAX ((size_t)512 * 1024 * 1024)

/* ---- a reply --------------------------------------------------------------------------------- */

/* 200 and an empty body by default. */
void http_reply_status(struct http_reply *reply, int status);
/*
 * The value is copied; control bytes become spaces. Content-Length, Date, Connection, X-Request-Id
 * are the server's own. All of an answer's headers have 2 KiB together; beyond that it is 503.
 */
void http_reply_header(struct http_reply *reply, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a whole number, for answers that are given so often that a format would count. */
void http_reply_header_number(struct http_reply *reply, const char *name, uint64_t value);
void http_reply_content_type(struct http_reply *reply, const char *media_type); /* static string */
/*
 * Grows the body by up to `bytes` and returns their place; http_reply_advance adds the bytes that
 * were written. NULL without memory (the answer is then 503).
 */
char *http_reply_reserve(struct http_reply *reply, size_t bytes);
void http_reply_advance(struct http_reply *reply, size_t bytes);
void http_reply_append(struct http_reply *reply, const void *bytes, size_t length);
/* The body so far, its media type (NULL: none); and has a header of that name been added? */
const void *http_reply_body(const struct http_reply *reply, size_t *length);
const char *http_reply_type(const struct http_reply *reply);
bool http_reply_has_header(const struct http_reply *reply, const char *name);
/* Copies other bytes into the place of the body. */
void http_reply_replace_body(struct http_reply *reply, const void *bytes, size_t length);
/*
 * Is it a HEAD? Then no body is sent, and a handler whose body would be large may say its length
 * only, in the place of the body.
 */
bool http_request_is_head(const struct http_request *request);
void http_reply_length_only(struct http_reply *reply, size_t length);
/* Bytes that outlive every request (embedded pages): not copied. */
void http_reply_static(struct http_reply *reply, const void *bytes, size_t length);
/*
 * An answer that does not end (server-sent events): status, headers and the bytes that the handler
 * has written so far are sent at once, without Content-Length and with Connection: close; then the
 * request ends (request_end) and the connection lives on as a stream. Only from a handler that runs
 * on the loop, as its last call but for headers. With HEAD only the headers are sent, and ended is
 * called at once.
 *
 * calls.pull  writes pending output: after the start, after each http_server_wake, and when
 *             the output has left; loop's thread
 * calls.silent  instead of the comment that breaks a silence, may be NULL; it writes little, or
 *             nothing: then the comment is sent after all; loop's thread
 * calls.ended the stream is over, for that reason; context is not used any more; loop's thread,
 *             exactly once, also when the stream could not begin
 * ERR_BUSY, ERR_NO_MEMORY  limits.streams_max; then ended is not called
 *
 * A stream that has been silent for limits.stream_silence_ms sends ":\n\n". What the peer still
 * sends is dropped, up to 64 KiB; its end of file ends the stream. When the server drains all
 * streams end at once.
 */
struct http_stream;
struct http_stream_calls {
    void (*pull)(void *context, struct http_stream *stream);
    void (*ended)(void *context, enum http_stream_end reason);
    void (*silent)(void *context, struct http_stream *stream);
};
enum err_code http_reply_stream(struct http_request *request, struct http_reply *reply,
                                const struct http_stream_calls *calls, void *context,
                                struct err *err);

/*
 * In pull: may 16 KiB more be written now? Each stream holds at most 64 KiB of such writes that
 * wait to be sent, and one large message beside them: HTTP_STREAM_OUTPUT_BYTES in all.
 */
#define HTTP_STREAM_OUTPUT_BYTES ((size_t)128 * 1024)
bool http_stream_has_room(const struct http_stream *stream);
/* The same of so many bytes; without room pull is called again when something was sent. */
bool http_stream_has_room_for(const struct http_stream *stream, size_t bytes);
/* In pull: copies bytes to be sent; false without memory or room, the stream then ends (LEFT). */
bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length);
/* In pull: ends it once its output has been sent. */
void http_stream_end(struct http_stream *stream, enum http_stream_end reason);

/*
 * Replaces the reply so far, headers included, by an application/problem+json document. 401 brings
 * WWW-Authenticate; 429, and 503 but for ERR_NO_DEVICE, bring Retry-After.
 */
void http_reply_problem(struct http_reply *reply, const struct err *err);
/* For an error that is answered in another form: its log_only goes to the request's line of the
 * log.
 */
void http_reply_log_only(struct http_reply *reply, const struct err *err);

/*
 * The write is done and durable. Without memory for the answer the connection ends without one: the
 * usual 503 would mean that nothing has happened.
 */
void http_reply_made(struct http_reply *reply);
/* As http_reply_made, when there is already no memory for the answer. */
void http_reply_lose(struct http_reply *reply);

#endif
