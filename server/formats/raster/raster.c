/*
 * The door to the raster decoders: names and media types, limits, options, the flip.
 *
 * Each decoder (png.c, f32.c, hgt.c, asc.c, tiff.c) reads hostile bytes in three steps, always in
 * this order: the header, the limits, the allocation. What the header claims is never trusted
 * further than the length of the file allows: raw formats must have exactly the right length, an
 * ASC value takes at least two bytes, and deflate shrinks at most 1032 times; a TIFF's memory is
 * touched only as its samples come. So the memory of a decode is bounded by the limits and by the
 * file itself.
 *
 * All formats share one rule from code to height: the code is compared with no-data first; then
 * height_offset + height_scale · code in float64, rounded once to float32. A height that is
 * infinite there is refused, for the min/max pyramids use infinities to mean "no data".
 *
 * The flip swaps rows in place after decoding: decoders that write bottom up would be possible, but
 * interlaced PNGs and error messages ("row 3") are simpler in source order.
 */
#include "formats/raster/raster.h"
#include "formats/raster/raster_decode.h"
#include "formats/word.h"

#include "terrain/field/heightfield.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct raster_limits raster_limits_default = {
    .samples_max = UINT64_C(1) << 27,
    .side_max = HEIGHTFIELD_SIDE_MAX,
};

const struct raster_options raster_options_default = {.height_scale = 1};

static const struct {
    const char *word;
    enum raster_format format;
} format_words[] = {
    {"png", RASTER_PNG}, {"f32", RASTER_F32},  {"hgt", RASTER_HGT},
    {"asc", RASTER_ASC}, {"tif", RASTER_TIFF}, {"tiff", RASTER_TIFF},
};

static const struct {
    const char *type;
    enum raster_format format;
} format_media_types[] = {
    {"image/png", RASTER_PNG},
    {"application/vnd.kota.f32", RASTER_F32},
    {"application/vnd.kota.hgt", RASTER_HGT},
    {"application/x-srtm-hgt", RASTER_HGT},
    {"application/vnd.kota.asc", RASTER_ASC},
    {"text/x-esri-ascii-grid", RASTER_ASC},
    {"text/plain", RASTER_ASC},
    {"image/tiff", RASTER_TIFF},
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

bool raster_format_of_word(const char *word, enum raster_format *out)
{
    for (size_t i = 0; i < COUNT_OF(format_words); i++) {
        if (strcasecmp(word, format_words[i].word) == 0) {
            *out = format_words[i].format;
            return true;
        }
    }
    return false;
}

bool raster_format_of_name(const char *name, enum raster_format *out)
{
    const char *slash = strrchr(name, '/');
    const char *dot = strrchr(slash ? slash : name, '.');

    return dot && raster_format_of_word(dot + 1, out);
}

bool raster_format_of_media_type(const char *media_type, enum raster_format *out)
{
    for (size_t i = 0; i < COUNT_OF(format_media_types); i++) {
        if (media_type_is(media_type, format_media_types[i].type)) {
            *out = format_media_types[i].format;
            return true;
        }
    }
    return false;
}

static enum err_code options_check(const struct raster_options *options, struct err *err)
{
    if (!isfinite(options->height_scale))
        return err_set(err, ERR_BAD_INPUT, "height_scale is not finite");
    if (!isfinite(options->height_offset))
        return err_set(err, ERR_BAD_INPUT, "height_offset is not finite");
    if (options->has_nodata && !isfinite(options->nodata))
        return err_set(err, ERR_BAD_INPUT, "nodata is not finite");
    return ERR_OK;
}

/* Swaps the rows end for end through a small buffer. */
static void rows_flip(struct raster *raster)
{
    float kept[1024];
    size_t cols = raster->cols;

    for (size_t low = 0, high = raster->rows - 1; low < high; low++, high--) {
        float *a = raster->heights_m + low * cols;
        float *b = raster->heights_m + high * cols;

        for (size_t done = 0; done < cols; done += COUNT_OF(kept)) {
            size_t left = cols - done;
            size_t bytes = (left < COUNT_OF(kept) ? left : COUNT_OF(kept)) * sizeof *kept;

            memcpy(kept, a + done, bytes);
            memcpy(a + done, b + done, bytes);
            memcpy(b + done, kept, bytes);
        }
    }
}

static enum err_code format_decode(enum raster_format format, const struct raster_source *source,
                                   struct raster *out, struct err *err)
{
    switch (format) {
    case RASTER_PNG:
        return png_decode(source, out, err);
    case RASTER_F32:
        return f32_decode(source, out, err);
    case RASTER_HGT:
        return hgt_decode(source, out, err);
    case RASTER_ASC:
        return asc_decode(source, out, err);
    case RASTER_TIFF:
        return tiff_decode(source, out, err);
    }
    return err_set(err, ERR_INTERNAL, "raster format %d does not exist", (int)format);
}

enum err_code raster_decode(enum raster_format format, const uint8_t *bytes, size_t length,
                            const struct raster_options *options,
                            const struct raster_limits *limits, struct raster *out, struct err *err)
{
    struct raster_source source = {
        .bytes = length ? bytes : (const uint8_t *)"",
        .length = length,
        .options = options ? options : &raster_options_default,
        .limits = limits ? limits : &raster_limits_default,
    };

    *out = (struct raster){0};
    if (options_check(source.options, err) || format_decode(format, &source, out, err)) {
        raster_free(out);
        return err->code;
    }
    if (source.options->flip_y || out->is_north_first)
        rows_flip(out);
    return ERR_OK;
}
