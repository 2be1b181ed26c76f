/*
 * What the tests of the raster decoders share: decoding from a block of exactly the right size, and
 * asserts that print both values. Whatever a test feeds in, the contract of raster_decode() is
 * checked each time, so that a case that only looks for an error also notices a raster left behind.
 *
 * All in the header, because it needs cmocka and benchmarks link tests/support without it.
 */
#ifndef KOTA_TESTS_SUPPORT_RASTER_CHECK_H
#define KOTA_TESTS_SUPPORT_RASTER_CHECK_H

#include "formats/raster/raster.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void raster_check_contract(enum err_code code, const struct raster *out,
                                         const struct err *err, const struct raster_limits *limits)
{
    static const struct raster zero;
    uint64_t samples = (uint64_t)out->cols * out->rows;

    if (code) {
        if (out->heights_m || out->cols != zero.cols || out->rows != zero.rows ||
            out->has_spacing || out->has_origin)
            fail_msg("a raster is left after the error: %s", err->msg);
        if (err->code != code || !err->msg[0])
            fail_msg("returned %d, err holds %d \"%s\"", (int)code, (int)err->code, err->msg);
        return;
    }
    if (out->cols < 2 || out->rows < 2 || samples > limits->samples_max || !out->heights_m)
        fail_msg("decoded %u x %u samples", out->cols, out->rows);
    for (size_t i = 0; i < samples; i++)
        if (isinf(out->heights_m[i]))
            fail_msg("sample %zu of %u x %u is infinite", i, out->cols, out->rows);
}

/*
 * raster_decode() of a malloc'ed copy of exactly length bytes, so that AddressSanitizer sees a read
 * past the end. Fails the test unless the result keeps the contract: on error a zeroed raster, the
 * code in err and a message; else at least 2×2 heights within the limits, none infinite.
 */
static inline enum err_code raster_check_decode(enum raster_format format, const void *bytes,
                                                size_t length, const struct raster_options *options,
                                                const struct raster_limits *limits,
                                                struct raster *out, struct err *err)
{
    uint8_t *exact = calloc(1, length);
    enum err_code code;

    if (length > 0)
        memcpy(exact, bytes, length);
    memset(out, 0xa5, sizeof *out);
    memset(err, 0, sizeof *err);
    code = raster_decode(format, exact, length, options, limits, out, err);
    free(exact);
    raster_check_contract(code, out, err, limits ? limits : &raster_limits_default);
    return code;
}

/* Decodes, and fails the test unless the heights are expected[rows][cols], NaN equal to NaN. */
static inline void raster_check_heights(enum raster_format format, const void *bytes, size_t length,
                                        const struct raster_options *options, uint32_t cols,
                                        uint32_t rows, const float *expected)
{
    struct raster raster;
    struct err err;

    if (raster_check_decode(format, bytes, length, options, NULL, &raster, &err))
        fail_msg("refused: %s", err.msg);
    if (raster.cols != cols || raster.rows != rows)
        fail_msg("got %u x %u samples, expected %u x %u", raster.cols, raster.rows, cols, rows);
    for (size_t i = 0; i < (size_t)cols * rows; i++) {
        float got = raster.heights_m[i];

        if (got != expected[i] && !(isnan(got) && isnan(expected[i])))
            fail_msg("column %zu of row %zu: got %.9g, expected %.9g", i % cols, i / cols,
                     (double)got, (double)expected[i]);
    }
    raster_free(&raster);
}

/* Decodes, and fails the test unless it is refused with code and a message that contains text. */
static inline void raster_check_refused(enum raster_format format, const void *bytes, size_t length,
                                        const struct raster_options *options,
                                        const struct raster_limits *limits, enum err_code code,
                                        const char *text)
{
    struct raster raster;
    struct err err;
    enum err_code got = raster_check_decode(format, bytes, length, options, limits, &raster, &err);

    raster_free(&raster);
    if (got != code)
        fail_msg("got code %d \"%s\", expected %d \"%s\"", (int)got, err.msg, (int)code, text);
    if (!strstr(err.msg, text))
        fail_msg("the message is \"%s\", expected \"%s\" in it", err.msg, text);
}

/* Decodes, and fails the test unless it is ERR_TOO_LARGE with this limit and this got. */
static inline void raster_check_too_large(enum raster_format format, const void *bytes,
                                          size_t length, const struct raster_options *options,
                                          const struct raster_limits *limits, double limit,
                                          double got)
{
    struct raster raster;
    struct err err;
    enum err_code code = raster_check_decode(format, bytes, length, options, limits, &raster, &err);

    raster_free(&raster);
    if (code != ERR_TOO_LARGE)
        fail_msg("got code %d \"%s\", expected %d", (int)code, err.msg, (int)ERR_TOO_LARGE);
    if (!err.has_limit || err.limit != limit || err.got != got)
        fail_msg("limit %g (has %d), got %g; expected limit %g, got %g: %s", err.limit,
                 err.has_limit, err.got, limit, got, err.msg);
}

/* Fails the test unless every shorter length of a valid file is refused. */
static inline void raster_check_truncations(enum raster_format format, const void *bytes,
                                            size_t length, const struct raster_options *options)
{
    struct raster raster;
    struct err err;

    if (raster_check_decode(format, bytes, length, options, NULL, &raster, &err))
        fail_msg("the whole file is refused: %s", err.msg);
    raster_free(&raster);
    for (size_t cut = 0; cut < length; cut++)
        if (!raster_check_decode(format, bytes, cut, options, NULL, &raster, &err))
            fail_msg("the first %zu of %zu bytes pass for a whole file", cut, length);
}

#endif
