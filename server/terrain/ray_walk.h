/*
 * A ray's walk over the cells of a heightfield: what the levels of ray.c, ray_avx2.c and
 * ray_avx512.c share, so that they give the same bits. For these files only.
 */
#ifndef KOTA_TERRAIN_RAY_WALK_H
#define KOTA_TERRAIN_RAY_WALK_H

#include "terrain/heightfield_data.h"
#include "terrain/ray.h"

#include <float.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* How the present cell was entered; tells which edge f is evaluated on. */
enum entry { ENTRY_START, ENTRY_U, ENTRY_V };

struct walk {
    /* from here to hit_t in this order: ray_lanes.h takes them as two vectors */
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
    bool is_wide;    /* the wide nodes may be asked */
    double ground_m; /* under or over a vertical ray */
    struct bounds z; /* of the field */
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

/*
 * From the present cell over the border of its node of 2^level cells, to the next cell on the exact
 * path; w->t and w->entry are those of the border. False when the ray ends inside. w->t need not be
 * set.
 */
bool ray_leave_node(struct walk *w, uint32_t level);

/* heightfield_ray and heightfield_rays by wide nodes: the levels of simd.h. */
bool ray_alone_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit);
bool ray_alone_avx512(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit);
void rays_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
               struct ray_hit *hits);
void rays_avx512(const struct heightfield *field, const struct ray *rays, size_t count,
                 struct ray_hit *hits);

static inline double crossing_u(const struct walk *w, int64_t k)
{
    return ((double)k - w->u0) * w->inv_du;
}

static inline double crossing_v(const struct walk *w, int64_t k)
{
    return ((double)k - w->v0) * w->inv_dv;
}

/* By bits: where nobody can foretell the condition, a branch costs more than both sides. */
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

/* What rounding may have moved a place on the ray by, in cells. */
static inline double place_slack(const struct heightfield *field)
{
    double cells = (double)field->cell_cols + field->cell_rows;

    return 16 * DBL_EPSILON * (cells + field->origin_u + field->origin_v);
}

static inline double clamp_unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* ---- one cell ----------------------------------------------------------------------------------
 */

/* Height of the edge between two samples, lower index first: the same from both sides. */
static inline double edge_height(float a, float b, double s)
{
    return (double)a + s * ((double)b - (double)a);
}

/*
 * f where the ray crosses the edge by which it entered or leaves; NaN when a sample is missing.
 * Operands by index rather than by branches: which edge it is nobody guesses.
 */
static inline double f_on_edge(const struct walk *w, const float *at, double t, bool on_u_line,
                               bool far_side)
{
    const double own[2] = {w->u0 + w->du * t - (double)w->column,
                           w->v0 + w->dv * t - (double)w->row};
    size_t along = on_u_line ? TILE_SAMPLES : 1, across = TILE_SAMPLES + 1 - along;
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
 * The present cell, its samples at `at`, between w->t and t_exit; exit tells through which line it
 * is left.
 */
static inline bool cell_hit(struct walk *w, const float *at, double t_exit, enum entry exit)
{
    struct corners k = {at[0], at[1], at[TILE_SAMPLES], at[TILE_SAMPLES + 1]};
    double f_in = NAN, f_out = NAN;

    bool in_u = w->entry == ENTRY_U, out_u = exit == ENTRY_U;

    if (w->entry != ENTRY_START)
        f_in = f_on_edge(w, at, w->t, in_u, (in_u & (w->du < 0)) | (!in_u & (w->dv < 0)));
    if (exit != ENTRY_START)
        f_out = f_on_edge(w, at, t_exit, out_u, (out_u & (w->du > 0)) | (!out_u & (w->dv > 0)));
    if (cell_pieces(w, &k, cell_is_main(w->field, (uint32_t)w->column, (uint32_t)w->row), t_exit,
                    f_in, f_out))
        return true;
    if (__builtin_expect(exit == ENTRY_START, 0))
        return ray_touches_last(w);
    return __builtin_expect(isnan((k.h00 + k.h10) + (k.h01 + k.h11)), 0) && ray_touches(w, t_exit);
}

/* Where the next grid line in the ray's direction is crossed; never at the field's border. */
static inline double next_crossing(double d, double origin, double inv, int64_t cell,
                                   uint32_t cells)
{
    int64_t k = cell + (d > 0);

    return d == 0 || k <= 0 || k >= cells ? INFINITY : ((double)k - origin) * inv;
}

/* Bounds of a cell's four samples; NaN is none. */
static inline struct bounds cell_bounds(const float *at)
{
#ifdef __SSE2__
    double rows[2];

    memcpy(&rows[0], at, sizeof rows[0]); /* two samples each */
    memcpy(&rows[1], at + TILE_SAMPLES, sizeof rows[1]);
    __m128 all = _mm_castpd_ps(_mm_set_pd(rows[1], rows[0]));
    /* of two operands the second, when the first is NaN */
    __m128 low = _mm_min_ps(all, _mm_set1_ps(__builtin_inff()));
    __m128 high = _mm_max_ps(all, _mm_set1_ps(-__builtin_inff()));

    low = _mm_min_ps(low, _mm_movehl_ps(low, low));
    high = _mm_max_ps(high, _mm_movehl_ps(high, high));
    low = _mm_min_ss(low, _mm_shuffle_ps(low, low, 1));
    high = _mm_max_ss(high, _mm_shuffle_ps(high, high, 1));
    return (struct bounds){_mm_cvtss_f32(low), _mm_cvtss_f32(high)};
#else
    struct bounds b = bounds_add(bounds_add(BOUNDS_EMPTY, at[0]), at[1]);

    return bounds_add(bounds_add(b, at[TILE_SAMPLES]), at[TILE_SAMPLES + 1]);
#endif
}

/*
 * A cell by itself: the same numbers as the walk finds when it comes by. Whether the ground line
 * passes the cell is told by the order of the crossings alone, where a tie goes to the u line.
 * `at` are the cell's samples. True on a hit.
 */
static inline bool cell_alone_hit(struct walk *w, int64_t column, int64_t row, const float *at)
{
    const struct heightfield *field = w->field;
    int64_t ahead_u = w->du < 0 ? w->first_column - column : column - w->first_column;
    int64_t ahead_v = w->dv < 0 ? w->first_row - row : row - w->first_row;

    if (ahead_u < 0 || ahead_v < 0 || column >= field->cell_cols || row >= field->cell_rows ||
        (w->du == 0 && ahead_u != 0) || (w->dv == 0 && ahead_v != 0))
        return false;
    double u_in = ahead_u == 0 ? -INFINITY : crossing_u(w, column + (w->du < 0));
    double v_in = ahead_v == 0 ? -INFINITY : crossing_v(w, row + (w->dv < 0));
    double u_out = next_crossing(w->du, w->u0, w->inv_du, column, field->cell_cols);
    double v_out = next_crossing(w->dv, w->v0, w->inv_dv, row, field->cell_rows);
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

    struct bounds b = cell_bounds(at);

    if (low - w->pad_m > (double)b.max || high + w->pad_m < (double)b.min)
        return false;
    w->column = column;
    w->row = row;
    return cell_hit(w, at, t_exit, exit);
}
#endif
