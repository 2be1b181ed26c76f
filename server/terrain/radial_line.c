/*
 * Lines through a mesh under radial gravity: contact is the line of gravity through a point, a ray
 * is any line.
 *
 * The line of gravity through p begins at the centre, or at the foot of p on the axis, and runs out
 * through p: o + r d, d a unit vector, r the distance from centre or axis. It ends there, so what
 * is on the other side of a planet or a drum is neither floor nor ceiling. With gravity inward the
 * floor is the greatest r not above the lifted point's, with gravity outward the least not below.
 * Every question uses the same o and d, so a surface has the same r whoever asks, to the bit.
 *
 * A polygon is met when the line passes all its edges on one side. Corners are moved so that the
 * line is an axis, and then each edge is a sign of a 2×2 determinant, which is exactly opposite
 * for the two polygons at the edge: no line slips between them (S. Woop and others, "Watertight
 * ray/triangle intersection", 2013). Edges count as inside by a few roundings, as in all meshes, so
 * T-junctions and outer borders hold, too. The place comes from the polygon's plane and is held
 * between its nearest and farthest corner.
 *
 * The tree is walked in order, nearest first or farthest first, and what lies behind the best so
 * far is not opened. Boxes are grown by more than the rounding of a line's place in them.
 */
#include "terrain/radial.h"

#include "terrain/pieces.h"

#include <float.h>

#define SIDEWAYS 1e-14 /* cosine between line and normal: seen from its side */

struct line {
    const struct radial *mesh;
    double o[3], d[3], inv[3];
    double low, high; /* of t, what may still be the best */
    bool is_farthest; /* the greatest t is the best, else the least */
    bool is_any, without_walls;
    double pad;     /* rounding of a place across the line */
    int kx, ky, kz; /* d[kz] is the largest */
    double shear_x, shear_y, inv_z;
    bool is_hit;
    uint32_t polygon;
    struct vec3 normal; /* of the hit, not unit */
};

static void line_set(struct line *l)
{
    double x = fabs(l->d[0]), y = fabs(l->d[1]), z = fabs(l->d[2]);

    l->kz = z >= x && z >= y ? 2 : y >= x ? 1 : 0;
    l->kx = (l->kz + 1) % 3;
    l->ky = (l->kz + 2) % 3;
    l->shear_x = l->d[l->kx] / l->d[l->kz];
    l->shear_y = l->d[l->ky] / l->d[l->kz];
    l->inv_z = 1 / l->d[l->kz];
    for (int i = 0; i < 3; i++) /* finite, so that 0 times it is no NaN */
        l->inv[i] = fabs(l->d[i]) > 1e-300 ? 1 / l->d[i] : 1e300;
}

/* ---- one polygon ---------------------------------------------------------------------------- */

struct place {
    double x, y, t;
};

static inline struct place place_of(const struct line *l, struct vec3 vertex)
{
    double v[3] = {vertex.x - l->o[0], vertex.y - l->o[1], vertex.z - l->o[2]};

    return (struct place){v[l->kx] - l->shear_x * v[l->kz], v[l->ky] - l->shear_y * v[l->kz],
                          v[l->kz] * l->inv_z};
}

/* t0 and t1: of the nearest and the farthest corner. */
static bool is_through(const struct line *l, const struct vec3 *vertices, const uint32_t *corners,
                       uint32_t count, double *t0, double *t1)
{
    struct place a = place_of(l, vertices[corners[count - 1]]);
    bool can_left = true, can_right = true;

    *t0 = *t1 = a.t;
    for (uint32_t i = 0; i < count; i++) {
        struct place b = place_of(l, vertices[corners[i]]);
        double turn = a.x * b.y - a.y * b.x;
        double slack = l->pad * (fabs(b.x - a.x) + fabs(b.y - a.y));

        can_left &= turn >= -slack;
        can_right &= turn <= slack;
        if (!can_left && !can_right)
            return false;
        *t0 = b.t < *t0 ? b.t : *t0;
        *t1 = b.t > *t1 ? b.t : *t1;
        a = b;
    }
    return true;
}

bool radial_line_is_inside(const struct vec3 *vertices, const uint32_t *corners, uint32_t count,
                           struct vec3 from, struct vec3 d, double least)
{
    struct line l = {.o = {from.x, from.y, from.z}, .d = {d.x, d.y, d.z}, .pad = -least};
    double t0, t1;

    line_set(&l);
    return is_through(&l, vertices, corners, count, &t0, &t1);
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

static void polygon_test(struct line *l, uint32_t index)
{
    const struct radial *m = l->mesh;
    const struct radial_polygon *p = &m->polygons[index];
    const uint32_t *corners = m->corners + p->first;
    double t0, t1;

    if ((p->is_wall && l->without_walls) ||
        !is_through(l, m->vertices, corners, p->count, &t0, &t1) || t0 > l->high || t1 < l->low)
        return;
    struct vec3 n = piece_normal(m->vertices, corners, p->count), v = m->vertices[corners[0]];
    double across = n.x * l->d[0] + n.y * l->d[1] + n.z * l->d[2];
    double t = (n.x * (v.x - l->o[0]) + n.y * (v.y - l->o[1]) + n.z * (v.z - l->o[2])) / across;

    if (!(fabs(across) > SIDEWAYS * vec3_length(n)))
        return;
    t = t < t0 ? t0 : t > t1 ? t1 : t;
    if (!is_better(l, t, index))
        return;
    *(l->is_farthest ? &l->low : &l->high) = t;
    l->is_hit = true;
    l->polygon = index;
    l->normal = n;
}

/* ---- the tree ------------------------------------------------------------------------------- */

struct span {
    double t0, t1;
};

/* Where the line is in a box; t0 > t1 when nowhere. */
static inline struct span span_of(const struct line *l, const struct box_bounds *box)
{
    struct span s = {-INFINITY, INFINITY};

    for (int i = 0; i < 3; i++) {
        double a = ((double)box->min[i] - l->o[i]) * l->inv[i];
        double b = ((double)box->max[i] - l->o[i]) * l->inv[i];
        double enter = a < b ? a : b, leave = a < b ? b : a;

        s.t0 = enter > s.t0 ? enter : s.t0;
        s.t1 = leave < s.t1 ? leave : s.t1;
    }
    return s;
}

static inline bool is_open(const struct line *l, struct span s)
{
    return s.t0 <= s.t1 && s.t0 <= l->high && s.t1 >= l->low;
}

struct visit {
    uint32_t node;
    struct span span;
};

static void tree_walk(struct line *l)
{
    const struct box_tree *tree = &l->mesh->tree;
    struct visit stack[BOX_TREE_DEPTH + 2];
    uint32_t waiting = 0;

    stack[waiting++] = (struct visit){0, span_of(l, &tree->nodes[0].box)};
    while (waiting > 0 && !(l->is_hit && l->is_any)) {
        struct visit v = stack[--waiting];
        const struct box_node *node = &tree->nodes[v.node];

        if (!is_open(l, v.span))
            continue;
        for (uint32_t i = 0; i < node->count && !(l->is_hit && l->is_any); i++)
            polygon_test(l, tree->items[node->first + i]);
        if (node->count > 0)
            continue;
        struct visit a = {node->first, span_of(l, &tree->nodes[node->first].box)};
        struct visit b = {node->first + 1, span_of(l, &tree->nodes[node->first + 1].box)};
        bool a_first = l->is_farthest ? a.span.t1 >= b.span.t1 : a.span.t0 <= b.span.t0;

        stack[waiting++] = a_first ? b : a;
        stack[waiting++] = a_first ? a : b;
    }
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
    *l = (struct line){
        .mesh = mesh,
        .o = {0, 0, is_sphere ? 0 : point.z},
        .d = {d.x, d.y, d.z},
        .without_walls = true,
        .pad = 2 * mesh->header->slack,
    };
    line_set(l);
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
        (struct vec3){l->o[0] + l->d[0] * at, l->o[1] + l->d[1] * at, l->o[2] + l->d[2] * at};
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

bool radial_ray(const struct radial *mesh, const struct ray *ray, enum ray_mode mode,
                struct mesh_hit *hit)
{
    struct vec3 d = ray->direction;
    int exponent;

    /* t is scaled by a power of two so that the longest component is near 1: exact both ways */
    frexp(fmax(fabs(d.x), fmax(fabs(d.y), fabs(d.z))), &exponent);
    struct line l = {
        .mesh = mesh,
        .o = {ray->origin.x, ray->origin.y, ray->origin.z},
        .d = {ldexp(d.x, -exponent), ldexp(d.y, -exponent), ldexp(d.z, -exponent)},
        .is_any = mode == RAY_ANY,
        .pad = 2 * mesh->header->slack,
    };
    double t_max = ldexp(ray->t_max, exponent), t;

    line_set(&l);
    struct span inside = span_of(&l, &mesh->tree.nodes[0].box);

    inside.t0 = fmax(inside.t0, 0);
    inside.t1 = fmin(inside.t1, t_max);
    if (!(inside.t0 <= inside.t1))
        return false;
    for (int i = 0; i < 3; i++) /* from far away: to where it enters the mesh's box */
        l.o[i] += l.d[i] * inside.t0;
    /* within rounding the ray may begin and end on the surface */
    l.low = -l.pad;
    l.high = inside.t1 - inside.t0 + l.pad;
    tree_walk(&l);
    t = fmin(ldexp(fmin(fmax(inside.t0 + l.high, 0), t_max), -exponent), ray->t_max);
    if (!l.is_hit || !isfinite(t))
        return false;
    hit->t = t;
    hit->point = vec3_add(ray->origin, vec3_scale(ray->direction, t));
    hit->normal = ray_normal(&l, hit->point);
    hit->polygon = mesh->polygons[l.polygon].source;
    return true;
}
