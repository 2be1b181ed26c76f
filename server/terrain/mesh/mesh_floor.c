/*
 * The floors above and below a point (Q, "Accessing Terrain Data").
 *
 * The point is turned into the mesh's frame. Its cell of the floor grid (floor_grid.c) gives the
 * floors above it and below it, and each of them its height (floor_mask.h). Where the
 * grid has no answer, beside its box, a line along gravity through the tree of boxes has it
 * (ray_tree.h), with the same tests of each polygon. Both ways give the same bits.
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
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"

/* A polygon that the line along gravity may meet. */
static bool tree_test(void *asker, const struct ray_tree_block *block, unsigned lane, double *end)
{
    struct column *c = asker;
    uint32_t polygon = block->polygon[lane] & ~RAY_TREE_PART;
    double best = c->best;

    if (mesh_is_wall(&c->mesh->polygons[polygon]) || !is_inside(c, polygon))
        return false;
    floor_take(c, polygon);
    *end = c->start - c->best;
    return c->best > best;
}

struct column_found mesh_column_by_tree(const struct mesh *mesh, double x, double y, double sign,
                                        double limit)
{
    const struct mesh_header *h = mesh->header;
    double first = sign > 0 ? (double)h->z_max : -(double)h->z_min;
    double last = sign > 0 ? (double)h->z_min : -(double)h->z_max;
    struct column c = {mesh, x, y, limit, sign, -INFINITY, NO_POLYGON, fmin(limit, first)};
    struct ray_tree_line line = {
        .o = {x, y, sign * c.start},
        .d = {0, 0, -sign},
        .low = -h->near,
        .high = c.start - last + h->near,
        .test = tree_test,
        .asker = &c,
    };

    if (mesh->rays.first.node_count > 0)
        ray_tree_ask(&mesh->rays.first, &line);
    if (mesh->rays.more.node_count > 0)
        ray_tree_ask(&mesh->rays.more, &line);
    return (struct column_found){c.best, c.polygon};
}

/* ---- queries -------------------------------------------------------------------------------- */

bool mesh_column(const struct mesh *mesh, double x, double y, bool is_up, double limit, double *z,
                 uint32_t *polygon)
{
    return kernels()->mesh_column(mesh, x, y, is_up, limit, z, polygon);
}

double mesh_held_z(const struct mesh *mesh, uint32_t polygon, double x, double y)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    struct face face = mesh_face(mesh, polygon);
    struct z_range range = mesh_range(mesh, polygon);
    double z = convex_part_height(&face, p) + p->slope_x * (x - (double)p->x_min) +
               p->slope_y * (y - (double)p->y_min);

    return fmin((double)range.max, fmax((double)range.min, z));
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
    if (mesh->instances)
        return instances_floor(mesh->instances, point, reach_up_m, out);
    return kernels()->mesh_floor(mesh, point, reach_up_m, out);
}

void mesh_floor_heights(const struct mesh *mesh, const struct vec3 *points, size_t count,
                        double reach_up_m, struct mesh_height *out)
{
    CHECK(!mesh->radial);
    for (size_t i = 0; mesh->instances && i < count; i++)
        if (!instances_height(mesh->instances, points[i], reach_up_m, &out[i]))
            out[i] = (struct mesh_height){NAN, MESH_NO_POLYGON};
    if (!mesh->instances)
        kernels()->mesh_heights(mesh, points, count, reach_up_m, out);
}

bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out)
{
    if (mesh->radial)
        return radial_ceiling(mesh->radial, point, above_m, lift_m, out);
    if (mesh->instances)
        return instances_ceiling(mesh->instances, point, above_m, lift_m, out);
    struct vec3 at = mesh_to_frame(mesh->header, point);
    double slack = mesh->header->slack, z;
    double above = nextafter(at.z + above_m + slack, INFINITY);
    uint32_t polygon;

    if (!mesh_column(mesh, at.x, at.y, true, fmax(above, at.z + lift_m - slack), &z, &polygon))
        return false;
    contact_fill(mesh, point, at, z, polygon, out);
    return true;
}
