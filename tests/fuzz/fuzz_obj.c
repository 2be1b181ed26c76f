/*
 * Fuzzes the reader of Wavefront OBJ. The first byte: bit 0 turns Y up, bit 1 scales to the edge of
 * float64, bit 2 tightens the limits; the rest is the file, in memory of its exact size.
 */
#include "base/check.h"
#include "formats/polygon_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void set_check(const struct polygon_set *set, const struct polygon_limits *limits)
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct polygon_limits tight = {
        .polygons_max = 4, .corners_max = 16, .vertices_max = 8};
    uint8_t flags = size ? bytes[0] : 0;
    const struct polygon_limits *limits = flags & 4 ? &tight : &polygon_limits_default;
    struct polygon_options options = {.up_y = flags & 1, .scale = flags & 2 ? 1e300 : 1};
    size_t length = size ? size - 1 : 0;
    uint8_t *exact = malloc(length ? length : 1);
    struct polygon_set set;
    struct err err = {0};
    enum err_code code;

    if (length)
        memcpy(exact, bytes + 1, length);
    code = polygon_decode(POLYGON_OBJ, exact, length, &options, limits, &set, &err);
    free(exact);
    if (code) {
        CHECK(err.code == code && err.msg[0]);
        CHECK(code != ERR_INTERNAL && code != ERR_NO_MEMORY);
        CHECK(code != ERR_TOO_LARGE || (err.has_limit && err.got > err.limit));
        CHECK(!set.vertices && !set.corners && !set.starts);
    } else {
        set_check(&set, limits);
    }
    polygon_set_free(&set);
    return 0;
}
