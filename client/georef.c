/*
 * From a geotransform to spacing and origin.
 *
 * kota's grids are axis-aligned and in metres, so a raster that is rotated or in degrees does not
 * fit unchanged. A rotated one is refused, with the command that rotates it: resampling would
 * change heights silently. One in degrees is taken as flat, like a tile of a few degrees in other
 * servers; `stretch` is the error of that at its edge. The radii of curvature are those of the
 * ellipsoid in the middle latitude: a (1 - e2) / (1 - e2 sin2)^1.5 along the meridian, a / sqrt(1 -
 * e2 sin2) along the prime vertical (J. Snyder, Map Projections: A Working Manual, USGS
 * Professional Paper 1395, 1987, p. 24-25).
 *
 * Pure: no file, no library but libm.
 */
#include "client/georef.h"

#include "base/degree_grid.h"

#include <math.h>

#define WGS84_SEMI_MAJOR_M 6378137.0
#define WGS84_INVERSE_FLATTENING 298.257223563
#define DEGREES_A_RADIAN 57.29577951308232

/* Shares of a pixel by which a whole raster may lean before it counts as turned. */
#define LEAN_MAX 1e-3

/* Radii of curvature at a latitude: along the meridian, and of the circle of latitude. */
static void radii(const struct gdal_raster *raster, double lat_rad, double *meridian_m,
                  double *circle_m)
{
    bool is_known = raster->semi_major_m > 0;
    double a = is_known ? raster->semi_major_m : WGS84_SEMI_MAJOR_M;
    double inverse = is_known ? raster->inverse_flattening : WGS84_INVERSE_FLATTENING;
    double f = inverse > 0 ? 1 / inverse : 0, e2 = f * (2 - f);
    double w2 = 1 - e2 * sin(lat_rad) * sin(lat_rad);

    *meridian_m = a * (1 - e2) / (w2 * sqrt(w2));
    *circle_m = a / sqrt(w2) * cos(lat_rad);
}

static enum err_code place_geographic(const struct gdal_raster *raster, const double middle[2],
                                      struct georef *out, struct err *err)
{
    double unit = raster->unit > 0 ? raster->unit : 1 / DEGREES_A_RADIAN;
    double step_x = fabs(raster->transform[1]) * unit, step_y = fabs(raster->transform[5]) * unit;
    double lat = middle[1] * unit, half = step_y * (double)(raster->rows - 1) / 2;
    double meridian_m, circle_m, edge_m, unused;

    if (!(fabs(lat) + 1e-3 < asin(1)))
        return err_set(err, ERR_BAD_INPUT,
                       "its middle is at latitude %g: reproject it first (gdalwarp -t_srs)",
                       lat * DEGREES_A_RADIAN);
    radii(raster, lat, &meridian_m, &circle_m);
    out->spacing_m[0] = step_x * circle_m;
    out->spacing_m[1] = step_y * meridian_m;
    for (int side = -1; side <= 1; side += 2) {
        radii(raster, fmin(fabs(lat + side * half), asin(1)), &unused, &edge_m);
        out->stretch = fmax(out->stretch, fabs(edge_m / circle_m - 1));
    }
    out->has_geo = true;
    out->lat_deg = lat * DEGREES_A_RADIAN;
    out->lng_deg = remainder(middle[0] * unit * DEGREES_A_RADIAN, 360);
    out->origin_m[0] = -out->spacing_m[0] * (double)(raster->cols - 1) / 2;
    out->origin_m[1] = -out->spacing_m[1] * (double)(raster->rows - 1) / 2;
    return ERR_OK;
}

static void place_projected(const struct gdal_raster *raster, const double middle[2],
                            struct georef *out)
{
    double unit = raster->unit > 0 ? raster->unit : 1;
    const double *t = raster->transform;
    double width = fabs(t[1]) * (double)(raster->cols - 1);
    double depth = fabs(t[5]) * (double)(raster->rows - 1);

    out->spacing_m[0] = fabs(t[1]) * unit;
    out->spacing_m[1] = fabs(t[5]) * unit;
    out->origin_m[0] = (middle[0] - width / 2) * unit;
    out->origin_m[1] = (middle[1] - depth / 2) * unit;
}

enum err_code georef_place(const struct gdal_raster *raster, struct georef *out, struct err *err)
{
    const double *t = raster->transform;
    double middle[2], size[2];

    *out = (struct georef){.has_geo = false};
    if (!raster->has_transform)
        return err_set(err, ERR_BAD_INPUT,
                       "it does not say where its samples lie: give --spacing SX,SY");
    for (int i = 0; i < 6; i++)
        if (!isfinite(t[i]))
            return err_set(err, ERR_BAD_INPUT, "number %d of its geotransform is not finite", i);
    if (t[1] == 0 || t[5] == 0 || fabs(t[2]) * (double)raster->rows > LEAN_MAX * fabs(t[1]) ||
        fabs(t[4]) * (double)raster->cols > LEAN_MAX * fabs(t[5]))
        return err_set(err, ERR_BAD_INPUT,
                       "it is turned against its axes: straighten it first (gdalwarp)");
    middle[0] = t[0] + t[1] * (double)raster->cols / 2;
    middle[1] = t[3] + t[5] * (double)raster->rows / 2;
    out->is_x_flipped = t[1] < 0;
    out->is_y_flipped = t[5] < 0;
    if (raster->is_geographic)
        return place_geographic(raster, middle, out, err);
    place_projected(raster, middle, out);
    size[0] = out->spacing_m[0] * (double)(raster->cols - 1);
    size[1] = out->spacing_m[1] * (double)(raster->rows - 1);
    out->seems_degrees =
        !raster->is_projected &&
        degree_grid_suspected(out->origin_m, out->spacing_m, size, out->as_degrees_m);
    return ERR_OK;
}
