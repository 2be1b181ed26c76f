/*
 * Transverse Mercator by Krüger's series in the third flattening n, to its fourth power.
 *
 * The ellipsoid goes to a sphere by the conformal latitude, the sphere to its transverse Mercator
 * plane in closed form, and that to the ellipsoid's by a short series. The inverse is the series
 * the other way, and Newton's method for the latitude, which needs three steps at most.
 *
 * Source: L. Krüger, "Konforme Abbildung des Erdellipsoids in der Ebene", 1912; formulas and names
 * as in C. Karney, "Transverse Mercator with an accuracy of a few nanometers", 2011, sections 3, 4.
 */
#include "terrain/geo/transverse.h"

#include "terrain/trig.h"

#include <math.h>

#define A_M 6378137.0
#define SCALE 0.9996
#define FALSE_EAST_M 500000.0
#define DEGREE (M_PI / 180)
#define REACH_DEG 60.0

struct transverse transverse_utm(int zone, bool is_south, double inverse_flattening)
{
    const double n = 1 / (2 * inverse_flattening - 1), f = 1 / inverse_flattening;
    const double n2 = n * n, n3 = n2 * n, n4 = n3 * n;

    return (struct transverse){
        .meridian_deg = 6.0 * zone - 183,
        .false_north_m = is_south ? 1e7 : 0,
        .e2 = f * (2 - f),
        .radius_m = SCALE * A_M / (1 + n) * (1 + n2 / 4 + n4 / 64),
        .to = {n / 2 - 2 * n2 / 3 + 5 * n3 / 16 + 41 * n4 / 180,
               13 * n2 / 48 - 3 * n3 / 5 + 557 * n4 / 1440, 61 * n3 / 240 - 103 * n4 / 140,
               49561 * n4 / 161280},
        .from = {n / 2 - 2 * n2 / 3 + 37 * n3 / 96 - n4 / 360, n2 / 48 + n3 / 15 - 437 * n4 / 1440,
                 17 * n3 / 480 - 37 * n4 / 840, 4397 * n4 / 161280},
    };
}

/* The tangent of the conformal latitude. */
static double conformal(double e2, double tan_lat)
{
    double e = sqrt(e2);
    double root = length_xy(1, tan_lat), sigma = trig_sinh(e * trig_atanh(e * tan_lat / root));

    return tan_lat * length_xy(1, sigma) - sigma * root;
}

bool transverse_to_plane(const struct transverse *projection, double lat_deg, double lng_deg,
                         struct vec2 *out)
{
    double d_lng_deg = remainder(lng_deg - projection->meridian_deg, 360);
    double d_lng = d_lng_deg * DEGREE, tau = conformal(projection->e2, trig_tan(lat_deg * DEGREE));
    double xi = trig_atan2(tau, trig_cos(d_lng)),
           eta = trig_asinh(trig_sin(d_lng) / length_xy(tau, trig_cos(d_lng)));
    double x = eta, y = xi;

    if (!(fabs(d_lng_deg) < REACH_DEG) || !(fabs(lat_deg) <= 90))
        return false;
    for (int j = 0; j < TRANSVERSE_TERMS; j++) {
        double k = 2 * (j + 1);

        x += projection->to[j] * trig_cos(k * xi) * trig_sinh(k * eta);
        y += projection->to[j] * trig_sin(k * xi) * trig_cosh(k * eta);
    }
    *out = (struct vec2){FALSE_EAST_M + projection->radius_m * x,
                         projection->false_north_m + projection->radius_m * y};
    return true;
}

bool transverse_from_plane(const struct transverse *projection, struct vec2 at, double *lat_deg,
                           double *lng_deg)
{
    const double e2 = projection->e2;
    double eta = (at.x - FALSE_EAST_M) / projection->radius_m;
    double xi = (at.y - projection->false_north_m) / projection->radius_m;
    double x = eta, y = xi, tau, t;

    if (!(fabs(xi) <= M_PI / 2) || !(fabs(eta) < 1.4)) /* 1.4: beyond REACH_DEG on the equator */
        return false;
    for (int j = 0; j < TRANSVERSE_TERMS; j++) {
        double k = 2 * (j + 1);

        x -= projection->from[j] * trig_cos(k * xi) * trig_sinh(k * eta);
        y -= projection->from[j] * trig_sin(k * xi) * trig_cosh(k * eta);
    }
    tau = trig_sin(y) / length_xy(trig_sinh(x), trig_cos(y));
    t = tau;
    for (int i = 0; i < 5; i++) {
        double now = conformal(e2, t);

        t +=
            (tau - now) / length_xy(1, now) * (1 + (1 - e2) * t * t) / ((1 - e2) * length_xy(1, t));
    }
    *lat_deg = trig_atan2(t, 1) / DEGREE;
    *lng_deg =
        remainder(projection->meridian_deg + trig_atan2(trig_sinh(x), trig_cos(y)) / DEGREE, 360);
    return fabs(remainder(*lng_deg - projection->meridian_deg, 360)) < REACH_DEG;
}
