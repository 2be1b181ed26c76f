/*
 * Logical tiles of the plan: hexagons or squares of any side over x and y, on heightfields and
 * meshes alike.
 */
#ifndef KOTA_TERRAIN_PLAN_TILE_H
#define KOTA_TERRAIN_PLAN_TILE_H

#include <stdbool.h>
#include <stdint.h>

/* Indices stay whole numbers of a double, and their products whole numbers of 64 bits. */
#define PLAN_TILE_INDEX_MAX 1125899906842624.0 /* 2^50 */
#define PLAN_TILE_SIDE_MIN_M 1e-3
#define PLAN_TILE_SIDE_MAX_M 1e6

enum plan_tile_shape {
    PLAN_TILE_HEX,   /* pointy tops; (0,0) is centred at the origin; axial q, r */
    PLAN_TILE_SQUARE /* (0,0) has its least corner at the origin; column, row */
};

struct plan_tile {
    int64_t index[2];
    double center[2];
};

/*
 * The tile that holds a point of the plan: the one with the nearest centre, exactly. Of several
 * equally near ones the greater index holds the point, the second one first (r, row).
 * False: an index would be beyond PLAN_TILE_INDEX_MAX, or the point is not finite.
 */
bool plan_tile_at(enum plan_tile_shape shape, double side_m, double x, double y,
                  struct plan_tile *out);

#endif
