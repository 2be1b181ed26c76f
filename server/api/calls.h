/*
 * Every call of the API: its handler, for api_routes[] (server/api/routes.c), and its answer
 * function, which runs without a connection in tests and fuzzers.
 */
#ifndef KOTA_API_CALLS_H
#define KOTA_API_CALLS_H

#include "api/call.h"

#define API_CALL_LIST(X)                                                                           \
    X(locales_get)                                                                                 \
    X(locale_get)                                                                                  \
    X(locale_put)                                                                                  \
    X(locales_post)                                                                                \
    X(locale_delete)                                                                               \
    X(pins_get)                                                                                    \
    X(pin_get)                                                                                     \
    X(pin_put)                                                                                     \
    X(pin_delete)                                                                                  \
    X(history_get)                                                                                 \
    X(revert_post)                                                                                 \
    X(pin_restore)                                                                                 \
    X(layer_get)                                                                                   \
    X(layer_put)                                                                                   \
    X(layer_delete)                                                                                \
    X(layer_stats_get)                                                                             \
    X(samples_get)                                                                                 \
    X(transform_put)                                                                               \
    X(edits_post)                                                                                  \
    X(polygons_post)                                                                               \
    X(diff_get)                                                                                    \
    X(height_get)                                                                                  \
    X(height_post)                                                                                 \
    X(profile_post)                                                                                \
    X(contact_get)                                                                                 \
    X(contact_post)                                                                                \
    X(ray_get)                                                                                     \
    X(ray_post)                                                                                    \
    X(los_get)                                                                                     \
    X(los_post)                                                                                    \
    X(sweep_post)                                                                                  \
    X(move_post)                                                                                   \
    X(lit_post)                                                                                    \
    X(pick_get)                                                                                    \
    X(pick_post)                                                                                   \
    X(contains_post)                                                                               \
    X(locate_post)                                                                                 \
    X(world_contact_post)                                                                          \
    X(world_ray_post)                                                                              \
    X(world_pick_post)                                                                             \
    X(elevation_get)                                                                               \
    X(layer_tif_get)                                                                               \
    X(terrain_layer_get)                                                                           \
    X(terrain_get)                                                                                 \
    X(tileset_get)                                                                                 \
    X(layer_glb_get)                                                                               \
    X(dem_get)                                                                                     \
    X(dem_geodetic_get)                                                                            \
    X(dem_json_get)                                                                                \
    X(elevation_post)                                                                              \
    X(dataset_get)                                                                                 \
    X(dataset_post)                                                                                \
    X(watches_post)                                                                                \
    X(watch_get)                                                                                   \
    X(watch_patch)                                                                                 \
    X(watch_delete)                                                                                \
    X(impacts_post)                                                                                \
    X(impact_get)                                                                                  \
    X(patches_post)                                                                                \
    X(patches_get)                                                                                 \
    X(patch_get)                                                                                   \
    X(patch_delete)                                                                                \
    X(patch_bodies_post)                                                                           \
    X(patch_body_patch)                                                                            \
    X(patch_body_delete)                                                                           \
    X(patch_events_get)                                                                            \
    X(patch_view_get)                                                                              \
    X(patch_surface_get)                                                                           \
    X(view_get)                                                                                    \
    X(view_post)                                                                                   \
    X(patch_granules_get)                                                                          \
    X(model_get)                                                                                   \
    X(models_get)                                                                                  \
    X(model_put)                                                                                   \
    X(model_delete)                                                                                \
    X(tile_get)                                                                                    \
    X(locale_events_get)                                                                           \
    X(events_get)                                                                                  \
    X(calls_get)                                                                                   \
    X(audit_get)                                                                                   \
    X(limits_get)                                                                                  \
    X(stats_get)                                                                                   \
    X(metrics_get)                                                                                 \
    X(livez_get)                                                                                   \
    X(readyz_get)                                                                                  \
    X(openapi_get)                                                                                 \
    X(index_get)                                                                                   \
    X(docs_get)                                                                                    \
    X(docs_errors_get)                                                                             \
    X(web_get)

#define API_CALL_DECLARE(name)                                                                     \
    void name(struct http_request *request, struct http_reply *reply);                             \
    enum err_code name##_answer(struct call *call, struct err *err);
API_CALL_LIST(API_CALL_DECLARE)
#undef API_CALL_DECLARE

/* Before the body of layer_put: refuses as early as possible, and streams an f32 field. */
void layer_put_begin(struct http_request *request, struct http_reply *reply);

#endif
