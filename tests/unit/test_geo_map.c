/*
 * Frames on the Earth and tiles of maps: each map against its own inverse, transverse Mercator
 * against the meridian's length and conformity, grids against single places with their error
 * bound, boxes against places inside, filling against brute force.
 */
#include "terrain/geo/map_tile.h"

#include "support/long_form.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define DEGREE (M_PI / 180)
#define EARTH_M 6378137.0

static double apart_m(double lat, double lng, double to_lat, double to_lng)
{
    return hypot((to_lat - lat) * DEGREE * EARTH_M,
                 remainder(to_lng - lng, 360) * DEGREE * EARTH_M * cos(lat * DEGREE));
}

static struct geo_map known_map(uint32_t code)
{
    struct geo_map map;

    assert_true(geo_map_of_epsg(code, &map));
    return map;
}

/* A place within 5 degrees of what the map is made for. */
static void place_near(struct random *random, const struct geo_map *map, double *lat, double *lng)
{
    double middle_lat = 0, middle_lng = 0;

    if (map->kind == GEO_MAP_PLANE) {
        middle_lat = atan2(map->plane.sin_lat, map->plane.cos_lat) / DEGREE;
        middle_lng = map->plane.lng_deg;
    } else if (map->kind == GEO_MAP_TRANSVERSE) {
        middle_lat = random_in(random, -80, 80);
        middle_lng = map->transverse.meridian_deg;
    }
    *lat = fmin(fmax(middle_lat + random_in(random, -5, 5), -90), 90);
    *lng = remainder(middle_lng + random_in(random, -5, 5), 360);
}

static void every_map_has_its_inverse(void **state)
{
    const struct geo_map maps[] = {geo_map_plane(47.3, 11.4), geo_map_plane(-89.9, 100),
                                   geo_map_plane(90, 0),      geo_map_plane(0, 179.99),
                                   known_map(32633),          known_map(32701),
                                   known_map(25832),          known_map(3857)};
    struct random random = {28};

    (void)state;
    for (int i = 0; i < 80000; i++) {
        const struct geo_map *map = &maps[i % 8];
        double lat, lng, to_lat, to_lng;
        struct vec2 at;

        place_near(&random, map, &lat, &lng);
        assert_true(geo_map_to_frame(map, lat, lng, &at));
        assert_true(geo_map_from_frame(map, at, &to_lat, &to_lng));
        if (!(apart_m(lat, lng, to_lat, to_lng) < 2e-6))
            fail_msg("map %d: %.9f %.9f came back %g m away", i % 8, lat, lng,
                     apart_m(lat, lng, to_lat, to_lng));
    }
}

/* Known points, by PROJ 9.1.1: echo LAT LNG | cs2cs -f %.7f EPSG:4326 EPSG:32633 */
static void transverse_mercator_agrees_with_proj(void **state)
{
    const struct {
        uint32_t code;
        double lat, lng, x, y;
    } known[] = {
        {32633, 48.2, 16.4, 604028.2757450, 5339477.3311230},
        {32633, 0, 15, 500000, 0},
        {32632, 83.5, 6, 462101.3366655, 9273261.9088554},
        {32719, -33.4, -70.6, 351205.0646217, 6303223.7506591},
        {32760, -45.03, 179.99, 735534.7514205, 5009367.0233367},
        {25832, 47.2692, 11.4041, 681848.8821161, 5237883.2413811},
        {32631, 60.1, -4.5, 83531.7117754, 6686228.4316523},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct geo_map map = known_map(known[i].code);
        struct vec2 at;

        assert_true(geo_map_to_frame(&map, known[i].lat, known[i].lng, &at));
        if (!(fabs(at.x - known[i].x) < 1e-6 && fabs(at.y - known[i].y) < 1e-6))
            fail_msg("EPSG:%u %g %g is %.6f %.6f, by PROJ %.6f %.6f", known[i].code, known[i].lat,
                     known[i].lng, at.x, at.y, known[i].x, known[i].y);
    }
}

static void unknown_codes_are_refused(void **state)
{
    const uint32_t codes[] = {0, 4326, 32600, 32661, 32700, 32761, 25827, 25839, 2154, UINT32_MAX};
    struct geo_map map;

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        assert_false(geo_map_of_epsg(codes[i], &map));
}

enum { SIDE = 256 };

/*
 * Of the tile at a place: returns the greatest distance of the grid from the single places; in make
 * test of each third row and column.
 */
static double grid_error_m(const struct geo_map *map, struct map_tile tile, double error_m)
{
    static double lng[GEO_MAP_SIDE_MAX], lat[GEO_MAP_SIDE_MAX];
    static struct vec2 grid[SIDE * SIDE];
    const int step = (int)long_form(1, 3);
    double worst = 0;

    map_tile_places(&tile, 0, 0, 0, lng, lat);
    geo_map_grid(map, lng, SIDE, lat, SIDE, error_m, grid);
    for (int j = 0; j < SIDE; j += step)
        for (int i = 0; i < SIDE; i += step) {
            struct vec2 at, have = grid[j * SIDE + i];

            if (!geo_map_to_frame(map, lat[j], lng[i], &at))
                assert_true(have.x == GEO_MAP_NOWHERE);
            else
                worst = fmax(worst, fmax(fabs(have.x - at.x), fabs(have.y - at.y)));
        }
    return worst;
}

static struct map_tile tile_at(double lat, double lng, uint32_t z)
{
    double n = map_tile_columns(MAP_MERCATOR, z);

    return (struct map_tile){.scheme = MAP_MERCATOR,
                             .z = z,
                             .x = (uint32_t)((lng + 180) / 360 * n),
                             .y = (uint32_t)((1 - asinh(tan(lat * DEGREE)) / M_PI) / 2 * n),
                             .side = SIDE};
}

static void grids_are_the_single_places(void **state)
{
    const struct geo_map plane = geo_map_plane(47, 11), mercator = known_map(3857);

    (void)state;
    for (uint32_t z = 0; z <= MAP_ZOOM_MAX; z += 4) {
        assert_true(grid_error_m(&plane, tile_at(47, 11, z), 1) == 0);
        assert_true(grid_error_m(&mercator, tile_at(47, 11, z), 1) == 0);
    }
}

static void the_lattice_keeps_its_bound(void **state)
{
    const double errors_m[] = {1e-6, 1e-3, 1};
    const double lats[] = {0, 47, -70, 83};
    const struct geo_map utm = known_map(32632);

    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t l = 0; l < 4; l++)
            for (uint32_t z = 0; z <= 20; z += long_form(2, 5)) {
                double worst = grid_error_m(&utm, tile_at(lats[l], 8, z), errors_m[k]);

                if (!(worst <= errors_m[k]))
                    fail_msg("zoom %u at %g: off by %g m, %g m were allowed", z, lats[l], worst,
                             errors_m[k]);
            }
}

static void a_box_holds_the_rectangle(void **state)
{
    struct random random = {5};

    (void)state;
    for (int i = 0; i < 3000; i++) {
        double lat = i % 10 == 0 ? 89.9 : random_in(&random, -85, 85);
        double lng = i % 3 == 0 ? 179.9 : random_in(&random, -180, 180);
        double size = exp(random_in(&random, log(10), log(300000)));
        struct geo_map map = geo_map_plane(lat, lng);
        struct vec2 low = {random_in(&random, -size, 0), random_in(&random, -size, 0)};
        struct vec2 high = {low.x + size, low.y + size}, at;
        struct geo_box box = geo_map_box(&map, low, high), point;

        at = (struct vec2){random_in(&random, low.x, high.x), random_in(&random, low.y, high.y)};
        assert_true(geo_map_from_frame(&map, at, &lat, &lng));
        point = (struct geo_box){lng, lat, lng, lat};
        if (!geo_box_meets(&box, &point))
            fail_msg("%.9f %.9f is not in %.9f %.9f %.9f %.9f", lat, lng, box.south_deg,
                     box.west_deg, box.north_deg, box.east_deg);
        assert_true(box.east_deg - box.west_deg <= 360);
    }
}

static void places_are_those_of_the_formula(void **state)
{
    struct map_tile tile = {.scheme = MAP_MERCATOR, .z = 12, .x = 2175, .y = 1434, .side = 256};
    double lng[GEO_MAP_SIDE_MAX], lat[GEO_MAP_SIDE_MAX], next[GEO_MAP_SIDE_MAX];

    (void)state;
    map_tile_places(&tile, 0, 0, 0, lng, lat);
    for (int i = 0; i < 256; i++) {
        double x = (2175 + (i + 0.5) / 256) / 4096 * 360 - 180;
        double y = atan(sinh(M_PI * (1 - 2 * (1434 + (i + 0.5) / 256) / 4096))) / DEGREE;

        assert_true(fabs(lng[i] - x) < 1e-12 && fabs(lat[i] - y) < 1e-12);
    }
    tile = (struct map_tile){.scheme = MAP_GEODETIC, .z = 3, .x = 7, .y = 2, .side = 65};
    map_tile_places(&tile, 0, 0, 0, lng, lat);
    assert_true(lng[0] == -22.5 && lng[64] == 0 && lat[0] == 45 && lat[64] == 22.5);
    tile.y = 3;
    map_tile_places(&tile, 0, 0, 0, lng, next);
    assert_true(next[0] == lat[64]);
}

static void the_zoom_of_data_is_no_coarser_than_it(void **state)
{
    (void)state;
    assert_int_equal(map_zoom_of(0, 156543.1), 0);
    assert_int_equal(map_zoom_of(0, 156543.0 / 1024), 11);
    assert_int_equal(map_zoom_of(60, 10), 13);
    assert_int_equal(map_zoom_of(0, 1e-9), 22);
}

static void holes_are_filled_from_near(void **state)
{
    enum { COLS = 37, ROWS = 23 };
    struct map_nearest scratch[COLS * ROWS];
    double heights[COLS * ROWS], before[COLS * ROWS];
    struct random random = {99};

    (void)state;
    for (int round = 0; round < (int)long_form(200, 60); round++) {
        double share = random_in(&random, 0, 1.02);
        int only = round * (COLS * ROWS - 1) / 3; /* the first rounds have one pixel of ground */

        for (int i = 0; i < COLS * ROWS; i++)
            before[i] = heights[i] =
                (round < 4 ? i != only : random_in(&random, 0, 1) < share) ? (double)NAN : i + 1.0;
        map_tile_fill(heights, COLS, ROWS, scratch);
        for (int i = 0; i < COLS * ROWS; i++) {
            double nearest = INFINITY, taken;

            for (int k = 0; k < COLS * ROWS; k++)
                if (!isnan(before[k]))
                    nearest = fmin(nearest, hypot(k % COLS - i % COLS, k / COLS - i / COLS));
            if (isinf(nearest)) {
                assert_true(heights[i] == 0);
                continue;
            }
            taken = hypot(((int)heights[i] - 1) % COLS - i % COLS,
                          ((int)heights[i] - 1) / COLS - i / COLS);
            if (!(taken <= 1.13 * nearest))
                fail_msg("pixel %d has that %g away, one %g away has ground", i, taken, nearest);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_map_has_its_inverse),
        cmocka_unit_test(transverse_mercator_agrees_with_proj),
        cmocka_unit_test(unknown_codes_are_refused),
        cmocka_unit_test(grids_are_the_single_places),
        cmocka_unit_test(the_lattice_keeps_its_bound),
        cmocka_unit_test(a_box_holds_the_rectangle),
        cmocka_unit_test(places_are_those_of_the_formula),
        cmocka_unit_test(the_zoom_of_data_is_no_coarser_than_it),
        cmocka_unit_test(holes_are_filled_from_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
