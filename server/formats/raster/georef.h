/*
 * Where the samples of a raster lie, in metres.
 */
#ifndef KOTA_FORMATS_GEOREF_H
#define KOTA_FORMATS_GEOREF_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* What a file says. */
struct georef_source {
    size_t cols, rows;
    bool has_transform;
    double transform[6]; /* as GDAL's: x = t[0] + t[1] column + t[2] row, y = t[3] + … */
    bool is_point; /* column 0, row 0 is the first sample, else the outer corner of its pixel */
    bool is_geographic, is_projected;        /* neither: the file has none */
    double unit;                             /* metres (projected) or radians (geographic) a unit */
    double semi_major_m, inverse_flattening; /* of the ellipsoid; 0: unknown, a sphere */
};

struct georef {
    double spacing_m[2]; /* > 0 */
    double origin_m[2];  /* of the sample with the smallest x and y */
    bool is_x_flipped;   /* the file's first column has the greatest x */
    bool is_y_flipped;   /* the file's first row has the greatest y: as a rule */

    /*
     * No coordinate system, and numbers that are probably degrees (degree_grid.h): the spacing in
     * metres is then perhaps this.
     */
    bool seems_degrees;
    double as_degrees_m[2];

    /* Geographic rasters: where the frame's origin, the middle of the raster, is on the globe, and
       how much the greatest spacing_m[0] of a row differs from the one that all get, as a share. */
    bool has_geo;
    double lat_deg, lng_deg;
    double stretch;
};

/*
 * Projected coordinates become metres and are not changed
 * otherwise. Degrees become a plane that touches the globe in the raster's middle: metres a degree
 * are those of its middle latitude, on the raster's own ellipsoid.
 *
 * ERR_BAD_INPUT  no transform, one that turns or shears, steps of 0, a pole in the middle
 */
enum err_code georef_place(const struct georef_source *raster, struct georef *out, struct err *err);

/* Metres a unit of heights, by the name that GDAL has for it, in either case; none is metres. 0:
 * not known here. */
double georef_height_unit_m(const char *name, size_t length);

#endif
