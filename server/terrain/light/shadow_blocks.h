/*
 * The shadows that the columns of a light's tree prove without reading a polygon. Private to
 * terrain/. How: shadow_blocks.c.
 */
#ifndef KOTA_TERRAIN_SHADOW_BLOCKS_H
#define KOTA_TERRAIN_SHADOW_BLOCKS_H

#include "terrain/mesh/mesh_data.h"

#include <float.h>

/*
 * Eight polygons in a cell: their edges as in struct column_block, and their heights at the place
 * (x, y) of the cell, z + x_unit x + y_unit y metres in the tree's frame; NaN: the height means
 * nothing.
 */
struct shadow_block {
    _Alignas(64) int8_t ab[COLUMN_EDGES][COLUMN_LANES][2];
    int16_t c[COLUMN_EDGES][COLUMN_LANES];
    float z[COLUMN_LANES], x_unit[COLUMN_LANES], y_unit[COLUMN_LANES];
};

_Static_assert(sizeof(struct shadow_block) == 192, "a block is three cache lines");

/*
 * A cell, 16 bytes, so that a read of it is one cache line. Of a grid: SHADOW_INNER | log2 of its
 * side << SHADOW_SIDE_SHIFT | its first cell; its heights say clear. Of a list: its first block,
 * and the heights of points that need no list, or one block of it.
 */
struct shadow_cell {
    uint32_t first;
    float clear_to, blocked_from; /* NaN: clear at any height */
    float more_from; /* below it blocks after the first do not matter; NaN: none does */
};

#define SHADOW_INNER 0x80000000u
#define SHADOW_FIRST 0x0fffffffu
#define SHADOW_SIDE_SHIFT 28

/* Beside a tree's columns: cells and lists have the same indices. */
struct shadow_blocks {
    struct shadow_block *blocks; /* of a cell from the lowest polygon on */
    float *more_from;            /* of each block: as a cell's */
    struct shadow_cell *cells;
    uint32_t *roots; /* the cells of the root, which are all grids, without the rest: few lines */
    float doubt_m;   /* the error of heights besides their rounding */
};

/*
 * Of a tree whose columns may be empty. is_loose: polygons whose heights mean nothing. False: no
 * memory, and there is nothing to free.
 */
bool shadow_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                        struct shadow_blocks *out);
void shadow_blocks_free(struct shadow_blocks *blocks); /* all zero is fine */
size_t shadow_blocks_bytes(const struct mesh *tree);

/* Added to COLUMN_DOUBT: inside means inside by two slacks. */
enum { SHADOW_MARGIN = 64 };

/* The error of a height, in parts of itself and of its slopes; the point's own, too. */
#define SHADOW_DOUBT_HEIGHT (16 * FLT_EPSILON)
#define SHADOW_DOUBT_UNITS 2.1f /* 2, and 16 roundings of a slope across the cell */

enum { SHADOW_CLEAR, SHADOW_BLOCKED, SHADOW_UNSURE }; /* SHADOW_BLOCKED | SHADOW_UNSURE: blocked */

/*
 * Is a floor of the tree below each of origins[count], places around `centre` in the locale's
 * frame? Those farther from it than reach_m in any coordinate, and no numbers, are unsure.
 */
void shadow_blocks_any(const struct mesh *tree, const struct shadow_blocks *blocks,
                       const struct vec3 *origins, size_t count, struct vec3 centre, double reach_m,
                       uint8_t *answers);

#endif
