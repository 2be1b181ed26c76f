/*
 * A grid of float32 values over the plane: what the generator computes on, before it becomes a
 * heightfield. Sample (c, r) is at origin + (c, r)·spacing, row 0 at the smallest y; stored
 * row by row, at[r * cols + c].
 */
#ifndef KOTA_DEMO_GRID_H
#define KOTA_DEMO_GRID_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Same seed, same bytes: needs arithmetic that rounds to the type at each operation, as SSE2 and
 * AArch64 do and the x87 stack does not.
 */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "kota-worldgen needs FLT_EVAL_METHOD 0 (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif

struct grid {
    uint32_t cols, rows; /* each >= 2 */
    double origin_x_m, origin_y_m;
    double spacing_m; /* > 0 */
    float *at;        /* [rows][cols], owned */
};

/* Allocates at[], all zero; the other members are the caller's values. ERR_NO_MEMORY. */
enum err_code grid_create(struct grid *grid, uint32_t cols, uint32_t rows, struct err *err);

/* Frees at[] and zeroes the struct; a zeroed struct is fine. */
void grid_destroy(struct grid *grid);

static inline size_t grid_count(const struct grid *grid)
{
    return (size_t)grid->cols * grid->rows;
}

static inline double grid_x(const struct grid *grid, uint32_t column)
{
    return grid->origin_x_m + grid->spacing_m * column;
}

static inline double grid_y(const struct grid *grid, uint32_t row)
{
    return grid->origin_y_m + grid->spacing_m * row;
}

/*
 * The value at a point, by Catmull-Rom over the 4×4 samples around it (bicubic) or over the 2×2
 * (bilinear). Beyond the edges the edge's samples are repeated. Where one of the 4×4 is NaN,
 * bicubic falls back to bilinear, and bilinear over a NaN is NaN. O(1). Source: R. Keys, "Cubic
 * convolution interpolation for digital image processing", 1981.
 */
double grid_bicubic(const struct grid *grid, double x_m, double y_m);
double grid_bilinear(const struct grid *grid, double x_m, double y_m);

/* Least and greatest value; NaN is passed over; 0 and 0 when there is nothing else. O(samples). */
void grid_range(const struct grid *grid, float *least, float *greatest);

/* FNV-1a over the samples' bits, little end first: the golden number of the tests. O(samples). */
uint64_t grid_digest(const struct grid *grid);

#endif
