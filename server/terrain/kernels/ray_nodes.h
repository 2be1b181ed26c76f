/*
 * Shared by rays over minmax16 nodes: ray_single.c and ray_stream.c. Private to terrain/.
 *
 * Problem: ray.c's walk tests one node after the other, each result decides a jump, and the
 * processor predicts most of them wrongly. Approach: front to back through nodes of 4×4 children
 * (minmax16.h) with a stack of masks. A node's sixteen boxes are tested by one pass of float32
 * arithmetic: the ray's parameter at the near sides of the children, the heights between,
 * comparisons, one mask. Lanes are turned so that columns and rows go in the ray's direction; a ray
 * passes columns and rows monotonely, so the lowest set bit is always the next child on its way,
 * and nothing is sorted. The last squares are 4×4 cells, whose bounds are made of their 25 samples
 * in the same way; no memory is spent on them.
 *
 * float32 only decides which nodes are visited. All that it loses (32 roundings at the size of the
 * root node and of the field's heights) is padded, so a box is never left out wrongly; a cell that
 * is left goes through the walk's own arithmetic in float64 (cell_single_hit). So the answer has
 * the bits of ray.c's.
 *
 * Invariants: a lane that the ray's ground line passes and whose heights it meets is in the mask; a
 * cell off the line is refused by its crossings. Rays along a grid line, which walk on both its
 * sides, heights beyond MINMAX16_Z_MAX_M and rays from very far away are left to ray.c.
 *
 * Source of the wide traversal: Wald, Benthin, Boulos: Getting Rid of Packets, 2008.
 */
#ifndef KOTA_TERRAIN_RAY_NODES_H
#define KOTA_TERRAIN_RAY_NODES_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/kernels/lanes.h"
#include "terrain/field_ray/ray_ends.h"
#include "terrain/field/minmax16.h"

enum {
    /* of a path of three children, four bits each: columns, rows */
    LEAF_COLUMNS = 0x333,
    LEAF_ROWS = 0xccc
};

/* Side of the children of a leaf, [0], and of a node of level L, [L + 1], in cells. */
static const _Alignas(64) float side_of[MINMAX16_CHILDREN] = {
    1, 0x1p2f, 0x1p4f, 0x1p6f, 0x1p8f, 0x1p10f, 0x1p12f, 0x1p14f, 0x1p16f, 0x1p18f};

static inline const struct minmax16_node *top_node(const struct heightfield *field, int level,
                                                   uint32_t column, uint32_t row)
{
    const struct top_level *top = &field->minmax16_level[level - MINMAX16_TILE_LEVELS];
    uint32_t shift = 2 * (uint32_t)level + 4;

    return &field->minmax16_top[top->offset + (size_t)(row >> shift) * top->cols +
                                (column >> shift)];
}

/* Bytes of a node, each to a number of 32 bits: byte i ^ flip, and three zeros. */
#define NODE_BYTE(i, flip) (char)((i) ^ (flip)), -1, -1, -1
#define NODE_BYTES(i, flip)                                                                        \
    NODE_BYTE(i, flip), NODE_BYTE((i) + 1, flip), NODE_BYTE((i) + 2, flip), NODE_BYTE((i) + 3, flip)

#endif
#endif
