/*
 * Layouts of float32 samples that compress better than the samples themselves.
 *
 * LAYOUT_BYTES  the bytes of all samples by their place: all first bytes, then all second ones, …
 * LAYOUT_DELTA  the same of what is left of each sample when the plane through its neighbours is
 *               taken off: with the bits of a sample as a whole number mod 2^32,
 *                   left = a(c, r) - (a(c-1, r) + a(c, r-1) - a(c-1, r-1)), 0 beyond the edges,
 *               then (left << 1) ^ (left >> 31), the shift to the right keeping the sign.
 *
 * Both keep every bit. Of the demo world zstd leaves 88 % of the samples, 65 % of LAYOUT_BYTES and
 * 54 % of LAYOUT_DELTA. (proto/windows.md describes both for clients.)
 */
#ifndef KOTA_FORMATS_FLOAT_LAYOUT_H
#define KOTA_FORMATS_FLOAT_LAYOUT_H

#include <stddef.h>

enum float_layout { LAYOUT_PLAIN, LAYOUT_BYTES, LAYOUT_DELTA };

/* "bytes", "delta"; NULL for LAYOUT_PLAIN. */
const char *float_layout_word(enum float_layout layout);

/*
 * Writes samples[rows][cols], 4 bytes each, little-endian, in a layout that is not plain. `to` has
 * 4 · rows · cols bytes, elsewhere.
 */
void float_layout_write(enum float_layout layout, const void *samples, size_t cols, size_t rows,
                        void *to);

/* And back; any bytes are some samples. */
void float_layout_read(enum float_layout layout, const void *from, size_t cols, size_t rows,
                       void *samples);

#endif
