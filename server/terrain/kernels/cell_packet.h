/*
 * Cells against rays in float64, a lane each: cell_single_hit of ray_walk.h for as many rays as a
 * vector holds, each in a cell of its own. For ray_stream.c only.
 *
 * Every operation is the one that ray_walk.h does, in the same order and rounded as often (nothing
 * is fused), so that all answers have its bits. Cases of few cells are not handled here: the cells
 * where a ray ends, those with a missing sample and those along whose hypotenuse the ray runs are
 * left to cell_single_hit.
 */
#ifndef KOTA_TERRAIN_CELL_PACKET_H
#define KOTA_TERRAIN_CELL_PACKET_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/kernels/lanes.h"
#include "terrain/field_ray/ray_walk.h"

enum { PACKET = 4 };

/* Cells of as many rays; the samples of each are at `at`. */
struct packet_cells {
    struct walk *w[PACKET];
    const float *const *at;
    const int32_t *column, *row;
};

/* A lane each. */
struct cell_packet {
    f64x4 u0, v0, z0, du, dv, dz, inv_du, inv_dv;
    f64x4 t_begin, t_end, pad;
    f64x4 column, row, first_column, first_row;
    f64x4 h00, h10, h01, h11;
    i64x4 down_u, down_v; /* du < 0, dv < 0 */
    i64x4 is_main;
};

/* How they pass their cells, and f at both ends. */
struct packet_pass {
    f64x4 t, t_exit, f_in, f_out;
    i64x4 is_met;   /* by the ground line, at the cell's heights */
    i64x4 is_first; /* the ray's first cell: f_in is that of a triangle's plane */
    i64x4 is_rare;
};

static inline uint32_t packet_cell_hit(const struct packet_cells *c, int i)
{
    return (uint32_t)cell_single_hit(c->w[i], c->column[i], c->row[i], c->at[i]) << i;
}

_Static_assert(offsetof(struct walk, inv_dv) == offsetof(struct walk, u0) + 7 * sizeof(double) &&
                   offsetof(struct walk, first_row) ==
                       offsetof(struct walk, t_begin) + 4 * sizeof(double) &&
                   sizeof(struct walk) >= offsetof(struct walk, t_begin) + 8 * sizeof(double),
               "packet_members reads eight members from u0 and from t_begin on");

/* Eight members of each walk, from offset `from` on: member i of all in to[i]. */
static inline __attribute__((always_inline)) void packet_members(const struct packet_cells *cells,
                                                                 size_t from, f64x4 *to)
{
    f64x4_load_columns8((const void *const *)cells->w, from, to);
}

/* cell_is_main of each. */
static inline i64x4 packet_main(const struct heightfield *field, i32x4 column, i32x4 row)
{
    enum triangulation triangulation = field->spec.triangulation;

    if (triangulation == TRIANGULATION_ALTERNATING)
        return -(i64x4_of_ints(column + row) & i64x4_all(1));
    return i64x4_all(triangulation == TRIANGULATION_MAIN ? -1 : 0);
}

static inline void packet_load_cells(struct cell_packet *e, const struct packet_cells *cells)
{
    i32x4 column = i32x4_load(cells->column), row = i32x4_load(cells->row);

    f64x4_load_pairs(cells->at, 0, &e->h00, &e->h10);
    f64x4_load_pairs(cells->at, cells->w[0]->field->stride, &e->h01, &e->h11);
    e->column = f64x4_of_ints(column);
    e->row = f64x4_of_ints(row);
    e->is_main = packet_main(cells->w[0]->field, column, row);
}

static inline void packet_load(struct cell_packet *e, const struct packet_cells *cells)
{
    const f64x4 zero = f64x4_all(0);
    f64x4 m[8], n[8];

    packet_members(cells, offsetof(struct walk, u0), m);
    packet_members(cells, offsetof(struct walk, t_begin), n);
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
    e->first_column = i64x4_doubles((i64x4)n[3]);
    e->first_row = i64x4_doubles((i64x4)n[4]);
    e->down_u = f64x4_lt(e->du, zero);
    e->down_v = f64x4_lt(e->dv, zero);
    packet_load_cells(e, cells);
}

/* a + s·b, rounded twice. */
static inline f64x4 packet_along(f64x4 a, f64x4 s, f64x4 b)
{
    return a + s * b;
}

static inline f64x4 packet_edge_height(f64x4 a, f64x4 b, f64x4 s)
{
    return packet_along(a, s, b - a);
}

/* f at t, on the u line or the v line of the cell at its near or far side: f_on_edge. */
static inline f64x4 packet_f_on_edge(const struct cell_packet *e, f64x4 t, i64x4 on_u, i64x4 far)
{
    f64x4 u = packet_along(e->u0, e->du, t) - e->column;
    f64x4 v = packet_along(e->v0, e->dv, t) - e->row;
    f64x4 s = f64x4_clamp_unit(f64x4_select(on_u, v, u));
    /* an edge begins at 00, or on the far side at 10 or 01; it ends at 01 or 10, or at 11 */
    f64x4 begin = f64x4_select(far, f64x4_select(on_u, e->h10, e->h01), e->h00);
    f64x4 end = f64x4_select(far, e->h11, f64x4_select(on_u, e->h01, e->h10));

    return packet_along(e->z0, e->dz, t) - packet_edge_height(begin, end, s);
}

/* Do the heights between t and t_exit come up to the cell's? NaN among these says yes. */
static inline i64x4 packet_heights_met(const struct cell_packet *e, f64x4 t, f64x4 t_exit)
{
    f64x4 z_in = packet_along(e->z0, e->dz, t), z_out = packet_along(e->z0, e->dz, t_exit);
    f64x4 min = f64x4_min(f64x4_min(e->h00, e->h10), f64x4_min(e->h01, e->h11));
    f64x4 max = f64x4_max(f64x4_max(e->h00, e->h10), f64x4_max(e->h01, e->h11));
    f64x4 low = f64x4_min(z_in, z_out) - e->pad;
    f64x4 high = f64x4_max(z_in, z_out) + e->pad;

    return f64x4_not_gt(low, max) & f64x4_not_lt(high, min);
}

/* Where the next grid line is crossed, never the border; which it is must not be d == 0. */
static inline f64x4 packet_next_crossing(f64x4 line, f64x4 origin, f64x4 inv, uint32_t cells)
{
    i64x4 is_inside = f64x4_gt(line, f64x4_all(0)) & f64x4_lt(line, f64x4_all(cells));

    return f64x4_select(is_inside, (line - origin) * inv, f64x4_all(__builtin_inf()));
}

/* The first half of cell_single_hit. */
static inline struct packet_pass packet_pass(const struct cell_packet *e,
                                             const struct heightfield *field)
{
    const f64x4 one = f64x4_all(1), least = f64x4_all(-__builtin_inf());
    f64x4 next_column = e->column + one, next_row = e->row + one;
    f64x4 near_u = f64x4_select(e->down_u, next_column, e->column);
    f64x4 near_v = f64x4_select(e->down_v, next_row, e->row);
    f64x4 far_u = f64x4_select(e->down_u, e->column, next_column);
    f64x4 far_v = f64x4_select(e->down_v, e->row, next_row);
    i64x4 own_u = f64x4_eq(e->column, e->first_column);
    i64x4 own_v = f64x4_eq(e->row, e->first_row);
    f64x4 u_in = (near_u - e->u0) * e->inv_du;
    f64x4 v_in = (near_v - e->v0) * e->inv_dv;
    f64x4 u_out = packet_next_crossing(far_u, e->u0, e->inv_du, field->cell_cols);
    f64x4 v_out = packet_next_crossing(far_v, e->v0, e->inv_dv, field->cell_rows);
    struct packet_pass p;

    u_in = f64x4_select(own_u, least, u_in);
    v_in = f64x4_select(own_v, least, v_in);
    i64x4 by_u = f64x4_gt(u_in, v_in);
    i64x4 to_u = f64x4_le(u_out, v_out);
    f64x4 t_in = f64x4_select(by_u, u_in, v_in);
    f64x4 t_exit = f64x4_select(to_u, u_out, v_out);

    p.is_met = f64x4_le(u_in, v_out) & f64x4_lt(v_in, u_out) & f64x4_le(t_in, e->t_end);
    p.is_first = own_u & own_v;
    p.is_rare = f64x4_not_le(t_exit, e->t_end) | f64x4_unordered(e->h00, e->h10) |
                f64x4_unordered(e->h01, e->h11);
    p.t = f64x4_select(f64x4_lt(t_in, e->t_begin), e->t_begin, t_in);
    p.t_exit = f64x4_select(f64x4_lt(t_exit, p.t), p.t, t_exit);
    p.is_met &= packet_heights_met(e, p.t, p.t_exit);
    p.f_in = packet_f_on_edge(e, p.t, by_u, ((by_u & e->down_u) | (~by_u & e->down_v)));
    p.f_out = packet_f_on_edge(e, p.t_exit, to_u, ((to_u & ~e->down_u) | (~to_u & ~e->down_v)));
    return p;
}

/* f between two t: the first zero. See piece_hit. */
static inline i64x4 packet_piece_hit(f64x4 pad, f64x4 t0, f64x4 f0, f64x4 t1, f64x4 f1, f64x4 *t)
{
    const f64x4 zero = f64x4_all(0);
    i64x4 is_on0 = f64x4_le(f64x4_abs(f0), pad);
    i64x4 is_on1 = f64x4_le(f64x4_abs(f1), pad);
    i64x4 sides = f64x4_gt(f0, zero) ^ f64x4_gt(f1, zero);
    f64x4 share = f0 / (f0 - f1);
    f64x4 between = packet_along(t0, t1 - t0, share);

    *t = f64x4_select(is_on0, t0, f64x4_select(sides, between, t1));
    return is_on0 | is_on1 | sides;
}

/* f over the planes of the cells' triangles 0 or 1, not where a sample is missing: f_on_plane. */
static inline f64x4 packet_f_on_plane(const struct cell_packet *e, f64x4 t, i64x4 triangle)
{
    const f64x4 one = f64x4_all(1);
    i64x4 is_main = e->is_main, high = triangle & ~is_main;
    f64x4 u = f64x4_clamp_unit(packet_along(e->u0, e->du, t) - e->column);
    f64x4 v = f64x4_clamp_unit(packet_along(e->v0, e->dv, t) - e->row);
    /* begin + s1 (end1 - begin) + s2 (end2 - begin2) */
    f64x4 begin = f64x4_select(high, e->h11, e->h00);
    f64x4 end1 = f64x4_select(triangle, e->h01, e->h10);
    f64x4 begin2 = f64x4_select(is_main, end1, begin);
    f64x4 end2 = f64x4_select(is_main, e->h11, f64x4_select(triangle, e->h10, e->h01));
    f64x4 s1 = f64x4_select(high, one - u, f64x4_select(triangle, v, u));
    f64x4 s2 = f64x4_select(high, one - v, f64x4_select(triangle, u, v));
    f64x4 height = packet_along(begin, s1, end1 - begin);

    height = packet_along(height, s2, end2 - begin2);
    return packet_along(e->z0, e->dz, t) - height;
}

/* Both triangles of each cell: see cell_pieces. Triangle and t of those that are hit. */
static inline i64x4 packet_pieces(const struct cell_packet *e, struct packet_pass *p, f64x4 *hit_t,
                                  i64x4 *triangle)
{
    const f64x4 minus_zero = f64x4_all(-0.0);
    i64x4 is_main = e->is_main;
    f64x4 over = e->column + e->row + f64x4_all(1);
    f64x4 anti_start = over - (e->u0 + e->v0);
    f64x4 anti_rate = minus_zero - (e->du + e->dv);
    f64x4 main_start = e->u0 - e->v0 - (e->column - e->row);
    f64x4 rate = f64x4_select(is_main, e->du - e->dv, anti_rate);
    f64x4 start = f64x4_select(is_main, main_start, anti_start);
    i64x4 first = f64x4_gt(rate, f64x4_all(0));
    f64x4 t_cut = (minus_zero - start) / rate;
    f64x4 slack = f64x4_all(4 * DBL_EPSILON) * (f64x4_abs(p->t) + f64x4_abs(p->t_exit));
    i64x4 is_after = f64x4_gt(t_cut, p->t_exit);
    i64x4 is_cut = ~(f64x4_gt(t_cut, p->t_exit + slack) | f64x4_lt(t_cut, p->t - slack));

    t_cut = f64x4_select(f64x4_gt(t_cut, p->t), t_cut, p->t);
    t_cut = f64x4_select(f64x4_lt(t_cut, p->t_exit), t_cut, p->t_exit);
    f64x4 s = f64x4_clamp_unit(packet_along(e->u0, e->du, t_cut) - e->column);
    f64x4 height = packet_edge_height(f64x4_select(is_main, e->h00, e->h01),
                                      f64x4_select(is_main, e->h11, e->h10), s);
    f64x4 f_cut = packet_along(e->z0, e->dz, t_cut) - height, t0, t1;
    i64x4 triangle0 = ~((is_cut | is_after) ^ first);

    if (i64x4_any(p->is_first))
        p->f_in = f64x4_select(p->is_first, packet_f_on_plane(e, p->t, triangle0), p->f_in);
    i64x4 hit0 = packet_piece_hit(e->pad, p->t, p->f_in, f64x4_select(is_cut, t_cut, p->t_exit),
                                  f64x4_select(is_cut, f_cut, p->f_out), &t0);
    i64x4 hit1 = packet_piece_hit(e->pad, t_cut, f_cut, p->t_exit, p->f_out, &t1) & is_cut;

    p->is_rare |= f64x4_eq(rate, f64x4_all(0));
    *hit_t = f64x4_select(hit0, t0, t1);
    *triangle = ((hit0 & triangle0) | (~hit0 & ~first));
    return hit0 | hit1;
}

/* Cells that lie before the ray's first one. */
static inline i64x4 packet_behind(const struct cell_packet *e)
{
    const f64x4 zero = f64x4_all(0);
    f64x4 u = (e->column - e->first_column) * e->inv_du;
    f64x4 v = (e->row - e->first_row) * e->inv_dv;

    return f64x4_lt(f64x4_min(u, v), zero);
}

#endif
#endif
