/*
 * One ray by wide nodes with AVX-512: ray_avx512.c includes this. How nodes are asked, and why no
 * bit is lost: there, and in ray_descent.h.
 *
 * Problem: a ray alone has nothing to do while it waits for samples, and the descent of
 * ray_descent.h, which can be put away and taken up at any node, spends more instructions on that
 * than on its boxes. Approach: a loop in a loop for the three levels of a tile, so that what is
 * left of a node is in registers. It begins at the smallest node that holds the ray's way through
 * the field's heights. A square of 4×4 cells is not asked when it is found but when the next one
 * is, or the descent is over: until then its samples are on their way. The cells that are left in
 * it are tested side by side in float64 (ray_eight.h), their samples taken from the square's own
 * vectors.
 *
 * Invariants: the first node holds all cells that the ray touches, and those within 1/1024 of a
 * cell of it, so that rounding excludes none. Squares are asked in the order in which they are
 * found, which is the ray's.
 */
#ifndef KOTA_TERRAIN_RAY_ALONE_H
#define KOTA_TERRAIN_RAY_ALONE_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_descent.h"
#include "terrain/ray_eight.h"

enum { ALONE_WAITING = 2 };

#define ALONE_CELLS_SLACK 0x1p-10 /* much more than float64 loses of a place in cells */

/* Where the ray is at the near sides of a square, less the pad. */
struct alone_own {
    float u, v;
};

/* 4×4 cells whose samples are on their way. */
struct alone_square {
    const float *at;
    struct alone_own own;
    uint32_t column, row;
};

/* Names as in struct descent. */
struct alone {
    v16 u_near, v_near; /* t of the children's near sides from the square's, a cell a lane */
    v16 z0, dz, t_low, t_high;
    _Alignas(64) float near_u[WIDE_CHILDREN], near_v[WIDE_CHILDREN]; /* the same once more */
    _Alignas(64) float far_u[WIDE_CHILDREN],
        far_v[WIDE_CHILDREN]; /* of a side of 4^i, the pad twice included */
    __m512i ids;              /* lane i is child ids[i] */
    struct lane_order order;
    float span_u, span_v, pad_tu, pad_tv, pad_z;
    uint32_t flip;
    __mmask16 falling;
    uint32_t first, last; /* squares waiting: from first up to last, modulo ALONE_WAITING */
    struct alone_square waiting[ALONE_WAITING];
    struct walk w;
};

/* The lanes of a square whose children are 4^power wide that the ray may meet. */
static inline __attribute__((always_inline)) uint32_t alone_lanes(const struct alone *a, int power,
                                                                  struct alone_own own, v16 min,
                                                                  v16 max)
{
    v16 side = v16_set1(side_of[power]);
    v16 u_in = v16_fma(side, a->u_near, v16_set1(own.u));
    v16 v_in = v16_fma(side, a->v_near, v16_set1(own.v));
    v16 u_out = v16_add(u_in, v16_set1(a->far_u[power]));
    v16 v_out = v16_add(v_in, v16_set1(a->far_v[power]));
    v16 t_in = v16_max(v16_max(u_in, v_in), a->t_low);
    v16 t_out = v16_min(v16_min(u_out, v_out), a->t_high);
    v16 low = v16_fma(a->dz, v16_select(a->falling, t_out, t_in), a->z0);
    v16 high = v16_fma(a->dz, v16_select(a->falling, t_in, t_out), a->z0);

    return v16_le(t_in, t_out) & v16_not_greater(low, max) & v16_not_less(high, min);
}

static inline __attribute__((always_inline)) uint32_t alone_node_lanes(const struct alone *a,
                                                                       const struct wide_node *node,
                                                                       int power,
                                                                       struct alone_own own)
{
    v16 step = v16_set1(node->step_m);
    v16 min = v16_fma(v16_bytes(node->min, &a->order), step, v16_set1(node->base_m - a->pad_z));
    v16 max = v16_fma(v16_bytes(node->max, &a->order), step, v16_set1(node->base_m + a->pad_z));

    return alone_lanes(a, power, own, min, max);
}

static inline struct alone_own alone_child(const struct alone *a, int power, struct alone_own own,
                                           uint32_t lane)
{
    return (struct alone_own){__builtin_fmaf(side_of[power], a->near_u[lane], own.u),
                              __builtin_fmaf(side_of[power], a->near_v[lane], own.v)};
}

/* The oldest of the waiting squares: the cells that float32 leaves, in the ray's order. */
static bool alone_square_hit(struct alone *a)
{
    const struct alone_square *s = &a->waiting[a->first++ % ALONE_WAITING];
    const float *at = s->at, *last = at + (size_t)WIDE_LEAF_CELLS * TILE_SAMPLES;
    v16 h00 = four_rows(at, TILE_SAMPLES), h10 = four_rows(at + 1, TILE_SAMPLES);
    v16 h01 = rows_up(h00, _mm_loadu_ps(last)), h11 = rows_up(h10, _mm_loadu_ps(last + 1));
    v16 pad = v16_set1(a->pad_z);
    v16 min = v16_sub(v16_min(v16_min(h00, h10), v16_min(h01, h11)), pad);
    v16 max = v16_add(v16_max(v16_max(h00, h10), v16_max(h01, h11)), pad);
    v16 nan = v16_add(v16_add(h00, h10), v16_add(h01, h11)); /* no overflow makes one */
    __mmask16 missing = _mm512_cmp_ps_mask(nan, nan, _CMP_UNORD_Q);

    min = _mm512_permutexvar_ps(a->ids, _mm512_mask_mov_ps(min, missing, nan));
    max = _mm512_permutexvar_ps(a->ids, _mm512_mask_mov_ps(max, missing, nan));
    uint32_t lanes = alone_lanes(a, 0, s->own, min, max);

    if (lanes == 0)
        return false;
    struct eight_square square = {at, h00, h10, h01, h11, (int32_t)s->column, (int32_t)s->row};

    for (; lanes != 0; lanes = eight_rest(lanes))
        if (eight_square_hit(&a->w, &square, _mm512_maskz_compress_epi32((__mmask16)lanes, a->ids),
                             (uint32_t)__builtin_popcount(lanes)))
            return true;
    return false;
}

/* 4×4 cells join the waiting ones; when these are too many, the oldest is asked. */
static inline __attribute__((always_inline)) bool alone_leaf_hit(struct alone *a,
                                                                 const struct tile *tile,
                                                                 uint32_t column, uint32_t row,
                                                                 struct alone_own own)
{
    const float *at = tile->samples + (size_t)(row & (TILE_CELLS - 1)) * TILE_SAMPLES +
                      (column & (TILE_CELLS - 1));

    for (size_t i = 0; i <= WIDE_LEAF_CELLS; i++)
        __builtin_prefetch(at + i * TILE_SAMPLES);
    a->waiting[a->last++ % ALONE_WAITING] = (struct alone_square){at, own, column, row};
    return a->last - a->first == ALONE_WAITING && alone_square_hit(a);
}

/* A node of a tile; its children are 4^power cells wide, power 1 to 3. Columns are the field's. */
static inline __attribute__((always_inline)) bool alone_node_hit(struct alone *a,
                                                                 const struct tile *tile,
                                                                 uint32_t index, int power,
                                                                 uint32_t column, uint32_t row,
                                                                 struct alone_own own);

static bool alone_node1_hit(struct alone *a, const struct tile *tile, uint32_t index,
                            uint32_t column, uint32_t row, struct alone_own own)
{
    return alone_node_hit(a, tile, index, 1, column, row, own);
}

static bool alone_node2_hit(struct alone *a, const struct tile *tile, uint32_t index,
                            uint32_t column, uint32_t row, struct alone_own own)
{
    return alone_node_hit(a, tile, index, 2, column, row, own);
}

static bool alone_node3_hit(struct alone *a, const struct tile *tile, uint32_t index,
                            uint32_t column, uint32_t row, struct alone_own own)
{
    return alone_node_hit(a, tile, index, 3, column, row, own);
}

static inline __attribute__((always_inline)) bool alone_node_hit(struct alone *a,
                                                                 const struct tile *tile,
                                                                 uint32_t index, int power,
                                                                 uint32_t column, uint32_t row,
                                                                 struct alone_own own)
{
    uint32_t lanes = alone_node_lanes(a, &tile->wide[index], power, own);

    for (; lanes != 0; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes), child = lane ^ a->flip;
        uint32_t next = WIDE_CHILDREN * index + 1 + child;
        uint32_t c = column + ((child & 3) << 2 * power), r = row + (child >> 2 << 2 * power);
        struct alone_own at = alone_child(a, power, own, lane);

        if (power == 1   ? alone_leaf_hit(a, tile, c, r, at)
            : power == 2 ? alone_node1_hit(a, tile, next, c, r, at)
                         : alone_node2_hit(a, tile, next, c, r, at))
            return true;
    }
    return false;
}

/* A node above the tiles. */
static bool alone_top_hit(struct alone *a, int power, uint32_t column, uint32_t row,
                          struct alone_own own)
{
    const struct heightfield *field = a->w.field;
    uint32_t lanes = alone_node_lanes(a, top_node(field, power - 1, column, row), power, own);

    for (; lanes != 0; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(lanes), child = lane ^ a->flip;
        uint32_t c = column + ((child & 3) << 2 * power), r = row + (child >> 2 << 2 * power);
        struct alone_own at = alone_child(a, power, own, lane);

        if (power == DESCENT_TILE + 2
                ? alone_node3_hit(a, heightfield_tile(field, c, r), 0, c, r, at)
                : alone_top_hit(a, power - 1, c, r, at))
            return true;
    }
    return false;
}

static inline void alone_begin(struct alone *a, float root_cells)
{
    const struct walk *w = &a->w;
    const float eps = 0x1p-19f; /* 32 roundings of float32 */
    const v16 sides = _mm512_load_ps(side_of);
    float span_u = span_of(w->du, w->inv_du), span_v = span_of(w->dv, w->inv_dv);
    float pad_tu = eps * root_cells * span_u, pad_tv = eps * root_cells * span_v;

    a->span_u = span_u;
    a->span_v = span_v;
    a->pad_tu = pad_tu;
    a->pad_tv = pad_tv;
    a->u_near = v16_mul(v16_columns(), v16_set1(span_u));
    a->v_near = v16_mul(v16_rows(), v16_set1(span_v));
    v16_store(a->near_u, a->u_near);
    v16_store(a->near_v, a->v_near);
    v16_store(a->far_u, v16_fma(sides, v16_set1(span_u), v16_set1(2 * pad_tu)));
    v16_store(a->far_v, v16_fma(sides, v16_set1(span_v), v16_set1(2 * pad_tv)));
    a->z0 = v16_set1((float)w->z0);
    a->dz = v16_set1((float)w->dz);
    a->pad_z = eps * (fabsf(w->z.min) + fabsf(w->z.max));
    a->t_low = v16_set1((float)w->t_begin * (1 + eps));
    a->t_high = v16_set1((float)w->t_end * (1 + eps));
    a->flip = 3u * (w->du < 0) | 12u * (w->dv < 0);
    a->falling = w->dz < 0 ? 0xffff : 0;
    lane_order_init(&a->order, a->flip);
    a->ids = _mm512_cvtepu8_epi32(a->order.bytes);
}

/* The cells that one coordinate may be in on the ray's way: the lowest, and all bits that differ.
 */
static inline uint32_t alone_cells(double from, double d, double t_end, uint32_t cells,
                                   uint32_t *lowest)
{
    double to = from + d * t_end, most = cells - 1;
    double low = (d < 0 ? to : from) - ALONE_CELLS_SLACK;
    double high = (d < 0 ? from : to) + ALONE_CELLS_SLACK;

    low = low > 0 ? low : 0;
    low = low < most ? low : most;
    high = high > 0 ? high : 0;
    high = high < most ? high : most;
    *lowest = (uint32_t)(int32_t)low;
    return *lowest ^ (uint32_t)(int32_t)high;
}

/* t at the near side of a node's columns, or rows, from cell `low` on, less the pad. */
static inline float alone_own(double from, double d, uint32_t low, uint32_t cells, float span,
                              float pad)
{
    double to = d < 0 ? from - ((double)low + cells) : (double)low - from;

    return (float)to * span - pad;
}

/* From the first node down; false when nothing is hit but by what is still waiting. */
static bool alone_descend(struct alone *a)
{
    const struct walk *w = &a->w;
    const struct heightfield *field = w->field;
    int power_top = DESCENT_TILE + 1 + (int)field->wide_level_count, power = 1;
    float root_cells = (float)(4u << 2 * power_top);
    uint32_t column, row;
    uint32_t differ = alone_cells(w->u0, w->du, w->t_end, field->cell_cols, &column) |
                      alone_cells(w->v0, w->dv, w->t_end, field->cell_rows, &row);

    alone_begin(a, root_cells);
    power = differ < 16 ? 1 : (31 - __builtin_clz(differ)) / 2;
    power = power < power_top ? power : power_top;
    uint32_t cells = 4u << 2 * power;

    column &= 0u - cells;
    row &= 0u - cells;
    struct alone_own own = {alone_own(w->u0, w->du, column, cells, a->span_u, a->pad_tu),
                            alone_own(w->v0, w->dv, row, cells, a->span_v, a->pad_tv)};

    if (power > DESCENT_TILE + 1)
        return alone_top_hit(a, power, column, row, own);
    const struct tile *tile = heightfield_tile(field, column, row);
    uint32_t c = column & (TILE_CELLS - 1), r = row & (TILE_CELLS - 1);

    if (power == 3)
        return alone_node3_hit(a, tile, 0, column, row, own);
    uint32_t parent = 1 + 4 * (r >> 6) + (c >> 6);

    if (power == 2)
        return alone_node2_hit(a, tile, parent, column, row, own);
    parent = WIDE_CHILDREN * parent + 1 + 4 * (r >> 4 & 3) + (c >> 4 & 3);
    return alone_node1_hit(a, tile, parent, column, row, own);
}

static bool alone_walk_hit(struct alone *a)
{
    a->first = a->last = 0;
    if (alone_descend(a))
        return true;
    while (a->first != a->last)
        if (alone_square_hit(a))
            return true;
    return false;
}

static bool alone_hit(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    struct alone a;
    enum ray_begin begin = ray_begin_axes(&a.w, field, ray);

    if (begin == RAY_BEGIN_MISS)
        return false;
    if (begin == RAY_BEGIN_WALK && !(a.w.is_wide ? alone_walk_hit(&a) : ray_walk(&a.w)))
        return false;
    return ray_end(&a.w, ray, hit);
}

#endif
#endif
