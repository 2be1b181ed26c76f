/*
 * The state that calls share: the world, the limits, authorization, readiness.
 */
#ifndef KOTA_API_API_DATA_H
#define KOTA_API_API_DATA_H

#include "api/auth/audit.h"
#include "api/auth/auth.h"
#include "json/json_check.h"
#include "api/tile_cache.h"
#include "formats/polygon/polygon_file.h"
#include "formats/raster/raster.h"
#include "http/http.h"
#include "sand/sand.h"
#include "sand/body/shell_cache.h"
#include "world/values/light_cache.h"
#include "world/world.h"

#include <stdatomic.h>
#include <time.h>

enum {
    API_REGION_PIXELS_MAX = 1 << 18, /* of a rectangle or lasso of the screen */
    API_CROSSED_MAX = 64,            /* locales listed as crossed by a ray of the world */
    API_LOCALE_PAGE_MAX = 1000,      /* locales of one answer to GET /v1/locales */
    API_HISTORY_PAGE_MAX = 1000,     /* rows of one answer to GET …/history */
};

struct api_limits {
    size_t items_max;           /* items of a JSON batch, 10,000 */
    size_t binary_items_max;    /* items of a binary batch, 1,000,000 */
    size_t items_in_flight_max; /* of all batches that are answered at one time, 4,000,000 */
    size_t json_bytes_max;      /* a JSON body, 8 MiB */
    struct json_limits json;
    size_t watches_max;             /* 1,000 */
    size_t watch_items_max;         /* of all watches together, 250,000 */
    uint64_t watch_linger_ms;       /* without a reader, 60,000 */
    size_t trace_max;               /* boxes, and cells, of a traced ray: 4,096 */
    uint64_t batch_ms_max;          /* of one batch, 30,000 */
    uint64_t import_ms_max;         /* of one upload or change of polygons, 60,000 */
    uint64_t uploads_bytes_max;     /* of fields that are built and not yet published, 2 GiB */
    uint64_t tile_cache_bytes_max;  /* of encoded tiles that are kept, 64 MiB; 0: none */
    uint64_t light_cache_bytes_max; /* of trees under lights, 256 MiB; 0: none are made */
    struct raster_limits raster;
    struct polygon_limits polygon;
    uint64_t shell_cache_bytes_max; /* of shells of models that are kept, 256 MiB */
    struct sand_config sand;
    struct world_limits world;
    struct http_limits http;
};

enum api_state { API_LOADING, API_READY, API_DRAINING };

struct api_kept_limits;
struct daemon_view;

struct api {
    struct world *world;
    struct api_limits limits;                      /* of the start; read them by api_limits() */
    _Atomic(const struct api_limits *) limits_now; /* NULL: limits */
    struct api_kept_limits *kept;                  /* every table that there was */
    bool is_shared;               /* the world follows a log that others append to */
    uint64_t staleness_s_max;     /* then: readiness ends there, 0: never; set while API_LOADING */
    const char *public_url;       /* for links to this daemon; "" or NULL: of the request */
    struct http_networks proxies; /* whose X-Forwarded-* say where a request was sent to */
    struct auth *auth;
    struct audit *audit; /* borrowed; NULL: none */
    struct tile_cache *tiles;
    struct shell_cache *shells;
    struct light_cache *lights;
    struct watches *watches;
    struct fates *fates;                  /* of impacts */
    _Atomic int pictures;                 /* of patches, that are being drawn */
    _Atomic int surfaces;                 /* of patches, that are being measured */
    struct patch_wait_queue *patch_queue; /* requests that wait for the device of patches */
    struct daemon_view *view;             /* borrowed; NULL: it draws no pictures; set as sand */
    struct sand *sand;         /* borrowed; NULL: there are no patches; set while API_LOADING */
    struct http_route *routes; /* api_routes[] as the server takes them */
    size_t route_count;
    _Atomic(struct http_server *) server; /* set once it runs */
    _Atomic int state;                    /* enum api_state */
    struct load_source *sources; /* the files that locales were read from: load.c, main thread */
    struct api_loading {         /* --world and files, for progress during the start */
        _Atomic uint64_t done, total;
    } loading;
    _Atomic uint64_t items_in_flight; /* of batches that are answered now, see call_take_items */
    _Atomic uint64_t upload_bytes;    /* of layers that are not yet published */
    struct timespec started;          /* CLOCK_MONOTONIC */
    double started_s;                 /* the same as seconds since 1970 */
};

/* The limits in force: a table that never changes and stays until api_finish. Any thread. */
static inline const struct api_limits *api_limits(const struct api *api)
{
    const struct api_limits *now = atomic_load_explicit(&api->limits_now, memory_order_acquire);

    return now ? now : &api->limits;
}

/* Does the call of a route write? By its right (api.c). */
bool api_is_write(const struct api *api, const struct http_route *route);

#endif
