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

#include <stdlib.h>
#include <string.h>

static void put(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_integer(w, value);
}

static void stats_of_group(struct json_writer *w, const char *key, enum counter_group group,
                           const struct numbers *numbers)
{
    json_key(w, key);
    json_begin_object(w);
    counters_json(w, group, numbers);
    json_end_object(w);
}

static void stats_of_store(struct json_writer *w, const struct numbers *numbers)
{
    json_key(w, "store");
    if (!numbers->has_store) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    json_key(w, "read_only");
    json_boolean(w, numbers->store.is_read_only);
    json_key(w, "reason");
    json_string_or_null(w, numbers->store.is_read_only ? numbers->store.reason : NULL);
    counters_json(w, COUNTERS_STORE, numbers);
    json_end_object(w);
}

static void put_string(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_string(w, text);
}

enum err_code calls_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    json_begin_object(w);
    put_string(w, "version", KOTA_VERSION);
    json_key(w, "calls");
    json_begin_array(w);
    for (size_t i = 0; i < api_route_count; i++) {
        json_begin_object(w);
        put_string(w, "name", api_routes[i].name);
        put_string(w, "method", route_method_word(api_routes[i].http.method));
        put_string(w, "path", api_routes[i].http.pattern);
        put_string(w, "summary", api_routes[i].summary);
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

static void stats_of_loops(struct json_writer *w, const struct api *api)
{
    const struct http_server *server = atomic_load(&api->server);
    const size_t count = server ? http_server_loops(server) : 0;
    struct numbers loop = {.http = {0}};

    json_key(w, "loops");
    json_begin_array(w);
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
    json_key(w, "http");
    json_begin_object(w);
    counters_json(w, COUNTERS_HTTP, numbers);
    json_key(w, "streams_ended");
    json_begin_object(w);
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        put(w, numbers_stream_end((enum http_stream_end)i), numbers->http.streams_ended[i]);
    json_end_object(w);
    json_end_object(w);
}

static void stats_of_device(struct json_writer *w, const struct numbers *numbers)
{
    const struct device_info *device = &numbers->sand.device;

    json_key(w, "device");
    json_begin_object(w);
    json_key(w, "state");
    json_string(w, device->engine[0] != '\0' ? "open" : device->is_coming ? "closed" : "none");
    json_key(w, "engine");
    json_string_or_null(w, device->engine);
    json_key(w, "name");
    json_string_or_null(w, device->engine[0] != '\0' ? device->name : NULL);
    json_key(w, "software");
    json_boolean(w, device->is_software);
    json_key(w, "reason");
    json_string_or_null(w, device->reason);
    counters_json(w, COUNTERS_DEVICE, numbers);
    json_key(w, "material");
    json_string(w, material_name(device->config.material));
    put(w, "granules_max", device->config.granules_max);
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

    json_key(w, "passes");
    if (strcmp(numbers->sand.device.engine, "gl") != 0) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    for (int pass = 0; pass < SAND_PASS_COUNT; pass++) {
        json_key(w, keys[pass]);
        json_number(w, numbers->sand.patches.pass_ms[scale][pass]);
    }
    json_end_object(w);
}

static void stats_of_scale(struct json_writer *w, const struct numbers *numbers, int scale)
{
    const struct manager_stats *patches = &numbers->sand.patches;

    json_key(w, scale_name((enum granular_scale)scale));
    json_begin_object(w);
    json_key(w, "pool");
    json_boolean(w, numbers->sand.has_pool[scale]);
    put(w, "slots", patches->slots[scale]);
    put(w, "used", patches->used[scale]);
    put(w, "steps", patches->steps[scale]);
    put(w, "particle_steps", patches->particle_steps[scale]);
    numbers_put_phases(w, patches->phase_ms[scale]);
    stats_of_passes(w, numbers, scale);
    json_end_object(w);
}

static void stats_of_sand(struct json_writer *w, const struct numbers *numbers)
{
    const struct manager_stats *patches = &numbers->sand.patches;

    json_key(w, "patches");
    json_begin_object(w);
    stats_of_device(w, numbers);
    counters_json(w, COUNTERS_PATCHES, numbers);
    json_key(w, "states");
    json_begin_object(w);
    for (int state = 0; state < PATCH_STATES; state++)
        put(w, patch_state_name((enum patch_state)state), patches->states[state]);
    json_end_object(w);
    json_key(w, "scales");
    json_begin_object(w);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        stats_of_scale(w, numbers, scale);
    json_end_object(w);
    json_end_object(w);
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_string_or_null(w, text);
}

static void put_nodes(struct json_writer *w, struct world *world)
{
    struct cluster_node *nodes = NULL;
    struct err err = {.code = ERR_OK};
    size_t count = 0;

    if (cluster_nodes(world_log(world), &nodes, &count, &err) != ERR_OK)
        count = 0;
    json_key(w, "nodes");
    json_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(w);
        json_key(w, "id");
        json_string(w, nodes[i].id);
        put_text(w, "url", nodes[i].url);
        put_text(w, "locales", nodes[i].locales);
        put(w, "patch_slots", nodes[i].patch_slots);
        put(w, "patches", nodes[i].patches);
        json_end_object(w);
    }
    json_end_array(w);
    free(nodes);
}

static void stats_of_cluster(struct json_writer *w, struct api *api, const struct numbers *numbers)
{
    const struct world_shared *shared = &numbers->shared;

    json_key(w, "cluster");
    if (!numbers->is_shared) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    put_text(w, "identity", shared->identity);
    json_key(w, "node");
    json_string(w, shared->node);
    json_key(w, "away");
    json_boolean(w, numbers->log.is_away);
    node_put_staleness(w, numbers->staleness_s);
    put_text(w, "reason", shared->reason);
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
    json_key(w, "version");
    json_string(w, KOTA_VERSION);
    json_key(w, "state");
    json_string(w, api_state_word(call->api));
    json_key(w, "uptime_s");
    json_number(w, numbers.uptime_s);
    put(w, "resident_bytes", numbers.resident_bytes);
    json_key(w, "simd");
    json_string(w, simd_level_name(simd_level()));
    stats_of_group(w, "world", COUNTERS_WORLD, &numbers);
    stats_of_store(w, &numbers);
    stats_of_cluster(w, call->api, &numbers);
    put(w, "items_in_flight", numbers.items_in_flight);
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
