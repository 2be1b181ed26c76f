/*
 * The lookup table (LUT) of a floor grid.
 *
 * From a place to its blocks it is one cell of the root, one of its grid, sometimes more: each
 * known only from the one before, a multiplication and a load away. But the sides of grids below
 * the root are powers of two, so all cells are made of squares of one size, or nearly all: a table
 * of those squares has the blocks at once, and how wide the cell is that the square is of; of a
 * cell that is divided further, its grid. It is as fine as leaves DEEPER_MOST of the ground to be
 * looked up cell by cell, or hardly more than the finest table would, which has SQUARES_PER_FLOOR
 * and is at most LUT_FINEST bits finer than the root. Beside each entry is a byte, the height at
 * which the floors of its square begin: a point far below them all needs no block. Both follow from
 * the cells and are made again with each edit.
 */
#include "terrain/mesh/floor_grid_lut.h"

#include "base/huge.h"
#include "terrain/crew.h"
#include "terrain/mesh/floor_mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEEPER_MOST 0.01
#define DEEPER_TIMES 1.2 /* as much as by the finest table */
#define SQUARES_PER_FLOOR 1.0

enum { PART_SQUARES = 1 << 15 }; /* of a part of the work */

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

/* The same for all of the root, in its cells. */
static double root_deeper(const struct floor_grid *c, unsigned bits)
{
    double deeper = 0;

    for (size_t i = 0; i < (size_t)c->side * c->side; i++)
        deeper += share_deeper(c, &c->cells[i], (int)bits);
    return deeper;
}

/* The coarsest that is about as good as the finest. */
static unsigned bits_choose(const struct floor_grid *c, uint64_t floors)
{
    size_t root = (size_t)c->side * c->side;
    unsigned bits = 0, finest = 0;

    while (finest < LUT_FINEST &&
           (double)(root << 2 * (finest + 1)) <= SQUARES_PER_FLOOR * (double)floors)
        finest++;
    double most = fmax(DEEPER_MOST * (double)root, DEEPER_TIMES * root_deeper(c, finest));

    while (bits < finest && root_deeper(c, bits) > most)
        bits++;
    return bits;
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

static inline float lower(float a, float b)
{
    return b < a ? b : a; /* fminf is a call */
}

/* The least z of the floors below a cell. */
static float cell_low(const struct mesh *mesh, const struct column_cell *cell)
{
    const struct floor_grid *c = &mesh->grid;
    float low = INFINITY;

    if (cell->count & COLUMN_INNER) {
        for (size_t i = 0; i < (size_t)1 << 2 * side_bits(cell); i++)
            low = lower(low, cell_low(mesh, &c->cells[cell->first + i]));
        return low;
    }
    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t polygon = *column_lane(&c->blocks[cell->first], cell->count, i).polygon;

        low = lower(low, mesh_range(mesh, polygon & COLUMN_POLYGON).min);
    }
    return low;
}

struct lut_work {
    const struct mesh *mesh;
    struct floor_grid *grid;
    unsigned bits;      /* of the squares of a cell of the root */
    uint32_t part_rows; /* of the root */
};

/* The squares of a cell that is `level` bits below the root: 2^bits by 2^bits from (x, y) on. */
static void squares_put(const struct lut_work *w, const struct column_cell *cell, uint32_t x,
                        uint32_t y, unsigned bits, unsigned level)
{
    struct floor_grid *c = w->grid;
    uint32_t entry;
    uint8_t low;

    if ((cell->count & COLUMN_INNER) && side_bits(cell) <= bits) {
        unsigned own = side_bits(cell), rest = bits - own;

        for (uint32_t i = 0; i < 1u << 2 * own; i++)
            squares_put(w, &c->cells[cell->first + i], x + ((i & ((1u << own) - 1)) << rest),
                        y + ((i >> own) << rest), rest, level + own);
        return;
    }
    entry = entry_of(c, cell, level);
    low = (uint8_t)(cell->count > 0 ? floor_low(c, (double)cell_low(w->mesh, cell)) : 0);
    for (uint32_t row = y; row < y + (1u << bits); row++)
        for (uint32_t column = x; column < x + (1u << bits); column++) {
            c->lut[(size_t)row * c->stride + column] = entry;
            c->lows[(size_t)row * c->stride + column] = low;
        }
}

static void rows_work(void *context, size_t part)
{
    const struct lut_work *w = context;
    uint32_t side = w->grid->side, begin = (uint32_t)part * w->part_rows;

    for (uint32_t row = begin; row < begin + w->part_rows && row < side; row++)
        for (uint32_t column = 0; column < side; column++)
            squares_put(w, &w->grid->cells[(size_t)row * side + column], column << w->bits,
                        row << w->bits, w->bits, 0);
}

/* The row and the column after the last. */
static void border_put(struct floor_grid *c, uint32_t entry)
{
    for (size_t i = 0; i < c->stride; i++) {
        size_t above = (size_t)c->squares * c->stride + i, beside = i * c->stride + c->squares;

        c->lut[above] = c->lut[beside] = entry;
        c->lows[above] = c->lows[beside] = 0;
    }
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

bool floor_grid_lut_make(const struct mesh *mesh, struct floor_grid *grid, struct crew *crew)
{
    unsigned bits = bits_choose(grid, mesh->header->count[MESH_POLYGONS]);
    struct lut_work work = {mesh, grid, bits, (PART_SQUARES >> bits) / (grid->side + 1) + 1};
    struct err err = {.code = ERR_OK};

    grid->square_shift = COLUMN_PLACE - bits;
    grid->squares = grid->side << bits;
    grid->stride = grid->squares + 1;
    grid->lut = huge_alloc(entry_count(grid) * sizeof *grid->lut);
    grid->lows = huge_alloc(entry_count(grid) * sizeof *grid->lows);
    if (grid->lut == NULL || grid->lows == NULL)
        return false;
    border_put(grid, floor_grid_holds(mesh) ? 0 : LUT_ELSE);
    crew_run(crew, NULL, rows_work, &work, (grid->side + work.part_rows - 1) / work.part_rows,
             &err);
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
    struct floor_grid again = *grid;
    bool is_good = floor_grid_lut_make(mesh, &again, NULL) &&
                   again.square_shift == grid->square_shift &&
                   memcmp(again.lut, grid->lut, entry_count(grid) * sizeof *grid->lut) == 0 &&
                   memcmp(again.lows, grid->lows, entry_count(grid) * sizeof *grid->lows) == 0;

    free(again.lut);
    free(again.lows);
    return is_good;
}
