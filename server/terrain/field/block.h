/*
 * Blocks: 257×257 samples of one level of a heightfield, as nested grids and pictures want them.
 *
 * Level L keeps every 2^L-th sample, or the least or greatest of the 2^L × 2^L samples that begin
 * there; the last level is the one where a single cell spans the field. A block has 256×256 cells
 * of its level and shares its last row and column with the next ones. Beyond the field and in holes
 * there is NaN.
 */
#ifndef KOTA_TERRAIN_BLOCK_H
#define KOTA_TERRAIN_BLOCK_H

#include "terrain/field/heightfield.h"

enum { BLOCK_CELLS = 256, BLOCK_SIDE = 257, BLOCK_SAMPLES = BLOCK_SIDE * BLOCK_SIDE };

enum block_kind { BLOCK_SAMPLED, BLOCK_MIN, BLOCK_MAX };

struct block_place {
    uint32_t level, column, row;
    enum block_kind kind;
};

/* The last level. O(1). */
uint32_t block_level_last(const struct heightfield_spec *spec);

/* How many blocks a level up to the last has. */
void block_count(const struct heightfield_spec *spec, uint32_t level, uint32_t *columns,
                 uint32_t *rows);

/*
 * The samples [257][257], row 0 at the smallest y; every NaN has the same bits. The place is one of
 * the field's. O(257²), for the least and greatest times the cost of heightfield_range.
 */
void block_read(const struct heightfield *field, const struct block_place *place, float *samples);

/* How many tiles of the field hold a sample of the block. O(1). */
uint64_t block_tile_count(const struct heightfield *field, const struct block_place *place);

/*
 * 128 bits over the serials of those tiles, in order, and the field's size: while they stay, so do
 * the block's samples. An edit changes it for the blocks that read a tile it remakes and for no
 * other. O(block_tile_count).
 */
void block_source(const struct heightfield *field, const struct block_place *place,
                  uint64_t source[2]);

/*
 * The same of the tiles that hold cells column0..column1 × row0..row1, which are in the field.
 */
void block_source_of_cells(const struct heightfield *field, uint32_t column0, uint32_t row0,
                           uint32_t column1, uint32_t row1, uint64_t source[2]);

#endif
