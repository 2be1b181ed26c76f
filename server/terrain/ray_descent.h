/*
 * The descent of rays through wide nodes, for one level of vector instructions: ray_avx2.c and
 * ray_avx512.c include this after their vectors of sixteen float32:
 *
 *   v16                 the type
 *   v16_set1, v16_store, v16_add, v16_mul, v16_min, v16_max, v16_fma(a, b, c) = a·b + c
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

#include "terrain/ray_begin.h"
#include "terrain/ray_ends.h"
#include "terrain/wide.h"

enum {
    DESCENT_LEVELS = WIDE_TILE_LEVELS + WIDE_TOP_LEVELS_MAX,
    DESCENT_LEAF = -1,    /* 4×4 cells */
    DESCENT_TILE = 2,     /* the level of a tile's root */
    DESCENT_AT_ONCE = 12, /* rays that take turns */
    /* of a path of three children, four bits each */
    LEAF_COLUMNS = 0x333,
    LEAF_ROWS = 0xccc
};

/* A ray on its way. Levels: the children of a node of level L are 4^(L+1) cells wide. */
struct descent {
    /*
     * Where the ray crosses the near sides of the children by lane, of the leaf, [0], and of the
     * node of each level, [level + 1], less the pad. A child takes over what its lane says.
     */
    _Alignas(64) float t_u[DESCENT_LEVELS + 3][WIDE_CHILDREN];
    _Alignas(64) float t_v[DESCENT_LEVELS + 3][WIDE_CHILDREN];
    /* float32, and padded by what that loses; u and v from where the ray enters the field */
    v16 u_near, u_far, v_near, v_far; /* t from a square's own near sides, a lane a cell */
    v16 z0, dz, t_low, t_high;        /* in all lanes */
    float pad_tu, pad_tv;             /* in t, twice */
    float pad_z;
    uint32_t flip;    /* lane i of the vectors is child i ^ flip: lanes go in the ray's direction */
    uint32_t falling; /* all bits when dz < 0 */
    struct lane_order order;
    /* what is to be asked next */
    int level, level_top;
    const float *own_t_u, *own_t_v; /* of its near sides */
    const struct tile *tile;
    const void *at;       /* struct wide_node or, of a leaf, float */
    uint32_t column, row; /* low corner of the tile, or of the node above tiles */
    uint32_t open;        /* levels with lanes left; the one above the root's is always set */
    /* of the leaf, [0], and the node of each level, [level + 1] */
    uint32_t left[DESCENT_LEVELS + 2];  /* lanes that are still to be opened */
    uint32_t index[DESCENT_LEVELS + 2]; /* in the heap of the tile; a leaf's as if it were a node */
    /* whose it is */
    const struct ray *ray;
    struct ray_hit *hit;
    struct walk w;
};

/* Side of the children of a leaf, [0], and of a node of level L, [L + 1], in cells. */
static const _Alignas(64) float side_of[WIDE_CHILDREN] = {
    1, 0x1p2f, 0x1p4f, 0x1p6f, 0x1p8f, 0x1p10f, 0x1p12f, 0x1p14f, 0x1p16f, 0x1p18f};

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
    const float eps = 0x1p-19f; /* 32 roundings of float32 */

    d->level_top = DESCENT_TILE + (int)field->wide_level_count;
    float root_cells = (float)(16u << 2 * d->level_top);

    float span_u = span_of(w->du, w->inv_du), span_v = span_of(w->dv, w->inv_dv);
    float pad_tu = eps * root_cells * span_u, pad_tv = eps * root_cells * span_v;
    v16 columns = v16_columns(), rows = v16_rows(), one = v16_set1(1);

    d->u_near = v16_mul(columns, v16_set1(span_u));
    d->u_far = v16_mul(v16_add(columns, one), v16_set1(span_u));
    d->v_near = v16_mul(rows, v16_set1(span_v));
    d->v_far = v16_mul(v16_add(rows, one), v16_set1(span_v));
    d->pad_tu = 2 * pad_tu;
    d->pad_tv = 2 * pad_tv;
    d->z0 = v16_set1((float)w->z0);
    d->dz = v16_set1((float)w->dz);
    d->pad_z = eps * (fabsf(w->z.min) + fabsf(w->z.max)) + (float)w->pad_m;
    d->t_low = v16_set1((float)w->t_begin * (1 + eps));
    d->t_high = v16_set1((float)w->t_end * (1 + eps));
    bool turns_u = w->du < 0, turns_v = w->dv < 0;

    d->flip = 3u * turns_u | 12u * turns_v;
    float to_u = (float)(2 * turns_u - 1) * (float)w->u0 - (float)turns_u * root_cells;
    float to_v = (float)(2 * turns_v - 1) * (float)w->v0 - (float)turns_v * root_cells;
    int above = d->level_top + 2; /* the root is the first child of what is above it */

    d->t_u[above][0] = to_u * span_u - pad_tu;
    d->t_v[above][0] = to_v * span_v - pad_tv;
    d->own_t_u = d->t_u[above];
    d->own_t_v = d->t_v[above];
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
static inline __attribute__((always_inline)) uint32_t lanes_met(struct descent *d, float side,
                                                                v16 min, v16 max, bool is_leaf)
{
    v16 cells = v16_set1(side), own_u = v16_set1(*d->own_t_u), own_v = v16_set1(*d->own_t_v);
    v16 u_in = v16_fma(cells, d->u_near, own_u);
    v16 v_in = v16_fma(cells, d->v_near, own_v);
    v16 u_out = v16_fma(cells, d->u_far, v16_add(own_u, v16_set1(d->pad_tu)));
    v16 v_out = v16_fma(cells, d->v_far, v16_add(own_v, v16_set1(d->pad_tv)));
    v16 t_in = v16_max(v16_max(u_in, v_in), d->t_low);
    v16 t_out = v16_min(v16_min(u_out, v_out), d->t_high);
    v16 low = v16_fma(d->dz, v16_select(d->falling, t_out, t_in), d->z0);
    v16 high = v16_fma(d->dz, v16_select(d->falling, t_in, t_out), d->z0);

    if (!is_leaf) {
        v16_store(d->t_u[d->level + 1], u_in);
        v16_store(d->t_v[d->level + 1], v_in);
    }
    return v16_le(t_in, t_out) & v16_not_greater(low, max) & v16_not_less(high, min);
}

static inline __attribute__((always_inline)) uint32_t node_lanes_met(struct descent *d)
{
    const struct wide_node *node = d->at;
    v16 step = v16_set1(node->step_m);
    v16 min = v16_fma(v16_bytes(node->min, &d->order), step, v16_set1(node->base_m - d->pad_z));
    v16 max = v16_fma(v16_bytes(node->max, &d->order), step, v16_set1(node->base_m + d->pad_z));

    return lanes_met(d, side_of[d->level + 1], min, max, false);
}

/* Columns, or rows from row 0 on (0xccc), of a leaf in its tile, from its path of children. */
static inline uint32_t leaf_place(const struct descent *d, uint32_t bits)
{
    return _pext_u32(d->index[0] - WIDE_TILE_NODES, bits);
}

/* 4×4 cells: their own bounds first, then the cells that are left, in the ray's order. */
static inline __attribute__((always_inline)) bool leaf_is_hit(struct descent *d)
{
    const float *at = d->at;
    v16 min, max, pad = v16_set1(d->pad_z);

    v16_cells(at, TILE_SAMPLES, &d->order, &min, &max);
    uint32_t lanes = lanes_met(d, 1, v16_sub(min, pad), v16_add(max, pad), true);

    if (lanes == 0)
        return false;
    uint32_t column = d->column + 4 * leaf_place(d, LEAF_COLUMNS);
    uint32_t row = d->row + 4 * leaf_place(d, LEAF_ROWS);

    while (lanes != 0) {
        uint32_t cell = (uint32_t)__builtin_ctz(lanes) ^ d->flip;

        if (cell_alone_hit(&d->w, column + (cell & 3), row + (cell >> 2),
                           at + (size_t)(cell >> 2) * TILE_SAMPLES + (cell & 3)))
            return true;
        lanes &= lanes - 1;
    }
    return false;
}

/*
 * The child under a lane of the node of level `own` - 1 is next, and its memory on the way. Inside
 * a tile nobody guesses of what level it is: both addresses are computed, and as many lines are
 * asked for as cells take.
 */
static inline __attribute__((always_inline)) void descent_enter(struct descent *d, uint32_t own,
                                                                uint32_t lane)
{
    uint32_t child = lane ^ d->flip;
    int level = (int)own - 2;

    d->own_t_u = &d->t_u[own][lane];
    d->own_t_v = &d->t_v[own][lane];
    d->level = level;
    if (level >= DESCENT_TILE) {
        uint32_t shift = 2 * (uint32_t)level + 4, clear = (1u << (shift + 2)) - 1;

        d->column = (d->column & ~clear) | (child & 3) << shift;
        d->row = (d->row & ~clear) | (child >> 2) << shift;
        /* over flat ground a ray looks behind the border, too: no cell there is hit */
        const struct heightfield *field = d->w.field;
        uint32_t c = d->column < field->cell_cols ? d->column : field->cell_cols - 1;
        uint32_t r = d->row < field->cell_rows ? d->row : field->cell_rows - 1;

        d->index[own - 1] = 0;
        d->tile = heightfield_tile(field, c, r);
        d->at = level > DESCENT_TILE ? top_node(field, level, c, r) : &d->tile->wide[0];
        __builtin_prefetch(d->at);
        __builtin_prefetch((const char *)d->at + sizeof(struct wide_node) - 1);
        return;
    }
    bool is_leaf = level == DESCENT_LEAF;
    uint32_t index = WIDE_CHILDREN * d->index[own] + 1 + child;
    uint32_t path = index - WIDE_TILE_NODES;
    size_t sample =
        4 * (size_t)(_pext_u32(path, LEAF_ROWS) * TILE_SAMPLES + _pext_u32(path, LEAF_COLUMNS));
    size_t node_at = offsetof(struct tile, wide) + index * sizeof(struct wide_node);
    size_t leaf_at = offsetof(struct tile, samples) + sample * sizeof(float);
    size_t stride = is_leaf ? TILE_SAMPLES * sizeof(float) : sizeof(struct wide_node) / 4;
    const char *at = (const char *)d->tile + (is_leaf ? leaf_at : node_at);

    d->index[own - 1] = index;
    d->at = at;
    for (size_t i = 0; i <= WIDE_LEAF_CELLS; i++)
        __builtin_prefetch(at + i * stride);
}

enum descent_state { DESCENT_GOES_ON, DESCENT_HIT, DESCENT_MISS };

/* On to what is open next. */
static inline enum descent_state descent_go_on(struct descent *d)
{
    uint32_t own = (uint32_t)__builtin_ctz(d->open);

    if ((int)own > d->level_top + 1)
        return DESCENT_MISS;
    uint32_t left = d->left[own], rest = left & (left - 1);

    d->left[own] = rest;
    d->open ^= (rest == 0 ? 1u : 0) << own;
    descent_enter(d, own, (uint32_t)__builtin_ctz(left));
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
__attribute__((flatten)) static inline bool descent_alone(const struct heightfield *field,
                                                          const struct ray *ray,
                                                          struct ray_hit *hit)
{
    struct descent d;
    enum ray_begin begin = ray_begin_axes(&d.w, field, ray);

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
        enum ray_begin begin = ray_begin_axes(&d->w, field, ray);

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
__attribute__((flatten)) static inline void descent_many(const struct heightfield *field,
                                                         const struct ray *rays, size_t count,
                                                         struct ray_hit *hits)
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
