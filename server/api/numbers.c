/*
 * Where the numbers come from: the world's counters, the server's, the clock and /proc.
 */
#include "api/numbers.h"

#include <stdio.h>
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

void numbers_read(struct api *api, struct numbers *out)
{
    struct http_server *server = atomic_load(&api->server);
    struct store *store = world_store(api->world);
    struct timespec now;

    *out = (struct numbers){.resident_bytes = resident_bytes()};
    clock_gettime(CLOCK_MONOTONIC, &now);
    out->uptime_s = (double)(now.tv_sec - api->started.tv_sec) +
                    (double)(now.tv_nsec - api->started.tv_nsec) * 1e-9;
    world_stats(api->world, &out->world);
    out->has_store = store != NULL;
    if (store)
        store_stats(store, &out->store);
    tile_cache_stats(api->tiles, &out->tiles);
    shell_cache_stats(api->shells, &out->shells);
    if (atomic_load(&api->state) != API_LOADING && api->sand)
        sand_stats(api->sand, &out->sand);
    out->items_in_flight = atomic_load_explicit(&api->items_in_flight, memory_order_relaxed);
    if (server)
        http_server_counters(server, &out->http);
}

enum err_code api_readiness(const struct api *api, struct err *err)
{
    struct store *store;
    struct store_stats stats;
    const char *damage;

    if (atomic_load(&api->state) != API_READY)
        return err_set(err, ERR_BUSY, "the daemon is %s", api_state_word(api));
    damage = world_damage(api->world, NULL);
    if (damage)
        return err_set(err, ERR_DAMAGED, "%s", damage);
    store = world_store(api->world);
    if (!store)
        return ERR_OK;
    store_stats(store, &stats);
    if (!stats.is_read_only)
        return ERR_OK;
    return err_set(err, ERR_READ_ONLY, "the store is read-only until a restart: %s", stats.reason);
}

const char *api_state_word(const struct api *api)
{
    static const char *const words[] = {"loading", "ready", "draining"};

    return words[atomic_load(&api->state)];
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
