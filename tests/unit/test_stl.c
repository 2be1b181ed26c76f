/*
 * STL: text with every number as float64, binary to the bit, and what is neither.
 */
#include "tests/support/polygon_check.h"
#include "tests/support/random.h"

#include <stdio.h>

#define FACET                                                                                      \
    "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 "                      \
    "0\nendloop\nendfacet\n"
#define SOLID "solid a\n" FACET "endsolid a\n"

static void refused(const char *text, const char *message)
{
    polygon_check_refused(POLYGON_STL, text, strlen(text), NULL, NULL, ERR_BAD_INPUT, message);
}

static void numbers_of_a_text_are_exact(void **state)
{
    enum { FACETS = 50 };
    struct random random = {20261123};
    static double want[FACETS * 9];
    static char text[FACETS * 600];
    size_t used = (size_t)sprintf(text, "solid facet\n");
    struct polygon_set set;

    (void)state;
    for (size_t i = 0; i < FACETS; i++) {
        double *w = want + 9 * i;

        for (int k = 0; k < 9; k++)
            w[k] = random_in(&random, -6e6, 6e6);
        used += (size_t)sprintf(text + used,
                                "  facet normal nan 0 0\r\n outer loop\n"
                                "vertex %.17g %.17g %.17g\n\tVERTEX %.17g %.17g %.17g\n"
                                "vertex %.17g %.17g %.17g\nendloop\nEndFacet\n",
                                w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]);
    }
    used += (size_t)sprintf(text + used, "endsolid facet vertex\n\nsolid\nendsolid");
    set = polygon_check_good(POLYGON_STL, text, used, NULL);
    assert_int_equal(set.polygon_count, FACETS);
    assert_true(set.precision_m == 0);
    for (size_t i = 0; i < FACETS * 3; i++) {
        struct vec3 v = set.vertices[set.corners[i]];

        if (v.x != want[3 * i] || v.y != want[3 * i + 1] || v.z != want[3 * i + 2])
            fail_msg("corner %zu: got %.17g %.17g %.17g, expected %.17g %.17g %.17g", i, v.x, v.y,
                     v.z, want[3 * i], want[3 * i + 1], want[3 * i + 2]);
    }
    polygon_set_free(&set);
}

static void a_binary_file_keeps_its_bits_even_when_it_begins_with_solid(void **state)
{
    enum { FACETS = 20 };
    struct random random = {7};
    uint8_t bytes[84 + 50 * FACETS] = "solid binary", *at = bytes + 84;
    float want[FACETS * 12];
    struct polygon_set set;

    (void)state;
    bytes[80] = FACETS;
    for (size_t i = 0; i < FACETS; i++, at += 50) {
        for (size_t k = 0; k < 12; k++)
            want[12 * i + k] = (float)random_in(&random, -6e6, 6e6);
        memcpy(at, want + 12 * i, 48);
        at[48] = 0xff;
    }
    set = polygon_check_good(POLYGON_STL, bytes, sizeof bytes, NULL);
    assert_int_equal(set.polygon_count, FACETS);
    assert_true(set.precision_m == 0);
    for (size_t i = 0; i < FACETS * 3; i++) {
        const float *w = want + i / 3 * 12 + 3 + i % 3 * 3;
        struct vec3 v = set.vertices[set.corners[i]];

        if (v.x != (double)w[0] || v.y != (double)w[1] || v.z != (double)w[2])
            fail_msg("corner %zu: got %.9g %.9g %.9g, expected %.9g %.9g %.9g", i, v.x, v.y, v.z,
                     (double)w[0], (double)w[1], (double)w[2]);
    }
    polygon_set_free(&set);
}

static void the_length_of_a_binary_file_is_that_of_its_count(void **state)
{
    static const struct polygon_limits one = {1, 99, 99};
    uint8_t bytes[84 + 50 * 2] = {[80] = 2};

    (void)state;
    polygon_check_too_large(POLYGON_STL, bytes, sizeof bytes, &one, 1, 2);
    for (size_t cut = 0; cut < sizeof bytes; cut++)
        polygon_check_refused(POLYGON_STL, bytes, cut, NULL, NULL, ERR_BAD_INPUT,
                              "neither text (\"solid\") nor 84 + 50 n bytes");
    bytes[83] = 0xff;
    polygon_check_refused(POLYGON_STL, bytes, sizeof bytes, NULL, NULL, ERR_BAD_INPUT, "neither");
    memset(bytes + 80, 0, 4);
    polygon_check_refused(POLYGON_STL, bytes, 84, NULL, NULL, ERR_UNPROCESSABLE, "no polygons");
    bytes[80] = 1;
    memset(bytes + 84 + 12, 0xff, 4);
    polygon_check_refused(POLYGON_STL, bytes, 84 + 50, NULL, NULL, ERR_BAD_INPUT,
                          "vertex 0 is not finite");
}

static void a_text_that_is_wrong_is_refused_with_its_line(void **state)
{
    static const struct polygon_limits one = {1, 99, 99};
    static const char two[] = "solid\n" FACET FACET "endsolid\n",
                      none[] = "\xef\xbb\xbfsolid\nendsolid";

    (void)state;
    refused("", "neither text");
    refused("soli", "neither text");
    refused("solid a\nvertex 0 0 0\n", "line 2: \"vertex\" is in no facet");
    refused("solid a\nfacet 0 0 1\n", "line 2: \"0\" follows facet");
    refused("solid a\nfacet normal 0 0 1\nfacet", "line 3: \"facet\" is within a facet");
    refused("solid a\nsolid b\n", "line 2: \"solid\" is within a solid");
    refused("solid a\nendsolid\nendsolid\n", "line 3: \"endsolid\" ends no solid");
    refused("solid a\nendsolid\nfacet\n", "line 3: \"facet\" is in no solid");
    refused("solid a\nfacet normal 0 0 1\nendsolid\n", "line 3: \"endsolid\" ends no solid");
    refused("solid a\nfacet normal 0 0 1\nvertex 0 0 0\nendfacet\n", "ends no facet of three");
    refused("solid a\nfacet normal 0 0 1\nvertex 0 0 0 vertex 0 0 0 vertex 0 0 0\nvertex 1 1 1\n",
            "line 4: \"vertex\" is a fourth one");
    refused("solid a\nface\n", "line 2: \"face\" is no word of STL");
    refused("solid a\n" FACET, "ends within a solid");
    refused(
        "solid\nfacet normal 0 0 1\nvertex 0 1 x vertex 0 0 0 vertex 0 0 0\nendfacet\nendsolid\n",
        "line 3: \"x\" is not a number");
    refused(
        "solid\nfacet normal 0 0 1\nvertex 0 inf 1 vertex 0 0 0 vertex 0 0 0\nendfacet\nendsolid",
        "line 3: \"inf\" is not finite");
    polygon_check_refused(POLYGON_STL, none, strlen(none), NULL, NULL, ERR_UNPROCESSABLE,
                          "no polygons");
    polygon_check_too_large(POLYGON_STL, two, strlen(two), &one, 1, 2);
}

static void every_truncated_length_of_a_text_is_refused(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < strlen(SOLID) - 3; cut++)
        polygon_check_refused(POLYGON_STL, SOLID, cut, NULL, NULL, ERR_BAD_INPUT, "STL: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_text_are_exact),
        cmocka_unit_test(a_binary_file_keeps_its_bits_even_when_it_begins_with_solid),
        cmocka_unit_test(the_length_of_a_binary_file_is_that_of_its_count),
        cmocka_unit_test(a_text_that_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(every_truncated_length_of_a_text_is_refused),
    };

    return cmocka_run_group_tests_name("stl", tests, NULL, NULL);
}
