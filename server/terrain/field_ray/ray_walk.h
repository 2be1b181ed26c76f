/*
 * A ray's walk over the cells of a heightfield: shared by ray.c and the kernels, so that they give
 * the same bits. For these files only.
 */
#ifndef KOTA_TERRAIN_RAY_WALK_H
#define KOTA_TERRAIN_RAY_WALK_H

#include "terrain/field/heightfield_data.h"
#include "terrain/kernels/lanes.h"
#include "terrain/field_ray/ray.h"

#include <float.h>
#include <string.h>

/* How the present cell was entered; gives the edge on which f is evaluated. */
enum entry { ENTRY_START, ENTRY_U, ENTRY_V };

struct walk {
    /* from here to hit_t in this order: the packets take them as vectors */
    double u0, v0, z0; /* grid, grid, metres: where t is 0 */
    double du, dv, dz; /* per t */
    double inv_du, inv_dv;
    double t_begin; /* 0, or a rounding before the border by which the ray comes in */
    double t_end;
    double pad_m;                    /* rounding of z along the ray */
    int64_t first_column, first_row; /* the cell where t is t_begin */
    double t_entry;                  /* from ray_begin to ray_end, as the exponent */
    int exponent;
    int hit_triangle;
    double hit_t;
    /* the cell the ray is in */
    int64_t column, row;
    double t;
    enum entry entry;
    bool is_vertical;
    bool has_minmax16; /* the minmax16 nodes may be used */
    double ground_m;   /* under or over a vertical ray */
    struct bounds z;   /* of the field */
    const struct heightfield *field;
    struct ray_trace *trace;
};

enum ray_begin { RAY_BEGIN_MISS, RAY_BEGIN_HIT, RAY_BEGIN_WALK };

/* A ray straight up or down; true on a hit. */
bool ray_vertical_hit(struct walk *w, const struct ray *ray);

/*
 * Is the ray at t on the ground, within rounding? There any of the triangles may hold it, those too
 * whose cells it does not pass: for where it begins and ends, and beside holes. Then that is the
 * hit.
 */
__attribute__((cold)) bool ray_touches(struct walk *w, double t);

/* The same where it ends, or leaves the field by its side. */
__attribute__((cold)) bool ray_touches_last(struct walk *w);

/* The walk from cell to cell and node to node; true on a hit. */
bool ray_walk(struct walk *w);

static inline double crossing_u(const struct walk *w, int64_t k)
{
    return ((double)k - w->u0) * w->inv_du;
}

static inline double crossing_v(const struct walk *w, int64_t k)
{
    return ((double)k - w->v0) * w->inv_dv;
}

/* By bits: a branch on an unpredictable condition costs more than both sides. */
static inline double ray_select(bool condition, double yes, double no)
{
    uint64_t a, b, mask = -(uint64_t)condition;
    double chosen;

    memcpy(&a, &yes, sizeof a);
    memcpy(&b, &no, sizeof b);
    a = (a & mask) | (b & ~mask);
    memcpy(&chosen, &a, sizeof chosen);
    return chosen;
}

/* The error of a place on the ray by rounding, in cells. */
static inline double place_slack(const struct heightfield *field)
{
    double cells = (double)field->cell_cols + field->cell_rows;

    return 16 * DBL_EPSILON * (cells + field->origin_u + field->origin_v);
}

static inline double clamp_unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* ---- one cell -------------------------------------------------------------------------------- */

/* Height of the edge between two samples, lower index first: the same from both sides. */
static inline double edge_height(float a, float b, double s)
{
    return (double)a + s * ((double)b - (double)a);
}

/*
 * f where the ray crosses the edge by which it entered or leaves; NaN when a sample is missing.
 * Operands by index rather than by branches: the edge is unpredictable.
 */
static inline double f_on_edge(const struct walk *w, const float *at, double t, bool on_u_line,
                               bool far_side)
{
    const double own[2] = {w->u0 + w->du * t - (double)w->column,
                           w->v0 + w->dv * t - (double)w->row};
    size_t stride = w->field->stride, along = on_u_line ? stride : 1, across = stride + 1 - along;
    const float *first = at + far_side * across;
    double s = clamp_unit(own[on_u_line]);

    return w->z0 + w->dz * t - edge_height(first[0], first[along], s);
}

/* f over a triangle's plane; for ends that lie on no edge of the cell. */
static inline double f_on_plane(const struct walk *w, const struct corners *k, bool is_main,
                                int triangle, double t)
{
    double fu = clamp_unit(w->u0 + w->du * t - (double)w->column);
    double fv = clamp_unit(w->v0 + w->dv * t - (double)w->row);

    return w->z0 + w->dz * t - triangle_height(k, is_main, triangle, fu, fv);
}

struct piece {
    int triangle;
    double t0, f0, t1, f1; /* an f of NaN is to be taken from the triangle's plane */
};

/* The first zero of f over one triangle. One branch: whether it is met. */
static inline bool piece_hit(struct walk *w, const struct corners *k, bool is_main, struct piece p)
{
    if (!triangle_exists(k, is_main, p.triangle))
        return false;
    if (__builtin_expect(isnan(p.f0), 0))
        p.f0 = f_on_plane(w, k, is_main, p.triangle, p.t0);
    if (__builtin_expect(isnan(p.f1), 0))
        p.f1 = f_on_plane(w, k, is_main, p.triangle, p.t1);
    /* within rounding of z the ray touches: a vertex or edge that it only grazes is hit as well */
    bool is_on0 = fabs(p.f0) <= w->pad_m, is_on1 = fabs(p.f1) <= w->pad_m;
    bool is_one_side = (p.f0 > 0) == (p.f1 > 0);

    if (!(is_on0 | is_on1 | !is_one_side))
        return false;
    w->hit_triangle = p.triangle;
    w->hit_t = is_on0 ? p.t0 : is_one_side ? p.t1 : p.t0 + (p.t1 - p.t0) * (p.f0 / (p.f0 - p.f1));
    return true;
}

/*
 * Both triangles of the present cell between w->t and t_exit, in the ray's order. f_in and f_out
 * are f at the cell's edges (NaN at the ends of the ray).
 */
static inline bool cell_pieces(struct walk *w, const struct corners *k, bool is_main, double t_exit,
                               double f_in, double f_out)
{
    double c = (double)w->column, r = (double)w->row;
    /* side(t) > 0: triangle 0; it is linear and zero on the hypotenuse */
    double rate = is_main ? w->du - w->dv : -(w->du + w->dv);
    double start = is_main ? (w->u0 - w->v0) - (c - r) : (c + r + 1) - (w->u0 + w->v0);
    struct piece whole = {0, w->t, f_in, t_exit, f_out};

    if (rate == 0) {
        whole.triangle = start < 0;
        if (piece_hit(w, k, is_main, whole))
            return true;
        whole.triangle ^= 1;
        return fabs(start) <= place_slack(w->field) && piece_hit(w, k, is_main, whole);
    }
    int first = rate > 0; /* the triangle before the hypotenuse */
    double t_cut = -start / rate;

    double slack = 4 * DBL_EPSILON * (fabs(w->t) + fabs(t_exit)); /* at a corner both are met */

    bool is_cut = !(t_cut > t_exit + slack || t_cut < w->t - slack);
    bool is_after = t_cut > t_exit;

    t_cut = t_cut > w->t ? t_cut : w->t;
    t_cut = t_cut < t_exit ? t_cut : t_exit;
    double s = clamp_unit(w->u0 + w->du * t_cut - c);
    double f_cut = w->z0 + w->dz * t_cut -
                   (is_main ? edge_height(k->h00, k->h11, s) : edge_height(k->h01, k->h10, s));

    whole.triangle = is_cut || is_after ? first : !first;
    whole.t1 = is_cut ? t_cut : t_exit;
    whole.f1 = is_cut ? f_cut : f_out;
    return piece_hit(w, k, is_main, whole) ||
           (is_cut &&
            piece_hit(w, k, is_main, (struct piece){!first, t_cut, f_cut, t_exit, f_out}));
}

/*
 * The values that most cells need, by pairs of float64: f where the ray comes in and where it
 * leaves, and then both triangles. The operations are those of f_on_edge, cell_pieces and
 * piece_hit, rounded as often; where these choose by unpredictable branches, masks select here.
 */

/* a + s·b, rounded twice. */
static inline f64x2 pair_along(double a, f64x2 s, double b)
{
    return f64x2_all(a) + f64x2_all(b) * s;
}

/* f over the edges between two samples each, at s, where the ray is z high. */
static inline f64x2 pair_f(f64x2 z, f64x2 begin, f64x2 end, f64x2 s)
{
    return z - (begin + s * (end - begin));
}

/* Where the ray comes into the cell and leaves it, by u lines or v lines. */
static inline f64x2 cell_pair_ends(const struct walk *w, const float *at, f64x2 t, bool in_u,
                                   bool out_u)
{
    size_t stride = w->field->stride;
    size_t in_along = in_u ? stride : 1, out_along = out_u ? stride : 1;
    bool in_far = (in_u & (w->du < 0)) | (!in_u & (w->dv < 0));
    bool out_far = (out_u & (w->du > 0)) | (!out_u & (w->dv > 0));
    const float *in = at + in_far * (stride + 1 - in_along);
    const float *out = at + out_far * (stride + 1 - out_along);
    f64x2 u = pair_along(w->u0, t, w->du) - f64x2_all((double)w->column);
    f64x2 v = pair_along(w->v0, t, w->dv) - f64x2_all((double)w->row);
    f64x2 s = f64x2_clamp_unit(f64x2_select(mask64x2(in_u, out_u), v, u));

    return pair_f(pair_along(w->z0, t, w->dz), (f64x2){(double)in[0], (double)out[0]},
                  (f64x2){(double)in[in_along], (double)out[out_along]}, s);
}

/* The rate at which it nears the hypotenuse is not 0. */
static inline bool cell_pair_hit(struct walk *w, const float *at, bool is_main, double rate,
                                 double t_exit, bool in_u, bool out_u)
{
    const double c = (double)w->column, r = (double)w->row, t_in = w->t;
    f64x2 f = cell_pair_ends(w, at, (f64x2){t_in, t_exit}, in_u, out_u);
    double start = is_main ? (w->u0 - w->v0) - (c - r) : (c + r + 1) - (w->u0 + w->v0);
    double t_cut = -start / rate, slack = 4 * DBL_EPSILON * (fabs(t_in) + fabs(t_exit));
    bool is_cut = !((t_cut > t_exit + slack) | (t_cut < t_in - slack));
    bool is_after = t_cut > t_exit, first = rate > 0;
    size_t stride = w->field->stride, begin = is_main ? 0 : stride, end = stride + 1 - begin;

    t_cut = t_cut > t_in ? t_cut : t_in;
    t_cut = t_cut < t_exit ? t_cut : t_exit;
    f64x2 cut = f64x2_all(t_cut);
    f64x2 s = f64x2_clamp_unit(pair_along(w->u0, cut, w->du) - f64x2_all(c));
    f64x2 f_cut = pair_f(pair_along(w->z0, cut, w->dz), f64x2_all((double)at[begin]),
                         f64x2_all((double)at[end]), s);
    /* one triangle to the cut, the other after it; or one all along */
    i64x2 leaves = mask64x2(!is_cut, true);
    f64x2 pad = f64x2_all(w->pad_m), zero = f64x2_all(0);
    f64x2 t0 = (f64x2){t_in, t_cut}, t1 = f64x2_select(leaves, f64x2_all(t_exit), cut);
    f64x2 f0 = (f64x2){f[0], f_cut[1]}, f1 = f64x2_select(leaves, f64x2_seconds(f), f_cut);
    i64x2 is_on0 = (i64x2)(f64x2_abs(f0) <= pad), is_on1 = (i64x2)(f64x2_abs(f1) <= pad);
    i64x2 sides = (i64x2)(f0 > zero) ^ (i64x2)(f1 > zero);
    unsigned hits = i64x2_signs(is_on0 | is_on1 | sides) & (1u | (unsigned)is_cut << 1);

    if (hits == 0)
        return false;
    f64x2 between = t0 + (t1 - t0) * (f0 / (f0 - f1));
    f64x2 t = f64x2_select(is_on0, t0, f64x2_select(sides, between, t1));
    bool is_first = hits & 1;

    w->hit_triangle = first ^ !(is_first & (is_cut | is_after));
    w->hit_t = (is_first ? t : f64x2_seconds(t))[0];
    return true;
}

/* No sample of the cell is missing. */
static inline bool cell_is_whole(const float *at, size_t stride)
{
    f32x4 all = f32x4_pairs(at, at + stride);

    return i32x4_signs(f32x4_unordered(all, all)) == 0;
}

/*
 * The present cell, its samples at `at`, between w->t and t_exit; exit is the line through which it
 * is left.
 */
static inline bool cell_hit(struct walk *w, const float *at, double t_exit, enum entry exit)
{
    bool is_main = cell_is_main(w->field, (uint32_t)w->column, (uint32_t)w->row);
    bool in_u = w->entry == ENTRY_U, out_u = exit == ENTRY_U;
    size_t stride = w->field->stride;

    double rate = is_main ? w->du - w->dv : -(w->du + w->dv);

    if (__builtin_expect(w->entry != ENTRY_START, 1) && __builtin_expect(exit != ENTRY_START, 1) &&
        __builtin_expect(rate != 0, 1) && __builtin_expect(cell_is_whole(at, stride), 1))
        return cell_pair_hit(w, at, is_main, rate, t_exit, in_u, out_u);
    struct corners k = {at[0], at[1], at[stride], at[stride + 1]};
    double f_in = NAN, f_out = NAN;

    if (w->entry != ENTRY_START)
        f_in = f_on_edge(w, at, w->t, in_u, (in_u & (w->du < 0)) | (!in_u & (w->dv < 0)));
    if (exit != ENTRY_START)
        f_out = f_on_edge(w, at, t_exit, out_u, (out_u & (w->du > 0)) | (!out_u & (w->dv > 0)));
    if (cell_pieces(w, &k, is_main, t_exit, f_in, f_out))
        return true;
    if (__builtin_expect(exit == ENTRY_START, 0))
        return ray_touches_last(w);
    return __builtin_expect(isnan((k.h00 + k.h10) + (k.h01 + k.h11)), 0) && ray_touches(w, t_exit);
}

/* Of the field's lines those that a ray crosses, from 1 on; the border's are none. */
static inline uint64_t lines_crossed(double d, uint32_t cells)
{
    return d == 0 ? 0 : cells - 1;
}

/* Where the next grid line in the ray's direction is crossed. */
static inline double next_crossing(int64_t line, double origin, double inv, uint64_t lines)
{
    return (uint64_t)(line - 1) < lines ? ((double)line - origin) * inv : INFINITY;
}

/* Bounds of a cell's four samples; NaN is none. */
static inline struct bounds cell_bounds(const float *at, size_t stride)
{
    struct bounds b;

    f32x4_range(f32x4_pairs(at, at + stride), &b.min, &b.max);
    return b;
}

/*
 * One cell: the same numbers as the walk computes there. Whether the ground line
 * passes the cell is given only by the order of the crossings, where a tie goes to the u line.
 * `at` are the cell's samples. True on a hit.
 */
static inline bool cell_single_hit(struct walk *w, int64_t column, int64_t row, const float *at)
{
    const struct heightfield *field = w->field;
    int64_t ahead_u = w->du < 0 ? w->first_column - column : column - w->first_column;
    int64_t ahead_v = w->dv < 0 ? w->first_row - row : row - w->first_row;

    if (ahead_u < 0 || ahead_v < 0 || column >= field->cell_cols || row >= field->cell_rows ||
        (w->du == 0 && ahead_u != 0) || (w->dv == 0 && ahead_v != 0))
        return false;
    double u_in = ahead_u == 0 ? -INFINITY : crossing_u(w, column + (w->du < 0));
    double v_in = ahead_v == 0 ? -INFINITY : crossing_v(w, row + (w->dv < 0));
    double u_out = next_crossing(column + (w->du > 0), w->u0, w->inv_du,
                                 lines_crossed(w->du, field->cell_cols));
    double v_out =
        next_crossing(row + (w->dv > 0), w->v0, w->inv_dv, lines_crossed(w->dv, field->cell_rows));
    double t_in = u_in > v_in ? u_in : v_in, t_exit = v_out < u_out ? v_out : u_out;
    enum entry exit = (enum entry)(ENTRY_V - (u_out <= v_out));

    if (!(u_in <= v_out && v_in < u_out && t_in <= w->t_end))
        return false;
    w->entry = (enum entry)(((ahead_u | ahead_v) != 0) * (ENTRY_V - (u_in > v_in)));
    w->t = t_in < w->t_begin ? w->t_begin : t_in;
    if (!(t_exit <= w->t_end)) {
        exit = ENTRY_START;
        t_exit = w->t_end;
    }
    t_exit = t_exit < w->t ? w->t : t_exit;
    double z_in = w->z0 + w->dz * w->t, z_out = w->z0 + w->dz * t_exit;
    double low = z_in < z_out ? z_in : z_out, high = z_in < z_out ? z_out : z_in;

    struct bounds b = cell_bounds(at, field->stride);

    if (low - w->pad_m > (double)b.max || high + w->pad_m < (double)b.min)
        return false;
    w->column = column;
    w->row = row;
    return cell_hit(w, at, t_exit, exit);
}
#endif
