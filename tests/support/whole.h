/*
 * Vectors of whole numbers, for oracles that round nothing. Products of three must stay below 2^63:
 * the caller chooses his lattice by that.
 */
#ifndef KOTA_TESTS_WHOLE_H
#define KOTA_TESTS_WHOLE_H

#include "terrain/vec.h"

#include <stdint.h>

struct whole {
    int64_t x, y, z;
};

static inline struct whole whole_sub(struct whole a, struct whole b)
{
    return (struct whole){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct whole whole_cross(struct whole a, struct whole b)
{
    return (struct whole){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline int64_t whole_dot(struct whole a, struct whole b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vec3 whole_vec3(struct whole a)
{
    return (struct vec3){(double)a.x, (double)a.y, (double)a.z};
}

#endif
