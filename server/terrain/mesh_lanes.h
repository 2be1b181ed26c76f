/*
 * Which of a column's floors are over a place, and how high they are. For mesh_floor.c,
 * mesh_height.c and what those two look up only.
 *
 * Two blocks are tested together, whether there is a second or not: with AVX2 their sixteen
 * polygons are one vector, else they are four of SSE2 or of NEON, else a loop. The arithmetic is of
 * integers and only sorts out; what it cannot decide by more than its own roundings the lines
 * decide. So the answers cannot differ.
 */
#ifndef KOTA_TERRAIN_MESH_LANES_H
#define KOTA_TERRAIN_MESH_LANES_H

#include "terrain/mesh_data.h"
#include "terrain/mesh_place.h"

#ifdef __SSE2__
#include <immintrin.h>
#define HAS_VECTORS
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* The compiler takes a value as it comes, and makes nothing else of how it was got. */
#define KEEP_APART(value) __asm__("" : "+r"(value))

/* Nothing found yet. */
#define NO_POLYGON UINT32_MAX

/* The point in the mesh's frame. */
ALWAYS_INLINE struct vec3 column_place(const struct mesh *mesh, struct vec3 point)
{
    return mesh->is_turned ? mesh_to_frame(mesh->header, point)
                           : vec3_sub(point, mesh->header->centre);
}

struct column {
    const struct mesh *mesh;
    double x, y;
    double limit; /* times sign: the best is the greatest not above it */
    double sign;
    double best;
    uint32_t polygon;
};

/* Is the point inside of all edge lines, or outside by no more than the slack? */
ALWAYS_INLINE bool is_inside(const struct column *c, const struct mesh_polygon *p)
{
    const struct mesh_line *line = c->mesh->lines + p->first;
    double least = -c->mesh->header->slack;
    bool inside = true;

    for (uint32_t i = 0; i < p->count; i++)
        inside &= line_value(&line[i], c->x, c->y) >= least;
    return inside;
}

/* The height of the polygon's plane, between its lowest and its highest corner. */
ALWAYS_INLINE double floor_z(const struct mesh_polygon *p, double x, double y)
{
#ifdef __SSE2__
    /* by pairs, and in the same order: the same bits */
    __m128d from = _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd((const void *)&p->x_min)));
    __m128d range = _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd((const void *)&p->z_min)));
    __m128d rise = _mm_mul_pd(_mm_loadu_pd(&p->slope_x), _mm_sub_pd(_mm_set_pd(y, x), from));
    __m128d z = _mm_add_sd(_mm_add_sd(_mm_load_sd(&p->height), rise), _mm_unpackhi_pd(rise, rise));

    return _mm_cvtsd_f64(_mm_min_sd(_mm_unpackhi_pd(range, range), _mm_max_sd(range, z)));
#else
    double low = (double)p->z_min, high = (double)p->z_max;
    double z =
        p->height + p->slope_x * (x - (double)p->x_min) + p->slope_y * (y - (double)p->y_min);

    z = z < low ? low : z;
    return z > high ? high : z;
#endif
}

/* Without a branch: which of the floors over one another is the best, nobody can foretell. */
ALWAYS_INLINE void floor_take(struct column *c, uint32_t polygon)
{
    double z = floor_z(&c->mesh->polygons[polygon], c->x, c->y) * c->sign;
    /* where two meet, the first: as in any other order of asking */
    bool is_best = (z <= c->limit) & ((z > c->best) | ((z == c->best) & (polygon < c->polygon)));

    c->best = is_best ? z : c->best;
    c->polygon = is_best ? polygon : c->polygon;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Which lanes of a block are above the place, bit i for lane i; and where the lines must tell. */
struct lanes {
    unsigned maybe, doubt;
};

/* Part k of a block, eight lanes, or of a pair, sixteen. */
ALWAYS_INLINE const unsigned char *block_part(const struct column_block *b, size_t lanes,
                                              unsigned k)
{
    return b->bytes + 2 * lanes * k;
}

/* The bytes from the first eight lanes to the second in a part, or to the first again. */
ALWAYS_INLINE size_t second_of(size_t lanes)
{
    return lanes & 2 * COLUMN_LANES;
}

#ifdef __SSE2__
/* Four lanes. */
ALWAYS_INLINE __m128i edge_values(const struct column_block *b, size_t lanes, unsigned edge,
                                  size_t from, __m128i place)
{
    __m128i ab = _mm_loadl_epi64((const void *)(block_part(b, lanes, edge) + from));
    __m128i c = _mm_loadl_epi64((const void *)(block_part(b, lanes, COLUMN_EDGES + edge) + from));

    ab = _mm_srai_epi16(_mm_unpacklo_epi8(ab, ab), 8);
    c = _mm_srai_epi32(_mm_unpacklo_epi16(c, c), 16);
    return _mm_add_epi32(_mm_madd_epi16(ab, place), _mm_slli_epi32(c, COLUMN_SHIFT));
}

ALWAYS_INLINE unsigned sign_bits(__m128i v)
{
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(v));
}

/* Eight lanes, from these bytes of each part on. */
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, size_t lanes, size_t from,
                                    uint32_t x, uint32_t y)
{
    const __m128i sure = _mm_set1_epi32(2 * COLUMN_DOUBT);
    __m128i place =
        _mm_set1_epi32((int32_t)((x & (COLUMN_UNIT - 1)) | (y & (COLUMN_UNIT - 1)) << 16));
    unsigned out = 0, doubt = 0;

    for (unsigned half = 0; half < 2; half++) {
        __m128i e0 = edge_values(b, lanes, 0, from + 8 * half, place),
                e1 = edge_values(b, lanes, 1, from + 8 * half, place),
                e2 = edge_values(b, lanes, 2, from + 8 * half, place);
        __m128i any = _mm_or_si128(_mm_or_si128(e0, e1), e2);

        e0 = _mm_sub_epi32(e0, sure);
        e1 = _mm_sub_epi32(e1, sure);
        e2 = _mm_sub_epi32(e2, sure);
        out |= sign_bits(any) << 4 * half;
        doubt |= sign_bits(_mm_or_si128(_mm_or_si128(e0, e1), e2)) << 4 * half;
    }
    return (struct lanes){~out & 0xff, doubt};
}
#elif defined(__aarch64__)
/* Four lanes: a x + b y + c. */
ALWAYS_INLINE int32x4_t edge_values(int16x4_t a, int16x4_t b, int16x4_t c, int16_t x, int16_t y)
{
    return vmlal_n_s16(vmlal_n_s16(vshll_n_s16(c, COLUMN_SHIFT), a, x), b, y);
}

/* Bit i for lane i that is set. */
ALWAYS_INLINE unsigned lane_bits(uint32x4_t low, uint32x4_t high)
{
    static const uint16_t bits[COLUMN_LANES] = {1, 2, 4, 8, 16, 32, 64, 128};

    return vaddvq_u16(vandq_u16(vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high)),
                                vld1q_u16(bits)));
}

/* Eight lanes, from these bytes of each part on. */
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, size_t lanes, size_t from,
                                    uint32_t x, uint32_t y)
{
    const int16_t at_x = (int16_t)(x & (COLUMN_UNIT - 1)), at_y = (int16_t)(y & (COLUMN_UNIT - 1));
    const int32x4_t sure = vdupq_n_s32(2 * COLUMN_DOUBT);
    int32x4_t low = vdupq_n_s32(INT32_MAX), high = low;

    for (unsigned k = 0; k < COLUMN_EDGES; k++) {
        int8x8x2_t ab = vld2_s8((const void *)(block_part(b, lanes, k) + from));
        int16x8_t c = vld1q_s16((const void *)(block_part(b, lanes, COLUMN_EDGES + k) + from));
        int16x8_t a_of = vmovl_s8(ab.val[0]), b_of = vmovl_s8(ab.val[1]);

        low = vminq_s32(
            low, edge_values(vget_low_s16(a_of), vget_low_s16(b_of), vget_low_s16(c), at_x, at_y));
        high = vminq_s32(high, edge_values(vget_high_s16(a_of), vget_high_s16(b_of),
                                           vget_high_s16(c), at_x, at_y));
    }
    return (struct lanes){lane_bits(vcgezq_s32(low), vcgezq_s32(high)),
                          lane_bits(vcltq_s32(low, sure), vcltq_s32(high, sure))};
}
#else
ALWAYS_INLINE struct lanes lanes_at(const struct column_block *b, size_t lanes, size_t from,
                                    uint32_t x, uint32_t y)
{
    struct lanes out = {0, 0};

    x &= COLUMN_UNIT - 1;
    y &= COLUMN_UNIT - 1;
    for (unsigned i = 0; i < COLUMN_LANES; i++) {
        int32_t least = INT32_MAX;

        for (unsigned k = 0; k < COLUMN_EDGES; k++) {
            const int8_t *ab = (const void *)(block_part(b, lanes, k) + from);
            const int16_t *c = (const void *)(block_part(b, lanes, COLUMN_EDGES + k) + from);
            int32_t e =
                ab[2 * i] * (int32_t)x + ab[2 * i + 1] * (int32_t)y + c[i] * (1 << COLUMN_SHIFT);

            least = e < least ? e : least;
        }
        out.maybe |= (unsigned)(least >= 0) << i;
        out.doubt |= (unsigned)(least < 2 * COLUMN_DOUBT) << i;
    }
    return out;
}
#endif

/* The polygons of a block or of a pair, with their levels. */
ALWAYS_INLINE const uint32_t *block_polygons(const struct column_block *b, size_t lanes)
{
    return (const void *)block_part(b, lanes, 2 * COLUMN_EDGES);
}

/* The lanes whose lowest point is not above a level. */
ALWAYS_INLINE unsigned levels(const uint32_t *polygons, uint32_t level)
{
    unsigned out = 0;

    for (unsigned i = 0; i < COLUMN_LANES; i++)
        out |= (unsigned)(polygons[i] >> COLUMN_LOW_SHIFT <= level) << i;
    return out;
}

#ifdef HAS_VECTORS
#define FOR_AVX2 __attribute__((target("avx2,bmi,bmi2,fma")))
#define FOR_AVX512 __attribute__((target("avx2,bmi,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")))

/*
 * Sixteen lanes in 16 bits each, e >> COLUMN_SHIFT: the place's last bit is left out, the other 14
 * go as bytes of seven bits, whose products with a and b need no more than 16 bits. That is less
 * than e / 2^COLUMN_SHIFT by less than 2, or more by less than 1. Lanes that are not there are of
 * what follows.
 */
enum { SUM_MAYBE = -1, SUM_SURE = 2 * COLUMN_DOUBT / (1 << COLUMN_SHIFT) + 2 };

/* Known to mesh_directory.c alone: what gcc 12 knows it makes anew, by three instructions, instead
 * of reading it. */
extern const struct column_vectors {
    uint64_t place[2], upper[2]; /* 14 bits, and the upper seven of them */
    int8_t maybe[16], sure[16];  /* sums */
    double zero[2];              /* of places (column_fixed) */
} column_vectors;

ALWAYS_INLINE __m128i load_16(const void *at)
{
    return _mm_loadu_si128(at);
}

FOR_AVX2 static inline __m256i edge_sums(const unsigned char *ab_at, const unsigned char *c_at,
                                         __m256i high, __m256i low)
{
    __m256i ab = _mm256_loadu_si256((const void *)ab_at);
    __m256i c = _mm256_loadu_si256((const void *)c_at);
    __m256i sum = _mm256_add_epi16(_mm256_maddubs_epi16(high, ab),
                                   _mm256_srai_epi16(_mm256_maddubs_epi16(low, ab), 7));

    return _mm256_adds_epi16(sum, c);
}

/* The least of each polygon's edges. place: x and y, each as two bytes of seven bits. */
FOR_AVX512 static inline __m256i least_sums(const struct column_block *b, size_t lanes,
                                            uint32_t place)
{
    const __m256i high_of = _mm256_set1_epi16(0x0301), low_of = _mm256_set1_epi16(0x0200);
    __m256i both = _mm256_set1_epi32((int32_t)place);
    __m256i high = _mm256_shuffle_epi8(both, high_of), low = _mm256_shuffle_epi8(both, low_of);

    /* as addresses are made of a register, and of another one times 2, 4 or 8 */
    size_t three = 3 * lanes, five = 5 * lanes;

    KEEP_APART(three);
    KEEP_APART(five);
    __m256i first = edge_sums(b->bytes, b->bytes + 2 * three, high, low);
    __m256i second = edge_sums(b->bytes + 2 * lanes, b->bytes + 8 * lanes, high, low);
    __m256i third = edge_sums(b->bytes + 4 * lanes, b->bytes + 2 * five, high, low);

    return _mm256_min_epi16(_mm256_min_epi16(first, second), third);
}

/* x and y: the lowest 14 bits of the halves of place. */
FOR_AVX2 static inline struct lanes pair_at_avx2(const struct column_block *b, size_t lanes,
                                                 __m128i place)
{
    const struct column_vectors *v = &column_vectors;
    __m128i upper = _mm_and_si128(place, load_16(v->upper));
    /* the upper seven bits go up by one: a byte each */
    __m128i bytes = _mm_add_epi64(_mm_and_si128(place, load_16(v->place)), upper);
    __m256i both = _mm256_broadcastsi128_si256(bytes);
    __m256i high = _mm256_shuffle_epi8(both, _mm256_set1_epi16(0x0901));
    __m256i low = _mm256_shuffle_epi8(both, _mm256_set1_epi16(0x0800));
    const unsigned char *b1 = b->bytes + 2 * lanes, *b2 = b->bytes + 4 * lanes;

    KEEP_APART(b1); /* as addresses are made of a register, and of another one times 2, 4 or 8 */
    KEEP_APART(b2);
    __m256i least = edge_sums(b->bytes, b2 + 2 * lanes, high, low);

    least = _mm256_min_epi16(least, edge_sums(b1, b->bytes + 8 * lanes, high, low));
    least = _mm256_min_epi16(least, edge_sums(b2, b1 + 8 * lanes, high, low));
    __m128i sums =
        _mm_packs_epi16(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));

    unsigned outside = (unsigned)_mm_movemask_epi8(_mm_subs_epi8(sums, load_16(v->maybe)));
    unsigned doubt = (unsigned)_mm_movemask_epi8(_mm_subs_epi8(sums, load_16(v->sure)));

    return (struct lanes){_bzhi_u32(~outside, (unsigned)lanes), doubt};
}

FOR_AVX2 static inline unsigned levels_avx2(const uint32_t *polygons, uint32_t level)
{
    __m256i ids = _mm256_loadu_si256((const void *)polygons);
    __m256i out = _mm256_cmpgt_epi32(_mm256_srli_epi32(ids, COLUMN_LOW_SHIFT),
                                     _mm256_set1_epi32((int32_t)level));

    return ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(out)) & 0xff;
}

FOR_AVX512 static inline struct lanes pair_at_avx512(const struct column_block *b, size_t lanes,
                                                     uint32_t x, uint32_t y)
{
    /* on older processors, without AVX-512, that takes long */
    __m256i least = least_sums(b, lanes, _pdep_u32(x, 0x7f7f) | _pdep_u32(y, 0x7f7f0000));

    return (struct lanes){
        _bzhi_u32(_mm256_cmpge_epi16_mask(least, _mm256_set1_epi16(SUM_MAYBE)), (unsigned)lanes),
        _mm256_cmplt_epi16_mask(least, _mm256_set1_epi16(SUM_SURE)),
    };
}

FOR_AVX512 static inline unsigned levels_avx512(const uint32_t *polygons, uint32_t level)
{
    /* what is below the level in the word counts less */
    uint32_t most = level << COLUMN_LOW_SHIFT | ((1u << COLUMN_LOW_SHIFT) - 1);

    return _mm256_cmple_epu32_mask(_mm256_loadu_si256((const void *)polygons),
                                   _mm256_set1_epi32((int32_t)most));
}
#endif

/*
 * A block or a pair. Without a branch: both halves are asked even where there is one. Of x and y
 * the lowest bits count: COLUMN_UNIT_BITS of units where there are no vectors, else one bit less of
 * two units.
 */
ALWAYS_INLINE struct lanes pair_at(const struct column_block *b, size_t lanes, uint32_t x,
                                   uint32_t y, enum simd_level simd)
{
#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return pair_at_avx512(b, lanes, x, y);
    if (simd == SIMD_AVX2)
        return pair_at_avx2(b, lanes, _mm_set_epi64x(y, x));
#endif
    (void)simd;
    struct lanes low = lanes_at(b, lanes, 0, x, y);
    /* or the first again: no other line is touched */
    struct lanes high = lanes_at(b, lanes, second_of(lanes), x, y);

    return (struct lanes){
        (low.maybe | high.maybe << COLUMN_LANES) & ((1u << lanes) - 1),
        low.doubt | high.doubt << COLUMN_LANES,
    };
}

/*
 * The lanes of a block or of a pair whose lowest point is not above a level; of lanes that are not
 * there anything.
 */
ALWAYS_INLINE unsigned pair_levels(const struct column_block *b, size_t lanes, uint32_t level,
                                   enum simd_level simd)
{
    const uint32_t *polygons = block_polygons(b, lanes);
    const uint32_t *second = polygons + second_of(lanes) / 2;

#ifdef HAS_VECTORS
    if (simd == SIMD_AVX512)
        return levels_avx512(polygons, level) | levels_avx512(second, level) << COLUMN_LANES;
    if (simd == SIMD_AVX2)
        return levels_avx2(polygons, level) | levels_avx2(second, level) << COLUMN_LANES;
#endif
    (void)simd;
    return levels(polygons, level) | levels(second, level) << COLUMN_LANES;
}

/*
 * Is the highest point of a polygon below a level? Then so are those behind it in the list, which
 * runs from the highest down.
 */
ALWAYS_INLINE bool is_below(uint32_t polygon, uint32_t level)
{
    return (polygon >> COLUMN_HIGH_SHIFT & (COLUMN_LEVELS - 1)) < level;
}

/* The polygons of a block or of a pair that are there. */
ALWAYS_INLINE void pair_take(struct column *c, const struct column_block *b, size_t count,
                             struct lanes lanes)
{
    const struct mesh_columns *columns = &c->mesh->columns;
    const uint32_t *polygons = block_polygons(b, count);

    while (lanes.maybe != 0) {
        unsigned i = (unsigned)__builtin_ctz(lanes.maybe);
        uint32_t polygon = polygons[i] & COLUMN_POLYGON;

        lanes.maybe &= lanes.maybe - 1;
        if (lanes.doubt >> i & 1 && !is_inside(c, &c->mesh->polygons[polygon]))
            continue;
        floor_take(c, polygon);
        if (c->sign > 0 && columns->is_stacked && lanes.maybe != 0 && /* elsewhere there is no
                                                                         other, mostly */
            is_below(polygons[__builtin_ctz(lanes.maybe)], column_level(columns, c->best)))
            break;
    }
}

/* All of a leaf. */
ALWAYS_INLINE void place_scan(struct column *c, const struct place *place, enum simd_level simd)
{
    const struct mesh_columns *columns = &c->mesh->columns;
    const struct column_block *b = columns->blocks + place->cell->first;
    unsigned shift = simd == SIMD_SCALAR ? UNIT_SHIFT : UNIT_SHIFT + 1;
    uint32_t x = (uint32_t)(place->x >> shift), y = (uint32_t)(place->y >> shift);

    for (int64_t left = place->cell->count; left > 0; left -= 2 * COLUMN_LANES, b += 2) {
        size_t count = left > COLUMN_LANES ? 2 * COLUMN_LANES : COLUMN_LANES;
        struct lanes lanes = pair_at(b, count, x, y, simd);

        if (c->sign > 0 && columns->is_stacked)
            lanes.maybe &= pair_levels(b, count, column_level(columns, c->limit), simd);
        pair_take(c, b, count, lanes);
    }
}

#endif
