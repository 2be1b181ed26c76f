/*
 * The place of a point in the columns of a mesh (mesh_columns.h): its cell, and where in the cell.
 * Inside of the room only.
 */
#ifndef KOTA_TERRAIN_MESH_PLACE_H
#define KOTA_TERRAIN_MESH_PLACE_H

#include "terrain/mesh_data.h"

#define PLACE_INLINE __attribute__((always_inline)) static inline

/* A cell of the grid, and the point's place in it. */
struct place {
    const struct column_cell *cell;
    uint64_t x, y; /* of the cell: 0 up to 2^COLUMN_PLACE */
};

#define PLACE_FAR 0x1p62 /* beyond any grid */
#define UNIT_SHIFT (COLUMN_PLACE - 15)
#define PLACE_MASK ((1ull << COLUMN_PLACE) - 1)

/* The root's cell of a place in it; false outside of the grid. */
PLACE_INLINE bool place_at(const struct mesh *mesh, double dx, double dy, struct place *place)
{
    const struct mesh_columns *columns = &mesh->columns;

#ifdef __x86_64__
    /* what is no number, or too large, becomes the least integer */
    uint64_t x = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dx));
    uint64_t y = (uint64_t)_mm_cvttsd_si64(_mm_set_sd(dy));
#else
    if (!(fabs(dx) < PLACE_FAR && fabs(dy) < PLACE_FAR))
        return false;
    uint64_t x = (uint64_t)(int64_t)dx, y = (uint64_t)(int64_t)dy;
#endif

    /* what is cut off below 0 is in the border, where the tree is asked */
    if (x >= columns->side_limit || y >= columns->side_limit)
        return false;
    *place =
        (struct place){columns->cells + (y >> COLUMN_PLACE) * columns->side + (x >> COLUMN_PLACE),
                       x & PLACE_MASK, y & PLACE_MASK};
    return true;
}

/* The root's cell of a point; false outside of the grid. */
PLACE_INLINE bool place_begin(const struct mesh *mesh, double at_x, double at_y,
                              struct place *place)
{
    const struct mesh_columns *columns = &mesh->columns;

    return place_at(mesh, (at_x - columns->x_min) * columns->scale_x,
                    (at_y - columns->y_min) * columns->scale_y, place);
}

/* Into the grid of an inner cell. */
PLACE_INLINE struct place place_inside(const struct mesh *mesh, struct place place)
{
    uint64_t side = place.cell->count & ~COLUMN_INNER;
    uint64_t x = place.x * side, y = place.y * side;

    return (struct place){mesh->columns.cells + place.cell->first + (y >> COLUMN_PLACE) * side +
                              (x >> COLUMN_PLACE),
                          x & PLACE_MASK, y & PLACE_MASK};
}

/* How deep, nobody can foretell: a cell of the root is inner or empty, and most need no more. */
PLACE_INLINE void place_descend(const struct mesh *mesh, struct place *place)
{
    if (!(place->cell->count & COLUMN_INNER))
        return;
    *place = place_inside(mesh, *place);
    while (place->cell->count & COLUMN_INNER)
        *place = place_inside(mesh, *place);
}

#endif
