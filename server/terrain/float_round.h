/* float64 to float32, rounded to one side. */
#ifndef KOTA_TERRAIN_FLOAT_ROUND_H
#define KOTA_TERRAIN_FLOAT_ROUND_H

#include <math.h>

/* Outward to float32: not above, not below. */
static inline float float_down(double x)
{
    float f = (float)x;

    return (double)f > x ? nextafterf(f, -INFINITY) : f;
}

static inline float float_up(double x)
{
    float f = (float)x;

    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

#endif
