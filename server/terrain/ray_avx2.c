/*
 * Rays by wide nodes with AVX2: two vectors of eight lanes for the sixteen children. Problem,
 * approach, invariants and source: ray_avx512.c, which differs in the vectors and in how many rays
 * are asked together: here they go by ray_turns.h.
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
    __m256i bytes[2]; /* of lanes 0 to 7, 8 to 15: each to a number of 32 bits, the rest of it 0 */
    __m256i columns;  /* of each four lanes */
    bool from_last_row;
};

#define TWO_BYTES(i, flip)                                                                         \
    (long long)(0x8080800080808000 | ((i) ^ (flip)) | (uint64_t)(((i) + 1) ^ (flip)) << 32)
#define EIGHT_BYTES(i, flip)                                                                       \
    TWO_BYTES(i, flip), TWO_BYTES(i + 2, flip), TWO_BYTES(i + 4, flip), TWO_BYTES(i + 6, flip)
#define FOUR_COLUMNS(flip) (flip) | (1LL ^ (flip)) << 32, (2 ^ (flip)) | (3LL ^ (flip)) << 32

/* Of rays that fall along u, 1, and v, 2. */
static const struct lane_order lane_orders[4] = {
    {{{EIGHT_BYTES(0, 0)}, {EIGHT_BYTES(8, 0)}}, {FOUR_COLUMNS(0), FOUR_COLUMNS(0)}, false},
    {{{EIGHT_BYTES(0, 3)}, {EIGHT_BYTES(8, 3)}}, {FOUR_COLUMNS(3), FOUR_COLUMNS(3)}, false},
    {{{EIGHT_BYTES(0, 12)}, {EIGHT_BYTES(8, 12)}}, {FOUR_COLUMNS(0), FOUR_COLUMNS(0)}, true},
    {{{EIGHT_BYTES(0, 15)}, {EIGHT_BYTES(8, 15)}}, {FOUR_COLUMNS(3), FOUR_COLUMNS(3)}, true},
};

static inline void lane_order_init(struct lane_order *order, uint32_t flip)
{
    *order = lane_orders[(flip & 1) | (flip >> 2 & 2)];
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
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)at));

    return (v16){_mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, order->bytes[0])),
                 _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, order->bytes[1]))};
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
#include "terrain/ray_square.h"
#include "terrain/ray_turns.h"

static inline v16 v16_broadcast(__m128 a)
{
    __m256 all = _mm256_broadcastss_ps(a);

    return (v16){all, all};
}

static inline v16 v16_loadu(const float *from)
{
    return (v16){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

/* Of rows in the ray's order. */
static inline v16 v16_turned(v16 a, const struct lane_order *order)
{
    return (v16){_mm256_permutevar_ps(a.low, order->columns),
                 _mm256_permutevar_ps(a.high, order->columns)};
}

static inline __m256 eight_boxes_met(__m256 t_in, __m256 t_out, __m256 z_in, __m256 in, __m256 out,
                                     __m256 z_out, __m256 falling)
{
    __m256 is_under = _mm256_xor_ps(_mm256_cmp_ps(z_in, in, _CMP_LE_OQ), falling);
    __m256 is_over = _mm256_xor_ps(_mm256_cmp_ps(out, z_out, _CMP_LE_OQ), falling);

    return _mm256_and_ps(_mm256_and_ps(is_under, is_over), _mm256_cmp_ps(t_in, t_out, _CMP_LE_OQ));
}

static inline uint32_t v16_boxes_met(v16 t_in, v16 t_out, v16 z_in, v16 in, v16 out, v16 z_out,
                                     uint32_t falling)
{
    __m256 f = _mm256_castsi256_ps(_mm256_set1_epi32((int)falling));

    return mask_of(
        eight_boxes_met(t_in.low, t_out.low, z_in.low, in.low, out.low, z_out.low, f),
        eight_boxes_met(t_in.high, t_out.high, z_in.high, in.high, out.high, z_out.high, f));
}

/* 4×4 cells: their samples from `at` on. */
struct square {
    const float *at;
};

/* False where a sample is missing: then there are no bounds. Rows in the ray's order. */
static inline bool square_load(struct square *s, const float *at, const struct lane_order *order,
                               v16 *min, v16 *max)
{
    const ptrdiff_t row = order->from_last_row ? -TILE_SAMPLES : TILE_SAMPLES;
    const float *west = at + (order->from_last_row ? WIDE_LEAF_CELLS * TILE_SAMPLES : 0);
    const float *east = west + 1;
    __m256 west0 = two_rows(_mm_loadu_ps(west), _mm_loadu_ps(west + row));
    __m256 east0 = two_rows(_mm_loadu_ps(east), _mm_loadu_ps(east + row));
    __m256 west2 = two_rows(_mm_loadu_ps(west + 2 * row), _mm_loadu_ps(west + 3 * row));
    __m256 east2 = two_rows(_mm_loadu_ps(east + 2 * row), _mm_loadu_ps(east + 3 * row));
    __m128 west4 = _mm_loadu_ps(west + 4 * row), east4 = _mm_loadu_ps(east + 4 * row);
    __m256 low0 = _mm256_min_ps(west0, east0), high0 = _mm256_max_ps(west0, east0);
    __m256 low2 = _mm256_min_ps(west2, east2), high2 = _mm256_max_ps(west2, east2);
    __m256 low4 = _mm256_castps128_ps256(_mm_min_ps(west4, east4));
    __m256 high4 = _mm256_castps128_ps256(_mm_max_ps(west4, east4));
    __m256 missing = _mm256_or_ps(_mm256_cmp_ps(west0, east0, _CMP_UNORD_Q),
                                  _mm256_cmp_ps(west2, east2, _CMP_UNORD_Q));
    __m128 missing4 = _mm_cmp_ps(west4, east4, _CMP_UNORD_Q);

    s->at = at;
    /* with the next row each */
    *min = (v16){_mm256_min_ps(low0, _mm256_permute2f128_ps(low0, low2, 0x21)),
                 _mm256_min_ps(low2, _mm256_permute2f128_ps(low2, low4, 0x21))};
    *max = (v16){_mm256_max_ps(high0, _mm256_permute2f128_ps(high0, high2, 0x21)),
                 _mm256_max_ps(high2, _mm256_permute2f128_ps(high2, high4, 0x21))};
    return (_mm256_movemask_ps(missing) | _mm_movemask_ps(missing4)) == 0;
}

static inline bool square_hit(struct walk *w, const struct square *s, uint32_t column, uint32_t row,
                              uint32_t lanes, const struct lane_order *order, uint32_t flip)
{
    uint64_t cells = square_cells(lanes, flip);
    uint32_t count = (uint32_t)__builtin_popcount(lanes);

    (void)order;
    /* most often it is one, and that by itself is shorter than four */
    if (count == 1)
        return square_cell_hit(w, s->at, column, row, (uint32_t)cells);
    for (;; count -= ABREAST, cells >>= 4 * ABREAST) {
        if (abreast_square_hit(w, s->at, column, row, cells, count))
            return true;
        if (count <= ABREAST)
            return false;
    }
}

#include "terrain/ray_alone.h"

bool ray_alone_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    return alone_hit(field, ray, hit);
}

void rays_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
               struct ray_hit *hits)
{
    if (count >= TURNS_LEAST && turns_suit(field))
        turns_many(field, rays, count, hits);
    else
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
