/*
 * The two ends of a ray's way: into grid coordinates and into the field's box, and the answer. A
 * header, so that each level of vector instructions compiles its own: values that differ from ray
 * to ray (signs, the side by which it comes in, the triangle) choose operands there and not code.
 */
#ifndef KOTA_TERRAIN_RAY_ENDS_H
#define KOTA_TERRAIN_RAY_ENDS_H

#include "terrain/field_ray/ray_walk.h"

#include <string.h>

struct interval {
    double t0, t1;
    int entry_axis; /* 0, 1, 2; -1: the origin is inside */
};

/*
 * Cuts the interval by one slab; false when nothing is left. The ray enters at the face itself and
 * leaves `pad` after the other one: entries stay exact, and rounding loses no ray at an edge.
 */
static inline bool slab(struct interval *i, int axis, double origin, double direction, double inv,
                        double low, double high, double pad)
{
    if (direction == 0)
        return origin >= low - pad && origin <= high + pad;
    bool is_up = direction > 0;
    double in = (ray_select(is_up, low, high) - origin) * inv;
    double out = (ray_select(is_up, high + pad, low - pad) - origin) * inv;

    i->entry_axis = in > i->t0 ? axis : i->entry_axis;
    i->t0 = in > i->t0 ? in : i->t0;
    i->t1 = out < i->t1 ? out : i->t1;
    return i->t0 <= i->t1;
}

static inline double clamped(double x, double high)
{
    x = x > 0 ? x : 0;
    return x < high ? x : high;
}

/*
 * Moves the walk's origin to where the ray enters the field's box, cuts t_end, gives t of the
 * entry. The box is a few roundings larger than the field, so that a flat field and a ray through
 * an outermost vertex are not lost; the walk itself clamps to the cells.
 */
static inline bool enter_box(struct walk *w)
{
    double cols = w->field->cell_cols, rows = w->field->cell_rows;
    struct bounds z = heightfield_node(w->field, w->field->level_max, 0, 0);
    double eps = 4 * DBL_EPSILON;
    double pad_u = eps * (cols + fabs(w->u0) + w->field->origin_u);
    double pad_v = eps * (rows + fabs(w->v0) + w->field->origin_v);
    double low = (double)z.min, high = (double)z.max;
    double pad_z = 1e-9 * (1 + fabs(low) + fabs(high)) + eps * fabs(w->z0);
    double far_z = fabs(w->z0); /* z of the entry is as wrong as this is rounded */
    struct interval i = {0, w->t_end, -1};

    if (!(low <= high) || !slab(&i, 0, w->u0, w->du, w->inv_du, 0, cols, pad_u) ||
        !slab(&i, 1, w->v0, w->dv, w->inv_dv, 0, rows, pad_v) ||
        !slab(&i, 2, w->z0, w->dz, 1 / w->dz, low, high, pad_z))
        return false;
    if (!isfinite(i.t0)) /* so far away that no t reaches the box */
        return false;
    w->t_entry = i.t0;
    w->z = z;
    if (i.t0 > 0) {
        w->u0 = i.entry_axis == 0 ? ray_select(w->du > 0, 0, cols) : w->u0 + w->du * i.t0;
        w->v0 = i.entry_axis == 1 ? ray_select(w->dv > 0, 0, rows) : w->v0 + w->dv * i.t0;
        w->z0 = i.entry_axis == 2 ? ray_select(w->dz > 0, low, high) : w->z0 + w->dz * i.t0;
    }
    w->u0 = clamped(w->u0, cols);
    w->v0 = clamped(w->v0, rows);
    if (i.entry_axis == 0)
        w->t_begin = -pad_u * fabs(w->inv_du);
    if (i.entry_axis == 1)
        w->t_begin = -pad_v * fabs(w->inv_dv);
    w->t_end = i.t1 - i.t0;
    w->pad_m = eps * (fabs(low) + fabs(high) + far_z + fabs(w->dz * w->t_end));
    return true;
}

/* In cells: by more than rounding moves a place off its grid line, and few rays begin so near. */
#define LINE_NEAR 0x1p-30

static inline bool is_near_line(double x)
{
    return fabs(x - (double)(int64_t)(x + 0.5)) <= LINE_NEAR;
}

/* Does the ground line run along a grid line, beside which another cell lies? */
static inline bool on_u_line(const struct walk *w)
{
    return w->du == 0 && w->u0 == (double)w->first_column && w->first_column > 0;
}

static inline bool on_v_line(const struct walk *w)
{
    return w->dv == 0 && w->v0 == (double)w->first_row && w->first_row > 0;
}

static inline void fill_hit(const struct walk *w, struct ray_hit *hit)
{
    uint32_t column = (uint32_t)w->column, row = (uint32_t)w->row;
    struct corners k = heightfield_corners(w->field, column, row);
    bool is_main = cell_is_main(w->field, column, row);
    const struct heightfield_spec *s = &w->field->spec;

    hit->point = (struct vec3){s->origin_x_m + (w->u0 + w->du * w->hit_t) * s->spacing_x_m,
                               s->origin_y_m + (w->v0 + w->dv * w->hit_t) * s->spacing_y_m,
                               w->z0 + w->dz * w->hit_t};
    hit->normal = triangle_normal(w->field, &k, is_main, w->hit_triangle);
    hit->cell[0] = column;
    hit->cell[1] = row;
    hit->triangle = w->hit_triangle;
}

/* frexp's exponent; of zero 0. */
static inline int exponent_of(double x)
{
    uint64_t bits;
    int exponent;

    memcpy(&bits, &x, sizeof bits);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0 || exponent == 0x7ff)
        frexp(x, &exponent);
    else
        exponent -= 1022;
    return exponent;
}

/* ldexp, by one product where the power is a number: both round once. */
static inline double scaled(double x, int exponent)
{
    if (exponent < -1000 || exponent > 1000)
        return ldexp(x, exponent);
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;

    memcpy(&power, &bits, sizeof power);
    return x * power;
}

static inline double longest(struct vec3 d)
{
    double x = fabs(d.x), y = fabs(d.y), z = fabs(d.z);

    x = x > y ? x : y;
    return x > z ? x : z;
}

/*
 * Puts the ray into grid coordinates. t is scaled by a power of two so that the longest component
 * is near 1, first in metres, so that nothing overflows, then in cells: exact both ways. False when
 * it is further away than float64 counts cells.
 */
static inline bool to_grid(struct walk *w, const struct ray *ray)
{
    const struct heightfield_spec *s = &w->field->spec;
    struct vec3 d = ray->direction;
    int exponent = exponent_of(longest(d));

    d = (struct vec3){scaled(d.x, -exponent) / s->spacing_x_m,
                      scaled(d.y, -exponent) / s->spacing_y_m, scaled(d.z, -exponent)};
    int more = exponent_of(longest(d));

    w->exponent = exponent + more;
    w->u0 = (ray->origin.x - s->origin_x_m) / s->spacing_x_m;
    w->v0 = (ray->origin.y - s->origin_y_m) / s->spacing_y_m;
    w->z0 = ray->origin.z;
    w->du = scaled(d.x, -more);
    w->dv = scaled(d.y, -more);
    w->dz = scaled(d.z, -more);
    w->t_begin = 0;
    w->t_end = scaled(ray->t_max, w->exponent);
    if (!isfinite(w->u0) || !isfinite(w->v0) || !vec3_is_finite(d))
        return false;
    if (fabs(w->du) < DBL_MIN) /* would not move by a cell within any finite t */
        w->du = 0;
    if (fabs(w->dv) < DBL_MIN)
        w->dv = 0;
    if (fabs(w->dz) < DBL_MIN && (w->du != 0 || w->dv != 0)) /* likewise within the field */
        w->dz = 0;
    return true;
}

/*
 * Whether the walk may begin on the ground of its first cell. For rays that start near a grid line,
 * as all do that come in by the field's side. False is certain: the cell has all samples, so that
 * no neighbour's triangle is tested, and none of its planes comes up to the origin.
 */
static inline bool ray_may_start_on_ground(const struct walk *w)
{
    struct corners k =
        heightfield_corners(w->field, (uint32_t)w->first_column, (uint32_t)w->first_row);
    float low = k.h00 < k.h10 ? k.h00 : k.h10, high = k.h00 < k.h10 ? k.h10 : k.h00;
    float low1 = k.h01 < k.h11 ? k.h01 : k.h11, high1 = k.h01 < k.h11 ? k.h11 : k.h01;
    bool is_whole = (k.h00 == k.h00) & (k.h10 == k.h10) & (k.h01 == k.h01) & (k.h11 == k.h11);
    double pad = 4 * w->pad_m; /* more than a plane's height loses by rounding */

    low = low < low1 ? low : low1;
    high = high > high1 ? high : high1;
    return !is_whole || !(w->z0 > (double)high + pad || w->z0 < (double)low - pad);
}

/* Everything before the walk; trace is NULL for minmax16 nodes. */
static inline enum ray_begin ray_begin(struct walk *w, const struct heightfield *field,
                                       const struct ray *ray, struct ray_trace *trace)
{
    w->field = field;
    w->trace = trace;
    w->t_entry = 0;
    if (!to_grid(w, ray))
        return RAY_BEGIN_MISS;
    w->is_vertical = w->du == 0 && w->dv == 0;
    if (w->is_vertical)
        return ray_vertical_hit(w, ray) ? RAY_BEGIN_HIT : RAY_BEGIN_MISS;
    w->inv_du = w->du != 0 ? 1 / w->du : 0;
    w->inv_dv = w->dv != 0 ? 1 / w->dv : 0;
    if (!enter_box(w))
        return RAY_BEGIN_MISS;
    w->first_column = w->u0 < field->cell_cols ? (int64_t)w->u0 : field->cell_cols - 1;
    w->first_row = w->v0 < field->cell_rows ? (int64_t)w->v0 : field->cell_rows - 1;
    if ((is_near_line(w->u0) || is_near_line(w->v0)) && ray_may_start_on_ground(w) &&
        ray_touches(w, 0))
        return RAY_BEGIN_HIT;
    w->has_minmax16 = !on_u_line(w) && !on_v_line(w) &&
                      fabs((double)w->z.min) + fabs((double)w->z.max) < MINMAX16_Z_MAX_M;
    return RAY_BEGIN_WALK;
}

/* Everything after a hit; false when it turns out to lie beyond any t. */
static inline bool ray_end(const struct walk *w, const struct ray *ray, struct ray_hit *hit)
{
    double t = w->t_entry + w->hit_t;

    t = scaled(t > 0 ? t : 0, -w->exponent);
    if (!isfinite(t))
        return false;
    fill_hit(w, hit);
    if (w->is_vertical)
        hit->point = (struct vec3){ray->origin.x, ray->origin.y, w->ground_m};
    hit->t = t < ray->t_max ? t : ray->t_max;
    return true;
}

#endif
