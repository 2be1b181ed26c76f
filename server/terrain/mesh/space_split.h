/*
 * Rings in space that are not flat and cross themselves along their mean normal: triangles between
 * their corners. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_SPACE_SPLIT_H
#define KOTA_TERRAIN_SPACE_SPLIT_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPACE_CORNERS_MAX = 64 }; /* the time grows with the third power */

/* Do two edges of the ring cross within a distance of one another? O(n²). */
bool space_ring_meets_itself(const struct vec3 *points, uint32_t count, double within);

/*
 * The count - 2 triangles of least area that span a ring of at most SPACE_CORNERS_MAX corners,
 * three indices of points each. O(n³). Source: G. Barequet, M. Sharir, Filling gaps in the boundary
 * of a polyhedron, 1995.
 */
void space_triangulate(const struct vec3 *points, uint32_t count, uint32_t *corners);

#endif
