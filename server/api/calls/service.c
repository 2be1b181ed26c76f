/*
 * GET /v1                           the version, and all calls
 * GET /v1/limits                    the limits in force, each under its name
 * GET /v1/stats                     counters as JSON
 * GET /livez, /healthz, /readyz     {"status":"ok"}; readyz 503 while loading or draining, and
 * while the store takes no write or has damage
 */
#include "api/calls.h"

#include "api/counters.h"
#include "api/node.h"
#include "api/numbers.h"
#include "api/options.h"
#include "api/routes.h"
#include "terrain/kernels/simd.h"
#include "world/builds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUILDS_LISTED = 100 };

static void stats_of_group(struct json_writer *w, const char *key, enum counter_group group,
                           const struct numbers *numbers)
{
    json_put_object(w, key);
    counters_json(w, group, numbers);
    json_end_object(w);
}

static void stats_of_store(struct json_writer *w, const struct numbers *numbers)
{
    if (!numbers->has_store) {
        json_put_null(w, "store");
        return;
    }
    json_put_object(w, "store");
    json_put_boolean(w, "read_only", numbers->store.is_read_only);
    json_put_string_or_null(w, "reason",
                            numbers->store.is_read_only ? numbers->store.reason : NULL);
    counters_json(w, COUNTERS_STORE, numbers);
    json_end_object(w);
}

enum err_code calls_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    json_begin_object(w);
    json_put_string(w, "version", KOTA_VERSION);
    json_put_array(w, "calls");
    for (size_t i = 0; i < api_route_count; i++) {
        json_begin_object(w);
        json_put_string(w, "name", api_routes[i].name);
        json_put_string(w, "method", route_method_word(api_routes[i].http.method));
        json_put_string(w, "path", api_routes[i].http.pattern);
        json_put_string(w, "summary", api_routes[i].summary);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(calls_get, 0, CALL_NEEDS_NOTHING)

enum err_code limits_get_answer(struct call *call, struct err *err)
{
    struct numbers numbers = {.limits = *call_limits(call)};

    if (options_open_query(call, NULL, err))
        return err->code;
    if (call->api->sand) { /* the device has its own defaults */
        sand_stats(call->api->sand, &numbers.sand);
        numbers.limits.sand.device = numbers.sand.device.config;
    }
    json_begin_object(&call->out);
    counters_json(&call->out, COUNTERS_LIMITS, &numbers);
    json_end_object(&call->out);
    return ERR_OK;
}
API_HANDLER(limits_get, 0, CALL_NEEDS_NOTHING)

/* Of what is done: 0 to 1, a thousandth is enough. */
static double rounded(double share)
{
    return floor(share * 1000) / 1000;
}

static void stats_of_builds(struct json_writer *w, struct world *world)
{
    struct build_state builds[BUILDS_LISTED];
    size_t count = builds_list(world_builds(world), builds, BUILDS_LISTED);

    json_put_array(w, "builds");
    for (size_t i = 0; i < count && i < BUILDS_LISTED; i++) {
        json_begin_object(w);
        json_put_string(w, "locale", builds[i].locale);
        json_put_string(w, "layer", builds[i].layer);
        json_put_string(w, "kind", build_kind_name[builds[i].kind]);
        if (builds[i].polygons > 0)
            json_put_integer(w, "polygons", builds[i].polygons);
        else
            json_put_null(w, "polygons");
        json_put_number(w, "done", rounded(builds[i].done));
        json_put_integer(w, "elapsed_ms", (uint64_t)builds[i].elapsed_ms);
        json_end_object(w);
    }
    json_end_array(w);
}

static void stats_of_loops(struct json_writer *w, const struct api *api)
{
    const struct http_server *server = atomic_load(&api->server);
    const size_t count = server ? http_server_loops(server) : 0;
    struct numbers loop = {.http = {0}};

    json_put_array(w, "loops");
    for (size_t i = 0; i < count; i++) {
        http_server_loop_counters(server, i, &loop.http);
        json_begin_object(w);
        counters_json(w, COUNTERS_LOOPS, &loop);
        json_end_object(w);
    }
    json_end_array(w);
}

static void stats_of_http(struct json_writer *w, const struct numbers *numbers)
{
    json_put_object(w, "http");
    counters_json(w, COUNTERS_HTTP, numbers);
    json_put_object(w, "streams_ended");
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        json_put_integer(w, numbers_stream_end((enum http_stream_end)i),
                         numbers->http.streams_ended[i]);
    json_end_object(w);
    json_end_object(w);
}

static void stats_of_device(struct json_writer *w, const struct numbers *numbers)
{
    const struct device_info *device = &numbers->sand.device;

    json_put_object(w, "device");
    json_put_string(w, "state",
                    device->engine[0] != '\0' ? "open"
                    : device->is_coming       ? "closed"
                                              : "none");
    json_put_string_or_null(w, "engine", device->engine);
    json_put_string_or_null(w, "name", device->engine[0] != '\0' ? device->name : NULL);
    json_put_boolean(w, "software", device->is_software);
    json_put_string_or_null(w, "reason", device->reason);
    counters_json(w, COUNTERS_DEVICE, numbers);
    json_put_string(w, "material", material_name(device->config.material));
    json_put_integer(w, "granules_max", device->config.granules_max);
    json_end_object(w);
}

/* Times of the passes of a substep; null on the C engine, which has none. */
static void stats_of_passes(struct json_writer *w, const struct numbers *numbers, int scale)
{
    static const char *const keys[SAND_PASS_COUNT] = {
#define PASS_KEY(name, word) word "_ms",
        SAND_PASSES(PASS_KEY)
#undef PASS_KEY
    };

    if (strcmp(numbers->sand.device.engine, "gl") != 0) {
        json_put_null(w, "passes");
        return;
    }
    json_put_object(w, "passes");
    for (int pass = 0; pass < SAND_PASS_COUNT; pass++) {
        json_put_number(w, keys[pass], numbers->sand.patches.pass_ms[scale][pass]);
    }
    json_end_object(w);
}

static void stats_of_scale(struct json_writer *w, const struct numbers *numbers, int scale)
{
    const struct manager_stats *patches = &numbers->sand.patches;

    json_put_object(w, scale_name((enum granular_scale)scale));
    json_put_boolean(w, "pool", numbers->sand.has_pool[scale]);
    json_put_integer(w, "slots", patches->slots[scale]);
    json_put_integer(w, "used", patches->used[scale]);
    json_put_integer(w, "steps", patches->steps[scale]);
    json_put_integer(w, "particle_steps", patches->particle_steps[scale]);
    numbers_put_phases(w, patches->phase_ms[scale]);
    stats_of_passes(w, numbers, scale);
    json_end_object(w);
}

static void stats_of_sand(struct json_writer *w, const struct numbers *numbers)
{
    const struct manager_stats *patches = &numbers->sand.patches;

    json_put_object(w, "patches");
    stats_of_device(w, numbers);
    counters_json(w, COUNTERS_PATCHES, numbers);
    json_put_object(w, "states");
    for (int state = 0; state < PATCH_STATES; state++)
        json_put_integer(w, patch_state_name((enum patch_state)state), patches->states[state]);
    json_end_object(w);
    json_put_object(w, "scales");
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        stats_of_scale(w, numbers, scale);
    json_end_object(w);
    json_end_object(w);
}

static void put_nodes(struct json_writer *w, struct world *world)
{
    struct cluster_node *nodes = NULL;
    struct err err = {.code = ERR_OK};
    size_t count = 0;

    if (cluster_nodes(world_log(world), &nodes, &count, &err) != ERR_OK)
        count = 0;
    json_put_array(w, "nodes");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(w);
        json_put_string(w, "id", nodes[i].id);
        json_put_string_or_null(w, "url", nodes[i].url);
        json_put_string_or_null(w, "locales", nodes[i].locales);
        json_put_integer(w, "patch_slots", nodes[i].patch_slots);
        json_put_integer(w, "patches", nodes[i].patches);
        json_end_object(w);
    }
    json_end_array(w);
    free(nodes);
}

static void stats_of_cluster(struct json_writer *w, struct api *api, const struct numbers *numbers)
{
    const struct world_shared *shared = &numbers->shared;

    if (!numbers->is_shared) {
        json_put_null(w, "cluster");
        return;
    }
    json_put_object(w, "cluster");
    json_put_string_or_null(w, "identity", shared->identity);
    json_put_string(w, "node", shared->node);
    json_put_boolean(w, "away", numbers->log.is_away);
    node_put_staleness(w, numbers->staleness_s);
    json_put_string_or_null(w, "reason", shared->reason);
    counters_json(w, COUNTERS_CLUSTER, numbers);
    put_nodes(w, api->world);
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
    json_put_string(w, "version", KOTA_VERSION);
    json_put_string(w, "state", api_state_word(call->api));
    json_put_number(w, "uptime_s", numbers.uptime_s);
    json_put_integer(w, "resident_bytes", numbers.resident_bytes);
    json_put_string(w, "simd", simd_level_name(simd_level()));
    stats_of_group(w, "world", COUNTERS_WORLD, &numbers);
    stats_of_builds(w, call->api->world);
    stats_of_store(w, &numbers);
    stats_of_cluster(w, call->api, &numbers);
    json_put_integer(w, "items_in_flight", numbers.items_in_flight);
    stats_of_group(w, "tile_cache", COUNTERS_TILES, &numbers);
    stats_of_group(w, "light_cache", COUNTERS_LIGHTS, &numbers);
    stats_of_group(w, "watches", COUNTERS_WATCHES, &numbers);
    stats_of_sand(w, &numbers);
    stats_of_http(w, &numbers);
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
    json_put_string(&call->out, "status", "ok");
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
