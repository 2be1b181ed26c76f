/*
 * One ray by minmax16 nodes, with AVX2: two vectors of eight lanes for the sixteen children. How
 * nodes are tested, and why no bit is lost: ray_nodes.h.
 *
 * Problem: latency. One ray cannot hide its own dependency chain, so the chain is kept short. The
 * exact setup of a ray (ray_begin) is a quarter of it, and nodes do not need it. Approach: the few
 * numbers that nodes need, to a few roundings of float32, are made first, by a chain half as long.
 * The exact setup is done at the first square of 4×4 cells, while its samples are on their way, and
 * never by rays that come upon none. From a node to its child the chain is the child's lane, by
 * which the near sides are read, each into a whole vector, and the child's place in its tile.
 *
 * The ray begins at the smallest node that holds its way through the field's heights. A square is
 * tested when the next one has been found, or the descent is over: until then its samples are on
 * their way.
 *
 * Invariants: the first node holds all cells that the ray touches, and those within RAY_BOX_SLACK
 * of it, so that rounding excludes none. Squares are tested in the order in which they are found,
 * which is the ray's. Rays that begin very far away, or are very fast or slow, are walked.
 */
#include "terrain/kernels/kernels.h"

#ifdef __AVX2__

#include "terrain/bvh/axes.h"
#include "terrain/kernels/ray_nodes.h"

/* Sixteen float32. */
struct f32x16 {
    f32x8 low, high; /* lanes 0 to 7, 8 to 15 */
};
#define v16 struct f32x16

/* Lane i holds child i ^ flip. */
struct lane_order {
    u8x32 bytes[2]; /* of lanes 0 to 7, 8 to 15: each to a number of 32 bits, the rest of it 0 */
    i32x8 columns;  /* of each four lanes */
    bool from_last_row;
};

#define EIGHT_BYTES(i, flip) NODE_BYTES(i, flip), NODE_BYTES((i) + 4, flip)
#define COLUMNS(flip)                                                                              \
    {                                                                                              \
        0 ^ (flip), 1 ^ (flip), 2 ^ (flip), 3 ^ (flip), 0 ^ (flip), 1 ^ (flip), 2 ^ (flip),        \
            3 ^ (flip)                                                                             \
    }

/* Of rays that fall along u, 1, and v, 2. */
static const struct lane_order lane_orders[4] = {
    {{{EIGHT_BYTES(0, 0)}, {EIGHT_BYTES(8, 0)}}, COLUMNS(0), false},
    {{{EIGHT_BYTES(0, 3)}, {EIGHT_BYTES(8, 3)}}, COLUMNS(3), false},
    {{{EIGHT_BYTES(0, 12)}, {EIGHT_BYTES(8, 12)}}, COLUMNS(0), true},
    {{{EIGHT_BYTES(0, 15)}, {EIGHT_BYTES(8, 15)}}, COLUMNS(3), true},
};

static inline v16 v16_set1(float a)
{
    f32x8 all = f32x8_all(a);

    return (v16){all, all};
}

static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){a.low + b.low, a.high + b.high};
}

static inline void v16_store(float *to, v16 a)
{
    f32x8_store(to, a.low);
    f32x8_store(to + 8, a.high);
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){a.low * b.low, a.high * b.high};
}

static inline v16 v16_min(v16 a, v16 b)
{
    return (v16){f32x8_min(a.low, b.low), f32x8_min(a.high, b.high)};
}

static inline v16 v16_max(v16 a, v16 b)
{
    return (v16){f32x8_max(a.low, b.low), f32x8_max(a.high, b.high)};
}

static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){f32x8_fma(a.low, b.low, c.low), f32x8_fma(a.high, b.high, c.high)};
}

static inline uint32_t mask_of(i32x8 low, i32x8 high)
{
    return i32x8_signs(low) | i32x8_signs(high) << 8;
}

static inline uint32_t v16_le(v16 a, v16 b)
{
    return mask_of(f32x8_le(a.low, b.low), f32x8_le(a.high, b.high));
}

/* The mask is all or nothing. */
static inline v16 v16_select(uint32_t mask, v16 a, v16 b)
{
    i32x8 sign = i32x8_all(mask != 0 ? -1 : 0);

    return (v16){f32x8_select(sign, a.low, b.low), f32x8_select(sign, a.high, b.high)};
}

static inline v16 v16_columns(void)
{
    f32x8 columns = (f32x8){0, 1, 2, 3, 0, 1, 2, 3};

    return (v16){columns, columns};
}

static inline v16 v16_rows(void)
{
    return (v16){(f32x8){0, 0, 0, 0, 1, 1, 1, 1}, (f32x8){2, 2, 2, 2, 3, 3, 3, 3}};
}

static inline v16 v16_bytes(const uint8_t *at, const struct lane_order *order)
{
    u8x32 bytes = u8x32_twice(u8x16_load(at));

    return (v16){f32x8_of_ints((i32x8)u8x32_pick(bytes, order->bytes[0])),
                 f32x8_of_ints((i32x8)u8x32_pick(bytes, order->bytes[1]))};
}

static inline v16 v16_broadcast(f32x4 a)
{
    f32x8 all = f32x8_all_first(a);

    return (v16){all, all};
}

static inline v16 v16_loadu(const float *from)
{
    return (v16){f32x8_load(from), f32x8_load(from + 8)};
}

/* Of rows in the ray's order. */
static inline v16 v16_turned(v16 a, const struct lane_order *order)
{
    return (v16){f32x8_pick(a.low, order->columns), f32x8_pick(a.high, order->columns)};
}

static inline i32x8 eight_boxes_met(f32x8 t_in, f32x8 t_out, f32x8 z_in, f32x8 in, f32x8 out,
                                    f32x8 z_out, i32x8 falling)
{
    return (f32x8_le(z_in, in) ^ falling) & (f32x8_le(out, z_out) ^ falling) &
           f32x8_le(t_in, t_out);
}

static inline uint32_t v16_boxes_met(v16 t_in, v16 t_out, v16 z_in, v16 in, v16 out, v16 z_out,
                                     uint32_t falling)
{
    i32x8 f = i32x8_all((int)falling);

    return mask_of(
        eight_boxes_met(t_in.low, t_out.low, z_in.low, in.low, out.low, z_out.low, f),
        eight_boxes_met(t_in.high, t_out.high, z_in.high, in.high, out.high, z_out.high, f));
}

/* ---- squares --------------------------------------------------------------------------------- */

/* False where a sample is missing: then there are no bounds. Rows in the ray's order. */
static inline bool square_bounds(const float *at, ptrdiff_t stride, const struct lane_order *order,
                                 v16 *min, v16 *max)
{
    const ptrdiff_t row = order->from_last_row ? -stride : stride;
    const float *west = at + (order->from_last_row ? MINMAX16_LEAF_CELLS * stride : 0);
    const float *east = west + 1;
    f32x8 west0 = f32x8_halves(f32x4_load(west), f32x4_load(west + row));
    f32x8 east0 = f32x8_halves(f32x4_load(east), f32x4_load(east + row));
    f32x8 west2 = f32x8_halves(f32x4_load(west + 2 * row), f32x4_load(west + 3 * row));
    f32x8 east2 = f32x8_halves(f32x4_load(east + 2 * row), f32x4_load(east + 3 * row));
    f32x4 west4 = f32x4_load(west + 4 * row), east4 = f32x4_load(east + 4 * row);
    f32x8 low0 = f32x8_min(west0, east0), high0 = f32x8_max(west0, east0);
    f32x8 low2 = f32x8_min(west2, east2), high2 = f32x8_max(west2, east2);
    f32x8 low4 = f32x8_of_low(f32x4_min(west4, east4));
    f32x8 high4 = f32x8_of_low(f32x4_max(west4, east4));
    i32x8 missing = f32x8_unordered(west0, east0) | f32x8_unordered(west2, east2);
    i32x4 missing4 = f32x4_unordered(west4, east4);

    /* with the next row each */
    *min =
        (v16){f32x8_min(low0, f32x8_middle(low0, low2)), f32x8_min(low2, f32x8_middle(low2, low4))};
    *max = (v16){f32x8_max(high0, f32x8_middle(high0, high2)),
                 f32x8_max(high2, f32x8_middle(high2, high4))};
    return (i32x8_signs(missing) | i32x4_signs(missing4)) == 0;
}

enum { SINGLE_WAITING = 2, SINGLE_LEVELS = MINMAX16_TILE_LEVELS + MINMAX16_TOP_LEVELS_MAX + 1 };

/* Of t where the ray enters the box: much more than is lost of it. */
#define SINGLE_T_SLACK 0x1p-40

/* 4×4 cells whose samples are on their way, and t of their near sides, less the pad. */
struct single_square {
    const float *at;
    float u, v;
    uint32_t column, row;
};

/* t is 0 where the ray enters the field's box. */
struct single {
    /* where the ray crosses the near sides of the children by lane, of the node of each level */
    _Alignas(64) float u_in[SINGLE_LEVELS][MINMAX16_CHILDREN],
        v_in[SINGLE_LEVELS][MINMAX16_CHILDREN];
    _Alignas(64) float far_u[MINMAX16_CHILDREN],
        far_v[MINMAX16_CHILDREN]; /* of a side of 4^i, the pad twice included */
    v16 u_near, v_near; /* t of the children's near sides from the square's, a cell a lane */
    /* z where a child is entered, and left, padded toward its bounds; the bytes of these in a node
     */
    float dz, z_in, z_out;
    uint32_t in_at, out_at;
    uint32_t falling; /* all bits when dz < 0: then the bound to come in by is the lower one */
    float t_low, t_high;
    uint32_t flip;
    const struct lane_order *order;
    const struct heightfield *field;
    int level;            /* of the first node; its children are 4^level cells wide */
    uint32_t column, row; /* its low corner, and then that of the tile */
    float u, v;           /* t of its near sides, less the pad */
    uint32_t left[SINGLE_LEVELS], index[SINGLE_LEVELS];
    bool has_begun;
    uint32_t first, last; /* squares waiting: from first up to last, modulo SINGLE_WAITING */
    struct single_square waiting[SINGLE_WAITING];
    struct walk w;
};

/* ---- a ray for the nodes --------------------------------------------------------------------- */

enum single_way { SINGLE_RARE, SINGLE_MISS, SINGLE_DESCENDS };

/* x, y and z to a few roundings, in the frame of the field's box; of lane 3 only d: t_max. */
struct single_axes {
    f64x4 o, d, inv;
    f64x4 t_entry, t_end; /* in all lanes */
};

/* False for rays so far away, fast or slow that float64 might lose cells, or float32 overflow. */
static inline bool single_axes(struct single_axes *a, const struct ray_box *box,
                               const struct ray *ray)
{
    const f64x4 sign = f64x4_all(-0.0);

    a->o = (f64x4_load(&ray->origin.x) - f64x4_load(box->origin)) * f64x4_load(box->per_m);
    a->d = f64x4_load(&ray->direction.x) * f64x4_load(box->per_m);
    f64x4 speed = f64x4_abs(a->d);
    i64x4 bad = f64x4_not_le(f64x4_abs(a->o), f64x4_load(box->reach)) |
                f64x4_not_le(speed, f64x4_all(0x1p60));
    i64x4 moves = f64x4_ge(speed, f64x4_all(0x1p-30));

    /* an axis along which it does not move is crossed very far away */
    speed = f64x4_max(speed, (f64x4){0x1p-102, 0x1p-102, DBL_MIN, DBL_MIN});
    a->inv = f64x4_all(1) / f64x4_or(speed, f64x4_and(a->d, sign));
    return (i64x4_signs(bad) & AXES) == 0 && (i64x4_signs(moves) & AXES) != 0;
}

/* Where it enters the box and leaves it; false when it misses it. */
static inline bool single_enter(struct single_axes *a, const struct ray_box *box)
{
    f64x4 low = (f64x4_load(box->low) - a->o) * a->inv;
    f64x4 high = (f64x4_load(box->high) - a->o) * a->inv;
    f64x4 in = f64x4_put_last(f64x4_min(low, high), f64x4_all(0));
    f64x4 out = f64x4_put_last(f64x4_max(low, high), a->d);

    a->t_entry = axes_greatest(in);
    a->t_end = axes_least(out);
    return a->t_entry[0] <= a->t_end[0];
}

/*
 * The first node, the smallest that holds all cells from the entry to the end, and t of its near
 * sides: those of the root, and on by as many cells as the node is ahead.
 */
static inline void single_first(struct single *a, const struct single_axes *x,
                                const struct ray_box *box, f32x4 span)
{
    const f64x2 zero = f64x2_all(0), last = f64x2_load(box->last);
    f64x2 o = f64x4_low(x->o), d = f64x4_low(x->d);
    f64x2 t0 = f64x4_low(x->t_entry), t1 = f64x4_low(x->t_end);
    f64x2 slack = f64x2_or(f64x2_and(d, f64x2_all(-0.0)), f64x2_all(RAY_BOX_SLACK));
    f64x2 from = f64x2_fma(d, t0, o - slack);
    f64x2 to = f64x2_fma(d, t1, o + slack);
    i32x4 place = f64x2_truncated(f64x2_min(f64x2_max(from, zero), last));
    i32x4 end = f64x2_truncated(f64x2_min(f64x2_max(to, zero), last));
    uint64_t both = (uint64_t)((i64x2)(place ^ end))[0];

    a->level = (31 - __builtin_clz((uint32_t)both | (uint32_t)(both >> 32) | 15)) / 2;
    i32x4 clear = i32x4_all((int)(0u - (4u << 2 * a->level)));
    i32x4 down = __builtin_shufflevector((i32x4)d, (i32x4)d, 1, 1, 3, 3) >> 31;
    i32x4 down_uv = __builtin_shufflevector(down, down, 0, 2, 2, 3);
    i32x4 root = i32x4_all((int)box->root_cells);

    place = place & clear;
    i32x4_store_low(&a->column, place);
    f64x2 side = f64x2_and((f64x2)down, f64x2_all((double)box->root_cells));
    f64x2 inv = f64x4_low(x->inv);
    f32x4 near = f64x2_floats((side - o) * inv - t0);
    /* of an aligned node, counted from the other side: all bits that its place may have, turned */
    i32x4 ahead = place ^ (down_uv & (root + clear));
    f32x4 cells = f32x4_of_ints(ahead) - f32x4_all(box->pad_cells);

    f32x4_store_low(&a->u, f32x4_fma(cells, span, near));
}

static inline enum single_way single_begin(struct single *a, const struct heightfield *field,
                                           const struct ray *ray)
{
    const struct ray_box *box = &field->ray_box;
    struct single_axes x;

    if (!single_axes(&x, box, ray))
        return SINGLE_RARE;
    if (!single_enter(&x, box))
        return SINGLE_MISS;
    unsigned down = i64x4_signs((i64x4)x.d) & AXES;
    f32x4 span = f32x4_abs(f64x4_floats(x.inv));
    v16 span_u = v16_broadcast(span), span_v = v16_broadcast(f32x4_odd(span));
    const v16 far = v16_loadu(box->far);

    a->field = field;
    single_first(a, &x, box, span);
    a->u_near = v16_mul(v16_columns(), span_u);
    a->v_near = v16_mul(v16_rows(), span_v);
    v16_store(a->far_u, v16_mul(far, span_u));
    v16_store(a->far_v, v16_mul(far, span_v));
    double t_entry = x.t_entry[0], t_end = x.t_end[0];
    double slack = t_end * SINGLE_T_SLACK;
    f64x2 d_z = f64x4_high(x.d), o_z = f64x4_high(x.o);
    float z = (float)(o_z[0] + d_z[0] * t_entry);
    float pad_z = (down & 4) != 0 ? -box->pad_z : box->pad_z;

    a->dz = (float)d_z[0];
    a->z_in = z - pad_z;
    a->z_out = z + pad_z;
    a->t_low = (float)-slack;
    a->t_high = (float)((t_end - t_entry) * (1 + (double)RAY_BOX_PAD) + slack);
    a->falling = 0u - ((uint32_t)down >> 2);
    a->in_at = offsetof(struct minmax16_node, max) - (MINMAX16_CHILDREN & a->falling);
    a->out_at = offsetof(struct minmax16_node, min) + (MINMAX16_CHILDREN & a->falling);
    a->order = &lane_orders[down & 3];
    a->flip = 3u * (down & 1) | 6u * (down & 2);
    a->has_begun = false;
    a->first = a->last = 0;
    return SINGLE_DESCENDS;
}

/* ---- squares of 4×4 cells -------------------------------------------------------------------- */

/* How a ray passes the lanes of a square whose children are 4^level cells wide. */
struct single_pass {
    v16 u_in, v_in, t_in, t_out;
};

static inline __attribute__((always_inline)) struct single_pass single_pass(const struct single *a,
                                                                            int level, float u,
                                                                            float v)
{
    v16 side = v16_set1(side_of[level]);
    struct single_pass p;

    p.u_in = v16_fma(side, a->u_near, v16_set1(u));
    p.v_in = v16_fma(side, a->v_near, v16_set1(v));
    v16 u_out = v16_add(p.u_in, v16_set1(a->far_u[level]));
    v16 v_out = v16_add(p.v_in, v16_set1(a->far_v[level]));

    p.t_in = v16_max(v16_max(p.u_in, p.v_in), v16_set1(a->t_low));
    p.t_out = v16_min(v16_min(u_out, v_out), v16_set1(a->t_high));
    return p;
}

/*
 * The lanes that it passes and whose heights it may meet: `in` bounds them on the side from which
 * it comes, `out` on the other.
 */
static inline __attribute__((always_inline)) uint32_t single_lanes(const struct single *a,
                                                                   const struct single_pass *p,
                                                                   v16 in, v16 out)
{
    v16 dz = v16_set1(a->dz);
    v16 z_in = v16_fma(dz, p->t_in, v16_set1(a->z_in));
    v16 z_out = v16_fma(dz, p->t_out, v16_set1(a->z_out));

    return v16_boxes_met(p->t_in, p->t_out, z_in, in, out, z_out, a->falling);
}

/* The oldest of the waiting squares: the cells that float32 leaves, in the ray's order. */
__attribute__((flatten, noinline)) static bool single_square_hit(struct single *a)
{
    const struct single_square *s = &a->waiting[a->first++ % SINGLE_WAITING];
    struct single_pass p = single_pass(a, 0, s->u, s->v);
    v16 min, max;
    bool is_whole = square_bounds(s->at, a->field->stride, a->order, &min, &max);
    uint32_t lanes = single_lanes(a, &p, v16_turned(v16_select(a->falling, min, max), a->order),
                                  v16_turned(v16_select(a->falling, max, min), a->order));

    if (__builtin_expect(!is_whole, 0))
        lanes = v16_le(p.t_in, p.t_out);
    for (; lanes != 0; lanes &= lanes - 1) {
        uint32_t cell = (uint32_t)__builtin_ctz(lanes) ^ a->flip, c = cell & 3, r = cell >> 2;

        if (cell_single_hit(&a->w, s->column + c, s->row + r,
                            s->at + (size_t)r * a->field->stride + c))
            return true;
    }
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The lanes of a node that the ray may meet. */
static inline __attribute__((always_inline)) uint32_t single_node_lanes(
    struct single *a, const struct minmax16_node *node, int level, const float *own_u,
    const float *own_v)
{
    const uint8_t *bytes = (const uint8_t *)(const void *)node;
    v16 step = v16_set1(node->step_m), base = v16_set1(node->base_m);
    v16 in = v16_fma(v16_bytes(bytes + a->in_at, a->order), step, base);
    v16 out = v16_fma(v16_bytes(bytes + a->out_at, a->order), step, base);
    struct single_pass p = single_pass(a, level, *own_u, *own_v);

    v16_store(a->u_in[level], p.u_in);
    v16_store(a->v_in[level], p.v_in);
    return single_lanes(a, &p, in, out);
}

/* 4×4 cells join the waiting ones; true when these are too many. */
static inline __attribute__((always_inline)) bool single_leaf(struct single *a,
                                                              const struct tile *tile,
                                                              uint32_t index, const float *own_u,
                                                              const float *own_v)
{
    uint32_t path = index - MINMAX16_TILE_NODES;
    uint32_t c = 4 * bits_gather(path, LEAF_COLUMNS), r = 4 * bits_gather(path, LEAF_ROWS);
    const size_t stride = a->field->stride;
    const float *at = heightfield_tile_at(a->field, tile, r * stride + c);

    for (size_t i = 0; i <= MINMAX16_LEAF_CELLS; i++)
        __builtin_prefetch(at + i * stride);
    a->waiting[a->last++ % SINGLE_WAITING] =
        (struct single_square){at, *own_u, *own_v, a->column + c, a->row + r};
    return a->last - a->first == SINGLE_WAITING;
}

/* A child; NULL: after the field's border, where flat ground has a ray look within its pad. */
static inline const struct minmax16_node *single_enter_node(struct single *a,
                                                            const struct tile **tile, int level,
                                                            uint32_t child)
{
    if (level < MINMAX16_TILE_LEVELS) {
        a->index[level] = MINMAX16_CHILDREN * a->index[level + 1] + 1 + child;
        return heightfield_minmax16(a->field, *tile, a->index[level]);
    }
    uint32_t shift = 2 * (uint32_t)level + 2, clear = (1u << (shift + 2)) - 1;

    a->column = (a->column & ~clear) | (child & 3) << shift;
    a->row = (a->row & ~clear) | (child >> 2) << shift;
    if (a->column >= a->field->cell_cols || a->row >= a->field->cell_rows)
        return NULL;
    if (level > MINMAX16_TILE_LEVELS)
        return top_node(a->field, level - 1, a->column, a->row);
    *tile = heightfield_tile(a->field, a->column, a->row);
    a->index[level] = 0;
    return heightfield_minmax16(a->field, *tile, 0);
}

/* The first node; column and row become those of its tile. */
static inline const struct minmax16_node *single_first_node(struct single *a,
                                                            const struct tile **tile)
{
    *tile = heightfield_tile(a->field, a->column, a->row);
    if (a->level > MINMAX16_TILE_LEVELS)
        return top_node(a->field, a->level - 1, a->column, a->row);
    uint32_t c = a->column & (TILE_CELLS - 1), r = a->row & (TILE_CELLS - 1);
    uint32_t index = 0;

    for (int level = MINMAX16_TILE_LEVELS; level > a->level; level--)
        index = MINMAX16_CHILDREN * index + 1 + 4 * (r >> 2 * level & 3) + (c >> 2 * level & 3);
    a->column -= c;
    a->row -= r;
    a->index[a->level] = index;
    return heightfield_minmax16(a->field, *tile, index);
}

/* Not inlined: its values would be kept in registers through all nodes. */
__attribute__((flatten, noinline)) static enum ray_begin single_begin_exactly(struct single *a,
                                                                              const struct ray *ray)
{
    a->has_begun = true;
    return ray_begin(&a->w, a->field, ray, NULL);
}

/* From the first node down. Of rays that come upon a square the exact beginning has a say. */
static inline enum ray_begin single_descend(struct single *a, const struct ray *ray)
{
    const struct tile *tile;
    const struct minmax16_node *node = single_first_node(a, &tile);
    const float *own_u = &a->u, *own_v = &a->v;
    int level = a->level, top = a->level;

    for (;;) {
        uint32_t lanes = single_node_lanes(a, node, level, own_u, own_v);

        for (;;) {
            while (lanes == 0) {
                if (level == top)
                    goto over;
                lanes = a->left[++level];
            }
            uint32_t lane = (uint32_t)__builtin_ctz(lanes), child = lane ^ a->flip;

            lanes &= lanes - 1;
            own_u = &a->u_in[level][lane];
            own_v = &a->v_in[level][lane];
            if (level > 1) {
                a->left[level] = lanes;
                node = single_enter_node(a, &tile, level - 1, child);
                if (__builtin_expect(node == NULL, 0))
                    continue;
                level--;
                break;
            }
            bool is_full =
                single_leaf(a, tile, MINMAX16_CHILDREN * a->index[1] + 1 + child, own_u, own_v);

            if (!a->has_begun) {
                enum ray_begin begin = single_begin_exactly(a, ray);

                if (begin != RAY_BEGIN_WALK)
                    return begin;
                if (!a->w.has_minmax16)
                    return ray_walk(&a->w) ? RAY_BEGIN_HIT : RAY_BEGIN_MISS;
            }
            if (is_full && single_square_hit(a))
                return RAY_BEGIN_HIT;
        }
    }
over:
    while (a->first != a->last)
        if (single_square_hit(a))
            return RAY_BEGIN_HIT;
    return RAY_BEGIN_MISS;
}

bool ray_single_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    struct single a;
    enum single_way way = single_begin(&a, field, ray);

    if (way == SINGLE_RARE)
        return ray_exact(field, ray, hit);
    if (way == SINGLE_MISS || single_descend(&a, ray) == RAY_BEGIN_MISS)
        return false;
    return ray_end(&a.w, ray, hit);
}

#endif
