/*
 * Columns: where the floors over a point are found in a few cache lines and without a guess.
 *
 * Problem: a leaf of the quadtree with its list, eight polygons and their edge lines is a dozen
 * cache lines, each known only from the one before, and as many unpredictable branches:
 * 130 to 300 ns a point. Approach: beside the image each mesh has a
 * grid over the root's box, about four cells for LEAF_REFS floors, whose crowded cells have grids
 * of their own. A cell lists its floors in blocks of eight; by the numbers of a block it is known
 * which of the eight are above the point: for each edge that cuts the cell a line of small
 * integers, relative to the cell. Eight polygons are 24 multiplications and no branch. An edge that
 * does not cut the cell says nothing there and is left out; a polygon with more than three that do
 * is always tested by its lines.
 *
 * Exactness. The small lines only sort out. An edge's a and b are in units of its own, the smallest
 * of which both are whole to within 1/COLUMN_WHOLE: that much times half a cell, 512, is the most
 * that both directions are off by, for c is rounded at the cell's middle and moved to its
 * corner, which is a whole number. With half a unit of the place and of c, 127 and 128, and the
 * slack, which is less than 2^-18 of any cell, that is less than COLUMN_DOUBT, mostly a 4000th of
 * the cell. A place nearer to an edge is tested by the polygon's own lines in double precision, and
 * heights always come from its plane. So the answer is that of the tree, bit for bit.
 *
 * Branch misses dominate. A cell's two blocks are tested together, and a cell of the root is a
 * grid or empty, if need be a grid of one: so neither the number of blocks nor the depth, mostly,
 * is a branch.
 *
 * Storeys. Lists run from the highest floor down. The bits over the index of a polygon are the
 * levels, of 16 in the mesh, of its lowest and its highest point: floors whose lowest point is
 * above the point, or whose highest is below the best so far, are left out by the same
 * vectors, where floors lie over one another in many places. Long lists: mesh_stack.c. Equal
 * floors: mesh_same.c.
 *
 * Borders. A cell lists floors within `near` of it, too: more than the slack by which a point may
 * be beside its floor, and the roundings by which it may be in the cell beside its own. So no look
 * is taken across a border. No cell is narrower than 2^18 near.
 *
 * Memory is bounded: a grid must pay by fewer floors in its cells, and all lists together have at
 * most REFS_PER_POLYGON for each polygon and REFS_FREE more. A heap of polygons on one place stays
 * one long list. The columns follow from the polygons, so they are not part of the image: nothing
 * in them needs to be believed. Images that lie about their lines get wrong answers, never a place
 * outside of an array.
 *
 * Tried and dropped: a directory of the tree's nodes by cells, and then down the tree; lines of 16
 * bits (176 bytes a block: all that is touched is more than the cache holds); lists of up to 8 or
 * 12 (three times the memory) and of 24 (slower on one storey).
 */
#include "terrain/mesh/floor_grid.h"

#include "base/array_reserve.h"

#include "terrain/mesh/mesh_data.h"
#include "terrain/mesh/floor_grid_lut.h"
#include "terrain/mesh/mesh_stack.h"
#include "terrain/mesh/convex_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAF_REFS = 16,
    SIDE_REFS = 22, /* twice what a grid has a cell before it is wider */
    SIDE_MAX = 4096,
    INNER_SIDE_MAX = 16,
    LEVELS_MAX = 6,
    POLYGONS_MAX = 1 << 24, /* with more there are no columns */
    REFS_PER_POLYGON = 16,
    REFS_FREE = 1 << 12,
    GROWTH_MOST = 6, /* a grid has at most this many times its floors */
    TESTS_MOST = 64  /* and at most this many tests a floor are spent on it */
};

#define CELL_NEARS 262144.0 /* no cell is narrower */
#define GAIN_LEAST 0.75     /* a grid's cells have at most this share of its floors */

#define STACK_SHARE 0.25  /* ... and the quadtree's leaves at least this, to be one stack */
#define STACKED_LEAST 1.5 /* with more floors over a place than this the next one is expected */

struct maker {
    const struct mesh *mesh;
    struct floor_grid *out;
    struct box2 *boxes; /* of all polygons, not rounded; NULL: to be computed */
    size_t cell_capacity, block_capacity;
    uint64_t refs_left;
    double floor_area, cell_area; /* of all floors from above; of the cells that hold any */
    bool is_short;                /* of memory; or the pace has ended it, then err has why */
    struct pace *pace;
    struct err *err;
};

/* A cell that is not made yet. */
struct open_cell {
    struct box2 box;
    const uint32_t *list;
    uint32_t count, level;
    size_t place; /* in cells */
};

/* Polygon `polygon` reaches into cell `cell` of a grid. */
struct pair {
    uint32_t cell, polygon;
};

static struct box2 cell_box(const struct box2 *box, uint32_t side, uint32_t column, uint32_t row)
{
    double w = (box->x_max - box->x_min) / side, h = (box->y_max - box->y_min) / side;

    return (struct box2){box->x_min + column * w, box->y_min + row * h,
                         box->x_min + (column + 1) * w, box->y_min + (row + 1) * h};
}

/* As an index, for there are fewer polygons. */
#define COLUMN_NONE COLUMN_POLYGON

/* ---- blocks --------------------------------------------------------------------------------- */

/* The nearest; NaN and numbers that do not fit become the nearest that does. */
static int to_integer(double x, int most)
{
    if (!(x > -most))
        return -most;
    return x < most ? (int)(x < 0 ? x - 0.5 : x + 0.5) : most;
}

/*
 * The most, up to COLUMN_SCALE, that an edge's a and b, of which the larger is 1, can be multiplied
 * by and be nearly whole. There is one: of 32 multiples of a number one is within 1/32 of whole.
 */
static int edge_scale(double smaller)
{
    const uint32_t near = UINT32_MAX / COLUMN_WHOLE; /* of fractions of 2^32 */
    uint32_t step = (uint32_t)(uint64_t)(smaller * 0x1p32), fraction = step * COLUMN_SCALE;
    int scale = COLUMN_SCALE;

    for (; scale > 1 && fraction + near > 2 * near; scale--)
        fraction -= step;
    return scale;
}

/* a, b and c in units of a, b <= 1, with x and y from -0.5 to 0.5 in the cell. */
static void edge_set(const struct column_lane *lane, unsigned edge, double a, double b, double c)
{
    int scale = edge_scale(fabs(a) < fabs(b) ? fabs(a) : fabs(b));
    double unit = (double)scale * COLUMN_UNIT, high = 1 << COLUMN_SHIFT;
    int x = to_integer(a * scale, COLUMN_SCALE), y = to_integer(b * scale, COLUMN_SCALE);

    lane->ab[edge * lane->step] = (int8_t)x;
    lane->ab[edge * lane->step + 1] = (int8_t)y;
    lane->c[edge * lane->step / 2] =
        (int16_t)(to_integer((c * unit + COLUMN_DOUBT) / high, INT16_MAX) -
                  COLUMN_MIDDLE * (x + y));
}

/*
 * The lane of one polygon in a cell. The larger of |a| and |b| is 1; an edge that cuts the cell has
 * |c| <= 1, so that c fits from the cell's corner, too.
 */
static void lane_set(const struct column_lane *lane, const struct mesh *mesh, uint32_t polygon,
                     const struct box2 *box)
{
    const double uncertain = COLUMN_DOUBT / ((double)COLUMN_SCALE * COLUMN_UNIT);
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    const struct mesh_line *lines = mesh->lines + p->first;
    double w = box->x_max - box->x_min, h = box->y_max - box->y_min;
    double x = box->x_min + w / 2, y = box->y_min + h / 2;
    unsigned edges = 0;

    *lane->polygon = polygon | column_level(&mesh->grid, (double)p->z_max) << COLUMN_HIGH_SHIFT |
                     column_level(&mesh->grid, (double)p->z_min) << COLUMN_LOW_SHIFT;
    for (unsigned k = 0; k < COLUMN_EDGES; k++)
        edge_set(lane, k, 0, 0, 2);
    for (uint32_t i = 0; i < p->count; i++) {
        double a = lines[i].a * w, b = lines[i].b * h, along = fabs(a), across = fabs(b);
        double unit = 1 / (along > across ? along : across);
        double c = line_value(&lines[i], x, y) * unit;

        if (c - 0.5 * unit * (along + across) >= 4 * uncertain) /* cuts nothing off */
            continue;
        if (edges == COLUMN_EDGES ||
            !(c >= -1.001 && along * unit <= 1.001 && across * unit <= 1.001)) {
            edge_set(lane, COLUMN_EDGES - 1, 0, 0, 0); /* uncertain everywhere */
            break;
        }
        /* a place is the middle of its unit */
        edge_set(lane, edges++, a * unit, b * unit, c + 0.5 * unit * (a + b) / COLUMN_UNIT);
    }
}

static void blocks_set(struct column_block *block, const struct mesh *mesh, const uint32_t *list,
                       uint32_t count, const struct box2 *box)
{
    memset(block, 0, stack_blocks(count) * sizeof *block);
    for (uint32_t i = 0; i < count; i++) {
        struct column_lane lane = column_lane(block, count, i);

        lane_set(&lane, mesh, list[i], box);
    }
    for (uint32_t i = count; i % COLUMN_LANES != 0; i++) { /* nothing is in these */
        struct column_lane lane = column_lane(block, count, i);

        edge_set(&lane, 0, 0, 0, -2);
        *lane.polygon = COLUMN_NONE;
    }
    if (count > STACK_LEAST)
        stack_set(block, count, mesh);
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* A cell of the root is empty or a grid: for a leaf, a grid of one cell. False without memory. */
static bool leaf_place(struct maker *m, size_t *place)
{
    struct floor_grid *out = m->out;

    if (!array_reserve((void **)&out->cells, &m->cell_capacity, out->cell_count + 1,
                       sizeof *out->cells)) {
        m->is_short = true;
        return false;
    }
    out->cells[*place] = (struct column_cell){(uint32_t)out->cell_count, COLUMN_INNER | 1};
    *place = out->cell_count++;
    return true;
}

static void leaf_make(struct maker *m, const struct open_cell *open)
{
    struct floor_grid *out = m->out;
    size_t blocks = stack_blocks(open->count), place = open->place;

    if (open->count == 0) {
        out->cells[place] = (struct column_cell){0, 0};
        return;
    }
    if (open->level == 1 && !leaf_place(m, &place))
        return;
    m->cell_area += (open->box.x_max - open->box.x_min) * (open->box.y_max - open->box.y_min);
    if (!array_reserve((void **)&out->blocks, &m->block_capacity, out->block_count + blocks,
                       sizeof *out->blocks)) {
        m->is_short = true;
        return;
    }
    out->cells[place] = (struct column_cell){(uint32_t)out->block_count, open->count};
    blocks_set(out->blocks + out->block_count, m->mesh, open->list, open->count, &open->box);
    out->block_count += blocks;
    out->refs += open->count;
}

static uint32_t clamp_cell(double at, uint32_t side)
{
    return at >= side ? side - 1 : at > 0 ? (uint32_t)at : 0;
}

/* The cells of a grid that a box may reach into. */
struct cell_range {
    uint32_t column0, column1, row0, row1;
};

static struct cell_range cells_of(const struct box2 *grid, uint32_t side, const struct box2 *own)
{
    double scale_x = side / (grid->x_max - grid->x_min);
    double scale_y = side / (grid->y_max - grid->y_min);

    return (struct cell_range){clamp_cell((own->x_min - grid->x_min) * scale_x - 0.001, side),
                               clamp_cell((own->x_max - grid->x_min) * scale_x + 0.001, side),
                               clamp_cell((own->y_min - grid->y_min) * scale_y - 0.001, side),
                               clamp_cell((own->y_max - grid->y_min) * scale_y + 0.001, side)};
}

static struct box2 box_of(const struct maker *m, uint32_t polygon)
{
    const struct mesh_polygon *p = &m->mesh->polygons[polygon];

    return m->boxes ? m->boxes[polygon]
                    : convex_part_box(m->mesh->vertices, m->mesh->corners + p->first, p->count);
}

static bool reaches(const struct maker *m, uint32_t polygon, const struct box2 *own,
                    const struct box2 *cell)
{
    const struct mesh_polygon *p = &m->mesh->polygons[polygon];

    /* by the slack a point may be over it from the next cell, and be in that by rounding */
    return box_is_reached(cell, own, m->mesh->lines + p->first, p->count, -m->mesh->header->near);
}

/* Which polygon reaches into which cell of a grid; the number, or more than `most`: give up. */
static size_t grid_pairs(struct maker *m, const struct open_cell *open, uint32_t side,
                         struct pair *pairs, size_t most)
{
    const struct box2 *box = &open->box;
    uint64_t all = 0;
    size_t count = 0;

    for (uint32_t i = 0; i < open->count; i++) {
        struct box2 own = box_of(m, open->list[i]);
        struct cell_range range = cells_of(box, side, &own);
        uint64_t tests =
            (uint64_t)(range.row1 - range.row0 + 1) * (range.column1 - range.column0 + 1);

        all += tests;
        m->is_short |= pace_step(m->pace, tests, m->err) != ERR_OK;
        if (m->is_short || all > (uint64_t)TESTS_MOST * open->count) /* slivers in large boxes */
            return most + 1;
        for (uint32_t row = range.row0; row <= range.row1; row++)
            for (uint32_t column = range.column0; column <= range.column1; column++) {
                struct box2 cell = cell_box(box, side, column, row);

                if (!reaches(m, open->list[i], &own, &cell))
                    continue;
                if (count == most)
                    return most + 1;
                pairs[count++] = (struct pair){row * side + column, open->list[i]};
            }
    }
    return count;
}

static void cell_make(struct maker *m, const struct open_cell *open);

/* The cells of a grid from its pairs. Lists keep their order. */
static void grid_make(struct maker *m, const struct open_cell *open, uint32_t side,
                      const struct pair *pairs, size_t count)
{
    struct floor_grid *out = m->out;
    size_t cells = (size_t)side * side, first = out->cell_count;
    uint32_t *starts = calloc(cells + 1, sizeof *starts);
    uint32_t *lists = malloc((count + 1) * sizeof *lists);

    if (starts == NULL || lists == NULL ||
        !array_reserve((void **)&out->cells, &m->cell_capacity, first + cells,
                       sizeof *out->cells)) {
        m->is_short = true;
        free(starts);
        free(lists);
        return;
    }
    out->cell_count += cells;
    if (open->level > 0)
        out->cells[open->place] = (struct column_cell){(uint32_t)first, COLUMN_INNER | side};
    for (size_t i = 0; i < count; i++)
        starts[pairs[i].cell]++;
    for (size_t i = 0, sum = 0; i <= cells; i++) {
        sum += starts[i];
        starts[i] = (uint32_t)sum; /* the end; filled from there */
    }
    for (size_t i = count; i-- > 0;)
        lists[--starts[pairs[i].cell]] = pairs[i].polygon;
    for (uint32_t i = 0; i < cells && !m->is_short; i++) {
        struct open_cell child = {cell_box(&open->box, side, i % side, i / side), lists + starts[i],
                                  starts[i + 1] - starts[i], open->level + 1, first + i};

        cell_make(m, &child);
    }
    free(starts);
    free(lists);
}

/* The widest grid that pays; false when there is none. */
static bool grid_try(struct maker *m, const struct open_cell *open, uint32_t side)
{
    double narrow = fmin(open->box.x_max - open->box.x_min, open->box.y_max - open->box.y_min);
    size_t most = (size_t)GROWTH_MOST * open->count;
    struct pair *pairs;
    bool is_made = false;

    if (most > open->count + m->refs_left)
        most = open->count + m->refs_left;
    pairs = malloc((most + 1) * sizeof *pairs);
    m->is_short |= pairs == NULL;
    for (; side >= 2 && !m->is_short && !is_made; side /= 2) {
        if (!(narrow / side >= CELL_NEARS * m->mesh->header->near))
            continue;
        size_t count = grid_pairs(m, open, side, pairs, most);

        if (count > most || (double)count > GAIN_LEAST * side * side * open->count)
            continue;
        m->refs_left -= count > open->count ? count - open->count : 0;
        grid_make(m, open, side, pairs, count);
        is_made = true;
        m->out->side = open->level == 0 ? side : m->out->side;
    }
    free(pairs);
    return is_made;
}

static void cell_make(struct maker *m, const struct open_cell *open)
{
    uint32_t side = 2;

    while (side < INNER_SIDE_MAX && open->count * 2 > SIDE_REFS * side * side)
        side *= 2;
    if (open->count > LEAF_REFS && open->level < LEVELS_MAX && grid_try(m, open, side))
        return;
    if (!m->is_short)
        leaf_make(m, open);
}

struct height_key {
    float z_max;
    uint32_t polygon;
};

/* ---- all ------------------------------------------------------------------------------------ */

/* Descending by the highest point; where that is the same, by index. */
static int by_height(const void *a, const void *b)
{
    const struct height_key *x = a, *y = b;

    return x->z_max != y->z_max ? (x->z_max < y->z_max) - (x->z_max > y->z_max)
                                : (x->polygon > y->polygon) - (x->polygon < y->polygon);
}

static void list_sort(struct maker *m, uint32_t *list, uint32_t count)
{
    struct height_key *keys = malloc((count + 1) * sizeof *keys);

    m->is_short |= keys == NULL;
    if (keys == NULL)
        return;
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (struct height_key){m->mesh->polygons[list[i]].z_max, list[i]};
    qsort(keys, count, sizeof *keys, by_height);
    for (uint32_t i = 0; i < count; i++)
        list[i] = keys[i].polygon;
    free(keys);
}

/* Seen from above. */
static double floor_area(const struct mesh *mesh, const struct mesh_polygon *p)
{
    const uint32_t *corners = mesh->corners + p->first;
    double twice = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        struct vec3 a = mesh->vertices[corners[i]];
        struct vec3 b = mesh->vertices[corners[i + 1 < p->count ? i + 1 : 0]];

        twice += a.x * b.y - b.x * a.y;
    }
    return fabs(twice) / 2;
}

/* All floors lie over one another: neither a grid nor the quadtree takes them apart. */
static bool is_one_stack(const struct maker *m, const struct open_cell *root)
{
    const struct mesh_header *h = m->mesh->header;
    double narrow = fmin(root->box.x_max - root->box.x_min, root->box.y_max - root->box.y_min);
    struct mesh_stats stats;

    if (root->count == 0 || !(narrow >= CELL_NEARS * h->near))
        return false;
    mesh_stats(m->mesh, &stats);
    return stats.average_tests > STACK_LEAST && stats.average_tests >= STACK_SHARE * root->count;
}

/* A grid of one cell. */
static void root_cell_make(struct maker *m, struct open_cell *root)
{
    struct floor_grid *out = m->out;

    if (!array_reserve((void **)&out->cells, &m->cell_capacity, 1, sizeof *out->cells)) {
        m->is_short = true;
        return;
    }
    out->side = 1;
    out->cell_count = 1;
    root->level = 1;
    cell_make(m, root);
}

static void root_make(struct maker *m, uint32_t *list)
{
    const struct mesh_header *h = m->mesh->header;
    struct open_cell root = {.box = h->root, .list = list};
    double side;

    for (uint32_t i = 0; i < h->count[MESH_POLYGONS]; i++) {
        const struct mesh_polygon *p = &m->mesh->polygons[i];

        m->boxes[i] = convex_part_box(m->mesh->vertices, m->mesh->corners + p->first, p->count);
        if (p->is_wall || !mesh_is_first(m->mesh, i))
            continue;
        m->floor_area += floor_area(m->mesh, p);
        list[root.count++] = i;
    }
    list_sort(m, list, root.count);
    m->refs_left = (uint64_t)REFS_PER_POLYGON * root.count + REFS_FREE;
    side = ceil(sqrt(root.count * 4.0 / LEAF_REFS));
    if (!grid_try(m, &root,
                  side < 2          ? 2
                  : side < SIDE_MAX ? (uint32_t)side
                                    : SIDE_MAX) &&
        !m->is_short && is_one_stack(m, &root))
        root_cell_make(m, &root);
}

/* Where each block is two cache lines, and no more memory than that and one block: vectors read
 * sixteen lanes where there are eight, and cells without blocks need no test. */
static bool blocks_align(struct floor_grid *out)
{
    size_t bytes = out->block_count * sizeof *out->blocks;
    struct column_block *aligned = aligned_alloc(sizeof *aligned, bytes + sizeof *aligned);

    if (aligned == NULL)
        return false;
    if (bytes > 0)
        memcpy(aligned, out->blocks, bytes);
    memset(&aligned[out->block_count], 0, sizeof *aligned);
    free(out->blocks);
    out->blocks = aligned;
    return true;
}

static bool columns_finish(struct floor_grid *out)
{
    return blocks_align(out) && floor_grid_lut_make(out);
}

enum err_code floor_grid_make(struct mesh *mesh, struct pace *pace, struct err *err)
{
    struct floor_grid *out = &mesh->grid;
    const struct mesh_header *h = mesh->header;
    size_t polygons = h->count[MESH_POLYGONS];
    struct maker m = {.mesh = mesh, .out = out, .pace = pace, .err = err};
    uint32_t *list = malloc(polygons * sizeof *list);

    err->code = ERR_OK;
    m.boxes = malloc(polygons * sizeof *m.boxes);
    memset(out, 0, sizeof *out);
    double height = (double)mesh->nodes->z_max - (double)mesh->nodes->z_min;

    out->z_min = (double)mesh->nodes->z_min;
    out->scale_z = height > 0 && height < INFINITY ? COLUMN_LEVELS / height : 0;
    m.is_short = list == NULL || m.boxes == NULL;
    if (!m.is_short && polygons < POLYGONS_MAX)
        root_make(&m, list);
    free(list);
    free(m.boxes);
    if (m.is_short) {
        floor_grid_free(out);
        return err->code ? err->code
                         : err_set(err, ERR_NO_MEMORY, "no memory for the columns of %zu polygons",
                                   polygons);
    }
    out->is_stacked = m.floor_area > STACKED_LEAST * m.cell_area;
    out->side_limit = (uint64_t)out->side << COLUMN_PLACE;
    out->x_min = h->root.x_min;
    out->y_min = h->root.y_min;
    out->x_max = h->root.x_max;
    out->y_max = h->root.y_max;
    out->scale_x = (double)out->side_limit / (h->root.x_max - h->root.x_min);
    out->scale_y = (double)out->side_limit / (h->root.y_max - h->root.y_min);
    out->place_0[0] = -out->x_min * out->scale_x;
    out->place_0[1] = -out->y_min * out->scale_y;
    if (!columns_finish(out)) {
        floor_grid_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for the columns of %zu polygons", polygons);
    }
    return ERR_OK;
}

void floor_grid_free(struct floor_grid *grid)
{
    free(grid->cells);
    free(grid->blocks);
    free(grid->lut);
    memset(grid, 0, sizeof *grid);
}

size_t floor_grid_bytes(const struct floor_grid *grid)
{
    return grid->cell_count * sizeof *grid->cells + grid->block_count * sizeof *grid->blocks +
           floor_grid_lut_bytes(grid);
}

/* ---- edited ------------------------------------------------------------------------------------
 *
 * Where a few polygons come or go, the cells of the root that they touch are made again, after the
 * others; the lists and the grid are those of the mesh that was edited. The memory of the old cells
 * stays unused until it is half of all, or until the tree is built again.
 */

/* Copies, with other indices where polygons are gone. */
static bool columns_copy(struct floor_grid *out, const struct floor_grid *old, const uint32_t *map,
                         struct maker *m)
{
    size_t blocks = old->block_count + old->block_count / 64 + 64;

    *out = *old;
    out->lut = NULL;
    out->cells = malloc(old->cell_count * sizeof *out->cells);
    out->blocks = aligned_alloc(sizeof *out->blocks, blocks * sizeof *out->blocks);
    m->cell_capacity = old->cell_count;
    m->block_capacity = blocks;
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

static bool gather(const struct floor_grid *c, size_t at, struct gathered *out)
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
static void root_cell_remake(struct maker *m, size_t at, const struct pair *pairs, size_t count)
{
    struct floor_grid *out = m->out;
    const struct box2 grid = {out->x_min, out->y_min, out->x_max, out->y_max};
    struct gathered g = {.count = 0};
    uint32_t side = out->side;

    if (!gather(out, at, &g) ||
        !array_reserve((void **)&g.list, &g.capacity, g.count + count + 1, sizeof *g.list)) {
        m->is_short = true;
        free(g.list);
        return;
    }
    for (size_t i = 0; i < count; i++)
        g.list[g.count++] = pairs[i].polygon;
    drop_doubles(&g);
    list_sort(m, g.list, (uint32_t)g.count);
    out->refs -= g.refs;
    out->unused_blocks += g.blocks;
    struct open_cell open = {
        .box = cell_box(&grid, side, (uint32_t)at % side, (uint32_t)at / side),
        .list = g.list,
        .count = (uint32_t)g.count,
        .level = 1,
        .place = at,
    };
    if (!m->is_short)
        cell_make(m, &open);
    free(g.list);
}

static int by_cell(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return x->cell != y->cell ? (x->cell > y->cell) - (x->cell < y->cell)
                              : (x->polygon > y->polygon) - (x->polygon < y->polygon);
}

/* The cells that something is gone from, once each or more, as pairs with COLUMN_NONE; and pairs of
 * those that something comes into. False: too many, or no memory. */
static bool changed_cells(struct maker *m, const struct floor_grid_change *change,
                          struct pair **pairs, size_t *count)
{
    const struct floor_grid *out = m->out;
    const struct box2 grid = {out->x_min, out->y_min, out->x_max, out->y_max};
    size_t most = (size_t)out->side * out->side / 2 + 64, capacity = 0;
    uint32_t polygons = (uint32_t)m->mesh->header->count[MESH_POLYGONS];

    for (size_t i = 0; i < change->gone_count + (polygons - change->first_added); i++) {
        bool is_gone = i < change->gone_count;
        uint32_t polygon =
            is_gone ? COLUMN_NONE : change->first_added + (uint32_t)(i - change->gone_count);
        struct box2 own = is_gone ? change->gone[i] : change->added[i - change->gone_count];
        struct cell_range range = cells_of(&grid, out->side, &own);
        size_t cells = (size_t)(range.row1 - range.row0 + 1) * (range.column1 - range.column0 + 1);

        if (!is_gone && (m->mesh->polygons[polygon].is_wall || !mesh_is_first(m->mesh, polygon)))
            continue;
        if (*count + cells > most ||
            !array_reserve((void **)pairs, &capacity, *count + cells, sizeof **pairs))
            return false;
        for (uint32_t row = range.row0; row <= range.row1; row++)
            for (uint32_t column = range.column0; column <= range.column1; column++) {
                struct box2 cell = cell_box(&grid, out->side, column, row);

                if (is_gone || reaches(m, polygon, &own, &cell))
                    (*pairs)[(*count)++] = (struct pair){row * out->side + column, polygon};
            }
    }
    return true;
}

static void cells_remake(struct maker *m, struct pair *pairs, size_t count)
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
                              const struct floor_grid_change *change, struct pace *pace,
                              struct err *err)
{
    struct floor_grid *out = &mesh->grid;
    uint64_t polygons = mesh->header->count[MESH_POLYGONS];
    uint64_t refs_max = (uint64_t)REFS_PER_POLYGON * polygons + REFS_FREE;
    struct maker m = {.mesh = mesh, .out = out};
    struct pair *pairs = NULL;
    size_t count = 0;

    if (old->grid.side == 0 || polygons >= POLYGONS_MAX)
        return floor_grid_make(mesh, pace, err);
    m.is_short = !columns_copy(out, &old->grid, change->map, &m);
    m.refs_left = refs_max > out->refs ? refs_max - out->refs : 0;
    bool is_little = !m.is_short && changed_cells(&m, change, &pairs, &count);

    if (is_little)
        cells_remake(&m, pairs, count);
    free(pairs);
    if (is_little && !m.is_short && out->refs <= refs_max &&
        out->unused_blocks <= out->block_count / 2 + 1024 && columns_finish(out))
        return ERR_OK;
    floor_grid_free(out);
    return floor_grid_make(mesh, pace, err);
}

/* ---- are they right? ------------------------------------------------------------------------- */

/* A cell whose list should be this: the blocks are those of the list, or each of its own cells has
 * those of the list that reach into it. scratch[blocks of all of the list]. */
static bool cell_is_right(const struct maker *m, size_t at, const struct open_cell *want,
                          struct column_block *scratch)
{
    const struct floor_grid *c = &m->mesh->grid;
    const struct column_cell *cell = &c->cells[at];
    uint32_t side = cell->count & ~COLUMN_INNER;
    size_t blocks = stack_blocks(want->count);
    bool is_right = true;

    if (want->level > LEVELS_MAX + 2)
        return false;
    if (!(cell->count & COLUMN_INNER)) {
        if (want->count == 0)
            return cell->count == 0 && cell->first == 0;
        blocks_set(scratch, m->mesh, want->list, want->count, &want->box);
        return cell->count == want->count && cell->first + blocks <= c->block_count &&
               memcmp(scratch, c->blocks + cell->first, blocks * sizeof *scratch) == 0;
    }
    uint32_t *list = malloc((want->count + 1) * sizeof *list);

    for (uint32_t i = 0; list && is_right && i < side * side; i++) {
        struct open_cell child = {.box = side == 1 ? want->box
                                                   : cell_box(&want->box, side, i % side, i / side),
                                  .list = list,
                                  .level = want->level + 1};

        for (uint32_t k = 0; k < want->count; k++) {
            struct box2 own = m->boxes[want->list[k]];

            if (side == 1 || reaches(m, want->list[k], &own, &child.box))
                list[child.count++] = want->list[k];
        }
        is_right =
            cell->first + i < c->cell_count && cell_is_right(m, cell->first + i, &child, scratch);
    }
    is_right &= list != NULL;
    free(list);
    return is_right;
}

/* Pairs of all floors with the cells of the root, by cell and falling height. */
static struct pair *all_pairs(struct maker *m, uint32_t *list, size_t *count)
{
    const struct floor_grid *c = &m->mesh->grid;
    struct open_cell root = {.box = {c->x_min, c->y_min, c->x_max, c->y_max}, .list = list};
    size_t most = c->refs + (size_t)c->side * c->side;
    struct pair *pairs = malloc((most + 1) * sizeof *pairs);

    for (uint32_t i = 0; i < m->mesh->header->count[MESH_POLYGONS]; i++)
        if (!m->mesh->polygons[i].is_wall && mesh_is_first(m->mesh, i))
            list[root.count++] = i;
    list_sort(m, list, root.count);
    for (uint32_t i = 0; pairs && i < root.count; i++) {
        struct cell_range range = cells_of(&root.box, c->side, &m->boxes[list[i]]);

        for (uint32_t row = range.row0; row <= range.row1; row++)
            for (uint32_t column = range.column0; column <= range.column1; column++) {
                struct box2 cell = cell_box(&root.box, c->side, column, row);

                if (*count < most && reaches(m, list[i], &m->boxes[list[i]], &cell))
                    pairs[(*count)++] = (struct pair){row * c->side + column, i};
            }
    }
    if (pairs)
        qsort(pairs, *count, sizeof *pairs, by_cell); /* polygon is the rank in the list */
    return pairs;
}

static bool cells_are_right(struct maker *m, uint32_t *list, struct column_block *scratch)
{
    const struct floor_grid *c = &m->mesh->grid;
    const struct box2 grid = {c->x_min, c->y_min, c->x_max, c->y_max};
    size_t count = 0;
    struct pair *pairs = all_pairs(m, list, &count);
    uint32_t *of_cell = malloc((count + 1) * sizeof *of_cell);
    bool is_right = pairs && of_cell && !m->is_short;

    for (uint32_t i = 0, at = 0; is_right && i < c->side * c->side; i++) {
        struct open_cell want = {
            .box = cell_box(&grid, c->side, i % c->side, i / c->side), .list = of_cell, .level = 1};

        for (; at < count && pairs[at].cell == i; at++)
            of_cell[want.count++] = list[pairs[at].polygon];
        /* a cell of the root is a grid or empty */
        is_right = ((c->cells[i].count & COLUMN_INNER) != 0 || want.count == 0) &&
                   cell_is_right(m, i, &want, scratch);
    }
    free(pairs);
    free(of_cell);
    return is_right;
}

/* scratch has room for the blocks of all polygons. */
static bool columns_are_right(struct maker *m, uint32_t *list, struct column_block *scratch)
{
    size_t polygons = m->mesh->header->count[MESH_POLYGONS];
    bool is_right;

    m->boxes = malloc((polygons + 1) * sizeof *m->boxes);
    for (uint32_t i = 0; m->boxes && i < polygons; i++) {
        const struct mesh_polygon *p = &m->mesh->polygons[i];

        m->boxes[i] = convex_part_box(m->mesh->vertices, m->mesh->corners + p->first, p->count);
    }
    is_right = m->boxes && cells_are_right(m, list, scratch);
    free(m->boxes);
    return is_right;
}

bool floor_grid_validate(const struct mesh *mesh, struct err *err)
{
    size_t polygons = mesh->header->count[MESH_POLYGONS];
    size_t blocks = stack_blocks((uint32_t)polygons);
    struct maker m = {.mesh = mesh};
    uint32_t *list = malloc((polygons + 1) * sizeof *list);
    struct column_block *scratch = aligned_alloc(sizeof *scratch, (blocks + 1) * sizeof *scratch);
    bool is_right = list && scratch;

    if (mesh->grid.side > 0)
        is_right = is_right && columns_are_right(&m, list, scratch) &&
                   floor_grid_lut_validate(&mesh->grid);
    free(list);
    free(scratch);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the columns are not those of the polygons");
    return is_right;
}
