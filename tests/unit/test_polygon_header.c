/*
 * The first bytes of polygon files: what is another format or has a wrong length is refused here,
 * before any library sees it.
 */
#include "formats/polygon/polygon_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static enum err_code check(enum polygon_format format, const void *bytes, size_t length,
                           struct err *err)
{
    uint8_t *exact = malloc(length ? length : 1);
    enum err_code code;

    if (length)
        memcpy(exact, bytes, length);
    memset(err, 0, sizeof *err);
    code = polygon_header_check(format, exact, length, err);
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
    static const char glb[] = "glTF\2\0\0\0\x18\0\0\0\4\0\0\0JSON{}  ";
    struct err err;

    (void)state;
    for (size_t cut = 0; cut < sizeof glb - 1; cut++)
        if (check(POLYGON_GLB, glb, cut, &err) != ERR_BAD_INPUT)
            fail_msg("the first %zu bytes of a GLB pass", cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_glb_has_a_version_a_length_and_whole_chunks),
        cmocka_unit_test(the_others_begin_as_they_should),
        cmocka_unit_test(every_truncated_length_is_judged_without_reading_past_it),
    };

    return cmocka_run_group_tests_name("polygon_header", tests, NULL, NULL);
}
