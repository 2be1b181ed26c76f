/*
 * Shared by the decoders of raster.h; private to server/formats. A decoder leaves its rows in the
 * order of the source (raster_decode flips them) and frees nothing on error: raster_decode frees
 * *out's memory and zeroes it.
 */
#ifndef KOTA_FORMATS_RASTER_DECODE_H
#define KOTA_FORMATS_RASTER_DECODE_H

#include "formats/raster/raster.h"

#include <math.h>

/* One decoder's input: bytes[length] is borrowed, options and limits are never NULL. */
struct raster_source {
    const uint8_t *bytes;
    size_t length;
    const struct raster_options *options;
    const struct raster_limits *limits;
};

enum err_code png_decode(const struct raster_source *source, struct raster *out, struct err *err);
enum err_code f32_decode(const struct raster_source *source, struct raster *out, struct err *err);
enum err_code hgt_decode(const struct raster_source *source, struct raster *out, struct err *err);
enum err_code asc_decode(const struct raster_source *source, struct raster *out, struct err *err);
enum err_code tiff_decode(const struct raster_source *source, struct raster *out, struct err *err);

/* ERR_UNPROCESSABLE under 2×2, ERR_TOO_LARGE above the limits. `what`: "PNG", for messages. */
enum err_code raster_check_size(const char *what, uint64_t cols, uint64_t rows,
                                const struct raster_limits *limits, struct err *err);

/* Sets out's size, which raster_check_size has passed, and allocates its heights. */
enum err_code raster_allocate(uint32_t cols, uint32_t rows, struct raster *out, struct err *err);

/* ERR_BAD_INPUT that names the sample whose height is infinite in float32. */
enum err_code raster_infinite(const char *what, const struct raster *raster, size_t index,
                              double code, struct err *err);

/*
 * Is a finite code the no-data value? Both are compared as float32 samples: the text of one may
 * have more digits than that of the other (-3.4028235e+38). A no-data value beyond float32 is
 * compared as it is.
 */
static inline bool raster_is_nodata(double code, double nodata)
{
    return code == nodata || (isfinite((float)nodata) && (float)code == (float)nodata);
}

/* The height of a finite code; false when it is infinite in float32. */
static inline bool raster_height(const struct raster_options *options, double code, float *height_m)
{
    if (options->has_nodata && raster_is_nodata(code, options->nodata)) {
        *height_m = NAN;
        return true;
    }
    *height_m = (float)(options->height_offset + options->height_scale * code);
    return isfinite(*height_m);
}

#endif
