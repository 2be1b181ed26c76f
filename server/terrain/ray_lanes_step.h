/*
 * A step of sixteen rays, a lane each: one node for each of them. For ray_lanes.h only, which tells
 * what for.
 *
 * All rays go up: an axis along which a ray goes down is mirrored, so that u and v, columns, rows
 * and lines there are the negative ones. Cell c becomes -1 - c, which is ~c, and a node of 2^level
 * cells is one still. So the last cell of a node is c | (2^level - 1), and no direction is asked.
 *
 * What a float32 result is wrong by is known when the ray begins, and what depends on it is made
 * then: a step compares with numbers that have the pad in them. Of a crossing's t that is pad_t:
 * twice what float32 loses, for t and what it is made of are rounded four times, each by half of
 * 2^-23 of t_end or of t of line 0.
 *
 * Which line a ray crosses first is certain where its place on the other axis is certainly before
 * that axis' line, by more than the pad: so this is not asked by itself.
 */
#ifndef KOTA_TERRAIN_RAY_LANES_STEP_H
#define KOTA_TERRAIN_RAY_LANES_STEP_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_begin_eight.h"

enum {
    LANES = 16,
    LANES_GROUPS = 8,
    LANES_CELLS_MAX = 1 << 15,
    LANES_LEAF_SHIFT_MAX = 4,
    LANES_BEGIN = 7, /* log2 of a first node's side in cells; the last level of a tile's own */
    LANES_PAIR = 0x10001,
    LANES_ROW_BYTES = TILE_SAMPLES * sizeof(float)
};

/*
 * What the levels of a field are made of; index: log2 of a node's side in cells, 0 for cells. Pairs
 * of 16 bits are of a column, in the low half, and of a row.
 */
struct lanes_field {
    const struct heightfield *field;
    bool is_small;                         /* up to 16 tiles; then no level is above the tiles' */
    _Alignas(64) struct tile *tile[LANES]; /* of a small field */
    _Alignas(64) int32_t inside[LANES];    /* a node's side - 1 */
    _Alignas(64) int32_t up[LANES], up_inside[LANES], down[LANES]; /* the levels around this one */
    _Alignas(64) int32_t at[LANES];     /* first node, in bytes from the tile or the top */
    _Alignas(64) int32_t keep[LANES];   /* pair: the bits of a place that count there */
    _Alignas(64) int32_t shift[LANES];  /* pair: of both the level */
    _Alignas(64) int32_t stride[LANES]; /* pair: bytes from node to node */
    int32_t tile_stride;                /* pair: tiles from tile to tile */
};

/* Sixteen rays on their way. */
struct lanes {
    /* t of the line behind cell k: k · inv + off */
    _Alignas(64) float inv_u[LANES], inv_v[LANES], off_u[LANES], off_v[LANES];
    _Alignas(64) float u0[LANES], v0[LANES], du[LANES], dv[LANES];
    _Alignas(64) float pad_u[LANES], pad_v[LANES];             /* of a place at a crossing */
    _Alignas(64) float z_low[LANES], z_high[LANES], dz[LANES]; /* z at t 0, less and more a pad */
    _Alignas(64) float t_end[LANES];                           /* and a pad */
    _Alignas(64) int32_t last_column[LANES], last_row[LANES];  /* of the field */
    _Alignas(64) int32_t mirrors[LANES];                       /* pair: -1 for what is mirrored */
    _Alignas(64) int32_t column[LANES], row[LANES], level[LANES]; /* of the cell the ray is in */
    _Alignas(64) float t[LANES];
    _Alignas(64) int32_t id[LANES];
    /* of what is asked: a pair, the cell, not mirrored; the node's bounds, or the cell's samples */
    _Alignas(64) int32_t place[LANES];
    _Alignas(64) const char *at[LANES];
    _Alignas(64) const char *next_row[LANES]; /* of cells the sample below, else the same */
    uint16_t falls;                           /* dz < 0 */
    uint16_t busy;                            /* lanes with a ray */
    uint16_t parked; /* of these, those whose cell is in the queue; they have left it already */
    uint16_t ending; /* those whose rays end in the cell that is in the queue */
    uint16_t active; /* those that asked for their node */
    bool has_asked;
};

/* Lanes, by id. */
struct lanes_list {
    uint32_t count;
    uint32_t id[LANES_GROUPS * LANES + LANES]; /* up to LANES behind the last are written */
};

static void lanes_field_init_level(struct lanes_field *lf, uint32_t level, uint32_t leaf)
{
    const struct heightfield *field = lf->field;
    const struct tile *tile = field->tiles[0];
    uint32_t top = lf->is_small ? LANES_BEGIN : field->level_max,
             up = level < top ? level + 1 : top;
    size_t node = sizeof(struct bounds), stride;

    if (level == 0)
        up = leaf;
    if (level == 0) {
        lf->at[level] = (int32_t)offsetof(struct tile, samples);
        node = sizeof(float);
        stride = LANES_ROW_BYTES;
    } else if (level < TILE_SHIFT) {
        size_t nodes = (size_t)((const char *)tile->nodes - (const char *)tile);

        lf->at[level] = (int32_t)(nodes + tile->level_offset[level] * node);
        stride = node << (TILE_SHIFT - level);
    } else {
        const struct top_level *t = &field->top_level[level - TILE_SHIFT];

        lf->at[level] = (int32_t)(t->offset * node);
        stride = node * t->cols;
    }
    lf->inside[level] = (1 << level) - 1;
    lf->up[level] = (int32_t)up;
    lf->up_inside[level] = (1 << up) - 1;
    lf->down[level] = level <= leaf ? 0 : (int32_t)level - 1;
    lf->keep[level] = level < TILE_SHIFT ? (TILE_CELLS - 1) * LANES_PAIR : -1;
    lf->shift[level] = (int32_t)level * LANES_PAIR;
    lf->stride[level] = (int32_t)(stride << 16 | node);
}

static bool lanes_field_init(struct lanes_field *lf, const struct heightfield *field)
{
    uint32_t leaf = field->leaf_shift > 2 ? field->leaf_shift : 2;
    uint32_t cells = field->cell_cols > field->cell_rows ? field->cell_cols : field->cell_rows;
    size_t tiles = (size_t)field->tile_cols * field->tile_rows;
    struct bounds z = heightfield_node(field, field->level_max, 0, 0);

    if (cells > LANES_CELLS_MAX || leaf > LANES_LEAF_SHIFT_MAX || !(z.min <= z.max))
        return false;
    memset(lf, 0, sizeof *lf);
    lf->field = field;
    lf->is_small = tiles <= LANES;
    if (lf->is_small)
        memcpy(lf->tile, field->tiles, tiles * sizeof lf->tile[0]);
    lf->tile_stride = (int32_t)(field->tile_cols << 16 | 1);
    lanes_field_init_level(lf, 0, leaf);
    for (uint32_t level = leaf; level <= field->level_max; level++)
        lanes_field_init_level(lf, level, leaf);
    return true;
}

static inline __m512i lanes_table(const int32_t *table, __m512i level)
{
    return _mm512_permutexvar_epi32(level, _mm512_load_si512(table));
}

/*
 * Eight tiles, or where the levels above them are. Where there are few, two vectors hold all: a
 * gather takes four times that.
 */
static inline __m512i lanes_bases(const struct lanes_field *lf, __m256i tile, __mmask8 in_tile)
{
    __m512i wide = _mm512_cvtepu32_epi64(tile);

    if (lf->is_small)
        return _mm512_permutex2var_epi64(_mm512_load_si512(lf->tile), wide,
                                         _mm512_load_si512(lf->tile + LANES / 2));
    __m512i top = _mm512_set1_epi64((long long)(uintptr_t)lf->field->top);

    return _mm512_mask_i64gather_epi64(top, in_tile, wide, lf->field->tiles, 8);
}

/* Where the bounds of each lane's node are, or the samples of its cell. */
static __attribute__((noinline)) void lanes_ask(struct lanes *l, const struct lanes_field *lf)
{
    __m512i level = _mm512_load_si512(l->level), old = _mm512_load_si512(l->place);
    __m512i row = _mm512_slli_epi32(_mm512_load_si512(l->row), 16);
    __mmask16 active = (__mmask16)(l->busy & ~l->parked);
    __m512i place = _mm512_mask_blend_epi16(0x55555555, row, _mm512_load_si512(l->column));
    __mmask16 in_tile = _mm512_cmplt_epi32_mask(level, _mm512_set1_epi32(TILE_SHIFT));
    __mmask16 is_cell = _mm512_testn_epi32_mask(level, level);
    const __m512i row_bytes = _mm512_set1_epi64(LANES_ROW_BYTES);

    l->active = active;
    l->has_asked = true;
    place = _mm512_xor_si512(place, _mm512_load_si512(l->mirrors));
    place = _mm512_mask_mov_epi32(old, active, place);
    _mm512_store_si512(l->place, place);
    __m512i tile =
        _mm512_madd_epi16(_mm512_srli_epi16(place, TILE_SHIFT), _mm512_set1_epi32(lf->tile_stride));
    __m512i at = _mm512_and_si512(place, lanes_table(lf->keep, level));

    at = _mm512_srlv_epi16(at, lanes_table(lf->shift, level));
    at = _mm512_madd_epi16(at, lanes_table(lf->stride, level));
    at = _mm512_add_epi32(at, lanes_table(lf->at, level));
    __m512i low = lanes_bases(lf, _mm512_castsi512_si256(tile), (__mmask8)in_tile);
    __m512i high = lanes_bases(lf, _mm512_extracti64x4_epi64(tile, 1), (__mmask8)(in_tile >> 8));

    low = _mm512_add_epi64(low, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(at)));
    high = _mm512_add_epi64(high, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(at, 1)));
    low = _mm512_mask_mov_epi64(_mm512_load_si512(l->at), (__mmask8)active, low);
    high =
        _mm512_mask_mov_epi64(_mm512_load_si512(l->at + LANES / 2), (__mmask8)(active >> 8), high);
    _mm512_store_si512(l->at, low);
    _mm512_store_si512(l->at + LANES / 2, high);
    _mm512_store_si512(l->next_row, _mm512_mask_add_epi64(low, (__mmask8)is_cell, low, row_bytes));
    _mm512_store_si512(l->next_row + LANES / 2,
                       _mm512_mask_add_epi64(high, (__mmask8)(is_cell >> 8), high, row_bytes));
}

/* A pair of float32, which lies at a multiple of four bytes. */
static inline __m128d pair_at(const char *at)
{
    double pair;

    memcpy(&pair, at, sizeof pair);
    return _mm_set_sd(pair);
}

/* Each joins by a mask, which is a load and no shuffle. */
static inline __m256d four_pairs(const char *const *at)
{
    __m256d pairs = _mm256_broadcastsd_pd(pair_at(at[0]));

    pairs = _mm256_mask_broadcastsd_pd(pairs, 2, pair_at(at[1]));
    pairs = _mm256_mask_broadcastsd_pd(pairs, 4, pair_at(at[2]));
    return _mm256_mask_broadcastsd_pd(pairs, 8, pair_at(at[3]));
}

struct lanes_bounds {
    __m512 min, max;
};

/* The first float32 of each lane's pair, the second. */
static inline struct lanes_bounds lanes_pairs(const char *const *at)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    __m512 low = _mm512_castpd_ps(
        _mm512_insertf64x4(_mm512_castpd256_pd512(four_pairs(at)), four_pairs(at + 4), 1));
    __m512 high = _mm512_castpd_ps(
        _mm512_insertf64x4(_mm512_castpd256_pd512(four_pairs(at + 8)), four_pairs(at + 12), 1));

    return (struct lanes_bounds){_mm512_permutex2var_ps(low, even, high),
                                 _mm512_permutex2var_ps(low, odd, high)};
}

/* Bounds of what was asked for. */
static inline struct lanes_bounds lanes_bounds(const struct lanes *l, __mmask16 is_cell)
{
    struct lanes_bounds b = lanes_pairs(l->at), next = lanes_pairs(l->next_row);
    /* of two operands the second, when the first is NaN */
    __m512 min = _mm512_min_ps(b.min, _mm512_set1_ps(__builtin_inff()));
    __m512 max = _mm512_max_ps(b.min, _mm512_set1_ps(-__builtin_inff()));

    min = _mm512_min_ps(next.min, _mm512_min_ps(b.max, min));
    max = _mm512_max_ps(next.min, _mm512_max_ps(b.max, max));
    b.min = _mm512_mask_min_ps(b.min, is_cell, next.max, min);
    b.max = _mm512_mask_max_ps(b.max, is_cell, next.max, max);
    return b;
}

/* How the lanes leave their nodes. */
struct lanes_exit {
    __m512i last_column, last_row; /* of the node */
    __m512 t;
    __mmask16 by_u; /* by a u line */
    __mmask16 ends; /* the ray ends inside */
};

/* Never by the field's border. */
static inline struct lanes_exit lanes_exit(const struct lanes *l, const struct lanes_field *lf,
                                           __m512i column, __m512i row, __m512i level)
{
    const __m512 inf = _mm512_set1_ps(__builtin_inff());
    __m512i inside = lanes_table(lf->inside, level);
    __m512i end_u = _mm512_load_si512(l->last_column), end_v = _mm512_load_si512(l->last_row);
    struct lanes_exit e;

    e.last_column = _mm512_min_epi32(_mm512_or_si512(column, inside), end_u);
    e.last_row = _mm512_min_epi32(_mm512_or_si512(row, inside), end_v);
    __m512 t_u = _mm512_fmadd_ps(_mm512_cvtepi32_ps(e.last_column), _mm512_load_ps(l->inv_u),
                                 _mm512_load_ps(l->off_u));
    __m512 t_v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(e.last_row), _mm512_load_ps(l->inv_v),
                                 _mm512_load_ps(l->off_v));

    t_u = _mm512_mask_mov_ps(t_u, _mm512_cmpeq_epi32_mask(e.last_column, end_u), inf);
    t_v = _mm512_mask_mov_ps(t_v, _mm512_cmpeq_epi32_mask(e.last_row, end_v), inf);
    e.by_u = _mm512_cmp_ps_mask(t_u, t_v, _CMP_LE_OQ);
    e.t = _mm512_min_ps(t_u, t_v);
    e.ends = _mm512_cmp_ps_mask(e.t, _mm512_load_ps(l->t_end), _CMP_NLE_UQ);
    return e;
}

/* The lanes that may meet the heights of their node on the way to its exit. */
static inline __mmask16 lanes_meet(const struct lanes *l, const struct lanes_exit *e,
                                   struct lanes_bounds b)
{
    __m512 dz = _mm512_load_ps(l->dz), t_in = _mm512_load_ps(l->t);
    __m512 t_out = _mm512_min_ps(e->t, _mm512_load_ps(l->t_end));
    __m512 t_low = _mm512_mask_blend_ps(l->falls, t_in, t_out);
    __m512 t_high = _mm512_mask_blend_ps(l->falls, t_out, t_in);
    __m512 low = _mm512_fmadd_ps(dz, t_low, _mm512_load_ps(l->z_low));
    __m512 high = _mm512_fmadd_ps(dz, t_high, _mm512_load_ps(l->z_high));

    return _mm512_cmp_ps_mask(low, b.max, _CMP_LE_OQ) & _mm512_cmp_ps_mask(high, b.min, _CMP_GE_OQ);
}

/*
 * Where the lanes land: the other coordinate's cell at the crossing, within the node. Those whose
 * cell, or line, is not certain are in *unsure.
 */
static inline __m512i lanes_landing(const struct lanes *l, const struct lanes_exit *e,
                                    __m512i column, __m512i row, __mmask16 *unsure)
{
    enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC };
    __m512 d = _mm512_mask_blend_ps(e->by_u, _mm512_load_ps(l->du), _mm512_load_ps(l->dv));
    __m512 from = _mm512_mask_blend_ps(e->by_u, _mm512_load_ps(l->u0), _mm512_load_ps(l->v0));
    __m512 place = _mm512_fmadd_ps(d, e->t, from);
    __m512 pad = _mm512_mask_blend_ps(e->by_u, _mm512_load_ps(l->pad_u), _mm512_load_ps(l->pad_v));
    __m512i own = _mm512_mask_blend_epi32(e->by_u, column, row);
    __m512i last = _mm512_mask_blend_epi32(e->by_u, e->last_column, e->last_row);
    __m512i least = _mm512_cvt_roundps_epi32(_mm512_sub_ps(place, pad), DOWN);
    __m512i most = _mm512_cvt_roundps_epi32(_mm512_add_ps(place, pad), DOWN);

    least = _mm512_min_epi32(_mm512_max_epi32(least, own), last);
    most = _mm512_max_epi32(most, own);
    *unsure = _mm512_cmpneq_epi32_mask(least, most);
    return least;
}

/* The jumps that float32 cannot decide. Lanes whose rays end. */
static uint32_t lanes_jump(struct lanes *l, const struct lanes_field *lf, struct walk *walks,
                           uint32_t unsure)
{
    uint32_t over = 0;

    for (; unsure != 0; unsure &= unsure - 1) {
        int i = __builtin_ctz(unsure);
        struct walk *w = &walks[i];
        int32_t level = l->level[i], mirror_u = (int16_t)l->mirrors[i],
                mirror_v = l->mirrors[i] >> 16;

        w->column = l->column[i] ^ mirror_u;
        w->row = l->row[i] ^ mirror_v;
        if (!ray_leave_node(w, (uint32_t)level)) {
            over |= 1u << i;
            continue;
        }
        l->column[i] = (int32_t)w->column ^ mirror_u;
        l->row[i] = (int32_t)w->row ^ mirror_v;
        l->t[i] = (float)w->t;
        int32_t line = w->entry == ENTRY_U ? l->column[i] : l->row[i];

        if ((line & lf->up_inside[level]) == 0)
            l->level[i] = lf->up[level];
    }
    return over;
}

/* Over the line: those that float32 is sure of. Level of those that come upon a larger node. */
static inline __m512i lanes_move(struct lanes *l, const struct lanes_field *lf,
                                 const struct lanes_exit *e, __m512i column, __m512i row,
                                 __m512i level, __m512i landing, __mmask16 sure)
{
    __m512i line = _mm512_mask_blend_epi32(e->by_u, e->last_row, e->last_column);

    line = _mm512_sub_epi32(line, _mm512_set1_epi32(-1));
    column = _mm512_mask_mov_epi32(column, sure, _mm512_mask_blend_epi32(e->by_u, landing, line));
    row = _mm512_mask_mov_epi32(row, sure, _mm512_mask_blend_epi32(e->by_u, line, landing));
    _mm512_store_si512(l->column, column);
    _mm512_store_si512(l->row, row);
    _mm512_store_ps(l->t, _mm512_mask_mov_ps(_mm512_load_ps(l->t), sure, e->t));
    __mmask16 goes_up = _mm512_mask_testn_epi32_mask(sure, line, lanes_table(lf->up_inside, level));

    return _mm512_mask_permutexvar_epi32(level, goes_up, level, _mm512_load_si512(lf->up));
}

/* The ids of some lanes; nobody guesses whether there are any. */
static inline void lanes_list_add(struct lanes_list *list, const struct lanes *l, __mmask16 lanes)
{
    __m512i id = _mm512_maskz_compress_epi32(lanes, _mm512_load_si512(l->id));

    _mm512_storeu_si512(&list->id[list->count], id);
    list->count += (uint32_t)__builtin_popcount(lanes);
}

/* One node for each lane. Cells that are left are in `cells` then, lanes without a ray in `idle`.
 */
static __attribute__((noinline)) void lanes_step(struct lanes *l, const struct lanes_field *lf,
                                                 struct walk *walks, struct lanes_list *cells,
                                                 struct lanes_list *idle)
{
    __m512i column = _mm512_load_si512(l->column), row = _mm512_load_si512(l->row);
    __m512i level = _mm512_load_si512(l->level);
    __mmask16 active = l->active, is_cell = _mm512_testn_epi32_mask(level, level), unsure;
    struct lanes_exit e = lanes_exit(l, lf, column, row, level);
    __mmask16 met = active & lanes_meet(l, &e, lanes_bounds(l, is_cell));
    __mmask16 enters = met & (__mmask16)~is_cell, parked = met & is_cell;
    __mmask16 ends = active & e.ends, leaves = active & (__mmask16) ~(enters | ends);
    __m512i landing = lanes_landing(l, &e, column, row, &unsure);

    unsure &= leaves;
    level = lanes_move(l, lf, &e, column, row, level, landing, leaves & (__mmask16)~unsure);
    level = _mm512_mask_permutexvar_epi32(level, enters, level, _mm512_load_si512(lf->down));
    _mm512_store_si512(l->level, level);
    if (unsure != 0)
        ends |= (__mmask16)lanes_jump(l, lf, walks, unsure);
    __mmask16 over = ends & (__mmask16)~met;

    l->parked |= parked;
    l->ending = (uint16_t)((l->ending & ~active) | ends);
    l->busy &= (uint16_t)~over;
    lanes_list_add(cells, l, parked);
    lanes_list_add(idle, l, over);
}
#endif
#endif
