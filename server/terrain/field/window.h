/*
 * Windows: a rectangle of a heightfield's samples, or every 2^L-th of them along both axes.
 */
#ifndef KOTA_TERRAIN_WINDOW_H
#define KOTA_TERRAIN_WINDOW_H

#include "terrain/field/edit.h"
#include "terrain/field/heightfield.h"

/* The samples column + i · step, row + j · step within the rectangle, which is in the field. */
struct window {
    struct sample_rect rect;
    uint32_t step; /* from 1 */
};

/* How many samples it has along each axis: the rectangle's by the step, rounded up. */
static inline uint32_t window_cols(const struct window *window)
{
    return (window->rect.cols - 1) / window->step + 1;
}

static inline uint32_t window_rows(const struct window *window)
{
    return (window->rect.rows - 1) / window->step + 1;
}

/* Row j of it, row 0 at the smallest y: samples[window_cols]; every NaN has the same bits. */
void window_row(const struct heightfield *field, const struct window *window, uint32_t j,
                float *samples);

/*
 * 128 bits over its samples and its size: the same for the same samples in every process, also when
 * the field around them differs. Tiles that it holds as a whole are hashed once in their life.
 * O(samples), with step 1 only those of the tiles along its rim.
 */
void window_hash(const struct heightfield *field, const struct window *window, uint64_t hash[2]);

#endif
