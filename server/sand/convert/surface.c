/*
 * A patch from above.
 *
 * Problem: drawing a running patch needs its surface as a grid of heights, while the sand thread
 * steps it. Approach: the spheres are copied once (sand_patch_spheres) and all the rest is done
 * here, by the processor, on the calling thread. Caps are splatted into points finer than a sphere,
 * of which each sample takes the mean over its cell, as convert.c measures the ground that it
 * writes back (text S, 5.4): a sample's height is then that of a vertex which keeps the volume.
 *
 * Invariants: every height is finite; on the edge of the patch it is the ground's, bit for bit as
 * the triangles have it. Tried and dropped: the depth map of the engine, which belongs to the patch
 * (its before and after) and serves one request at a time.
 */
#include "sand/convert/surface.h"

#include <math.h>
#include <stdlib.h>

#define POINTS_MAX (4U << 20)

enum { POINTS_A_SIDE_MAX = 8 };

enum err_code surface_grid_make(const struct convert_place *place, uint32_t per_cell,
                                uint64_t samples_max, struct surface_grid *out, struct err *err)
{
    const uint64_t cols = (uint64_t)(place->samples.cols - 1) * per_cell + 1;
    const uint64_t rows = (uint64_t)(place->samples.rows - 1) * per_cell + 1;

    if (cols * rows > samples_max)
        return err_limit(err, ERR_BAD_INPUT, (double)samples_max, (double)cols * (double)rows,
                         "with %u a cell the surface has %llu x %llu samples, the most is %llu",
                         per_cell, (unsigned long long)cols, (unsigned long long)rows,
                         (unsigned long long)samples_max);
    *out = (struct surface_grid){
        .cols = (uint32_t)cols,
        .rows = (uint32_t)rows,
        .step_m = {place->spacing_m[0] / per_cell, place->spacing_m[1] / per_cell}};
    return ERR_OK;
}

/* Points within the cells of samples: m x m in each, sample (0, 0) at (0, 0). */
struct points {
    uint32_t m, cols, rows;
    double pitch_m[2], first_m[2];
    float *top_m; /* [rows][cols], -INFINITY: no sphere */
};

static enum err_code points_make(const struct surface_grid *grid, double radius_m,
                                 struct points *out, struct err *err)
{
    const double side_m = fmax(grid->step_m[0], grid->step_m[1]);
    const double samples = (double)grid->cols * grid->rows;
    double m = fmin(fmax(2, ceil(side_m / (radius_m / 2))), POINTS_A_SIDE_MAX);
    size_t count;

    while (m > 1 && samples * m * m > POINTS_MAX)
        m--;
    *out = (struct points){.m = (uint32_t)m};
    out->cols = grid->cols * out->m;
    out->rows = grid->rows * out->m;
    for (int i = 0; i < 2; i++) {
        out->pitch_m[i] = grid->step_m[i] / m;
        out->first_m[i] = (0.5 / m - 0.5) * grid->step_m[i];
    }
    count = (size_t)out->cols * out->rows;
    out->top_m = malloc(count * sizeof *out->top_m);
    if (!out->top_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a surface of %zu points", count);
    for (size_t i = 0; i < count; i++)
        out->top_m[i] = -INFINITY;
    return ERR_OK;
}

/* First and last point of an axis within reach of a centre; false when there is none. */
static bool reach(double centre_m, double radius_m, double first_m, double pitch_m, uint32_t count,
                  uint32_t *from, uint32_t *to)
{
    const double low = ceil((centre_m - radius_m - first_m) / pitch_m);
    const double high = floor((centre_m + radius_m - first_m) / pitch_m);

    if (!(high >= 0) || !(low < count) || high < low)
        return false;
    *from = low > 0 ? (uint32_t)low : 0;
    *to = high < count - 1 ? (uint32_t)high : count - 1;
    return true;
}

static void splat(struct points *points, const float sphere[4], double radius_m)
{
    const double x = (double)sphere[0], y = (double)sphere[1];
    uint32_t c0, c1, r0, r1;

    if (!(isfinite(sphere[0]) && isfinite(sphere[1]) && isfinite(sphere[2])) ||
        !reach(x, radius_m, points->first_m[0], points->pitch_m[0], points->cols, &c0, &c1) ||
        !reach(y, radius_m, points->first_m[1], points->pitch_m[1], points->rows, &r0, &r1))
        return;
    for (uint32_t r = r0; r <= r1; r++) {
        const double dy = points->first_m[1] + r * points->pitch_m[1] - y;
        float *row = points->top_m + (size_t)r * points->cols;

        for (uint32_t c = c0; c <= c1; c++) {
            const double dx = points->first_m[0] + c * points->pitch_m[0] - x;
            const double under = radius_m * radius_m - dx * dx - dy * dy;

            if (under > 0)
                row[c] = fmaxf(row[c], sphere[2] + (float)sqrt(under));
        }
    }
}

/* The ground at a place that is kept within the patch. */
static double ground_m(const struct heightfield *field, const struct convert_place *place, double x,
                       double y)
{
    struct ground_point ground;
    const struct vec2 at = {place->low.x + fmin(fmax(x, 0), place->size_m[0]),
                            place->low.y + fmin(fmax(y, 0), place->size_m[1])};

    heightfield_height(field, at, INTERPOLATION_TRIANGLE, &ground);
    return ground.status == GROUND_OK ? ground.height_m : place->lowest_m;
}

/* Mean of the points of sample (column, row). */
static double sample_m(const struct heightfield *field, const struct convert_place *place,
                       const struct points *points, uint32_t column, uint32_t row)
{
    const uint32_t m = points->m;
    double sum = 0;

    for (uint32_t r = row * m; r < (row + 1) * m; r++) {
        for (uint32_t c = column * m; c < (column + 1) * m; c++) {
            const double top = (double)points->top_m[(size_t)r * points->cols + c];

            if (top > -INFINITY)
                sum += place->z_m + top;
            else
                sum += ground_m(field, place, points->first_m[0] + c * points->pitch_m[0],
                                points->first_m[1] + r * points->pitch_m[1]) -
                       place->depth_m;
        }
    }
    return sum / ((double)m * m);
}

enum err_code surface_measure(const struct heightfield *field, const struct convert_place *place,
                              const float (*spheres)[4], uint32_t count, double radius_m,
                              const struct surface_grid *grid, float *heights_m, struct err *err)
{
    struct points points = {.top_m = NULL};

    if (count > 0 && points_make(grid, radius_m, &points, err))
        return err->code;
    for (uint32_t i = 0; i < count; i++)
        if (spheres[i][3] < 0)
            splat(&points, spheres[i], radius_m);
    for (uint32_t r = 0; r < grid->rows; r++) {
        for (uint32_t c = 0; c < grid->cols; c++) {
            const bool is_edge = c == 0 || r == 0 || c + 1 == grid->cols || r + 1 == grid->rows;
            float *out = &heights_m[(size_t)r * grid->cols + c];

            *out = (float)(is_edge || count == 0
                               ? ground_m(field, place, c * grid->step_m[0], r * grid->step_m[1])
                               : sample_m(field, place, &points, c, r));
        }
    }
    free(points.top_m);
    return ERR_OK;
}
