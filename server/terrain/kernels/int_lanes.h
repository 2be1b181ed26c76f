/*
 * Vectors of integers of 8 to 64 bits, beside those of lanes.h. The only other place with
 * intrinsics. Private to terrain/.
 *
 * Every machine has all of it: AVX2 and SSE2 by their own instructions, others by vectors of GCC
 * and clang, or by words of 64 bits. The results are the same bits.
 */
#ifndef KOTA_TERRAIN_INT_LANES_H
#define KOTA_TERRAIN_INT_LANES_H

#include "terrain/kernels/lanes.h"

typedef LANES_OF(unsigned long long, 16) u64x2;
typedef LANES_OF(int8_t, 16) i8x16;
typedef LANES_OF(int16_t, 16) i16x8;
typedef LANES_OF(uint16_t, 16) u16x8;
typedef LANES_OF(uint32_t, 32) u32x8;

/* ---- 2 x 64 bits ----------------------------------------------------------------------------- */

LANES_INLINE u64x2 u64x2_load(const uint64_t *from)
{
    u64x2 a;

    memcpy(&a, from, sizeof a);
    return a;
}
LANES_INLINE void u64x2_store(uint64_t *to, u64x2 a)
{
    memcpy(to, &a, sizeof a);
}
/* Both lanes by count[0] bits, less than 64; by more: undefined lanes. */
LANES_INLINE u64x2 u64x2_shift_right(u64x2 a, u64x2 count)
{
#ifdef __SSE2__
    return (u64x2)_mm_srl_epi64((__m128i)a, (__m128i)count);
#else
    return a >> (count[0] & 63);
#endif
}
/* The product of the lower 32 bits of both, in each lane. */
LANES_INLINE u64x2 u64x2_mul_low32(u64x2 a, u64x2 b)
{
#ifdef __SSE2__
    return (u64x2)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}
/* Of 4 x 32 bits without sign. */
LANES_INLINE u64x2 u64x2_min32(u64x2 a, u64x2 b)
{
#ifdef __AVX2__
    return (u64x2)_mm_min_epu32((__m128i)a, (__m128i)b);
#else
    u32x4 is_less = (u32x4)((u32x4)a < (u32x4)b);

    return (u64x2)(((u32x4)a & is_less) | ((u32x4)b & ~is_less));
#endif
}
LANES_INLINE uint64_t u64x2_sum(u64x2 a)
{
    return (a + __builtin_shufflevector(a, a, 1, 0))[0];
}

/* Of numbers that an int32_t holds the nearest, of two the even one; two zeros after them. */
LANES_INLINE i32x4 f64x2_rounded(f64x2 a)
{
#ifdef __SSE2__
    return (i32x4)_mm_cvtpd_epi32(a);
#else
    return (i32x4){(int32_t)__builtin_rint(a[0]), (int32_t)__builtin_rint(a[1]), 0, 0};
#endif
}

/* ---- 16 x 8 bits and 8 x 16 bits ------------------------------------------------------------- */

LANES_INLINE i8x16 i8x16_load(const void *from)
{
    i8x16 a;

    memcpy(&a, from, sizeof a);
    return a;
}
LANES_INLINE i16x8 i16x8_load(const void *from)
{
    i16x8 a;

    memcpy(&a, from, sizeof a);
    return a;
}
/* Bit i is the sign of lane i. */
LANES_INLINE unsigned i8x16_signs(i8x16 a)
{
#ifdef __SSE2__
    return (unsigned)_mm_movemask_epi8((__m128i)a);
#else
    const u64x2 ones = {0x0101010101010101, 0x0101010101010101};
    u64x2 bits = ((u64x2)a >> 7 & ones) * 0x0102040810204080 >> 56;

    return (unsigned)(bits[0] | bits[1] << 8);
#endif
}
LANES_INLINE i16x8 i16x8_all(int16_t a)
{
    return (i16x8){a, a, a, a, a, a, a, a};
}
/* Bit i: lane i of a is less than that of `than`; bit 8 + i: that of b is. */
LANES_INLINE unsigned i16x8_less(i16x8 a, i16x8 b, i16x8 than)
{
#ifdef __SSE2__
    return i8x16_signs((i8x16)_mm_packs_epi16((__m128i)(a < than), (__m128i)(b < than)));
#else
    unsigned out = 0;

    for (unsigned i = 0; i < 8; i++)
        out |= (unsigned)(a[i] < than[i]) << i | (unsigned)(b[i] < than[i]) << (8 + i);
    return out;
#endif
}

/* ---- 16 x 16 bits: one vector of AVX2, two of SSE2 or NEON ----------------------------------- */

#ifdef __AVX2__

typedef LANES_OF(int16_t, 32) i16x16_vector;

struct i16x16 {
    i16x16_vector v;
};
struct byte_pairs {
    __m256i v;
};

/* Byte k of a's first lane and byte k of its second, side by side in all 16 lanes; k: 0 or 1. */
LANES_INLINE struct byte_pairs byte_pairs_all(u64x2 a, unsigned k)
{
    __m256i both = _mm256_broadcastsi128_si256((__m128i)a);

    return (struct byte_pairs){
        _mm256_shuffle_epi8(both, _mm256_set1_epi16(k == 0 ? 0x0800 : 0x0901))};
}
/* Lane i: p's first from[2 i] + p's second from[2 i + 1], of 32 bytes; p: 0 to 127. */
LANES_INLINE struct i16x16 i16x16_pair_products(struct byte_pairs p, const void *from)
{
    return (struct i16x16){(i16x16_vector)_mm256_maddubs_epi16(p.v, _mm256_loadu_si256(from))};
}
LANES_INLINE struct i16x16 i16x16_add(struct i16x16 a, struct i16x16 b)
{
    return (struct i16x16){a.v + b.v};
}
/* Saturated. b: 16 lanes in memory. */
LANES_INLINE struct i16x16 i16x16_add_saturated(struct i16x16 a, const void *b)
{
    return (struct i16x16){(i16x16_vector)_mm256_adds_epi16((__m256i)a.v, _mm256_loadu_si256(b))};
}
LANES_INLINE struct i16x16 i16x16_shift_right(struct i16x16 a, int bits)
{
    return (struct i16x16){a.v >> bits};
}
LANES_INLINE struct i16x16 i16x16_min(struct i16x16 a, struct i16x16 b)
{
    return (struct i16x16){(i16x16_vector)_mm256_min_epi16((__m256i)a.v, (__m256i)b.v)};
}
/* To 8 bits, saturated. */
LANES_INLINE i8x16 i16x16_pack_saturated(struct i16x16 a)
{
    return (i8x16)_mm_packs_epi16(_mm256_castsi256_si128((__m256i)a.v),
                                  _mm256_extracti128_si256((__m256i)a.v, 1));
}

#else

struct i16x16 {
    i16x8 half[2];
};

struct byte_pairs {
    i16x8 first, second;
};

LANES_INLINE i16x8 i16x8_min(i16x8 a, i16x8 b)
{
#ifdef __SSE2__
    return (i16x8)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    i16x8 is_less = (i16x8)(a < b);

    return (a & is_less) | (b & ~is_less);
#endif
}
LANES_INLINE i16x8 i16x8_add_saturated(i16x8 a, i16x8 b)
{
#ifdef __SSE2__
    return (i16x8)_mm_adds_epi16((__m128i)a, (__m128i)b);
#else
    i16x8 sum = a + b, is_over = ((a ^ sum) & (b ^ sum)) >> 15;

    return (((a >> 15) ^ i16x8_all(INT16_MAX)) & is_over) | (sum & ~is_over);
#endif
}

LANES_INLINE struct byte_pairs byte_pairs_all(u64x2 a, unsigned k)
{
    return (struct byte_pairs){i16x8_all((int16_t)(a[0] >> 8 * k & 0xff)),
                               i16x8_all((int16_t)(a[1] >> 8 * k & 0xff))};
}
LANES_INLINE struct i16x16 i16x16_pair_products(struct byte_pairs p, const void *from)
{
    struct i16x16 out;

    for (int i = 0; i < 2; i++) {
        i16x8 pairs = i16x8_load((const char *)from + sizeof pairs * (size_t)i);

        out.half[i] = ((pairs << 8) >> 8) * p.first + (pairs >> 8) * p.second;
    }
    return out;
}
LANES_INLINE struct i16x16 i16x16_add(struct i16x16 a, struct i16x16 b)
{
    return (struct i16x16){{a.half[0] + b.half[0], a.half[1] + b.half[1]}};
}
LANES_INLINE struct i16x16 i16x16_add_saturated(struct i16x16 a, const void *b)
{
    return (struct i16x16){{i16x8_add_saturated(a.half[0], i16x8_load(b)),
                            i16x8_add_saturated(a.half[1], i16x8_load((const i16x8 *)b + 1))}};
}
LANES_INLINE struct i16x16 i16x16_shift_right(struct i16x16 a, int bits)
{
    return (struct i16x16){{a.half[0] >> bits, a.half[1] >> bits}};
}
LANES_INLINE struct i16x16 i16x16_min(struct i16x16 a, struct i16x16 b)
{
    return (struct i16x16){{i16x8_min(a.half[0], b.half[0]), i16x8_min(a.half[1], b.half[1])}};
}
LANES_INLINE i8x16 i16x16_pack_saturated(struct i16x16 a)
{
#ifdef __SSE2__
    return (i8x16)_mm_packs_epi16((__m128i)a.half[0], (__m128i)a.half[1]);
#else
    i8x16 out;

    for (int i = 0; i < 16; i++) {
        int lane = a.half[i / 8][i % 8];

        out[i] = (int8_t)(lane < INT8_MIN ? INT8_MIN : lane > INT8_MAX ? INT8_MAX : lane);
    }
    return out;
#endif
}

#endif

/* ---- 8 x 32 bits ----------------------------------------------------------------------------- */

/* Bit i: lane i of 8 integers in memory, shifted right, is not above `most`. */
LANES_INLINE unsigned u32x8_not_above(const uint32_t *from, int shift, uint32_t most)
{
#ifdef __AVX2__
    u32x8 a = (u32x8)_mm256_loadu_si256((const void *)from);
    i32x8 is_above = (i32x8)(a >> shift) > i32x8_all((int32_t)most);

    return ~i32x8_signs(is_above) & 0xff;
#else
    unsigned out = 0;

    for (unsigned half = 0; half < 2; half++) {
        u32x4 a;

        memcpy(&a, from + 4 * half, sizeof a);
        out |= i32x4_signs((i32x4)(a >> shift) > i32x4_all((int32_t)most)) << 4 * half;
    }
    return ~out & 0xff;
#endif
}
LANES_INLINE i32x8 i32x8_min(i32x8 a, i32x8 b)
{
#ifdef __AVX2__
    return (i32x8)_mm256_min_epi32((__m256i)a, (__m256i)b);
#else
    i32x8 is_less = (i32x8)(a < b);

    return (a & is_less) | (b & ~is_less);
#endif
}
/* Is a bit set? */
LANES_INLINE bool i32x8_any(i32x8 a)
{
#ifdef __AVX2__
    return !_mm256_testz_si256((__m256i)a, (__m256i)a);
#else
    uint64_t words[4];

    memcpy(words, &a, sizeof words);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}
LANES_INLINE i32x8 i32x8_of_shorts(const void *from)
{
    i16x8 a = i16x8_load(from);

#ifdef __AVX2__
    return (i32x8)_mm256_cvtepi16_epi32((__m128i)a);
#else
    return __builtin_convertvector(a, i32x8);
#endif
}
/* Lane i: x from[2 i] + y from[2 i + 1], of 16 bytes. */
LANES_INLINE i32x8 i32x8_pair_products(int16_t x, int16_t y, const void *from)
{
#ifdef __AVX2__
    __m256i pairs = _mm256_cvtepi8_epi16(_mm_loadu_si128(from));
    uint32_t both = (uint16_t)x | (uint32_t)(uint16_t)y << 16;

    return (i32x8)_mm256_madd_epi16(pairs, _mm256_set1_epi32((int32_t)both));
#else
    i16x8 pairs = i16x8_load(from);

    return __builtin_convertvector((i16x8)((pairs << 8) >> 8), i32x8) * x +
           __builtin_convertvector(pairs >> 8, i32x8) * y;
#endif
}

/* ---- */

/*
 * At the end of a function of a kernel that calls one which is not compiled for AVX2. On Intel 150
 * ns pass otherwise until the upper halves of the vectors are clear; gcc 12 forgets to clear them
 * before a call at the end of a function.
 */
LANES_INLINE void lanes_clear_upper(void)
{
#ifdef __AVX2__
    _mm256_zeroupper();
#endif
}

#endif
