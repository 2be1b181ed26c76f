/*
 * Directions of rays by powers of two, exactly, and without libm's general functions: half of what
 * a short ray costs. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_POWER_H
#define KOTA_TERRAIN_POWER_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* x 2^exponent, as ldexp. */
static inline double scaled(double x, int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;

    if (exponent < -1022 || exponent > 1023)
        return ldexp(x, exponent);
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

static inline double largest_of(struct vec3 d)
{
    double x = fabs(d.x), y = fabs(d.y), z = fabs(d.z), xy = x > y ? x : y;

    return xy > z ? xy : z;
}

/* The power of two of the largest component, as frexp: of d, finite and not zero. */
static inline int exponent_of(struct vec3 d)
{
    double largest = largest_of(d);
    uint64_t bits;
    int exponent;

    memcpy(&bits, &largest, sizeof bits);
    exponent = (int)(bits >> 52) - 1022;
    if (exponent == -1022) /* it is subnormal */
        frexp(largest, &exponent);
    return exponent;
}

static inline struct vec3 vec3_scaled(struct vec3 v, int exponent)
{
    return (struct vec3){scaled(v.x, exponent), scaled(v.y, exponent), scaled(v.z, exponent)};
}

/* across > sine * vec3_length(n), for a sine far above the smallest numbers. */
static inline bool is_across(double across, double sine, struct vec3 n)
{
    /* no vector is longer than 1.7321 times its largest component, rounded */
    return fabs(across) > 1.75 * sine * largest_of(n) || fabs(across) > sine * vec3_length(n);
}

#endif
