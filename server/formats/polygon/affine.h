/*
 * Places of the nodes of a scene: affine maps in float64.
 */
#ifndef KOTA_FORMATS_AFFINE_H
#define KOTA_FORMATS_AFFINE_H

#include "terrain/vec.h"

#include <stdbool.h>

struct affine {
    double m[3][4]; /* a row for each of x, y, z */
};

/* b first, then a. */
static inline struct affine affine_multiply(const struct affine *a, const struct affine *b)
{
    struct affine out;

    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 4; column++)
            out.m[row][column] = a->m[row][0] * b->m[0][column] + a->m[row][1] * b->m[1][column] +
                                 a->m[row][2] * b->m[2][column] + (column == 3 ? a->m[row][3] : 0);
    return out;
}

static inline struct vec3 affine_apply(const struct affine *a, struct vec3 v)
{
    return (struct vec3){a->m[0][0] * v.x + a->m[0][1] * v.y + a->m[0][2] * v.z + a->m[0][3],
                         a->m[1][0] * v.x + a->m[1][1] * v.y + a->m[1][2] * v.z + a->m[1][3],
                         a->m[2][0] * v.x + a->m[2][1] * v.y + a->m[2][2] * v.z + a->m[2][3]};
}

/* Does it turn fronts to backs? */
static inline bool affine_mirrors(const struct affine *a)
{
    struct vec3 x = {a->m[0][0], a->m[0][1], a->m[0][2]};
    struct vec3 y = {a->m[1][0], a->m[1][1], a->m[1][2]};
    struct vec3 z = {a->m[2][0], a->m[2][1], a->m[2][2]};

    return vec3_dot(x, vec3_cross(y, z)) < 0;
}

/* The same with every number positive: its products bound the sums on the way. */
static inline struct affine affine_absolute(const struct affine *a)
{
    struct affine out;

    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 4; column++)
            out.m[row][column] = fabs(a->m[row][column]);
    return out;
}

#endif
