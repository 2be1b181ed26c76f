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
#include "base/hgt_name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
