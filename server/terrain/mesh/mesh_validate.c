/*
 * Recomputes a mesh's invariants, only from its vertices: boxes bit for bit, planes and heights
 * within rounding, corners inside of their polygon's lines; then those of its grid and trees.
 */
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"

static bool wrong(struct err *err, const char *what, uint64_t at)
{
    err_set(err, ERR_INTERNAL, "%s %llu is wrong", what, (unsigned long long)at);
    return false;
}

static bool corners_are_inside(const struct mesh *m, const struct face *face)
{
    double least = -m->header->slack;

    for (uint32_t i = 0; i < face->count; i++) {
        struct mesh_line line = convex_part_line(face, i);

        for (uint32_t k = 0; k < face->count; k++) {
            struct vec3 v = face_at(face, k);

            if (!(line_value(&line, v.x, v.y) >= least))
                return false;
        }
    }
    return true;
}

/* Corners are on the plane. */
static bool plane_fits(const struct mesh *m, const struct face *face, const struct mesh_polygon *p)
{
    double steepness = fabs(p->slope_x) + fabs(p->slope_y);
    double height = isnan(p->height) ? convex_part_height(face, p) : p->height;
    struct vec3 first = face_at(face, 0);
    double size = 0;

    for (uint32_t i = 1; i < face->count; i++)
        size = fmax(size, vec3_length(vec3_sub(face_at(face, i), first)));
    double tolerance = (1 + steepness) * (4 * m->header->slack + 2e-6 * size);

    for (uint32_t i = 0; i < face->count; i++) {
        struct vec3 v = face_at(face, i);
        double z =
            height + p->slope_x * (v.x - (double)p->x_min) + p->slope_y * (v.y - (double)p->y_min);

        if (!(fabs(z - v.z) <= tolerance))
            return false;
    }
    return true;
}

static bool polygon_check(const struct mesh *m, uint32_t i, struct err *err)
{
    const struct mesh_polygon *p = &m->polygons[i];
    struct face face = mesh_face(m, i);
    struct box2 box = convex_part_box(&face);
    struct z_range range = mesh_range(m, i);
    const struct box2 *root = &m->header->root;
    double slack = m->header->slack;

    if (p->x_min != float_down(box.x_min - slack) || p->y_min != float_down(box.y_min - slack) ||
        box.x_min < root->x_min || box.y_min < root->y_min || box.x_max > root->x_max ||
        box.y_max > root->y_max || range.min < m->header->z_min || range.max > m->header->z_max)
        return wrong(err, "the box of polygon", i);
    if (!mesh_is_wall(p) && !(convex_part_normal(&face).z > 0))
        return wrong(err, "the order of corners of polygon", i);
    if (!mesh_is_wall(p) && !corners_are_inside(m, &face))
        return wrong(err, "convexity of polygon", i);
    if (!mesh_is_wall(p) && !plane_fits(m, &face, p))
        return wrong(err, "the plane of polygon", i);
    return true;
}

bool mesh_validate(const struct mesh *mesh, struct err *err)
{
    if (mesh->radial)
        return radial_validate(mesh->radial, err);
    if (mesh->instances)
        return instances_validate(mesh->instances, err);
    for (uint64_t i = 0; i < mesh->header->count[MESH_POLYGONS]; i++)
        if (!polygon_check(mesh, (uint32_t)i, err))
            return false;
    return mesh_same_validate(mesh, err) && floor_grid_validate(mesh, err) &&
           mesh_rays_validate(mesh, err);
}
