/*
 * Numbers side by side: the only place with intrinsics, beside int_lanes.h. For terrain/ and for
 * the C engine of the sand.
 *
 *   f32x8   eight float32; f64x4, i32x4 and so on likewise
 *
 * They are vectors of GCC and clang: + - * / and comparisons work on all lanes, and a comparison is
 * a vector of integers as wide as its operands, all bits of a lane set where it is true. Here is
 * the rest: operations that the language lacks, or that gcc 12 does not compile to one instruction.
 *
 * min and max are those of x86: of two operands the second, when neither is less or one is NaN.
 *
 * First operations for every machine, by its own instructions or by plain C, with the same bits.
 * Then operations that only files compiled for AVX2 have (see the Makefile).
 */
#ifndef KOTA_TERRAIN_LANES_H
#define KOTA_TERRAIN_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

/* All of it is inlined, so vectors are never passed. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define LANES_INLINE static inline __attribute__((always_inline))
#define LANES_OF(type, bytes) type __attribute__((vector_size(bytes), may_alias))

typedef LANES_OF(float, 16) f32x4;
typedef LANES_OF(double, 16) f64x2;
typedef LANES_OF(int32_t, 16) i32x4;
typedef LANES_OF(long long, 16) i64x2;
typedef LANES_OF(uint32_t, 16) u32x4;
typedef LANES_OF(unsigned long long, 16) u64x2;
typedef LANES_OF(float, 32) f32x8;
typedef LANES_OF(int32_t, 32) i32x8;
typedef LANES_OF(double, 32) f64x4;
typedef LANES_OF(long long, 32) i64x4;
typedef LANES_OF(unsigned long long, 32) u64x4;

/* ---- 16 bytes: every machine ----------------------------------------------------------------- */

LANES_INLINE f64x2 f64x2_all(double a)
{
    return (f64x2){a, a};
}

/* By the signs of the mask's lanes with AVX2, else all bits of a lane have to be the same. */
LANES_INLINE f64x2 f64x2_select(i64x2 mask, f64x2 yes, f64x2 no)
{
#ifdef __AVX2__
    return _mm_blendv_pd(no, yes, (__m128d)mask);
#else
    return (f64x2)(((i64x2)yes & mask) | ((i64x2)no & ~mask));
#endif
}

LANES_INLINE f64x2 f64x2_abs(f64x2 a)
{
    return (f64x2)((i64x2)a & ~(i64x2)f64x2_all(-0.0));
}

LANES_INLINE i32x4 i32x4_all(int32_t a)
{
    return (i32x4){a, a, a, a};
}

LANES_INLINE i64x2 mask64x2(bool first, bool second)
{
    return (i64x2){-(long long)first, -(long long)second};
}

#ifdef __SSE2__
LANES_INLINE f64x2 f64x2_min(f64x2 a, f64x2 b)
{
    return _mm_min_pd(a, b);
}
LANES_INLINE f64x2 f64x2_max(f64x2 a, f64x2 b)
{
    return _mm_max_pd(a, b);
}
/* Bit i is the sign of lane i. */
LANES_INLINE unsigned i64x2_signs(i64x2 a)
{
    return (unsigned)_mm_movemask_pd((__m128d)a);
}
LANES_INLINE f32x4 f32x4_min(f32x4 a, f32x4 b)
{
    return _mm_min_ps(a, b);
}
LANES_INLINE f32x4 f32x4_max(f32x4 a, f32x4 b)
{
    return _mm_max_ps(a, b);
}
/* Lanes where one is NaN. */
LANES_INLINE i32x4 f32x4_unordered(f32x4 a, f32x4 b)
{
    return (i32x4)_mm_cmpunord_ps(a, b);
}
LANES_INLINE unsigned i32x4_signs(i32x4 a)
{
    return (unsigned)_mm_movemask_ps((__m128)a);
}
#else
LANES_INLINE f64x2 f64x2_min(f64x2 a, f64x2 b)
{
    return f64x2_select((i64x2)(a < b), a, b);
}
LANES_INLINE f64x2 f64x2_max(f64x2 a, f64x2 b)
{
    return f64x2_select((i64x2)(a > b), a, b);
}
LANES_INLINE unsigned i64x2_signs(i64x2 a)
{
    return (unsigned)(a[0] < 0) | (unsigned)(a[1] < 0) << 1;
}
LANES_INLINE f32x4 f32x4_min(f32x4 a, f32x4 b)
{
    i32x4 m = (i32x4)(a < b);

    return (f32x4)(((i32x4)a & m) | ((i32x4)b & ~m));
}
LANES_INLINE f32x4 f32x4_max(f32x4 a, f32x4 b)
{
    i32x4 m = (i32x4)(a > b);

    return (f32x4)(((i32x4)a & m) | ((i32x4)b & ~m));
}
LANES_INLINE i32x4 f32x4_unordered(f32x4 a, f32x4 b)
{
    return (i32x4)(a != a) | (i32x4)(b != b);
}
LANES_INLINE unsigned i32x4_signs(i32x4 a)
{
    return (unsigned)(a[0] < 0) | (unsigned)(a[1] < 0) << 1 | (unsigned)(a[2] < 0) << 2 |
           (unsigned)(a[3] < 0) << 3;
}
#endif

LANES_INLINE f64x2 f64x2_load(const double *from)
{
    f64x2 a;

    memcpy(&a, from, sizeof a);
    return a;
}
LANES_INLINE f64x2 f64x2_seconds(f64x2 a)
{
    return __builtin_shufflevector(a, a, 1, 1);
}
/* x < 0 ? 0 : x > 1 ? 1 : x */
LANES_INLINE f64x2 f64x2_clamp_unit(f64x2 x)
{
    return f64x2_min(f64x2_all(1), f64x2_max(f64x2_all(0), x));
}
LANES_INLINE f32x4 f32x4_load(const float *from)
{
    f32x4 a;

    memcpy(&a, from, sizeof a);
    return a;
}
/* Two from memory, and two zeros. */
LANES_INLINE f32x4 f32x4_load_two(const float *from)
{
    double two; /* the address is that of a float */

    memcpy(&two, from, sizeof two);
    return (f32x4)(f64x2){two, 0};
}
LANES_INLINE void f32x4_store(float *to, f32x4 a)
{
    memcpy(to, &a, sizeof a);
}
/* Two integers from memory, two zeros. */
LANES_INLINE i32x4 i32x4_load_two(const void *from)
{
    int32_t two[2];

    memcpy(two, from, sizeof two);
    return (i32x4){two[0], two[1], 0, 0};
}
/* The first two lanes. */
LANES_INLINE f64x2 f64x2_of_floats(f32x4 a)
{
#ifdef __SSE2__
    return _mm_cvtps_pd(a);
#else
    return (f64x2){(double)a[0], (double)a[1]};
#endif
}
LANES_INLINE f64x2 f64x2_of_ints(i32x4 a)
{
#ifdef __SSE2__
    return _mm_cvtepi32_pd((__m128i)a);
#else
    return (f64x2){a[0], a[1]};
#endif
}
/* Of numbers that an int32_t holds; two zeros after them. */
LANES_INLINE i32x4 f64x2_truncated(f64x2 a)
{
#ifdef __SSE2__
    return (i32x4)_mm_cvttpd_epi32(a);
#else
    return (i32x4){(int32_t)a[0], (int32_t)a[1], 0, 0};
#endif
}
/* NaN and numbers that are too large become the least integer. */
LANES_INLINE int64_t f64_truncated(double a)
{
#ifdef __SSE2__
    return _mm_cvttsd_si64(_mm_set_sd(a));
#else
    return a > -0x1p63 && a < 0x1p63 ? (int64_t)a : INT64_MIN;
#endif
}
/* Between 0 and `most`, NaN is 0; without a branch, which gcc 12 makes of comparisons. */
LANES_INLINE double f64_clamped(double a, double most)
{
    return f64x2_min(f64x2_max(f64x2_all(a), f64x2_all(0)), f64x2_all(most))[0];
}

LANES_INLINE f32x4 f32x4_all(float a)
{
    return (f32x4){a, a, a, a};
}

/* Rows to columns. */
LANES_INLINE void f32x4_transpose(f32x4 a, f32x4 b, f32x4 c, f32x4 d, f32x4 *to)
{
    f32x4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    f32x4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    f32x4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    f32x4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);

    to[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    to[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    to[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    to[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}
/* Two from each address. */
LANES_INLINE f32x4 f32x4_pairs(const float *first, const float *second)
{
    f64x2 two;

    memcpy(&two, first, sizeof two / 2);
    memcpy((char *)&two + sizeof two / 2, second, sizeof two / 2);
    return (f32x4)two;
}

/* The least and the greatest lane; NaN is none, of all NaN ∞ and -∞. */
LANES_INLINE void f32x4_range(f32x4 a, float *min, float *max)
{
    f32x4 low = f32x4_min(a, f32x4_all(__builtin_inff()));
    f32x4 high = f32x4_max(a, f32x4_all(-__builtin_inff()));

    low = f32x4_min(low, __builtin_shufflevector(low, low, 2, 3, 2, 3));
    high = f32x4_max(high, __builtin_shufflevector(high, high, 2, 3, 2, 3));
    *min = low[1] < low[0] ? low[1] : low[0];
    *max = high[1] > high[0] ? high[1] : high[0];
}

/* ---- without AVX2 ----------------------------------------------------------------
 *
 * The compiler halves the vectors. Products and sums are rounded one by one: for values that are
 * certain to some roundings, not for answers.
 */
#ifndef __AVX2__

LANES_INLINE f64x2 f64x2_fma(f64x2 a, f64x2 b, f64x2 c)
{
    return a * b + c;
}
LANES_INLINE f32x8 f32x8_all(float a)
{
    return (f32x8){a, a, a, a, a, a, a, a};
}
LANES_INLINE f32x8 f32x8_load(const float *from)
{
    f32x8 a;

    memcpy(&a, from, sizeof a);
    return a;
}
LANES_INLINE void f32x8_store(float *to, f32x8 a)
{
    memcpy(to, &a, sizeof a);
}
LANES_INLINE f32x8 f32x8_select(i32x8 mask, f32x8 yes, f32x8 no)
{
    return (f32x8)(((i32x8)yes & mask) | ((i32x8)no & ~mask));
}
LANES_INLINE f32x8 f32x8_min(f32x8 a, f32x8 b)
{
    return f32x8_select((i32x8)(a < b), a, b);
}
LANES_INLINE f32x8 f32x8_max(f32x8 a, f32x8 b)
{
    return f32x8_select((i32x8)(a > b), a, b);
}
LANES_INLINE f32x8 f32x8_abs(f32x8 a)
{
    return (f32x8)((i32x8)a & ~(i32x8)f32x8_all(-0.0F));
}
LANES_INLINE f32x8 f32x8_fma(f32x8 a, f32x8 b, f32x8 c)
{
    return a * b + c;
}
LANES_INLINE f32x8 f32x8_fms(f32x8 a, f32x8 b, f32x8 c)
{
    return a * b - c;
}
LANES_INLINE f32x8 f32x8_fnma(f32x8 a, f32x8 b, f32x8 c)
{
    return c - a * b;
}
LANES_INLINE i32x8 f32x8_le(f32x8 a, f32x8 b)
{
    return (i32x8)(a <= b);
}
LANES_INLINE unsigned i32x8_signs(i32x8 a)
{
    return i32x4_signs(__builtin_shufflevector(a, a, 0, 1, 2, 3)) |
           i32x4_signs(__builtin_shufflevector(a, a, 4, 5, 6, 7)) << 4;
}
LANES_INLINE f32x8 f32x8_halves(f32x4 low, f32x4 high)
{
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
LANES_INLINE f32x4 f32x8_low(f32x8 a)
{
    return __builtin_shufflevector(a, a, 0, 1, 2, 3);
}
LANES_INLINE f32x4 f32x8_high(f32x8 a)
{
    return __builtin_shufflevector(a, a, 4, 5, 6, 7);
}
LANES_INLINE f32x8 f32x8_sqrt(f32x8 a)
{
    for (int i = 0; i < 8; i++)
        a[i] = __builtin_sqrtf(a[i]);
    return a;
}
LANES_INLINE f32x8 f32x8_of_shorts(const uint16_t *from)
{
    f32x8 a;

    for (int i = 0; i < 8; i++)
        a[i] = (float)from[i];
    return a;
}

#endif

/* ---- AVX2 ------------------------------------------------------------------------------------ */
#ifdef __AVX2__

typedef LANES_OF(char, 16) u8x16;
typedef LANES_OF(char, 32) u8x32;

/* Bits of `from` at the places that `mask` has, side by side; and back. */
LANES_INLINE uint32_t bits_gather(uint32_t from, uint32_t mask)
{
    return _pext_u32(from, mask);
}
LANES_INLINE uint32_t bits_scatter(uint32_t from, uint32_t mask)
{
    return _pdep_u32(from, mask);
}
/* The lowest bit that is set; of 0 64. */
LANES_INLINE uint64_t bits_first(uint64_t a)
{
    return _tzcnt_u64(a);
}

/*
 * Of two numbers side by side, whole + 2^52, times strides[8] (column and row: of the tile and in
 * the tile): in 32 bits each the tile and the sample of a cell. The bytes over the lowest ones are
 * the tile, the lowest ones the cell in it.
 */
#define LANES_CELL_BYTES 1, 2, 9, 10, 0, -1, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1

/* ---- two float64, four integers ---- */

LANES_INLINE void f64x2_store(double *to, f64x2 a)
{
    _mm_storeu_pd(to, a);
}
LANES_INLINE f64x2 f64x2_and(f64x2 a, f64x2 b)
{
    return _mm_and_pd(a, b);
}
LANES_INLINE f64x2 f64x2_or(f64x2 a, f64x2 b)
{
    return _mm_or_pd(a, b);
}
LANES_INLINE f64x2 f64x2_fma(f64x2 a, f64x2 b, f64x2 c)
{
    return _mm_fmadd_pd(a, b, c);
}
/* Into the lower lanes; 0 in the upper ones. */
LANES_INLINE f32x4 f64x2_floats(f64x2 a)
{
    return _mm_cvtpd_ps(a);
}
LANES_INLINE i32x4 i32x4_load(const void *from)
{
    return (i32x4)_mm_loadu_si128(from);
}
LANES_INLINE void i32x4_store(void *to, i32x4 a)
{
    _mm_storeu_si128(to, (__m128i)a);
}
LANES_INLINE void i32x4_store_low(void *to, i32x4 a)
{
    _mm_storel_epi64(to, (__m128i)a);
}
LANES_INLINE i32x4 i32x4_min(i32x4 a, i32x4 b)
{
    return (i32x4)_mm_min_epi32((__m128i)a, (__m128i)b);
}

LANES_INLINE f64x2 f64x2_twice(const double *two)
{
    return _mm_loadu_pd(two);
}
LANES_INLINE f64x2 f64x2_floor(f64x2 a)
{
    return _mm_floor_pd(a);
}
LANES_INLINE f64x2 f64x2_swap(f64x2 a)
{
    return _mm_permute_pd(a, 1);
}
LANES_INLINE f64x2 f64x2_firsts(f64x2 a)
{
    return _mm_movedup_pd(a);
}
LANES_INLINE i64x2 f64x2_gt(f64x2 a, f64x2 b)
{
    return (i64x2)_mm_cmpgt_pd(a, b);
}
LANES_INLINE i64x2 f64x2_spread(i64x2 signs)
{
    return (i64x2)_mm_shuffle_epi32(_mm_srai_epi32((__m128i)signs, 31), 0xf5);
}
LANES_INLINE i32x4 f64x2_place(i64x2 shifted, const int16_t *strides)
{
    __m128i cell = _mm_shuffle_epi8((__m128i)shifted, _mm_setr_epi8(LANES_CELL_BYTES));

    return (i32x4)_mm_madd_epi16(cell, _mm_loadu_si128((const void *)strides));
}

/* ---- four float32 ---- */

/* a b + c, rounded once. */
LANES_INLINE f32x4 f32x4_fma(f32x4 a, f32x4 b, f32x4 c)
{
    return _mm_fmadd_ps(a, b, c);
}
LANES_INLINE void f32x4_store_low(float *to, f32x4 a)
{
    _mm_storel_pi((__m64 *)(void *)to, a);
}
LANES_INLINE void f32x4_store_high(float *to, f32x4 a)
{
    _mm_storeh_pi((__m64 *)(void *)to, a);
}
LANES_INLINE f32x4 f32x4_xor(f32x4 a, f32x4 b)
{
    return _mm_xor_ps(a, b);
}
LANES_INLINE f32x4 f32x4_abs(f32x4 a)
{
    return _mm_andnot_ps(_mm_set1_ps(-0.0F), a);
}
/* Lanes 1, 1, 3, 3. */
LANES_INLINE f32x4 f32x4_odd(f32x4 a)
{
    return _mm_movehdup_ps(a);
}
LANES_INLINE i32x4 f32x4_not_le(f32x4 a, f32x4 b)
{
    return (i32x4)_mm_cmpnle_ps(a, b);
}
LANES_INLINE f32x4 f32x4_of_ints(i32x4 a)
{
    return _mm_cvtepi32_ps((__m128i)a);
}
/* The lower halves of both, or the upper ones. */
LANES_INLINE f32x4 f32x4_lows(f32x4 a, f32x4 b)
{
    return _mm_movelh_ps(a, b);
}
LANES_INLINE f32x4 f32x4_highs(f32x4 a, f32x4 b)
{
    return _mm_movehl_ps(b, a);
}
/* Lane i is a's lane order[i] modulo 4. */
LANES_INLINE f32x4 f32x4_pick(f32x4 a, i32x4 order)
{
    return _mm_permutevar_ps(a, (__m128i)order);
}

/* ---- eight float32 ---- */

LANES_INLINE f32x8 f32x8_all(float a)
{
    return _mm256_set1_ps(a);
}
/* Lane 0 in all. */
LANES_INLINE f32x8 f32x8_all_first(f32x4 a)
{
    return _mm256_broadcastss_ps(a);
}
LANES_INLINE f32x8 f32x8_load(const float *from)
{
    return _mm256_loadu_ps(from);
}
LANES_INLINE void f32x8_store(float *to, f32x8 a)
{
    _mm256_storeu_ps(to, a);
}
LANES_INLINE f32x8 f32x8_halves(f32x4 low, f32x4 high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
LANES_INLINE f32x4 f32x8_low(f32x8 a)
{
    return _mm256_castps256_ps128(a);
}
LANES_INLINE f32x4 f32x8_high(f32x8 a)
{
    return _mm256_extractf128_ps(a, 1);
}
/* The upper half is anything. */
LANES_INLINE f32x8 f32x8_of_low(f32x4 a)
{
    return _mm256_castps128_ps256(a);
}
/* The upper half of a, then the lower one of b. */
LANES_INLINE f32x8 f32x8_middle(f32x8 a, f32x8 b)
{
    return _mm256_permute2f128_ps(a, b, 0x21);
}
LANES_INLINE f32x8 f32x8_min(f32x8 a, f32x8 b)
{
    return _mm256_min_ps(a, b);
}
LANES_INLINE f32x8 f32x8_max(f32x8 a, f32x8 b)
{
    return _mm256_max_ps(a, b);
}
/* a b + c, a b - c and c - a b, rounded once. */
LANES_INLINE f32x8 f32x8_fma(f32x8 a, f32x8 b, f32x8 c)
{
    return _mm256_fmadd_ps(a, b, c);
}
LANES_INLINE f32x8 f32x8_fms(f32x8 a, f32x8 b, f32x8 c)
{
    return _mm256_fmsub_ps(a, b, c);
}
LANES_INLINE f32x8 f32x8_fnma(f32x8 a, f32x8 b, f32x8 c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
LANES_INLINE f32x8 f32x8_or(f32x8 a, f32x8 b)
{
    return _mm256_or_ps(a, b);
}
LANES_INLINE f32x8 f32x8_xor(f32x8 a, f32x8 b)
{
    return _mm256_xor_ps(a, b);
}
LANES_INLINE f32x8 f32x8_sqrt(f32x8 a)
{
    return _mm256_sqrt_ps(a);
}
LANES_INLINE f32x8 f32x8_abs(f32x8 a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}
LANES_INLINE i32x8 f32x8_le(f32x8 a, f32x8 b)
{
    return (i32x8)_mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
LANES_INLINE i32x8 f32x8_unordered(f32x8 a, f32x8 b)
{
    return (i32x8)_mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
/* By the signs of the mask's lanes. */
LANES_INLINE f32x8 f32x8_select(i32x8 mask, f32x8 yes, f32x8 no)
{
    return _mm256_blendv_ps(no, yes, (__m256)mask);
}
/* In each half, as f32x4_pick. */
LANES_INLINE f32x8 f32x8_pick(f32x8 a, i32x8 order)
{
    return _mm256_permutevar_ps(a, (__m256i)order);
}
LANES_INLINE f32x8 f32x8_of_ints(i32x8 a)
{
    return _mm256_cvtepi32_ps((__m256i)a);
}
/* Eight numbers of 16 bits. */
LANES_INLINE f32x8 f32x8_of_shorts(const uint16_t *from)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from)));
}
LANES_INLINE i32x8 i32x8_all(int32_t a)
{
    return (i32x8)_mm256_set1_epi32(a);
}
LANES_INLINE unsigned i32x8_signs(i32x8 a)
{
    return (unsigned)_mm256_movemask_ps((__m256)a);
}
/* The signs of sixteen lanes, all bits of a byte each: lanes 0-3 and 8-11, then the others. */
LANES_INLINE u8x16 f32x8_pack_signs(f32x8 a, f32x8 b)
{
    __m256i words = _mm256_packs_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));

    return (u8x16)_mm_packs_epi16(_mm256_castsi256_si128(words),
                                  _mm256_extracti128_si256(words, 1));
}
/* Byte i is a's byte order[i], or 0 where that is negative; of 32 in each half. */
LANES_INLINE u8x16 u8x16_pick(u8x16 a, u8x16 order)
{
    return (u8x16)_mm_shuffle_epi8((__m128i)a, (__m128i)order);
}
LANES_INLINE u8x32 u8x32_pick(u8x32 a, u8x32 order)
{
    return (u8x32)_mm256_shuffle_epi8((__m256i)a, (__m256i)order);
}
LANES_INLINE unsigned u8x16_signs(u8x16 a)
{
    return (unsigned)_mm_movemask_epi8((__m128i)a);
}
LANES_INLINE u8x16 u8x16_load(const void *from)
{
    return (u8x16)_mm_loadu_si128(from);
}
LANES_INLINE u8x32 u8x32_twice(u8x16 a)
{
    return (u8x32)_mm256_broadcastsi128_si256((__m128i)a);
}

/* ---- four float64 ---- */

LANES_INLINE f64x4 f64x4_all(double a)
{
    return _mm256_set1_pd(a);
}
LANES_INLINE f64x4 f64x4_load(const double *from)
{
    return _mm256_loadu_pd(from);
}
LANES_INLINE void f64x4_store(double *to, f64x4 a)
{
    _mm256_storeu_pd(to, a);
}
/* Two numbers, twice. */
LANES_INLINE f64x4 f64x4_twice(const double *two)
{
    return _mm256_broadcast_pd((const __m128d *)(const void *)two);
}
LANES_INLINE f64x4 f64x4_halves(f64x2 low, f64x2 high)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}
LANES_INLINE f64x2 f64x4_low(f64x4 a)
{
    return _mm256_castpd256_pd128(a);
}
LANES_INLINE f64x2 f64x4_high(f64x4 a)
{
    return _mm256_extractf128_pd(a, 1);
}
LANES_INLINE f64x4 f64x4_min(f64x4 a, f64x4 b)
{
    return _mm256_min_pd(a, b);
}
LANES_INLINE f64x4 f64x4_max(f64x4 a, f64x4 b)
{
    return _mm256_max_pd(a, b);
}
LANES_INLINE f64x4 f64x4_floor(f64x4 a)
{
    return _mm256_floor_pd(a);
}
LANES_INLINE f64x4 f64x4_round(f64x4 a)
{
    return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LANES_INLINE f64x4 f64x4_sqrt(f64x4 a)
{
    return _mm256_sqrt_pd(a);
}
LANES_INLINE f64x4 f64x4_and(f64x4 a, f64x4 b)
{
    return _mm256_and_pd(a, b);
}
LANES_INLINE f64x4 f64x4_or(f64x4 a, f64x4 b)
{
    return _mm256_or_pd(a, b);
}
LANES_INLINE f64x4 f64x4_xor(f64x4 a, f64x4 b)
{
    return _mm256_xor_pd(a, b);
}
/* b where a has no bit. */
LANES_INLINE f64x4 f64x4_andnot(f64x4 a, f64x4 b)
{
    return _mm256_andnot_pd(a, b);
}
LANES_INLINE f64x4 f64x4_abs(f64x4 a)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}
/* By the signs of the mask's lanes. */
LANES_INLINE f64x4 f64x4_select(i64x4 mask, f64x4 yes, f64x4 no)
{
    return _mm256_blendv_pd(no, yes, (__m256d)mask);
}
/* Swaps the pair of each half. */
LANES_INLINE f64x4 f64x4_swap(f64x4 a)
{
    return _mm256_permute_pd(a, 5);
}
/* The first number of each half, twice. */
LANES_INLINE f64x4 f64x4_firsts(f64x4 a)
{
    return _mm256_permute_pd(a, 0);
}
/* The second number of each half, twice. */
LANES_INLINE f64x4 f64x4_seconds(f64x4 a)
{
    return _mm256_permute_pd(a, 15);
}
/* The first number of each half of a, followed by that of b. */
LANES_INLINE f64x4 f64x4_zip_low(f64x4 a, f64x4 b)
{
    return _mm256_unpacklo_pd(a, b);
}
/* The second number of each half of a, followed by that of b. */
LANES_INLINE f64x4 f64x4_zip_high(f64x4 a, f64x4 b)
{
    return _mm256_unpackhi_pd(a, b);
}
/* Swaps the halves. */
LANES_INLINE f64x4 f64x4_swap_halves(f64x4 a)
{
    return _mm256_permute4x64_pd(a, _MM_SHUFFLE(1, 0, 3, 2));
}
/* Lane i is a's lane order[2 i] / 2. */
LANES_INLINE f64x4 f64x4_pick_halves(f64x4 a, const int32_t order[8])
{
    __m256i from = _mm256_loadu_si256((const void *)order);

    return (f64x4)_mm256_permutevar8x32_ps((__m256)a, from);
}
LANES_INLINE f64x4 f64x4_0213(f64x4 a)
{
    return _mm256_permute4x64_pd(a, _MM_SHUFFLE(3, 1, 2, 0));
}
LANES_INLINE f64x4 f64x4_of_floats(f32x4 a)
{
    return _mm256_cvtps_pd(a);
}
LANES_INLINE f32x4 f64x4_floats(f64x4 a)
{
    return _mm256_cvtpd_ps(a);
}
LANES_INLINE i32x4 f64x4_truncated(f64x4 a)
{
    return (i32x4)_mm256_cvttpd_epi32(a);
}
LANES_INLINE f64x4 f64x4_of_ints(i32x4 a)
{
    return _mm256_cvtepi32_pd((__m128i)a);
}
LANES_INLINE i64x4 f64x4_lt(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_LT_OQ);
}
LANES_INLINE i64x4 f64x4_le(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_LE_OQ);
}
LANES_INLINE i64x4 f64x4_gt(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
LANES_INLINE i64x4 f64x4_ge(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_GE_OQ);
}
LANES_INLINE i64x4 f64x4_eq(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_EQ_OQ);
}
/* Neither equal nor unordered. */
LANES_INLINE i64x4 f64x4_ne(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_NEQ_OQ);
}
/* True where one is NaN, too. */
LANES_INLINE i64x4 f64x4_not_lt(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_NLT_UQ);
}
LANES_INLINE i64x4 f64x4_not_le(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_NLE_UQ);
}
LANES_INLINE i64x4 f64x4_not_gt(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_NGT_UQ);
}
LANES_INLINE i64x4 f64x4_not_ge(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_NGE_UQ);
}
LANES_INLINE i64x4 f64x4_unordered(f64x4 a, f64x4 b)
{
    return (i64x4)_mm256_cmp_pd(a, b, _CMP_UNORD_Q);
}
LANES_INLINE i64x4 i64x4_all(long long a)
{
    return (i64x4)_mm256_set1_epi64x(a);
}
LANES_INLINE unsigned i64x4_signs(i64x4 a)
{
    return (unsigned)_mm256_movemask_pd((__m256d)a);
}
LANES_INLINE bool i64x4_any(i64x4 a)
{
    return !_mm256_testz_si256((__m256i)a, (__m256i)a);
}
LANES_INLINE i64x4 i64x4_of_ints(i32x4 a)
{
    return (i64x4)_mm256_cvtepi32_epi64((__m128i)a);
}
/* All bits of lanes whose sign is set. */
LANES_INLINE i64x4 f64x4_spread(i64x4 signs)
{
    return (i64x4)_mm256_shuffle_epi32(_mm256_srai_epi32((__m256i)signs, 31), 0xf5);
}
LANES_INLINE i32x8 f64x4_place(i64x4 shifted, const int16_t *strides)
{
    __m256i bytes = _mm256_setr_epi8(LANES_CELL_BYTES, LANES_CELL_BYTES);
    __m128i both = _mm_loadu_si128((const void *)strides);

    return (i32x8)_mm256_madd_epi16(_mm256_shuffle_epi8((__m256i)shifted, bytes),
                                    _mm256_broadcastsi128_si256(both));
}
LANES_INLINE i32x4 i32x8_low(i32x8 a)
{
    return (i32x4)_mm256_castsi256_si128((__m256i)a);
}
LANES_INLINE i32x4 i32x8_high(i32x8 a)
{
    return (i32x4)_mm256_extracti128_si256((__m256i)a, 1);
}

/* Signed 64 to 32 bits: the lower halves. */
LANES_INLINE i32x4 i64x4_narrow(i64x4 a)
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);

    return (i32x4)_mm256_castsi256_si128(_mm256_permutevar8x32_epi32((__m256i)a, even));
}
/* All bits of 32 of lanes whose sign is set. */
LANES_INLINE i32x4 f64x4_signs32(f64x4 a)
{
    __m128 low = _mm_castpd_ps(_mm256_castpd256_pd128(a));
    __m128 high = _mm_castpd_ps(_mm256_extractf128_pd(a, 1));

    return (i32x4)_mm_srai_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)), 31);
}
/* Of 0 to 2^52. */
LANES_INLINE f64x4 i64x4_doubles(i64x4 a)
{
    const __m256d two52 = _mm256_set1_pd(0x1p52);

    return _mm256_sub_pd((__m256d)(a | (i64x4)two52), two52);
}
/* x < 0 ? 0 : x > 1 ? 1 : x */
LANES_INLINE f64x4 f64x4_clamp_unit(f64x4 x)
{
    return _mm256_min_pd(_mm256_set1_pd(1), _mm256_max_pd(_mm256_setzero_pd(), x));
}
/* Lane 2 of b, the others of a. */
LANES_INLINE f64x4 f64x4_put_third(f64x4 a, f64x4 b)
{
    return _mm256_blend_pd(a, b, 4);
}
/* One lane in all. */
LANES_INLINE f64x4 f64x4_all_first(f64x4 a)
{
    return _mm256_permute4x64_pd(a, 0);
}
LANES_INLINE f64x4 f64x4_all_second(f64x4 a)
{
    return _mm256_permute4x64_pd(a, 0x55);
}
LANES_INLINE f64x4 f64x4_all_third(f64x4 a)
{
    return _mm256_permute4x64_pd(a, 0xaa);
}
/* Lanes 2, 0, 1, 2: of three the one before each. */
LANES_INLINE f64x4 f64x4_before(f64x4 a)
{
    return _mm256_permute4x64_pd(a, _MM_SHUFFLE(2, 1, 0, 2));
}
/* Lane 3 of b, the others of a. */
LANES_INLINE f64x4 f64x4_put_last(f64x4 a, f64x4 b)
{
    return _mm256_blend_pd(a, b, 8);
}

/* ---- structs of float64, and vectors of a member of each ---- */

/* Rows to columns. */
LANES_INLINE void f64x4_transpose(const f64x4 *a, f64x4 *to)
{
    f64x4 low0 = _mm256_unpacklo_pd(a[0], a[1]), high0 = _mm256_unpackhi_pd(a[0], a[1]);
    f64x4 low1 = _mm256_unpacklo_pd(a[2], a[3]), high1 = _mm256_unpackhi_pd(a[2], a[3]);

    to[0] = _mm256_permute2f128_pd(low0, low1, 0x20);
    to[1] = _mm256_permute2f128_pd(high0, high1, 0x20);
    to[2] = _mm256_permute2f128_pd(low0, low1, 0x31);
    to[3] = _mm256_permute2f128_pd(high0, high1, 0x31);
}

/* Four members of each struct, from byte `from` on; each half joins by a load. */
LANES_INLINE void f64x4_load_columns(const void *const *at, size_t from, f64x4 *to)
{
    for (int i = 0; i < 4; i += 2) {
        f64x4 pair[2];

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

/* Eight members: one vector each. */
LANES_INLINE void f64x4_load_columns8(const void *const *at, size_t from, f64x4 *to)
{
    f64x4_load_columns(at, from, to);
    f64x4_load_columns(at, from + 4 * sizeof(double), to + 4);
}

LANES_INLINE void f64x4_store_rows8(void *const *at, size_t to, const f64x4 *columns)
{
    for (int half = 0; half < 2; half++) {
        f64x4 rows[4];

        f64x4_transpose(columns + 4 * half, rows);
        for (int i = 0; i < 4; i++)
            _mm256_storeu_pd((double *)(void *)((char *)at[i] + to) + 4 * half, rows[i]);
    }
}

/* Two float32 that follow one another, of each struct. */
LANES_INLINE void f64x4_load_pairs(const float *const *at, size_t from, f64x4 *west, f64x4 *east)
{
    __m128d pair[4];

    for (int i = 0; i < 4; i++) {
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
