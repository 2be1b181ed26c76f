/*
 * PNG files by hand: see png_make.h. The zlib stream is made of stored blocks (RFC 1951, 3.2.4),
 * rows have filter 0, and an interlaced image is sent in the seven passes of Adam7 (PNG, 8.2).
 */
#include "tests/support/png_make.h"

#include "base/check.h"

#include <string.h>
#include <zlib.h>

static const int adam7[7][4] = {/* first column, first row, column step, row step */
                                {0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const int whole[1][4] = {{0, 0, 1, 1}};

static void put(struct png_make *out, const void *bytes, size_t length)
{
    CHECK(out->length + length <= PNG_MAKE_BYTES_MAX);
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

static void put_u8(struct png_make *out, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    put(out, &byte, 1);
}

static void store_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_u32(struct png_make *out, uint32_t value)
{
    uint8_t bytes[4];

    store_u32(bytes, value);
    put(out, bytes, 4);
}

static uint32_t crc_of(const uint8_t *bytes, size_t length)
{
    return (uint32_t)crc32(0, bytes, (uInt)length);
}

void png_make_repair_crc(uint8_t *bytes, size_t offset)
{
    size_t length = (size_t)bytes[offset] << 24 | (size_t)bytes[offset + 1] << 16 |
                    (size_t)bytes[offset + 2] << 8 | bytes[offset + 3];

    store_u32(bytes + offset + 8 + length, crc_of(bytes + offset + 4, length + 4));
}

void png_make_signature(struct png_make *out)
{
    out->length = 0;
    put(out, "\x89PNG\r\n\x1a\n", 8);
}

void png_make_chunk(struct png_make *out, const char *name, const void *content, size_t length)
{
    size_t start = out->length;

    put_u32(out, (uint32_t)length);
    put(out, name, 4);
    put(out, content, length);
    put_u32(out, 0);
    png_make_repair_crc(out->bytes, start);
}

void png_make_header(struct png_make *out, const struct png_make_image *image)
{
    uint8_t content[13] = {0};

    store_u32(content, image->cols);
    store_u32(content + 4, image->rows);
    content[8] = (uint8_t)image->bits;
    content[9] = (uint8_t)image->color;
    content[12] = image->interlaced;
    png_make_chunk(out, "IHDR", content, sizeof content);
}

/* The filtered rows of one pass; an empty pass has none. */
static void put_pass(struct png_make *out, const struct png_make_image *image, const int pass[4])
{
    static const size_t channels_of[7] = {1, 0, 3, 1, 2, 0, 4};
    size_t channels = channels_of[image->color];

    if ((uint32_t)pass[0] >= image->cols)
        return;
    for (size_t row = (size_t)pass[1]; row < image->rows; row += (size_t)pass[3]) {
        put_u8(out, 0);
        for (size_t column = (size_t)pass[0]; column < image->cols; column += (size_t)pass[2])
            for (size_t channel = 0; channel < channels; channel++) {
                unsigned code = image->codes[(row * image->cols + column) * channels + channel];

                if (image->bits == 16)
                    put_u8(out, code >> 8);
                put_u8(out, code);
            }
    }
}

static void put_zlib_stored(struct png_make *out, const struct png_make *raw)
{
    uint32_t a = 1, b = 0;

    CHECK(raw->length <= 0xffff);
    for (size_t i = 0; i < raw->length; i++) {
        a = (a + raw->bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    put(out, "\x78\x01\x01", 3);
    put_u8(out, (unsigned)raw->length);
    put_u8(out, (unsigned)(raw->length >> 8));
    put_u8(out, ~(unsigned)raw->length);
    put_u8(out, ~(unsigned)(raw->length >> 8));
    put(out, raw->bytes, raw->length);
    put_u32(out, b << 16 | a);
}

void png_make(const struct png_make_image *image, struct png_make *out)
{
    static _Thread_local struct png_make raw, zlib;
    const int(*passes)[4] = image->interlaced ? adam7 : whole;

    raw.length = zlib.length = 0;
    for (int pass = 0; pass < (image->interlaced ? 7 : 1); pass++)
        put_pass(&raw, image, passes[pass]);
    put_zlib_stored(&zlib, &raw);
    png_make_signature(out);
    png_make_header(out, image);
    if (image->extra)
        png_make_chunk(out, image->extra_name, image->extra, image->extra_length);
    png_make_chunk(out, "IDAT", zlib.bytes, zlib.length);
    png_make_chunk(out, "IEND", "", 0);
}
