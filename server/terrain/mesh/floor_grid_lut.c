/*
 * The lookup table (LUT) of a floor grid.
 *
 * From a place to its blocks it is one cell of the root, one of its grid, sometimes more: each
 * known only from the one before, a multiplication and a load away. But the sides of grids are
 * powers of two, so all cells are made of squares of one size, or nearly all: a table of those
 * squares has the blocks at once, and how wide the cell is that the square is of. It is as fine as
 * leaves DEEPER_MOST of the ground to be looked up cell by cell, and at most FINEST bits finer than
 * the root. It follows from the cells and is made again with each edit, four bytes a square.
 */
#include "terrain/mesh/floor_grid_lut.h"

#include "terrain/mesh/floor_mask.h"

#include <math.h>
#include <stdlib.h>

#define DEEPER_MOST 0.01
enum { FINEST = 3, SQUARES_PER_CELL = 8 };

#define SAME_8(x) x, x, x, x, x, x, x, x
#define DOUBLE_2_52 0x4330000000000000

const struct floor_mask_constants floor_mask_constants = {
    .place = {0x3fff, 0x3fff},
    .upper = {0x3f80, 0x3f80},
    .below_hit = {SAME_8(SUM_HIT - 1), SAME_8(SUM_HIT - 1)},
    .below_certain = {SAME_8(SUM_CERTAIN - 1), SAME_8(SUM_CERTAIN - 1)},
    .zero = {DOUBLE_2_52, DOUBLE_2_52},
};

static unsigned side_bits(const struct column_cell *cell)
{
    return (unsigned)__builtin_ctz(cell->count & ~COLUMN_INNER);
}

/* Share of a cell's area in leaves more than `bits` levels below it. */
static double share_deeper(const struct floor_grid *c, const struct column_cell *cell, int bits)
{
    if (!(cell->count & COLUMN_INNER))
        return bits < 0;
    unsigned own = side_bits(cell);
    size_t cells = (size_t)1 << 2 * own;
    double sum = 0;

    for (size_t i = 0; i < cells; i++)
        sum += share_deeper(c, &c->cells[cell->first + i], bits - (int)own);
    return sum / (double)cells;
}

static unsigned bits_choose(const struct floor_grid *c)
{
    size_t root = (size_t)c->side * c->side;
    unsigned bits = 0;

    for (; bits < FINEST && root << 2 * (bits + 1) <= SQUARES_PER_CELL * c->cell_count; bits++) {
        double deeper = 0;

        for (size_t i = 0; i < root; i++)
            deeper += share_deeper(c, &c->cells[i], (int)bits);
        if (deeper <= DEEPER_MOST * (double)root)
            break;
    }
    return bits;
}

/* Of the square at (x, y) among 2^bits by 2^bits in a cell that is `level` bits below the root. */
static uint32_t entry_of(const struct floor_grid *c, const struct column_cell *cell, uint32_t x,
                         uint32_t y, unsigned bits, unsigned level)
{
    while ((cell->count & COLUMN_INNER) && side_bits(cell) <= bits) {
        unsigned own = side_bits(cell);

        bits -= own;
        level += own;
        cell = &c->cells[cell->first + ((y >> bits) << own) + (x >> bits)];
        x &= (1u << bits) - 1;
        y &= (1u << bits) - 1;
    }
    if (cell->count == 0)
        return 0;
    uint32_t shift = (COLUMN_PLACE - COLUMN_UNIT_BITS + 1 - level) << LUT_UNIT_SHIFT;
    uint32_t blocks = (cell->count + COLUMN_LANES - 1) / COLUMN_LANES;
    bool is_cell = blocks > 2; /* an inner one, too */
    size_t at = is_cell ? (size_t)(cell - c->cells) : cell->first;

    if (at > LUT_BLOCK)
        return LUT_ELSE;
    return (uint32_t)at | (is_cell ? 0 : blocks * COLUMN_LANES << LUT_LANES_SHIFT) | shift;
}

static uint32_t entry_at(const struct floor_grid *c, size_t index)
{
    unsigned bits = COLUMN_PLACE - c->square_shift;
    uint32_t x = (uint32_t)(index % c->stride), y = (uint32_t)(index / c->stride);
    uint32_t mask = (1u << bits) - 1;

    if (x == c->squares || y == c->squares)
        return LUT_ELSE;
    const struct column_cell *cell = &c->cells[(size_t)(y >> bits) * c->side + (x >> bits)];

    return entry_of(c, cell, x & mask, y & mask, bits, 0);
}

static void fixed_set(struct floor_grid *c)
{
    unsigned bits = COLUMN_PLACE;

    while ((uint64_t)c->side << bits > 1ull << 52)
        bits--;
    double per_place = ldexp(1, (int)bits - COLUMN_PLACE);
    unsigned finer = COLUMN_PLACE - c->square_shift;

    c->fixed = (struct lut_fixed){
        {c->scale_x * per_place, c->scale_y * per_place},
        {0x1p52 + c->place_0[0] * per_place, 0x1p52 + c->place_0[1] * per_place},
        {bits - finer, bits - finer},
        {c->squares, c->squares},
        {1, c->stride},
        {COLUMN_PLACE - bits, 0, 0, 0},
    };
}

static size_t entry_count(const struct floor_grid *grid)
{
    return (size_t)grid->stride * grid->stride;
}

bool floor_grid_lut_make(struct floor_grid *grid)
{
    unsigned bits = bits_choose(grid);

    grid->square_shift = COLUMN_PLACE - bits;
    grid->squares = grid->side << bits;
    grid->stride = grid->squares + 1;
    grid->lut = malloc(entry_count(grid) * sizeof *grid->lut);
    if (grid->lut == NULL)
        return false;
    for (size_t i = 0; i < entry_count(grid); i++)
        grid->lut[i] = entry_at(grid, i);
    fixed_set(grid);
    return true;
}

size_t floor_grid_lut_bytes(const struct floor_grid *grid)
{
    return entry_count(grid) * sizeof *grid->lut;
}

bool floor_grid_lut_validate(const struct floor_grid *grid)
{
    for (size_t i = 0; i < entry_count(grid); i++)
        if (grid->lut[i] != entry_at(grid, i))
            return false;
    return true;
}
