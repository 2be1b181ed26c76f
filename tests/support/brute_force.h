/*
 * The oracle: a heightfield as a plain list of triangles, asked one by one in double precision,
 * with nothing of the server's own code.
 */
#ifndef KOTA_TESTS_BRUTE_FORCE_H
#define KOTA_TESTS_BRUTE_FORCE_H

#include "terrain/field_ray/ray.h"

struct brute_triangle {
    struct vec3 v[3];
    uint32_t cell[2];
    int number;
};

struct brute_field {
    struct heightfield_spec spec;
    const float *samples;
    struct brute_triangle *triangles;
    size_t count;
};

/* From samples[rows][cols], which it borrows; aborts without memory. */
void brute_field_init(struct brute_field *brute, const struct heightfield_spec *spec,
                      const float *samples);
void brute_field_finish(struct brute_field *brute);

struct brute_hit {
    double t;         /* INFINITY: none */
    double t_loose;   /* of triangles grown by the tolerance */
    bool near_border; /* the hit at t lies within the tolerance of the surface's own edge */
};

/*
 * Möller-Trumbore over all triangles (closed), two-sided; tolerance in barycentric units.
 */
struct brute_hit brute_field_ray(const struct brute_field *brute, const struct ray *ray,
                                 double tolerance);

#endif
