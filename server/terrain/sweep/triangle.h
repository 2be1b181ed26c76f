/*
 * A moved shape and one triangle, exactly: face, edges and corners in float64. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_TRIANGLE_H
#define KOTA_TERRAIN_TRIANGLE_H

#include "terrain/sweep/sweep.h"

/* A walk of a sweep: what tests of boxes need. */
struct sweep_slabs {
    double inverse[3]; /* of the way; large where it does not go */
};

void sweep_slabs_set(struct sweep_slabs *slabs, const struct sweep *s);

/*
 * Does the shape's own box meet the box low to high (relative to s->from), not after the best
 * touch? enter: the fraction from which on.
 */
static inline bool sweep_meets_box(const struct sweep_slabs *slabs, const struct sweep *s,
                                   struct vec3 low, struct vec3 high, double *enter)
{
    double t0 = 0, t1 = s->best.fraction < 1 ? s->best.fraction : 1;
    const double near[3] = {low.x - s->reach.x, low.y - s->reach.y, low.z - s->reach.z};
    const double far[3] = {high.x + s->reach.x, high.y + s->reach.y, high.z + s->reach.z};

    for (int i = 0; i < 3; i++) {
        double a = near[i] * slabs->inverse[i], b = far[i] * slabs->inverse[i];
        double first = a < b ? a : b, last = a < b ? b : a;

        t0 = first > t0 ? first : t0;
        t1 = last < t1 ? last : t1;
    }
    *enter = t0;
    return t0 <= t1;
}

/* The same way in another frame, whose axes are set: best stays. */
void sweep_place(struct sweep *s, struct vec3 from, struct vec3 along);

/*
 * The triangle of corners relative to s->from. True: it is the best touch now; cell, triangle and
 * polygon of s->best are the caller's to set. order: of two that are equal the lesser is first;
 * best_order: of the best one.
 */
bool sweep_triangle(struct sweep *s, const struct vec3 corner[3], uint64_t order,
                    uint64_t *best_order);

/*
 * The best touch of a point is a ray's hit at t: the fraction. It has the normal that points
 * against the way. Cell, triangle and polygon are the caller's to set.
 */
void sweep_take_hit(struct sweep *s, double t, struct vec3 point, struct vec3 normal);

#endif
