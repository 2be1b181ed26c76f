/*
 * Where a locale's frame is on the Earth: how its x and y follow from latitude and longitude.
 */
#ifndef KOTA_TERRAIN_GEO_MAP_H
#define KOTA_TERRAIN_GEO_MAP_H

#include "terrain/geo/geo.h"
#include "terrain/geo/transverse.h"

#include <stdint.h>

enum geo_map_kind {
    GEO_MAP_PLANE,       /* the tangent plane at a place */
    GEO_MAP_TRANSVERSE,  /* a zone of UTM */
    GEO_MAP_WEB_MERCATOR /* EPSG:3857 */
};

/* Make it with geo_map_plane or geo_map_of_epsg. */
struct geo_map {
    enum geo_map_kind kind;
    struct geo_frame plane;
    struct transverse transverse;
};

struct geo_map geo_map_plane(double lat_deg, double lng_deg);

/*
 * The projected coordinate systems that are known here: UTM on WGS84 (32601..32660, 32701..32760),
 * on ETRS89 (25828..25838) and NAD83 (26901..26923), and web Mercator (3857). False: another code.
 */
bool geo_map_of_epsg(uint32_t code, struct geo_map *out);

/* geo_to_frame and geo_from_frame for any of them. False where the map has no such place. */
bool geo_map_to_frame(const struct geo_map *map, double lat_deg, double lng_deg, struct vec2 *out);
bool geo_map_from_frame(const struct geo_map *map, struct vec2 at, double *lat_deg,
                        double *lng_deg);

/* What is written for a place that is not on the map: outside of every heightfield. */
#define GEO_MAP_NOWHERE 1e300

/*
 * geo_map_to_frame of a grid: out[rows][cols]. Exact, with the bits of the single call, for a plane
 * and for web Mercator. For UTM within error_m of it: interpolated between some exact places where
 * that is near enough, else exact.
 *
 * lng_deg  [cols], in equal steps
 * lat_deg  [rows], in steps that change little from row to row, as Mercator's
 * cols, rows  1..GEO_MAP_SIDE_MAX
 */
enum { GEO_MAP_SIDE_MAX = 1026 };
void geo_map_grid(const struct geo_map *map, const double *lng_deg, uint32_t cols,
                  const double *lat_deg, uint32_t rows, double error_m, struct vec2 *out);

/* A box of longitudes and latitudes; 360 wide at most. east_deg may be beyond 180. */
struct geo_box {
    double west_deg, south_deg, east_deg, north_deg;
};

/* Around the rectangle from low to high of the frame; too large by a little. */
struct geo_box geo_map_box(const struct geo_map *map, struct vec2 low, struct vec2 high);

/* Do the boxes have a place in common? */
bool geo_box_meets(const struct geo_box *a, const struct geo_box *b);

#endif
