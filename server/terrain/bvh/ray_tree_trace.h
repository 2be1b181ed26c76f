/*
 * What a line tests on its way through a tree of boxes.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_TRACE_H
#define KOTA_TERRAIN_RAY_TREE_TRACE_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct ray_tree;
struct ray_tree_line;

struct ray_tree_box {
    uint32_t level;     /* 0: around the whole tree */
    struct box3 bounds; /* in the polygons' coordinates */
    bool is_entered;    /* what is in it was tested, too */
    uint32_t child;     /* as in its node */
};

/* In the order of the tests; counts go on when the arrays are full. */
struct ray_tree_trace {
    struct ray_tree_box *boxes;
    uint32_t box_capacity, box_count;
    uint32_t *polygons; /* those that float32 could not rule out; some may be there twice */
    uint32_t polygon_capacity, polygon_count;
};

/* ray_tree_ask for the nearest, and what it tests is added to the trace. With a reach, as
 * ray_tree_sweep has it: the boxes only, and the line's test adds polygons. */
void ray_tree_ask_traced(const struct ray_tree *tree, const struct ray_tree_line *line,
                         const double *reach, struct ray_tree_trace *trace);

/* For those who add to a trace by themselves. */
void ray_tree_trace_box(struct ray_tree_trace *trace, const struct ray_tree_box *box);
void ray_tree_trace_polygon(struct ray_tree_trace *trace, uint32_t polygon);

#endif
