/*
 * Blocks of heights as bytes: float32, 16-bit grey PNG, terrarium PNG. Pure.
 */
#ifndef KOTA_FORMATS_TILE_IMAGE_H
#define KOTA_FORMATS_TILE_IMAGE_H

#include "formats/raster/raster.h"

enum tile_format { TILE_PNG16, TILE_TERRARIUM, TILE_F32 };

/* Heights as codes of 16 bits: height = offset + scale · code; code 0 is a hole. */
struct height_codes {
    double offset_m, scale_m;
};

/* Codes 1..65535 from `low` to `high`, which are finite; scale 1 when they are the same. */
struct height_codes height_codes_over(double low_m, double high_m);

/* The nearest code of a height within low..high; 0 for NaN. */
uint16_t height_code(const struct height_codes *codes, float height_m);

struct tile_image {
    const char *media_type;    /* static */
    struct height_codes codes; /* TILE_PNG16; scale 0 elsewhere */
    struct raster_bytes bytes; /* malloc */
};

/*
 * Encodes heights_m[rows][cols], row 0 on top, NaN is a hole: code 0 (png16), alpha 0 (terrarium).
 * Terrarium: height = (red · 256 + green + blue / 256) - 32768, clamped to its range.
 *
 * ERR_NO_MEMORY, or the error of png_encode; out is untouched then. O(samples), any thread.
 */
enum err_code tile_image_encode(enum tile_format format, uint32_t cols, uint32_t rows,
                                const float *heights_m, struct tile_image *out, struct err *err);

#endif
