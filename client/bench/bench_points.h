/*
 * Requests full of random points within a locale, for kota bench.
 */
#ifndef KOTA_CLIENT_BENCH_POINTS_H
#define KOTA_CLIENT_BENCH_POINTS_H

#include "base/err.h"
#include "client/bench/bench_shots.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* So many different ones are sent in turn. */
#define BENCH_POINTS_BODIES 16

struct bench_points {
    char target[128];
    const char *media_type;
    struct bench_text bodies[BENCH_POINTS_BODIES]; /* malloc */
};

/*
 * Bodies for a call, `count` points each, the same ones each time; rays go straight down. out is
 * zero before, and free after an error, too.
 *
 * locale  the daemon's answer about it: id and bounds
 *
 * ERR_UNPROCESSABLE (no terrain), ERR_INTERNAL (against the contract), ERR_NO_MEMORY
 */
enum err_code bench_points_make(struct bench_points *out, const cJSON *locale, const char *call,
                                size_t count, bool is_binary, struct err *err);
void bench_points_free(struct bench_points *points);

#endif
