/*
 * Bounds as bytes.
 *
 * Problem: a ray waits for nodes as long as it computes with them. Approach: the
 * sixteen children's bounds in bytes of 1/255 of their parent's range, as Ylitie, Karras and Laine
 * do for boxes of wide trees (Efficient Incoherent Ray Traversal on GPUs Through Compressed Wide
 * BVHs, 2017). base is the least bound itself; step is 1/255 of the range, a millionth outward.
 *
 * Rounding: a byte is moved outward by 1/1024 of a step before it is rounded, more than float32
 * loses on the way (a few 2^-24 of 255 steps). The error of base + byte·step when it is decoded is
 * a rounding of the height itself, and the rays' own padding covers it. A range too small for
 * float32 takes a step of 1e-36 m; one that overflows makes an infinite step, which rays never use
 * (ray.c: MINMAX16_Z_MAX).
 */
#include "terrain/field/minmax16.h"

#include <math.h>

#define STEP_LEAST_M 1e-36f
#define SLACK 0x1p-10f /* of a step */

void minmax16_clear(struct minmax16_node *node)
{
    *node = (struct minmax16_node){.base_m = __builtin_inff()};
    for (int i = 0; i < MINMAX16_CHILDREN; i++)
        node->min[i] = 255;
}

void minmax16_build(struct minmax16_node *node, const struct bounds *children)
{
    struct bounds all = BOUNDS_EMPTY;

    for (int i = 0; i < MINMAX16_CHILDREN; i++)
        all = bounds_union(all, children[i]);
    if (!(all.min <= all.max)) {
        minmax16_clear(node);
        return;
    }
    float step = (all.max - all.min) * (1.000001f / 255);

    step = step > STEP_LEAST_M ? step : STEP_LEAST_M;
    float inv = 1 / step;

    node->base_m = all.min;
    node->step_m = step;
    for (int i = 0; i < MINMAX16_CHILDREN; i++) {
        float low = (children[i].min - all.min) * inv - SLACK;
        float high = (children[i].max - all.min) * inv + (1 + SLACK);
        /* without data low is +inf and high -inf: 255 and 0; NaN comes from an infinite step */
        low = low < 255 ? low : 255;
        high = high < 255 ? high : 255;
        low = low > 0 ? low : 0;
        high = high > 0 ? high : 0;
        node->min[i] = (uint8_t)(int32_t)low;
        node->max[i] = (uint8_t)(int32_t)high;
    }
}

bool minmax16_child_holds(const struct minmax16_node *node, uint32_t i, struct bounds bounds)
{
    double base = (double)node->base_m, step = (double)node->step_m;
    double low = base + step * node->min[i], high = base + step * node->max[i];
    /* the rounding of all.max - all.min and of decoded bounds */
    double slack = 0x1p-23 * (fabs((double)bounds.min) + fabs((double)bounds.max) + fabs(base));

    if (isinf(step)) /* never used; it cannot mark children without data */
        return true;
    if (!(bounds.min <= bounds.max))
        return node->min[i] == 255 && node->max[i] == 0;
    return low <= (double)bounds.min + slack && high >= (double)bounds.max - slack &&
           low >= (double)bounds.min - 2 * step - slack &&
           high <= (double)bounds.max + 3 * step + slack;
}
