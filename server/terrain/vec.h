/*
 * Plain vectors in metres, float64. Locale frames are right-handed with Z up unless gravity says
 * otherwise (design: "Vocabulary and frames").
 */
#ifndef KOTA_TERRAIN_VEC_H
#define KOTA_TERRAIN_VEC_H

#include <math.h>

struct vec2 {
    double x, y;
};

struct vec3 {
    double x, y, z;
};

struct box3 {
    struct vec3 min, max;
};

static inline struct vec3 vec3_add(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline struct vec3 vec3_sub(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct vec3 vec3_scale(struct vec3 a, double s)
{
    return (struct vec3){a.x * s, a.y * s, a.z * s};
}

/* -a, without turning 0 into -0 */
static inline struct vec3 vec3_opposite(struct vec3 a)
{
    return (struct vec3){0 - a.x, 0 - a.y, 0 - a.z};
}

static inline double vec3_dot(struct vec3 a, struct vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vec3 vec3_cross(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* Not fmax, which is a call. */
static inline double larger_of(double a, double b)
{
    return a > b ? a : b;
}

/* The length, without overflow or underflow on the way; hypot has other bits in other libraries. */
static inline double length_xy(double x, double y)
{
    double m = larger_of(fabs(x), fabs(y));

    if (!(m > 0) || isinf(m))
        return m;
    x /= m;
    y /= m;
    return m * sqrt(x * x + y * y);
}

/* The same in space. */
static inline double vec3_length(struct vec3 a)
{
    double m = larger_of(fabs(a.x), larger_of(fabs(a.y), fabs(a.z)));

    if (!(m > 0) || isinf(m))
        return m;
    a = (struct vec3){a.x / m, a.y / m, a.z / m};
    return m * sqrt(vec3_dot(a, a));
}

/* a as a unit vector; the zero vector stays zero. */
static inline struct vec3 vec3_unit(struct vec3 a)
{
    double m = larger_of(fabs(a.x), larger_of(fabs(a.y), fabs(a.z)));

    if (!(m > 0))
        return (struct vec3){0, 0, 0};
    a = (struct vec3){a.x / m, a.y / m, a.z / m};
    return vec3_scale(a, 1 / sqrt(vec3_dot(a, a)));
}

/* Two unit vectors across a unit vector `up`, right-handed with it; for +Z they are X and Y. */
static inline void vec3_across(struct vec3 up, struct vec3 *u, struct vec3 *v)
{
    struct vec3 x = fabs(up.x) < 0.9 ? (struct vec3){1, 0, 0} : (struct vec3){0, 1, 0};

    *u = vec3_unit(vec3_sub(x, vec3_scale(up, vec3_dot(x, up))));
    *v = vec3_cross(up, *u);
}

static inline int vec3_is_finite(struct vec3 a)
{
    return isfinite(a.x) && isfinite(a.y) && isfinite(a.z);
}

/* Grows a box by a point. */
static inline void box3_take(struct box3 *box, struct vec3 v)
{
    box->min.x = v.x < box->min.x ? v.x : box->min.x;
    box->min.y = v.y < box->min.y ? v.y : box->min.y;
    box->min.z = v.z < box->min.z ? v.z : box->min.z;
    box->max.x = v.x > box->max.x ? v.x : box->max.x;
    box->max.y = v.y > box->max.y ? v.y : box->max.y;
    box->max.z = v.z > box->max.z ? v.z : box->max.z;
}

/* The least box around both. */
static inline struct box3 box3_union(struct box3 a, struct box3 b)
{
    return (struct box3){{fmin(a.min.x, b.min.x), fmin(a.min.y, b.min.y), fmin(a.min.z, b.min.z)},
                         {fmax(a.max.x, b.max.x), fmax(a.max.y, b.max.y), fmax(a.max.z, b.max.z)}};
}

#endif
