/*
 * The quadtree over convex pieces (Q, "The QOTA Data Structure").
 */
#ifndef KOTA_TERRAIN_QUADTREE_H
#define KOTA_TERRAIN_QUADTREE_H

#include "terrain/mesh/convex_parts.h"

struct quadtree {
    struct mesh_node *nodes; /* breadth first, see mesh_data.h */
    size_t node_count, node_capacity;
    uint32_t *refs;
    size_t ref_count, ref_capacity;
    uint32_t depth; /* of the deepest leaf; a root that is a leaf has 0 */
    double tests;   /* sum over the leaves of area times polygons */
};

/*
 * Builds the tree. Nodes with more than max_polygons are split until max_depth; chosen cuts also
 * split smaller ones where that is worth its memory. Coincident polygons end at max_depth, and the
 * lists together have at most QUADTREE_REFS_PER_POLYGON refs a polygon and refs_free more: then the
 * largest nodes are split and the smaller ones stay leaves.
 *
 * ERR_NO_MEMORY, ERR_TOO_LARGE (more nodes than an index holds), or the error of the pace: *out is
 * empty. Cost O(polygons · depth).
 */
enum err_code quadtree_build(const struct convex_parts *set, uint32_t max_polygons,
                             uint32_t max_depth, enum mesh_cuts cuts, size_t refs_free,
                             struct pace *pace, struct quadtree *out, struct err *err);

void quadtree_free(struct quadtree *tree);

enum {
    QUADTREE_REFS_PER_POLYGON = 32,
    QUADTREE_REFS_FREE = 1 << 12, /* of a whole mesh */
    QUADTREE_CANDIDATES_MAX = 64
};

/* ---- quadtree_cuts.c, for quadtree.c -------------------------------------------------------- */

/* A node that may be split: polygons list[i] reach into its box. */
struct quadtree_task {
    const struct convex_parts *set;
    struct box2 box;
    const uint32_t *list;
    uint32_t count;
};

/*
 * The quadrants of each polygon when the node is cut there: bit q of quadrants[i] says that polygon
 * list[i] reaches into quadrant q. Returns the expected tests: sum over the quadrants of area times
 * polygons.
 */
double quadtree_part(const struct quadtree_task *task, struct vec2 cut, uint8_t *quadrants);

/*
 * The cut with the least expected tests among the middle and some through vertices, and its
 * quadrants. At most QUADTREE_CANDIDATES_MAX polygons.
 */
struct vec2 quadtree_cut(const struct quadtree_task *task, struct vec2 middle, double *tests,
                         uint8_t *quadrants);

#endif
