/*
 * A tree of boxes in space: which of many boxes a line may meet. Knows nothing of what is in the
 * boxes. Inside of the room only.
 */
#ifndef KOTA_TERRAIN_BOX_TREE_H
#define KOTA_TERRAIN_BOX_TREE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOX_TREE_LEAF = 4,   /* items of a leaf, at most */
    BOX_TREE_DEPTH = 72, /* no leaf is deeper */
};

/* A box of float32: whoever makes it rounds outward. */
struct box_bounds {
    float min[3], max[3];
};

struct box_node {
    struct box_bounds box;
    uint32_t first; /* inner: the first of its two children; leaf: the first of its items */
    uint32_t count; /* of items; 0: inner */
};

struct box_tree {
    struct box_node *nodes; /* the root first; children stand together, behind their parent */
    uint32_t *items;        /* indices of boxes, each once */
    size_t node_count, item_count;
    uint32_t depth; /* of the deepest leaf; 0: the root is one */
};

/*
 * Builds a tree over boxes[count], count from 1 to 2^31 - 1; none has a NaN. The same boxes give
 * the same tree. ERR_NO_MEMORY: *out is empty then. About 0.3 µs a box; however the boxes lie,
 * O(count) for each of BOX_TREE_DEPTH levels.
 */
enum err_code box_tree_build(const struct box_bounds *boxes, size_t count, struct box_tree *out,
                             struct err *err);
void box_tree_free(struct box_tree *tree);
size_t box_tree_bytes(const struct box_tree *tree);

/* Polygons that a random line looks at in leaves, more or less: by the leaves' surfaces. */
double box_tree_tests(const struct box_tree *tree);

/* Recomputes each box and counts each item. False and a message. */
bool box_tree_validate(const struct box_tree *tree, const struct box_bounds *boxes, size_t count,
                       struct err *err);

#endif
