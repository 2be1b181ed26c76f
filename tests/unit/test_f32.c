/*
 * Raw float32 rasters: exact lengths, little-endian bytes, NaN and infinities.
 */
#include "tests/support/raster_check.h"

static const struct raster_options two_by_two = {.cols = 2, .rows = 2, .height_scale = 1};

/* 1.5, -0.25, FLT_MAX, the least denormal; little-endian. */
static const uint8_t valid[16] = {0,    0,    0xc0, 0x3f, 0, 0, 0x80, 0xbe,
                                  0xff, 0xff, 0x7f, 0x7f, 1, 0, 0,    0};

static void values_are_little_endian_and_keep_their_bits(void **state)
{
    (void)state;
    raster_check_heights(RASTER_F32, valid, sizeof valid, &two_by_two, 2, 2,
                         (const float[]){1.5f, -0.25f, 0x1.fffffep127f, 0x1p-149f});
}

static void every_truncated_length_is_refused(void **state)
{
    (void)state;
    raster_check_truncations(RASTER_F32, valid, sizeof valid, &two_by_two);
}

static void trailing_bytes_are_refused_with_both_lengths(void **state)
{
    uint8_t bytes[17] = {0};

    (void)state;
    raster_check_refused(RASTER_F32, bytes, 17, &two_by_two, NULL, ERR_BAD_INPUT,
                         "take 16 bytes, got 17");
}

static void any_nan_is_no_data(void **state)
{
    static const uint8_t bytes[16] = {0,    0,    0xc0, 0x7f, 1, 0, 0x80, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0, 0, 0,    0};

    (void)state;
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &two_by_two, 2, 2,
                         (const float[]){NAN, NAN, NAN, 0});
}

static void an_infinity_is_refused_even_where_a_scale_of_zero_would_hide_it(void **state)
{
    static const uint8_t bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff};
    struct raster_options options = two_by_two;

    (void)state;
    raster_check_refused(RASTER_F32, bytes, sizeof bytes, &options, NULL, ERR_BAD_INPUT,
                         "column 1 of row 1");
    options.height_scale = 0;
    raster_check_refused(RASTER_F32, bytes, sizeof bytes, &options, NULL, ERR_BAD_INPUT,
                         "infinite");
}

static void no_data_is_rounded_to_float32_before_it_is_compared(void **state)
{
    /* -9999.1 as float32, three times 0 */
    static const uint8_t bytes[16] = {0x66, 0x3c, 0x1c, 0xc6};
    struct raster_options options = two_by_two;

    (void)state;
    options.has_nodata = true;
    options.nodata = -9999.1;
    raster_check_heights(RASTER_F32, bytes, sizeof bytes, &options, 2, 2,
                         (const float[]){NAN, 0, 0, 0});
}

static void a_no_data_value_beyond_float32_does_not_let_infinities_in(void **state)
{
    static const uint8_t bytes[16] = {0, 0, 0x80, 0x7f};
    struct raster_options options = two_by_two;

    (void)state;
    options.has_nodata = true;
    options.nodata = 1e300;
    raster_check_refused(RASTER_F32, bytes, sizeof bytes, &options, NULL, ERR_BAD_INPUT,
                         "column 0 of row 0");
}

static void cols_and_rows_are_required_and_at_least_two(void **state)
{
    struct raster_options options = {.height_scale = 1};

    (void)state;
    raster_check_refused(RASTER_F32, valid, 16, &options, NULL, ERR_BAD_INPUT, "required");
    options.cols = 4;
    raster_check_refused(RASTER_F32, valid, 16, &options, NULL, ERR_BAD_INPUT, "required");
    options.rows = 1;
    raster_check_refused(RASTER_F32, valid, 16, &options, NULL, ERR_UNPROCESSABLE, "2 x 2");
}

static void a_size_whose_product_wraps_is_too_large(void **state)
{
    static const struct raster_options options = {
        .cols = 0x80000000, .rows = 0x80000000, .height_scale = 1};
    static const struct raster_limits wide = {.samples_max = UINT64_MAX, .side_max = UINT32_MAX};

    (void)state;
    raster_check_too_large(RASTER_F32, valid, 16, &options, NULL, 1 << 20, 0x1p31);
    raster_check_too_large(RASTER_F32, valid, 16, &options, &wide, 0x1p64, 0x1p62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_little_endian_and_keep_their_bits),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused_with_both_lengths),
        cmocka_unit_test(any_nan_is_no_data),
        cmocka_unit_test(an_infinity_is_refused_even_where_a_scale_of_zero_would_hide_it),
        cmocka_unit_test(no_data_is_rounded_to_float32_before_it_is_compared),
        cmocka_unit_test(a_no_data_value_beyond_float32_does_not_let_infinities_in),
        cmocka_unit_test(cols_and_rows_are_required_and_at_least_two),
        cmocka_unit_test(a_size_whose_product_wraps_is_too_large),
    };

    return cmocka_run_group_tests_name("f32", tests, NULL, NULL);
}
