/*
 * Walking the tree of ray_tree.h: the parts that all levels share.
 *
 * A line is clipped to the tree's box in double precision and begins again there, so that all that
 * follows has coordinates of about 1 and float32 is good for 2^-24 of the tree's size. The errors
 * are bounded by constants, and no test depends on the sizes of its own numbers:
 *
 * - Boxes. A corner is rounded by 2^-25, an origin by 2^-25; (side - o) * inv has three roundings
 *   more, each of 2^-24 of a distance below 4. Said as a place of the side that is below 2^-20, by
 *   which boxes are grown (ray_tree_build.c); growing needs no care for the direction's sign.
 *   A component of the direction below 1e-18 counts as that: it moves a line by less than any
 *   rounding.
 * - Triangles (Woop, Benthin, Wald: Watertight Ray/Triangle Intersection, 2013). A place in the
 *   line's space is off by e < 2^-20, so a turn a × b by e (|a| + |b|) + 2 e² and its own
 *   roundings. It passes unless one turn is clearly to the left and one clearly to the right. That
 *   is tested for fans of triangles with the same signs: when a line passes all edges of a polygon
 *   on one side, it passes those of one triangle of its fan, for each diagonal has a sign that is
 *   opposite for the two triangles beside it. No polygon has to be flat or convex for this.
 *
 * A line that begins within 2 of the tree's middle (RAY_TREE_NEAR) may be walked from there: its
 * origin is rounded by 2^-24, distances are below 4 as well, and the sums stay below the same e.
 *
 * A line that is walked backwards begins at its far end with the opposite direction.
 *
 * Boxes that are grown for a shape reach out to 1 + R, and all errors are as many times as large:
 * they are grown by GROWN_SLACK (1 + R) more, which is also more than a u may be off.
 */
#include "terrain/bvh/ray_tree.h"

#include "terrain/bvh/ray_tree_levels.h"
#include "terrain/bvh/woop.h"
#include "terrain/kernels/kernels.h"

static double inverse_of(double d)
{
    return fabs(d) > 1 / RAY_TREE_STEEP ? 1 / d : copysign(RAY_TREE_STEEP, d);
}

#define GROWN_SLACK 0x1p-19

/* Where the line is in the tree's box, grown by reach; false: nowhere. */
ALWAYS_INLINE bool line_clip(const struct ray_tree *tree, const struct ray_tree_line *line,
                             const double inv[3], const double *reach, double *t0, double *t1)
{
    *t0 = line->low;
    *t1 = line->high;
    for (int i = 0; i < 3; i++) {
        /* no branch by the direction */
        const double side[2] = {tree->low[i] - (reach ? reach[i] : 0),
                                tree->high[i] + (reach ? reach[i] : 0)};
        int near = inv[i] < 0;
        double enter = (side[near] - line->o[i]) * inv[i];
        double leave = (side[near ^ 1] - line->o[i]) * inv[i];

        *t0 = enter > *t0 ? enter : *t0;
        *t1 = leave < *t1 ? leave : *t1;
    }
    return *t0 <= *t1;
}

/* From where it is near; backwards: with the opposite direction. */
ALWAYS_INLINE bool line_begin(struct ray_tree_walk *w, const double inv[3], const double *reach)
{
    const struct ray_tree_line *line = w->line;
    double t0, t1;

    if (!line_clip(w->tree, line, inv, reach, &t0, &t1))
        return false;
    w->t_base = line->is_backward ? t1 : t0;
    w->t_to_u = line->is_backward ? -w->tree->scale : w->tree->scale;
    w->end = ray_tree_end(w, line->is_backward ? t0 : t1);
    return true;
}

static void axes_set(struct ray_tree_walk *w, const double d[3])
{
    double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]), inv_z;

    int kz = axis_of_largest(x, y, z), kx = axis_after(kz);

    w->kz = (uint32_t)kz;
    w->kx = (uint32_t)kx;
    w->ky = (uint32_t)axis_after(kx);
    inv_z = (double)w->inv[w->kz];
    w->shear_x = (float)(d[w->kx] * inv_z);
    w->shear_y = (float)(d[w->ky] * inv_z);
    w->inv_z = w->inv[w->kz];
}

/* reach NULL, a constant of each use: the boxes as they are. */
ALWAYS_INLINE bool begin(const struct ray_tree *tree, const struct ray_tree_line *line,
                         const double *reach, struct ray_tree_walk *w)
{
    double most = reach ? fmax(fmax(reach[0], reach[1]), reach[2]) : 0;
    double more = GROWN_SLACK * (1 + tree->scale * most);
    double inv[3], sign = line->is_backward ? -1 : 1, d[3];

    w->tree = tree;
    w->line = line;
    for (int i = 0; i < 3; i++)
        inv[i] = inverse_of(line->d[i]);
    if (!line_begin(w, inv, reach))
        return false;
    for (int i = 0; i < 3; i++) {
        d[i] = sign * line->d[i];
        w->o[i] = (float)((line->o[i] + line->d[i] * w->t_base - tree->middle[i]) * tree->scale);
        w->inv[i] = (float)(sign * inv[i]);
        w->shift[i] = w->o[i] * w->inv[i];
        w->near_side[i] = w->inv[i] < 0;
        if (reach)
            w->grown[i] = (float)(tree->scale * reach[i] + more) * fabsf(w->inv[i]);
        if (!(fabsf(w->o[i]) <=
              RAY_TREE_FAR_OFF)) /* infinite numbers would find children that are none */
            return false;
    }
    axes_set(w, d);
    return true;
}

bool ray_tree_begin(const struct ray_tree *tree, const struct ray_tree_line *line,
                    struct ray_tree_walk *w)
{
    return begin(tree, line, NULL, w);
}

bool ray_tree_begin_grown(const struct ray_tree *tree, const struct ray_tree_line *line,
                          const double reach[3], struct ray_tree_walk *w)
{
    return begin(tree, line, reach, w);
}

static void depths_below(const struct ray_tree *tree, uint32_t at, uint32_t depth, uint32_t *depths)
{
    const struct ray_tree_node *node = &tree->nodes[at];

    for (int i = 0; i < RAY_TREE_WIDE; i++) {
        if (!(node->side[0][0][i] <= node->side[0][1][i])) /* none */
            continue;
        if (node->child[i] & RAY_TREE_BLOCK)
            depths[depth]++;
        else
            depths_below(tree, node->child[i], depth + 1, depths);
    }
}

void ray_tree_depths(const struct ray_tree *tree, uint32_t *depths)
{
    if (tree->node_count > 0)
        depths_below(tree, 0, 1, depths);
}

void ray_tree_ask(const struct ray_tree *tree, const struct ray_tree_line *line)
{
    kernels()->tree_ray(tree, line);
}

void ray_tree_sweep(const struct ray_tree *tree, const struct ray_tree_line *line,
                    const double reach[3])
{
    kernels()->tree_sweep(tree, line, reach);
}

void ray_tree_ask_all(const struct ray_tree *tree, const struct ray_tree_line *lines, size_t count)
{
    kernels()->tree_rays(tree, lines, count);
}
