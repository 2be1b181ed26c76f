/*
 * SRTM tiles: squares of big-endian int16, told by their length alone.
 */
#include "tests/support/raster_check.h"

static const uint8_t three[18] = {0x00, 0x01, 0x01, 0x00, 0x7f, 0xff, 0xff, 0xff, 0x80,
                                  0x00, 0x80, 0x01, 0x00, 0x00, 0xff, 0x00, 0x0c, 0x1c};

static void values_are_big_endian_and_the_void_is_no_data(void **state)
{
    (void)state;
    raster_check_heights(RASTER_HGT, three, sizeof three, NULL, 3, 3,
                         (const float[]){1, 256, 32767, -1, NAN, -32767, 0, -256, 3100});
}

static void the_void_stays_no_data_beside_another_no_data_code(void **state)
{
    static const struct raster_options options = {
        .height_scale = 0.5, .height_offset = 10, .has_nodata = true, .nodata = 0, .flip_y = true};

    (void)state;
    raster_check_heights(
        RASTER_HGT, three, sizeof three, &options, 3, 3,
        (const float[]){NAN, -118, 1560, 9.5f, NAN, -16373.5f, 10.5f, 138, 16393.5f});
}

static void only_squares_are_taken_and_the_message_names_the_sizes(void **state)
{
    static const size_t lengths[] = {1, 3, 4, 6, 7, 9, 10, 16, 17};
    struct raster raster;
    struct err err;

    (void)state;
    raster_check_truncations(RASTER_HGT, three, 8, NULL);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        raster_check_refused(RASTER_HGT, three, lengths[i], NULL, NULL, ERR_BAD_INPUT, "2884802");
        raster_check_refused(RASTER_HGT, three, lengths[i], NULL, NULL, ERR_BAD_INPUT, "25934402");
    }
    for (size_t length = 0; length <= sizeof three; length++) {
        bool square = length == 8 || length == 18;
        enum err_code code =
            raster_check_decode(RASTER_HGT, three, length, NULL, NULL, &raster, &err);

        raster_free(&raster);
        if ((code == ERR_OK) != square)
            fail_msg("%zu bytes: code %d", length, (int)code);
    }
}

static void one_sample_is_no_heightfield(void **state)
{
    (void)state;
    raster_check_refused(RASTER_HGT, three, 2, NULL, NULL, ERR_UNPROCESSABLE, "2 x 2");
}

static void limits_name_limit_and_got(void **state)
{
    static const struct raster_limits side = {.samples_max = 100, .side_max = 2};
    static const struct raster_limits samples = {.samples_max = 8, .side_max = 3};

    (void)state;
    raster_check_too_large(RASTER_HGT, three, sizeof three, NULL, &side, 2, 3);
    raster_check_too_large(RASTER_HGT, three, sizeof three, NULL, &samples, 8, 9);
}

static void a_scale_too_large_is_refused(void **state)
{
    static const struct raster_options options = {.height_scale = 1e38};

    (void)state;
    raster_check_refused(RASTER_HGT, three, sizeof three, &options, NULL, ERR_BAD_INPUT,
                         "column 1 of row 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_big_endian_and_the_void_is_no_data),
        cmocka_unit_test(the_void_stays_no_data_beside_another_no_data_code),
        cmocka_unit_test(only_squares_are_taken_and_the_message_names_the_sizes),
        cmocka_unit_test(one_sample_is_no_heightfield),
        cmocka_unit_test(limits_name_limit_and_got),
        cmocka_unit_test(a_scale_too_large_is_refused),
    };

    return cmocka_run_group_tests_name("hgt", tests, NULL, NULL);
}
