/*
 * Places on the Earth: the tangent plane against the definition in long double, which goes through
 * the plane's unit vectors; great circles against the rotation of one direction towards the other.
 */
#include "terrain/geo/geo.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

typedef long double real;

struct real3 {
    real x, y, z;
};

static const real degree = 0.017453292519943295769236907684886L;

static struct real3 earth_point(real lat_deg, real lng_deg)
{
    const real a = 6378137, f = 1 / 298.257223563L, e2 = f * (2 - f);
    real lat = lat_deg * degree, lng = lng_deg * degree;
    real n = a / sqrtl(1 - e2 * sinl(lat) * sinl(lat));

    return (struct real3){n * cosl(lat) * cosl(lng), n * cosl(lat) * sinl(lng),
                          n * (1 - e2) * sinl(lat)};
}

static void the_plane_is_that_of_the_definition(void **state)
{
    struct random random = {47};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        double lat = random_in(&random, -90, 90), lng = random_in(&random, -180, 180);
        double reach = i % 2 ? 80 : 0.2;
        double to_lat = fmin(90, fmax(-90, lat + random_in(&random, -reach, reach)));
        double to_lng = remainder(lng + random_in(&random, -reach, reach), 360);
        struct geo_frame frame = geo_frame_at(lat, lng);
        struct real3 from = earth_point((real)lat, (real)lng);
        struct real3 to = earth_point((real)to_lat, (real)to_lng);
        real dx = to.x - from.x, dy = to.y - from.y, dz = to.z - from.z;
        real sin_lng = sinl((real)lng * degree), cos_lng = cosl((real)lng * degree);
        real sin_lat = sinl((real)lat * degree), cos_lat = cosl((real)lat * degree);
        real east = -sin_lng * dx + cos_lng * dy;
        real north = -sin_lat * (cos_lng * dx + sin_lng * dy) + cos_lat * dz;
        real facing = cosl((real)to_lat * degree) * cos_lat * cosl((real)(to_lng - lng) * degree) +
                      sinl((real)to_lat * degree) * sin_lat;
        struct vec2 out;

        if (fabsl(facing) < 1e-12L)
            continue;
        assert_int_equal(geo_to_frame(&frame, to_lat, to_lng, &out), facing > 0);
        if (facing > 0 && (fabsl((real)out.x - east) > 1e-8L || fabsl((real)out.y - north) > 1e-8L))
            fail_msg("%g %g from %g %g: off by %Lg and %Lg m", to_lat, to_lng, lat, lng,
                     (real)out.x - east, (real)out.y - north);
    }
}

static void a_share_of_a_great_circle(void **state)
{
    struct random random = {48};

    (void)state;
    for (int i = 0; i < 5000; i++) {
        double lat[2], lng[2], share = random_in(&random, 0, 1), got_lat, got_lng;

        for (int k = 0; k < 2; k++) {
            lat[k] = random_in(&random, -90, 90);
            lng[k] = random_in(&random, -180, 180);
        }
        struct vec3 a = geo_direction(lat[0], lng[0]), b = geo_direction(lat[1], lng[1]);
        double angle = geo_angle(a, b);

        assert_true(fabs(cos(angle) - vec3_dot(a, b)) < 1e-15);
        if (angle > 3.1)
            continue;
        geo_between(a, b, angle, share, &got_lat, &got_lng);

        struct vec3 p = geo_direction(got_lat, got_lng);

        assert_true(got_lng >= -180 && got_lng <= 180);
        assert_true(fabs(geo_angle(a, p) - share * angle) < 1e-13);
        assert_true(fabs(geo_angle(p, b) - (1 - share) * angle) < 1e-13);
    }
}

static void the_same_place_is_its_own_path(void **state)
{
    struct vec3 a = geo_direction(56.7, -5.1);
    double lat, lng;

    (void)state;
    geo_between(a, a, 0, 0.25, &lat, &lng);
    assert_true(fabs(lat - 56.7) < 1e-13 && fabs(lng + 5.1) < 1e-13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plane_is_that_of_the_definition),
        cmocka_unit_test(a_share_of_a_great_circle),
        cmocka_unit_test(the_same_place_is_its_own_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
