/*
 * Raw float32: little-endian IEEE 754 values, row by row, no header. The sender gives cols and
 * rows; the length must then be exactly 4 · cols · rows bytes. NaN of any kind is no-data and
 * becomes the one quiet NaN; an infinity is refused even where height_scale is 0 and would hide it.
 */
#include "formats/raster/raster_decode.h"

#include "formats/little.h"

enum err_code raster_check_f32(const struct raster_options *options,
                               const struct raster_limits *limits, uint64_t length, struct err *err)
{
    uint64_t samples = (uint64_t)options->cols * options->rows;

    if (!options->cols || !options->rows)
        return err_set(err, ERR_BAD_INPUT, "f32: cols and rows are required, got %u and %u",
                       options->cols, options->rows);
    if (raster_check_size("f32", options->cols, options->rows, limits, err))
        return err->code;
    if (length != samples * 4)
        return err_limit(err, ERR_BAD_INPUT, (double)(samples * 4), (double)length,
                         "f32: %u x %u samples take %llu bytes, got %llu", options->cols,
                         options->rows, (unsigned long long)(samples * 4),
                         (unsigned long long)length);
    return ERR_OK;
}

enum err_code raster_heights_f32(const struct raster_options *options, uint64_t first,
                                 const uint8_t *bytes, size_t count, float *heights_m,
                                 struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        float code = little_float(bytes + 4 * i);

        if (isnan(code))
            heights_m[i] = NAN;
        else if (isinf(code) || !raster_height(options, (double)code, &heights_m[i]))
            return raster_infinite("f32", &(struct raster){.cols = options->cols}, first + i,
                                   (double)code, err);
    }
    return ERR_OK;
}

enum err_code f32_decode(const struct raster_source *source, struct raster *out, struct err *err)
{
    const struct raster_options *options = source->options;

    if (raster_check_f32(options, source->limits, source->length, err) ||
        raster_allocate(options->cols, options->rows, out, err))
        return err->code;
    return raster_heights_f32(options, 0, source->bytes, source->length / 4, out->heights_m, err);
}
