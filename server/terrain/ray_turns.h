/*
 * Many rays by wide nodes with AVX2: ray_avx2.c includes this. How nodes are asked, and why no bit
 * is lost: ray_avx512.c and ray_descent.h.
 *
 * Problem: a ray alone waits for memory and for its own last number, and guesses what comes next;
 * rays in lockstep, a lane each (ray_lanes.h), need gathers and masks that AVX2 has not, and walk
 * more steps. Approach: two dozen rays go through wide nodes, and whatever a ray waits for next is
 * a list that it joins: nodes to be asked, nodes above the tiles or squares of 4×4 cells to be
 * found, squares, cells, and rays that are over. Each list is emptied by a loop of its own, so no
 * branch asks what a ray is at, and a loop's rays overlap: the processor holds as many instructions
 * as two or three steps have. What is found is asked for at once and looked at a round later.
 *
 * What float64 does is done for four rays at a time, a lane each: they begin together
 * (ray_abreast_begin.h), cells of whatever rays are tested and their hits answered together
 * (ray_abreast.h, ray_abreast_end.h).
 *
 * A step is two loops. The first asks a node, sixteen children in the ray's order, or a square, in
 * natural order, and turns the mask of the cells that are met. The second takes the next child, of
 * that square or of one above it. Done one after the other for each ray, the second waits for the
 * first: a quarter slower. A child's near sides are those of its parent and as many children on
 * (turn_before). Heights are mirrored for rays that fall, so that all come in by the greatest
 * height of a box and leave by the least.
 *
 * Invariants: a ray is in one list. Its levels hold what is left of the squares from the first node
 * down to where it is; bit l of `open` is set where level l has children left, and TURN_OVER
 * always, whose only child is the end of the ray.
 *
 * Left to a ray alone: what ray_abreast_begin.h leaves, heights beyond WIDE_Z_MAX_M, and the last
 * rays where they are less than a vector. Rays along a grid line are among the first.
 */
#ifndef KOTA_TERRAIN_RAY_TURNS_H
#define KOTA_TERRAIN_RAY_TURNS_H
#ifdef __AVX2__

#include "terrain/ray_abreast_begin.h"
#include "terrain/ray_abreast_end.h"
#include "terrain/ray_descent.h"

enum {
    TURNS = 24,      /* rays on their way: what the nearest cache holds, and a little more */
    TURNS_LEAST = 8, /* rays that are worth it */
    /* a cell, a square of 4×4 cells, nodes; and one over the first node, where a ray is over */
    TURN_CELLS = 1,
    TURN_TILE = TURN_CELLS + WIDE_TILE_LEVELS,
    TURN_LEVELS = TURN_TILE + WIDE_TOP_LEVELS_MAX + 2,
    TURN_OVER = TURN_LEVELS - 1
};

/* What a ray waits for. */
enum turn_kind {
    TURN_NODE,
    TURN_ROOT,
    TURN_TOP,
    TURN_LEAF,
    TURN_SQUARE,
    TURN_CELL,
    TURN_IDLE,
    TURN_KINDS
};

/* What the direction of rays turns. */
struct turn_lines {
    /* of a node: bytes to numbers of 32 bits, rows 0 and 2 in the ray's order, then 1 and 3, as
     * vectors pack */
    __m256i rows[2];
    /* of cells in natural order: how many are before one, and where its bit is */
    _Alignas(32) float u[8], v_low[8], v_high[8];
    uint8_t order[16];
};

/* A square on the way: t of its near sides, less the pad, and the children that are left. */
struct turn_level {
    float own[2];
    uint32_t left, index;
};

struct turn {
    _Alignas(64) struct turn_level levels[TURN_LEVELS];
    float span[4]; /* t of a cell: u, v, u, v */
    float side[4]; /* of the children of what is asked: u, v; and pads twice */
    /* z is mirrored where it falls */
    float dz, z_in, z_out, t_low;
    float t_high;
    uint32_t sign;        /* of z: its bit where it is mirrored */
    uint32_t flip;        /* lane i is child i ^ flip */
    uint32_t in_at;       /* in a node, the bounds that it comes in by */
    uint32_t column, row; /* low corner of the tile, or of the node above tiles */
    uint32_t out_at;
    uint32_t lines_at; /* in turn_lines, in bytes */
    uint32_t open;     /* levels with children left */
    uint32_t level;    /* of what is asked */
    const struct tile *tile;
    const char *at;       /* the node */
    const float *samples; /* of a square, and its low corner */
    uint32_t square_column, square_row;
    struct walk *w;
    const struct ray *ray;
    struct ray_hit *hit;
};

struct turn_list {
    struct turn **end;
    struct turn *at[TURNS];
};

struct turns {
    _Alignas(64) struct turn turn[TURNS];
    _Alignas(64) struct walk w[TURNS];
    struct turn_list list[TURN_KINDS];
    struct turn_list *list_of[TURN_LEVELS];   /* for the child of a square of each level */
    _Alignas(16) float sides[TURN_LEVELS][4]; /* of such a child, and with the pads */
    const struct heightfield *field;
    const struct ray *rays;
    struct ray_hit *hits;
    size_t count, next;
    struct abreast_begun begun;
    float pad_z, pad_cells;
};

#define TURN_ROWS(i, flip)                                                                         \
    {                                                                                              \
        TWO_BYTES(i, flip), TWO_BYTES((i) + 2, flip), TWO_BYTES((i) + 8, flip),                    \
            TWO_BYTES((i) + 10, flip)                                                              \
    }

/* Of rays that fall along u, 1, and v, 2. Cells' bits have rows 0, 2, 1, 3: so do vectors pack. */
static const struct turn_lines turn_lines[4] = {
    {{TURN_ROWS(0, 0), TURN_ROWS(4, 0)},
     {0, 1, 2, 3, 0, 1, 2, 3},
     {0, 0, 0, 0, 1, 1, 1, 1},
     {2, 2, 2, 2, 3, 3, 3, 3},
     {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}},
    {{TURN_ROWS(0, 3), TURN_ROWS(4, 3)},
     {3, 2, 1, 0, 3, 2, 1, 0},
     {0, 0, 0, 0, 1, 1, 1, 1},
     {2, 2, 2, 2, 3, 3, 3, 3},
     {3, 2, 1, 0, 11, 10, 9, 8, 7, 6, 5, 4, 15, 14, 13, 12}},
    {{TURN_ROWS(0, 12), TURN_ROWS(4, 12)},
     {0, 1, 2, 3, 0, 1, 2, 3},
     {3, 3, 3, 3, 2, 2, 2, 2},
     {1, 1, 1, 1, 0, 0, 0, 0},
     {12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3}},
    {{TURN_ROWS(0, 15), TURN_ROWS(4, 15)},
     {3, 2, 1, 0, 3, 2, 1, 0},
     {3, 3, 3, 3, 2, 2, 2, 2},
     {1, 1, 1, 1, 0, 0, 0, 0},
     {15, 14, 13, 12, 7, 6, 5, 4, 11, 10, 9, 8, 3, 2, 1, 0}},
};

/* Columns and rows before a lane, in the ray's direction. */
static const float turn_before[WIDE_CHILDREN][2] = {
    {0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 1}, {1, 1}, {2, 1}, {3, 1},
    {0, 2}, {1, 2}, {2, 2}, {3, 2}, {0, 3}, {1, 3}, {2, 3}, {3, 3},
};

static inline void turn_join(struct turn_list *list, struct turn *s)
{
    struct turn **end = list->end;

    *end = s;
    list->end = end + 1;
}

static inline size_t turns_waiting(const struct turn_list *list)
{
    return (size_t)(list->end - list->at);
}

/* ---- what is asked -----------------------------------------------------------------------------
 */

/* Two vectors of lanes: when the ray comes into their columns and rows and leaves them, how high.
 */
struct turn_way {
    __m256 t_in[2], t_out[2], z_in[2], z_out[2];
};

/* Heights are over `base`. How many children are before a lane: columns, rows of both vectors. */
static inline __attribute__((always_inline)) void turn_pass(struct turn_way *way,
                                                            const struct turn *s, uint32_t level,
                                                            __m256 base, __m256 u_before,
                                                            __m256 v_before0, __m256 v_before1)
{
    const float *own = s->levels[level].own;
    __m256 own_u = _mm256_broadcast_ss(&own[0]), own_v = _mm256_broadcast_ss(&own[1]);
    __m256 side_u = _mm256_broadcast_ss(&s->side[0]), side_v = _mm256_broadcast_ss(&s->side[1]);
    __m256 far_u = _mm256_broadcast_ss(&s->side[2]), far_v = _mm256_broadcast_ss(&s->side[3]);
    __m256 u_in = _mm256_fmadd_ps(side_u, u_before, own_u);
    __m256 v_in[2] = {_mm256_fmadd_ps(side_v, v_before0, own_v),
                      _mm256_fmadd_ps(side_v, v_before1, own_v)};
    __m256 u_out = _mm256_add_ps(u_in, far_u);
    __m256 dz = _mm256_broadcast_ss(&s->dz);
    __m256 z_in = _mm256_sub_ps(_mm256_broadcast_ss(&s->z_in), base);
    __m256 z_out = _mm256_sub_ps(_mm256_broadcast_ss(&s->z_out), base);

    u_in = _mm256_max_ps(u_in, _mm256_broadcast_ss(&s->t_low));
    u_out = _mm256_min_ps(u_out, _mm256_broadcast_ss(&s->t_high));
    for (int i = 0; i < 2; i++) {
        way->t_in[i] = _mm256_max_ps(u_in, v_in[i]);
        way->t_out[i] = _mm256_min_ps(u_out, _mm256_add_ps(v_in[i], far_v));
        way->z_in[i] = _mm256_fmadd_ps(dz, way->t_in[i], z_in);
        way->z_out[i] = _mm256_fmadd_ps(dz, way->t_out[i], z_out);
    }
}

/*
 * The signs of what is left of the height at either end and of the time: negative where a lane is
 * not met. 0 has either sign, so pads keep what a ray touches above it.
 */
static inline __m256 turn_missed(const struct turn_way *way, int i, __m256 in_left, __m256 out_left)
{
    return _mm256_or_ps(_mm256_or_ps(in_left, out_left),
                        _mm256_sub_ps(way->t_out[i], way->t_in[i]));
}

static inline __m128i turn_packed(const __m256 *missed)
{
    __m256i words =
        _mm256_packs_epi32(_mm256_castps_si256(missed[0]), _mm256_castps_si256(missed[1]));

    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

static inline const struct turn_lines *turn_lines_of(const struct turn *s)
{
    return (const void *)((const char *)(const void *)turn_lines + s->lines_at);
}

/* Bytes of a node, each to a number of 32 bits; the rest of it 0. */
static inline __m256 turn_bytes(__m256i sixteen, __m256i order)
{
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(sixteen, order));
}

static inline __m256i turn_sixteen(const char *at)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)at));
}

/* The children of a node, in the ray's order, that it passes within their heights. */
static inline __attribute__((always_inline)) uint32_t turn_node_lanes(const struct turn *s)
{
    const __m256 u = _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);
    const __m256 even = _mm256_setr_ps(0, 0, 0, 0, 2, 2, 2, 2);
    const __m256 odd = _mm256_setr_ps(1, 1, 1, 1, 3, 3, 3, 3);
    const __m256i *order = turn_lines_of(s)->rows;
    __m256i in = turn_sixteen(s->at + s->in_at), out = turn_sixteen(s->at + s->out_at);
    __m256 sign = _mm256_broadcast_ss((const float *)(const void *)&s->sign);
    const float *scale = (const float *)(const void *)s->at;
    __m256 base = _mm256_xor_ps(_mm256_broadcast_ss(scale), sign);
    __m256 step = _mm256_xor_ps(_mm256_broadcast_ss(scale + 1), sign);
    struct turn_way way;
    __m256 missed[2];

    turn_pass(&way, s, s->level, base, u, even, odd);
    for (int i = 0; i < 2; i++) {
        __m256 in_left = _mm256_fmsub_ps(turn_bytes(in, order[i]), step, way.z_in[i]);
        __m256 out_left = _mm256_fnmadd_ps(turn_bytes(out, order[i]), step, way.z_out[i]);

        missed[i] = turn_missed(&way, i, in_left, out_left);
    }
    return 0xffff ^ (uint32_t)_mm_movemask_epi8(turn_packed(missed));
}

static inline __m256 turn_two_rows(const float *at, __m256 sign)
{
    __m256 rows = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)),
                                       _mm_loadu_ps(at + TILE_SAMPLES), 1);

    return _mm256_xor_ps(rows, sign);
}

/* The cells of a square; where a sample is missing all that the ray passes. */
static inline __attribute__((always_inline)) uint32_t turn_square_lanes(const struct turn *s)
{
    const float *at = s->samples, *last = at + 4 * TILE_SAMPLES;
    __m256 sign = _mm256_broadcast_ss((const float *)(const void *)&s->sign);
    __m256 west0 = turn_two_rows(at, sign), east0 = turn_two_rows(at + 1, sign);
    __m256 west2 = turn_two_rows(at + 2 * TILE_SAMPLES, sign),
           east2 = turn_two_rows(at + 2 * TILE_SAMPLES + 1, sign);
    __m128 west4 = _mm_xor_ps(_mm_loadu_ps(last), _mm256_castps256_ps128(sign));
    __m128 east4 = _mm_xor_ps(_mm_loadu_ps(last + 1), _mm256_castps256_ps128(sign));
    __m256 min0 = _mm256_min_ps(west0, east0), max0 = _mm256_max_ps(west0, east0);
    __m256 min2 = _mm256_min_ps(west2, east2), max2 = _mm256_max_ps(west2, east2);
    __m256 min4 = _mm256_castps128_ps256(_mm_min_ps(west4, east4));
    __m256 max4 = _mm256_castps128_ps256(_mm_max_ps(west4, east4));
    __m256 in[2] = {_mm256_max_ps(max0, _mm256_permute2f128_ps(max0, max2, 0x21)),
                    _mm256_max_ps(max2, _mm256_permute2f128_ps(max2, max4, 0x21))};
    __m256 out[2] = {_mm256_min_ps(min0, _mm256_permute2f128_ps(min0, min2, 0x21)),
                     _mm256_min_ps(min2, _mm256_permute2f128_ps(min2, min4, 0x21))};
    __m256 missing = _mm256_or_ps(_mm256_cmp_ps(west0, east0, _CMP_UNORD_Q),
                                  _mm256_cmp_ps(west2, east2, _CMP_UNORD_Q));
    __m128 missing4 = _mm_cmpunord_ps(west4, east4);

    missing = _mm256_or_ps(missing, _mm256_castps128_ps256(missing4));
    if (__builtin_expect(!_mm256_testz_ps(missing, missing), 0)) {
        in[0] = in[1] = _mm256_set1_ps(__builtin_inff());
        out[0] = out[1] = _mm256_set1_ps(-__builtin_inff());
    }
    const struct turn_lines *lines = turn_lines_of(s);
    struct turn_way way;
    __m256 missed[2];

    turn_pass(&way, s, TURN_CELLS, _mm256_setzero_ps(), _mm256_load_ps(lines->u),
              _mm256_load_ps(lines->v_low), _mm256_load_ps(lines->v_high));
    for (int i = 0; i < 2; i++)
        missed[i] = turn_missed(&way, i, _mm256_sub_ps(in[i], way.z_in[i]),
                                _mm256_sub_ps(way.z_out[i], out[i]));
    __m128i bytes =
        _mm_shuffle_epi8(turn_packed(missed), _mm_loadu_si128((const void *)lines->order));

    return 0xffff ^ (uint32_t)_mm_movemask_epi8(bytes);
}

/* ---- what is next ------------------------------------------------------------------------------
 */

/* The children of the square of `level` that are to be asked. */
static inline __attribute__((always_inline)) void turn_open(struct turn *s, uint32_t level,
                                                            uint32_t lanes)
{
    s->levels[level].left = lanes;
    s->open |= (lanes != 0 ? 1u : 0) << level;
}

/*
 * The next child that is open, or none. Its memory is asked for if it is a node of the tile. Nobody
 * guesses what it is, so this has no branch.
 */
static inline __attribute__((always_inline)) void turn_go_on(struct turns *all, struct turn *s)
{
    uint32_t open = s->open;
    uint64_t level = _tzcnt_u64(open);
    struct turn_level *own = &s->levels[level], *below = own - 1;
    uint32_t left = own->left, rest = left & (left - 1), closed = open & (open - 1);
    uint64_t lane = _tzcnt_u64(left);
    uint32_t index = WIDE_CHILDREN * own->index + 1u + ((uint32_t)lane ^ s->flip);
    __m128 span = _mm_load_ps(s->span), own_t = _mm_load_ps(own->own), before = _mm_setzero_ps();

    own->left = rest;
    s->open = rest != 0 ? open : closed;
    before = _mm_loadl_pi(before, (const __m64 *)(const void *)turn_before[lane]);
    own_t = _mm_fmadd_ps(before, _mm_mul_ps(span, _mm_load_ps(all->sides[level])), own_t);
    _mm_storel_pi((__m64 *)(void *)below->own, own_t);
    _mm_store_ps(s->side, _mm_mul_ps(span, _mm_load_ps(all->sides[level - 1])));
    s->level = (uint32_t)level - 1;
    below->index = index;
    const char *at = (const char *)s->tile + offsetof(struct tile, wide) +
                     (size_t)index * sizeof(struct wide_node);
    /* all bits of a node's child; chosen by bits, as gcc makes a branch of a choice */
    intptr_t is_node = (int64_t)(TURN_CELLS + 1 - level) >> 63;

    s->at = at;
    at = (const char *)own + ((at - (const char *)own) & is_node);
    __builtin_prefetch(at);
    __builtin_prefetch(at + sizeof(struct wide_node) - 1);
    turn_join(all->list_of[level], s);
}

/* Where a node is. */
static inline const char *turn_node_at(const struct heightfield *field, const struct tile *tile,
                                       uint32_t level, uint32_t index, uint32_t column,
                                       uint32_t row)
{
    return level > TURN_TILE ? (const char *)top_node(field, (int)level - 2, column, row)
                             : (const char *)&tile->wide[index];
}

/* A node above the tiles, or the root of a tile: where it is, and whether that is in the field. */
static inline __attribute__((always_inline)) bool turn_place(struct turns *all, struct turn *s,
                                                             uint32_t level)
{
    uint32_t shift = 2 * level, clear = (1u << (shift + 2)) - 1;
    uint32_t child = s->levels[level].index - 1;

    s->column = (s->column & ~clear) | (child & 3) << shift;
    s->row = (s->row & ~clear) | (child >> 2 & 3) << shift;
    s->levels[level].index = 0;
    return s->column < all->field->cell_cols && s->row < all->field->cell_rows;
}

static inline void turn_wait_for_node(struct turns *all, struct turn *s, const void *at)
{
    s->at = at;
    __builtin_prefetch(s->at);
    __builtin_prefetch(s->at + sizeof(struct wide_node) - 1);
    turn_join(&all->list[TURN_NODE], s);
}

static inline void turn_enter_tile(struct turns *all, struct turn *s)
{
    if (!turn_place(all, s, TURN_TILE)) {
        turn_go_on(all, s);
        return;
    }
    s->tile = heightfield_tile(all->field, s->column, s->row);
    turn_wait_for_node(all, s, s->tile->wide);
}

static inline void turn_enter_top(struct turns *all, struct turn *s)
{
    if (turn_place(all, s, s->level))
        turn_wait_for_node(all, s, top_node(all->field, (int)s->level - 2, s->column, s->row));
    else
        turn_go_on(all, s);
}

/* 4×4 cells: their samples are asked for. */
static inline void turn_enter_square(struct turns *all, struct turn *s)
{
    uint32_t path = s->levels[TURN_CELLS].index - (uint32_t)WIDE_TILE_NODES;
    uint32_t c = 4 * _pext_u32(path, LEAF_COLUMNS), r = 4 * _pext_u32(path, LEAF_ROWS);

    s->samples = s->tile->samples + (size_t)r * TILE_SAMPLES + c;
    s->square_column = s->column + c;
    s->square_row = s->row + r;
    for (size_t i = 0; i <= WIDE_LEAF_CELLS; i++) {
        __builtin_prefetch(s->samples + i * TILE_SAMPLES);
        __builtin_prefetch(s->samples + i * TILE_SAMPLES + WIDE_LEAF_CELLS);
    }
    turn_join(&all->list[TURN_SQUARE], s);
}

/* ---- turns -------------------------------------------------------------------------------------
 */

/* Empties a list; the end of what was in it. */
static inline struct turn **turns_take(struct turn_list *list)
{
    struct turn **end = list->end;

    list->end = list->at;
    return end;
}

/* A step of all that wait for a node or a square. */
static __attribute__((noinline)) void turns_ask(struct turns *all)
{
    struct turn_list *nodes = &all->list[TURN_NODE], *squares = &all->list[TURN_SQUARE];
    struct turn **nodes_end = turns_take(nodes), **squares_end = turns_take(squares);

    for (struct turn **at = nodes->at; at != nodes_end; at++)
        turn_open(*at, (*at)->level, turn_node_lanes(*at));
    for (struct turn **at = squares->at; at != squares_end; at++) {
        turn_open(*at, TURN_CELLS, turn_square_lanes(*at));
        *nodes_end++ = *at;
    }
    for (struct turn **at = nodes->at; at != nodes_end; at++)
        turn_go_on(all, *at);
}

static __attribute__((noinline)) void turns_enter(struct turns *all)
{
    struct turn_list *roots = &all->list[TURN_ROOT], *tops = &all->list[TURN_TOP];
    struct turn_list *leaves = &all->list[TURN_LEAF];
    struct turn **end = turns_take(roots);

    for (struct turn **at = roots->at; at != end; at++)
        turn_enter_tile(all, *at);
    end = turns_take(tops);
    for (struct turn **at = tops->at; at != end; at++)
        turn_enter_top(all, *at);
    end = turns_take(leaves);
    for (struct turn **at = leaves->at; at != end; at++)
        turn_enter_square(all, *at);
}

/* The answer of a ray whose walk tells how it hits. */
static inline void turns_answer(const struct walk *w, const struct ray *ray, struct ray_hit *hit)
{
    if (!ray_end(w, ray, hit))
        hit->t = INFINITY;
}

/* The cell that a ray waits for. */
struct turn_cell {
    int32_t column, row;
    const float *at;
};

static inline struct turn_cell turn_cell(const struct turn *s)
{
    uint32_t cell = s->levels[0].index - 1, c = cell & 3, r = cell >> 2 & 3;

    return (struct turn_cell){(int32_t)(s->square_column + c), (int32_t)(s->square_row + r),
                              s->samples + (size_t)r * TILE_SAMPLES + c};
}

/* As many cells as there are lanes. */
static __attribute__((noinline)) void turns_ask_cells(struct turns *all)
{
    struct turn_list *list = &all->list[TURN_CELL];
    struct turn **turn = list->end -= ABREAST; /* as they go on they may join again, behind */
    const float *at[ABREAST];
    int32_t column[ABREAST], row[ABREAST];
    struct abreast_asked asked;
    uint32_t left;

    asked.cells.at = at;
    asked.cells.column = column;
    asked.cells.row = row;
#pragma GCC unroll 4
    for (int i = 0; i < ABREAST; i++) {
        struct turn_cell cell = turn_cell(turn[i]);

        asked.cells.w[i] = turn[i]->w;
        asked.ray[i] = turn[i]->ray;
        asked.hit[i] = turn[i]->hit;
        at[i] = cell.at;
        column[i] = cell.column;
        row[i] = cell.row;
    }
    uint32_t hits = abreast_cells_end(&asked, &left);

    for (; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);

        turns_answer(turn[i]->w, turn[i]->ray, turn[i]->hit);
    }
    for (int i = 0; i < ABREAST; i++)
        if ((hits >> i & 1) != 0)
            turn_join(&all->list[TURN_IDLE], turn[i]);
        else
            turn_go_on(all, turn[i]);
}

/* Fewer cells, when nothing else is left. */
static __attribute__((noinline)) void turns_ask_last_cells(struct turns *all)
{
    struct turn_list *list = &all->list[TURN_CELL];
    struct turn **end = turns_take(list);

    for (struct turn **at = list->at; at != end; at++) {
        struct turn *s = *at;
        struct turn_cell cell = turn_cell(s);
        bool is_hit = cell_alone_hit(s->w, cell.column, cell.row, cell.at);

        if (is_hit) {
            turns_answer(s->w, s->ray, s->hit);
            turn_join(&all->list[TURN_IDLE], s);
        } else {
            turn_go_on(all, s);
        }
    }
}

/* ---- rays that begin ---------------------------------------------------------------------------
 */

/* One that takes no turns. */
static inline void turns_ask_alone(struct turns *all, size_t ray)
{
    if (!ray_alone_avx2(all->field, &all->rays[ray], &all->hits[ray]))
        all->hits[ray].t = INFINITY;
}

/* Ray k of those that have begun needs no turn, or is none for here, and is answered. */
static bool turns_is_answered(struct turns *all, uint32_t k, struct walk *w, size_t ray)
{
    const struct abreast_begun *b = &all->begun;

    if ((b->misses >> k & 1) != 0)
        return true;
    if ((b->alone >> k & 1) != 0) {
        turns_ask_alone(all, ray);
        return true;
    }
    if ((b->may_start_on >> k & 1) == 0 || !ray_touches(w, 0))
        return false;
    turns_answer(w, &all->rays[ray], &all->hits[ray]);
    return true;
}

/* Four by four float32, rows to columns. */
#define TURNS_TRANSPOSE(a, b, c, d, to)                                                            \
    do {                                                                                           \
        __m128 r0 = (a), r1 = (b), r2 = (c), r3 = (d);                                             \
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);                                                         \
        (to)[0] = r0, (to)[1] = r1, (to)[2] = r2, (to)[3] = r3;                                    \
    } while (0)

/* What nodes need of four rays. */
struct turns_first {
    __m128 spans[4], heights[4], ways[4], places[4];
    uint32_t column[4], row[4], level[4];
};

static inline __m128i sign_ints(__m256d d)
{
    __m128i low = _mm_castpd_si128(_mm256_castpd256_pd128(d));
    __m128i high = _mm_castpd_si128(_mm256_extractf128_pd(d, 1));

    return _mm_srai_epi32(
        _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0xdd)), 31);
}

/* Where the rays are at their ends, and a little further. */
static inline __m128i turns_last(const struct abreast_axis *a, __m256d t_end, uint32_t cells,
                                 __m256d slack)
{
    __m256d sign = _mm256_and_pd(a->d, _mm256_set1_pd(-0.0));
    __m256d to = abreast_along(a->o, a->d, t_end);

    to = _mm256_add_pd(to, _mm256_or_pd(slack, sign));
    to = _mm256_min_pd(_mm256_max_pd(to, _mm256_setzero_pd()), _mm256_set1_pd(cells - 1));
    return _mm256_cvttpd_epi32(to);
}

static inline __m128i turns_from(const struct abreast_axis *a, uint32_t cells, __m256d slack)
{
    __m256d sign = _mm256_and_pd(a->d, _mm256_set1_pd(-0.0));
    __m256d from = _mm256_sub_pd(a->o, _mm256_or_pd(slack, sign));

    from = _mm256_min_pd(_mm256_max_pd(from, _mm256_setzero_pd()), _mm256_set1_pd(cells - 1));
    return _mm256_cvttpd_epi32(from);
}

static inline __m128 turns_own(const struct abreast_axis *a, __m128i low, __m128i size,
                               __m128i down, __m128 pad)
{
    __m256d line = _mm256_cvtepi32_pd(_mm_add_epi32(low, _mm_and_si128(size, down)));

    return _mm_sub_ps(_mm256_cvtpd_ps(_mm256_mul_pd(_mm256_sub_pd(line, a->o), a->inv)), pad);
}

static inline void turns_first(const struct turns *all, const struct abreast_start *s,
                               struct turns_first *f)
{
    const struct heightfield *field = all->field;
    const __m256d slack = _mm256_set1_pd(RAY_BOX_SLACK), sign = _mm256_set1_pd(-0.0);
    const __m128 pad_cells = _mm_set1_ps(all->pad_cells), eps = _mm_set1_ps(1 + 0x1p-19f);
    const struct abreast_axis *a = s->a;
    __m128i down_u = sign_ints(a[0].d), down_v = sign_ints(a[1].d), down_z = sign_ints(a[2].d);
    __m128i u = turns_from(&a[0], field->cell_cols, slack);
    __m128i v = turns_from(&a[1], field->cell_rows, slack);
    __m128i both = _mm_xor_si128(u, turns_last(&a[0], s->in.t_end, field->cell_cols, slack));
    __m128i both_v = _mm_xor_si128(v, turns_last(&a[1], s->in.t_end, field->cell_rows, slack));

    both = _mm_or_si128(_mm_or_si128(both, both_v), _mm_set1_epi32(15));
    both = _mm_srli_epi32(_mm_castps_si128(_mm_cvtepi32_ps(both)), 23);
    /* twice the level: log2 of the side of a child */
    __m128i level = _mm_and_si128(_mm_sub_epi32(both, _mm_set1_epi32(127)), _mm_set1_epi32(~1));
    __m128i size = _mm_sllv_epi32(_mm_set1_epi32(4), level);
    __m128i clear = _mm_sub_epi32(_mm_setzero_si128(), size);

    u = _mm_and_si128(u, clear);
    v = _mm_and_si128(v, clear);
    __m128 span_u = _mm256_cvtpd_ps(_mm256_andnot_pd(sign, a[0].inv));
    __m128 span_v = _mm256_cvtpd_ps(_mm256_andnot_pd(sign, a[1].inv));
    __m128 own_u = turns_own(&a[0], u, size, down_u, _mm_mul_ps(pad_cells, span_u));
    __m128 own_v = turns_own(&a[1], v, size, down_v, _mm_mul_ps(pad_cells, span_v));
    __m256d z = _mm256_xor_pd(a[2].o, _mm256_and_pd(a[2].d, sign));
    __m256d pad_z = _mm256_add_pd(s->in.pad_m, _mm256_set1_pd((double)all->pad_z));

    TURNS_TRANSPOSE(span_u, span_v, own_u, own_v, f->spans);
    TURNS_TRANSPOSE(_mm256_cvtpd_ps(_mm256_andnot_pd(sign, a[2].d)),
                    _mm256_cvtpd_ps(_mm256_sub_pd(z, pad_z)),
                    _mm256_cvtpd_ps(_mm256_add_pd(z, pad_z)),
                    _mm_mul_ps(_mm256_cvtpd_ps(s->in.t_begin), eps), f->heights);
    __m128i flip = _mm_or_si128(_mm_and_si128(down_u, _mm_set1_epi32(3)),
                                _mm_and_si128(down_v, _mm_set1_epi32(12)));
    __m128i lines = _mm_add_epi32(_mm_and_si128(down_u, _mm_set1_epi32(sizeof turn_lines[0])),
                                  _mm_and_si128(down_v, _mm_set1_epi32(2 * sizeof turn_lines[0])));
    __m128i other = _mm_and_si128(down_z, _mm_set1_epi32(WIDE_CHILDREN));
    __m128i in_at = _mm_sub_epi32(_mm_set1_epi32(offsetof(struct wide_node, max)), other);
    __m128i out_at = _mm_add_epi32(_mm_set1_epi32(offsetof(struct wide_node, min)), other);
    __m128i in_tile = _mm_cmplt_epi32(level, _mm_set1_epi32(2 * TURN_TILE));

    TURNS_TRANSPOSE(_mm_mul_ps(_mm256_cvtpd_ps(s->in.t_end), eps),
                    _mm_castsi128_ps(_mm_slli_epi32(down_z, 31)), _mm_castsi128_ps(flip),
                    _mm_castsi128_ps(in_at), f->ways);
    /* where the tile is, or the node above tiles */
    in_tile = _mm_andnot_si128(_mm_and_si128(in_tile, _mm_set1_epi32(TILE_CELLS - 1)),
                               _mm_set1_epi32(-1));
    TURNS_TRANSPOSE(_mm_castsi128_ps(_mm_and_si128(u, in_tile)),
                    _mm_castsi128_ps(_mm_and_si128(v, in_tile)), _mm_castsi128_ps(out_at),
                    _mm_castsi128_ps(lines), f->places);
    _mm_storeu_si128((__m128i *)(void *)f->column, u);
    _mm_storeu_si128((__m128i *)(void *)f->row, v);
    _mm_storeu_si128((__m128i *)(void *)f->level,
                     _mm_add_epi32(_mm_srli_epi32(level, 1), _mm_set1_epi32(TURN_CELLS)));
}

/* Ray k of those that have begun takes turns. */
static inline void turns_put(struct turns *all, struct turn *s, const struct turns_first *f,
                             uint32_t k, size_t ray)
{
    static const uint16_t first[TURN_LEVELS] = {0, 0, WIDE_TILE_LAST_LEVEL, 1};
    uint32_t column = f->column[k], row = f->row[k], level = f->level[k];
    uint64_t path = _pdep_u32(column >> 4, 0x33) | _pdep_u32(row >> 4, 0xcc);
    uint32_t index = first[level] + (uint32_t)(path >> 4 * (level - 2));
    __m128 span = _mm_movelh_ps(f->spans[k], f->spans[k]);

    s->ray = &all->rays[ray];
    s->hit = &all->hits[ray];
    _mm_storeu_ps(&s->dz, f->heights[k]);
    _mm_storeu_ps(&s->t_high, f->ways[k]);
    _mm_storeu_ps((float *)(void *)&s->column, f->places[k]);
    _mm_store_ps(s->span, span);
    _mm_store_ps(s->side, _mm_mul_ps(span, _mm_load_ps(all->sides[level])));
    _mm_storeh_pi((__m64 *)(void *)s->levels[level].own, f->spans[k]);
    s->levels[level].index = index;
    s->level = level;
    s->open = 1u << TURN_OVER;
    s->levels[TURN_OVER].left = 1;
    s->tile = heightfield_tile(all->field, column, row);
    s->at = turn_node_at(all->field, s->tile, level, index, column, row);
    __builtin_prefetch(s->at);
    __builtin_prefetch(s->at + sizeof(struct wide_node) - 1);
    turn_join(&all->list[TURN_NODE], s);
}

static inline void turns_prefetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
}

/* The next rays. */
static __attribute__((noinline)) void turns_refill(struct turns *all)
{
    struct turn_list *idle = &all->list[TURN_IDLE];
    size_t next = all->next, ahead = next + 2 * ABREAST;
    struct turn **turn = idle->end -= ABREAST; /* some may join again, behind */
    const struct ray *rays[ABREAST];
    struct walk *w[ABREAST];
    struct abreast_start start;
    struct turns_first first;

    all->next += ABREAST;
#pragma GCC unroll 4
    for (size_t k = 0; k < ABREAST; k++) {
        rays[k] = &all->rays[next + k];
        w[k] = turn[k]->w;
    }
    if (ahead + ABREAST <= all->count) {
        turns_prefetch(&all->rays[ahead], ABREAST * sizeof *all->rays);
        /* else stores wait for it, in order */
        turns_prefetch(&all->hits[ahead], ABREAST * sizeof *all->hits);
    }
    abreast_begin(&all->begun, rays, w, &start);
    turns_first(all, &start, &first);
    uint32_t special = all->begun.misses | all->begun.alone | all->begun.may_start_on;

    for (uint32_t k = 0; k < ABREAST; k++) {
        all->hits[next + k].t = INFINITY;
        if ((special >> k & 1) != 0 && turns_is_answered(all, k, w[k], next + k))
            turn_join(idle, turn[k]);
        else
            turns_put(all, turn[k], &first, k, next + k);
    }
}

static void turns_init(struct turns *all, const struct heightfield *field, const struct ray *rays,
                       size_t count, struct ray_hit *hits)
{
    static const uint8_t kinds[TURN_LEVELS] = {TURN_CELL, TURN_CELL, TURN_LEAF, TURN_NODE,
                                               TURN_NODE, TURN_ROOT, TURN_TOP,  TURN_TOP,
                                               TURN_TOP,  TURN_TOP,  TURN_TOP,  TURN_IDLE};
    uint32_t root = WIDE_TILE_LEVELS + field->wide_level_count;
    float root_cells = (float)(4u << 2 * root);

    all->field = field;
    all->rays = rays;
    all->hits = hits;
    all->count = count;
    all->next = 0;
    abreast_begun_init(&all->begun, field);
    all->pad_cells = RAY_BOX_PAD * root_cells;
    /* never 0: of what is left only the sign is looked at */
    all->pad_z = RAY_BOX_PAD * (fabsf(all->begun.z.min) + fabsf(all->begun.z.max)) + 1e-8f;
    memset(all->turn, 0, sizeof all->turn);
    for (int kind = 0; kind < TURN_KINDS; kind++)
        all->list[kind].end = all->list[kind].at;
    for (uint32_t level = 0; level < TURN_LEVELS; level++) {
        float side = level < TURN_CELLS ? 0 : side_of[level - TURN_CELLS];

        all->list_of[level] = &all->list[kinds[level]];
        for (int i = 0; i < 2; i++) {
            all->sides[level][i] = side;
            all->sides[level][2 + i] = side + 2 * all->pad_cells;
        }
    }
    for (uint32_t id = 0; id < TURNS; id++) {
        struct turn *s = &all->turn[TURNS - 1 - id];

        s->w = &all->w[TURNS - 1 - id];
        abreast_walk_init(&all->begun, s->w);
        s->tile = field->tiles[0];
        turn_join(&all->list[TURN_IDLE], s);
    }
}

static inline bool turns_suit(const struct heightfield *field)
{
    struct bounds z = heightfield_node(field, field->level_max, 0, 0);

    return z.min <= z.max;
}

static void turns_many(const struct heightfield *field, const struct ray *rays, size_t count,
                       struct ray_hit *hits)
{
    const struct turn_list *idle, *cells;
    struct turns all;

    turns_init(&all, field, rays, count, hits);
    idle = &all.list[TURN_IDLE];
    cells = &all.list[TURN_CELL];
    do {
        while (turns_waiting(idle) >= ABREAST && count - all.next >= ABREAST)
            turns_refill(&all);
        turns_ask(&all);
        turns_enter(&all);
        while (turns_waiting(cells) >= ABREAST)
            turns_ask_cells(&all);
        if (turns_waiting(cells) + turns_waiting(idle) == TURNS)
            turns_ask_last_cells(&all);
    } while (turns_waiting(idle) != TURNS || count - all.next >= ABREAST);
    for (size_t ray = all.next; ray < count; ray++)
        turns_ask_alone(&all, ray);
}

#endif
#endif
