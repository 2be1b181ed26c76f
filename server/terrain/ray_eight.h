/*
 * Cells against rays, eight at a time by AVX-512 in float64: cell_alone_hit of ray_walk.h for eight
 * rays, each in a cell of its own. For ray_lanes.h only.
 *
 * Every operation is the one that ray_walk.h does, in the same order and rounded as often (nothing
 * is fused), so that all answers have its bits. What few cells need is not done here: the cells
 * where a ray ends, those with a missing sample and those along whose hypotenuse the ray runs are
 * left to cell_alone_hit.
 */
#ifndef KOTA_TERRAIN_RAY_EIGHT_H
#define KOTA_TERRAIN_RAY_EIGHT_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_walk.h"

#include <immintrin.h>

enum { EIGHT = 8 };

/* Cells of as many rays; the samples of each are at `at`. */
struct eight_cells {
    struct walk *w[EIGHT];
    const float *const *at;
    const int32_t *column, *row;
};

/* Eight of them, a lane each. */
struct eight {
    __m512d u0, v0, z0, du, dv, dz, inv_du, inv_dv;
    __m512d t_begin, t_end, pad;
    __m512d column, row, first_column, first_row;
    __m512d h00, h10, h01, h11;
    __mmask8 down_u, down_v; /* du < 0, dv < 0 */
    __mmask8 is_main;
};

/* How they pass their cells, and f at both ends. */
struct eight_pass {
    __m512d t, t_exit, f_in, f_out;
    __mmask8 is_met;   /* by the ground line, at the cell's heights */
    __mmask8 is_first; /* the ray's first cell: f_in is that of a triangle's plane */
    __mmask8 is_rare;
};

static inline uint32_t eight_cell_hit(const struct eight_cells *c, int i)
{
    return (uint32_t)cell_alone_hit(c->w[i], c->column[i], c->row[i], c->at[i]) << i;
}

/* Fewer than eight cells, one after the other: a bit for each that is hit. */
static inline uint32_t eight_few_hit(const struct eight_cells *c, uint32_t count)
{
    uint32_t hits = 0;

    for (uint32_t i = 0; i < count; i++)
        hits |= eight_cell_hit(c, (int)i);
    return hits;
}

_Static_assert(offsetof(struct walk, inv_dv) == offsetof(struct walk, u0) + 7 * sizeof(double) &&
                   offsetof(struct walk, first_row) ==
                       offsetof(struct walk, t_begin) + 4 * sizeof(double) &&
                   sizeof(struct walk) >= offsetof(struct walk, t_begin) + 8 * sizeof(double),
               "eight_members reads eight members from u0 and from t_begin on");

/* Rows to columns: element i of all in to[i]. */
static inline __attribute__((always_inline)) void eight_transpose(const __m512d *a, __m512d *to)
{
    __m512d b[8];

    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm512_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* elements i, i + 2, i + 4, i + 6 */
        __m512d low0 = _mm512_shuffle_f64x2(b[i], b[i + 2], 0x88);
        __m512d low1 = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0x88);
        __m512d high0 = _mm512_shuffle_f64x2(b[i], b[i + 2], 0xdd);
        __m512d high1 = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0xdd);

        to[i] = _mm512_shuffle_f64x2(low0, low1, 0x88);
        to[i + 4] = _mm512_shuffle_f64x2(low0, low1, 0xdd);
        to[i + 2] = _mm512_shuffle_f64x2(high0, high1, 0x88);
        to[i + 6] = _mm512_shuffle_f64x2(high0, high1, 0xdd);
    }
}

/* Eight members of each walk, from offset `from` on: member i of all in to[i]. */
static inline __attribute__((always_inline)) void eight_members(const struct eight_cells *cells,
                                                                size_t from, __m512d *to)
{
    __m512d a[8];

    for (int i = 0; i < 8; i++)
        a[i] = _mm512_loadu_pd((const char *)cells->w[i] + from);
    eight_transpose(a, to);
}

/* cell_is_main of eight cells. */
static inline __mmask8 eight_main(const struct heightfield *field, __m256i column, __m256i row)
{
    enum triangulation triangulation = field->spec.triangulation;
    __mmask8 odd = _mm256_test_epi32_mask(_mm256_add_epi32(column, row), _mm256_set1_epi32(1));
    __mmask8 all = triangulation == TRIANGULATION_MAIN ? 0xff : 0;

    return triangulation == TRIANGULATION_ALTERNATING ? odd : all;
}

/* Two samples that follow one another, of eight cells. */
static inline void eight_samples(const float *const *at, size_t from, __m512d *west, __m512d *east)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    double pair[EIGHT];

    for (int i = 0; i < EIGHT; i++)
        memcpy(&pair[i], at[i] + from, sizeof pair[i]);
    __m512 pairs = _mm512_castpd_ps(
        _mm512_setr_pd(pair[0], pair[1], pair[2], pair[3], pair[4], pair[5], pair[6], pair[7]));

    *west = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(even, pairs)));
    *east = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(odd, pairs)));
}

static inline void eight_load_cells(struct eight *e, const struct eight_cells *cells)
{
    __m256i column = _mm256_loadu_si256((const __m256i *)(const void *)cells->column);
    __m256i row = _mm256_loadu_si256((const __m256i *)(const void *)cells->row);

    eight_samples(cells->at, 0, &e->h00, &e->h10);
    eight_samples(cells->at, TILE_SAMPLES, &e->h01, &e->h11);
    e->column = _mm512_cvtepi32_pd(column);
    e->row = _mm512_cvtepi32_pd(row);
    e->is_main = eight_main(cells->w[0]->field, column, row);
}

static inline void eight_load(struct eight *e, const struct eight_cells *cells)
{
    const __m512d zero = _mm512_setzero_pd();
    __m512d m[8], n[8];

    eight_members(cells, offsetof(struct walk, u0), m);
    eight_members(cells, offsetof(struct walk, t_begin), n);
    e->u0 = m[0];
    e->v0 = m[1];
    e->z0 = m[2];
    e->du = m[3];
    e->dv = m[4];
    e->dz = m[5];
    e->inv_du = m[6];
    e->inv_dv = m[7];
    e->t_begin = n[0];
    e->t_end = n[1];
    e->pad = n[2];
    e->first_column = _mm512_cvtepi64_pd(_mm512_castpd_si512(n[3]));
    e->first_row = _mm512_cvtepi64_pd(_mm512_castpd_si512(n[4]));
    e->down_u = _mm512_cmp_pd_mask(e->du, zero, _CMP_LT_OQ);
    e->down_v = _mm512_cmp_pd_mask(e->dv, zero, _CMP_LT_OQ);
    eight_load_cells(e, cells);
}

/* A square of 4×4 cells, a lane each, row by row: corners (column, row), samples from `at` on. */
struct eight_square {
    const float *at;
    __m512 h00, h10, h01, h11;
    int32_t column, row;
};

/* Up to eight cells of a square for one ray: lane i is cell ids[i]. */
static inline void eight_load_square(struct eight *e, const struct walk *w,
                                     const struct eight_square *s, __m512i ids)
{
    const __m512d zero = _mm512_setzero_pd();
    __m256i id = _mm512_castsi512_si256(ids);
    __m256i column =
        _mm256_add_epi32(_mm256_and_si256(id, _mm256_set1_epi32(3)), _mm256_set1_epi32(s->column));
    __m256i row = _mm256_add_epi32(_mm256_srli_epi32(id, 2), _mm256_set1_epi32(s->row));

    e->u0 = _mm512_set1_pd(w->u0);
    e->v0 = _mm512_set1_pd(w->v0);
    e->z0 = _mm512_set1_pd(w->z0);
    e->du = _mm512_set1_pd(w->du);
    e->dv = _mm512_set1_pd(w->dv);
    e->dz = _mm512_set1_pd(w->dz);
    e->inv_du = _mm512_set1_pd(w->inv_du);
    e->inv_dv = _mm512_set1_pd(w->inv_dv);
    e->t_begin = _mm512_set1_pd(w->t_begin);
    e->t_end = _mm512_set1_pd(w->t_end);
    e->pad = _mm512_set1_pd(w->pad_m);
    e->first_column = _mm512_set1_pd((double)w->first_column);
    e->first_row = _mm512_set1_pd((double)w->first_row);
    e->down_u = _mm512_cmp_pd_mask(e->du, zero, _CMP_LT_OQ);
    e->down_v = _mm512_cmp_pd_mask(e->dv, zero, _CMP_LT_OQ);
    e->column = _mm512_cvtepi32_pd(column);
    e->row = _mm512_cvtepi32_pd(row);
    e->h00 = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(ids, s->h00)));
    e->h10 = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(ids, s->h10)));
    e->h01 = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(ids, s->h01)));
    e->h11 = _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(ids, s->h11)));
    e->is_main = eight_main(w->field, column, row);
}

static inline __m512d eight_clamp_unit(__m512d x)
{
    const __m512d zero = _mm512_setzero_pd(), one = _mm512_set1_pd(1);
    __mmask8 below = _mm512_cmp_pd_mask(x, zero, _CMP_LT_OQ);
    __mmask8 above = _mm512_cmp_pd_mask(x, one, _CMP_GT_OQ);

    return _mm512_mask_mov_pd(_mm512_mask_mov_pd(x, above, one), below, zero);
}

/* a + s·b, rounded twice. */
static inline __m512d eight_along(__m512d a, __m512d s, __m512d b)
{
    return _mm512_add_pd(a, _mm512_mul_pd(s, b));
}

static inline __m512d eight_edge_height(__m512d a, __m512d b, __m512d s)
{
    return eight_along(a, s, _mm512_sub_pd(b, a));
}

/* f at t, on the u line or the v line of the cell at its near or far side: f_on_edge. */
static inline __m512d eight_f_on_edge(const struct eight *e, __m512d t, __mmask8 on_u, __mmask8 far)
{
    __m512d u = _mm512_sub_pd(eight_along(e->u0, e->du, t), e->column);
    __m512d v = _mm512_sub_pd(eight_along(e->v0, e->dv, t), e->row);
    __m512d s = eight_clamp_unit(_mm512_mask_blend_pd(on_u, u, v));
    /* an edge begins at 00, or on the far side at 10 or 01; it ends at 01 or 10, or at 11 */
    __m512d begin = _mm512_mask_blend_pd(far, e->h00, _mm512_mask_blend_pd(on_u, e->h01, e->h10));
    __m512d end = _mm512_mask_blend_pd(far, _mm512_mask_blend_pd(on_u, e->h10, e->h01), e->h11);

    return _mm512_sub_pd(eight_along(e->z0, e->dz, t), eight_edge_height(begin, end, s));
}

/* Do the heights between t and t_exit come up to the cell's? NaN among these says yes. */
static inline __mmask8 eight_heights_met(const struct eight *e, __m512d t, __m512d t_exit)
{
    __m512d z_in = eight_along(e->z0, e->dz, t), z_out = eight_along(e->z0, e->dz, t_exit);
    __m512d min = _mm512_min_pd(_mm512_min_pd(e->h00, e->h10), _mm512_min_pd(e->h01, e->h11));
    __m512d max = _mm512_max_pd(_mm512_max_pd(e->h00, e->h10), _mm512_max_pd(e->h01, e->h11));
    __m512d low = _mm512_sub_pd(_mm512_min_pd(z_in, z_out), e->pad);
    __m512d high = _mm512_add_pd(_mm512_max_pd(z_in, z_out), e->pad);

    return _mm512_cmp_pd_mask(low, max, _CMP_NGT_UQ) & _mm512_cmp_pd_mask(high, min, _CMP_NLT_UQ);
}

/* Where the next grid line is crossed, never the border; which it is must not be d == 0. */
static inline __m512d eight_next_crossing(__m512d line, __m512d origin, __m512d inv, uint32_t cells)
{
    __mmask8 is_inside =
        _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(line, _mm512_setzero_pd(), _CMP_GT_OQ), line,
                                _mm512_set1_pd(cells), _CMP_LT_OQ);

    return _mm512_mask_mov_pd(_mm512_set1_pd(__builtin_inf()), is_inside,
                              _mm512_mul_pd(_mm512_sub_pd(line, origin), inv));
}

/* The first half of cell_alone_hit. */
static inline struct eight_pass eight_pass(const struct eight *e, const struct heightfield *field)
{
    const __m512d one = _mm512_set1_pd(1), least = _mm512_set1_pd(-__builtin_inf());
    __m512d next_column = _mm512_add_pd(e->column, one), next_row = _mm512_add_pd(e->row, one);
    __m512d near_u = _mm512_mask_blend_pd(e->down_u, e->column, next_column);
    __m512d near_v = _mm512_mask_blend_pd(e->down_v, e->row, next_row);
    __m512d far_u = _mm512_mask_blend_pd(e->down_u, next_column, e->column);
    __m512d far_v = _mm512_mask_blend_pd(e->down_v, next_row, e->row);
    __mmask8 own_u = _mm512_cmp_pd_mask(e->column, e->first_column, _CMP_EQ_OQ);
    __mmask8 own_v = _mm512_cmp_pd_mask(e->row, e->first_row, _CMP_EQ_OQ);
    __m512d u_in = _mm512_mul_pd(_mm512_sub_pd(near_u, e->u0), e->inv_du);
    __m512d v_in = _mm512_mul_pd(_mm512_sub_pd(near_v, e->v0), e->inv_dv);
    __m512d u_out = eight_next_crossing(far_u, e->u0, e->inv_du, field->cell_cols);
    __m512d v_out = eight_next_crossing(far_v, e->v0, e->inv_dv, field->cell_rows);
    struct eight_pass p;

    u_in = _mm512_mask_mov_pd(u_in, own_u, least);
    v_in = _mm512_mask_mov_pd(v_in, own_v, least);
    __mmask8 by_u = _mm512_cmp_pd_mask(u_in, v_in, _CMP_GT_OQ);
    __mmask8 to_u = _mm512_cmp_pd_mask(u_out, v_out, _CMP_LE_OQ);
    __m512d t_in = _mm512_mask_blend_pd(by_u, v_in, u_in);
    __m512d t_exit = _mm512_mask_blend_pd(to_u, v_out, u_out);

    p.is_met = _mm512_cmp_pd_mask(u_in, v_out, _CMP_LE_OQ) &
               _mm512_cmp_pd_mask(v_in, u_out, _CMP_LT_OQ) &
               _mm512_cmp_pd_mask(t_in, e->t_end, _CMP_LE_OQ);
    p.is_first = own_u & own_v;
    p.is_rare = _mm512_cmp_pd_mask(t_exit, e->t_end, _CMP_NLE_UQ) |
                _mm512_cmp_pd_mask(e->h00, e->h10, _CMP_UNORD_Q) |
                _mm512_cmp_pd_mask(e->h01, e->h11, _CMP_UNORD_Q);
    p.t = _mm512_mask_mov_pd(t_in, _mm512_cmp_pd_mask(t_in, e->t_begin, _CMP_LT_OQ), e->t_begin);
    p.t_exit = _mm512_mask_mov_pd(t_exit, _mm512_cmp_pd_mask(t_exit, p.t, _CMP_LT_OQ), p.t);
    p.is_met &= eight_heights_met(e, p.t, p.t_exit);
    p.f_in = eight_f_on_edge(e, p.t, by_u, (__mmask8)((by_u & e->down_u) | (~by_u & e->down_v)));
    p.f_out =
        eight_f_on_edge(e, p.t_exit, to_u, (__mmask8)((to_u & ~e->down_u) | (~to_u & ~e->down_v)));
    return p;
}

/* f between two t: the first zero. See piece_hit. */
static inline __mmask8 eight_piece_hit(__m512d pad, __m512d t0, __m512d f0, __m512d t1, __m512d f1,
                                       __m512d *t)
{
    const __m512d zero = _mm512_setzero_pd();
    __mmask8 is_on0 = _mm512_cmp_pd_mask(_mm512_abs_pd(f0), pad, _CMP_LE_OQ);
    __mmask8 is_on1 = _mm512_cmp_pd_mask(_mm512_abs_pd(f1), pad, _CMP_LE_OQ);
    __mmask8 sides =
        _mm512_cmp_pd_mask(f0, zero, _CMP_GT_OQ) ^ _mm512_cmp_pd_mask(f1, zero, _CMP_GT_OQ);
    __m512d share = _mm512_div_pd(f0, _mm512_sub_pd(f0, f1));
    __m512d between = eight_along(t0, _mm512_sub_pd(t1, t0), share);

    *t = _mm512_mask_mov_pd(_mm512_mask_mov_pd(t1, sides, between), is_on0, t0);
    return is_on0 | is_on1 | sides;
}

/* f over the planes of the cells' triangles 0 or 1, not where a sample is missing: f_on_plane. */
static inline __m512d eight_f_on_plane(const struct eight *e, __m512d t, __mmask8 triangle)
{
    const __m512d one = _mm512_set1_pd(1);
    __mmask8 is_main = e->is_main, high = triangle & (__mmask8)~is_main;
    __m512d u = eight_clamp_unit(_mm512_sub_pd(eight_along(e->u0, e->du, t), e->column));
    __m512d v = eight_clamp_unit(_mm512_sub_pd(eight_along(e->v0, e->dv, t), e->row));
    /* begin + s1 (end1 - begin) + s2 (end2 - begin2) */
    __m512d begin = _mm512_mask_blend_pd(high, e->h00, e->h11);
    __m512d end1 = _mm512_mask_blend_pd(triangle, e->h10, e->h01);
    __m512d begin2 = _mm512_mask_blend_pd(is_main, begin, end1);
    __m512d end2 =
        _mm512_mask_blend_pd(is_main, _mm512_mask_blend_pd(triangle, e->h01, e->h10), e->h11);
    __m512d s1 = _mm512_mask_sub_pd(_mm512_mask_blend_pd(triangle, u, v), high, one, u);
    __m512d s2 = _mm512_mask_sub_pd(_mm512_mask_blend_pd(triangle, v, u), high, one, v);
    __m512d height = eight_along(begin, s1, _mm512_sub_pd(end1, begin));

    height = eight_along(height, s2, _mm512_sub_pd(end2, begin2));
    return _mm512_sub_pd(eight_along(e->z0, e->dz, t), height);
}

/* Both triangles of each cell: see cell_pieces. Triangle and t of those that are hit. */
static inline __mmask8 eight_pieces(const struct eight *e, struct eight_pass *p, __m512d *hit_t,
                                    __mmask8 *triangle)
{
    const __m512d minus_zero = _mm512_set1_pd(-0.0);
    __mmask8 is_main = e->is_main;
    __m512d over = _mm512_add_pd(_mm512_add_pd(e->column, e->row), _mm512_set1_pd(1));
    __m512d anti_start = _mm512_sub_pd(over, _mm512_add_pd(e->u0, e->v0));
    __m512d anti_rate = _mm512_sub_pd(minus_zero, _mm512_add_pd(e->du, e->dv));
    __m512d main_start =
        _mm512_sub_pd(_mm512_sub_pd(e->u0, e->v0), _mm512_sub_pd(e->column, e->row));
    __m512d rate = _mm512_mask_blend_pd(is_main, anti_rate, _mm512_sub_pd(e->du, e->dv));
    __m512d start = _mm512_mask_blend_pd(is_main, anti_start, main_start);
    __mmask8 first = _mm512_cmp_pd_mask(rate, _mm512_setzero_pd(), _CMP_GT_OQ);
    __m512d t_cut = _mm512_div_pd(_mm512_sub_pd(minus_zero, start), rate);
    __m512d slack = _mm512_mul_pd(_mm512_set1_pd(4 * DBL_EPSILON),
                                  _mm512_add_pd(_mm512_abs_pd(p->t), _mm512_abs_pd(p->t_exit)));
    __mmask8 is_after = _mm512_cmp_pd_mask(t_cut, p->t_exit, _CMP_GT_OQ);
    __mmask8 is_cut =
        (__mmask8) ~(_mm512_cmp_pd_mask(t_cut, _mm512_add_pd(p->t_exit, slack), _CMP_GT_OQ) |
                     _mm512_cmp_pd_mask(t_cut, _mm512_sub_pd(p->t, slack), _CMP_LT_OQ));

    t_cut = _mm512_mask_blend_pd(_mm512_cmp_pd_mask(t_cut, p->t, _CMP_GT_OQ), p->t, t_cut);
    t_cut =
        _mm512_mask_blend_pd(_mm512_cmp_pd_mask(t_cut, p->t_exit, _CMP_LT_OQ), p->t_exit, t_cut);
    __m512d s = eight_clamp_unit(_mm512_sub_pd(eight_along(e->u0, e->du, t_cut), e->column));
    __m512d height = eight_edge_height(_mm512_mask_blend_pd(is_main, e->h01, e->h00),
                                       _mm512_mask_blend_pd(is_main, e->h10, e->h11), s);
    __m512d f_cut = _mm512_sub_pd(eight_along(e->z0, e->dz, t_cut), height), t0, t1;
    __mmask8 triangle0 = (__mmask8) ~((is_cut | is_after) ^ first);

    if (p->is_first != 0)
        p->f_in = _mm512_mask_mov_pd(p->f_in, p->is_first, eight_f_on_plane(e, p->t, triangle0));
    __mmask8 hit0 =
        eight_piece_hit(e->pad, p->t, p->f_in, _mm512_mask_blend_pd(is_cut, p->t_exit, t_cut),
                        _mm512_mask_blend_pd(is_cut, p->f_out, f_cut), &t0);
    __mmask8 hit1 = eight_piece_hit(e->pad, t_cut, f_cut, p->t_exit, p->f_out, &t1) & is_cut;

    p->is_rare |= _mm512_cmp_pd_mask(rate, _mm512_setzero_pd(), _CMP_EQ_OQ);
    *hit_t = _mm512_mask_blend_pd(hit0, t1, t0);
    *triangle = (__mmask8)((hit0 & triangle0) | (~hit0 & ~first));
    return hit0 | hit1;
}

/* Cells that lie before the ray's first one; those of lanes never do. */
static inline __mmask8 eight_behind(const struct eight *e)
{
    const __m512d zero = _mm512_setzero_pd();
    __m512d u = _mm512_mul_pd(_mm512_sub_pd(e->column, e->first_column), e->inv_du);
    __m512d v = _mm512_mul_pd(_mm512_sub_pd(e->row, e->first_row), e->inv_dv);

    return _mm512_cmp_pd_mask(_mm512_min_pd(u, v), zero, _CMP_LT_OQ);
}

/* Without the first eight of the bits. */
static inline uint32_t eight_rest(uint32_t lanes)
{
    return lanes & ~_pdep_u32(0xff, lanes);
}

/*
 * The first cell of a square that a ray hits: of `count` in the ray's order, ids[i], the first
 * eight. The walk holds how.
 */
static inline bool eight_square_hit(struct walk *w, const struct eight_square *s, __m512i ids,
                                    uint32_t count)
{
    struct eight e;
    __m512d hit_t;
    __mmask8 triangle;

    eight_load_square(&e, w, s, ids);
    struct eight_pass p = eight_pass(&e, w->field);
    uint32_t hits = eight_pieces(&e, &p, &hit_t, &triangle) & p.is_met;

    if (w->du == 0 || w->dv == 0) /* it crosses no line of one sort */
        p.is_rare = 0xff;
    hits &= ~(uint32_t)p.is_rare;
    uint32_t left = (hits | p.is_rare) & _bzhi_u32(0xff, count) & ~(uint32_t)eight_behind(&e);

    for (; left != 0; left &= left - 1) {
        uint32_t bit = left & (0u - left);
        __m512i first = _mm512_maskz_compress_epi32((__mmask16)bit, ids);
        uint32_t id = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(first));
        uint32_t column = id & 3, row = id >> 2;

        if ((hits & bit) == 0) {
            if (cell_alone_hit(w, s->column + (int)column, s->row + (int)row,
                               s->at + (size_t)row * TILE_SAMPLES + column))
                return true;
            continue;
        }
        w->column = s->column + (int)column;
        w->row = s->row + (int)row;
        w->hit_triangle = (triangle & bit) != 0;
        w->hit_t = _mm512_cvtsd_f64(_mm512_maskz_compress_pd((__mmask8)bit, hit_t));
        return true;
    }
    return false;
}

#endif
#endif
