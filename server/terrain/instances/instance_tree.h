/*
 * A tree of boxes in which a line, or a box that moves along it, finds those that it meets.
 */
#ifndef KOTA_TERRAIN_INSTANCE_TREE_H
#define KOTA_TERRAIN_INSTANCE_TREE_H

#include "base/err.h"
#include "terrain/bvh/ray_tree_trace.h"
#include "terrain/vec.h"

#include <stddef.h>
#include <stdint.h>

struct instance_node {
    float min[3], max[3];  /* rounded outward */
    uint32_t first, count; /* items in the order; count 0: children are first and first + 1 */
};

struct instance_tree {
    struct instance_node *nodes; /* the root first */
    uint32_t *order;             /* [count] */
    size_t node_count, count;
};

/* Of finite boxes[count], count > 0. Depends on nothing else. ERR_NO_MEMORY. O(n log n). */
enum err_code instance_tree_make(const struct box3 *boxes, size_t count, struct instance_tree *out,
                                 struct err *err);
void instance_tree_free(struct instance_tree *tree);
size_t instance_tree_bytes(const struct instance_tree *tree);

/* Is each box in all nodes above it, and each item there once? */
bool instance_tree_validate(const struct instance_tree *tree, const struct box3 *boxes,
                            struct err *err);

/* from + t along, t from low to high, is visited; half a box around it is `reach`. */
struct instance_line {
    struct vec3 from, along, reach;
    double low, high; /* may be infinite; a visit may lessen high: the rest is left out then */
    void (*visit)(struct instance_line *line, uint32_t item);
    struct ray_tree_trace *trace; /* gets the nodes' boxes; NULL: none */
};

/* Visits every item whose box the line meets, and some that it all but meets, nearer boxes first.
 */
void instance_tree_ask(const struct instance_tree *tree, struct instance_line *line);

#endif
