/*
 * Min/max pyramid with sixteen children a node, as rays descend it. A node is a square of 4×4
 * children, whose bounds lie side by side, so that one pass of vector arithmetic tests all of them.
 *
 * Bounds are bytes: a child's heights lie within base + min·step .. base + max·step, rounded
 * outward. Sixteen bounds take 40 bytes in place of 128, for boxes that are a few steps of 1/255 of
 * their parent's range higher.
 */
#ifndef KOTA_TERRAIN_MINMAX16_H
#define KOTA_TERRAIN_MINMAX16_H

#include "base/err.h"
#include "terrain/bounds.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MINMAX16_SHIFT = 2, /* a node is 4 children wide */
    MINMAX16_CHILDREN = 16,
    MINMAX16_LEAF_CELLS = 4, /* side of the smallest child in cells */
    MINMAX16_TILE_LEVELS = 3,
    /*
     * The nodes of a tile, a heap: node n has the children 16·n + 1 + (4·row + column). The root's
     * are 64 cells wide, those of the last 256 nodes, from 17 on, 4 cells.
     */
    MINMAX16_TILE_NODES = 1 + 16 + 256,
    MINMAX16_TILE_LAST_LEVEL = 17
};

struct minmax16_node {
    float base_m, step_m; /* step_m is 0 and base_m is infinite when there is no data at all, so
                             that no ray meets a child; else > 0 */
    uint8_t min[MINMAX16_CHILDREN],
        max[MINMAX16_CHILDREN]; /* 4·row + column; without data 255 and 0 */
};

/* Without data. */
void minmax16_clear(struct minmax16_node *node);

/* From the bounds of its children in the same order. */
void minmax16_build(struct minmax16_node *node, const struct bounds *children);

/* The bounds of a node: its children's least bound exactly, the greatest rounded outward. */
static inline struct bounds minmax16_bounds(const struct minmax16_node *node)
{
    return node->step_m > 0 ? (struct bounds){node->base_m, node->base_m + 255 * node->step_m}
                            : BOUNDS_EMPTY;
}

/* Does child i hold the bounds, and no more than its byte allows? */
bool minmax16_child_holds(const struct minmax16_node *node, uint32_t i, struct bounds bounds);

#endif
