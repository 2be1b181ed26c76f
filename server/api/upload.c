/*
 * Uploads. The options are read by the same functions as any call's (options.h), so that the query
 * of a PUT, the text after `FILE?` and an entry of locale.json have one grammar.
 */
#include "api/upload.h"

#include "api/options.h"

#include <string.h>

const char *const upload_names[] = {
    "spacing", "origin", "height_scale", "height_offset", "flip_y", "nodata", "cols", "rows", NULL};

static enum err_code decode_size(struct call *call, enum raster_format format, struct upload *out,
                                 struct err *err)
{
    uint64_t cols = 0, rows = 0;

    if (option_integer(call, "cols", 2, HEIGHTFIELD_SIDE_MAX, &cols, err) ||
        option_integer(call, "rows", 2, HEIGHTFIELD_SIDE_MAX, &rows, err))
        return err->code;
    if (format == RASTER_F32 && (cols == 0 || rows == 0)) {
        err_set(err, ERR_BAD_INPUT, "an f32 file needs cols and rows, %s is missing",
                cols == 0 ? "cols" : "rows");
        return err_at(err, cols == 0 ? "cols" : "rows");
    }
    if (format != RASTER_F32 && (cols != 0 || rows != 0)) {
        err_set(err, ERR_BAD_INPUT, "cols and rows belong to f32 files; this file says its own");
        return err_at(err, cols != 0 ? "cols" : "rows");
    }
    out->raster.cols = (uint32_t)cols;
    out->raster.rows = (uint32_t)rows;
    return ERR_OK;
}

enum err_code upload_decode(struct call *call, enum raster_format format, bool flip_y_default,
                            struct upload *out, struct err *err)
{
    *out = (struct upload){.raster = {.height_scale = 1, .flip_y = flip_y_default}};
    if (option_numbers(call, "spacing", 2, out->spacing_m, &out->has_spacing, err) ||
        option_numbers(call, "origin", 2, out->origin_m, &out->has_origin, err) ||
        option_number(call, "height_scale", &out->raster.height_scale, NULL, err) ||
        option_number(call, "height_offset", &out->raster.height_offset, NULL, err) ||
        option_boolean(call, "flip_y", &out->raster.flip_y, err) ||
        option_number(call, "nodata", &out->raster.nodata, &out->raster.has_nodata, err) ||
        decode_size(call, format, out, err))
        return err->code;
    if (out->has_spacing && !(out->spacing_m[0] > 0 && out->spacing_m[1] > 0)) {
        err_set(err, ERR_BAD_INPUT, "spacing %.17g,%.17g: both must be above 0 m",
                out->spacing_m[0], out->spacing_m[1]);
        return err_at(err, "spacing");
    }
    return ERR_OK;
}

static enum err_code spec_of(const struct upload *upload, const struct raster *raster,
                             enum triangulation triangulation, struct heightfield_spec *out,
                             struct err *err)
{
    *out = (struct heightfield_spec){.cols = raster->cols, .rows = raster->rows};
    out->triangulation = triangulation;
    if (upload->has_spacing) {
        out->spacing_x_m = upload->spacing_m[0];
        out->spacing_y_m = upload->spacing_m[1];
    } else if (raster->has_spacing) {
        out->spacing_x_m = raster->spacing_x;
        out->spacing_y_m = raster->spacing_y;
    } else {
        err_set(err, ERR_BAD_INPUT, "spacing=sx,sy is missing, and the file does not carry it");
        return err_at(err, "spacing");
    }
    if (upload->has_origin) {
        out->origin_x_m = upload->origin_m[0];
        out->origin_y_m = upload->origin_m[1];
    }
    return ERR_OK;
}

static enum err_code reserve(struct api *api, uint64_t bytes, struct err *err)
{
    uint64_t most = api->limits.uploads_bytes_max;
    uint64_t before = atomic_fetch_add(&api->upload_bytes, bytes);

    if (before == 0 || before + bytes <= most)
        return ERR_OK;
    atomic_fetch_sub(&api->upload_bytes, bytes);
    return err_limit(err, ERR_BUSY, (double)most, (double)(before + bytes),
                     "the layers that are being built would take %llu bytes together, the most is "
                     "%llu; try again in a moment",
                     (unsigned long long)(before + bytes), (unsigned long long)most);
}

uint64_t upload_charge(const struct heightfield *field)
{
    return heightfield_tile_bytes(heightfield_spec(field));
}

void upload_release(struct api *api, uint64_t charge)
{
    atomic_fetch_sub(&api->upload_bytes, charge);
}

struct heightfield *upload_heightfield(struct api *api, enum raster_format format,
                                       const void *bytes, size_t length,
                                       const struct upload *upload,
                                       enum triangulation triangulation, struct err *err)
{
    struct heightfield *field = NULL;
    struct heightfield_spec spec;
    struct raster raster;
    uint64_t charged;

    if (raster_decode(format, bytes, length, &upload->raster, &api->limits.raster, &raster, err))
        return NULL;
    if (spec_of(upload, &raster, triangulation, &spec, err) == ERR_OK) {
        charged = heightfield_tile_bytes(&spec);
        if (reserve(api, charged, err) == ERR_OK) {
            field = heightfield_create(&spec, raster.heights_m, err);
            if (!field)
                upload_release(api, charged);
        }
    }
    raster_free(&raster);
    return field;
}
