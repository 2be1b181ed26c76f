/*
 * ray_tree_begin of ray_tree.c with AVX2, the three axes side by side. It may round otherwise than
 * that, within the same bounds.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_BEGIN_H
#define KOTA_TERRAIN_RAY_TREE_BEGIN_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/bvh/axes.h"
#include "terrain/bvh/ray_tree_levels.h"
#include "terrain/bvh/woop.h"

#include <stddef.h>

_Static_assert(
    offsetof(struct ray_tree_walk, inv) == offsetof(struct ray_tree_walk, o) + 12 &&
        offsetof(struct ray_tree_walk, shift) == offsetof(struct ray_tree_walk, inv) + 12 &&
        offsetof(struct ray_tree_walk, near_side) == offsetof(struct ray_tree_walk, shift) + 12 &&
        offsetof(struct ray_tree_walk, kx) == offsetof(struct ray_tree_walk, near_side) + 12,
    "four are stored where three are");

/* line_clip */
static inline bool axes_clip(const struct ray_tree *tree, f64x4 o, f64x4 inv, double least,
                             double most, double *t0, double *t1)
{
    f64x4 low = axes_of(tree->low), high = axes_of(tree->high);
    f64x4 in = (f64x4_select((i64x4)inv, high, low) - o) * inv;
    f64x4 out = (f64x4_select((i64x4)inv, low, high) - o) * inv;

    in = axes_greatest(f64x4_put_last(in, f64x4_all(least)));
    out = axes_least(f64x4_put_last(out, f64x4_all(most)));
    *t0 = in[0];
    *t1 = out[0];
    return *t0 <= *t1;
}

/*
 * Where a line is walked from, o and d in the polygons' coordinates, inv of d, which runs as the
 * walk does; t_base, t_to_u and end are set. False: an image lies, and the line is nowhere near.
 */
static inline bool ray_tree_begin_at(const struct ray_tree *tree, f64x4 o, f64x4 d, f64x4 inv,
                                     unsigned kz, float far_off, struct ray_tree_walk *w)
{
    f64x4 middle = axes_load(tree->middle, f64x2_all(tree->middle[2]));

    o = (o - middle) * f64x4_all(tree->scale);
    f32x4 o_f = f64x4_floats(o), inv_f = f64x4_floats(inv);
    i32x4 is_far = f32x4_not_le(f32x4_abs(o_f), f32x4_all(far_off));
    f64x4 inv_z = f64x4_all_third(axes_turned(inv, kz));
    f32x4 shears = f64x4_floats(axes_turned(d, kz) * inv_z);

    /* each a lane too far, which the next one puts right */
    f32x4_store(w->o, o_f);
    f32x4_store(w->inv, inv_f);
    f32x4_store(w->shift, o_f * inv_f);
    i32x4_store(w->near_side, (i32x4)((u32x4)(i32x4)inv_f >> 31));
    w->kz = kz;
    w->kx = (uint32_t)axis_after((int)kz);
    w->ky = (uint32_t)axis_after((int)w->kx);
    f32x4_store_low(&w->shear_x, shears);
    w->inv_z = (float)inv_z[0];
    return (i32x4_signs(is_far) & AXES) == 0; /* infinite: children that are none */
}

static inline bool ray_tree_begin_axes(const struct ray_tree *tree,
                                       const struct ray_tree_line *line, struct ray_tree_walk *w)
{
    const f64x4 steep = f64x4_all(RAY_TREE_STEEP), signs = f64x4_all(-0.0);
    f64x4 o = axes_of(line->o), d = axes_of(line->d), one = f64x4_all(1);
    i64x4 counts = f64x4_gt(f64x4_abs(d), f64x4_all(1 / RAY_TREE_STEEP));
    f64x4 inv = f64x4_select(counts, one / d, f64x4_or(steep, f64x4_and(d, signs)));
    double t0, t1;

    w->tree = tree;
    w->line = line;
    if (!axes_clip(tree, o, inv, line->low, line->high, &t0, &t1))
        return false;
    w->t_base = line->is_backward ? t1 : t0;
    w->t_to_u = line->is_backward ? -tree->scale : tree->scale;
    w->end = ray_tree_end(w, line->is_backward ? t0 : t1);
    o = o + d * f64x4_all(w->t_base);
    if (line->is_backward) {
        inv = f64x4_xor(inv, signs);
        d = f64x4_xor(d, signs);
    }
    return ray_tree_begin_at(tree, o, d, inv, axes_largest(d), RAY_TREE_FAR_OFF, w);
}

#endif
#endif
