/*
 * The polygons of a mesh as a light at a place sees them: a sphere of directions around it, cut
 * into the cells of a cube's six faces. Inside of the room only. How: mesh_lamp.c.
 */
#ifndef KOTA_TERRAIN_MESH_LAMP_H
#define KOTA_TERRAIN_MESH_LAMP_H

#include "terrain/mesh_data.h"

enum { LAMP_FLAT_MAX = 32, LAMP_ALWAYS_MAX = 32 };

#define LAMP_FLAT_SINE 1e-5 /* between a ray and a plane of `flat`: less is left to mesh_ray */

/* Depth: metres from the light along the face's axis. */
struct lamp_item {
    uint32_t piece;
    float near; /* depth of its nearest corner, rounded down */
};

struct lamp_cell {
    uint32_t first; /* of its items, the nearest first; the next cell's is their end */
    /* some piece fills the cell, between these depths; none: cover_far is INFINITY */
    float cover_near, cover_far;
};

struct lamp_face {
    double u, v, per_u, per_v; /* least coordinates, cells for each 1; coordinates are -1 to 1 */
    uint32_t side;             /* side² cells; 0: nothing is to be seen */
    uint32_t first;            /* cell */
};

struct mesh_lamp {
    struct vec3 at; /* in the mesh's frame */
    double reach_m; /* origins with a larger coordinate there are left to mesh_ray */
    struct lamp_face faces[6];
    struct lamp_cell *cells; /* [cell_count + 1] */
    struct lamp_item *items;
    size_t cell_count, item_count;
    struct vec3 flat[LAMP_FLAT_MAX];  /* normals of planes that all but run through the light */
    uint32_t always[LAMP_ALWAYS_MAX]; /* pieces that every ray is put to */
    uint32_t flat_count, always_count;
};

/*
 * at: of the light, in the locale's frame, finite; the mesh is not radial. *out is empty when it
 * fails.
 *
 * ERR_UNPROCESSABLE  the light is too far away, or runs through the planes of too many polygons
 * ERR_NO_MEMORY
 */
enum err_code mesh_lamp_make(const struct mesh *mesh, struct vec3 at, struct mesh_lamp *out,
                             struct err *err);
void mesh_lamp_free(struct mesh_lamp *lamp); /* all zero is fine */
size_t mesh_lamp_bytes(const struct mesh_lamp *lamp);

/* The face of directions whose longest component is `axis`, towards +axis or -axis. */
static inline unsigned lamp_face_of(int axis, bool is_up)
{
    return 2 * (unsigned)axis + is_up;
}

/* NULL: nothing can be seen there. */
static inline const struct lamp_cell *lamp_cell_at(const struct mesh_lamp *lamp, unsigned face,
                                                   double u, double v)
{
    const struct lamp_face *f = &lamp->faces[face];
    double x = (u - f->u) * f->per_u, y = (v - f->v) * f->per_v, side = f->side;
    double rounding = 1e-9 * side; /* pieces were grown by more */

    if (!(x >= -rounding && y >= -rounding && x <= side + rounding && y <= side + rounding) ||
        f->side == 0)
        return NULL;
    uint32_t column = x <= 0 ? 0 : x >= side ? f->side - 1 : (uint32_t)x;
    uint32_t row = y <= 0 ? 0 : y >= side ? f->side - 1 : (uint32_t)y;

    return &lamp->cells[f->first + row * f->side + column];
}

enum lamp_answer { LAMP_CLEAR, LAMP_BLOCKED, LAMP_UNSURE };

/*
 * Would mesh_ray hit anything along a ray whose line runs through the light, to some roundings, and
 * that does not end behind it? UNSURE: it has to be asked.
 */
enum lamp_answer mesh_ray_lamp(const struct mesh *mesh, const struct mesh_lamp *lamp,
                               const struct ray *ray);

#endif
