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

struct light_cell {
    float clear_to, blocked_from; /* heights of points that need no look at the list */
};

/* Beside a tree's columns: cells and lists stand where they do there. */
struct light_blocks {
    struct light_block *blocks; /* of a cell from the lowest polygon on */
    float *least;               /* of each block and those behind it in its list */
    struct light_cell *cells;
    float doubt_m; /* what heights may be off by besides their rounding */
};

/*
 * Of a tree whose columns may be empty. is_loose: polygons whose heights mean nothing. False: no
 * memory, and there is nothing to free.
 */
bool light_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                       struct light_blocks *out);
void light_blocks_free(struct light_blocks *blocks); /* all zero is fine */
size_t light_blocks_bytes(const struct mesh *tree);

enum { LIGHT_CLEAR, LIGHT_BLOCKED, LIGHT_UNSURE };

/* Is a floor of the tree below each of at[count], places in its frame? */
void light_blocks_any(const struct mesh *tree, const struct light_blocks *blocks,
                      const struct vec3 *at, size_t count, uint8_t *answers);

#endif
