/*
 * Reproducible random numbers for tests and benchmarks (splitmix64: Steele, Lea, Flood 2014). Print
 * the seed where a failure is reported.
 */
#ifndef KOTA_TESTS_RANDOM_H
#define KOTA_TESTS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_bits(struct random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in low..high. */
static inline double random_in(struct random *r, double low, double high)
{
    return low + (high - low) * ((double)(random_bits(r) >> 11) * 0x1p-53);
}

/* Uniform in 0..count-1. */
static inline uint32_t random_below(struct random *r, uint32_t count)
{
    return (uint32_t)((random_bits(r) >> 32) * count >> 32);
}

#endif
