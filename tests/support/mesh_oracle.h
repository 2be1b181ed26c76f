/*
 * The oracle for meshes: convex polygons asked one by one in double precision, in the locale's
 * frame, with nothing of the server's own code; and random soups to ask.
 */
#ifndef KOTA_TESTS_MESH_ORACLE_H
#define KOTA_TESTS_MESH_ORACLE_H

#include "tests/support/random.h"
#include "tests/support/soup.h"

/* Where a vertical line meets one polygon. */
struct oracle_crossing {
    double height;  /* along up, from the asked point */
    double doubt;   /* how much rounding may change the height */
    bool is_border; /* within the tolerance of the polygon's edge: may be missed */
    uint32_t polygon;
};

/*
 * All crossings of the line through point along up (unit) with polygons that are not vertical;
 * grown by the tolerance (metres). out[soup->polygon_count]; the count.
 */
uint32_t oracle_column(const struct polygon_soup *soup, struct vec3 up, struct vec3 point,
                       double tolerance, struct oracle_crossing *out);

struct oracle_hit {
    double t;       /* INFINITY: none */
    double t_loose; /* of triangles grown by the tolerance, in barycentric units */
    double t_tight; /* of triangles shrunk by it; what cannot be missed */
};

/* Fans of triangles by Möller and Trumbore, two-sided. */
struct oracle_hit oracle_ray(const struct polygon_soup *soup, const struct ray *ray,
                             double tolerance);

/* A unit vector. */
struct vec3 oracle_direction(struct random *random);

/*
 * A soup that stands under gravity -up: ground with shared edges and holes, loose triangles,
 * convex polygons, slivers, vertical walls, polygons that lie on one another. About `size` metres.
 */
void oracle_soup(struct random *random, struct vec3 up, double size, struct soup *out);

/* Two unit vectors across up, right-handed with it. */
void oracle_axes(struct vec3 up, struct vec3 *east, struct vec3 *north);

#endif
