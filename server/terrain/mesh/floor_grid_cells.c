/*
 * The cells of a floor grid and their blocks (floor_grid.c has the problem and the approach).
 *
 * A crowded cell is divided as finely as its list asks for, if the lists of its cells together are
 * not much longer than its own: where long slivers or storeys lie in all of them nothing is won,
 * but very long lists may grow more.
 */
#include "terrain/mesh/floor_grid_cells.h"

#include "base/array_reserve.h"

#include "terrain/kernels/int_lanes.h"
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

/*
 * The most, up to COLUMN_SCALE, that an edge's a and b, of which the larger is 1, can be multiplied
 * by and be nearly whole; `step` is the smaller in 65,536ths. There is one: of 127 multiples of a
 * number one is within 1/128 of whole. Eight are tried at a time, and 32 without a branch; the
 * lowest bit that is set has the most.
 */
static inline int edge_scale(int step)
{
    /* of fractions of 2^16; step is rounded by half a unit, which times COLUMN_SCALE is below 64 */
    const uint16_t near = (1 << 16) / COLUMN_WHOLE - 64;
    u16x8 one = (u16x8)i16x8_all((int16_t)step), eight = one << 3;
    const u16x8 first = {0, 1, 2, 3, 4, 5, 6, 7};
    /* moved so that those within `near` of whole are the least */
    u16x8 fraction = (COLUMN_SCALE - first) * one + (uint16_t)(near + (1 << 15));
    i16x8 beyond = i16x8_all((int16_t)(INT16_MIN + 2 * near + 1));

    for (int scale = COLUMN_SCALE;; scale -= 32) {
        u16x8 second = fraction - eight, third = second - eight, fourth = third - eight;
        unsigned fits = i16x8_less((i16x8)fraction, (i16x8)second, beyond) |
                        i16x8_less((i16x8)third, (i16x8)fourth, beyond) << 16;

        if (__builtin_expect(fits != 0, 1))
            return scale - __builtin_ctz(fits);
        fraction = fourth - eight;
    }
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

/* The corner `i`, or the last. */
LANES_INLINE f64x2 corner_xy(const struct face *face, uint32_t i)
{
    uint32_t at = face->corners[i < face->count ? i : face->count - 1];

    return face->points.narrow ? f64x2_of_floats(f32x4_load_two(face->points.narrow[at]))
                               : f64x2_load(&face->points.wide[at].x);
}

/* The four edges to corner `first` and those after it; what is no edge has no length. widen: a box
 * that takes the corners, or NULL. */
LANES_INLINE struct outline_edges edges_of(const struct face *face, uint32_t first,
                                           struct outline *widen)
{
    f64x2 before = corner_xy(face, first > 0 ? first - 1 : face->count - 1);
    f64x2 a = corner_xy(face, first), b = corner_xy(face, first + 1);
    f64x2 c = corner_xy(face, first + 2), d = corner_xy(face, first + 3);
    f64x2 to_a = a - before, to_b = b - a, to_c = c - b, to_d = d - c;

    if (widen) {
        widen->low = f64x2_min(f64x2_min(f64x2_min(a, b), f64x2_min(c, d)), widen->low);
        widen->high = f64x2_max(f64x2_max(f64x2_max(a, b), f64x2_max(c, d)), widen->high);
    }
    return (struct outline_edges){
        {__builtin_shufflevector(before, a, 0, 2), __builtin_shufflevector(b, c, 0, 2)},
        {__builtin_shufflevector(before, a, 1, 3), __builtin_shufflevector(b, c, 1, 3)},
        {__builtin_shufflevector(to_a, to_b, 0, 2), __builtin_shufflevector(to_c, to_d, 0, 2)},
        {__builtin_shufflevector(to_a, to_b, 1, 3), __builtin_shufflevector(to_c, to_d, 1, 3)},
    };
}

void outline_set(struct outline *o, const struct mesh *mesh, uint32_t polygon)
{
    o->face = mesh_face(mesh, polygon);
    o->low = f64x2_all(INFINITY);
    o->high = f64x2_all(-INFINITY);
    for (uint32_t k = 0; k < OUTLINE_GROUPS && 4 * k < o->face.count; k++)
        o->edges[k] = edges_of(&o->face, 4 * k, o);
    for (uint32_t i = 4 * OUTLINE_GROUPS; i < o->face.count; i += 4)
        edges_of(&o->face, i, o);
}

/* How far a place is inside of two edges, times their lengths. */
static inline f64x2 edge_values(const struct outline_edges *e, unsigned pair, f64x2 x, f64x2 y)
{
    return e->dx[pair] * (y - e->y[pair]) - e->dy[pair] * (x - e->x[pair]);
}

/* A box in the plane, both lanes the same. */
struct sides {
    f64x2 x_low, y_low, x_high, y_high;
};

LANES_INLINE struct sides sides_of(double x_low, double y_low, double x_high, double y_high)
{
    return (struct sides){f64x2_all(x_low), f64x2_all(y_low), f64x2_all(x_high), f64x2_all(y_high)};
}

/* Not 0: all of a box is outside of one of four edges. Of one without length nothing is. */
LANES_INLINE unsigned are_beyond(const struct sides *box, const struct outline_edges *e,
                                 double near)
{
    unsigned are = 0; /* not a vector: gcc 12 would go through its lanes one by one */

#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        f64x2 dx = e->dx[k], dy = e->dy[k], x = e->x[k], y = e->y[k];
        f64x2 most = f64x2_max(dx * (box->y_high - y), dx * (box->y_low - y)) -
                     f64x2_min(dy * (box->x_high - x), dy * (box->x_low - x));

        are |= i64x2_signs((i64x2)(most < -near * (f64x2_abs(dx) + f64x2_abs(dy))));
    }
    return are;
}

LANES_INLINE bool reaches(const struct sides *box, const struct outline *o, double near)
{
    f64x2 before = f64x2_max(o->low - __builtin_shufflevector(box->x_high, box->y_high, 0, 2),
                             __builtin_shufflevector(box->x_low, box->y_low, 0, 2) - o->high);
    unsigned beside = i64x2_signs((i64x2)(before >= near)) | are_beyond(box, &o->edges[0], near);

    for (uint32_t i = 4; i < o->face.count; i += 4) {
        struct outline_edges more =
            i / 4 < OUTLINE_GROUPS ? o->edges[i / 4] : edges_of(&o->face, i, NULL);

        beside |= are_beyond(box, &more, near);
    }
    return beside == 0;
}

bool outline_reaches(const struct box2 *box, const struct outline *o, double near)
{
    struct sides sides = sides_of(box->x_min, box->y_min, box->x_max, box->y_max);

    return reaches(&sides, o, near);
}

/* To the nearest; NaN and numbers that do not fit become the nearest that does. */
static inline i32x4 rounded(f64x2 x, int most)
{
    return f64x2_rounded(f64x2_min(f64x2_max(x, f64x2_all(-most)), f64x2_all(most)));
}

/* A cell as lanes see it. */
struct lane_frame {
    f64x2 width, height, x, y; /* all lanes are the same; (x, y): its middle */
};

/*
 * Four edges in a cell as a lane has them; bit i: edge i cuts it, bit 4 + i: it does not fit. In
 * units of its own the larger of |a| and |b| is 1, and c that of the middle; an edge that cuts the
 * cell has |c| <= 1, so that c fits from the cell's corner, too.
 */
LANES_INLINE unsigned edges_small(const struct outline_edges *e, const struct lane_frame *in,
                                  bool is_triangle, uint32_t words[4])
{
    const double uncertain = COLUMN_DOUBT / ((double)COLUMN_SCALE * COLUMN_UNIT);
    f64x2 a[2], b[2], c[2];
    i32x4 x[2], y[2], z[2], steps[2];
    unsigned out = 0;
    int step[4], scale[4] = {1, 1, 1, 1};

#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        f64x2 wide = -e->dy[k] * in->width, high = e->dx[k] * in->height;
        f64x2 along = f64x2_abs(wide), across = f64x2_abs(high), larger = f64x2_max(along, across);
        f64x2 middle = edge_values(e, k, in->x, in->y), unit = 1 / larger;
        i64x2 cuts_nothing = (i64x2)(middle - 0.5 * (along + across) >= 4 * uncertain * larger);

        c[k] = middle * unit;
        unsigned fits =
            i64x2_signs((i64x2)(c[k] >= -1.001)) & i64x2_signs((i64x2)(larger * unit <= 1.001));

        out |= (~i64x2_signs(cuts_nothing) & 3) << 2 * k | (~fits & 3) << (4 + 2 * k);
        a[k] = wide * unit;
        b[k] = high * unit;
        c[k] += 0.5 * unit * (wide + high) / COLUMN_UNIT; /* a place is the middle of its unit */
        steps[k] = f64x2_rounded(f64x2_min(f64x2_abs(a[k]), f64x2_abs(b[k])) * (1 << 16));
    }
    memcpy(step, &(i32x4){steps[0][0], steps[0][1], steps[1][0], steps[1][1]}, sizeof step);
    for (unsigned i = 0; i < (is_triangle ? 3 : 4); i++)
        scale[i] = edge_scale(step[i]);
#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        f64x2 times = {scale[2 * k], scale[2 * k + 1]};

        x[k] = rounded(a[k] * times, COLUMN_SCALE);
        y[k] = rounded(b[k] * times, COLUMN_SCALE);
        z[k] =
            rounded((c[k] * (times * COLUMN_UNIT) + COLUMN_DOUBT) / (1 << COLUMN_SHIFT), INT16_MAX);
    }
    i32x4 xs = __builtin_shufflevector(x[0], x[1], 0, 1, 4, 5);
    i32x4 ys = __builtin_shufflevector(y[0], y[1], 0, 1, 4, 5);
    i32x4 zs = __builtin_shufflevector(z[0], z[1], 0, 1, 4, 5) - COLUMN_MIDDLE * (xs + ys);

    xs = (xs & 0xff) | (ys & 0xff) << 8 | zs << 16;
    memcpy(words, &xs, sizeof xs);
    return out;
}

/* Over the polygon's index. */
static inline uint32_t levels_of(const struct floor_grid *grid, struct z_range range)
{
    return column_level(grid, (double)range.max) << COLUMN_HIGH_SHIFT |
           column_level(grid, (double)range.min) << COLUMN_LOW_SHIFT;
}

/* The lane of one polygon in a cell. */
static inline void lane_set(const struct column_lane *lane, const struct grid_maker *m,
                            uint32_t polygon, const struct lane_frame *in)
{
    const uint32_t inside = (uint32_t)EDGE_INSIDE << 16, uncertain = (uint32_t)EDGE_UNCERTAIN << 16;
    uint32_t words[2 * COLUMN_EDGES + 4], levels = levels_of(m->grid, mesh_range(m->mesh, polygon));
    struct face face = mesh_face(m->mesh, polygon);
    unsigned edges = 0;

    *lane->polygon = polygon | levels;
    for (uint32_t first = 0; first < face.count && edges <= COLUMN_EDGES; first += 4) {
        struct outline_edges e = edges_of(&face, first, NULL);
        uint32_t four[4];
        unsigned cut = edges_small(&e, in, face.count == 3, four);

#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; i++) { /* no branch: what cuts a cell is unpredictable */
            words[edges] = four[i];
            edges += cut >> i & 1;
        }
        if (__builtin_expect((cut & cut >> 4 & 0xf) != 0, 0)) {
            words[0] = words[1] = inside;
            edges = COLUMN_EDGES + 1;
        }
    }
    for (unsigned k = 0; k < COLUMN_EDGES; k++)
        words[edges + k] = inside;
    if (edges > COLUMN_EDGES)
        words[COLUMN_EDGES - 1] = uncertain;
    for (unsigned k = 0; k < COLUMN_EDGES; k++) {
        memcpy(&lane->ab[k * lane->step], &words[k], 2);
        lane->c[k * lane->step / 2] = (int16_t)(words[k] >> 16);
    }
}

void grid_blocks_set(struct column_block *block, const struct grid_maker *m, const uint32_t *list,
                     uint32_t count, const struct box2 *box)
{
    double w = box->x_max - box->x_min, h = box->y_max - box->y_min;
    struct lane_frame frame = {f64x2_all(w), f64x2_all(h), f64x2_all(box->x_min + w / 2),
                               f64x2_all(box->y_min + h / 2)};

    memset(block, 0, stack_blocks(count) * sizeof *block);
    for (uint32_t i = 0; i < count; i++) {
        struct column_lane lane = column_lane(block, count, i);

        lane_set(&lane, m, list[i], &frame);
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

struct grid_net grid_net_of(const struct box2 *box, uint32_t side, double near)
{
    f64x2 low = {box->x_min, box->y_min}, high = {box->x_max, box->y_max};

    return (struct grid_net){low, (high - low) / side, side / (high - low), side, near};
}

static inline struct cell_range cells_between(const struct grid_net *net, f64x2 low, f64x2 high)
{
    f64x2 none = f64x2_all(0), last = f64x2_all(net->side - 1);
    f64x2 from = (low - net->low) * net->scale - 0.001, to = (high - net->low) * net->scale + 0.001;
    i32x4 first = f64x2_truncated(f64x2_min(f64x2_max(from, none), last));
    i32x4 end = f64x2_truncated(f64x2_min(f64x2_max(to, none), last));

    return (struct cell_range){(uint32_t)first[0], (uint32_t)end[0], (uint32_t)first[1],
                               (uint32_t)end[1]};
}

struct cell_range grid_cells_of(const struct grid_net *net, const struct box2 *own)
{
    return cells_between(net, (f64x2){own->x_min, own->y_min}, (f64x2){own->x_max, own->y_max});
}

bool grid_pairs_add(struct grid_pairs *pairs, const struct mesh *mesh, const struct grid_net *net,
                    uint32_t polygon)
{
    struct outline outline;

    outline_set(&outline, mesh, polygon);
    struct cell_range range = cells_between(net, outline.low, outline.high);
    size_t cells = (size_t)(range.row1 - range.row0 + 1) * (range.column1 - range.column0 + 1);

    pairs->tests += cells;
    if (pairs->tests > pairs->tests_most)
        return false;
    pairs->is_short = !array_reserve((void **)&pairs->at, &pairs->capacity, pairs->count + cells,
                                     sizeof *pairs->at);
    if (pairs->is_short)
        return false;
    struct grid_pair *next = pairs->at + pairs->count;

    for (uint32_t row = range.row0; row <= range.row1; row++)
        for (uint32_t column = range.column0; column <= range.column1; column++) {
            struct sides cell =
                sides_of(net->low[0] + column * net->width[0], net->low[1] + row * net->width[1],
                         net->low[0] + (column + 1) * net->width[0],
                         net->low[1] + (row + 1) * net->width[1]);

            *next = (struct grid_pair){row * net->side + column, polygon};
            next += reaches(&cell, &outline, net->near);
        }
    pairs->count = (size_t)(next - pairs->at);
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
        struct grid_net net = grid_net_of(&open->box, side, m->mesh->header->near);
        bool pays = open->bits + bits <= m->mesh->header->max_depth &&
                    narrow / side >= GRID_CELL_NEARS * m->mesh->header->near;

        for (uint32_t i = 0; i < open->count && pays; i++)
            pays = pace_step(m->pace, PAIR_UNITS, m->err) == ERR_OK &&
                   grid_pairs_add(&pairs, m->mesh, &net, open->list[i]);
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
