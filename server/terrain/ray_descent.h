/*
 * The descent of rays through wide nodes, for one level of vector instructions: ray_avx2.c and
 * ray_avx512.c include this after their vectors of sixteen float32:
 *
 *   v16                 the type
 *   v16_set1, v16_add, v16_min, v16_max, v16_fma(a, b, c) = a·b + c
 *   v16_le(a, b)        a mask: bit i where a[i] <= b[i]; v16_not_less, v16_not_greater likewise,
 *                       true where one is NaN
 *   v16_select(m, a, b) a where the bit of m is set
 *   v16_bytes(at, order)
 *   v16_columns, v16_rows   0..3 by lane: what a lane is in the ray's direction
 *   v16_cells(at, stride, order, &min, &max)   see there
 *
 * How it works: ray_avx512.c.
 */
#ifndef KOTA_TERRAIN_RAY_DESCENT_H
#define KOTA_TERRAIN_RAY_DESCENT_H

#ifdef KOTA_RAY_VECTORS

#include "terrain/ray_walk.h"
#include "terrain/wide.h"

enum {
    DESCENT_LEVELS = WIDE_TILE_LEVELS + WIDE_TOP_LEVELS_MAX,
    DESCENT_LEAF = -1,   /* 4×4 cells */
    DESCENT_TILE = 2,    /* the level of a tile's root */
    DESCENT_AT_ONCE = 12 /* rays that take turns */
};

/* A ray on its way. Levels: the children of a node of level L are 4^(L+1) cells wide. */
struct descent {
    struct walk w;
    /* float32, and padded by what that loses; u and v from where the ray enters the field */
    float span_u, span_v; /* t from line to line */
    float pad_tu, pad_tv; /* in t */
    float pad_z;
    v16 z0, dz, t_low, t_high; /* in all lanes */
    uint32_t flip;    /* lane i of the vectors is child i ^ flip: lanes go in the ray's direction */
    uint32_t falling; /* all bits when dz < 0 */
    struct lane_order order;
    /* what is to be asked next */
    int level, level_top;
    uint32_t column, row; /* its low corner */
    const struct tile *tile;
    const void *at; /* struct wide_node or, of a leaf, float */
    uint32_t open;  /* levels with lanes left; the one above the root's is always set */
    /* of the leaf, [0], and the node of each level, [level + 1] */
    uint32_t left[DESCENT_LEVELS + 2];                      /* lanes that are still to be opened */
    uint32_t index[DESCENT_LEVELS + 2];                     /* in the heap of the tile */
    float t_u[DESCENT_LEVELS + 2], t_v[DESCENT_LEVELS + 2]; /* of its near sides, less the pad */
    /* whose it is */
    const struct ray *ray;
    struct ray_hit *hit;
};

/* Side of the children of a leaf, [0], and of a node of level L, [L + 1], in cells. */
static const float side_of[DESCENT_LEVELS + 1] = {1,       0x1p2f,  0x1p4f,  0x1p6f,  0x1p8f,
                                                  0x1p10f, 0x1p12f, 0x1p14f, 0x1p16f, 0x1p18f};

static inline float span_of(double d, double inv_d)
{
    double span = fabs(inv_d);

    return d != 0 && span < 1e30 ? (float)span : 1e30f; /* else it stays in its column or row */
}

static inline const struct wide_node *top_node(const struct heightfield *field, int level,
                                               uint32_t column, uint32_t row)
{
    const struct top_level *top = &field->wide_level[level - WIDE_TILE_LEVELS];
    uint32_t shift = 2 * (uint32_t)level + 4;

    return &field->wide_top[top->offset + (size_t)(row >> shift) * top->cols + (column >> shift)];
}

static inline void descent_begin(struct descent *d)
{
    const struct walk *w = &d->w;
    const struct heightfield *field = w->field;
    const float eps = 0x1p-20f; /* 16 roundings of float32 */

    d->level_top = DESCENT_TILE + (int)field->wide_level_count;
    float root_cells = (float)(16u << 2 * d->level_top);

    d->span_u = span_of(w->du, w->inv_du);
    d->span_v = span_of(w->dv, w->inv_dv);
    d->pad_tu = eps * root_cells * d->span_u;
    d->pad_tv = eps * root_cells * d->span_v;
    d->z0 = v16_set1((float)w->z0);
    d->dz = v16_set1((float)w->dz);
    d->pad_z = eps * (fabsf(w->z.min) + fabsf(w->z.max));
    d->t_low = v16_set1((float)w->t_begin * (1 + eps));
    d->t_high = v16_set1((float)w->t_end * (1 + eps));
    d->flip = (w->du < 0 ? 3 : 0) | (w->dv < 0 ? 12 : 0);
    float to_u = w->du < 0 ? (float)w->u0 - root_cells : -(float)w->u0;
    float to_v = w->dv < 0 ? (float)w->v0 - root_cells : -(float)w->v0;

    d->t_u[d->level_top + 1] = to_u * d->span_u - d->pad_tu;
    d->t_v[d->level_top + 1] = to_v * d->span_v - d->pad_tv;
    d->falling = w->dz < 0 ? 0xffff : 0;
    lane_order_init(&d->order, d->flip);
    d->level = d->level_top;
    d->column = d->row = 0;
    d->index[DESCENT_TILE + 1] = 0;
    d->open = 1u << (d->level_top + 2);
    d->tile = field->tiles[0];
    d->at = d->level_top == DESCENT_TILE ? &d->tile->wide[0] : top_node(field, d->level, 0, 0);
}

/*
 * The lanes of a square of 4×4 children, `side` cells wide each, whose box the ray may meet; their
 * bounds are min and max, a lane without any is NaN or min > max.
 */
static inline uint32_t lanes_met(const struct descent *d, float side, v16 min, v16 max)
{
    float step_u = side * d->span_u, step_v = side * d->span_v;
    v16 u_in = v16_fma(v16_set1(step_u), v16_columns(), v16_set1(d->t_u[d->level + 1]));
    v16 v_in = v16_fma(v16_set1(step_v), v16_rows(), v16_set1(d->t_v[d->level + 1]));
    v16 u_out = v16_add(u_in, v16_set1(step_u + 2 * d->pad_tu));
    v16 v_out = v16_add(v_in, v16_set1(step_v + 2 * d->pad_tv));
    v16 t_in = v16_max(v16_max(u_in, v_in), d->t_low);
    v16 t_out = v16_min(v16_min(u_out, v_out), d->t_high);
    v16 low = v16_fma(d->dz, v16_select(d->falling, t_out, t_in), d->z0);
    v16 high = v16_fma(d->dz, v16_select(d->falling, t_in, t_out), d->z0);

    return v16_le(t_in, t_out) & v16_not_greater(low, max) & v16_not_less(high, min);
}

static inline uint32_t node_lanes_met(const struct descent *d)
{
    const struct wide_node *node = d->at;
    v16 step = v16_set1(node->step_m);
    v16 min = v16_fma(v16_bytes(node->min, &d->order), step, v16_set1(node->base_m - d->pad_z));
    v16 max = v16_fma(v16_bytes(node->max, &d->order), step, v16_set1(node->base_m + d->pad_z));

    return lanes_met(d, side_of[d->level + 1], min, max);
}

/* 4×4 cells: their own bounds first, then the cells that are left, in the ray's order. */
static inline bool leaf_is_hit(struct descent *d)
{
    const float *at = d->at;
    v16 min, max, pad = v16_set1(d->pad_z);

    v16_cells(at, TILE_SAMPLES, &d->order, &min, &max);
    uint32_t lanes = lanes_met(d, 1, v16_sub(min, pad), v16_add(max, pad));

    while (lanes != 0) {
        uint32_t cell = (uint32_t)__builtin_ctz(lanes) ^ d->flip;

        if (cell_alone_hit(&d->w, d->column + (cell & 3), d->row + (cell >> 2),
                           at + (size_t)(cell >> 2) * TILE_SAMPLES + (cell & 3)))
            return true;
        lanes &= lanes - 1;
    }
    return false;
}

/* Where the child under a lane is, and its memory on the way. */
static inline __attribute__((always_inline)) void descent_enter(struct descent *d, uint32_t lane)
{
    uint32_t shift = 2 * (uint32_t)d->level + 2, child = lane ^ d->flip;
    uint32_t clear = (1u << (shift + 2)) - 1;
    uint32_t own = (uint32_t)d->level + 1;
    static const float column_of[WIDE_CHILDREN] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    static const float row_of[WIDE_CHILDREN] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    float side = side_of[own];

    d->t_u[own - 1] = d->t_u[own] + column_of[lane] * (side * d->span_u);
    d->t_v[own - 1] = d->t_v[own] + row_of[lane] * (side * d->span_v);
    d->column = (d->column & ~clear) | (child & 3) << shift;
    d->row = (d->row & ~clear) | (child >> 2) << shift;
    d->level--;
    if (d->level == DESCENT_LEAF) {
        const float *at = d->tile->samples + (size_t)(d->row & (TILE_CELLS - 1)) * TILE_SAMPLES +
                          (d->column & (TILE_CELLS - 1));

        for (int row = 0; row <= WIDE_LEAF_CELLS; row++)
            __builtin_prefetch(at + row * TILE_SAMPLES);
        d->at = at;
        return;
    }
    if (d->level < DESCENT_TILE) {
        uint32_t index = WIDE_CHILDREN * d->index[own] + 1 + child;

        d->index[own - 1] = index;
        d->at = &d->tile->wide[index];
    } else if (d->level == DESCENT_TILE) {
        d->tile = heightfield_tile(d->w.field, d->column, d->row);
        d->at = &d->tile->wide[0];
    } else {
        d->at = top_node(d->w.field, d->level, d->column, d->row);
    }
    __builtin_prefetch(d->at);
    __builtin_prefetch((const char *)d->at + sizeof(struct wide_node) - 1);
}

enum descent_state { DESCENT_GOES_ON, DESCENT_HIT, DESCENT_MISS };

/* On to what is open next. */
static inline enum descent_state descent_go_on(struct descent *d)
{
    uint32_t own = (uint32_t)__builtin_ctz(d->open);

    d->level = (int)own - 1;
    if (d->level > d->level_top)
        return DESCENT_MISS;
    uint32_t left = d->left[own], rest = left & (left - 1);

    d->left[own] = rest;
    d->open ^= (rest == 0 ? 1u : 0) << own;
    descent_enter(d, (uint32_t)__builtin_ctz(left));
    return DESCENT_GOES_ON;
}

static inline enum descent_state descent_node(struct descent *d)
{
    uint32_t lanes = node_lanes_met(d), own = (uint32_t)d->level + 1;

    d->left[own] = lanes;
    d->open |= (lanes != 0 ? 1u : 0) << own;
    return descent_go_on(d);
}

static inline enum descent_state descent_leaf(struct descent *d)
{
    return leaf_is_hit(d) ? DESCENT_HIT : descent_go_on(d);
}

/* False when nothing is hit. */
static inline bool descent_alone(const struct heightfield *field, const struct ray *ray,
                                 struct ray_hit *hit)
{
    struct descent d;
    enum ray_begin begin = ray_begin(&d.w, field, ray, NULL);

    if (begin == RAY_BEGIN_MISS)
        return false;
    if (begin == RAY_BEGIN_WALK) {
        enum descent_state state = DESCENT_GOES_ON;

        if (!d.w.is_wide)
            return ray_walk(&d.w) && ray_end(&d.w, ray, hit);
        descent_begin(&d);
        while (state == DESCENT_GOES_ON)
            state = d.level == DESCENT_LEAF ? descent_leaf(&d) : descent_node(&d);
        if (state == DESCENT_MISS)
            return false;
    }
    return ray_end(&d.w, ray, hit);
}

/* The next ray that has to descend; those that do not are answered. False when there is none. */
static inline bool descent_next(struct descent *d, const struct heightfield *field,
                                const struct ray *rays, size_t count, struct ray_hit *hits,
                                size_t *next)
{
    for (; *next < count; ++*next) {
        const struct ray *ray = &rays[*next];
        struct ray_hit *hit = &hits[*next];
        enum ray_begin begin = ray_begin(&d->w, field, ray, NULL);

        if (begin == RAY_BEGIN_WALK && d->w.is_wide) {
            d->ray = ray;
            d->hit = hit;
            ++*next;
            descent_begin(d);
            return true;
        }
        if (begin == RAY_BEGIN_MISS || (begin == RAY_BEGIN_WALK && !ray_walk(&d->w)) ||
            !ray_end(&d->w, ray, hit))
            hit->t = INFINITY;
    }
    return false;
}

static inline void descent_answer(const struct descent *d, bool is_hit)
{
    if (!is_hit || !ray_end(&d->w, d->ray, d->hit))
        d->hit->t = INFINITY;
}

/*
 * Turns: all whose next is a node, then all whose next is a leaf, so that no branch has to guess
 * which it is.
 */
static inline void descent_many(const struct heightfield *field, const struct ray *rays,
                                size_t count, struct ray_hit *hits)
{
    struct descent all[DESCENT_AT_ONCE];
    struct descent *at_node[DESCENT_AT_ONCE], *at_leaf[DESCENT_AT_ONCE + 1];
    size_t next = 0;
    int nodes = 0, leaves = 0;

    while (nodes < DESCENT_AT_ONCE && descent_next(&all[nodes], field, rays, count, hits, &next)) {
        at_node[nodes] = &all[nodes];
        nodes++;
    }
    while (nodes + leaves > 0) {
        int kept = 0, waiting = nodes;

        for (int i = 0; i < waiting; i++) {
            struct descent *d = at_node[i];

            if (descent_node(d) == DESCENT_MISS) {
                descent_answer(d, false);
                if (!descent_next(d, field, rays, count, hits, &next))
                    continue;
            }
            at_node[kept] = at_leaf[leaves] = d;
            kept += d->level != DESCENT_LEAF;
            leaves += d->level == DESCENT_LEAF;
        }
        nodes = kept;
        waiting = leaves;
        leaves = 0;
        for (int i = 0; i < waiting; i++) {
            struct descent *d = at_leaf[i];
            enum descent_state state = descent_leaf(d);

            if (state != DESCENT_GOES_ON) {
                descent_answer(d, state == DESCENT_HIT);
                if (!descent_next(d, field, rays, count, hits, &next))
                    continue;
            }
            at_node[nodes] = at_leaf[leaves] = d;
            nodes += d->level != DESCENT_LEAF;
            leaves += d->level == DESCENT_LEAF;
        }
    }
}

#endif
#endif
