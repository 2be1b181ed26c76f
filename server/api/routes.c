/*
 * Name, right, method, path, handler, place (loop or worker), limit of the body, summary.
 * Permissions, metric labels, the answer of /v1 and the test of the OpenAPI document derive from
 * this table.
 */
#include "api/routes.h"

#include "api/calls.h"

enum { KIB = 1024 };

#define ROW(method, place, is_probe, right, name, pattern, handler, summary)                       \
    {                                                                                              \
        {METHOD_##method, pattern, handler, HTTP_##place, 0, is_probe}, RIGHT_##right, name,       \
            summary, NULL                                                                          \
    }
#define PROBE(...) ROW(GET, ON_LOOP, true, NONE, __VA_ARGS__)
#define COUNTERS(...) ROW(GET, ON_LOOP, true, READING, __VA_ARGS__)
#define PUBLIC(...) ROW(GET, ON_LOOP, false, NONE, __VA_ARGS__)
#define READ(...) ROW(GET, ON_LOOP, false, READING, __VA_ARGS__)
#define OPERATE(...) ROW(GET, ON_WORKER, false, OPERATING, __VA_ARGS__)
#define READ_ON_WORKER(...) ROW(GET, ON_WORKER, false, READING, __VA_ARGS__)
#define READ_BY_SIZE(...) ROW(GET, BY_SIZE, false, READING, __VA_ARGS__)
#define ASK(...) ROW(POST, BY_SIZE, false, READING, __VA_ARGS__)
#define ASK_ON_WORKER(...) ROW(POST, ON_WORKER, false, READING, __VA_ARGS__)
#define WRITE(name, right, method, pattern, handler, place, bytes, summary)                        \
    {                                                                                              \
        {method, pattern, handler, place, bytes, false}, RIGHT_##right, name, summary, NULL        \
    }
/* begin: before the body comes */
#define WRITE_STREAMED(name, right, method, pattern, handler, begin, summary)                      \
    {                                                                                              \
        {method, pattern, handler, HTTP_ON_WORKER, 0, false}, RIGHT_##right, name, summary, begin  \
    }
#define LOCALE "/v1/locales/{locale}"
#define LAYER LOCALE "/layers/{layer}"
#define PIN LOCALE "/pins/{pin}"
#define WATCH "/v1/watches/{watch}"
#define PATCH LOCALE "/patches/{patch}"

const struct api_route api_routes[] = {
    READ("calls", "/v1", calls_get, "The calls of this daemon, with their names."),
    READ_ON_WORKER("locales", "/v1/locales", locales_get, "The locales, by id, a page at a time."),
    READ("locale", LOCALE, locale_get, "One locale."),
    WRITE("postLocale", LOCALES, METHOD_POST, "/v1/locales", locales_post, HTTP_ON_LOOP, 4 * KIB,
          "Makes a locale that shares the ground of another one."),
    WRITE("putLocale", LOCALES, METHOD_PUT, LOCALE, locale_put, HTTP_ON_WORKER, 64 * KIB,
          "Makes a locale, or gives an old one a new manifest."),
    WRITE("deleteLocale", LOCALES, METHOD_DELETE, LOCALE, locale_delete, HTTP_ON_LOOP, KIB,
          "Removes a locale and its layers."),
    READ("pins", LOCALE "/pins", pins_get, "The values of a locale that are kept under names."),
    READ("pin", PIN, pin_get, "One pin."),
    WRITE("putPin", PINS, METHOD_PUT, PIN, pin_put, HTTP_ON_LOOP, KIB,
          "Keeps the locale as it is under a name; no revision is counted."),
    WRITE("deletePin", PINS, METHOD_DELETE, PIN, pin_delete, HTTP_ON_LOOP, KIB, "Removes a pin."),
    WRITE("restorePin", PINS, METHOD_POST, PIN "/restore", pin_restore, HTTP_ON_LOOP, KIB,
          "Brings the locale back to a pin: its next revision."),
    READ_ON_WORKER("history", LOCALE "/history", history_get,
                   "Who made each revision of a locale, and when."),
    WRITE("revert", EDITS, METHOD_POST, LOCALE "/revert", revert_post, HTTP_ON_WORKER, 4 * KIB,
          "Takes earlier edits back, of one author or of all: the next revision."),
    READ_ON_WORKER("layerTif", LAYER ".tif", layer_tif_get,
                   "The heightfield as a cloud-optimised GeoTIFF, whole or in ranges."),
    READ_ON_WORKER("layer", LAYER, layer_get, "The whole layer as a file."),
    WRITE_STREAMED("putLayer", LAYERS, METHOD_PUT, LAYER, layer_put, layer_put_begin,
                   "Uploads a heightfield or a mesh."),
    WRITE("deleteLayer", LAYERS, METHOD_DELETE, LAYER, layer_delete, HTTP_ON_LOOP, KIB,
          "Removes a layer; a revision is counted."),
    READ("layerStats", LAYER "/stats", layer_stats_get, "How a layer is held."),
    READ_BY_SIZE("samples", LAYER "/samples", samples_get,
                 "A rectangle of a heightfield's samples, or every 2^L-th of them."),
    WRITE("putTransform", MOVES, METHOD_PUT, LAYER "/transform", transform_put, HTTP_ON_LOOP,
          4 * KIB, "Moves a mesh layer."),
    WRITE("polygons", EDITS, METHOD_POST, LAYER "/polygons", polygons_post, HTTP_ON_WORKER, 0,
          "Adds polygons to a mesh layer, and removes some."),
    WRITE("edit", EDITS, METHOD_POST, LOCALE "/edits", edits_post, HTTP_ON_WORKER, 0,
          "Changes samples of a heightfield."),
    READ_ON_WORKER("diff", LOCALE "/diff", diff_get,
                   "Which samples may have changed since a revision?"),
    READ("getHeight", LOCALE "/height", height_get, "The height at one point."),
    ASK("height", LOCALE "/height", height_post, "Heights at many points."),
    ASK_ON_WORKER("profile", LOCALE "/profile", profile_post, "The ground along a line."),
    READ_BY_SIZE("getContact", LOCALE "/contact", contact_get,
                 "The floor and the ceiling of one point."),
    ASK("contact", LOCALE "/contact", contact_post, "The floor below and the ceiling above."),
    READ_BY_SIZE("getRay", LOCALE "/ray", ray_get, "What one ray meets first."),
    ASK("ray", LOCALE "/ray", ray_post, "What rays meet first."),
    READ_BY_SIZE("getLos", LOCALE "/los", los_get, "One line of sight."),
    ASK("los", LOCALE "/los", los_post, "Lines of sight."),
    ASK("sweep", LOCALE "/sweep", sweep_post, "What moved shapes touch first."),
    ASK("move", LOCALE "/move", move_post, "Where shapes that walk come to."),
    ASK("lit", LOCALE "/lit", lit_post, "Does a light reach these points, and what is between?"),
    READ_BY_SIZE("getPick", LOCALE "/pick", pick_get, "What a pixel of a camera shows."),
    READ_BY_SIZE("getView", LOCALE "/view.png", view_get, "What a camera sees, as a picture."),
    ASK("view", LOCALE "/view.png", view_post, "What a camera sees, as a picture."),
    ASK("pick", LOCALE "/pick", pick_post, "What a pixel shows, and the logical tile it lies in."),
    ASK("contains", LOCALE "/contains", contains_post, "Are points inside the locale?"),
    ASK_ON_WORKER("locate", "/v1/locate", locate_post,
                  "Which locales hold these points of the world?"),
    ASK_ON_WORKER("worldContact", "/v1/contact", world_contact_post,
                  "What is below and above points of the world, in whichever locale they are?"),
    ASK_ON_WORKER("worldRay", "/v1/ray", world_ray_post,
                  "What rays meet first in the whole world."),
    ASK_ON_WORKER("worldPick", "/v1/pick", world_pick_post,
                  "What pixels show in the whole world, and the logical tiles they lie in."),
    READ_BY_SIZE("getElevation", "/v1/compat/elevation", elevation_get,
                 "Elevations of places, in the shape of Open Topo Data and of Google."),
    ASK("elevation", "/v1/compat/elevation", elevation_post,
        "The same for more places than fit into a path."),
    READ_BY_SIZE("getDatasetElevation", "/v1/compat/elevation/{dataset}", dataset_get,
                 "Elevations in named locales, at Open Topo Data's path."),
    ASK("datasetElevation", "/v1/compat/elevation/{dataset}", dataset_post,
        "The same for more places than fit into a path."),
    READ_BY_SIZE("googleElevation", "/v1/compat/maps/api/elevation/json", elevation_get,
                 "At Google's path, for clients of which only the host can be changed."),
    READ("localeEvents", LOCALE "/events", locale_events_get,
         "Each change of a locale, as server-sent events."),
    READ("events", "/v1/events", events_get, "Each change of all locales, as server-sent events."),
    READ_BY_SIZE("tile", LOCALE "/tiles/{level}/{column}/{row}", tile_get,
                 "A block of 257×257 samples."),
    READ("terrainLayer", LOCALE "/terrain/layer.json", terrain_layer_get,
         "The ground for globes, as quantized-mesh readers ask first."),
    READ_BY_SIZE("terrain", LOCALE "/terrain/{z}/{x}/{y}", terrain_get,
                 "A globe's tile as a quantized mesh."),
    READ("tileset", LOCALE "/3dtiles/tileset.json", tileset_get,
         "The mesh layers at their place on the Earth, as 3D Tiles."),
    READ_ON_WORKER("layerGlb", LOCALE "/3dtiles/{layer}.glb", layer_glb_get,
                   "A layer as binary glTF."),
    READ("demJson", LOCALE "/dem.json", dem_json_get,
         "The tiles of heights for maps, as a TileJSON document."),
    READ_BY_SIZE("dem", LOCALE "/dem/{z}/{x}/{y}", dem_get, "A map's tile of heights, XYZ."),
    READ_BY_SIZE("demGeodetic", LOCALE "/dem/geodetic/{z}/{x}/{y}", dem_geodetic_get,
                 "A globe's tile of heights, in degrees."),
    ASK_ON_WORKER("postWatch", LOCALE "/watches", watches_post,
                  "Questions whose answers are sent when they are others."),
    READ("watchEvents", WATCH, watch_get, "The answers of a watch, as server-sent events."),
    WRITE("patchWatch", READING, METHOD_PATCH, WATCH, watch_patch, HTTP_ON_WORKER, 0,
          "Adds questions to a watch, and removes some."),
    WRITE("deleteWatch", READING, METHOD_DELETE, WATCH, watch_delete, HTTP_ON_LOOP, KIB,
          "Ends a watch."),
    WRITE("postPatch", PATCHES, METHOD_POST, LOCALE "/patches", patches_post, HTTP_ON_WORKER,
          256 * KIB, "Makes a square of ground granules, and lets bodies fall on it."),
    READ_ON_WORKER("patches", LOCALE "/patches", patches_get,
                   "The patches of a locale, those that have ended lately too."),
    READ("patch", PATCH, patch_get,
         "A patch as it is; for `patch_keep_ms` also after it has ended."),
    WRITE("deletePatch", PATCHES, METHOD_DELETE, PATCH, patch_delete, HTTP_ON_LOOP, KIB,
          "Ends a patch, written back or thrown away, and answers when it has ended."),
    WRITE("postPatchBody", BODIES, METHOD_POST, PATCH "/bodies", patch_bodies_post, HTTP_ON_WORKER,
          64 * KIB, "One more body; a patch that rests wakes."),
    WRITE("patchPatchBody", BODIES, METHOD_PATCH, PATCH "/bodies/{body}", patch_body_patch,
          HTTP_ON_LOOP, 4 * KIB, "Pushes a body; a patch that rests wakes."),
    WRITE("deletePatchBody", BODIES, METHOD_DELETE, PATCH "/bodies/{body}", patch_body_delete,
          HTTP_ON_LOOP, KIB, "Removes a body; the others keep their numbers."),
    READ("patchEvents", PATCH "/events", patch_events_get,
         "The states of a patch and the poses of its bodies, as server-sent events."),
    READ_ON_WORKER("patchView", PATCH "/view.png", patch_view_get, "The patch as it looks now."),
    READ_ON_WORKER("patchSurface", PATCH "/surface.f32", patch_surface_get,
                   "The surface of a patch as it is now, for renderers."),
    READ_ON_WORKER("patchGranules", PATCH "/granules", patch_granules_get,
                   "The granules of a patch as they are now, for renderers."),
    WRITE("postImpact", IMPACTS, METHOD_POST, LOCALE "/impacts", impacts_post, HTTP_ON_WORKER,
          4 * KIB,
          "A body hits the ground: a crater at once, refined by granules where that can be."),
    READ_ON_WORKER("impact", LOCALE "/impacts/{impact}", impact_get, "The fate of an impact."),
    READ_ON_WORKER("models", "/v1/models", models_get, "All models, by id."),
    READ_ON_WORKER("model", "/v1/models/{model}", model_get, "A model's file, as it was sent."),
    WRITE("putModel", MODELS, METHOD_PUT, "/v1/models/{model}", model_put, HTTP_ON_WORKER, 0,
          "Makes or replaces a model."),
    WRITE("deleteModel", MODELS, METHOD_DELETE, "/v1/models/{model}", model_delete, HTTP_ON_LOOP,
          KIB, "Deletes a model."),
    READ("limits", "/v1/limits", limits_get, "The limits in force."),
    OPERATE("audit", "/v1/audit", audit_get, "The last writes, and the names that made them."),
    COUNTERS("stats", "/v1/stats", stats_get, "What the daemon has done and holds, as JSON."),
    COUNTERS("metrics", "/metrics", metrics_get, "Prometheus text, version 0.0.4."),
    PROBE("livez", "/livez", livez_get, "Does the process live? Needs no token."),
    PROBE("healthz", "/healthz", livez_get, "The same as /livez."),
    PROBE("readyz", "/readyz", readyz_get,
          "May traffic come? 503 while loading or draining, with damaged data, with a read-only "
          "store."),
    READ_BY_SIZE("openapi", "/openapi.json", openapi_get, "This document as JSON."),
    /* the page itself has nothing of a world */
    PUBLIC("index", "/", index_get,
           "The inspector, a page for people. Needs no token; what it fetches does."),
    PUBLIC("docs", "/docs", docs_get,
           "A page that shows this document and tries its calls. Needs no token; what it fetches "
           "does."),
    PUBLIC("docsErrors", "/docs/errors", docs_errors_get,
           "A page with a paragraph for each code of an error: `#layer_unknown`."),
    PUBLIC("web", "/web/{file}", web_get,
           "A script, style or shader of the inspector. Needs no token."),
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
