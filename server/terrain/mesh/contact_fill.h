/*
 * From a floor, or a ceiling, of a column to a contact. Inline, for kernels of both levels: values
 * that a call returns in memory delay the next step. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_CONTACT_FILL_H
#define KOTA_TERRAIN_CONTACT_FILL_H

#include "terrain/mesh/mesh_data.h"

/* mesh_floor_normal */
__attribute__((always_inline)) static inline struct vec3 floor_normal(const struct mesh *mesh,
                                                                      uint32_t polygon)
{
    const struct mesh_polygon *p = &mesh->polygons[polygon];
    double square = p->slope_x * p->slope_x + p->slope_y * p->slope_y + 1;
    struct vec3 n = {-p->slope_x, -p->slope_y, 1};

    n = square < 1e300 ? vec3_scale(n, 1 / sqrt(square)) : vec3_unit(n);
    return mesh->is_turned ? mesh_turn_back(mesh->header, n) : n;
}

/* mesh_column_point */
__attribute__((always_inline)) static inline struct vec3 column_point(const struct mesh *mesh,
                                                                      struct vec3 point, double z)
{
    struct vec3 up = mesh_up(mesh->header);
    /* in this order, so that a coordinate across gravity keeps its bits */
    struct vec3 across = vec3_sub(point, vec3_scale(up, vec3_dot(up, point)));

    return vec3_add(across, vec3_scale(up, z + vec3_dot(up, mesh->header->centre)));
}

/* at: the point in the mesh's frame. */
__attribute__((always_inline)) static inline void contact_fill(const struct mesh *mesh,
                                                               struct vec3 point, struct vec3 at,
                                                               double z, uint32_t polygon,
                                                               struct mesh_contact *out)
{
    out->point = column_point(mesh, point, z);
    out->normal = floor_normal(mesh, polygon);
    out->distance_m = at.z - z;
    out->polygon = mesh_source(mesh, polygon);
}

#endif
