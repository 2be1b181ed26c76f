/*
 * The three axes of a ray side by side, with AVX2: lanes 0 to 2; lane 3 holds nothing. Inside of
 * the room only.
 */
#ifndef KOTA_TERRAIN_AXES_H
#define KOTA_TERRAIN_AXES_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include <immintrin.h>
#include <stdint.h>

enum { AXES = 7 /* lanes 0 to 2 */ };

/* x and y from memory, z and lane 3 as given. */
static inline __m256d axes_load(const double *xy, __m128d z)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(xy)), z, 1);
}

static inline __m256d axes_abs(__m256d a)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}

/* The greatest of all lanes in all lanes. */
static inline __m256d axes_greatest(__m256d a)
{
    a = _mm256_max_pd(a, _mm256_permute4x64_pd(a, 0x4e));
    return _mm256_max_pd(a, _mm256_permute_pd(a, 5));
}

static inline __m256d axes_least(__m256d a)
{
    a = _mm256_min_pd(a, _mm256_permute4x64_pd(a, 0x4e));
    return _mm256_min_pd(a, _mm256_permute_pd(a, 5));
}

/* The bits of the exponent of each lane, which is not below 0. */
static inline __m256i axes_exponents(__m256d sizes)
{
    return _mm256_and_si256(_mm256_castpd_si256(sizes), _mm256_set1_epi64x(0x7ffLL << 52));
}

/* Those of the longest component, in all lanes. */
static inline __m256i axes_exponent(__m256d d)
{
    return axes_exponents(axes_greatest(axes_abs(d)));
}

/* 2 to the power of less that exponent, as exponent_of counts. */
static inline __m256d axes_power(__m256i exponent)
{
    return _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_set1_epi64x(2045LL << 52), exponent));
}

/* 1 over that. */
static inline __m256d axes_power_back(__m256i exponent)
{
    return _mm256_castsi256_pd(_mm256_add_epi64(exponent, _mm256_set1_epi64x(1LL << 52)));
}

static inline int axes_exponent_of(__m256i exponent)
{
    return (int)(_mm_cvtsi128_si64(_mm256_castsi256_si128(exponent)) >> 52) - 1022;
}

/* Three numbers that stand behind one another, and were stored one by one: a load of two of them
 * would have to wait for that. */
static inline __m256d axes_of(const double three[3])
{
    __m128d two = _mm_loadh_pd(_mm_load_sd(three), three + 1);

    return _mm256_insertf128_pd(_mm256_castpd128_pd256(two), _mm_loaddup_pd(three + 2), 1);
}

/*
 * The axis along which a direction is largest, the last of equals: axis_of_largest of ring.h. Of
 * NaN, which no lane is as large as: the first.
 */
static inline unsigned axes_largest(__m256d d)
{
    __m256d sizes = _mm256_blend_pd(axes_abs(d), _mm256_setzero_pd(), 8);
    __m256d is_largest = _mm256_cmp_pd(sizes, axes_greatest(sizes), _CMP_EQ_OQ);

    return 31 - (unsigned)__builtin_clz(((unsigned)_mm256_movemask_pd(is_largest) & AXES) | 1);
}

/* The axes as a line whose direction is largest along kz has them: x, y, z and z again. */
static inline __m256d axes_turned(__m256d a, unsigned kz)
{
    static const int32_t order[3][8] = {
        {2, 3, 4, 5, 0, 1, 0, 1}, {4, 5, 0, 1, 2, 3, 2, 3}, {0, 1, 2, 3, 4, 5, 4, 5}};
    __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)order[kz]);

    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(a), from));
}

#endif
#endif
