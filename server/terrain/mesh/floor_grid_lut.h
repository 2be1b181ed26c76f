/*
 * The lookup table (LUT) of a floor grid: one load from a place to the blocks over it. Private to
 * terrain/. How and why: floor_grid_lut.c.
 */
#ifndef KOTA_TERRAIN_FLOOR_GRID_LUT_H
#define KOTA_TERRAIN_FLOOR_GRID_LUT_H

#include "terrain/mesh/floor_grid.h"

/*
 * An entry: 0 where there are no floors. Else from the lowest bit on: the first block (24 bits); 1,
 * one block, 2, a pair (2 bits); how far a place in cells of the root is shifted to be one in the
 * cell, in two units (6 bits, not 0). Where it is neither one block nor a pair: 0 in those two
 * bits, and the cell, inner or with a longer list, instead of the block; or LUT_ELSE: look it up in
 * the root. One row and one column more are for places outside of all squares: 0 where the grid
 * holds all floors, else LUT_ELSE.
 */
#define LUT_BLOCK 0x00ffffffu
#define LUT_LANES_SHIFT 21 /* leaves the number of lanes */
#define LUT_LANES 24u
#define LUT_UNIT_SHIFT 26
#define LUT_ELSE (1u << LUT_UNIT_SHIFT)

/* Makes the table of a grid that is otherwise complete; false without memory. O(cells). */
bool floor_grid_lut_make(const struct mesh *mesh, struct floor_grid *grid);
size_t floor_grid_lut_bytes(const struct floor_grid *grid);

/* Each entry against the cells. */
bool floor_grid_lut_validate(const struct mesh *mesh);

#endif
