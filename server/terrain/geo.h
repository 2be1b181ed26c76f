/*
 * Places on the Earth in a flat frame: the tangent plane of the WGS84 ellipsoid at a frame's
 * origin, x to the east, y to the north.
 */
#ifndef KOTA_TERRAIN_GEO_H
#define KOTA_TERRAIN_GEO_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>

/* A tangent plane; make it with geo_frame_at. */
struct geo_frame {
    double lng_deg;
    double sin_lat, cos_lat;
    double across_m, along_m; /* the origin's distance from the axis, and above the equator */
};

/* lat_deg -90..90, lng_deg -180..180; at a pole the longitude says where east is. */
struct geo_frame geo_frame_at(double lat_deg, double lng_deg);

/*
 * East and north, in metres along the plane, of the place's point on the ellipsoid (height 0).
 * False beyond the horizon: on the other half of the Earth, which lies under the same plane again.
 *
 * Accuracy: float64, better than 1e-8 m anywhere. Exact for points on the ellipsoid; a point h
 * above it is h/R of its distance further out (1 km high, 10 km away: 1.6 m). The plane leaves
 * the ellipsoid by distance²/2R: 8 cm at 1 km, 7.8 m at 10 km.
 */
bool geo_to_frame(const struct geo_frame *frame, double lat_deg, double lng_deg, struct vec2 *out);

/* A place as a unit vector of the sphere, for great circles. */
struct vec3 geo_direction(double lat_deg, double lng_deg);

/* The angle between two directions, radians; accurate for small ones, too. */
double geo_angle(struct vec3 a, struct vec3 b);

/*
 * The place at `share` (0 to 1) of the great circle's shorter arc from a to b, angle geo_angle(a,
 * b) apart, which must be less than pi. *lng_deg is in -180..180.
 */
void geo_between(struct vec3 a, struct vec3 b, double angle, double share, double *lat_deg,
                 double *lng_deg);

#endif
