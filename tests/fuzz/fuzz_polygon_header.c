/*
 * Fuzzes what judges a polygon file before and after assimp reads it: signatures and counts of
 * every format, the indices of AC3D, the polygons that a glTF's JSON promises. The first byte:
 * bits 0-3 choose the format, bit 4 tightens the limits; the rest is the file, in memory of its
 * exact size.
 */
#include "base/check.h"
#include "formats/ac3d.h"
#include "formats/gltf.h"
#include "formats/polygon_header.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void refusal_check(enum err_code code, const struct err *err)
{
    CHECK(code == err->code && err->msg[0] != '\0');
    CHECK(code == ERR_BAD_INPUT || code == ERR_TOO_LARGE);
    CHECK(code != ERR_TOO_LARGE || (err->has_limit && err->got > err->limit));
}

/* Who has read every polygon that can be has read those that are promised; who has none, perhaps.
 */
static void promises_check(enum polygon_format format, const uint8_t *bytes, size_t length)
{
    static const uint64_t got[] = {UINT64_MAX, 0};

    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        struct err err = {.code = ERR_OK};
        enum err_code code = gltf_check_polygons(format, bytes, length, got[i], &err);

        if (code == ERR_OK)
            continue;
        refusal_check(code, &err);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const enum polygon_format formats[] = {POLYGON_OBJ,    POLYGON_GLB, POLYGON_GLTF,
                                                  POLYGON_PLY,    POLYGON_STL, POLYGON_AC3D,
                                                  POLYGON_COLLADA};
    static const struct polygon_limits tight = {
        .polygons_max = 4, .corners_max = 16, .vertices_max = 8};
    uint8_t flags = size ? bytes[0] : 0;
    enum polygon_format format = formats[(flags & 15) % (sizeof formats / sizeof *formats)];
    size_t length = size ? size - 1 : 0;
    uint8_t *exact = calloc(1, length ? length : 1);
    struct err err = {.code = ERR_OK};
    enum err_code code;

    CHECK(exact);
    if (length)
        memcpy(exact, bytes + 1, length);
    code = polygon_header_check(format, exact, length,
                                flags & 16 ? &tight : &polygon_limits_default, &err);
    if (code == ERR_OK && format == POLYGON_AC3D)
        code = ac3d_check_indices(exact, length, &err);
    if (code != ERR_OK)
        refusal_check(code, &err);
    else if (format == POLYGON_GLB || format == POLYGON_GLTF)
        promises_check(format, exact, length);
    free(exact);
    return 0;
}
