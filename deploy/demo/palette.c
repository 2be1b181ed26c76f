/*
 * Palettes: a few materials, laid over one another from the ground up (grass, forest, scree, rock,
 * snow), each with a mask from height, slope and noise. Noise moves every border, so that none
 * follows a contour line; slope decides what can lie where.
 */
#include "deploy/demo/palette.h"

#include "deploy/demo/noise.h"

#include <string.h>

bool palette_of_name(const char *name, enum palette *out)
{
    static const char *const names[] = {"auto", "alpine", "islands", "desert"};

    for (int i = 0; i < 4; i++) {
        if (!strcmp(name, names[i])) {
            *out = (enum palette)i;
            return true;
        }
    }
    return false;
}

/* Patches of some metres, -1..1; and coarser ones. */
static double patches(struct vec3 at, double wavelength_m, uint32_t seed)
{
    struct noise_sum sum = {.wavelength = wavelength_m, .octaves = 4, .gain = 0.55};

    return noise_fbm(&sum, at.x, at.y, seed);
}

static double slope_of(struct vec3 normal)
{
    return sqrt(normal.x * normal.x + normal.y * normal.y) / (normal.z > 0.05 ? normal.z : 0.05);
}

static struct colour alpine(struct vec3 at, struct vec3 normal, double h)
{
    const struct colour meadow = {0.165, 0.190, 0.070}, moor = {0.215, 0.195, 0.095};
    const struct colour spruce = {0.030, 0.054, 0.024}, larch = {0.075, 0.090, 0.032};
    const struct colour rock = {0.215, 0.195, 0.175};
    const struct colour dark_rock = {0.115, 0.108, 0.104}, scree = {0.330, 0.310, 0.285};
    const struct colour snow = {0.86, 0.89, 0.94};
    double slope = slope_of(normal), coarse = patches(at, 260, 901), fine = patches(at, 30, 902);
    double bands = patches((struct vec3){at.z + 0.10 * at.x, 0.05 * at.y, 0}, 26, 903);
    struct colour ground = colour_mix(meadow, moor, smooth_step(0.15, 0.6, h + 0.25 * coarse));
    struct colour stone = colour_mix(rock, dark_rock, smooth_step(-0.35, 0.35, bands + 0.4 * fine));
    struct colour forest = colour_mix(spruce, larch, smooth_step(-0.3, 0.5, coarse + fine));

    ground = colour_mix(ground, forest,
                        smooth_step(0.50, 0.36, h + 0.13 * coarse + 0.05 * fine) *
                            smooth_step(0.08, 0.24, slope + 0.06 * fine + 0.08 * coarse));
    ground = colour_mix(ground, scree,
                        0.85 * smooth_step(0.42, 0.62, h + 0.12 * fine + 0.10 * coarse) *
                            smooth_step(0.25, 0.5, slope));
    ground =
        colour_mix(ground, stone, smooth_step(0.80, 1.12, slope + 0.22 * fine + 0.45 * (h - 0.45)));
    return colour_mix(ground, snow,
                      smooth_step(0.60, 0.74, h + 0.10 * coarse + 0.05 * fine + 0.10 * normal.y) *
                          smooth_step(1.12, 0.78, slope + 0.25 * fine));
}

static struct colour islands(struct vec3 at, struct vec3 normal, double h)
{
    const struct colour sand = {0.66, 0.56, 0.38}, wet = {0.36, 0.29, 0.19};
    const struct colour grass = {0.17, 0.23, 0.060}, jungle = {0.035, 0.082, 0.022};
    const struct colour rock = {0.23, 0.19, 0.155}, summit = {0.20, 0.20, 0.10};
    double slope = slope_of(normal), coarse = patches(at, 170, 911), fine = patches(at, 18, 912);
    struct colour ground =
        colour_mix(grass, jungle, smooth_step(-0.30, 0.20, coarse + 0.5 * fine + 0.5 * slope));

    ground = colour_mix(ground, summit, smooth_step(0.55, 0.9, h + 0.2 * coarse));
    ground = colour_mix(ground, rock, smooth_step(0.75, 1.05, slope + 0.3 * fine));
    ground = colour_mix(ground, sand,
                        smooth_step(4.0, 2.2, at.z + 1.3 * fine) * smooth_step(0.75, 0.4, slope));
    return colour_mix(ground, wet, smooth_step(0.55, 0.1, at.z));
}

static struct colour desert(struct vec3 at, struct vec3 normal, double h)
{
    const struct colour layers[] = {
        {0.50, 0.245, 0.120}, {0.44, 0.175, 0.085}, {0.62, 0.400, 0.235}, {0.38, 0.150, 0.080},
        {0.55, 0.290, 0.150}, {0.66, 0.480, 0.310}, {0.42, 0.190, 0.100}};
    const struct colour sand = {0.56, 0.335, 0.165}, flat = {0.40, 0.265, 0.160};
    const struct colour shrub = {0.13, 0.13, 0.060};
    double slope = slope_of(normal), coarse = patches(at, 220, 921), fine = patches(at, 12, 922);
    double band = (at.z + 5 * coarse + 0.7 * fine) / 9.5;
    uint32_t index = band > 0 ? (uint32_t)band : 0;
    double blend = smooth_step(0.75, 1.0, band - floor(band));
    struct colour stone = colour_mix(layers[noise_hash(index, 3, 77) % 7],
                                     layers[noise_hash(index + 1, 3, 77) % 7], blend);
    struct colour top = colour_mix(flat, stone, 0.35 + 0.3 * coarse);
    struct colour ground;

    top = colour_mix(top, shrub, 0.7 * smooth_step(0.28, 0.5, patches(at, 7, 923) + 0.2 * coarse));
    ground = colour_mix(sand, top, smooth_step(0.14, 0.30, h + 0.05 * coarse));
    return colour_mix(ground, stone, smooth_step(0.50, 0.78, slope + 0.10 * fine));
}

struct colour palette_ground(enum palette palette, struct vec3 point, struct vec3 normal,
                             double low_m, double high_m)
{
    double h = (point.z - low_m) / (high_m - low_m);
    double grain = 1 + 0.30 * patches(point, 9, 931); /* tree tops, stones */

    switch (palette) {
    case PALETTE_ISLANDS:
        return colour_scale(islands(point, normal, h), grain);
    case PALETTE_DESERT:
        return colour_scale(desert(point, normal, h), grain);
    default:
        return colour_scale(alpine(point, normal, h), grain);
    }
}
