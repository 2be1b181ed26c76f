/*
 * Fuzzes the reader of glTF outside its jail, and what counts the polygons that the JSON promises
 * to assimp. fuzz_polygons.h says what an input is, but that bit 0 chooses GLB and that vertices
 * may be infinite: that is judged behind the jail.
 */
#include "formats/polygon/gltf.h"
#include "formats/polygon/polygon_header.h"
#include "tests/fuzz/fuzz_polygons.h"

#include <math.h>

/* A reader of every polygon that can be has read those that are promised; one of none, perhaps. */
static void promises_check(enum polygon_format format, const uint8_t *bytes, size_t length)
{
    static const uint64_t got[] = {UINT64_MAX, 0};

    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        struct err err = {.code = ERR_OK};
        enum err_code code = gltf_check_polygons(format, bytes, length, got[i], &err);

        CHECK(code == err.code && (!code || (code == ERR_BAD_INPUT && err.msg[0] != '\0')));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_polygons input = fuzz_polygons_begin(bytes, size);
    enum polygon_format format = input.options.up_y ? POLYGON_GLB : POLYGON_GLTF;
    struct polygon_set set = {.instances.axis = {0, 1, 0}};
    struct err err = {0};
    bool is_read = true;
    enum err_code code = polygon_header_check(format, input.exact, input.length, &err);

    if (!code)
        promises_check(format, input.exact, input.length);
    if (!code)
        code = gltf_decode(format, input.exact, input.length, input.limits, &is_read, &set, &err);
    if (!is_read) {
        CHECK(!code && !set.vertices && !set.corners && !set.starts);
        free(input.exact);
        return 0;
    }
    CHECK(code || set.instances.count == 0 ||
          instances_are_sound(&set.instances, set.polygon_count));
    for (size_t i = 0; !code && i < set.vertex_count; i++)
        if (!vec3_is_finite(set.vertices[i]))
            set.vertices[i] = (struct vec3){0, 0, 0};
    fuzz_polygons_end(&input, code, &err, &set);
    return 0;
}
