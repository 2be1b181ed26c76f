/*
 * The lookup table (LUT) of a floor grid: one load from a place to the blocks over it. Private to
 * terrain/. How and why: floor_grid_lut.c.
 */
#ifndef KOTA_TERRAIN_FLOOR_GRID_LUT_H
#define KOTA_TERRAIN_FLOOR_GRID_LUT_H

#include "terrain/mesh/floor_grid.h"

/*
 * An entry: 0 where there are no floors. Else from the lowest bit on: the first block (24 bits);
 * the number of blocks, at most LUT_BLOCKS_MAX (6 bits); LUT_FINEST less how many bits its cell is
 * finer than the root (2 bits). An inner cell has LUT_INNER and the bits of its grid's side as the
 * number, and the grid's first cell instead of the block; a leaf with a longer list LUT_LONG and
 * its cell. LUT_ELSE: look it up in the root. One row and one column more are for places outside of
 * all squares: 0 where the grid holds all floors, else LUT_ELSE.
 */
#define LUT_BLOCK 0x00ffffffu
#define LUT_KIND_SHIFT 24
#define LUT_KIND 63u
#define LUT_UNIT_SHIFT 30
enum {
    LUT_FINEST = 3,
    LUT_BLOCKS_MAX = 8, /* with more a list has a stack */
    LUT_LONG,
    LUT_INNER = 16
};
#define LUT_ELSE (LUT_KIND << LUT_KIND_SHIFT)

/* Makes the table of a grid that is otherwise complete; false without memory. O(cells).
 * crew  NULL: on the caller's thread */
bool floor_grid_lut_make(const struct mesh *mesh, struct floor_grid *grid, struct crew *crew);
size_t floor_grid_lut_bytes(const struct floor_grid *grid);

/* Each entry against the cells. */
bool floor_grid_lut_validate(const struct mesh *mesh);

#endif
