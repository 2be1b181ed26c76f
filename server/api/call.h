/*
 * The frame of a call, around decode, ask and encode. Its members are in call_data.h.
 */
#ifndef KOTA_API_CALL_H
#define KOTA_API_CALL_H

#include "api/call_data.h"
#include "base/pace.h"
#include "world/ask/query.h"

/* Decodes, asks, encodes into call->out; on error the output is dropped. */
typedef enum err_code (*call_answer)(struct call *call, struct err *err);

/* The handler of a route: builds the call, finds the locale if needed, runs, sends errors. */
enum call_needs {
    CALL_NEEDS_NOTHING,
    CALL_NEEDS_LOCALE, /* params[0] names one that exists */
    CALL_NEEDS_VALUE,  /* the same; with at= in the query call->locale is an earlier value */
    CALL_NEEDS_GROUND, /* the same; with live= it is the live value */
};
/* True: another thread will answer (is_deferred), or the call begins again (is_offloaded). */
bool call_run(struct http_request *request, struct http_reply *reply, call_answer answer,
              size_t param_count, enum call_needs needs);

/* Defines the handler `name` for the function `name_answer`; params: {…} in the route's pattern. */
#define API_HANDLER(name, params, needs)                                                           \
    void name(struct http_request *request, struct http_reply *reply)                              \
    {                                                                                              \
        call_run(request, reply, name##_answer, params, needs);                                    \
    }

/* Does a route's pattern begin with a locale? Then its first parameter is the id. */
static inline bool call_pattern_has_locale(const char *pattern)
{
    static const char locale[] = "/v1/locales/{locale}";

    return strncmp(pattern, locale, sizeof locale - 1) == 0;
}

/* What the owner of the request's token may do; NULL: no token was needed. */
const struct claims *call_claims(const struct call *call);
/* ERR_CLAIMS: the rectangle x0 y0 x1 y1 of the locale's frame is not within its bounds. */
enum err_code call_check_bounds(const struct call *call, const double rect_m[4], struct err *err);

/*
 * Looks for the locale that params[0] names: call->locale, NULL when there is none.
 * ERR_DAMAGED    it could not be loaded from the store
 * ERR_BAD_INPUT, ERR_BUSY  Kota-Min-Revision
 */
enum err_code call_find_locale(struct call *call, struct err *err);
/* ERR_PIN_UNKNOWN: call->locale has none of that name, which stands at `place`. */
enum err_code call_no_pin(const struct call *call, const char *name, const char *place,
                          struct err *err);
/* "&at=…" of the request, for paths in the answer; "" without. */
enum { CALL_AT_BYTES = 4 + WORLD_ID_MAX + 1 };
void call_write_at(const struct call *call, char out[CALL_AT_BYTES]);
/* ERR_NOT_FOUND for the name in params[0]; or a redirect to its node (node_check). */
enum err_code call_unknown_locale(struct call *call, struct err *err);
/*
 * params[param] as the id of a "layer" or "model". `code` when it is none: ERR_BAD_INPUT on a PUT,
 * else ERR_NOT_FOUND.
 */
enum err_code call_param_id(const struct call *call, size_t param, const char *kind,
                            enum err_code code, char out[WORLD_ID_MAX + 1], struct err *err);

/*
 * Does a read need, by Kota-Min-Revision, a later revision of its locale than the snapshot's? Then
 * it waits. False for a malformed header or an unknown locale: the call itself returns that error.
 * Before the handler runs.
 */
bool call_awaits_revision(const struct http_request *request,
                          const struct world_snapshot *snapshot);

/*
 * Does a read with live= need a value that is not made yet? Then it waits. Before the handler runs.
 */
bool call_awaits_live(const struct http_request *request, const struct world_snapshot *snapshot);

/* A parameter of the query; NULL without it. */
const struct http_query_item *call_query(const struct call *call, const char *name);

/* Memory for as long as the call; NULL when there is none. */
void *call_alloc(struct call *call, size_t bytes);

/* The locales that a ray crosses, for as long as the call. */
struct crossing_room {
    struct crossing *at;
    size_t count;
};

/* Room for those of a ray of the world: that of a ray before it where that is enough. */
enum err_code call_make_room(struct call *call, const struct ray *ray, struct crossing_room *room,
                             struct err *err);

/*
 * Takes n items from the share of the token's name, once a request.
 * ERR_TOO_MANY  they are more than its claims allow now
 */
enum err_code call_charge_items(const struct call *call, size_t n, struct err *err);

/*
 * The call is about to answer so many items: they are charged, call_check_budget expects that many,
 * and they count among those in flight until call_close.
 * Fewer than CALL_ITEMS_COUNTED are not counted, and the only batch is never refused.
 * ERR_BUSY      all batches together would hold more than limits.items_in_flight_max
 * ERR_TOO_MANY  as call_charge_items
 */
enum { CALL_ITEMS_COUNTED = 256 };
enum err_code call_take_items(struct call *call, size_t count, struct err *err);

/* Frees the memory of decoding, and releases the items. */
void call_close(struct call *call);

/* Header and status of the answer; nothing without a connection. */
void call_status(struct call *call, int status);
void call_header(struct call *call, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_content_type(struct call *call, const char *media_type);
/* The head of a stream of events. */
void call_stream_head(struct call *call, const char *media_type);

/*
 * Before item i of a batch (0 before the first, or without a batch): may the call continue? Else it
 * returns the error unchanged.
 * ERR_BUSY       the client has gone; or the call leaves the loop and begins again
 * ERR_TOO_LARGE  the batch has taken limits.batch_ms_max, or is far from done: at the pace of the
 *                items before, those that are left would take more than twice the time that is left
 */
enum err_code call_check_budget(struct call *call, size_t i, struct err *err);
/* The same before the first item of a call whose items may cross whole layers, as rays do. */
enum err_code call_check_budget_rays(struct call *call, const struct layer_choice *choice,
                                     struct err *err);

/*
 * The same for an upload, checked while its layer is built: ERR_BUSY, or ERR_TOO_LARGE after
 * limits.import_ms_max. Its time begins with the first call of this. Borrows the call.
 */
struct pace call_import_pace(struct call *call);

enum { CALL_RAYS_TOGETHER = 64 };
/*
 * The rays between two readings of the clock: 1 to CALL_RAYS_TOGETHER, a power of two, fewer where
 * one may take long.
 */
size_t call_rays_together(const struct call *call, const struct layer_choice *choice);
static inline size_t call_some_rays(size_t count, size_t first, size_t together)
{
    return count - first < together ? count - first : together;
}

/*
 * Before long work: ERR_BUSY when the call is on a loop; it then begins again on a worker (of a
 * route by size). ERR_OK on a worker.
 */
enum err_code call_offload(struct call *call, struct err *err);

/* The body of a reply, also for an answer that is made after its call. */
struct json_sink json_sink_of_reply(struct http_reply *reply);

/* `"locale":…,"revision":…` at the start of an answer's object. */
void call_begin_answer(struct call *call);
/*
 * The same, and room for at most `bytes` after it, until json_close_room; returns the room's start.
 * NULL without memory.
 */
char *call_open_answer(struct call *call, size_t bytes);
/* The same, then `"results":[`; and its end. */
void call_begin_results(struct call *call);
/* Room for item i of them, after its comma; the end goes to json_close_room. NULL: no memory. */
char *call_open_item(struct call *call, size_t i, size_t bytes);
void call_end_results(struct call *call);

#endif
