/*
 * The table of counters and limits.
 *
 * A row: group, place in struct numbers, name in JSON (NULL: not there), name in /metrics after
 * kota_, help. TOTAL only grows, GAUGE goes up and down, STAT is in JSON only. FIXED is a limit
 * without a flag; its place is the value. The type of the place gives the form: a bool or the
 * first byte of a text is 0 or 1 in /metrics; seconds in a double are milliseconds in JSON. The
 * meaning of each limit is in docs/limits.md, which a test compares with /v1/limits.
 */
#include "api/counters.h"

#include "api/calls/patch_wait_queue.h"
#include "api/impacts/impact_decode.h"
#include "api/maps/map_ground.h"
#include "api/text.h"
#include "sand/view/view.h"
#include "terrain/field/relax.h"
#include "terrain/instances/instance.h"
#include "terrain/mesh/mesh.h"
#include "terrain/plan_tile.h"
#include "terrain/sweep/move.h"
#include "view/view.h"

#include <stddef.h>

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "limits are read as uint64_t");

enum kind { COUNT, COUNT_32, COUNT_32_OR_NULL, REAL, GIVEN, CONSTANT };

struct counter {
    enum counter_group group;
    enum kind kind;
    size_t place;
    const char *key, *name, *type, *help;
};

#define KIND(place)                                                                                \
    _Generic(((struct numbers *)0)->place, uint64_t                                                \
             : COUNT, uint32_t                                                                     \
             : COUNT_32, double                                                                    \
             : REAL, bool                                                                          \
             : GIVEN, char                                                                         \
             : GIVEN)
#define AT(place) offsetof(struct numbers, place)
#define ROW(group, ...)                                                                            \
    {                                                                                              \
        COUNTERS_##group, __VA_ARGS__                                                              \
    }
#define TOTAL(group, place, key, name, help)                                                       \
    ROW(group, KIND(place), AT(place), key, "kota_" name, "counter", help)
#define GAUGE(group, place, key, name, help)                                                       \
    ROW(group, KIND(place), AT(place), key, "kota_" name, "gauge", help)
#define STAT(group, place, key) ROW(group, KIND(place), AT(place), key, NULL, NULL, NULL)
#define OR_NULL(group, place, key) ROW(group, COUNT_32_OR_NULL, AT(place), key, NULL, NULL, NULL)
#define FIXED(group, value, key) ROW(group, CONSTANT, (size_t)(value), key, NULL, NULL, NULL)

static const struct counter counters[] = {
    GAUGE(PROCESS, uptime_s, NULL, "uptime_seconds", "Time since the start."),
    GAUGE(PROCESS, started_s, NULL, "start_time_seconds", "The start, in seconds since 1970."),
    GAUGE(PROCESS, is_ready, NULL, "ready", "1 while /readyz answers 200."),
    TOTAL(PROCESS, cpu_s, NULL, "cpu_seconds_total", "Processor time of all threads."),
    GAUGE(PROCESS, resident_bytes, NULL, "resident_memory_bytes",
          "Resident memory of the process."),
    GAUGE(PROCESS, files, NULL, "open_files", "Open file descriptors; 0 before Linux 6.2."),
    GAUGE(PROCESS, files_max, NULL, "open_files_max", "File descriptors that may be open."),
    TOTAL(PROCESS, log_dropped, NULL, "log_lines_dropped_total",
          "Log lines that standard error did not take at once."),
    GAUGE(WORLD, world.locales, "locales", "locales", "Locales in the world."),
    GAUGE(WORLD, world.layers, "layers", "layers", "Layers of all locales."),
    GAUGE(WORLD, world.memory_bytes, "memory_bytes", "world_memory_bytes", "Memory of all layers."),
    GAUGE(WORLD, world.pins, "pins", "pins", "Pins of all locales."),
    GAUGE(WORLD, world.earlier_bytes, "earlier_bytes", "world_earlier_bytes",
          "Memory that only pins and earlier revisions hold."),
    GAUGE(WORLD, limits.world.bytes_max, NULL, "world_memory_bytes_max",
          "Where uploads are refused (--max-world-bytes)."),
    GAUGE(WORLD, upload_bytes, NULL, "uploads_memory_bytes",
          "Layers that are built and not yet published."),
    GAUGE(WORLD, world.mesh_layers, "mesh_layers", "mesh_layers", "Layers that are meshes."),
    GAUGE(WORLD, world.mesh_polygons, "mesh_polygons", "mesh_polygons",
          "Convex polygons of all meshes."),
    GAUGE(WORLD, world.mesh_bytes, "mesh_bytes", "mesh_memory_bytes", "Memory of all meshes."),
    TOTAL(WORLD, world.publications, "publications", "revisions_total",
          "Snapshots of the world published."),
    TOTAL(WORLD, world.changes, "changes", "changes_total", "Changes handled by the writer."),
    TOTAL(WORLD, world.moves, "moves", "moves_total", "Moves of layers."),
    TOTAL(WORLD, world.refused, "changes_refused", "changes_refused_total",
          "Changes that the writer refused."),
    TOTAL(WORLD, world.polygon_edits, NULL, "polygon_edits_total",
          "Edits of meshes' polygons that were made."),
    TOTAL(WORLD, world.rebuilds, NULL, "mesh_rebuilds_total",
          "Trees of meshes rebuilt after edits, in the background."),
    GAUGE(WORLD, world.builds, NULL, "mesh_builds",
          "Meshes that are being built: uploads, edits of polygons, rebuilt trees."),
    TOTAL(WORLD, world.edits, "edits", "edits_total", "Edits of samples that were made."),
    TOTAL(WORLD, world.edit_samples, "edit_samples", "edit_samples_total",
          "Samples in the rectangles of those edits."),
    TOTAL(WORLD, world.repeats, "idempotent_repeats", "idempotent_repeats_total",
          "Writes whose Idempotency-Key was known: answered again, not made again."),
    GAUGE(WORLD, world.damaged, "locales_damaged", "locales_damaged",
          "Locales that could not be loaded."),
    GAUGE(WORLD, world.queued, "changes_queued", "changes_queued",
          "Changes that wait for the writer."),
    GAUGE(WORLD, limits.world.queue_max, NULL, "changes_queued_max",
          "Where writes are refused (--max-queued-changes)."),
    GAUGE(WORLD, world.retired, "snapshots_retired", "snapshots_retired",
          "Old snapshots that some loop may still read."),
    GAUGE(WORLD, items_in_flight, NULL, "items_in_flight",
          "Items of the batches that are answered now."),
    TOTAL(WORLD, world.reclaimed, "snapshots_reclaimed", "snapshots_reclaimed_total",
          "Old snapshots that were freed."),
    GAUGE(STORE, store.is_read_only, NULL, "store_read_only",
          "1 after an error: the store takes no write."),
    GAUGE(STORE, store.database_bytes, "database_bytes", "store_database_bytes",
          "The database without its WAL."),
    GAUGE(STORE, store.wal_bytes, "wal_bytes", "store_wal_bytes", "The write-ahead log."),
    GAUGE(STORE, store.wal_bytes_max, "wal_bytes_max", "store_wal_bytes_max",
          "Where writes are refused until it shrinks."),
    TOTAL(STORE, store.checkpoints, "checkpoints", "store_checkpoints_total",
          "Checkpoints of the WAL."),
    TOTAL(STORE, store.checkpoints_blocked, "checkpoints_blocked",
          "store_checkpoints_blocked_total",
          "Checkpoints that a reader of the database kept from finishing."),
    GAUGE(STORE, store.behind_tiles, "behind_tiles", "store_behind_tiles",
          "Tiles whose edits are only in the log."),
    GAUGE(STORE, store.behind_bytes, "behind_bytes", "store_behind_bytes",
          "Samples in the log that are not yet in tiles."),
    TOTAL(STORE, store.commits, "commits", "store_commits_total", "Transactions made durable."),
    GAUGE(CLUSTER, log.is_away, NULL, "cluster_away", "1 while the shared log cannot be reached."),
    GAUGE(CLUSTER, staleness_s, NULL, "cluster_staleness_seconds",
          "Time since it was last known that all of the shared log is here; +Inf: never yet."),
    GAUGE(CLUSTER, shared.lag, "lag", "cluster_lag_revisions",
          "The greatest distance of a locale behind the shared log, as of the last look."),
    GAUGE(CLUSTER, shared.followed, "locales", "cluster_locales",
          "Locales that are followed, models as one."),
    GAUGE(CLUSTER, shared.behind, "behind", "cluster_locales_behind",
          "Those that are behind the shared log."),
    GAUGE(CLUSTER, shared.reason[0], NULL, "cluster_stuck",
          "1 when something cannot be followed, or the log is not that of the data directory."),
    TOTAL(CLUSTER, shared.entries_applied, "entries_applied", "cluster_entries_applied_total",
          "Entries of other nodes applied here."),
    TOTAL(CLUSTER, log.appends, "appends", "cluster_appends_total",
          "Transactions that the shared log has taken."),
    TOTAL(CLUSTER, log.entries, "entries", "cluster_entries_total",
          "Entries in those transactions."),
    TOTAL(CLUSTER, log.conflicts, "conflicts", "cluster_conflicts_total",
          "Transactions refused because another node was faster."),
    TOTAL(CLUSTER, shared.races_lost, "races_lost", "cluster_races_lost_total",
          "Batches of changes made again for that."),
    TOTAL(CLUSTER, log.fenced, "fenced", "cluster_fenced_total",
          "Transactions refused for a stale fence."),
    TOTAL(CLUSTER, log.in_doubt, "in_doubt", "cluster_in_doubt_total",
          "Connections lost under an append."),
    TOTAL(CLUSTER, log.retried, "retried", "cluster_in_doubt_retries_total",
          "Appends sent again after that."),
    TOTAL(CLUSTER, log.connects, "connects", "cluster_connects_total",
          "Connections made to the engine."),
    TOTAL(CLUSTER, log.losses, "losses", "cluster_losses_total", "Connections lost."),
    TOTAL(CLUSTER, log.notifications, "notifications", "cluster_notifications_total",
          "Notifications of others' appends."),
    TOTAL(CLUSTER, shared.snapshots_made, "snapshots_made", "cluster_snapshots_made_total",
          "Snapshots that this node has made."),
    TOTAL(CLUSTER, shared.snapshots_taken, "snapshots_taken", "cluster_snapshots_taken_total",
          "Snapshots that have taken the place of a locale here."),
    TOTAL(CLUSTER, shared.divergences, "divergences", "cluster_divergences_total",
          "Locales of which the log had lost what was applied here."),
    GAUGE(CLUSTER, log.leases_held, "leases_held", "cluster_leases_held",
          "Leases that this node holds."),
    TOTAL(CLUSTER, log.leases_taken, "leases_taken", "cluster_leases_taken_total",
          "Leases that it was given."),
    TOTAL(CLUSTER, log.leases_refused, "leases_refused", "cluster_leases_refused_total",
          "Leases that another node held."),
    TOTAL(CLUSTER, log.leases_lost, "leases_lost", "cluster_leases_lost_total",
          "Leases that ran out under it."),
    STAT(CLUSTER, log.entries_read, "entries_read"),
    STAT(CLUSTER, log.polls, "polls"),
    STAT(CLUSTER, log.snapshots_put, "snapshots_put"),
    STAT(CLUSTER, log.snapshots_read, "snapshots_read"),
    STAT(CLUSTER, log.blobs_put, "blobs_put"),
    STAT(CLUSTER, log.blobs_read, "blobs_read"),
    TOTAL(TILES, tiles.hits, "hits", "tile_cache_hits_total", "Tiles answered from the cache."),
    TOTAL(TILES, tiles.misses, "misses", "tile_cache_misses_total",
          "Tiles that were read or encoded."),
    TOTAL(TILES, tiles.evicted, "evicted", "tile_cache_evicted_total",
          "Tiles let go to keep the cache's bound."),
    GAUGE(TILES, tiles.entries, "tiles", "tile_cache_tiles", "Tiles in the cache."),
    GAUGE(TILES, tiles.bytes, "bytes", "tile_cache_bytes", "Bytes of the tiles in the cache."),
    TOTAL(LIGHTS, lights.hits, "hits", "light_cache_hits_total",
          "Questions to a mesh that a light's tree answered."),
    TOTAL(LIGHTS, lights.misses, "misses", "light_cache_misses_total",
          "Questions to a mesh about a far light that rays answered."),
    TOTAL(LIGHTS, lights.builds, "builds", "light_cache_builds_total",
          "Trees that were made for a light."),
    TOTAL(LIGHTS, lights.refused, "refused", "light_cache_refused_total",
          "Trees that could not be made, or were larger than the bound."),
    TOTAL(LIGHTS, lights.evicted, "evicted", "light_cache_evicted_total",
          "Trees let go to keep the cache's bound."),
    GAUGE(LIGHTS, lights.lights, "lights", "light_cache_lights",
          "Lights over meshes that are remembered."),
    GAUGE(LIGHTS, lights.trees, "trees", "light_cache_trees", "Trees in the cache."),
    GAUGE(LIGHTS, lights.bytes, "bytes", "light_cache_bytes", "Bytes of the trees in the cache."),
    GAUGE(WATCHES, watches.watches, "watches", "watches", "Watches that have not ended."),
    GAUGE(WATCHES, watches.items, "items", "watch_items", "Items of all watches."),
    TOTAL(WATCHES, watches.asked, "asked", "watch_items_asked_total",
          "Items asked again, because a change may have touched them."),
    TOTAL(WATCHES, watches.changed, "changed", "watch_answers_changed_total",
          "Answers of watches that were others than before."),
    GAUGE(DEVICE, sand.is_possible, NULL, "patches_device",
          "0 when it is known that patches cannot be simulated."),
    TOTAL(DEVICE, sand.device.rebuilds, "rebuilds", "patches_device_rebuilds_total",
          "Devices opened again after a loss."),
    GAUGE(PATCHES, patch_slots, NULL, "patches_slots", "Patches that can be in use at once."),
    GAUGE(PATCHES, patches_used, NULL, "patches_used", "Patches in use."),
    TOTAL(PATCHES, sand.patches.made, "made", "patches_made_total", "Patches that were made."),
    TOTAL(PATCHES, sand.patches.written, "written", "patches_written_total",
          "Patches that were written back."),
    TOTAL(PATCHES, sand.patches.discarded, "discarded", "patches_discarded_total",
          "Patches that were discarded."),
    TOTAL(PATCHES, sand.patches.failed, "failed", "patches_failed_total", "Patches that failed."),
    TOTAL(PATCHES, fates.craters, "impact_craters", "impact_craters_total",
          "Impacts that have left the crater of the law."),
    TOTAL(PATCHES, fates.refined, "impacts_refined", "impacts_refined_total",
          "Impacts whose crater granules have replaced."),
    GAUGE(PATCHES, fates.pending, "impacts_pending", "impacts_pending",
          "Impacts whose granules move."),
    TOTAL(PATCHES, particle_steps, NULL, "patches_particle_steps_total", "Spheres times substeps."),
    TOTAL(PATCHES, sand.orders, NULL, "sand_orders_total", "Orders that the sand thread took."),
    TOTAL(PATCHES, sand.ticks, NULL, "sand_ticks_total",
          "Times that the sand thread looked at its patches."),
    TOTAL(PATCHES, sand.live_made, "live_made", "sand_live_made_total",
          "Live values of locales that were made, for readers with live=true."),
    GAUGE(PATCHES, shells.bytes, "shell_bytes", "shell_cache_bytes",
          "Shells of models that are kept."),
    TOTAL(PATCHES, shells.hits, "shell_hits", "shell_cache_hits_total",
          "Shells that were there already."),
    TOTAL(PATCHES, shells.built, "shells_built", "shell_cache_built_total",
          "Shells that were made."),
    STAT(PATCHES, shells.loaded, "shells_loaded"),
    GAUGE(HTTP, http.loops, NULL, "loops", "Event loops."),
    GAUGE(HTTP, http.open, "connections_open", "connections", "Open connections."),
    GAUGE(HTTP, limits.http.connections_max, NULL, "connections_max",
          "Where connections are refused (--max-connections)."),
    GAUGE(HTTP, http.body_bytes, NULL, "request_bodies_bytes", "Bodies of the requests under way."),
    TOTAL(HTTP, http.accepted, "connections_accepted", "connections_accepted_total",
          "Connections accepted."),
    TOTAL(HTTP, http.rejected, "connections_rejected", "connections_rejected_total",
          "Connections over a limit."),
    TOTAL(HTTP, http.bytes_in, "bytes_in", "received_bytes_total", "Bytes read from clients."),
    TOTAL(HTTP, http.bytes_out, "bytes_out", "sent_bytes_total", "Bytes written to clients."),
    TOTAL(HTTP, http.timeouts, "timeouts", "timeouts_total", "Connections closed over time."),
    TOTAL(HTTP, http.parse_errors, "parse_errors", "parse_errors_total",
          "Requests that were not HTTP."),
    TOTAL(HTTP, http.write_errors, "write_errors", "write_errors_total",
          "Answers that could not be written."),
    TOTAL(HTTP, http.shed, "shed", "shed_total", "Requests refused because no worker had time."),
    GAUGE(HTTP, http.workers, "workers", "workers", "Threads for what would hold a loop."),
    GAUGE(HTTP, http.workers_busy, "workers_busy", "workers_busy", "Workers that run a request."),
    GAUGE(HTTP, http.queued, "queued", "queued_requests", "Requests that wait for a worker."),
    GAUGE(HTTP, queue_wait_s, NULL, "queue_wait_seconds",
          "Time that a large request would wait for a worker, as expected."),
    STAT(HTTP, http.queue_wait_ms, "queue_wait_ms"),
    GAUGE(HTTP, http.streams, "streams_open", "streams", "Open event streams."),
    GAUGE(HTTP, limits.http.streams_max, NULL, "streams_max",
          "Where event streams are refused (--max-streams)."),
    TOTAL(HTTP, http.streams_opened, "streams_opened", "streams_opened_total",
          "Event streams opened."),
    TOTAL(HTTP, http.streams_rejected, "streams_rejected", "streams_rejected_total",
          "Event streams over a limit."),
    STAT(HTTP, http.requests, "requests"),
    STAT(LOOPS, http.open, "connections_open"),
    STAT(LOOPS, http.accepted, "connections_accepted"),
    STAT(LOOPS, http.requests, "requests"),
    STAT(LOOPS, http.latency_us_sum, "latency_us_sum"),
    STAT(LOOPS, http.bytes_in, "bytes_in"),
    STAT(LOOPS, http.bytes_out, "bytes_out"),
    STAT(LOOPS, http.streams, "streams_open"),
    STAT(LOOPS, http.timeouts, "timeouts"),
    STAT(LOOPS, http.shed, "shed"),
    STAT(LIMITS, limits.items_max, "items_max"),
    STAT(LIMITS, limits.binary_items_max, "binary_items_max"),
    STAT(LIMITS, limits.items_in_flight_max, "items_in_flight_max"),
    STAT(LIMITS, limits.items_max, "path_points_max"),
    STAT(LIMITS, limits.items_max, "profile_samples_max"),
    FIXED(LIMITS, FOOTPRINT_POINTS_MAX, "footprint_points_max"),
    STAT(LIMITS, limits.trace_max, "trace_boxes_max"),
    STAT(LIMITS, limits.trace_max, "trace_cells_max"),
    FIXED(LIMITS, HEIGHTFIELD_SIDE_MAX, "pick_tile_side_max"),
    FIXED(LIMITS, PLAN_TILE_SIDE_MAX_M, "pick_tile_side_max_m"),
    FIXED(LIMITS, API_REGION_PIXELS_MAX, "pick_region_pixels_max"),
    FIXED(LIMITS, MAP_ZOOM_MAX, "map_zoom_max"),
    FIXED(LIMITS, DEM_GEODETIC_SIDE_MAX, "map_geodetic_size_max"),
    FIXED(LIMITS, API_CROSSED_MAX, "crossed_locales_max"),
    FIXED(LIMITS, SWEEP_SIZE_MAX_M, "shape_size_max_m"),
    FIXED(LIMITS, MOVE_DT_MAX_S, "move_dt_max_s"),
    STAT(LIMITS, limits.items_max, "elevation_locations_max"),
    STAT(LIMITS, limits.batch_ms_max, "batch_ms_max"),
    STAT(LIMITS, limits.import_ms_max, "import_ms_max"),
    STAT(LIMITS, limits.uploads_bytes_max, "uploads_bytes_max"),
    STAT(LIMITS, limits.tile_cache_bytes_max, "tile_cache_bytes_max"),
    STAT(LIMITS, limits.light_cache_bytes_max, "light_cache_bytes_max"),
    FIXED(LIMITS, LIGHTS_REMEMBERED_MAX, "lights_remembered_max"),
    STAT(LIMITS, limits.json_bytes_max, "json_bytes_max"),
    STAT(LIMITS, limits.json.depth_max, "json_depth_max"),
    STAT(LIMITS, limits.json.values_max, "json_values_max"),
    FIXED(LIMITS, JSON_NUMBER_BYTES_MAX, "number_characters_max"),
    FIXED(LIMITS, CALL_QUERY_MAX, "query_parameters_max"),
    FIXED(LIMITS, WORLD_ID_MAX, "id_characters_max"),
    FIXED(LIMITS, LOCALE_TITLE_BYTES_MAX, "title_bytes_max"),
    STAT(LIMITS, limits.watches_max, "watches_max"),
    STAT(LIMITS, limits.watch_items_max, "watch_items_max"),
    STAT(LIMITS, limits.watch_linger_ms, "watch_linger_ms"),
    STAT(LIMITS, limits.world.locales_max, "locales_max"),
    FIXED(LIMITS, API_LOCALE_PAGE_MAX, "locale_page_max"),
    STAT(LIMITS, limits.world.models_max, "models_max"),
    FIXED(LIMITS, LOCALE_LAYERS_MAX, "layers_max"),
    FIXED(LIMITS, POSE_TRANSLATION_MAX_M, "transform_m_max"),
    FIXED(LIMITS, POSE_YAW_MAX_DEG, "transform_yaw_deg_max"),
    STAT(LIMITS, limits.world.bytes_max, "world_bytes_max"),
    STAT(LIMITS, limits.world.pins_max, "pins_max"),
    FIXED(LIMITS, LOCALE_PAST_MAX, "past_revisions_max"),
    STAT(LIMITS, limits.world.past_bytes_max, "past_bytes_max"),
    STAT(LIMITS, limits.world.history_bytes_max, "history_bytes_max"),
    FIXED(LIMITS, API_HISTORY_PAGE_MAX, "history_page_max"),
    FIXED(LIMITS, STORE_NOTE_MAX, "note_bytes_max"),
    STAT(LIMITS, limits.world.edit_samples_max, "edit_samples_max"),
    FIXED(LIMITS, RELAX_SAMPLES_MAX, "relax_samples_max"),
    FIXED(LIMITS, STORE_OP_ID_MAX, "idempotency_key_characters_max"),
    STAT(LIMITS, limits.world.queue_max, "queued_changes_max"),
    FIXED(LIMITS, FEED_EVENTS_MAX, "feed_events_max"),
    FIXED(LIMITS, FEED_CONTENT_BYTES_MAX, "feed_samples_bytes_max"),
    FIXED(LIMITS, FEED_HELD_BYTES_MAX, "feed_held_bytes_max"),
    STAT(LIMITS, limits.raster.samples_max, "raster_samples_max"),
    STAT(LIMITS, limits.raster.side_max, "raster_side_max"),
    FIXED(LIMITS, MESH_COORDINATE_MAX_M, "coordinate_m_max"),
    STAT(LIMITS, limits.polygon.polygons_max, "polygons_max"),
    STAT(LIMITS, limits.polygon.corners_max, "polygon_corners_max"),
    STAT(LIMITS, limits.polygon.vertices_max, "polygon_vertices_max"),
    FIXED(LIMITS, MESH_POLYGON_CORNERS_MAX, "polygon_ring_corners_max"),
    FIXED(LIMITS, INSTANCES_COPIES_MAX, "instance_copies_max"),
    STAT(LIMITS, limits.sand.device.slots[SCALE_FINE], "patches_fine_max"),
    STAT(LIMITS, limits.sand.device.slots[SCALE_MEDIUM], "patches_medium_max"),
    STAT(LIMITS, limits.sand.device.slots[SCALE_COARSE], "patches_coarse_max"),
    OR_NULL(LIMITS, limits.sand.device.granules_max, "patch_granules_max"),
    FIXED(LIMITS, PATCH_WAIT_MS_MAX, "patch_open_ms_max"),
    STAT(LIMITS, limits.sand.device.bodies_max, "patch_bodies_max"),
    STAT(LIMITS, limits.sand.device.particles_max, "patch_shell_particles_max"),
    STAT(LIMITS, limits.sand.limits.active_max, "patches_active_max"),
    STAT(LIMITS, limits.sand.limits.kept_max, "patches_kept_max"),
    FIXED(LIMITS, VIEW_SIDE_MAX, "patch_view_side_max"),
    FIXED(LIMITS, VIEW_LONGEST_SIDE, "view_side_max"),
    FIXED(LIMITS, VIEW_PIXELS_MAX, "view_pixels_max"),
    FIXED(LIMITS, VIEW_MEMORY_MAX_BYTES, "view_memory_bytes_max"),
    FIXED(LIMITS, VIEW_QUEUE_MAX, "view_queue_max"),
    STAT(LIMITS, limits.sand.limits.pause_after_s, "patch_pause_ms"),
    STAT(LIMITS, limits.sand.limits.linger_s, "patch_linger_ms"),
    STAT(LIMITS, limits.sand.limits.active_max_s, "patch_active_max_ms"),
    STAT(LIMITS, limits.sand.limits.keep_s, "patch_keep_ms"),
    STAT(LIMITS, limits.sand.idle_s, "patch_idle_ms"),
    FIXED(LIMITS, IMPACT_RADIUS_MAX_M, "impact_radius_m_max"),
    FIXED(LIMITS, IMPACT_MASS_MAX_KG, "impact_mass_kg_max"),
    FIXED(LIMITS, IMPACT_SPEED_MAX, "impact_speed_max"),
    FIXED(LIMITS, IMPACT_OBSERVER_M, "impact_observer_m_max"),
    FIXED(LIMITS, IMPACT_REST_MS, "impact_rest_ms_max"),
    FIXED(LIMITS, IMPACTS_KEPT, "impacts_kept_max"),
    STAT(LIMITS, limits.shell_cache_bytes_max, "shell_cache_bytes_max"),
    STAT(LIMITS, limits.http.body_bytes_max, "body_bytes_max"),
    STAT(LIMITS, limits.http.bodies_bytes_max, "bodies_bytes_max"),
    STAT(LIMITS, limits.http.answers_bytes_max, "answers_bytes_max"),
    STAT(LIMITS, limits.http.target_bytes_max, "target_bytes_max"),
    STAT(LIMITS, limits.http.header_bytes_max, "header_bytes_max"),
    STAT(LIMITS, limits.http.header_count_max, "header_count_max"),
    STAT(LIMITS, limits.http.connections_max, "connections_max"),
    STAT(LIMITS, limits.http.connections_per_address_max, "connections_per_address_max"),
    STAT(LIMITS, limits.http.idle_ms, "idle_ms"),
    STAT(LIMITS, limits.http.header_ms, "header_ms"),
    STAT(LIMITS, limits.http.body_ms, "body_ms"),
    STAT(LIMITS, limits.http.write_ms, "write_ms"),
    STAT(LIMITS, limits.http.streams_max, "streams_max"),
    STAT(LIMITS, limits.http.stream_silence_ms, "stream_silence_ms"),
    STAT(LIMITS, limits.http.park_ms_max, "min_revision_wait_ms"),
    STAT(LIMITS, limits.http.queue_ms_max, "queue_ms_max"),
    STAT(LIMITS, limits.http.queued_max, "queued_requests_max"),
};

enum { COUNTERS = sizeof counters / sizeof *counters };

static double value_of(const struct counter *counter, const struct numbers *numbers)
{
    const void *at = (const char *)numbers + counter->place;

    switch (counter->kind) {
    case COUNT:
        return (double)*(const uint64_t *)at;
    case COUNT_32:
    case COUNT_32_OR_NULL:
        return *(const uint32_t *)at;
    case REAL:
        return *(const double *)at;
    case GIVEN:
        return *(const unsigned char *)at != 0;
    case CONSTANT:
        break;
    }
    return (double)counter->place;
}

void counters_text(struct call *call, enum counter_group group, const struct numbers *numbers)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        const struct counter *c = &counters[i];

        if (c->group == group && c->name)
            text_append(call, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", c->name, c->help, c->name,
                        c->type, c->name, value_of(c, numbers));
    }
}

void counters_json(struct json_writer *w, enum counter_group group, const struct numbers *numbers)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        const struct counter *c = &counters[i];
        double value;

        if (c->group != group || !c->key)
            continue;
        value = value_of(c, numbers);
        json_key(w, c->key);
        if (c->kind == COUNT) /* a double has 53 bits */
            json_integer(w, *(const uint64_t *)((const char *)numbers + c->place));
        else if (c->kind == COUNT_32_OR_NULL && value == 0)
            json_null(w);
        else
            json_integer(w, (uint64_t)(c->kind == REAL ? value * 1000 + 0.5 : value));
    }
}
