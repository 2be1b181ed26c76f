/*
 * Noise: functions of the plane and a seed. Pure integer hashes and +, -, · on doubles, no table
 * that is shuffled and no libm beyond floor: the same value on every machine.
 */
#ifndef KOTA_DEMO_NOISE_H
#define KOTA_DEMO_NOISE_H

#include <stdint.h>

/* A hash of a lattice point, all 32 bits well mixed. */
uint32_t noise_hash(uint32_t x, uint32_t y, uint32_t seed);

/* The same as a number in 0 <= u < 1. */
double noise_uniform(uint32_t x, uint32_t y, uint32_t seed);

/*
 * Gradient noise: smooth (two continuous derivatives), zero at the lattice points (integers),
 * features about one unit wide, within -1..1. |x| and |y| below 2^30.
 * Source: K. Perlin, "Improving noise", 2002; hashed gradients as in "An image synthesizer", 1985.
 */
double noise_gradient(double x, double y, uint32_t seed);

/* How octaves are summed. */
struct noise_sum {
    double wavelength; /* of the first octave, in the units of x and y; > 0 */
    uint32_t octaves;  /* 1..24 */
    double gain;       /* amplitude of an octave over that of the one before */
};

/* Fractional Brownian motion: octaves of half the wavelength each; within about -1..1. */
double noise_fbm(const struct noise_sum *sum, double x, double y, uint32_t seed);

/*
 * Ridged multifractal: creases where the noise passes zero, rough on ridges and smooth in the
 * valleys, since each octave is weighted by the one before. 0 (valley) .. 1 (crest).
 * Source: F. K. Musgrave in "Texturing and Modeling: A Procedural Approach", 1994 ("Procedural
 * fractal terrains", RidgedMultifractal, offset 1, gain 2).
 */
double noise_ridged(const struct noise_sum *sum, double x, double y, uint32_t seed);

/*
 * Moves a point by fBm: what is then computed at the new point looks folded and no longer shows its
 * lattice. strength in the units of x and y. Source: I. Quilez, "Domain warping", 2002.
 */
void noise_warp(const struct noise_sum *sum, double strength, uint32_t seed, double *x, double *y);

/* Smooth step from 0 at `from` to 1 at `to` (from != to), flat beyond. */
static inline double smooth_step(double from, double to, double value)
{
    double t = (value - from) / (to - from);

    if (!(t > 0))
        return 0;
    if (t >= 1)
        return 1;
    return t * t * (3 - 2 * t);
}

static inline double mix(double a, double b, double t)
{
    return a + (b - a) * t;
}

#endif
