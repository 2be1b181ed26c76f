/*
 * One request as the calls see it: where it asks, what it brings, where the answer goes. It can be
 * made without a connection, so that decoders are tested and fuzzed by themselves.
 */
#ifndef KOTA_API_CALL_H
#define KOTA_API_CALL_H

#include "api/api.h"
#include "api/json_batch.h"
#include "api/json_read.h"
#include "api/json_write.h"
#include "world/query.h"

enum { CALL_QUERY_MAX = 32, CALL_PARAMS_MAX = 4 };

struct call {
    struct api *api;
    const struct api_limits *limits; /* those of its beginning; NULL: as the api has them now */
    struct http_request *request;    /* NULL when there is no connection */
    struct http_reply *reply;        /* NULL when there is no connection: headers are dropped */
    const struct world_snapshot *snapshot;
    const struct locale *locale; /* NULL but in calls below /v1/locales/{id} */
    struct locale *newer; /* a reference: of fleet_catch_up, in the place of the snapshot's */
    struct span params[CALL_PARAMS_MAX];
    struct span body, media_type;
    size_t query_count;      /* of query */
    uint32_t query_initials; /* bit c % 32 for each first letter c of a name in query */
    /* The body, once options_open… has parsed it; NULL when nothing but a batch is in it. Freed by
     * call_close. */
    cJSON *json;
    struct json_batch batch;  /* what options_open_batch has read already; count 0: nothing */
    struct call_block *owned; /* of call_alloc without a connection */
    struct json_writer out;
    const char *location; /* of an ERR_ELSEWHERE */
    bool is_deferred;     /* another thread will finish: touch nothing any more */
    bool is_moving;       /* it takes too long for a loop and is begun again on a worker */
    uint64_t started_ns;  /* of what may take long; 0: not told yet */
    size_t items_held;    /* of api->items_in_flight */
    size_t next_look;     /* call_pace looks at the clock before this item */
    struct http_query_item query[CALL_QUERY_MAX]; /* not cleared */
};

/* A call sees one table of limits from its beginning to its end, whatever is reloaded meanwhile. */
static inline const struct api_limits *call_limits(const struct call *call)
{
    return call->limits ? call->limits : api_limits(call->api);
}

/* One more item of the query; there must be room for it. */
static inline void call_add_query(struct call *call, struct http_query_item item)
{
    call->query[call->query_count++] = item;
    if (item.name.length > 0)
        call->query_initials |= (uint32_t)1 << (item.name.at[0] & 31);
}

/* Decodes, asks, encodes into call->out; on error what was written is dropped. */
typedef enum err_code (*call_answer)(struct call *call, struct err *err);

/* What a route's handler does: builds the call, finds the locale if asked, runs, sends errors. */
enum call_needs { CALL_NEEDS_NOTHING, CALL_NEEDS_LOCALE /* params[0] names one that exists */ };
/* True: the answer comes from elsewhere (is_deferred), or the call begins again (is_moving). */
bool call_run(struct http_request *request, struct http_reply *reply, call_answer answer,
              size_t param_count, enum call_needs needs);

/* Defines the handler `name` for the function `name_answer`; params: {…} in the route's pattern. */
#define API_HANDLER(name, params, needs)                                                           \
    void name(struct http_request *request, struct http_reply *reply)                              \
    {                                                                                              \
        call_run(request, reply, name##_answer, params, needs);                                    \
    }

/*
 * Looks for the locale that params[0] names: call->locale, NULL when there is none.
 * ERR_DAMAGED    it could not be loaded from the store
 * ERR_BAD_INPUT, ERR_BUSY  Kota-Min-Revision
 */
enum err_code call_find_locale(struct call *call, struct err *err);
/* ERR_NOT_FOUND for what params[0] names; or where it is (fleet_check). */
enum err_code call_unknown_locale(struct call *call, struct err *err);

/*
 * Does a read ask, by Kota-Min-Revision, for a later revision of its locale than the snapshot's?
 * Then it is worth waiting. False for what is malformed, or names no locale: the call itself says
 * so. Before the handler runs.
 */
bool call_is_early(const struct http_request *request, const struct world_snapshot *snapshot);

/* Memory for as long as the call; NULL when there is none. */
void *call_alloc(struct call *call, size_t bytes);

/*
 * The call is about to answer so many items: they count among those in flight until call_close.
 * Fewer than CALL_ITEMS_COUNTED are not counted, and a batch alone may always go on.
 * ERR_BUSY  all batches together would hold more than limits.items_in_flight_max
 */
enum { CALL_ITEMS_COUNTED = 256 };
enum err_code call_take_items(struct call *call, size_t count, struct err *err);

/* Frees what decoding allocated, and lets the items go. */
void call_close(struct call *call);

/* Header and status of the answer; nothing without a connection. */
void call_status(struct call *call, int status);
void call_header(struct call *call, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_content_type(struct call *call, const char *media_type);

/*
 * Before item i of a batch (0 before the first, for what is no batch): may the call go on? Else it
 * returns the error as it is.
 * ERR_BUSY       nobody waits for the answer; or the call leaves the loop and is begun again
 * ERR_TOO_LARGE  the batch has taken limits.batch_ms_max
 */
enum err_code call_pace(struct call *call, size_t i, struct err *err);
/* The same before the first item of a call whose items may cross whole layers, as rays do. */
enum err_code call_pace_rays(struct call *call, const struct layer_choice *choice, struct err *err);

enum { CALL_RAYS_TOGETHER = 64 };
/*
 * How many rays may be asked between two looks at the clock: 1 to CALL_RAYS_TOGETHER, a power of
 * two, fewer where one may take long.
 */
size_t call_rays_together(const struct call *call, const struct layer_choice *choice);

/*
 * What follows takes long: ERR_BUSY when the call is on a loop, it is begun again on a worker then
 * (of a route by size). ERR_OK on a worker.
 */
enum err_code call_leave_loop(struct call *call, struct err *err);

/* `"locale":…,"revision":…` at the start of an answer's object. */
void call_begin_answer(struct call *call);
/*
 * The same in one piece with what follows: where that goes, for at most `bytes`, until
 * json_close_room. NULL without memory.
 */
char *call_open_answer(struct call *call, size_t bytes);
/* The same, then `"results":[`; and its end. */
void call_begin_results(struct call *call);
void call_end_results(struct call *call);

bool span_equals(struct span s, const char *text);
/* Copies into a C string; false when it does not fit or holds a NUL. */
bool span_copy(struct span s, char *out, size_t size);

/* A whole number of at most 18 digits, nothing else. */
bool span_count(struct span s, uint64_t *out);

/* The same in a path, where each thing has one name: without zeros before it. */
bool span_index(struct span s, uint64_t *out);

/* A finite decimal number, nothing else. */
bool span_number(struct span s, double *out);

#endif
