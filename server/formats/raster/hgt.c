/*
 * SRTM height files: big-endian int16 metres, row by row from the north-west corner, no header.
 * The side follows from the length, which must be 2·n·n bytes: n is 1201 for three arc-seconds and
 * 3601 for one; any other square of at least 2 is taken, too. -32768 is the void.
 *
 * Spacing and origin are in the file's name (N42E001.hgt), in degrees, not metres; the caller
 * derives them from the name.
 *
 * Source: NASA/USGS, "SRTM Topography" (SRTM documentation, Quickstart), section 2.
 */
#include "formats/raster/raster_decode.h"

enum { HGT_VOID = -32768 };

/* The greatest n with n·n <= value, bit by bit: no rounding to think about. */
static uint64_t square_root(uint64_t value)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1) {
        uint64_t trial = root | bit;

        if (trial * trial <= value)
            root = trial;
    }
    return root;
}

enum err_code hgt_decode(const struct raster_source *source, struct raster *out, struct err *err)
{
    uint64_t samples = source->length / 2;
    uint64_t side = square_root(samples);

    if (source->length == 0 || source->length % 2 || side * side != samples)
        return err_set(err, ERR_BAD_INPUT,
                       "HGT: %zu bytes are no square of 2-byte samples: 1201 x 1201 take 2884802 "
                       "bytes, 3601 x 3601 take 25934402, n x n take 2*n*n",
                       source->length);
    if (raster_check_size("HGT", side, side, source->limits, err) ||
        raster_allocate((uint32_t)side, (uint32_t)side, out, err))
        return err->code;
    for (size_t i = 0; i < samples; i++) {
        const uint8_t *at = source->bytes + 2 * i;
        int code = (at[0] << 8 | at[1]) - (at[0] & 0x80 ? 65536 : 0);

        if (code == HGT_VOID)
            out->heights_m[i] = NAN;
        else if (!raster_height(source->options, code, &out->heights_m[i]))
            return raster_infinite("HGT", out, i, code, err);
    }
    return ERR_OK;
}
