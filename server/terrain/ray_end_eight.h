/*
 * The cells of eight rays and the answers of those that hit, by AVX-512, a lane each: eight_pass
 * and eight_pieces of ray_eight.h, then ray_end of ray_ends.h. For ray_lanes.h only.
 *
 * Every operation is the one of ray_ends.h and triangle_normal, in the same order and rounded as
 * often (nothing is fused), so that all levels give the same bits. What few rays need is left to
 * ray_end: cells that ray_eight.h leaves to cell_alone_hit, hits beyond any t, slopes whose square
 * overflows.
 */
#ifndef KOTA_TERRAIN_RAY_END_EIGHT_H
#define KOTA_TERRAIN_RAY_END_EIGHT_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_eight.h"
#include "terrain/ray_ends.h"

/* What is asked, and where its answers go. */
struct eight_asked {
    struct eight_cells cells;
    const struct ray *ray[EIGHT];
    struct ray_hit *hit[EIGHT];
};

_Static_assert(offsetof(struct ray_hit, cell) == 7 * sizeof(double) &&
                   sizeof(struct ray_hit) == 9 * sizeof(double),
               "an answer begins with eight members of eight bytes");

/* t of the answers; those beyond any t are in *rare. */
static inline __m512d eight_end_t(const struct eight_asked *a, __m512d hit_t, __mmask8 *rare)
{
    const __m512d zero = _mm512_setzero_pd();
    __m512d n[8], t_max;

    eight_members(&a->cells, offsetof(struct walk, t_begin), n);
    t_max = _mm512_setr_pd(a->ray[0]->t_max, a->ray[1]->t_max, a->ray[2]->t_max, a->ray[3]->t_max,
                           a->ray[4]->t_max, a->ray[5]->t_max, a->ray[6]->t_max, a->ray[7]->t_max);
    /* the exponent is half of its member, and the shift leaves nothing of the other half */
    __m512i power =
        _mm512_slli_epi64(_mm512_sub_epi64(_mm512_set1_epi64(1023), _mm512_castpd_si512(n[6])), 52);
    /* of two operands the second, when neither is more or one is NaN */
    __m512d t = _mm512_max_pd(_mm512_add_pd(n[5], hit_t), zero);

    power = _mm512_and_si512(power, _mm512_set1_epi64(0x7ffLL << 52));
    t = _mm512_mul_pd(t, _mm512_castsi512_pd(power));
    *rare |= _mm512_cmp_pd_mask(t, _mm512_set1_pd(DBL_MAX), _CMP_NLE_UQ);
    return _mm512_min_pd(t, t_max);
}

/* The normals; triangle_normal. */
static inline void eight_normal(const struct eight *e, const struct heightfield_spec *s,
                                __mmask8 triangle, __m512d *to, __mmask8 *rare)
{
    const __m512d zero = _mm512_setzero_pd(), one = _mm512_set1_pd(1);
    __mmask8 high_v = (__mmask8)(e->is_main ^ triangle); /* the edge between 10 and 11 */
    __m512d u = _mm512_sub_pd(_mm512_mask_blend_pd(triangle, e->h10, e->h11),
                              _mm512_mask_blend_pd(triangle, e->h00, e->h01));
    __m512d v = _mm512_sub_pd(_mm512_mask_blend_pd(high_v, e->h01, e->h11),
                              _mm512_mask_blend_pd(high_v, e->h00, e->h10));
    __m512d x = _mm512_sub_pd(zero, _mm512_div_pd(u, _mm512_set1_pd(s->spacing_x_m)));
    __m512d y = _mm512_sub_pd(zero, _mm512_div_pd(v, _mm512_set1_pd(s->spacing_y_m)));
    __m512d square = _mm512_add_pd(_mm512_add_pd(_mm512_mul_pd(x, x), _mm512_mul_pd(y, y)), one);
    __m512d by = _mm512_div_pd(one, _mm512_sqrt_pd(square));

    *rare |= _mm512_cmp_pd_mask(square, _mm512_set1_pd(1e300), _CMP_NLT_UQ);
    to[0] = _mm512_mul_pd(x, by);
    to[1] = _mm512_mul_pd(y, by);
    to[2] = by;
}

static inline __m512d eight_world(__m512d o, __m512d d, __m512d t, double origin_m,
                                  double spacing_m)
{
    return _mm512_add_pd(_mm512_set1_pd(origin_m),
                         _mm512_mul_pd(eight_along(o, d, t), _mm512_set1_pd(spacing_m)));
}

/* ray_end of those of eight rays that hit at hit_t, but for those that it returns. */
static inline uint32_t eight_end(const struct eight_asked *a, const struct eight *e, uint32_t hits,
                                 __m512d hit_t, __mmask8 triangle)
{
    const struct heightfield_spec *s = &a->cells.w[0]->field->spec;
    __m256i column = _mm256_loadu_si256((const __m256i *)(const void *)a->cells.column);
    __m256i row = _mm256_loadu_si256((const __m256i *)(const void *)a->cells.row);
    struct ray_hit none;
    __m512d m[8], rows[8];
    __mmask8 rare = 0;

    m[0] = eight_end_t(a, hit_t, &rare);
    m[1] = eight_world(e->u0, e->du, hit_t, s->origin_x_m, s->spacing_x_m);
    m[2] = eight_world(e->v0, e->dv, hit_t, s->origin_y_m, s->spacing_y_m);
    m[3] = eight_along(e->z0, e->dz, hit_t);
    eight_normal(e, s, triangle, &m[4], &rare);
    m[7] = _mm512_castsi512_pd(_mm512_or_si512(_mm512_cvtepu32_epi64(column),
                                               _mm512_slli_epi64(_mm512_cvtepu32_epi64(row), 32)));
    eight_transpose(m, rows);
    for (int i = 0; i < EIGHT; i++) { /* which of them hit nobody guesses */
        struct ray_hit *hit = ((hits & ~(uint32_t)rare) >> i & 1) != 0 ? a->hit[i] : &none;

        _mm512_storeu_pd(hit, rows[i]);
        hit->triangle = triangle >> i & 1;
    }
    return hits & rare;
}

/*
 * Eight cells: a bit for each that is hit. The answers are there but for those of *left, whose
 * walks hold how.
 */
static inline uint32_t eight_cells_end(const struct eight_asked *a, uint32_t *left)
{
    struct eight e;
    __m512d hit_t;
    __mmask8 triangle;
    uint32_t again = 0;

    eight_load(&e, &a->cells);
    struct eight_pass p = eight_pass(&e, a->cells.w[0]->field);
    uint32_t hits = eight_pieces(&e, &p, &hit_t, &triangle) & p.is_met;

    hits &= ~(uint32_t)p.is_rare;
    uint32_t rare = p.is_rare;

    if (hits != 0) /* grazing rays do not */
        rare |= eight_end(a, &e, hits, hit_t, triangle);
    for (; rare != 0; rare &= rare - 1)
        again |= eight_cell_hit(&a->cells, __builtin_ctz(rare));
    *left = again;
    return hits | again;
}
#endif
#endif
