/*
 * The members of a client: calls, transfers, and their owners.
 *
 * A call is in exactly one list: `waiting` (for one of connections_max), `sent` (it has a
 * transfer), `pausing` (until wake_ms), `finished` (its callback is to run). Feeds are not counted.
 */
#ifndef KOTA_LIB_CLIENT_H
#define KOTA_LIB_CLIENT_H

#include "client/lib/answer.h"
#include "client/lib/request.h"

#include <curl/curl.h>
#include <uv.h>

struct watch;
struct socket_watch;

struct call {
    struct call *next, *previous;
    struct calls *list; /* the one that it is in */
    struct kota_client *client;
    uint64_t number;
    struct kota_request *request;
    struct kota_answer *answer; /* NULL: no memory for one */
    kota_done_fn *done;         /* NULL: no callback */
    void *context;
    struct transfer *transfer; /* while sent */
    uint64_t due_ms;           /* timed out then; UINT64_MAX: never */
    uint64_t wake_ms;          /* pausing until then */
    unsigned tries;            /* sent so often */
    uint64_t silence_ms;       /* of a call that takes its body as it comes */
    bool has_taken;            /* and has taken some of it */
    struct watch *watch;       /* of a feed */
};

struct calls {
    struct call *first, *last;
    size_t count;
};

void calls_add(struct calls *calls, struct call *call); /* takes it out of the list it is in */
void calls_remove(struct call *call);

enum {
    HEAD_BYTES_MAX = 64 * 1024,
    HEADERS_MAX = 128,
    EARLY_MAX = 16 /* answers 1xx before the answer */
};

/*
 * One try of a call. It keeps its easy handle, with the options that all calls share, for the next
 * one.
 */
struct transfer {
    struct transfer *next; /* of the idle or the abandoned ones */
    struct kota_client *client;
    struct call *call; /* NULL: idle, or abandoned */
    CURL *easy;
    struct text url, lines;   /* lines: the request's headers, each with a NUL after it */
    struct curl_slist *nodes; /* [node_capacity], which point into lines */
    size_t node_capacity, body_read;
    int status; /* 0 until the head is there */
    size_t head_bytes;
    unsigned header_count, early_count;
    bool has_head, is_chunked, has_length, has_coding;
    bool is_left; /* the receiver of the bytes has ended it */
    uint64_t length;
    struct kota_error error; /* set by a callback; kind is none while all is well */
    char message[CURL_ERROR_SIZE];
};

/* Where the daemon is. */
struct place {
    struct text url;        /* scheme, host, port and path, without a slash at the end */
    size_t origin;          /* length of scheme, host and port in it */
    struct text origin_url; /* these */
    struct text unix_path;  /* empty: TCP */
    char name[272];         /* for messages */
    bool is_tls, is_loopback;
    bool is_direct; /* no proxy reads the request: only its target changes from call to call */
};

/* What a client has of libcurl. */
struct transfers {
    CURLM *multi;
    uv_timer_t timer;
    struct transfer *idle, *abandoned;
    struct socket_watch **sockets; /* [socket_count], by descriptor; NULL: none */
    size_t socket_count;
    unsigned active;  /* of calls; feeds are not counted */
    unsigned in_curl; /* libcurl runs: its callbacks must not call it */
};

struct kota_client {
    uv_loop_t *loop, own_loop;
    bool owns_loop, in_callback, has_news;
    bool is_closing; /* kota_close was called */
    bool is_shut;    /* and all callbacks have run */
    struct kota_options options;
    struct place place;
    struct text authorization; /* "Bearer …" or empty */
    struct text ca_file;
    struct kota_error open_error;
    uv_timer_t clock, deliver, waiter;
    uint64_t clock_ms; /* the clock rings then, if it is active */
    unsigned handles_open;
    struct transfers transfers;
    bool is_pumping;
    struct calls waiting, sent, pausing, finished;
    uint64_t next_number;
    size_t callbacks_run;
    kota_closed_fn *closed;
    void *closed_context;
};

uint64_t now_ms(void);

/* ---- client.c: what transfers report --------------------------------------------------------- */

/* Begins waiting calls, as many as may be under way. Within a callback of libcurl: soon. */
void client_pump(struct kota_client *client);
/* The clock rings then, if not before. */
void client_due(struct kota_client *client, uint64_t due_ms);
/* Callbacks run soon. */
void client_deliver(struct kota_client *client);
/* A handle that has been closed by uv_close. */
void client_handle_closed(struct kota_client *client);

/* A call with its answer to be, in no list; takes the request. NULL: no memory, or closed. */
struct call *call_new(struct kota_client *client, struct kota_request *request);
void call_begin(struct call *call);
/* The try has failed. */
void call_failed(struct call *call, const struct kota_error *error);
/* The next bytes of a body that is taken as it comes. False: the receiver refuses (error). */
bool client_take(struct call *call, const char *bytes, size_t length, struct kota_error *error);
/* So much of the request's body is sent. */
void client_sent(struct call *call, size_t sent);
/* The whole answer is in call->answer. */
void call_answered(struct call *call);
/* Out of its list; the callback runs from the loop. answer->error has the outcome. */
void call_finish(struct call *call);

/* ---- transfer.c: tries by libcurl, its sockets on the loop ----------------------------------- */

/* False: error has the reason. */
bool place_parse(struct place *place, const char *url, struct kota_error *error);
void place_free(struct place *place);

/* The timer counts as one handle of the client. False without memory. */
bool transfers_open(struct kota_client *client);
/* Closes all connections and the timer. Nothing is under way. */
void transfers_close(struct kota_client *client);

/* Begins a try of the call, which the loop sends. False: error has the reason. */
bool transfer_begin(struct kota_client *client, struct call *call, struct kota_error *error);
/* Ends a try; its connection is closed. */
void transfer_abandon(struct transfer *transfer);

/* ---- watch.c: feeds -------------------------------------------------------------------------- */

void watch_free(struct watch *watch);
/* The headers of the next try: the last event's id. A line with a NUL after it. */
void watch_headers(const struct watch *watch, struct text *lines);
/* A try begins. */
void watch_begin(struct call *call);
/* The next bytes. False: error is set, or the callback has ended the feed. */
bool watch_take(struct call *call, const char *bytes, size_t length, struct kota_error *error);
/* The try has ended, one way or another; it is made again or ended for good. */
void watch_ended(struct call *call, const struct kota_error *error);
/* Runs the callback that watch_ended could not; false: there is none. */
bool watch_report(struct call *call);
/* False: its callback runs right now, and its caller ends it. */
bool watch_cancel(struct call *call);

#endif
