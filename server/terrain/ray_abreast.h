/*
 * Cells against rays in float64, a lane each: cell_alone_hit of ray_walk.h for as many rays as a
 * vector holds, each in a cell of its own. For ray_turns.h only; ray_eight.h is the same for eight
 * lanes with masks.
 *
 * Every operation is the one that ray_walk.h does, in the same order and rounded as often (nothing
 * is fused), so that all answers have its bits. What few cells need is not done here: the cells
 * where a ray ends, those with a missing sample and those along whose hypotenuse the ray runs are
 * left to cell_alone_hit.
 */
#ifndef KOTA_TERRAIN_RAY_ABREAST_H
#define KOTA_TERRAIN_RAY_ABREAST_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/ray_doubles.h"
#include "terrain/ray_walk.h"

/* Cells of as many rays; the samples of each are at `at`. */
struct abreast_cells {
    struct walk *w[ABREAST];
    const float *const *at;
    const int32_t *column, *row;
};

/* A lane each. */
struct abreast {
    vd u0, v0, z0, du, dv, dz, inv_du, inv_dv;
    vd t_begin, t_end, pad;
    vd column, row, first_column, first_row;
    vd h00, h10, h01, h11;
    vm down_u, down_v; /* du < 0, dv < 0 */
    vm is_main;
};

/* How they pass their cells, and f at both ends. */
struct abreast_pass {
    vd t, t_exit, f_in, f_out;
    vm is_met;   /* by the ground line, at the cell's heights */
    vm is_first; /* the ray's first cell: f_in is that of a triangle's plane */
    vm is_rare;
};

static inline uint32_t abreast_cell_hit(const struct abreast_cells *c, int i)
{
    return (uint32_t)cell_alone_hit(c->w[i], c->column[i], c->row[i], c->at[i]) << i;
}

_Static_assert(offsetof(struct walk, inv_dv) == offsetof(struct walk, u0) + 7 * sizeof(double) &&
                   offsetof(struct walk, first_row) ==
                       offsetof(struct walk, t_begin) + 4 * sizeof(double) &&
                   sizeof(struct walk) >= offsetof(struct walk, t_begin) + 8 * sizeof(double),
               "abreast_members reads eight members from u0 and from t_begin on");

/* Eight members of each walk, from offset `from` on: member i of all in to[i]. */
static inline __attribute__((always_inline)) void abreast_members(const struct abreast_cells *cells,
                                                                  size_t from, vd *to)
{
    vd_members((const void *const *)cells->w, from, to);
}

/* cell_is_main of each. */
static inline vm abreast_main(const struct heightfield *field, vi column, vi row)
{
    enum triangulation triangulation = field->spec.triangulation;
    vm all = triangulation == TRIANGULATION_MAIN ? vm_all() : vm_none();

    return triangulation == TRIANGULATION_ALTERNATING ? vi_odd(vi_add(column, row)) : all;
}

static inline void abreast_load_cells(struct abreast *e, const struct abreast_cells *cells)
{
    vi column = vi_load(cells->column), row = vi_load(cells->row);

    vd_pairs(cells->at, 0, &e->h00, &e->h10);
    vd_pairs(cells->at, TILE_SAMPLES, &e->h01, &e->h11);
    e->column = vi_doubles(column);
    e->row = vi_doubles(row);
    e->is_main = abreast_main(cells->w[0]->field, column, row);
}

static inline void abreast_load(struct abreast *e, const struct abreast_cells *cells)
{
    const vd zero = vd_zero();
    vd m[8], n[8];

    abreast_members(cells, offsetof(struct walk, u0), m);
    abreast_members(cells, offsetof(struct walk, t_begin), n);
    e->u0 = m[0];
    e->v0 = m[1];
    e->z0 = m[2];
    e->du = m[3];
    e->dv = m[4];
    e->dz = m[5];
    e->inv_du = m[6];
    e->inv_dv = m[7];
    e->t_begin = n[0];
    e->t_end = n[1];
    e->pad = n[2];
    e->first_column = vl_doubles(vl_of(n[3]));
    e->first_row = vl_doubles(vl_of(n[4]));
    e->down_u = vd_cmp(e->du, zero, _CMP_LT_OQ);
    e->down_v = vd_cmp(e->dv, zero, _CMP_LT_OQ);
    abreast_load_cells(e, cells);
}

/* a + s·b, rounded twice. */
static inline vd abreast_along(vd a, vd s, vd b)
{
    return vd_add(a, vd_mul(s, b));
}

static inline vd abreast_edge_height(vd a, vd b, vd s)
{
    return abreast_along(a, s, vd_sub(b, a));
}

/* f at t, on the u line or the v line of the cell at its near or far side: f_on_edge. */
static inline vd abreast_f_on_edge(const struct abreast *e, vd t, vm on_u, vm far)
{
    vd u = vd_sub(abreast_along(e->u0, e->du, t), e->column);
    vd v = vd_sub(abreast_along(e->v0, e->dv, t), e->row);
    vd s = vd_clamp_unit(vd_blend(on_u, u, v));
    /* an edge begins at 00, or on the far side at 10 or 01; it ends at 01 or 10, or at 11 */
    vd begin = vd_blend(far, e->h00, vd_blend(on_u, e->h01, e->h10));
    vd end = vd_blend(far, vd_blend(on_u, e->h10, e->h01), e->h11);

    return vd_sub(abreast_along(e->z0, e->dz, t), abreast_edge_height(begin, end, s));
}

/* Do the heights between t and t_exit come up to the cell's? NaN among these says yes. */
static inline vm abreast_heights_met(const struct abreast *e, vd t, vd t_exit)
{
    vd z_in = abreast_along(e->z0, e->dz, t), z_out = abreast_along(e->z0, e->dz, t_exit);
    vd min = vd_min(vd_min(e->h00, e->h10), vd_min(e->h01, e->h11));
    vd max = vd_max(vd_max(e->h00, e->h10), vd_max(e->h01, e->h11));
    vd low = vd_sub(vd_min(z_in, z_out), e->pad);
    vd high = vd_add(vd_max(z_in, z_out), e->pad);

    return vd_cmp(low, max, _CMP_NGT_UQ) & vd_cmp(high, min, _CMP_NLT_UQ);
}

/* Where the next grid line is crossed, never the border; which it is must not be d == 0. */
static inline vd abreast_next_crossing(vd line, vd origin, vd inv, uint32_t cells)
{
    vm is_inside = vd_cmp_in(vd_cmp(line, vd_zero(), _CMP_GT_OQ), line, vd_set1(cells), _CMP_LT_OQ);

    return vd_put(vd_set1(__builtin_inf()), is_inside, vd_mul(vd_sub(line, origin), inv));
}

/* The first half of cell_alone_hit. */
static inline struct abreast_pass abreast_pass(const struct abreast *e,
                                               const struct heightfield *field)
{
    const vd one = vd_set1(1), least = vd_set1(-__builtin_inf());
    vd next_column = vd_add(e->column, one), next_row = vd_add(e->row, one);
    vd near_u = vd_blend(e->down_u, e->column, next_column);
    vd near_v = vd_blend(e->down_v, e->row, next_row);
    vd far_u = vd_blend(e->down_u, next_column, e->column);
    vd far_v = vd_blend(e->down_v, next_row, e->row);
    vm own_u = vd_cmp(e->column, e->first_column, _CMP_EQ_OQ);
    vm own_v = vd_cmp(e->row, e->first_row, _CMP_EQ_OQ);
    vd u_in = vd_mul(vd_sub(near_u, e->u0), e->inv_du);
    vd v_in = vd_mul(vd_sub(near_v, e->v0), e->inv_dv);
    vd u_out = abreast_next_crossing(far_u, e->u0, e->inv_du, field->cell_cols);
    vd v_out = abreast_next_crossing(far_v, e->v0, e->inv_dv, field->cell_rows);
    struct abreast_pass p;

    u_in = vd_put(u_in, own_u, least);
    v_in = vd_put(v_in, own_v, least);
    vm by_u = vd_cmp(u_in, v_in, _CMP_GT_OQ);
    vm to_u = vd_cmp(u_out, v_out, _CMP_LE_OQ);
    vd t_in = vd_blend(by_u, v_in, u_in);
    vd t_exit = vd_blend(to_u, v_out, u_out);

    p.is_met = vd_cmp(u_in, v_out, _CMP_LE_OQ) & vd_cmp(v_in, u_out, _CMP_LT_OQ) &
               vd_cmp(t_in, e->t_end, _CMP_LE_OQ);
    p.is_first = own_u & own_v;
    p.is_rare = vd_cmp(t_exit, e->t_end, _CMP_NLE_UQ) | vd_cmp(e->h00, e->h10, _CMP_UNORD_Q) |
                vd_cmp(e->h01, e->h11, _CMP_UNORD_Q);
    p.t = vd_put(t_in, vd_cmp(t_in, e->t_begin, _CMP_LT_OQ), e->t_begin);
    p.t_exit = vd_put(t_exit, vd_cmp(t_exit, p.t, _CMP_LT_OQ), p.t);
    p.is_met &= abreast_heights_met(e, p.t, p.t_exit);
    p.f_in = abreast_f_on_edge(e, p.t, by_u, ((by_u & e->down_u) | (~by_u & e->down_v)));
    p.f_out = abreast_f_on_edge(e, p.t_exit, to_u, ((to_u & ~e->down_u) | (~to_u & ~e->down_v)));
    return p;
}

/* f between two t: the first zero. See piece_hit. */
static inline vm abreast_piece_hit(vd pad, vd t0, vd f0, vd t1, vd f1, vd *t)
{
    const vd zero = vd_zero();
    vm is_on0 = vd_cmp(vd_abs(f0), pad, _CMP_LE_OQ);
    vm is_on1 = vd_cmp(vd_abs(f1), pad, _CMP_LE_OQ);
    vm sides = vd_cmp(f0, zero, _CMP_GT_OQ) ^ vd_cmp(f1, zero, _CMP_GT_OQ);
    vd share = vd_div(f0, vd_sub(f0, f1));
    vd between = abreast_along(t0, vd_sub(t1, t0), share);

    *t = vd_put(vd_put(t1, sides, between), is_on0, t0);
    return is_on0 | is_on1 | sides;
}

/* f over the planes of the cells' triangles 0 or 1, not where a sample is missing: f_on_plane. */
static inline vd abreast_f_on_plane(const struct abreast *e, vd t, vm triangle)
{
    const vd one = vd_set1(1);
    vm is_main = e->is_main, high = triangle & ~is_main;
    vd u = vd_clamp_unit(vd_sub(abreast_along(e->u0, e->du, t), e->column));
    vd v = vd_clamp_unit(vd_sub(abreast_along(e->v0, e->dv, t), e->row));
    /* begin + s1 (end1 - begin) + s2 (end2 - begin2) */
    vd begin = vd_blend(high, e->h00, e->h11);
    vd end1 = vd_blend(triangle, e->h10, e->h01);
    vd begin2 = vd_blend(is_main, begin, end1);
    vd end2 = vd_blend(is_main, vd_blend(triangle, e->h01, e->h10), e->h11);
    vd s1 = vd_put(vd_blend(triangle, u, v), high, vd_sub(one, u));
    vd s2 = vd_put(vd_blend(triangle, v, u), high, vd_sub(one, v));
    vd height = abreast_along(begin, s1, vd_sub(end1, begin));

    height = abreast_along(height, s2, vd_sub(end2, begin2));
    return vd_sub(abreast_along(e->z0, e->dz, t), height);
}

/* Both triangles of each cell: see cell_pieces. Triangle and t of those that are hit. */
static inline vm abreast_pieces(const struct abreast *e, struct abreast_pass *p, vd *hit_t,
                                vm *triangle)
{
    const vd minus_zero = vd_set1(-0.0);
    vm is_main = e->is_main;
    vd over = vd_add(vd_add(e->column, e->row), vd_set1(1));
    vd anti_start = vd_sub(over, vd_add(e->u0, e->v0));
    vd anti_rate = vd_sub(minus_zero, vd_add(e->du, e->dv));
    vd main_start = vd_sub(vd_sub(e->u0, e->v0), vd_sub(e->column, e->row));
    vd rate = vd_blend(is_main, anti_rate, vd_sub(e->du, e->dv));
    vd start = vd_blend(is_main, anti_start, main_start);
    vm first = vd_cmp(rate, vd_zero(), _CMP_GT_OQ);
    vd t_cut = vd_div(vd_sub(minus_zero, start), rate);
    vd slack = vd_mul(vd_set1(4 * DBL_EPSILON), vd_add(vd_abs(p->t), vd_abs(p->t_exit)));
    vm is_after = vd_cmp(t_cut, p->t_exit, _CMP_GT_OQ);
    vm is_cut = ~(vd_cmp(t_cut, vd_add(p->t_exit, slack), _CMP_GT_OQ) |
                  vd_cmp(t_cut, vd_sub(p->t, slack), _CMP_LT_OQ));

    t_cut = vd_blend(vd_cmp(t_cut, p->t, _CMP_GT_OQ), p->t, t_cut);
    t_cut = vd_blend(vd_cmp(t_cut, p->t_exit, _CMP_LT_OQ), p->t_exit, t_cut);
    vd s = vd_clamp_unit(vd_sub(abreast_along(e->u0, e->du, t_cut), e->column));
    vd height = abreast_edge_height(vd_blend(is_main, e->h01, e->h00),
                                    vd_blend(is_main, e->h10, e->h11), s);
    vd f_cut = vd_sub(abreast_along(e->z0, e->dz, t_cut), height), t0, t1;
    vm triangle0 = ~((is_cut | is_after) ^ first);

    if (vm_any(p->is_first))
        p->f_in = vd_put(p->f_in, p->is_first, abreast_f_on_plane(e, p->t, triangle0));
    vm hit0 = abreast_piece_hit(e->pad, p->t, p->f_in, vd_blend(is_cut, p->t_exit, t_cut),
                                vd_blend(is_cut, p->f_out, f_cut), &t0);
    vm hit1 = abreast_piece_hit(e->pad, t_cut, f_cut, p->t_exit, p->f_out, &t1) & is_cut;

    p->is_rare |= vd_cmp(rate, vd_zero(), _CMP_EQ_OQ);
    *hit_t = vd_blend(hit0, t1, t0);
    *triangle = ((hit0 & triangle0) | (~hit0 & ~first));
    return hit0 | hit1;
}

/* Cells that lie before the ray's first one. */
static inline vm abreast_behind(const struct abreast *e)
{
    const vd zero = vd_zero();
    vd u = vd_mul(vd_sub(e->column, e->first_column), e->inv_du);
    vd v = vd_mul(vd_sub(e->row, e->first_row), e->inv_dv);

    return vd_cmp(vd_min(u, v), zero, _CMP_LT_OQ);
}

#endif
#endif
