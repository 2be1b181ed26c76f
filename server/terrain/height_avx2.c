/*
 * Heights alone with AVX2. Problem, approach and invariants: height_levels.h; a batch as in
 * height.c: all places are found and asked for before the first is used.
 *
 * No gathers: where there is AVX2 and no AVX-512 they are slower than the loads they stand for.
 */
#include "terrain/height_levels.h"

#ifdef __AVX2__

#include <immintrin.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { BATCH = 32 };

/* A point in its cell. */
struct place {
    __m128d f; /* 0 up to 1, in x and y; NaN with any cell: not for us */
    const float *at;
};

/* False: not for us. */
ALWAYS_INLINE bool place_find(const struct heightfield *field, __m128d point, struct place *place)
{
    /* of column and row what is over the low bytes, and these */
    const __m128i bytes = _mm_setr_epi8(1, 2, 9, 10, 0, -1, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128d d = _mm_sub_pd(point, _mm_loadu_pd(&field->spec.origin_x_m));
    __m128d q = _mm_div_pd(d, _mm_loadu_pd(&field->spec.spacing_x_m));
    /* numbers above 0 are in the order of their bits; what is below has the sign, NaN is beyond */
    __m128i inner = _mm_loadu_si128((const __m128i *)(const void *)field->inner_m);
    __m128d is_less = _mm_castsi128_pd(_mm_cmpgt_epi64(inner, _mm_castpd_si128(d)));

    if (_mm_movemask_pd(_mm_andnot_pd(d, is_less)) != 3)
        return false;
    /* whole numbers in the lowest bits: converting takes twice as many steps */
    __m128d whole = _mm_floor_pd(q), shifted = _mm_add_pd(whole, _mm_set1_pd(0x1p52));
    uint64_t index = (uint64_t)_mm_cvtsi128_si64(
        _mm_madd_epi16(_mm_shuffle_epi8(_mm_castpd_si128(shifted), bytes),
                       _mm_loadu_si128((const __m128i *)(const void *)field->strides)));

    place->f = _mm_sub_pd(q, whole);
    place->at = field->tiles[(uint32_t)index]->samples + (index >> 32);
    return true;
}

/*
 * How a triangle reads its cell, the lower and the upper one: which of h00, h10, h01, h11 are along
 * x, along y and, twice, the corner they start from; and f from there as (f ^ sign) + start.
 */
static const struct {
    _Alignas(64) int32_t order[4];
    double sign[2], start[2];
} readings[2] = {{{1, 2, 0, 0}, {0.0, 0.0}, {0, 0}}, {{2, 1, 3, 3}, {-0.0, -0.0}, {1, 1}}};

/* The triangle's height; the samples are read before it is known which of them count. */
ALWAYS_INLINE double place_height(const struct place *place)
{
    __m128 samples = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)place->at));
    __m128d f = place->f;
    /* below 0 beyond the hypotenuse, +0 on it; the sign chooses */
    __m128d side = _mm_sub_sd(_mm_set1_pd(1), _mm_add_sd(f, _mm_unpackhi_pd(f, f)));
    size_t k = (unsigned)_mm_movemask_pd(side); /* 0 or 1: the upper half is 1 */

    samples = _mm_loadh_pi(samples, (const __m64 *)(const void *)(place->at + TILE_SAMPLES));
    __m128 chosen = _mm_permutevar_ps(
        samples, _mm_loadu_si128((const __m128i *)(const void *)readings[k].order));
    /* by halves: with 32 bytes the upper ones would have to be cleared at the end */
    __m128d ends = _mm_cvtps_pd(chosen), base = _mm_cvtps_pd(_mm_movehl_ps(chosen, chosen));

    f = _mm_add_pd(_mm_xor_pd(f, _mm_loadu_pd(readings[k].sign)), _mm_loadu_pd(readings[k].start));
    __m128d part = _mm_mul_pd(f, _mm_sub_pd(ends, base));

    return _mm_cvtsd_f64(_mm_add_sd(_mm_add_sd(base, part), _mm_unpackhi_pd(part, part)));
}

struct ground_height heightfield_height_avx2(const struct heightfield *field, double x, double y)
{
    struct place place;

    if (!place_find(field, _mm_set_pd(y, x), &place))
        return heightfield_height_general(field, x, y);
    double height_m = place_height(&place);

    if (height_m != height_m)
        return heightfield_height_general(field, x, y);
    return (struct ground_height){.height_m = height_m, .status = GROUND_OK};
}

ALWAYS_INLINE void batch_ask(const struct heightfield *field, const struct vec2 *points,
                             size_t count, struct ground_height *out, double *heights_m,
                             bool is_plain)
{
    struct place places[BATCH];

    for (size_t i = 0; i < count; i++) {
        if (!place_find(field, _mm_loadu_pd(&points[i].x), &places[i])) {
            places[i] = (struct place){_mm_set1_pd(NAN), field->tiles[0]->samples};
            continue;
        }
        __builtin_prefetch(places[i].at);
        __builtin_prefetch(places[i].at + TILE_SAMPLES);
    }
    for (size_t i = 0; i < count; i++) {
        struct ground_height ground = {.height_m = place_height(&places[i]), .status = GROUND_OK};

        if (ground.height_m != ground.height_m)
            ground = heightfield_height_general(field, points[i].x, points[i].y);
        if (is_plain)
            heights_m[i] = ground.height_m;
        else
            out[i] = ground;
    }
}

void heightfield_heights_avx2(const struct heightfield *field, const struct vec2 *points,
                              size_t count, struct ground_height *out, double *heights_m)
{
    for (size_t i = 0; i < count; i += BATCH) {
        size_t some = count - i < BATCH ? count - i : BATCH;

        if (heights_m != NULL)
            batch_ask(field, points + i, some, NULL, heights_m + i, true);
        else
            batch_ask(field, points + i, some, out + i, NULL, false);
    }
}

#endif
