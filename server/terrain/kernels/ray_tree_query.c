/*
 * Lines through the tree of ray_tree.h, one or many. Compiled once per instruction set (kernels.h);
 * the steps are those of ray_tree_walk.h.
 *
 * Many lines take slots. A turn is one node, or one block, or the exact tests of one block; at its
 * end the memory of the line's next turn is prefetched, and the other lines have their slots while
 * it is loaded. Each line does the same steps as without the others, in the same order.
 *
 * Eight lanes are one vector of AVX2, as wide as a node: a wider vector has nothing to hold.
 */
#include "terrain/kernels/kernels.h"

#include "terrain/bvh/ray_tree_walk.h"
#ifdef __AVX2__
#include "terrain/bvh/ray_tree_begin.h"
#define LINE_BEGIN ray_tree_begin_axes
#else
#define LINE_BEGIN ray_tree_begin
#endif

void KERNEL(tree_ray)(const struct ray_tree *tree, const struct ray_tree_line *line)
{
    struct ray_tree_walk w;

    if (!LINE_BEGIN(tree, line, &w))
        return;
    if (line->is_any)
        walk_run(&w, true, false);
    else
        walk_run(&w, false, false);
}

void KERNEL(tree_sweep)(const struct ray_tree *tree, const struct ray_tree_line *line,
                        const double reach[3])
{
    struct ray_tree_walk w;

    if (!ray_tree_begin_grown(tree, line, reach, &w))
        return;
    if (line->is_any)
        walk_run(&w, true, true);
    else
        walk_run(&w, false, true);
}

/* ---- many lines ----------------------------------------------------------------------------- */

enum { SLOTS = 12, LINE = 64 };

struct slot {
    struct ray_tree_walk walk;
    uint64_t waiting, *top;
    unsigned met; /* lanes of the block that waits, for the exact test */
    uint64_t stack[RAY_TREE_STACK];
};

ALWAYS_INLINE void fetch_bytes(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const char *)at + i);
}

ALWAYS_INLINE void next_fetch(const struct slot *t)
{
    uint32_t child = (uint32_t)t->waiting;

    if (child & RAY_TREE_BLOCK)
        fetch_bytes(block_of(&t->walk, child), sizeof(struct ray_tree_block));
    else
        fetch_bytes(&t->walk.tree->nodes[child], sizeof(struct ray_tree_node));
}

/* The next waiting child that may still count; false: there is none. */
ALWAYS_INLINE bool next_take(struct slot *t)
{
    do {
        if (t->top == t->stack)
            return false;
        t->waiting = *--t->top;
    } while (t->waiting > waiting_of(t->walk.end, UINT32_MAX));
    next_fetch(t);
    return true;
}

ALWAYS_INLINE bool node_step(struct slot *t, const struct wide_walk *v, bool is_any)
{
    _Alignas(32) float near[WIDE];
    const struct ray_tree_node *node = &t->walk.tree->nodes[(uint32_t)t->waiting];
    unsigned mask = node_ask(&t->walk, v, node, near, false);

    if (mask == 0)
        return next_take(t);
    t->waiting = children_put(t->walk.tree, node, near, mask, is_any, &t->top);
    next_fetch(t);
    return true;
}

ALWAYS_INLINE bool block_step(struct slot *t, const struct wide_walk *v)
{
    const struct ray_tree_line *line = t->walk.line;
    uint32_t child = (uint32_t)t->waiting;
    const struct ray_tree_block *block = block_of(&t->walk, child);

    t->met = block_lanes_met(&t->walk, v, child, false);
    if (t->met == 0)
        return next_take(t);
    for (unsigned mask = t->met; mask; mask &= mask - 1) {
        unsigned lane = (unsigned)__builtin_ctz(mask);

        if (block->polygon[lane] != RAY_TREE_NONE)
            line->fetch(line->asker, block, lane);
    }
    return true;
}

ALWAYS_INLINE bool test_step(struct slot *t)
{
    unsigned mask = t->met;

    t->met = 0;
    return block_put(&t->walk, block_of(&t->walk, (uint32_t)t->waiting), mask) && next_take(t);
}

/* False: the line is through. */
ALWAYS_INLINE bool slot_step(struct slot *t, bool is_any)
{
    struct wide_walk v;

    if (t->met)
        return test_step(t);
    wide_walk_set(&v, &t->walk);
    return (uint32_t)t->waiting & RAY_TREE_BLOCK ? block_step(t, &v) : node_step(t, &v, is_any);
}

/* The next line that meets the tree; false: there is none. */
ALWAYS_INLINE bool slot_begin(struct slot *t, const struct ray_tree *tree,
                              const struct ray_tree_line *lines, size_t count, size_t *begun)
{
    t->waiting = 0;
    t->met = 0;
    t->top = t->stack;
    while (*begun < count)
        if (LINE_BEGIN(tree, &lines[(*begun)++], &t->walk))
            return true;
    return false;
}

ALWAYS_INLINE void slots_run(const struct ray_tree *tree, const struct ray_tree_line *lines,
                             size_t count, bool is_any)
{
    struct slot slots[SLOTS];
    struct slot *walking[SLOTS];
    size_t begun = 0, left = 0;

    while (left < SLOTS && slot_begin(&slots[left], tree, lines, count, &begun)) {
        walking[left] = &slots[left];
        left++;
    }
    while (left > 0)
        for (size_t i = 0; i < left;)
            if (slot_step(walking[i], is_any) || slot_begin(walking[i], tree, lines, count, &begun))
                i++;
            else
                walking[i] = walking[--left];
}

void KERNEL(tree_rays)(const struct ray_tree *tree, const struct ray_tree_line *lines, size_t count)
{
    if (count > 0 && lines->is_any)
        slots_run(tree, lines, count, true);
    else
        slots_run(tree, lines, count, false);
}
