/*
 * One request as the calls see it: its question, its body, the place of its answer. It can be made
 * without a connection, so that decoders are tested and fuzzed by themselves.
 */
#ifndef KOTA_API_CALL_DATA_H
#define KOTA_API_CALL_DATA_H

#include "api/api_data.h"
#include "json/json_batch.h"
#include "json/json_read.h"
#include "json/json_write.h"

struct call_block;

enum { CALL_QUERY_MAX = 32, CALL_PARAMS_MAX = 4 };

struct call {
    struct api *api;
    const struct api_limits *limits; /* those of its beginning; NULL: as the api has them now */
    struct http_request *request;    /* NULL when there is no connection */
    struct http_reply *reply;        /* NULL when there is no connection: headers are dropped */
    const struct world_snapshot *snapshot;
    const struct locale *locale; /* NULL but in calls below /v1/locales/{locale} */
    struct locale *newer; /* a reference, in the place of the snapshot's: node_catch_up, live= */
    struct span params[CALL_PARAMS_MAX];
    struct span body, media_type;
    const uint8_t *body_hash; /* of a body that was not buffered; NULL: of body */
    size_t query_count;       /* of query */
    /* The body, once options_open… has read it; both freed by call_close. */
    cJSON *json;
    struct json_tape tape;    /* its long arrays, by options_open_batch */
    struct call_block *owned; /* of call_alloc without a connection */
    struct json_writer out;
    const char *location;   /* of an ERR_ELSEWHERE; of an ERR_RANGE the Content-Range */
    bool may_be_live;       /* CALL_NEEDS_GROUND: the query may have live= */
    bool is_live;           /* live= asks for what moves */
    bool may_be_earlier;    /* that, and CALL_NEEDS_VALUE: the query may have at= */
    bool may_have_note;     /* a write: the query may have note= */
    bool is_deferred;       /* another thread will finish: touch nothing any more */
    bool is_offloaded;      /* too long for a loop: begins again on a worker */
    uint64_t started_ns;    /* of long work; 0: not started yet */
    uint64_t cpu_ns;        /* of the worker's thread before the first item of a batch */
    size_t items;           /* of the batch, as call_check_budget counts them; 0: not known */
    size_t items_held;      /* of api->items_in_flight */
    size_t next_clock_item; /* call_check_budget reads the clock before this item */
    struct http_query_item query[CALL_QUERY_MAX]; /* not cleared */
};

/* A call uses one table of limits from its beginning to its end, also across a reload. */
static inline const struct api_limits *call_limits(const struct call *call)
{
    return call->limits ? call->limits : api_limits(call->api);
}

/* A header of the request; at is NULL without it, or without a connection. */
static inline struct span call_request_header(const struct call *call, const char *name)
{
    return call->request ? http_request_header(call->request, name) : (struct span){NULL, 0};
}

#endif
