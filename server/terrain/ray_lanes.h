/*
 * Many rays by AVX-512, a lane a ray: ray_avx512.c includes this.
 *
 * Problem: a ray's next node depends on the answer of the last one. Alone, a ray waits for its
 * answers and guesses its jumps; rays that take turns (ray_descent.h) hide the waiting, but still
 * spend forty instructions and a guess on each node. Approach: the scalar walk of ray.c, for
 * sixteen rays at a time and without a branch. Each lane is at its own cell and asks a node of its
 * own level: float32 finds the line by which it leaves the node, and what the node's bounds say
 * makes it go down a level or jump over the line. A lane whose ray is answered takes the next ray.
 * Groups of lanes go in turns: each asks for the memory of its nodes some turns before it reads
 * them.
 *
 * float32 may decide what is certain only. Where two crossings are nearer to each other than their
 * error, or a jump lands within the error of a line, ray_leave_node decides in float64 for that
 * lane; so the path is that of ray.c, cell by cell. Heights are padded. A cell whose heights may be
 * met joins a queue, and its lane waits; eight at once go through the walk's own arithmetic
 * (ray_eight.h). So the answer has the bits of ray.c's. Rays begin eight at once, too
 * (ray_begin_eight.h), and not at the root, whose heights nearly every ray meets, but at a node of
 * 128×128 cells; the walk goes up from there by itself.
 *
 * Invariants: column and row of a lane are the cell where its ray enters the node it asks next, on
 * the exact path; t is that of the entry within the pad. A lane without a ray is not moved.
 *
 * Left to ray_alone.h: rays that hardly move along an axis, whose crossings are uncertain all the
 * time. Left to ray_descent.h: fields so wide that float32 has too few bits for their cells, and
 * those with large leaves.
 */
#ifndef KOTA_TERRAIN_RAY_LANES_H
#define KOTA_TERRAIN_RAY_LANES_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_begin_eight.h"
#include "terrain/ray_descent.h"
#include "terrain/ray_eight.h"

enum {
    LANES = 16,
    LANES_GROUPS = 8,
    LANES_LATE = 4,   /* turns from a group's step until it asks: what was written is in memory */
    LANES_LEAST = 64, /* rays that are worth it */
    LANES_CELLS_MAX = 1 << 15,
    LANES_LEAF_SHIFT_MAX = 4,
    LANES_BEGIN = 7,  /* log2 of a first node's side in cells */
    LANES_LEVELS = 32 /* two vectors */
};

/* Of a place in cells, as LANES_T_PAD of ray_begin_eight.h is of t. */
#define LANES_CELLS_PAD 0x1p-21f
#define LANES_ENDS (1u << 31)

/* What the levels of a field are made of; index: log2 of a node's side in cells, 0 for cells. */
struct lanes_field {
    const struct heightfield *field;
    bool is_small;                             /* up to 16 tiles */
    _Alignas(64) struct tile *tile[LANES];     /* of a small field */
    _Alignas(64) int32_t at[LANES_LEVELS];     /* first node, in bytes from the tile or the top */
    _Alignas(64) int32_t stride[LANES_LEVELS]; /* bytes a row of nodes */
    _Alignas(64) int32_t up[LANES_LEVELS], down[LANES_LEVELS]; /* the levels around this one */
    float cells_pad;
    int32_t begin; /* the level of the first node */
};

/* Sixteen rays on their way. */
struct lanes {
    _Alignas(64) float inv_u[LANES], inv_v[LANES], off_u[LANES], off_v[LANES]; /* t of line k */
    _Alignas(64) float u0[LANES], v0[LANES], z0[LANES], du[LANES], dv[LANES], dz[LANES];
    _Alignas(64) float t_end[LANES], pad_t[LANES], pad_z[LANES];
    _Alignas(64) int32_t column[LANES], row[LANES], level[LANES];
    _Alignas(64) float t[LANES];
    uint32_t busy;   /* lanes with a ray */
    uint32_t parked; /* of these, those whose cell is in the queue; they have left it already */
    bool has_asked;
    uint32_t active;                    /* those that asked for their node */
    uint32_t up_u, up_v;                /* du > 0, dv > 0 */
    _Alignas(64) const char *at[LANES]; /* the bounds of the node, or the cell's first sample */
    _Alignas(64) const char *next_row[LANES]; /* of cells the sample below, else the same */
    const struct ray *ray[LANES];
    struct ray_hit *hit[LANES];
    struct walk w[LANES];
};

/* Cells whose heights a ray may meet; they wait until there are eight of them. */
struct lanes_queue {
    struct lanes *groups;
    uint32_t count;
    _Alignas(64) const float *at[EIGHT + 2 * LANES]; /* up to LANES behind the last are written */
    int32_t column[EIGHT + 2 * LANES], row[EIGHT + 2 * LANES];
    uint32_t ray[EIGHT + 2 * LANES]; /* group · LANES + lane, LANES_ENDS for its last cell */
};

static bool lanes_field_init(struct lanes_field *lf, const struct heightfield *field)
{
    const struct tile *tile = field->tiles[0];
    uint32_t leaf = field->leaf_shift > 2 ? field->leaf_shift : 2;
    uint32_t cells = field->cell_cols > field->cell_rows ? field->cell_cols : field->cell_rows;

    struct bounds z = heightfield_node(field, field->level_max, 0, 0);

    if (cells > LANES_CELLS_MAX || leaf > LANES_LEAF_SHIFT_MAX || !(z.min <= z.max))
        return false;
    *lf = (struct lanes_field){.field = field, .cells_pad = LANES_CELLS_PAD * (float)cells};
    lf->begin = (int32_t)(field->level_max < LANES_BEGIN ? field->level_max : LANES_BEGIN);
    size_t tiles = (size_t)field->tile_cols * field->tile_rows;

    lf->is_small = tiles <= LANES;
    if (lf->is_small)
        memcpy(lf->tile, field->tiles, tiles * sizeof lf->tile[0]);
    lf->at[0] = (int32_t)offsetof(struct tile, samples);
    lf->stride[0] = TILE_SAMPLES * (int32_t)sizeof(float);
    lf->up[0] = (int32_t)leaf;
    for (uint32_t level = leaf; level <= field->level_max; level++) {
        size_t node = sizeof(struct bounds);

        if (level < TILE_SHIFT) {
            size_t nodes = (size_t)((const char *)tile->nodes - (const char *)tile);

            lf->at[level] = (int32_t)(nodes + tile->level_offset[level] * node);
            lf->stride[level] = (int32_t)(node << (TILE_SHIFT - level));
        } else {
            const struct top_level *top = &field->top_level[level - TILE_SHIFT];

            lf->at[level] = (int32_t)(top->offset * node);
            lf->stride[level] = (int32_t)(top->cols * node);
        }
        lf->down[level] = level == leaf ? 0 : (int32_t)level - 1;
        lf->up[level] = level == field->level_max ? (int32_t)level : (int32_t)level + 1;
    }
    return true;
}

/* Lane i has ray k of those that have begun. */
static inline void lanes_put(struct lanes *l, const struct lanes_field *lf, int i,
                             const struct eight_begun *b, int k)
{
    uint32_t others = ~(1u << i);

    l->inv_u[i] = b->inv_u[k];
    l->inv_v[i] = b->inv_v[k];
    l->off_u[i] = b->off_u[k];
    l->off_v[i] = b->off_v[k];
    l->u0[i] = b->u0[k];
    l->v0[i] = b->v0[k];
    l->z0[i] = b->z0[k];
    l->du[i] = b->du[k];
    l->dv[i] = b->dv[k];
    l->dz[i] = b->dz[k];
    l->t_end[i] = b->t_end[k];
    l->pad_t[i] = b->pad_t[k];
    l->pad_z[i] = b->pad_z[k];
    l->column[i] = b->column[k];
    l->row[i] = b->row[k];
    l->level[i] = lf->begin;
    l->t[i] = b->t[k];
    l->up_u = (l->up_u & others) | (b->up_u >> k & 1) << i;
    l->up_v = (l->up_v & others) | (b->up_v >> k & 1) << i;
}

/* The rays of a batch: up to `next` they are begun, of the last ones those in `left` not taken. */
struct lanes_rays {
    const struct ray *rays;
    size_t count, next, first; /* of the last ones */
    struct ray_hit *hits;
    uint32_t left;
    struct eight_begun begun;
};

/* The next eight rays, or what there is. False: nothing. */
static bool lanes_begin(struct lanes_rays *r)
{
    struct ray few[EIGHT];
    const struct ray *rays = &r->rays[r->next];
    size_t count = r->count - r->next;

    if (count == 0)
        return false;
    for (size_t i = EIGHT; i < 2 * EIGHT && i < count; i++)
        __builtin_prefetch(&rays[i]);
    count = count < EIGHT ? count : EIGHT;
    for (size_t i = 0; count < EIGHT && i < EIGHT; i++) /* the last one again and again */
        few[i] = rays[i < count ? i : count - 1];
    eight_begin(&r->begun, count < EIGHT ? few : rays);
    r->first = r->next;
    r->next += count;
    r->left = _bzhi_u32(~r->begun.misses, (uint32_t)count);
    for (uint32_t i = 0; i < count; i++)
        if ((r->left >> i & 1) == 0)
            r->hits[r->first + i].t = INFINITY;
    return true;
}

/* Gives lane i the next ray that is one for lanes; the others are answered. False: none is left. */
static inline bool lanes_next(struct lanes *l, const struct lanes_field *lf, int i,
                              struct lanes_rays *r)
{
    struct walk *w = &l->w[i];

    while (r->left != 0 || lanes_begin(r)) {
        if (r->left == 0)
            continue;
        int k = __builtin_ctz(r->left);
        const struct ray *ray = &r->rays[r->first + (size_t)k];
        struct ray_hit *hit = &r->hits[r->first + (size_t)k];

        r->left &= r->left - 1;
        if ((r->begun.alone >> k & 1) != 0) {
            if (!ray_alone_avx512(lf->field, ray, hit))
                hit->t = INFINITY;
            continue;
        }
        eight_take(&r->begun, k, w);
        if ((r->begun.may_start_on >> k & 1) == 0 || !ray_starts_on_ground(w)) {
            l->ray[i] = ray;
            l->hit[i] = hit;
            lanes_put(l, lf, i, &r->begun, k);
            return true;
        }
        if (!ray_end(w, ray, hit))
            hit->t = INFINITY;
    }
    return false;
}

static inline __m512i lanes_table(const int32_t *table, __m512i level)
{
    return _mm512_permutex2var_epi32(_mm512_load_si512(table), level,
                                     _mm512_load_si512(table + LANES));
}

/* Eight tiles; where there are few of them, two vectors hold all: a gather takes four times that.
 */
static inline __m512i lanes_tiles(const struct lanes_field *lf, __m256i index, __mmask8 in_tile,
                                  __m512i top)
{
    __m512i wide = _mm512_cvtepu32_epi64(index);

    if (!lf->is_small)
        return _mm512_mask_i64gather_epi64(top, in_tile, wide, lf->field->tiles, 8);
    __m512i tile = _mm512_permutex2var_epi64(_mm512_load_si512(lf->tile), wide,
                                             _mm512_load_si512(lf->tile + LANES / 2));

    return _mm512_mask_mov_epi64(top, in_tile, tile);
}

struct lanes_bounds {
    __m512 min, max;
};

/*
 * Where the bounds of each lane's node are, or the samples of its cell, and their memory on the
 * way.
 */
static inline void lanes_ask(struct lanes *l, const struct lanes_field *lf)
{
    __m512i column = _mm512_load_si512(l->column), row = _mm512_load_si512(l->row);
    __m512i level = _mm512_load_si512(l->level);

    l->active = l->busy & ~l->parked;
    l->has_asked = true;
    const struct heightfield *field = lf->field;
    const __m512i cells = _mm512_set1_epi32(TILE_CELLS - 1);
    __mmask16 in_tile = _mm512_cmplt_epi32_mask(level, _mm512_set1_epi32(TILE_SHIFT));
    __mmask16 is_cell = _mm512_testn_epi32_mask(level, level);
    __m512i tile = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_srli_epi32(row, TILE_SHIFT),
                                                       _mm512_set1_epi32((int)field->tile_cols)),
                                    _mm512_srli_epi32(column, TILE_SHIFT));
    __m512i top = _mm512_set1_epi64((long long)(uintptr_t)field->top);
    __m512i low = lanes_tiles(lf, _mm512_castsi512_si256(tile), (__mmask8)in_tile, top);
    __m512i high =
        lanes_tiles(lf, _mm512_extracti64x4_epi64(tile, 1), (__mmask8)(in_tile >> 8), top);
    __m512i c = _mm512_mask_and_epi32(column, in_tile, column, cells);
    __m512i r = _mm512_mask_and_epi32(row, in_tile, row, cells);

    c = _mm512_srlv_epi32(c, level);
    c = _mm512_sllv_epi32(
        c, _mm512_mask_blend_epi32(is_cell, _mm512_set1_epi32(3), _mm512_set1_epi32(2)));
    r = _mm512_mullo_epi32(_mm512_srlv_epi32(r, level), lanes_table(lf->stride, level));
    __m512i at = _mm512_add_epi32(lanes_table(lf->at, level), _mm512_add_epi32(c, r));

    low = _mm512_add_epi64(low, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(at)));
    high = _mm512_add_epi64(high, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(at, 1)));
    const __m512i row_bytes = _mm512_set1_epi64(TILE_SAMPLES * sizeof(float));

    _mm512_store_si512(l->at, low);
    _mm512_store_si512(l->at + LANES / 2, high);
    low = _mm512_mask_add_epi64(low, (__mmask8)is_cell, low, row_bytes);
    high = _mm512_mask_add_epi64(high, (__mmask8)(is_cell >> 8), high, row_bytes);
    _mm512_store_si512(l->next_row, low);
    _mm512_store_si512(l->next_row + LANES / 2, high);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        __builtin_prefetch(l->at[i]);
        __builtin_prefetch(l->next_row[i]);
    }
}

/* A pair of float32, which lies at a multiple of four bytes. */
static inline double pair_at(const char *at)
{
    double pair;

    memcpy(&pair, at, sizeof pair);
    return pair;
}

static inline __m256 four_pairs(const char *const *at)
{
    __m128d low = _mm_set_pd(pair_at(at[1]), pair_at(at[0]));
    __m128d high = _mm_set_pd(pair_at(at[3]), pair_at(at[2]));

    return _mm256_castpd_ps(_mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1));
}

/* The first float32 of each lane's pair, the second. */
static inline struct lanes_bounds lanes_pairs(const char *const *at)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    __m512 low = _mm512_insertf32x8(_mm512_castps256_ps512(four_pairs(at)), four_pairs(at + 4), 1);
    __m512 high =
        _mm512_insertf32x8(_mm512_castps256_ps512(four_pairs(at + 8)), four_pairs(at + 12), 1);

    return (struct lanes_bounds){_mm512_permutex2var_ps(low, even, high),
                                 _mm512_permutex2var_ps(low, odd, high)};
}

/* Bounds of what was asked for. */
static inline struct lanes_bounds lanes_bounds(const struct lanes *l, __mmask16 is_cell)
{
    struct lanes_bounds b = lanes_pairs(l->at);

    if (is_cell != 0) {
        const __m512 none_min = _mm512_set1_ps(__builtin_inff());
        const __m512 none_max = _mm512_set1_ps(-__builtin_inff());
        struct lanes_bounds next = lanes_pairs(l->next_row);
        /* of two operands the second, when the first is NaN */
        __m512 min = _mm512_min_ps(b.max, _mm512_min_ps(b.min, none_min));
        __m512 max = _mm512_max_ps(b.max, _mm512_max_ps(b.min, none_max));

        min = _mm512_min_ps(next.max, _mm512_min_ps(next.min, min));
        max = _mm512_max_ps(next.max, _mm512_max_ps(next.min, max));
        b.min = _mm512_mask_mov_ps(b.min, is_cell, min);
        b.max = _mm512_mask_mov_ps(b.max, is_cell, max);
    }
    return b;
}

/* Float64 has the word on the cells that are left: they join the queue. */
static inline void lanes_queue_cells(struct lanes_queue *queue, struct lanes *l, __mmask16 cells,
                                     __mmask16 ends)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t n = queue->count, count = (uint32_t)__builtin_popcount(cells);
    uint32_t low = (uint32_t)__builtin_popcount(cells & 0xff);
    __m512i ray = _mm512_add_epi32(lane, _mm512_set1_epi32((int)(l - queue->groups) * LANES));

    ray = _mm512_mask_or_epi32(ray, ends, ray, _mm512_set1_epi32((int)LANES_ENDS));
    l->parked |= cells;
    queue->count = n + count;
    _mm512_storeu_si512(&queue->ray[n], _mm512_maskz_compress_epi32(cells, ray));
    _mm512_storeu_si512(&queue->column[n],
                        _mm512_maskz_compress_epi32(cells, _mm512_load_si512(l->column)));
    _mm512_storeu_si512(&queue->row[n],
                        _mm512_maskz_compress_epi32(cells, _mm512_load_si512(l->row)));
    _mm512_storeu_si512(&queue->at[n],
                        _mm512_maskz_compress_epi64((__mmask8)cells, _mm512_load_si512(l->at)));
    _mm512_storeu_si512(
        &queue->at[n + low],
        _mm512_maskz_compress_epi64((__mmask8)(cells >> 8), _mm512_load_si512(l->at + LANES / 2)));
}

/* The rays of some queued cells end in them. */
static inline void lanes_queue_ends(struct lanes_queue *queue, const struct lanes *l,
                                    uint32_t lanes)
{
    uint32_t first = (uint32_t)(l - queue->groups) * LANES;

    for (uint32_t i = 0; lanes != 0 && i < queue->count; i++) {
        uint32_t lane = (queue->ray[i] & ~LANES_ENDS) - first;

        if (lane < LANES && (lanes >> lane & 1) != 0)
            queue->ray[i] |= LANES_ENDS;
    }
}

/* The jumps that float32 cannot decide. Lanes whose rays end. */
static uint32_t lanes_jump(struct lanes *l, const struct lanes_field *lf, uint32_t unsure)
{
    uint32_t over = 0;

    for (; unsure != 0; unsure &= unsure - 1) {
        int i = __builtin_ctz(unsure);
        struct walk *w = &l->w[i];
        int32_t up = lf->up[l->level[i]];

        w->column = l->column[i];
        w->row = l->row[i];
        if (!ray_leave_node(w, (uint32_t)l->level[i])) {
            over |= 1u << i;
            continue;
        }
        int64_t line = w->entry == ENTRY_U ? w->column + (w->du < 0) : w->row + (w->dv < 0);

        l->column[i] = (int32_t)w->column;
        l->row[i] = (int32_t)w->row;
        l->t[i] = (float)w->t;
        l->level[i] = (line & (((int64_t)1 << up) - 1)) == 0 ? up : l->level[i];
    }
    return over;
}

/* How the lanes leave their nodes. */
struct lanes_exit {
    __m512i line;          /* the line they cross */
    __m512i low, high;     /* the node's columns, or rows, along it */
    __m512 t_leave, t_end; /* of the crossing; the same, or the ray's end when that comes first */
    __m512 pad;            /* what they are wrong by, twice */
    __mmask16 by_u;        /* the line is a u line */
    __mmask16 ends;        /* the ray ends inside */
    __mmask16 is_tie;      /* which line comes first is not certain */
};

/* Never by the field's border. */
static inline struct lanes_exit lanes_exit(const struct lanes *l, const struct heightfield *field,
                                           __m512i column, __m512i row, __m512i level)
{
    const __m512i one = _mm512_set1_epi32(1);
    const __m512 inf = _mm512_set1_ps(__builtin_inff());
    const __m512i cols = _mm512_set1_epi32((int)field->cell_cols);
    const __m512i rows = _mm512_set1_epi32((int)field->cell_rows);
    __m512i node_c = _mm512_srlv_epi32(column, level), node_r = _mm512_srlv_epi32(row, level);
    __m512i u = _mm512_mask_add_epi32(node_c, (__mmask16)l->up_u, node_c, one);
    __m512i v = _mm512_mask_add_epi32(node_r, (__mmask16)l->up_v, node_r, one);
    struct lanes_exit e;

    u = _mm512_sllv_epi32(u, level);
    v = _mm512_sllv_epi32(v, level);
    __mmask16 has_u = _mm512_mask_cmplt_epi32_mask(_mm512_test_epi32_mask(u, u), u, cols);
    __mmask16 has_v = _mm512_mask_cmplt_epi32_mask(_mm512_test_epi32_mask(v, v), v, rows);
    __m512 t_u =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(u), _mm512_load_ps(l->inv_u), _mm512_load_ps(l->off_u));
    __m512 t_v =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(v), _mm512_load_ps(l->inv_v), _mm512_load_ps(l->off_v));
    __m512 t_end = _mm512_load_ps(l->t_end);

    t_u = _mm512_mask_mov_ps(inf, has_u, t_u);
    t_v = _mm512_mask_mov_ps(inf, has_v, t_v);
    e.by_u = _mm512_cmp_ps_mask(t_u, t_v, _CMP_LE_OQ);
    e.line = _mm512_mask_blend_epi32(e.by_u, v, u);
    e.t_leave = _mm512_min_ps(t_u, t_v);
    e.t_end = _mm512_min_ps(e.t_leave, t_end);
    e.pad = _mm512_fmadd_ps(_mm512_abs_ps(e.t_end), _mm512_set1_ps(LANES_T_PAD),
                            _mm512_load_ps(l->pad_t));
    e.ends = _mm512_cmp_ps_mask(e.t_leave, _mm512_add_ps(t_end, e.pad), _CMP_NLE_UQ);
    e.is_tie = _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(t_u, t_v)),
                                  _mm512_add_ps(e.pad, e.pad), _CMP_LE_OQ);
    e.low = _mm512_sllv_epi32(_mm512_mask_blend_epi32(e.by_u, node_c, node_r), level);
    e.high = _mm512_min_epi32(_mm512_add_epi32(e.low, _mm512_sllv_epi32(one, level)),
                              _mm512_mask_blend_epi32(e.by_u, cols, rows));
    e.high = _mm512_sub_epi32(e.high, one);
    return e;
}

/* The lanes that may meet the heights of their node on the way to its exit. */
static inline __mmask16 lanes_meet(const struct lanes *l, const struct lanes_exit *e,
                                   struct lanes_bounds b)
{
    __m512 dz = _mm512_load_ps(l->dz), z0 = _mm512_load_ps(l->z0);
    __m512 z_in = _mm512_fmadd_ps(dz, _mm512_load_ps(l->t), z0);
    __m512 z_out = _mm512_fmadd_ps(dz, e->t_end, z0);
    __m512 pad = _mm512_fmadd_ps(_mm512_abs_ps(dz), e->pad, _mm512_load_ps(l->pad_z));
    __m512 low = _mm512_sub_ps(_mm512_min_ps(z_in, z_out), pad);
    __m512 high = _mm512_add_ps(_mm512_max_ps(z_in, z_out), pad);

    return _mm512_cmp_ps_mask(low, b.max, _CMP_LE_OQ) & _mm512_cmp_ps_mask(high, b.min, _CMP_GE_OQ);
}

/*
 * Where the lanes land: the other coordinate's cell at the crossing, within the node. Those whose
 * cell is not certain are in *unsure.
 */
static inline __m512i lanes_landing(const struct lanes *l, const struct lanes_field *lf,
                                    const struct lanes_exit *e, __mmask16 *unsure)
{
    __m512 d = _mm512_mask_blend_ps(e->by_u, _mm512_load_ps(l->du), _mm512_load_ps(l->dv));
    __m512 from = _mm512_mask_blend_ps(e->by_u, _mm512_load_ps(l->u0), _mm512_load_ps(l->v0));
    __m512 place = _mm512_fmadd_ps(d, e->t_leave, from);
    __m512 pad = _mm512_fmadd_ps(_mm512_abs_ps(d), e->pad, _mm512_set1_ps(lf->cells_pad));
    /* truncation is floor where it is not clamped */
    __m512i least = _mm512_cvttps_epi32(_mm512_sub_ps(place, pad));
    __m512i most = _mm512_cvttps_epi32(_mm512_add_ps(place, pad));

    least = _mm512_min_epi32(_mm512_max_epi32(least, e->low), e->high);
    most = _mm512_min_epi32(_mm512_max_epi32(most, e->low), e->high);
    *unsure = _mm512_cmpneq_epi32_mask(least, most) | e->is_tie;
    return least;
}

/* Over the border: those that float32 is sure of. Level of those that come upon a larger node. */
static inline __m512i lanes_move(struct lanes *l, const struct lanes_field *lf,
                                 const struct lanes_exit *e, __m512i landing, __mmask16 sure)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512i level = _mm512_load_si512(l->level), up_level = lanes_table(lf->up, level);
    __m512i inside = _mm512_sub_epi32(_mm512_sllv_epi32(one, up_level), one);
    __mmask16 up = (e->by_u & (__mmask16)l->up_u) | (__mmask16)(~e->by_u & (__mmask16)l->up_v);
    __m512i beyond = _mm512_mask_sub_epi32(e->line, (__mmask16)~up, e->line, one);
    __m512i column = _mm512_mask_blend_epi32(e->by_u, landing, beyond);
    __m512i row = _mm512_mask_blend_epi32(e->by_u, beyond, landing);

    _mm512_store_si512(l->column,
                       _mm512_mask_mov_epi32(_mm512_load_si512(l->column), sure, column));
    _mm512_store_si512(l->row, _mm512_mask_mov_epi32(_mm512_load_si512(l->row), sure, row));
    _mm512_store_ps(l->t, _mm512_mask_mov_ps(_mm512_load_ps(l->t), sure, e->t_leave));
    return _mm512_mask_mov_epi32(level, _mm512_mask_testn_epi32_mask(sure, e->line, inside),
                                 up_level);
}

/* One node for each lane. Lanes whose rays it ends; they are answered. */
static inline uint32_t lanes_step(struct lanes *l, const struct lanes_field *lf,
                                  struct lanes_queue *queue)
{
    __mmask16 active = (__mmask16)l->active, unsure;
    __m512i level = _mm512_load_si512(l->level);
    __mmask16 is_cell = _mm512_testn_epi32_mask(level, level);
    struct lanes_exit e =
        lanes_exit(l, lf->field, _mm512_load_si512(l->column), _mm512_load_si512(l->row), level);
    __mmask16 met = active & lanes_meet(l, &e, lanes_bounds(l, is_cell));
    __mmask16 enters = met & (__mmask16)~is_cell, cells = met & is_cell;
    __mmask16 leaves = active & (__mmask16) ~(enters | e.ends);
    __m512i landing = lanes_landing(l, lf, &e, &unsure);
    uint32_t misses = active & e.ends & (uint32_t)~met;

    unsure &= leaves;
    if (cells != 0)
        lanes_queue_cells(queue, l, cells, e.ends);
    level = lanes_move(l, lf, &e, landing, leaves & (__mmask16)~unsure);
    _mm512_store_si512(l->level,
                       _mm512_mask_mov_epi32(level, enters, lanes_table(lf->down, level)));
    if (unsure != 0) {
        uint32_t over = lanes_jump(l, lf, unsure);

        misses |= over & ~(uint32_t)cells;
        lanes_queue_ends(queue, l, over & cells);
    }
    for (uint32_t left = misses; left != 0; left &= left - 1)
        l->hit[__builtin_ctz(left)]->t = INFINITY;
    return misses;
}

/* Eight cells of the queue, or what it has. */
static inline void lanes_take_cells(struct lanes_queue *queue, const struct lanes_field *lf,
                                    struct lanes_rays *r)
{
    uint32_t count = queue->count < EIGHT ? queue->count : EIGHT, first = queue->count - count;
    const uint32_t *rays = &queue->ray[first];
    struct eight_cells cells = {
        .at = &queue->at[first], .column = &queue->column[first], .row = &queue->row[first]};

    queue->count = first;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t ray = rays[i] & ~LANES_ENDS;

        cells.w[i] = &queue->groups[ray / LANES].w[ray % LANES];
    }
    uint32_t hits = count == EIGHT ? eight_cells_hit(&cells) : eight_few_hit(&cells, count);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t ray = rays[i] & ~LANES_ENDS, lane = ray % LANES;
        struct lanes *l = &queue->groups[ray / LANES];
        bool is_hit = (hits >> i & 1) != 0;

        l->parked &= ~(1u << lane);
        if (!is_hit && ray == rays[i])
            continue;
        if (!is_hit || !ray_end(&l->w[lane], l->ray[lane], l->hit[lane]))
            l->hit[lane]->t = INFINITY;
        if (!lanes_next(l, lf, (int)lane, r))
            l->busy &= ~(1u << lane);
    }
}

static void lanes_many(const struct lanes_field *lf, const struct ray *rays, size_t count,
                       struct ray_hit *hits)
{
    struct lanes groups[LANES_GROUPS];
    struct lanes_queue queue;
    struct lanes_rays r;
    struct lanes *before[LANES_LATE]; /* the last ones to step */
    uint32_t busy, active, turn = 0;

    r.rays = rays;
    r.count = count;
    r.hits = hits;
    r.next = r.first = 0;
    r.left = 0;
    eight_begun_init(&r.begun, lf->field);
    queue.groups = groups;
    queue.count = 0;
    memset(groups, 0, sizeof groups); /* a lane without a ray is at the first cell */
    for (int g = 0; g < LANES_GROUPS; g++)
        for (int i = 0; i < LANES; i++)
            if (lanes_next(&groups[g], lf, i, &r))
                groups[g].busy |= 1u << i;
    for (int g = 0; g < LANES_GROUPS; g++)
        lanes_ask(&groups[g], lf);
    for (uint32_t i = 0; i < LANES_LATE; i++)
        before[i] = &groups[0];
    do {
        busy = active = 0;
        for (int g = 0; g < LANES_GROUPS; g++) {
            struct lanes *l = &groups[g], **oldest = &before[turn++ % LANES_LATE];

            if (l->busy == 0)
                continue;
            if (!l->has_asked) /* there are few left */
                lanes_ask(l, lf);
            uint32_t over = lanes_step(l, lf, &queue);

            l->has_asked = false;
            if (!(*oldest)->has_asked)
                lanes_ask(*oldest, lf);
            *oldest = l;
            for (; over != 0; over &= over - 1) {
                int i = __builtin_ctz(over);

                if (!lanes_next(l, lf, i, &r))
                    l->busy &= ~(1u << i);
            }
            while (queue.count >= EIGHT)
                lanes_take_cells(&queue, lf, &r);
            busy |= l->busy;
            active |= l->busy & ~l->parked;
        }
        if (active == 0 && queue.count != 0)
            lanes_take_cells(&queue, lf, &r);
    } while (busy != 0);
}
#endif
#endif
