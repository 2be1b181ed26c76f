/*
 * Files that assimp reads: each format small and real, node trees good and hostile, a file that
 * names another file, and files that are known to crash assimp 5.2.5.
 */
#include "formats/polygon/assimp_import.h"

#include "support/long_form.h"
#include "tests/support/polygon_check.h"

#include <stdio.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Three float32 points 0 0 0, 1 0 0, 0 1 0 and three uint16 indices. */
#define DATA "data:application/octet-stream;base64,"
#define TRIANGLE DATA "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAABAAIA"
#define TRIANGLE_NAN DATA "AAAAAAAAAAAAAAAAAACAPwAAAAAAAMB/AAAAAAAAgD8AAAAAAAABAAIA"
#define TRIANGLE_WILD DATA "AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAABAAkA"

static const char ply_square[] =
    "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\n"
    "property float z\nelement face 2\nproperty list uchar int vertex_indices\nend_header\n"
    "0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 7\n4 0 1 2 3\n3 2 1 4\n";

static const char ac3d_square[] =
    "AC3Db\nMATERIAL \"m\" rgb 1 1 1 amb 1 1 1 emis 0 0 0 spec 0 0 0 shi 10 trans 0\n"
    "OBJECT world\nkids 1\nOBJECT poly\nname \"a\"\nloc 0 0 5\nsubdiv 2\nnumvert 4\n0 0 0\n1 0 0\n"
    "1 1 0\n0 1 0\nnumsurf 2\nSURF 0x10\nmat 0\nrefs 4\n0 0 0\n1 0 0\n2 0 0\n3 0 0\nSURF 0x30\n"
    "mat 0\nrefs 3\n0 0 0\n1 0 0\n2 0 0\nkids 0\n";

static const char stl_text[] = "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n"
                               "vertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n";

static const char collada_square[] =
    "<?xml version=\"1.0\"?>\n<COLLADA version=\"1.4.1\"><asset><unit meter=\"2\"/>"
    "<up_axis>Y_UP</up_axis></asset><library_geometries><geometry id=\"g\"><mesh>"
    "<source id=\"p\"><float_array id=\"a\" count=\"12\">0 0 0 1 0 0 1 1 0 0 1 3</float_array>"
    "<technique_common><accessor source=\"#a\" count=\"4\" stride=\"3\"><param name=\"X\" "
    "type=\"float\"/><param name=\"Y\" type=\"float\"/><param name=\"Z\" type=\"float\"/>"
    "</accessor></technique_common></source><vertices id=\"v\"><input semantic=\"POSITION\" "
    "source=\"#p\"/></vertices><polylist count=\"1\"><input semantic=\"VERTEX\" source=\"#v\" "
    "offset=\"0\"/><vcount>4</vcount><p>0 1 2 3</p></polylist></mesh></geometry>"
    "</library_geometries><library_visual_scenes><visual_scene id=\"s\"><node id=\"n\">"
    "<instance_geometry url=\"#g\"/></node></visual_scene></library_visual_scenes><scene>"
    "<instance_visual_scene url=\"#s\"/></scene></COLLADA>\n";

/* A glTF of one triangle with these nodes; node 0 is the root. */
static size_t gltf_write(char *text, size_t bytes, const char *uri, const char *mode,
                         const char *nodes)
{
    int length = snprintf(
        text, bytes,
        "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],"
        "\"nodes\":[%s],\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0},"
        "\"indices\":1,\"mode\":%s}]}],\"accessors\":[{\"bufferView\":0,\"componentType\":5126,"
        "\"count\":3,\"type\":\"VEC3\",\"min\":[0,0,0],\"max\":[1,1,0]},{\"bufferView\":1,"
        "\"componentType\":5123,\"count\":3,\"type\":\"SCALAR\"}],\"bufferViews\":[{\"buffer\":0,"
        "\"byteOffset\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,\"byteLength\":6}],"
        "\"buffers\":[{\"byteLength\":42,\"uri\":\"%s\"}]}",
        nodes, mode, uri);

    assert_true(length > 0 && (size_t)length < bytes);
    return (size_t)length;
}

static struct polygon_set gltf_good(const char *nodes)
{
    char text[4096];
    size_t length = gltf_write(text, sizeof text, TRIANGLE, "4", nodes);

    return polygon_check_good(POLYGON_GLTF, text, length, NULL);
}

static void gltf_refused(const char *uri, const char *mode, const char *nodes, enum err_code code,
                         const char *message)
{
    char text[4096];
    size_t length = gltf_write(text, sizeof text, uri, mode, nodes);

    polygon_check_refused(POLYGON_GLTF, text, length, NULL, NULL, code, message);
}

/* Corner c of polygon p. */
static struct vec3 corner(const struct polygon_set *set, size_t p, size_t c)
{
    return set->vertices[set->corners[set->starts[p] + c]];
}

static void corner_check(const struct polygon_set *set, size_t p, size_t c, struct vec3 want)
{
    struct vec3 got = corner(set, p, c);

    if (vec3_length(vec3_sub(got, want)) > 1e-6)
        fail_msg("corner %zu of polygon %zu: got %g %g %g, expected %g %g %g", c, p, got.x, got.y,
                 got.z, want.x, want.y, want.z);
}

/* ---- what each format holds
 * ------------------------------------------------------------------------ */

static void a_ply_keeps_its_polygons_their_order_and_its_vertices(void **state)
{
    struct polygon_set set = polygon_check_good(POLYGON_PLY, ply_square, strlen(ply_square), NULL);

    (void)state;
    assert_int_equal(set.vertex_count, 5);
    assert_int_equal(set.polygon_count, 2);
    assert_int_equal(set.starts[1], 4);
    assert_int_equal(set.starts[2], 7);
    corner_check(&set, 0, 2, (struct vec3){1, 1, 0});
    corner_check(&set, 1, 2, (struct vec3){0, 0, 7});
    polygon_set_free(&set);
}

static void an_ac3d_keeps_its_polygons_and_is_not_subdivided(void **state)
{
    struct polygon_set set =
        polygon_check_good(POLYGON_AC3D, ac3d_square, strlen(ac3d_square), NULL);

    (void)state;
    assert_int_equal(set.polygon_count, 2);
    assert_int_equal(set.starts[1], 4);
    corner_check(&set, 0, 2, (struct vec3){1, 1, 5});
    corner_check(&set, 1, 1, (struct vec3){1, 0, 5});
    polygon_set_free(&set);
}

static void an_stl_is_read_as_text_and_as_bytes(void **state)
{
    uint8_t binary[84 + 50] = {[80] = 1, [84 + 24 + 2] = 0x80, [84 + 24 + 3] = 0x3f};
    struct polygon_set set = polygon_check_good(POLYGON_STL, stl_text, strlen(stl_text), NULL);

    (void)state;
    assert_int_equal(set.polygon_count, 1);
    corner_check(&set, 0, 1, (struct vec3){1, 0, 0});
    polygon_set_free(&set);
    set = polygon_check_good(POLYGON_STL, binary, sizeof binary, NULL);
    assert_int_equal(set.polygon_count, 1);
    corner_check(&set, 0, 1, (struct vec3){1, 0, 0});
    polygon_set_free(&set);
}

/* 5,600,000 is between 2^22 and 2^23: steps of 0.5. What cancels on the way counts, too. */
static void what_is_rounded_to_float32_says_in_which_steps(void **state)
{
    static const struct polygon_options halved = {.scale = 0.5};
    static const struct {
        const char *above, *own;
        double step;
    } cases[] = {
        {"0 0 0", "0 0 5", 0x1p-21},
        {"0 0 0", "400000.1 5600000.2 5", 0.5},
        {"0 0 0", "-5600000.2 0 0", 0.5},
        {"0 0 2800000", "0 0 -2800000", 0.5},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const char *at = strstr(ac3d_square, "OBJECT poly"), *loc = strstr(at, "loc 0 0 5\n");
        char text[1024];
        struct polygon_set set;
        double want = i % 2 ? cases[i / 2].step / 2 : cases[i / 2].step;

        snprintf(text, sizeof text, "%.*sOBJECT group\nloc %s\nkids 1\n%.*sloc %s\n%s",
                 (int)(at - ac3d_square), ac3d_square, cases[i / 2].above, (int)(loc - at), at,
                 cases[i / 2].own, loc + strlen("loc 0 0 5\n"));
        set = polygon_check_good(POLYGON_AC3D, text, strlen(text), i % 2 ? &halved : NULL);
        if (set.precision_m != want)
            fail_msg("case %zu: got %g, expected %g", i, set.precision_m, want);
        polygon_set_free(&set);
    }
}

static void a_colladas_unit_counts_and_its_up_axis_does_not(void **state)
{
    static const struct polygon_options up_y = {.up_y = true, .scale = 1};
    struct polygon_set set =
        polygon_check_good(POLYGON_COLLADA, collada_square, strlen(collada_square), NULL);

    (void)state;
    assert_int_equal(set.polygon_count, 1);
    assert_int_equal(set.starts[1], 4);
    corner_check(&set, 0, 3, (struct vec3){0, 2, 6});
    polygon_set_free(&set);
    set = polygon_check_good(POLYGON_COLLADA, collada_square, strlen(collada_square), &up_y);
    corner_check(&set, 0, 3, (struct vec3){0, -6, 2});
    polygon_set_free(&set);
}

static void nodes_place_their_meshes_depth_first_and_mirrors_keep_fronts(void **state)
{
    struct polygon_set set =
        gltf_good("{\"children\":[1,3],\"translation\":[10,0,0]},"
                  "{\"mesh\":0,\"children\":[2],\"scale\":[2,2,2]},"
                  "{\"mesh\":0,\"translation\":[0,0,1]},{\"mesh\":0,\"scale\":[1,1,-1]}");

    (void)state;
    assert_int_equal(set.polygon_count, 3);
    corner_check(&set, 0, 0, (struct vec3){10, 0, 0});
    corner_check(&set, 0, 1, (struct vec3){12, 0, 0});
    corner_check(&set, 1, 1, (struct vec3){12, 0, 2});
    corner_check(&set, 2, 0, (struct vec3){10, 1, 0});
    corner_check(&set, 2, 1, (struct vec3){11, 0, 0});
    corner_check(&set, 2, 2, (struct vec3){10, 0, 0});
    polygon_set_free(&set);
}

/* ---- what is refused
 * ------------------------------------------------------------------------------- */

static void a_gltf_cannot_read_files_of_this_machine(void **state)
{
    static const char *const uris[] = {"/etc/passwd", "file:///etc/passwd", "../../../etc/passwd",
                                       "etc/passwd", "upload.bin"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(uris); i++)
        gltf_refused(uris[i], "4", "{\"mesh\":0}", ERR_BAD_INPUT, "glTF: not read: ");
}

/* A file that would do: the decode fails only because it cannot be opened, in the jail or out. */
static void not_even_a_file_that_holds_the_right_buffer_is_opened(void **state)
{
    static const uint8_t buffer[42] = {
        [14] = 0x80, [15] = 0x3f, [30] = 0x80, [31] = 0x3f, [38] = 1, [40] = 2};
    char path[] = "/tmp/kota-test-XXXXXX", text[4096];
    int file = mkstemp(path);
    struct polygon_set set = {0};
    struct err err = {0};
    size_t length;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, buffer, sizeof buffer), sizeof buffer);
    close(file);
    gltf_refused(path, "4", "{\"mesh\":0}", ERR_BAD_INPUT, "glTF: not read: ");
    length = gltf_write(text, sizeof text, path, "4", "{\"mesh\":0}");
    assert_int_equal(assimp_decode_here(POLYGON_GLTF, (const uint8_t *)text, length,
                                        &polygon_limits_default, &set, &err),
                     ERR_BAD_INPUT);
    unlink(path);
    assert_non_null(strstr(err.msg, "kota-test-"));
}

static void a_gltf_that_is_wrong_is_refused(void **state)
{
    (void)state;
    gltf_refused(TRIANGLE_NAN, "4", "{\"mesh\":0}", ERR_BAD_INPUT, "not finite");
    gltf_refused(TRIANGLE_WILD, "4", "{\"mesh\":0}", ERR_BAD_INPUT, "glTF: ");
    gltf_refused(TRIANGLE, "4", "{\"mesh\":7}", ERR_BAD_INPUT, "glTF: ");
    gltf_refused(TRIANGLE, "4", "{\"mesh\":0,\"children\":[9]}", ERR_BAD_INPUT, "glTF: ");
    gltf_refused(TRIANGLE, "0", "{\"mesh\":0}", ERR_UNPROCESSABLE, "no polygons");
    polygon_check_refused(POLYGON_GLTF, "{}", 2, NULL, NULL, ERR_BAD_INPUT, "glTF: ");
    polygon_check_refused(POLYGON_GLTF, "{\"asset\":", 9, NULL, NULL, ERR_BAD_INPUT, "glTF: ");
}

static void cyclic_nodes_are_refused(void **state)
{
    (void)state;
    gltf_refused(TRIANGLE, "4", "{\"mesh\":0,\"children\":[0]}", ERR_BAD_INPUT, "glTF: ");
    gltf_refused(TRIANGLE, "4", "{\"children\":[1]},{\"mesh\":0,\"children\":[0]}", ERR_BAD_INPUT,
                 "glTF: ");
}

/* A chain of that many nodes, the last with the mesh. */
static enum err_code chain_decode(size_t nodes, struct err *err)
{
    size_t bytes = nodes * 32 + 4096, used = 0;
    char *list = malloc(bytes), *text = malloc(2 * bytes);
    struct polygon_set set;
    enum err_code code;

    for (size_t i = 1; i < nodes; i++)
        used += (size_t)sprintf(list + used, "{\"children\":[%zu]},", i);
    sprintf(list + used, "{\"mesh\":0}");
    used = gltf_write(text, 2 * bytes, TRIANGLE, "4", list);
    code = polygon_check_decode(POLYGON_GLTF, text, used, NULL, NULL, &set, err);
    polygon_set_free(&set);
    free(list);
    free(text);
    return code;
}

static void deep_nodes_are_read_to_a_bound_and_then_refused(void **state)
{
    struct err err;

    (void)state;
    if (chain_decode(200, &err))
        fail_msg("200 deep: %s", err.msg);
    assert_int_equal(chain_decode(400, &err), ERR_TOO_LARGE);
    if (err.limit != 256)
        fail_msg("limit %g: %s", err.limit, err.msg);
    assert_int_not_equal(chain_decode(200000, &err), ERR_OK);
}

static void polygons_count_for_each_node_that_uses_them(void **state)
{
    static const struct polygon_limits two = {2, 99, 99}, nine = {9, 99, 8};
    static const char nodes[] = "{\"mesh\":0,\"children\":[1,2]},{\"mesh\":0},{\"mesh\":0}";
    char text[4096];
    size_t length = gltf_write(text, sizeof text, TRIANGLE, "4", nodes);

    (void)state;
    polygon_check_too_large(POLYGON_GLTF, text, length, &two, 2, 3);
    polygon_check_too_large(POLYGON_GLTF, text, length, &nine, 8, 9);
}

/* Found by fuzzing assimp 5.2.5; whatever it does with them, we get an error and live. */
static void files_that_crash_the_library_are_refused(void **state)
{
    static const struct {
        enum polygon_format format;
        const char *text;
    } cases[] = {
        {POLYGON_AC3D, "AC3Db\nMATERIins 0\nOBJECT w1 1 amb  1\ncrease 30\nnumvert 4\n"
                       "0 0 0 0 1 0\nnumsurf 2\nSURF 0x2-\nmat 0\nrefs 4\n0 0 0\n1 1 0\n2 1 1\n"
                       "3 0 1\nSURF 2\nSURmat 0\nrefs 4\n0 0 0\n1 1 0\n2 1 1\n3 0 0\nSU"},
        {POLYGON_AC3D, "AC3Db\nMAld\nkids 1\nOBJECT poc 0rld\nkids 1\nOBJECT world\n"
                       "kids 1999999999999999999999999999999999999999\n"},
        {POLYGON_PLY, "ply\nformat binary_big_endian 1.0w\xff\xff \r\r\r\rend_header\r\r\r"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        polygon_check_refused(cases[i].format, cases[i].text, strlen(cases[i].text), NULL, NULL,
                              ERR_BAD_INPUT, "");
}

/* Each length is a child of its own: in make test only every ninth. */
static void truncated_lengths_keep_the_contract(void **state)
{
    char text[4096];
    size_t length = gltf_write(text, sizeof text, TRIANGLE, "4", "{\"mesh\":0}");
    size_t every = long_form(1, 9);

    (void)state;
    polygon_check_truncations(POLYGON_PLY, ply_square, strlen(ply_square), every);
    polygon_check_truncations(POLYGON_AC3D, ac3d_square, strlen(ac3d_square), every);
    polygon_check_truncations(POLYGON_STL, stl_text, strlen(stl_text), every);
    polygon_check_truncations(POLYGON_GLTF, text, length, every);
    polygon_check_truncations(POLYGON_COLLADA, collada_square, strlen(collada_square), every);
}

/* ---- real files
 * ------------------------------------------------------------------------------------ */

static void a_real_ply_has_its_counts_and_bounds(void **state)
{
    static const struct box3 bounds = {{-1.5, -8, -1}, {7.5, 1, 1}};
    struct polygon_set set = polygon_check_real("meshes/floor_is_lava_map.ply", NULL);

    (void)state;
    if (set.polygon_count != 15960 || set.vertex_count != 8100)
        fail_msg("%zu polygons, %zu vertices", set.polygon_count, set.vertex_count);
    polygon_check_near(polygon_check_bounds(&set), bounds, 1e-4);
    polygon_set_free(&set);
}

/* OBJ files beside others have Y up; COLLADA's own axis here is Z. */
static void real_files_agree_with_the_obj_made_of_them(void **state)
{
    static const struct {
        const char *name, *obj;
        bool up_y; /* the first is, too */
    } cases[] = {
        {"meshes-sharealike/torcs_g-track-2.acc", "meshes-sharealike/torcs_g-track-2.obj", true},
        {"objects/RockA.glb", "objects/RockA.obj", true},
        {"objects/cardboard_box.dae", "objects/cardboard_box.obj", false},
        {"objects/construction_barrel.dae", "objects/construction_barrel.obj", false},
        {"meshes/gazebo_parking_garage.dae", "meshes/gazebo_parking_garage.obj", false},
    };
    static const struct polygon_options up_y = {.up_y = true, .scale = 1};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set = polygon_check_real(cases[i].name, cases[i].up_y ? &up_y : NULL);
        struct polygon_set obj = polygon_check_real(cases[i].obj, &up_y);

        if (polygon_check_triangles(&set) != polygon_check_triangles(&obj))
            fail_msg("%s: %zu triangles, its OBJ has %zu", cases[i].name,
                     polygon_check_triangles(&set), polygon_check_triangles(&obj));
        polygon_check_near(polygon_check_bounds(&set), polygon_check_bounds(&obj), 1e-3);
        polygon_set_free(&set);
        polygon_set_free(&obj);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ply_keeps_its_polygons_their_order_and_its_vertices),
        cmocka_unit_test(an_ac3d_keeps_its_polygons_and_is_not_subdivided),
        cmocka_unit_test(an_stl_is_read_as_text_and_as_bytes),
        cmocka_unit_test(what_is_rounded_to_float32_says_in_which_steps),
        cmocka_unit_test(a_colladas_unit_counts_and_its_up_axis_does_not),
        cmocka_unit_test(nodes_place_their_meshes_depth_first_and_mirrors_keep_fronts),
        cmocka_unit_test(a_gltf_cannot_read_files_of_this_machine),
        cmocka_unit_test(not_even_a_file_that_holds_the_right_buffer_is_opened),
        cmocka_unit_test(a_gltf_that_is_wrong_is_refused),
        cmocka_unit_test(cyclic_nodes_are_refused),
        cmocka_unit_test(deep_nodes_are_read_to_a_bound_and_then_refused),
        cmocka_unit_test(polygons_count_for_each_node_that_uses_them),
        cmocka_unit_test(files_that_crash_the_library_are_refused),
        cmocka_unit_test(truncated_lengths_keep_the_contract),
        cmocka_unit_test(a_real_ply_has_its_counts_and_bounds),
        cmocka_unit_test(real_files_agree_with_the_obj_made_of_them),
    };

    return cmocka_run_group_tests_name("polygon_assimp", tests, NULL, NULL);
}
