/*
 * Many rays by AVX-512, a lane a ray: ray_avx512.c includes this.
 *
 * Problem: a ray's next node depends on the answer of the last one. Alone, a ray waits for its
 * answers and guesses its jumps; rays that take turns (ray_descent.h) hide the waiting, but still
 * spend forty instructions and a guess on each node. Approach: the scalar walk of ray.c, for
 * sixteen rays at a time and without a branch. Each lane is at its own cell and asks a node of its
 * own level: float32 finds the line by which it leaves the node, one gather its bounds; it goes
 * down a level, or jumps over the border. A lane whose ray is answered takes the next ray. Two
 * groups of lanes go in turns, so that the gathers of one are on their way while the other
 * computes.
 *
 * float32 may decide what is certain only. Where two crossings are nearer to each other than their
 * error, or a jump lands within the error of a line, ray_leave_node decides in float64 for that
 * lane; so the path is that of ray.c, cell by cell. Heights are padded, and a cell that is left
 * goes through the walk's own arithmetic (cell_alone_hit). So the answer has the bits of ray.c's.
 *
 * Invariants: column and row of a lane are the cell where its ray enters the node it asks next, on
 * the exact path; t is that of the entry within the pad. A lane without a ray is not moved.
 *
 * Left to ray_descent.h: rays that hardly move along an axis, whose crossings are uncertain all the
 * time; fields so wide that float32 has too few bits for their cells, and those with large leaves.
 */
#ifndef KOTA_TERRAIN_RAY_LANES_H
#define KOTA_TERRAIN_RAY_LANES_H

#include "terrain/ray_descent.h"

enum {
    LANES = 16,
    LANES_GROUPS = 6,
    LANES_LEAST = 64, /* rays that are worth it */
    LANES_CELLS_MAX = 1 << 15,
    LANES_LEAF_SHIFT_MAX = 4,
    LANES_LEVELS = 32 /* two vectors */
};

/* What the levels of a field are made of; index: log2 of a node's side in cells, 0 for cells. */
struct lanes_field {
    const struct heightfield *field;
    _Alignas(64) int32_t at[LANES_LEVELS];     /* first node, in bytes from the tile or the top */
    _Alignas(64) int32_t stride[LANES_LEVELS]; /* bytes a row of nodes */
    _Alignas(64) int32_t up[LANES_LEVELS], down[LANES_LEVELS]; /* the levels around this one */
    float cells_pad;
};

/* Sixteen rays on their way. */
struct lanes {
    _Alignas(64) float inv_u[LANES], inv_v[LANES], off_u[LANES], off_v[LANES]; /* t of line k */
    _Alignas(64) float u0[LANES], v0[LANES], z0[LANES], du[LANES], dv[LANES], dz[LANES];
    _Alignas(64) float t_end[LANES], pad_t[LANES], pad_z[LANES];
    _Alignas(64) int32_t column[LANES], row[LANES], level[LANES];
    _Alignas(64) float t[LANES];
    uint32_t busy;       /* lanes with a ray */
    uint32_t parked;     /* of these, those whose cell is in the queue; they have left it already */
    uint32_t active;     /* those that asked for their node */
    uint32_t up_u, up_v; /* du > 0, dv > 0 */
    _Alignas(64) const char *at[LANES]; /* the bounds of the node, or the cell's first sample */
    _Alignas(64) const char *next_row[LANES]; /* of cells the sample below, else the same */
    const struct ray *ray[LANES];
    struct ray_hit *hit[LANES];
    struct walk w[LANES];
};

/* A cell whose heights a ray may meet. */
struct lanes_cell {
    struct lanes *lanes;
    int lane;
    const float *at;
    int32_t column, row;
    bool ends; /* the ray's last */
};

enum { LANES_QUEUE = 8 }; /* cells that are tested at once: a vector of float64 */

struct lanes_queue {
    struct lanes_cell cell[LANES_QUEUE + LANES];
    uint32_t count;
};

static bool lanes_field_init(struct lanes_field *lf, const struct heightfield *field)
{
    const struct tile *tile = field->tiles[0];
    uint32_t leaf = field->leaf_shift > 2 ? field->leaf_shift : 2;
    uint32_t cells = field->cell_cols > field->cell_rows ? field->cell_cols : field->cell_rows;

    if (cells > LANES_CELLS_MAX || leaf > LANES_LEAF_SHIFT_MAX)
        return false;
    *lf = (struct lanes_field){.field = field, .cells_pad = 0x1p-21f * (float)cells};
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

/* Is the ray of a walk one for lanes? */
static inline bool lanes_suit(const struct walk *w)
{
    double u = fabs(w->du), v = fabs(w->dv);

    return w->is_wide && u * 1024 > v && v * 1024 > u && u > 1e-9;
}

static inline void lanes_put(struct lanes *l, const struct lanes_field *lf, int i)
{
    const struct walk *w = &l->w[i];
    double off_u = -w->u0 * w->inv_du, off_v = -w->v0 * w->inv_dv;

    l->inv_u[i] = (float)w->inv_du;
    l->inv_v[i] = (float)w->inv_dv;
    l->off_u[i] = (float)off_u;
    l->off_v[i] = (float)off_v;
    l->u0[i] = (float)w->u0;
    l->v0[i] = (float)w->v0;
    l->z0[i] = (float)w->z0;
    l->du[i] = (float)w->du;
    l->dv[i] = (float)w->dv;
    l->dz[i] = (float)w->dz;
    l->t_end[i] = (float)w->t_end;
    l->pad_t[i] = 0x1p-22f * (float)(fabs(off_u) + fabs(off_v));
    l->pad_z[i] = (float)(w->pad_m + 0x1p-19 * (fabs((double)w->z.min) + fabs((double)w->z.max)));
    l->column[i] = (int32_t)w->first_column;
    l->row[i] = (int32_t)w->first_row;
    l->level[i] = (int32_t)lf->field->level_max;
    l->t[i] = (float)w->t_begin;
    uint32_t bit = 1u << i;
    l->up_u = (l->up_u & ~bit) | (w->du > 0 ? bit : 0);
    l->up_v = (l->up_v & ~bit) | (w->dv > 0 ? bit : 0);
}

/* Gives lane i the next ray that is one for lanes; the others are answered. False: none is left. */
static inline bool lanes_next(struct lanes *l, const struct lanes_field *lf, int i,
                              const struct ray *rays, size_t count, struct ray_hit *hits,
                              size_t *next)
{
    struct walk *w = &l->w[i];

    while (*next < count) {
        const struct ray *ray = &rays[*next];
        struct ray_hit *hit = &hits[*next];
        enum ray_begin begin = ray_begin(w, lf->field, ray, NULL);

        ++*next;
        if (begin == RAY_BEGIN_WALK && lanes_suit(w)) {
            l->ray[i] = ray;
            l->hit[i] = hit;
            lanes_put(l, lf, i);
            return true;
        }
        if (begin == RAY_BEGIN_MISS ||
            !(begin == RAY_BEGIN_WALK ? ray_alone_avx512(lf->field, ray, hit)
                                      : ray_end(w, ray, hit)))
            hit->t = INFINITY;
    }
    return false;
}

static inline __m512i lanes_table(const int32_t *table, __m512i level)
{
    return _mm512_permutex2var_epi32(_mm512_load_si512(table), level,
                                     _mm512_load_si512(table + LANES));
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
    const struct heightfield *field = lf->field;
    const __m512i cells = _mm512_set1_epi32(TILE_CELLS - 1);
    __mmask16 in_tile = _mm512_cmplt_epi32_mask(level, _mm512_set1_epi32(TILE_SHIFT));
    __mmask16 is_cell = _mm512_testn_epi32_mask(level, level);
    __m512i tile = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_srli_epi32(row, TILE_SHIFT),
                                                       _mm512_set1_epi32((int)field->tile_cols)),
                                    _mm512_srli_epi32(column, TILE_SHIFT));
    __m512i top = _mm512_set1_epi64((long long)(uintptr_t)field->top);
    __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(tile));
    __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(tile, 1));

    low = _mm512_mask_i64gather_epi64(top, (__mmask8)in_tile, low, field->tiles, 8);
    high = _mm512_mask_i64gather_epi64(top, (__mmask8)(in_tile >> 8), high, field->tiles, 8);
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
    for (int i = 0; i < LANES; i++) {
        __builtin_prefetch(l->at[i]);
        __builtin_prefetch(l->next_row[i]);
    }
}

/* Four pairs of float32. */
static inline __m256 four_pairs(const char *const *at)
{
    __m128d a = _mm_load_sd((const double *)(const void *)at[0]);
    __m128d b = _mm_load_sd((const double *)(const void *)at[2]);

    a = _mm_loadh_pd(a, (const double *)(const void *)at[1]);
    b = _mm_loadh_pd(b, (const double *)(const void *)at[3]);
    return _mm256_castpd_ps(_mm256_insertf128_pd(_mm256_castpd128_pd256(a), b, 1));
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
static inline void lanes_queue_cells(struct lanes_queue *queue, struct lanes *l, uint32_t cells,
                                     uint32_t ends)
{
    l->parked |= cells;
    for (; cells != 0; cells &= cells - 1) {
        int i = __builtin_ctz(cells);

        queue->cell[queue->count++] = (struct lanes_cell){l,
                                                          i,
                                                          (const float *)(const void *)l->at[i],
                                                          l->column[i],
                                                          l->row[i],
                                                          (ends >> i & 1) != 0};
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

/* One node for each lane. Lanes that are answered by it. */
static inline uint32_t lanes_step(struct lanes *l, const struct lanes_field *lf,
                                  struct lanes_queue *queue)
{
    const struct heightfield *field = lf->field;
    const __m512i one = _mm512_set1_epi32(1);
    const __m512 inf = _mm512_set1_ps(__builtin_inff());
    const __m512i cols = _mm512_set1_epi32((int)field->cell_cols);
    const __m512i rows = _mm512_set1_epi32((int)field->cell_rows);
    __mmask16 busy = (__mmask16)l->active, up_u = (__mmask16)l->up_u, up_v = (__mmask16)l->up_v;
    __m512i column = _mm512_load_si512(l->column), row = _mm512_load_si512(l->row);
    __m512i level = _mm512_load_si512(l->level);
    __mmask16 is_cell = _mm512_testn_epi32_mask(level, level);
    struct lanes_bounds b = lanes_bounds(l, is_cell);

    /* the lines by which the node may be left, never the field's border */
    __m512i node_c = _mm512_srlv_epi32(column, level), node_r = _mm512_srlv_epi32(row, level);
    __m512i line_u = _mm512_sllv_epi32(_mm512_mask_add_epi32(node_c, up_u, node_c, one), level);
    __m512i line_v = _mm512_sllv_epi32(_mm512_mask_add_epi32(node_r, up_v, node_r, one), level);
    __mmask16 has_u =
        _mm512_mask_cmplt_epi32_mask(_mm512_test_epi32_mask(line_u, line_u), line_u, cols);
    __mmask16 has_v =
        _mm512_mask_cmplt_epi32_mask(_mm512_test_epi32_mask(line_v, line_v), line_v, rows);
    __m512 t_u = _mm512_fmadd_ps(_mm512_cvtepi32_ps(line_u), _mm512_load_ps(l->inv_u),
                                 _mm512_load_ps(l->off_u));
    __m512 t_v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(line_v), _mm512_load_ps(l->inv_v),
                                 _mm512_load_ps(l->off_v));

    t_u = _mm512_mask_mov_ps(inf, has_u, t_u);
    t_v = _mm512_mask_mov_ps(inf, has_v, t_v);
    __m512 t = _mm512_load_ps(l->t), t_end = _mm512_load_ps(l->t_end);
    __m512 t_leave = _mm512_min_ps(t_u, t_v), t_exit = _mm512_min_ps(t_leave, t_end);
    __m512 pad =
        _mm512_fmadd_ps(_mm512_abs_ps(t_exit), _mm512_set1_ps(0x1p-22f), _mm512_load_ps(l->pad_t));
    __mmask16 by_u = _mm512_cmp_ps_mask(t_u, t_v, _CMP_LE_OQ);
    __mmask16 ends = _mm512_cmp_ps_mask(t_leave, _mm512_add_ps(t_end, pad), _CMP_NLE_UQ);

    /* is it met? */
    __m512 dz = _mm512_load_ps(l->dz), z0 = _mm512_load_ps(l->z0);
    __m512 z_in = _mm512_fmadd_ps(dz, t, z0), z_out = _mm512_fmadd_ps(dz, t_exit, z0);
    __m512 pad_z = _mm512_fmadd_ps(_mm512_abs_ps(dz), pad, _mm512_load_ps(l->pad_z));
    __mmask16 met =
        _mm512_cmp_ps_mask(_mm512_sub_ps(_mm512_min_ps(z_in, z_out), pad_z), b.max, _CMP_LE_OQ) &
        _mm512_cmp_ps_mask(_mm512_add_ps(_mm512_max_ps(z_in, z_out), pad_z), b.min, _CMP_GE_OQ) &
        busy;
    __mmask16 enters = met & (__mmask16)~is_cell, cells = met & is_cell;
    __mmask16 leaves = busy & (__mmask16) ~(enters | ends);

    /* where it lands: the other coordinate at t_leave, within the node */
    __m512 d = _mm512_mask_blend_ps(by_u, _mm512_load_ps(l->du), _mm512_load_ps(l->dv));
    __m512 from = _mm512_mask_blend_ps(by_u, _mm512_load_ps(l->u0), _mm512_load_ps(l->v0));
    __m512i low = _mm512_sllv_epi32(_mm512_mask_blend_epi32(by_u, node_c, node_r), level);
    __m512i side = _mm512_sllv_epi32(one, level);
    __m512i high =
        _mm512_min_epi32(_mm512_add_epi32(low, side), _mm512_mask_blend_epi32(by_u, cols, rows));

    high = _mm512_sub_epi32(high, one);
    __m512 place = _mm512_fmadd_ps(d, t_leave, from);
    __m512 pad_place = _mm512_fmadd_ps(_mm512_abs_ps(d), pad, _mm512_set1_ps(lf->cells_pad));
    /* truncation is floor where it is not clamped */
    __m512i least = _mm512_cvttps_epi32(_mm512_sub_ps(place, pad_place));
    __m512i most = _mm512_cvttps_epi32(_mm512_add_ps(place, pad_place));

    least = _mm512_min_epi32(_mm512_max_epi32(least, low), high);
    most = _mm512_min_epi32(_mm512_max_epi32(most, low), high);
    __mmask16 unsure = _mm512_cmpneq_epi32_mask(least, most) |
                       _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(t_u, t_v)),
                                          _mm512_add_ps(pad, pad), _CMP_LE_OQ);
    __m512i line = _mm512_mask_blend_epi32(by_u, line_v, line_u);
    __mmask16 up = (by_u & up_u) | (__mmask16)(~by_u & up_v);
    __m512i beyond = _mm512_mask_sub_epi32(line, (__mmask16)~up, line, one);

    unsure &= leaves;
    lanes_queue_cells(queue, l, cells, ends);
    __mmask16 sure = leaves & (__mmask16)~unsure;
    __m512i up_level = lanes_table(lf->up, level);
    __m512i inside = _mm512_sub_epi32(_mm512_sllv_epi32(one, up_level), one);
    __mmask16 goes_up = _mm512_mask_testn_epi32_mask(sure, line, inside);

    column = _mm512_mask_mov_epi32(column, sure, _mm512_mask_blend_epi32(by_u, least, beyond));
    row = _mm512_mask_mov_epi32(row, sure, _mm512_mask_blend_epi32(by_u, beyond, least));
    _mm512_store_si512(l->column, column);
    _mm512_store_si512(l->row, row);
    _mm512_store_ps(l->t, _mm512_mask_mov_ps(t, sure, t_leave));
    level = _mm512_mask_mov_epi32(level, goes_up, up_level);
    _mm512_store_si512(l->level,
                       _mm512_mask_mov_epi32(level, enters, lanes_table(lf->down, level)));
    uint32_t misses = busy & ends & (uint32_t)~met;

    if (unsure != 0) {
        uint32_t over = lanes_jump(l, lf, unsure);

        misses |= over & ~(uint32_t)cells;
        if ((over & cells) != 0) /* the ray of a queued cell ends in it */
            for (uint32_t i = 0; i < queue->count; i++)
                if (queue->cell[i].lanes == l && (over >> queue->cell[i].lane & 1) != 0)
                    queue->cell[i].ends = true;
    }
    for (uint32_t left = misses; left != 0; left &= left - 1)
        l->hit[__builtin_ctz(left)]->t = INFINITY;
    return misses;
}

/* Eight float64 of eight walks each, from offset `at` on: member i of all in to[i]. */
static inline __attribute__((always_inline)) void walks_parted(const struct lanes_cell *cell,
                                                               size_t at, __m512d *to)
{
    __m512d a[8], b[8];

    for (int i = 0; i < 8; i++)
        a[i] = _mm512_loadu_pd((const char *)&cell[i].lanes->w[cell[i].lane] + at);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm512_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* members i, i + 2, i + 4, i + 6 */
        __m512d low0 = _mm512_shuffle_f64x2(b[i], b[i + 2], 0x88);
        __m512d low1 = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0x88);
        __m512d high0 = _mm512_shuffle_f64x2(b[i], b[i + 2], 0xdd);
        __m512d high1 = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0xdd);

        to[i] = _mm512_shuffle_f64x2(low0, low1, 0x88);
        to[i + 4] = _mm512_shuffle_f64x2(low0, low1, 0xdd);
        to[i + 2] = _mm512_shuffle_f64x2(high0, high1, 0x88);
        to[i + 6] = _mm512_shuffle_f64x2(high0, high1, 0xdd);
    }
}

static inline __m512d v8_clamp_unit(__m512d x)
{
    const __m512d zero = _mm512_setzero_pd(), one = _mm512_set1_pd(1);
    __mmask8 below = _mm512_cmp_pd_mask(x, zero, _CMP_LT_OQ);
    __mmask8 above = _mm512_cmp_pd_mask(x, one, _CMP_GT_OQ);

    return _mm512_mask_mov_pd(_mm512_mask_mov_pd(x, above, one), below, zero);
}

/* a + s·b, rounded twice as everywhere. */
static inline __m512d v8_along(__m512d a, __m512d s, __m512d b)
{
    return _mm512_add_pd(a, _mm512_mul_pd(s, b));
}

static inline __m512d v8_edge_height(__m512d a, __m512d b, __m512d s)
{
    return v8_along(a, s, _mm512_sub_pd(b, a));
}

/* f of a piece that is met: see piece_hit. */
static inline __mmask8 v8_piece_hit(__m512d pad, __m512d t0, __m512d f0, __m512d t1, __m512d f1,
                                    __m512d *t)
{
    const __m512d zero = _mm512_setzero_pd();
    __mmask8 is_on0 = _mm512_cmp_pd_mask(_mm512_abs_pd(f0), pad, _CMP_LE_OQ);
    __mmask8 is_on1 = _mm512_cmp_pd_mask(_mm512_abs_pd(f1), pad, _CMP_LE_OQ);
    __mmask8 sides =
        _mm512_cmp_pd_mask(f0, zero, _CMP_GT_OQ) ^ _mm512_cmp_pd_mask(f1, zero, _CMP_GT_OQ);
    __m512d share = _mm512_div_pd(f0, _mm512_sub_pd(f0, f1));
    __m512d between = v8_along(t0, _mm512_sub_pd(t1, t0), share);

    *t = _mm512_mask_mov_pd(_mm512_mask_mov_pd(t1, sides, between), is_on0, t0);
    return is_on0 | is_on1 | sides;
}

_Static_assert(offsetof(struct walk, inv_dv) == offsetof(struct walk, u0) + 7 * sizeof(double) &&
                   offsetof(struct walk, first_row) ==
                       offsetof(struct walk, t_begin) + 4 * sizeof(double) &&
                   sizeof(struct walk) >= offsetof(struct walk, t_begin) + 8 * sizeof(double),
               "walks_parted reads eight members from u0 and from t_begin on");

/* cell_alone_hit for eight cells; what only few cells need is left to it. */
static inline uint32_t lanes_eight_hit(const struct lanes_cell *cell)
{
    const __m512d inf = _mm512_set1_pd(__builtin_inf()), zero = _mm512_setzero_pd();
    const __m512d one = _mm512_set1_pd(1), least = _mm512_set1_pd(-__builtin_inf());
    const struct heightfield *field = cell[0].lanes->w[cell[0].lane].field;
    enum triangulation triangulation = field->spec.triangulation;
    __m512d m[8], n[8];
    __m512d corner[4];
    __m512i places = _mm512_setzero_si512(); /* column, row */
    (void)places;
    float corners[4][8];
    int32_t columns[8], rows[8];

    walks_parted(cell, offsetof(struct walk, u0), m);
    walks_parted(cell, offsetof(struct walk, t_begin), n);
    for (int i = 0; i < 8; i++) {
        corners[0][i] = cell[i].at[0];
        corners[1][i] = cell[i].at[1];
        corners[2][i] = cell[i].at[TILE_SAMPLES];
        corners[3][i] = cell[i].at[TILE_SAMPLES + 1];
        columns[i] = cell[i].column;
        rows[i] = cell[i].row;
    }
    for (int i = 0; i < 4; i++)
        corner[i] = _mm512_cvtps_pd(_mm256_loadu_ps(corners[i]));
    __m256i column32 = _mm256_loadu_si256((const __m256i *)(const void *)columns);
    __m256i row32 = _mm256_loadu_si256((const __m256i *)(const void *)rows);
    __m512d u0 = m[0], v0 = m[1], z0 = m[2], du = m[3], dv = m[4], dz = m[5];
    __m512d inv_du = m[6], inv_dv = m[7], t_begin = n[0], t_end = n[1], pad = n[2];
    __m512d column = _mm512_cvtepi32_pd(column32), row = _mm512_cvtepi32_pd(row32);
    __m512d next_column = _mm512_add_pd(column, one), next_row = _mm512_add_pd(row, one);
    __mmask8 down_u = _mm512_cmp_pd_mask(du, zero, _CMP_LT_OQ);
    __mmask8 down_v = _mm512_cmp_pd_mask(dv, zero, _CMP_LT_OQ);
    __m512d near_u = _mm512_mask_blend_pd(down_u, column, next_column);
    __m512d near_v = _mm512_mask_blend_pd(down_v, row, next_row);
    __m512d far_u = _mm512_mask_blend_pd(down_u, next_column, column);
    __m512d far_v = _mm512_mask_blend_pd(down_v, next_row, row);
    __m512d first_column = _mm512_cvtepi64_pd(_mm512_castpd_si512(n[3]));
    __m512d first_row = _mm512_cvtepi64_pd(_mm512_castpd_si512(n[4]));
    __mmask8 own_u = _mm512_cmp_pd_mask(column, first_column, _CMP_EQ_OQ);
    __mmask8 own_v = _mm512_cmp_pd_mask(row, first_row, _CMP_EQ_OQ);
    __m512d cols = _mm512_set1_pd(field->cell_cols), rows_all = _mm512_set1_pd(field->cell_rows);
    __mmask8 in_u = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(far_u, zero, _CMP_GT_OQ), far_u,
                                            cols, _CMP_LT_OQ);
    __mmask8 in_v = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(far_v, zero, _CMP_GT_OQ), far_v,
                                            rows_all, _CMP_LT_OQ);
    __m512d u_in = _mm512_mul_pd(_mm512_sub_pd(near_u, u0), inv_du);
    __m512d v_in = _mm512_mul_pd(_mm512_sub_pd(near_v, v0), inv_dv);
    __m512d u_out = _mm512_mul_pd(_mm512_sub_pd(far_u, u0), inv_du);
    __m512d v_out = _mm512_mul_pd(_mm512_sub_pd(far_v, v0), inv_dv);

    u_in = _mm512_mask_mov_pd(u_in, own_u, least);
    v_in = _mm512_mask_mov_pd(v_in, own_v, least);
    u_out = _mm512_mask_mov_pd(inf, in_u, u_out);
    v_out = _mm512_mask_mov_pd(inf, in_v, v_out);
    __mmask8 by_u = _mm512_cmp_pd_mask(u_in, v_in, _CMP_GT_OQ);
    __mmask8 to_u = _mm512_cmp_pd_mask(u_out, v_out, _CMP_LE_OQ);
    __m512d t_in = _mm512_mask_blend_pd(by_u, v_in, u_in);
    __m512d t_exit = _mm512_mask_blend_pd(to_u, v_out, u_out);
    __mmask8 passed = _mm512_cmp_pd_mask(u_in, v_out, _CMP_LE_OQ) &
                      _mm512_cmp_pd_mask(v_in, u_out, _CMP_LT_OQ) &
                      _mm512_cmp_pd_mask(t_in, t_end, _CMP_LE_OQ);
    __mmask8 at_end = _mm512_cmp_pd_mask(t_exit, t_end, _CMP_NLE_UQ);
    __mmask8 missing = 0;

    for (int i = 0; i < 4; i++)
        missing |= _mm512_cmp_pd_mask(corner[i], corner[i], _CMP_UNORD_Q);
    __m512d t = _mm512_mask_mov_pd(t_in, _mm512_cmp_pd_mask(t_in, t_begin, _CMP_LT_OQ), t_begin);

    t_exit = _mm512_mask_mov_pd(t_exit, _mm512_cmp_pd_mask(t_exit, t, _CMP_LT_OQ), t);
    /* f where it comes in and where it leaves, at the cell's edges */
    __m512d z_in = v8_along(z0, dz, t), z_out = v8_along(z0, dz, t_exit);
    __m512d along_in = _mm512_mask_blend_pd(by_u, _mm512_sub_pd(v8_along(u0, du, t), column),
                                            _mm512_sub_pd(v8_along(v0, dv, t), row));
    __m512d along_out = _mm512_mask_blend_pd(to_u, _mm512_sub_pd(v8_along(u0, du, t_exit), column),
                                             _mm512_sub_pd(v8_along(v0, dv, t_exit), row));
    __mmask8 far_in = (by_u & down_u) | (__mmask8)(~by_u & down_v);
    __mmask8 far_out = (to_u & (__mmask8)~down_u) | (__mmask8)(~to_u & ~down_v);
    /* the edges begin at 00, or on the far side at 10 or 01; they end at 11, or at 01 or 10 */
    __m512d in_a =
        _mm512_mask_blend_pd(far_in, corner[0], _mm512_mask_blend_pd(by_u, corner[2], corner[1]));
    __m512d in_b =
        _mm512_mask_blend_pd(far_in, _mm512_mask_blend_pd(by_u, corner[1], corner[2]), corner[3]);
    __m512d out_a =
        _mm512_mask_blend_pd(far_out, corner[0], _mm512_mask_blend_pd(to_u, corner[2], corner[1]));
    __m512d out_b =
        _mm512_mask_blend_pd(far_out, _mm512_mask_blend_pd(to_u, corner[1], corner[2]), corner[3]);
    __m512d f_in = _mm512_sub_pd(z_in, v8_edge_height(in_a, in_b, v8_clamp_unit(along_in)));
    __m512d f_out = _mm512_sub_pd(z_out, v8_edge_height(out_a, out_b, v8_clamp_unit(along_out)));
    /* the hypotenuse */
    __mmask8 is_main = 0;

    if (triangulation == TRIANGULATION_MAIN)
        is_main = 0xff;
    else if (triangulation == TRIANGULATION_ALTERNATING)
        is_main = _mm256_test_epi32_mask(_mm256_add_epi32(column32, row32), _mm256_set1_epi32(1));
    __m512d rate = _mm512_mask_blend_pd(
        is_main, _mm512_sub_pd(_mm512_set1_pd(-0.0), _mm512_add_pd(du, dv)), _mm512_sub_pd(du, dv));
    __m512d start = _mm512_mask_blend_pd(
        is_main,
        _mm512_sub_pd(_mm512_add_pd(_mm512_add_pd(column, row), one), _mm512_add_pd(u0, v0)),
        _mm512_sub_pd(_mm512_sub_pd(u0, v0), _mm512_sub_pd(column, row)));
    __mmask8 first = _mm512_cmp_pd_mask(rate, zero, _CMP_GT_OQ);
    __m512d t_cut = _mm512_div_pd(_mm512_sub_pd(_mm512_set1_pd(-0.0), start), rate);
    __m512d slack = _mm512_mul_pd(_mm512_set1_pd(4 * DBL_EPSILON),
                                  _mm512_add_pd(_mm512_abs_pd(t), _mm512_abs_pd(t_exit)));
    __mmask8 is_after = _mm512_cmp_pd_mask(t_cut, t_exit, _CMP_GT_OQ);
    __mmask8 is_cut =
        (__mmask8) ~(_mm512_cmp_pd_mask(t_cut, _mm512_add_pd(t_exit, slack), _CMP_GT_OQ) |
                     _mm512_cmp_pd_mask(t_cut, _mm512_sub_pd(t, slack), _CMP_LT_OQ));

    t_cut = _mm512_mask_blend_pd(_mm512_cmp_pd_mask(t_cut, t, _CMP_GT_OQ), t, t_cut);
    t_cut = _mm512_mask_blend_pd(_mm512_cmp_pd_mask(t_cut, t_exit, _CMP_LT_OQ), t_exit, t_cut);
    __m512d s = v8_clamp_unit(_mm512_sub_pd(v8_along(u0, du, t_cut), column));
    __m512d cut_height = v8_edge_height(_mm512_mask_blend_pd(is_main, corner[2], corner[0]),
                                        _mm512_mask_blend_pd(is_main, corner[1], corner[3]), s);
    __m512d f_cut = _mm512_sub_pd(v8_along(z0, dz, t_cut), cut_height);
    __m512d t0, t1;
    __mmask8 hit0 = v8_piece_hit(pad, t, f_in, _mm512_mask_blend_pd(is_cut, t_exit, t_cut),
                                 _mm512_mask_blend_pd(is_cut, f_out, f_cut), &t0);
    __mmask8 hit1 = v8_piece_hit(pad, t_cut, f_cut, t_exit, f_out, &t1) & is_cut;
    /* the bounds refuse some that lie within the rounding */
    __m512d low = _mm512_min_pd(z_in, z_out), high = _mm512_max_pd(z_in, z_out);
    __m512d min =
        _mm512_min_pd(_mm512_min_pd(corner[0], corner[1]), _mm512_min_pd(corner[2], corner[3]));
    __m512d max =
        _mm512_max_pd(_mm512_max_pd(corner[0], corner[1]), _mm512_max_pd(corner[2], corner[3]));

    passed &= _mm512_cmp_pd_mask(_mm512_sub_pd(low, pad), max, _CMP_NGT_UQ) &
              _mm512_cmp_pd_mask(_mm512_add_pd(high, pad), min, _CMP_NLT_UQ);
    uint32_t hits = passed & (hit0 | hit1);
    uint32_t rare = missing | at_end | (own_u & own_v) | _mm512_cmp_pd_mask(rate, zero, _CMP_EQ_OQ);
    double hit_t[8];
    uint32_t triangles = ((is_cut | is_after) & first) | (~(is_cut | is_after) & ~first);

    triangles = (hit0 & triangles) | ((uint32_t)~hit0 & ~(uint32_t)first);
    _mm512_storeu_pd(hit_t, _mm512_mask_blend_pd(hit0, t1, t0));
    hits &= ~rare;
    for (uint32_t left = hits; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);
        struct walk *w = &cell[i].lanes->w[cell[i].lane];

        w->column = cell[i].column;
        w->row = cell[i].row;
        w->hit_triangle = (int)(triangles >> i & 1);
        w->hit_t = hit_t[i];
    }
    for (; rare != 0; rare &= rare - 1) {
        int i = __builtin_ctz(rare);

        hits |= (uint32_t)cell_alone_hit(&cell[i].lanes->w[cell[i].lane], cell[i].column,
                                         cell[i].row, cell[i].at)
                << i;
    }
    return hits;
}

/* Which of up to eight cells are hit; the walks hold how. */
static inline uint32_t lanes_cells_hit(const struct lanes_cell *cell, uint32_t count)
{
    uint32_t hits = 0;

    if (count == LANES_QUEUE)
        return lanes_eight_hit(cell);
    for (uint32_t i = 0; i < count; i++)
        hits |= (uint32_t)cell_alone_hit(&cell[i].lanes->w[cell[i].lane], cell[i].column,
                                         cell[i].row, cell[i].at)
                << i;
    return hits;
}

struct lanes_rays {
    const struct ray *rays;
    size_t count, next;
    struct ray_hit *hits;
};

/* Eight cells of the queue, or what it has. */
static inline void lanes_take_cells(struct lanes_queue *queue, const struct lanes_field *lf,
                                    struct lanes_rays *r)
{
    uint32_t count = queue->count < LANES_QUEUE ? queue->count : LANES_QUEUE;
    struct lanes_cell *first = &queue->cell[queue->count - count];
    uint32_t hits = lanes_cells_hit(first, count);

    queue->count -= count;
    for (uint32_t i = 0; i < count; i++) {
        struct lanes_cell *cell = &first[i];
        struct lanes *l = cell->lanes;
        int lane = cell->lane;
        bool is_hit = (hits >> i & 1) != 0;

        l->parked &= ~(1u << lane);
        if (!is_hit && !cell->ends)
            continue;
        if (!is_hit || !ray_end(&l->w[lane], l->ray[lane], l->hit[lane]))
            l->hit[lane]->t = INFINITY;
        if (!lanes_next(l, lf, lane, r->rays, r->count, r->hits, &r->next))
            l->busy &= ~(1u << lane);
    }
}

static void lanes_many(const struct lanes_field *lf, const struct ray *rays, size_t count,
                       struct ray_hit *hits)
{
    struct lanes groups[LANES_GROUPS];
    struct lanes_queue queue = {.count = 0};
    struct lanes_rays r = {rays, count, 0, hits};
    uint32_t busy, active;

    memset(groups, 0, sizeof groups); /* a lane without a ray is at the first cell */
    for (int g = 0; g < LANES_GROUPS; g++)
        for (int i = 0; i < LANES; i++)
            if (lanes_next(&groups[g], lf, i, rays, count, hits, &r.next))
                groups[g].busy |= 1u << i;
    for (int g = 0; g < LANES_GROUPS - 1; g++)
        lanes_ask(&groups[g], lf);
    do {
        struct lanes *before = &groups[LANES_GROUPS - 1];

        busy = active = 0;
        for (int g = 0; g < LANES_GROUPS; g++) {
            struct lanes *l = &groups[g];
            uint32_t over = lanes_step(l, lf, &queue);

            lanes_ask(before, lf);
            before = l;
            for (; over != 0; over &= over - 1) {
                int i = __builtin_ctz(over);

                if (!lanes_next(l, lf, i, rays, count, hits, &r.next))
                    l->busy &= ~(1u << i);
            }
            while (queue.count >= LANES_QUEUE)
                lanes_take_cells(&queue, lf, &r);
            busy |= l->busy;
            active |= l->busy & ~l->parked;
        }
        if (active == 0 && queue.count != 0)
            lanes_take_cells(&queue, lf, &r);
    } while (busy != 0);
}
#endif
