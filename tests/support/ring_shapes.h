/*
 * Simple polygons of many corners for tests and benchmarks, each made by a seed.
 */
#ifndef KOTA_TESTS_RING_SHAPES_H
#define KOTA_TESTS_RING_SHAPES_H

#include "random.h"
#include "terrain/vec.h"

enum ring_shape {
    RING_STAR,    /* around the origin at random distances */
    RING_SPIRAL,  /* a band of five turns */
    RING_COMB,    /* long teeth, side by side, at an angle to the axes */
    RING_ZIGZAG,  /* a thin band to and fro */
    RING_KEYHOLE, /* a ring, its hole reached over a bridge: two edges that lie on one another */
    RING_PINCHED, /* teeth that meet in one place */
    RING_SHAPES
};

extern const char *const ring_shape_names[RING_SHAPES];

/* count corners, at least 8 and even, counter-clockwise, within 1 of the origin. */
void ring_shape(enum ring_shape shape, struct random *random, uint32_t count, struct vec2 *points);

#endif
