/*
 * Rays by wide nodes, sixteen children at a time.
 *
 * Problem: ray.c's walk asks one node after the other, each answer decides a jump, and the
 * processor guesses most of them wrongly. Approach: front to back through nodes of 4×4 children
 * (wide.h) with a stack of masks. A node's sixteen boxes are asked by one pass of float32
 * arithmetic: the ray's parameter at the five u lines and five v lines that bound the children, the
 * heights between, three comparisons, one mask. Lanes are turned so that columns and rows go in the
 * ray's direction; a ray passes columns and rows monotonely, so the lowest set bit is always the
 * next child on its way, and nothing is sorted. The last squares are 4×4 cells, whose bounds are
 * made of their 25 samples in the same way; no memory is spent on them.
 *
 * float32 only decides what is looked at. All that it loses (16 roundings at the size of the root
 * node and of the field's heights) is padded, so a box is never left out wrongly; a cell that is
 * left goes through the walk's own arithmetic in float64, with the walk's own entry and exit
 * (cell_alone_hit). So the answer has the bits of ray.c's.
 *
 * One ray goes by ray_alone.h. Few rays, and those in fields that ray_lanes.h does not take, take
 * turns, a node each, and each asks for the memory of its next node before the others' turns.
 *
 * Invariants: a lane that the ray's ground line passes and whose heights it meets is in the mask; a
 * cell off the line is refused by its crossings. Rays along a grid line, which walk on both its
 * sides, and heights beyond 1e15 m are left to ray.c.
 *
 * Source of the wide traversal: Wald, Benthin, Boulos: Getting Rid of Packets, 2008.
 */
#include "terrain/ray_walk.h"

#ifdef __AVX512F__

#include <immintrin.h>

#define KOTA_RAY_VECTORS

typedef __m512 v16;

/* Lane i holds child i ^ flip. */
struct lane_order {
    __m128i bytes;
};

static inline void lane_order_init(struct lane_order *order, uint32_t flip)
{
    order->bytes =
        _mm_xor_si128(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                      _mm_set1_epi8((char)flip));
}

static inline v16 v16_set1(float a)
{
    return _mm512_set1_ps(a);
}

static inline v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

static inline void v16_store(float *to, v16 a)
{
    _mm512_store_ps(to, a);
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

static inline v16 v16_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}

static inline v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline uint32_t v16_le(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

static inline uint32_t v16_not_less(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}

static inline uint32_t v16_not_greater(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NGT_UQ);
}

static inline v16 v16_select(uint32_t mask, v16 a, v16 b)
{
    return _mm512_mask_blend_ps((__mmask16)mask, b, a);
}

static inline v16 v16_columns(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

static inline v16 v16_rows(void)
{
    return _mm512_setr_ps(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
}

static inline v16 v16_bytes(const uint8_t *at, const struct lane_order *order)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_shuffle_epi8(bytes, order->bytes)));
}

static inline v16 four_rows(const float *at, size_t stride)
{
    __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(at));
    __m256 high = _mm256_castps128_ps256(_mm_loadu_ps(at + 2 * stride));

    low = _mm256_insertf128_ps(low, _mm_loadu_ps(at + stride), 1);
    high = _mm256_insertf128_ps(high, _mm_loadu_ps(at + 3 * stride), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* a's rows 1 to 3, and then row `last`. */
static inline v16 rows_up(v16 a, __m128 last)
{
    return _mm512_castsi512_ps(_mm512_alignr_epi32(
        _mm512_castps_si512(_mm512_castps128_ps512(last)), _mm512_castps_si512(a), 4));
}

/* Bounds of the 4×4 cells at `at`; NaN in both where a sample is missing. */
static inline void v16_cells(const float *at, size_t stride, const struct lane_order *order,
                             v16 *min, v16 *max)
{
    v16 west = four_rows(at, stride), east = four_rows(at + 1, stride);
    __m128 west4 = _mm_loadu_ps(at + 4 * stride), east4 = _mm_loadu_ps(at + 4 * stride + 1);
    v16 low = _mm512_min_ps(west, east), high = _mm512_max_ps(west, east);
    v16 nan = _mm512_add_ps(west, east); /* no overflow makes one: samples up to 1e15 */
    __m128 low4 = _mm_min_ps(west4, east4), high4 = _mm_max_ps(west4, east4);

    nan = _mm512_add_ps(nan, rows_up(nan, _mm_add_ps(west4, east4)));
    low = _mm512_min_ps(low, rows_up(low, low4));
    high = _mm512_max_ps(high, rows_up(high, high4));
    __mmask16 missing = _mm512_cmp_ps_mask(nan, nan, _CMP_UNORD_Q);
    __m512i lanes = _mm512_cvtepu8_epi32(order->bytes);

    *min = _mm512_permutexvar_ps(lanes, _mm512_mask_blend_ps(missing, low, nan));
    *max = _mm512_permutexvar_ps(lanes, _mm512_mask_blend_ps(missing, high, nan));
}

#include "terrain/ray_descent.h"
#include "terrain/ray_eight.h"

/* Of rays that fall along u, 1, and v, 2. */
static const struct lane_order lane_orders[4] = {
    {{0x0706050403020100, 0x0f0e0d0c0b0a0908}},
    {{0x0405060700010203, 0x0c0d0e0f08090a0b}},
    {{0x0b0a09080f0e0d0c, 0x0302010007060504}},
    {{0x08090a0b0c0d0e0f, 0x0001020304050607}},
};

static inline v16 v16_broadcast(__m128 a)
{
    return _mm512_broadcastss_ps(a);
}

static inline v16 v16_loadu(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline v16 v16_turned(v16 a, const struct lane_order *order)
{
    return _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(order->bytes), a);
}

static inline uint32_t v16_boxes_met(v16 t_in, v16 t_out, v16 z_in, v16 in, v16 out, v16 z_out,
                                     uint32_t falling)
{
    uint32_t lanes = v16_le(t_in, t_out);

    __asm__("" : "+r"(lanes)); /* else gcc makes a chain of the three comparisons */
    return lanes & (v16_le(z_in, in) ^ falling) & (v16_le(out, z_out) ^ falling);
}

/* 4×4 cells, a lane each, row by row: their samples from `at` on. */
struct square {
    const float *at;
    v16 h00, h10, h01, h11;
};

/* False where a sample is missing: then there are no bounds. */
static inline bool square_load(struct square *s, const float *at, const struct lane_order *order,
                               v16 *min, v16 *max)
{
    const float *last = at + (size_t)WIDE_LEAF_CELLS * TILE_SAMPLES;
    v16 h00 = four_rows(at, TILE_SAMPLES), h10 = four_rows(at + 1, TILE_SAMPLES);
    v16 h01 = rows_up(h00, _mm_loadu_ps(last)), h11 = rows_up(h10, _mm_loadu_ps(last + 1));
    v16 nan = v16_add(v16_add(h00, h10), v16_add(h01, h11)); /* no overflow makes one */

    (void)order;
    *s = (struct square){at, h00, h10, h01, h11};
    *min = v16_min(v16_min(h00, h10), v16_min(h01, h11));
    *max = v16_max(v16_max(h00, h10), v16_max(h01, h11));
    return _mm512_cmp_ps_mask(nan, nan, _CMP_UNORD_Q) == 0;
}

/* One cell after the other, where float32 leaves more of them than a ray can pass. */
__attribute__((noinline, cold)) static bool square_cells_hit(struct walk *w, const float *at,
                                                             uint32_t column, uint32_t row,
                                                             uint32_t lanes, uint32_t flip)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        uint32_t id = (uint32_t)__builtin_ctz(lanes) ^ flip, c = id & 3, r = id >> 2;

        if (cell_alone_hit(w, column + c, row + r, at + (size_t)r * TILE_SAMPLES + c))
            return true;
    }
    return false;
}

/* Side by side in float64, their samples taken from the square's own vectors. */
static inline bool square_hit(struct walk *w, const struct square *s, uint32_t column, uint32_t row,
                              uint32_t lanes, const struct lane_order *order, uint32_t flip)
{
    uint32_t count = (uint32_t)__builtin_popcount(lanes);
    __m512i ids = _mm512_cvtepu8_epi32(order->bytes);
    struct eight_square square = {s->at,  s->h00,          s->h10,      s->h01,
                                  s->h11, (int32_t)column, (int32_t)row};

    if (__builtin_expect(count > EIGHT, 0))
        return square_cells_hit(w, s->at, column, row, lanes, flip);
    return eight_square_hit(w, &square, _mm512_maskz_compress_epi32((__mmask16)lanes, ids), count);
}

#include "terrain/ray_alone.h"
#include "terrain/ray_lanes.h"

bool ray_alone_avx512(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    return alone_hit(field, ray, hit);
}

void rays_avx512(const struct heightfield *field, const struct ray *rays, size_t count,
                 struct ray_hit *hits)
{
    struct lanes_field lf;

    if (count >= LANES_LEAST && lanes_field_init(&lf, field))
        lanes_many(&lf, rays, count, hits);
    else
        descent_many(field, rays, count, hits);
}

#else

#include "base/check.h"

bool ray_alone_avx512(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit)
{
    (void)field, (void)ray, (void)hit;
    CHECK(!"a machine without AVX-512");
    return false;
}

void rays_avx512(const struct heightfield *field, const struct ray *rays, size_t count,
                 struct ray_hit *hits)
{
    (void)field, (void)rays, (void)count, (void)hits;
    CHECK(!"a machine without AVX-512");
}

#endif
