/*
 * A mesh: convex polygons under gravity in a quadtree (QOTA: Barrus & Waters 1996), and what stands
 * above and below a point. Polygons may overlap and leave holes.
 *
 * In memory a mesh is one flat block without pointers, the image: the form that is written to disk
 * is the form that is asked. Built meshes are immutable and counted; queries allocate nothing.
 * Coordinates in and out are the locale's; inside, the quadtree works in the frame that Q's
 * rotation R turns so that gravity is -Z (and X-Y along the terrain's own direction); answers are
 * turned back.
 */
#ifndef KOTA_TERRAIN_MESH_H
#define KOTA_TERRAIN_MESH_H

#include "base/err.h"
#include "terrain/ray.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Polygons as they come from a file: polygon i has vertices starts[i] .. starts[i+1]-1 of corners.
 */
struct polygon_soup {
    const struct vec3 *vertices;
    size_t vertex_count;
    const uint32_t *corners; /* indices of vertices, either way round */
    const uint32_t *starts;  /* polygon_count + 1 */
    size_t polygon_count;
};

enum mesh_cuts {
    MESH_CUTS_CHOSEN, /* through vertices where that lowers the expected number of tests */
    MESH_CUTS_EQUAL   /* Q's four equal quadrants */
};

struct mesh_options {
    struct vec3 gravity;   /* unit; {0,0,-1} */
    uint32_t max_polygons; /* a leaf with more is split; 0: 12 */
    uint32_t max_depth;    /* 0: 12 */
    enum mesh_cuts cuts;
    bool keep_axes; /* do not turn X-Y to the terrain's own direction */
};

/* What became of the polygons. */
struct mesh_import {
    uint64_t kept;    /* convex pieces in the mesh */
    uint64_t split;   /* concave input polygons that were split into convex pieces */
    uint64_t dropped; /* degenerate ones: under 3 corners, zero area, self-intersecting, not flat */
};

struct mesh_stats {
    uint64_t nodes, leaves, polygons, bytes;
    uint32_t depth;
    double average_tests; /* polygons in a leaf, weighted by the leaves' areas (Q, table 4) */
};

struct mesh;

/*
 * ERR_BAD_INPUT   a vertex that is not finite, an index out of range (named)
 * ERR_TOO_LARGE   more than 2^32 - 2 corners
 * ERR_UNPROCESSABLE  no polygon is left
 * ERR_NO_MEMORY
 * Bounded time and memory however the polygons lie: coincident ones end at max_depth.
 */
struct mesh *mesh_create(const struct polygon_soup *soup, const struct mesh_options *options,
                         struct mesh_import *import, struct err *err);
struct mesh *mesh_ref(const struct mesh *mesh);
void mesh_unref(struct mesh *mesh);

/* The image: versioned, little-endian, checksummed, content-hashed. Borrowed. */
const void *mesh_image(const struct mesh *mesh, size_t *length);
/*
 * A mesh over an image (copied, or borrowed with `release(context)` called by the last unref, for a
 * mapped file). Every offset and checksum is verified first: hostile bytes are ERR_BAD_INPUT.
 */
struct mesh *mesh_open(const void *image, size_t length, void (*release)(void *context),
                       void *context, struct err *err);

bool mesh_validate(const struct mesh *mesh, struct err *err);
void mesh_stats(const struct mesh *mesh, struct mesh_stats *out);
struct box3 mesh_bounds(const struct mesh *mesh);

/* A surface on the gravity line through a point. */
struct mesh_contact {
    struct vec3 point;
    struct vec3 normal; /* unit, against gravity */
    double distance_m;  /* along gravity from the asked point; > 0 below it, < 0 above it */
    uint32_t polygon;   /* index in the uploaded file */
};

/*
 * The highest surface at or below `point` lifted by reach_up_m (>= 0, may be INFINITY) against
 * gravity: the floor. False when there is none.
 */
bool mesh_floor(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                struct mesh_contact *out);

/*
 * The lowest surface above `above_m` and at or above `lift_m`, both heights over `point` against
 * gravity (above_m may be -INFINITY: no floor): the ceiling. False when there is none.
 */
bool mesh_ceiling(const struct mesh *mesh, struct vec3 point, double above_m, double lift_m,
                  struct mesh_contact *out);

struct mesh_hit {
    double t;
    struct vec3 point, normal; /* unit; against gravity, for a vertical polygon against the ray */
    uint32_t polygon;
};

/* The first polygon along a ray, vertical ones included; surfaces have two sides; watertight. */
bool mesh_ray(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
              struct mesh_hit *hit);

#endif
