/*
 * What the fuzzers of our own readers of polygons share: the first byte of an input chooses the
 * options (bit 0 turns Y up, bit 1 scales to the edge of float64, bit 2 tightens the limits); the
 * rest is the file, in memory of its exact size.
 */
#ifndef KOTA_TESTS_FUZZ_FUZZ_POLYGONS_H
#define KOTA_TESTS_FUZZ_FUZZ_POLYGONS_H

#include "base/check.h"
#include "formats/polygon/polygon_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static inline void fuzz_polygons_check(const struct polygon_set *set,
                                       const struct polygon_limits *limits)
{
    uint32_t corners = set->starts[set->polygon_count];

    CHECK(set->polygon_count > 0 && set->polygon_count <= limits->polygons_max);
    CHECK(set->vertex_count <= limits->vertices_max && corners <= limits->corners_max);
    CHECK(set->starts[0] == 0);
    for (size_t i = 0; i < set->polygon_count; i++)
        CHECK(set->starts[i + 1] >= set->starts[i] + 3);
    for (size_t i = 0; i < corners; i++)
        CHECK(set->corners[i] < set->vertex_count);
    for (size_t i = 0; i < set->vertex_count; i++)
        CHECK(vec3_is_finite(set->vertices[i]));
}

struct fuzz_polygons {
    struct polygon_options options;
    const struct polygon_limits *limits;
    uint8_t *exact; /* freed by fuzz_polygons_end */
    size_t length;
};

static inline struct fuzz_polygons fuzz_polygons_begin(const uint8_t *bytes, size_t size)
{
    static const struct polygon_limits tight = {
        .polygons_max = 4, .corners_max = 16, .vertices_max = 8};
    uint8_t flags = size ? bytes[0] : 0;
    struct fuzz_polygons input = {
        .options = {.up_y = flags & 1, .scale = flags & 2 ? 1e300 : 1},
        .limits = flags & 4 ? &tight : &polygon_limits_default,
        .length = size ? size - 1 : 0,
    };

    input.exact = malloc(input.length ? input.length : 1);
    CHECK(input.exact);
    if (input.length)
        memcpy(input.exact, bytes + 1, input.length);
    return input;
}

/* Judges what came of it, and frees all. */
static inline void fuzz_polygons_end(struct fuzz_polygons *input, enum err_code code,
                                     const struct err *err, struct polygon_set *set)
{
    free(input->exact);
    if (code) {
        CHECK(err->code == code && err->msg[0]);
        CHECK(code != ERR_INTERNAL && code != ERR_NO_MEMORY);
        CHECK(code != ERR_TOO_LARGE || (err->has_limit && err->got > err->limit));
    } else {
        fuzz_polygons_check(set, input->limits);
    }
    polygon_set_free(set);
}

/* One input of a format that polygon_decode() reads in this process. */
static inline int fuzz_polygons(enum polygon_format format, const uint8_t *bytes, size_t size)
{
    struct fuzz_polygons input = fuzz_polygons_begin(bytes, size);
    struct polygon_set set;
    struct err err = {0};
    enum err_code code =
        polygon_decode(format, input.exact, input.length, &input.options, input.limits, &set, &err);

    CHECK(!code || (!set.vertices && !set.corners && !set.starts));
    fuzz_polygons_end(&input, code, &err, &set);
    return 0;
}

#endif
