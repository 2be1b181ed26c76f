/*
 * Numbers about the process, for /v1/stats and /metrics.
 */
#ifndef KOTA_API_NUMBERS_H
#define KOTA_API_NUMBERS_H

#include "api/api.h"

struct numbers {
    double uptime_s;
    uint64_t resident_bytes; /* 0 where the system does not tell */
    struct world_stats world;
    struct http_counters http; /* zero without a server */
};

void numbers_read(struct api *api, struct numbers *out);

/* "loading", "ready" or "draining". */
const char *api_state_word(const struct api *api);

#endif
