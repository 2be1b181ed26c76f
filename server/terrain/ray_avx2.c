/*
 * Rays by wide nodes with AVX2: two vectors of eight lanes for the sixteen children. Problem,
 * approach, invariants and source: ray_avx512.c, which differs in nothing but the vectors.
 */
#include "terrain/ray_walk.h"

#ifdef __AVX2__

#include <immintrin.h>

#define KOTA_RAY_VECTORS

struct v16_halves {
    __m256 low, high; /* lanes 0 to 7, 8 to 15 */
};
#define v16 struct v16_halves

/* Lane i holds child i ^ flip. */
struct lane_order {
    __m128i bytes;
    __m256i columns; /* of each four lanes */
    bool from_last_row;
};

static inline void lane_order_init(struct lane_order *order, uint32_t flip)
{
    order->bytes =
        _mm_xor_si128(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                      _mm_set1_epi8((char)flip));
    order->columns = _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3),
                                      _mm256_set1_epi32((int)(flip & 3)));
    order->from_last_row = (flip & 12) != 0;
}

static inline v16 v16_set1(float a)
{
    __m256 all = _mm256_set1_ps(a);

    return (v16){all, all};
}

static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline void v16_store(float *to, v16 a)
{
    _mm256_store_ps(to, a.low);
    _mm256_store_ps(to + 8, a.high);
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

static inline v16 v16_min(v16 a, v16 b)
{
    return (v16){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

static inline v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

static inline uint32_t mask_of(__m256 low, __m256 high)
{
    return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << 8;
}

static inline uint32_t v16_le(v16 a, v16 b)
{
    return mask_of(_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ),
                   _mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ));
}

static inline uint32_t v16_not_less(v16 a, v16 b)
{
    return mask_of(_mm256_cmp_ps(a.low, b.low, _CMP_NLT_UQ),
                   _mm256_cmp_ps(a.high, b.high, _CMP_NLT_UQ));
}

static inline uint32_t v16_not_greater(v16 a, v16 b)
{
    return mask_of(_mm256_cmp_ps(a.low, b.low, _CMP_NGT_UQ),
                   _mm256_cmp_ps(a.high, b.high, _CMP_NGT_UQ));
}

/* The mask is all or nothing. */
static inline v16 v16_select(uint32_t mask, v16 a, v16 b)
{
    __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi32(mask != 0 ? -1 : 0));

    return (v16){_mm256_blendv_ps(b.low, a.low, sign), _mm256_blendv_ps(b.high, a.high, sign)};
}

static inline v16 v16_columns(void)
{
    __m256 columns = _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);

    return (v16){columns, columns};
}

static inline v16 v16_rows(void)
{
    return (v16){_mm256_setr_ps(0, 0, 0, 0, 1, 1, 1, 1), _mm256_setr_ps(2, 2, 2, 2, 3, 3, 3, 3)};
}

static inline v16 v16_bytes(const uint8_t *at, const struct lane_order *order)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

    bytes = _mm_shuffle_epi8(bytes, order->bytes);
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
                 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}

static inline __m256 two_rows(__m128 first, __m128 second)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(first), second, 1);
}

/* Bounds of the 4×4 cells at `at`; NaN in both where a sample is missing. */
static inline void v16_cells(const float *at, size_t stride, const struct lane_order *order,
                             v16 *min, v16 *max)
{
    __m128 low[5], high[5], sum[5];
    v16 bounds[2], nan;

    for (size_t i = 0; i < 5; i++) {
        const float *row = at + (order->from_last_row ? 4 - i : i) * stride;
        __m128 west = _mm_loadu_ps(row), east = _mm_loadu_ps(row + 1);

        low[i] = _mm_min_ps(west, east);
        high[i] = _mm_max_ps(west, east);
        sum[i] = _mm_add_ps(west, east); /* no overflow makes a NaN: samples up to 1e15 */
    }
    bounds[0] = v16_min((v16){two_rows(low[0], low[1]), two_rows(low[2], low[3])},
                        (v16){two_rows(low[1], low[2]), two_rows(low[3], low[4])});
    bounds[1] = v16_max((v16){two_rows(high[0], high[1]), two_rows(high[2], high[3])},
                        (v16){two_rows(high[1], high[2]), two_rows(high[3], high[4])});
    nan = v16_add((v16){two_rows(sum[0], sum[1]), two_rows(sum[2], sum[3])},
                  (v16){two_rows(sum[1], sum[2]), two_rows(sum[3], sum[4])});
    __m256 missing0 = _mm256_cmp_ps(nan.low, nan.low, _CMP_UNORD_Q);
    __m256 missing1 = _mm256_cmp_ps(nan.high, nan.high, _CMP_UNORD_Q);

    for (int i = 0; i < 2; i++) {
        v16 b = {_mm256_blendv_ps(bounds[i].low, nan.low, missing0),
                 _mm256_blendv_ps(bounds[i].high, nan.high, missing1)};

        *(i == 0 ? min : max) = (v16){_mm256_permutevar_ps(b.low, order->columns),
                                      _mm256_permutevar_ps(b.high, order->columns)};
    }
}

#include "terrain/ray_descent.h"

bool ray_alone_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    return descent_alone(field, ray, hit);
}

void rays_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
               struct ray_hit *hits)
{
    descent_many(field, rays, count, hits);
}

#else

#include "base/check.h"

bool ray_alone_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    (void)field, (void)ray, (void)hit;
    CHECK(!"a machine without AVX2");
    return false;
}

void rays_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
               struct ray_hit *hits)
{
    (void)field, (void)rays, (void)count, (void)hits;
    CHECK(!"a machine without AVX2");
}

#endif
