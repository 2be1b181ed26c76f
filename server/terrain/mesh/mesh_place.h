/*
 * The place of a point in the columns of a mesh (floor_grid.h): its cell, and where in the cell.
 * Private to terrain/.
 */
#ifndef KOTA_TERRAIN_MESH_PLACE_H
#define KOTA_TERRAIN_MESH_PLACE_H

#include "terrain/mesh/mesh_data.h"

#define PLACE_INLINE __attribute__((always_inline)) static inline

/* A cell of the grid, and the point's place in it. */
struct place {
    const struct column_cell *cell;
    uint64_t x, y; /* of the cell: 0 up to 2^COLUMN_PLACE */
};

#define UNIT_SHIFT (COLUMN_PLACE - 15)
#define PLACE_MASK ((1ull << COLUMN_PLACE) - 1)

/* The root's cell of a place in it; false outside of the grid. */
PLACE_INLINE bool place_at(const struct mesh *mesh, double dx, double dy, struct place *place)
{
    const struct floor_grid *grid = &mesh->grid;

    /* NaN and numbers that are too large become the least integer */
    uint64_t x = (uint64_t)f64_truncated(dx), y = (uint64_t)f64_truncated(dy);

    /* places that are truncated from below 0 are in the border, which the tree answers */
    if (x >= grid->side_limit || y >= grid->side_limit)
        return false;
    *place = (struct place){grid->cells + (y >> COLUMN_PLACE) * grid->side + (x >> COLUMN_PLACE),
                            x & PLACE_MASK, y & PLACE_MASK};
    return true;
}

/* The root's cell of a point; false outside of the grid. */
PLACE_INLINE bool place_begin(const struct mesh *mesh, double at_x, double at_y,
                              struct place *place)
{
    const struct floor_grid *grid = &mesh->grid;

    return place_at(mesh, (at_x - grid->x_min) * grid->scale_x,
                    (at_y - grid->y_min) * grid->scale_y, place);
}

/* Into the grid of an inner cell. */
PLACE_INLINE struct place place_inside(const struct mesh *mesh, struct place place)
{
    uint64_t side = place.cell->count & ~COLUMN_INNER;
    uint64_t x = place.x * side, y = place.y * side;

    return (struct place){mesh->grid.cells + place.cell->first + (y >> COLUMN_PLACE) * side +
                              (x >> COLUMN_PLACE),
                          x & PLACE_MASK, y & PLACE_MASK};
}

/* The depth is not predictable. A cell of the root is inner or empty, and most need one step. */
PLACE_INLINE void place_descend(const struct mesh *mesh, struct place *place)
{
    if (!(place->cell->count & COLUMN_INNER))
        return;
    *place = place_inside(mesh, *place);
    while (place->cell->count & COLUMN_INNER)
        *place = place_inside(mesh, *place);
}

#endif
