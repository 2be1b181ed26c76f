/*
 * An archipelago: warped noise lifts a few islands over the sea, rivers cut them down to sea level,
 * and the shore is drawn out to beaches on a shallow shelf.
 *
 * Only the land erodes: the sea is one great outlet. The shore is shaped last, by a curve over the
 * height alone, flat around zero, so that every coast gets a beach where the ground behind it is
 * gentle and keeps its cliff where it is steep (noise shifts between the two).
 */
#include "deploy/demo/landscape.h"

#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/relief.h"

#include <math.h>

#define EXTENT_M 3072.0
#define SEA_FLOOR_M (-45.0) /* nearly: the deepest noise lies some metres below */

static const struct rock islands_rock[] = {{1.0f, 0.70f}, {1.3f, 0.60f}, {0.8f, 0.95f},
                                           {1.2f, 0.62f}, {0.7f, 1.15f}, {1.0f, 0.75f}};

/* How much a place wants to be land: positive inside the islands, negative in the sea. */
static double islands_land(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 900, .octaves = 4, .gain = 0.5};
    struct noise_sum shape = {.wavelength = 980, .octaves = 5, .gain = 0.48};
    double u = x / EXTENT_M - 0.5, v = y / EXTENT_M - 0.5, rim;

    rim = smooth_step(0.32, 0.52, sqrt(u * u + v * v));
    noise_warp(&bend, 260, seed + 11, &x, &y);
    return noise_fbm(&shape, x, y, seed + 23) + 0.02 - 0.9 * rim;
}

static double islands_start(double x, double y, uint32_t seed)
{
    struct noise_sum hills = {.wavelength = 300, .octaves = 5, .gain = 0.5};
    double land = islands_land(x, y, seed);

    if (land < 0) /* falls gently at the shore, then to the abyss, and levels out */
        return SEA_FLOOR_M * (land * land) / (land * land + 0.03) + 12 * land;
    return land * 260 + 30 * land * noise_fbm(&hills, x, y, seed + 37);
}

static double islands_uplift(double x, double y, uint32_t seed)
{
    double land = islands_land(x, y, seed);

    return land > 0 ? 10 + 90 * smooth_step(0, 0.45, land) : 0;
}

static double islands_fold(double x, double y, uint32_t seed)
{
    struct noise_sum bend = {.wavelength = 700, .octaves = 4, .gain = 0.5};

    return 90 * noise_fbm(&bend, x, y, seed + 41) - 30;
}

static const struct relief_spec islands_spec = {
    .extent_x_m = EXTENT_M,
    .extent_y_m = EXTENT_M,
    .start = islands_start,
    .uplift = islands_uplift,
    .fold = islands_fold,
    .layers = islands_rock,
    .layer_count = sizeof islands_rock / sizeof *islands_rock,
    .layer_thickness_m = 45,
    .sea_level_m = 0,
    .talus = 0.85,
    .floors = {.area_min_m2 = 60e3, .width = 0.03, .width_max_m = 30, .rise = 0.5},
    .levels = {{.steps = 40, .time_step = 0.12},
               {.steps = 20, .time_step = 0.08, .detail_m = 30},
               {.steps = 10, .time_step = 0.06, .detail_m = 20},
               {.steps = 5, .time_step = 0.04, .detail_m = 12, .widen = true},
               {.steps = 3, .time_step = 0.03, .detail_m = 5, .thermal = 8}},
};

/* ---- shore and sea floor ------------------------------------------------------------------ */

struct shore_job {
    struct grid *ground;
    uint32_t seed;
};

/*
 * Flat at zero, from `wide` metres below to as far above; the identity beyond. A cubic through the
 * three points with the slope `flat` in the middle and 1 at the ends would overshoot; this one
 * only bends: h·(flat + (1 - flat)·smooth(|h|/wide)).
 */
static double shore_curve(double h, double wide, double flat)
{
    return h * mix(flat, 1, smooth_step(0, wide, fabs(h)));
}

static void shore_rows(void *context, uint32_t first, uint32_t end)
{
    const struct shore_job *job = context;
    struct grid *ground = job->ground;
    struct noise_sum place = {.wavelength = 420, .octaves = 2, .gain = 0.5};
    struct noise_sum bars = {.wavelength = 90, .octaves = 4, .gain = 0.5};
    struct noise_sum grain = {.wavelength = 16, .octaves = 3, .gain = 0.55};

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < ground->cols; column++) {
            double x = grid_x(ground, column), y = grid_y(ground, row);
            float *at = &ground->at[(size_t)row * ground->cols + column];
            double h = *at,
                   gentle = smooth_step(-0.35, 0.25, noise_fbm(&place, x, y, job->seed + 71));

            h = shore_curve(h, 5 + 13 * gentle, 0.25 - 0.17 * gentle);
            if (h < 0)
                h += smooth_step(0, -9, h) * 2.4 * noise_fbm(&bars, x, y, job->seed + 83);
            else
                h += smooth_step(2, 22, h) * 1.2 * noise_fbm(&grain, x, y, job->seed + 97);
            *at = (float)h;
        }
    }
}

enum err_code islands_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                           struct err *err)
{
    struct shore_job job = {out, seed};

    if (relief_grow(&islands_spec, size, seed + 5000, threads, out, err))
        return err->code;
    parallel_rows(threads, out->rows, 16, shore_rows, &job);
    return ERR_OK;
}
