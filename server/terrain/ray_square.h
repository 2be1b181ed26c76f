/*
 * The cells of a square of 4×4 that float32 leaves to one ray, by AVX2, four side by side in
 * float64: abreast_pass and abreast_pieces of ray_abreast.h. For ray_avx2.c only.
 */
#ifndef KOTA_TERRAIN_RAY_SQUARE_H
#define KOTA_TERRAIN_RAY_SQUARE_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/ray_abreast.h"

#define SQUARE_ROW(at) (at), (at) + 1, (at) + 2, (at) + 3

/* Of cell 4·row + column, from the square's first sample on. */
static const uint16_t square_samples[16] = {SQUARE_ROW(0), SQUARE_ROW(TILE_SAMPLES),
                                            SQUARE_ROW(2 * TILE_SAMPLES),
                                            SQUARE_ROW(3 * TILE_SAMPLES)};

/* The cells of the lanes that are set, i ^ flip of lane i, four bits each. */
static inline uint64_t square_cells(uint32_t lanes, uint32_t flip)
{
    const uint64_t ones = 0x1111111111111111;

    return _pext_u64(0xfedcba9876543210 ^ flip * ones, _pdep_u64(lanes, ones) * 15);
}

/* One ray in all lanes, and four cells of the square at (column, row). */
static inline void abreast_load_square(struct abreast *e, const struct walk *w, const float *at,
                                       uint32_t column, uint32_t row, uint64_t cells)
{
    const float *from[ABREAST];
    __m128i id = _mm_srlv_epi32(_mm_set1_epi32((int)cells), _mm_setr_epi32(0, 4, 8, 12));
    __m128i three = _mm_set1_epi32(3);
    vi c = vi_add(vi_set1((int32_t)column), _mm_and_si128(id, three));
    vi r = vi_add(vi_set1((int32_t)row), _mm_and_si128(_mm_srli_epi32(id, 2), three));

    for (int i = 0; i < ABREAST; i++)
        from[i] = at + square_samples[cells >> 4 * i & 15];
    e->u0 = vd_set1(w->u0);
    e->v0 = vd_set1(w->v0);
    e->z0 = vd_set1(w->z0);
    e->du = vd_set1(w->du);
    e->dv = vd_set1(w->dv);
    e->dz = vd_set1(w->dz);
    e->inv_du = vd_set1(w->inv_du);
    e->inv_dv = vd_set1(w->inv_dv);
    e->t_begin = vd_set1(w->t_begin);
    e->t_end = vd_set1(w->t_end);
    e->pad = vd_set1(w->pad_m);
    e->first_column = vd_set1((double)w->first_column);
    e->first_row = vd_set1((double)w->first_row);
    e->down_u = vd_cmp(e->du, vd_zero(), _CMP_LT_OQ);
    e->down_v = vd_cmp(e->dv, vd_zero(), _CMP_LT_OQ);
    e->column = vi_doubles(c);
    e->row = vi_doubles(r);
    vd_pairs(from, 0, &e->h00, &e->h10);
    vd_pairs(from, TILE_SAMPLES, &e->h01, &e->h11);
    e->is_main = abreast_main(w->field, c, r);
}

/* One cell by itself. */
static inline bool square_cell_hit(struct walk *w, const float *at, uint32_t column, uint32_t row,
                                   uint32_t cell)
{
    return cell_alone_hit(w, column + (cell & 3), row + (cell >> 2), at + square_samples[cell]);
}

/*
 * The first cell that the ray hits: of `count` in its order, `cells`, the first four. The walk
 * holds how.
 */
static inline bool abreast_square_hit(struct walk *w, const float *at, uint32_t column,
                                      uint32_t row, uint64_t cells, uint32_t count)
{
    struct abreast e;
    vd hit_t;
    vm triangle;

    abreast_load_square(&e, w, at, column, row, cells);
    struct abreast_pass p = abreast_pass(&e, w->field);
    uint32_t hits = vm_bits(abreast_pieces(&e, &p, &hit_t, &triangle) & p.is_met);
    /* it crosses no line of one sort */
    uint32_t rare = w->du == 0 || w->dv == 0 ? 15 : vm_bits(p.is_rare);

    hits &= ~rare;
    uint32_t left = (hits | rare) & _bzhi_u32(15, count) & ~vm_bits(abreast_behind(&e));

    for (; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left), cell = (uint32_t)(cells >> 4 * i) & 15;
        double t[ABREAST];

        if ((hits >> i & 1) == 0) {
            if (square_cell_hit(w, at, column, row, cell))
                return true;
            continue;
        }
        _mm256_storeu_pd(t, hit_t);
        w->column = column + (cell & 3);
        w->row = row + (cell >> 2);
        w->hit_triangle = vm_bits(triangle) >> i & 1;
        w->hit_t = t[i];
        return true;
    }
    return false;
}

#endif
#endif
