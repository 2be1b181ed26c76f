/*
 * ray_tree_begin of ray_tree.c with AVX2, the three axes side by side. It may round otherwise than
 * that, within the same bounds.
 */
#ifndef KOTA_TERRAIN_RAY_TREE_BEGIN_H
#define KOTA_TERRAIN_RAY_TREE_BEGIN_H
#ifdef __AVX2__ /* empty for a file that is not compiled for it */

#include "terrain/axes.h"
#include "terrain/ray_tree_levels.h"
#include "terrain/ring.h"

#include <stddef.h>

_Static_assert(
    offsetof(struct ray_tree_walk, inv) == offsetof(struct ray_tree_walk, o) + 12 &&
        offsetof(struct ray_tree_walk, shift) == offsetof(struct ray_tree_walk, inv) + 12 &&
        offsetof(struct ray_tree_walk, near_side) == offsetof(struct ray_tree_walk, shift) + 12 &&
        offsetof(struct ray_tree_walk, kx) == offsetof(struct ray_tree_walk, near_side) + 12,
    "four are stored where three are");

/* line_clip */
static inline bool axes_clip(const struct ray_tree *tree, const struct ray_tree_line *line,
                             __m256d o, __m256d inv, double *t0, double *t1)
{
    __m256d low = axes_of(tree->low), high = axes_of(tree->high);
    __m256d in = _mm256_mul_pd(_mm256_sub_pd(_mm256_blendv_pd(low, high, inv), o), inv);
    __m256d out = _mm256_mul_pd(_mm256_sub_pd(_mm256_blendv_pd(high, low, inv), o), inv);

    in = axes_greatest(_mm256_blend_pd(in, _mm256_set1_pd(line->low), 8));
    out = axes_least(_mm256_blend_pd(out, _mm256_set1_pd(line->high), 8));
    *t0 = _mm256_cvtsd_f64(in);
    *t1 = _mm256_cvtsd_f64(out);
    return *t0 <= *t1;
}

/*
 * Where a line is walked from, o and d in the polygons' coordinates, inv of d, which runs as the
 * walk does; t_base, t_to_u and end are set. False: an image lies, and the line is nowhere near.
 */
static inline bool ray_tree_begin_at(const struct ray_tree *tree, __m256d o, __m256d d, __m256d inv,
                                     unsigned kz, float far_off, struct ray_tree_walk *w)
{
    __m256d middle = axes_load(tree->middle, _mm_loaddup_pd(&tree->middle[2]));

    o = _mm256_mul_pd(_mm256_sub_pd(o, middle), _mm256_set1_pd(tree->scale));
    __m128 o_f = _mm256_cvtpd_ps(o), inv_f = _mm256_cvtpd_ps(inv);
    __m128 is_far = _mm_cmpnle_ps(_mm_andnot_ps(_mm_set1_ps(-0.0F), o_f), _mm_set1_ps(far_off));
    __m256d inv_z = _mm256_permute4x64_pd(axes_turned(inv, kz), 0xaa);
    __m128 shears = _mm256_cvtpd_ps(_mm256_mul_pd(axes_turned(d, kz), inv_z));

    /* each a lane too far, which the next one puts right */
    _mm_storeu_ps(w->o, o_f);
    _mm_storeu_ps(w->inv, inv_f);
    _mm_storeu_ps(w->shift, _mm_mul_ps(o_f, inv_f));
    _mm_storeu_si128((__m128i *)(void *)w->near_side, _mm_srli_epi32(_mm_castps_si128(inv_f), 31));
    w->kz = kz;
    w->kx = (uint32_t)axis_behind((int)kz);
    w->ky = (uint32_t)axis_behind((int)w->kx);
    _mm_storel_pi((__m64 *)(void *)&w->shear_x, shears);
    w->inv_z = (float)_mm256_cvtsd_f64(inv_z);
    return (_mm_movemask_ps(is_far) & AXES) == 0; /* infinite: children that are none */
}

static inline bool ray_tree_begin_axes(const struct ray_tree *tree,
                                       const struct ray_tree_line *line, struct ray_tree_walk *w)
{
    const __m256d steep = _mm256_set1_pd(RAY_TREE_STEEP), signs = _mm256_set1_pd(-0.0);
    __m256d o = axes_of(line->o), d = axes_of(line->d), one = _mm256_set1_pd(1);
    __m256d counts = _mm256_cmp_pd(axes_abs(d), _mm256_set1_pd(1 / RAY_TREE_STEEP), _CMP_GT_OQ);
    __m256d inv = _mm256_blendv_pd(_mm256_or_pd(steep, _mm256_and_pd(d, signs)),
                                   _mm256_div_pd(one, d), counts);
    double t0 = 0, t1 = line->high;

    w->tree = tree;
    w->line = line;
    if (!line->is_clipped && !axes_clip(tree, line, o, inv, &t0, &t1))
        return false;
    w->t_base = line->is_backward ? t1 : t0;
    w->t_to_u = line->is_backward ? -tree->scale : tree->scale;
    w->end = ray_tree_end(w, line->is_backward ? t0 : t1);
    o = _mm256_add_pd(o, _mm256_mul_pd(d, _mm256_set1_pd(w->t_base)));
    if (line->is_backward) {
        inv = _mm256_xor_pd(inv, signs);
        d = _mm256_xor_pd(d, signs);
    }
    return ray_tree_begin_at(tree, o, d, inv, axes_largest(d), RAY_TREE_FAR_OFF, w);
}

#endif
#endif
