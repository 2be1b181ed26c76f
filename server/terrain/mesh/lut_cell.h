/*
 * A point's square in the lookup table of a floor grid (floor_grid_lut.h), and its blocks. For the
 * kernels of vertical queries.
 */
#ifndef KOTA_TERRAIN_LUT_CELL_H
#define KOTA_TERRAIN_LUT_CELL_H

#include "terrain/mesh/floor_mask.h"
#include "terrain/mesh/floor_grid_lut.h"

/* A point's blocks and its place in their cell. */
struct spot {
    const struct column_block *blocks;
    size_t lanes; /* 8, 16, or 0: look it up in the cells */
    u64x2 place;  /* as floor_mask_of */
};

/* A point's place in the root (lut_fixed); outside, NaN or too large: beyond all squares. */
ALWAYS_INLINE u64x2 lut_place(const struct floor_grid *grid, double x, double y)
{
    const struct lut_fixed *fixed = &grid->fixed;
    f64x2 place = f64x2_fma((f64x2){x, y}, f64x2_load(fixed->scale), f64x2_load(fixed->zero));

    return (u64x2)place - u64x2_load(floor_mask_constants.zero);
}

/* The index of a place's square. */
ALWAYS_INLINE size_t lut_square(const struct floor_grid *grid, u64x2 place)
{
    const struct lut_fixed *fixed = &grid->fixed;
    u64x2 square = u64x2_shift_right(place, u64x2_load(fixed->square_shift));

    square = u64x2_min32(square, u64x2_load(fixed->last));
    return u64x2_sum(u64x2_mul_low32(square, u64x2_load(fixed->steps)));
}

/* Of an entry without blocks: any, and not to be used. */
ALWAYS_INLINE struct spot lut_spot(const struct floor_grid *grid, uint32_t entry, u64x2 place)
{
    u32x4 shift = (u32x4){entry, 0, 0, 0} >> LUT_UNIT_SHIFT;
    u64x2 coarser;

    memcpy(&coarser, grid->fixed.coarser, sizeof coarser);
    return (struct spot){
        .blocks = grid->blocks + (entry & LUT_BLOCK),
        .lanes = entry >> LUT_LANES_SHIFT & LUT_LANES,
        .place = u64x2_shift_right(place, (u64x2)(shift - (u32x4)coarser)),
    };
}

/* From the entry's cell down to its leaf; of an entry that has a cell. */
ALWAYS_INLINE struct place lut_leaf(const struct mesh *mesh, uint32_t entry, u64x2 in_root)
{
    const struct floor_grid *grid = &mesh->grid;
    unsigned level = UNIT_SHIFT + 1 - (entry >> LUT_UNIT_SHIFT);
    unsigned finer = grid->fixed.coarser[0] + level;
    struct place place = {grid->cells + (entry & LUT_BLOCK), (in_root[0] << finer) & PLACE_MASK,
                          (in_root[1] << finer) & PLACE_MASK};

    while (place.cell->count & COLUMN_INNER)
        place = place_inside(mesh, place);
    return place;
}

#endif
