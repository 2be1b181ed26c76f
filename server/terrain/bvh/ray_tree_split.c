/*
 * Cutting a list of boxes in two.
 *
 * Boxes are sorted by their middles into bins along the longest side of the middles' box, and cut
 * between two bins where the surfaces of both halves, weighted by the blocks that they will fill,
 * are least (the surface area heuristic: MacDonald and Booth, "Heuristics for ray tracing using
 * space subdivision", 1990; binned: Wald, "On fast construction of SAH-based bounding volume
 * hierarchies", 2007).
 *
 * A box lies with its number in 32 bytes, and the halves are written to another array, one from the
 * front and one from the back: no look-ups, and no branch that depends on the side. Where bins do
 * not separate (middles that coincide, or a list that was cut often by adversarial boxes) it is
 * halved unsorted, so depth and time are bounded for any input.
 */
#include "terrain/bvh/ray_tree_split.h"

#include "terrain/bvh/ray_tree.h"

#include <math.h>

enum {
    BINS = 16,
    DEPTH_BY_BINS = 40 /* below it lists are halved: 32 levels more at most */
};

struct bounds {
    f32x4 low, high;
};

static inline struct bounds nothing(void)
{
    return (struct bounds){f32x4_all(INFINITY), f32x4_all(-INFINITY)};
}

static inline void bounds_take(struct bounds *box, f32x4 low, f32x4 high)
{
    box->low = f32x4_min(low, box->low);
    box->high = f32x4_max(high, box->high);
}

/* Half of it; of nothing: not a number. */
static inline float surface_of(const struct bounds *box)
{
    float side[4];

    f32x4_store(side, box->high - box->low);
    return side[0] * side[1] + side[1] * side[2] + side[2] * side[0];
}

static struct ray_tree_range range_of(const struct bounds *box, uint32_t begin, uint32_t count)
{
    return (struct ray_tree_range){
        .low = box->low,
        .high = box->high,
        .surface = surface_of(box),
        .begin = begin,
        .count = count,
    };
}

static struct bounds bounds_of(const union ray_tree_ref *refs, size_t count)
{
    struct bounds box = nothing();

    for (size_t i = 0; i < count; i++)
        bounds_take(&box, refs[i].box.low, refs[i].box.high);
    return box;
}

struct ray_tree_range ray_tree_range_of(union ray_tree_ref *const refs[2], size_t count)
{
    struct bounds box = bounds_of(refs[0], count);

    return range_of(&box, 0, (uint32_t)count);
}

/* ---- bins ----------------------------------------------------------------------------------- */

struct sides {
    int axis;
    float low, scale; /* bins a unit, of twice the middles */
};

static inline unsigned bin_of(const struct sides *sides, const union ray_tree_ref *ref)
{
    float twice = ref->of.low[sides->axis] + ref->of.high[sides->axis];
    unsigned at = (unsigned)(int)((twice - sides->low) * sides->scale);

    return at < BINS ? at : BINS - 1;
}

/* The longest side of the middles' box; false when it has none. */
static bool sides_of(const union ray_tree_ref *refs, uint32_t count, struct sides *out)
{
    struct bounds middles = nothing();
    float low[4], longest = 0;
    float side[4];

    for (uint32_t i = 0; i < count; i++) {
        f32x4 twice = refs[i].box.low + refs[i].box.high;

        bounds_take(&middles, twice, twice);
    }
    f32x4_store(low, middles.low);
    f32x4_store(side, middles.high - middles.low);
    for (int axis = 0; axis < 3; axis++)
        if (side[axis] > longest) {
            longest = side[axis];
            *out = (struct sides){axis, low[axis], BINS / side[axis]};
        }
    return longest > 0 && isfinite(out->scale);
}

struct bins {
    struct bounds box[BINS];
    uint32_t count[BINS];
};

static void bins_fill(struct bins *bins, const struct sides *sides, const union ray_tree_ref *refs,
                      uint32_t count)
{
    for (int i = 0; i < BINS; i++) {
        bins->box[i] = nothing();
        bins->count[i] = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        unsigned at = bin_of(sides, &refs[i]);

        bounds_take(&bins->box[at], refs[i].box.low, refs[i].box.high);
        bins->count[at]++;
    }
}

static float cost_of(const struct bounds *box, uint32_t count)
{
    uint32_t blocks = (count + RAY_TREE_WIDE - 1) / RAY_TREE_WIDE;

    return count > 0 ? surface_of(box) * (float)blocks : INFINITY;
}

/* The bin before which to cut, and the contents of both sides; 0: all are in one. */
static unsigned best_cut(const struct bins *bins, struct bounds boxes[2], uint32_t *left)
{
    struct bounds right[BINS], box = nothing();
    float costs[BINS], least = INFINITY;
    uint32_t count = 0;
    unsigned best = 0;

    for (unsigned i = BINS; i-- > 1;) {
        bounds_take(&box, bins->box[i].low, bins->box[i].high);
        count += bins->count[i];
        right[i] = box;
        costs[i] = cost_of(&box, count);
    }
    box = nothing();
    count = 0;
    for (unsigned i = 1; i < BINS; i++) {
        bounds_take(&box, bins->box[i - 1].low, bins->box[i - 1].high);
        count += bins->count[i - 1];
        float cost = cost_of(&box, count) + costs[i];

        if (cost < least) {
            least = cost;
            best = i;
            boxes[0] = box;
            boxes[1] = right[i];
            *left = count;
        }
    }
    return best;
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* The left ones from the front, the right ones from the back. */
static void refs_part(const union ray_tree_ref *from, union ray_tree_ref *to, uint32_t count,
                      const struct sides *sides, unsigned cut)
{
    size_t left = 0, right = count - 1;

    for (uint32_t i = 0; i < count; i++) {
        bool is_left = bin_of(sides, &from[i]) < cut;

        to[is_left ? left : right] = from[i];
        left += is_left;
        right -= !is_left;
    }
}

static void range_halve(const union ray_tree_ref *refs, const struct ray_tree_range *whole,
                        struct ray_tree_range parts[2])
{
    uint32_t half = whole->count / 2;
    struct bounds left = bounds_of(refs, half), right = bounds_of(refs + half, whole->count - half);

    parts[0] = range_of(&left, whole->begin, half);
    parts[1] = range_of(&right, whole->begin + half, whole->count - half);
    parts[0].array = parts[1].array = whole->array;
}

void ray_tree_split(union ray_tree_ref *const refs[2], const struct ray_tree_range *whole,
                    struct ray_tree_range parts[2])
{
    const union ray_tree_ref *from = refs[whole->array] + whole->begin;
    struct sides sides = {0};
    struct bounds boxes[2];
    struct bins bins;
    uint32_t left = 0;
    unsigned cut = 0;

    if (whole->depth < DEPTH_BY_BINS && sides_of(from, whole->count, &sides)) {
        bins_fill(&bins, &sides, from, whole->count);
        cut = best_cut(&bins, boxes, &left);
    }
    if (cut > 0) {
        refs_part(from, refs[!whole->array] + whole->begin, whole->count, &sides, cut);
        parts[0] = range_of(&boxes[0], whole->begin, left);
        parts[1] = range_of(&boxes[1], whole->begin + left, whole->count - left);
        parts[0].array = parts[1].array = !whole->array;
    } else {
        range_halve(from, whole, parts);
    }
    parts[0].depth = parts[1].depth = whole->depth + 1;
}
