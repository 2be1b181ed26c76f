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
    RASTER_PNG, /* 8- or 16-bit grey, no alpha: codes; the grey of a tRNS chunk is no-data */
    RASTER_F32, /* little-endian float32, NaN is no-data */
    RASTER_HGT, /* SRTM: big-endian int16, square, 1201² or 3601² (or another square), -32768 void
                 */
    RASTER_ASC, /* ESRI ASCII grid; NODATA_value and the word nan are no-data */
    RASTER_TIFF /* GeoTIFF, one sample a pixel: integers or floats; by libtiff in a jail */
};

struct raster_limits {
    uint64_t samples_max; /* 2^27 by default: 512 MiB of float32 */
    uint32_t side_max;    /* samples along one axis; HEIGHTFIELD_SIDE_MAX by default */
};

extern const struct raster_limits raster_limits_default;

struct raster_options {
    uint32_t cols, rows;  /* RASTER_F32 only; otherwise 0: from the file */
    double height_scale;  /* height = height_offset + height_scale · code, evaluated in float64 and
                             rounded once to float32; finite; 1 */
    double height_offset; /* finite; 0 */
    bool flip_y;          /* the source's first row is the north edge */
    bool is_scaled;       /* RASTER_TIFF: height_scale or height_offset are given, the file's own
                             and its unit do not count; as is_placed, false by default */
    bool is_placed;       /* RASTER_TIFF: its spacing is given, its coordinate system does not
                             count */
    bool has_nodata; /* nodata: this code (before scale) is no-data, besides the format's own */
    double nodata;   /* finite; codes are compared with it as float32 */
};

/* height = code, no flip, no no-data of one's own. */
extern const struct raster_options raster_options_default;

/* What a GeoTIFF says besides its grid. */
struct raster_import {
    bool has_geo; /* the frame's origin, by latitude and longitude on WGS84 */
    double lat_deg, lng_deg;
    double stretch; /* of a plane made of degrees: how wrong lengths along x are at its edge */
    uint32_t crs;   /* EPSG code of the projected system that spacing and origin are in; 0: none */
    double vertical_unit_m; /* of the numbers; 0: the file does not say, they are metres */
    double height_scale, height_offset; /* as they were applied */
};

struct raster {
    uint32_t cols, rows;
    float *heights_m; /* [rows][cols], malloc; after the flip: row 0 is the source's first, or with
                       * flip_y its last */
    bool has_spacing; /* ASC: cellsize; TIFF: where it says; HGT: none, degrees are not metres */
    double spacing_x, spacing_y;
    bool has_origin; /* ASC, when given: the centre of the lower left cell, flipped or not; TIFF */
    double origin_x, origin_y;
    bool has_import; /* TIFF, as the following */
    struct raster_import import;
    bool is_north_first; /* the file has its own rows, and says so: they were flipped */
    bool is_in_metres;   /* by its coordinate system */
};

/*
 * From a word ("png", "f32", "hgt", "asc", "tif"), a name's ending (".png", …) or a media type,
 * whose parameters ("; charset=…") do not matter; letters in either case. False when it is unknown;
 * so is application/octet-stream: its sender has to give the format.
 */
bool raster_format_of_word(const char *word, enum raster_format *out);
bool raster_format_of_name(const char *name, enum raster_format *out);
bool raster_format_of_media_type(const char *media_type, enum raster_format *out);

/*
 * Decodes. options and limits may be NULL: the defaults.
 *
 * ERR_BAD_INPUT     malformed, truncated, trailing bytes, an infinite height, an option that is not
 *                   finite, cols or rows missing for RASTER_F32
 * ERR_TOO_LARGE     (with limit and got) more samples than allowed, known from the header before
 *                   anything is allocated
 * ERR_UNPROCESSABLE well-formed but not a heightfield: a colour PNG, under 2×2
 * ERR_NO_MEMORY
 * On error out is zeroed. Memory beyond the result is a few rows; a size that the file's length
 * cannot hold is refused before the result is allocated. O(samples), any thread.
 */
enum err_code raster_decode(enum raster_format format, const uint8_t *bytes, size_t length,
                            const struct raster_options *options,
                            const struct raster_limits *limits, struct raster *out,
                            struct err *err);

void raster_free(struct raster *raster);

/*
 * The two steps of RASTER_F32, for a body that is decoded while it arrives: what raster_decode says
 * of the size and of a length, and the heights of samples first .. first + count - 1 in the order
 * of the source, bytes[4 * count]. The caller flips.
 */
enum err_code raster_check_f32(const struct raster_options *options,
                               const struct raster_limits *limits, uint64_t length,
                               struct err *err);
enum err_code raster_heights_f32(const struct raster_options *options, uint64_t first,
                                 const uint8_t *bytes, size_t count, float *heights_m,
                                 struct err *err);

/* A growing run of bytes that an encoder writes; freed with free(at). */
struct raster_bytes {
    uint8_t *at;
    size_t length;
};

/*
 * 16-bit grey PNG of codes[rows][cols] or 8-bit RGB(A) pixels[rows][cols][channels], first row on
 * top. The same pixels give the same bytes (on the same libpng and zlib).
 *
 * channels     1 (codes are uint16_t in native order), 3 or 4 (uint8_t)
 * compression  zlib's: 0 none, 1 fast … 9 small; or PNG_FAST: differences between rows with run
 *              lengths only, which takes a quarter of the time of 4 on heights, 5 % larger
 * out          untouched unless ERR_OK
 *
 * ERR_BAD_INPUT  cols or rows is 0 or more than libpng writes (1,000,000)
 * ERR_NO_MEMORY
 */
enum { PNG_FAST = 10 };
enum err_code png_encode(uint32_t cols, uint32_t rows, int channels, const void *pixels,
                         int compression, struct raster_bytes *out, struct err *err);

#endif
