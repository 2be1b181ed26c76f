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
#include "formats/raster/georef.h"

#include "base/degree_grid.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define WGS84_SEMI_MAJOR_M 6378137.0
#define WGS84_INVERSE_FLATTENING 298.257223563
#define DEGREES_A_RADIAN 57.29577951308232

/* Shares of a pixel by which a whole raster may lean before it counts as turned. */
#define LEAN_MAX 1e-3

/* Radii of curvature at a latitude: along the meridian, and of the circle of latitude. */
static void radii(const struct georef_source *raster, double lat_rad, double *meridian_m,
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

static enum err_code place_geographic(const struct georef_source *raster, const double middle[2],
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

/* The first sample is exact, and so is a grid that is written with its place and read again. */
static void place_projected(const struct georef_source *raster, const double first[2],
                            struct georef *out)
{
    double unit = raster->unit > 0 ? raster->unit : 1;
    const double step[2] = {raster->transform[1], raster->transform[5]};
    const double last[2] = {first[0] + step[0] * (double)(raster->cols - 1),
                            first[1] + step[1] * (double)(raster->rows - 1)};

    for (int i = 0; i < 2; i++) {
        out->spacing_m[i] = fabs(step[i]) * unit;
        out->origin_m[i] = (step[i] > 0 ? first[i] : last[i]) * unit;
    }
}

enum err_code georef_place(const struct georef_source *raster, struct georef *out, struct err *err)
{
    const double *t = raster->transform;
    double half = raster->is_point ? 0 : 0.5, first[2], middle[2], size[2];

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
    first[0] = t[0] + half * t[1];
    first[1] = t[3] + half * t[5];
    middle[0] = first[0] + t[1] * (double)(raster->cols - 1) / 2;
    middle[1] = first[1] + t[5] * (double)(raster->rows - 1) / 2;
    out->is_x_flipped = t[1] < 0;
    out->is_y_flipped = t[5] < 0;
    if (raster->is_geographic)
        return place_geographic(raster, middle, out, err);
    place_projected(raster, first, out);
    size[0] = out->spacing_m[0] * (double)(raster->cols - 1);
    size[1] = out->spacing_m[1] * (double)(raster->rows - 1);
    out->seems_degrees =
        !raster->is_projected &&
        degree_grid_suspected(out->origin_m, out->spacing_m, size, out->as_degrees_m);
    return ERR_OK;
}

double georef_height_unit_m(const char *name, size_t length)
{
    static const struct {
        const char *name;
        double metres;
    } units[] = {{"", 1},
                 {"m", 1},
                 {"metre", 1},
                 {"meter", 1},
                 {"metres", 1},
                 {"meters", 1},
                 {"km", 1000},
                 {"cm", 0.01},
                 {"mm", 0.001},
                 {"ft", 0.3048},
                 {"foot", 0.3048},
                 {"feet", 0.3048},
                 {"us-ft", 1200.0 / 3937},
                 {"US survey foot", 1200.0 / 3937},
                 {"ftUS", 1200.0 / 3937}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && strncasecmp(units[i].name, name, length) == 0)
            return units[i].metres;
    return 0;
}
