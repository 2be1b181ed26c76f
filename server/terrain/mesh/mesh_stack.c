/*
 * Where many floors lie over one another, a point is between two of them, and all others are to be
 * left out unread.
 *
 * A column's list runs from the highest floor down. A long one has a binary tree over its pairs of
 * blocks, after the last block, as a heap: node 1 is the root, node i has the children 2i and
 * 2i + 1, and pair k is node leaves + k. A node has the lowest and the highest z of all polygons
 * below it. A floor is looked for from the front: a node whose lowest z is above the limit, or
 * whose highest z is below the best floor so far, is passed over with all that is below it. A
 * ceiling is looked for from the back, in the mirrored tree. So squares in a stack cost O(log n)
 * nodes and one or two pairs. Floors that overlap in height, such as slopes over the whole cell,
 * are still tested one by one.
 *
 * The heights are those between which floor_mask.h holds every answer. A node is passed over only
 * where nothing below it could be the answer, not even as the first of two at one height: so no bit
 * of an answer changes.
 */
#include "terrain/mesh/mesh_stack.h"

#include "terrain/mesh/mesh_data.h"

static uint32_t pairs_of(uint32_t count)
{
    return (count + STACK_LANES - 1) / STACK_LANES;
}

static size_t lane_blocks(uint32_t count)
{
    return ((size_t)count + COLUMN_LANES - 1) / COLUMN_LANES;
}

/* A power of two: all nodes are in order then. */
static uint32_t leaves_of(uint32_t count)
{
    uint32_t leaves = 1;

    while (leaves < pairs_of(count))
        leaves *= 2;
    return leaves;
}

size_t stack_blocks(uint32_t count)
{
    size_t bytes = (size_t)2 * leaves_of(count) * sizeof(struct stack_range);

    return lane_blocks(count) + (count > STACK_LEAST ? (bytes + sizeof(struct column_block) - 1) /
                                                           sizeof(struct column_block)
                                                     : 0);
}

void stack_set(struct column_block *list, uint32_t count, const struct mesh *mesh)
{
    struct stack_range *nodes = (void *)(list + lane_blocks(count));
    uint32_t leaves = leaves_of(count);

    for (uint32_t i = 0; i < 2 * leaves; i++)
        nodes[i] = (struct stack_range){INFINITY, -INFINITY};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = *column_lane(list, count, i).polygon & COLUMN_POLYGON;
        struct z_range own = mesh_range(mesh, id);
        struct stack_range *pair = &nodes[leaves + i / STACK_LANES];

        pair->z_min = fminf(pair->z_min, own.min);
        pair->z_max = fmaxf(pair->z_max, own.max);
    }
    for (uint32_t i = leaves - 1; i > 0; i--)
        nodes[i] = (struct stack_range){fminf(nodes[2 * i].z_min, nodes[2 * i + 1].z_min),
                                        fmaxf(nodes[2 * i].z_max, nodes[2 * i + 1].z_max)};
}

/* The node at the same place from the other side. */
static uint32_t mirrored(uint32_t node)
{
    uint32_t first = 1u << (31 - __builtin_clz(node)); /* of its level */

    return 3 * first - 1 - node;
}

uint32_t stack_next(const struct column_block *list, uint32_t count, uint32_t from, double sign,
                    double limit, double best)
{
    const struct stack_range *nodes = (const void *)(list + lane_blocks(count));
    uint32_t leaves = leaves_of(count), node = from < leaves ? leaves + from : 0;

    if (from == 0)
        node = 1;
    while (node > 0) {
        struct stack_range r = nodes[sign > 0 ? node : mirrored(node)];
        double low = sign > 0 ? (double)r.z_min : -(double)r.z_max;
        double high = sign > 0 ? (double)r.z_max : -(double)r.z_min;

        if (low <= limit && high >= best) {
            if (node >= leaves)
                return node - leaves;
            node *= 2;
            continue;
        }
        while (node & 1) /* a last child: on after its parent */
            node /= 2;
        node += node > 0;
    }
    return UINT32_MAX;
}

uint32_t stack_pair(uint32_t count, uint32_t at, double sign)
{
    return sign > 0 ? at : leaves_of(count) - 1 - at;
}
