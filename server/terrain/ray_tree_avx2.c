/*
 * The walk of ray_tree_walk.h compiled for AVX2: problem, approach and invariants are told there.
 * Eight lanes are one vector, which is as wide as a node, so a wider vector has nothing to hold;
 * what this level has over the one before are its instructions. Where the compiler is not told that
 * the machine has them, there is nothing here, and nobody asks.
 */
#ifdef __AVX2__

#define RAY_TREE_WALK ray_tree_walk_avx2
#define RAY_TREE_TURNS ray_tree_turns_avx2
#include "terrain/ray_tree_turns.h"

#endif
