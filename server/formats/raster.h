/*
 * Rasters: bytes of a file become heights in rows, and back. Pure: bytes in, values out; no files,
 * no clock. Every decoder is bounded by `raster_limits` before it allocates, takes hostile bytes,
 * and has a fuzzer under tests/fuzz.
 */
#ifndef KOTA_FORMATS_RASTER_H
#define KOTA_FORMATS_RASTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum raster_format {
    RASTER_PNG, /* 8- or 16-bit grey, no alpha: codes */
    RASTER_F32, /* little-endian float32, NaN is no-data */
    RASTER_HGT, /* SRTM: big-endian int16, square, 1201² or 3601² (or another square), -32768 void */
    RASTER_ASC  /* ESRI ASCII grid */
};

struct raster_limits {
    uint64_t samples_max; /* 2^27 by default: 512 MiB of float32 */
    uint32_t side_max;
};

extern const struct raster_limits raster_limits_default;

struct raster_options {
    uint32_t cols, rows;  /* RASTER_F32 only; elsewhere 0, the file says */
    double height_scale;  /* height = height_offset + height_scale · code; 1 */
    double height_offset; /* 0 */
    bool flip_y;          /* the source's first row is the north edge */
    bool has_nodata;      /* nodata: this code (before scale) is no-data, besides the format's own */
    double nodata;
};

struct raster {
    uint32_t cols, rows;
    float *heights_m; /* [rows][cols], malloc; after the flip: row 0 is what the source had first,
                         or with flip_y what it had last */
    bool has_spacing; /* ASC: cellsize; HGT: none, degrees are not metres */
    double spacing_x, spacing_y;
    bool has_origin; /* ASC: the centre of the lower left cell */
    double origin_x, origin_y;
};

/* From a name's ending (".png", ".hgt", …) or a media type; false when it is none of ours. */
bool raster_format_of_name(const char *name, enum raster_format *out);
bool raster_format_of_media_type(const char *media_type, enum raster_format *out);

/*
 * Decodes. ERR_BAD_INPUT: malformed, truncated, trailing bytes, an infinite height; ERR_TOO_LARGE
 * (with limit and got): more samples than allowed, told from the header before anything is
 * allocated; ERR_UNPROCESSABLE: well-formed but not a heightfield (a colour PNG, under 2×2);
 * ERR_NO_MEMORY. On error out is zeroed.
 */
enum err_code raster_decode(enum raster_format format, const uint8_t *bytes, size_t length,
                            const struct raster_options *options,
                            const struct raster_limits *limits, struct raster *out,
                            struct err *err);

void raster_free(struct raster *raster);

/* A growing run of bytes that an encoder writes; freed with free(at). */
struct raster_bytes {
    uint8_t *at;
    size_t length;
};

/*
 * 16-bit grey PNG of codes[rows][cols] or 8-bit RGB(A) pixels, first row on top.
 * channels: 1 (codes are uint16_t in native order), 3 or 4 (uint8_t).
 */
enum err_code png_encode(uint32_t cols, uint32_t rows, int channels, const void *pixels,
                         int compression, struct raster_bytes *out, struct err *err);

#endif
