/*
 * Where water goes: each cell hands what falls on it to one of its eight neighbours, so that the
 * grid becomes a forest of river trees, rooted at the outlets.
 */
#ifndef KOTA_DEMO_DRAINAGE_H
#define KOTA_DEMO_DRAINAGE_H

#include "deploy/demo/grid.h"

enum { DRAINAGE_OUTLET = 8 }; /* a direction that leads nowhere */

/* Steps of the eight directions: the four straight ones first, then the diagonals. */
extern const int drainage_step_x[8];
extern const int drainage_step_y[8];

struct drainage {
    uint32_t cols, rows;
    uint8_t *receiver; /* [rows][cols] direction 0..7 or DRAINAGE_OUTLET */
    uint8_t *donors;   /* [rows][cols] scratch: how many neighbours drain into the cell */
    uint32_t *order;   /* [rows·cols] every cell once, each before its receiver */
    float *area;       /* [rows][cols] cells drained, itself included; exact up to 2^24 */
};

/* Room for grids of one size. ERR_NO_MEMORY. */
enum err_code drainage_create(struct drainage *drainage, uint32_t cols, uint32_t rows,
                              struct err *err);
void drainage_destroy(struct drainage *drainage);

/*
 * Raises the floor of every pit until it drains to the grid's edge or to a cell at or below
 * sea_level_m (-INFINITY for none), with a fall of at least slope·spacing towards it.
 *
 * No sample is lowered. Values are finite. One thread. ERR_NO_MEMORY: nothing was changed.
 * Cost O(n log n). Source: R. Barnes, C. Lehman, D. Mulla, "Priority-flood: an optimal
 * depression-filling and watershed-labeling algorithm", 2014 (algorithm 3, with epsilon).
 */
enum err_code drainage_fill(struct grid *grid, double sea_level_m, double slope, struct err *err);

/*
 * Receiver, order and area of every cell. Cells on the grid's edge, at or below the sea level, or
 * in a pit are outlets. The steepest way down is taken, where the length of a diagonal is drawn
 * again for each cell between 1 and 2 spacings: straight slopes then drain in their true direction
 * on average instead of along the eight directions of the grid.
 *
 * The result does not depend on `threads`. Cost O(n).
 * Source: J. Fairfield, P. Leymarie, "Drainage networks from grid digital elevation models", 1991
 * (Rho8); J. Braun, S. Willett, "A very efficient O(n) ... stream power equation", 2013.
 */
void drainage_route(struct drainage *drainage, const struct grid *grid, double sea_level_m,
                    uint32_t seed, uint32_t threads);

/* Index of the receiver of a cell that is no outlet. */
static inline size_t drainage_receiver(const struct drainage *drainage, size_t cell)
{
    uint8_t way = drainage->receiver[cell];

    return (size_t)((ptrdiff_t)cell + (ptrdiff_t)drainage_step_y[way] * (ptrdiff_t)drainage->cols +
                    drainage_step_x[way]);
}

/* Every cell once in order, each before its receiver, areas add up. False and a message if not. */
bool drainage_validate(const struct drainage *drainage, struct err *err);

#endif
