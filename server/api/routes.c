/*
 * Method, path, handler, place (loop or worker), limit of the body, scope. Permissions, metric
 * labels, the list on `/` and the test of the OpenAPI document derive from this table.
 */
#include "api/routes.h"

#include "api/calls.h"

enum { KIB = 1024 };

#define PROBE(pattern, handler)                                                                    \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_ON_LOOP, 0, true}, AUTH_NONE                           \
    }
#define COUNTERS(pattern, handler)                                                                 \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_ON_LOOP, 0, true}, AUTH_READ                           \
    }
#define PUBLIC(pattern, handler)                                                                   \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_ON_LOOP, 0, false}, AUTH_NONE                          \
    }
#define READ(pattern, handler)                                                                     \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_ON_LOOP, 0, false}, AUTH_READ                          \
    }
#define READ_ON_WORKER(pattern, handler)                                                           \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_ON_WORKER, 0, false}, AUTH_READ                        \
    }
#define READ_BY_SIZE(pattern, handler)                                                             \
    {                                                                                              \
        {METHOD_GET, pattern, handler, HTTP_BY_SIZE, 0, false}, AUTH_READ                          \
    }
#define ASK(pattern, handler)                                                                      \
    {                                                                                              \
        {METHOD_POST, pattern, handler, HTTP_BY_SIZE, 0, false}, AUTH_READ                         \
    }
#define WRITE(method, pattern, handler, place, bytes)                                              \
    {                                                                                              \
        {method, pattern, handler, place, bytes, false}, AUTH_EDIT                                 \
    }
#define LOCALE "/v1/locales/{locale}"
#define LAYER LOCALE "/layers/{layer}"
#define PATCH LOCALE "/patches/{patch}"

const struct api_route api_routes[] = {
    READ_ON_WORKER("/v1/locales", locales_get),
    READ(LOCALE, locale_get),
    WRITE(METHOD_PUT, LOCALE, locale_put, HTTP_ON_WORKER, 64 * KIB),
    WRITE(METHOD_DELETE, LOCALE, locale_delete, HTTP_ON_LOOP, KIB),
    READ_ON_WORKER(LAYER, layer_get),
    WRITE(METHOD_PUT, LAYER, layer_put, HTTP_ON_WORKER, 0),
    WRITE(METHOD_DELETE, LAYER, layer_delete, HTTP_ON_LOOP, KIB),
    READ(LAYER "/stats", layer_stats_get),
    WRITE(METHOD_PUT, LAYER "/transform", transform_put, HTTP_ON_LOOP, 4 * KIB),
    WRITE(METHOD_POST, LAYER "/polygons", polygons_post, HTTP_ON_WORKER, 0),
    WRITE(METHOD_POST, LOCALE "/edits", edits_post, HTTP_ON_WORKER, 0),
    READ_ON_WORKER(LOCALE "/diff", diff_get),
    READ(LOCALE "/height", height_get),
    ASK(LOCALE "/height", height_post),
    {{METHOD_POST, LOCALE "/profile", profile_post, HTTP_ON_WORKER, 0, false}, AUTH_READ},
    READ_BY_SIZE(LOCALE "/contact", contact_get),
    ASK(LOCALE "/contact", contact_post),
    READ_BY_SIZE(LOCALE "/ray", ray_get),
    ASK(LOCALE "/ray", ray_post),
    READ_BY_SIZE(LOCALE "/los", los_get),
    ASK(LOCALE "/los", los_post),
    ASK(LOCALE "/lit", lit_post),
    READ_BY_SIZE(LOCALE "/pick", pick_get),
    ASK(LOCALE "/pick", pick_post),
    ASK(LOCALE "/contains", contains_post),
    {{METHOD_POST, "/v1/locate", locate_post, HTTP_ON_WORKER, 0, false}, AUTH_READ},
    {{METHOD_POST, "/v1/contact", world_contact_post, HTTP_ON_WORKER, 0, false}, AUTH_READ},
    {{METHOD_POST, "/v1/ray", world_ray_post, HTTP_ON_WORKER, 0, false}, AUTH_READ},
    READ_BY_SIZE("/v1/compat/elevation", elevation_get),
    ASK("/v1/compat/elevation", elevation_post),
    READ_BY_SIZE("/v1/compat/elevation/{dataset}", dataset_get),
    ASK("/v1/compat/elevation/{dataset}", dataset_post),
    READ_BY_SIZE("/v1/compat/maps/api/elevation/json", elevation_get),
    READ(LOCALE "/events", locale_events_get),
    READ("/v1/events", events_get),
    READ_BY_SIZE(LOCALE "/tiles/{level}/{column}/{row}", tile_get),
    WRITE(METHOD_POST, LOCALE "/patches", patches_post, HTTP_ON_WORKER, 256 * KIB),
    READ_ON_WORKER(LOCALE "/patches", patches_get),
    READ(PATCH, patch_get),
    WRITE(METHOD_DELETE, PATCH, patch_delete, HTTP_ON_LOOP, KIB),
    WRITE(METHOD_POST, PATCH "/bodies", patch_bodies_post, HTTP_ON_WORKER, 64 * KIB),
    WRITE(METHOD_PATCH, PATCH "/bodies/{body}", patch_body_patch, HTTP_ON_LOOP, 4 * KIB),
    READ(PATCH "/events", patch_events_get),
    READ_ON_WORKER(PATCH "/view.png", patch_view_get),
    READ_ON_WORKER(PATCH "/surface.f32", patch_surface_get),
    READ_ON_WORKER("/v1/models", models_get),
    READ_ON_WORKER("/v1/models/{model}", model_get),
    WRITE(METHOD_PUT, "/v1/models/{model}", model_put, HTTP_ON_WORKER, 0),
    WRITE(METHOD_DELETE, "/v1/models/{model}", model_delete, HTTP_ON_LOOP, KIB),
    READ("/v1/limits", limits_get),
    COUNTERS("/v1/stats", stats_get),
    COUNTERS("/metrics", metrics_get),
    PROBE("/livez", livez_get),
    PROBE("/healthz", livez_get),
    PROBE("/readyz", readyz_get),
    READ("/openapi.json", openapi_get),
    /* the page itself has nothing of a world */
    PUBLIC("/", index_get),
    PUBLIC("/docs", docs_get),
    PUBLIC("/docs/errors", docs_errors_get),
    PUBLIC("/web/{file}", web_get),
};

const size_t api_route_count = sizeof api_routes / sizeof *api_routes;

const char *route_method_word(enum http_method method)
{
    switch (method) {
    case METHOD_GET:
        return "GET";
    case METHOD_POST:
        return "POST";
    case METHOD_PUT:
        return "PUT";
    case METHOD_PATCH:
        return "PATCH";
    case METHOD_DELETE:
        return "DELETE";
    }
    return "";
}
