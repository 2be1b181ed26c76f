/*
 * Points in a hash grid: which is near? For the making of shells.
 */
#ifndef KOTA_SAND_SPHERE_GRID_H
#define KOTA_SAND_SPHERE_GRID_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct sphere_grid {
    double cell_m;
    uint32_t count, room, buckets; /* buckets: a power of two, 0 when empty */
    struct vec3 *centres;          /* [count] in the order of adding */
    uint32_t *next, *first;        /* chains: [room], [buckets]; UINT32_MAX ends one */
};

void sphere_grid_init(struct sphere_grid *grid, double cell_m); /* allocates nothing */
void sphere_grid_free(struct sphere_grid *grid);

/* False without memory: nothing is added then. */
bool sphere_grid_add(struct sphere_grid *grid, struct vec3 centre);

/* The distance to the nearest point if it is below `within_m`, which is at most cell_m; else that.
 */
double sphere_grid_nearest(const struct sphere_grid *grid, struct vec3 at, double within_m);

#endif
