/*
 * Relaxation: samples that are steeper than an angle of repose slide, as dry sand does. For
 * brush.c.
 */
#ifndef KOTA_TERRAIN_RELAX_H
#define KOTA_TERRAIN_RELAX_H

#include "base/err.h"

#include <stdint.h>

/* Of one call: 40 bytes a sample, about a second of the writer's time at most. */
#define RELAX_SAMPLES_MAX 262144

struct relax_grid {
    uint32_t cols, rows;
    double spacing_x_m, spacing_y_m;
    double slope; /* metres a metre, > 0, that no two neighbours exceed afterwards */
};

/*
 * heights_m[rows][cols] becomes the relaxed samples. A NaN is no ground: it stays, nothing passes
 * it. Of two neighbours (8 a sample) none is higher than the other by more than slope · distance;
 * the sum stays, to half a unit in the last place of the greatest height (float32), and with it the
 * mean of each part that NaNs separate, to the same of each of its samples. What is not too steep,
 * and is reached by nothing that slides, keeps its bits; so a second call changes nothing. A slope
 * below the rounding of the heights is met to two units of it.
 * ERR_NO_MEMORY. Deterministic.
 */
enum err_code relax_heights(const struct relax_grid *grid, float *heights_m, struct err *err);

#endif
