/*
 * Heights alone with AVX2: one point, and batches by groups of eight (height_groups.h). Problem and
 * invariants: height_levels.h. A point that is not for us gets the quotient NaN in a batch, which
 * is a cell that is there, for its whole number is 0, and the height NaN.
 *
 * x and y of a point stay side by side, so a vector holds two points and what is done with them is
 * what is done with one. No gathers: where there is AVX2 and no AVX-512 they are slower than the
 * loads they stand for.
 */
#include "terrain/height_levels.h"

#ifdef __AVX2__

#include <immintrin.h>
#include <string.h>

/* Points of a group, points of a vector, heights of a vector. */
enum { LANES = 8, PAIR = 2, FOUR = 4, AHEAD = 4 };

struct group {
    const float *at[LANES];  /* sample (0, 0) of each cell */
    __m256d f[LANES / PAIR]; /* the places in them; NaN: not for us */
};

#include "terrain/height_groups.h"

/* Of x and y as whole numbers + 2^52 what is over the low bytes, and these. */
#define CELL_BYTES 1, 2, 9, 10, 0, -1, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1
/* h00, h10, h01, h11: along x, along y and, twice, the corner that the lower triangle starts from;
 * the upper one has the same from behind. */
#define CELL_ORDER 1, 2, 0, 0

/* ---- batches -----------------------------------------------------------------------------------
 */

/* x and what is behind it, y, for both points. */
static inline __m256d twice(const double *x)
{
    return _mm256_broadcast_pd((const __m128d *)(const void *)x);
}

/* Each point's tile and, in the next 32 bits, sample; and where the point is in its cell. */
static inline __m256i pair_find(const struct heightfield *field, __m256d points, __m256d *f)
{
    const __m256i bytes = _mm256_setr_epi8(CELL_BYTES, CELL_BYTES);
    __m256d d = _mm256_sub_pd(points, twice(&field->spec.origin_x_m));
    /* numbers above 0 are in the order of their bits; what is below has the sign, NaN is beyond */
    __m256i inner = _mm256_castpd_si256(twice(field->inner_m));
    __m256i less = _mm256_sub_epi64(_mm256_castpd_si256(d), inner); /* the sign says so */
    __m256d q = _mm256_div_pd(d, twice(&field->spec.spacing_x_m));

    q = _mm256_blendv_pd(_mm256_set1_pd(NAN), q, _mm256_andnot_pd(d, _mm256_castsi256_pd(less)));
    /* whole numbers in the lowest bits: converting takes twice as many steps */
    __m256d whole = _mm256_floor_pd(q), shifted = _mm256_add_pd(whole, _mm256_set1_pd(0x1p52));
    __m128i strides = _mm_loadu_si128((const __m128i *)(const void *)field->strides);

    *f = _mm256_sub_pd(q, whole);
    return _mm256_madd_epi16(_mm256_shuffle_epi8(_mm256_castpd_si256(shifted), bytes),
                             _mm256_broadcastsi128_si256(strides));
}

/* The points from `first` on, two a vector; where they end, zeros. */
ALWAYS_INLINE void points_load(const struct job *job, size_t first, __m256d points[LANES / PAIR],
                               enum form form)
{
    size_t bytes = form == FORM_F32 ? 2 * sizeof(float) : sizeof(struct vec2);
    size_t left = job->count - first;
    const unsigned char *in = job->in + first * bytes;
    unsigned char padded[LANES * sizeof(struct vec2)];

    if (left < LANES) {
        memset(padded, 0, sizeof padded);
        in = memcpy(padded, in, left * bytes);
    }
#pragma GCC unroll LANES
    for (unsigned i = 0; i < LANES / PAIR; i++)
        if (form == FORM_F32) {
            __m128 floats = _mm_loadu_ps((const float *)(const void *)in + 4 * i);

            points[i] = _mm256_add_pd(_mm256_cvtps_pd(floats), twice(job->base));
        } else {
            points[i] = _mm256_loadu_pd((const double *)(const void *)in + 4 * i);
        }
}

ALWAYS_INLINE void group_begin(const struct job *job, size_t first, struct group *group,
                               enum form form)
{
    _Alignas(32) uint32_t found[LANES][4];
    __m256d points[LANES / PAIR];

    points_load(job, first, points, form);
#pragma GCC unroll LANES
    for (unsigned i = 0; i < LANES / PAIR; i++)
        _mm256_store_si256((__m256i *)(void *)found[PAIR * i],
                           pair_find(job->field, points[i], &group->f[i]));
#pragma GCC unroll LANES
    for (unsigned i = 0; i < LANES; i++) {
        group->at[i] = job->field->tiles[found[i][0]]->samples + found[i][1];
        __builtin_prefetch(group->at[i]);
        __builtin_prefetch(group->at[i] + TILE_SAMPLES);
    }
}

/* The four samples of a cell. */
static inline __m128 samples_load(const float *at)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)at);

    return _mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(const void *)(at + TILE_SAMPLES));
}

/* What two heights begin with, in both of a point's numbers; and what is added along x and y. */
static inline __m256d pair_parts(__m256d f, const float *const at[2], __m256d *base)
{
    const __m256i order = _mm256_setr_epi32(CELL_ORDER, CELL_ORDER);
    const __m256d one = _mm256_set1_pd(1);
    __m256d is_high = _mm256_cmp_pd(_mm256_add_pd(f, _mm256_permute_pd(f, 5)), one, _CMP_GT_OQ);
    __m256i chosen = _mm256_xor_si256(order, _mm256_castpd_si256(is_high)); /* 3 - order */
    __m128 a = _mm_permutevar_ps(samples_load(at[0]), _mm256_castsi256_si128(chosen));
    __m128 b = _mm_permutevar_ps(samples_load(at[1]), _mm256_extracti128_si256(chosen, 1));

    f = _mm256_blendv_pd(f, _mm256_sub_pd(one, f), is_high);
    *base = _mm256_cvtps_pd(_mm_movehl_ps(b, a));
    return _mm256_mul_pd(f, _mm256_sub_pd(_mm256_cvtps_pd(_mm_movelh_ps(a, b)), *base));
}

/* Four heights from the first one on, in the order 0, 2, 1, 3. */
static inline __m256d four_heights(const struct group *group, unsigned first)
{
    const __m256d *f = &group->f[first / PAIR];
    __m256d base[2];
    __m256d low = pair_parts(f[0], &group->at[first], &base[0]);
    __m256d high = pair_parts(f[1], &group->at[first + PAIR], &base[1]);
    __m256d along = _mm256_unpacklo_pd(low, high), up = _mm256_unpackhi_pd(low, high);

    return _mm256_add_pd(_mm256_add_pd(_mm256_unpacklo_pd(base[0], base[1]), along), up);
}

/* Such heights in the order of their points, as the form has them. */
ALWAYS_INLINE void four_store(const struct job *job, __m256d heights, unsigned char *out,
                              enum form form)
{
    if (form == FORM_GROUND) { /* GROUND_OK is 0, and so is what is behind it */
        __m256d zero = _mm256_setzero_pd();

        _mm256_storeu_pd((double *)(void *)out, _mm256_unpacklo_pd(heights, zero));
        _mm256_storeu_pd((double *)(void *)out + 4, _mm256_unpackhi_pd(heights, zero));
        return;
    }
    heights = _mm256_permute4x64_pd(heights, _MM_SHUFFLE(3, 1, 2, 0));
    if (form == FORM_PLAIN)
        _mm256_storeu_pd((double *)(void *)out, heights);
    else
        _mm_storeu_ps((float *)(void *)out,
                      _mm256_cvtpd_ps(_mm256_sub_pd(heights, _mm256_set1_pd(job->base[2]))));
}

ALWAYS_INLINE unsigned group_answer(const struct job *job, size_t first, size_t count,
                                    const struct group *group, enum form form)
{
    static const size_t form_bytes[] = {
        [FORM_GROUND] = sizeof(struct ground_height),
        [FORM_PLAIN] = sizeof(double),
        [FORM_F32] = sizeof(float),
    };
    size_t bytes = form_bytes[form];
    unsigned char *out = job->out + first * bytes;
    unsigned char some[LANES * sizeof(struct ground_height)];
    unsigned char *to = count < LANES ? some : out;
    unsigned none = 0;

#pragma GCC unroll LANES
    for (unsigned i = 0; i < LANES; i += FOUR) {
        __m256d heights = four_heights(group, i),
                is_none = _mm256_cmp_pd(heights, heights, _CMP_UNORD_Q);

        four_store(job, heights, to + i * bytes, form);
        none |= (unsigned)_mm256_movemask_pd(is_none) << i;
    }
    if (count < LANES)
        memcpy(out, some, count * bytes);
    if (none == 0)
        return 0;
    none = (none & 0x99) | (none & 0x22) << 1 | (none & 0x44) >> 1;
    return none & ((1u << count) - 1);
}

void heightfield_heights_avx2(const struct heightfield *field, const struct vec2 *points,
                              size_t count, struct ground_height *out, double *heights_m)
{
    heights_by_groups(field, points, count, out, heights_m);
}

bool heightfield_heights_f32_avx2(const struct heightfield *field, const unsigned char *floats,
                                  size_t count, const double base[3], unsigned char *out)
{
    return heights_f32_by_groups(field, floats, count, base, out);
}

/* ---- one point ---------------------------------------------------------------------------------
 *
 * The same with half the width. Calls do not wait for one another, so what counts is how many of
 * them the processor holds at once, their lines with them; and that are the fewer the more vector
 * registers each of them writes. So constants are read where they are used.
 */

struct ground_height heightfield_height_avx2(const struct heightfield *field, double x, double y)
{
    const __m128i bytes = _mm_setr_epi8(CELL_BYTES), order = _mm_setr_epi32(CELL_ORDER);
    /* two numbers that do the same: of a number twice gcc makes a register */
    const __m128d shift = _mm_setr_pd(0x1p52, 0x1.8p52), one = _mm_set1_pd(1);
    __m128d point = _mm_set_pd(y, x);

    /* so that the slow way reads it from here, and x and y need not stay where they are */
    __asm__("" : "+x"(point));
    __m128d d = _mm_sub_pd(point, _mm_loadu_pd(&field->spec.origin_x_m));
    __m128i inner = _mm_loadu_si128((const __m128i *)(const void *)field->inner_m);
    __m128d less = _mm_castsi128_pd(_mm_sub_epi64(_mm_castpd_si128(d), inner));
    double height_m = NAN;

    if (_mm_movemask_pd(_mm_andnot_pd(d, less)) == 3) {
        __m128d q = _mm_div_pd(d, _mm_loadu_pd(&field->spec.spacing_x_m));
        __m128d whole = _mm_floor_pd(q), f = _mm_sub_pd(q, whole);
        __m128i cell = _mm_shuffle_epi8(_mm_castpd_si128(_mm_add_pd(whole, shift)), bytes);
        __m128i strides = _mm_loadu_si128((const __m128i *)(const void *)field->strides);
        uint64_t index = (uint64_t)_mm_cvtsi128_si64(_mm_madd_epi16(cell, strides));
        __m128 samples = samples_load(field->tiles[(uint32_t)index]->samples + (index >> 32));
        __m128d is_high = _mm_cmpgt_pd(_mm_add_pd(f, _mm_permute_pd(f, 1)), one);

        samples = _mm_permutevar_ps(samples, _mm_xor_si128(order, _mm_castpd_si128(is_high)));
        f = _mm_blendv_pd(f, _mm_sub_pd(one, f), is_high);
        /* by halves: with 32 bytes the upper ones would have to be cleared at the end */
        __m128d ends = _mm_cvtps_pd(samples), base = _mm_cvtps_pd(_mm_movehl_ps(samples, samples));
        __m128d part = _mm_mul_pd(f, _mm_sub_pd(ends, base));

        height_m = base[0] + part[0] + part[1];
    }
    if (height_m != height_m)
        return heightfield_height_general(field, _mm_cvtsd_f64(point),
                                          _mm_cvtsd_f64(_mm_unpackhi_pd(point, point)));
    return (struct ground_height){.height_m = height_m, .status = GROUND_OK};
}

#endif
