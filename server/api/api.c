/*
 * The API as the HTTP server sees it: routes and hooks.
 *
 * A request's snapshot is pinned when it begins and unpinned when its answer is encoded, both on
 * its loop's thread (world.h); the pin is the request's user pointer. A read of a later revision
 * than the snapshot's (Kota-Min-Revision) is parked there, wherever its handler runs, and so is one
 * whose live ground is not made yet. A loop that is about to wait reports that it pins nothing
 * else.
 */
#include "api/api.h"

#include "api/call.h"
#include "api/calls/patch_wait_queue.h"
#include "api/feed/watches.h"
#include "api/routes.h"
#include "base/text/power_of_ten.h"
#include "sand/impact/fates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLYGON_CORNERS_MEAN_MAX = 4 }; /* as in polygon_limits_default */

struct api_kept_limits {
    struct api_kept_limits *next;
    struct api_limits limits;
};

void api_limits_init(struct api_limits *limits)
{
    *limits = (struct api_limits){
        .items_max = 10000,
        .binary_items_max = 1000000,
        .items_in_flight_max = 4000000,
        .json_bytes_max = (size_t)8 << 20,
        .json = json_limits_default,
        .watches_max = 1000,
        .watch_items_max = 250000,
        .watch_linger_ms = 60000,
        .trace_max = 4096,
        .batch_ms_max = 30000,
        .import_ms_max = 60000,
        .uploads_bytes_max = (uint64_t)2 << 30,
        .tile_cache_bytes_max = (uint64_t)64 << 20,
        .light_cache_bytes_max = (uint64_t)256 << 20,
        .raster = raster_limits_default,
        .shell_cache_bytes_max = (uint64_t)256 << 20,
        .polygon = polygon_limits_default,
        .world = world_limits_default,
        .http = http_limits_default,
    };
    sand_config_init(&limits->sand);
}

static void limits_derive(struct api_limits *limits)
{
    limits->polygon.corners_max = limits->polygon.vertices_max =
        POLYGON_CORNERS_MEAN_MAX * limits->polygon.polygons_max;
    limits->world.polygon = limits->polygon;
}

enum err_code api_init(struct api *api, struct world *world, struct auth *auth,
                       const struct api_limits *limits, struct err *err)
{
    struct timespec now;

    (void)powers_of_ten(); /* computed now, not while the first request waits */
    *api = (struct api){
        .world = world,
        .auth = auth,
        .limits = *limits,
        .is_shared = world_log(world) != NULL,
        .route_count = api_route_count,
        .routes = calloc(api_route_count, sizeof *api->routes),
        .tiles = tile_cache_create(limits->tile_cache_bytes_max, err),
        .shells = shell_cache_create(world, limits->shell_cache_bytes_max, err),
        .lights = light_cache_create(limits->light_cache_bytes_max, err),
        .watches = watches_create(api, err),
        .patch_queue = patch_wait_queue_create(err),
        .fates = fates_create(err),
    };
    if (!api->routes || !api->tiles || !api->shells || !api->lights || !api->watches ||
        !api->patch_queue || !api->fates) {
        if (!api->routes)
            err_set(err, ERR_NO_MEMORY, "no memory for the routes");
        api_finish(api);
        *api = (struct api){.world = NULL};
        return err->code;
    }
    for (size_t i = 0; i < api_route_count; i++)
        api->routes[i] = api_routes[i].http;
    limits_derive(&api->limits);
    atomic_store(&api->state, API_LOADING);
    clock_gettime(CLOCK_REALTIME, &now);
    api->started_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    clock_gettime(CLOCK_MONOTONIC, &api->started);
    return ERR_OK;
}

void api_stop(struct api *api)
{
    watches_stop(api->watches);
}

void api_finish(struct api *api)
{
    patch_wait_queue_destroy(api->patch_queue);
    fates_destroy(api->fates);
    watches_destroy(api->watches);
    tile_cache_destroy(api->tiles);
    shell_cache_destroy(api->shells);
    light_cache_destroy(api->lights);
    free(api->routes);
    while (api->kept) {
        struct api_kept_limits *next = api->kept->next;

        free(api->kept);
        api->kept = next;
    }
}

/* Readers of a table are not counted, so none is freed; an equal earlier one is used again. */
enum err_code api_set_limits(struct api *api, const struct api_limits *limits, struct err *err)
{
    struct api_limits wanted = *limits;
    struct api_kept_limits *at = api->kept;

    wanted.sand = api->limits.sand;
    wanted.tile_cache_bytes_max = api->limits.tile_cache_bytes_max;
    wanted.shell_cache_bytes_max = api->limits.shell_cache_bytes_max;
    wanted.light_cache_bytes_max = api->limits.light_cache_bytes_max;
    wanted.http.connections_max = api->limits.http.connections_max;
    wanted.http.workers = api->limits.http.workers;
    wanted.http.queue_ms_max = api->limits.http.queue_ms_max;
    wanted.http.queued_max = api->limits.http.queued_max;
    limits_derive(&wanted);
    while (at && memcmp(&at->limits, &wanted, sizeof wanted) != 0)
        at = at->next;
    if (!at) {
        at = malloc(sizeof *at);
        if (!at)
            return err_set(err, ERR_NO_MEMORY, "no memory for the limits");
        at->limits = wanted;
        at->next = api->kept;
        api->kept = at;
    }
    world_set_limits(api->world, &wanted.world);
    atomic_store_explicit(&api->limits_now, &at->limits, memory_order_release);
    return ERR_OK;
}

static const struct api_route *route_of(const struct api *api, const struct http_route *route)
{
    return &api_routes[route - api->routes];
}

bool api_is_write(const struct api *api, const struct http_route *route)
{
    return right_is_of_writes(route_of(api, route)->right);
}

static bool is_read_of_locale(const struct api *api, const struct http_request *request)
{
    const struct http_route *route = http_request_route(request);

    return route_of(api, route)->right == RIGHT_READING && call_pattern_has_locale(route->pattern);
}

/* Must a read wait: for Kota-Min-Revision, or for live ground? */
static bool must_wait(struct api *api, struct http_request *request)
{
    const struct world_snapshot *snapshot = http_request_user(request);

    if (!is_read_of_locale(api, request))
        return false;
    if (!http_request_header(request, "kota-min-revision").at)
        return call_awaits_live(request, snapshot);
    if (call_awaits_revision(request, snapshot))
        return true;
    /* the revision may have arrived after the pin: then it is in the next snapshot */
    http_request_set_user(request, (void *)world_pin(api->world, http_request_loop(request)));
    world_unpin(api->world, http_request_loop(request), snapshot);
    return call_awaits_live(request, http_request_user(request));
}

static void request_begin(void *context, struct http_request *request)
{
    struct api *api = context;

    http_request_set_user(request, (void *)world_pin(api->world, http_request_loop(request)));
    if (must_wait(api, request) && !http_request_is_last_try(request))
        http_request_park(request);
}

static void request_end(void *context, struct http_request *request)
{
    struct api *api = context;
    const struct world_snapshot *snapshot = http_request_user(request);

    if (snapshot)
        world_unpin(api->world, http_request_loop(request), snapshot);
}

static void body_begin(void *context, struct http_request *request, struct http_reply *reply)
{
    const struct api_route *route = route_of(context, http_request_route(request));

    if (!route->begin)
        return;
    request_begin(context, request);
    route->begin(request, reply);
    request_end(context, request);
    http_request_set_user(request, NULL);
}

static void loop_quiet(void *context, size_t loop_index)
{
    struct api *api = context;

    world_reader_quiet(api->world, loop_index);
}

static void loop_gone(void *context, size_t loop_index)
{
    struct api *api = context;

    world_reader_gone(api->world, loop_index);
}

/* The words of a write's line, in the memory of its request. */
static enum err_code note_origin(const struct api *api, struct http_request *request,
                                 const struct api_route *route, const struct principal *principal,
                                 struct err *err)
{
    struct change_origin *origin;
    const struct span id = http_request_id(request);

    if (audit_check(api->audit, err))
        return err->code;
    origin = http_request_alloc(request, sizeof *origin);
    if (!origin)
        return err_set(err, ERR_NO_MEMORY, "no memory for the audit");
    *origin = (struct change_origin){.route = route->name};
    snprintf(origin->name, sizeof origin->name, "%s", principal ? principal->claims.name : "-");
    http_request_peer_address(request, origin->address, sizeof origin->address);
    memcpy(origin->request, id.at, id.length < ORIGIN_TEXT_MAX ? id.length : ORIGIN_TEXT_MAX);
    http_request_set_note(request, origin);
    return ERR_OK;
}

static enum err_code authorize(void *context, struct http_request *request,
                               const struct http_route *route, struct err *err)
{
    struct api *api = context;
    const struct api_route *own = route_of(api, route);
    const struct auth_need need = {
        .right = own->right,
        .is_counters = route->is_probe && own->right != RIGHT_NONE, /* probes need no right */
        .locale = call_pattern_has_locale(route->pattern) ? http_request_param(request, 0)
                                                          : (struct span){NULL, 0},
    };
    struct principal *principal;
    struct auth_request asked;
    uint32_t uid = 0;

    if (!auth_asks(api->auth, &need))
        return ERR_OK;
    asked = (struct auth_request){
        .has_uid = http_request_peer_uid(request, &uid),
        .authorization = http_request_header(request, "authorization"),
        .origin = http_request_header(request, "origin"),
        .host = http_request_header(request, "host"),
        .is_forwarded = http_request_has_header_prefix(request, "x-forwarded-") ||
                        http_request_header(request, "forwarded").at != NULL,
        .is_loopback = http_request_peer_is_loopback(request),
        .reader = http_request_loop(request),
    };
    asked.uid = uid;
    if (auth_check(api->auth, &need, &asked, &principal, err))
        return err->code;
    if (principal) {
        http_request_set_grant(request, principal);
        http_request_set_flow(request, principal->share->flow);
    }
    return api->audit && right_is_of_writes(own->right)
               ? note_origin(api, request, own, principal, err)
               : ERR_OK;
}

static uint32_t grant_left_ms(void *context, size_t loop_index, void *grant)
{
    struct api *api = context;

    return auth_left_ms(api->auth, loop_index, grant);
}

static void grant_release(void *context, void *grant)
{
    (void)context;
    principal_release(grant);
}

/* On the writer's thread. */
static void audit_change(void *context, const struct world_change *change,
                         const struct world_outcome *outcome)
{
    const bool is_of_model = change->locale_id[0] == '\0';

    audit_add(context, change->origin, is_of_model ? change->model_id : change->locale_id,
              &outcome->rect, outcome->revision);
}

static void audit_end(void *context)
{
    audit_flush(context);
}

void api_set_audit(struct api *api, struct audit *audit)
{
    const struct world_audit hooks = {audit_change, audit_end, audit};

    api->audit = audit;
    world_set_audit(api->world, &hooks);
}

struct http_app api_http_app(struct api *api)
{
    return (struct http_app){
        .routes = api->routes,
        .route_count = api->route_count,
        .context = api,
        .request_begin = request_begin,
        .request_end = request_end,
        .body_begin = body_begin,
        .loop_quiet = loop_quiet,
        .loop_gone = loop_gone,
        .authorize = authorize,
        .grant_left_ms = grant_left_ms,
        .grant_release = grant_release,
    };
}

struct http_app api_ops_app(struct api *api)
{
    return (struct http_app){
        .routes = api->routes,
        .route_count = api->route_count,
        .context = api,
        .authorize = authorize,
        .grant_left_ms = grant_left_ms,
        .grant_release = grant_release,
    };
}
