/*
 * Simple polygons in the plane: are they convex, and which convex pieces make them up.
 */
#ifndef KOTA_TERRAIN_CONVEX_SPLIT_H
#define KOTA_TERRAIN_CONVEX_SPLIT_H

#include "terrain/mesh/plane_index.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SPLIT_CORNERS_MAX = PLANE_ITEMS_MAX,
    SPLIT_PIECE_MAX = 64, /* corners of a piece that triangles are joined to */
};

/*
 * The work of one split, and its result: 700 KB, to be used again. A half-edge h = 3 t + i runs
 * from corner i of triangle t to the next one.
 */
struct split {
    uint32_t triangle_count;
    uint32_t corners[3 * SPLIT_CORNERS_MAX]; /* of triangles, later of pieces one after another */
    uint32_t counts[SPLIT_CORNERS_MAX];      /* corners of each piece */
    uint32_t twins[3 * SPLIT_CORNERS_MAX];   /* the same diagonal seen from its other side */
    uint32_t next[3 * SPLIT_CORNERS_MAX], prev[3 * SPLIT_CORNERS_MAX];
    uint32_t origins[3 * SPLIT_CORNERS_MAX];
    uint32_t queue[3 * SPLIT_CORNERS_MAX];
    uint32_t half[SPLIT_CORNERS_MAX], turn[SPLIT_CORNERS_MAX];
    struct plane_index index;
};

/*
 * True when no point lies more than slack outside of any edge's line, counter-clockwise. O(n) where
 * the corners are sharper than rounding or one is bent inward; else O(n) for each edge of what is
 * near to its line, and n / 64 more.
 */
bool ring_is_convex(const struct vec2 *points, uint32_t count, double slack);

/*
 * True when two edges cross by more than slack; edges that only touch (a bridge to a hole) do not.
 * count is at most SPLIT_CORNERS_MAX. O(n log n + k), k pairs of edges that lie close together.
 */
bool ring_crosses_itself(struct split *split, const struct vec2 *points, uint32_t count,
                         double slack);

/*
 * Ears of a simple counter-clockwise polygon: at most count - 2 triangles of indices of points, in
 * split->corners. Corners without area are cut off without a triangle. The number of triangles; 0
 * when no ear is found: the polygon is not simple. O(n log n + k), k corners that lie close to
 * ears; bounded. Source: G. H. Meisters, Polygons have ears, 1975.
 */
uint32_t ring_triangulate(struct split *split, const struct vec2 *points, uint32_t count,
                          double slack);

/* Says whether the polygon of these corners may be one piece. */
struct convex_judge {
    bool (*is_fit)(const void *context, const uint32_t *corners, uint32_t count);
    const void *context;
};

/*
 * Joins the triangles over their diagonals while the judge lets the union be one piece, of at most
 * SPLIT_PIECE_MAX corners; so at most four times as many pieces are left as are needed. The number
 * of pieces, in split->counts and corners. O(n).
 * Source: S. Hertel, K. Mehlhorn, Fast triangulation of simple polygons, 1983.
 */
uint32_t pieces_join(struct split *split, const struct convex_judge *judge);

#endif
