/*
 * Volume, centre of mass and inertia of a solid of even density.
 */
#ifndef KOTA_SAND_INERTIA_H
#define KOTA_SAND_INERTIA_H

#include "sand/body/triangle_tree.h"

struct inertia {
    double volume_m3;
    struct vec3 centre;  /* of mass */
    double per_kg[3][3]; /* m²: the inertia tensor about the centre, along the mesh's axes, divided
                            by the mass */
};

/*
 * Of a mesh that solid_measure has found to be a solid; exact but for rounding. O(n), any thread.
 */
struct inertia inertia_of(const struct triangle_mesh *mesh);

#endif
