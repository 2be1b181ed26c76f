/*
 * Integrals of 1, x and x xᵀ over a solid.
 *
 * By the divergence theorem they are sums over the tetrahedra between each triangle (a, b, c) and
 * one point, here the middle of the mesh's box, so that little cancels. With d = a · (b × c) and
 * s = a + b + c a tetrahedron gives d/6, (d/24) s and (d/120) (a aᵀ + b bᵀ + c cᵀ + s sᵀ).
 *
 * Source: J. Blow, A. J. Binstock, "How to find the inertia tensor (or other mass properties) of a
 * 3D solid body represented by a triangle mesh", 2004.
 */
#include "sand/body/inertia.h"

struct sums {
    double volume, first[3], second[3][3];
};

static void add_tetrahedron(struct sums *sums, struct vec3 a, struct vec3 b, struct vec3 c)
{
    double d = vec3_dot(a, vec3_cross(b, c));
    const double v[4][3] = {{a.x, a.y, a.z},
                            {b.x, b.y, b.z},
                            {c.x, c.y, c.z},
                            {a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z}};

    sums->volume += d / 6;
    for (int i = 0; i < 3; i++) {
        sums->first[i] += d / 24 * v[3][i];
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                sums->second[i][j] += d / 120 * v[k][i] * v[k][j];
    }
}

struct inertia inertia_of(const struct triangle_mesh *mesh)
{
    struct box3 box = triangle_mesh_bounds(mesh);
    struct vec3 origin = vec3_add(box.min, vec3_scale(vec3_sub(box.max, box.min), 0.5));
    struct inertia out;
    struct sums sums = {0};
    double m[3], second[3][3], trace = 0;

    for (uint32_t i = 0; i < mesh->triangles; i++) {
        const uint32_t *corner = mesh->corners + 3 * (size_t)i;

        add_tetrahedron(&sums, vec3_sub(mesh->vertices[corner[0]], origin),
                        vec3_sub(mesh->vertices[corner[1]], origin),
                        vec3_sub(mesh->vertices[corner[2]], origin));
    }
    for (int i = 0; i < 3; i++)
        m[i] = sums.first[i] / sums.volume;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            second[i][j] = sums.second[i][j] / sums.volume - m[i] * m[j];
        trace += second[i][i];
    }
    out.volume_m3 = sums.volume;
    out.centre = vec3_add(origin, (struct vec3){m[0], m[1], m[2]});
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out.per_kg[i][j] = (i == j ? trace : 0) - second[i][j];
    return out;
}
