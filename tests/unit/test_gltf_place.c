/*
 * glTF: positions are float32, but where nodes place them is float64. Places are held against the
 * transforms of the specification in long double; accessors of each kind against what was written.
 */
#include "base/text/base64.h"
#include "tests/support/polygon_check.h"
#include "tests/support/random.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define DATA "data:application/octet-stream;base64,"
/* Three points 0 0 0, 1 0 0, 0 1 0 of float32, then 0 1 2 as uint16. */
#define TRIANGLE DATA "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAABAAIA"

/* A glTF whose node list, accessors and more members are given. */
static size_t write_gltf(char *text, size_t bytes, const char *nodes, const char *points,
                         const char *indices, const char *views, const char *more)
{
    int length = snprintf(
        text, bytes,
        "{\"asset\":{\"version\":\"2.0\"},\"scenes\":[{\"nodes\":[0]}],\"nodes\":[%s],\"meshes\":[{"
        "\"primitives\":[{\"attributes\":{\"POSITION\":0},\"indices\":1%s}]}],\"accessors\":[{"
        "\"bufferView\":0,\"componentType\":5126,\"type\":\"VEC3\",%s},{\"bufferView\":1,"
        "\"type\":\"SCALAR\",%s}],\"bufferViews\":[%s],\"buffers\":[{\"byteLength\":42,\"uri\":"
        "\"" TRIANGLE "\"}]}",
        nodes, more, points, indices, views);

    assert_true(length > 0 && (size_t)length < bytes);
    return (size_t)length;
}

#define POINTS "\"count\":3"
#define INDICES "\"componentType\":5123,\"count\":3"
#define VIEWS "{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,\"byteLength\":6}"
#define MESH "{\"mesh\":0}"

static struct polygon_set placed(const char *nodes)
{
    char text[8192];
    size_t length = write_gltf(text, sizeof text, nodes, POINTS, INDICES, VIEWS, "");
    struct polygon_set set = polygon_check_good(POLYGON_GLTF, text, length, NULL);

    if (set.precision_m != 0)
        fail_msg("precision_m is %g", set.precision_m);
    return set;
}

static void refused(const char *nodes, const char *points, const char *indices, const char *views,
                    const char *more, const char *message)
{
    char text[8192];
    size_t length = write_gltf(text, sizeof text, nodes, points, indices, views, more);

    polygon_check_refused(POLYGON_GLTF, text, length, NULL, NULL, ERR_BAD_INPUT, message);
}

static void a_translation_is_not_rounded(void **state)
{
    struct polygon_set set =
        placed("{\"mesh\":0,\"translation\":[1234567.123456789,5600000.25,-0.1]}");

    (void)state;
    assert_true(set.vertices[0].x == 1234567.123456789 && set.vertices[0].y == 5600000.25);
    assert_true(set.vertices[1].x == 1234568.123456789 && set.vertices[0].z == -0.1);
    polygon_set_free(&set);
}

/* ---- trees of nodes against long double ------------------------------------------------------ */

struct wide {
    long double m[3][4];
};

static struct wide wide_multiply(const struct wide *a, const struct wide *b)
{
    struct wide out;

    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++) {
            out.m[r][c] = c == 3 ? a->m[r][3] : 0;
            for (int k = 0; k < 3; k++)
                out.m[r][c] += a->m[r][k] * b->m[k][c];
        }
    return out;
}

/* A node with random members, as JSON without its last bracket, and its map. */
static size_t node_random(struct random *random, char *text, struct wide *out)
{
    double t[3], q[4], s[3], length = 0;
    long double x, y, z, w;

    for (int i = 0; i < 3; i++) {
        t[i] = random_in(random, -6e6, 6e6);
        s[i] = random_in(random, -2, 2);
    }
    for (int i = 0; i < 4; i++) {
        q[i] = random_in(random, -1, 1);
        length += q[i] * q[i];
    }
    for (int i = 0; i < 4; i++)
        q[i] /= sqrt(length);
    x = q[0], y = q[1], z = q[2], w = q[3];
    *out =
        (struct wide){{{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), t[0]},
                       {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), t[1]},
                       {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), t[2]}}};
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            out->m[r][c] *= s[c];
    if (random_below(random, 2))
        return (size_t)sprintf(text,
                               "{\"mesh\":0,\"translation\":[%.17g,%.17g,%.17g],\"rotation\":["
                               "%.17g,%.17g,%.17g,%.17g],\"scale\":[%.17g,%.17g,%.17g]",
                               t[0], t[1], t[2], q[0], q[1], q[2], q[3], s[0], s[1], s[2]);
    for (int r = 0; r < 3; r++) /* the matrix holds float64 */
        for (int c = 0; c < 4; c++)
            out->m[r][c] = (double)out->m[r][c];
    length = (double)sprintf(text, "{\"mesh\":0,\"matrix\":[");
    for (int i = 0; i < 16; i++)
        length += sprintf(text + (size_t)length, "%.17g%s",
                          i % 4 == 3 ? (double)(i == 15) : (double)out->m[i % 4][i / 4],
                          i == 15 ? "]" : ",");
    return (size_t)length;
}

static void nodes_are_where_long_double_puts_them(void **state)
{
    static const long double points[3][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    struct random random = {20261123};

    (void)state;
    for (int round = 0; round < 100; round++) {
        char nodes[4096];
        size_t used = 0, count = 1 + random_below(&random, 5);
        struct wide place = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}}, places[5];
        struct polygon_set set;

        for (size_t i = 0; i < count; i++) {
            struct wide own;

            used += node_random(&random, nodes + used, &own);
            place = places[i] = wide_multiply(&place, &own);
            used += i + 1 < count ? (size_t)sprintf(nodes + used, ",\"children\":[%zu]},", i + 1)
                                  : (size_t)sprintf(nodes + used, "}");
        }
        set = placed(nodes);
        assert_int_equal(set.vertex_count, 3 * count);
        for (size_t i = 0; i < 3 * count; i++) {
            const double got[3] = {set.vertices[i].x, set.vertices[i].y, set.vertices[i].z};

            for (int r = 0; r < 3; r++) {
                long double want = places[i / 3].m[r][3];

                for (int k = 0; k < 3; k++)
                    want += places[i / 3].m[r][k] * points[i % 3][k];
                if (fabsl((long double)got[r] - want) > 2e-7L) /* of sums up to 1e9 */
                    fail_msg("round %d, vertex %zu, axis %d: got %.17g, expected %.17Lg", round, i,
                             r, got[r], want);
            }
        }
        polygon_set_free(&set);
    }
}

/* ---- accessors ------------------------------------------------------------------------------- */

static void strips_and_fans_have_the_triangles_of_the_specification(void **state)
{
    /* Five points (i, i i, 0) of float32, without indices. */
    static const char base[] =
        "AAAAAAAAAAAAAAAAAACAPwAAgD8AAAAAAAAAQAAAgEAAAAAAAABAQAAAEEEAAAAAAACAQAAAgEEAAAAA";
    static const uint32_t want[2][9] = {{0, 1, 2, 1, 3, 2, 2, 3, 4}, {1, 2, 0, 2, 3, 0, 3, 4, 0}};

    (void)state;
    for (int mode = 5; mode <= 6; mode++) {
        char text[2048];
        int length = snprintf(
            text, sizeof text,
            "{\"asset\":{\"version\":\"2.0\"},\"scenes\":[{\"nodes\":[0]}],\"nodes\":[" MESH "],"
            "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0},\"mode\":%d}]}],"
            "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"type\":\"VEC3\",\"count\":5}"
            "],"
            "\"bufferViews\":[{\"buffer\":0,\"byteLength\":60}],"
            "\"buffers\":[{\"byteLength\":60,\"uri\":\"data:;base64,%s\"}]}",
            mode, base);
        struct polygon_set set = polygon_check_good(POLYGON_GLTF, text, (size_t)length, NULL);

        assert_int_equal(set.polygon_count, 3);
        for (size_t i = 0; i < 9; i++)
            if (set.vertices[set.corners[i]].x != want[mode - 5][i])
                fail_msg("mode %d, corner %zu: got point %g, expected %u", mode, i,
                         set.vertices[set.corners[i]].x, want[mode - 5][i]);
        polygon_set_free(&set);
    }
}

static void indices_may_have_any_size_offset_and_stride(void **state)
{
    static const char *const views[] = {
        VIEWS,
        "{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,\"byteLength\":5,"
        "\"byteStride\":2}",
        "{\"buffer\":0,\"byteLength\":36,\"byteStride\":12},{\"buffer\":0,\"byteOffset\":32,"
        "\"byteLength\":10}",
    };
    static const char *const indices[] = {INDICES, "\"componentType\":5121,\"count\":3",
                                          INDICES ",\"byteOffset\":4"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        char text[4096];
        size_t length = write_gltf(text, sizeof text, MESH, POINTS, indices[i], views[i], "");
        struct polygon_set set = polygon_check_good(POLYGON_GLTF, text, length, NULL);

        for (uint32_t c = 0; c < 3; c++)
            if (set.corners[c] != c)
                fail_msg("case %zu: corner %u is %u", i, c, set.corners[c]);
        polygon_set_free(&set);
    }
}

static void what_is_out_of_range_is_refused(void **state)
{
    (void)state;
    refused(MESH, POINTS, "\"componentType\":5123,\"count\":4", VIEWS, "",
            "an accessor of 4 elements ends beyond the 6 bytes");
    refused(MESH, POINTS, INDICES ",\"byteOffset\":1", VIEWS, "", "ends beyond the 6 bytes");
    refused(MESH, POINTS, INDICES ",\"byteOffset\":9007199254740991", VIEWS, "", "ends beyond");
    refused(MESH, "\"count\":9007199254740991", INDICES, VIEWS, "", "ends beyond the 36 bytes");
    refused(MESH, "\"count\":-3", INDICES, VIEWS, "", "count is not a whole number");
    refused(MESH, "\"count\":2", INDICES, VIEWS, "",
            "an index is out of range: triangle 0 of a primitive has point 2 of 2");
    refused(MESH, POINTS, INDICES,
            "{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":37,"
            "\"byteLength\":6}",
            "", "a buffer view ends beyond the 42 bytes of its buffer");
    refused(MESH, POINTS, INDICES,
            "{\"buffer\":0,\"byteLength\":36},{\"buffer\":1,\"byteLength\":6}", "",
            "a buffer view is of no buffer");
    refused(MESH, POINTS, INDICES,
            "{\"buffer\":0,\"byteLength\":36,\"byteStride\":8},{\"buffer\":0,\"byteLength\":6}", "",
            "byteStride 8 is less than the 12 bytes");
    refused(MESH, POINTS, INDICES, VIEWS, ",\"mode\":4.5", "mode is not a whole number");
    refused("{\"mesh\":0,\"matrix\":[1,2,3]}", POINTS, INDICES, VIEWS, "",
            "matrix of a node is no array of 16 numbers");
    refused("{\"mesh\":0,\"scale\":[1,2,3,4]}", POINTS, INDICES, VIEWS, "",
            "scale of a node is no array of 3 numbers");
    refused("{\"mesh\":0,\"scale\":[1,1e999,1]}", POINTS, INDICES, VIEWS, "", "is not finite");
    refused("{\"mesh\":1}", POINTS, INDICES, VIEWS, "", "a node has a mesh that is none of 1");
    refused("{\"children\":[1]}", POINTS, INDICES, VIEWS, "", "a node that is none of 1");
    refused("{\"children\":[1]},{\"children\":[0]}", POINTS, INDICES, VIEWS, "",
            "a node is below itself");
}

static void a_base64_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {{"gD8*AAA", "buffer 0 is not base64"},
                 {"gD8AAAA", "beyond the 41 bytes of its buffer"},
                 {"gD8===", "buffer 0 is not base64"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[4096], *at;

        write_gltf(text, sizeof text, MESH, POINTS, INDICES, VIEWS, "");
        at = strstr(text, "AAABAAIA\"");
        memcpy(at, wrong[i].text, strlen(wrong[i].text));
        memmove(at + strlen(wrong[i].text), at + 8, strlen(at + 8) + 1);
        polygon_check_refused(POLYGON_GLTF, text, strlen(text), NULL, NULL, ERR_BAD_INPUT,
                              wrong[i].message);
    }
}

static void the_buffer_of_a_glb_is_its_second_chunk(void **state)
{
    char json[2048];
    uint8_t glb[4096] = "glTF\2", *bin;
    char *uri, *tail;
    size_t length;
    struct polygon_set set;

    (void)state;
    write_gltf(json, sizeof json, "{\"mesh\":0,\"translation\":[0.1,0,0]}", POINTS, INDICES, VIEWS,
               "");
    uri = strstr(json, ",\"uri\"");
    tail = strstr(uri, "\"}]}") + 1;
    memmove(uri, tail, strlen(tail) + 1);
    length = strlen(json);
    while (length % 4)
        json[length++] = ' ';
    memcpy(glb + 12, &(uint32_t){(uint32_t)length}, 4);
    memcpy(glb + 16, "JSON", 4);
    memcpy(glb + 20, json, length);
    bin = glb + 20 + length;
    memcpy(bin, "\x2c\0\0\0BIN\0", 8);
    memcpy(bin + 8 + 12, &(float){1}, 4);
    memcpy(bin + 8 + 28, &(float){1}, 4);
    memcpy(bin + 8 + 36, "\0\0\1\0\2\0", 6);
    length += 20 + 8 + 44;
    memcpy(glb + 8, &(uint32_t){(uint32_t)length}, 4);
    set = polygon_check_good(POLYGON_GLB, glb, length, NULL);
    assert_true(set.vertices[1].x == 1.1 && set.vertices[2].y == 1 && set.corners[2] == 2);
    polygon_set_free(&set);
    for (size_t cut = 0; cut < length; cut += 7)
        polygon_check_refused(POLYGON_GLB, glb, cut, NULL, NULL, ERR_BAD_INPUT, "GLB: ");
}

static void what_is_left_to_assimp_says_its_precision(void **state)
{
    static const char nodes[] = "{\"mesh\":0,\"translation\":[5600000.25,0,0]}";
    char text[4096];
    size_t length = write_gltf(text, sizeof text, nodes, POINTS, INDICES, VIEWS, "");
    struct polygon_set set;
    char *end = strrchr(text, '}');

    (void)state;
    length = (size_t)(end - text) +
             (size_t)sprintf(end, ",\"extensionsRequired\":[\"KHR_materials_unlit\"]}");
    set = polygon_check_good(POLYGON_GLTF, text, length, NULL);
    assert_true(set.vertices[0].x == 5600000.25 && set.precision_m == 0);
    polygon_set_free(&set);
    length = (size_t)(end - text) + (size_t)sprintf(end, ",\"extensionsRequired\":[\"KOTA_x\"]}");
    set = polygon_check_good(POLYGON_GLTF, text, length,
                             &(struct polygon_options){.scale = 0.5, .up_y = false});
    if (set.vertices[0].x != 2800000 || set.precision_m != 0.25)
        fail_msg("x %.17g, precision_m %g", set.vertices[0].x, set.precision_m);
    polygon_set_free(&set);
}

/* The triangle in two places below a node that is shifted. */
static struct polygon_set instanced(const char *attributes)
{
    static const struct {
        float translations[2][3];
        int16_t words[2][4];
        int8_t bytes[2][4];
        float scales[2][3];
    } data = {{{1, 2, 3}, {-4, 5, 0.1F}},
              {{0, 0, 23170, 23170}, {0, 0, -32768, 0}}, /* a quarter about Z, and a half */
              {{0, 0, 90, 90}, {0, 0, -128, 0}},
              {{2, 2, 2}, {1, -3, 1}}};
    char text[4096], base64[sizeof data / 3 * 4 + 1] = "";

    base64_write(base64, &data, sizeof data);
    int length =
        snprintf(text, sizeof text,
                 "{\"asset\":{\"version\":\"2.0\"},\"extensionsRequired\":["
                 "\"EXT_mesh_gpu_instancing\"],\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{"
                 "\"mesh\":0,\"translation\":[100,0,0],\"extensions\":{"
                 "\"EXT_mesh_gpu_instancing\":{\"attributes\":{%s}}}}],\"meshes\":[{"
                 "\"primitives\":[{\"attributes\":{\"POSITION\":0}}]}],\"accessors\":["
                 "{\"bufferView\":0,\"componentType\":5126,\"type\":\"VEC3\",\"count\":3},"
                 "{\"bufferView\":1,\"componentType\":5126,\"type\":\"VEC3\",\"count\":2},"
                 "{\"bufferView\":1,\"componentType\":5122,\"type\":\"VEC4\",\"count\":2,"
                 "\"normalized\":true,\"byteOffset\":24},"
                 "{\"bufferView\":1,\"componentType\":5120,\"type\":\"VEC4\",\"count\":2,"
                 "\"normalized\":true,\"byteOffset\":40},"
                 "{\"bufferView\":1,\"componentType\":5126,\"type\":\"VEC3\",\"count\":2,"
                 "\"byteOffset\":48}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":36},"
                 "{\"buffer\":1,\"byteLength\":72}],\"buffers\":[{\"byteLength\":42,\"uri\":"
                 "\"" TRIANGLE "\"},{\"byteLength\":72,\"uri\":\"" DATA "%s\"}]}",
                 attributes, base64);

    assert_true(length > 0 && (size_t)length < sizeof text);
    return polygon_check_good(POLYGON_GLTF, text, (size_t)length, NULL);
}

static void instancing_places_a_mesh_for_each_element(void **state)
{
    static const struct {
        const char *attributes;
        double at[6][3];
    } cases[] = {
        {"\"TRANSLATION\":1",
         {{101, 2, 3}, {102, 2, 3}, {101, 3, 3}, {96, 5, 0.1F}, {97, 5, 0.1F}, {96, 6, 0.1F}}},
        {"\"TRANSLATION\":1,\"ROTATION\":2,\"SCALE\":4,\"_ID\":0",
         {{101, 2, 3}, {101, 4, 3}, {99, 2, 3}, {96, 5, 0.1F}, {95, 5, 0.1F}, {96, 8, 0.1F}}},
        {"\"ROTATION\":3",
         {{100, 0, 0}, {100, 1, 0}, {99, 0, 0}, {100, 0, 0}, {99, 0, 0}, {100, -1, 0}}},
        {"\"SCALE\":4",
         {{100, 0, 0}, {102, 0, 0}, {100, 2, 0}, {100, 0, 0}, {101, 0, 0}, {100, -3, 0}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set = instanced(cases[i].attributes);

        assert_int_equal(set.polygon_count, 2);
        for (int v = 0; v < 6; v++) {
            const double *want = cases[i].at[v];
            struct vec3 off = vec3_sub(set.vertices[v], (struct vec3){want[0], want[1], want[2]});

            if (!(vec3_length(off) < 1e-13))
                fail_msg("case %zu: vertex %d is off by %g %g %g", i, v, off.x, off.y, off.z);
        }
        polygon_set_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_translation_is_not_rounded),
        cmocka_unit_test(nodes_are_where_long_double_puts_them),
        cmocka_unit_test(strips_and_fans_have_the_triangles_of_the_specification),
        cmocka_unit_test(indices_may_have_any_size_offset_and_stride),
        cmocka_unit_test(what_is_out_of_range_is_refused),
        cmocka_unit_test(a_base64_that_is_none_is_refused),
        cmocka_unit_test(the_buffer_of_a_glb_is_its_second_chunk),
        cmocka_unit_test(what_is_left_to_assimp_says_its_precision),
        cmocka_unit_test(instancing_places_a_mesh_for_each_element),
    };

    return cmocka_run_group_tests_name("gltf_place", tests, NULL, NULL);
}
