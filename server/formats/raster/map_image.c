/*
 * Tiles of maps as bytes.
 *
 * Viewers unpack red, green and blue and nothing else: a pixel with alpha 0 becomes -32768 m, and
 * a gAMA or sRGB chunk makes some browsers change the bytes, which makes spikes of 256 m. So the
 * picture has three channels and no such chunk, unless alpha was asked for.
 *
 * The relief is lit from the north-west, 45° above the horizon, as printed maps are: light that
 * comes from below looks like a dent. Slopes are taken over two pixels.
 *
 * Sources: Mapzen, "Terrain tiles: formats", 2017; Mapbox, "Access elevation data", 2018.
 */
#include "formats/raster/map_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TERRARIUM_STEPS 256.0 /* a metre */
#define TERRARIUM_LOW_M 32768.0
#define TERRAIN_RGB_STEPS 10.0
#define TERRAIN_RGB_LOW_M 10000.0
#define CODE_MAX 0xffffff

double map_format_half_step_m(enum map_format format, double greatest_m)
{
    switch (format) {
    case MAP_TERRARIUM:
        return 0.5 / TERRARIUM_STEPS;
    case MAP_TERRAIN_RGB:
        return 0.5 / TERRAIN_RGB_STEPS;
    case MAP_RELIEF:
    case MAP_F32:
    case MAP_TIF:
        break;
    }
    return fabs(greatest_m) * 0x1p-25;
}

/* The nearest code, without a call for each pixel. */
static uint32_t code_of(double height_m, double steps, double low_m)
{
    double value = (height_m + low_m) * steps + 0.5;

    return value >= CODE_MAX ? CODE_MAX : value >= 0 ? (uint32_t)value : 0;
}

static void put_codes(enum map_format format, size_t count, const double *heights_m,
                      size_t channels, uint8_t *to)
{
    bool is_terrarium = format == MAP_TERRARIUM;
    double steps = is_terrarium ? TERRARIUM_STEPS : TERRAIN_RGB_STEPS;
    double low_m = is_terrarium ? TERRARIUM_LOW_M : TERRAIN_RGB_LOW_M;

    for (size_t i = 0; i < count; i++, to += channels) {
        bool is_void = isnan(heights_m[i]);
        uint32_t code = is_void ? 0 : code_of(heights_m[i], steps, low_m);

        to[0] = (uint8_t)(code >> 16);
        to[1] = (uint8_t)(code >> 8);
        to[2] = (uint8_t)code;
        if (channels == 4)
            to[3] = is_void ? 0 : 255;
    }
}

/* Beside a void the slope is that of the other side, or none. */
static double slope(double before_m, double here_m, double after_m, double pixel_m)
{
    double from = isnan(before_m) ? here_m : before_m, to = isnan(after_m) ? here_m : after_m;
    int pixels = 2 - isnan(before_m) - isnan(after_m);

    return pixels > 0 ? (to - from) / (pixels * pixel_m) : 0;
}

static void put_relief(uint32_t side, const double *heights_m, double pixel_m, size_t channels,
                       uint8_t *to)
{
    size_t stride = side + 2;

    for (uint32_t j = 0; j < side; j++) {
        const double *at = heights_m + (j + 1) * stride + 1;

        for (uint32_t i = 0; i < side; i++, at++, to += channels) {
            double east = slope(at[-1], *at, at[1], pixel_m);
            double south = slope(*(at - stride), *at, at[stride], pixel_m);
            /* light from (-1, 1, √2) / 2 of east, north and up; flat ground is bright */
            double light =
                (0.5 * east + 0.5 * south + M_SQRT1_2) / sqrt(1 + east * east + south * south);
            double grey = isnan(*at) ? 0 : 40 + 215 * fmin(fmax(light, 0), 1);

            to[0] = to[1] = to[2] = (uint8_t)grey;
            if (channels == 4)
                to[3] = isnan(*at) ? 0 : 255;
        }
    }
}

static enum err_code encode_png(enum map_format format, uint32_t side, const double *heights_m,
                                bool has_alpha, double pixel_m, struct raster_bytes *out,
                                struct err *err)
{
    size_t channels = has_alpha ? 4 : 3, count = (size_t)side * side;
    uint8_t *pixels = malloc(count * channels);

    if (!pixels)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture of %u × %u", side, side);
    if (format == MAP_RELIEF)
        put_relief(side, heights_m, pixel_m, channels, pixels);
    else
        put_codes(format, count, heights_m, channels, pixels);
    png_encode(side, side, (int)channels, pixels, PNG_FAST, out, err);
    free(pixels);
    return err->code;
}

static void *allocate(size_t bytes, struct err *err)
{
    void *at = malloc(bytes);

    if (!at)
        err_set(err, ERR_NO_MEMORY, "no memory for %zu bytes of a tile", bytes);
    return at;
}

static enum err_code encode_f32(uint32_t side, const double *heights_m, struct raster_bytes *out,
                                struct err *err)
{
    size_t count = (size_t)side * side;
    float *to = allocate(count * sizeof *to, err);

    if (!to)
        return err->code;
    for (size_t i = 0; i < count; i++)
        to[i] = (float)heights_m[i];
    *out = (struct raster_bytes){(uint8_t *)to, count * sizeof *to};
    return ERR_OK;
}

static enum err_code encode_tif(uint32_t side, const double *heights_m,
                                const struct geotiff_place *place, struct raster_bytes *out,
                                struct err *err)
{
    const struct geotiff_level *level;
    struct geotiff layout;
    uint8_t *bytes;

    geotiff_lay_out(side, side, false, &layout);
    level = &layout.levels[0];
    bytes = allocate(layout.total_bytes, err);
    if (!bytes)
        return err->code;
    memset(bytes, 0, layout.total_bytes);
    geotiff_head(&layout, place, bytes);
    for (uint32_t j = 0; j < side; j++)
        for (uint32_t i = 0; i < side; i++) {
            uint64_t tile =
                (uint64_t)(j / GEOTIFF_TILE_SIDE) * level->tile_cols + i / GEOTIFF_TILE_SIDE;
            size_t in_tile =
                (size_t)(j % GEOTIFF_TILE_SIDE) * GEOTIFF_TILE_SIDE + i % GEOTIFF_TILE_SIDE;
            float height = (float)heights_m[(size_t)j * side + i];

            memcpy(bytes + level->at + tile * GEOTIFF_TILE_BYTES + 4 * in_tile, &height, 4);
        }
    *out = (struct raster_bytes){bytes, layout.total_bytes};
    return ERR_OK;
}

enum err_code map_image_encode(enum map_format format, uint32_t side, const double *heights_m,
                               bool has_alpha, double pixel_m, const struct geotiff_place *place,
                               struct tile_image *out, struct err *err)
{
    struct tile_image made = {.media_type = "image/png"};
    enum err_code code;

    switch (format) {
    case MAP_F32:
        made.media_type = "application/vnd.kota.f32";
        code = encode_f32(side, heights_m, &made.bytes, err);
        break;
    case MAP_TIF:
        made.media_type = "image/tiff";
        code = encode_tif(side, heights_m, place, &made.bytes, err);
        break;
    default:
        code = encode_png(format, side, heights_m, has_alpha, pixel_m, &made.bytes, err);
        break;
    }
    if (code == ERR_OK)
        *out = made;
    return code;
}
