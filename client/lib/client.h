/*
 * The members of a client: calls, connections, and their owners.
 *
 * A call is in exactly one list: `waiting` (for a connection), `sent` (it has one), `pausing`
 * (until wake_ms), `finished` (its callback is to run). A connection has a call, or is idle, or is
 * being made; connections of feeds are not counted and not shared.
 */
#ifndef KOTA_LIB_CLIENT_H
#define KOTA_LIB_CLIENT_H

#include "client/lib/address.h"
#include "client/lib/answer.h"
#include "client/lib/request.h"
#include "client/lib/response.h"

#include <uv.h>

struct watch;
struct connection;

struct call {
    struct call *next, *previous;
    struct calls *list; /* the one that it is in */
    struct kota_client *client;
    uint64_t number;
    struct kota_request *request;
    struct kota_answer *answer; /* NULL: no memory for one */
    kota_done_fn *done;         /* NULL: no callback */
    void *context;
    struct connection *connection; /* while sent */
    uint64_t due_ms;               /* timed out then; UINT64_MAX: never */
    uint64_t wake_ms;              /* pausing until then */
    unsigned tries, stale; /* sent so often; resent so often on a connection that had ended */
    struct watch *watch;   /* of a feed */
};

struct calls {
    struct call *first, *last;
    size_t count;
};

void calls_add(struct calls *calls, struct call *call); /* takes it out of the list it is in */
void calls_add_first(struct calls *calls, struct call *call);
void calls_remove(struct call *call);

enum connection_state { CONNECTION_CONNECTING, CONNECTION_IDLE, CONNECTION_BUSY };

struct connection {
    struct connection *next, *previous;
    struct kota_client *client;
    uv_poll_t poll;
    int fd;
    enum connection_state state;
    bool is_dedicated; /* to a feed */
    bool is_reused;    /* it has answered before */
    bool send_failed;
    size_t address;  /* index of the one that is tried */
    uint64_t due_ms; /* connecting: given up then */
    uint64_t idle_since_ms;
    struct call *call; /* busy, or of a feed */
    struct text head;  /* of the request */
    size_t sent;       /* bytes of head and body */
    struct response response;
};

struct kota_client {
    uv_loop_t *loop, own_loop;
    bool owns_loop, in_callback, has_news;
    bool is_closing; /* kota_close was called */
    bool is_shut;    /* and all callbacks have run */
    struct kota_options options;
    struct url url;
    struct text authorization; /* "Authorization: Bearer …\r\n" or empty */
    struct kota_error open_error;
    uv_timer_t clock, deliver, waiter;
    uint64_t clock_ms; /* the clock rings then, if it is active */
    uv_async_t wakeup;
    unsigned handles_open;
    struct addresses addresses;
    struct lookup *lookup;
    struct connection *connections;
    size_t pooled, connecting; /* of the shared ones */
    struct calls waiting, sent, pausing, finished;
    uint64_t next_number;
    size_t callbacks_run;
    kota_closed_fn *closed;
    void *closed_context;
};

uint64_t now_ms(void);

/* ---- client.c: what connections tell --------------------------------------------------------- */

/* Gives waiting calls to connections, and makes connections for the rest. */
void client_pump(struct kota_client *client);
/* The clock rings then, if not before. */
void client_due(struct kota_client *client, uint64_t due_ms);
/* Callbacks run soon. */
void client_deliver(struct kota_client *client);
/* No connection could be made: error has the reason. */
void client_connect_failed(struct kota_client *client, struct call *dedicated,
                           const struct kota_error *error);
/* A handle that has been closed by uv_close. */
void client_handle_closed(struct kota_client *client);

/* A call with its answer to be, in no list; takes the request. NULL: no memory, or closed. */
struct call *call_new(struct kota_client *client, struct kota_request *request);
void call_begin(struct call *call);
/* The try has failed; is_stale: on a connection that had ended before the request. */
void call_failed(struct call *call, const struct kota_error *error, bool is_stale);
/* The whole answer is in call->answer. */
void call_answered(struct call *call);
/* Out of its list; the callback runs from the loop. answer->error has the outcome. */
void call_finish(struct call *call);

/* ---- connection.c ---------------------------------------------------------------------------- */

/*
 * Begins to connect to address `index` and those after it; dedicated may be NULL. False: no
 * connection could be begun, and error has the reason.
 */
bool connection_open(struct kota_client *client, size_t index, struct call *dedicated,
                     struct kota_error *error);
/* Sends a call on a connection that is idle or new. */
void connection_begin(struct connection *connection, struct call *call);
/* Its call, if any, must have been taken off. */
void connection_close(struct connection *connection);
/* The time to connect is over. */
void connection_give_up(struct connection *connection);

/* ---- watch.c --------------------------------------------------------------------------------- */

void watch_free(struct watch *watch);
/* The headers of the next try: the last event's id. */
void watch_headers(const struct watch *watch, struct text *head);
/* A try begins: its bytes go to the feed. */
void watch_begin(struct call *call, struct response *response);
/* The try has ended, one way or another; it is made again or ended for good. */
void watch_ended(struct call *call, const struct kota_error *error);
/* Runs the callback that watch_ended could not; false: there is none. */
bool watch_report(struct call *call);
/* False: its callback runs right now, and its caller ends it. */
bool watch_cancel(struct call *call);

#endif
