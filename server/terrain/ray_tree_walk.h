/*
 * The walk of ray_tree.h, once a level: whoever includes this defines RAY_TREE_WALK, the function's
 * name. With AVX2 eight lanes are one vector, on ARM two of NEON, else they are loops over eight
 * numbers.
 *
 * Levels round differently, and it does not show. A polygon that the line passes is never left out,
 * so the nearest is the same; and where any will do, children are taken in the order of their
 * lanes, so that the first that is found is the same, too.
 *
 * What waits is one number: the bits of u above, the child below; numbers from 0 up are in the
 * order of their bits, so a comparison of integers sorts.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_WALK_H
#define KOTA_TERRAIN_RAY_TREE_WALK_H

#include "terrain/ray_tree_levels.h"

#include <math.h>
#include <string.h>

#ifndef RAY_TREE_TEST
#define RAY_TREE_TEST(line, block, lane, end) (line)->test((line)->asker, block, lane, end)
#endif

enum { WIDE = RAY_TREE_WIDE };

#ifdef __AVX2__

#include <immintrin.h>

typedef __m256 lanes;

ALWAYS_INLINE lanes lanes_of(const float *eight)
{
    return _mm256_load_ps(eight);
}
ALWAYS_INLINE lanes lanes_all(float one)
{
    return _mm256_set1_ps(one);
}
ALWAYS_INLINE lanes lanes_add(lanes a, lanes b)
{
    return _mm256_add_ps(a, b);
}
ALWAYS_INLINE lanes lanes_sub(lanes a, lanes b)
{
    return _mm256_sub_ps(a, b);
}
ALWAYS_INLINE lanes lanes_mul(lanes a, lanes b)
{
    return _mm256_mul_ps(a, b);
}
ALWAYS_INLINE lanes lanes_of_grid(const uint16_t *eight)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)eight)));
}
/* a b + c, a b - c and a - b c, rounded once or twice */
ALWAYS_INLINE lanes lanes_mul_add(lanes a, lanes b, lanes c)
{
    return _mm256_fmadd_ps(a, b, c);
}
ALWAYS_INLINE lanes lanes_mul_sub(lanes a, lanes b, lanes c)
{
    return _mm256_fmsub_ps(a, b, c);
}
ALWAYS_INLINE lanes lanes_sub_mul(lanes a, lanes b, lanes c)
{
    return _mm256_fnmadd_ps(b, c, a);
}
ALWAYS_INLINE lanes lanes_min(lanes a, lanes b)
{
    return _mm256_min_ps(a, b);
}
ALWAYS_INLINE lanes lanes_max(lanes a, lanes b)
{
    return _mm256_max_ps(a, b);
}
ALWAYS_INLINE lanes lanes_abs(lanes a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}
ALWAYS_INLINE unsigned lanes_at_most(lanes a, lanes b)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
ALWAYS_INLINE void lanes_put(lanes a, float *eight)
{
    _mm256_store_ps(eight, a);
}

#elif defined(__aarch64__)

#include <arm_neon.h>

struct eight_lanes {
    float32x4_t low, high;
};

#define lanes struct eight_lanes /* a vector's name where there is one */

ALWAYS_INLINE lanes lanes_of(const float *eight)
{
    return (lanes){vld1q_f32(eight), vld1q_f32(eight + 4)};
}
ALWAYS_INLINE lanes lanes_all(float one)
{
    return (lanes){vdupq_n_f32(one), vdupq_n_f32(one)};
}
ALWAYS_INLINE lanes lanes_add(lanes a, lanes b)
{
    return (lanes){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_sub(lanes a, lanes b)
{
    return (lanes){vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_mul(lanes a, lanes b)
{
    return (lanes){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_of_grid(const uint16_t *eight)
{
    uint16x8_t grid = vld1q_u16(eight);

    return (lanes){vcvtq_f32_u32(vmovl_u16(vget_low_u16(grid))),
                   vcvtq_f32_u32(vmovl_u16(vget_high_u16(grid)))};
}
ALWAYS_INLINE lanes lanes_mul_add(lanes a, lanes b, lanes c)
{
    return (lanes){vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_mul_sub(lanes a, lanes b, lanes c)
{
    return (lanes){vfmaq_f32(vnegq_f32(c.low), a.low, b.low),
                   vfmaq_f32(vnegq_f32(c.high), a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_sub_mul(lanes a, lanes b, lanes c)
{
    return (lanes){vfmsq_f32(a.low, b.low, c.low), vfmsq_f32(a.high, b.high, c.high)};
}
/* of NaN and a number the number */
ALWAYS_INLINE lanes lanes_min(lanes a, lanes b)
{
    return (lanes){vminnmq_f32(a.low, b.low), vminnmq_f32(a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_max(lanes a, lanes b)
{
    return (lanes){vmaxnmq_f32(a.low, b.low), vmaxnmq_f32(a.high, b.high)};
}
ALWAYS_INLINE lanes lanes_abs(lanes a)
{
    return (lanes){vabsq_f32(a.low), vabsq_f32(a.high)};
}
ALWAYS_INLINE unsigned lanes_at_most(lanes a, lanes b)
{
    static const uint16_t bits[WIDE] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint16x8_t is_at_most = vuzp1q_u16(vreinterpretq_u16_u32(vcleq_f32(a.low, b.low)),
                                       vreinterpretq_u16_u32(vcleq_f32(a.high, b.high)));

    return vaddvq_u16(vandq_u16(is_at_most, vld1q_u16(bits)));
}
ALWAYS_INLINE void lanes_put(lanes a, float *eight)
{
    vst1q_f32(eight, a.low);
    vst1q_f32(eight + 4, a.high);
}

#else

struct eight_lanes {
    float f[WIDE];
};

#define lanes struct eight_lanes /* a vector's name where there is one */

#define EACH_LANE(expression)                                                                      \
    lanes out;                                                                                     \
    for (int i = 0; i < WIDE; i++)                                                                 \
        out.f[i] = (expression);                                                                   \
    return out

ALWAYS_INLINE lanes lanes_of(const float *eight)
{
    EACH_LANE(eight[i]);
}
ALWAYS_INLINE lanes lanes_all(float one)
{
    EACH_LANE(one);
}
ALWAYS_INLINE lanes lanes_add(lanes a, lanes b)
{
    EACH_LANE(a.f[i] + b.f[i]);
}
ALWAYS_INLINE lanes lanes_sub(lanes a, lanes b)
{
    EACH_LANE(a.f[i] - b.f[i]);
}
ALWAYS_INLINE lanes lanes_mul(lanes a, lanes b)
{
    EACH_LANE(a.f[i] * b.f[i]);
}
ALWAYS_INLINE lanes lanes_of_grid(const uint16_t *eight)
{
    EACH_LANE((float)eight[i]);
}
ALWAYS_INLINE lanes lanes_mul_add(lanes a, lanes b, lanes c)
{
    EACH_LANE(a.f[i] * b.f[i] + c.f[i]);
}
ALWAYS_INLINE lanes lanes_mul_sub(lanes a, lanes b, lanes c)
{
    EACH_LANE(a.f[i] * b.f[i] - c.f[i]);
}
ALWAYS_INLINE lanes lanes_sub_mul(lanes a, lanes b, lanes c)
{
    EACH_LANE(a.f[i] - b.f[i] * c.f[i]);
}
ALWAYS_INLINE lanes lanes_min(lanes a, lanes b)
{
    EACH_LANE(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}
ALWAYS_INLINE lanes lanes_max(lanes a, lanes b)
{
    EACH_LANE(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
ALWAYS_INLINE lanes lanes_abs(lanes a)
{
    EACH_LANE(fabsf(a.f[i]));
}
ALWAYS_INLINE unsigned lanes_at_most(lanes a, lanes b)
{
    unsigned mask = 0;

    for (int i = 0; i < WIDE; i++)
        mask |= (unsigned)(a.f[i] <= b.f[i]) << i;
    return mask;
}
ALWAYS_INLINE void lanes_put(lanes a, float *eight)
{
    memcpy(eight, a.f, sizeof a.f);
}

#endif

/* The walk's numbers, one a lane. */
struct wide_walk {
    lanes inv[3], shift[3];
    lanes ox, oy, oz, shear_x, shear_y, inv_z;
};

ALWAYS_INLINE void wide_walk_set(struct wide_walk *v, const struct ray_tree_walk *w)
{
    for (int i = 0; i < 3; i++) {
        v->inv[i] = lanes_all(w->inv[i]);
        v->shift[i] = lanes_all(w->shift[i]);
    }
    v->ox = lanes_all(w->o[w->kx]);
    v->oy = lanes_all(w->o[w->ky]);
    v->oz = lanes_all(w->o[w->kz]);
    v->shear_x = lanes_all(w->shear_x);
    v->shear_y = lanes_all(w->shear_y);
    v->inv_z = lanes_all(w->inv_z);
}

/* Which children the line meets; near: u where it enters each of them. */
ALWAYS_INLINE unsigned node_ask(const struct ray_tree_walk *w, const struct wide_walk *v,
                                const struct ray_tree_node *node, float near[WIDE])
{
    lanes enter = lanes_all(0), leave = lanes_all(w->end);

#ifndef __AVX512F__ /* where it was not measured */
#pragma GCC unroll 3
#endif
    for (int i = 0; i < 3; i++) {
        const float(*side)[WIDE] = node->side[i];
        uint32_t s = w->near_side[i];

        enter = lanes_max(lanes_mul_sub(lanes_of(side[s]), v->inv[i], v->shift[i]), enter);
        leave = lanes_min(lanes_mul_sub(lanes_of(side[s ^ 1]), v->inv[i], v->shift[i]), leave);
    }
    lanes_put(enter, near);
    return lanes_at_most(enter, leave);
}

struct corner_lanes {
    lanes x, y, z;
};

/* Where a block is, seen from the line's origin, in the order of the line's axes. */
struct block_lanes {
    lanes x, y, z, step;
};

ALWAYS_INLINE struct block_lanes block_see(const struct ray_tree_walk *w, const struct wide_walk *v,
                                           const struct ray_tree_block *block)
{
    return (struct block_lanes){lanes_sub(lanes_all(block->base[w->kx]), v->ox),
                                lanes_sub(lanes_all(block->base[w->ky]), v->oy),
                                lanes_sub(lanes_all(block->base[w->kz]), v->oz),
                                lanes_all(block->step)};
}

/* Corners as the line sees them: it is the axis x = y = 0. */
ALWAYS_INLINE struct corner_lanes corner_see(const struct ray_tree_walk *w,
                                             const struct wide_walk *v, const struct block_lanes *b,
                                             const uint16_t at[3][WIDE])
{
    struct corner_lanes c;

    c.z = lanes_mul_add(lanes_of_grid(at[w->kz]), b->step, b->z);
    c.x = lanes_mul_add(lanes_of_grid(at[w->kx]), b->step, b->x);
    c.y = lanes_mul_add(lanes_of_grid(at[w->ky]), b->step, b->y);
    c.x = lanes_sub_mul(c.x, v->shear_x, c.z);
    c.y = lanes_sub_mul(c.y, v->shear_y, c.z);
    return c;
}

ALWAYS_INLINE lanes turn_of(struct corner_lanes a, struct corner_lanes b)
{
    return lanes_mul_sub(a.x, b.y, lanes_mul(a.y, b.x));
}

ALWAYS_INLINE lanes reach_of(struct corner_lanes a)
{
    return lanes_max(lanes_abs(a.x), lanes_abs(a.y));
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
    lanes ab = turn_of(a, b), bc = turn_of(b, c), ca = turn_of(c, a);
    lanes least = lanes_min(lanes_min(ab, bc), ca), most = lanes_max(lanes_max(ab, bc), ca);
    lanes reach = lanes_max(lanes_max(reach_of(a), reach_of(b)), reach_of(c));
    lanes slack = lanes_mul(lanes_add(reach, lanes_all(off)), lanes_all(off));
    lanes ua = lanes_mul(a.z, v->inv_z), ub = lanes_mul(b.z, v->inv_z);
    lanes uc = lanes_mul(c.z, v->inv_z);
    unsigned mask = lanes_at_most(most, slack);

    mask |= lanes_at_most(lanes_sub(lanes_all(0), slack), least);
    mask &= lanes_at_most(lanes_min(lanes_min(ua, ub), uc), lanes_all(w->end + 2 * block->step));
    return mask & lanes_at_most(lanes_all(-w->tree->end_slack - 2 * block->step),
                                lanes_max(lanes_max(ua, ub), uc));
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
                                       uint32_t child)
{
    return block_ask(w, v, block_of(w, child)) & ((2U << child % WIDE) - 1);
}

ALWAYS_INLINE bool block_test(struct ray_tree_walk *w, const struct wide_walk *v, uint32_t child)
{
    const struct ray_tree_block *block = block_of(w, child);

    __builtin_prefetch(&block->vertex[0][0]); /* asked for when it is known which */
    __builtin_prefetch(&block->vertex[2][0]);
    return block_put(w, block, block_lanes_met(w, v, child));
}

ALWAYS_INLINE uint64_t waiting_of(float u, uint32_t child)
{
    uint32_t bits;

    memcpy(&bits, &u, sizeof bits);
    return (uint64_t)bits << 32 | child;
}

/* A line alone asks for what waits at once: it is there when its turn comes. */
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

/* Children that are met wait, but the nearest, which is told; any: but the one of the lowest lane.
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

ALWAYS_INLINE void walk_run(struct ray_tree_walk *w, bool is_any)
{
    _Alignas(32) float near[WIDE];
    uint64_t stack[RAY_TREE_STACK], *top = stack, waiting = 0;
    const struct ray_tree *tree = w->tree;
    struct wide_walk v;

    wide_walk_set(&v, w);
    for (;;) {
        uint32_t child = (uint32_t)waiting;

        if (!(child & RAY_TREE_BLOCK)) {
            const struct ray_tree_node *node = &tree->nodes[child];
            unsigned mask = node_ask(w, &v, node, near);

            if (mask) {
                waiting = children_put(tree, node, near, mask, is_any, &top);
                continue;
            }
        } else if (!block_test(w, &v, child)) {
            return;
        }
        do {
            if (top == stack)
                return;
            waiting = *--top;
        } while (waiting > waiting_of(w->end, UINT32_MAX));
    }
}

#ifdef RAY_TREE_WALK
void RAY_TREE_WALK(struct ray_tree_walk *w)
{
    if (w->line->is_any)
        walk_run(w, true);
    else
        walk_run(w, false);
}
#endif

#endif
