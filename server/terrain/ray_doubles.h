/*
 * Float64 side by side, as many as a level of vector instructions holds, with the names that
 * ray_abreast.h and what belongs to it use:
 *
 *   vd   ABREAST float64          vl   ABREAST int64
 *   vm   a mask, for & | ^ ~      vi   ABREAST int32
 *
 *   vd_blend(m, no, yes), vd_put(x, m, yes)   yes where m is set, else no, x
 *   vd_members, vd_rows   what lies side by side in each of some structs, to one vector a member,
 *                         and back
 */
#ifndef KOTA_TERRAIN_RAY_DOUBLES_H
#define KOTA_TERRAIN_RAY_DOUBLES_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ABREAST = 4 };

typedef __m256d vd;
typedef __m256i vm;
typedef __m256i vl;
typedef __m128i vi;

#define vd_cmp(a, b, how) _mm256_castpd_si256(_mm256_cmp_pd(a, b, how))
#define vd_cmp_in(m, a, b, how) ((m)&vd_cmp(a, b, how))

static inline vd vd_set1(double a)
{
    return _mm256_set1_pd(a);
}
static inline vd vd_load(const double *from)
{
    return _mm256_loadu_pd(from);
}
static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}
static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm256_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_div(vd a, vd b)
{
    return _mm256_div_pd(a, b);
}
static inline vd vd_sqrt(vd a)
{
    return _mm256_sqrt_pd(a);
}
/* Of two operands the second, when neither is less or one is NaN. */
static inline vd vd_min(vd a, vd b)
{
    return _mm256_min_pd(a, b);
}
static inline vd vd_max(vd a, vd b)
{
    return _mm256_max_pd(a, b);
}
static inline vd vd_abs(vd a)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}
/* x < 0 ? 0 : x > 1 ? 1 : x */
static inline vd vd_clamp_unit(vd x)
{
    return _mm256_min_pd(_mm256_set1_pd(1), _mm256_max_pd(_mm256_setzero_pd(), x));
}
static inline vd vd_blend(vm m, vd no, vd yes)
{
    return _mm256_blendv_pd(no, yes, _mm256_castsi256_pd(m));
}
static inline vd vd_put(vd x, vm m, vd yes)
{
    return vd_blend(m, x, yes);
}
/* a·b, and 0 where m is not set */
static inline vd vd_mul_in(vm m, vd a, vd b)
{
    return _mm256_and_pd(_mm256_castsi256_pd(m), _mm256_mul_pd(a, b));
}
/* x less what is nearest to it of the whole numbers */
static inline vd vd_off_whole(vd x)
{
    return _mm256_sub_pd(x, _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline uint32_t vm_bits(vm m)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(m));
}
static inline bool vm_any(vm m)
{
    return !_mm256_testz_si256(m, m);
}
static inline vm vm_none(void)
{
    return _mm256_setzero_si256();
}
static inline vm vm_all(void)
{
    return _mm256_set1_epi64x(-1);
}

static inline vl vl_set1(long long a)
{
    return _mm256_set1_epi64x(a);
}
static inline vl vl_add(vl a, vl b)
{
    return _mm256_add_epi64(a, b);
}
static inline vl vl_sub(vl a, vl b)
{
    return _mm256_sub_epi64(a, b);
}
#define vl_up(a, bits) _mm256_slli_epi64(a, bits)
#define vl_down(a, bits) _mm256_srli_epi64(a, bits)
static inline vl vl_of(vd bits)
{
    return _mm256_castpd_si256(bits);
}
static inline vd vl_bits(vl a)
{
    return _mm256_castsi256_pd(a);
}
static inline vm vl_beyond(vl a, long long most)
{
    return _mm256_cmpgt_epi64(a, _mm256_set1_epi64x(most)) |
           _mm256_cmpgt_epi64(_mm256_set1_epi64x(-most), a);
}
/* Of 0 to 2^52. */
static inline vd vl_doubles(vl a)
{
    const __m256d two52 = _mm256_set1_pd(0x1p52);

    return _mm256_sub_pd(_mm256_castsi256_pd(a | _mm256_castpd_si256(two52)), two52);
}
static inline vl vl_low_halves(vl a)
{
    return a & _mm256_set1_epi64x(0xffffffff);
}
static inline vl vl_of_ints(vi a)
{
    return _mm256_cvtepi32_epi64(a);
}

static inline vi vi_load(const void *from)
{
    return _mm_loadu_si128(from);
}
static inline void vi_store(void *to, vi a)
{
    _mm_storeu_si128(to, a);
}
static inline vd vi_doubles(vi a)
{
    return _mm256_cvtepi32_pd(a);
}
static inline vi vi_truncated(vd a)
{
    return _mm256_cvttpd_epi32(a);
}
static inline vi vi_set1(int32_t a)
{
    return _mm_set1_epi32(a);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm_add_epi32(a, b);
}
static inline vi vi_min(vi a, vi b)
{
    return _mm_min_epi32(a, b);
}
static inline vi vi_in(vm m, vi a)
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);

    return a & _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(m, even));
}
/* Those with bit 0 set. */
static inline vm vi_odd(vi a)
{
    vl bit = _mm256_cvtepi32_epi64(a) & _mm256_set1_epi64x(1);

    return _mm256_sub_epi64(_mm256_setzero_si256(), bit);
}

/* Rows to columns. */
static inline __attribute__((always_inline)) void vd_transpose(const vd *a, vd *to)
{
    vd low0 = _mm256_unpacklo_pd(a[0], a[1]), high0 = _mm256_unpackhi_pd(a[0], a[1]);
    vd low1 = _mm256_unpacklo_pd(a[2], a[3]), high1 = _mm256_unpackhi_pd(a[2], a[3]);

    to[0] = _mm256_permute2f128_pd(low0, low1, 0x20);
    to[1] = _mm256_permute2f128_pd(high0, high1, 0x20);
    to[2] = _mm256_permute2f128_pd(low0, low1, 0x31);
    to[3] = _mm256_permute2f128_pd(high0, high1, 0x31);
}

/* Four members of each struct, from byte `from` on; each half joins by a load. */
static inline __attribute__((always_inline)) void vd_four(const void *const *at, size_t from,
                                                          vd *to)
{
    for (int i = 0; i < 4; i += 2) {
        vd pair[2];

        for (int k = 0; k < 2; k++) {
            const char *first = (const char *)at[k] + from,
                       *second = (const char *)at[k + 2] + from;

            pair[k] = _mm256_insertf128_pd(
                _mm256_castpd128_pd256(_mm_loadu_pd((const double *)(const void *)(first) + i)),
                _mm_loadu_pd((const double *)(const void *)(second) + i), 1);
        }
        to[i] = _mm256_unpacklo_pd(pair[0], pair[1]);
        to[i + 1] = _mm256_unpackhi_pd(pair[0], pair[1]);
    }
}

/* Eight members. */
static inline __attribute__((always_inline)) void vd_members(const void *const *at, size_t from,
                                                             vd *to)
{
    vd_four(at, from, to);
    vd_four(at, from + 4 * sizeof(double), to + 4);
}

static inline __attribute__((always_inline)) void vd_rows(void *const *at, size_t to,
                                                          const vd *columns)
{
    for (int half = 0; half < 2; half++) {
        vd rows[4];

        vd_transpose(columns + 4 * half, rows);
        for (int i = 0; i < ABREAST; i++)
            _mm256_storeu_pd((double *)(void *)((char *)at[i] + to) + 4 * half, rows[i]);
    }
}

/* Two float32 that follow one another, of each struct. */
static inline __attribute__((always_inline)) void vd_pairs(const float *const *at, size_t from,
                                                           vd *west, vd *east)
{
    __m128d pair[ABREAST];

    for (int i = 0; i < ABREAST; i++) {
        double two;

        memcpy(&two, at[i] + from, sizeof two);
        pair[i] = _mm_set_sd(two);
    }
    __m128 low = _mm_castpd_ps(_mm_unpacklo_pd(pair[0], pair[1]));
    __m128 high = _mm_castpd_ps(_mm_unpacklo_pd(pair[2], pair[3]));

    *west = _mm256_cvtps_pd(_mm_shuffle_ps(low, high, 0x88));
    *east = _mm256_cvtps_pd(_mm_shuffle_ps(low, high, 0xdd));
}

#endif
#endif
