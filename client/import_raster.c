/*
 * From GDAL's raster to the input of the daemon: float32 rows, the query that places them, and a
 * line about the treatment of the coordinates, since a grid in degrees looks like one in metres.
 *
 * The numbers go up as they are in the file; the band's scale, offset and unit become height_scale
 * and height_offset. The first row is sent first; flip_y states that it is the north edge.
 */
#include "client/import_raster.h"

#include "client/gdal.h"
#include "client/number.h"
#include "formats/raster/georef.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above this share of error, a plane is no map of the area any more. */
#define STRETCH_LARGE 0.1

static void pair_text(const double pair[2], char out[72])
{
    char first[NUMBER_TEXT_MAX], second[NUMBER_TEXT_MAX];

    number_format(pair[0], first);
    number_format(pair[1], second);
    snprintf(out, 72, "%s,%s", first, second);
}

static void flip_columns(const struct gdal_raster *raster)
{
    for (size_t r = 0; r < raster->where.rows; r++) {
        float *row = raster->numbers + r * raster->where.cols;

        for (size_t a = 0, b = raster->where.cols - 1; a < b; a++, b--) {
            float swap = row[a];

            row[a] = row[b];
            row[b] = swap;
        }
    }
}

/* How wrong the plane is: of a cut of some degrees, and of half the globe. */
static void stretch_text(double stretch, char out[192])
{
    if (stretch < STRETCH_LARGE)
        snprintf(out, 192,
                 "at its edge, lengths along x are wrong by %.2g %%; gdalwarp -t_srs projects it",
                 100 * stretch);
    else
        snprintf(
            out, 192,
            "the area is too large for a plane: at its edge, lengths along x are wrong by %.0f "
            "%%; take a part of it, or project it by gdalwarp -t_srs",
            100 * stretch);
}

static void write_note(const struct gdal_raster *raster, const struct georef *place,
                       struct import_raster *out)
{
    char where[1400], wrong[192];
    const char *frame = *raster->frame ? raster->frame : "no name";

    stretch_text(place->stretch, wrong);
    if (!*out->spacing || place->seems_degrees)
        snprintf(where, sizeof(where), "placed only by the options");
    else if (place->has_geo)
        snprintf(where, sizeof(where),
                 "geographic (%s), taken as a plane that touches the globe at its middle, lat %.6f "
                 "lng %.6f, which is 0,0: spacing %.9g x %.9g m; %s",
                 frame, place->lat_deg, place->lng_deg, place->spacing_m[0], place->spacing_m[1],
                 wrong);
    else
        snprintf(where, sizeof(where), "%s%s%s: spacing %.10g x %.10g m, origin %.10g, %.10g",
                 raster->where.is_projected ? "projected (" : "",
                 raster->where.is_projected ? frame : "no coordinate system, taken as metres",
                 raster->where.is_projected ? ")" : "", place->spacing_m[0], place->spacing_m[1],
                 place->origin_m[0], place->origin_m[1]);
    snprintf(out->note, sizeof(out->note), "%s, %zu x %zu samples, %s%s%s%s", raster->driver,
             raster->where.cols, raster->where.rows, where,
             raster->is_unit_unknown ? "; heights in '" : "",
             raster->is_unit_unknown ? raster->height_unit : "",
             raster->is_unit_unknown ? "' are taken as metres" : "");
}

static void fill(struct gdal_raster *raster, const struct georef *place, bool has_place,
                 struct import_raster *out)
{
    snprintf(out->cols, sizeof(out->cols), "%zu", raster->where.cols);
    snprintf(out->rows, sizeof(out->rows), "%zu", raster->where.rows);
    if (has_place) {
        pair_text(place->spacing_m, out->spacing);
        pair_text(place->origin_m, out->origin);
        out->flip_y = place->is_y_flipped;
        if (place->is_x_flipped)
            flip_columns(raster);
        out->has_geo = place->has_geo;
        out->lat_deg = place->lat_deg;
        out->lng_deg = place->lng_deg;
        if (raster->where.is_projected && (raster->where.unit == 0 || raster->where.unit == 1) &&
            *raster->epsg)
            snprintf(out->crs, sizeof(out->crs), "EPSG:%s", raster->epsg);
    }
    if (raster->scale != 1)
        number_format(raster->scale, out->scale);
    if (raster->offset != 0)
        number_format(raster->offset, out->offset);
    write_note(raster, place, out);
    out->bytes = raster->numbers;
    out->length = raster->where.cols * raster->where.rows * sizeof(*raster->numbers);
    raster->numbers = NULL;
}

/* Taken as metres, a model of a county would be a field of a few centimetres. */
static void degrees_error(const char *name, const struct georef *place, struct err *err)
{
    err_set(
        err, ERR_BAD_INPUT,
        "%.80s has no coordinate system and seems to be in degrees, in steps of %.6g x %.6g: if "
        "they are degrees, give --spacing %.6g,%.6g; if they are metres, --spacing %.17g,%.17g",
        name, place->spacing_m[0], place->spacing_m[1], place->as_degrees_m[0],
        place->as_degrees_m[1], place->spacing_m[0], place->spacing_m[1]);
}

enum err_code import_raster_read(const char *name, int band, bool has_spacing,
                                 void (*report)(void *context, double done, double all),
                                 void *context, struct import_raster *out, struct err *err)
{
    struct gdal_raster raster;
    struct georef place = {.has_geo = false};
    struct err cause = {0};
    bool has_place;

    *out = (struct import_raster){.bytes = NULL};
    if (gdal_read(name, band, report, context, &raster, err))
        return err->code;
    has_place = georef_place(&raster.where, &place, &cause) == ERR_OK;
    if (has_place && !has_spacing && place.seems_degrees)
        degrees_error(name, &place, err);
    else if (has_place || has_spacing)
        fill(&raster, &place, has_place, out);
    else
        err_set(err, cause.code, "%.120s: %.180s", name, cause.msg);
    gdal_free(&raster);
    return err->code;
}
