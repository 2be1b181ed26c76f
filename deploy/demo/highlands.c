/*
 * Alpine highlands: a warped ridged multifractal says where the ground rises; rivers and slopes
 * that give way shape what rises.
 *
 * Incision is set against uplift so that a river system two kilometres long keeps some hundred
 * metres of fall: in balance, height = uplift/erodibility · ∫ dx/sqrt(area). Bands of hard and soft
 * rock, folded, make shoulders and cliffs. A last coat of fine roughness is only on steep rock.
 */
#include "deploy/demo/landscape.h"

#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/relief.h"

#include <math.h>

#define EXTENT_M 4096.0
#define SUMMIT_M 900.0

static const struct rock highlands_rock[] = {
    {1.00f, 0.52f}, {0.80f, 0.68f}, {1.15f, 0.48f}, {0.75f, 0.79f}, {1.00f, 0.56f}, {1.20f, 0.46f},
    {0.70f, 0.83f}, {0.95f, 0.61f}, {1.10f, 0.50f}, {0.72f, 0.86f}, {0.90f, 0.65f}, {0.70f, 0.90f},
};

static double range(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 1700, .octaves = 3, .gain = 0.5};
    struct noise_sum crest = {.wavelength = 2600, .octaves = 4, .gain = 0.5};

    noise_warp(&bend, 420, seed + 11, &x, &y);
    return noise_ridged(&crest, x, y, seed + 23);
}

static double highlands_fold(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 1100, .octaves = 5, .gain = 0.55};

    return 0.06 * (x - y) + 170 * noise_fbm(&bend, x, y, seed + 41);
}

static double highlands_start(double x, double y, uint32_t seed)
{
    return 20 + 60 * range(x, y, seed) + highlands_fold(x, y, seed + 5) * 0.35 + 60;
}

static double highlands_uplift(double x, double y, uint32_t seed)
{
    return 18 + 145 * smooth_step(0.05, 0.85, range(x, y, seed));
}

static const struct relief_spec highlands_spec = {
    .extent_x_m = EXTENT_M,
    .extent_y_m = EXTENT_M,
    .start = highlands_start,
    .uplift = highlands_uplift,
    .fold = highlands_fold,
    .layers = highlands_rock,
    .layer_count = sizeof highlands_rock / sizeof *highlands_rock,
    .layer_thickness_m = 55,
    .sea_level_m = -INFINITY,
    .talus = 0.9,
    .floors = {.area_min_m2 = 150e3, .width = 0.034, .width_max_m = 90, .rise = 0.6},
    .levels = {{.steps = 60, .time_step = 0.25},
               {.steps = 30, .time_step = 0.12, .detail_m = 60},
               {.steps = 14, .time_step = 0.08, .detail_m = 40},
               {.steps = 6, .time_step = 0.05, .detail_m = 22, .widen = true},
               {.steps = 3, .time_step = 0.03, .detail_m = 9, .thermal = 12},
               {.steps = 2, .time_step = 0.02, .detail_m = 4, .thermal = 12}},
};

/* ---- the last coat ------------------------------------------------------------------------ */

struct finish_job {
    struct grid *ground;
    const struct grid *before;
    double base_m, scale;
    uint32_t seed;
};

static void finish_rows(void *context, uint32_t first, uint32_t end)
{
    const struct finish_job *job = context;
    const struct grid *before = job->before;
    struct noise_sum grain = {.wavelength = 22, .octaves = 4, .gain = 0.55};

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < before->cols; column++) {
            double x = grid_x(before, column), y = grid_y(before, row), step = before->spacing_m;
            double h = before->at[(size_t)row * before->cols + column];
            double slope = fabs(grid_bilinear(before, x + step, y) - h) +
                           fabs(grid_bilinear(before, x, y + step) - h);
            double steep = smooth_step(0.25, 1.1, slope / step);

            h += (0.15 + 3.0 * steep) * noise_fbm(&grain, x, y, job->seed + 61);
            h = (h - job->base_m) * job->scale;
            job->ground->at[(size_t)row * before->cols + column] = (float)(h > 0 ? h : 0);
        }
    }
}

enum err_code highlands_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                             struct err *err)
{
    struct grid before;
    struct finish_job job = {.ground = out, .before = &before, .seed = seed};
    float least, greatest;

    if (relief_grow(&highlands_spec, size, seed, threads, &before, err))
        return err->code;
    *out = before;
    if (grid_create(out, before.cols, before.rows, err)) {
        grid_destroy(&before);
        return err->code;
    }
    grid_range(&before, &least, &greatest);
    job.base_m = least;
    job.scale = SUMMIT_M / (greatest - least);
    parallel_rows(threads, before.rows, 16, finish_rows, &job);
    grid_destroy(&before);
    return ERR_OK;
}
