/*
 * Four float32 side by side, the same bits with vector instructions and without. Inside of the room
 * only.
 */
#ifndef KOTA_TERRAIN_FOUR_H
#define KOTA_TERRAIN_FOUR_H

#ifdef __SSE2__

#include <emmintrin.h>

typedef __m128 four;

static inline four four_of(float x, float y, float z, float w)
{
    return _mm_setr_ps(x, y, z, w);
}
static inline four four_add(four a, four b)
{
    return _mm_add_ps(a, b);
}
static inline four four_sub(four a, four b)
{
    return _mm_sub_ps(a, b);
}
static inline four four_mul(four a, four b)
{
    return _mm_mul_ps(a, b);
}
/* a < b ? a : b */
static inline four four_min(four a, four b)
{
    return _mm_min_ps(a, b);
}
static inline four four_max(four a, four b)
{
    return _mm_max_ps(a, b);
}
static inline void four_put(four a, float out[4])
{
    _mm_storeu_ps(out, a);
}

#else

struct four_numbers {
    float f[4];
};

#define four struct four_numbers /* a vector's name where there is one */

#define EACH_OF_FOUR(expression)                                                                   \
    four out;                                                                                      \
    for (int i = 0; i < 4; i++)                                                                    \
        out.f[i] = (expression);                                                                   \
    return out

static inline four four_of(float x, float y, float z, float w)
{
    return (four){{x, y, z, w}};
}
static inline four four_add(four a, four b)
{
    EACH_OF_FOUR(a.f[i] + b.f[i]);
}
static inline four four_sub(four a, four b)
{
    EACH_OF_FOUR(a.f[i] - b.f[i]);
}
static inline four four_mul(four a, four b)
{
    EACH_OF_FOUR(a.f[i] * b.f[i]);
}
static inline four four_min(four a, four b)
{
    EACH_OF_FOUR(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
static inline four four_max(four a, four b)
{
    EACH_OF_FOUR(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
static inline void four_put(four a, float out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = a.f[i];
}

#undef EACH_OF_FOUR

#endif

static inline four four_all(float one)
{
    return four_of(one, one, one, one);
}

#endif
