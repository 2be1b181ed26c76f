/*
 * Wavefront OBJ: corners in all their forms, line ends, every way a statement can be wrong, limits,
 * files written in random styles, and real meshes.
 */
#include "tests/support/polygon_check.h"
#include "tests/support/random.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define SQUARE "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"

static void refused_check(const char *text, enum err_code code, const char *message)
{
    polygon_check_refused(POLYGON_OBJ, text, strlen(text), NULL, NULL, code, message);
}

static void corners_may_be_written_in_every_form(void **state)
{
    static const struct {
        const char *text;
        const char *polygons; /* vertex numbers from 0, polygons by | */
    } cases[] = {
        {SQUARE "f 1 2 3", "0 1 2"},
        {SQUARE "f 1 2 3 4\n", "0 1 2 3"},
        {SQUARE "f 1/1 2/2 3/9", "0 1 2"},
        {SQUARE "f 1//1 2//2 3//9", "0 1 2"},
        {SQUARE "f 1/1/1 2/2/2 3/-1/-9", "0 1 2"},
        {SQUARE "f 1 2/2 3//3 4/4/4", "0 1 2 3"},
        {SQUARE "f -1 -2 -3 -4", "3 2 1 0"},
        {SQUARE "f +1 02 3", "0 1 2"},
        {SQUARE "f -4 2 -2\nv 9 9 9\nf -1 -2 -3", "0 1 2|4 3 2"},
        {"f 1 2 3\n" SQUARE, "0 1 2"},
        {SQUARE "f 1 1 1", "0 0 0"},
        {SQUARE "f 1 2 3\nf 3 2 1\nf 2 3 4 1", "0 1 2|2 1 0|1 2 3 0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set =
            polygon_check_good(POLYGON_OBJ, cases[i].text, strlen(cases[i].text), NULL);
        char got[128] = "";
        size_t used = 0;

        for (size_t p = 0; p < set.polygon_count; p++)
            for (uint32_t c = set.starts[p]; c < set.starts[p + 1]; c++)
                used += (size_t)snprintf(got + used, sizeof got - used, "%s%u",
                                         c == 0               ? ""
                                         : c == set.starts[p] ? "|"
                                                              : " ",
                                         set.corners[c]);
        if (strcmp(got, cases[i].polygons) != 0)
            fail_msg("\"%s\": got \"%s\", expected \"%s\"", cases[i].text, got, cases[i].polygons);
        polygon_set_free(&set);
    }
}

static void lines_may_end_and_go_on_and_be_commented_in_every_way(void **state)
{
    static const char *const cases[] = {
        "v 1 2 3\r\nv 4 5 6\r\nv 7 8 9\r\nf 1 2 3\r\n",
        "v 1 2 3\rv 4 5 6\rv 7 8 9\rf 1 2 3\r",
        "\n\n  v\t1  2 3 \n v 4 5 6\n\tv 7 8 9\t\n\f\v f 1 2 3",
        "v 1 2 3\nv 4 5 6\nv 7 8 9\nf 1 \\\n2 \\\r\n3",
        "v 1 2\\\n3\nv\\\n\\\n4 5 6\nv 7 8 9\nf\\\r1 2 3\\\n",
        "# head \\\nv 1 2 3 # one\nv 4 5 6 #\nv 7 8 9\n#\nf 1 2 3 # f 1 2 3",
        "\xef\xbb\xbfv 1 2 3\nv 4 5 6\nv 7 8 9\nf 1 2 3",
        "v 1 2 3 1\nv 4 5 6 .5 .5 .5\nv 7 8 9 1 0 0 1\nf 1 2 3",
        ("mtllib a.mtl\no x\ng y z\nv 1 2 3\nvn 0 0 1\nvt 0\nvp 1\nv 4 5 6\ns off\nv 7 8 9\n"
         "usemtl red \\\nf 9 9 9\nl 1 2\np 1\nf 1 2 3\nF 1 2 3\nfo 1 2 3\n"),
        "v 1 2 3\nv 4e0 +5. 60e-1\nv 7 .8e1 9\nf 1 2 3",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set = polygon_check_good(POLYGON_OBJ, cases[i], strlen(cases[i]), NULL);

        if (set.vertex_count != 3 || set.polygon_count != 1 || set.starts[1] != 3)
            fail_msg("case %zu: %zu vertices, %zu polygons", i, set.vertex_count,
                     set.polygon_count);
        for (size_t v = 0; v < 3; v++) {
            struct vec3 got = set.vertices[v];
            double first = 3 * (double)v + 1;

            if (set.corners[v] != v || got.x != first || got.y != first + 1 || got.z != first + 2)
                fail_msg("case %zu: corner %u, vertex %zu is %g %g %g", i, set.corners[v], v, got.x,
                         got.y, got.z);
        }
        polygon_set_free(&set);
    }
}

static void a_statement_that_is_wrong_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {SQUARE "f 0 1 2", "line 5: \"0\" is no vertex: they count from 1"},
        {SQUARE "f 1 2 5", "line 5: \"5\" is no vertex of this file"},
        {SQUARE "f 1 2 -5", "line 5: \"-5\" is no vertex of this file"},
        {"f -1 1 1\n" SQUARE, "line 1: \"-1\" is no vertex of this file"},
        {SQUARE "f 1 2 99999999999999999999", "is no vertex of this file"},
        {SQUARE "f 1 2 4294967297", "\"4294967297\" is no vertex of this file"},
        {SQUARE "f 1 2 -9223372036854775809", "is no vertex of this file"},
        {SQUARE "f 1 2", "line 5: a polygon has at least 3 corners, this one 2"},
        {SQUARE "\r\n\\\n\nf\n", "line 8: a polygon has at least 3 corners, this one 0"},
        {SQUARE "f 1 2 \\\n\\\n0", "line 7: \"0\" is no vertex"},
        {SQUARE "f 1 2 x", "line 5: \"x\" is not a corner"},
        {SQUARE "f 1 2 3.5", "\"3.5\" is not a corner"},
        {SQUARE "f 1 2 3/", "\"3/\" is not a corner"},
        {SQUARE "f 1 2 3//", "\"3//\" is not a corner"},
        {SQUARE "f 1 2 3/1/", "\"3/1/\" is not a corner"},
        {SQUARE "f 1 2 3/1/1/1", "\"3/1/1/1\" is not a corner"},
        {SQUARE "f 1 2 /1/1", "\"/1/1\" is not a corner"},
        {SQUARE "f 1 2 3/x", "\"3/x\" is not a corner"},
        {SQUARE "f 1 2 -", "\"-\" is not a corner"},
        {SQUARE "f 1 2 3\\ 4", "\"3\\\" is not a corner"},
        {SQUARE "f 1 2 \x1b[31m", "\"?[31m\" is not a corner"},
        {"v 1 2\nf 1 1 1", "line 1: a vertex has 3 coordinates, this one 2"},
        {"# a\nv\nf 1 1 1", "line 2: a vertex has 3 coordinates, this one 0"},
        {"v 1 2 3 4 5 6 7 8\nf 1 1 1", "line 1: \"8\" is one number too many"},
        {"v 1 2 nan\nf 1 1 1", "line 1: \"nan\" is not finite"},
        {"v 1 -inf 3\nf 1 1 1", "line 1: \"-inf\" is not finite"},
        {"v 0 0 0\rv 1e999 2 3\nf 1 1 1", "line 2: \"1e999\" is not finite"},
        {"v 1 2 3 nan\nf 1 1 1", "\"nan\" is not finite"},
        {"v 1 2 3,5\nf 1 1 1", "\"3,5\" is not a number"},
        {"v 1 2 0x3\nf 1 1 1", "\"0x3\" is not a number"},
        {"v 1 2 -\nf 1 1 1", "\"-\" is not a number"},
        {"v 1 2 3e\nf 1 1 1", "\"3e\" is not a number"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refused_check(cases[i].text, ERR_BAD_INPUT, cases[i].message);
}

static void a_zero_byte_is_no_blank_and_does_not_end_the_text(void **state)
{
    static const char text[] = SQUARE "f 1 2 3\0 4";

    (void)state;
    polygon_check_refused(POLYGON_OBJ, text, sizeof text - 1, NULL, NULL, ERR_BAD_INPUT,
                          "line 5: \"3?\" is not a corner");
}

static void a_file_without_polygons_is_unprocessable(void **state)
{
    (void)state;
    refused_check("", ERR_UNPROCESSABLE, "no polygons");
    refused_check(SQUARE, ERR_UNPROCESSABLE, "no polygons");
    refused_check("\x89PNG\r\n\x1a\n", ERR_UNPROCESSABLE, "no polygons");
    refused_check("# f 1 2 3", ERR_UNPROCESSABLE, "no polygons");
}

static void every_truncated_length_keeps_the_contract(void **state)
{
    static const char text[] = "\xef\xbb\xbf# c \\\r\nv 0 -1.5e3 \\\r\n0 1\nv 1 0 0\nv 1 1 0\r"
                               "usemtl x\nf 1/2/3 2//2 -1/1\nf 1 \\\n2 3 1\n#";

    (void)state;
    polygon_check_truncations(POLYGON_OBJ, text, sizeof text - 1, 1);
}

static void limits_are_told_with_the_true_counts(void **state)
{
    static const char text[] = SQUARE "f 1 2 3\nf 1 2 3 4\nf 2 3 4";
    static const struct {
        struct polygon_limits limits;
        double limit, got;
    } cases[] = {
        {{.polygons_max = 2, .corners_max = 99, .vertices_max = 99}, 2, 3},
        {{.polygons_max = 99, .corners_max = 9, .vertices_max = 99}, 9, 10},
        {{.polygons_max = 99, .corners_max = 99, .vertices_max = 3}, 3, 4},
    };
    static const struct polygon_limits exact = {3, 10, 4};
    struct polygon_set set;
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        polygon_check_too_large(POLYGON_OBJ, text, strlen(text), &cases[i].limits, cases[i].limit,
                                cases[i].got);
    if (polygon_check_decode(POLYGON_OBJ, text, strlen(text), NULL, &exact, &set, &err))
        fail_msg("refused at the limit: %s", err.msg);
    polygon_set_free(&set);
}

static void a_file_over_the_default_limits_is_refused_before_it_is_stored(void **state)
{
    static const char line[] = "f 1 1 1\n";
    size_t count = 2000001, bytes = count * strlen(line);
    char *text = malloc(bytes + 1);

    (void)state;
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * strlen(line), line, strlen(line));
    polygon_check_too_large(POLYGON_OBJ, text, bytes, NULL, 2000000, 2000001);
    free(text);
}

static void a_line_may_be_as_long_as_the_file(void **state)
{
    enum { CORNERS = 100000, BYTES = 4 << 20 };
    char *text = malloc(BYTES + 64 + 2 * CORNERS);
    size_t length = (size_t)sprintf(text, "# ");
    struct polygon_set set;

    (void)state;
    memset(text + length, 'x', BYTES / 2);
    length += BYTES / 2;
    length += (size_t)sprintf(text + length, "\nv 0 0 0 ");
    memset(text + length, ' ', BYTES / 2);
    length += BYTES / 2;
    length += (size_t)sprintf(text + length, "\nf");
    for (size_t i = 0; i < CORNERS; i++, length += 2)
        memcpy(text + length, " 1", 2);
    set = polygon_check_good(POLYGON_OBJ, text, length, NULL);
    if (set.polygon_count != 1 || set.starts[1] != CORNERS)
        fail_msg("%zu polygons, the first with %u corners", set.polygon_count, set.starts[1]);
    polygon_set_free(&set);
    memset(text, 'v', length);
    polygon_check_refused(POLYGON_OBJ, text, length, NULL, NULL, ERR_UNPROCESSABLE, "no polygons");
    free(text);
}

/* ---- files in random styles
 * ----------------------------------------------------------------------- */

enum { STYLE_VERTICES = 40, STYLE_POLYGONS = 60, STYLE_CORNERS_MAX = 7, STYLE_BYTES = 1 << 16 };

struct style_file {
    struct random random;
    char text[STYLE_BYTES];
    size_t length;
    double numbers[STYLE_VERTICES][3];
    uint32_t corners[STYLE_POLYGONS * STYLE_CORNERS_MAX], starts[STYLE_POLYGONS + 1];
};

__attribute__((format(printf, 2, 3))) static void style_print(struct style_file *file,
                                                              const char *format, ...)
{
    va_list args;

    va_start(args, format);
    file->length +=
        (size_t)vsnprintf(file->text + file->length, STYLE_BYTES - file->length, format, args);
    va_end(args);
}

static void style_blank(struct style_file *file)
{
    static const char *const blanks[] = {" ", "  ", "\t", " \\\n", "\\\r\n ", " "};

    style_print(file, "%s", blanks[random_below(&file->random, COUNT_OF(blanks))]);
}

static void style_line_end(struct style_file *file)
{
    static const char *const ends[] = {"\n", "\r\n", "\r", " \n\n", " # c \\\n", "\ng x\n"};

    style_print(file, "%s", ends[random_below(&file->random, COUNT_OF(ends))]);
}

static void style_vertex(struct style_file *file, size_t index)
{
    style_print(file, "v");
    for (size_t axis = 0; axis < 3; axis++) {
        file->numbers[index][axis] = random_in(&file->random, -1e4, 1e4);
        style_blank(file);
        style_print(file, "%.17g", file->numbers[index][axis]);
    }
    style_line_end(file);
}

static void style_polygon(struct style_file *file, size_t index, size_t vertices)
{
    static const char *const tails[] = {"", "/3", "//-4", "/5/6"};
    uint32_t corners = 3 + random_below(&file->random, STYLE_CORNERS_MAX - 2);

    style_print(file, "f");
    for (uint32_t i = 0; i < corners; i++) {
        uint32_t vertex = random_below(&file->random, (uint32_t)vertices);
        bool back = random_below(&file->random, 2);

        style_blank(file);
        style_print(file, "%ld%s", back ? (long)vertex - (long)vertices : (long)vertex + 1,
                    tails[random_below(&file->random, COUNT_OF(tails))]);
        file->corners[file->starts[index] + i] = vertex;
    }
    file->starts[index + 1] = file->starts[index] + corners;
    style_line_end(file);
}

static void style_write(struct style_file *file)
{
    size_t vertices = 0, polygons = 0;

    while (vertices < STYLE_VERTICES || polygons < STYLE_POLYGONS) {
        bool vertex = vertices < STYLE_VERTICES && random_below(&file->random, 2);

        if (vertex || vertices == 0)
            style_vertex(file, vertices++);
        else if (polygons < STYLE_POLYGONS)
            style_polygon(file, polygons++, vertices);
    }
}

static void files_in_random_styles_are_read_as_they_were_meant(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct style_file *file = calloc(1, sizeof *file);
        struct polygon_set set;

        file->random.state = seed;
        style_write(file);
        assert_true(file->length < STYLE_BYTES);
        set = polygon_check_good(POLYGON_OBJ, file->text, file->length, NULL);
        if (set.vertex_count != STYLE_VERTICES || set.polygon_count != STYLE_POLYGONS ||
            memcmp(set.starts, file->starts, sizeof file->starts) != 0 ||
            memcmp(set.corners, file->corners,
                   file->starts[STYLE_POLYGONS] * sizeof *set.corners) != 0 ||
            memcmp(set.vertices, file->numbers, sizeof file->numbers) != 0)
            fail_msg("seed %llu: %zu vertices, %zu polygons, or another order",
                     (unsigned long long)seed, set.vertex_count, set.polygon_count);
        polygon_set_free(&set);
        free(file);
    }
}

/* ---- real files
 * ------------------------------------------------------------------------------------ */

static void real_files_have_their_counts_and_bounds(void **state)
{
    static const struct {
        const char *name;
        size_t polygons, triangles, vertices;
        struct box3 bounds;
    } cases[] = {
        {"meshes/recast_dungeon.obj",
         10133,
         10133,
         5101,
         {{-25.0152, -0.0027, -90.0413}, {49.3051, 40.1766, 8.8912}}},
        {"meshes/sauerbraten_zdm2.obj", 70754, 70754, 39488, {{-434, 0, -304}, {434, 324, 304}}},
        {"meshes/gazebo_parking_garage.obj",
         6413,
         6413,
         4683,
         {{-30.2362, -0.0012, -20.2849}, {30.2362, 45.9039, 21.2403}}},
        {"meshes-sharealike/torcs_g-track-2.obj",
         13004,
         13004,
         7598,
         {{-528.124, -37.9531, -1309.67}, {1732.67, 63.2915, 500}}},
        {"meshes-sharealike/sauerbraten_fdm6.obj",
         9779,
         9779,
         5951,
         {{-256, 0, -288}, {256, 208, 288}}},
        {"objects/spot_low_resolution.obj",
         1654,
         1654,
         829,
         {{-0.4514, -0.732, -0.6984}, {0.4688, 1.024, 1.0762}}},
        {"objects/sphere.obj", 1280, 1280, 642, {{-1, -1, -1}, {1, 1, 1}}},
        {"objects/cube.obj", 48, 48, 26, {{-1, -1, -1}, {1, 1, 1}}},
        {"objects/construction_barrel.obj",
         1184,
         1184,
         615,
         {{-0.5099, 0, -0.5099}, {0.5099, 1.55, 0.5099}}},
        {"objects/cardboard_box.obj", 16, 32, 18, {{-0.1985, 0, -0.1985}, {0.1985, 0.397, 0.1985}}},
        {"objects/RockA.obj", 248, 248, 126, {{-2.5272, -3.9829, -3.5925}, {2.6677, 3.4231, 3.54}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct polygon_set set = polygon_check_real(cases[i].name, NULL);

        if (set.polygon_count != cases[i].polygons || set.vertex_count != cases[i].vertices ||
            polygon_check_triangles(&set) != cases[i].triangles)
            fail_msg("%s: %zu polygons, %zu triangles, %zu vertices", cases[i].name,
                     set.polygon_count, polygon_check_triangles(&set), set.vertex_count);
        polygon_check_near(polygon_check_bounds(&set), cases[i].bounds, 0.005);
        polygon_set_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corners_may_be_written_in_every_form),
        cmocka_unit_test(lines_may_end_and_go_on_and_be_commented_in_every_way),
        cmocka_unit_test(a_statement_that_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(a_zero_byte_is_no_blank_and_does_not_end_the_text),
        cmocka_unit_test(a_file_without_polygons_is_unprocessable),
        cmocka_unit_test(every_truncated_length_keeps_the_contract),
        cmocka_unit_test(limits_are_told_with_the_true_counts),
        cmocka_unit_test(a_file_over_the_default_limits_is_refused_before_it_is_stored),
        cmocka_unit_test(a_line_may_be_as_long_as_the_file),
        cmocka_unit_test(files_in_random_styles_are_read_as_they_were_meant),
        cmocka_unit_test(real_files_have_their_counts_and_bounds),
    };

    return cmocka_run_group_tests_name("obj", tests, NULL, NULL);
}
