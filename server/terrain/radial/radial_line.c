/*
 * Lines through a mesh under radial gravity: contact is the line of gravity through a point, a ray
 * is any line.
 *
 * The line of gravity through p begins at the centre, or at the foot of p on the axis, and runs out
 * through p: o + r d, d a unit vector, r the distance from centre or axis. It ends there, so what
 * is on the other side of a planet or a drum is neither floor nor ceiling. With gravity inward the
 * floor is the greatest r not above the lifted point's, with gravity outward the least not below.
 * Every question uses the same o and d, so a surface has the same r in each of them, to the bit.
 *
 * A polygon is met when the line passes all its edges on one side. Corners are moved so that the
 * line is an axis, and then each edge is a sign of a 2×2 determinant, which is exactly opposite
 * for the two polygons at the edge: no line slips between them (S. Woop and others, "Watertight
 * ray/triangle intersection", 2013). Edges count as inside by a few roundings, as in all meshes, so
 * T-junctions and outer borders hold, too. The place comes from the polygon's plane and is held
 * between its nearest and farthest corner.
 *
 * The tree is walked in order, nearest first or farthest first, and nodes after the best so
 * far is not opened. Boxes are grown by more than the rounding of a line's place in them.
 */
#include "terrain/radial/radial.h"

#include "terrain/mesh/convex_parts.h"
#include "terrain/power.h"
#include "terrain/bvh/ray_tree_trace.h"
#include "terrain/bvh/woop.h"

#include <float.h>

#define SIDEWAYS 1e-14 /* cosine between line and normal: seen from its side */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct line {
    const struct radial *mesh;
    struct woop_ray s;
    double d[3], inv[3];
    double low, high; /* of t: the range that may still be the best */
    bool is_farthest; /* the greatest t is the best, else the least */
    bool is_any, is_light, without_walls;
    bool is_hit;
    uint32_t polygon;
    struct vec3 normal;           /* of the hit, not unit */
    struct ray_tree_trace *trace; /* NULL: none */
};

static void line_set(struct line *l)
{
    woop_ray_along(&l->s, l->d);
    for (int i = 0; i < 3; i++) /* finite, so that 0 times it is no NaN */
        l->inv[i] = fabs(l->d[i]) > 1e-300 ? 1 / l->d[i] : 1e300;
}

/* Field by field: a struct that is cleared first takes longer than the arithmetic. */
static inline void line_begin(struct line *l, const struct radial *mesh, struct vec3 o,
                              struct vec3 d)
{
    l->mesh = mesh;
    l->s.o[0] = o.x, l->s.o[1] = o.y, l->s.o[2] = o.z;
    l->d[0] = d.x, l->d[1] = d.y, l->d[2] = d.z;
    l->is_farthest = l->is_hit = false;
    l->trace = NULL;
    l->polygon = 0;
    l->s.pad = 2 * mesh->header->slack;
    line_set(l);
}

/* ---- one polygon ---------------------------------------------------------------------------- */

bool radial_line_is_inside(const struct face *face, struct vec3 from, struct vec3 d, double least)
{
    struct line l = {.s = {.o = {from.x, from.y, from.z}, .pad = -least}, .d = {d.x, d.y, d.z}};
    double t0, t1;

    line_set(&l);
    return woop_is_through(&l.s, face, &t0, &t1);
}

/* Is t better than the best so far; of two that are equal, the polygon that is first in the file?
 */
static bool is_better(const struct line *l, double t, uint32_t index)
{
    double best = l->is_farthest ? l->low : l->high;

    if (!l->is_hit || t != best)
        return t >= l->low && t <= l->high;
    return l->mesh->polygons[index].source < l->mesh->polygons[l->polygon].source;
}

/* Is it met, and the best so far? */
static inline bool face_test(struct line *l, uint32_t index)
{
    const struct radial *m = l->mesh;
    struct face face = radial_face(m, index);
    double t0, t1;

    if (!woop_is_through(&l->s, &face, &t0, &t1) || t0 > l->high || t1 < l->low ||
        (l->without_walls && m->polygons[index].is_wall))
        return false;
    struct vec3 n = convex_part_normal(&face), v = face_at(&face, 0);
    double across = n.x * l->d[0] + n.y * l->d[1] + n.z * l->d[2];
    double t =
        (n.x * (v.x - l->s.o[0]) + n.y * (v.y - l->s.o[1]) + n.z * (v.z - l->s.o[2])) / across;

    if (__builtin_expect(woop_is_within(&l->s, WOOP_NARROW, across, n, t0, t1), 0)) {
        bool is_sideways = !is_across(across, SIDEWAYS, n) ||
                           woop_is_within(&l->s, WOOP_SIDEWAYS, across, n, t0, t1);

        if ((is_sideways && (l->is_light || l->without_walls)) ||
            !woop_edge_on(&l->s, &face, &t0, &t1))
            return false;
        if (is_sideways)
            t = l->low > t0 ? l->low : t0;
    }
    t = t < t0 ? t0 : t > t1 ? t1 : t;
    if (!is_better(l, t, index))
        return false;
    *(l->is_farthest ? &l->low : &l->high) = t;
    l->is_hit = true;
    l->polygon = index;
    l->normal = n;
    return true;
}

/* ---- the tree ------------------------------------------------------------------------------- */

static bool tree_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct line *l = asker;
    uint32_t index = block->polygon[lane] & ~RAY_TREE_PART;

    if (!face_test(l, index))
        return false;
    __builtin_prefetch(&l->mesh->polygons[l->polygon]); /* for the hit */
    *end = l->is_farthest ? l->low : l->high;
    return true;
}

static void tree_walk(struct line *l)
{
    struct ray_tree_line line = {
        .o = {l->s.o[0], l->s.o[1], l->s.o[2]},
        .d = {l->d[0], l->d[1], l->d[2]},
        .low = l->low,
        .high = l->high,
        .is_backward = l->is_farthest,
        .is_any = l->is_any,
        .test = tree_test,
        .asker = l,
    };

    if (l->trace)
        ray_tree_ask_traced(&l->mesh->tree, &line, NULL, l->trace);
    else
        ray_tree_ask(&l->mesh->tree, &line);
}

/* ---- contact -------------------------------------------------------------------------------- */

/* The line of gravity through a point; false where gravity has no direction. r: the point's. */
static bool gravity_line(const struct radial *mesh, struct vec3 point, struct line *l, double *r)
{
    bool is_sphere = mesh->header->frame == MESH_SPHERICAL;
    struct vec3 out = is_sphere ? point : (struct vec3){point.x, point.y, 0};
    struct vec3 d = vec3_unit(out);

    *r = vec3_length(out);
    if (!(*r > 0))
        return false;
    line_begin(l, mesh, (struct vec3){0, 0, is_sphere ? 0 : point.z}, d);
    l->is_any = false;
    l->is_light = false;
    l->without_walls = true;
    return true;
}

/* The best surface with r in low..high, seen from `r` of the point. */
static bool gravity_walk(struct line *l, double r, double low, double high, bool is_farthest,
                         struct mesh_contact *out)
{
    bool is_outward = l->mesh->header->is_outward;
    double at;

    l->low = fmax(low, 0);
    l->high = high;
    l->is_farthest = is_farthest;
    tree_walk(l);
    if (!l->is_hit)
        return false;
    at = is_farthest ? l->low : l->high;
    out->point =
        (struct vec3){l->s.o[0] + l->d[0] * at, l->s.o[1] + l->d[1] * at, l->s.o[2] + l->d[2] * at};
    struct vec3 n = vec3_unit(l->normal);
    double along = n.x * l->d[0] + n.y * l->d[1] + n.z * l->d[2];

    out->normal = (along < 0) != is_outward ? vec3_opposite(n) : n;
    out->distance_m = is_outward ? at - r : r - at;
    out->polygon = l->mesh->polygons[l->polygon].source;
    return true;
}

bool radial_floor(const struct radial *mesh, struct vec3 point, double reach_up_m,
                  struct mesh_contact *out)
{
    double near = 4 * mesh->header->slack, r;
    struct line l;

    if (!gravity_line(mesh, point, &l, &r))
        return false;
    return mesh->header->is_outward
               ? gravity_walk(&l, r, r - reach_up_m - near, INFINITY, false, out)
               : gravity_walk(&l, r, 0, r + reach_up_m + near, true, out);
}

bool radial_ceiling(const struct radial *mesh, struct vec3 point, double above_m, double lift_m,
                    struct mesh_contact *out)
{
    double near = 4 * mesh->header->slack, r;
    struct line l;

    if (!gravity_line(mesh, point, &l, &r))
        return false;
    if (mesh->header->is_outward)
        return gravity_walk(
            &l, r, 0, fmin(nextafter(r - above_m - near, -INFINITY), r - lift_m + near), true, out);
    return gravity_walk(&l, r, fmax(nextafter(r + above_m + near, INFINITY), r + lift_m - near),
                        INFINITY, false, out);
}

/* ---- rays ----------------------------------------------------------------------------------- */

struct span {
    double t0, t1;
};

/* Where the line is in the box of all; t0 > t1 when nowhere. */
static struct span span_of(const struct line *l)
{
    const struct ray_tree *tree = &l->mesh->tree;
    struct span s = {-INFINITY, INFINITY};

    for (int i = 0; i < 3; i++) {
        const double side[2] = {tree->low[i], tree->high[i]}; /* no branch by the direction */
        int near = l->inv[i] < 0;
        double enter = (side[near] - l->s.o[i]) * l->inv[i];
        double leave = (side[near ^ 1] - l->s.o[i]) * l->inv[i];

        s.t0 = enter > s.t0 ? enter : s.t0;
        s.t1 = leave < s.t1 ? leave : s.t1;
    }
    return s;
}

/* Against gravity at a place, not unit. */
static struct vec3 up_at(const struct radial_header *h, struct vec3 p)
{
    struct vec3 out = h->frame == MESH_SPHERICAL ? p : (struct vec3){p.x, p.y, 0};

    return h->is_outward ? vec3_opposite(out) : out;
}

static struct vec3 ray_normal(const struct line *l, struct vec3 point)
{
    struct vec3 d = {l->d[0], l->d[1], l->d[2]}, n = l->normal;
    bool is_away = l->mesh->polygons[l->polygon].is_wall
                       ? vec3_dot(n, d) > 0
                       : vec3_dot(n, up_at(l->mesh->header, point)) < 0;

    return vec3_unit(is_away ? vec3_opposite(n) : n);
}

static bool ray_ask(const struct radial *mesh, const struct ray *ray, enum ray_mode mode,
                    struct mesh_hit *hit, struct ray_tree_trace *trace)
{
    /* t is scaled by a power of two so that the longest component is near 1: exact both ways */
    int exponent = exponent_of(ray->direction);
    struct vec3 d = vec3_scaled(ray->direction, -exponent);
    struct line l;
    double t_max = scaled(ray->t_max, exponent), t;

    line_begin(&l, mesh, ray->origin, d);
    l.is_any = ray_takes_any(mode);
    l.is_light = ray_is_light(mode);
    l.without_walls = false;
    l.trace = trace;
    struct span inside = span_of(&l);

    inside.t0 = inside.t0 > 0 ? inside.t0 : 0;
    inside.t1 = inside.t1 < t_max ? inside.t1 : t_max;
    if (!(inside.t0 <= inside.t1))
        return false;
    for (int i = 0; i < 3; i++) /* from far away: to where it enters the mesh's box */
        l.s.o[i] += l.d[i] * inside.t0;
    /* within rounding the ray may begin and end on the surface */
    l.low = -l.s.pad;
    l.high = inside.t1 - inside.t0 + l.s.pad;
    tree_walk(&l);
    if (!l.is_hit)
        return false;
    t = inside.t0 + l.high > 0 ? inside.t0 + l.high : 0;
    t = scaled(t < t_max ? t : t_max, -exponent);
    t = t < ray->t_max ? t : ray->t_max;
    if (!isfinite(t))
        return false;
    hit->t = t;
    hit->point = vec3_add(ray->origin, vec3_scale(ray->direction, t));
    hit->normal = ray_normal(&l, hit->point);
    hit->polygon = mesh->polygons[l.polygon].source;
    return true;
}

bool radial_ray(const struct radial *mesh, const struct ray *ray, enum ray_mode mode,
                struct mesh_hit *hit)
{
    return ray_ask(mesh, ray, mode, hit, NULL);
}

void radial_ray_trace(const struct radial *mesh, const struct ray *ray,
                      struct ray_tree_trace *trace)
{
    struct mesh_hit hit;

    (void)ray_ask(mesh, ray, RAY_CLOSEST, &hit, trace);
}
