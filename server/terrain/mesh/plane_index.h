/*
 * A tree over points or segments in the plane: which of them may meet a segment or a triangle.
 * Private to terrain/.
 */
#ifndef KOTA_TERRAIN_PLANE_INDEX_H
#define KOTA_TERRAIN_PLANE_INDEX_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PLANE_ITEMS_MAX = 4096,
    PLANE_FANOUT = 8,
    PLANE_LEVELS = 4, /* 8^4 items */
    PLANE_NODES_MAX = 512 + 64 + 8 + 1
};

/* Bounds along x, y, x + y and x - y, so that a long diagonal segment has a thin box, too. */
struct plane_box {
    double low[4], high[4];
};

struct plane_index {
    uint32_t count, levels;       /* of items; of nodes, the leaves first */
    uint32_t first[PLANE_LEVELS]; /* where a level begins in nodes */
    struct plane_box nodes[PLANE_NODES_MAX];
    uint16_t live[PLANE_NODES_MAX]; /* items below that are found */
    uint16_t order[PLANE_ITEMS_MAX], place[PLANE_ITEMS_MAX];
    bool is_live[PLANE_ITEMS_MAX];
};

struct plane_box plane_box_of(const struct vec2 *points, uint32_t count);

/*
 * Builds the index of a closed ring: of its points, or of its edges (edge i begins at point i).
 * count is 1 to PLANE_ITEMS_MAX. All are live. O(n log n), no allocation.
 */
void plane_index_points(struct plane_index *index, const struct vec2 *points, uint32_t count);
void plane_index_edges(struct plane_index *index, const struct vec2 *points, uint32_t count);

/* Is the item to be found from now on? O(log n). */
void plane_index_set(struct plane_index *index, uint32_t item, bool is_live);

/* Live items near a box: begin, then next until it returns false. */
struct plane_walk {
    const struct plane_index *index;
    struct plane_box box;
    uint32_t at, end, top;
    struct {
        uint32_t level, node;
    } stack[PLANE_LEVELS * PLANE_FANOUT];
};

void plane_walk_begin(struct plane_walk *walk, const struct plane_index *index,
                      const struct plane_box *box);
bool plane_walk_next(struct plane_walk *walk, uint32_t *item);

#endif
