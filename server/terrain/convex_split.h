/*
 * Simple polygons in the plane: are they convex, and which convex pieces make them up.
 */
#ifndef KOTA_TERRAIN_CONVEX_SPLIT_H
#define KOTA_TERRAIN_CONVEX_SPLIT_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* True when no point lies more than slack outside of any edge's line, counter-clockwise. O(n²). */
bool ring_is_convex(const struct vec2 *points, uint32_t count, double slack);

/* True when two edges cross; edges that only touch (a bridge to a hole) do not. O(n²). */
bool ring_crosses_itself(const struct vec2 *points, uint32_t count);

/*
 * Ears of a simple counter-clockwise polygon: at most count - 2 triangles of indices of points.
 * Corners without area are cut off without a triangle. scratch[count].
 * The number of triangles; 0 when no ear is found: the polygon is not simple. O(n²), bounded.
 * Source: G. H. Meisters, Polygons have ears, 1975.
 */
uint32_t ring_triangulate(const struct vec2 *points, uint32_t count, double slack,
                          uint32_t (*triangles)[3], uint32_t *scratch);

/* Says whether the polygon of these corners may be one piece. */
struct convex_judge {
    bool (*is_fit)(const void *context, const uint32_t *corners, uint32_t count);
    const void *context;
};

/*
 * Joins triangles over their diagonals while the judge lets the union be one piece; so at most
 * four times as many pieces are left as are needed. Pieces go one after another into
 * corners[3 * triangle_count], their sizes into counts[triangle_count]; both hold the triangles
 * first. The number of pieces.
 * Source: S. Hertel, K. Mehlhorn, Fast triangulation of simple polygons, 1983.
 */
uint32_t pieces_join(uint32_t *corners, uint32_t *counts, uint32_t triangle_count,
                     const struct convex_judge *judge);

#endif
