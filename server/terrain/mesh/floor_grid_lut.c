/*
 * The lookup table (LUT) of a floor grid.
 *
 * From a place to its blocks it is one cell of the root, one of its grid, sometimes more: each
 * known only from the one before, a multiplication and a load away. But the sides of grids are
 * powers of two, so all cells are made of squares of one size, or nearly all: a table of those
 * squares has the blocks at once, and how wide the cell is that the square is of; of a cell that is
 * divided further, its grid. It is as fine as
 * leaves DEEPER_MOST of the ground to be looked up cell by cell, and at most LUT_FINEST bits finer
 * than the root. Beside each entry is a byte, the height at which the floors of its square begin: a
 * point far below them all needs no block. Both follow from the cells and are made again with each
 * edit.
 */
#include "terrain/mesh/floor_grid_lut.h"

#include "base/huge.h"
#include "terrain/mesh/floor_mask.h"

#include <math.h>
#include <stdlib.h>

#define DEEPER_MOST 0.01
#define SQUARES_PER_FLOOR 1.0

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

static unsigned bits_choose(const struct floor_grid *c, uint64_t floors)
{
    size_t root = (size_t)c->side * c->side;
    unsigned bits = 0;

    for (; bits < LUT_FINEST &&
           (double)(root << 2 * (bits + 1)) <= SQUARES_PER_FLOOR * (double)floors;
         bits++) {
        double deeper = 0;

        for (size_t i = 0; i < root; i++)
            deeper += share_deeper(c, &c->cells[i], (int)bits);
        if (deeper <= DEEPER_MOST * (double)root)
            break;
    }
    return bits;
}

/* Where the square at (x, y) among 2^bits by 2^bits in a cell ends that is `level` bits below the
 * root: *level bits below it. */
static const struct column_cell *cell_under(const struct floor_grid *c,
                                            const struct column_cell *cell, uint32_t x, uint32_t y,
                                            unsigned bits, unsigned *level)
{
    while ((cell->count & COLUMN_INNER) && side_bits(cell) <= bits) {
        unsigned own = side_bits(cell);

        bits -= own;
        *level += own;
        cell = &c->cells[cell->first + ((y >> bits) << own) + (x >> bits)];
        x &= (1u << bits) - 1;
        y &= (1u << bits) - 1;
    }
    return cell;
}

/* Of a cell that is `level` bits below the root. */
static uint32_t entry_of(const struct floor_grid *c, const struct column_cell *cell, unsigned level)
{
    if (cell->count == 0)
        return 0;
    uint32_t kind = (cell->count + COLUMN_LANES - 1) / COLUMN_LANES;
    size_t at = cell->first;

    if (cell->count & COLUMN_INNER) {
        kind = LUT_INNER + side_bits(cell);
    } else if (kind > LUT_BLOCKS_MAX) {
        kind = LUT_LONG;
        at = (size_t)(cell - c->cells);
    }
    if (at > LUT_BLOCK)
        return LUT_ELSE;
    return (uint32_t)at | kind << LUT_KIND_SHIFT | (LUT_FINEST - level) << LUT_UNIT_SHIFT;
}

/* The least z of the floors below a cell. */
static float cell_low(const struct mesh *mesh, const struct column_cell *cell)
{
    const struct floor_grid *c = &mesh->grid;
    float low = INFINITY;

    if (cell->count & COLUMN_INNER) {
        for (size_t i = 0; i < (size_t)1 << 2 * side_bits(cell); i++)
            low = fminf(low, cell_low(mesh, &c->cells[cell->first + i]));
        return low;
    }
    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t polygon = *column_lane(&c->blocks[cell->first], cell->count, i).polygon;

        low = fminf(low, mesh_range(mesh, polygon & COLUMN_POLYGON).min);
    }
    return low;
}

struct lut_square {
    uint32_t entry;
    uint8_t low;
};

static struct lut_square square_at(const struct mesh *mesh, size_t index)
{
    const struct floor_grid *c = &mesh->grid;
    unsigned bits = COLUMN_PLACE - c->square_shift, level = 0;
    uint32_t x = (uint32_t)(index % c->stride), y = (uint32_t)(index / c->stride);
    uint32_t mask = (1u << bits) - 1;

    if (x == c->squares || y == c->squares)
        return (struct lut_square){floor_grid_holds(mesh) ? 0 : LUT_ELSE, 0};
    const struct column_cell *cell = &c->cells[(size_t)(y >> bits) * c->side + (x >> bits)];

    cell = cell_under(c, cell, x & mask, y & mask, bits, &level);
    return (struct lut_square){
        entry_of(c, cell, level),
        (uint8_t)(cell->count > 0 ? floor_low(c, (double)cell_low(mesh, cell)) : 0)};
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
        {bits - COLUMN_UNIT_BITS + 1 - LUT_FINEST, 0, 0, 0},
    };
}

static size_t entry_count(const struct floor_grid *grid)
{
    return (size_t)grid->stride * grid->stride;
}

bool floor_grid_lut_make(const struct mesh *mesh, struct floor_grid *grid)
{
    unsigned bits = bits_choose(grid, mesh->header->count[MESH_POLYGONS]);

    grid->square_shift = COLUMN_PLACE - bits;
    grid->squares = grid->side << bits;
    grid->stride = grid->squares + 1;
    grid->lut = huge_alloc(entry_count(grid) * sizeof *grid->lut);
    grid->lows = huge_alloc(entry_count(grid) * sizeof *grid->lows);
    if (grid->lut == NULL || grid->lows == NULL)
        return false;
    for (size_t i = 0; i < entry_count(grid); i++) {
        struct lut_square square = square_at(mesh, i);

        grid->lut[i] = square.entry;
        grid->lows[i] = square.low;
    }
    fixed_set(grid);
    return true;
}

size_t floor_grid_lut_bytes(const struct floor_grid *grid)
{
    return entry_count(grid) * (sizeof *grid->lut + sizeof *grid->lows);
}

bool floor_grid_lut_validate(const struct mesh *mesh)
{
    const struct floor_grid *grid = &mesh->grid;

    for (size_t i = 0; i < entry_count(grid); i++) {
        struct lut_square square = square_at(mesh, i);

        if (grid->lut[i] != square.entry || grid->lows[i] != square.low)
            return false;
    }
    return true;
}
