/*
 * A line as the levels of ray_tree.h walk with it. Inside of the room only.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_LEVELS_H
#define KOTA_TERRAIN_RAY_TREE_LEVELS_H

#include "terrain/ray_tree.h"

/* In the tree's coordinates; u runs from 0 where the line enters the tree's box. */
struct ray_tree_walk {
    const struct ray_tree *tree;
    const struct ray_tree_line *line;
    float o[3], inv[3];
    uint32_t near_side[3]; /* 0: it enters at the low side of an axis, 1: at the high one */
    uint32_t kx, ky, kz;   /* the direction is largest along kz */
    float shear_x, shear_y, inv_z;
    float end;             /* the greatest u that still counts */
    double t_base, t_to_u; /* u = (t - t_base) t_to_u */
};

void ray_tree_walk_scalar(struct ray_tree_walk *walk);
void ray_tree_walk_avx2(struct ray_tree_walk *walk);
void ray_tree_walk_avx512(struct ray_tree_walk *walk);

/* u of a t, a little more. */
static inline float ray_tree_end(const struct ray_tree_walk *walk, double t)
{
    return (float)((t - walk->t_base) * walk->t_to_u) + walk->tree->end_slack;
}

#endif
