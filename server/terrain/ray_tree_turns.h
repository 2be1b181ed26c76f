/*
 * Many lines through the tree of ray_tree.h, once a level as ray_tree_walk.h, whose steps these
 * are: whoever includes this defines RAY_TREE_TURNS, the function's name, too.
 *
 * Lines take turns. A turn is one node, or one block, or the exact tests of one block; at its end
 * the memory of the line's next turn is asked for, so that it comes while the others have theirs.
 * Each line does what it would do alone, in the same order.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_TURNS_H
#define KOTA_TERRAIN_RAY_TREE_TURNS_H

#include "terrain/ray_tree_walk.h"

#ifndef RAY_TREE_BEGIN
#define RAY_TREE_BEGIN ray_tree_begin
#endif

enum { TURNS = 12, LINE = 64 };

struct turn {
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

ALWAYS_INLINE void next_fetch(const struct turn *t)
{
    uint32_t child = (uint32_t)t->waiting;

    if (child & RAY_TREE_BLOCK)
        fetch_bytes(block_of(&t->walk, child), sizeof(struct ray_tree_block));
    else
        fetch_bytes(&t->walk.tree->nodes[child], sizeof(struct ray_tree_node));
}

/* What waits and may still count; false: nothing. */
ALWAYS_INLINE bool next_take(struct turn *t)
{
    do {
        if (t->top == t->stack)
            return false;
        t->waiting = *--t->top;
    } while (t->waiting > waiting_of(t->walk.end, UINT32_MAX));
    next_fetch(t);
    return true;
}

ALWAYS_INLINE bool node_turn(struct turn *t, const struct wide_walk *v, bool is_any)
{
    _Alignas(32) float near[WIDE];
    const struct ray_tree_node *node = &t->walk.tree->nodes[(uint32_t)t->waiting];
    unsigned mask = node_ask(&t->walk, v, node, near);

    if (mask == 0)
        return next_take(t);
    t->waiting = children_put(t->walk.tree, node, near, mask, is_any, &t->top);
    next_fetch(t);
    return true;
}

ALWAYS_INLINE bool block_turn(struct turn *t, const struct wide_walk *v)
{
    const struct ray_tree_line *line = t->walk.line;
    uint32_t child = (uint32_t)t->waiting;
    const struct ray_tree_block *block = block_of(&t->walk, child);

    t->met = block_lanes_met(&t->walk, v, child);
    if (t->met == 0)
        return next_take(t);
    for (unsigned mask = t->met; mask; mask &= mask - 1) {
        unsigned lane = (unsigned)__builtin_ctz(mask);

        if (block->polygon[lane] != RAY_TREE_NONE)
            line->fetch(line->asker, block, lane);
    }
    return true;
}

ALWAYS_INLINE bool test_turn(struct turn *t)
{
    unsigned mask = t->met;

    t->met = 0;
    return block_put(&t->walk, block_of(&t->walk, (uint32_t)t->waiting), mask) && next_take(t);
}

/* False: the line is through. */
ALWAYS_INLINE bool turn_take(struct turn *t, bool is_any)
{
    struct wide_walk v;

    if (t->met)
        return test_turn(t);
    wide_walk_set(&v, &t->walk);
    return (uint32_t)t->waiting & RAY_TREE_BLOCK ? block_turn(t, &v) : node_turn(t, &v, is_any);
}

/* The next line that meets the tree; false: there is none. */
ALWAYS_INLINE bool turn_begin(struct turn *t, const struct ray_tree *tree,
                              const struct ray_tree_line *lines, size_t count, size_t *begun)
{
    t->waiting = 0;
    t->met = 0;
    t->top = t->stack;
    while (*begun < count)
        if (RAY_TREE_BEGIN(tree, &lines[(*begun)++], &t->walk))
            return true;
    return false;
}

ALWAYS_INLINE void turns_run(const struct ray_tree *tree, const struct ray_tree_line *lines,
                             size_t count, bool is_any)
{
    struct turn turns[TURNS];
    struct turn *walking[TURNS];
    size_t begun = 0, left = 0;

    while (left < TURNS && turn_begin(&turns[left], tree, lines, count, &begun)) {
        walking[left] = &turns[left];
        left++;
    }
    while (left > 0)
        for (size_t i = 0; i < left;)
            if (turn_take(walking[i], is_any) || turn_begin(walking[i], tree, lines, count, &begun))
                i++;
            else
                walking[i] = walking[--left];
}

void RAY_TREE_TURNS(const struct ray_tree *tree, const struct ray_tree_line *lines, size_t count)
{
    if (count > 0 && lines->is_any)
        turns_run(tree, lines, count, true);
    else
        turns_run(tree, lines, count, false);
}

#endif
