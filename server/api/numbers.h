/*
 * Numbers about the process, for /v1/stats and /metrics.
 */
#ifndef KOTA_API_NUMBERS_H
#define KOTA_API_NUMBERS_H

#include "api/feed/watches.h"
#include "sand/impact/fates.h"
#include "json/json_write.h"

struct numbers {
    double uptime_s;
    double started_s;        /* the start, as seconds since 1970 */
    double cpu_s;            /* of all threads */
    uint64_t resident_bytes; /* 0: unknown */
    uint64_t log_dropped;
    uint64_t files, files_max; /* open file descriptors; files is 0: unknown */
    bool is_ready;             /* as /readyz answers */
    struct api_limits limits;
    uint64_t upload_bytes; /* of layers that are not yet published */
    struct world_stats world;
    struct tile_cache_stats tiles;
    struct shell_cache_stats shells;
    struct light_cache_stats lights;
    struct watches_stats watches;
    struct fates_stats fates;                           /* of impacts */
    struct sand_stats sand;                             /* zero without the sand thread */
    uint64_t patch_slots, patches_used, particle_steps; /* of all scales */
    uint64_t items_in_flight;                           /* of batches that are answered now */
    struct http_counters http;                          /* zero without a server */
    double queue_wait_s;                                /* http.queue_wait_ms */
    bool has_store;
    struct store_stats store; /* zero without a store */
    bool is_shared;           /* by a log; then the rest */
    struct world_shared shared;
    struct cluster_stats log;
    double staleness_s;
};

void numbers_read(struct api *api, struct numbers *out);

/*
 * Is the daemon ready? ERR_OK, or the reason: ERR_BUSY while the world is loaded and while the
 * daemon drains, ERR_DAMAGED when a locale could not be loaded, ERR_READ_ONLY when the store takes
 * no write, ERR_UNAVAILABLE when a shared log is not followed. Any thread.
 */
enum err_code api_readiness(const struct api *api, struct err *err);

/* How far the start is: "loading the data directory: 12 of 40 tiles (30 %)". Any thread. */
enum { API_LOADING_BYTES = 128 };
void api_loading_text(const struct api *api, char *out, size_t size);

/* "left", "stalled", "behind", "over", "drained": why streams end. */
const char *numbers_stream_end(enum http_stream_end reason);

/* "integrate", "grid", "force", "depth": the parts of a substep. */
const char *numbers_phase(enum sand_phase phase);
/* The members integrate_ms, grid_ms, force_ms, depth_ms. */
void numbers_put_phases(struct json_writer *w, const float ms[SAND_PHASE_COUNT]);

/* "loading", "ready" or "draining". */
const char *api_state_name(enum api_state state);
const char *api_state_word(const struct api *api); /* of the current state */

#endif
