/*
 * ray_begin of ray_ends.h for eight rays at once by AVX-512, a lane each. For ray_lanes.h only.
 *
 * Problem: begun one after the other, rays spend a quarter of a batch's instructions before their
 * first node. Approach: their numbers are turned into columns, one vector each, and go through the
 * arithmetic of ray_begin.h side by side. Every operation is the one of ray_ends.h, in the same
 * order and rounded as often (nothing is fused), so that all levels give the same bits.
 *
 * Left to a ray alone: rays along an axis, directions beyond 2^±480, origins that overflow in
 * cells.
 *
 * Invariant: the field has data (z is not empty).
 */
#ifndef KOTA_TERRAIN_RAY_BEGIN_EIGHT_H
#define KOTA_TERRAIN_RAY_BEGIN_EIGHT_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_begin.h"
#include "terrain/ray_eight.h"

/*
 * Of a crossing's t and of what it is computed from: twice what float32 loses, three roundings and
 * those of the ray's constants.
 */
#define LANES_T_PAD 0x1p-22
#define LANES_CELLS_PAD 0x1p-21  /* of a place in cells, likewise */
#define LANES_HEIGHT_PAD 0x1p-19 /* of a height, likewise */

#define LANES_SLOPE_MAX 1024.0 /* cells along one axis for a cell along the other */
#define LANES_MOVE_MIN 1e-9

/* Eight rays that have begun; bit i is ray i's. */
struct eight_begun {
    const struct heightfield *field;
    struct bounds z;
    bool is_wide;
    uint32_t misses;
    uint32_t alone;        /* not for lanes: for the reasons above and those of ray_lanes.h */
    uint32_t may_start_on; /* may start on the ground */
    uint32_t falls;        /* dz < 0 */
    _Alignas(64) double t_entry[EIGHT];
    int32_t exponent[EIGHT];
    /* as in struct lanes */
    int32_t column[EIGHT], row[EIGHT], last_column[EIGHT], last_row[EIGHT], mirrors[EIGHT];
    float inv_u[EIGHT], inv_v[EIGHT], off_u[EIGHT], off_v[EIGHT];
    float u0[EIGHT], v0[EIGHT], du[EIGHT], dv[EIGHT], pad_u[EIGHT], pad_v[EIGHT];
    float z_low[EIGHT], z_high[EIGHT], dz[EIGHT], t[EIGHT], t_end[EIGHT];
};

/* An axis of eight rays: what becomes u0, du, inv_du; or those of v and z. */
struct eight_axis {
    __m512d o, d, inv;
    __m512d pad;      /* how far the box is left behind its face */
    __m512d near, in; /* the face by which the rays come in, and t of it */
    __m512d out;
};

static inline void eight_begun_init(struct eight_begun *b, const struct heightfield *field)
{
    b->field = field;
    b->z = heightfield_node(field, field->level_max, 0, 0);
    b->is_wide = fabs((double)b->z.min) + fabs((double)b->z.max) < WIDE_Z_MAX_M;
}

/* The bits of the exponents of the longest components; see axes_exponent. */
static inline __m512i eight_exponent(__m512d x, __m512d y, __m512d z)
{
    __m512d most =
        _mm512_max_pd(_mm512_max_pd(_mm512_abs_pd(x), _mm512_abs_pd(y)), _mm512_abs_pd(z));

    return _mm512_and_si512(_mm512_castpd_si512(most), _mm512_set1_epi64(0x7ffLL << 52));
}

static inline __m512d eight_power(__m512i exponent)
{
    return _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_set1_epi64(2045LL << 52), exponent));
}

/* The exponents as exponent_of counts; those beyond BEGIN_EXPONENT_MAX are in the mask. */
static inline __m512i eight_exponent_of(__m512i exponent, __mmask8 *beyond)
{
    __m512i e = _mm512_sub_epi64(_mm512_srli_epi64(exponent, 52), _mm512_set1_epi64(1022));

    *beyond |= _mm512_cmpgt_epi64_mask(_mm512_abs_epi64(e), _mm512_set1_epi64(BEGIN_EXPONENT_MAX));
    return e;
}

/* Origins and directions whose component is not for here. */
static inline __mmask8 eight_axis_rare(const struct eight_axis *a)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(a->d), _mm512_set1_pd(DBL_MIN), _CMP_NGE_UQ) |
           _mm512_cmp_pd_mask(_mm512_abs_pd(a->o), _mm512_set1_pd(DBL_MAX), _CMP_NLE_UQ);
}

/* to_grid of rays whose seven members are in m. t_end; the rare ones are in *rare. */
static inline __m512d eight_to_grid(struct eight_begun *b, struct eight_axis a[3], const __m512d *m,
                                    __mmask8 *rare)
{
    const struct heightfield_spec *s = &b->field->spec;
    __m512d spacing_x = _mm512_set1_pd(s->spacing_x_m), spacing_y = _mm512_set1_pd(s->spacing_y_m);
    __m512i first = eight_exponent(m[3], m[4], m[5]);
    __m512d power = eight_power(first);
    __mmask8 beyond = 0;

    a[0].o = _mm512_div_pd(_mm512_sub_pd(m[0], _mm512_set1_pd(s->origin_x_m)), spacing_x);
    a[1].o = _mm512_div_pd(_mm512_sub_pd(m[1], _mm512_set1_pd(s->origin_y_m)), spacing_y);
    a[2].o = m[2];
    a[0].d = _mm512_div_pd(_mm512_mul_pd(m[3], power), spacing_x);
    a[1].d = _mm512_div_pd(_mm512_mul_pd(m[4], power), spacing_y);
    a[2].d = _mm512_mul_pd(m[5], power);
    __m512i more = eight_exponent(a[0].d, a[1].d, a[2].d);
    __m512i e =
        _mm512_add_epi64(eight_exponent_of(first, &beyond), eight_exponent_of(more, &beyond));

    power = eight_power(more);
    for (int i = 0; i < 3; i++) {
        a[i].d = _mm512_mul_pd(a[i].d, power);
        a[i].inv = _mm512_div_pd(_mm512_set1_pd(1), a[i].d);
        beyond |= eight_axis_rare(&a[i]);
    }
    *rare = beyond;
    _mm256_storeu_si256((__m256i *)(void *)b->exponent, _mm512_cvtepi64_epi32(e));
    e = _mm512_slli_epi64(_mm512_add_epi64(e, _mm512_set1_epi64(1023)), 52);
    return _mm512_mul_pd(m[6], _mm512_castsi512_pd(e));
}

/* Where the rays pass the box's two faces of an axis. */
static inline void eight_slab(struct eight_axis *a, double low, double high)
{
    const __m512d lows = _mm512_set1_pd(low), highs = _mm512_set1_pd(high);
    __mmask8 up = _mm512_cmp_pd_mask(a->d, _mm512_setzero_pd(), _CMP_GT_OQ);
    __m512d far =
        _mm512_mask_blend_pd(up, _mm512_sub_pd(lows, a->pad), _mm512_add_pd(highs, a->pad));

    a->near = _mm512_mask_blend_pd(up, highs, lows);
    a->in = _mm512_mul_pd(_mm512_sub_pd(a->near, a->o), a->inv);
    a->out = _mm512_mul_pd(_mm512_sub_pd(far, a->o), a->inv);
}

/* The pad of a horizontal axis. */
static inline __m512d eight_pad(__m512d o, double cells, double far_origin)
{
    __m512d far = _mm512_add_pd(_mm512_set1_pd(cells), _mm512_abs_pd(o));

    return _mm512_mul_pd(_mm512_set1_pd(4 * DBL_EPSILON),
                         _mm512_add_pd(far, _mm512_set1_pd(far_origin)));
}

/* How the rays are in the box. */
struct eight_inside {
    __m512d t_begin, t_end, pad_m;
};

/* Moves origins to where the rays come in: those that do by the axis' face are on it. */
static inline void eight_move(struct eight_axis *a, __m512d t, __mmask8 is_moved, __mmask8 by_face)
{
    a->o = _mm512_mask_mov_pd(a->o, is_moved, eight_along(a->o, a->d, t));
    a->o = _mm512_mask_mov_pd(a->o, by_face, a->near);
}

/* Onto the field; the first cells. */
static inline __m256i eight_first(struct eight_axis *a, uint32_t cells, __mmask8 *on_line)
{
    a->o = _mm512_min_pd(_mm512_max_pd(a->o, _mm512_setzero_pd()), _mm512_set1_pd(cells));
    __m512d off = _mm512_abs_pd(_mm512_reduce_pd(a->o, 0)); /* is_near_line */

    *on_line |= _mm512_cmp_pd_mask(off, _mm512_set1_pd(LINE_NEAR), _CMP_LE_OQ);
    return _mm256_min_epi32(_mm512_cvttpd_epi32(a->o), _mm256_set1_epi32((int32_t)cells - 1));
}

/* enter_box. */
static inline struct eight_inside eight_enter_box(struct eight_begun *b, struct eight_axis a[3],
                                                  __m512d t_end)
{
    const struct heightfield *f = b->field;
    const __m512d zero = _mm512_setzero_pd(), eps = _mm512_set1_pd(4 * DBL_EPSILON);
    double low = (double)b->z.min, high = (double)b->z.max;
    __m512d pad_z = _mm512_set1_pd(1e-9 * (1 + fabs(low) + fabs(high)));
    __m512d far_z = _mm512_abs_pd(a[2].o);
    struct eight_inside in;

    a[0].pad = eight_pad(a[0].o, f->cell_cols, f->origin_u);
    a[1].pad = eight_pad(a[1].o, f->cell_rows, f->origin_v);
    a[2].pad = _mm512_add_pd(pad_z, _mm512_mul_pd(eps, far_z));
    eight_slab(&a[0], 0, f->cell_cols);
    eight_slab(&a[1], 0, f->cell_rows);
    eight_slab(&a[2], low, high);
    __m512d t0 = _mm512_max_pd(_mm512_max_pd(a[0].in, a[1].in), _mm512_max_pd(a[2].in, zero));
    __m512d t1 = _mm512_min_pd(_mm512_min_pd(a[0].out, a[1].out), _mm512_min_pd(a[2].out, t_end));

    t0 = _mm512_add_pd(t0, zero); /* no -0 */
    __mmask8 is_moved = _mm512_cmp_pd_mask(t0, zero, _CMP_GT_OQ);
    __mmask8 by_u = _mm512_mask_cmp_pd_mask(is_moved, a[0].in, t0, _CMP_EQ_OQ);
    __mmask8 by_v = (__mmask8)~by_u & _mm512_mask_cmp_pd_mask(is_moved, a[1].in, t0, _CMP_EQ_OQ);
    __mmask8 by_z = is_moved & (__mmask8) ~(by_u | by_v); /* one of them is t0 */
    __m512d back_u = _mm512_maskz_mul_pd(by_u, a[0].pad, _mm512_abs_pd(a[0].inv));
    __m512d back_v = _mm512_maskz_mul_pd(by_v, a[1].pad, _mm512_abs_pd(a[1].inv));

    b->misses = _mm512_cmp_pd_mask(t0, t1, _CMP_NLE_UQ) |
                _mm512_cmp_pd_mask(t0, _mm512_set1_pd(DBL_MAX), _CMP_NLE_UQ);
    eight_move(&a[0], t0, is_moved, by_u);
    eight_move(&a[1], t0, is_moved, by_v);
    eight_move(&a[2], t0, is_moved, by_z);
    _mm512_store_pd(b->t_entry, t0);
    in.t_begin = _mm512_sub_pd(zero, _mm512_add_pd(back_u, back_v));
    in.t_end = _mm512_sub_pd(t1, t0);
    in.pad_m = _mm512_add_pd(_mm512_set1_pd(fabs(low) + fabs(high)), far_z);
    in.pad_m = _mm512_add_pd(in.pad_m, _mm512_abs_pd(_mm512_mul_pd(a[2].d, in.t_end)));
    in.pad_m = _mm512_mul_pd(eps, in.pad_m);
    return in;
}

/* ray_may_start_on_ground of some of the eight. */
static inline uint32_t eight_may_start(const struct eight_begun *b, __mmask8 rays, __m256i columns,
                                       __m256i rows, __m512d z0, __m512d pad_m)
{
    uint32_t column_of[EIGHT], row_of[EIGHT];
    __m512d pad = _mm512_mul_pd(_mm512_set1_pd(4), pad_m), h00, h10, h01, h11;
    const float *at[EIGHT];

    _mm256_storeu_si256((__m256i *)(void *)column_of, _mm256_maskz_mov_epi32(rays, columns));
    _mm256_storeu_si256((__m256i *)(void *)row_of, _mm256_maskz_mov_epi32(rays, rows));
    for (int i = 0; i < EIGHT; i++) {
        uint32_t column = column_of[i], row = row_of[i];

        at[i] = heightfield_tile(b->field, column, row)->samples +
                (size_t)(row & (TILE_CELLS - 1)) * TILE_SAMPLES + (column & (TILE_CELLS - 1));
    }
    eight_samples(at, 0, &h00, &h10);
    eight_samples(at, TILE_SAMPLES, &h01, &h11);
    __m512d low = _mm512_min_pd(_mm512_min_pd(h00, h10), _mm512_min_pd(h01, h11));
    __m512d high = _mm512_max_pd(_mm512_max_pd(h00, h10), _mm512_max_pd(h01, h11));
    __mmask8 off = _mm512_cmp_pd_mask(z0, _mm512_add_pd(high, pad), _CMP_GT_OQ) |
                   _mm512_cmp_pd_mask(z0, _mm512_sub_pd(low, pad), _CMP_LT_OQ);
    __mmask8 missing =
        _mm512_cmp_pd_mask(h00, h10, _CMP_UNORD_Q) | _mm512_cmp_pd_mask(h01, h11, _CMP_UNORD_Q);

    return rays & (__mmask8)(missing | ~off);
}

static inline void eight_floats(float *to, __m512d from)
{
    _mm256_storeu_ps(to, _mm512_cvtpd_ps(from));
}

/* An axis as lanes have it: up. */
struct eight_up {
    __m512d o, d, inv, off;
    __m256i first, last; /* the first cell, the field's last */
    __mmask8 down;       /* it is mirrored */
};

static inline struct eight_up eight_mirror(const struct eight_axis *a, __m256i first,
                                           uint32_t cells)
{
    const __m512d minus_zero = _mm512_set1_pd(-0.0);
    const __m256i ones = _mm256_set1_epi32(-1);
    struct eight_up up;

    up.down = _mm512_cmp_pd_mask(a->d, _mm512_setzero_pd(), _CMP_LT_OQ);
    up.o = _mm512_mask_xor_pd(a->o, up.down, a->o, minus_zero);
    up.d = _mm512_abs_pd(a->d);
    up.inv = _mm512_abs_pd(a->inv);
    up.off = _mm512_mul_pd(_mm512_sub_pd(_mm512_set1_pd(1), up.o), up.inv);
    up.first = _mm256_mask_xor_epi32(first, up.down, first, ones);
    up.last = _mm256_mask_mov_epi32(_mm256_set1_epi32((int32_t)cells - 1), up.down, ones);
    return up;
}

static inline void eight_ints(int32_t *to, __m256i from)
{
    _mm256_storeu_si256((__m256i *)(void *)to, from);
}

/* What a place on one axis is wrong by where the ray crosses a line of the other. */
static inline __m512d eight_place_pad(const struct eight_up *own, const struct eight_up *other,
                                      __m512d t_end, __m512d pad_cells)
{
    __m512d t = _mm512_add_pd(_mm512_abs_pd(other->off), t_end);

    return _mm512_fmadd_pd(_mm512_mul_pd(_mm512_set1_pd(LANES_T_PAD), own->d), t, pad_cells);
}

/* What the lanes are given of the rays. */
static inline void eight_numbers(struct eight_begun *b, const struct eight_axis a[3],
                                 const struct eight_inside *in, __m256i column, __m256i row)
{
    const struct heightfield *field = b->field;
    double high_m = fabs((double)b->z.min) + fabs((double)b->z.max);
    uint32_t cells = field->cell_cols > field->cell_rows ? field->cell_cols : field->cell_rows;
    struct eight_up u = eight_mirror(&a[0], column, field->cell_cols);
    struct eight_up v = eight_mirror(&a[1], row, field->cell_rows);
    __m512d pad_t = _mm512_add_pd(_mm512_abs_pd(u.off), _mm512_abs_pd(v.off));
    __m512d pad_z = _mm512_add_pd(in->pad_m, _mm512_set1_pd(LANES_HEIGHT_PAD * high_m));
    __m512d pad_cells = _mm512_set1_pd(LANES_CELLS_PAD * cells);

    pad_t = _mm512_mul_pd(_mm512_set1_pd(LANES_T_PAD), _mm512_add_pd(pad_t, in->t_end));
    pad_z = _mm512_fmadd_pd(_mm512_abs_pd(a[2].d), _mm512_add_pd(pad_t, pad_t), pad_z);
    eight_ints(b->column, u.first);
    eight_ints(b->row, v.first);
    eight_ints(b->last_column, u.last);
    eight_ints(b->last_row, v.last);
    eight_ints(b->mirrors, _mm256_or_si256(_mm256_maskz_set1_epi32(u.down, 0xffff),
                                           _mm256_maskz_set1_epi32(v.down, -0x10000)));
    eight_floats(b->inv_u, u.inv);
    eight_floats(b->inv_v, v.inv);
    eight_floats(b->off_u, u.off);
    eight_floats(b->off_v, v.off);
    eight_floats(b->u0, u.o);
    eight_floats(b->v0, v.o);
    eight_floats(b->du, u.d);
    eight_floats(b->dv, v.d);
    eight_floats(b->pad_u, eight_place_pad(&u, &v, in->t_end, pad_cells));
    eight_floats(b->pad_v, eight_place_pad(&v, &u, in->t_end, pad_cells));
    eight_floats(b->z_low, _mm512_sub_pd(a[2].o, pad_z));
    eight_floats(b->z_high, _mm512_add_pd(a[2].o, pad_z));
    eight_floats(b->dz, a[2].d);
    eight_floats(b->t, in->t_begin);
    eight_floats(b->t_end, _mm512_add_pd(in->t_end, pad_t));
    b->falls = _mm512_cmp_pd_mask(a[2].d, _mm512_setzero_pd(), _CMP_LT_OQ);
}

/* Do rays move along both axes, so that float32 mostly knows which line they cross first? */
static inline __mmask8 eight_suit(const struct eight_axis a[3])
{
    const __m512d most = _mm512_set1_pd(LANES_SLOPE_MAX);
    __m512d u = _mm512_abs_pd(a[0].d), v = _mm512_abs_pd(a[1].d);

    return _mm512_cmp_pd_mask(_mm512_mul_pd(u, most), v, _CMP_GT_OQ) &
           _mm512_cmp_pd_mask(_mm512_mul_pd(v, most), u, _CMP_GT_OQ) &
           _mm512_cmp_pd_mask(u, _mm512_set1_pd(LANES_MOVE_MIN), _CMP_GT_OQ);
}

/* Rows of eight members, one for each walk, from offset `to` on. */
static inline void eight_rows(struct walk *const *w, size_t to, const __m512d *columns)
{
    __m512d rows[8];

    eight_transpose(columns, rows);
    for (int i = 0; i < EIGHT; i++)
        _mm512_storeu_pd((char *)w[i] + to, rows[i]);
}

/* Eight rays and their walks, of which eight_walk_init has set the rest. */
static inline void eight_begin(struct eight_begun *b, const struct ray *rays, struct walk *const *w)
{
    const struct heightfield *field = b->field;
    __m512d from[8], m[8];
    struct eight_axis a[3];
    __mmask8 rare, on_line = 0;

    _Static_assert(sizeof(struct ray) == 7 * sizeof(double), "seven members");
    for (int i = 0; i < EIGHT; i++)
        from[i] = _mm512_maskz_loadu_pd(0x7f, &rays[i]);
    eight_transpose(from, m);
    __m512d t_end = eight_to_grid(b, a, m, &rare);
    struct eight_inside in = eight_enter_box(b, a, t_end);
    __m256i column = eight_first(&a[0], field->cell_cols, &on_line);
    __m256i row = eight_first(&a[1], field->cell_rows, &on_line);

    b->misses &= ~(uint32_t)rare;
    b->alone = b->is_wide ? rare | (uint32_t)(__mmask8)~eight_suit(a) : 0xff;
    on_line &= (__mmask8) ~(b->misses | b->alone);
    b->may_start_on = on_line == 0 ? 0 : eight_may_start(b, on_line, column, row, a[2].o, in.pad_m);
    eight_numbers(b, a, &in, column, row);
    for (int i = 0; i < 3; i++) {
        m[i] = a[i].o;
        m[3 + i] = a[i].d;
    }
    m[6] = a[0].inv;
    m[7] = a[1].inv;
    eight_rows(w, offsetof(struct walk, u0), m);
    m[0] = in.t_begin;
    m[1] = in.t_end;
    m[2] = in.pad_m;
    m[3] = _mm512_castsi512_pd(_mm512_cvtepi32_epi64(column));
    m[4] = _mm512_castsi512_pd(_mm512_cvtepi32_epi64(row));
    m[5] = _mm512_load_pd(b->t_entry);
    m[6] = _mm512_castsi512_pd(
        _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)b->exponent)));
    m[7] = _mm512_setzero_pd();
    eight_rows(w, offsetof(struct walk, t_begin), m); /* up to hit_t; the triangle is 0 */
}

static inline void eight_walk_init(const struct eight_begun *b, struct walk *w)
{
    w->field = b->field;
    w->trace = NULL;
    w->z = b->z;
    w->is_vertical = false;
    w->is_wide = b->is_wide;
}

_Static_assert(offsetof(struct walk, t_entry) == offsetof(struct walk, t_begin) + 40 &&
                   offsetof(struct walk, exponent) == offsetof(struct walk, t_begin) + 48 &&
                   offsetof(struct walk, hit_t) == offsetof(struct walk, t_begin) + 56,
               "eight_begin stores eight members at once");
#endif
#endif
