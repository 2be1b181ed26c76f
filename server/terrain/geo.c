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
#include "terrain/geo.h"

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
    struct geo_frame frame = {
        .lng_deg = lng_deg, .sin_lat = sin(lat_deg * DEGREE), .cos_lat = cos(lat_deg * DEGREE)};
    double radius = normal_radius_m(frame.sin_lat);

    frame.across_m = radius * frame.cos_lat;
    frame.along_m = radius * (1 - WGS84_E2) * frame.sin_lat;
    return frame;
}

bool geo_to_frame(const struct geo_frame *frame, double lat_deg, double lng_deg, struct vec2 *out)
{
    double d_lng = remainder(lng_deg - frame->lng_deg, 360) * DEGREE;
    double sin_lat = sin(lat_deg * DEGREE), cos_lat = cos(lat_deg * DEGREE);
    double radius = normal_radius_m(sin_lat), across = radius * cos_lat;
    double along = radius * (1 - WGS84_E2) * sin_lat;

    if (!(cos_lat * frame->cos_lat * cos(d_lng) + sin_lat * frame->sin_lat > 0))
        return false;
    out->x = across * sin(d_lng);
    out->y = (along - frame->along_m) * frame->cos_lat -
             (across * cos(d_lng) - frame->across_m) * frame->sin_lat;
    return true;
}

struct vec3 geo_direction(double lat_deg, double lng_deg)
{
    double lat = lat_deg * DEGREE, lng = lng_deg * DEGREE;

    return (struct vec3){cos(lat) * cos(lng), cos(lat) * sin(lng), sin(lat)};
}

double geo_angle(struct vec3 a, struct vec3 b)
{
    return atan2(vec3_length(vec3_cross(a, b)), vec3_dot(a, b));
}

void geo_between(struct vec3 a, struct vec3 b, double angle, double share, double *lat_deg,
                 double *lng_deg)
{
    double whole = sin(angle);
    double of_a = whole > 0 ? sin((1 - share) * angle) / whole : 1 - share;
    double of_b = whole > 0 ? sin(share * angle) / whole : share;
    struct vec3 p = vec3_add(vec3_scale(a, of_a), vec3_scale(b, of_b));

    *lat_deg = atan2(p.z, hypot(p.x, p.y)) / DEGREE;
    *lng_deg = atan2(p.y, p.x) / DEGREE;
}
