/*
 * A field's box as a single ray meets it (ray_single.c), made when the pyramid is: in cells but for
 * heights, and larger than the field by more than a ray's place there is wrong by. Lane 3 of the
 * vectors holds nothing.
 */
#ifndef KOTA_TERRAIN_RAY_BOX_H
#define KOTA_TERRAIN_RAY_BOX_H

#include "terrain/bounds.h"
#include "terrain/field/heightfield.h"

#include <math.h>

/* Heights up to here leave float32 room for the arithmetic of minmax16 nodes. */
#define MINMAX16_Z_MAX_M 1e15

/* Up to here and from 2^20 times as far away, a ray of 2^-30 m a step comes by with t below 2^81.
 */
#define RAY_BOX_Z_MAX_M 1e9

#define RAY_BOX_SLACK 0x1p-10 /* of a place in cells */
#define RAY_BOX_PAD 0x1p-19f  /* 32 roundings of float32 */

enum { RAY_BOX_POWERS = 16 };

struct ray_box {
    double origin[4], per_m[4]; /* (x - origin) · per_m: a place in the box's frame */
    double low[4], high[4];
    double reach[4]; /* rays that begin further from 0 are not for here; -1: none is */
    double last[2];  /* column, row */
    float root_cells;
    float pad_cells, pad_z;    /* the error of float32 on its way through the nodes */
    float far[RAY_BOX_POWERS]; /* 4^i cells, and the pad twice */
};

/* z are the field's bounds; the root of its minmax16 nodes is root_cells wide, 0: it has none. */
static inline void ray_box_init(struct ray_box *box, const struct heightfield_spec *spec,
                                struct bounds z, float root_cells)
{
    double cells_x = 1 / spec->spacing_x_m, cells_y = 1 / spec->spacing_y_m;
    double far = fabs(spec->origin_x_m * cells_x) + fabs(spec->origin_y_m * cells_y);
    double size_z = fabs((double)z.min) + fabs((double)z.max);
    bool is_common = root_cells > 0 && far < 0x1p30 && isfinite(cells_x) && isfinite(cells_y) &&
                     z.min <= z.max && size_z < RAY_BOX_Z_MAX_M;
    double pad_z = 0x1p-18 * size_z + 1e-8;
    double reach = is_common ? 0x1p24 : -1;

    *box = (struct ray_box){
        .origin = {spec->origin_x_m, spec->origin_y_m},
        .per_m = {cells_x, cells_y, 1, 1},
        .low = {-RAY_BOX_SLACK, -RAY_BOX_SLACK, (double)z.min - pad_z},
        .high = {spec->cols - 1 + RAY_BOX_SLACK, spec->rows - 1 + RAY_BOX_SLACK,
                 (double)z.max + pad_z},
        .reach = {reach, reach, 0x1p20 * (1 + size_z)},
        .last = {spec->cols - 2, spec->rows - 2},
        .root_cells = root_cells,
        .pad_cells = RAY_BOX_PAD * root_cells,
        .pad_z = RAY_BOX_PAD * (float)size_z + 1e-8f,
    };
    for (int i = 0; i < RAY_BOX_POWERS; i++)
        box->far[i] = ldexpf(1, 2 * i) + 2 * box->pad_cells;
}

#endif
