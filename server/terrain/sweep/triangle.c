/*
 * A shape moved along a segment against one triangle.
 *
 * Problem: the first fraction of the way at which the distance from the triangle is no more than
 * the radius, to the last bits also where the way grazes it.
 *
 * Approach: all is relative to where the shape begins. A rounded shape of core C and radius r
 * touches where its middle enters (triangle + C) grown by r, which is convex: its boundary consists
 * of moved faces, of cylinders about edges and spheres about corners. The least fraction at which
 * one of them is entered is the first touch; entries at an inner feature come later or at the same
 * place. With a segment for a core the faces are the triangle at both ends of it, and for each edge
 * a parallelogram; the edges are the triangle's at both ends, and the segment at each corner.
 * Roots are taken from the place of the nearest approach, so that a grazing way loses no digits.
 *
 * A box touches where it overlaps the triangle along every axis that may separate the two: the
 * triangle's normal, the box's axes, the products of both one's edges (Gottschalk, Lin, Manocha,
 * OBBTree, 1996). Along an axis the overlap is an interval of the way; they have a common one
 * where the shape touches.
 *
 * An edge is computed from its lesser corner to its greater one, so that two triangles at an edge
 * give the same bits. A face counts as hit by a few roundings beyond its edges: no small sphere
 * slips between two triangles.
 *
 * Is it touched at the start, and does the way not lead into it (is_approaching)? The distance from
 * a convex set is convex along a line. If it does not shrink at the start, it never does.
 */
#include "terrain/sweep/triangle.h"

#include <float.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define SLACK (8 * DBL_EPSILON) /* of sums and products of coordinates, relative to them */
#define PARALLEL 1e-28          /* square of a sine below which edge and way are parallel */
#define LEAVES 1e-12            /* cosine: a way that leads into a surface by less goes along it */

/* ---- the shape ------------------------------------------------------------------------------ */

static void reach_set(struct sweep *s)
{
    const struct vec3 *a = s->axis;
    const double *h = s->half;
    double size = fmax(fmax(fabs(s->from.x), fabs(s->from.y)), fabs(s->from.z));
    double most = fmax(fmax(fabs(s->along.x), fabs(s->along.y)), fabs(s->along.z));
    double more = s->radius + SLACK * (size + most + s->radius + h[0] + h[1] + h[2]);

    s->reach.x = fabs(a[0].x) * h[0] + fabs(a[1].x) * h[1] + fabs(a[2].x) * h[2] + more;
    s->reach.y = fabs(a[0].y) * h[0] + fabs(a[1].y) * h[1] + fabs(a[2].y) * h[2] + more;
    s->reach.z = fabs(a[0].z) * h[0] + fabs(a[1].z) * h[1] + fabs(a[2].z) * h[2] + more;
}

void sweep_place(struct sweep *s, struct vec3 from, struct vec3 along)
{
    s->from = from;
    s->along = along;
    reach_set(s);
}

void sweep_again(struct sweep *s, struct vec3 from, struct vec3 along)
{
    s->best = (struct sweep_touch){.fraction = INFINITY, .triangle = -1};
    s->start_m = INFINITY;
    sweep_place(s, from, along);
}

void sweep_begin(struct sweep *s, const struct shape *shape, struct vec3 up, struct vec3 from,
                 struct vec3 to)
{
    struct motion turn = motion_at(&(struct pose){.yaw_deg = shape->yaw_deg}, up);

    *s = (struct sweep){.axis[2] = up, .radius = shape->radius_m};
    vec3_across(up, &s->axis[0], &s->axis[1]);
    switch (shape->kind) {
    case SHAPE_SPHERE:
        s->core = CORE_POINT;
        break;
    case SHAPE_CAPSULE:
        s->half[2] = fmax(shape->height_m / 2 - shape->radius_m, 0);
        s->core = s->half[2] > 0 ? CORE_SEGMENT : CORE_POINT;
        break;
    case SHAPE_BOX:
        s->core = CORE_BOX;
        s->radius = 0;
        for (int i = 0; i < 3; i++)
            s->half[i] = shape->half_m[i];
        s->axis[0] = motion_turn_out(&turn, s->axis[0]);
        s->axis[1] = motion_turn_out(&turn, s->axis[1]);
        break;
    }
    sweep_again(s, from, vec3_sub(to, from));
}

void sweep_slabs_set(struct sweep_slabs *slabs, const struct sweep *s)
{
    const double d[3] = {s->along.x, s->along.y, s->along.z};

    for (int i = 0; i < 3; i++) /* finite, so that 0 times it is no NaN */
        slabs->inverse[i] = fabs(d[i]) > 1e-200 ? 1 / d[i] : 1e200;
}

/* ---- nearest points ------------------------------------------------------------------------- */

/* A triangle ready for its tests. */
struct face {
    const struct vec3 *corner; /* [3] */
    struct vec3 normal;        /* unit; zero of one without area */
};

static struct vec3 along_from(struct vec3 from, struct vec3 d, double t)
{
    return (struct vec3){from.x + d.x * t, from.y + d.y * t, from.z + d.z * t};
}

/* Of what is no longer than 1e100 and not shorter than 1e-100; other lengths by vec3_length. */
ALWAYS_INLINE double length_of(struct vec3 a)
{
    double square = vec3_dot(a, a);

    return square > 1e-200 && square < 1e200 ? sqrt(square) : vec3_length(a);
}

ALWAYS_INLINE struct vec3 unit_of(struct vec3 a)
{
    double square = vec3_dot(a, a);

    return square > 1e-200 && square < 1e200 ? vec3_scale(a, 1 / sqrt(square)) : vec3_unit(a);
}

/* fmin calls libm; a NaN does not matter here. */
ALWAYS_INLINE double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double extent_of(struct vec3 a)
{
    return fabs(a.x) + fabs(a.y) + fabs(a.z);
}

/* Is a point of the plane within the edges of corners[count], by a few roundings? */
static bool is_within(const struct vec3 *corners, int count, struct vec3 normal, struct vec3 p)
{
    for (int i = 0; i < count; i++) {
        struct vec3 a = corners[i], edge = vec3_sub(corners[i + 1 < count ? i + 1 : 0], a);
        struct vec3 to = vec3_sub(p, a);

        if (vec3_dot(vec3_cross(edge, to), normal) <
            -SLACK * extent_of(edge) * (extent_of(a) + extent_of(p)))
            return false;
    }
    return true;
}

static struct vec3 nearest_of_segment(struct vec3 a, struct vec3 b, struct vec3 p)
{
    struct vec3 d = vec3_sub(b, a);
    double square = vec3_dot(d, d), t = square > 0 ? vec3_dot(vec3_sub(p, a), d) / square : 0;

    return t <= 0 ? a : t >= 1 ? b : along_from(a, d, t);
}

/* The place of the plane that is nearest to a point; false: it is beyond the edges. */
static bool face_place(const struct face *f, struct vec3 p, struct vec3 *on)
{
    *on = along_from(p, f->normal, vec3_dot(vec3_sub(f->corner[0], p), f->normal));
    return vec3_dot(f->normal, f->normal) > 0 && is_within(f->corner, 3, f->normal, *on);
}

/* Two points that are nearest to each other, and how far apart they are. */
struct nearest {
    double square, distance;
    struct vec3 on_core, on_triangle;
};

static void nearest_take(struct nearest *n, struct vec3 on_core, struct vec3 on_triangle)
{
    struct vec3 apart = vec3_sub(on_core, on_triangle);
    double square = vec3_dot(apart, apart);

    if (square < n->square)
        *n = (struct nearest){square, 0, on_core, on_triangle};
}

/* Of segment a b and an edge c d (Ericson, Real-Time Collision Detection, 2005, section 5.1.9). */
static void nearest_of_edge(struct nearest *n, struct vec3 a, struct vec3 b, struct vec3 c,
                            struct vec3 d)
{
    struct vec3 u = vec3_sub(b, a), v = vec3_sub(d, c), r = vec3_sub(a, c);
    double uu = vec3_dot(u, u), vv = vec3_dot(v, v), uv = vec3_dot(u, v);
    double ur = vec3_dot(u, r), vr = vec3_dot(v, r), across = uu * vv - uv * uv;
    double s = across > PARALLEL * uu * vv ? (uv * vr - ur * vv) / across : 0;

    s = s < 0 ? 0 : lesser(s, 1);
    struct vec3 on_core = along_from(a, u, s), on_edge = nearest_of_segment(c, d, on_core);

    nearest_take(n, nearest_of_segment(a, b, on_edge), on_edge);
}

static void nearest_of_point(const struct face *f, struct vec3 m, struct nearest *n)
{
    const struct vec3 *c = f->corner;
    struct vec3 on;

    if (face_place(f, m, &on)) {
        nearest_take(n, m, on);
        return;
    }
    for (int i = 0; i < 3; i++)
        nearest_take(n, m, nearest_of_segment(c[i], c[i < 2 ? i + 1 : 0], m));
}

/* Of a segment: at an end over the face, or at an edge, whose ends are its own, too. */
static void nearest_of_ends(const struct face *f, struct vec3 a, struct vec3 b, struct nearest *n)
{
    const struct vec3 *c = f->corner;
    double ha = vec3_dot(vec3_sub(a, c[0]), f->normal), hb = vec3_dot(vec3_sub(b, c[0]), f->normal);
    struct vec3 on;

    if (ha * hb < 0) {
        struct vec3 p = along_from(a, vec3_sub(b, a), ha / (ha - hb));

        if (is_within(c, 3, f->normal, p)) {
            nearest_take(n, p, p);
            return;
        }
    }
    if (fabs(hb) < fabs(ha)) {
        struct vec3 other = a;

        a = b;
        b = other;
    }
    if (face_place(f, a, &on)) {
        nearest_take(n, a, on);
        if (ha * hb > 0) /* nothing of the segment is nearer to the plane */
            return;
    }
    if (face_place(f, b, &on))
        nearest_take(n, b, on);
    for (int i = 0; i < 3; i++)
        nearest_of_edge(n, a, b, c[i], c[i < 2 ? i + 1 : 0]);
}

/* Of a rounded shape's core, whose middle is at m, and a triangle; distance 0: they cross. */
static struct nearest core_nearest(const struct sweep *s, const struct face *f, struct vec3 m)
{
    struct vec3 half = vec3_scale(s->axis[2], s->half[2]);
    struct nearest n = {.square = INFINITY};

    if (s->core == CORE_POINT)
        nearest_of_point(f, m, &n);
    else
        nearest_of_ends(f, vec3_sub(m, half), vec3_add(m, half), &n);
    n.distance = length_of(vec3_sub(n.on_core, n.on_triangle));
    return n;
}

/* ---- the best touch ------------------------------------------------------------------------- */

/* A touch that may be the best. */
struct candidate {
    double fraction, distance;
    struct vec3 point, normal;
    bool is_start; /* it touches where it begins */
};

/* Has the other place of two at one fraction the greater claim? */
static bool is_before(const struct sweep *s, const struct candidate *c, struct vec3 face,
                      uint64_t order, uint64_t best_order)
{
    const struct sweep_touch *best = &s->best;
    double distance = c->is_start ? c->distance : INFINITY;
    double frontal = fabs(vec3_dot(face, s->along)), most = fabs(vec3_dot(best->face, s->along));

    if (c->fraction != best->fraction)
        return c->fraction < best->fraction;
    if (distance != best->distance_m)
        return distance < best->distance_m;
    return frontal != most ? frontal > most : order < best_order;
}

static bool take(struct sweep *s, const struct face *f, const struct candidate *c, uint64_t order,
                 uint64_t *best_order)
{
    if (!is_before(s, c, f->normal, order, *best_order))
        return false;
    bool is_below = vec3_dot(f->normal, c->normal) < 0;

    s->best.fraction = c->fraction;
    s->best.starts_inside = c->is_start && c->distance < s->radius;
    s->best.distance_m = c->is_start ? c->distance : INFINITY;
    s->best.point = vec3_add(s->from, c->point);
    s->best.normal = c->normal;
    s->best.face = is_below ? vec3_opposite(f->normal) : f->normal;
    *best_order = order;
    return true;
}

/* Is it ignored: touched at the start, and the way leads along the surface or away from it? */
static bool is_left(struct sweep *s, const struct candidate *c)
{
    if (!c->is_start)
        return false;
    s->start_m = lesser(s->start_m, c->distance);
    return s->is_approaching && vec3_dot(s->along, c->normal) >= -LEAVES * extent_of(s->along);
}

/* The face's normal on the side of the middle m; on the face, against the way. */
static struct vec3 face_normal_at(const struct sweep *s, const struct face *f, struct vec3 m)
{
    double h = vec3_dot(vec3_sub(m, f->corner[0]), f->normal);

    if (h == 0)
        h = -vec3_dot(s->along, f->normal);
    return h < 0 ? vec3_opposite(f->normal) : f->normal;
}

/* ---- rounded shapes ------------------------------------------------------------------------- */

/* The fraction at which a point passes into a distance; INFINITY: never, or not before `most`. */
static double valid_fraction(double t, double before, double most)
{
    if (t < 0 && t >= -before) /* by rounding */
        t = 0;
    return t >= 0 && t <= most ? t : INFINITY;
}

/* A point's way, and the radius of the sphere about it. */
struct way {
    struct vec3 from, along;
    double radius, most;
    double rounding; /* as a fraction of the way */
};

/* Into the plane of corners[count], moved by the radius, within its edges. */
static double face_fraction(const struct way *w, const struct vec3 *corners, int count,
                            struct vec3 normal)
{
    double h = vec3_dot(vec3_sub(w->from, corners[0]), normal), v = vec3_dot(w->along, normal);
    double side = h < 0 ? -1 : 1, t;

    if (!(v * side < 0))
        return INFINITY;
    t = valid_fraction((h * side - w->radius) / -(v * side), w->rounding, w->most);
    if (t == INFINITY)
        return t;
    struct vec3 p = along_from(w->from, w->along, t);

    return is_within(corners, count, normal, along_from(p, normal, -side * w->radius)) ? t
                                                                                       : INFINITY;
}

/* Of p + d t, whose least length is to become the radius: the earlier root. */
static double root_of(const struct way *w, struct vec3 p, struct vec3 d)
{
    double square = vec3_dot(d, d), nearest = -vec3_dot(p, d) / square;
    double least = length_of(along_from(p, d, nearest));
    double below = (w->radius - least) * (w->radius + least);

    if (!(below >= 0 && nearest >= 0))
        return INFINITY;
    return nearest - sqrt(below / square);
}

static double corner_fraction(const struct way *w, struct vec3 corner)
{
    return valid_fraction(root_of(w, vec3_sub(w->from, corner), w->along), w->rounding, w->most);
}

/* Into the cylinder about an edge, or into the sphere about that end of it which is first. */
static double edge_fraction(const struct way *w, struct vec3 a, struct vec3 b)
{
    bool is_turned = b.x < a.x || (b.x == a.x && (b.y < a.y || (b.y == a.y && b.z < a.z)));
    struct vec3 low = is_turned ? b : a, high = is_turned ? a : b, edge = vec3_sub(high, low);
    double length = length_of(edge);

    if (!(length > 0))
        return corner_fraction(w, low);
    edge = vec3_scale(edge, 1 / length);
    struct vec3 p = vec3_sub(w->from, low);
    double place = vec3_dot(p, edge), speed = vec3_dot(w->along, edge);
    struct vec3 aside = along_from(p, edge, -place), d = along_from(w->along, edge, -speed);
    bool is_parallel = vec3_dot(d, d) <= PARALLEL * vec3_dot(w->along, w->along);
    bool is_out = vec3_dot(aside, aside) > w->radius * w->radius;
    double t = 0;

    if (is_out) {
        t = is_parallel ? INFINITY : valid_fraction(root_of(w, aside, d), w->rounding, w->most);
        if (t == INFINITY)
            return t;
        place += speed * t;
    }
    if (place < 0)
        return corner_fraction(w, low);
    if (place > length)
        return corner_fraction(w, high);
    return is_out || vec3_dot(aside, d) < 0 ? t : INFINITY;
}

/* One end of the core, or the point that it is. */
static double end_fraction(struct way *w, const struct face *f)
{
    const struct vec3 *c = f->corner;
    double h = vec3_dot(vec3_sub(w->from, c[0]), f->normal), v = vec3_dot(w->along, f->normal);
    double after = h + v * w->most, t;

    if ((h > w->radius && after > w->radius * (1 + SLACK)) ||
        (h < -w->radius && after < -w->radius * (1 + SLACK)))
        return INFINITY;
    t = face_fraction(w, c, 3, f->normal);
    if (t < INFINITY)
        return t;
    t = INFINITY;
    for (int i = 0; i < 3; i++) {
        t = lesser(t, edge_fraction(w, c[i], c[i < 2 ? i + 1 : 0]));
        w->most = lesser(w->most, t);
    }
    return t;
}

/* The side of the core, a segment, along edges and corners. */
static double side_fraction(const struct sweep *s, struct way *w, const struct face *f)
{
    struct vec3 half = vec3_scale(s->axis[2], s->half[2]);
    double t = INFINITY;

    for (int i = 0; i < 3; i++) {
        struct vec3 a = f->corner[i], b = f->corner[i < 2 ? i + 1 : 0];
        const struct vec3 side[4] = {vec3_sub(a, half), vec3_sub(b, half), vec3_add(b, half),
                                     vec3_add(a, half)};
        struct vec3 normal = vec3_cross(vec3_sub(b, a), half);

        if (vec3_dot(normal, normal) > 0)
            t = lesser(t, face_fraction(w, side, 4, unit_of(normal)));
        t = lesser(t, edge_fraction(w, side[0], side[3]));
        w->most = lesser(w->most, t);
    }
    return t;
}

static double rounded_fraction(const struct sweep *s, const struct face *f)
{
    double length = length_of(s->along);
    struct way w = {{0, 0, 0},
                    s->along,
                    s->radius,
                    lesser(s->best.fraction, 1),
                    SLACK * (extent_of(f->corner[0]) + s->radius) / length};
    double t;

    if (!(length > 0))
        return INFINITY;
    if (s->core == CORE_POINT)
        return end_fraction(&w, f);
    w.from = vec3_scale(s->axis[2], -s->half[2]);
    t = end_fraction(&w, f);
    w.most = lesser(w.most, t);
    w.from = vec3_scale(s->axis[2], s->half[2]);
    t = lesser(t, end_fraction(&w, f));
    w.most = lesser(w.most, t);
    w.from = (struct vec3){0, 0, 0};
    return lesser(t, side_fraction(s, &w, f));
}

/* The first touch from a place that is outside; false: there is none, or not before the best. */
static bool rounded_touch(const struct sweep *s, const struct face *f, double most,
                          struct nearest *n, struct candidate *c)
{
    double slack = SLACK * (extent_of(n->on_triangle) + s->radius), left = n->distance - s->radius;
    struct vec3 apart = vec3_sub(n->on_core, n->on_triangle);

    /* the distance is convex: it falls no faster than it does at the start */
    if (left - slack > -vec3_dot(s->along, apart) / n->distance * most)
        return false;
    c->fraction = rounded_fraction(s, f);
    if (!(c->fraction <= most))
        return false;
    *n = core_nearest(s, f, vec3_scale(s->along, c->fraction));
    return true;
}

static bool rounded_test(struct sweep *s, const struct face *f, uint64_t order,
                         uint64_t *best_order)
{
    double h = -vec3_dot(f->corner[0], f->normal), v = vec3_dot(s->along, f->normal);
    double wide = s->radius + fabs(vec3_dot(s->axis[2], f->normal)) * s->half[2];
    double most = lesser(s->best.fraction, 1), later = h + v * most, slack = SLACK * fabs(h);
    struct candidate c = {.fraction = 0};
    struct nearest n;

    if ((h > wide + slack && later > wide + slack) || (h < -wide - slack && later < -wide - slack))
        return false;
    n = core_nearest(s, f, (struct vec3){0, 0, 0});
    c.is_start = n.distance <= s->radius;
    if (!c.is_start && !rounded_touch(s, f, most, &n, &c))
        return false;
    c.distance = n.distance;
    c.point = n.on_triangle;
    c.normal = n.distance > SLACK * extent_of(n.on_triangle)
                   ? unit_of(vec3_sub(n.on_core, n.on_triangle))
                   : face_normal_at(s, f, (struct vec3){0, 0, 0});
    if (is_left(s, &c))
        return false;
    return take(s, f, &c, order, best_order);
}

/* ---- boxes ---------------------------------------------------------------------------------- */

/* When box and triangle overlap along every axis so far. */
struct overlap {
    double enter, leave;    /* fractions */
    struct vec3 normal;     /* of the axis by which they came together last, towards the box */
    double gap;             /* at the start, the greatest: below 0 they overlap by that much */
    struct vec3 gap_normal; /* towards the box */
};

/* False: they never overlap along the axis. */
static bool axis_cut(const struct sweep *s, const struct vec3 c[3], struct vec3 axis,
                     struct overlap *o)
{
    double a = vec3_dot(c[0], axis), b = vec3_dot(c[1], axis), d = vec3_dot(c[2], axis);
    double least = lesser(lesser(a, b), d), most = -lesser(lesser(-a, -b), -d);
    double v = vec3_dot(s->along, axis), slack = SLACK * (fabs(least) + fabs(most));
    double half = fabs(vec3_dot(s->axis[0], axis)) * s->half[0] +
                  fabs(vec3_dot(s->axis[1], axis)) * s->half[1] +
                  fabs(vec3_dot(s->axis[2], axis)) * s->half[2];
    double low = least - half, high = most + half; /* the middle is between: they overlap */
    double gap = -lesser(-low, high);

    if (gap > o->gap) {
        o->gap = gap;
        o->gap_normal = low > -high ? vec3_opposite(axis) : axis;
    }
    if (fabs(v) <= DBL_EPSILON * DBL_EPSILON * extent_of(s->along))
        return gap <= slack;
    double t0 = (v > 0 ? low : high) / v, t1 = (v > 0 ? high + slack : low - slack) / v;

    if (t0 > o->enter) {
        o->enter = t0;
        o->normal = v > 0 ? vec3_opposite(axis) : axis;
    }
    o->leave = lesser(o->leave, t1);
    return o->enter <= o->leave;
}

/* Where box and triangle meet: the middle of the corners that are left of a triangle cut by it. */
static struct vec3 box_point(const struct sweep *s, const struct face *f, struct vec3 m)
{
    struct vec3 ring[9], next[9], sum = {0, 0, 0};
    int count = 3;

    for (int i = 0; i < 3; i++)
        ring[i] = vec3_sub(f->corner[i], m);
    for (int side = 0; side < 6; side++) {
        struct vec3 axis = vec3_scale(s->axis[side / 2], side % 2 ? 1 : -1);
        double half = s->half[side / 2] + 1e-9 * (1 + s->half[side / 2] + extent_of(m));
        int left = 0;

        for (int i = 0; i < count; i++) {
            struct vec3 a = ring[i], b = ring[i + 1 < count ? i + 1 : 0];
            double ha = vec3_dot(a, axis) - half, hb = vec3_dot(b, axis) - half;

            if (ha <= 0)
                next[left++] = a;
            if ((ha < 0 && hb > 0) || (ha > 0 && hb < 0))
                next[left++] = along_from(a, vec3_sub(b, a), ha / (ha - hb));
        }
        if (left == 0) /* by rounding */
            break;
        count = left;
        for (int i = 0; i < count; i++)
            ring[i] = next[i];
    }
    for (int i = 0; i < count; i++)
        sum = vec3_add(sum, ring[i]);
    return vec3_add(m, vec3_scale(sum, 1.0 / count));
}

static bool box_overlap(const struct sweep *s, const struct face *f, struct overlap *o)
{
    const struct vec3 *c = f->corner;

    *o = (struct overlap){.enter = 0, .leave = lesser(s->best.fraction, 1), .gap = -INFINITY};
    if (!axis_cut(s, c, f->normal, o))
        return false;
    for (int i = 0; i < 3; i++)
        if (!axis_cut(s, c, s->axis[i], o))
            return false;
    for (int k = 0; k < 3; k++) {
        struct vec3 edge = vec3_sub(c[k < 2 ? k + 1 : 0], c[k]);
        double square = vec3_dot(edge, edge);

        for (int i = 0; i < 3; i++) {
            struct vec3 axis = vec3_cross(edge, s->axis[i]);

            if (vec3_dot(axis, axis) > PARALLEL * square && !axis_cut(s, c, unit_of(axis), o))
                return false;
        }
    }
    return true;
}

static bool box_test(struct sweep *s, const struct face *f, uint64_t order, uint64_t *best_order)
{
    struct overlap o;
    struct candidate c;

    if (!box_overlap(s, f, &o))
        return false;
    c.is_start = o.gap <= 0;
    c.fraction = c.is_start ? 0 : o.enter;
    c.distance = o.gap;
    c.normal = c.is_start ? o.gap_normal : o.normal;
    if (is_left(s, &c))
        return false;
    if (!is_before(s, &c, f->normal, order, *best_order))
        return false;
    c.point = box_point(s, f, vec3_scale(s->along, c.fraction));
    return take(s, f, &c, order, best_order);
}

/* ---- both ----------------------------------------------------------------------------------- */

bool sweep_triangle(struct sweep *s, const struct vec3 corner[3], uint64_t order,
                    uint64_t *best_order)
{
    struct face f = {corner, unit_of(vec3_cross(vec3_sub(corner[1], corner[0]),
                                                vec3_sub(corner[2], corner[0])))};

    if (s->floor_cosine > 0 && fabs(vec3_dot(f.normal, s->axis[2])) < s->floor_cosine)
        return false;
    return s->core == CORE_BOX ? box_test(s, &f, order, best_order)
                               : rounded_test(s, &f, order, best_order);
}

void sweep_take_hit(struct sweep *s, double t, struct vec3 point, struct vec3 normal)
{
    if (vec3_dot(normal, s->along) > 0)
        normal = vec3_opposite(normal);
    s->best = (struct sweep_touch){.fraction = t,
                                   .distance_m = t > 0 ? INFINITY : 0,
                                   .point = point,
                                   .normal = normal,
                                   .face = normal};
}
