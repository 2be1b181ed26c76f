/*
 * PNG: files made by hand (png_make.h), so that libpng is not its own judge; damage, bombs and
 * limits; and what png_encode writes, read back.
 */
#include "tests/support/png_make.h"
#include "tests/support/raster_check.h"

#include <png.h>
#include <stdio.h>

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };

static const uint16_t six_codes[6] = {0, 1, 255, 256, 43798, 65535};
static const uint16_t six_bytes[6] = {0, 1, 2, 127, 128, 255};
static const struct png_make_image grey16 = {
    .cols = 3, .rows = 2, .bits = 16, .color = GREY, .codes = six_codes};
static const struct png_make_image grey8 = {
    .cols = 3, .rows = 2, .bits = 8, .color = GREY, .codes = six_bytes};

static void refused_check(const struct png_make *file, enum err_code code, const char *message)
{
    raster_check_refused(RASTER_PNG, file->bytes, file->length, NULL, NULL, code, message);
}

static void grey_of_16_bits_gives_its_codes(void **state)
{
    static const float expected[6] = {0, 1, 255, 256, 43798, 65535};
    struct png_make file;

    (void)state;
    png_make(&grey16, &file);
    raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, 3, 2, expected);
}

static void grey_of_8_bits_gives_its_codes_unstretched(void **state)
{
    static const float expected[6] = {0, 1, 2, 127, 128, 255};
    struct png_make file;

    (void)state;
    png_make(&grey8, &file);
    raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, 3, 2, expected);
}

/* Sizes around the passes of Adam7: some passes are empty in the small ones. */
static void interlaced_images_give_the_same_as_plain_ones(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {3, 2}, {2, 9}, {5, 4}, {8, 8}, {17, 9}, {33, 31}};
    uint16_t codes[33 * 31];
    float expected[33 * 31];
    struct png_make file;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int bits = 8; bits <= 16; bits += 8) {
            struct png_make_image image = {.cols = sizes[i][0],
                                           .rows = sizes[i][1],
                                           .bits = bits,
                                           .interlaced = true,
                                           .codes = codes};

            for (size_t k = 0; k < (size_t)image.cols * image.rows; k++) {
                codes[k] = (uint16_t)(k * 40503 + 7);
                expected[k] = bits == 16 ? codes[k] : codes[k] & 255;
            }
            png_make(&image, &file);
            raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, image.cols, image.rows,
                                 expected);
        }
}

static void scale_offset_no_data_and_flip_apply(void **state)
{
    static const struct raster_options options = {.height_scale = 0.5,
                                                  .height_offset = -100,
                                                  .flip_y = true,
                                                  .has_nodata = true,
                                                  .nodata = 0};
    struct png_make file;

    (void)state;
    png_make(&grey16, &file);
    raster_check_heights(RASTER_PNG, file.bytes, file.length, &options, 3, 2,
                         (const float[]){28, 21799, 32667.5f, NAN, -99.5f, 27.5f});
}

static void the_transparent_grey_is_no_data(void **state)
{
    struct png_make_image image = grey16;
    struct png_make file;

    (void)state;
    image.extra_name = "tRNS";
    image.extra = (const uint8_t *)"\x01\x00";
    image.extra_length = 2;
    png_make(&image, &file);
    raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, 3, 2,
                         (const float[]){0, 1, 255, NAN, 43798, 65535});
    image.bits = 8;
    image.codes = six_bytes;
    image.extra = (const uint8_t *)"\x00\x80";
    png_make(&image, &file);
    raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, 3, 2,
                         (const float[]){0, 1, 2, 127, NAN, 255});
}

static void gamma_and_significant_bits_change_no_code(void **state)
{
    static const struct {
        const char *name, *content;
        size_t length;
    } chunks[] = {{"gAMA", "\x00\x00\xb1\x8f", 4},      {"sBIT", "\x0c", 1},
                  {"tEXt", "Comment\0hello", 13},       {"zTXt", "Comment\0\0not zlib at all", 24},
                  {"iCCP", "x\0\0not zlib at all", 18}, {"quUx", "unknown, but ancillary", 22}};
    struct png_make_image image = grey16;
    struct png_make file;

    (void)state;
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        image.extra_name = chunks[i].name;
        image.extra = (const uint8_t *)chunks[i].content;
        image.extra_length = chunks[i].length;
        png_make(&image, &file);
        raster_check_heights(RASTER_PNG, file.bytes, file.length, NULL, 3, 2,
                             (const float[]){0, 1, 255, 256, 43798, 65535});
        file.bytes[33 + 8] ^= 1; /* its content, not its CRC */
        refused_check(&file, ERR_BAD_INPUT, "CRC");
    }
}

static void images_that_are_not_heights_are_unprocessable_and_say_why(void **state)
{
    static const struct {
        int bits, color;
        const char *message;
    } cases[] = {
        {8, RGB, "colour"},      {16, RGB, "colour"},      {8, RGBA, "colour"},
        {8, PALETTE, "palette"}, {8, GREY_ALPHA, "alpha"}, {16, GREY_ALPHA, "alpha"},
        {1, GREY, "has 1"},      {2, GREY, "has 2"},       {4, GREY, "has 4"},
    };
    static const uint16_t codes[6 * 4];
    struct png_make file;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct png_make_image image = {
            .cols = 3, .rows = 2, .bits = cases[i].bits, .color = cases[i].color, .codes = codes};

        png_make_signature(&file);
        png_make_header(&file, &image);
        refused_check(&file, ERR_UNPROCESSABLE, cases[i].message);
    }
    for (int side = 0; side < 2; side++) {
        struct png_make_image thin = grey16;

        thin.cols = side ? 1 : 6;
        thin.rows = side ? 6 : 1;
        png_make(&thin, &file);
        refused_check(&file, ERR_UNPROCESSABLE, "2 x 2");
    }
}

static void every_truncated_length_is_refused(void **state)
{
    struct png_make_image image = grey16;
    struct png_make file;

    (void)state;
    png_make(&image, &file);
    raster_check_truncations(RASTER_PNG, file.bytes, file.length, NULL);
    image.interlaced = true;
    png_make(&image, &file);
    raster_check_truncations(RASTER_PNG, file.bytes, file.length, NULL);
}

/* Every byte, every value: refused, or a raster that keeps the contract and the size. */
static void every_changed_byte_is_refused(void **state)
{
    struct png_make file;
    struct raster raster;
    struct err err;

    (void)state;
    png_make(&grey16, &file);
    for (size_t at = 0; at < file.length; at++)
        for (int change = 1; change < 256; change++) {
            file.bytes[at] ^= (uint8_t)change;
            if (!raster_check_decode(RASTER_PNG, file.bytes, file.length, NULL, NULL, &raster,
                                     &err))
                fail_msg("byte %zu changed by %d passes", at, change);
            file.bytes[at] ^= (uint8_t)change;
        }
}

/* The same with the CRC made right again: the damage now reaches libpng's and zlib's insides. */
static void every_changed_byte_with_a_right_crc_is_refused_or_a_raster(void **state)
{
    size_t chunks[] = {8, 33, 0};
    int refused = 0, taken = 0;
    struct png_make file;
    struct raster raster;
    struct err err;

    (void)state;
    png_make(&grey8, &file);
    chunks[2] = file.length;
    for (int chunk = 0; chunk < 2; chunk++)
        for (size_t at = chunks[chunk] + 4; at < chunks[chunk + 1]; at++)
            for (int bit = 0; bit < 8; bit++) {
                struct png_make damaged = file;

                damaged.bytes[at] ^= (uint8_t)(1 << bit);
                png_make_repair_crc(damaged.bytes, chunks[chunk]);
                if (raster_check_decode(RASTER_PNG, damaged.bytes, damaged.length, NULL, NULL,
                                        &raster, &err)) {
                    refused++;
                } else {
                    taken++;
                    raster_free(&raster);
                }
            }
    if (refused < 200 || taken < 1)
        fail_msg("%d refused, %d taken", refused, taken);
}

static void damage_is_refused_with_its_cause(void **state)
{
    struct png_make file;

    (void)state;
    png_make(&grey16, &file);
    file.bytes[file.length++] = 0;
    refused_check(&file, ERR_BAD_INPUT, "1 bytes follow its end");
    png_make(&grey16, &file);
    file.bytes[50]++; /* in the pixels: zlib's checksum comes before the chunk's */
    refused_check(&file, ERR_BAD_INPUT, "IDAT: incorrect data check");
    png_make(&grey16, &file);
    file.bytes[file.length - 13]++; /* in the CRC of IDAT */
    refused_check(&file, ERR_BAD_INPUT, "IDAT: CRC error");
    file.bytes[1] = 'J';
    refused_check(&file, ERR_BAD_INPUT, "not a PNG");
    png_make_signature(&file);
    refused_check(&file, ERR_BAD_INPUT, "truncated");
    png_make_header(&file, &grey16);
    refused_check(&file, ERR_BAD_INPUT, "truncated");
    png_make_chunk(&file, "IEND", "", 0);
    refused_check(&file, ERR_BAD_INPUT, "PNG: ");
    raster_check_refused(RASTER_PNG, "GIF89a..........................................", 40, NULL,
                         NULL, ERR_BAD_INPUT, "not a PNG");
}

static void limits_name_limit_and_got_from_the_header_alone(void **state)
{
    static const struct raster_limits side = {.samples_max = 100, .side_max = 2};
    static const struct raster_limits samples = {.samples_max = 5, .side_max = 3};
    struct png_make_image bomb = {.cols = 60000, .rows = 60000, .bits = 16};
    struct png_make file;

    (void)state;
    png_make(&grey16, &file);
    raster_check_too_large(RASTER_PNG, file.bytes, file.length, NULL, &side, 2, 3);
    raster_check_too_large(RASTER_PNG, file.bytes, file.length, NULL, &samples, 5, 6);
    png_make_signature(&file);
    png_make_header(&file, &bomb);
    raster_check_too_large(RASTER_PNG, file.bytes, file.length, NULL, NULL, 0x1p27, 3.6e9);
    bomb.cols = 0x7fffffff;
    png_make_signature(&file);
    png_make_header(&file, &bomb);
    raster_check_too_large(RASTER_PNG, file.bytes, file.length, NULL, NULL, 1 << 20, 0x1p31 - 1);
}

static void a_file_too_short_for_its_size_is_refused_before_memory_is_taken(void **state)
{
    static const struct raster_limits wide = {.samples_max = UINT64_C(1) << 60,
                                              .side_max = UINT32_MAX};
    struct png_make_image bomb = {.cols = 0x40000000, .rows = 0x40000000, .bits = 16};
    struct png_make file;

    (void)state;
    png_make_signature(&file);
    png_make_header(&file, &bomb);
    raster_check_refused(RASTER_PNG, file.bytes, file.length, NULL, &wide, ERR_BAD_INPUT,
                         "33 bytes cannot hold 1073741824 x 1073741824");
}

/* Peak resident memory in KiB, after a reset of the peak; 0 where the kernel does not tell. */
static long peak_kib(bool reset)
{
    FILE *file = reset ? fopen("/proc/self/clear_refs", "w") : NULL;
    char line[256];
    long kib = 0;

    if (reset && (!file || fputs("5", file) < 0 || fclose(file) != 0))
        return 0;
    file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

/* 8192 x 4096 zeros: 64 MiB of pixels in some 64 KiB, as tight as deflate gets. */
static void bomb_make(struct raster_bytes *out)
{
    uint16_t *zeros = calloc((size_t)8192 * 4096, sizeof *zeros);
    struct err err;

    assert_non_null(zeros);
    if (png_encode(8192, 4096, 1, zeros, 9, out, &err))
        fail_msg("%s", err.msg);
    free(zeros);
    if (out->length > 128 << 10)
        fail_msg("the bomb has %zu bytes", out->length);
}

static void decompression_bombs_are_refused_in_bounded_memory(void **state)
{
    static const struct raster_limits limits = {.samples_max = 1 << 20, .side_max = 1 << 16};
    struct raster_bytes bomb = {0};
    long before, after;

    (void)state;
    bomb_make(&bomb);
    before = peak_kib(true);
    raster_check_too_large(RASTER_PNG, bomb.at, bomb.length, NULL, &limits, 1 << 20, 8192 * 4096);
    memcpy(bomb.at + 16, "\0\0\0\x10\0\0\0\x10", 8); /* the same pixels, said to be 16 x 16 */
    png_make_repair_crc(bomb.at, 8);
    raster_check_refused(RASTER_PNG, bomb.at, bomb.length, NULL, &limits, ERR_BAD_INPUT, "PNG: ");
    after = peak_kib(false);
    free(bomb.at);
    if (!before) {
        print_message("this kernel does not tell peak memory\n");
        skip();
    }
    if (after - before > 16 << 10)
        fail_msg("the bombs took %ld KiB, expected at most %d", after - before, 16 << 10);
}

static void a_grey_image_that_is_written_is_read_back(void **state)
{
    uint16_t codes[7 * 5];
    float expected[7 * 5];

    (void)state;
    for (size_t i = 0; i < 35; i++) {
        codes[i] = (uint16_t)(i * 1871);
        expected[i] = codes[i];
    }
    for (int compression = 0; compression <= 9; compression++) {
        struct raster_bytes file = {0}, again = {0};
        struct err err;

        if (png_encode(7, 5, 1, codes, compression, &file, &err) ||
            png_encode(7, 5, 1, codes, compression, &again, &err))
            fail_msg("compression %d: %s", compression, err.msg);
        raster_check_heights(RASTER_PNG, file.at, file.length, NULL, 7, 5, expected);
        assert_int_equal(file.length, again.length);
        assert_memory_equal(file.at, again.at, file.length);
        free(file.at);
        free(again.at);
    }
}

/* Read back through libpng's own simplified reader, which shares nothing with our use of it. */
static void colour_images_have_the_pixels_given(void **state)
{
    uint8_t pixels[2 * 3 * 4], got[2 * 3 * 4];

    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 29 + 3);
    for (int channels = 3; channels <= 4; channels++) {
        struct raster_bytes file = {0};
        png_image image = {.version = PNG_IMAGE_VERSION};
        struct err err;

        if (png_encode(2, 3, channels, pixels, 6, &file, &err))
            fail_msg("%d channels: %s", channels, err.msg);
        raster_check_refused(RASTER_PNG, file.at, file.length, NULL, NULL, ERR_UNPROCESSABLE,
                             "colour");
        assert_true(png_image_begin_read_from_memory(&image, file.at, file.length));
        assert_int_equal(image.width, 2);
        assert_int_equal(image.height, 3);
        assert_int_equal(image.format, channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA);
        assert_true(png_image_finish_read(&image, NULL, got, 0, NULL));
        assert_memory_equal(got, pixels, (size_t)(2 * 3 * channels));
        free(file.at);
    }
}

static void an_image_without_a_size_cannot_be_written(void **state)
{
    struct raster_bytes file = {0};
    uint16_t code = 0;
    struct err err;

    (void)state;
    assert_int_equal(png_encode(0, 5, 1, &code, 6, &file, &err), ERR_BAD_INPUT);
    assert_int_equal(png_encode(5, 0, 1, &code, 6, &file, &err), ERR_BAD_INPUT);
    assert_null(file.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey_of_16_bits_gives_its_codes),
        cmocka_unit_test(grey_of_8_bits_gives_its_codes_unstretched),
        cmocka_unit_test(interlaced_images_give_the_same_as_plain_ones),
        cmocka_unit_test(scale_offset_no_data_and_flip_apply),
        cmocka_unit_test(the_transparent_grey_is_no_data),
        cmocka_unit_test(gamma_and_significant_bits_change_no_code),
        cmocka_unit_test(images_that_are_not_heights_are_unprocessable_and_say_why),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(every_changed_byte_is_refused),
        cmocka_unit_test(every_changed_byte_with_a_right_crc_is_refused_or_a_raster),
        cmocka_unit_test(damage_is_refused_with_its_cause),
        cmocka_unit_test(limits_name_limit_and_got_from_the_header_alone),
        cmocka_unit_test(a_file_too_short_for_its_size_is_refused_before_memory_is_taken),
        cmocka_unit_test(decompression_bombs_are_refused_in_bounded_memory),
        cmocka_unit_test(a_grey_image_that_is_written_is_read_back),
        cmocka_unit_test(colour_images_have_the_pixels_given),
        cmocka_unit_test(an_image_without_a_size_cannot_be_written),
    };

    return cmocka_run_group_tests_name("png", tests, NULL, NULL);
}
