/*
 * Perlin's gradient noise and the fractal sums over it.
 *
 * The classic permutation table repeats after 256 and depends on how it was shuffled; a hash of the
 * integer coordinates has neither fault. Gradients are the 16 directions at odd multiples of
 * 11.25 degrees, so none lies along an axis or a diagonal; each octave is turned by the exact
 * 3-4-5 rotation (cos 4/5, sin 3/5) and moved, so the lattices of the octaves do not line up.
 * Both are what keeps the grid of Perlin noise out of the terrain.
 *
 * Value noise was tried and dropped: its blobs show as square hills. Simplex noise gives nothing
 * here that the rotation does not.
 */
#include "deploy/demo/noise.h"

#include <math.h>

static const double noise_directions[16][2] = {
    {0.98078528040323043, 0.19509032201612825},   {0.83146961230254524, 0.55557023301960218},
    {0.55557023301960218, 0.83146961230254524},   {0.19509032201612825, 0.98078528040323043},
    {-0.19509032201612825, 0.98078528040323043},  {-0.55557023301960218, 0.83146961230254524},
    {-0.83146961230254524, 0.55557023301960218},  {-0.98078528040323043, 0.19509032201612825},
    {-0.98078528040323043, -0.19509032201612825}, {-0.83146961230254524, -0.55557023301960218},
    {-0.55557023301960218, -0.83146961230254524}, {-0.19509032201612825, -0.98078528040323043},
    {0.19509032201612825, -0.98078528040323043},  {0.55557023301960218, -0.83146961230254524},
    {0.83146961230254524, -0.55557023301960218},  {0.98078528040323043, -0.19509032201612825},
};

uint32_t noise_hash(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = seed * 0x9E3779B1u ^ x * 0x85EBCA77u;

    h = (h ^ h >> 15) * 0x2C1B3C6Du;
    h ^= y * 0xC2B2AE3Du;
    h = (h ^ h >> 12) * 0x297A2D39u;
    h = (h ^ h >> 15) * 0x7FEB352Du;
    return h ^ h >> 16;
}

double noise_uniform(uint32_t x, uint32_t y, uint32_t seed)
{
    return noise_hash(x, y, seed) * (1.0 / 4294967296.0);
}

static double corner(int32_t ix, int32_t iy, double dx, double dy, uint32_t seed)
{
    const double *g = noise_directions[noise_hash((uint32_t)ix, (uint32_t)iy, seed) >> 28];

    return g[0] * dx + g[1] * dy;
}

static double fade(double t)
{
    return t * t * t * (t * (t * 6 - 15) + 10);
}

double noise_gradient(double x, double y, uint32_t seed)
{
    double fx = floor(x), fy = floor(y);
    int32_t ix = (int32_t)fx, iy = (int32_t)fy;
    double u, v, low, high;

    x -= fx;
    y -= fy;
    u = fade(x);
    v = fade(y);
    low = mix(corner(ix, iy, x, y, seed), corner(ix + 1, iy, x - 1, y, seed), u);
    high = mix(corner(ix, iy + 1, x, y - 1, seed), corner(ix + 1, iy + 1, x - 1, y - 1, seed), u);
    return 1.4142135623730951 * mix(low, high, v); /* unit gradients reach sqrt(1/2) */
}

/* To the lattice of the next octave: half the size, turned, moved. */
static void next_octave(double *x, double *y)
{
    double u = 2 * (0.8 * *x - 0.6 * *y) + 17.3, v = 2 * (0.6 * *x + 0.8 * *y) - 5.9;

    *x = u;
    *y = v;
}

double noise_fbm(const struct noise_sum *sum, double x, double y, uint32_t seed)
{
    double total = 0, amplitude = 1, reach = 0;

    x /= sum->wavelength;
    y /= sum->wavelength;
    for (uint32_t i = 0; i < sum->octaves; i++) {
        total += amplitude * noise_gradient(x, y, seed + i);
        reach += amplitude;
        amplitude *= sum->gain;
        next_octave(&x, &y);
    }
    return total / reach;
}

double noise_ridged(const struct noise_sum *sum, double x, double y, uint32_t seed)
{
    double total = 0, amplitude = 1, reach = 0, weight = 1;

    x /= sum->wavelength;
    y /= sum->wavelength;
    for (uint32_t i = 0; i < sum->octaves; i++) {
        double crest = 1 - fabs(noise_gradient(x, y, seed + i));

        crest *= crest * weight;
        total += amplitude * crest;
        reach += amplitude;
        weight = crest * 2 < 1 ? crest * 2 : 1;
        amplitude *= sum->gain;
        next_octave(&x, &y);
    }
    return total / reach;
}

void noise_warp(const struct noise_sum *sum, double strength, uint32_t seed, double *x, double *y)
{
    double dx = noise_fbm(sum, *x, *y, seed + 101), dy = noise_fbm(sum, *x, *y, seed + 202);

    *x += strength * dx;
    *y += strength * dy;
}
