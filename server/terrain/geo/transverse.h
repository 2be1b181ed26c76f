/*
 * The transverse Mercator projection of an ellipsoid, as UTM uses it.
 */
#ifndef KOTA_TERRAIN_TRANSVERSE_H
#define KOTA_TERRAIN_TRANSVERSE_H

#include "terrain/vec.h"

#include <stdbool.h>

enum { TRANSVERSE_TERMS = 4 };

/* Make it with transverse_utm. */
struct transverse {
    double meridian_deg, false_north_m;
    double e2;       /* the ellipsoid's squared eccentricity */
    double radius_m; /* of the rectifying sphere, times the scale on the meridian */
    double to[TRANSVERSE_TERMS], from[TRANSVERSE_TERMS]; /* the series' coefficients */
};

#define TRANSVERSE_WGS84 298.257223563 /* inverse flattenings; the semi-major axes are the same */
#define TRANSVERSE_GRS80 298.257222101

/* A zone 1..60. */
struct transverse transverse_utm(int zone, bool is_south, double inverse_flattening);

/*
 * Easting and northing. False 60 degrees and more from the meridian, where the series ends.
 * Accuracy: 1e-6 m within 10 degrees of the meridian.
 */
bool transverse_to_plane(const struct transverse *projection, double lat_deg, double lng_deg,
                         struct vec2 *out);

/* The inverse, with the same accuracy. *lng_deg is in -180..180. */
bool transverse_from_plane(const struct transverse *projection, struct vec2 at, double *lat_deg,
                           double *lng_deg);

#endif
