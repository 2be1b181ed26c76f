/*
 * Polygons that lie at one place, corner for corner. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_EQUAL_POLYGONS_H
#define KOTA_TERRAIN_EQUAL_POLYGONS_H

#include "terrain/bvh/ray_tree.h"

/*
 * For each polygon first .. count - 1 the first of them with the same corners in the same order,
 * bit for bit, and the same record: to any question both give the same bits.
 *
 * same  [count] out, from `first` on; polygon i is the first of its kind where same[i] is i
 *
 * The number of those that are not the first of their kind, or SIZE_MAX: no memory. O(corners).
 */
size_t equal_polygons_find(const struct ray_tree_polygons *polygons, size_t first, uint32_t *same);

/* Are these two equal? */
bool equal_polygons_are(const struct ray_tree_polygons *polygons, size_t a, size_t b);

#endif
