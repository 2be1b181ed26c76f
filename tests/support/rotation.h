/*
 * Rotations for tests.
 */
#ifndef KOTA_TESTS_ROTATION_H
#define KOTA_TESTS_ROTATION_H

#include "support/random.h"
#include "terrain/vec.h"

#include <string.h>

/* A unit quaternion x y z w: any, one in four of right angles or half turns. */
static inline void rotation_random(struct random *random, double q[4])
{
    static const double right[][4] = {
        {0.5, 0.5, 0.5, 0.5}, {1, 0, 0, 0}, {0, 0, 0, 1}, {0, M_SQRT1_2, 0, M_SQRT1_2}};
    double length;

    if (random_below(random, 4) == 0) {
        memcpy(q, right[random_below(random, 4)], sizeof right[0]);
        return;
    }
    do
        for (int i = 0; i < 4; i++)
            q[i] = random_in(random, -1, 1);
    while ((length = hypot(hypot(q[0], q[1]), hypot(q[2], q[3]))) < 0.1);
    for (int i = 0; i < 4; i++)
        q[i] /= length;
}

/* v turned by it, by another way than the server's. */
static inline struct vec3 rotation_turn(const double q[4], struct vec3 v)
{
    struct vec3 u = {q[0], q[1], q[2]};
    struct vec3 t = vec3_add(vec3_cross(u, v), vec3_scale(v, q[3]));
    double w = -vec3_dot(u, v);

    /* q v is (t, w); times the conjugate (-u, q3) */
    return vec3_add(vec3_sub(vec3_scale(t, q[3]), vec3_cross(t, u)), vec3_scale(u, -w));
}

#endif
