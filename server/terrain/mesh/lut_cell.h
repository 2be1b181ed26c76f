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
    size_t lanes; /* lut_is_pair: to be used; else none, or of another kind of entry */
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

_Static_assert(LUT_BLOCKS_MAX *COLUMN_LANES == STACK_LEAST, "longer lists have a stack");

/* Is it one block or a pair? */
ALWAYS_INLINE bool lut_is_pair(size_t lanes)
{
    return lanes - COLUMN_LANES <= COLUMN_LANES;
}

/* Of an entry of another kind: any, and not to be used. */
ALWAYS_INLINE struct spot lut_spot(const struct floor_grid *grid, uint32_t entry, u64x2 place)
{
    u32x4 shift = (u32x4){entry, 0, 0, 0} >> LUT_UNIT_SHIFT;
    u64x2 finest;

    memcpy(&finest, grid->fixed.unit_shift, sizeof finest);
    return (struct spot){
        .blocks = grid->blocks + (entry & LUT_BLOCK),
        .lanes = entry >> (LUT_KIND_SHIFT - 3) & LUT_KIND << 3,
        .place = u64x2_shift_right(place, (u64x2)(shift + (u32x4)finest)),
    };
}

/* The list of the leaf that an entry leads to, neither 0 nor LUT_ELSE. */
ALWAYS_INLINE struct floor_list lut_list(const struct mesh *mesh, uint32_t entry, u64x2 in_root)
{
    const struct floor_grid *grid = &mesh->grid;
    uint32_t kind = entry >> LUT_KIND_SHIFT & LUT_KIND, at = entry & LUT_BLOCK;
    unsigned shift = (entry >> LUT_UNIT_SHIFT) + grid->fixed.unit_shift[0];
    unsigned finer = UNIT_SHIFT + 1 - shift;
    struct column_cell inner = {at, COLUMN_INNER | 1u << (kind & (LUT_INNER - 1))};
    struct place place = {&inner, (in_root[0] << finer) & PLACE_MASK,
                          (in_root[1] << finer) & PLACE_MASK};

    if (kind <= LUT_BLOCKS_MAX)
        return (struct floor_list){at, kind * COLUMN_LANES, in_root >> shift};
    if (kind == LUT_LONG)
        place.cell = grid->cells + at;
    place_descend(mesh, &place);
    return place_list(&place);
}

#endif
