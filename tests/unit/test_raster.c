/*
 * What all raster formats share: names and media types, options, the flip, limits. The formats
 * themselves have test programs of their own.
 */
#include "tests/support/raster_check.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static const struct raster_options f32_3x2 = {.cols = 3, .rows = 2, .height_scale = 1};

static void f32_write(uint8_t *at, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        for (int byte = 0; byte < 4; byte++)
            at[4 * i + (size_t)byte] = (uint8_t)(bits >> (8 * byte));
    }
}

struct name_case {
    const char *text;
    bool known;
    enum raster_format format;
};

static void names_check(const struct name_case *cases, size_t count,
                        bool (*of)(const char *, enum raster_format *))
{
    for (size_t i = 0; i < count; i++) {
        enum raster_format got = RASTER_PNG;
        bool known = of(cases[i].text, &got);

        if (known != cases[i].known || (known && got != cases[i].format))
            fail_msg("\"%s\": got %d %d, expected %d %d", cases[i].text, known, (int)got,
                     cases[i].known, (int)cases[i].format);
    }
}

static void a_name_tells_its_format_by_its_ending(void **state)
{
    static const struct name_case cases[] = {
        {"a.png", true, RASTER_PNG},      {"dir.asc/N42E001.HGT", true, RASTER_HGT},
        {"x.y.Asc", true, RASTER_ASC},    {".f32", true, RASTER_F32},
        {"a.TIF", true, RASTER_TIFF},     {"b.tiff", true, RASTER_TIFF},
        {"png", false, RASTER_PNG},       {"a.png/b", false, RASTER_PNG},
        {"a.png.gz", false, RASTER_PNG},  {"", false, RASTER_PNG},
        {"a.", false, RASTER_PNG},        {"a.pngx", false, RASTER_PNG},
        {"../up/a.f32", true, RASTER_F32}};

    (void)state;
    names_check(cases, COUNT_OF(cases), raster_format_of_name);
}

static void a_media_type_tells_its_format_and_parameters_do_not_matter(void **state)
{
    static const struct name_case cases[] = {
        {"image/png", true, RASTER_PNG},
        {"IMAGE/PNG", true, RASTER_PNG},
        {" image/png ; x=y", true, RASTER_PNG},
        {"application/vnd.kota.f32", true, RASTER_F32},
        {"application/vnd.kota.hgt", true, RASTER_HGT},
        {"application/x-srtm-hgt", true, RASTER_HGT},
        {"application/vnd.kota.asc", true, RASTER_ASC},
        {"text/x-esri-ascii-grid", true, RASTER_ASC},
        {"image/tiff; application=geotiff", true, RASTER_TIFF},
        {"text/plain;charset=utf-8", true, RASTER_ASC},
        {"application/octet-stream", false, RASTER_PNG},
        {"image/pngx", false, RASTER_PNG},
        {"image/pn", false, RASTER_PNG},
        {"", false, RASTER_PNG},
    };

    (void)state;
    names_check(cases, COUNT_OF(cases), raster_format_of_media_type);
}

static void a_word_is_a_format_in_either_case(void **state)
{
    static const struct name_case cases[] = {
        {"png", true, RASTER_PNG},  {"F32", true, RASTER_F32},   {"hgt", true, RASTER_HGT},
        {"asc", true, RASTER_ASC},  {".asc", false, RASTER_PNG}, {"", false, RASTER_PNG},
        {"tif", true, RASTER_TIFF}, {"gif", false, RASTER_PNG}};

    (void)state;
    names_check(cases, COUNT_OF(cases), raster_format_of_word);
}

static void the_flip_turns_rows_end_for_end(void **state)
{
    static const float two[] = {1, 2, 3, 4, 5, 6}, two_flipped[] = {4, 5, 6, 1, 2, 3};
    struct raster_options options = {.cols = 3, .rows = 2, .height_scale = 1, .flip_y = true};
    uint8_t bytes[sizeof two];

    (void)state;
    f32_write(bytes, two, 6);
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, 3, 2, two_flipped);
    options.cols = 2;
    options.rows = 3;
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, 2, 3,
                         (const float[]){5, 6, 3, 4, 1, 2});
}

static void rows_longer_than_the_flip_buffer_are_flipped_whole(void **state)
{
    enum { COLS = 2051, ROWS = 3 };
    struct raster_options options = {.cols = COLS, .rows = ROWS, .height_scale = 1, .flip_y = true};
    static float values[COLS * ROWS], flipped[COLS * ROWS];
    static uint8_t bytes[sizeof values];

    (void)state;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLS; column++) {
            values[row * COLS + column] = (float)(row * 10000 + column);
            flipped[(ROWS - 1 - row) * COLS + column] = (float)(row * 10000 + column);
        }
    f32_write(bytes, values, COLS * ROWS);
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, COLS, ROWS, flipped);
}

static void heights_are_evaluated_in_float64_and_rounded_once(void **state)
{
    /* 0.1 is not exact: rounding scale or product to float32 first would give other bits. */
    static const struct raster_options options = {
        .cols = 3, .rows = 2, .height_scale = 0.1, .height_offset = 1e-3};
    static const float codes[] = {0, 1, 3, 43798, -20, 65535};
    float expected[6];
    uint8_t bytes[sizeof codes];

    (void)state;
    for (int i = 0; i < 6; i++)
        expected[i] = (float)(1e-3 + 0.1 * (double)codes[i]);
    f32_write(bytes, codes, 6);
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, 3, 2, expected);
}

static void no_data_is_compared_before_the_scale(void **state)
{
    static const struct raster_options options = {.cols = 3,
                                                  .rows = 2,
                                                  .height_scale = 2,
                                                  .height_offset = 1,
                                                  .has_nodata = true,
                                                  .nodata = 5};
    static const float codes[] = {5, 2, 4.5f, 5, 11, 0};
    uint8_t bytes[sizeof codes];

    (void)state;
    f32_write(bytes, codes, 6);
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, 3, 2,
                         (const float[]){NAN, 5, 10, NAN, 23, 1});
}

static void a_height_that_overflows_float32_is_refused_and_named(void **state)
{
    struct raster_options options = {.cols = 3, .rows = 2, .height_scale = 1e38};
    static const float codes[] = {0, 1, 2, 3, 4, 0};
    uint8_t bytes[sizeof codes];

    (void)state;
    f32_write(bytes, codes, 6);
    raster_check_refused(RASTER_F32, bytes, sizeof bytes, &options, NULL, ERR_BAD_INPUT,
                         "column 1 of row 1");
    options.height_scale = 1;
    options.height_offset = 1e39;
    raster_check_refused(RASTER_F32, bytes, sizeof bytes, &options, NULL, ERR_BAD_INPUT,
                         "column 0 of row 0");
}

static void options_that_are_not_finite_are_refused_by_name(void **state)
{
    static const struct {
        struct raster_options options;
        const char *name;
    } cases[] = {
        {{.cols = 3, .rows = 2, .height_scale = NAN}, "height_scale"},
        {{.cols = 3, .rows = 2, .height_scale = INFINITY}, "height_scale"},
        {{.cols = 3, .rows = 2, .height_scale = 1, .height_offset = NAN}, "height_offset"},
        {{.cols = 3, .rows = 2, .height_scale = 1, .has_nodata = true, .nodata = -INFINITY},
         "nodata"},
    };
    uint8_t bytes[24] = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        raster_check_refused(RASTER_F32, bytes, sizeof bytes, &cases[i].options, NULL,
                             ERR_BAD_INPUT, cases[i].name);
}

static void both_limits_name_limit_and_got(void **state)
{
    static const struct raster_limits sides = {.samples_max = 1000, .side_max = 2};
    static const struct raster_limits samples = {.samples_max = 5, .side_max = 3};
    static const struct raster_limits enough = {.samples_max = 6, .side_max = 3};
    uint8_t bytes[24] = {0};
    static const float zeros[6];
    struct raster raster;
    struct err err;

    (void)state;
    raster_check_too_large(RASTER_F32, bytes, 24, &f32_3x2, &sides, 2, 3);
    raster_check_too_large(RASTER_F32, bytes, 24, &f32_3x2, &samples, 5, 6);
    assert_int_equal(raster_check_decode(RASTER_F32, bytes, 24, &f32_3x2, &enough, &raster, &err),
                     ERR_OK);
    assert_memory_equal(raster.heights_m, zeros, sizeof zeros);
    raster_free(&raster);
}

static void empty_input_is_refused_in_every_format_even_without_a_pointer(void **state)
{
    static const enum raster_format formats[] = {RASTER_PNG, RASTER_F32, RASTER_HGT, RASTER_ASC,
                                                 RASTER_TIFF};
    struct raster raster;
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        raster_check_refused(formats[i], "", 0, &f32_3x2, NULL, ERR_BAD_INPUT, "");
        assert_int_equal(raster_decode(formats[i], NULL, 0, &f32_3x2, NULL, &raster, &err),
                         ERR_BAD_INPUT);
    }
}

static void free_zeroes_and_may_be_called_again(void **state)
{
    uint8_t bytes[24] = {0};
    struct raster raster;
    struct err err;

    (void)state;
    assert_int_equal(raster_check_decode(RASTER_F32, bytes, 24, &f32_3x2, NULL, &raster, &err),
                     ERR_OK);
    raster_free(&raster);
    assert_null(raster.heights_m);
    assert_int_equal(raster.cols, 0);
    raster_free(&raster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_tells_its_format_by_its_ending),
        cmocka_unit_test(a_media_type_tells_its_format_and_parameters_do_not_matter),
        cmocka_unit_test(a_word_is_a_format_in_either_case),
        cmocka_unit_test(the_flip_turns_rows_end_for_end),
        cmocka_unit_test(rows_longer_than_the_flip_buffer_are_flipped_whole),
        cmocka_unit_test(heights_are_evaluated_in_float64_and_rounded_once),
        cmocka_unit_test(no_data_is_compared_before_the_scale),
        cmocka_unit_test(a_height_that_overflows_float32_is_refused_and_named),
        cmocka_unit_test(options_that_are_not_finite_are_refused_by_name),
        cmocka_unit_test(both_limits_name_limit_and_got),
        cmocka_unit_test(empty_input_is_refused_in_every_format_even_without_a_pointer),
        cmocka_unit_test(free_zeroes_and_may_be_called_again),
    };

    return cmocka_run_group_tests_name("raster", tests, NULL, NULL);
}
