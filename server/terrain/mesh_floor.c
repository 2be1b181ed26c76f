/*
 * What stands above and below a point (Q, "Accessing Terrain Data").
 *
 * The point is turned into the mesh's frame. Its cell of the columns (mesh_columns.c) tells which
 * floors are above it and below it; each of them is asked for its height (mesh_lanes.h). Where the
 * columns do not know, outside of the root's box, two comparisons a level of the quadtree lead to a
 * leaf, and each floor in its list is asked for its box, its edge lines, its height. A point within
 * `near` of a cut is looked up on both sides of it: leaf lists leave out floors that only touch
 * their leaf, which is what makes cuts through vertices worth making. Both ways give the same bits.
 *
 * Edges are inclusive by the slack (mesh_data.h), so a point on an edge, a vertex or the outer
 * border always has the floor. A height that the slack has led beyond the polygon is held between
 * its lowest and its highest corner.
 *
 * Heights are compared along up. "At or below" forgives the slack, too: a point that was put on a
 * floor by an earlier answer stands on it.
 */
#include "terrain/mesh_contact.h"
#include "terrain/mesh_square.h"

#include "terrain/radial.h"

/* Boxes are compared this many at a time before any edge is looked at. */
enum { LEAF_BATCH = 16 };

static inline void leaf_scan(struct column *c, const struct mesh_node *leaf)
{
    const struct mesh_polygon *polygons = c->mesh->polygons;
    const uint32_t *refs = c->mesh->leaf_refs + leaf->first;
    float x = (float)c->x, y = (float)c->y; /* boxes are rounded outward: safe to compare */
    uint32_t near_by[LEAF_BATCH];

    for (uint32_t left = leaf->as.leaf.floors; left > 0;) {
        uint32_t batch = left < LEAF_BATCH ? left : LEAF_BATCH, count = 0;

        for (uint32_t i = 0; i < batch; i++) {
            const struct mesh_polygon *p = &polygons[refs[i]];

            near_by[count] = refs[i];
            count += (x >= p->x_min) & (x <= p->x_max) & (y >= p->y_min) & (y <= p->y_max);
        }
        for (uint32_t i = 0; i < count; i++)
            if (is_inside(c, &polygons[near_by[i]]))
                floor_take(c, near_by[i]);
        refs += batch;
        left -= batch;
    }
}

/* Both sides of the cuts that are near. */
static void scan_near_cuts(struct column *c, uint32_t at)
{
    uint32_t stack[3 * MESH_DEPTH_MAX + 1], depth = 0;
    double near = c->mesh->header->near;

    stack[depth++] = at;
    while (depth > 0) {
        const struct mesh_node *n = &c->mesh->nodes[stack[--depth]];

        if (n->count != MESH_NODE_INNER) {
            leaf_scan(c, n);
            continue;
        }
        double dx = c->x - n->as.cut.x, dy = c->y - n->as.cut.y;

        for (uint32_t i = 0; i < 4; i++)
            if ((i & 1 ? dx >= -near : dx <= near) && (i & 2 ? dy >= -near : dy <= near))
                stack[depth++] = n->first + i;
    }
}

/* By the tree alone. */
static void tree_scan(struct column *c)
{
    const struct mesh_node *n = c->mesh->nodes;
    const struct box2 *root = &c->mesh->header->root;
    double near = c->mesh->header->near;

    if (!(c->x >= root->x_min - near && c->x <= root->x_max + near && c->y >= root->y_min - near &&
          c->y <= root->y_max + near))
        return;
    while (n->count == MESH_NODE_INNER) {
        double dx = c->x - n->as.cut.x, dy = c->y - n->as.cut.y;

        if (fabs(dx) <= near || fabs(dy) <= near) {
            scan_near_cuts(c, (uint32_t)(n - c->mesh->nodes));
            return;
        }
        n = c->mesh->nodes + n->first + ((dx >= 0) | (dy >= 0) << 1);
    }
    leaf_scan(c, n);
}

/* ---- by columns ----------------------------------------------------------------------------- */

struct found {
    double best;
    uint32_t polygon;
};

/* Values in and out: a column whose address is known lives in memory. */
__attribute__((noinline)) static struct found tree_ask(const struct mesh *mesh, double x, double y,
                                                       double sign, double limit)
{
    struct column c = {mesh, x, y, limit, sign, -INFINITY, NO_POLYGON};

    tree_scan(&c);
    return (struct found){c.best, c.polygon};
}

/* By the directory; false where it does not know. */
ALWAYS_INLINE bool square_scan(struct column *c, enum simd_level simd)
{
    const struct mesh_columns *columns = &c->mesh->columns;
    struct square square;

    if (!square_find(columns, c->x, c->y, &square, simd))
        return false;
    uint32_t entry = square_entry(columns, &square, simd);
    struct spot spot = spot_of(columns, entry, &square, simd);

    if (entry == DIRECTORY_ELSE)
        return false;
    if (spot.lanes != 0) {
        struct lanes lanes = spot_lanes(&spot, simd);

        if (c->sign > 0 && columns->is_stacked)
            lanes.maybe &=
                pair_levels(spot.blocks, spot.lanes, column_level(columns, c->limit), simd);
        pair_take(c, spot.blocks, spot.lanes, lanes);
    } else if (entry != 0) {
        square_split(columns, &square, simd);
        struct place place = square_leaf(c->mesh, entry, &square);

        place_scan(c, &place, simd);
    }
    return true;
}

ALWAYS_INLINE void column_scan(struct column *c, enum simd_level simd)
{
    struct place place;

    if (simd == SIMD_AVX2 && square_scan(c, simd)) /* with AVX-512 that is not measured yet */
        return;
    if (place_begin(c->mesh, c->x, c->y, &place)) {
        place_descend(c->mesh, &place);
        place_scan(c, &place, simd);
        return;
    }
    struct found found = tree_ask(c->mesh, c->x, c->y, c->sign, c->limit);

    c->best = found.best;
    c->polygon = found.polygon;
}

/* The two that follow are called from here, too: what a call gives back in memory is waited for. */
ALWAYS_INLINE struct vec3 floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    double square = p->slope_x * p->slope_x + p->slope_y * p->slope_y + 1;
    struct vec3 n = {-p->slope_x, -p->slope_y, 1};

    n = square < 1e300 ? vec3_scale(n, 1 / sqrt(square)) : vec3_unit(n);
    return mesh->is_turned ? mesh_turn_back(mesh->header, n) : n;
}

/* ---- questions ------------------------------------------------------------------------------ */

ALWAYS_INLINE struct column column_ask(const struct mesh *mesh, double x, double y, double sign,
                                       double limit, enum simd_level simd)
{
    struct column c = {.mesh = mesh,
                       .x = x,
                       .y = y,
                       .sign = sign,
                       .limit = sign * limit,
                       .best = -INFINITY,
                       .polygon = NO_POLYGON};

    column_scan(&c, simd);
    return c;
}

#ifdef HAS_VECTORS
FOR_AVX2 static struct column column_avx2(const struct mesh *mesh, double x, double y, double sign,
                                          double limit)
{
    return column_ask(mesh, x, y, sign, limit, SIMD_AVX2);
}

FOR_AVX512 static struct column column_avx512(const struct mesh *mesh, double x, double y,
                                              double sign, double limit)
{
    return column_ask(mesh, x, y, sign, limit, SIMD_AVX512);
}
#endif

static struct column column_any(const struct mesh *mesh, double x, double y, double sign,
                                double limit)
{
#ifdef HAS_VECTORS
    if (mesh->simd == SIMD_AVX512)
        return column_avx512(mesh, x, y, sign, limit);
    if (mesh->simd == SIMD_AVX2)
        return column_avx2(mesh, x, y, sign, limit);
#endif
    return column_ask(mesh, x, y, sign, limit, SIMD_SCALAR);
}

bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon)
{
    double sign = is_up ? -1 : 1;
    struct column c = column_any(mesh, x, y, sign, limit);

    if (c.polygon == NO_POLYGON)
        return false;
    *z = sign * c.best;
    *polygon = c.polygon;
    return true;
}

ALWAYS_INLINE struct vec3 column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    struct vec3 up = mesh_up(mesh->header);
    /* in this order, so that a coordinate across gravity stays what it was */
    struct vec3 across = vec3_sub(point, vec3_scale(up, vec3_dot(up, point)));

    return vec3_add(across, vec3_scale(up, z + vec3_dot(up, mesh->header->centre)));
}

struct vec3 mesh_floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    return floor_normal(mesh, polygon);
}

struct vec3 mesh_column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    return column_point(mesh, point, z);
}

/* at is in the mesh's frame. */
ALWAYS_INLINE void contact_fill(const struct mesh *mesh, struct vec3 point, struct vec3 at,
                                double z, uint32_t polygon, struct mesh_contact *out)
{
    out->point = column_point(mesh, point, z);
    out->normal = floor_normal(mesh, polygon);
    out->distance_m = at.z - z;
    out->polygon = mesh->polygons[polygon].source;
}

__attribute__((noinline)) static bool floor_more(const struct mesh *mesh, struct vec3 point,
                                                 double reach_up_m, struct mesh_contact *out)
{
    struct vec3 at = column_place(mesh, point);
    double z;
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, false, at.z + reach_up_m + mesh->header->slack, &z,
                     &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}

#ifdef HAS_VECTORS
/* One floor in one piece: what a call gives back in memory is waited for. */
FOR_AVX2 static bool floor_avx2(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                                struct mesh_contact *out)
{
    struct vec3 at = column_place(mesh, point);
    double limit = at.z + reach_up_m + mesh->header->slack;
    struct floors f;

    switch (floors_find(mesh, at.x, at.y, limit, mesh->columns.is_stacked, &f, SIMD_AVX2)) {
    case OVER_NOTHING:
        return false;
    case OVER_ONE:
        contact_fill(mesh, point, at, f.z, f.polygon, out);
        return true;
    default:
        break;
    }
    return floor_more(mesh, point, reach_up_m, out);
}
#endif

bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_floor(mesh->radial, point, reach_up_m, out);
#ifdef HAS_VECTORS
    if (mesh->simd == SIMD_AVX2)
        return floor_avx2(mesh, point, reach_up_m, out);
#endif
    return floor_more(mesh, point, reach_up_m, out);
}

bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_ceiling(mesh->radial, point, above_m, lift_m, out);
    struct vec3 at = mesh_to_frame(mesh->header, point);
    double slack = mesh->header->slack, z;
    double above = nextafter(at.z + above_m + slack, INFINITY);
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, true, fmax(above, at.z + lift_m - slack), &z, &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}
