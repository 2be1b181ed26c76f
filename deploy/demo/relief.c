/*
 * The pyramid: 128, 256, 512, ... samples across, each level's result the next one's start.
 *
 * A level that is only interpolated from a coarser one keeps the coarser one's river directions,
 * multiples of 45 degrees seen from afar. So each refinement looks the coarse ground up through a
 * warp of about one and a half coarse cells: channels become winding, and the grid is gone.
 * Roughness is added in proportion to the coarse slope, so that plains and lake floors stay smooth.
 *
 * The margin of 24 cells is a margin of 24 coarse cells at the coarsest level, 600 to 800 m, which
 * is where the outlets' straight edge would show; at the finest it only hides the last few steps.
 *
 * Invariant: before stream power runs, the ground drains (no pits).
 */
#include "deploy/demo/relief.h"

#include "base/check.h"
#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"

#include <math.h>
#include <string.h>

enum { MARGIN_CELLS = 24, COARSEST_COLS = 128 };

#define SMOOTH_M 12.0 /* uplift and folds have no smaller features that a river would notice */

/* Everything of one level that is as large as its ground. */
struct level_state {
    struct grid ground, uplift, fold;
    struct drainage drainage;
};

/* One seed for what all levels share, and one that differs from level to level. */
struct level_seed {
    uint32_t world, level;
};

static void level_destroy(struct level_state *level)
{
    grid_destroy(&level->ground);
    grid_destroy(&level->uplift);
    grid_destroy(&level->fold);
    drainage_destroy(&level->drainage);
}

/* ---- filling grids ------------------------------------------------------------------------ */

struct fill_job {
    struct grid *grid;
    relief_function function;
    uint32_t seed;
};

static void fill_rows(void *context, uint32_t first, uint32_t end)
{
    const struct fill_job *job = context;
    struct grid *grid = job->grid;

    for (uint32_t row = first; row < end; row++)
        for (uint32_t column = 0; column < grid->cols; column++)
            grid->at[(size_t)row * grid->cols + column] =
                (float)job->function(grid_x(grid, column), grid_y(grid, row), job->seed);
}

void relief_fill(struct grid *grid, relief_function function, uint32_t seed, uint32_t threads)
{
    struct fill_job job = {grid, function, seed};

    parallel_rows(threads, grid->rows, 16, fill_rows, &job);
}

struct spread_job {
    const struct grid *from;
    struct grid *to;
};

static void spread_rows(void *context, uint32_t first, uint32_t end)
{
    const struct spread_job *job = context;
    struct grid *to = job->to;

    for (uint32_t row = first; row < end; row++)
        for (uint32_t column = 0; column < to->cols; column++)
            to->at[(size_t)row * to->cols + column] =
                (float)grid_bilinear(job->from, grid_x(to, column), grid_y(to, row));
}

/* As relief_fill, from values SMOOTH_M apart: noise costs ten times what interpolation does. */
static enum err_code fill_smooth(struct grid *grid, relief_function function, uint32_t seed,
                                 uint32_t threads, struct err *err)
{
    uint32_t stride = (uint32_t)(SMOOTH_M / grid->spacing_m);
    struct grid wide = *grid;
    struct spread_job job = {&wide, grid};

    if (stride < 2) {
        relief_fill(grid, function, seed, threads);
        return ERR_OK;
    }
    wide.spacing_m *= stride;
    if (grid_create(&wide, grid->cols / stride + 2, grid->rows / stride + 2, err))
        return err->code;
    relief_fill(&wide, function, seed, threads);
    parallel_rows(threads, grid->rows, 16, spread_rows, &job);
    grid_destroy(&wide);
    return ERR_OK;
}

struct refine_job {
    const struct grid *coarse;
    struct grid *fine;
    double detail_m;
    double sea_level_m;
    uint32_t seed;
};

static void refine_rows(void *context, uint32_t first, uint32_t end)
{
    const struct refine_job *job = context;
    const struct grid *coarse = job->coarse;
    double cell_m = coarse->spacing_m;
    struct noise_sum bend = {.wavelength = 9 * cell_m, .octaves = 2, .gain = 0.5};
    struct noise_sum rough = {.wavelength = 3 * cell_m, .octaves = 2, .gain = 0.6};

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < job->fine->cols; column++) {
            double x = grid_x(job->fine, column), y = grid_y(job->fine, row);
            double u = x, v = y, h, slope;

            noise_warp(&bend, 3.0 * cell_m, job->seed, &u, &v);
            h = grid_bicubic(coarse, u, v);
            slope = fabs(grid_bilinear(coarse, u + cell_m, v) - h) +
                    fabs(grid_bilinear(coarse, u, v + cell_m) - h);
            slope = slope / cell_m < 1 ? slope / cell_m : 1;
            if (h > job->sea_level_m)
                h += job->detail_m * slope * noise_fbm(&rough, x, y, job->seed + 7);
            job->fine->at[(size_t)row * job->fine->cols + column] = (float)h;
        }
    }
}

/* ---- one level ---------------------------------------------------------------------------- */

static enum err_code level_create(struct level_state *level, const struct relief_spec *spec,
                                  double spacing_m, struct err *err)
{
    struct grid frame = {.origin_x_m = -MARGIN_CELLS * spacing_m,
                         .origin_y_m = -MARGIN_CELLS * spacing_m,
                         .spacing_m = spacing_m};
    /* The extents are whole numbers of coarse cells but for a remainder, which one more covers. */
    uint32_t cols = (uint32_t)(spec->extent_x_m / spacing_m + 0.5) + 2 * MARGIN_CELLS + 1;
    uint32_t rows = (uint32_t)(spec->extent_y_m / spacing_m + 0.5) + 2 * MARGIN_CELLS + 1;

    level->ground = level->uplift = level->fold = frame;
    if (grid_create(&level->ground, cols, rows, err) ||
        (spec->uplift && grid_create(&level->uplift, cols, rows, err)) ||
        (spec->fold && grid_create(&level->fold, cols, rows, err)) ||
        drainage_create(&level->drainage, cols, rows, err))
        return err->code;
    return ERR_OK;
}

static enum err_code level_erode(struct level_state *level, const struct relief_spec *spec,
                                 const struct relief_level *plan, const struct level_seed *seed,
                                 uint32_t threads, struct err *err)
{
    struct stream_power rivers = {.layers = spec->layers,
                                  .layer_count = spec->layer_count,
                                  .layer_thickness_m = spec->layer_thickness_m,
                                  .fold = spec->fold ? &level->fold : NULL,
                                  .uplift = spec->uplift ? &level->uplift : NULL,
                                  .sea_level_m = spec->sea_level_m,
                                  .time_step = plan->time_step,
                                  .steps = plan->steps,
                                  .seed = seed->level};

    if (spec->uplift && fill_smooth(&level->uplift, spec->uplift, seed->world, threads, err))
        return err->code;
    if (spec->fold && fill_smooth(&level->fold, spec->fold, seed->world, threads, err))
        return err->code;
    if (drainage_fill(&level->ground, spec->sea_level_m, 1e-3, err))
        return err->code;
    erosion_stream_power(&level->ground, &level->drainage, &rivers, threads);
    if (plan->widen && erosion_widen(&level->ground, &level->drainage, &spec->floors, err))
        return err->code;
    if (plan->thermal) {
        struct grid scratch = level->ground;

        if (grid_create(&scratch, level->ground.cols, level->ground.rows, err))
            return err->code;
        erosion_thermal(&level->ground, &scratch, spec->talus, plan->thermal, threads);
        grid_destroy(&scratch);
    }
    return ERR_OK;
}

static enum err_code level_next(struct level_state *level, const struct relief_spec *spec,
                                const struct relief_level *plan, double spacing_m,
                                const struct level_seed *seed, uint32_t threads, struct err *err)
{
    struct grid coarse = level->ground;
    struct refine_job job = {&coarse, &level->ground, plan->detail_m, spec->sea_level_m,
                             seed->level};
    enum err_code code;

    level->ground = (struct grid){0};
    level_destroy(level);
    code = level_create(level, spec, spacing_m, err);
    if (!code && coarse.at)
        parallel_rows(threads, level->ground.rows, 16, refine_rows, &job);
    else if (!code)
        relief_fill(&level->ground, spec->start, seed->world, threads);
    grid_destroy(&coarse);
    return code ? code : level_erode(level, spec, plan, seed, threads, err);
}

static enum err_code crop(const struct grid *from, uint32_t cols, uint32_t rows, struct grid *out,
                          struct err *err)
{
    *out = (struct grid){.spacing_m = from->spacing_m};
    if (grid_create(out, cols, rows, err))
        return err->code;
    for (uint32_t row = 0; row < rows; row++)
        memcpy(out->at + (size_t)row * cols,
               from->at + (size_t)(row + MARGIN_CELLS) * from->cols + MARGIN_CELLS,
               cols * sizeof *out->at);
    return ERR_OK;
}

enum err_code relief_grow(const struct relief_spec *spec, uint32_t size, uint32_t seed,
                          uint32_t threads, struct grid *out, struct err *err)
{
    double finest_m = spec->extent_x_m / size;
    uint32_t rows = (uint32_t)(spec->extent_y_m / finest_m + 0.5);
    struct level_state level = {0};
    uint32_t refinements = 0;
    enum err_code code = ERR_OK;

    while (size >> (refinements + 1) >= COARSEST_COLS)
        refinements++;
    for (uint32_t i = 0; !code && i <= refinements; i++) {
        uint32_t plan = i < RELIEF_LEVELS_MAX ? i : RELIEF_LEVELS_MAX - 1;
        double spacing_m = finest_m * (double)(1u << (refinements - i));

        code = level_next(&level, spec, &spec->levels[plan], spacing_m,
                          &(struct level_seed){seed, seed + 977 * i}, threads, err);
    }
    if (!code)
        code = crop(&level.ground, size, rows, out, err);
    level_destroy(&level);
    return code;
}
