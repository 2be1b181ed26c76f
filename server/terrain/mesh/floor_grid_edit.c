/*
 * Where a few polygons come or go, the cells of the root that they touch are made again, after the
 * others; all else is of the mesh that was edited. The memory of the old cells stays unused until
 * it is half of all, or until the grid is built again.
 */
#include "terrain/mesh/floor_grid_cells.h"

#include "base/huge.h"
#include "base/array_reserve.h"
#include "terrain/mesh/floor_grid_lut.h"
#include "terrain/mesh/mesh_stack.h"

#include <stdlib.h>
#include <string.h>

/* Where each block is two cache lines, and one more, which vectors may read. */
static bool blocks_align(struct floor_grid *out)
{
    size_t bytes = out->block_count * sizeof *out->blocks;
    struct column_block *aligned = huge_alloc(bytes + sizeof *aligned);

    if (aligned == NULL)
        return false;
    if (bytes > 0)
        memcpy(aligned, out->blocks, bytes);
    memset(&aligned[out->block_count], 0, sizeof *aligned);
    free(out->blocks);
    out->blocks = aligned;
    return true;
}

/* Copies, with other indices where polygons are gone. */
static bool cells_copy(struct floor_grid *out, const struct floor_grid *old, const uint32_t *map,
                       struct grid_maker *m)
{
    size_t blocks = old->block_count + old->block_count / 64 + 64;

    *out = *old;
    out->lut = NULL;
    out->lows = NULL;
    out->cells = huge_alloc(old->cell_count * sizeof *out->cells);
    out->blocks = huge_alloc(blocks * sizeof *out->blocks);
    *m = (struct grid_maker){.mesh = m->mesh,
                             .grid = out,
                             .cells = out->cells,
                             .blocks = out->blocks,
                             .cell_count = old->cell_count,
                             .cell_capacity = old->cell_count,
                             .block_count = old->block_count,
                             .block_capacity = blocks,
                             .leaf_refs = m->mesh->header->max_polygons,
                             .refs = old->refs};
    if (!out->cells || !out->blocks)
        return false;
    memcpy(out->cells, old->cells, old->cell_count * sizeof *out->cells);
    memcpy(out->blocks, old->blocks, old->block_count * sizeof *out->blocks);
    for (size_t i = 0; map && i < old->cell_count; i++) {
        const struct column_cell *cell = &out->cells[i];

        for (uint32_t k = 0; !(cell->count & COLUMN_INNER) && k < cell->count; k++) {
            uint32_t *id = column_lane(&out->blocks[cell->first], cell->count, k).polygon;
            uint32_t was = *id & COLUMN_POLYGON;

            if (was != COLUMN_NONE)
                *id = (*id & ~COLUMN_POLYGON) | (map[was] & COLUMN_POLYGON);
        }
    }
    return true;
}

/* The polygons in a cell's leaves that are still there, some of them several times. */
struct gathered {
    uint32_t *list;
    size_t count, capacity;
    uint64_t refs;
    size_t blocks;
};

static bool gather(const struct grid_maker *c, size_t at, struct gathered *out)
{
    const struct column_cell *cell = &c->cells[at];
    uint32_t side = cell->count & ~COLUMN_INNER;

    if (cell->count & COLUMN_INNER) {
        for (size_t i = 0; i < (size_t)side * side; i++)
            if (!gather(c, cell->first + i, out))
                return false;
        return true;
    }
    out->refs += cell->count;
    out->blocks += stack_blocks(cell->count);
    if (!array_reserve((void **)&out->list, &out->capacity, out->count + cell->count,
                       sizeof *out->list))
        return false;
    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t id = *column_lane(&c->blocks[cell->first], cell->count, i).polygon;

        out->list[out->count] = id & COLUMN_POLYGON;
        out->count += (id & COLUMN_POLYGON) != COLUMN_NONE;
    }
    return true;
}

static int by_index(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void drop_doubles(struct gathered *g)
{
    size_t kept = 0;

    if (g->count > 0)
        qsort(g->list, g->count, sizeof *g->list, by_index);
    for (size_t i = 0; i < g->count; i++)
        if (i == 0 || g->list[i] != g->list[kept - 1])
            g->list[kept++] = g->list[i];
    g->count = kept;
}

/* One cell of the root again, with the added polygons of pairs[count] that reach into it. */
static void root_cell_remake(struct grid_maker *m, size_t at, const struct grid_pair *pairs,
                             size_t count)
{
    const struct floor_grid *grid = m->grid;
    const struct box2 box = {grid->x_min, grid->y_min, grid->x_max, grid->y_max};
    struct gathered g = {.count = 0};
    uint32_t side = grid->side;

    if (!gather(m, at, &g) ||
        !array_reserve((void **)&g.list, &g.capacity, g.count + count + 1, sizeof *g.list)) {
        m->is_short = true;
        free(g.list);
        return;
    }
    for (size_t i = 0; i < count; i++)
        g.list[g.count++] = pairs[i].polygon;
    drop_doubles(&g);
    m->refs -= g.refs;
    m->unused_blocks += g.blocks;
    struct grid_open_cell open = {
        .box = grid_cell_box(&box, side, (uint32_t)at % side, (uint32_t)at / side),
        .list = g.list,
        .count = (uint32_t)g.count,
        .level = 1,
        .bits = floor_grid_root_bits(side),
        .place = at,
    };
    grid_cell_make(m, &open);
    free(g.list);
}

static int by_cell(const void *a, const void *b)
{
    const struct grid_pair *x = a, *y = b;

    return x->cell != y->cell ? (x->cell > y->cell) - (x->cell < y->cell)
                              : (x->polygon > y->polygon) - (x->polygon < y->polygon);
}

/* The cells that something is gone from, once each or more, as pairs with COLUMN_NONE; and pairs of
 * those that something comes into. False: too many, or no memory. */
static bool changed_cells(const struct grid_maker *m, const struct floor_grid_change *change,
                          struct grid_pairs *pairs)
{
    const struct floor_grid *grid = m->grid;
    const struct box2 box = {grid->x_min, grid->y_min, grid->x_max, grid->y_max};
    struct grid_net net = grid_net_of(&box, grid->side, m->mesh->header->near);
    uint32_t polygons = (uint32_t)m->mesh->header->count[MESH_POLYGONS];

    for (size_t i = 0; i < change->gone_count; i++) {
        struct cell_range range = grid_cells_of(&net, &change->gone[i]);
        size_t cells = (size_t)(range.row1 - range.row0 + 1) * (range.column1 - range.column0 + 1);

        if (pairs->count + cells > pairs->most ||
            !array_reserve((void **)&pairs->at, &pairs->capacity, pairs->count + cells,
                           sizeof *pairs->at))
            return false;
        for (uint32_t row = range.row0; row <= range.row1; row++)
            for (uint32_t column = range.column0; column <= range.column1; column++)
                pairs->at[pairs->count++] =
                    (struct grid_pair){row * grid->side + column, COLUMN_NONE};
    }
    for (uint32_t i = change->first_added; i < polygons; i++)
        if (grid_is_floor(m->mesh, i) && !grid_pairs_add(pairs, m->mesh, &net, i))
            return false;
    return true;
}

static void cells_remake(struct grid_maker *m, struct grid_pair *pairs, size_t count)
{
    if (count > 0)
        qsort(pairs, count, sizeof *pairs, by_cell);
    for (size_t i = 0, end; i < count && !m->is_short; i = end) {
        for (end = i; end < count && pairs[end].cell == pairs[i].cell; end++)
            continue;
        size_t added = end; /* removed ones have the greatest index */

        while (added > i && pairs[added - 1].polygon == COLUMN_NONE)
            added--;
        root_cell_remake(m, pairs[i].cell, pairs + i, added - i);
    }
}

enum err_code floor_grid_edit(struct mesh *mesh, const struct mesh *old,
                              const struct floor_grid_change *change,
                              const struct mesh_making *making, struct err *err)
{
    struct floor_grid *out = &mesh->grid;
    uint64_t polygons = mesh->header->count[MESH_POLYGONS];
    uint64_t refs_max = (uint64_t)GRID_REFS_PER_FLOOR * polygons + 2 * GRID_REFS_FREE;
    struct grid_maker m = {.mesh = mesh, .unused_blocks = old->grid.unused_blocks};

    if (old->grid.side == 0 || polygons >= GRID_POLYGONS_MAX)
        return floor_grid_make(mesh, making, err);
    bool is_short = !cells_copy(out, &old->grid, change->map, &m);
    struct grid_pairs pairs = {.most = (size_t)out->side * out->side / 2 + 64,
                               .tests_most = (uint64_t)out->side * out->side + 64 * GRID_REFS_FREE};

    m.refs_left = refs_max > m.refs ? refs_max - m.refs : 0;
    bool is_little = !is_short && changed_cells(&m, change, &pairs);

    if (is_little)
        cells_remake(&m, pairs.at, pairs.count);
    free(pairs.at);
    out->cells = m.cells;
    out->blocks = m.blocks;
    out->cell_count = m.cell_count;
    out->block_count = m.block_count;
    out->unused_blocks = m.unused_blocks;
    out->refs = m.refs;
    if (is_little && !m.is_short && out->refs <= refs_max &&
        out->unused_blocks <= out->block_count / 2 + 1024 && blocks_align(out) &&
        floor_grid_lut_make(mesh, out, NULL))
        return err->code = ERR_OK;
    floor_grid_free(out);
    return floor_grid_make(mesh, making, err);
}
