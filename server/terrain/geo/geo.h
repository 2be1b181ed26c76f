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
 * The parts of a projection that depend only on the latitude, and only on the longitude: a grid of
 * places needs one a row and one a column.
 */
struct geo_row {
    double sin_lat, cos_lat;
    double across_m, along_m; /* from the axis, and above the equator */
};
struct geo_column {
    double sin_lng, cos_lng; /* of the longitude against the frame's */
};
struct geo_row geo_row_at(double lat_deg);
struct geo_column geo_column_at(const struct geo_frame *frame, double lng_deg);

/* geo_to_frame of the row's latitude and the column's longitude, with the same bits. */
static inline bool geo_join(const struct geo_frame *frame, const struct geo_row *row,
                            const struct geo_column *column, struct vec2 *out)
{
    out->x = row->across_m * column->sin_lng;
    out->y = (row->along_m - frame->along_m) * frame->cos_lat -
             (row->across_m * column->cos_lng - frame->across_m) * frame->sin_lat;
    return row->cos_lat * frame->cos_lat * column->cos_lng + row->sin_lat * frame->sin_lat > 0;
}

/*
 * East and north, in metres along the plane, of the place's point on the ellipsoid (height 0).
 * False beyond the horizon: on the other half of the Earth, which lies under the same plane again.
 *
 * Accuracy: float64, better than 1e-8 m anywhere. Exact for points on the ellipsoid; a point h
 * above it is h/R of its distance further out (1 km high, 10 km away: 1.6 m). The plane leaves
 * the ellipsoid by distance²/2R: 8 cm at 1 km, 7.8 m at 10 km.
 */
bool geo_to_frame(const struct geo_frame *frame, double lat_deg, double lng_deg, struct vec2 *out);

/*
 * The inverse: the place whose point on the ellipsoid is there in the plane. *lng_deg is in
 * -180..180. False beyond the horizon.
 */
bool geo_from_frame(const struct geo_frame *frame, struct vec2 at, double *lat_deg,
                    double *lng_deg);

/* Earth-centred, Earth-fixed metres of a place height_m above the ellipsoid. */
struct vec3 geo_ecef(double lat_deg, double lng_deg, double height_m);

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
