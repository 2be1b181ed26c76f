/*
 * A walk that says what it does: the steps of walk_run (ray_tree_walk.h), of the level that runs
 * everywhere, with a list of the boxes. The kernels have none, so that a question pays nothing.
 */
#include "terrain/bvh/ray_tree_trace.h"

#include "terrain/bvh/ray_tree_walk.h"

void ray_tree_trace_box(struct ray_tree_trace *trace, const struct ray_tree_box *box)
{
    if (trace->box_count < trace->box_capacity)
        trace->boxes[trace->box_count] = *box;
    trace->box_count++;
}

void ray_tree_trace_polygon(struct ray_tree_trace *trace, uint32_t polygon)
{
    if (trace->polygon_count < trace->polygon_capacity)
        trace->polygons[trace->polygon_count] = polygon;
    trace->polygon_count++;
}

static void children_add(struct ray_tree_trace *trace, const struct ray_tree *tree,
                         const struct ray_tree_node *node, uint32_t level)
{
    for (int i = 0; i < WIDE; i++) {
        double low[3], high[3];

        if (!(node->side[0][0][i] <= node->side[0][1][i])) /* none */
            continue;
        for (int k = 0; k < 3; k++) {
            low[k] = tree->middle[k] + (double)node->side[k][0][i] / tree->scale;
            high[k] = tree->middle[k] + (double)node->side[k][1][i] / tree->scale;
        }
        ray_tree_trace_box(trace,
                           &(struct ray_tree_box){
                               .level = level,
                               .bounds = {{low[0], low[1], low[2]}, {high[0], high[1], high[2]}},
                               .child = node->child[i],
                           });
    }
}

/* Marks one of the boxes from `first` on as entered; its level. One without room: level 0. */
static uint32_t box_enter(struct ray_tree_trace *trace, uint32_t first, uint32_t child)
{
    uint32_t at = trace->box_count;

    at = at < trace->box_capacity ? at : trace->box_capacity;
    while (at > first)
        if (trace->boxes[--at].child == child) {
            trace->boxes[at].is_entered = true;
            return trace->boxes[at].level;
        }
    return 0;
}

static void block_trace(struct ray_tree_walk *w, const struct wide_walk *v, uint32_t child,
                        bool is_grown, struct ray_tree_trace *trace)
{
    const struct ray_tree_block *block = block_of(w, child);
    unsigned met = block_lanes_met(w, v, child, is_grown);

    for (unsigned mask = is_grown ? 0 : met; mask; mask &= mask - 1) {
        uint32_t polygon = block->polygon[__builtin_ctz(mask)];

        if (polygon != RAY_TREE_NONE)
            ray_tree_trace_polygon(trace, polygon & ~RAY_TREE_PART);
    }
    (void)block_put(w, block, met);
}

/* walk_run for the nearest. */
static void walk_trace(struct ray_tree_walk *w, bool is_grown, struct ray_tree_trace *trace,
                       uint32_t first)
{
    _Alignas(32) float near[WIDE];
    uint64_t stack[RAY_TREE_STACK], *top = stack, waiting = 0;
    struct wide_walk v;

    if (is_grown)
        wide_walk_set_grown(&v, w);
    else
        wide_walk_set(&v, w);
    for (;;) {
        uint32_t child = (uint32_t)waiting;
        uint32_t level = box_enter(trace, first, child);

        if (child & RAY_TREE_BLOCK) {
            block_trace(w, &v, child, is_grown, trace);
        } else {
            const struct ray_tree_node *node = &w->tree->nodes[child];
            unsigned mask = node_ask(w, &v, node, near, is_grown);

            children_add(trace, w->tree, node, level + 1);
            if (mask) {
                waiting = children_put(w->tree, node, near, mask, false, &top);
                continue;
            }
        }
        do {
            if (top == stack)
                return;
            waiting = *--top;
        } while (waiting > waiting_of(w->end, UINT32_MAX));
    }
}

void ray_tree_ask_traced(const struct ray_tree *tree, const struct ray_tree_line *line,
                         const double *reach, struct ray_tree_trace *trace)
{
    uint32_t first = trace->box_count;
    struct ray_tree_walk w;

    if (tree->node_count == 0)
        return;
    ray_tree_trace_box(trace, &(struct ray_tree_box){
                                  .bounds = {{tree->low[0], tree->low[1], tree->low[2]},
                                             {tree->high[0], tree->high[1], tree->high[2]}},
                              });
    if (reach ? ray_tree_begin_grown(tree, line, reach, &w) : ray_tree_begin(tree, line, &w))
        walk_trace(&w, reach, trace, first);
}
