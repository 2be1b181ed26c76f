/*
 * The floors above and below a point (Q, "Accessing Terrain Data").
 *
 * The point is turned into the mesh's frame. Its cell of the floor grid (floor_grid.c) gives the
 * floors above it and below it, and each of them its height (floor_mask.h). Where the
 * grid has no answer, outside of the root's box, two comparisons a level of the quadtree lead to a
 * leaf, and each floor in its list is tested by its box, its edge lines, its height. A point within
 * `near` of a cut is looked up on both sides of it: leaf lists leave out floors that only touch
 * their leaf, which is why cuts are made through vertices. Both ways give the same bits.
 *
 * Edges are inclusive by the slack (mesh_data.h), so a point on an edge, a vertex or the outer
 * border always has the floor. A height that the slack has led beyond the polygon is held between
 * its lowest and its highest corner.
 *
 * Heights are compared along up. "At or below" allows the slack, too: a point that was put on a
 * floor by an earlier answer is on it.
 */
#include "terrain/mesh/mesh_contact.h"

#include "base/check.h"
#include "terrain/kernels/kernels.h"
#include "terrain/mesh/contact_fill.h"
#include "terrain/mesh/floor_mask.h"
#include "terrain/radial/radial.h"

/* Boxes are compared this many at a time before any edge is tested. */
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

/* By the tree only. */
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

struct column_found mesh_column_by_tree(const struct mesh *mesh, double x, double y, double sign,
                                        double limit)
{
    struct column c = {mesh, x, y, limit, sign, -INFINITY, NO_POLYGON};

    tree_scan(&c);
    return (struct column_found){c.best, c.polygon};
}

/* ---- queries -------------------------------------------------------------------------------- */

bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon)
{
    return kernels()->mesh_column(mesh, x, y, is_up, limit, z, polygon);
}

struct vec3 mesh_floor_normal(const struct mesh *mesh, uint32_t polygon)
{
    return floor_normal(mesh, polygon);
}

struct vec3 mesh_column_point(const struct mesh *mesh, struct vec3 point, double z)
{
    return column_point(mesh, point, z);
}

bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_floor(mesh->radial, point, reach_up_m, out);
    return kernels()->mesh_floor(mesh, point, reach_up_m, out);
}

bool mesh_floor_height_at(const struct mesh *mesh, double x, double y, double z, double reach_up_m,
                          struct mesh_height *out)
{
    return kernels()->mesh_height(mesh, x, y, z, reach_up_m, out);
}

void mesh_floor_heights(const struct mesh *mesh, const struct vec3 *points, size_t count,
                        double reach_up_m, struct mesh_height *out)
{
    CHECK(!mesh->radial);
    kernels()->mesh_heights(mesh, points, count, reach_up_m, out);
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
