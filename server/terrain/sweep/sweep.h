/*
 * Shapes moved along a segment: where they first touch the ground, and whether they began in it.
 *
 * A shape is a core with a radius around it: of a sphere the core is a point, of a capsule a
 * segment along up, of a box a box with radius 0. Its place is its middle, and it does not turn on
 * its way.
 *
 * One sweep is asked of several surfaces, one after another; each is only searched for what is
 * better than the best so far.
 */
#ifndef KOTA_TERRAIN_SWEEP_H
#define KOTA_TERRAIN_SWEEP_H

#include "terrain/field/heightfield.h"
#include "terrain/mesh/mesh.h"
#include "terrain/motion.h"

#define SWEEP_COORDINATE_MAX_M 1e12 /* of both ends: the mesh's, whose squares are exact enough */
#define SWEEP_SIZE_MAX_M 1e3        /* of a radius, a height, a half extent */

enum shape_kind { SHAPE_SPHERE, SHAPE_CAPSULE, SHAPE_BOX };

struct shape {
    enum shape_kind kind;
    double radius_m;  /* of a sphere or a capsule */
    double height_m;  /* of a capsule, the whole: at least twice the radius */
    double half_m[3]; /* of a box, along its own axes; the third is up */
    double yaw_deg;   /* of a box, right-handed about up */
};

/* The first touch; without any, fraction is INFINITY and the rest says nothing. */
struct sweep_touch {
    double fraction;     /* of the way, 0 to 1 */
    bool starts_inside;  /* it overlaps the surface where it begins; fraction is 0 */
    double distance_m;   /* at fraction 0, of the core from the surface; of a box less than 0 */
    struct vec3 point;   /* on the surface */
    struct vec3 normal;  /* unit, from the surface to the shape */
    struct vec3 face;    /* unit, of the triangle that is touched, on the same side */
    uint32_t cell[2];    /* on a heightfield */
    int triangle;        /* on a heightfield; on a mesh -1 */
    uint32_t polygon;    /* on a mesh: its index in the uploaded file */
    const void *surface; /* set by the asker of several */
    bool is_ceiling;     /* likewise: it is never a floor */
};

enum sweep_core { CORE_POINT, CORE_SEGMENT, CORE_BOX };

struct sweep {
    struct vec3 from, along; /* along may be zero: what is touched there */
    struct vec3 axis[3];     /* unit; the third is up */
    double half[3];          /* of the core, along the axes */
    double radius;
    enum sweep_core core;
    /* Only triangles that it approaches: one that is touched at the start, and that the way does
     * not lead into, is ignored, for the distance from a triangle is convex along the way. */
    bool is_approaching;
    double floor_cosine; /* > 0: only triangles whose normal has so much of up, either way */
    struct vec3 reach;   /* half of its box, and a little more */
    double start_m;      /* the least distance of what it touches at the start, ignored or not */
    struct sweep_touch best;
};

/* The sweep of a shape between finite ends; up is unit. best is empty. */
void sweep_begin(struct sweep *s, const struct shape *shape, struct vec3 up, struct vec3 from,
                 struct vec3 to);

/* Another way of the same shape, which has touched nothing yet. */
void sweep_again(struct sweep *s, struct vec3 from, struct vec3 along);

/*
 * Asks a surface. True when s->best has become a touch of it: it is nearer, or the shape begins
 * deeper in it. Of triangles touched at the same fraction it is the most frontal one, then the
 * first. Allocates nothing; any thread with a reference.
 * Cost O(cells or polygons near the way up to the touch).
 */
bool heightfield_sweep(const struct heightfield *field, struct sweep *s);
bool mesh_sweep(const struct mesh *mesh, struct sweep *s);

/* The same of a mesh in a pose. */
bool moved_mesh_sweep(const struct mesh *mesh, const struct motion *motion, struct sweep *s);

#endif
