/*
 * How many polygons a glTF promises, and that fewer are refused: assimp drops a triangle that has
 * an index out of range without a word. Our own reader refuses the index.
 */
#include "formats/polygon/gltf.h"
#include "tests/support/polygon_check.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Accessors: 0 has 9 points, 1 has 7 indices, 2 has 1. */
#define ACCESSORS "\"accessors\":[{\"count\":9},{\"count\":7},{\"count\":1}]"
#define SCENE "\"scenes\":[{\"nodes\":[0]}]"
#define MESH(primitives)                                                                           \
    "{" ACCESSORS "," SCENE ",\"nodes\":[{\"mesh\":0}],\"meshes\":[{"                              \
    "\"primitives\":[" primitives "]}]}"
#define INDEXED(mode) "{\"attributes\":{\"POSITION\":0},\"indices\":1,\"mode\":" mode "}"
#define NODES(list)                                                                                \
    "{" ACCESSORS "," SCENE ",\"nodes\":[" list "],\"meshes\":[{\"primitives\":[" INDEXED(         \
        "4") "]},{\"primitives\":[" INDEXED("5") "," INDEXED("6") "]}]}"

static enum err_code check(enum polygon_format format, const void *bytes, size_t length,
                           uint64_t got, struct err *err)
{
    uint8_t *exact = malloc(length ? length : 1);
    enum err_code code;

    memcpy(exact, bytes, length);
    memset(err, 0, sizeof *err);
    code = gltf_check_polygons(format, exact, length, got, err);
    free(exact);
    return code;
}

/* The file promises so many: as many are taken, and one less is not. */
static void promise_check(size_t i, const char *text, uint64_t polygons)
{
    struct err err;
    char message[100];

    if (check(POLYGON_GLTF, text, strlen(text), polygons, &err))
        fail_msg("case %zu: %llu polygons are refused: %s", i, (unsigned long long)polygons,
                 err.msg);
    if (polygons == 0)
        return;
    snprintf(message, sizeof message,
             "glTF: 1 of %llu polygons are missing: an index is out of range",
             (unsigned long long)polygons);
    if (check(POLYGON_GLTF, text, strlen(text), polygons - 1, &err) != ERR_BAD_INPUT ||
        strcmp(err.msg, message) != 0)
        fail_msg("case %zu: code %d \"%s\", expected \"%s\"", i, (int)err.code, err.msg, message);
}

struct promise_case {
    const char *text;
    uint64_t polygons;
};

static void a_primitive_promises_by_its_mode_and_count(void **state)
{
    static const struct promise_case cases[] = {
        {MESH(INDEXED("4")), 2},
        {MESH(INDEXED("5")), 5},
        {MESH(INDEXED("6")), 5},
        {MESH(INDEXED("0") "," INDEXED("1") "," INDEXED("2") "," INDEXED("3")), 0},
        {MESH(INDEXED("7")), 0},
        {MESH("{\"attributes\":{\"POSITION\":0}}"), 3},
        {MESH("{\"attributes\":{\"POSITION\":0},\"mode\":5}"), 7},
        {MESH("{\"attributes\":{\"POSITION\":0},\"indices\":2,\"mode\":5}"), 0},
        {MESH(INDEXED("4") "," INDEXED("0") "," INDEXED("6")), 7},
        {MESH("{\"attributes\":{\"POSITION\":3}},{\"indices\":-1},{},7,null"), 0},
        {MESH("{\"attributes\":{\"NORMAL\":0}}"), 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        promise_check(i, cases[i].text, cases[i].polygons);
}

static void a_mesh_promises_as_often_as_the_scenes_nodes_use_it(void **state)
{
    static const struct promise_case cases[] = {
        {NODES("{\"mesh\":0}"), 2},
        {NODES("{\"mesh\":1}"), 10},
        {NODES("{\"children\":[1,2,3]},{\"mesh\":0},{\"mesh\":0},{\"mesh\":1}"), 14},
        {NODES("{\"children\":[1]},{\"mesh\":0,\"children\":[2,2]},{\"mesh\":0}"), 6},
        {NODES("{},{\"mesh\":1}"), 0},
        {NODES("{\"mesh\":2,\"children\":[9,-1,\"1\",null]}"), 0},
        {"{\"scene\":1,\"scenes\":[{\"nodes\":[0]},{\"nodes\":[1]}],\"nodes\":[{\"mesh\":0},{}],"
         "\"meshes\":[{\"primitives\":[" INDEXED("4") "]}]," ACCESSORS "}",
         0},
        {"{\"meshes\":{\"primitives\":[]},\"nodes\":7," SCENE "}", 0},
        {"{}", 0},
        {"[]", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        promise_check(i, cases[i].text, cases[i].polygons);
}

static void sums_without_end_stop(void **state)
{
    static const char huge[] =
        "{\"accessors\":[{\"count\":1e300}]," SCENE ",\"nodes\":[{\"mesh\":0,\"children\":[1,1]},"
        "{\"mesh\":0}],\"meshes\":[{\"primitives\":[{\"indices\":0,\"mode\":5},{\"indices\":0,"
        "\"mode\":5}]}]}";
    struct err err;

    (void)state;
    assert_int_equal(check(POLYGON_GLTF, huge, strlen(huge), 5, &err), ERR_BAD_INPUT);
    if (!strstr(err.msg, " of 9007199254740992 polygons"))
        fail_msg("%s", err.msg);
}

static void nodes_without_end_are_refused(void **state)
{
    static const char *const texts[] = {
        NODES("{\"children\":[0]}"),
        NODES("{\"children\":[1,1]},{\"children\":[0]}"),
    };
    char wide[4096];
    size_t used = (size_t)snprintf(wide, sizeof wide, "{" SCENE ",\"nodes\":[");
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (check(POLYGON_GLTF, texts[i], strlen(texts[i]), 9, &err) != ERR_BAD_INPUT ||
            !strstr(err.msg, "over 256 deep"))
            fail_msg("case %zu: code %d \"%s\"", i, (int)err.code, err.msg);
    for (int i = 1; i < 60; i++)
        used += (size_t)snprintf(wide + used, sizeof wide - used, "{\"children\":[%d,%d]},", i, i);
    used += (size_t)snprintf(wide + used, sizeof wide - used, "{}]}");
    assert_int_equal(check(POLYGON_GLTF, wide, used, 9, &err), ERR_BAD_INPUT);
}

static void the_json_of_a_glb_is_its_first_chunk(void **state)
{
    static const char json[] = MESH(INDEXED("4"));
    uint8_t glb[20 + sizeof json - 1 + 8] = "glTF\2";
    struct err err;

    (void)state;
    glb[8] = (uint8_t)sizeof glb;
    glb[12] = (uint8_t)(sizeof json - 1);
    memcpy(glb + 20, json, sizeof json - 1);
    assert_true(sizeof json - 1 < 256);
    assert_int_equal(check(POLYGON_GLB, glb, sizeof glb, 2, &err), ERR_OK);
    assert_int_equal(check(POLYGON_GLB, glb, sizeof glb, 1, &err), ERR_BAD_INPUT);
    assert_string_equal(err.msg, "GLB: 1 of 2 polygons are missing: an index is out of range");
}

static void every_truncated_length_is_refused(void **state)
{
    static const char text[] = NODES("{\"mesh\":0}");
    struct err err;

    (void)state;
    for (size_t cut = 0; cut < sizeof text - 1; cut++)
        if (check(POLYGON_GLTF, text, cut, 99, &err) != ERR_BAD_INPUT)
            fail_msg("the first %zu bytes pass", cut);
}

/* Two triangles of three points, the second's last index 9 or 1; indices 0 1 2 0 2 x as uint16. */
static void a_dropped_triangle_is_refused_by_the_reader(void **state)
{
    static const char *const uris[] = {
        "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAABAAIAAAACAAEA",
        "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAABAAIAAAACAAkA"};
    char texts[2][1024];
    struct polygon_set set;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        snprintf(texts[i], sizeof texts[i],
                 "{\"asset\":{\"version\":\"2.0\"},\"scene\":0," SCENE ",\"nodes\":[{\"mesh\":0}],"
                 "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0},\"indices\":1}]}],"
                 "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":3,\"type\":"
                 "\"VEC3\"},{\"bufferView\":1,\"componentType\":5123,\"count\":6,\"type\":"
                 "\"SCALAR\"}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,"
                 "\"byteOffset\":36,\"byteLength\":12}],\"buffers\":[{\"byteLength\":48,\"uri\":"
                 "\"data:application/octet-stream;base64,%s\"}]}",
                 uris[i]);
    set = polygon_check_good(POLYGON_GLTF, texts[0], strlen(texts[0]), NULL);
    assert_int_equal(set.polygon_count, 2);
    polygon_set_free(&set);
    polygon_check_refused(
        POLYGON_GLTF, texts[1], strlen(texts[1]), NULL, NULL, ERR_BAD_INPUT,
        "glTF: an index is out of range: triangle 1 of a primitive has point 9 of 3");
}

static void a_real_file_promises_what_it_has(void **state)
{
    struct err err;
    size_t length;
    uint8_t *bytes = test_data_read("objects/RockA.glb", &length);

    (void)state;
    if (!bytes) {
        print_message("# RockA.glb is not here\n");
        skip();
    }
    if (check(POLYGON_GLB, bytes, length, 248, &err))
        fail_msg("refused: %s", err.msg);
    assert_int_equal(check(POLYGON_GLB, bytes, length, 247, &err), ERR_BAD_INPUT);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_primitive_promises_by_its_mode_and_count),
        cmocka_unit_test(a_mesh_promises_as_often_as_the_scenes_nodes_use_it),
        cmocka_unit_test(sums_without_end_stop),
        cmocka_unit_test(nodes_without_end_are_refused),
        cmocka_unit_test(the_json_of_a_glb_is_its_first_chunk),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(a_dropped_triangle_is_refused_by_the_reader),
        cmocka_unit_test(a_real_file_promises_what_it_has),
    };

    return cmocka_run_group_tests_name("gltf", tests, NULL, NULL);
}
