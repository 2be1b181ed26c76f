/*
 * The first bytes of polygon files: what is another format, a wrong length or too large a promise
 * is refused here, before any library sees it.
 */
#include "formats/polygon_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define PLY(format) "ply\nformat " format " 1.0\n"
#define XYZ "property float x\nproperty float y\nproperty float z\n"
#define FACE "property list uchar int vertex_indices\n"

static enum err_code check(enum polygon_format format, const void *bytes, size_t length,
                           struct err *err)
{
    uint8_t *exact = malloc(length ? length : 1);
    enum err_code code;

    if (length)
        memcpy(exact, bytes, length);
    memset(err, 0, sizeof *err);
    code = polygon_header_check(format, exact, length, &polygon_limits_default, err);
    free(exact);
    return code;
}

struct header_case {
    const char *bytes;
    size_t length;
    const char *message; /* NULL: well */
};

#define HEADER_CASE(text, message)                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1, message                                                            \
    }

static void cases_check(enum polygon_format format, const struct header_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct err err;
        enum err_code code = check(format, cases[i].bytes, cases[i].length, &err);

        if (!cases[i].message && code)
            fail_msg("case %zu is refused: %s", i, err.msg);
        if (cases[i].message && (code != ERR_BAD_INPUT || !strstr(err.msg, cases[i].message)))
            fail_msg("case %zu: code %d \"%s\", expected \"%s\"", i, (int)code, err.msg,
                     cases[i].message);
    }
}

static void a_glb_has_a_version_a_length_and_whole_chunks(void **state)
{
    static const struct header_case cases[] = {
        HEADER_CASE("glTF\2\0\0\0\x18\0\0\0\4\0\0\0JSON{}  ", NULL),
        HEADER_CASE("glTF\2\0\0\0\x24\0\0\0\4\0\0\0JSON{}  \4\0\0\0BIN\0abcd", NULL),
        HEADER_CASE("", "does not begin with \"glTF\""),
        HEADER_CASE("glTE\2\0\0\0\x18\0\0\0\4\0\0\0JSON{}  ", "does not begin with \"glTF\""),
        HEADER_CASE("glTF\2\0\0\0\x13\0\0\0\4\0\0\0JSO", "ends within its header (19 bytes)"),
        HEADER_CASE("glTF\1\0\0\0\x18\0\0\0\4\0\0\0JSON{}  ", "version 1, only 2 is read"),
        HEADER_CASE("glTF\2\0\0\0\x19\0\0\0\4\0\0\0JSON{}  ", "says 25 bytes, the file has 24"),
        HEADER_CASE("glTF\2\0\0\0\xff\xff\xff\xff\4\0\0\0JSON{}  ", "says 4294967295 bytes"),
        HEADER_CASE("glTF\2\0\0\0\x18\0\0\0\4\0\0\0JSIN{}  ", "first chunk is not JSON"),
        HEADER_CASE("glTF\2\0\0\0\x18\0\0\0\5\0\0\0JSON{}  ", "chunk at byte 12 goes beyond"),
        HEADER_CASE("glTF\2\0\0\0\x18\0\0\0\xff\xff\xff\xffJSON{}  ", "chunk at byte 12 goes"),
        HEADER_CASE("glTF\2\0\0\0\x1a\0\0\0\4\0\0\0JSON{}  ab", "chunk at byte 24 goes beyond"),
    };

    (void)state;
    cases_check(POLYGON_GLB, cases, COUNT_OF(cases));
}

static void a_ply_has_a_header_and_bytes_for_what_it_counts(void **state)
{
    static const struct header_case cases[] = {
        HEADER_CASE(PLY("ascii") "element vertex 1\n" XYZ "end_header\n0 0 0", NULL),
        HEADER_CASE("ply\r\ncomment a\r\nformat ascii 1.0\r\nobj_info b\r\nend_header\r\n", NULL),
        HEADER_CASE(PLY("binary_little_endian") "element vertex 1\n" XYZ "end_header\n123456789abc",
                    NULL),
        HEADER_CASE(PLY("binary_big_endian") "element vertex 1\n" XYZ "end_header\n123456789ab",
                    "take at least 12 bytes, the file has 11"),
        HEADER_CASE(PLY("binary_big_endian") "element face 12\n" FACE "end_header\n123456789ab",
                    "take at least 12 bytes, the file has 11"),
        HEADER_CASE(PLY("ascii") "element vertex 1\n" XYZ "end_header\n0 0 ",
                    "take at least 6 bytes, the file has 5"),
        HEADER_CASE(PLY("ascii") "element junk 9999999999\nproperty double a\nproperty double b\n"
                                 "end_header\n",
                    "take at least 39999999996 bytes"),
        HEADER_CASE(PLY("ascii") "element junk 4000000000\nend_header\n",
                    "a count and no property"),
        HEADER_CASE(PLY("ascii") "element junk 12345678901\n", "over 10 digits"),
        HEADER_CASE(PLY("ascii") "element vertex -1\n", "is not a whole number"),
        HEADER_CASE(PLY("ascii") "element vertex\n", "has no count"),
        HEADER_CASE(PLY("ascii") "property float x\n", "has no element"),
        HEADER_CASE(PLY("ascii") "element vertex 1\nproperty quad x\n", "no known type"),
        HEADER_CASE(PLY("ascii") "element face 1\nproperty list uchar vertex_indices\n",
                    "no known type"),
        HEADER_CASE(PLY("ascii") "element vertex 1\n" XYZ, "no end_header"),
        HEADER_CASE(PLY("ascii") "elephant\nend_header\n", "says nothing known"),
        HEADER_CASE(PLY("ascii") "element vertex 0\r" XYZ "end_header\n", "no end_header"),
        HEADER_CASE("ply\nelement vertex 0\nformat ascii 1.0\nend_header\n", "format is not said"),
        HEADER_CASE("ply\nend_header\n", "format is not said first"),
        HEADER_CASE("ply\nformat binary 1.0\nend_header\n", "neither ascii nor binary"),
        HEADER_CASE("ply\nformat ascii 2.0\nend_header\n", "neither ascii nor binary"),
        HEADER_CASE("plyx\nformat ascii 1.0\nend_header\n", "the first line is not \"ply\""),
        HEADER_CASE("", "the first line is not \"ply\""),
    };

    (void)state;
    cases_check(POLYGON_PLY, cases, COUNT_OF(cases));
}

static void limits_are_judged_from_the_headers_that_have_counts(void **state)
{
    static const struct {
        enum polygon_format format;
        const char *text;
        double limit, got;
    } cases[] = {
        {POLYGON_PLY, PLY("ascii") "element vertex 8000001\n" XYZ "end_header\n", 8000000, 8000001},
        {POLYGON_PLY, PLY("ascii") "element face 2000001\n" FACE "end_header\n", 2000000, 2000001},
    };
    static uint8_t stl[84 + 50 * 3];
    static const struct polygon_limits two = {2, 99, 99};
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (check(cases[i].format, cases[i].text, strlen(cases[i].text), &err) != ERR_TOO_LARGE ||
            err.limit != cases[i].limit || err.got != cases[i].got)
            fail_msg("case %zu: limit %g, got %g: %s", i, err.limit, err.got, err.msg);
    stl[80] = 3;
    assert_int_equal(polygon_header_check(POLYGON_STL, stl, sizeof stl, &two, &err), ERR_TOO_LARGE);
    if (err.limit != 2 || err.got != 3)
        fail_msg("STL: limit %g, got %g: %s", err.limit, err.got, err.msg);
}

static void an_stl_is_text_or_has_the_length_that_its_count_says(void **state)
{
    static const struct header_case texts[] = {
        HEADER_CASE("solid x\n", NULL),
        HEADER_CASE("\n\tsolid x\n", NULL),
        HEADER_CASE("", "neither text"),
        HEADER_CASE("soli", "neither text"),
    };
    uint8_t binary[84 + 50 * 2] = {0};
    struct err err;

    (void)state;
    cases_check(POLYGON_STL, texts, COUNT_OF(texts));
    binary[80] = 2;
    assert_int_equal(check(POLYGON_STL, binary, sizeof binary, &err), ERR_OK);
    assert_int_equal(check(POLYGON_STL, binary, sizeof binary - 1, &err), ERR_BAD_INPUT);
    binary[83] = 0xff;
    assert_int_equal(check(POLYGON_STL, binary, sizeof binary, &err), ERR_BAD_INPUT);
}

static void the_others_begin_as_they_should(void **state)
{
    static const struct header_case ac3d[] = {HEADER_CASE("AC3Db\n", NULL),
                                              HEADER_CASE("AC3", "does not begin with \"AC3D\""),
                                              HEADER_CASE("BC3Db\n", "does not begin")};
    static const struct header_case gltf[] = {
        HEADER_CASE("{}", NULL), HEADER_CASE("\xef\xbb\xbf \n{}", NULL),
        HEADER_CASE("[]", "does not begin with {"), HEADER_CASE("", "does not begin with {")};
    static const struct header_case collada[] = {
        HEADER_CASE("<?xml version=\"1.0\"?>\n<COLLADA>", NULL),
        HEADER_CASE("<?xml version=\"1.0\"?>\n<X3D>", "no <COLLADA"),
        HEADER_CASE("x <COLLADA>", "no <COLLADA"), HEADER_CASE("", "no <COLLADA")};

    (void)state;
    cases_check(POLYGON_AC3D, ac3d, COUNT_OF(ac3d));
    cases_check(POLYGON_GLTF, gltf, COUNT_OF(gltf));
    cases_check(POLYGON_COLLADA, collada, COUNT_OF(collada));
}

static void every_truncated_length_is_judged_without_reading_past_it(void **state)
{
    static const char ply[] = PLY("ascii") "element vertex 1\n" XYZ "element face 1\n" FACE
                                           "end_header\n0 0 0\n3 0 0 0\n";
    static const char glb[] = "glTF\2\0\0\0\x18\0\0\0\4\0\0\0JSON{}  ";
    struct err err;

    (void)state;
    for (size_t cut = 0; cut < sizeof ply - 12; cut++)
        if (check(POLYGON_PLY, ply, cut, &err) != ERR_BAD_INPUT)
            fail_msg("the first %zu bytes of a PLY pass", cut);
    for (size_t cut = 0; cut < sizeof glb - 1; cut++)
        if (check(POLYGON_GLB, glb, cut, &err) != ERR_BAD_INPUT)
            fail_msg("the first %zu bytes of a GLB pass", cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_glb_has_a_version_a_length_and_whole_chunks),
        cmocka_unit_test(a_ply_has_a_header_and_bytes_for_what_it_counts),
        cmocka_unit_test(limits_are_judged_from_the_headers_that_have_counts),
        cmocka_unit_test(an_stl_is_text_or_has_the_length_that_its_count_says),
        cmocka_unit_test(the_others_begin_as_they_should),
        cmocka_unit_test(every_truncated_length_is_judged_without_reading_past_it),
    };

    return cmocka_run_group_tests_name("polygon_header", tests, NULL, NULL);
}
