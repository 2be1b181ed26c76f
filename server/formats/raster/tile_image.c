/*
 * Blocks of heights as bytes.
 *
 * png16 spreads the 65535 codes over the range of the block's heights, so that a flat block has
 * fine steps; offset and scale are sent beside the picture. terrarium is Mapzen's fixed scale,
 * 1/256 m, which browsers decode without parameters. Both leave a value for "nothing", since a hole
 * is no height. zlib's level 4 is where terrain stops getting much smaller and starts getting
 * slower.
 *
 * Source of terrarium: Mapzen, "Terrain tiles: formats", 2017.
 */
#include "formats/raster/tile_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PNG_COMPRESSION = 4, CODE_MAX = 65535 };

struct height_codes height_codes_over(double low_m, double high_m)
{
    double scale = high_m > low_m ? (high_m - low_m) / (CODE_MAX - 1) : 1;

    return (struct height_codes){low_m - scale, scale};
}

uint16_t height_code(const struct height_codes *codes, float height_m)
{
    if (isnan(height_m))
        return 0;
    return (uint16_t)fmin(fmax(round(((double)height_m - codes->offset_m) / codes->scale_m), 1),
                          CODE_MAX);
}

static struct height_codes codes_of(const float *heights_m, size_t count)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        if (isnan(heights_m[i]))
            continue;
        low = fmin(low, (double)heights_m[i]);
        high = fmax(high, (double)heights_m[i]);
    }
    return low <= high ? height_codes_over(low, high) : height_codes_over(0, 0);
}

static enum err_code encode_png16(uint32_t cols, uint32_t rows, const float *heights_m,
                                  struct tile_image *out, struct err *err)
{
    size_t count = (size_t)cols * rows;
    struct height_codes scale = codes_of(heights_m, count);
    uint16_t *codes = malloc(count * sizeof *codes);
    enum err_code code;

    if (!codes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture of %u × %u", cols, rows);
    for (size_t i = 0; i < count; i++)
        codes[i] = height_code(&scale, heights_m[i]);
    code = png_encode(cols, rows, 1, codes, PNG_COMPRESSION, &out->bytes, err);
    out->codes = scale;
    free(codes);
    return code;
}

static enum err_code encode_terrarium(uint32_t cols, uint32_t rows, const float *heights_m,
                                      struct tile_image *out, struct err *err)
{
    size_t count = (size_t)cols * rows;
    uint8_t *pixels = calloc(count, 4);
    enum err_code code;

    if (!pixels)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture of %u × %u", cols, rows);
    for (size_t i = 0; i < count; i++) {
        double value = round(((double)heights_m[i] + 32768) * 256);
        uint32_t steps;

        if (isnan(heights_m[i]))
            continue;
        steps = (uint32_t)fmin(fmax(value, 0), 0xffffff);
        pixels[4 * i] = (uint8_t)(steps >> 16);
        pixels[4 * i + 1] = (uint8_t)(steps >> 8);
        pixels[4 * i + 2] = (uint8_t)steps;
        pixels[4 * i + 3] = 255;
    }
    code = png_encode(cols, rows, 4, pixels, PNG_COMPRESSION, &out->bytes, err);
    free(pixels);
    return code;
}

static enum err_code encode_f32(uint32_t cols, uint32_t rows, const float *heights_m,
                                struct tile_image *out, struct err *err)
{
    size_t length = (size_t)cols * rows * sizeof *heights_m;

    out->bytes.at = malloc(length);
    if (!out->bytes.at)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u × %u heights", cols, rows);
    memcpy(out->bytes.at, heights_m, length);
    out->bytes.length = length;
    return ERR_OK;
}

enum err_code tile_image_encode(enum tile_format format, uint32_t cols, uint32_t rows,
                                const float *heights_m, struct tile_image *out, struct err *err)
{
    struct tile_image made = {.media_type = "image/png"};
    enum err_code code = ERR_OK;

    switch (format) {
    case TILE_PNG16:
        code = encode_png16(cols, rows, heights_m, &made, err);
        break;
    case TILE_TERRARIUM:
        code = encode_terrarium(cols, rows, heights_m, &made, err);
        break;
    case TILE_F32:
        made.media_type = "application/vnd.kota.f32";
        code = encode_f32(cols, rows, heights_m, &made, err);
        break;
    }
    if (code == ERR_OK)
        *out = made;
    return code;
}
