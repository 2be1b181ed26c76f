/*
 * Long lists of a column in order of height. Private to terrain/. How and why: mesh_stack.c.
 */
#ifndef KOTA_TERRAIN_MESH_STACK_H
#define KOTA_TERRAIN_MESH_STACK_H

#include "terrain/mesh/floor_grid.h"

enum {
    STACK_LEAST = 64, /* a list with more polygons has a stack */
    STACK_LANES = 2 * COLUMN_LANES
};

/* Of the polygons of a pair of blocks, or of several pairs; of none: INFINITY, -INFINITY. */
struct stack_range {
    float z_min, z_max;
};

/* The blocks of a list, its stack with them. */
size_t stack_blocks(uint32_t count);

/* Fills the stack of a list whose blocks are there; for lists that have one. */
void stack_set(struct column_block *list, uint32_t count, const struct mesh *mesh);

/*
 * The next pair of a list that may hold the answer: at `from` or after it in the order of tests,
 * 0 first. That is from the highest down for a floor (sign 1), and from the lowest up for a ceiling
 * (sign -1). limit and best as in struct column. UINT32_MAX: there is none.
 */
uint32_t stack_next(const struct column_block *list, uint32_t count, uint32_t from, double sign,
                    double limit, double best);

/* The index in the list of a pair that stack_next has found. */
uint32_t stack_pair(uint32_t count, uint32_t at, double sign);

#endif
