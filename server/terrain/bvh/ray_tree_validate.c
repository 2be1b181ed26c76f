/*
 * Validates a tree of ray_tree.h: boxes, blocks, and each triangle of the polygons.
 */
#include "terrain/bvh/ray_tree.h"

#include <stdlib.h>

/* Within a step of the grid. */
static bool box_holds(const struct ray_tree_node *node, unsigned i,
                      const struct ray_tree_block *block, const uint16_t at[3][RAY_TREE_WIDE],
                      unsigned lane)
{
    for (int a = 0; a < 3; a++) {
        float place = block->base[a] + block->step * (float)at[a][lane];

        if (!(place >= node->side[a][0][i] - block->step &&
              place <= node->side[a][1][i] + block->step))
            return false;
    }
    return true;
}

static bool block_is_held(const struct ray_tree *tree, const struct ray_tree_node *node, unsigned i)
{
    const struct ray_tree_block *block = &tree->blocks[ray_tree_block_of(node->child[i])];

    for (unsigned k = 0; k < RAY_TREE_WIDE; k++) {
        bool has = k < ray_tree_count_of(node->child[i]);

        if (!has && block->polygon[k] != RAY_TREE_NONE)
            return false;
        for (int c = 0; c < 3 && has; c++)
            if (!box_holds(node, i, block, block->at[c], k))
                return false;
    }
    return true;
}

static bool node_is_held(const struct ray_tree *tree, const struct ray_tree_node *node, unsigned i)
{
    const struct ray_tree_node *below = &tree->nodes[node->child[i]];

    for (int a = 0; a < 3; a++)
        for (unsigned k = 0; k < RAY_TREE_WIDE; k++)
            if (below->side[a][0][k] < node->side[a][0][i] ||
                below->side[a][1][k] > node->side[a][1][i])
                return false;
    return true;
}

/* Counts the references to each node and block. */
static bool node_is_right(const struct ray_tree *tree, size_t at, uint8_t *nodes, uint8_t *blocks)
{
    const struct ray_tree_node *node = &tree->nodes[at];

    for (unsigned i = 0; i < RAY_TREE_WIDE; i++) {
        uint32_t child = node->child[i];

        if (!(node->side[0][0][i] <= node->side[0][1][i]))
            continue;
        if (child & RAY_TREE_BLOCK) {
            child = ray_tree_block_of(child);
            if (child >= tree->block_count || blocks[child]++ || !block_is_held(tree, node, i))
                return false;
        } else if (child <= at || child >= tree->node_count || nodes[child]++ ||
                   !node_is_held(tree, node, i)) {
            return false;
        }
    }
    return true;
}

/* Is each triangle of the fans in the blocks? Those of a polygon may be in any order. */
static bool triangles_are_there(const struct ray_tree *tree, const struct ray_tree_polygons *p,
                                size_t first, uint32_t *counts)
{
    for (size_t b = 0; b < tree->block_count; b++)
        for (unsigned k = 0; k < RAY_TREE_WIDE; k++) {
            uint32_t polygon = tree->blocks[b].polygon[k];

            if (polygon == RAY_TREE_NONE)
                continue;
            polygon &= ~RAY_TREE_PART;
            if (polygon < first || polygon >= p->count)
                return false;
            counts[polygon - first]++;
        }
    for (size_t i = first; i < p->count; i++)
        if (counts[i - first] != (ray_tree_takes(p, i) ? ray_tree_face(p, i).count - 2 : 0))
            return false;
    return true;
}

bool ray_tree_validate(const struct ray_tree *tree, const struct ray_tree_polygons *polygons,
                       size_t first, struct err *err)
{
    uint8_t *nodes = calloc(tree->node_count + 1, 1), *blocks = calloc(tree->block_count + 1, 1);
    uint32_t *counts = calloc(polygons->count - first + 1, sizeof *counts);
    bool is_right = nodes && blocks && counts && tree->node_count > 0;

    for (size_t i = 0; i < tree->node_count && is_right; i++)
        is_right = (i == 0 || nodes[i] == 1) && node_is_right(tree, i, nodes, blocks);
    for (size_t i = 0; i < tree->block_count && is_right; i++)
        is_right = blocks[i] == 1;
    is_right = is_right && triangles_are_there(tree, polygons, first, counts);
    free(nodes);
    free(blocks);
    free(counts);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the tree of %zu triangles is wrong, or there is no memory",
                tree->triangle_count);
    return is_right;
}
