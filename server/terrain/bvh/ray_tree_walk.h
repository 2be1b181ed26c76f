/*
 * The walk of ray_tree.h, for kernels of each level. Eight lanes are one vector of AVX2, or two of
 * SSE2 or NEON.
 *
 * Levels round differently, and it does not show. A polygon that the line passes is never left out,
 * so the nearest is the same; and where any will do, children are taken in the order of their
 * lanes, so that the first that is found is the same, too.
 *
 * A waiting child is one number: the bits of u above, the child below; numbers from 0 up are in the
 * order of their bits, so a comparison of integers sorts.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_WALK_H
#define KOTA_TERRAIN_RAY_TREE_WALK_H

#include "terrain/bvh/ray_tree_levels.h"

#include "terrain/kernels/lanes.h"

#include <math.h>
#include <string.h>

#ifndef RAY_TREE_TEST
#define RAY_TREE_TEST(line, block, lane, end) (line)->test((line)->asker, block, lane, end)
#endif

enum { WIDE = RAY_TREE_WIDE };

/* The walk's numbers, one a lane. is_grown, a constant of each use: for ray_tree_sweep. */
struct wide_walk {
    f32x8 inv[3], shift[3];
    f32x8 grown_near[3], grown_far[3]; /* shift of the sides of grown boxes */
    f32x8 ox, oy, oz, shear_x, shear_y, inv_z;
};

ALWAYS_INLINE void wide_walk_set(struct wide_walk *v, const struct ray_tree_walk *w)
{
    for (int i = 0; i < 3; i++) {
        v->inv[i] = f32x8_all(w->inv[i]);
        v->shift[i] = f32x8_all(w->shift[i]);
    }
    v->ox = f32x8_all(w->o[w->kx]);
    v->oy = f32x8_all(w->o[w->ky]);
    v->oz = f32x8_all(w->o[w->kz]);
    v->shear_x = f32x8_all(w->shear_x);
    v->shear_y = f32x8_all(w->shear_y);
    v->inv_z = f32x8_all(w->inv_z);
}

ALWAYS_INLINE void wide_walk_set_grown(struct wide_walk *v, const struct ray_tree_walk *w)
{
    for (int i = 0; i < 3; i++) {
        v->inv[i] = f32x8_all(w->inv[i]);
        v->grown_near[i] = f32x8_all(w->shift[i] + w->grown[i]);
        v->grown_far[i] = f32x8_all(w->shift[i] - w->grown[i]);
    }
}

/* Which children the line meets; near: u where it enters each of them. */
ALWAYS_INLINE unsigned node_ask(const struct ray_tree_walk *w, const struct wide_walk *v,
                                const struct ray_tree_node *node, float near[WIDE], bool is_grown)
{
    const f32x8 *in = is_grown ? v->grown_near : v->shift;
    const f32x8 *out = is_grown ? v->grown_far : v->shift;

    f32x8 enter = f32x8_all(0), leave = f32x8_all(w->end);

#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        const float(*side)[WIDE] = node->side[i];
        uint32_t s = w->near_side[i];

        enter = f32x8_max(f32x8_fms(f32x8_load(side[s]), v->inv[i], in[i]), enter);
        leave = f32x8_min(f32x8_fms(f32x8_load(side[s ^ 1]), v->inv[i], out[i]), leave);
    }
    f32x8_store(near, enter);
    return i32x8_signs(f32x8_le(enter, leave));
}

struct corner_lanes {
    f32x8 x, y, z;
};

/* Where a block is, seen from the line's origin, in the order of the line's axes. */
struct block_lanes {
    f32x8 x, y, z, step;
};

ALWAYS_INLINE struct block_lanes block_see(const struct ray_tree_walk *w, const struct wide_walk *v,
                                           const struct ray_tree_block *block)
{
    return (struct block_lanes){f32x8_all(block->base[w->kx]) - v->ox,
                                f32x8_all(block->base[w->ky]) - v->oy,
                                f32x8_all(block->base[w->kz]) - v->oz, f32x8_all(block->step)};
}

/* Corners as the line sees them: it is the axis x = y = 0. */
ALWAYS_INLINE struct corner_lanes corner_see(const struct ray_tree_walk *w,
                                             const struct wide_walk *v, const struct block_lanes *b,
                                             const uint16_t at[3][WIDE])
{
    struct corner_lanes c;

    c.z = f32x8_fma(f32x8_of_shorts(at[w->kz]), b->step, b->z);
    c.x = f32x8_fma(f32x8_of_shorts(at[w->kx]), b->step, b->x);
    c.y = f32x8_fma(f32x8_of_shorts(at[w->ky]), b->step, b->y);
    c.x = f32x8_fnma(v->shear_x, c.z, c.x);
    c.y = f32x8_fnma(v->shear_y, c.z, c.y);
    return c;
}

ALWAYS_INLINE f32x8 turn_of(struct corner_lanes a, struct corner_lanes b)
{
    return f32x8_fms(a.x, b.y, a.y * b.x);
}

ALWAYS_INLINE f32x8 corner_extent(struct corner_lanes a)
{
    return f32x8_max(f32x8_abs(a.x), f32x8_abs(a.y));
}

/* Which triangles the line may pass within rounding, between its ends. */
ALWAYS_INLINE unsigned block_ask(const struct ray_tree_walk *w, const struct wide_walk *v,
                                 const struct ray_tree_block *block)
{
    struct block_lanes seen = block_see(w, v, block);
    struct corner_lanes a = corner_see(w, v, &seen, block->at[0]);
    struct corner_lanes b = corner_see(w, v, &seen, block->at[1]);
    struct corner_lanes c = corner_see(w, v, &seen, block->at[2]);
    float off = w->tree->turn_slack + 4 * block->step;
    f32x8 ab = turn_of(a, b), bc = turn_of(b, c), ca = turn_of(c, a);
    f32x8 least = f32x8_min(f32x8_min(ab, bc), ca), most = f32x8_max(f32x8_max(ab, bc), ca);
    f32x8 reach = f32x8_max(f32x8_max(corner_extent(a), corner_extent(b)), corner_extent(c));
    f32x8 slack = (reach + f32x8_all(off)) * f32x8_all(off);
    f32x8 ua = a.z * v->inv_z, ub = b.z * v->inv_z;
    f32x8 uc = c.z * v->inv_z;
    unsigned mask = i32x8_signs(f32x8_le(most, slack));

    mask |= i32x8_signs(f32x8_le(f32x8_all(0) - slack, least));
    mask &= i32x8_signs(
        f32x8_le(f32x8_min(f32x8_min(ua, ub), uc), f32x8_all(w->end + 2 * block->step)));
    return mask & i32x8_signs(f32x8_le(f32x8_all(-w->tree->end_slack - 2 * block->step),
                                       f32x8_max(f32x8_max(ua, ub), uc)));
}

/* Which triangles have a box that the line passes, grown, between its ends. */
ALWAYS_INLINE unsigned block_ask_grown(const struct ray_tree_walk *w, const struct wide_walk *v,
                                       const struct ray_tree_block *block)
{
    f32x8 enter = f32x8_all(0), leave = f32x8_all(w->end), step = f32x8_all(block->step);

    for (int i = 0; i < 3; i++) {
        f32x8 a = f32x8_of_shorts(block->at[0][i]), b = f32x8_of_shorts(block->at[1][i]);
        f32x8 c = f32x8_of_shorts(block->at[2][i]), base = f32x8_all(block->base[i]);
        /* a step is twice what a corner is off */
        f32x8 low = f32x8_fma(f32x8_min(f32x8_min(a, b), c) - f32x8_all(1), step, base);
        f32x8 high = f32x8_fma(f32x8_max(f32x8_max(a, b), c) + f32x8_all(1), step, base);
        f32x8 near = w->near_side[i] ? high : low, far = w->near_side[i] ? low : high;

        enter = f32x8_max(f32x8_fms(near, v->inv[i], v->grown_near[i]), enter);
        leave = f32x8_min(f32x8_fms(far, v->inv[i], v->grown_far[i]), leave);
    }
    return i32x8_signs(f32x8_le(enter, leave));
}

/* Triangles of a block to the exact test. False: it is over. */
ALWAYS_INLINE bool block_put(struct ray_tree_walk *w, const struct ray_tree_block *block,
                             unsigned mask)
{
    const struct ray_tree_line *line = w->line;

    for (; mask; mask &= mask - 1) {
        unsigned lane = (unsigned)__builtin_ctz(mask);
        double end;

        if (block->polygon[lane] == RAY_TREE_NONE || !RAY_TREE_TEST(line, block, lane, &end))
            continue;
        if (line->is_any)
            return false;
        w->end = ray_tree_end(w, end);
    }
    return true;
}

ALWAYS_INLINE const struct ray_tree_block *block_of(const struct ray_tree_walk *w, uint32_t child)
{
    return &w->tree->blocks[ray_tree_block_of(child)];
}

ALWAYS_INLINE unsigned block_lanes_met(const struct ray_tree_walk *w, const struct wide_walk *v,
                                       uint32_t child, bool is_grown)
{
    const struct ray_tree_block *block = block_of(w, child);

    return (is_grown ? block_ask_grown(w, v, block) : block_ask(w, v, block)) &
           ((2U << child % WIDE) - 1);
}

ALWAYS_INLINE bool block_test(struct ray_tree_walk *w, const struct wide_walk *v, uint32_t child,
                              bool is_grown)
{
    const struct ray_tree_block *block = block_of(w, child);

    __builtin_prefetch(&block->polygon[0]); /* for the lanes that are met */
    return block_put(w, block, block_lanes_met(w, v, child, is_grown));
}

ALWAYS_INLINE uint64_t waiting_of(float u, uint32_t child)
{
    uint32_t bits;

    memcpy(&bits, &u, sizeof bits);
    return (uint64_t)bits << 32 | child;
}

/* A single line prefetches waiting children at once. */
ALWAYS_INLINE void ahead_fetch(const struct ray_tree *tree, uint32_t child)
{
#ifdef RAY_TREE_AHEAD /* where it was measured */
    const char *at = child & RAY_TREE_BLOCK ? (const char *)&tree->blocks[ray_tree_block_of(child)]
                                            : (const char *)&tree->nodes[child];

    for (int i = 0; i < RAY_TREE_AHEAD; i++)
        __builtin_prefetch(at + (ptrdiff_t)64 * i);
#else
    (void)tree, (void)child;
#endif
}

/*
 * Children that are met wait, except the nearest, which is returned; any: except that of the lowest
 * lane.
 */
ALWAYS_INLINE uint64_t children_put(const struct ray_tree *tree, const struct ray_tree_node *node,
                                    const float near[WIDE], unsigned mask, bool is_any,
                                    uint64_t **top)
{
    unsigned i = (unsigned)__builtin_ctz(mask);
    uint64_t best = waiting_of(is_any ? 0 : near[i], node->child[i]);
    uint64_t *begin = *top, *to = begin;

    mask &= mask - 1;
    if (mask == 0)
        return best;
    do {
        i = (unsigned)__builtin_ctz(mask);
        uint64_t one = waiting_of(is_any ? 0 : near[i], node->child[i]);
        uint64_t farther = one > best ? one : best;
        uint64_t *at = to++;

        ahead_fetch(tree, (uint32_t)farther);
        best = one > best ? best : one;
        for (; at > begin && at[-1] < farther; at--)
            *at = at[-1];
        *at = farther;
        mask &= mask - 1;
    } while (mask);
    *top = to;
    return best;
}

ALWAYS_INLINE void walk_run(struct ray_tree_walk *w, bool is_any, bool is_grown)
{
    _Alignas(32) float near[WIDE];
    uint64_t stack[RAY_TREE_STACK], *top = stack, waiting = 0;
    const struct ray_tree *tree = w->tree;
    struct wide_walk v;

    if (is_grown)
        wide_walk_set_grown(&v, w);
    else
        wide_walk_set(&v, w);
    for (;;) {
        uint32_t child = (uint32_t)waiting;

        if (!(child & RAY_TREE_BLOCK)) {
            const struct ray_tree_node *node = &tree->nodes[child];
            unsigned mask = node_ask(w, &v, node, near, is_grown);

            if (mask) {
                waiting = children_put(tree, node, near, mask, is_any, &top);
                continue;
            }
        } else if (!block_test(w, &v, child, is_grown)) {
            return;
        }
        do {
            if (top == stack)
                return;
            waiting = *--top;
        } while (waiting > waiting_of(w->end, UINT32_MAX));
    }
}

#endif
