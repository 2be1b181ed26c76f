/*
 * Fuzzes what judges a polygon file before assimp reads it: the signatures of its formats, the
 * indices of AC3D. The first byte: bits 0-3 choose the format; the rest is the file, in memory of
 * its exact size.
 */
#include "base/check.h"
#include "formats/polygon/ac3d.h"
#include "formats/polygon/polygon_header.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void refusal_check(enum err_code code, const struct err *err)
{
    CHECK(code == err->code && err->msg[0] != '\0');
    CHECK(code == ERR_BAD_INPUT || code == ERR_TOO_LARGE);
    CHECK(code != ERR_TOO_LARGE || (err->has_limit && err->got > err->limit));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const enum polygon_format formats[] = {POLYGON_OBJ, POLYGON_GLB, POLYGON_GLTF,
                                                  POLYGON_AC3D, POLYGON_COLLADA};
    uint8_t flags = size ? bytes[0] : 0;
    enum polygon_format format = formats[(flags & 15) % (sizeof formats / sizeof *formats)];
    size_t length = size ? size - 1 : 0;
    uint8_t *exact = calloc(1, length ? length : 1);
    struct err err = {.code = ERR_OK};
    enum err_code code;

    CHECK(exact);
    if (length)
        memcpy(exact, bytes + 1, length);
    code = polygon_header_check(format, exact, length, &err);
    if (code == ERR_OK && format == POLYGON_AC3D)
        code = ac3d_check_indices(exact, length, &err);
    if (code != ERR_OK)
        refusal_check(code, &err);
    free(exact);
    return 0;
}
