/*
 * Grids: storage, interpolation between samples, and a digest.
 *
 * The kernel is Keys' cubic convolution with a = -1/2 (Catmull-Rom): it goes through the samples,
 * has a continuous slope, and reproduces parabolas. All of it is +, -, ·, / and floor, which IEEE
 * 754 rounds the same everywhere, so that enlarged terrains are the same bytes on every machine.
 *
 * NaN is no-data. A cubic over a NaN would widen a hole by two samples, so near one the bilinear
 * value is taken instead; it is NaN exactly in the cells that touch the hole.
 */
#include "deploy/demo/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err_code grid_create(struct grid *grid, uint32_t cols, uint32_t rows, struct err *err)
{
    grid->cols = cols;
    grid->rows = rows;
    grid->at = calloc((size_t)cols * rows, sizeof *grid->at);
    if (!grid->at)
        return err_set(err, ERR_NO_MEMORY, "no memory for a grid of %u x %u samples", cols, rows);
    return ERR_OK;
}

void grid_destroy(struct grid *grid)
{
    free(grid->at);
    *grid = (struct grid){0};
}

static uint32_t index_clamped(double i, uint32_t count)
{
    if (!(i > 0))
        return 0;
    return i >= count - 1 ? count - 1 : (uint32_t)i;
}

static void cubic_weights(double f, double w[4])
{
    double f2 = f * f, f3 = f2 * f;

    w[0] = 0.5 * (2 * f2 - f - f3);
    w[1] = 0.5 * (3 * f3 - 5 * f2 + 2);
    w[2] = 0.5 * (f + 4 * f2 - 3 * f3);
    w[3] = 0.5 * (f3 - f2);
}

double grid_bilinear(const struct grid *grid, double x_m, double y_m)
{
    double u = (x_m - grid->origin_x_m) / grid->spacing_m;
    double v = (y_m - grid->origin_y_m) / grid->spacing_m;
    double iu = floor(u), iv = floor(v);
    double fu = u - iu, fv = v - iv;
    uint32_t c0 = index_clamped(iu, grid->cols), c1 = index_clamped(iu + 1, grid->cols);
    const float *row0 = grid->at + (size_t)index_clamped(iv, grid->rows) * grid->cols;
    const float *row1 = grid->at + (size_t)index_clamped(iv + 1, grid->rows) * grid->cols;
    double low = row0[c0], high = row1[c0];

    /* A weight of zero must not fetch a NaN from the other side. */
    if (fu > 0) {
        low += fu * (row0[c1] - low);
        high += fu * (row1[c1] - high);
    }
    return fv > 0 ? low + fv * (high - low) : low;
}

double grid_bicubic(const struct grid *grid, double x_m, double y_m)
{
    double u = (x_m - grid->origin_x_m) / grid->spacing_m;
    double v = (y_m - grid->origin_y_m) / grid->spacing_m;
    double iu = floor(u), iv = floor(v);
    double wu[4], wv[4], sum = 0;
    uint32_t c[4];

    cubic_weights(u - iu, wu);
    cubic_weights(v - iv, wv);
    for (int k = 0; k < 4; k++)
        c[k] = index_clamped(iu + k - 1, grid->cols);
    for (int k = 0; k < 4; k++) {
        const float *row = grid->at + (size_t)index_clamped(iv + k - 1, grid->rows) * grid->cols;

        sum +=
            wv[k] * (wu[0] * row[c[0]] + wu[1] * row[c[1]] + wu[2] * row[c[2]] + wu[3] * row[c[3]]);
    }
    return isnan(sum) ? grid_bilinear(grid, x_m, y_m) : sum;
}

void grid_range(const struct grid *grid, float *least, float *greatest)
{
    float lo = INFINITY, hi = -INFINITY;
    size_t count = grid_count(grid);

    for (size_t i = 0; i < count; i++) {
        if (grid->at[i] < lo)
            lo = grid->at[i];
        if (grid->at[i] > hi)
            hi = grid->at[i];
    }
    *least = lo <= hi ? lo : 0;
    *greatest = lo <= hi ? hi : 0;
}

uint64_t grid_digest(const struct grid *grid)
{
    uint64_t hash = 14695981039346656037u;
    size_t count = grid_count(grid);

    for (size_t i = 0; i < count; i++) {
        float value = isnan(grid->at[i]) ? NAN : grid->at[i];
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        if (isnan(value))
            bits = 0x7fc00000u; /* one NaN for all: their sign is not the same everywhere */
        for (int byte = 0; byte < 4; byte++)
            hash = (hash ^ (bits >> 8 * byte & 255)) * 1099511628211u;
    }
    return hash;
}
