/*
 * Samples by bytes, and by what a plane through their neighbours leaves: see float_layout.h.
 *
 * The predictor is that of Ibarria, Lindstrom, Rossignac and Szymczak (Out-of-core compression and
 * decompression of large n-dimensional scalar fields, 2003) on the bits of the samples, where it is
 * exact; zigzag makes small differences of both signs small numbers, so that the high planes are
 * nearly all zeros.
 *
 * Tried on the demo world with zstd at level 1: bytes 65 %, difference to the left 60 %, the same
 * with zigzag 57 %, this 53 to 55 %, its bits by planes 51 to 54 % at a fifth of the speed.
 */
#include "formats/float_layout.h"

#include <stdint.h>
#include <string.h>

const char *float_layout_word(enum float_layout layout)
{
    return layout == LAYOUT_BYTES ? "bytes" : layout == LAYOUT_DELTA ? "delta" : NULL;
}

static uint32_t load(const uint8_t *samples, size_t i)
{
    uint32_t bits;

    memcpy(&bits, samples + 4 * i, sizeof bits);
    return bits;
}

/* The sample that the plane through the ones before it would have. */
static uint32_t predict(const uint8_t *samples, size_t cols, size_t column, size_t at)
{
    uint32_t left = column > 0 ? load(samples, at - 1) : 0;
    uint32_t below = at >= cols ? load(samples, at - cols) : 0;
    uint32_t corner = column > 0 && at >= cols ? load(samples, at - cols - 1) : 0;

    return left + below - corner;
}

static uint32_t fold(uint32_t left)
{
    return left << 1 ^ (0 - (left >> 31));
}

static uint32_t unfold(uint32_t folded)
{
    return folded >> 1 ^ (0 - (folded & 1));
}

void float_layout_write(enum float_layout layout, const void *samples, size_t cols, size_t rows,
                        void *to)
{
    const uint8_t *in = samples;
    uint8_t *out = to;
    size_t count = cols * rows;

    for (size_t row = 0, at = 0; row < rows; row++) {
        for (size_t column = 0; column < cols; column++, at++) {
            uint32_t bits = load(in, at);

            if (layout == LAYOUT_DELTA)
                bits = fold(bits - predict(in, cols, column, at));
            for (size_t k = 0; k < 4; k++)
                out[k * count + at] = (uint8_t)(bits >> 8 * k);
        }
    }
}

void float_layout_read(enum float_layout layout, const void *from, size_t cols, size_t rows,
                       void *samples)
{
    const uint8_t *in = from;
    uint8_t *out = samples;
    size_t count = cols * rows;

    for (size_t row = 0, at = 0; row < rows; row++) {
        for (size_t column = 0; column < cols; column++, at++) {
            uint32_t bits = 0;

            for (size_t k = 0; k < 4; k++)
                bits |= (uint32_t)in[k * count + at] << 8 * k;
            if (layout == LAYOUT_DELTA)
                bits = unfold(bits) + predict(out, cols, column, at);
            memcpy(out + 4 * at, &bits, sizeof bits);
        }
    }
}
