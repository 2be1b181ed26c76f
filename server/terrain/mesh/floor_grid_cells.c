/*
 * The cells of a floor grid and their blocks (floor_grid.c has the problem and the approach).
 *
 * A crowded cell is divided as finely as its list asks for, if the lists of its cells together are
 * not much longer than its own: where long slivers or storeys lie in all of them nothing is won,
 * but very long lists may grow more.
 */
#include "terrain/mesh/floor_grid_cells.h"

#include "base/array_reserve.h"

#include "terrain/mesh/convex_parts.h"
#include "terrain/mesh/mesh_stack.h"

#include <stdlib.h>
#include <string.h>

enum {
    INNER_SIDE_MAX = 16,
    LONG_LIST = 96,
    PAIR_UNITS = 4, /* of a pace, for the cells of one polygon */
    LANE_UNITS = 2
};

#define GROWTH_MOST 1.8    /* lists of four cells together, of their parent's */
#define GROWTH_OF_LONG 3.0 /* the same, where that has over LONG_LIST */

struct box2 grid_cell_box(const struct box2 *box, uint32_t side, uint32_t column, uint32_t row)
{
    double w = (box->x_max - box->x_min) / side, h = (box->y_max - box->y_min) / side;

    return (struct box2){box->x_min + column * w, box->y_min + row * h,
                         box->x_min + (column + 1) * w, box->y_min + (row + 1) * h};
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* The nearest; NaN and numbers that do not fit become the nearest that does. */
static int to_integer(double x, int most)
{
    double high = x > -most ? x : -most;

    return (int)lrint(high < most ? high : most); /* no branch: signs are unpredictable */
}

/*
 * The most, up to COLUMN_SCALE, that an edge's a and b, of which the larger is 1, can be multiplied
 * by and be nearly whole. There is one: of 32 multiples of a number one is within 1/32 of whole.
 * Four are tried at a time; the lowest lane that fits has the most.
 */
static int edge_scale(double smaller)
{
    const uint32_t near = UINT32_MAX / COLUMN_WHOLE; /* of fractions of 2^32 */
    uint32_t step = (uint32_t)(uint64_t)(smaller * 0x1p32);
    /* moved so that those within `near` of whole are the least */
    u32x4 fraction = (u32x4){COLUMN_SCALE, COLUMN_SCALE - 1, COLUMN_SCALE - 2, COLUMN_SCALE - 3} *
                         (u32x4){step, step, step, step} +
                     (near + (1u << 31));
    int scale = COLUMN_SCALE;
    unsigned fits;

    while ((fits = i32x4_signs((i32x4)fraction <= i32x4_all(INT32_MIN + 2 * (int)near))) == 0) {
        fraction -= 4 * step;
        scale -= 4;
    }
    return scale - __builtin_ctz(fits);
}

static inline void edge_put(const struct column_lane *lane, unsigned edge, int x, int y, int c)
{
    lane->ab[edge * lane->step] = (int8_t)x;
    lane->ab[edge * lane->step + 1] = (int8_t)y;
    lane->c[edge * lane->step / 2] = (int16_t)c;
}

/* Of edges that are none: all of the cell is inside, is outside, or is left to the lines. */
enum {
    EDGE_HIGH = 1 << COLUMN_SHIFT,
    EDGE_INSIDE = (2 * COLUMN_SCALE * COLUMN_UNIT + COLUMN_DOUBT) / EDGE_HIGH,
    EDGE_OUTSIDE = -EDGE_INSIDE,
    EDGE_UNCERTAIN = COLUMN_DOUBT / EDGE_HIGH
};

/* a, b and c in units of a, b <= 1, with x and y from -0.5 to 0.5 in the cell. */
static void edge_set(const struct column_lane *lane, unsigned edge, double a, double b, double c)
{
    int scale = edge_scale(fabs(a) < fabs(b) ? fabs(a) : fabs(b));
    double unit = (double)scale * COLUMN_UNIT, high = 1 << COLUMN_SHIFT;
    int x = to_integer(a * scale, COLUMN_SCALE), y = to_integer(b * scale, COLUMN_SCALE);

    edge_put(lane, edge, x, y,
             to_integer((c * unit + COLUMN_DOUBT) / high, INT16_MAX) - COLUMN_MIDDLE * (x + y));
}

static inline struct outline_edge edge_between(struct vec3 from, struct vec3 to)
{
    return (struct outline_edge){from.x, from.y, to.x - from.x, to.y - from.y};
}

void outline_set(struct outline *o, const struct mesh *mesh, uint32_t polygon)
{
    struct vec3 from;

    o->face = mesh_face(mesh, polygon);
    o->box = (struct box2){INFINITY, INFINITY, -INFINITY, -INFINITY};
    from = face_at(&o->face, o->face.count - 1);
    for (uint32_t i = 0; i < o->face.count; i++) {
        struct vec3 to = face_at(&o->face, i);

        o->box.x_min = to.x < o->box.x_min ? to.x : o->box.x_min;
        o->box.y_min = to.y < o->box.y_min ? to.y : o->box.y_min;
        o->box.x_max = to.x > o->box.x_max ? to.x : o->box.x_max;
        o->box.y_max = to.y > o->box.y_max ? to.y : o->box.y_max;
        if (i < OUTLINE_EDGES)
            o->edges[i] = edge_between(from, to);
        from = to;
    }
}

/* How far a place is inside of an edge, times the edge's length. */
static inline double edge_value(const struct outline_edge *e, double x, double y)
{
    return e->dx * (y - e->y) - e->dy * (x - e->x);
}

/* Is all of a box outside of an edge? Of one without length nothing is. */
static inline bool is_beyond(const struct box2 *box, const struct outline_edge *e, double near)
{
    double x = e->dy > 0 ? box->x_min : box->x_max;
    double y = e->dx > 0 ? box->y_max : box->y_min;

    return edge_value(e, x, y) < -near * (fabs(e->dx) + fabs(e->dy));
}

bool outline_reaches(const struct box2 *box, const struct outline *o, double near)
{
    const struct box2 *own = &o->box;

    if (own->x_max - box->x_min <= -near || box->x_max - own->x_min <= -near ||
        own->y_max - box->y_min <= -near || box->y_max - own->y_min <= -near)
        return false;
    if (own->x_min >= box->x_min && own->x_max <= box->x_max && own->y_min >= box->y_min &&
        own->y_max <= box->y_max)
        return true;
    for (uint32_t i = 0; i < o->face.count && i < OUTLINE_EDGES; i++)
        if (is_beyond(box, &o->edges[i], near))
            return false;
    for (uint32_t i = OUTLINE_EDGES; i < o->face.count; i++) {
        struct outline_edge e = edge_between(face_at(&o->face, i - 1), face_at(&o->face, i));

        if (is_beyond(box, &e, near))
            return false;
    }
    return true;
}

/*
 * The lane of one polygon in a cell. The larger of |a| and |b| is 1; an edge that cuts the cell has
 * |c| <= 1, so that c fits from the cell's corner, too.
 */
static void lane_set(const struct column_lane *lane, const struct grid_maker *m, uint32_t polygon,
                     const struct box2 *box)
{
    const double uncertain = COLUMN_DOUBT / ((double)COLUMN_SCALE * COLUMN_UNIT);
    struct z_range range = mesh_range(m->mesh, polygon);
    double w = box->x_max - box->x_min, h = box->y_max - box->y_min;
    double x = box->x_min + w / 2, y = box->y_min + h / 2;
    struct face face = mesh_face(m->mesh, polygon);
    struct vec3 from = face_at(&face, face.count - 1), to;
    unsigned edges = 0;

    *lane->polygon = polygon | column_level(m->grid, (double)range.max) << COLUMN_HIGH_SHIFT |
                     column_level(m->grid, (double)range.min) << COLUMN_LOW_SHIFT;
    for (unsigned k = 0; k < COLUMN_EDGES; k++)
        edge_put(lane, k, 0, 0, EDGE_INSIDE);
    for (uint32_t i = 0; i < face.count; i++, from = to) {
        to = face_at(&face, i);
        struct outline_edge e = edge_between(from, to);
        double a = -e.dy * w, b = e.dx * h, along = fabs(a), across = fabs(b);
        double larger = along > across ? along : across, c = edge_value(&e, x, y);

        if (c - 0.5 * (along + across) >= 4 * uncertain * larger) /* cuts nothing off */
            continue;
        double unit = 1 / larger;

        c *= unit;
        if (edges == COLUMN_EDGES ||
            !(c >= -1.001 && along * unit <= 1.001 && across * unit <= 1.001)) {
            edge_put(lane, COLUMN_EDGES - 1, 0, 0, EDGE_UNCERTAIN);
            break;
        }
        /* a place is the middle of its unit */
        edge_set(lane, edges++, a * unit, b * unit, c + 0.5 * unit * (a + b) / COLUMN_UNIT);
    }
}

void grid_blocks_set(struct column_block *block, const struct grid_maker *m, const uint32_t *list,
                     uint32_t count, const struct box2 *box)
{
    memset(block, 0, stack_blocks(count) * sizeof *block);
    for (uint32_t i = 0; i < count; i++) {
        struct column_lane lane = column_lane(block, count, i);

        lane_set(&lane, m, list[i], box);
    }
    for (uint32_t i = count; i % COLUMN_LANES != 0; i++) { /* nothing is in these */
        struct column_lane lane = column_lane(block, count, i);

        edge_put(&lane, 0, 0, 0, EDGE_OUTSIDE);
        *lane.polygon = COLUMN_NONE;
    }
    if (count > STACK_LEAST)
        stack_set(block, count, m->mesh);
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* Rising keys: descending by the highest point; where that is the same, by index. */
static uint64_t height_key(const struct mesh *mesh, uint32_t polygon)
{
    float z = mesh_range(mesh, polygon).max + 0.0F; /* -0 and 0 are equal */
    uint32_t bits;

    memcpy(&bits, &z, sizeof bits);
    bits = bits >> 31 ? bits : ~bits & INT32_MAX;
    return (uint64_t)bits << 32 | polygon;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

bool grid_list_sort(const struct mesh *mesh, uint32_t *list, uint32_t count)
{
    uint64_t few[64], *keys = count <= 64 ? few : malloc(count * sizeof *keys);

    if (keys == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = height_key(mesh, list[i]);
        uint32_t at = i;

        for (; count <= 64 && at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    if (count > 64)
        qsort(keys, count, sizeof *keys, by_key);
    for (uint32_t i = 0; i < count; i++)
        list[i] = (uint32_t)keys[i];
    if (keys != few)
        free(keys);
    return true;
}

static struct column_cell *cell_of(const struct grid_maker *m, const struct grid_open_cell *open)
{
    return open->level == 1 && m->root ? &m->root[open->place] : &m->cells[open->place];
}

/* Room for more cells; false without memory. */
static bool cells_add(struct grid_maker *m, size_t count)
{
    if (!array_reserve((void **)&m->cells, &m->cell_capacity, m->cell_count + count,
                       sizeof *m->cells)) {
        m->is_short = true;
        return false;
    }
    m->cell_count += count;
    return true;
}

static void leaf_make(struct grid_maker *m, const struct grid_open_cell *open)
{
    size_t blocks = stack_blocks(open->count);

    *cell_of(m, open) = (struct column_cell){0, 0};
    if (open->count == 0)
        return;
    m->is_short |= pace_step(m->pace, (uint64_t)LANE_UNITS * open->count, m->err) != ERR_OK;
    m->cell_area += (open->box.x_max - open->box.x_min) * (open->box.y_max - open->box.y_min);
    if (!grid_list_sort(m->mesh, open->list, open->count) ||
        !array_reserve((void **)&m->blocks, &m->block_capacity, m->block_count + blocks,
                       sizeof *m->blocks)) {
        m->is_short = true;
        return;
    }
    *cell_of(m, open) = (struct column_cell){(uint32_t)m->block_count, open->count};
    grid_blocks_set(m->blocks + m->block_count, m, open->list, open->count, &open->box);
    m->block_count += blocks;
    m->refs += open->count;
}

static uint32_t clamp_cell(double at, uint32_t side)
{
    return at >= side ? side - 1 : at > 0 ? (uint32_t)at : 0;
}

struct cell_range grid_cells_of(const struct box2 *grid, uint32_t side, const struct box2 *own)
{
    double scale_x = side / (grid->x_max - grid->x_min);
    double scale_y = side / (grid->y_max - grid->y_min);

    return (struct cell_range){clamp_cell((own->x_min - grid->x_min) * scale_x - 0.001, side),
                               clamp_cell((own->x_max - grid->x_min) * scale_x + 0.001, side),
                               clamp_cell((own->y_min - grid->y_min) * scale_y - 0.001, side),
                               clamp_cell((own->y_max - grid->y_min) * scale_y + 0.001, side)};
}

bool grid_pairs_add(struct grid_pairs *pairs, const struct mesh *mesh, const struct box2 *box,
                    uint32_t side, uint32_t polygon)
{
    struct outline outline;

    outline_set(&outline, mesh, polygon);
    struct cell_range range = grid_cells_of(box, side, &outline.box);
    double w = (box->x_max - box->x_min) / side, h = (box->y_max - box->y_min) / side;
    size_t cells = (size_t)(range.row1 - range.row0 + 1) * (range.column1 - range.column0 + 1);

    pairs->tests += cells;
    if (pairs->tests > pairs->tests_most)
        return false;
    pairs->is_short = !array_reserve((void **)&pairs->at, &pairs->capacity, pairs->count + cells,
                                     sizeof *pairs->at);
    if (pairs->is_short)
        return false;
    for (uint32_t row = range.row0; row <= range.row1; row++)
        for (uint32_t column = range.column0; column <= range.column1; column++) {
            struct box2 cell = {box->x_min + column * w, box->y_min + row * h,
                                box->x_min + (column + 1) * w, box->y_min + (row + 1) * h};

            if (outline_reaches(&cell, &outline, mesh->header->near))
                pairs->at[pairs->count++] = (struct grid_pair){row * side + column, polygon};
        }
    return pairs->count <= pairs->most;
}

void grid_lists_count(const struct grid_pairs *pairs, uint32_t *starts)
{
    for (size_t i = 0; i < pairs->count; i++)
        starts[pairs->at[i].cell]++;
}

void grid_lists_sum(uint32_t *starts, size_t cells)
{
    for (size_t i = 0, sum = 0; i <= cells; i++) {
        sum += starts[i];
        starts[i] = (uint32_t)sum; /* the end; filled from there */
    }
}

void grid_lists_fill(const struct grid_pairs *pairs, uint32_t *starts, uint32_t *lists)
{
    for (size_t i = pairs->count; i-- > 0;)
        lists[--starts[pairs->at[i].cell]] = pairs->at[i].polygon;
}

/* The cells of a cell from its pairs. */
static void cells_make(struct grid_maker *m, const struct grid_open_cell *open, uint32_t side,
                       uint32_t bits, const struct grid_pairs *pairs)
{
    size_t cells = (size_t)side * side, first = m->cell_count;
    uint32_t *starts = calloc(cells + 1, sizeof *starts);
    uint32_t *lists = malloc((pairs->count + 1) * sizeof *lists);

    m->is_short |= starts == NULL || lists == NULL;
    if (!m->is_short && cells_add(m, cells)) {
        *cell_of(m, open) = (struct column_cell){(uint32_t)first, COLUMN_INNER | side};
        grid_lists_count(pairs, starts);
        grid_lists_sum(starts, cells);
        grid_lists_fill(pairs, starts, lists);
        for (uint32_t i = 0; i < cells && !m->is_short; i++) {
            struct grid_open_cell child = {grid_cell_box(&open->box, side, i % side, i / side),
                                           lists + starts[i],
                                           starts[i + 1] - starts[i],
                                           open->level + 1,
                                           open->bits + bits,
                                           first + i};

            grid_cell_make(m, &child);
        }
    }
    free(starts);
    free(lists);
}

/* Divides a cell as finely as it pays; false when it does not. */
static bool cell_divide(struct grid_maker *m, const struct grid_open_cell *open, uint32_t side)
{
    double narrow = fmin(open->box.x_max - open->box.x_min, open->box.y_max - open->box.y_min);
    bool is_made = false;

    for (; side >= 2 && !m->is_short && !is_made; side /= 2) {
        uint32_t bits = (uint32_t)__builtin_ctz(side);
        double growth = open->count > LONG_LIST ? GROWTH_OF_LONG : GROWTH_MOST;
        double most = open->count;

        for (uint32_t i = 0; i < bits; i++)
            most *= growth;
        struct grid_pairs pairs = {.most = (size_t)fmin(most, (double)(open->count + m->refs_left)),
                                   .tests_most = (uint64_t)GRID_TESTS_MOST * open->count};
        bool pays = open->bits + bits <= m->mesh->header->max_depth &&
                    narrow / side >= GRID_CELL_NEARS * m->mesh->header->near;

        for (uint32_t i = 0; i < open->count && pays; i++)
            pays = pace_step(m->pace, PAIR_UNITS, m->err) == ERR_OK &&
                   grid_pairs_add(&pairs, m->mesh, &open->box, side, open->list[i]);
        m->is_short |= pairs.is_short || (m->err && m->err->code);
        if (pays) {
            m->refs_left -= pairs.count > open->count ? pairs.count - open->count : 0;
            cells_make(m, open, side, bits, &pairs);
            is_made = true;
        }
        free(pairs.at);
    }
    return is_made;
}

void grid_cell_make(struct grid_maker *m, const struct grid_open_cell *open)
{
    uint32_t side = 2;

    while (side < INNER_SIDE_MAX && open->count > m->leaf_refs * side * side)
        side *= 2;
    if (open->count > m->leaf_refs && open->level < GRID_LEVELS_MAX && cell_divide(m, open, side))
        return;
    if (!m->is_short)
        leaf_make(m, open);
}
