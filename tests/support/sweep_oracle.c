#include "support/sweep_oracle.h"

#include <math.h>

typedef long double real;

struct v {
    real x, y, z;
};

static struct v of(struct vec3 a)
{
    return (struct v){(real)a.x, (real)a.y, (real)a.z};
}

static struct v add(struct v a, struct v b)
{
    return (struct v){a.x + b.x, a.y + b.y, a.z + b.z};
}

static struct v sub(struct v a, struct v b)
{
    return (struct v){a.x - b.x, a.y - b.y, a.z - b.z};
}

static struct v times(struct v a, real t)
{
    return (struct v){a.x * t, a.y * t, a.z * t};
}

static real dot(struct v a, struct v b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct v cross(struct v a, struct v b)
{
    return (struct v){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* from: on the triangle; to: on the shape's core */
struct apart {
    real square;
    struct v from, to;
};

static void closer(struct apart *a, struct v on_core, struct v on_triangle)
{
    struct v d = sub(on_core, on_triangle);
    real square = dot(d, d);

    if (square < a->square)
        *a = (struct apart){square, on_triangle, on_core};
}

/* By Voronoi regions in barycentric coordinates. */
static struct v on_triangle(struct v p, const struct v c[3])
{
    struct v ab = sub(c[1], c[0]), ac = sub(c[2], c[0]), ap = sub(p, c[0]);
    real d1 = dot(ab, ap), d2 = dot(ac, ap);

    if (d1 <= 0 && d2 <= 0)
        return c[0];
    struct v bp = sub(p, c[1]);
    real d3 = dot(ab, bp), d4 = dot(ac, bp);

    if (d3 >= 0 && d4 <= d3)
        return c[1];
    real vc = d1 * d4 - d3 * d2;

    if (vc <= 0 && d1 >= 0 && d3 <= 0)
        return add(c[0], times(ab, d1 / (d1 - d3)));
    struct v cp = sub(p, c[2]);
    real d5 = dot(ab, cp), d6 = dot(ac, cp);

    if (d6 >= 0 && d5 <= d6)
        return c[2];
    real vb = d5 * d2 - d1 * d6;

    if (vb <= 0 && d2 >= 0 && d6 <= 0)
        return add(c[0], times(ac, d2 / (d2 - d6)));
    real va = d3 * d6 - d5 * d4;

    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0)
        return add(c[1], times(sub(c[2], c[1]), (d4 - d3) / ((d4 - d3) + (d5 - d6))));
    real sum = va + vb + vc;

    return add(c[0], add(times(ab, vb / sum), times(ac, vc / sum)));
}

static real clamp(real x, real low, real high)
{
    return x < low ? low : x > high ? high : x;
}

static void segments(struct apart *a, struct v p, struct v q, struct v c, struct v d)
{
    struct v u = sub(q, p), v = sub(d, c), r = sub(p, c);
    real uu = dot(u, u), vv = dot(v, v), uv = dot(u, v), den = uu * vv - uv * uv;
    real s = den > 0 ? clamp((uv * dot(v, r) - dot(u, r) * vv) / den, 0, 1) : 0;
    real t = vv > 0 ? clamp((uv * s + dot(v, r)) / vv, 0, 1) : 0;

    s = uu > 0 ? clamp((uv * t - dot(u, r)) / uu, 0, 1) : 0;
    closer(a, add(p, times(u, s)), add(c, times(v, t)));
}

static void segment_triangle(struct apart *a, struct v p, struct v q, const struct v c[3])
{
    struct v n = cross(sub(c[1], c[0]), sub(c[2], c[0]));
    real hp = dot(sub(p, c[0]), n), hq = dot(sub(q, c[0]), n);

    if ((hp < 0) != (hq < 0)) {
        struct v x = add(p, times(sub(q, p), hp / (hp - hq)));
        bool is_in = true;

        for (int i = 0; i < 3; i++)
            is_in &= dot(cross(sub(c[(i + 1) % 3], c[i]), sub(x, c[i])), n) >= 0;
        if (is_in) {
            *a = (struct apart){0, x, x};
            return;
        }
    }
    closer(a, p, on_triangle(p, c));
    closer(a, q, on_triangle(q, c));
    for (int i = 0; i < 3; i++)
        segments(a, p, q, c[i], c[(i + 1) % 3]);
}

struct body {
    enum shape_kind kind;
    struct v axis[3];
    real half[3], radius;
};

static struct body body_of(const struct shape *shape, struct vec3 up)
{
    struct v z = of(up), x = fabs(up.x) < 0.9 ? (struct v){1, 0, 0} : (struct v){0, 1, 0};
    real yaw = (real)shape->yaw_deg * (real)M_PI / 180;
    struct body b = {.kind = shape->kind, .radius = (real)shape->radius_m};

    x = sub(x, times(z, dot(x, z)));
    x = times(x, 1 / sqrtl(dot(x, x)));
    struct v y = cross(z, x);

    b.axis[0] = add(times(x, cosl(yaw)), times(y, sinl(yaw)));
    b.axis[1] = sub(times(y, cosl(yaw)), times(x, sinl(yaw)));
    b.axis[2] = z;
    if (shape->kind == SHAPE_CAPSULE)
        b.half[2] = (real)shape->height_m / 2 - b.radius;
    if (shape->kind == SHAPE_BOX) {
        b.radius = 0;
        for (int i = 0; i < 3; i++)
            b.half[i] = (real)shape->half_m[i];
    }
    return b;
}

static struct v corner_of(const struct body *b, struct v m, int i)
{
    for (int k = 0; k < 3; k++)
        m = add(m, times(b->axis[k], i >> k & 1 ? b->half[k] : -b->half[k]));
    return m;
}

/* Does a segment pass the box? */
static bool passes_box(const struct body *b, struct v m, struct v p, struct v q)
{
    real t0 = 0, t1 = 1;

    for (int k = 0; k < 3; k++) {
        real a = dot(sub(p, m), b->axis[k]), d = dot(sub(q, p), b->axis[k]);

        if (d == 0) {
            if (fabsl(a) > b->half[k])
                return false;
            continue;
        }
        real u = (-b->half[k] - a) / d, w = (b->half[k] - a) / d;

        t0 = fmaxl(t0, fminl(u, w));
        t1 = fminl(t1, fmaxl(u, w));
    }
    return t0 <= t1;
}

static void box_triangle(struct apart *a, const struct body *b, struct v m, const struct v c[3])
{
    for (int i = 0; i < 3; i++) {
        struct v on = m;

        if (passes_box(b, m, c[i], c[(i + 1) % 3])) {
            *a = (struct apart){0, c[i], c[i]};
            return;
        }
        for (int k = 0; k < 3; k++)
            on = add(on, times(b->axis[k],
                               clamp(dot(sub(c[i], m), b->axis[k]), -b->half[k], b->half[k])));
        closer(a, on, c[i]);
    }
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            if (!(i >> k & 1))
                segment_triangle(a, corner_of(b, m, i), corner_of(b, m, i | 1 << k), c);
}

static struct apart apart_at(const struct body *b, struct v m, const struct v c[3])
{
    struct apart a = {.square = (real)INFINITY};

    switch (b->kind) {
    case SHAPE_SPHERE:
        closer(&a, m, on_triangle(m, c));
        break;
    case SHAPE_CAPSULE:
        segment_triangle(&a, sub(m, times(b->axis[2], b->half[2])),
                         add(m, times(b->axis[2], b->half[2])), c);
        break;
    case SHAPE_BOX:
        box_triangle(&a, b, m, c);
        break;
    }
    return a;
}

struct oracle_touch oracle_sweep(const struct oracle_way *way, const struct vec3 corner[3])
{
    struct body b = body_of(way->shape, way->up);
    struct v from = of(way->from), along = sub(of(way->to), from);
    const struct v c[3] = {of(corner[0]), of(corner[1]), of(corner[2])};
    struct oracle_touch touch = {INFINITY, 0, 0, INFINITY};
    real t = 0;

    for (int i = 0; i < 300; i++) {
        struct apart a = apart_at(&b, add(from, times(along, t)), c);
        real distance = sqrtl(a.square), gap = distance - b.radius;

        if (i == 0) {
            touch.start = (double)gap;
            if (gap <= 0) {
                touch.fraction = 0;
                return touch;
            }
        }
        touch.least = fmin(touch.least, (double)gap);
        real slope = -dot(along, times(sub(a.to, a.from), 1 / distance));

        if (gap < 1e-14L || slope <= 0 || t > 1) {
            if (gap < 1e-14L && t <= 1) {
                touch.fraction = (double)t;
                touch.slope = (double)slope;
            }
            return touch;
        }
        touch.slope = (double)slope;
        t += gap / slope;
        if (gap < 1e-8L * b.radius && gap / slope < 1e-15L) {
            touch.fraction = t <= 1 ? (double)t : INFINITY;
            return touch;
        }
    }
    touch.fraction = (double)t;
    return touch;
}

double oracle_clearance(const struct shape *shape, struct vec3 up, struct vec3 at,
                        const struct vec3 corner[3])
{
    struct body b = body_of(shape, up);
    const struct v c[3] = {of(corner[0]), of(corner[1]), of(corner[2])};
    struct apart a = apart_at(&b, of(at), c);
    real gap = sqrtl(a.square) - b.radius;

    return gap > 0 ? (double)gap : 0;
}
