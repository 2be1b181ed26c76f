/*
 * GET /metrics  ->  Prometheus text (exposition format 0.0.4)
 *
 * Names start with kota_, base units are seconds and bytes. Labels hold only what this program
 * bounds: routes as they stand in routes[], classes of status, reasons why streams end, states and
 * scales of patches, and of the locales the first WORLD_REVISIONS_MAX by id. docs/metrics.md is
 * written from this text (tests/api/test_metrics.py --write).
 *
 * The file is read on a loop, so nothing here takes longer than the formatting: all numbers are
 * counters that somebody keeps anyway.
 */
#include "api/calls.h"

#include "api/numbers.h"
#include "api/options.h"
#include "api/routes.h"
#include "api/text.h"
#include "terrain/simd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct metric {
    const char *name, *type, *help;
    double value;
};

static void put_plain(struct call *call, const struct metric *metrics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_append(call, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", metrics[i].name,
                    metrics[i].help, metrics[i].name, metrics[i].type, metrics[i].name,
                    metrics[i].value);
}

/* Of a metric with labels: each value follows by put_labelled. */
static void put_head(struct call *call, const char *name, const char *type, const char *help)
{
    text_append(call, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_labelled(struct call *call, const char *name, const char *label, const char *is,
                         double value)
{
    text_append(call, "%s{%s=\"%s\"} %.17g\n", name, label, is, value);
}

static void put_process(struct call *call, const struct numbers *n)
{
    struct err unready;
    const struct metric metrics[] = {
        {"kota_uptime_seconds", "gauge", "Time since the start.", n->uptime_s},
        {"kota_start_time_seconds", "gauge", "The start, in seconds since 1970.", n->started_s},
        {"kota_ready", "gauge", "1 while /readyz answers 200.",
         api_readiness(call->api, &unready) == ERR_OK},
        {"kota_cpu_seconds_total", "counter", "Processor time of all threads.", n->cpu_s},
        {"kota_resident_memory_bytes", "gauge", "Resident memory of the process.",
         (double)n->resident_bytes},
        {"kota_open_files", "gauge", "Open file descriptors; 0 before Linux 6.2.",
         (double)n->files},
        {"kota_open_files_max", "gauge", "File descriptors that may be open.",
         (double)n->files_max},
    };

    put_head(call, "kota_build_info", "gauge",
             "1; the version that runs, and the vector instructions that it uses.");
    text_append(call, "kota_build_info{version=\"%s\",simd=\"%s\"} 1\n", KOTA_VERSION,
                simd_level_name(simd_level()));
    put_head(call, "kota_state", "gauge", "1 for what the daemon does now, 0 for the others.");
    for (int state = API_LOADING; state <= API_DRAINING; state++)
        put_labelled(call, "kota_state", "state", api_state_name((enum api_state)state),
                     atomic_load(&call->api->state) == state);
    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_world(struct call *call, const struct numbers *n)
{
    const struct api_limits *limits = call_limits(call);
    const struct metric metrics[] = {
        {"kota_locales", "gauge", "Locales in the world.", (double)n->world.locales},
        {"kota_layers", "gauge", "Layers of all locales.", (double)n->world.layers},
        {"kota_world_memory_bytes", "gauge", "Memory of all layers.",
         (double)n->world.memory_bytes},
        {"kota_world_memory_bytes_max", "gauge", "Where uploads are refused (--max-world-bytes).",
         (double)limits->world.bytes_max},
        {"kota_uploads_memory_bytes", "gauge", "Layers that are built and not yet published.",
         (double)n->upload_bytes},
        {"kota_mesh_layers", "gauge", "Layers that are meshes.", (double)n->world.mesh_layers},
        {"kota_mesh_polygons", "gauge", "Convex polygons of all meshes.",
         (double)n->world.mesh_polygons},
        {"kota_mesh_memory_bytes", "gauge", "Memory of all meshes.", (double)n->world.mesh_bytes},
        {"kota_revisions_total", "counter", "Snapshots of the world published.",
         (double)n->world.publications},
        {"kota_changes_total", "counter", "Changes handled by the writer.",
         (double)n->world.changes},
        {"kota_moves_total", "counter", "Moves of layers.", (double)n->world.moves},
        {"kota_changes_refused_total", "counter", "Changes that the writer refused.",
         (double)n->world.refused},
        {"kota_polygon_edits_total", "counter", "Edits of meshes' polygons that were made.",
         (double)n->world.polygon_edits},
        {"kota_mesh_rebuilds_total", "counter",
         "Trees of meshes built anew after edits, behind the scenes.", (double)n->world.rebuilds},
        {"kota_edits_total", "counter", "Edits of samples that were made.", (double)n->world.edits},
        {"kota_edit_samples_total", "counter", "Samples in the rectangles of those edits.",
         (double)n->world.edit_samples},
        {"kota_idempotent_repeats_total", "counter",
         "Writes whose Idempotency-Key was known: answered again, not made again.",
         (double)n->world.repeats},
        {"kota_locales_damaged", "gauge", "Locales that could not be loaded.",
         (double)n->world.damaged},
        {"kota_changes_queued", "gauge", "Changes that wait for the writer.",
         (double)n->world.queued},
        {"kota_changes_queued_max", "gauge", "Where writes are refused (--max-queued-changes).",
         (double)limits->world.queue_max},
        {"kota_snapshots_retired", "gauge", "Old snapshots that some loop may still read.",
         (double)n->world.retired},
        {"kota_items_in_flight", "gauge", "Items of the batches that are answered now.",
         (double)n->items_in_flight},
        {"kota_snapshots_reclaimed_total", "counter", "Old snapshots that were freed.",
         (double)n->world.reclaimed},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_revisions(struct call *call)
{
    struct world_revision revisions[WORLD_REVISIONS_MAX];
    size_t count = world_revisions(call->api->world, revisions);

    put_head(call, "kota_locale_revision", "gauge",
             "Revision of a locale, of the first 100 by id.");
    for (size_t i = 0; i < count; i++) /* an id needs no escaping */
        put_labelled(call, "kota_locale_revision", "locale", revisions[i].locale_id,
                     (double)revisions[i].revision);
}

static void put_tiles(struct call *call, const struct tile_cache_stats *tiles)
{
    const struct metric metrics[] = {
        {"kota_tile_cache_hits_total", "counter", "Tiles answered from the cache.",
         (double)tiles->hits},
        {"kota_tile_cache_misses_total", "counter", "Tiles that were read or encoded.",
         (double)tiles->misses},
        {"kota_tile_cache_evicted_total", "counter", "Tiles let go to keep the cache's bound.",
         (double)tiles->evicted},
        {"kota_tile_cache_tiles", "gauge", "Tiles in the cache.", (double)tiles->entries},
        {"kota_tile_cache_bytes", "gauge", "Bytes of the tiles in the cache.",
         (double)tiles->bytes},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_lights(struct call *call, const struct light_cache_stats *lights)
{
    const struct metric metrics[] = {
        {"kota_light_cache_hits_total", "counter",
         "Questions to a mesh that a light's tree answered.", (double)lights->hits},
        {"kota_light_cache_misses_total", "counter", "Questions to a mesh that rays answered.",
         (double)lights->misses},
        {"kota_light_cache_builds_total", "counter", "Trees that were made for a light.",
         (double)lights->builds},
        {"kota_light_cache_refused_total", "counter",
         "Trees that could not be made, or were larger than the bound.", (double)lights->refused},
        {"kota_light_cache_evicted_total", "counter", "Trees let go to keep the cache's bound.",
         (double)lights->evicted},
        {"kota_light_cache_lights", "gauge", "Lights over meshes that are remembered.",
         (double)lights->lights},
        {"kota_light_cache_trees", "gauge", "Trees in the cache.", (double)lights->trees},
        {"kota_light_cache_bytes", "gauge", "Bytes of the trees in the cache.",
         (double)lights->bytes},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_http(struct call *call, const struct http_counters *http)
{
    const struct http_limits *limits = &call_limits(call)->http;
    const struct metric metrics[] = {
        {"kota_loops", "gauge", "Event loops.", (double)http->loops},
        {"kota_connections", "gauge", "Open connections.", (double)http->open},
        {"kota_connections_max", "gauge", "Where connections are refused (--max-connections).",
         (double)limits->connections_max},
        {"kota_request_bodies_bytes", "gauge", "Bodies of the requests under way.",
         (double)http->body_bytes},
        {"kota_connections_accepted_total", "counter", "Connections accepted.",
         (double)http->accepted},
        {"kota_connections_rejected_total", "counter", "Connections over a limit.",
         (double)http->rejected},
        {"kota_received_bytes_total", "counter", "Bytes read from clients.",
         (double)http->bytes_in},
        {"kota_sent_bytes_total", "counter", "Bytes written to clients.", (double)http->bytes_out},
        {"kota_timeouts_total", "counter", "Connections closed over time.", (double)http->timeouts},
        {"kota_parse_errors_total", "counter", "Requests that were not HTTP.",
         (double)http->parse_errors},
        {"kota_write_errors_total", "counter", "Answers that could not be written.",
         (double)http->write_errors},
        {"kota_shed_total", "counter", "Requests refused because no worker had time.",
         (double)http->shed},
        {"kota_workers", "gauge", "Threads for what would hold a loop.", (double)http->workers},
        {"kota_workers_busy", "gauge", "Workers that run a request.", (double)http->workers_busy},
        {"kota_queued_requests", "gauge", "Requests that wait for a worker.", (double)http->queued},
        {"kota_queue_wait_seconds", "gauge",
         "Time that a large request would wait for a worker, as expected.",
         (double)http->queue_wait_ms * 1e-3},
        {"kota_streams", "gauge", "Open event streams.", (double)http->streams},
        {"kota_streams_max", "gauge", "Where event streams are refused (--max-streams).",
         (double)limits->streams_max},
        {"kota_streams_opened_total", "counter", "Event streams opened.",
         (double)http->streams_opened},
        {"kota_streams_rejected_total", "counter", "Event streams over a limit.",
         (double)http->streams_rejected},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_sand(struct call *call, const struct numbers *n)
{
    const struct manager_stats *patches = &n->sand.patches;
    uint64_t used = 0, slots = 0, particle_steps = 0;

    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        used += patches->used[scale];
        slots += patches->slots[scale];
        particle_steps += patches->particle_steps[scale];
    }
    const struct metric metrics[] = {
        {"kota_patches_device", "gauge", "1 while there is a device that simulates patches.",
         n->sand.device.engine[0] != '\0'},
        {"kota_patches_device_rebuilds_total", "counter", "Devices made anew after a loss.",
         n->sand.device.rebuilds},
        {"kota_patches_slots", "gauge", "Patches that can be in use at once.", (double)slots},
        {"kota_patches_used", "gauge", "Patches in use.", (double)used},
        {"kota_patches_made_total", "counter", "Patches that were made.", (double)patches->made},
        {"kota_patches_written_total", "counter", "Patches that were written back.",
         (double)patches->written},
        {"kota_patches_discarded_total", "counter", "Patches that were discarded.",
         (double)patches->discarded},
        {"kota_patches_failed_total", "counter", "Patches that failed.", (double)patches->failed},
        {"kota_patches_particle_steps_total", "counter", "Spheres times substeps.",
         (double)particle_steps},
        {"kota_sand_orders_total", "counter", "Orders that the sand thread took.",
         (double)n->sand.orders},
        {"kota_sand_ticks_total", "counter", "Times that the sand thread looked at its patches.",
         (double)n->sand.ticks},
        {"kota_shell_cache_bytes", "gauge", "Shells of models that are kept.",
         (double)n->shells.bytes},
        {"kota_shell_cache_hits_total", "counter", "Shells that were there already.",
         (double)n->shells.hits},
        {"kota_shell_cache_built_total", "counter", "Shells that were made.",
         (double)n->shells.built},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
}

static void put_sand_labelled(struct call *call, const struct manager_stats *patches)
{
    static const char steps[] = "kota_patches_steps_total";
    static const char phase_seconds[] = "kota_patches_phase_seconds";
    static const char *const phases[SAND_PHASE_COUNT] = {"integrate", "grid", "force", "depth"};

    put_head(call, "kota_patches", "gauge", "Patches that are known, by state.");
    for (int state = 0; state < PATCH_STATES; state++)
        put_labelled(call, "kota_patches", "state", patch_state_name((enum patch_state)state),
                     patches->states[state]);
    put_head(call, steps, "counter", "Substeps of all patches of a scale together.");
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        put_labelled(call, steps, "scale", scale_name((enum granular_scale)scale),
                     (double)patches->steps[scale]);
    put_head(call, phase_seconds, "gauge",
             "Time that each part of a substep of all patches took, as last measured.");
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        for (int phase = 0; phase < SAND_PHASE_COUNT; phase++)
            text_append(call, "%s{scale=\"%s\",phase=\"%s\"} %.9g\n", phase_seconds,
                        scale_name((enum granular_scale)scale), phases[phase],
                        (double)patches->phase_ms[scale][phase] * 1e-3);
}

static void put_stream_ends(struct call *call, const struct http_counters *http)
{
    static const char name[] = "kota_streams_ended_total";

    text_append(call, "# HELP %s Event streams that ended, by reason.\n# TYPE %s counter\n", name,
                name);
    for (int i = 0; i < HTTP_STREAM_ENDS; i++)
        text_append(call, "%s{reason=\"%s\"} %llu\n", name,
                    numbers_stream_end((enum http_stream_end)i),
                    (unsigned long long)http->streams_ended[i]);
}

struct histogram {
    const char *name, *help;
    const char *labels;     /* "" or `a="b",` */
    const uint64_t *counts; /* bucket i: below first_s · factor^i; the last one is open */
    size_t buckets;
    double first_s, factor;
    uint64_t us_sum;
};

static void put_buckets(struct call *call, const struct histogram *h)
{
    int labels_length = (int)strlen(h->labels);
    uint64_t below = 0;

    for (size_t i = 0; i < h->buckets; i++) {
        below += h->counts[i];
        if (i + 1 < h->buckets)
            text_append(call, "%s_bucket{%sle=\"%.9g\"} %llu\n", h->name, h->labels,
                        h->first_s * pow(h->factor, (double)i), (unsigned long long)below);
    }
    text_append(call, "%s_bucket{%sle=\"+Inf\"} %llu\n", h->name, h->labels,
                (unsigned long long)below);
    if (labels_length == 0) {
        text_append(call, "%s_sum %.9g\n%s_count %llu\n", h->name, (double)h->us_sum * 1e-6,
                    h->name, (unsigned long long)below);
        return;
    }
    labels_length--; /* the comma */
    text_append(call, "%s_sum{%.*s} %.9g\n%s_count{%.*s} %llu\n", h->name, labels_length, h->labels,
                (double)h->us_sum * 1e-6, h->name, labels_length, h->labels,
                (unsigned long long)below);
}

static void put_histogram(struct call *call, const struct histogram *h)
{
    put_head(call, h->name, "histogram", h->help);
    put_buckets(call, h);
}

static void put_latency(struct call *call, const struct http_counters *http)
{
    const struct histogram requests = {
        .name = "kota_http_request_duration_seconds",
        .help = "Time from a complete request to its encoded answer, "
                "without what it waited for a revision.",
        .labels = "",
        .counts = http->latency_count,
        .buckets = sizeof http->latency_count / sizeof *http->latency_count,
        .first_s = 8e-6,
        .factor = 2,
        .us_sum = http->latency_us_sum,
    };
    const struct histogram turns = {
        .name = "kota_loop_turn_duration_seconds",
        .help = "Time from the first input that a loop finds until it waits again: "
                "what comes meanwhile waits as long.",
        .labels = "",
        .counts = http->turn_count,
        .buckets = sizeof http->turn_count / sizeof *http->turn_count,
        .first_s = 8e-6,
        .factor = 2,
        .us_sum = http->turn_us_sum,
    };

    put_histogram(call, &requests);
    put_histogram(call, &turns);
}

static void put_changes(struct call *call, const struct world_stats *world)
{
    const struct histogram changes = {
        .name = "kota_change_duration_seconds",
        .help =
            "Time from the writer's queue until changes were durable and published, or refused.",
        .labels = "",
        .counts = world->change_count,
        .buckets = WORLD_CHANGE_BUCKETS,
        .first_s = 64e-6,
        .factor = 2,
        .us_sum = world->change_us_sum,
    };

    put_histogram(call, &changes);
}

static void put_store(struct call *call, const struct store_stats *store)
{
    const struct metric metrics[] = {
        {"kota_store_read_only", "gauge", "1 after an error: the store takes no write.",
         store->is_read_only},
        {"kota_store_database_bytes", "gauge", "The database without its WAL.",
         (double)store->database_bytes},
        {"kota_store_wal_bytes", "gauge", "The write-ahead log.", (double)store->wal_bytes},
        {"kota_store_wal_bytes_max", "gauge", "Where writes are refused until it shrinks.",
         (double)store->wal_bytes_max},
        {"kota_store_checkpoints_total", "counter", "Checkpoints of the WAL.",
         (double)store->checkpoints},
        {"kota_store_checkpoints_blocked_total", "counter",
         "Checkpoints that a reader of the database kept from finishing.",
         (double)store->checkpoints_blocked},
        {"kota_store_behind_tiles", "gauge", "Tiles whose edits are in the log alone.",
         (double)store->behind_tiles},
        {"kota_store_behind_bytes", "gauge", "Samples in the log that are not yet in tiles.",
         (double)store->behind_bytes},
        {"kota_store_commits_total", "counter", "Transactions made durable.",
         (double)store->commits},
    };
    const struct histogram histogram = {
        .name = "kota_store_commit_duration_seconds",
        .help = "Time that COMMIT took.",
        .counts = store->commit_count,
        .buckets = sizeof store->commit_count / sizeof *store->commit_count,
        .first_s = 64e-6,
        .factor = 2,
        .labels = "",
        .us_sum = store->commit_us_sum,
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
    put_histogram(call, &histogram);
}

static void put_append(struct call *call, const struct cluster_stats *log)
{
    const struct histogram histogram = {
        .name = "kota_cluster_append_duration_seconds",
        .help = "Time until the shared log had acknowledged an append, or refused it.",
        .counts = log->append_count,
        .buckets = CLUSTER_APPEND_BUCKETS,
        .first_s = 64e-6,
        .factor = 2,
        .labels = "",
        .us_sum = log->append_us_sum,
    };

    put_histogram(call, &histogram);
}

/* With --cluster. */
static void put_cluster(struct call *call, const struct numbers *n)
{
    const struct cluster_stats *log = &n->log;
    const struct metric metrics[] = {
        {"kota_cluster_away", "gauge", "1 while the shared log cannot be reached.", log->is_away},
        {"kota_cluster_staleness_seconds", "gauge",
         "Time since it was last known that all of the shared log is here; +Inf: never yet.",
         n->staleness_s},
        {"kota_cluster_lag_revisions", "gauge",
         "The greatest distance of a locale behind the shared log, as of the last look.",
         (double)n->shared.lag},
        {"kota_cluster_locales", "gauge", "Locales that are followed, models as one.",
         (double)n->shared.followed},
        {"kota_cluster_locales_behind", "gauge", "Those that are behind the shared log.",
         (double)n->shared.behind},
        {"kota_cluster_stuck", "gauge",
         "1 when something cannot be followed, or the log is not that of the data directory.",
         n->shared.reason[0] != '\0'},
        {"kota_cluster_entries_applied_total", "counter", "Entries of other nodes applied here.",
         (double)n->shared.entries_applied},
        {"kota_cluster_appends_total", "counter", "Transactions that the shared log has taken.",
         (double)log->appends},
        {"kota_cluster_entries_total", "counter", "Entries in those transactions.",
         (double)log->entries},
        {"kota_cluster_conflicts_total", "counter",
         "Transactions refused because another node was faster.", (double)log->conflicts},
        {"kota_cluster_races_lost_total", "counter", "Batches of changes made anew for that.",
         (double)n->shared.races_lost},
        {"kota_cluster_fenced_total", "counter", "Transactions refused for a stale fence.",
         (double)log->fenced},
        {"kota_cluster_in_doubt_total", "counter", "Connections lost under an append.",
         (double)log->in_doubt},
        {"kota_cluster_in_doubt_retries_total", "counter", "Appends sent again after that.",
         (double)log->retried},
        {"kota_cluster_connects_total", "counter", "Connections made to the engine.",
         (double)log->connects},
        {"kota_cluster_losses_total", "counter", "Connections lost.", (double)log->losses},
        {"kota_cluster_notifications_total", "counter", "Notifications of others' appends.",
         (double)log->notifications},
        {"kota_cluster_snapshots_made_total", "counter", "Snapshots that this node has made.",
         (double)n->shared.snapshots_made},
        {"kota_cluster_snapshots_taken_total", "counter",
         "Snapshots that have taken the place of a locale here.",
         (double)n->shared.snapshots_taken},
        {"kota_cluster_divergences_total", "counter",
         "Locales of which the log had lost what was applied here.", (double)n->shared.divergences},
        {"kota_cluster_leases_held", "gauge", "Leases that this node holds.",
         (double)log->leases_held},
        {"kota_cluster_leases_taken_total", "counter", "Leases that it was given.",
         (double)log->leases_taken},
        {"kota_cluster_leases_refused_total", "counter", "Leases that another node held.",
         (double)log->leases_refused},
        {"kota_cluster_leases_lost_total", "counter", "Leases that ran out under it.",
         (double)log->leases_lost},
    };

    put_plain(call, metrics, sizeof metrics / sizeof *metrics);
    put_append(call, log);
}

static void put_routes(struct call *call, struct http_server *server)
{
    put_head(call, "kota_http_requests_total", "counter",
             "Requests by route and class of status; route is empty where none matched.");
    for (size_t i = 0; server && i <= api_route_count; i++) {
        struct http_route_counters counters;
        bool is_known = i < api_route_count;

        http_server_route_counters(server, i, &counters);
        for (int class = 2; class <= 5; class ++)
            text_append(call,
                        "kota_http_requests_total{method=\"%s\",route=\"%s\",class=\"%dxx\"} "
                        "%llu\n",
                        is_known ? route_method_word(api_routes[i].http.method) : "",
                        is_known ? api_routes[i].http.pattern : "", class,
                        (unsigned long long)counters.by_class[class]);
    }
}

/* The routes that were asked: the others would be a thousand lines of zeros. */
static void put_route_latency(struct call *call, struct http_server *server)
{
    static const char name[] = "kota_http_route_duration_seconds";

    put_head(call, name, "histogram",
             "The same as kota_http_request_duration_seconds, of each route that was asked.");
    for (size_t i = 0; server && i <= api_route_count; i++) {
        struct http_route_counters counters;
        char labels[128];
        struct histogram histogram = {
            .name = name,
            .labels = labels,
            .counts = counters.latency_count,
            .buckets = sizeof counters.latency_count / sizeof *counters.latency_count,
            .first_s = 8e-6,
            .factor = 4,
        };
        uint64_t asked = 0;

        http_server_route_counters(server, i, &counters);
        histogram.us_sum = counters.latency_us_sum;
        for (size_t bucket = 0; bucket < histogram.buckets; bucket++)
            asked += counters.latency_count[bucket];
        snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\",",
                 i < api_route_count ? route_method_word(api_routes[i].http.method) : "",
                 i < api_route_count ? api_routes[i].http.pattern : "");
        if (asked > 0)
            put_buckets(call, &histogram);
    }
}

enum err_code metrics_get_answer(struct call *call, struct err *err)
{
    struct numbers numbers;

    if (options_open_query(call, NULL, err))
        return err->code;
    numbers_read(call->api, &numbers);
    call_content_type(call, "text/plain; version=0.0.4; charset=utf-8");
    put_process(call, &numbers);
    put_world(call, &numbers);
    put_revisions(call);
    put_changes(call, &numbers.world);
    if (numbers.has_store)
        put_store(call, &numbers.store);
    if (numbers.is_shared)
        put_cluster(call, &numbers);
    put_tiles(call, &numbers.tiles);
    put_lights(call, &numbers.lights);
    put_sand(call, &numbers);
    put_sand_labelled(call, &numbers.sand.patches);
    put_http(call, &numbers.http);
    put_stream_ends(call, &numbers.http);
    put_latency(call, &numbers.http);
    put_routes(call, atomic_load(&call->api->server));
    put_route_latency(call, atomic_load(&call->api->server));
    return ERR_OK;
}
API_HANDLER(metrics_get, 0, CALL_NEEDS_NOTHING)
