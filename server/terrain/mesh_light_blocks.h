/*
 * What the columns of a light's tree tell of shadows without looking at a polygon. Inside of the
 * room only. How: mesh_light_blocks.c.
 */
#ifndef KOTA_TERRAIN_MESH_LIGHT_BLOCKS_H
#define KOTA_TERRAIN_MESH_LIGHT_BLOCKS_H

#include "terrain/mesh_data.h"

/*
 * Eight polygons in a cell: their edges as in struct column_block, and their heights at the place
 * (x, y) of the cell, z + x_unit x + y_unit y metres in the tree's frame; NaN: the height means
 * nothing.
 */
struct light_block {
    _Alignas(64) int8_t ab[COLUMN_EDGES][COLUMN_LANES][2];
    int16_t c[COLUMN_EDGES][COLUMN_LANES];
    float z[COLUMN_LANES], x_unit[COLUMN_LANES], y_unit[COLUMN_LANES];
};

_Static_assert(sizeof(struct light_block) == 192, "a block is three cache lines");

/*
 * A cell, 16 bytes, so that a look at it is one cache line. Of a grid: LIGHT_INNER | log2 of its
 * side << LIGHT_SIDE_SHIFT | its first cell; its heights say clear. Of a list: its first block, and
 * the heights of points that need no look at the list, or at no more than one block.
 */
struct light_cell {
    uint32_t first;
    float clear_to, blocked_from; /* NaN: clear whatever the height */
    float more_from; /* below it what follows the first block does not matter; NaN: nothing does */
};

#define LIGHT_INNER 0x80000000u
#define LIGHT_FIRST 0x0fffffffu
#define LIGHT_SIDE_SHIFT 28

/* Beside a tree's columns: cells and lists stand where they do there. */
struct light_blocks {
    struct light_block *blocks; /* of a cell from the lowest polygon on */
    float *more_from;           /* of each block: as a cell's */
    struct light_cell *cells;
    uint32_t *roots; /* the cells of the root, which are all grids, without the rest: few lines */
    float doubt_m;   /* what heights may be off by besides their rounding */
};

/*
 * Of a tree whose columns may be empty. is_loose: polygons whose heights mean nothing. False: no
 * memory, and there is nothing to free.
 */
bool light_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                       struct light_blocks *out);
void light_blocks_free(struct light_blocks *blocks); /* all zero is fine */
size_t light_blocks_bytes(const struct mesh *tree);

enum { LIGHT_CLEAR, LIGHT_BLOCKED, LIGHT_UNSURE }; /* LIGHT_BLOCKED | LIGHT_UNSURE: blocked */

/*
 * Is a floor of the tree below each of origins[count], places around `centre` in the locale's
 * frame? Those farther from it than reach_m in any coordinate, and no numbers, are unsure.
 */
void light_blocks_any(const struct mesh *tree, const struct light_blocks *blocks,
                      const struct vec3 *origins, size_t count, struct vec3 centre, double reach_m,
                      uint8_t *answers);

#endif
