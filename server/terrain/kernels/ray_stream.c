/*
 * Many rays by minmax16 nodes, with AVX2: stream tracing. How nodes are tested, and why no bit is
 * lost: ray_nodes.h.
 *
 * Problem: one ray waits for memory and for its own last number, and mispredicts the next step.
 * Approach: STREAM_RAYS rays are in flight, with one queue for each kind of next step: nodes to be
 * tested, nodes above the tiles or squares of 4×4 cells to be found, squares, cells, and rays that
 * have ended. Each queue is drained by a loop of its own without a branch on the kind, so a loop's
 * rays overlap: the processor holds the instructions of two or three steps. A hit is
 * prefetched and tested a round later.
 *
 * float64 is done for a packet of four rays, a lane each: they are set up together
 * (ray_packet_setup.h), cells of any rays are tested and their hits answered together
 * (cell_packet.h, cell_packet_end.h).
 *
 * A step is two loops. The first tests a node, sixteen children in the ray's order, or a square, in
 * natural order, and turns the mask of the cells that are met. The second takes the next child, of
 * that square or of one above it. With one loop for both, the second half waits for the first: a
 * quarter slower. A child's near sides are those of its parent and as many children on
 * (lane_before). Heights are mirrored for rays that fall, so that all enter by the greatest height
 * of a box and leave by the least.
 *
 * Invariants: a ray is in one queue. Its levels hold the remaining squares from the first
 * node down to where it is; bit l of `open` is set where level l has children left, and LEVEL_OVER
 * always, whose only child is the end of the ray.
 *
 * Left to ray_single.c: rays that ray_packet_setup.h leaves, heights beyond MINMAX16_Z_MAX_M, and
 * the last rays where they are fewer than a packet. Rays along a grid line are among the first.
 */
#include "terrain/kernels/kernels.h"

#ifdef __AVX2__

#include "terrain/kernels/ray_packet_setup.h"
#include "terrain/kernels/cell_packet_end.h"
#include "terrain/kernels/ray_nodes.h"

enum {
    STREAM_RAYS = 24,      /* rays in flight: a little more than the L1 cache holds */
    STREAM_RAYS_LEAST = 8, /* rays that are worth it */
    /* a cell, a square of 4×4 cells, nodes; and one over the first node, where a ray is over */
    LEVEL_CELLS = 1,
    LEVEL_TILE = LEVEL_CELLS + MINMAX16_TILE_LEVELS,
    LEVELS = LEVEL_TILE + MINMAX16_TOP_LEVELS_MAX + 2,
    LEVEL_OVER = LEVELS - 1
};

/* The queues, one per stage. */
enum queue {
    QUEUE_NODE,
    QUEUE_ROOT,
    QUEUE_TOP,
    QUEUE_LEAF,
    QUEUE_SQUARE,
    QUEUE_CELL,
    QUEUE_IDLE,
    QUEUES
};

/* Values that depend on the direction of a ray. */
struct ray_lines {
    /* of a node: bytes to numbers of 32 bits, rows 0 and 2 in the ray's order, then 1 and 3, as
     * vectors pack */
    u8x32 rows[2];
    /* of cells in natural order: how many are before one, and where its bit is */
    _Alignas(32) float u[8], v_low[8], v_high[8];
    uint8_t order[16];
};

/* A square on the way: t of its near sides, less the pad, and the children that are left. */
struct ray_level {
    float own[2];
    uint32_t left, index;
};

struct ray_state {
    _Alignas(64) struct ray_level levels[LEVELS];
    float span[4]; /* t of a cell: u, v, u, v */
    float side[4]; /* of the children of the present node: u, v; and pads twice */
    /* z is mirrored where it falls */
    float dz, z_in, z_out, t_low;
    float t_high;
    uint32_t sign;        /* of z: its bit where it is mirrored */
    uint32_t flip;        /* lane i is child i ^ flip */
    uint32_t in_at;       /* in a node, the bounds that it comes in by */
    uint32_t column, row; /* low corner of the tile, or of the node above tiles */
    uint32_t out_at;
    uint32_t lines_at; /* in ray_lines, in bytes */
    uint32_t open;     /* levels with children left */
    uint32_t level;    /* of the present node */
    const struct tile *tile;
    const char *at;       /* the node */
    const float *samples; /* of a square, and its low corner */
    uint32_t square_column, square_row;
    struct walk *w;
    const struct ray *ray;
    struct ray_hit *hit;
};

struct state_list {
    struct ray_state **end;
    struct ray_state *at[STREAM_RAYS];
};

struct ray_stream {
    _Alignas(64) struct ray_state state[STREAM_RAYS];
    _Alignas(64) struct walk w[STREAM_RAYS];
    struct state_list list[QUEUES];
    struct state_list *list_of[LEVELS];  /* for the child of a square of each level */
    _Alignas(16) float sides[LEVELS][4]; /* of such a child, and with the pads */
    const struct heightfield *field;
    const struct ray *rays;
    struct ray_hit *hits;
    size_t count, next;
    struct packet_setup begun;
    float pad_z, pad_cells;
};

#define NODE_ROWS(i, flip)                                                                         \
    {                                                                                              \
        NODE_BYTES(i, flip), NODE_BYTES((i) + 8, flip)                                             \
    }

/* Of rays that fall along u, 1, and v, 2. Cells' bits have rows 0, 2, 1, 3: so do vectors pack. */
static const struct ray_lines ray_lines[4] = {
    {{NODE_ROWS(0, 0), NODE_ROWS(4, 0)},
     {0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 1, 1, 1, 1},
     {2, 2, 2, 2, 3, 3, 3, 3},
     {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}},
    {{NODE_ROWS(0, 3), NODE_ROWS(4, 3)},
     {3, 2, 1, 0, 3, 2, 1, 0},
     {0, 0, 0, 0, 1, 1, 1, 1},
     {2, 2, 2, 2, 3, 3, 3, 3},
     {3, 2, 1, 0, 11, 10, 9, 8, 7, 6, 5, 4, 15, 14, 13, 12}},
    {{NODE_ROWS(0, 12), NODE_ROWS(4, 12)},
     {0, 1, 2, 3, 0, 1, 2, 3},
     {3, 3, 3, 3, 2, 2, 2, 2},
     {1, 1, 1, 1, 0, 0, 0, 0},
     {12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3}},
    {{NODE_ROWS(0, 15), NODE_ROWS(4, 15)},
     {3, 2, 1, 0, 3, 2, 1, 0},
     {3, 3, 3, 3, 2, 2, 2, 2},
     {1, 1, 1, 1, 0, 0, 0, 0},
     {15, 14, 13, 12, 7, 6, 5, 4, 11, 10, 9, 8, 3, 2, 1, 0}},
};

/* Columns and rows before a lane, in the ray's direction. */
static const float lane_before[MINMAX16_CHILDREN][2] = {
    {0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 1}, {1, 1}, {2, 1}, {3, 1},
    {0, 2}, {1, 2}, {2, 2}, {3, 2}, {0, 3}, {1, 3}, {2, 3}, {3, 3},
};

static inline void state_join(struct state_list *list, struct ray_state *s)
{
    struct ray_state **end = list->end;

    *end = s;
    list->end = end + 1;
}

static inline size_t stream_waiting(const struct state_list *list)
{
    return (size_t)(list->end - list->at);
}

/* ---- the present node ------------------------------------------------------------------------ */

/* Two vectors of lanes: when the ray comes into their columns and rows and leaves them, how high.
 */
struct node_pass {
    f32x8 t_in[2], t_out[2], z_in[2], z_out[2];
};

/* Heights are over `base`. How many children are before a lane: columns, rows of both vectors. */
static inline __attribute__((always_inline)) void state_pass(struct node_pass *way,
                                                             const struct ray_state *s,
                                                             uint32_t level, f32x8 base,
                                                             f32x8 u_before, f32x8 v_before0,
                                                             f32x8 v_before1)
{
    const float *own = s->levels[level].own;
    f32x8 own_u = f32x8_all(own[0]), own_v = f32x8_all(own[1]);
    f32x8 side_u = f32x8_all(s->side[0]), side_v = f32x8_all(s->side[1]);
    f32x8 far_u = f32x8_all(s->side[2]), far_v = f32x8_all(s->side[3]);
    f32x8 u_in = f32x8_fma(side_u, u_before, own_u);
    f32x8 v_in[2] = {f32x8_fma(side_v, v_before0, own_v), f32x8_fma(side_v, v_before1, own_v)};
    f32x8 u_out = u_in + far_u;
    f32x8 dz = f32x8_all(s->dz);
    f32x8 z_in = f32x8_all(s->z_in) - base;
    f32x8 z_out = f32x8_all(s->z_out) - base;

    u_in = f32x8_max(u_in, f32x8_all(s->t_low));
    u_out = f32x8_min(u_out, f32x8_all(s->t_high));
    for (int i = 0; i < 2; i++) {
        way->t_in[i] = f32x8_max(u_in, v_in[i]);
        way->t_out[i] = f32x8_min(u_out, v_in[i] + far_v);
        way->z_in[i] = f32x8_fma(dz, way->t_in[i], z_in);
        way->z_out[i] = f32x8_fma(dz, way->t_out[i], z_out);
    }
}

/*
 * The signs of the remaining height at either end and of the remaining time: negative where a lane
 * is not met. 0 has either sign, so pads keep touched lanes above it.
 */
static inline f32x8 state_missed(const struct node_pass *way, int i, f32x8 in_left, f32x8 out_left)
{
    return f32x8_or(f32x8_or(in_left, out_left), way->t_out[i] - way->t_in[i]);
}

static inline const struct ray_lines *lines_of_state(const struct ray_state *s)
{
    return (const void *)((const char *)(const void *)ray_lines + s->lines_at);
}

/* Bytes of a node, each to a number of 32 bits; the rest of it 0. */
static inline f32x8 state_bytes(u8x32 sixteen, u8x32 order)
{
    return f32x8_of_ints((i32x8)u8x32_pick(sixteen, order));
}

static inline u8x32 state_sixteen(const char *at)
{
    return u8x32_twice(u8x16_load(at));
}

/* The children of a node, in the ray's order, that it passes within their heights. */
static inline __attribute__((always_inline)) uint32_t state_node_lanes(const struct ray_state *s)
{
    const f32x8 u = (f32x8){0, 1, 2, 3, 0, 1, 2, 3};
    const f32x8 even = (f32x8){0, 0, 0, 0, 2, 2, 2, 2};
    const f32x8 odd = (f32x8){1, 1, 1, 1, 3, 3, 3, 3};
    const u8x32 *order = lines_of_state(s)->rows;
    u8x32 in = state_sixteen(s->at + s->in_at), out = state_sixteen(s->at + s->out_at);
    f32x8 sign = (f32x8)i32x8_all((int32_t)s->sign);
    const float *scale = (const float *)(const void *)s->at;
    f32x8 base = f32x8_xor(f32x8_all(*scale), sign);
    f32x8 step = f32x8_xor(f32x8_all(*(scale + 1)), sign);
    struct node_pass way;
    f32x8 missed[2];

    state_pass(&way, s, s->level, base, u, even, odd);
    for (int i = 0; i < 2; i++) {
        f32x8 in_left = f32x8_fms(state_bytes(in, order[i]), step, way.z_in[i]);
        f32x8 out_left = f32x8_fnma(state_bytes(out, order[i]), step, way.z_out[i]);

        missed[i] = state_missed(&way, i, in_left, out_left);
    }
    return 0xffff ^ (uint32_t)u8x16_signs(f32x8_pack_signs(missed[0], missed[1]));
}

static inline f32x8 state_rows_of(const float *at, size_t stride, f32x8 sign)
{
    f32x8 rows = f32x8_halves(f32x4_load(at), f32x4_load(at + stride));

    return f32x8_xor(rows, sign);
}

/* The cells of a square; where a sample is missing all that the ray passes. */
static inline __attribute__((always_inline)) uint32_t state_square_lanes(const struct ray_state *s,
                                                                         size_t stride)
{
    const float *at = s->samples, *last = at + 4 * stride;
    f32x8 sign = (f32x8)i32x8_all((int32_t)s->sign);
    f32x8 west0 = state_rows_of(at, stride, sign), east0 = state_rows_of(at + 1, stride, sign);
    f32x8 west2 = state_rows_of(at + 2 * stride, stride, sign),
          east2 = state_rows_of(at + 2 * stride + 1, stride, sign);
    f32x4 west4 = f32x4_xor(f32x4_load(last), f32x8_low(sign));
    f32x4 east4 = f32x4_xor(f32x4_load(last + 1), f32x8_low(sign));
    f32x8 min0 = f32x8_min(west0, east0), max0 = f32x8_max(west0, east0);
    f32x8 min2 = f32x8_min(west2, east2), max2 = f32x8_max(west2, east2);
    f32x8 min4 = f32x8_of_low(f32x4_min(west4, east4));
    f32x8 max4 = f32x8_of_low(f32x4_max(west4, east4));
    f32x8 in[2] = {f32x8_max(max0, f32x8_middle(max0, max2)),
                   f32x8_max(max2, f32x8_middle(max2, max4))};
    f32x8 out[2] = {f32x8_min(min0, f32x8_middle(min0, min2)),
                    f32x8_min(min2, f32x8_middle(min2, min4))};
    i32x8 missing = f32x8_unordered(west0, east0) | f32x8_unordered(west2, east2);
    i32x4 missing4 = f32x4_unordered(west4, east4);

    missing |= (i32x8)f32x8_of_low((f32x4)missing4);
    if (__builtin_expect(i64x4_any((i64x4)missing), 0)) {
        in[0] = in[1] = f32x8_all(__builtin_inff());
        out[0] = out[1] = f32x8_all(-__builtin_inff());
    }
    const struct ray_lines *lines = lines_of_state(s);
    struct node_pass way;
    f32x8 missed[2];

    state_pass(&way, s, LEVEL_CELLS, f32x8_all(0), f32x8_load(lines->u), f32x8_load(lines->v_low),
               f32x8_load(lines->v_high));
    for (int i = 0; i < 2; i++)
        missed[i] = state_missed(&way, i, in[i] - way.z_in[i], way.z_out[i] - out[i]);
    u8x16 bytes = u8x16_pick(f32x8_pack_signs(missed[0], missed[1]), u8x16_load(lines->order));

    return 0xffff ^ (uint32_t)u8x16_signs(bytes);
}

/* ---- the next node --------------------------------------------------------------------------- */

/* The children of the square of `level` that are to be tested. */
static inline __attribute__((always_inline)) void state_open(struct ray_state *s, uint32_t level,
                                                             uint32_t lanes)
{
    s->levels[level].left = lanes;
    s->open |= (lanes != 0 ? 1u : 0) << level;
}

/*
 * The next child that is open, or none. Its memory is prefetched if it is a node of the tile. The
 * kind of the child is not predictable, so this has no branch.
 */
static inline __attribute__((always_inline)) void state_go_on(struct ray_stream *all,
                                                              struct ray_state *s)
{
    uint32_t open = s->open;
    uint64_t level = bits_first(open);
    struct ray_level *own = &s->levels[level], *below = own - 1;
    uint32_t left = own->left, rest = left & (left - 1), closed = open & (open - 1);
    uint64_t lane = bits_first(left);
    uint32_t index = MINMAX16_CHILDREN * own->index + 1u + ((uint32_t)lane ^ s->flip);
    f32x4 span = f32x4_load(s->span), own_t = f32x4_load(own->own);
    f32x4 before = f32x4_load_two(lane_before[lane]);

    own->left = rest;
    s->open = rest != 0 ? open : closed;
    own_t = f32x4_fma(before, span * f32x4_load(all->sides[level]), own_t);
    f32x4_store_low(below->own, own_t);
    f32x4_store(s->side, span * f32x4_load(all->sides[level - 1]));
    s->level = (uint32_t)level - 1;
    below->index = index;
    const char *at = (const char *)heightfield_minmax16(all->field, s->tile, index);
    /* all bits of a node's child; chosen by bits, as gcc makes a branch of a choice */
    intptr_t is_node = (int64_t)(LEVEL_CELLS + 1 - level) >> 63;

    s->at = at;
    at = (const char *)own + ((at - (const char *)own) & is_node);
    __builtin_prefetch(at);
    __builtin_prefetch(at + sizeof(struct minmax16_node) - 1);
    state_join(all->list_of[level], s);
}

/* Where a node is. */
static inline const char *state_node_at(const struct heightfield *field, const struct tile *tile,
                                        uint32_t level, uint32_t index, uint32_t column,
                                        uint32_t row)
{
    return level > LEVEL_TILE ? (const char *)top_node(field, (int)level - 2, column, row)
                              : (const char *)heightfield_minmax16(field, tile, index);
}

/* A node above the tiles, or the root of a tile: where it is, and whether that is in the field. */
static inline __attribute__((always_inline)) bool state_place(struct ray_stream *all,
                                                              struct ray_state *s, uint32_t level)
{
    uint32_t shift = 2 * level, clear = (1u << (shift + 2)) - 1;
    uint32_t child = s->levels[level].index - 1;

    s->column = (s->column & ~clear) | (child & 3) << shift;
    s->row = (s->row & ~clear) | (child >> 2 & 3) << shift;
    s->levels[level].index = 0;
    return s->column < all->field->cell_cols && s->row < all->field->cell_rows;
}

static inline void state_wait_for_node(struct ray_stream *all, struct ray_state *s, const void *at)
{
    s->at = at;
    __builtin_prefetch(s->at);
    __builtin_prefetch(s->at + sizeof(struct minmax16_node) - 1);
    state_join(&all->list[QUEUE_NODE], s);
}

static inline void state_enter_tile(struct ray_stream *all, struct ray_state *s)
{
    if (!state_place(all, s, LEVEL_TILE)) {
        state_go_on(all, s);
        return;
    }
    s->tile = heightfield_tile(all->field, s->column, s->row);
    state_wait_for_node(all, s, heightfield_minmax16(all->field, s->tile, 0));
}

static inline void state_enter_top(struct ray_stream *all, struct ray_state *s)
{
    if (state_place(all, s, s->level))
        state_wait_for_node(all, s, top_node(all->field, (int)s->level - 2, s->column, s->row));
    else
        state_go_on(all, s);
}

/* 4×4 cells: their samples are prefetched. */
static inline void state_enter_square(struct ray_stream *all, struct ray_state *s)
{
    uint32_t path = s->levels[LEVEL_CELLS].index - (uint32_t)MINMAX16_TILE_NODES;
    uint32_t c = 4 * bits_gather(path, LEAF_COLUMNS), r = 4 * bits_gather(path, LEAF_ROWS);

    const size_t stride = all->field->stride;

    s->samples = heightfield_tile_at(all->field, s->tile, r * stride + c);
    s->square_column = s->column + c;
    s->square_row = s->row + r;
    for (size_t i = 0; i <= MINMAX16_LEAF_CELLS; i++) {
        __builtin_prefetch(s->samples + i * stride);
        __builtin_prefetch(s->samples + i * stride + MINMAX16_LEAF_CELLS);
    }
    state_join(&all->list[QUEUE_SQUARE], s);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Empties a list; the end of its former contents. */
static inline struct ray_state **stream_take(struct state_list *list)
{
    struct ray_state **end = list->end;

    list->end = list->at;
    return end;
}

/* A step of all that wait for a node or a square. */
static __attribute__((noinline)) void stream_ask(struct ray_stream *all)
{
    struct state_list *nodes = &all->list[QUEUE_NODE], *squares = &all->list[QUEUE_SQUARE];
    struct ray_state **nodes_end = stream_take(nodes), **squares_end = stream_take(squares);

    for (struct ray_state **at = nodes->at; at != nodes_end; at++)
        state_open(*at, (*at)->level, state_node_lanes(*at));
    for (struct ray_state **at = squares->at; at != squares_end; at++) {
        state_open(*at, LEVEL_CELLS, state_square_lanes(*at, all->field->stride));
        *nodes_end++ = *at;
    }
    for (struct ray_state **at = nodes->at; at != nodes_end; at++)
        state_go_on(all, *at);
}

static __attribute__((noinline)) void stream_enter(struct ray_stream *all)
{
    struct state_list *roots = &all->list[QUEUE_ROOT], *tops = &all->list[QUEUE_TOP];
    struct state_list *leaves = &all->list[QUEUE_LEAF];
    struct ray_state **end = stream_take(roots);

    for (struct ray_state **at = roots->at; at != end; at++)
        state_enter_tile(all, *at);
    end = stream_take(tops);
    for (struct ray_state **at = tops->at; at != end; at++)
        state_enter_top(all, *at);
    end = stream_take(leaves);
    for (struct ray_state **at = leaves->at; at != end; at++)
        state_enter_square(all, *at);
}

/* The answer of a ray from the hit of its walk. */
static inline void stream_answer(const struct walk *w, const struct ray *ray, struct ray_hit *hit)
{
    if (!ray_end(w, ray, hit))
        hit->t = INFINITY;
}

/* The cell that a ray waits for. */
struct ray_cell {
    int32_t column, row;
    const float *at;
};

static inline struct ray_cell state_cell(const struct ray_state *s, size_t stride)
{
    uint32_t cell = s->levels[0].index - 1, c = cell & 3, r = cell >> 2 & 3;

    return (struct ray_cell){(int32_t)(s->square_column + c), (int32_t)(s->square_row + r),
                             s->samples + r * stride + c};
}

/* As many cells as there are lanes. */
static __attribute__((noinline)) void stream_ask_cells(struct ray_stream *all)
{
    struct state_list *list = &all->list[QUEUE_CELL];
    struct ray_state **state = list->end -= PACKET; /* they may join again, at the end */
    const float *at[PACKET];
    int32_t column[PACKET], row[PACKET];
    struct packet_asked asked;
    uint32_t left;

    asked.cells.at = at;
    asked.cells.column = column;
    asked.cells.row = row;
#pragma GCC unroll 4
    for (int i = 0; i < PACKET; i++) {
        struct ray_cell cell = state_cell(state[i], all->field->stride);

        asked.cells.w[i] = state[i]->w;
        asked.ray[i] = state[i]->ray;
        asked.hit[i] = state[i]->hit;
        at[i] = cell.at;
        column[i] = cell.column;
        row[i] = cell.row;
    }
    uint32_t hits = packet_cells_end(&asked, &left);

    for (; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);

        stream_answer(state[i]->w, state[i]->ray, state[i]->hit);
    }
    for (int i = 0; i < PACKET; i++)
        if ((hits >> i & 1) != 0)
            state_join(&all->list[QUEUE_IDLE], state[i]);
        else
            state_go_on(all, state[i]);
}

/* Fewer cells, when nothing else is left. */
static __attribute__((noinline)) void stream_ask_last_cells(struct ray_stream *all)
{
    struct state_list *list = &all->list[QUEUE_CELL];
    struct ray_state **end = stream_take(list);

    for (struct ray_state **at = list->at; at != end; at++) {
        struct ray_state *s = *at;
        struct ray_cell cell = state_cell(s, all->field->stride);
        bool is_hit = cell_single_hit(s->w, cell.column, cell.row, cell.at);

        if (is_hit) {
            stream_answer(s->w, s->ray, s->hit);
            state_join(&all->list[QUEUE_IDLE], s);
        } else {
            state_go_on(all, s);
        }
    }
}

/* ---- rays that begin ------------------------------------------------------------------------- */

/* One that is not in flight here. */
static inline void stream_ask_single(struct ray_stream *all, size_t ray)
{
    if (!ray_single_avx2(all->field, &all->rays[ray], &all->hits[ray]))
        all->hits[ray].t = INFINITY;
}

/* Ray k of a packet is answered at its setup, or is left to the single ray. */
static bool stream_is_answered(struct ray_stream *all, uint32_t k, struct walk *w, size_t ray)
{
    const struct packet_setup *b = &all->begun;

    if ((b->misses >> k & 1) != 0)
        return true;
    if ((b->singles >> k & 1) != 0) {
        stream_ask_single(all, ray);
        return true;
    }
    if ((b->may_start_on >> k & 1) == 0 || !ray_touches(w, 0))
        return false;
    stream_answer(w, &all->rays[ray], &all->hits[ray]);
    return true;
}

/* Four rays for the nodes. */
struct packet_first {
    f32x4 spans[4], heights[4], ways[4], places[4];
    uint32_t column[4], row[4], level[4];
};

/* Where the rays are at their ends, and a little further. */
static inline i32x4 stream_last(const struct packet_axis *a, f64x4 t_end, uint32_t cells,
                                f64x4 slack)
{
    f64x4 sign = f64x4_and(a->d, f64x4_all(-0.0));
    f64x4 to = packet_along(a->o, a->d, t_end);

    to = to + f64x4_or(slack, sign);
    to = f64x4_min(f64x4_max(to, f64x4_all(0)), f64x4_all(cells - 1));
    return f64x4_truncated(to);
}

static inline i32x4 stream_from(const struct packet_axis *a, uint32_t cells, f64x4 slack)
{
    f64x4 sign = f64x4_and(a->d, f64x4_all(-0.0));
    f64x4 from = a->o - f64x4_or(slack, sign);

    from = f64x4_min(f64x4_max(from, f64x4_all(0)), f64x4_all(cells - 1));
    return f64x4_truncated(from);
}

static inline f32x4 stream_own(const struct packet_axis *a, i32x4 low, i32x4 size, i32x4 down,
                               f32x4 pad)
{
    f64x4 line = f64x4_of_ints(low + (size & down));

    return f64x4_floats((line - a->o) * a->inv) - pad;
}

static inline void stream_first(const struct ray_stream *all, const struct packet_start *s,
                                struct packet_first *f)
{
    const struct heightfield *field = all->field;
    const f64x4 slack = f64x4_all(RAY_BOX_SLACK), sign = f64x4_all(-0.0);
    const f32x4 pad_cells = f32x4_all(all->pad_cells), eps = f32x4_all(1 + 0x1p-19f);
    const struct packet_axis *a = s->a;
    i32x4 down_u = f64x4_signs32(a[0].d), down_v = f64x4_signs32(a[1].d),
          down_z = f64x4_signs32(a[2].d);
    i32x4 u = stream_from(&a[0], field->cell_cols, slack);
    i32x4 v = stream_from(&a[1], field->cell_rows, slack);
    i32x4 both = u ^ stream_last(&a[0], s->in.t_end, field->cell_cols, slack);
    i32x4 both_v = v ^ stream_last(&a[1], s->in.t_end, field->cell_rows, slack);

    both = both | both_v | i32x4_all(15);
    both = (i32x4)((u32x4)(i32x4)f32x4_of_ints(both) >> 23);
    /* twice the level: log2 of the side of a child */
    i32x4 level = (both - i32x4_all(127)) & i32x4_all(~1);
    i32x4 size = i32x4_all(4) << level;
    i32x4 clear = i32x4_all(0) - size;

    u = u & clear;
    v = v & clear;
    f32x4 span_u = f64x4_floats(f64x4_andnot(sign, a[0].inv));
    f32x4 span_v = f64x4_floats(f64x4_andnot(sign, a[1].inv));
    f32x4 own_u = stream_own(&a[0], u, size, down_u, pad_cells * span_u);
    f32x4 own_v = stream_own(&a[1], v, size, down_v, pad_cells * span_v);
    f64x4 z = f64x4_xor(a[2].o, f64x4_and(a[2].d, sign));
    f64x4 pad_z = s->in.pad_m + f64x4_all((double)all->pad_z);

    f32x4_transpose(span_u, span_v, own_u, own_v, f->spans);
    f32x4_transpose(f64x4_floats(f64x4_andnot(sign, a[2].d)), f64x4_floats(z - pad_z),
                    f64x4_floats(z + pad_z), f64x4_floats(s->in.t_begin) * eps, f->heights);
    i32x4 flip = (down_u & i32x4_all(3)) | (down_v & i32x4_all(12));
    i32x4 lines =
        (down_u & i32x4_all(sizeof ray_lines[0])) + (down_v & i32x4_all(2 * sizeof ray_lines[0]));
    i32x4 other = down_z & i32x4_all(MINMAX16_CHILDREN);
    i32x4 in_at = i32x4_all(offsetof(struct minmax16_node, max)) - other;
    i32x4 out_at = i32x4_all(offsetof(struct minmax16_node, min)) + other;
    i32x4 in_tile = level < i32x4_all(2 * LEVEL_TILE);

    f32x4_transpose(f64x4_floats(s->in.t_end) * eps, (f32x4)(down_z << 31), (f32x4)flip,
                    (f32x4)in_at, f->ways);
    /* where the tile is, or the node above tiles */
    in_tile = ~(in_tile & i32x4_all(TILE_CELLS - 1));
    f32x4_transpose((f32x4)(u & in_tile), (f32x4)(v & in_tile), (f32x4)out_at, (f32x4)lines,
                    f->places);
    i32x4_store(f->column, u);
    i32x4_store(f->row, v);
    i32x4_store(f->level, (i32x4)((u32x4)level >> 1) + i32x4_all(LEVEL_CELLS));
}

/* Ray k of a packet is in flight from here on. */
static inline void stream_put(struct ray_stream *all, struct ray_state *s,
                              const struct packet_first *f, uint32_t k, size_t ray)
{
    static const uint16_t first[LEVELS] = {0, 0, MINMAX16_TILE_LAST_LEVEL, 1};
    uint32_t column = f->column[k], row = f->row[k], level = f->level[k];
    uint64_t path = bits_scatter(column >> 4, 0x33) | bits_scatter(row >> 4, 0xcc);
    uint32_t index = first[level] + (uint32_t)(path >> 4 * (level - 2));
    f32x4 span = f32x4_lows(f->spans[k], f->spans[k]);

    s->ray = &all->rays[ray];
    s->hit = &all->hits[ray];
    f32x4_store(&s->dz, f->heights[k]);
    f32x4_store(&s->t_high, f->ways[k]);
    f32x4_store((float *)(void *)&s->column, f->places[k]);
    f32x4_store(s->span, span);
    f32x4_store(s->side, span * f32x4_load(all->sides[level]));
    f32x4_store_high(s->levels[level].own, f->spans[k]);
    s->levels[level].index = index;
    s->level = level;
    s->open = 1u << LEVEL_OVER;
    s->levels[LEVEL_OVER].left = 1;
    s->tile = heightfield_tile(all->field, column, row);
    s->at = state_node_at(all->field, s->tile, level, index, column, row);
    __builtin_prefetch(s->at);
    __builtin_prefetch(s->at + sizeof(struct minmax16_node) - 1);
    state_join(&all->list[QUEUE_NODE], s);
}

static inline void stream_prefetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
}

/* The next rays. */
static __attribute__((noinline)) void stream_refill(struct ray_stream *all)
{
    struct state_list *idle = &all->list[QUEUE_IDLE];
    size_t next = all->next, ahead = next + 2 * PACKET;
    struct ray_state **state = idle->end -= PACKET; /* some may join again, at the end */
    const struct ray *rays[PACKET];
    struct walk *w[PACKET];
    struct packet_start start;
    struct packet_first first;

    all->next += PACKET;
#pragma GCC unroll 4
    for (size_t k = 0; k < PACKET; k++) {
        rays[k] = &all->rays[next + k];
        w[k] = state[k]->w;
    }
    if (ahead + PACKET <= all->count) {
        stream_prefetch(&all->rays[ahead], PACKET * sizeof *all->rays);
        /* else stores wait for it, in order */
        stream_prefetch(&all->hits[ahead], PACKET * sizeof *all->hits);
    }
    packet_begin(&all->begun, rays, w, &start);
    stream_first(all, &start, &first);
    uint32_t special = all->begun.misses | all->begun.singles | all->begun.may_start_on;

    for (uint32_t k = 0; k < PACKET; k++) {
        all->hits[next + k].t = INFINITY;
        if ((special >> k & 1) != 0 && stream_is_answered(all, k, w[k], next + k))
            state_join(idle, state[k]);
        else
            stream_put(all, state[k], &first, k, next + k);
    }
}

static void stream_init(struct ray_stream *all, const struct heightfield *field,
                        const struct ray *rays, size_t count, struct ray_hit *hits)
{
    static const uint8_t kinds[LEVELS] = {QUEUE_CELL, QUEUE_CELL, QUEUE_LEAF, QUEUE_NODE,
                                          QUEUE_NODE, QUEUE_ROOT, QUEUE_TOP,  QUEUE_TOP,
                                          QUEUE_TOP,  QUEUE_TOP,  QUEUE_TOP,  QUEUE_IDLE};
    uint32_t root = MINMAX16_TILE_LEVELS + field->minmax16_level_count;
    float root_cells = (float)(4u << 2 * root);

    all->field = field;
    all->rays = rays;
    all->hits = hits;
    all->count = count;
    all->next = 0;
    packet_setup_init(&all->begun, field);
    all->pad_cells = RAY_BOX_PAD * root_cells;
    /* never 0: only the sign of the remainder is used */
    all->pad_z = RAY_BOX_PAD * (fabsf(all->begun.z.min) + fabsf(all->begun.z.max)) + 1e-8f;
    memset(all->state, 0, sizeof all->state);
    for (int kind = 0; kind < QUEUES; kind++)
        all->list[kind].end = all->list[kind].at;
    for (uint32_t level = 0; level < LEVELS; level++) {
        float side = level < LEVEL_CELLS ? 0 : side_of[level - LEVEL_CELLS];

        all->list_of[level] = &all->list[kinds[level]];
        for (int i = 0; i < 2; i++) {
            all->sides[level][i] = side;
            all->sides[level][2 + i] = side + 2 * all->pad_cells;
        }
    }
    for (uint32_t id = 0; id < STREAM_RAYS; id++) {
        struct ray_state *s = &all->state[STREAM_RAYS - 1 - id];

        s->w = &all->w[STREAM_RAYS - 1 - id];
        packet_walk_init(&all->begun, s->w);
        s->tile = field->tiles[0];
        state_join(&all->list[QUEUE_IDLE], s);
    }
}

static void stream_run(const struct heightfield *field, const struct ray *rays, size_t count,
                       struct ray_hit *hits)
{
    const struct state_list *idle, *cells;
    struct ray_stream all;

    stream_init(&all, field, rays, count, hits);
    idle = &all.list[QUEUE_IDLE];
    cells = &all.list[QUEUE_CELL];
    do {
        while (stream_waiting(idle) >= PACKET && count - all.next >= PACKET)
            stream_refill(&all);
        stream_ask(&all);
        stream_enter(&all);
        while (stream_waiting(cells) >= PACKET)
            stream_ask_cells(&all);
        if (stream_waiting(cells) + stream_waiting(idle) == STREAM_RAYS)
            stream_ask_last_cells(&all);
    } while (stream_waiting(idle) != STREAM_RAYS || count - all.next >= PACKET);
    for (size_t ray = all.next; ray < count; ray++)
        stream_ask_single(&all, ray);
}

void ray_stream_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
                     struct ray_hit *hits)
{
    struct bounds z = heightfield_node(field, field->level_max, 0, 0);

    if (count >= STREAM_RAYS_LEAST && z.min <= z.max) {
        stream_run(field, rays, count, hits);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!ray_single_avx2(field, &rays[i], &hits[i]))
            hits[i].t = INFINITY;
}

#endif
