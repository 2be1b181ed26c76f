/*
 * GET /v1/limits                    the limits in force, each under its name
 * GET /v1/stats                     counters as JSON
 * GET /livez, /healthz, /readyz     {"status":"ok"}; readyz 503 while loading or draining, and
 * while the store takes no write or has damage
 */
#include "api/calls.h"

#include "api/fleet.h"
#include "api/json_check.h"
#include "api/numbers.h"
#include "api/options.h"
#include "api/patch_line.h"
#include "sand/view.h"
#include "terrain/mesh.h"
#include "terrain/simd.h"

#include <string.h>

static void put(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_integer(w, value);
}

static void stats_of_store(struct json_writer *w, const struct store_stats *store)
{
    json_key(w, "store");
    json_begin_object(w);
    json_key(w, "read_only");
    json_boolean(w, store->is_read_only);
    json_key(w, "reason");
    if (store->is_read_only)
        json_string(w, store->reason);
    else
        json_null(w);
    put(w, "database_bytes", store->database_bytes);
    put(w, "wal_bytes", store->wal_bytes);
    put(w, "wal_bytes_max", store->wal_bytes_max);
    put(w, "commits", store->commits);
    put(w, "checkpoints", store->checkpoints);
    put(w, "checkpoints_blocked", store->checkpoints_blocked);
    put(w, "behind_tiles", store->behind_tiles);
    put(w, "behind_bytes", store->behind_bytes);
    json_end_object(w);
}

static void limits_of_http(struct json_writer *w, const struct http_limits *limits)
{
    put(w, "body_bytes_max", limits->body_bytes_max);
    put(w, "bodies_bytes_max", limits->bodies_bytes_max);
    put(w, "answers_bytes_max", limits->answers_bytes_max);
    put(w, "target_bytes_max", limits->target_bytes_max);
    put(w, "header_bytes_max", limits->header_bytes_max);
    put(w, "header_count_max", limits->header_count_max);
    put(w, "connections_max", limits->connections_max);
    put(w, "connections_per_address_max", limits->connections_per_address_max);
    put(w, "idle_ms", limits->idle_ms);
    put(w, "header_ms", limits->header_ms);
    put(w, "body_ms", limits->body_ms);
    put(w, "write_ms", limits->write_ms);
    put(w, "streams_max", limits->streams_max);
    put(w, "stream_silence_ms", limits->stream_silence_ms);
    put(w, "min_revision_wait_ms", limits->park_ms_max);
    put(w, "queue_ms_max", limits->queue_ms_max);
    put(w, "queued_requests_max", limits->queued_max);
}

static void limits_of_patches(struct json_writer *w, const struct api_limits *limits,
                              struct sand *sand)
{
    struct device_config device = limits->sand.device;
    const struct manager_limits *times = &limits->sand.limits;
    struct sand_stats stats;

    if (sand) {
        sand_stats(sand, &stats);
        device = stats.device.config;
    }
    put(w, "patches_fine_max", device.slots[SCALE_FINE]);
    put(w, "patches_medium_max", device.slots[SCALE_MEDIUM]);
    put(w, "patches_coarse_max", device.slots[SCALE_COARSE]);
    if (device.granules_max > 0) {
        put(w, "patch_granules_max", device.granules_max);
    } else { /* the device chooses, and is not open, or there is none */
        json_key(w, "patch_granules_max");
        json_null(w);
    }
    put(w, "patch_open_ms_max", PATCH_LINE_MS_MAX);
    put(w, "patch_bodies_max", device.bodies_max);
    put(w, "patch_shell_particles_max", device.particles_max);
    put(w, "patches_active_max", times->active_max);
    put(w, "patches_kept_max", times->kept_max);
    put(w, "patch_view_side_max", VIEW_SIDE_MAX);
    put(w, "patch_pause_ms", (uint64_t)(times->pause_after_s * 1000 + 0.5));
    put(w, "patch_write_ms", (uint64_t)(times->write_after_s * 1000 + 0.5));
    put(w, "patch_active_max_ms", (uint64_t)(times->active_max_s * 1000 + 0.5));
    put(w, "patch_keep_ms", (uint64_t)(times->keep_s * 1000 + 0.5));
    put(w, "shell_cache_bytes_max", limits->shell_cache_bytes_max);
}

enum err_code limits_get_answer(struct call *call, struct err *err)
{
    const struct api_limits *limits = call_limits(call);
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    json_begin_object(w);
    put(w, "items_max", limits->items_max);
    put(w, "binary_items_max", limits->binary_items_max);
    put(w, "items_in_flight_max", limits->items_in_flight_max);
    put(w, "path_points_max", limits->items_max);
    put(w, "profile_samples_max", limits->items_max);
    put(w, "footprint_points_max", FOOTPRINT_POINTS_MAX);
    put(w, "trace_boxes_max", limits->trace_max);
    put(w, "trace_cells_max", limits->trace_max);
    put(w, "pick_tile_side_max", HEIGHTFIELD_SIDE_MAX);
    put(w, "crossed_locales_max", API_CROSSED_MAX);
    put(w, "elevation_locations_max", limits->items_max);
    put(w, "batch_ms_max", limits->batch_ms_max);
    put(w, "uploads_bytes_max", limits->uploads_bytes_max);
    put(w, "tile_cache_bytes_max", limits->tile_cache_bytes_max);
    put(w, "light_cache_bytes_max", limits->light_cache_bytes_max);
    put(w, "lights_remembered_max", LIGHTS_REMEMBERED_MAX);
    put(w, "json_bytes_max", limits->json_bytes_max);
    put(w, "json_depth_max", limits->json.depth_max);
    put(w, "json_values_max", limits->json.values_max);
    put(w, "number_characters_max", JSON_NUMBER_BYTES_MAX);
    put(w, "query_parameters_max", CALL_QUERY_MAX);
    put(w, "id_characters_max", WORLD_ID_MAX);
    put(w, "title_bytes_max", LOCALE_TITLE_BYTES_MAX);
    put(w, "locales_max", limits->world.locales_max);
    put(w, "models_max", limits->world.models_max);
    put(w, "layers_max", LOCALE_LAYERS_MAX);
    put(w, "transform_m_max", (uint64_t)POSE_TRANSLATION_MAX_M);
    put(w, "transform_yaw_deg_max", (uint64_t)POSE_YAW_MAX_DEG);
    put(w, "world_bytes_max", limits->world.bytes_max);
    put(w, "edit_samples_max", limits->world.edit_samples_max);
    put(w, "idempotency_key_characters_max", STORE_OP_ID_MAX);
    put(w, "queued_changes_max", limits->world.queue_max);
    put(w, "feed_events_max", FEED_EVENTS_MAX);
    put(w, "raster_samples_max", limits->raster.samples_max);
    put(w, "raster_side_max", limits->raster.side_max);
    put(w, "coordinate_m_max", (uint64_t)MESH_COORDINATE_MAX_M);
    put(w, "polygons_max", limits->polygon.polygons_max);
    put(w, "polygon_corners_max", limits->polygon.corners_max);
    put(w, "polygon_vertices_max", limits->polygon.vertices_max);
    put(w, "polygon_ring_corners_max", MESH_POLYGON_CORNERS_MAX);
    limits_of_patches(w, limits, call->api->sand);
    limits_of_http(w, &limits->http);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(limits_get, 0, CALL_NEEDS_NOTHING)

static void stats_of_world(struct json_writer *w, const struct world_stats *world)
{
    json_key(w, "world");
    json_begin_object(w);
    put(w, "locales", world->locales);
    put(w, "layers", world->layers);
    put(w, "memory_bytes", world->memory_bytes);
    put(w, "mesh_layers", world->mesh_layers);
    put(w, "mesh_polygons", world->mesh_polygons);
    put(w, "mesh_bytes", world->mesh_bytes);
    put(w, "publications", world->publications);
    put(w, "changes", world->changes);
    put(w, "changes_refused", world->refused);
    put(w, "changes_queued", world->queued);
    put(w, "idempotent_repeats", world->repeats);
    put(w, "moves", world->moves);
    put(w, "edits", world->edits);
    put(w, "edit_samples", world->edit_samples);
    put(w, "locales_damaged", world->damaged);
    put(w, "snapshots_retired", world->retired);
    put(w, "snapshots_reclaimed", world->reclaimed);
    json_end_object(w);
}

static void stats_of_tiles(struct json_writer *w, const struct tile_cache_stats *tiles)
{
    json_key(w, "tile_cache");
    json_begin_object(w);
    put(w, "hits", tiles->hits);
    put(w, "misses", tiles->misses);
    put(w, "evicted", tiles->evicted);
    put(w, "tiles", tiles->entries);
    put(w, "bytes", tiles->bytes);
    json_end_object(w);
}

static void stats_of_lights(struct json_writer *w, const struct light_cache_stats *lights)
{
    json_key(w, "light_cache");
    json_begin_object(w);
    put(w, "hits", lights->hits);
    put(w, "misses", lights->misses);
    put(w, "builds", lights->builds);
    put(w, "refused", lights->refused);
    put(w, "evicted", lights->evicted);
    put(w, "lights", lights->lights);
    put(w, "trees", lights->trees);
    put(w, "bytes", lights->bytes);
    json_end_object(w);
}

static void stats_of_loops(struct json_writer *w, const struct api *api)
{
    const struct http_server *server = atomic_load(&api->server);
    const size_t count = server ? http_server_loops(server) : 0;

    json_key(w, "loops");
    json_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        struct http_counters loop;

        http_server_loop_counters(server, i, &loop);
        json_begin_object(w);
        put(w, "connections_open", loop.open);
        put(w, "connections_accepted", loop.accepted);
        put(w, "requests", loop.requests);
        put(w, "latency_us_sum", loop.latency_us_sum);
        put(w, "bytes_in", loop.bytes_in);
        put(w, "bytes_out", loop.bytes_out);
        put(w, "streams_open", loop.streams);
        put(w, "timeouts", loop.timeouts);
        put(w, "shed", loop.shed);
        json_end_object(w);
    }
    json_end_array(w);
}

static void stats_of_http(struct json_writer *w, const struct http_counters *http)
{
    json_key(w, "http");
    json_begin_object(w);
    put(w, "connections_open", http->open);
    put(w, "connections_accepted", http->accepted);
    put(w, "connections_rejected", http->rejected);
    put(w, "requests", http->requests);
    put(w, "bytes_in", http->bytes_in);
    put(w, "bytes_out", http->bytes_out);
    put(w, "timeouts", http->timeouts);
    put(w, "parse_errors", http->parse_errors);
    put(w, "write_errors", http->write_errors);
    put(w, "shed", http->shed);
    put(w, "workers", http->workers);
    put(w, "workers_busy", http->workers_busy);
    put(w, "queued", http->queued);
    put(w, "queue_wait_ms", http->queue_wait_ms);
    put(w, "streams_open", http->streams);
    put(w, "streams_opened", http->streams_opened);
    put(w, "streams_rejected", http->streams_rejected);
    json_key(w, "streams_ended");
    json_begin_object(w);
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        put(w, numbers_stream_end((enum http_stream_end)i), http->streams_ended[i]);
    json_end_object(w);
    json_end_object(w);
}

static void stats_of_device(struct json_writer *w, const struct device_info *device)
{
    json_key(w, "device");
    json_begin_object(w);
    json_key(w, "engine");
    if (device->engine[0] != '\0')
        json_string(w, device->engine);
    else
        json_null(w);
    json_key(w, "name");
    if (device->engine[0] != '\0')
        json_string(w, device->name);
    else
        json_null(w);
    json_key(w, "software");
    json_boolean(w, device->is_software);
    json_key(w, "reason");
    if (device->reason[0] != '\0')
        json_string(w, device->reason);
    else
        json_null(w);
    put(w, "rebuilds", device->rebuilds);
    json_key(w, "material");
    json_string(w, material_name(device->config.material));
    put(w, "granules_max", device->config.granules_max);
    json_end_object(w);
}

static void stats_of_scale(struct json_writer *w, const struct manager_stats *patches, int scale)
{
    static const char *const phases[SAND_PHASE_COUNT] = {"integrate_ms", "grid_ms", "force_ms",
                                                         "depth_ms"};

    json_key(w, scale_name((enum granular_scale)scale));
    json_begin_object(w);
    put(w, "slots", patches->slots[scale]);
    put(w, "used", patches->used[scale]);
    put(w, "steps", patches->steps[scale]);
    put(w, "particle_steps", patches->particle_steps[scale]);
    for (int phase = 0; phase < SAND_PHASE_COUNT; phase++) {
        json_key(w, phases[phase]);
        json_number(w, patches->phase_ms[scale][phase]);
    }
    json_end_object(w);
}

static void stats_of_sand(struct json_writer *w, const struct numbers *numbers)
{
    const struct manager_stats *patches = &numbers->sand.patches;

    json_key(w, "patches");
    json_begin_object(w);
    stats_of_device(w, &numbers->sand.device);
    put(w, "made", patches->made);
    put(w, "written", patches->written);
    put(w, "discarded", patches->discarded);
    put(w, "failed", patches->failed);
    json_key(w, "states");
    json_begin_object(w);
    for (int state = 0; state < PATCH_STATES; state++)
        put(w, patch_state_name((enum patch_state)state), patches->states[state]);
    json_end_object(w);
    json_key(w, "scales");
    json_begin_object(w);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        stats_of_scale(w, patches, scale);
    json_end_object(w);
    put(w, "shells_built", numbers->shells.built);
    put(w, "shells_loaded", numbers->shells.loaded);
    put(w, "shell_hits", numbers->shells.hits);
    put(w, "shell_bytes", numbers->shells.bytes);
    json_end_object(w);
}

enum err_code stats_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;
    struct numbers numbers;

    if (options_open_query(call, NULL, err))
        return err->code;
    numbers_read(call->api, &numbers);
    json_begin_object(w);
    json_key(w, "version");
    json_string(w, KOTA_VERSION);
    json_key(w, "state");
    json_string(w, api_state_word(call->api));
    json_key(w, "uptime_s");
    json_number(w, numbers.uptime_s);
    put(w, "resident_bytes", numbers.resident_bytes);
    json_key(w, "simd");
    json_string(w, simd_level_name(simd_level()));
    stats_of_world(w, &numbers.world);
    if (numbers.has_store) {
        stats_of_store(w, &numbers.store);
    } else {
        json_key(w, "store");
        json_null(w);
    }
    fleet_stats(w, call->api, &numbers);
    put(w, "items_in_flight", numbers.items_in_flight);
    stats_of_tiles(w, &numbers.tiles);
    stats_of_lights(w, &numbers.lights);
    stats_of_sand(w, &numbers);
    stats_of_http(w, &numbers.http);
    stats_of_loops(w, call->api);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(stats_get, 0, CALL_NEEDS_NOTHING)

enum err_code livez_get_answer(struct call *call, struct err *err)
{
    (void)err;
    call_header(call, "Cache-Control", "no-store");
    json_begin_object(&call->out);
    json_key(&call->out, "status");
    json_string(&call->out, "ok");
    json_end_object(&call->out);
    return ERR_OK;
}
API_HANDLER(livez_get, 0, CALL_NEEDS_NOTHING)

enum err_code readyz_get_answer(struct call *call, struct err *err)
{
    if (api_readiness(call->api, err))
        return err->code;
    return livez_get_answer(call, err);
}
API_HANDLER(readyz_get, 0, CALL_NEEDS_NOTHING)
