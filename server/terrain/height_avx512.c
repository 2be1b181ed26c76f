/*
 * Heights alone, eight points at a time, with AVX-512.
 *
 * Problem: a height is some fifty instructions and two cache lines at a place that nobody can
 * foretell. Approach: groups of eight points (height_groups.h), whose lines are asked for to the
 * second cache (TO_SECOND), for the first waits for 16 at once on an Intel. Points that are not for
 * vectors are read from the first tile, whatever stands there. One point alone: below.
 *
 * The eight addresses and what stands there go through ordinary loads: gathers, of the tiles or of
 * the samples, took a fifth longer.
 *
 * Invariants: each lane does the operations of height.c in their order.
 */
#include "terrain/height_levels.h"

#ifdef __AVX512F__

#include <immintrin.h>
#include <string.h>

enum { LANES = 8, AHEAD = 6, TO_SECOND = 2 /* of prefetches */ };

struct group {
    const float *at[LANES]; /* sample (0, 0) of each cell */
    __m512d fu, fv;         /* the place in it */
    __mmask8 inner;         /* which are for us */
};

#include "terrain/height_groups.h"

/* Of each lane's two floats the first; the second is the first of what is shifted right by 32. */
static inline __m512d first_float(__m512i pair)
{
    return _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_cvtepi64_epi32(pair)));
}

/* The axes of up to eight points. */
static inline void points_split(const struct vec2 *points, size_t count, __m512d *x, __m512d *y)
{
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    unsigned mask = count >= LANES ? 0xffff : (1u << 2 * count) - 1;
    __m512d low = _mm512_maskz_loadu_pd((__mmask8)mask, &points[0].x);
    __m512d high = _mm512_maskz_loadu_pd((__mmask8)(mask >> 8), &points[4].x);

    *x = _mm512_permutex2var_pd(low, even, high);
    *y = _mm512_permutex2var_pd(low, _mm512_add_epi64(even, _mm512_set1_epi64(1)), high);
}

/* The same of floats, from a base. */
static inline void floats_split(const unsigned char *floats, size_t count, const double *base,
                                __m512d *x, __m512d *y)
{
    unsigned mask = count >= LANES ? 0xff : (1u << count) - 1;
    __m512i both = _mm512_maskz_loadu_epi64((__mmask8)mask, floats);

    *x = _mm512_add_pd(first_float(both), _mm512_set1_pd(base[0]));
    *y = _mm512_add_pd(first_float(_mm512_srli_epi64(both, 32)), _mm512_set1_pd(base[1]));
}

/* The cells' numbers in the lower halves. */
static inline __m512i cells_of(__m512d q, __m512d *f)
{
    __m256i cells = _mm512_cvttpd_epi32(q);

    *f = _mm512_sub_pd(q, _mm512_cvtepi32_pd(cells));
    return _mm512_cvtepu32_epi64(cells);
}

/* Each cell's sample (0, 0), asked for. Those that are not for us have the first of tile 0. */
static inline void group_ask(const struct heightfield *field, __m512i columns, __m512i rows,
                             struct group *group)
{
    /* of column and row what is over the low bytes, and these */
    const __m512i bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(1, 2, 5, 6, 0, -1, 4, -1, 9, 10, 13, 14, 8, -1, 12, -1));
    __m512i cells = _mm512_or_si512(columns, _mm512_slli_epi64(rows, 32));
    _Alignas(64) uint64_t index[LANES]; /* of the tile; in the upper half in the tile */
    long long strides;

    memcpy(&strides, field->strides, sizeof strides); /* the first four */
    _mm512_store_si512(index, _mm512_madd_epi16(_mm512_shuffle_epi8(cells, bytes),
                                                _mm512_maskz_set1_epi64(group->inner, strides)));
    for (unsigned i = 0; i < LANES; i++) {
        group->at[i] = field->tiles[(uint32_t)index[i]]->samples + (index[i] >> 32);
        __builtin_prefetch(group->at[i], 0, TO_SECOND);
        __builtin_prefetch(group->at[i] + TILE_SAMPLES, 0, TO_SECOND);
    }
}

ALWAYS_INLINE void group_begin(const struct job *job, size_t first, struct group *group,
                               enum form form)
{
    const struct heightfield_spec *s = &job->field->spec;
    size_t count = job->count - first;
    __m512d x, y;

    if (form == FORM_F32)
        floats_split(job->in + first * 2 * sizeof(float), count, job->base, &x, &y);
    else
        points_split((const struct vec2 *)(const void *)job->in + first, count, &x, &y);
    const double *inner_m = job->field->inner_m;

    x = _mm512_sub_pd(x, _mm512_set1_pd(s->origin_x_m));
    y = _mm512_sub_pd(y, _mm512_set1_pd(s->origin_y_m));
    /* numbers above 0 are in the order of their bits; what is below or NaN is beyond */
    group->inner = _mm512_mask_cmplt_epu64_mask(
        _mm512_cmplt_epu64_mask(_mm512_castpd_si512(x),
                                _mm512_castpd_si512(_mm512_set1_pd(inner_m[0]))),
        _mm512_castpd_si512(y), _mm512_castpd_si512(_mm512_set1_pd(inner_m[1])));
    __m512d u = _mm512_div_pd(x, _mm512_set1_pd(s->spacing_x_m));
    __m512d v = _mm512_div_pd(y, _mm512_set1_pd(s->spacing_y_m));
    __m512i columns = cells_of(u, &group->fu), rows = cells_of(v, &group->fv);

    group_ask(job->field, columns, rows, group);
}

static inline __m128i two_pairs(const float *a, const float *b)
{
    __m128 first = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)a));

    return _mm_castps_si128(_mm_loadh_pi(first, (const __m64 *)(const void *)b));
}

static inline __m256i four_pairs(const float *const *at, unsigned k)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(two_pairs(at[0] + k, at[1] + k)),
                                   two_pairs(at[2] + k, at[3] + k), 1);
}

/* Of each cell the two samples of one row. */
static inline __m512i group_pairs(const struct group *group, unsigned row)
{
    unsigned k = row * TILE_SAMPLES;

    return _mm512_inserti64x4(_mm512_castsi256_si512(four_pairs(group->at, k)),
                              four_pairs(group->at + 4, k), 1);
}

/* NaN beside a hole, and what does not matter outside. */
static inline __m512d group_heights(const struct group *group)
{
    __m512i low = group_pairs(group, 0), high = group_pairs(group, 1);
    __m512d h00 = first_float(low), h10 = first_float(_mm512_srli_epi64(low, 32));
    __m512d h01 = first_float(high), h11 = first_float(_mm512_srli_epi64(high, 32));
    __m512d one = _mm512_set1_pd(1), fu = group->fu, fv = group->fv;
    __mmask8 is_high =
        _mm512_movepi64_mask(_mm512_castpd_si512(_mm512_sub_pd(one, _mm512_add_pd(fu, fv))));
    __m512d base = _mm512_mask_mov_pd(h00, is_high, h11);
    __m512d along = _mm512_mask_mov_pd(h10, is_high, h01);
    __m512d up = _mm512_mask_mov_pd(h01, is_high, h10);

    fu = _mm512_mask_sub_pd(fu, is_high, one, fu);
    fv = _mm512_mask_sub_pd(fv, is_high, one, fv);
    return _mm512_add_pd(_mm512_add_pd(base, _mm512_mul_pd(fu, _mm512_sub_pd(along, base))),
                         _mm512_mul_pd(fv, _mm512_sub_pd(up, base)));
}

/* Eight heights, of which `count` are there. */
ALWAYS_INLINE void group_write(const struct job *job, size_t first, size_t count, __m512d heights,
                               enum form form)
{
    __mmask8 all = (__mmask8)((1u << count) - 1);

    if (form == FORM_PLAIN) {
        _mm512_mask_storeu_pd((double *)(void *)job->out + first, all, heights);
    } else if (form == FORM_F32) {
        heights = _mm512_sub_pd(heights, _mm512_set1_pd(job->base[2]));
        _mm256_mask_storeu_ps(job->out + first * sizeof(float), all, _mm512_cvtpd_ps(heights));
    } else { /* GROUND_OK is 0, and so is what is behind it */
        const __m512i order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        struct ground_height *out = (struct ground_height *)(void *)job->out + first;
        __m512d zero = _mm512_setzero_pd();
        unsigned mask = (1u << 2 * count) - 1;

        _mm512_mask_storeu_pd(&out[0], (__mmask8)mask,
                              _mm512_permutex2var_pd(heights, order, zero));
        _mm512_mask_storeu_pd(
            &out[4], (__mmask8)(mask >> 8),
            _mm512_permutex2var_pd(heights, _mm512_add_epi64(order, _mm512_set1_epi64(4)), zero));
    }
}

ALWAYS_INLINE unsigned group_answer(const struct job *job, size_t first, size_t count,
                                    const struct group *group, enum form form)
{
    __m512d heights = group_heights(group);
    unsigned again = ((1u << count) - 1) &
                     ~(unsigned)_mm512_mask_cmp_pd_mask(group->inner, heights, heights, _CMP_ORD_Q);

    group_write(job, first, count, heights, form);
    return again;
}

/* ---- one point ---------------------------------------------------------------------------------
 *
 * What counts is how many instructions it is: calls do not wait for one another, and the more of
 * them the processor holds, the more lines it waits for at once. A point that is not for us gets
 * the quotient NaN, which is cell 0 of tile 0 and the height NaN: one branch for all that goes the
 * long way.
 */

/* The cell's sample (0, 0). */
static inline const float *cell_at(const struct heightfield *field, __m128d q)
{
    /* of column and row what is over the low bytes, and these */
    const __m128i bytes = _mm_setr_epi8(1, 2, 9, 10, 0, -1, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i strides = _mm_loadu_si128((const __m128i *)(const void *)field->strides);
    __m128i index = _mm_madd_epi16(_mm_shuffle_epi8(_mm_cvttpd_epi64(q), bytes), strides);
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(index);

    return field->tiles[(uint32_t)both]->samples + (both >> 32);
}

/* Two samples; four are there, for what is behind a tile's samples is its own. */
static inline __m128d samples_load(const float *at)
{
    return _mm_cvtps_pd(_mm_loadu_ps(at));
}

struct ground_height heightfield_height_avx512(const struct heightfield *field, double x, double y)
{
    const struct heightfield_spec *s = &field->spec;
    const __m128d nan = _mm_castsi128_pd(_mm_set1_epi64x(-1)), one = _mm_set1_pd(1);
    __m128d point = _mm_set_pd(y, x);

    /* so that the slow way reads it from here, and x and y need not stay where they are */
    __asm__("" : "+x"(point));
    __m128d d = _mm_sub_pd(point, _mm_loadu_pd(&s->origin_x_m));
    __mmask8 inner = _mm_cmplt_epu64_mask(
        _mm_castpd_si128(d), _mm_loadu_si128((const __m128i *)(const void *)field->inner_m));
    __m128d q = _mm_mask_div_pd(nan, inner, d, _mm_loadu_pd(&s->spacing_x_m));
    const float *at = cell_at(field, q);
    __m128d low = samples_load(at), high = samples_load(at + TILE_SAMPLES);
    /* less what is whole, exactly */
    __m128d f = _mm_reduce_pd(q, _MM_FROUND_TO_ZERO);
    /* 1 - (fu + fv) < 0; in both lanes */
    __mmask8 is_high = _mm_cmp_pd_mask(_mm_add_pd(f, _mm_shuffle_pd(f, f, 1)), one, _CMP_GT_OQ);
    __m128d base = _mm_mask_unpackhi_pd(_mm_movedup_pd(low), is_high, high, high);
    __m128d ends = _mm_mask_shuffle_pd(_mm_shuffle_pd(low, high, 1), is_high, high, low, 2);

    f = _mm_mask_sub_pd(f, is_high, one, f);
    __m128d part = _mm_mul_pd(f, _mm_sub_pd(ends, base));
    double height_m = base[0] + part[0] + part[1];

    if (height_m != height_m)
        return heightfield_height_general(field, _mm_cvtsd_f64(point),
                                          _mm_cvtsd_f64(_mm_unpackhi_pd(point, point)));
    return (struct ground_height){.height_m = height_m, .status = GROUND_OK};
}

/* ---- batches -----------------------------------------------------------------------------------
 */

void heightfield_heights_avx512(const struct heightfield *field, const struct vec2 *points,
                                size_t count, struct ground_height *out, double *heights_m)
{
    heights_by_groups(field, points, count, out, heights_m);
}

bool heightfield_heights_f32_avx512(const struct heightfield *field, const unsigned char *floats,
                                    size_t count, const double base[3], unsigned char *out)
{
    return heights_f32_by_groups(field, floats, count, base, out);
}

#endif
