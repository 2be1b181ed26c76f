/*
 * Fuzzes the PNG decoder; see fuzz_raster.h for the first byte. A changed byte nearly always breaks
 * the CRC of its chunk, where the decoder rightly stops; so each input runs twice, as it is and
 * with every CRC made right, which lets the damage through to libpng's chunks and to inflate. A
 * third time it is pixels, which are written and read back.
 */
#include "tests/fuzz/fuzz_raster.h"

#include <zlib.h>

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Walks the chunks as far as their lengths make sense. */
static void crcs_repair(uint8_t *bytes, size_t length)
{
    size_t at = 8;

    while (at + 12 <= length && read_u32(bytes + at) <= length - at - 12) {
        size_t content = read_u32(bytes + at);
        uint32_t crc = (uint32_t)crc32(0, bytes + at + 4, (uInt)content + 4);

        for (size_t i = 0; i < 4; i++)
            bytes[at + 8 + content + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + content;
    }
}

/* The input as pixels: what is written reads back as it was, in one channel; in more it is a PNG.
 */
static void round_trip(const uint8_t *bytes, size_t size)
{
    const int channels = bytes[0] % 3 == 0 ? 1 : 2 + bytes[0] % 3;
    const size_t pixel_bytes = channels == 1 ? 2 : (size_t)channels;
    const uint32_t cols = 2 + bytes[0] % 5, rows = (uint32_t)((size - 1) / pixel_bytes / cols);
    struct raster_options options = {.height_scale = 1};
    struct raster_limits limits = {.samples_max = 1 << 18, .side_max = 1 << 16};
    struct raster_bytes file = {0};
    struct raster raster;
    struct err err = {0};
    uint8_t *pixels = malloc(size);

    CHECK(pixels);
    memcpy(pixels, bytes + 1, size - 1);
    if (png_encode(cols, rows, channels, pixels, bytes[0] % 10, &file, &err)) {
        CHECK(rows == 0 && err.code == ERR_BAD_INPUT);
    } else if (channels == 1 && rows >= 2) {
        CHECK(!raster_decode(RASTER_PNG, file.at, file.length, &options, &limits, &raster, &err));
        CHECK(raster.cols == cols && raster.rows == rows);
        for (size_t i = 0; i < (size_t)cols * rows; i++) {
            uint16_t code;

            memcpy(&code, pixels + 2 * i, sizeof code);
            CHECK(raster.heights_m[i] == code);
        }
        raster_free(&raster);
    }
    free(file.at);
    free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *repaired;

    if (size < 1)
        return 0;
    round_trip(bytes, size);
    fuzz_raster_decode(RASTER_PNG, bytes[0], 0, 0, bytes + 1, size - 1);
    repaired = malloc(size);
    CHECK(repaired);
    memcpy(repaired, bytes, size);
    crcs_repair(repaired + 1, size - 1);
    fuzz_raster_decode(RASTER_PNG, bytes[0], 0, 0, repaired + 1, size - 1);
    free(repaired);
    return 0;
}
