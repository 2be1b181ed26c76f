/*
 * PLY: every number as float64 and to the bit, in text and in both byte orders; elements and
 * properties that are passed over; and every way a header or a body can be wrong.
 */
#include "tests/support/polygon_check.h"
#include "tests/support/random.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define PLY(format) "ply\nformat " format " 1.0\n"
#define XYZ "property double x\nproperty double y\nproperty double z\n"
#define FACE "property list uchar int vertex_indices\n"
#define TEXT PLY("ascii") "element vertex 3\n" XYZ "element face 1\n" FACE "end_header\n"
#define POINTS "0 0 0\n1 0 0\n0 1 0\n"

static void refused(const char *text, const char *message)
{
    polygon_check_refused(POLYGON_PLY, text, strlen(text), NULL, NULL, ERR_BAD_INPUT, message);
}

static void utm_coordinates_are_exact(void **state)
{
    static const char text[] = TEXT "400000.10 5600000.20 10\n400000.60 5600000.20 10\n"
                                    "400000.60 5600000.45 10\n3 0 1 2\n";
    struct polygon_set set = polygon_check_good(POLYGON_PLY, text, strlen(text), NULL);

    (void)state;
    assert_true(set.vertices[0].x == 400000.10 && set.vertices[0].y == 5600000.20);
    assert_true(set.vertices[2].x == 400000.60 && set.vertices[2].y == 5600000.45);
    assert_true(set.precision_m == 0);
    polygon_set_free(&set);
}

/* ---- against what was written ---------------------------------------------------------------- */

enum { VERTICES = 60, FACES = 40, CORNERS_MAX = 9 };

struct sample {
    double numbers[VERTICES][3];
    int faces[FACES][CORNERS_MAX + 1]; /* a count, then the corners */
};

static double number_any(struct random *random)
{
    union {
        uint64_t bits;
        double value;
    } any;

    do
        any.bits = random_bits(random);
    while (!isfinite(any.value));
    return any.value;
}

static void sample_make(struct random *random, struct sample *out)
{
    for (int i = 0; i < 3 * VERTICES; i++)
        out->numbers[i / 3][i % 3] = number_any(random);
    for (int i = 0; i < FACES; i++) {
        out->faces[i][0] = (int)(random_bits(random) % (CORNERS_MAX + 1));
        for (int c = 1; c <= out->faces[i][0]; c++)
            out->faces[i][c] = (int)(random_bits(random) % VERTICES);
    }
    out->faces[0][0] = 3;
}

static size_t put(uint8_t *at, const void *value, size_t bytes, bool is_big)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = ((const uint8_t *)value)[is_big ? bytes - 1 - i : i];
    return bytes;
}

/* Between x and y is a list, before the vertices an element of its own: both to be passed over. */
static size_t sample_write(const struct sample *sample, const char *encoding, uint8_t *out)
{
    bool is_text = strcmp(encoding, "ascii") == 0,
         is_big = strcmp(encoding, "binary_big_endian") == 0;
    char *text = (char *)out;
    size_t used = (size_t)sprintf(
        text,
        "ply\nformat %s 1.0\ncomment a\nelement camera 1\nproperty float f\n"
        "property list ushort short n\nelement vertex %d\nproperty double x\n"
        "property list uint8 float64 tags\nproperty float64 y\nproperty double z\n"
        "element face %d\nproperty uchar red\nproperty list int uint vertex_index\nend_header\n",
        encoding, VERTICES, FACES);
    const uint16_t two = 2;
    const uint8_t one = 1;

    if (is_text)
        used += (size_t)sprintf(text + used, "nan 2 x y\n");
    else
        used += 4 + put(out + used + 4, &two, 2, is_big) + 4; /* whatever is there */
    for (int i = 0; i < VERTICES; i++) {
        const double *v = sample->numbers[i];

        if (is_text) {
            used += (size_t)sprintf(text + used, "%.17g 1 inf %.17g %.17g\n", v[0], v[1], v[2]);
            continue;
        }
        used += put(out + used, &v[0], 8, is_big);
        used += put(out + used, &one, 1, is_big);
        used += put(out + used, &v[0], 8, is_big);
        used += put(out + used, &v[1], 8, is_big);
        used += put(out + used, &v[2], 8, is_big);
    }
    for (int i = 0; i < FACES; i++) {
        if (is_text)
            used += (size_t)sprintf(text + used, "7");
        else
            out[used++] = 7;
        for (int c = 0; c <= sample->faces[i][0]; c++) {
            if (is_text)
                used += (size_t)sprintf(text + used, " %d", sample->faces[i][c]);
            else
                used += put(out + used, &sample->faces[i][c], 4, is_big);
        }
        if (is_text)
            text[used++] = '\n';
    }
    return used;
}

static void sample_check(const struct sample *sample, const struct polygon_set *set)
{
    size_t polygon = 0;

    assert_int_equal(set->vertex_count, VERTICES);
    for (size_t i = 0; i < VERTICES; i++) {
        const double got[3] = {set->vertices[i].x, set->vertices[i].y, set->vertices[i].z};

        if (memcmp(got, sample->numbers[i], sizeof got) != 0)
            fail_msg("vertex %zu: got %.17g %.17g %.17g, expected %.17g %.17g %.17g", i, got[0],
                     got[1], got[2], sample->numbers[i][0], sample->numbers[i][1],
                     sample->numbers[i][2]);
    }
    for (size_t i = 0; i < FACES; i++) {
        const int *face = sample->faces[i];

        if (face[0] < 3)
            continue;
        assert_int_equal(set->starts[polygon + 1] - set->starts[polygon], face[0]);
        for (int c = 0; c < face[0]; c++)
            assert_int_equal(set->corners[set->starts[polygon] + (unsigned)c], face[c + 1]);
        polygon++;
    }
    assert_int_equal(set->polygon_count, polygon);
}

static void numbers_come_back_to_the_bit_in_every_encoding(void **state)
{
    static const char *const encodings[] = {"ascii", "binary_little_endian", "binary_big_endian"};
    struct random random = {20261123};
    static struct sample sample;
    uint8_t *bytes = calloc(1, 1 << 16);

    (void)state;
    for (int round = 0; round < 50; round++) {
        sample_make(&random, &sample);
        for (size_t i = 0; i < COUNT_OF(encodings); i++) {
            size_t length = sample_write(&sample, encodings[i], bytes);
            struct polygon_set set = polygon_check_good(POLYGON_PLY, bytes, length, NULL);

            sample_check(&sample, &set);
            polygon_set_free(&set);
            if (round == 0)
                polygon_check_truncations(POLYGON_PLY, bytes, length, 1);
        }
    }
    free(bytes);
}

static void every_type_is_read_as_what_it_is(void **state)
{
    static const struct {
        const char *type;
        uint8_t bytes[8]; /* little-endian */
        size_t length;
        double value;
    } cases[] = {
        {"char", {0xfe}, 1, -2},
        {"uint8", {0xfe}, 1, 254},
        {"short", {0xfe, 0xff}, 2, -2},
        {"uint16", {0xfe, 0xff}, 2, 65534},
        {"int", {0xfe, 0xff, 0xff, 0xff}, 4, -2},
        {"uint32", {0xfe, 0xff, 0xff, 0xff}, 4, 4294967294.0},
        {"float", {0, 0, 0x20, 0xc0}, 4, -2.5},
        {"float64", {0, 0, 0, 0, 0, 0, 0x04, 0xc0}, 8, -2.5},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const char *type = cases[i / 2].type;
        uint8_t bytes[512];
        size_t used = (size_t)sprintf(
            (char *)bytes,
            "ply\nformat binary_%s_endian 1.0\nelement vertex 1\nproperty %s x\nproperty %s y\n"
            "property %s z\nelement face 1\nproperty list uchar uchar vertex_indices\nend_header\n",
            i % 2 ? "big" : "little", type, type, type);
        struct polygon_set set;

        for (int k = 0; k < 3; k++)
            used += put(bytes + used, cases[i / 2].bytes, cases[i / 2].length, i % 2);
        memcpy(bytes + used, "\3\0\0\0\n", 5); /* and a byte that is too many */
        set = polygon_check_good(POLYGON_PLY, bytes, used + 5, NULL);
        if (set.vertices[0].x != cases[i / 2].value || set.vertices[0].z != cases[i / 2].value)
            fail_msg("%s: got %.17g, expected %.17g", type, set.vertices[0].x, cases[i / 2].value);
        polygon_set_free(&set);
    }
}

static void faces_may_come_first_and_strips_turn_every_second_triangle(void **state)
{
    static const char first[] = PLY("ascii") "element face 1\n" FACE "element vertex 3\n" XYZ
                                             "end_header\n3 2 1 0\n" POINTS;
    static const char strips[] =
        PLY("ascii") "element vertex 5\n" XYZ "element tristrips 1\n"
                     "property list int int vertex_indices\nend_header\n" POINTS
                     "1 1 0\n2 1 0\n12 0 1 2 3 4 -1 -1 2 1 -1 4 3\n";
    static const char strip[] =
        PLY("ascii") "element vertex 5\n" XYZ "element tristrips 2\n"
                     "property list int int vertex_indices\nend_header\n" POINTS
                     "1 1 0\n2 1 0\n5 0 1 2 3 4\n7 2 1 -1 4 3 2 1\n";
    static const uint32_t want[] = {0, 1, 2, 2, 1, 3, 2, 3, 4, 4, 3, 2, 2, 3, 1};
    struct polygon_set set = polygon_check_good(POLYGON_PLY, first, strlen(first), NULL);

    (void)state;
    assert_int_equal(set.corners[0], 2);
    polygon_set_free(&set);
    set = polygon_check_good(POLYGON_PLY, strips, strlen(strips), NULL);
    assert_int_equal(set.polygon_count, 3);
    polygon_set_free(&set);
    set = polygon_check_good(POLYGON_PLY, strip, strlen(strip), NULL);
    assert_int_equal(set.polygon_count, COUNT_OF(want) / 3);
    for (size_t i = 0; i < COUNT_OF(want); i++)
        if (set.corners[i] != want[i])
            fail_msg("corner %zu: got %u, expected %u", i, set.corners[i], want[i]);
    polygon_set_free(&set);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void a_header_that_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {PLY("binary_big_endian") "element vertex 1\n" XYZ "end_header\n12345678901234567890123",
         "take at least 24 bytes, the file has 23"},
        {PLY("binary_big_endian") "element face 12\n" FACE "end_header\n123456789ab",
         "take at least 12 bytes, the file has 11"},
        {PLY("ascii") "element vertex 1\n" XYZ "end_header\n0 0 ",
         "take at least 6 bytes, the file has 5"},
        {PLY("ascii") "element junk 9999999999\nproperty double a\nproperty double b\nend_header\n",
         "take at least 39999999996 bytes"},
        {PLY("ascii") "element junk 4000000000\nend_header\n", "a count and no property"},
        {PLY("ascii") "element junk 12345678901\n", "over 10 digits"},
        {PLY("ascii") "element vertex -1\n", "is not a whole number"},
        {PLY("ascii") "element vertex\n", "has no count"},
        {PLY("ascii") "property float x\n", "has no element"},
        {PLY("ascii") "element vertex 1\nproperty quad x\n", "no known type"},
        {PLY("ascii") "element face 1\nproperty list uchar vertex_indices\n", "no known type"},
        {PLY("ascii") "element vertex 1\n" XYZ, "no end_header"},
        {PLY("ascii") "element vertex 1\n" XYZ XYZ, "x, y, z or its list twice"},
        {PLY("ascii") "element vertex 1\n" XYZ "element vertex 1\n",
         "element vertex is there twice"},
        {PLY("ascii") "element vertex 1\nproperty list uchar float x\nproperty float y\n"
                      "property float z\nend_header\n0 0 0 0",
         "the vertices lack x, y or z"},
        {PLY("ascii") "element face 1\nproperty int vertex_indices\nend_header\n0",
         "the faces have no list vertex_indices"},
        {PLY("ascii") "elephant\nend_header\n", "says nothing known"},
        {PLY("ascii") "element vertex 0\r" XYZ "end_header\n", "no end_header"},
        {"ply\nelement vertex 0\nformat ascii 1.0\nend_header\n", "format is not given"},
        {"ply\nend_header\n", "format is not given first"},
        {"ply\nformat binary 1.0\nend_header\n", "neither ascii nor binary"},
        {"ply\nformat ascii 2.0\nend_header\n", "neither ascii nor binary"},
        {"plyx\nformat ascii 1.0\nend_header\n", "the first line is not \"ply\""},
        {"", "the first line is not \"ply\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refused(cases[i].text, cases[i].message);
}

static void a_body_that_is_wrong_is_refused_with_its_line(void **state)
{
    (void)state;
    refused(TEXT "0 0 0\n1 0 x\n0 1 0\n3 0 1 2\n", "line 11: \"x\" is not a number");
    refused(TEXT "0 0 0\n1 0 1e999\n0 1 0\n3 0 1 2\n", "line 11: \"1e999\" is not finite");
    refused(TEXT POINTS "3 0 1 3\n", "line 13: \"3\" is no vertex of this file");
    refused(TEXT POINTS "3 0 1 -1\n", "line 13: \"-1\" is no vertex of this file");
    refused(TEXT POINTS "3 0 1 0.5\n", "line 13: \"0.5\" is no vertex of this file");
    refused(TEXT POINTS "-3 0 1 2\n", "line 13: \"-3\" is no count of a list");
    refused(TEXT POINTS "3 0 1\n", "ends within its elements");
    refused(TEXT POINTS "3 0 1 2\n9\n", "line 14: \"9\" is one number too many");
    polygon_check_refused(POLYGON_PLY, TEXT POINTS "2 0 1 \n", strlen(TEXT POINTS "2 0 1 \n"), NULL,
                          NULL, ERR_UNPROCESSABLE, "no polygons");
}

static void a_binary_body_that_is_wrong_is_refused(void **state)
{
    static const char head[] =
        PLY("binary_little_endian") "element vertex 1\n" XYZ "element face 1\n" FACE "end_header\n";
    uint8_t bytes[sizeof head - 1 + 24 + 13] = {0};
    uint8_t *body = bytes + sizeof head - 1;

    (void)state;
    memcpy(bytes, head, sizeof head - 1);
    body[24] = 3;
    body[25] = 1;
    polygon_check_refused(POLYGON_PLY, bytes, sizeof bytes, NULL, NULL, ERR_BAD_INPUT,
                          "is no vertex of this file");
    body[25] = 0;
    body[6] = 0xf0;
    body[7] = 0x7f;
    polygon_check_refused(POLYGON_PLY, bytes, sizeof bytes, NULL, NULL, ERR_BAD_INPUT,
                          "vertex 0 is not finite");
    body[24] = 255;
    polygon_check_refused(POLYGON_PLY, bytes, sizeof bytes, NULL, NULL, ERR_BAD_INPUT,
                          "ends within its elements");
}

static void limits_are_judged_before_anything_is_allocated(void **state)
{
    static const struct polygon_limits tight = {9, 5, 3};
    static const char vertices[] = PLY("ascii") "element vertex 8000001\n" XYZ "end_header\n";
    static const char faces[] = PLY("ascii") "element face 2000001\n" FACE "end_header\n";
    static const char corners[] = TEXT POINTS "6 0 1 2 0 1 2\n";

    (void)state;
    polygon_check_too_large(POLYGON_PLY, vertices, strlen(vertices), NULL, 8000000, 8000001);
    polygon_check_too_large(POLYGON_PLY, faces, strlen(faces), NULL, 2000000, 2000001);
    polygon_check_too_large(POLYGON_PLY, corners, strlen(corners), &tight, 5, 6);
}

static void every_truncated_length_is_refused(void **state)
{
    static const char text[] = TEXT POINTS "3 0 1 2\n";

    (void)state;
    for (size_t cut = 0; cut < strlen(text) - 2; cut++)
        polygon_check_refused(POLYGON_PLY, text, cut, NULL, NULL, ERR_BAD_INPUT, "PLY: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utm_coordinates_are_exact),
        cmocka_unit_test(numbers_come_back_to_the_bit_in_every_encoding),
        cmocka_unit_test(every_type_is_read_as_what_it_is),
        cmocka_unit_test(faces_may_come_first_and_strips_turn_every_second_triangle),
        cmocka_unit_test(a_header_that_is_wrong_is_refused),
        cmocka_unit_test(a_body_that_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(a_binary_body_that_is_wrong_is_refused),
        cmocka_unit_test(limits_are_judged_before_anything_is_allocated),
        cmocka_unit_test(every_truncated_length_is_refused),
    };

    return cmocka_run_group_tests_name("ply", tests, NULL, NULL);
}
