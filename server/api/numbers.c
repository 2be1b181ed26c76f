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
    struct timespec now;

    *out = (struct numbers){.resident_bytes = resident_bytes()};
    clock_gettime(CLOCK_MONOTONIC, &now);
    out->uptime_s = (double)(now.tv_sec - api->started.tv_sec) +
                    (double)(now.tv_nsec - api->started.tv_nsec) * 1e-9;
    world_stats(api->world, &out->world);
    if (server)
        http_server_counters(server, &out->http);
}

const char *api_state_word(const struct api *api)
{
    static const char *const words[] = {"loading", "ready", "draining"};

    return words[atomic_load(&api->state)];
}
