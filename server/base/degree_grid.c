/*
 * A guess with one aim: a digital elevation model in degrees must not become a field of a few
 * centimetres without a word. A grid in metres that looks the same needs only the option of its
 * spacing.
 *
 * 0.1 degrees are 11 km: larger cells are of models of the whole globe, and 0.1 m and more are
 * spacings of surveys. The corner of a national grid is millions of metres away from 0, 0, that of
 * a scan of a few square metres is at 0, 0.
 */
#include "base/degree_grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CELL_MAX 0.1

bool degree_grid_suspected(const double origin[2], const double spacing[2], const double size[2],
                           double metres[2])
{
    double east_m, north_m;
    bool is_on_globe = origin[0] >= -180.0 - spacing[0] &&
                       origin[0] + size[0] <= 360.0 + spacing[0] &&
                       origin[1] >= -90.0 - spacing[1] && origin[1] + size[1] <= 90.0 + spacing[1];
    bool begins_at_zero = fabs(origin[0]) <= spacing[0] && fabs(origin[1]) <= spacing[1];

    if (!(spacing[0] < CELL_MAX && spacing[1] < CELL_MAX) || !is_on_globe || begins_at_zero)
        return false;
    hgt_metres_a_degree(origin[1] + size[1] / 2, &east_m, &north_m);
    metres[0] = spacing[0] * east_m;
    metres[1] = spacing[1] * north_m;
    return true;
}

/*
 * SRTM tiles: a degree of latitude by one of longitude, named after their south-west corner. Their
 * samples are a share of a degree apart, and terrain is in metres. The tile becomes a plane whose
 * metres a degree are those of the WGS84 ellipsoid at the tile's middle: right there, and off by
 * the convergence of the meridians towards its northern and southern edge.
 *
 * A degree of latitude is the meridian's radius of curvature, one of longitude that of the
 * parallel.
 *
 * Source: NASA/USGS, "SRTM Topography" (SRTM documentation, Quickstart), section 2; NIMA TR8350.2,
 * "World Geodetic System 1984": a = 6378137 m, f = 1/298.257223563.
 */

void hgt_metres_a_degree(double latitude_deg, double *east_m, double *north_m)
{
    const double a = 6378137, f = 1 / 298.257223563, e2 = f * (2 - f);
    double phi = latitude_deg * (M_PI / 180);
    double w2 = 1 - e2 * sin(phi) * sin(phi);

    *east_m = a / sqrt(w2) * cos(phi) * (M_PI / 180);
    *north_m = a * (1 - e2) / (w2 * sqrt(w2)) * (M_PI / 180);
}

bool hgt_name_latitude(const char *name, double *middle_deg)
{
    int latitude, longitude, used = 0;
    char north[2], east[2];

    if (sscanf(name, "%1[NSns]%2d%1[EWew]%3d%n", north, &latitude, east, &longitude, &used) < 4 ||
        used != 7 || latitude < 0 || latitude > 90 || longitude < 0 || longitude > 180)
        return false;
    *middle_deg = (north[0] == 'S' || north[0] == 's' ? -latitude : latitude) + 0.5;
    return true;
}

bool hgt_name_spacing(const char *path, uint64_t bytes, double spacing_m[2])
{
    const char *slash = strrchr(path, '/');
    double latitude_deg, east_m, north_m, side = sqrt((double)bytes / 2);

    if (!hgt_name_latitude(slash ? slash + 1 : path, &latitude_deg) || !(side >= 2))
        return false;
    hgt_metres_a_degree(latitude_deg, &east_m, &north_m);
    spacing_m[0] = east_m / (side - 1);
    spacing_m[1] = north_m / (side - 1);
    return true;
}
