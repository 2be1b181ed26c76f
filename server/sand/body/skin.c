/*
 * Points on a surface.
 *
 * Problem: how far a body is above the ground is a question about its faces, edges and corners; the
 * spheres of its shell are rounder than its corners. Approach: each triangle is cut into n × n like
 * ones, n by its longest side, and their corners are taken. The step grows until the points fit.
 */
#include "sand/body/skin.h"

#include <math.h>
#include <stdlib.h>

static struct vec3 corner_of(const struct polygon_set *mesh, size_t polygon, uint32_t corner)
{
    return mesh->vertices[mesh->corners[mesh->starts[polygon] + corner]];
}

static double distance_m(struct vec3 a, struct vec3 b)
{
    return hypot(hypot(a.x - b.x, a.y - b.y), a.z - b.z);
}

/* Parts of the longest side of a triangle. */
static double parts_of(const struct polygon_set *mesh, size_t polygon, double step_m)
{
    const struct vec3 a = corner_of(mesh, polygon, 0), b = corner_of(mesh, polygon, 1),
                      c = corner_of(mesh, polygon, 2);
    const double side_m = fmax(distance_m(a, b), fmax(distance_m(b, c), distance_m(c, a)));

    return fmax(1, ceil(side_m / step_m));
}

static double points_between(const struct polygon_set *mesh, double step_m)
{
    double points = 0;

    for (size_t i = 0; i < mesh->polygon_count; i++) {
        const double parts = parts_of(mesh, i, step_m);

        points += parts > 1 ? (parts + 1) * (parts + 2) / 2 : 0;
    }
    return points;
}

static void put(float (*points_m)[3], uint32_t *count, struct vec3 at, struct vec3 centre)
{
    float *to = points_m[(*count)++];

    to[0] = (float)(at.x - centre.x);
    to[1] = (float)(at.y - centre.y);
    to[2] = (float)(at.z - centre.z);
}

static void put_triangle(const struct polygon_set *mesh, size_t polygon, uint32_t parts,
                         struct vec3 centre, float (*points_m)[3], uint32_t *count)
{
    const struct vec3 a = corner_of(mesh, polygon, 0), b = corner_of(mesh, polygon, 1),
                      c = corner_of(mesh, polygon, 2);

    for (uint32_t i = 0; i <= parts; i++) {
        for (uint32_t k = 0; i + k <= parts; k++) {
            const double u = (double)i / parts, v = (double)k / parts, w = 1 - u - v;
            const struct vec3 at = {w * a.x + u * b.x + v * c.x, w * a.y + u * b.y + v * c.y,
                                    w * a.z + u * b.z + v * c.z};

            put(points_m, count, at, centre);
        }
    }
}

enum err_code skin_points(const struct polygon_set *mesh, struct vec3 centre, double step_m,
                          float (**points_m)[3], uint32_t *count, struct err *err)
{
    const size_t stride = mesh->vertex_count / SKIN_POINTS_MAX + 1;
    const size_t vertices = (mesh->vertex_count + stride - 1) / stride;
    double between = points_between(mesh, step_m);

    while (between > 0 && between + (double)vertices > SKIN_POINTS_MAX) {
        step_m *= 1.4142135623730951;
        between = points_between(mesh, step_m);
    }
    *count = 0;
    *points_m = malloc(((size_t)between + vertices + 1) * sizeof **points_m);
    if (!*points_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for the surface of a model");
    for (size_t i = 0; i < mesh->vertex_count; i += stride)
        put(*points_m, count, mesh->vertices[i], centre);
    for (size_t i = 0; i < mesh->polygon_count; i++) {
        const uint32_t parts = (uint32_t)parts_of(mesh, i, step_m);

        if (parts > 1)
            put_triangle(mesh, i, parts, centre, *points_m, count);
    }
    return ERR_OK;
}
