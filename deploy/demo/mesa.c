/*
 * A desert: a plateau of hard and soft layers, cut by canyons into terraces and mesas; dunes on the
 * plain below; and a quarry, outside what was surveyed: a hole of no-data with a ragged outline.
 *
 * There is no uplift. The plateau is above a lower plain to the south-west; rivers eat into it
 * from there. Hard layers erode slowly and stand as cliffs, soft ones as aprons of debris, so that
 * the steps come from the rock and follow the same level around every butte.
 *
 * Dunes are waves across the wind with a long windward side and a short lee side at the angle
 * of repose (34 degrees), bent by noise and only where the plain is low and level.
 */
#include "deploy/demo/landscape.h"

#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/relief.h"

#include <math.h>

#define EXTENT_X_M 4096.0
#define EXTENT_Y_M 3072.0
#define PLATEAU_M 270.0
#define PLAIN_M 30.0

/* Where the quarry lies and how wide it is, metres. */
#define QUARRY_X_M 640.0
#define QUARRY_Y_M 1180.0
#define QUARRY_RADIUS_M 150.0

static const struct rock mesa_rock[] = {
    {1.6f, 0.45f}, {1.6f, 0.45f}, {0.25f, 3.2f}, {1.8f, 0.60f}, {1.5f, 0.55f},
    {0.20f, 3.6f}, {0.22f, 3.4f}, {1.8f, 0.60f}, {1.7f, 0.65f}, {0.30f, 2.6f},
    {1.6f, 0.60f}, {1.4f, 0.55f}, {0.15f, 4.0f}, {0.16f, 4.0f}, {0.18f, 3.0f},
};

static double mesa_plateau(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 1500, .octaves = 4, .gain = 0.5};
    struct noise_sum lobes = {.wavelength = 1100, .octaves = 5, .gain = 0.5};
    double along;

    noise_warp(&bend, 380, seed + 11, &x, &y);
    along = (0.8 * x + 0.6 * y) / 4000 - 0.42;
    return along + 0.75 * noise_fbm(&lobes, x, y, seed + 23);
}

static double mesa_start(double x, double y, uint32_t seed)
{
    struct noise_sum bumps = {.wavelength = 420, .octaves = 6, .gain = 0.5};
    double plateau = smooth_step(-0.10, 0.12, mesa_plateau(x, y, seed));

    return PLAIN_M + (PLATEAU_M - PLAIN_M) * plateau +
           (6 + 16 * plateau) * noise_fbm(&bumps, x, y, seed + 37) + 0.006 * (x + y);
}

static double mesa_fold(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 1800, .octaves = 3, .gain = 0.5};

    return 22 * noise_fbm(&bend, x, y, seed + 41);
}

static const struct relief_spec mesa_spec = {
    .extent_x_m = EXTENT_X_M,
    .extent_y_m = EXTENT_Y_M,
    .start = mesa_start,
    .fold = mesa_fold,
    .layers = mesa_rock,
    .layer_count = sizeof mesa_rock / sizeof *mesa_rock,
    .layer_thickness_m = 19,
    .sea_level_m = -INFINITY,
    .talus = 2.4,
    .floors = {.area_min_m2 = 90e3, .width = 0.035, .width_max_m = 70, .rise = 0.5},
    .levels = {{.steps = 32, .time_step = 0.13},
               {.steps = 12, .time_step = 0.07, .detail_m = 20},
               {.steps = 8, .time_step = 0.05, .detail_m = 14, .widen = true},
               {.steps = 6, .time_step = 0.04, .detail_m = 8, .widen = true},
               {.steps = 4, .time_step = 0.02, .detail_m = 3, .thermal = 6}},
};

/* ---- sand --------------------------------------------------------------------------------- */

/* One dune wave: phase in wavelengths, height 0..1; three quarters up, one quarter down. */
static double dune_profile(double phase)
{
    double f = phase - floor(phase);
    double t = f < 0.75 ? f / 0.75 : (1 - f) / 0.25;

    return t * t * (1.6 - 0.6 * t);
}

static double dunes(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 330, .octaves = 3, .gain = 0.5};
    struct noise_sum size = {.wavelength = 260, .octaves = 2, .gain = 0.5};
    double wind = 0.8 * x - 0.6 * y + 95 * noise_fbm(&bend, x, y, seed + 53);
    double high = 0.55 + 0.9 * noise_fbm(&size, x, y, seed + 59);

    if (!(high > 0))
        return 0;
    return high * (9 * dune_profile(wind / 92) + 1.1 * dune_profile(wind / 23 + 0.01 * y));
}

/* Below zero inside the quarry. */
static double quarry(double x, double y, uint32_t seed)
{
    struct noise_sum outline = {.wavelength = 150, .octaves = 4, .gain = 0.55};
    double dx = x - QUARRY_X_M, dy = y - QUARRY_Y_M;

    return sqrt(dx * dx + dy * dy) / QUARRY_RADIUS_M - 1 +
           0.75 * noise_fbm(&outline, x, y, seed + 67);
}

struct sand_job {
    struct grid *ground;
    const struct grid *before;
    uint32_t seed;
};

static void sand_rows(void *context, uint32_t first, uint32_t end)
{
    const struct sand_job *job = context;
    const struct grid *before = job->before;
    struct noise_sum grain = {.wavelength = 18, .octaves = 3, .gain = 0.55};
    double wide_m = 24; /* over which the ground's slope is measured for the sand */

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < before->cols; column++) {
            double x = grid_x(before, column), y = grid_y(before, row), slope, level;
            size_t cell = (size_t)row * before->cols + column;
            double h = before->at[cell];

            slope =
                fabs(grid_bilinear(before, x + wide_m, y) - grid_bilinear(before, x - wide_m, y)) +
                fabs(grid_bilinear(before, x, y + wide_m) - grid_bilinear(before, x, y - wide_m));
            slope /= 2 * wide_m;
            level = smooth_step(0.22, 0.06, slope) * smooth_step(85, 50, h);
            h += 0.5 * noise_fbm(&grain, x, y, job->seed + 61);
            if (level > 0)
                h += level * dunes(x, y, job->seed);
            job->ground->at[cell] = quarry(x, y, job->seed) < 0 ? NAN : (float)h;
        }
    }
}

enum err_code mesa_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                        struct err *err)
{
    struct grid before;
    struct sand_job job = {out, &before, seed};

    if (relief_grow(&mesa_spec, size, seed + 9000, threads, &before, err))
        return err->code;
    *out = before;
    if (!grid_create(out, before.cols, before.rows, err))
        parallel_rows(threads, before.rows, 16, sand_rows, &job);
    grid_destroy(&before);
    return out->at ? ERR_OK : err->code;
}
