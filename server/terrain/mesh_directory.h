/*
 * The directory of a mesh's columns: one look-up from a place to the blocks over it. Inside of the
 * room only. What it is and why: mesh_directory.c.
 */
#ifndef KOTA_TERRAIN_MESH_DIRECTORY_H
#define KOTA_TERRAIN_MESH_DIRECTORY_H

#include "terrain/mesh_columns.h"

/*
 * An entry: 0 where there are no floors. Else from the lowest bit on: the first block (24 bits); 1,
 * one block, 2, a pair (2 bits); how far a place in cells of the root is shifted to be one in the
 * cell, in two units (6 bits, not 0). Where it is neither one block nor a pair: 0 in those two
 * bits, and the cell, inner or with a longer list, instead of the block; or DIRECTORY_ELSE: ask the
 * root. One row and one column more, of DIRECTORY_ELSE, are for what is outside of all squares.
 */
#define DIRECTORY_BLOCK 0x00ffffffu
#define DIRECTORY_LANES_SHIFT 21 /* leaves the number of lanes */
#define DIRECTORY_LANES 24u
#define DIRECTORY_UNIT_SHIFT 26
#define DIRECTORY_ELSE (1u << DIRECTORY_UNIT_SHIFT)

/* Makes the directory of columns that are otherwise whole; false without memory. O(cells). */
bool mesh_directory_make(struct mesh_columns *columns);
size_t mesh_directory_bytes(const struct mesh_columns *columns);

/* Each entry against the cells. */
bool mesh_directory_validate(const struct mesh_columns *columns);

#endif
