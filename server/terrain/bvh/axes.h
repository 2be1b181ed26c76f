/*
 * The three axes of a ray side by side, with AVX2: lanes 0 to 2; lane 3 holds nothing. Inside of
 * the room only.
 */
#ifndef KOTA_TERRAIN_AXES_H
#define KOTA_TERRAIN_AXES_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/kernels/lanes.h"

#include <stdint.h>

enum { AXES = 7 /* lanes 0 to 2 */ };

/* x and y from memory, z and lane 3 as given. */
static inline f64x4 axes_load(const double *xy, f64x2 z)
{
    return f64x4_halves(f64x2_load(xy), z);
}

/* The greatest of all lanes in all lanes. */
static inline f64x4 axes_greatest(f64x4 a)
{
    a = f64x4_max(a, f64x4_swap_halves(a));
    return f64x4_max(a, f64x4_swap(a));
}

static inline f64x4 axes_least(f64x4 a)
{
    a = f64x4_min(a, f64x4_swap_halves(a));
    return f64x4_min(a, f64x4_swap(a));
}

/* The bits of the exponent of each lane, which is not below 0. */
static inline i64x4 axes_exponents(f64x4 sizes)
{
    return (i64x4)sizes & i64x4_all(0x7ffLL << 52);
}

/* 2^-e, with e as exponent_of counts. */
static inline f64x4 axes_power(i64x4 exponent)
{
    return (f64x4)(i64x4_all(2045LL << 52) - exponent);
}

/* 1 over that. */
static inline f64x4 axes_power_back(i64x4 exponent)
{
    return (f64x4)(exponent + i64x4_all(1LL << 52));
}

static inline int axes_exponent_of(i64x4 exponent)
{
    return (int)(exponent[0] >> 52) - 1022;
}

/* Three numbers in a row that were stored one by one: a load of two of them
 * would have to wait for that. */
static inline f64x4 axes_of(const double three[3])
{
    return (f64x4){three[0], three[1], three[2], three[2]};
}

/*
 * The axis along which a direction is largest, the last of equals: axis_of_largest of woop.h. Of
 * NaN, which no lane is as large as: the first.
 */
static inline unsigned axes_largest(f64x4 d)
{
    f64x4 sizes = f64x4_put_last(f64x4_abs(d), f64x4_all(0));
    i64x4 is_largest = f64x4_eq(sizes, axes_greatest(sizes));

    return 31 - (unsigned)__builtin_clz((i64x4_signs(is_largest) & AXES) | 1);
}

/* The axes as a line whose direction is largest along kz has them: x, y, z and z again. */
static inline f64x4 axes_turned(f64x4 a, unsigned kz)
{
    static const int32_t order[3][8] = {
        {2, 3, 4, 5, 0, 1, 0, 1}, {4, 5, 0, 1, 2, 3, 2, 3}, {0, 1, 2, 3, 4, 5, 4, 5}};

    return f64x4_pick_halves(a, order[kz]);
}

#endif
#endif
