/*
 * What the columns of a light's tree tell of shadows without looking at a polygon. Inside of the
 * room only. How: mesh_light_blocks.c.
 */
#ifndef KOTA_TERRAIN_MESH_LIGHT_BLOCKS_H
#define KOTA_TERRAIN_MESH_LIGHT_BLOCKS_H

#include "terrain/mesh_data.h"

/*
 * The heights of a column block's polygons at the place (x, y) of its cell: z + x_unit x + y_unit y
 * metres in the tree's frame, off by less than doubt.
 */
struct light_heights {
    _Alignas(32) float z[COLUMN_LANES];
    float x_unit[COLUMN_LANES], y_unit[COLUMN_LANES], doubt[COLUMN_LANES];
};

/*
 * Of each block of the tree's columns, whose count may be 0. is_loose: polygons whose heights mean
 * nothing; doubt_m: what else heights may be off by. NULL: no memory.
 */
struct light_heights *light_heights_make(const struct mesh *tree, const uint8_t *is_loose,
                                         double doubt_m);

enum { LIGHT_CLEAR, LIGHT_BLOCKED, LIGHT_UNSURE };

/* Is a floor of the tree below each of at[count], places in its frame? */
void light_blocks_any(const struct mesh *tree, const struct light_heights *heights,
                      const struct vec3 *at, size_t count, uint8_t *answers);

#endif
