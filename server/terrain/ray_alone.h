/*
 * One ray by wide nodes, for one level of vector instructions: ray_avx2.c and ray_avx512.c include
 * this after ray_descent.h's vectors and, besides those,
 *
 *   v16_broadcast, v16_loadu   lane 0 of four; sixteen from memory
 *   lane_orders[4]      of rays that fall along u, 1, and v, 2
 *   v16_boxes_met(t_in, t_out, z_in, in, out, z_out, falling)   a mask: t_in <= t_out, z_in <= in
 *                       and out <= z_out; the latter two neither when all of `falling` is set
 *   struct square       4×4 cells, of which square_load gives bounds, for v16_turned to turn
 *   square_hit(w, square, column, row, lanes, order, flip)   the cells of some lanes
 *
 * How nodes are asked, and why no bit is lost: ray_avx512.c, ray_descent.h.
 *
 * Problem: a ray alone has nothing to do while it waits, neither for memory nor for the last
 * number: its time is that of one long chain of operations. The exact beginning of a ray
 * (ray_begin.h) is a quarter of that chain, and nodes do not need it. Approach: what nodes need, to
 * a few roundings of float32, is made first, by a chain half as long. The exact beginning comes
 * with the first square of 4×4 cells, while its samples are on their way, and is left out by rays
 * that come upon none. From a node to its child the chain is the child's lane, by which the near
 * sides are read, each into a whole vector, and the child's place in its tile.
 *
 * It begins at the smallest node that holds the ray's way through the field's heights. A square is
 * not asked when it is found but when the next one is, or the descent is over: until then its
 * samples are on their way.
 *
 * Invariants: the first node holds all cells that the ray touches, and those within RAY_BOX_SLACK
 * of it, so that rounding excludes none. Squares are asked in the order in which they are found,
 * which is the ray's. Rays whose numbers are out of the common are left to ray_descent.h.
 */
#ifndef KOTA_TERRAIN_RAY_ALONE_H
#define KOTA_TERRAIN_RAY_ALONE_H
#ifdef KOTA_RAY_VECTORS

#include "terrain/ray_descent.h"

enum { ALONE_WAITING = 2, ALONE_LEVELS = WIDE_TILE_LEVELS + WIDE_TOP_LEVELS_MAX + 1 };

/* Of t where the ray enters the box: much more than is lost of it. */
#define ALONE_T_SLACK 0x1p-40

/* 4×4 cells whose samples are on their way, and t of their near sides, less the pad. */
struct alone_square {
    const float *at;
    float u, v;
    uint32_t column, row;
};

/* Names as in struct descent; t is 0 where the ray enters the field's box. */
struct alone {
    /* where the ray crosses the near sides of the children by lane, of the node of each level */
    _Alignas(64) float u_in[ALONE_LEVELS][WIDE_CHILDREN], v_in[ALONE_LEVELS][WIDE_CHILDREN];
    _Alignas(64) float far_u[WIDE_CHILDREN],
        far_v[WIDE_CHILDREN]; /* of a side of 4^i, the pad twice included */
    v16 u_near, v_near;       /* t of the children's near sides from the square's, a cell a lane */
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
    uint32_t left[ALONE_LEVELS], index[ALONE_LEVELS];
    bool has_begun;
    uint32_t first, last; /* squares waiting: from first up to last, modulo ALONE_WAITING */
    struct alone_square waiting[ALONE_WAITING];
    struct walk w;
};

/* ---- what nodes need of a ray ------------------------------------------------------------------
 */

enum alone_way { ALONE_RARE, ALONE_MISS, ALONE_DESCENDS };

/* x, y and z to a few roundings, in the frame of the field's box; of lane 3 d alone: t_max. */
struct alone_axes {
    __m256d o, d, inv;
    __m256d t_entry, t_end; /* in all lanes */
};

/* False for rays so far away, fast or slow that float64 might lose cells, or float32 overflow. */
static inline bool alone_axes(struct alone_axes *a, const struct ray_box *box,
                              const struct ray *ray)
{
    const __m256d sign = _mm256_set1_pd(-0.0);

    a->o =
        _mm256_mul_pd(_mm256_sub_pd(_mm256_loadu_pd(&ray->origin.x), _mm256_loadu_pd(box->origin)),
                      _mm256_loadu_pd(box->per_m));
    a->d = _mm256_mul_pd(_mm256_loadu_pd(&ray->direction.x), _mm256_loadu_pd(box->per_m));
    __m256d speed = axes_abs(a->d);
    __m256d bad =
        _mm256_or_pd(_mm256_cmp_pd(axes_abs(a->o), _mm256_loadu_pd(box->reach), _CMP_NLE_UQ),
                     _mm256_cmp_pd(speed, _mm256_set1_pd(0x1p60), _CMP_NLE_UQ));
    __m256d moves = _mm256_cmp_pd(speed, _mm256_set1_pd(0x1p-30), _CMP_GE_OQ);

    /* an axis along which it does not move is crossed very far away */
    speed = _mm256_max_pd(speed, _mm256_setr_pd(0x1p-102, 0x1p-102, DBL_MIN, DBL_MIN));
    a->inv = _mm256_div_pd(_mm256_set1_pd(1), _mm256_or_pd(speed, _mm256_and_pd(a->d, sign)));
    return (_mm256_movemask_pd(bad) & AXES) == 0 && (_mm256_movemask_pd(moves) & AXES) != 0;
}

/* Where it enters the box and leaves it; false when it misses it. */
static inline bool alone_enter(struct alone_axes *a, const struct ray_box *box)
{
    __m256d low = _mm256_mul_pd(_mm256_sub_pd(_mm256_loadu_pd(box->low), a->o), a->inv);
    __m256d high = _mm256_mul_pd(_mm256_sub_pd(_mm256_loadu_pd(box->high), a->o), a->inv);
    __m256d in = _mm256_blend_pd(_mm256_min_pd(low, high), _mm256_setzero_pd(), 8);
    __m256d out = _mm256_blend_pd(_mm256_max_pd(low, high), a->d, 8);

    a->t_entry = axes_greatest(in);
    a->t_end = axes_least(out);
    return _mm256_cvtsd_f64(a->t_entry) <= _mm256_cvtsd_f64(a->t_end);
}

/*
 * The first node, the smallest that holds all cells from the entry to the end, and t of its near
 * sides: those of the root, and on by as many cells as the node is ahead.
 */
static inline void alone_first(struct alone *a, const struct alone_axes *x,
                               const struct ray_box *box, __m128 span)
{
    const __m128d zero = _mm_setzero_pd(), last = _mm_loadu_pd(box->last);
    __m128d o = _mm256_castpd256_pd128(x->o), d = _mm256_castpd256_pd128(x->d);
    __m128d t0 = _mm256_castpd256_pd128(x->t_entry), t1 = _mm256_castpd256_pd128(x->t_end);
    __m128d slack = _mm_or_pd(_mm_and_pd(d, _mm_set1_pd(-0.0)), _mm_set1_pd(RAY_BOX_SLACK));
    __m128d from = _mm_fmadd_pd(d, t0, _mm_sub_pd(o, slack));
    __m128d to = _mm_fmadd_pd(d, t1, _mm_add_pd(o, slack));
    __m128i place = _mm_cvttpd_epi32(_mm_min_pd(_mm_max_pd(from, zero), last));
    __m128i end = _mm_cvttpd_epi32(_mm_min_pd(_mm_max_pd(to, zero), last));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(place, end));

    a->level = (31 - __builtin_clz((uint32_t)both | (uint32_t)(both >> 32) | 15)) / 2;
    __m128i clear = _mm_set1_epi32((int)(0u - (4u << 2 * a->level)));
    __m128i down = _mm_srai_epi32(_mm_shuffle_epi32(_mm_castpd_si128(d), 0xf5), 31);
    __m128i down_uv = _mm_shuffle_epi32(down, 0xe8);
    __m128i root = _mm_set1_epi32((int)box->root_cells);

    place = _mm_and_si128(place, clear);
    _mm_storel_epi64((__m128i *)(void *)&a->column, place);
    __m128d side = _mm_and_pd(_mm_castsi128_pd(down), _mm_set1_pd((double)box->root_cells));
    __m128d inv = _mm256_castpd256_pd128(x->inv);
    __m128 near = _mm_cvtpd_ps(_mm_sub_pd(_mm_mul_pd(_mm_sub_pd(side, o), inv), t0));
    /* of an aligned node, counted from the other side: all bits that its place may have, turned */
    __m128i ahead = _mm_xor_si128(place, _mm_and_si128(down_uv, _mm_add_epi32(root, clear)));
    __m128 cells = _mm_sub_ps(_mm_cvtepi32_ps(ahead), _mm_set1_ps(box->pad_cells));

    _mm_storel_pi((__m64 *)(void *)&a->u, _mm_fmadd_ps(cells, span, near));
}

static inline enum alone_way alone_begin(struct alone *a, const struct heightfield *field,
                                         const struct ray *ray)
{
    const struct ray_box *box = &field->ray_box;
    struct alone_axes x;

    if (!alone_axes(&x, box, ray))
        return ALONE_RARE;
    if (!alone_enter(&x, box))
        return ALONE_MISS;
    int down = _mm256_movemask_pd(x.d) & AXES;
    __m128 span = _mm_andnot_ps(_mm_set1_ps(-0.0f), _mm256_cvtpd_ps(x.inv));
    v16 span_u = v16_broadcast(span), span_v = v16_broadcast(_mm_movehdup_ps(span));
    const v16 far = v16_loadu(box->far);

    a->field = field;
    alone_first(a, &x, box, span);
    a->u_near = v16_mul(v16_columns(), span_u);
    a->v_near = v16_mul(v16_rows(), span_v);
    v16_store(a->far_u, v16_mul(far, span_u));
    v16_store(a->far_v, v16_mul(far, span_v));
    double t_entry = _mm256_cvtsd_f64(x.t_entry), t_end = _mm256_cvtsd_f64(x.t_end);
    double slack = t_end * ALONE_T_SLACK;
    __m128d d_z = _mm256_extractf128_pd(x.d, 1), o_z = _mm256_extractf128_pd(x.o, 1);
    float z = (float)(_mm_cvtsd_f64(o_z) + _mm_cvtsd_f64(d_z) * t_entry);
    float pad_z = (down & 4) != 0 ? -box->pad_z : box->pad_z;

    a->dz = (float)_mm_cvtsd_f64(d_z);
    a->z_in = z - pad_z;
    a->z_out = z + pad_z;
    a->t_low = (float)-slack;
    a->t_high = (float)((t_end - t_entry) * (1 + (double)RAY_BOX_PAD) + slack);
    a->falling = 0u - ((uint32_t)down >> 2);
    a->in_at = offsetof(struct wide_node, max) - (WIDE_CHILDREN & a->falling);
    a->out_at = offsetof(struct wide_node, min) + (WIDE_CHILDREN & a->falling);
    a->order = &lane_orders[down & 3];
    a->flip = 3u * (down & 1) | 6u * (down & 2);
    a->has_begun = false;
    a->first = a->last = 0;
    return ALONE_DESCENDS;
}

/* ---- squares of 4×4 cells ----------------------------------------------------------------------
 */

/* How a ray passes the lanes of a square whose children are 4^level cells wide. */
struct alone_pass {
    v16 u_in, v_in, t_in, t_out;
};

static inline __attribute__((always_inline)) struct alone_pass alone_pass(const struct alone *a,
                                                                          int level, float u,
                                                                          float v)
{
    v16 side = v16_set1(side_of[level]);
    struct alone_pass p;

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
static inline __attribute__((always_inline)) uint32_t alone_lanes(const struct alone *a,
                                                                  const struct alone_pass *p,
                                                                  v16 in, v16 out)
{
    v16 dz = v16_set1(a->dz);
    v16 z_in = v16_fma(dz, p->t_in, v16_set1(a->z_in));
    v16 z_out = v16_fma(dz, p->t_out, v16_set1(a->z_out));

    return v16_boxes_met(p->t_in, p->t_out, z_in, in, out, z_out, a->falling);
}

/* The oldest of the waiting squares: the cells that float32 leaves, in the ray's order. */
__attribute__((flatten, noinline)) static bool alone_square_hit(struct alone *a)
{
    const struct alone_square *s = &a->waiting[a->first++ % ALONE_WAITING];
    struct alone_pass p = alone_pass(a, 0, s->u, s->v);
    struct square square;
    v16 min, max;
    bool is_whole = square_load(&square, s->at, a->order, &min, &max);
    uint32_t lanes = alone_lanes(a, &p, v16_turned(v16_select(a->falling, min, max), a->order),
                                 v16_turned(v16_select(a->falling, max, min), a->order));

    if (__builtin_expect(!is_whole, 0))
        lanes = v16_le(p.t_in, p.t_out);
    return lanes != 0 && square_hit(&a->w, &square, s->column, s->row, lanes, a->order, a->flip);
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

/* The lanes of a node that the ray may meet. */
static inline __attribute__((always_inline)) uint32_t alone_node_lanes(struct alone *a,
                                                                       const struct wide_node *node,
                                                                       int level,
                                                                       const float *own_u,
                                                                       const float *own_v)
{
    const uint8_t *bytes = (const uint8_t *)(const void *)node;
    v16 step = v16_set1(node->step_m), base = v16_set1(node->base_m);
    v16 in = v16_fma(v16_bytes(bytes + a->in_at, a->order), step, base);
    v16 out = v16_fma(v16_bytes(bytes + a->out_at, a->order), step, base);
    struct alone_pass p = alone_pass(a, level, *own_u, *own_v);

    v16_store(a->u_in[level], p.u_in);
    v16_store(a->v_in[level], p.v_in);
    return alone_lanes(a, &p, in, out);
}

/* 4×4 cells join the waiting ones; true when these are too many. */
static inline __attribute__((always_inline)) bool alone_leaf(struct alone *a,
                                                             const struct tile *tile,
                                                             uint32_t index, const float *own_u,
                                                             const float *own_v)
{
    uint32_t path = index - WIDE_TILE_NODES;
    uint32_t c = 4 * _pext_u32(path, LEAF_COLUMNS), r = 4 * _pext_u32(path, LEAF_ROWS);
    const float *at = tile->samples + (size_t)r * TILE_SAMPLES + c;

    for (size_t i = 0; i <= WIDE_LEAF_CELLS; i++)
        __builtin_prefetch(at + i * TILE_SAMPLES);
    a->waiting[a->last++ % ALONE_WAITING] =
        (struct alone_square){at, *own_u, *own_v, a->column + c, a->row + r};
    return a->last - a->first == ALONE_WAITING;
}

/* A child; NULL: behind the field's border, where flat ground has a ray look within its pad. */
static inline const struct wide_node *alone_enter_node(struct alone *a, const struct tile **tile,
                                                       int level, uint32_t child)
{
    if (level < WIDE_TILE_LEVELS) {
        a->index[level] = WIDE_CHILDREN * a->index[level + 1] + 1 + child;
        return &(*tile)->wide[a->index[level]];
    }
    uint32_t shift = 2 * (uint32_t)level + 2, clear = (1u << (shift + 2)) - 1;

    a->column = (a->column & ~clear) | (child & 3) << shift;
    a->row = (a->row & ~clear) | (child >> 2) << shift;
    if (a->column >= a->field->cell_cols || a->row >= a->field->cell_rows)
        return NULL;
    if (level > WIDE_TILE_LEVELS)
        return top_node(a->field, level - 1, a->column, a->row);
    *tile = heightfield_tile(a->field, a->column, a->row);
    a->index[level] = 0;
    return &(*tile)->wide[0];
}

/* The first node; column and row become those of its tile. */
static inline const struct wide_node *alone_first_node(struct alone *a, const struct tile **tile)
{
    *tile = heightfield_tile(a->field, a->column, a->row);
    if (a->level > WIDE_TILE_LEVELS)
        return top_node(a->field, a->level - 1, a->column, a->row);
    uint32_t c = a->column & (TILE_CELLS - 1), r = a->row & (TILE_CELLS - 1);
    uint32_t index = 0;

    for (int level = WIDE_TILE_LEVELS; level > a->level; level--)
        index = WIDE_CHILDREN * index + 1 + 4 * (r >> 2 * level & 3) + (c >> 2 * level & 3);
    a->column -= c;
    a->row -= r;
    a->index[a->level] = index;
    return &(*tile)->wide[index];
}

/* Not inlined: what it needs would be kept through all nodes. */
__attribute__((flatten, noinline)) static enum ray_begin alone_begin_exactly(struct alone *a,
                                                                             const struct ray *ray)
{
    a->has_begun = true;
    return ray_begin_axes(&a->w, a->field, ray);
}

/* From the first node down. Of rays that come upon a square the exact beginning has a say. */
static inline enum ray_begin alone_descend(struct alone *a, const struct ray *ray)
{
    const struct tile *tile;
    const struct wide_node *node = alone_first_node(a, &tile);
    const float *own_u = &a->u, *own_v = &a->v;
    int level = a->level, top = a->level;

    for (;;) {
        uint32_t lanes = alone_node_lanes(a, node, level, own_u, own_v);

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
                node = alone_enter_node(a, &tile, level - 1, child);
                if (__builtin_expect(node == NULL, 0))
                    continue;
                level--;
                break;
            }
            bool is_full =
                alone_leaf(a, tile, WIDE_CHILDREN * a->index[1] + 1 + child, own_u, own_v);

            if (!a->has_begun) {
                enum ray_begin begin = alone_begin_exactly(a, ray);

                if (begin != RAY_BEGIN_WALK)
                    return begin;
                if (!a->w.is_wide)
                    return ray_walk(&a->w) ? RAY_BEGIN_HIT : RAY_BEGIN_MISS;
            }
            if (is_full && alone_square_hit(a))
                return RAY_BEGIN_HIT;
        }
    }
over:
    while (a->first != a->last)
        if (alone_square_hit(a))
            return RAY_BEGIN_HIT;
    return RAY_BEGIN_MISS;
}

static bool alone_hit(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    struct alone a;
    enum alone_way way = alone_begin(&a, field, ray);

    if (way == ALONE_RARE)
        return descent_alone(field, ray, hit);
    if (way == ALONE_MISS || alone_descend(&a, ray) == RAY_BEGIN_MISS)
        return false;
    return ray_end(&a.w, ray, hit);
}

#endif
#endif
