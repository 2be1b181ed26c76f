/*
 * Counters and limits of the process by their names: one table for /metrics, /v1/stats, /v1/limits,
 * docs/metrics.md (which is written from /metrics) and docs/limits.md (which a test compares with
 * /v1/limits). Histograms, and metrics with labels, are in calls/metrics.c.
 */
#ifndef KOTA_API_COUNTERS_H
#define KOTA_API_COUNTERS_H

#include "api/call.h"
#include "api/numbers.h"

enum counter_group {
    COUNTERS_PROCESS,
    COUNTERS_WORLD,
    COUNTERS_STORE,
    COUNTERS_CLUSTER,
    COUNTERS_TILES,
    COUNTERS_LIGHTS,
    COUNTERS_WATCHES,
    COUNTERS_DEVICE, /* in /metrics ahead of PATCHES */
    COUNTERS_PATCHES,
    COUNTERS_HTTP,
    COUNTERS_LOOPS, /* of one loop, as numbers.http; in JSON only */
    COUNTERS_LIMITS /* in JSON only */
};

/* Those of a group that /metrics has, as Prometheus text. */
void counters_text(struct call *call, enum counter_group group, const struct numbers *numbers);

/* Those of a group that JSON has, as members of the object that is open. */
void counters_json(struct json_writer *w, enum counter_group group, const struct numbers *numbers);

#endif
