/*
 * The oracle for sweeps: a shape and one triangle in long double, by their distance only, with
 * nothing of the server's own code. The distance of two convex sets is convex along the way, so
 * Newton's steps from the start never pass the first touch.
 */
#ifndef KOTA_TESTS_SWEEP_ORACLE_H
#define KOTA_TESTS_SWEEP_ORACLE_H

#include "terrain/sweep/sweep.h"

struct oracle_touch {
    double fraction; /* INFINITY: none */
    double start;    /* how far the shape is from the triangle at the start; < 0: within it */
    double slope;    /* metres by which it comes nearer, per whole way, at the touch */
    double least;    /* without a touch: the least distance that was seen */
};

/* The way of `shape` under a unit vector up. */
struct oracle_way {
    const struct shape *shape;
    struct vec3 up, from, to;
};

struct oracle_touch oracle_sweep(const struct oracle_way *way, const struct vec3 corner[3]);

/* The distance of the whole shape at a place; 0: they overlap. */
double oracle_clearance(const struct shape *shape, struct vec3 up, struct vec3 at,
                        const struct vec3 corner[3]);

#endif
