/*
 * The sources of the numbers: the world's counters, the server's, the clock and /proc.
 */
#include "api/numbers.h"

#include "api/node.h"
#include "base/log.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t resident_bytes(void)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    unsigned long long total, resident = 0;

    if (!statm)
        return 0;
    if (fscanf(statm, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(statm);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Since Linux 6.2 the folder's size is the count; to read it takes a line for each connection. */
static uint64_t open_files(void)
{
    struct stat folder;

    return stat("/proc/self/fd", &folder) == 0 ? (uint64_t)folder.st_size : 0;
}

static uint64_t open_files_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 0;
}

void numbers_read(struct api *api, struct numbers *out)
{
    struct http_server *server = atomic_load(&api->server);
    struct store *store = world_store(api->world);
    struct err unready;

    *out = (struct numbers){.resident_bytes = resident_bytes()};
    out->limits = *api_limits(api);
    out->is_ready = api_readiness(api, &unready) == ERR_OK;
    out->uptime_s = seconds(CLOCK_MONOTONIC) - (double)api->started.tv_sec -
                    (double)api->started.tv_nsec * 1e-9;
    out->started_s = api->started_s;
    out->cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    out->log_dropped = log_dropped();
    out->files = open_files();
    out->files_max = open_files_max();
    out->upload_bytes = atomic_load_explicit(&api->upload_bytes, memory_order_relaxed);
    world_stats(api->world, &out->world);
    out->has_store = store != NULL;
    if (store)
        store_stats(store, &out->store);
    out->is_shared = world_shared(api->world, &out->shared);
    if (out->is_shared)
        cluster_stats(world_log(api->world), &out->log);
    out->staleness_s = world_staleness_s(api->world);
    tile_cache_stats(api->tiles, &out->tiles);
    shell_cache_stats(api->shells, &out->shells);
    fates_stats(api->fates, &out->fates);
    light_cache_stats(api->lights, &out->lights);
    watches_stats(api->watches, &out->watches);
    if (atomic_load(&api->state) != API_LOADING && api->sand)
        sand_stats(api->sand, &out->sand);
    for (int scale = 0; scale < SCALE_COUNT; scale++) {
        out->patch_slots += out->sand.patches.slots[scale];
        out->patches_used += out->sand.patches.used[scale];
        out->particle_steps += out->sand.patches.particle_steps[scale];
    }
    out->items_in_flight = atomic_load_explicit(&api->items_in_flight, memory_order_relaxed);
    if (server)
        http_server_counters(server, &out->http);
    out->queue_wait_s = (double)out->http.queue_wait_ms * 1e-3;
}

void api_loading_text(const struct api *api, char *out, size_t size)
{
    struct store *store = world_store(api->world);
    const char *what = "the data directory", *unit = "tiles";
    uint64_t done = 0, total = 0;

    if (store)
        store_load_progress(store, &done, &total);
    if (done == total) { /* that is over, or there is none */
        what = "the world";
        unit = "locales";
        total = atomic_load(&api->loading.total);
        done = atomic_load(&api->loading.done);
    }
    if (total == 0)
        snprintf(out, size, "loading");
    else
        snprintf(out, size, "loading %s: %llu of %llu %s (%u %%)", what, (unsigned long long)done,
                 (unsigned long long)total, unit, (unsigned)(100.0 * (double)done / (double)total));
}

enum err_code api_readiness(const struct api *api, struct err *err)
{
    struct store *store;
    struct store_stats stats;
    const char *damage;
    char loading[API_LOADING_BYTES];

    if (atomic_load(&api->state) == API_LOADING) {
        api_loading_text(api, loading, sizeof loading);
        return err_set(err, ERR_NOT_READY, "the daemon is %s", loading);
    }
    if (atomic_load(&api->state) != API_READY)
        return err_set(err, ERR_NOT_READY, "the daemon is %s", api_state_word(api));
    damage = world_damage(api->world, NULL);
    if (damage)
        return err_set(err, ERR_DAMAGED, "%s", damage);
    store = world_store(api->world);
    if (!store)
        return ERR_OK;
    store_stats(store, &stats);
    if (!stats.is_read_only)
        return node_readiness(api, err);
    return err_set(err, ERR_READ_ONLY, "the store is read-only until a restart: %s", stats.reason);
}

const char *api_state_name(enum api_state state)
{
    static const char *const names[] = {
        [API_LOADING] = "loading", [API_READY] = "ready", [API_DRAINING] = "draining"};

    return names[state];
}

const char *api_state_word(const struct api *api)
{
    return api_state_name((enum api_state)atomic_load(&api->state));
}

const char *numbers_stream_end(enum http_stream_end reason)
{
    static const char *const words[HTTP_STREAM_ENDS] = {
        [HTTP_STREAM_LEFT] = "left",       [HTTP_STREAM_STALLED] = "stalled",
        [HTTP_STREAM_BEHIND] = "behind",   [HTTP_STREAM_OVER] = "over",
        [HTTP_STREAM_DRAINED] = "drained",
    };

    return words[reason];
}

const char *numbers_phase(enum sand_phase phase)
{
    static const char *const words[SAND_PHASE_COUNT] = {
        [SAND_PHASE_INTEGRATE] = "integrate",
        [SAND_PHASE_GRID] = "grid",
        [SAND_PHASE_FORCE] = "force",
        [SAND_PHASE_DEPTH] = "depth",
    };

    return words[phase];
}

void numbers_put_phases(struct json_writer *w, const float ms[SAND_PHASE_COUNT])
{
    char key[32];

    for (int phase = 0; phase < SAND_PHASE_COUNT; phase++) {
        snprintf(key, sizeof key, "%s_ms", numbers_phase((enum sand_phase)phase));
        json_put_number(w, key, ms[phase]);
    }
}
