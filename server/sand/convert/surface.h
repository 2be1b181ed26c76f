/*
 * The surface of a patch as heights: its granules from above, over the bed, and the ground itself
 * where there are none. Pure: spheres in, samples out.
 */
#ifndef KOTA_SAND_SURFACE_H
#define KOTA_SAND_SURFACE_H

#include "sand/convert/convert.h"

enum { SURFACE_PER_CELL_MAX = 16 };

/* Samples of a surface; the first lies on the patch's south-west corner. */
struct surface_grid {
    uint32_t cols, rows;
    double step_m[2];
};

/*
 * per_cell  samples along a side of one of the field's cells, 1..SURFACE_PER_CELL_MAX
 * ERR_BAD_INPUT  more than samples_max samples; names limit and got
 */
enum err_code surface_grid_make(const struct convert_place *place, uint32_t per_cell,
                                uint64_t samples_max, struct surface_grid *out, struct err *err);

/*
 * spheres    as sand_spheres_poll gives them; those of bodies ([3] >= 0) and those that are not
 *            finite are left out. count 0: only the ground
 * radius_m   > 0, of each
 * heights_m  out, [grid.rows][grid.cols], row 0 at the smallest y; the locale's frame
 *
 * Each sample is the mean over its own cell of the highest cap there, of the bed where no sphere
 * is. The outermost samples are the ground's: the patch's edge does not move.
 * ERR_NO_MEMORY
 * O(spheres + samples), some 10 ms for 60,000 spheres: for a worker.
 */
enum err_code surface_measure(const struct heightfield *field, const struct convert_place *place,
                              const float (*spheres)[4], uint32_t count, double radius_m,
                              const struct surface_grid *grid, float *heights_m, struct err *err);

#endif
