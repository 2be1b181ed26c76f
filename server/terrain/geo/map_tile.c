/*
 * Where the pixels of a map's tiles are.
 *
 * Mercator's rows are y = (j + ½) / N of the tile, counted from the north; lat = atan(sinh(π (1 -
 * 2y))). Edges of geodetic tiles are multiples of the tile's size, computed alike from both sides,
 * so that neighbours share the bits of their common edge.
 *
 * Filling holes: two sweeps, in which each pixel takes what its neighbours before it know about the
 * nearest ground; 2 for a step along an axis, 3 for a diagonal one. Source: G. Borgefors, "Distance
 * transformations in digital images", 1986.
 */
#include "terrain/geo/map_tile.h"

#include "terrain/trig.h"

#include <math.h>

#define EARTH_ROUND_M (2 * M_PI * 6378137.0)
#define QUANTA 32767.0
#define DEGREE (M_PI / 180)

enum { ZOOM_OF_DATA_MAX = 22, FAR = 1 << 20 };

uint32_t map_tile_columns(enum map_scheme scheme, uint32_t z)
{
    return scheme == MAP_MERCATOR ? (uint32_t)1 << z : (uint32_t)2 << z;
}

uint32_t map_tile_rows(enum map_scheme scheme, uint32_t z)
{
    (void)scheme;
    return (uint32_t)1 << z;
}

/* The place `share` tiles east of the tile's west edge, and south of its north edge. */
static double lng_at(const struct map_tile *tile, double share)
{
    return (tile->x + share) / map_tile_columns(tile->scheme, tile->z) * 360 - 180;
}

static double lat_at(const struct map_tile *tile, double share)
{
    double y = (tile->y + share) / map_tile_rows(tile->scheme, tile->z);

    if (tile->scheme != MAP_MERCATOR)
        return fmin(fmax(90 - 180 * y, -90), 90);
    return trig_atan2(trig_sinh(M_PI * (1 - 2 * y)), 1) / DEGREE;
}

struct geo_box map_tile_box(const struct map_tile *tile)
{
    return (struct geo_box){lng_at(tile, 0), lat_at(tile, 1), lng_at(tile, 1), lat_at(tile, 0)};
}

static double share_of(const struct map_tile *tile, double share)
{
    return tile->scheme == MAP_QUANTIZED ? round(QUANTA * share) / QUANTA : share;
}

void map_tile_places(const struct map_tile *tile, uint32_t rim, double east, double south,
                     double *lng_deg, double *lat_deg)
{
    bool has_edges = tile->scheme != MAP_MERCATOR;
    double steps = has_edges ? tile->side - 1 : tile->side;
    double first = (has_edges ? 0 : 0.5) - (double)rim;

    for (uint32_t i = 0; i < tile->side + 2 * rim; i++) {
        lng_deg[i] = lng_at(tile, share_of(tile, (first + east + i) / steps));
        lat_deg[i] = lat_at(tile, share_of(tile, (first + south + i) / steps));
    }
}

double map_tile_pixel_m(const struct map_tile *tile)
{
    double lat = lat_at(tile, 0.5) * DEGREE;

    if (tile->scheme != MAP_MERCATOR)
        return EARTH_ROUND_M / 360 * 180 / map_tile_rows(tile->scheme, tile->z) / tile->side;
    return EARTH_ROUND_M * trig_cos(lat) / map_tile_columns(tile->scheme, tile->z) / tile->side;
}

uint32_t map_zoom_of(double lat_deg, double spacing_m)
{
    double pixel_m = EARTH_ROUND_M / 256 * trig_cos(lat_deg * DEGREE);

    return (uint32_t)fmin(fmax(ceil(log2(pixel_m / spacing_m)), 0), ZOOM_OF_DATA_MAX);
}

/* ---- holes ----------------------------------------------------------------------------------- */

static void ask(struct map_nearest *here, const struct map_nearest *there, uint32_t steps)
{
    if (there->steps + steps < here->steps)
        *here = (struct map_nearest){there->steps + steps, there->from};
}

/* One sweep over the rows; d is 1 forwards, -1 backwards. */
static void sweep(struct map_nearest *at, int64_t cols, int64_t rows, int64_t d)
{
    for (int64_t n = 0, j = d > 0 ? 0 : rows - 1; n < rows; n++, j += d) {
        struct map_nearest *row = at + j * cols;

        for (int64_t m = 0, i = d > 0 ? 0 : cols - 1; m < cols; m++, i += d) {
            if (m > 0)
                ask(&row[i], &row[i - d], 2);
            if (n == 0)
                continue;
            ask(&row[i], &row[i - d * cols], 2);
            if (m > 0)
                ask(&row[i], &row[i - d * cols - d], 3);
            if (m < cols - 1)
                ask(&row[i], &row[i - d * cols + d], 3);
        }
    }
}

void map_tile_fill(double *heights_m, uint32_t cols, uint32_t rows, struct map_nearest *scratch)
{
    uint32_t count = cols * rows, holes = 0;

    for (uint32_t i = 0; i < count; i++)
        holes += isnan(heights_m[i]) != 0;
    if (holes == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = (struct map_nearest){isnan(heights_m[i]) ? FAR : 0, i};
    if (holes < count) {
        sweep(scratch, cols, rows, 1);
        sweep(scratch, cols, rows, -1);
    }
    for (uint32_t i = 0; i < count; i++)
        if (isnan(heights_m[i]))
            heights_m[i] = holes < count ? heights_m[scratch[i].from] : 0;
}
