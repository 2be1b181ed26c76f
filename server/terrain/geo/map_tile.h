/*
 * Tiles of maps: squares of web Mercator, and squares of degrees.
 */
#ifndef KOTA_TERRAIN_MAP_TILE_H
#define KOTA_TERRAIN_MAP_TILE_H

#include "terrain/geo/geo_map.h"

enum { MAP_ZOOM_MAX = 24 };

enum map_scheme {
    MAP_MERCATOR, /* XYZ: 2^z × 2^z tiles, y from north; values at the pixels' centres */
    MAP_GEODETIC, /* 2^(z+1) × 2^z tiles, y from north; values on the corners, edges included */
    MAP_QUANTIZED /* the same, at multiples of 1/32767 of the tile, as quantized-mesh keeps them */
};

struct map_tile {
    enum map_scheme scheme;
    uint32_t z, x, y;
    uint32_t side; /* pixels or values along a side: 2..GEO_MAP_SIDE_MAX - 2 */
};

/* How many tiles the scheme has along x and y at a zoom up to MAP_ZOOM_MAX. */
uint32_t map_tile_columns(enum map_scheme scheme, uint32_t z);
uint32_t map_tile_rows(enum map_scheme scheme, uint32_t z);

struct geo_box map_tile_box(const struct map_tile *tile);

/*
 * The longitudes of the columns and the latitudes of the rows, [side + 2 * rim] each, the first row
 * in the north; rim more on each side. Beyond a pole latitudes stay there. Without a shift, values
 * of geodetic tiles on a common edge have the same bits.
 *
 * east, south  by how many pixels all of them are shifted
 */
void map_tile_places(const struct map_tile *tile, uint32_t rim, double east, double south,
                     double *lng_deg, double *lat_deg);

/* Metres on the ground along one pixel, in the tile's middle. */
double map_tile_pixel_m(const struct map_tile *tile);

/*
 * The least zoom whose pixels, 256 to a tile, are no larger than spacing_m there; at most 22.
 */
uint32_t map_zoom_of(double lat_deg, double spacing_m);

/*
 * Gives each NaN the value of the nearest pixel that has one; 0 where none has. Written values are
 * those of the pixels before. O(pixels); the nearest is taken up to 13 % of the distance.
 *
 * scratch  [rows][cols], contents undefined before and after
 */
struct map_nearest {
    uint32_t steps, from;
};
void map_tile_fill(double *heights_m, uint32_t cols, uint32_t rows, struct map_nearest *scratch);

#endif
