/*
 * Cutting a list of boxes in two, for the tree of ray_tree.h. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_SPLIT_H
#define KOTA_TERRAIN_RAY_TREE_SPLIT_H

#include "terrain/kernels/lanes.h"

#include <stddef.h>
#include <stdint.h>

/* A triangle of a polygon and its box. Numbers below 2^28 look like plain floats with this. */
#define RAY_TREE_ITEM 0x40000000u

union ray_tree_ref {
    struct {
        f32x4 low, high;
    } box;
    struct {
        float low[3];
        uint32_t polygon; /* RAY_TREE_ITEM | number */
        float high[3];
        uint32_t corner; /* RAY_TREE_ITEM | its last; the others: the first, the one before */
    } of;
};

/* Boxes begin .. begin + count - 1 of one of two arrays; those of the other are free there. */
struct ray_tree_range {
    f32x4 low, high; /* lane 3 is unused */
    float surface;   /* half of it */
    uint32_t begin, count;
    uint32_t depth; /* cuts above it, RAY_TREE_DEPTH at most */
    unsigned array;
};

/* All of refs[0][count]. */
struct ray_tree_range ray_tree_range_of(union ray_tree_ref *const refs[2], size_t count);

/*
 * Cuts one of 9 boxes or more: none of the parts is empty. The same boxes in the same order give
 * the same parts in the same order. O(count).
 */
void ray_tree_split(union ray_tree_ref *const refs[2], const struct ray_tree_range *whole,
                    struct ray_tree_range parts[2]);

#endif
