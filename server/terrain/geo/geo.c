/*
 * WGS84 to a local east-north tangent plane, and points along great circles.
 *
 * A point of the ellipsoid at latitude f is N cos f away from the axis and N (1 - e²) sin f
 * above the equator's plane, N = a / sqrt(1 - e² sin² f). Turned about the axis so that the
 * origin's meridian is in front, east is the sideways part, and north what of the two differences
 * lies along the origin's north. Only the difference of the longitudes enters, and its remainder by
 * 360 is exact: so the antimeridian is no border, and nothing is lost far from Greenwich. The
 * formulas are exact for any distance (no series); float64 leaves some nanometres.
 *
 * The plane sees each half of the Earth once. Beyond the horizon (where the normals are more than a
 * right angle apart) the same x and y come again, so those points are refused.
 *
 * Great circles are those of the sphere, as maps' web services space their samples: two directions
 * are mixed by sines (K. Shoemake, "Animating rotation with quaternion curves", 1985). Angles are
 * taken from the cross and the dot product together, which loses nothing near 0 and pi.
 * Source for the ellipsoid: NIMA TR8350.2, "Department of Defense World Geodetic System 1984".
 */
#include "terrain/geo/geo.h"

#include "terrain/trig.h"

#define WGS84_A_M 6378137.0
#define WGS84_F (1 / 298.257223563)
#define WGS84_E2 (WGS84_F * (2 - WGS84_F))
#define DEGREE (M_PI / 180)

static double normal_radius_m(double sin_lat)
{
    return WGS84_A_M / sqrt(1 - WGS84_E2 * sin_lat * sin_lat);
}

struct geo_frame geo_frame_at(double lat_deg, double lng_deg)
{
    struct geo_frame frame = {.lng_deg = lng_deg,
                              .sin_lat = trig_sin(lat_deg * DEGREE),
                              .cos_lat = trig_cos(lat_deg * DEGREE)};
    double radius = normal_radius_m(frame.sin_lat);

    frame.across_m = radius * frame.cos_lat;
    frame.along_m = radius * (1 - WGS84_E2) * frame.sin_lat;
    return frame;
}

struct geo_row geo_row_at(double lat_deg)
{
    struct geo_row row = {.sin_lat = trig_sin(lat_deg * DEGREE),
                          .cos_lat = trig_cos(lat_deg * DEGREE)};
    double radius = normal_radius_m(row.sin_lat);

    row.across_m = radius * row.cos_lat;
    row.along_m = radius * (1 - WGS84_E2) * row.sin_lat;
    return row;
}

struct geo_column geo_column_at(const struct geo_frame *frame, double lng_deg)
{
    double d_lng = remainder(lng_deg - frame->lng_deg, 360) * DEGREE;

    return (struct geo_column){trig_sin(d_lng), trig_cos(d_lng)};
}

bool geo_to_frame(const struct geo_frame *frame, double lat_deg, double lng_deg, struct vec2 *out)
{
    struct geo_row row = geo_row_at(lat_deg);
    struct geo_column column = geo_column_at(frame, lng_deg);
    struct vec2 at;

    if (!geo_join(frame, &row, &column, &at))
        return false;
    *out = at;
    return true;
}

/*
 * The line through the point along the origin's normal meets the ellipsoid twice; the upper point
 * is the one that is seen. With u = (u_x, 0, u_z) in the origin's meridian, q the point of the
 * plane and both scaled so that the ellipsoid is the unit sphere: |q + t u| = 1.
 */
bool geo_from_frame(const struct geo_frame *frame, struct vec2 at, double *lat_deg, double *lng_deg)
{
    const double a = WGS84_A_M, b = WGS84_A_M * (1 - WGS84_F);
    struct vec3 q = {frame->across_m - at.y * frame->sin_lat, at.x,
                     frame->along_m + at.y * frame->cos_lat};
    double ux = frame->cos_lat / a, uz = frame->sin_lat / b;
    double qx = q.x / a, qy = q.y / a, qz = q.z / b;
    double uu = ux * ux + uz * uz, uq = ux * qx + uz * qz;
    double inside = uq * uq - uu * (qx * qx + qy * qy + qz * qz - 1), t;

    if (!(inside >= 0))
        return false;
    t = (sqrt(inside) - uq) / uu;
    q = (struct vec3){q.x + t * frame->cos_lat, q.y, q.z + t * frame->sin_lat};
    *lat_deg = trig_atan2(q.z, (1 - WGS84_E2) * length_xy(q.x, q.y)) / DEGREE;
    *lng_deg = remainder(frame->lng_deg + trig_atan2(q.y, q.x) / DEGREE, 360);
    return true;
}

struct vec3 geo_ecef(double lat_deg, double lng_deg, double height_m)
{
    double sin_lat = trig_sin(lat_deg * DEGREE), cos_lat = trig_cos(lat_deg * DEGREE);
    double radius = normal_radius_m(sin_lat), across = (radius + height_m) * cos_lat;

    return (struct vec3){across * trig_cos(lng_deg * DEGREE), across * trig_sin(lng_deg * DEGREE),
                         (radius * (1 - WGS84_E2) + height_m) * sin_lat};
}

struct vec3 geo_direction(double lat_deg, double lng_deg)
{
    double lat = lat_deg * DEGREE, lng = lng_deg * DEGREE;

    return (struct vec3){trig_cos(lat) * trig_cos(lng), trig_cos(lat) * trig_sin(lng),
                         trig_sin(lat)};
}

double geo_angle(struct vec3 a, struct vec3 b)
{
    return trig_atan2(vec3_length(vec3_cross(a, b)), vec3_dot(a, b));
}

void geo_between(struct vec3 a, struct vec3 b, double angle, double share, double *lat_deg,
                 double *lng_deg)
{
    double whole = trig_sin(angle);
    double of_a = whole > 0 ? trig_sin((1 - share) * angle) / whole : 1 - share;
    double of_b = whole > 0 ? trig_sin(share * angle) / whole : share;
    struct vec3 p = vec3_add(vec3_scale(a, of_a), vec3_scale(b, of_b));

    *lat_deg = trig_atan2(p.z, length_xy(p.x, p.y)) / DEGREE;
    *lng_deg = trig_atan2(p.y, p.x) / DEGREE;
}
