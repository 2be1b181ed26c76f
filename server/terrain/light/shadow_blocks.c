/*
 * Shadows by the floor grid only.
 *
 * Whether anything is between a point and a light needs neither the nearest polygon nor its height:
 * one that is certain is enough. A block of the tree's floor grid (floor_grid.c) proves by small
 * integers which of eight polygons are over the place. Here are these integers and beside them
 * the planes of the polygons in the cell's own coordinates, in single precision; their
 * errors are computed from their slopes. So eight polygons are decided together in three cache
 * lines, and no polygon, line or vertex is read:
 *
 *   over the place and certainly in front: blocked, and the rest of the list does not matter
 *   beside the place, or certainly behind it: nothing
 *   near an edge, or at the point's own height within the bound: unsure, unless another one blocks
 *
 * A list that runs out without an unsure one is clear. An unsure point is decided by the tree
 * (shadow_index.c).
 *
 * Much is decided before any block. A list runs from the polygon that begins lowest in the cell,
 * for low polygons block; beside each block is the least height of those that follow it: a point
 * below that has nothing more in front. And a cell that one polygon covers whole has a height
 * over which all is blocked. On real terrains that leaves 1.1 to 2.1 blocks of 1.2 to 7.5.
 *
 * A block's place is whole units of 2^-15 of the cell, cut off: the point itself is less than one
 * unit from there, which is in the bound, as are the roundings of float. The edges' integers allow
 * for the slack and all rounding (COLUMN_DOUBT); SHADOW_MARGIN adds what makes "inside" mean inside
 * by two slacks: a slack is less than 2^-20 of a cell, half a unit is 64.
 *
 * Heights in another precision could be unsure more often, never wrong. Here the blocks are made;
 * the queries are a kernel (kernels/shadow_query.c).
 */
#include "terrain/light/shadow_blocks.h"

#include "base/huge.h"
#include "terrain/kernels/kernels.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

/* A polygon in a cell. */
struct entry {
    uint32_t at; /* in the columns' list */
    float z, x_unit, y_unit, least;
};

struct maker {
    const struct mesh *tree;
    const uint8_t *is_loose;
    struct shadow_blocks *out;
    struct entry *entries; /* room for the longest list */
};

static float float_under(double value)
{
    return nextafterf((float)value, -INFINITY);
}

static struct entry entry_of(const struct maker *m, const struct column_lane *lane, uint32_t at,
                             const struct box2 *box, double *most)
{
    uint32_t polygon = *lane->polygon & COLUMN_POLYGON;
    const struct mesh_polygon *p = &m->tree->polygons[polygon];
    double x = (box->x_min + box->x_max) / 2, y = (box->y_min + box->y_max) / 2;
    double z =
        p->height + p->slope_x * (x - (double)p->x_min) + p->slope_y * (y - (double)p->y_min);
    double dx = p->slope_x * (box->x_max - box->x_min) / COLUMN_UNIT;
    double dy = p->slope_y * (box->y_max - box->y_min) / COLUMN_UNIT;
    double slope = fabs(dx) + fabs(dy), reach = slope * COLUMN_UNIT / 2;
    double least =
        fmax(z - reach, (double)mesh_range(m->tree, polygon).min - (double)m->out->doubt_m);
    double uncertain = (double)m->out->doubt_m + 2.5 * slope +
                       2 * (double)SHADOW_DOUBT_HEIGHT * (fabs(z) + reach + fabs(least));

    *most = z + reach + uncertain;
    if (m->is_loose[polygon]) {
        *most = INFINITY;
        return (struct entry){at, NAN, NAN, NAN, -INFINITY};
    }
    return (struct entry){at, (float)z, (float)dx, (float)dy, float_under(least - uncertain)};
}

/* Do the integers say that the polygon covers the cell? Edges that do not cut it are left out. */
static bool is_cover(const struct column_lane *lane)
{
    for (unsigned k = 0; k < COLUMN_EDGES; k++)
        if (lane->ab[k * lane->step] != 0 || lane->ab[k * lane->step + 1] != 0 ||
            lane->c[k * lane->step / 2] * (1 << COLUMN_SHIFT) < 2 * COLUMN_DOUBT + SHADOW_MARGIN)
            return false;
    return true;
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;

    if (p->least != q->least)
        return p->least < q->least ? -1 : 1;
    return p->at < q->at ? -1 : 1;
}

static void lane_fill(const struct column_lane *from, const struct entry *entry,
                      struct shadow_block *to, unsigned lane)
{
    for (unsigned k = 0; k < COLUMN_EDGES; k++) {
        memcpy(to->ab[k][lane], &from->ab[k * from->step], sizeof to->ab[k][lane]);
        /* here from the middle of the cell, the origin of its heights */
        to->c[k][lane] = (int16_t)(from->c[k * from->step / 2] +
                                   COLUMN_MIDDLE * (to->ab[k][lane][0] + to->ab[k][lane][1]));
    }
    to->z[lane] = entry->z;
    to->x_unit[lane] = entry->x_unit;
    to->y_unit[lane] = entry->y_unit;
}

/* Behind the last of `count` polygons: lanes that no place is over, and no block. */
static void lanes_end(struct shadow_blocks *out, size_t first, uint32_t count)
{
    size_t last = first + (count + COLUMN_LANES - 1) / COLUMN_LANES - (count > 0);

    for (uint32_t i = count; i == 0 || i % COLUMN_LANES != 0; i++)
        out->blocks[last].c[0][i % COLUMN_LANES] = INT16_MIN;
    out->more_from[last] = NAN;
}

static void list_fill(const struct maker *m, const struct column_cell *cell,
                      struct shadow_cell *limits, const struct box2 *box)
{
    struct column_block *blocks = &m->tree->grid.blocks[cell->first];
    double blocked_from = INFINITY;

    for (uint32_t i = 0; i < cell->count; i++) {
        struct column_lane lane = column_lane(blocks, cell->count, i);
        double most;

        m->entries[i] = entry_of(m, &lane, i, box, &most);
        if (is_cover(&lane))
            blocked_from = fmin(blocked_from, most);
    }
    qsort(m->entries, cell->count, sizeof *m->entries, entry_compare);
    for (uint32_t i = 0; i < cell->count; i++) {
        struct column_lane lane = column_lane(blocks, cell->count, m->entries[i].at);
        size_t to = cell->first + i / COLUMN_LANES;

        lane_fill(&lane, &m->entries[i], &m->out->blocks[to], i % COLUMN_LANES);
        if (i % COLUMN_LANES == 0 && i > 0)
            m->out->more_from[to - 1] = m->entries[i].least;
    }
    lanes_end(m->out, cell->first, cell->count);
    *limits = (struct shadow_cell){cell->first, m->entries[0].least, -float_under(-blocked_from),
                                   m->out->more_from[cell->first]};
}

static uint32_t grid_name(uint32_t first, uint32_t side)
{
    return SHADOW_INNER | (uint32_t)__builtin_ctz(side) << SHADOW_SIDE_SHIFT | first;
}

/* The list of no polygons: the block after all others. */
static struct shadow_cell nothing(const struct mesh *tree)
{
    return (struct shadow_cell){(uint32_t)tree->grid.block_count, NAN, INFINITY, NAN};
}

static void cell_fill(const struct maker *m, uint32_t index, struct box2 box)
{
    const struct column_cell *cell = &m->tree->grid.cells[index];

    if (cell->count & COLUMN_INNER) {
        uint32_t side = cell->count & ~COLUMN_INNER;
        double w = (box.x_max - box.x_min) / side, h = (box.y_max - box.y_min) / side;

        m->out->cells[index] = nothing(m->tree); /* clear, until one looks */
        m->out->cells[index].first = grid_name(cell->first, side);
        for (uint32_t i = 0; i < side * side; i++)
            cell_fill(m, cell->first + i,
                      (struct box2){box.x_min + (i % side) * w, box.y_min + (i / side) * h,
                                    box.x_min + (i % side + 1) * w,
                                    box.y_min + (i / side + 1) * h});
        return;
    }
    if (cell->count > 0)
        list_fill(m, cell, &m->out->cells[index], &box);
    else
        m->out->cells[index] = nothing(m->tree);
}

static uint32_t longest_list(const struct floor_grid *grid)
{
    uint32_t most = 0;

    for (size_t i = 0; i < grid->cell_count; i++)
        if (!(grid->cells[i].count & COLUMN_INNER) && grid->cells[i].count > most)
            most = grid->cells[i].count;
    return most;
}

void shadow_blocks_free(struct shadow_blocks *blocks)
{
    free(blocks->blocks);
    free(blocks->cells);
    free(blocks->more_from);
    free(blocks->roots);
}

static size_t root_count(const struct floor_grid *grid)
{
    return (size_t)grid->side * grid->side;
}

size_t shadow_blocks_bytes(const struct mesh *tree)
{
    const struct floor_grid *grid = &tree->grid;

    return (grid->block_count + 1) * (sizeof(struct shadow_block) + sizeof(float)) +
           (grid->cell_count + 1) * sizeof(struct shadow_cell) +
           root_count(grid) * sizeof(uint32_t);
}

/* A cell of the root that has none of its own is a grid of one, too. */
static void roots_fill(const struct maker *m)
{
    const struct floor_grid *grid = &m->tree->grid;
    double whole = (double)(1ull << COLUMN_PLACE);

    m->out->cells[grid->cell_count] = nothing(m->tree);
    lanes_end(m->out, grid->block_count, 0);
    for (uint32_t i = 0; i < root_count(grid); i++) {
        double w = whole / grid->scale_x, h = whole / grid->scale_y;
        double x = grid->x_min + (i % grid->side) * w;
        double y = grid->y_min + (i / grid->side) * h;

        cell_fill(m, i, (struct box2){x, y, x + w, y + h});
        m->out->roots[i] =
            grid->cells[i].count & COLUMN_INNER
                ? m->out->cells[i].first
                : grid_name(grid->cells[i].count ? i : (uint32_t)grid->cell_count, 1);
    }
}

bool shadow_blocks_make(const struct mesh *tree, const uint8_t *is_loose, double doubt_m,
                        struct shadow_blocks *out)
{
    const struct floor_grid *grid = &tree->grid;
    size_t blocks = grid->block_count + 1, cells = grid->cell_count + 1;
    struct maker m = {tree, is_loose, out, NULL};

    *out = (struct shadow_blocks){.doubt_m = -float_under(-doubt_m)};
    if (cells > SHADOW_FIRST)
        return false;
    out->blocks = huge_alloc(blocks * sizeof *out->blocks); /* points come in any order */
    out->cells = aligned_alloc(64, (cells + 3) / 4 * 4 * sizeof *out->cells);
    out->more_from = calloc(blocks, sizeof *out->more_from);
    out->roots = calloc(root_count(grid) + 1, sizeof *out->roots);
    m.entries = malloc((longest_list(grid) + 1) * sizeof *m.entries);
    if (!out->blocks || !out->cells || !out->more_from || !out->roots || !m.entries) {
        free(m.entries);
        shadow_blocks_free(out);
        *out = (struct shadow_blocks){.blocks = NULL};
        return false;
    }
    memset(out->blocks, 0, blocks * sizeof *out->blocks);
    roots_fill(&m);
    free(m.entries);
    return true;
}

void shadow_blocks_any(const struct mesh *tree, const struct shadow_blocks *blocks,
                       const struct vec3 *origins, size_t count, struct vec3 centre, double reach_m,
                       uint8_t *answers)
{
    kernels()->mesh_shadows(tree, blocks, origins, count, centre, reach_m, answers);
}
