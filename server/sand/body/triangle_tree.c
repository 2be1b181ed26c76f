/*
 * A tree of boxes over triangles.
 *
 * Built by halving at the median centre along the longest side, to leaves of four; 2n/4 nodes in
 * one array, the left child next to its parent. Triangles are copied in the order of the leaves, so
 * that a query reads memory in order.
 *
 * Nearest: depth first, the nearer child first, boxes that begin beyond the best are left out. The
 * distance to a triangle is the least of its three edges' and, where the foot of the perpendicular
 * lies inside, its plane's: no division by the area, so slivers and triangles of no area are right,
 * too.
 *
 * Crossing: two triangles that share no vertex cross when an edge of one passes through the inside
 * of the other; with one vertex in common, only the edges opposite to it can. Which side of a plane
 * a point lies on is the sign of a determinant, trusted where it is greater than its rounding can
 * be (J. Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric
 * predicates", 1997: the bound of orient3d's first stage); uncertain pairs touch at most, and
 * touching is allowed. Triangles with an edge in common cannot cross, only fold.
 */
#include "sand/body/triangle_tree.h"

#include <stdlib.h>

enum { LEAF_TRIANGLES = 4, DEPTH_MAX = 64 };

/* At boxes and pairs in a search for crossings, a few seconds: a usual triangle takes about 70. */
#define LOOKS UINT64_C(10000000)
#define LOOKS_A_TRIANGLE UINT64_C(400)

struct tree_triangle {
    struct vec3 a, b, c;
    uint32_t index;
};

struct tree_node {
    struct box3 box;
    uint32_t first, count; /* a leaf: of triangles; count 0: the children are next and `first` */
};

struct triangle_tree {
    const struct triangle_mesh *mesh;
    struct tree_triangle *triangles;
    struct tree_node *nodes;
    uint32_t node_count;
};

struct box3 triangle_mesh_bounds(const struct triangle_mesh *mesh)
{
    const struct vec3 *first = &mesh->vertices[mesh->corners[0]];
    struct box3 box = {*first, *first};

    for (size_t i = 1; i < 3 * (size_t)mesh->triangles; i++) {
        const struct vec3 *v = &mesh->vertices[mesh->corners[i]];

        box = box3_union(box, (struct box3){*v, *v});
    }
    return box;
}

/* ---- building -------------------------------------------------------------------------------- */

static struct box3 triangle_box(const struct tree_triangle *t)
{
    return (struct box3){{fmin(t->a.x, fmin(t->b.x, t->c.x)), fmin(t->a.y, fmin(t->b.y, t->c.y)),
                          fmin(t->a.z, fmin(t->b.z, t->c.z))},
                         {fmax(t->a.x, fmax(t->b.x, t->c.x)), fmax(t->a.y, fmax(t->b.y, t->c.y)),
                          fmax(t->a.z, fmax(t->b.z, t->c.z))}};
}

static double centre3(const struct tree_triangle *t, int axis)
{
    return axis == 0   ? t->a.x + t->b.x + t->c.x
           : axis == 1 ? t->a.y + t->b.y + t->c.y
                       : t->a.z + t->b.z + t->c.z;
}

static int by_order(const struct tree_triangle *a, const struct tree_triangle *b, int axis)
{
    double x = centre3(a, axis), y = centre3(b, axis);

    return x != y ? (x > y) - (x < y) : (a->index > b->index) - (a->index < b->index);
}

static int by_x(const void *a, const void *b)
{
    return by_order(a, b, 0);
}

static int by_y(const void *a, const void *b)
{
    return by_order(a, b, 1);
}

static int by_z(const void *a, const void *b)
{
    return by_order(a, b, 2);
}

static void build(struct triangle_tree *tree, uint32_t first, uint32_t count)
{
    static int (*const by[])(const void *, const void *) = {by_x, by_y, by_z};
    struct tree_node *node = &tree->nodes[tree->node_count++];
    struct box3 box = triangle_box(&tree->triangles[first]);
    struct vec3 size;
    int axis;

    for (uint32_t i = 1; i < count; i++)
        box = box3_union(box, triangle_box(&tree->triangles[first + i]));
    *node = (struct tree_node){box, first, count};
    if (count <= LEAF_TRIANGLES)
        return;
    size = vec3_sub(box.max, box.min);
    axis = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;
    qsort(tree->triangles + first, count, sizeof *tree->triangles, by[axis]);
    node->count = 0;
    build(tree, first, count / 2);
    node->first = tree->node_count;
    build(tree, first + count / 2, count - count / 2);
}

struct triangle_tree *triangle_tree_create(const struct triangle_mesh *mesh, struct err *err)
{
    struct triangle_tree *tree = calloc(1, sizeof *tree);

    if (tree) {
        tree->mesh = mesh;
        tree->triangles = malloc(mesh->triangles * sizeof *tree->triangles);
        tree->nodes = malloc(2 * (size_t)mesh->triangles * sizeof *tree->nodes);
    }
    if (!tree || !tree->triangles || !tree->nodes) {
        triangle_tree_free(tree);
        err_set(err, ERR_NO_MEMORY, "no memory for a tree of %u triangles", mesh->triangles);
        return NULL;
    }
    for (uint32_t i = 0; i < mesh->triangles; i++) {
        const uint32_t *corner = mesh->corners + 3 * (size_t)i;

        tree->triangles[i] = (struct tree_triangle){
            mesh->vertices[corner[0]], mesh->vertices[corner[1]], mesh->vertices[corner[2]], i};
    }
    build(tree, 0, mesh->triangles);
    return tree;
}

void triangle_tree_free(struct triangle_tree *tree)
{
    if (!tree)
        return;
    free(tree->triangles);
    free(tree->nodes);
    free(tree);
}

/* ---- nearest --------------------------------------------------------------------------------- */

static double squared(struct vec3 a)
{
    return vec3_dot(a, a);
}

static double box_distance2(const struct box3 *box, struct vec3 p)
{
    double x = fmax(0, fmax(box->min.x - p.x, p.x - box->max.x));
    double y = fmax(0, fmax(box->min.y - p.y, p.y - box->max.y));
    double z = fmax(0, fmax(box->min.z - p.z, p.z - box->max.z));

    return x * x + y * y + z * z;
}

static struct vec3 nearest_on_edge(struct vec3 a, struct vec3 along, struct vec3 from_a)
{
    double length2 = squared(along), t = vec3_dot(from_a, along);

    if (!(t > 0))
        return a;
    return vec3_add(a, t < length2 ? vec3_scale(along, t / length2) : along);
}

static void take_nearer(struct vec3 p, struct vec3 q, double *best2, struct vec3 *best)
{
    double d2 = squared(vec3_sub(p, q));

    if (d2 < *best2) {
        *best2 = d2;
        *best = q;
    }
}

static void nearest_on_triangle(const struct tree_triangle *t, struct vec3 p, double *best2,
                                struct vec3 *best)
{
    struct vec3 ab = vec3_sub(t->b, t->a), bc = vec3_sub(t->c, t->b), ca = vec3_sub(t->a, t->c);
    struct vec3 ap = vec3_sub(p, t->a), bp = vec3_sub(p, t->b), cp = vec3_sub(p, t->c);
    struct vec3 n = vec3_cross(ab, bc);
    double n2 = squared(n);

    if (n2 > 0 && vec3_dot(vec3_cross(ab, ap), n) >= 0 && vec3_dot(vec3_cross(bc, bp), n) >= 0 &&
        vec3_dot(vec3_cross(ca, cp), n) >= 0) {
        take_nearer(p, vec3_sub(p, vec3_scale(n, vec3_dot(ap, n) / n2)), best2, best);
        return;
    }
    take_nearer(p, nearest_on_edge(t->a, ab, ap), best2, best);
    take_nearer(p, nearest_on_edge(t->b, bc, bp), best2, best);
    take_nearer(p, nearest_on_edge(t->c, ca, cp), best2, best);
}

double triangle_tree_nearest(const struct triangle_tree *tree, struct vec3 point, double within_m,
                             struct vec3 *nearest)
{
    uint32_t stack[DEPTH_MAX], depth = 0, at = 0;
    double far[DEPTH_MAX], best2 = within_m * within_m, limit2 = best2;
    struct vec3 best = point;

    for (;;) {
        const struct tree_node *node = &tree->nodes[at];

        if (node->count > 0) {
            for (uint32_t i = 0; i < node->count; i++)
                nearest_on_triangle(&tree->triangles[node->first + i], point, &best2, &best);
        } else {
            uint32_t near = at + 1, other = node->first;
            double d = box_distance2(&tree->nodes[near].box, point);
            double e = box_distance2(&tree->nodes[other].box, point);

            if (e < d) {
                double swap = d;

                near = node->first, other = at + 1;
                d = e, e = swap;
            }
            if (e < best2) {
                stack[depth] = other;
                far[depth++] = e;
            }
            if (d < best2) {
                at = near;
                continue;
            }
        }
        while (depth > 0 && !(far[depth - 1] < best2))
            depth--;
        if (depth == 0)
            break;
        at = stack[--depth];
    }
    if (!(best2 < limit2))
        return within_m;
    if (nearest)
        *nearest = best;
    return sqrt(best2);
}

/* ---- crossing -------------------------------------------------------------------------------- */

/* 1, -1: the side of the plane abc that d lies on; 0: in doubt. */
static int side(struct vec3 a, struct vec3 b, struct vec3 c, struct vec3 d)
{
    struct vec3 u = vec3_sub(a, d), v = vec3_sub(b, d), w = vec3_sub(c, d);
    double vw = v.x * w.y, wv = w.x * v.y, wu = w.x * u.y, uw = u.x * w.y;
    double uv = u.x * v.y, vu = v.x * u.y;
    double det = u.z * (vw - wv) + v.z * (wu - uw) + w.z * (uv - vu);
    double size = (fabs(vw) + fabs(wv)) * fabs(u.z) + (fabs(wu) + fabs(uw)) * fabs(v.z) +
                  (fabs(uv) + fabs(vu)) * fabs(w.z);

    return fabs(det) > 1e-15 * size ? (det > 0) - (det < 0) : 0;
}

static bool passes(struct vec3 p, struct vec3 q, const struct tree_triangle *t)
{
    int of_p = side(t->a, t->b, t->c, p), turn;

    if (of_p == 0 || side(t->a, t->b, t->c, q) != -of_p)
        return false;
    turn = side(p, q, t->a, t->b);
    return turn != 0 && side(p, q, t->b, t->c) == turn && side(p, q, t->c, t->a) == turn;
}

/* The edge opposite to the common vertex; NULL vertex: any edge. */
static bool edges_pass(const struct tree_triangle *of, const uint32_t *corners, int64_t common,
                       const struct tree_triangle *through)
{
    const struct vec3 *v[3] = {&of->a, &of->b, &of->c};

    for (int i = 0; i < 3; i++) {
        int j = i == 2 ? 0 : i + 1;

        if (common >= 0 && (corners[i] == common || corners[j] == common))
            continue;
        if (passes(*v[i], *v[j], through))
            return true;
    }
    return false;
}

static bool do_cross(const struct triangle_tree *tree, const struct tree_triangle *s,
                     const struct tree_triangle *t)
{
    const uint32_t *of_s = tree->mesh->corners + 3 * (size_t)s->index;
    const uint32_t *of_t = tree->mesh->corners + 3 * (size_t)t->index;
    int64_t common = -1;

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            if (of_s[i] != of_t[j])
                continue;
            if (common >= 0)
                return false; /* an edge */
            common = of_s[i];
        }
    }
    return edges_pass(s, of_s, common, t) || edges_pass(t, of_t, common, s);
}

static bool boxes_meet(const struct box3 *a, const struct box3 *b)
{
    return a->min.x <= b->max.x && b->min.x <= a->max.x && a->min.y <= b->max.y &&
           b->min.y <= a->max.y && a->min.z <= b->max.z && b->min.z <= a->max.z;
}

static enum crossing_answer crosses_any(const struct triangle_tree *tree,
                                        const struct tree_triangle *t, uint64_t *looks,
                                        uint32_t pair[2])
{
    uint32_t stack[DEPTH_MAX], depth = 0;
    struct box3 box = triangle_box(t);

    stack[depth++] = 0;
    while (depth > 0) {
        uint32_t at = stack[--depth];
        const struct tree_node *node = &tree->nodes[at];

        if (*looks == 0)
            return CROSSING_UNKNOWN;
        --*looks;
        if (!boxes_meet(&node->box, &box))
            continue;
        if (node->count == 0) {
            stack[depth++] = node->first;
            stack[depth++] = at + 1;
            continue;
        }
        for (uint32_t i = 0; i<node->count && * looks> 0; i++) {
            const struct tree_triangle *other = &tree->triangles[node->first + i];

            --*looks;
            if (other->index > t->index && do_cross(tree, t, other)) {
                pair[0] = t->index;
                pair[1] = other->index;
                return CROSSING_FOUND;
            }
        }
    }
    return CROSSING_NONE;
}

enum crossing_answer triangle_tree_crossing(const struct triangle_tree *tree, uint32_t pair[2])
{
    uint64_t looks = LOOKS + LOOKS_A_TRIANGLE * tree->mesh->triangles;

    for (uint32_t i = 0; i < tree->mesh->triangles; i++) {
        enum crossing_answer answer = crosses_any(tree, &tree->triangles[i], &looks, pair);

        if (answer != CROSSING_NONE)
            return answer;
    }
    return CROSSING_NONE;
}
