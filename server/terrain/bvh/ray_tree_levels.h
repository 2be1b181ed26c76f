/*
 * A line as the kernels of each level walk with it. Private to terrain/.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_LEVELS_H
#define KOTA_TERRAIN_RAY_TREE_LEVELS_H

#include "terrain/bvh/ray_tree.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define RAY_TREE_STEEP 1e18      /* 1 over the least component of a direction that counts */
#define RAY_TREE_NEAR 2.0F       /* a line that begins so near is not clipped (ray_tree.c) */
#define RAY_TREE_FAR_OFF 0x1p20F /* no line begins there, but where an image lies about its box */

/* In the tree's coordinates; u runs from 0 where the line enters the tree's box. */
struct ray_tree_walk {
    const struct ray_tree *tree;
    const struct ray_tree_line *line;
    float o[3], inv[3], shift[3]; /* shift: o inv */
    uint32_t near_side[3];        /* 0: it enters at the low side of an axis, 1: at the high one */
    uint32_t kx, ky, kz;          /* the direction is largest along kz */
    float shear_x, shear_y, inv_z;
    float end;             /* the greatest u that still counts */
    double t_base, t_to_u; /* u = (t - t_base) t_to_u */
    float grown[3];        /* of ray_tree_begin_grown: by how much boxes are, times |inv| */
};

/* Where the line begins; false: it passes the tree. */
bool ray_tree_begin(const struct ray_tree *tree, const struct ray_tree_line *line,
                    struct ray_tree_walk *walk);

/* The same with all boxes grown by reach each way. */
bool ray_tree_begin_grown(const struct ray_tree *tree, const struct ray_tree_line *line,
                          const double reach[3], struct ray_tree_walk *walk);

/* u of a t, a little more. */
static inline float ray_tree_end(const struct ray_tree_walk *walk, double t)
{
    return (float)((t - walk->t_base) * walk->t_to_u) + walk->tree->end_slack;
}

#endif
