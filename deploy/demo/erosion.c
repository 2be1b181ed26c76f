/*
 * Erosion on a grid.
 *
 * Stream power. Droplets and pipe models (Beyer 2015; Mei et al. 2007) move water for thousands of
 * steps before valleys join up into a river system; the stream power law instead knows the area
 * that drains through each cell, and its implicit form gives the landscape of a whole epoch in a
 * step: going up from the outlets, the receiver's new height is known when a cell's turn comes, so
 *     h' = (h + dt·uplift + f·h'_receiver) / (1 + f),   f = erodibility·dt·sqrt(area) / distance.
 * A cell stays above its receiver, since h + dt·uplift does, so no pits appear and pits need to be
 * filled only before the first step.
 *
 * Talus. Near the ridges the area is small and the law by itself wants walls; the rock's talus cuts
 * them, and this is what makes straight alpine slopes under sharp crests, or, with layers of hard
 * and soft rock, the steps of a mesa.
 *
 * Thermal erosion gathers: each cell adds up what it gives and gets, from the heights before the
 * step, and a pair computes the same flux on both sides. So rows may be done in any order. The
 * share of 1/16 keeps eight neighbours from taking more than half of what is in excess.
 */
#include "deploy/demo/erosion.h"

#include "base/check.h"
#include "deploy/demo/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SQRT2 1.4142135623730951

/* A river falls at least this much, so that the next step still knows which way is down. */
static const float river_fall_min = 1e-4f;

static const struct rock *rock_at(const struct stream_power *spec, size_t cell, float height_m)
{
    double depth = height_m - (spec->fold ? spec->fold->at[cell] : 0);
    double layer = depth / spec->layer_thickness_m;

    if (!(layer > 0))
        return spec->layers;
    return spec->layers + (layer < spec->layer_count ? (uint32_t)layer : spec->layer_count - 1);
}

static void stream_power_solve(struct grid *ground, const struct drainage *drainage,
                               const struct stream_power *spec)
{
    size_t count = grid_count(ground);
    float spacing_m = (float)ground->spacing_m, time_step = (float)spec->time_step;

    for (size_t i = count; i-- > 0;) {
        size_t cell = drainage->order[i];
        uint8_t way = drainage->receiver[cell];
        float run_m = way < 4 ? spacing_m : spacing_m * (float)SQRT2;
        float h = ground->at[cell], low, high, factor, receiver_m;
        const struct rock *rock;

        if (way == DRAINAGE_OUTLET)
            continue;
        rock = rock_at(spec, cell, h);
        receiver_m = ground->at[drainage_receiver(drainage, cell)];
        if (spec->uplift)
            h += time_step * spec->uplift->at[cell];
        factor = rock->erodibility * time_step * sqrtf(drainage->area[cell]) * spacing_m / run_m;
        h = (h + factor * receiver_m) / (1 + factor);
        low = receiver_m + river_fall_min * run_m;
        high = receiver_m + rock->talus * run_m;
        h = h > high ? high : h;
        ground->at[cell] = h < low ? low : h;
    }
}

void erosion_stream_power(struct grid *ground, struct drainage *drainage,
                          const struct stream_power *spec, uint32_t threads)
{
    CHECK(spec->layer_count && spec->layer_thickness_m > 0);
    for (uint32_t step = 0; step < spec->steps; step++) {
        drainage_route(drainage, ground, spec->sea_level_m, spec->seed, threads);
        stream_power_solve(ground, drainage, spec);
    }
}

/* One bowl around one river cell. */
static void widen_at(struct grid *ground, const float *before, size_t cell, double width_m,
                     double rise)
{
    int64_t column = (int64_t)(cell % ground->cols), row = (int64_t)(cell / ground->cols);
    int64_t reach = (int64_t)(width_m / ground->spacing_m);
    double bend = rise / (4 * width_m * width_m * width_m); /* z = bend·d⁴: `rise` at the rim */

    for (int64_t r = row - reach; r <= row + reach; r++) {
        for (int64_t c = column - reach; c <= column + reach; c++) {
            double dx = (double)(c - column) * ground->spacing_m;
            double dy = (double)(r - row) * ground->spacing_m;
            double d2 = dx * dx + dy * dy;
            float limit_m = before[cell] + (float)(bend * d2 * d2);
            float *at;

            if (c < 0 || r < 0 || c >= ground->cols || r >= ground->rows || d2 > width_m * width_m)
                continue;
            at = &ground->at[(size_t)r * ground->cols + (size_t)c];
            if (*at > limit_m)
                *at = limit_m;
        }
    }
}

enum err_code erosion_widen(struct grid *ground, const struct drainage *drainage,
                            const struct valley_floor *spec, struct err *err)
{
    size_t count = grid_count(ground);
    double cell_m2 = ground->spacing_m * ground->spacing_m;
    float *before = malloc(count * sizeof *before);

    if (!before)
        return err_set(err, ERR_NO_MEMORY, "no memory to widen valleys");
    memcpy(before, ground->at, count * sizeof *before);
    for (size_t cell = 0; cell < count; cell++) {
        double area_m2 = drainage->area[cell] * cell_m2;
        double width_m = spec->width * sqrt(area_m2);

        if (area_m2 < spec->area_min_m2 || drainage->receiver[cell] == DRAINAGE_OUTLET)
            continue;
        widen_at(ground, before, cell, width_m < spec->width_max_m ? width_m : spec->width_max_m,
                 spec->rise);
    }
    free(before);
    return ERR_OK;
}

/* ---- thermal ------------------------------------------------------------------------------ */

struct thermal_job {
    const struct grid *from;
    struct grid *to;
    float limit_m[8]; /* the fall to each neighbour that holds */
};

/* What a cell gets from one neighbour: negative when it gives. */
static inline float slide(float here, float there, float limit_m)
{
    float fall = there - here;
    float get = fall - limit_m, give = -fall - limit_m;

    return (get > 0 ? get : 0) - (give > 0 ? give : 0);
}

static void thermal_rows(void *context, uint32_t first, uint32_t end)
{
    const struct thermal_job *job = context;
    int64_t cols = job->from->cols, rows = job->from->rows;

    for (int64_t row = first; row < (int64_t)end; row++) {
        const float *from = job->from->at + row * cols;
        float *to = job->to->at + row * cols;

        memcpy(to, from, (size_t)cols * sizeof *to);
        for (int way = 0; way < 8; way++) {
            int64_t dx = drainage_step_x[way], dy = drainage_step_y[way];
            int64_t c0 = dx < 0 ? 1 : 0, c1 = dx > 0 ? cols - 1 : cols;
            const float *other = from + dy * cols + dx;
            float limit_m = job->limit_m[way];

            if (row + dy < 0 || row + dy >= rows)
                continue;
            for (int64_t c = c0; c < c1; c++)
                to[c] += 0.0625f * slide(from[c], other[c], limit_m);
        }
    }
}

void erosion_thermal(struct grid *ground, struct grid *scratch, double talus, uint32_t steps,
                     uint32_t threads)
{
    struct thermal_job job = {.from = ground, .to = scratch};

    CHECK(scratch->cols == ground->cols && scratch->rows == ground->rows);
    for (int way = 0; way < 8; way++)
        job.limit_m[way] = (float)(talus * ground->spacing_m * (way < 4 ? 1 : SQRT2));
    for (uint32_t step = 0; step < steps; step++) {
        float *swap = ground->at;

        parallel_rows(threads, ground->rows, 32, thermal_rows, &job);
        ground->at = scratch->at;
        scratch->at = swap;
    }
}

double erosion_steepest(const struct grid *ground)
{
    double steepest = 0;

    for (int64_t row = 0; row < ground->rows; row++) {
        for (int64_t column = 0; column < ground->cols; column++) {
            const float *at = ground->at + row * ground->cols + column;

            for (int way = 0; way < 8; way++) {
                int64_t c = column + drainage_step_x[way], r = row + drainage_step_y[way];
                double run_m = ground->spacing_m * (way < 4 ? 1 : SQRT2), slope;

                if (c < 0 || r < 0 || c >= ground->cols || r >= ground->rows)
                    continue;
                slope = (at[0] -
                         at[drainage_step_y[way] * (int64_t)ground->cols + drainage_step_x[way]]) /
                        run_m;
                steepest = slope > steepest ? slope : steepest;
            }
        }
    }
    return steepest;
}
