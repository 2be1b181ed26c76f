/*
 * PNG files by hand, without libpng or zlib: what the decoder's tests feed it must not come from
 * the library under it. Pixels are stored, not compressed.
 */
#ifndef KOTA_TESTS_SUPPORT_PNG_MAKE_H
#define KOTA_TESTS_SUPPORT_PNG_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNG_MAKE_BYTES_MAX = 1 << 16 };

struct png_make {
    uint8_t bytes[PNG_MAKE_BYTES_MAX];
    size_t length;
};

struct png_make_image {
    uint32_t cols, rows;
    int bits, color; /* 8 or 16; PNG colour type */
    bool interlaced;
    const uint16_t *codes; /* [rows][cols][channels of the colour type] */
    const uint8_t *extra;  /* a chunk's content put before IDAT, or NULL */
    size_t extra_length;
    const char *extra_name; /* its name: "tRNS" */
};

/* A whole file; aborts when it does not fit. */
void png_make(const struct png_make_image *image, struct png_make *out);

/* The pieces: the signature, one chunk with its right CRC, the IHDR chunk. */
void png_make_signature(struct png_make *out);
void png_make_chunk(struct png_make *out, const char *name, const void *content, size_t length);
void png_make_header(struct png_make *out, const struct png_make_image *image);

/* Writes the right CRC over that of the chunk whose length field stands at offset. */
void png_make_repair_crc(uint8_t *bytes, size_t offset);

#endif
