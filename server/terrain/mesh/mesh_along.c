/*
 * The floors above and below a point of a mesh that is turned: along a line that is not the gravity
 * of its tree.
 *
 * Problem: the floor grid has the floors along one direction. A layer that pitches and rolls has
 * another one in each pose, and its walls become floors. Approach: a ray along gravity through the
 * tree of boxes. It begins above the mesh, or at the lifted point, and a polygon that it sees from
 * its side is passed, as by light: gravity lies in it, so it is no floor.
 *
 * The ray allows two slacks at its begin (mesh_ray.c), so a point that was put on a floor by an
 * earlier answer is on it. A ceiling is searched four slacks above the floor for the same reason.
 */
#include "terrain/instances/instances.h"

#include <math.h>

static double slack_of(const struct mesh *mesh)
{
    return mesh->instances ? mesh->instances->slack : mesh->header->slack;
}

/* How far the mesh reaches from a point along a unit vector, at least 0. */
static double reach_along(const struct mesh *mesh, struct vec3 point, struct vec3 along)
{
    struct box3 box = mesh_bounds(mesh);
    struct vec3 far = {along.x > 0 ? box.max.x : box.min.x, along.y > 0 ? box.max.y : box.min.y,
                       along.z > 0 ? box.max.z : box.min.z};

    return fmax(vec3_dot(vec3_sub(far, point), along), 0) + 4 * slack_of(mesh);
}

/* The first surface along a unit vector from `start` metres before or beyond the point. */
static bool line_ask(const struct mesh *mesh, struct vec3 point, struct vec3 along, double start,
                     double *at, struct mesh_contact *out)
{
    const struct ray ray = {vec3_add(point, vec3_scale(along, start)), along, INFINITY};
    struct mesh_hit hit;

    if (!ray_is_valid(&ray) || !mesh_ray(mesh, &ray, RAY_LIGHT, &hit))
        return false;
    *at = start + hit.t;
    out->point = vec3_add(point, vec3_scale(along, *at));
    out->normal = hit.normal;
    out->polygon = hit.polygon;
    return true;
}

static struct vec3 against(struct vec3 normal, struct vec3 down)
{
    return vec3_dot(normal, down) > 0 ? vec3_opposite(normal) : normal;
}

bool mesh_floor_along(const struct mesh *mesh, struct vec3 point, struct vec3 down,
                      double reach_up_m, struct mesh_contact *out)
{
    double lift = fmin(reach_up_m, reach_along(mesh, point, vec3_opposite(down)));

    if (!line_ask(mesh, point, down, -lift, &out->distance_m, out))
        return false;
    out->normal = against(out->normal, down);
    return true;
}

bool mesh_ceiling_along(const struct mesh *mesh, struct vec3 point, struct vec3 down,
                        double above_m, double lift_m, struct mesh_contact *out)
{
    double start = fmax(above_m + 4 * slack_of(mesh), lift_m), up_m;

    start = fmax(start, -reach_along(mesh, point, down));
    if (!line_ask(mesh, point, vec3_opposite(down), start, &up_m, out))
        return false;
    out->distance_m = -up_m;
    out->normal = against(out->normal, down);
    return true;
}
