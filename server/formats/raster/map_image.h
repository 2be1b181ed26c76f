/*
 * Heights as the pictures that maps read: RGB codes, float32, one-tile GeoTIFF, shaded relief.
 */
#ifndef KOTA_FORMATS_MAP_IMAGE_H
#define KOTA_FORMATS_MAP_IMAGE_H

#include "formats/raster/geotiff.h"
#include "formats/raster/tile_image.h"

enum map_format {
    MAP_TERRARIUM,   /* height = (red · 256 + green + blue / 256) - 32768 */
    MAP_TERRAIN_RGB, /* height = -10000 + (red · 65536 + green · 256 + blue) · 0.1: Mapbox */
    MAP_RELIEF,
    MAP_F32,
    MAP_TIF
};

/* Half of a code's step: what rounding may change. For float32 that of the greatest height. */
double map_format_half_step_m(enum map_format format, double greatest_m);

/* Columns and rows that a format needs around the picture. */
static inline uint32_t map_format_rim(enum map_format format)
{
    return format == MAP_RELIEF ? 1 : 0;
}

/*
 * Encodes heights_m[side + 2 rim][side + 2 rim], row 0 on top. PNG is RGB, or RGBA with has_alpha,
 * alpha 0 where a height is NaN, and has no chunk about colours: readers take the bytes as they
 * are. Without alpha no height is NaN. Codes are clamped to their range.
 *
 * pixel_m  MAP_RELIEF: of a pixel
 * place    MAP_TIF: of the picture
 *
 * ERR_NO_MEMORY, or the error of png_encode; out is untouched then. O(pixels), any thread.
 */
enum err_code map_image_encode(enum map_format format, uint32_t side, const double *heights_m,
                               bool has_alpha, double pixel_m, const struct geotiff_place *place,
                               struct tile_image *out, struct err *err);

#endif
