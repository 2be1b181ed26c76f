/*
 * Fuzzes the PNG decoder; see fuzz_raster.h for the first byte. A changed byte nearly always breaks
 * the CRC of its chunk, where the decoder rightly stops; so each input runs twice, as it is and
 * with every CRC made right, which lets the damage through to libpng's chunks and to inflate.
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *repaired;

    if (size < 1)
        return 0;
    fuzz_raster_decode(RASTER_PNG, bytes[0], 0, 0, bytes + 1, size - 1);
    repaired = malloc(size);
    CHECK(repaired);
    memcpy(repaired, bytes, size);
    crcs_repair(repaired + 1, size - 1);
    fuzz_raster_decode(RASTER_PNG, bytes[0], 0, 0, repaired + 1, size - 1);
    free(repaired);
    return 0;
}
