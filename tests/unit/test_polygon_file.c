/*
 * What all polygon formats share: names and media types, the turn to Z up, the scale, the bound on
 * bytes. The formats themselves have test programs of their own.
 */
#include "formats/polygon/obj.h"
#include "formats/polygon/polygon_triangles.h"
#include "tests/support/polygon_check.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define TRIANGLE "v 1 2 3\nv 4 5 6\nv 7 8 10\nf 1 2 3"

struct name_case {
    const char *text;
    int format; /* -1: none */
};

static void names_check(const struct name_case *cases, size_t count,
                        bool (*of)(const char *, enum polygon_format *))
{
    for (size_t i = 0; i < count; i++) {
        enum polygon_format format = POLYGON_OBJ;
        int got = of(cases[i].text, &format) ? (int)format : -1;

        if (got != cases[i].format)
            fail_msg("\"%s\": got %d, expected %d", cases[i].text, got, cases[i].format);
    }
}

static void a_name_tells_its_format_by_its_ending(void **state)
{
    static const struct name_case cases[] = {
        {"a.obj", POLYGON_OBJ},
        {"a/b.c/D.GLB", POLYGON_GLB},
        {"x.y.gltf", POLYGON_GLTF},
        {".ply", POLYGON_PLY},
        {"a.Stl", POLYGON_STL},
        {"a.ac", POLYGON_AC3D},
        {"a.acc", POLYGON_AC3D},
        {"a.ac3d", POLYGON_AC3D},
        {"a.dae", POLYGON_COLLADA},
        {"obj", -1},
        {"a.obj/b", -1},
        {"a.obj.gz", -1},
        {"", -1},
        {"a.", -1},
        {"a.objx", -1},
    };

    (void)state;
    names_check(cases, COUNT_OF(cases), polygon_format_of_name);
}

static void a_media_type_tells_its_format_and_parameters_do_not_matter(void **state)
{
    static const struct name_case cases[] = {
        {"model/obj", POLYGON_OBJ},
        {" Model/OBJ ; charset=utf-8", POLYGON_OBJ},
        {"model/gltf-binary", POLYGON_GLB},
        {"model/gltf+json", POLYGON_GLTF},
        {"model/ply", POLYGON_PLY},
        {"application/ply", POLYGON_PLY},
        {"model/stl", POLYGON_STL},
        {"application/x-ac3d", POLYGON_AC3D},
        {"model/vnd.collada+xml", POLYGON_COLLADA},
        {"text/plain", -1},
        {"model/gltf", -1},
        {"model/objx", -1},
        {"", -1},
    };

    (void)state;
    names_check(cases, COUNT_OF(cases), polygon_format_of_media_type);
}

static void up_y_turns_the_file_and_the_scale_makes_metres(void **state)
{
    static const struct {
        struct polygon_options options;
        struct vec3 first;
    } cases[] = {
        {{.up_y = false, .scale = 1}, {1, 2, 3}},
        {{.up_y = true, .scale = 1}, {1, -3, 2}},
        {{.up_y = false, .scale = 0.5}, {0.5, 1, 1.5}},
        {{.up_y = true, .scale = 2}, {2, -6, 4}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set =
            polygon_check_good(POLYGON_OBJ, TRIANGLE, strlen(TRIANGLE), &cases[i].options);
        struct vec3 got = set.vertices[0], want = cases[i].first;

        if (got.x != want.x || got.y != want.y || got.z != want.z)
            fail_msg("case %zu: got %g %g %g, expected %g %g %g", i, got.x, got.y, got.z, want.x,
                     want.y, want.z);
        polygon_set_free(&set);
    }
}

static void up_y_makes_no_zero_negative(void **state)
{
    static const char flat[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    const struct polygon_options options = {.up_y = true, .scale = 1};
    struct polygon_set set = polygon_check_good(POLYGON_OBJ, flat, strlen(flat), &options);

    (void)state;
    for (size_t i = 0; i < set.vertex_count; i++)
        assert_false(signbit(set.vertices[i].y));
    polygon_set_free(&set);
}

static void a_scale_that_is_no_scale_is_refused(void **state)
{
    static const double scales[] = {0, -1, NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(scales); i++)
        polygon_check_refused(POLYGON_OBJ, TRIANGLE, strlen(TRIANGLE),
                              &(struct polygon_options){.scale = scales[i]}, NULL, ERR_BAD_INPUT,
                              "is not a finite number above 0");
}

static void a_vertex_that_the_scale_makes_infinite_is_refused(void **state)
{
    (void)state;
    polygon_check_refused(POLYGON_OBJ, TRIANGLE, strlen(TRIANGLE),
                          &(struct polygon_options){.scale = 1e308}, NULL, ERR_BAD_INPUT,
                          "vertex 0 is not finite");
}

static void a_file_of_too_many_bytes_is_refused_unread(void **state)
{
    struct polygon_set set;
    struct err err = {0};
    size_t length = (size_t)POLYGON_FILE_BYTES_MAX + 1;

    (void)state;
    assert_int_equal(
        polygon_decode(POLYGON_PLY, (const uint8_t *)"", length, NULL, NULL, &set, &err),
        ERR_TOO_LARGE);
    if (err.limit != POLYGON_FILE_BYTES_MAX || err.got != (double)length)
        fail_msg("limit %g, got %g", err.limit, err.got);
}

static void limits_beyond_32_bits_stop_there(void **state)
{
    static const struct polygon_limits none = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct err err;

    (void)state;
    assert_int_equal(polygon_check_counts("x", 0xfffffffe, 0, 0, &none, &err), ERR_OK);
    assert_int_equal(polygon_check_counts("x", 0, 0, 0xffffffff, &none, &err), ERR_TOO_LARGE);
}

static void freeing_twice_does_no_harm(void **state)
{
    struct polygon_set set = polygon_check_good(POLYGON_OBJ, TRIANGLE, strlen(TRIANGLE), NULL);

    (void)state;
    polygon_set_free(&set);
    assert_null(set.vertices);
    polygon_set_free(&set);
}

/* ---- as triangles ---------------------------------------------------------------------------- */

struct cut {
    unsigned count, turned;
    double area2; /* twice, seen from above */
};

static void triangle_put(void *context, const struct vec3 v[3])
{
    struct cut *cut = context;
    double area2 = (v[1].x - v[0].x) * (v[2].y - v[0].y) - (v[1].y - v[0].y) * (v[2].x - v[0].x);

    cut->count++;
    cut->turned += !(area2 > 0);
    cut->area2 += area2;
}

static void triangles_cover_their_polygons(void **state)
{
    static const struct {
        const char *obj;
        unsigned triangles;
        double area2;
    } cases[] = {
        {"v 0 0 0\nv 3 0 1\nv 0 2 5\nf 1 2 3", 1, 6},
        {"v 0 0 0\nv 3 0 6\nv 3 2 6\nv 0 2 0\nf 1 2 3 4", 2, 12},
        {"v 0 0 1\nv 4 0 1\nv 4 1 1\nv 1 1 1\nv 1 4 1\nv 0 4 1\nf 1 2 3 4 5 6", 4, 14},
        {"v 0 0 0\nv 5 0 0\nv 5 5 5\nv 3 1 1\nv 1 1 1\nf 1 2 3 4 5\nf 1 2 4", 4, 22},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set = {0};
        struct cut cut = {0};
        struct err err;

        assert_int_equal(obj_decode((const uint8_t *)cases[i].obj, strlen(cases[i].obj),
                                    &polygon_limits_default, &set, &err),
                         ERR_OK);
        assert_int_equal(polygon_triangles(&set, triangle_put, &cut, &err), ERR_OK);
        if (cut.count != cases[i].triangles || cut.turned || cut.area2 != cases[i].area2)
            fail_msg("case %zu: %u triangles, %u turned, twice %g m²", i, cut.count, cut.turned,
                     cut.area2);
        polygon_set_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_tells_its_format_by_its_ending),
        cmocka_unit_test(a_media_type_tells_its_format_and_parameters_do_not_matter),
        cmocka_unit_test(up_y_turns_the_file_and_the_scale_makes_metres),
        cmocka_unit_test(up_y_makes_no_zero_negative),
        cmocka_unit_test(a_scale_that_is_no_scale_is_refused),
        cmocka_unit_test(a_vertex_that_the_scale_makes_infinite_is_refused),
        cmocka_unit_test(a_file_of_too_many_bytes_is_refused_unread),
        cmocka_unit_test(limits_beyond_32_bits_stop_there),
        cmocka_unit_test(freeing_twice_does_no_harm),
        cmocka_unit_test(triangles_cover_their_polygons),
    };

    return cmocka_run_group_tests_name("polygon_file", tests, NULL, NULL);
}
