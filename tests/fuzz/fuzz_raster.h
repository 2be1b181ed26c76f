/*
 * What the raster fuzzers share: options and small limits out of the input's first byte, and the
 * contract of raster_decode() checked on what comes out. A target of its own for each format keeps
 * each corpus small and each crasher short.
 *
 * The first byte: bit 0 flips, bit 1 gives a no-data code, bit 2 scales, bit 3 tightens the limits;
 * RASTER_F32 takes cols and rows from the next two. The rest is the file.
 */
#ifndef KOTA_TESTS_FUZZ_FUZZ_RASTER_H
#define KOTA_TESTS_FUZZ_FUZZ_RASTER_H

#include "base/check.h"
#include "formats/raster/raster.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void fuzz_raster_check(enum err_code code, const struct raster *raster,
                                     const struct raster_limits *limits, const struct err *err)
{
    uint64_t samples = (uint64_t)raster->cols * raster->rows;

    if (code) {
        CHECK(err->code == code && err->msg[0]);
        CHECK(!raster->heights_m && raster->cols == 0 && raster->rows == 0);
        CHECK(code != ERR_TOO_LARGE || (err->has_limit && err->got > err->limit));
        CHECK(code != ERR_INTERNAL && code != ERR_NO_MEMORY);
        return;
    }
    CHECK(raster->cols >= 2 && raster->cols <= limits->side_max);
    CHECK(raster->rows >= 2 && raster->rows <= limits->side_max);
    CHECK(samples <= limits->samples_max);
    for (uint64_t i = 0; i < samples; i++)
        CHECK(!isinf(raster->heights_m[i]));
    CHECK(!raster->has_spacing || (raster->spacing_x > 0 && raster->spacing_y > 0));
    CHECK(!raster->has_origin || (isfinite(raster->origin_x) && isfinite(raster->origin_y)));
}

/* Decodes a copy of exactly the file's size under the options that flags say. */
static inline void fuzz_raster_decode(enum raster_format format, uint8_t flags, uint32_t cols,
                                      uint32_t rows, const uint8_t *bytes, size_t length)
{
    struct raster_options options = {
        .cols = cols,
        .rows = rows,
        .height_scale = flags & 4 ? -1e35 : 1,
        .height_offset = flags & 4 ? 3 : 0,
        .flip_y = flags & 1,
        .has_nodata = flags & 2,
        .nodata = 1,
    };
    struct raster_limits limits = {.samples_max = flags & 8 ? 64 : 1 << 18, .side_max = 1 << 12};
    uint8_t *exact = calloc(1, length);
    struct raster raster;
    struct err err = {0};
    enum err_code code;

    if (length)
        memcpy(exact, bytes, length);
    code = raster_decode(format, exact, length, &options, &limits, &raster, &err);
    free(exact);
    fuzz_raster_check(code, &raster, &limits, &err);
    raster_free(&raster);
}

#endif
