/*
 * The walk of ray_tree_walk.h compiled for AVX2: problem, approach and invariants are told there.
 * Eight lanes are one vector, which is as wide as a node, so a wider vector has nothing to hold;
 * what this level has over the one before are its instructions. Where the compiler is not told that
 * the machine has them, there is nothing here, and nobody asks.
 */
#ifdef __AVX2__

#include "terrain/ray_tree_begin.h"

#define RAY_TREE_WALK ray_tree_walk_avx2
#define RAY_TREE_TURNS ray_tree_turns_avx2
#define RAY_TREE_BEGIN ray_tree_begin_axes
#include "terrain/ray_tree_turns.h"

void ray_tree_ask_avx2(const struct ray_tree *tree, const struct ray_tree_line *line)
{
    struct ray_tree_walk w;

    if (ray_tree_begin_axes(tree, line, &w))
        ray_tree_walk_avx2(&w);
}

#endif
