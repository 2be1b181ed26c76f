/*
 * What the tests of the polygon readers share: decoding from a block of exactly the right size, and
 * asserts that print both values. The contract of polygon_decode() is checked each time, whatever
 * the case looks for.
 *
 * All in the header, because it needs cmocka and benchmarks link tests/support without it.
 */
#ifndef KOTA_TESTS_SUPPORT_POLYGON_CHECK_H
#define KOTA_TESTS_SUPPORT_POLYGON_CHECK_H

#include "formats/polygon/polygon_file.h"
#include "tests/support/test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void polygon_check_set(const struct polygon_set *set,
                                     const struct polygon_limits *limits)
{
    if (set->polygon_count == 0 || set->polygon_count > limits->polygons_max ||
        set->vertex_count > limits->vertices_max || set->starts[0] != 0 ||
        set->starts[set->polygon_count] > limits->corners_max)
        fail_msg("%zu polygons, %zu vertices, starts at %u", set->polygon_count, set->vertex_count,
                 set->starts ? set->starts[0] : 0);
    for (size_t i = 0; i < set->vertex_count; i++)
        if (!vec3_is_finite(set->vertices[i]))
            fail_msg("vertex %zu is not finite", i);
    for (size_t i = 0; i < set->polygon_count; i++)
        if (set->starts[i + 1] < set->starts[i] + 3)
            fail_msg("polygon %zu goes from corner %u to %u", i, set->starts[i],
                     set->starts[i + 1]);
    for (size_t i = 0; i < set->starts[set->polygon_count]; i++)
        if (set->corners[i] >= set->vertex_count)
            fail_msg("corner %zu is vertex %u of %zu", i, set->corners[i], set->vertex_count);
}

/*
 * polygon_decode() of a malloc'ed copy of exactly length bytes, so that AddressSanitizer sees a
 * read past the end. Fails the test unless the result keeps the contract: on error an empty set,
 * the code in err and a message; else a set that is whole and within the limits.
 */
static inline enum err_code polygon_check_decode(enum polygon_format format, const void *bytes,
                                                 size_t length,
                                                 const struct polygon_options *options,
                                                 const struct polygon_limits *limits,
                                                 struct polygon_set *out, struct err *err)
{
    uint8_t *exact = malloc(length ? length : 1);
    enum err_code code;

    if (length > 0)
        memcpy(exact, bytes, length);
    memset(out, 0xa5, sizeof *out);
    memset(err, 0, sizeof *err);
    code = polygon_decode(format, length ? exact : NULL, length, options, limits, out, err);
    free(exact);
    if (!code) {
        polygon_check_set(out, limits ? limits : &polygon_limits_default);
        return code;
    }
    if (out->vertices || out->corners || out->starts || out->vertex_count || out->polygon_count)
        fail_msg("polygons are left after the error: %s", err->msg);
    if (err->code != code || !err->msg[0])
        fail_msg("returned %d, err holds %d \"%s\"", (int)code, (int)err->code, err->msg);
    if (code == ERR_TOO_LARGE && !(err->has_limit && err->got > err->limit))
        fail_msg("limit %g (has %d), got %g: %s", err->limit, err->has_limit, err->got, err->msg);
    return code;
}

/* Decodes, and fails the test when it is refused; polygon_set_free() it. */
static inline struct polygon_set polygon_check_good(enum polygon_format format, const void *bytes,
                                                    size_t length,
                                                    const struct polygon_options *options)
{
    struct polygon_set set;
    struct err err;

    if (polygon_check_decode(format, bytes, length, options, NULL, &set, &err))
        fail_msg("refused: %s", err.msg);
    return set;
}

/* Decodes, and fails the test unless it is refused with code and a message that contains text. */
static inline void polygon_check_refused(enum polygon_format format, const void *bytes,
                                         size_t length, const struct polygon_options *options,
                                         const struct polygon_limits *limits, enum err_code code,
                                         const char *text)
{
    struct polygon_set set;
    struct err err;
    enum err_code got = polygon_check_decode(format, bytes, length, options, limits, &set, &err);

    polygon_set_free(&set);
    if (got != code)
        fail_msg("got code %d \"%s\", expected %d \"%s\"", (int)got, err.msg, (int)code, text);
    if (!strstr(err.msg, text))
        fail_msg("the message is \"%s\", expected \"%s\" in it", err.msg, text);
}

/* Decodes, and fails the test unless it is ERR_TOO_LARGE with this limit and this got. */
static inline void polygon_check_too_large(enum polygon_format format, const void *bytes,
                                           size_t length, const struct polygon_limits *limits,
                                           double limit, double got)
{
    struct polygon_set set;
    struct err err;
    enum err_code code = polygon_check_decode(format, bytes, length, NULL, limits, &set, &err);

    polygon_set_free(&set);
    if (code != ERR_TOO_LARGE || err.limit != limit || err.got != got)
        fail_msg("code %d, limit %g, got %g \"%s\"; expected code %d, limit %g, got %g", (int)code,
                 err.limit, err.got, err.msg, (int)ERR_TOO_LARGE, limit, got);
}

/* Decodes shorter lengths in steps of `every`; each must keep the contract, refused or not. */
static inline void polygon_check_truncations(enum polygon_format format, const void *bytes,
                                             size_t length, size_t every)
{
    for (size_t cut = 0; cut < length; cut += every) {
        struct polygon_set set;
        struct err err;

        polygon_check_decode(format, bytes, cut, NULL, NULL, &set, &err);
        polygon_set_free(&set);
    }
}

/* The triangles that the polygons would be split into. */
static inline size_t polygon_check_triangles(const struct polygon_set *set)
{
    return set->starts[set->polygon_count] - 2 * set->polygon_count;
}

/* The box around all vertices. */
static inline struct box3 polygon_check_bounds(const struct polygon_set *set)
{
    struct box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    for (size_t i = 0; i < set->vertex_count; i++) {
        struct vec3 v = set->vertices[i];

        box.min = (struct vec3){fmin(box.min.x, v.x), fmin(box.min.y, v.y), fmin(box.min.z, v.z)};
        box.max = (struct vec3){fmax(box.max.x, v.x), fmax(box.max.y, v.y), fmax(box.max.z, v.z)};
    }
    return box;
}

/* Fails the test unless each of the six numbers is within slack. */
static inline void polygon_check_near(struct box3 got, struct box3 want, double slack)
{
    if (!(fabs(got.min.x - want.min.x) <= slack && fabs(got.min.y - want.min.y) <= slack &&
          fabs(got.min.z - want.min.z) <= slack && fabs(got.max.x - want.max.x) <= slack &&
          fabs(got.max.y - want.max.y) <= slack && fabs(got.max.z - want.max.z) <= slack))
        fail_msg("bounds %.9g %.9g %.9g .. %.9g %.9g %.9g, expected %.9g %.9g %.9g .. %.9g %.9g "
                 "%.9g",
                 got.min.x, got.min.y, got.min.z, got.max.x, got.max.y, got.max.z, want.min.x,
                 want.min.y, want.min.z, want.max.x, want.max.y, want.max.z);
}

/* A real file decoded under the options; skips the test when the data is absent. */
static inline struct polygon_set polygon_check_real(const char *name,
                                                    const struct polygon_options *options)
{
    enum polygon_format format;
    struct polygon_set set;
    size_t length;
    uint8_t *bytes = test_data_read(name, &length);

    if (!bytes) {
        print_message("# %s is not here\n", name);
        skip();
    }
    assert_true(polygon_format_of_name(name, &format));
    set = polygon_check_good(format, bytes, length, options);
    free(bytes);
    return set;
}

#endif
