/*
 * ESRI ASCII grids: keys in any order and case, origins, spacing, no-data, and every way a text can
 * be wrong. What the numbers themselves may look like is in test_decimal.c.
 */
#include "tests/support/raster_check.h"

#include <stdio.h>

/* A header that needs only values, and a whole small file. */
#define HEAD "ncols 2\nnrows 2\nxllcorner 100\nyllcorner 200\ncellsize 10\n"
#define VALID                                                                                      \
    "ncols 3\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 10\nNODATA_value -9\n1 2.5 -9\n4 5 6"

static void heights_check(const char *text, uint32_t cols, uint32_t rows, const float *expected)
{
    raster_check_heights(RASTER_ASC, text, strlen(text), NULL, cols, rows, expected);
}

static void refused_check(const char *text, enum err_code code, const char *message)
{
    raster_check_refused(RASTER_ASC, text, strlen(text), NULL, NULL, code, message);
}

static void values_come_row_by_row_and_nodata_value_is_no_data(void **state)
{
    (void)state;
    heights_check(VALID, 3, 2, (const float[]){1, 2.5f, NAN, 4, 5, 6});
}

static void every_truncated_length_is_refused(void **state)
{
    (void)state;
    raster_check_truncations(RASTER_ASC, VALID, strlen(VALID), NULL);
}

static void keys_may_have_any_case_and_order_and_line_ends_mean_nothing(void **state)
{
    static const float expected[] = {1, 2, 3, 4};

    (void)state;
    heights_check("NROWS 2\r\nNCols 2\r\nCELLSIZE 1\r\n1 2\r\n3 4\r\n", 2, 2, expected);
    heights_check("cellsize 1 nrows 2 ncols 2 1 2 3 4", 2, 2, expected);
    heights_check("\xef\xbb\xbfncols 2\nnrows 2\ncellsize 1\n1\n2\n3\n4\n\n \t\n", 2, 2, expected);
    heights_check("\n\v\fncols\n2\nnrows\n2\ncellsize\n1\n1\t2 3\n4", 2, 2, expected);
}

static void nan_is_no_data_with_or_without_a_nodata_value(void **state)
{
    (void)state;
    heights_check(HEAD "1 nan -NaN 4", 2, 2, (const float[]){1, NAN, NAN, 4});
    heights_check(HEAD "NODATA_value nan\n1 nan 3 4", 2, 2, (const float[]){1, NAN, 3, 4});
    heights_check(HEAD "nodata -9999.0\n1 nan -9999 4", 2, 2, (const float[]){1, NAN, NAN, 4});
    heights_check(HEAD "nan nan nan nan", 2, 2, (const float[]){NAN, NAN, NAN, NAN});
}

/* As GDAL and an f32 upload do: texts of different lengths are one sample. */
static void no_data_is_compared_as_the_float32_sample(void **state)
{
    static const struct raster_options own = {
        .height_scale = 1, .has_nodata = true, .nodata = -9999.9};

    (void)state;
    heights_check(HEAD "NODATA_value -3.4028235e+38\n-3.4028234663852886e+38 1.5 2 3", 2, 2,
                  (const float[]){NAN, 1.5f, 2, 3});
    heights_check(HEAD "NODATA_value -3.4028234663852886e+38\n-3.4028235e+38 1.5 2 3", 2, 2,
                  (const float[]){NAN, 1.5f, 2, 3});
    heights_check(HEAD "NODATA_value -9999.9\n-9999.9004 -9999.9 -9999.899 -9999.902", 2, 2,
                  (const float[]){NAN, NAN, -9999.899f, -9999.902f});
    heights_check(HEAD "NODATA_value -1.7976931348623157e308\n-1.7976931348623157e308 -3e38 2 3", 2,
                  2, (const float[]){NAN, -3e38f, 2, 3});
    raster_check_heights(RASTER_ASC, HEAD "-9999.9004 1 2 3", strlen(HEAD "-9999.9004 1 2 3"), &own,
                         2, 2, (const float[]){NAN, 1, 2, 3});
}

static void the_files_no_data_and_ones_own_both_count_before_the_scale(void **state)
{
    static const struct raster_options options = {
        .height_scale = 2, .height_offset = 1, .has_nodata = true, .nodata = 3, .flip_y = true};
    static const char text[] = HEAD "NODATA_value 1\n1 2 3 4";

    (void)state;
    raster_check_heights(RASTER_ASC, text, strlen(text), &options, 2, 2,
                         (const float[]){NAN, 9, NAN, 5});
}

static void spacing_and_the_lower_left_sample_come_from_the_header(void **state)
{
    static const struct {
        const char *keys;
        bool has_origin;
        double spacing[2], origin[2];
    } cases[] = {
        {"cellsize 10\n", false, {10, 10}, {0, 0}},
        {"xllcorner 100\nyllcorner 200\ncellsize 10\n", true, {10, 10}, {105, 205}},
        {"xllcenter 100\nyllcenter 200\ncellsize 10\n", true, {10, 10}, {100, 200}},
        {"XLLCENTRE 100\nYLLCENTRE -2e2\ncellsize 10\n", true, {10, 10}, {100, -200}},
        {"xllcorner 100\nyllcenter 200\ndx 10\ndy 30\n", true, {10, 30}, {105, 200}},
        {"dy 0.5\nyllcorner 0\nxllcorner 0\ndx 0.25\n", true, {0.25, 0.5}, {0.125, 0.25}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct raster raster;
        struct err err;

        snprintf(text, sizeof text, "ncols 2\nnrows 3\n%s1 2 3 4 5 6\n", cases[i].keys);
        if (raster_check_decode(RASTER_ASC, text, strlen(text), NULL, NULL, &raster, &err))
            fail_msg("%s: %s", cases[i].keys, err.msg);
        if (!raster.has_spacing || raster.spacing_x != cases[i].spacing[0] ||
            raster.spacing_y != cases[i].spacing[1])
            fail_msg("%s: spacing %g, %g", cases[i].keys, raster.spacing_x, raster.spacing_y);
        if (raster.has_origin != cases[i].has_origin || raster.origin_x != cases[i].origin[0] ||
            raster.origin_y != cases[i].origin[1])
            fail_msg("%s: has origin %d: %g, %g", cases[i].keys, raster.has_origin, raster.origin_x,
                     raster.origin_y);
        raster_free(&raster);
    }
}

static void a_header_that_is_wrong_is_refused_and_says_how(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"nrows 2\ncellsize 1\n1 2 3 4", "lacks ncols"},
        {"ncols 2\ncellsize 1\n1 2 3 4", "lacks nrows"},
        {"ncols 2\nnrows 2\n1 2 3 4", "lacks cellsize"},
        {"ncols 2\nnrows 2\ndx 1\n1 2 3 4", "lacks cellsize"},
        {"ncols 2\nnrows 2\ndx 1\ndy 1\ncellsize 1\n1 2 3 4", "both cellsize and dx"},
        {"ncols 2\nnrows 2\nxllcorner 0\ncellsize 1\n1 2 3 4", "lacks yllcorner"},
        {"ncols 2\nnrows 2\nyllcenter 0\ncellsize 1\n1 2 3 4", "lacks xllcorner"},
        {HEAD "xllcenter 5\n1 2 3 4", "both a corner and a centre"},
        {HEAD "ncols 2\n1 2 3 4", "line 6: \"ncols\" is there twice"},
        {"ncols 2\nnrows 2\nnodata 1\nNODATA_VALUE 1\ncellsize 1\n1 2 3 4", "twice"},
        {"ncols 2.5\nnrows 2\ncellsize 1\n1 2 3 4", "\"2.5\" is not a count"},
        {"ncols -2\nnrows 2\ncellsize 1\n1 2 3 4", "\"-2\" is not a count"},
        {"ncols 2\nnrows two\ncellsize 1\n1 2 3 4", "line 2: \"two\" is not a finite number"},
        {"ncols 2\nnrows 2\ncellsize 0\n1 2 3 4", "\"0\" is not a spacing"},
        {"ncols 2\nnrows 2\ncellsize -1\n1 2 3 4", "\"-1\" is not a spacing"},
        {"ncols 2\nnrows 2\ndx -2\ndy 1\n1 2 3 4", "\"-2\" is not a spacing"},
        {"ncols 2\nnrows 2\ndx 1\ndy -3\n1 2 3 4", "\"-3\" is not a spacing"},
        {"ncols 2\nnrows 2\ncellsize nan\n1 2 3 4", "\"nan\" is not a finite number"},
        {"ncols 2\nnrows 2\ncellsize 1e999\n1 2 3 4", "\"1e999\" is not a finite number"},
        {"ncols 2\nnrows 2\ncellsize 1\nNODATA_value inf\n1 2 3 4", "\"inf\" is not a finite"},
        {"ncols 2\nnrows 2\nxllcorner 1.7e308\nyllcorner 0\ncellsize 1.7e308\n1 2 3 4",
         "origin is not finite"},
        {"ncols 2\nnrows 2\ncellsize 1\nprojection 1\n1 2 3 4", "\"projection\" is neither"},
        {"ncols 2\nnrows", "ends within its header"},
        {"\x01\x02\xff", "line 1: \"???\" is neither"},
        {"   \n", "lacks ncols"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused_check(cases[i].text, ERR_BAD_INPUT, cases[i].message);
}

static void values_that_are_wrong_are_refused_with_their_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {HEAD "1 2\n3", "4 values"},
        {HEAD "11 22\n33\n", "4 values, got 3"},
        {HEAD "1 2 3 4 5", "\"5\" is one value too many"},
        {HEAD "1 2 3 4\nend", "\"end\" is one value too many"},
        {HEAD "1 2\n3 12,5", "line 7: \"12,5\" is not a number"},
        {HEAD "1 2\n3 1e999", "line 7: \"1e999\" is infinite"},
        {HEAD "-inf 2 3 4", "line 6: \"-inf\" is infinite"},
        {HEAD "1 2 3 1e39", "column 1 of row 1 (code 1e+39) is infinite"},
        {HEAD "1 0x10 3 4", "\"0x10\" is not a number"},
        {HEAD "1 2 3 1.#QNAN", "\"1.#QNAN\" is not a number"},
        {HEAD "1 * 3 4", "\"*\" is not a number"},
        {HEAD "1 2 3 \xc3\xa4\x1b[31m", "\"???[31m\" is not a number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused_check(cases[i].text, ERR_BAD_INPUT, cases[i].message);
}

static void a_zero_byte_does_not_end_the_text(void **state)
{
    static const char text[] = HEAD "1 2 3 4\0 5";

    (void)state;
    raster_check_refused(RASTER_ASC, text, sizeof text - 1, NULL, NULL, ERR_BAD_INPUT,
                         "\"4?\" is not a number");
}

static void long_numbers_round_as_they_should_and_longer_ones_are_refused(void **state)
{
    char text[1024];
    int head = snprintf(text, sizeof text, HEAD "1 2 3 0.");

    (void)state;
    memset(text + head, '3', 253);
    raster_check_heights(RASTER_ASC, text, (size_t)head + 253, NULL, 2, 2,
                         (const float[]){1, 2, 3, 1.0f / 3});
    memset(text + head, '3', 254);
    raster_check_refused(RASTER_ASC, text, (size_t)head + 254, NULL, NULL, ERR_BAD_INPUT,
                         "is not a number");
}

static void sizes_are_judged_from_the_header_alone(void **state)
{
    static const struct raster_limits few = {.samples_max = 11, .side_max = 5};
    static const char lie[] = "ncols 4 nrows 3 cellsize 1 0";
    static const char huge[] = "ncols 60000 nrows 60000 cellsize 1 0";
    static const char wild[] = "ncols 1e300 nrows 2 cellsize 1 0";
    static const char vast[] = "ncols 10000 nrows 10000 cellsize 1 0";

    (void)state;
    raster_check_too_large(RASTER_ASC, lie, strlen(lie), NULL, &few, 11, 12);
    raster_check_too_large(RASTER_ASC, huge, strlen(huge), NULL, NULL, 0x1p27, 3.6e9);
    raster_check_too_large(RASTER_ASC, wild, strlen(wild), NULL, NULL, 1 << 20, 0x1p32);
    refused_check(vast, ERR_BAD_INPUT, "are 100000000 values, the file has at most 1");
    refused_check("ncols 1 nrows 5 cellsize 1 1 2 3 4 5", ERR_UNPROCESSABLE, "2 x 2");
    refused_check("ncols 0 nrows 0 cellsize 1", ERR_UNPROCESSABLE, "2 x 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_row_by_row_and_nodata_value_is_no_data),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(keys_may_have_any_case_and_order_and_line_ends_mean_nothing),
        cmocka_unit_test(no_data_is_compared_as_the_float32_sample),
        cmocka_unit_test(nan_is_no_data_with_or_without_a_nodata_value),
        cmocka_unit_test(the_files_no_data_and_ones_own_both_count_before_the_scale),
        cmocka_unit_test(spacing_and_the_lower_left_sample_come_from_the_header),
        cmocka_unit_test(a_header_that_is_wrong_is_refused_and_says_how),
        cmocka_unit_test(values_that_are_wrong_are_refused_with_their_line),
        cmocka_unit_test(a_zero_byte_does_not_end_the_text),
        cmocka_unit_test(long_numbers_round_as_they_should_and_longer_ones_are_refused),
        cmocka_unit_test(sizes_are_judged_from_the_header_alone),
    };

    return cmocka_run_group_tests_name("asc", tests, NULL, NULL);
}
