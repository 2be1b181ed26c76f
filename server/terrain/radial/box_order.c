/*
 * The order of the leaves of a tree over boxes, without the tree.
 *
 * A list of boxes is sorted by their middles into bins along the longest side of the middles' box,
 * and cut between two bins where the surfaces of both halves, weighted by the boxes in them, are
 * least (the surface area heuristic: MacDonald and Booth, "Heuristics for ray tracing using space
 * subdivision", 1990; binned: Wald, "On fast construction of SAH-based bounding volume
 * hierarchies", 2007), and so on with both halves down to ORDER_LEAF boxes.
 *
 * Images of meshes under radial gravity have their polygons in this order, and their content hash
 * names it: another order would be another mesh. Where bins do not separate (middles that coincide,
 * or lists that got deep by adversarial boxes) a list is halved as it is, so time is bounded for
 * any input.
 */
#include "terrain/radial/box_order.h"

#include "base/check.h"

#include <math.h>
#include <stdbool.h>

enum {
    BINS = 16,
    DEPTH_BY_BINS = 40, /* below it lists are halved: 32 levels more at most */
    DEPTH_MAX = 72,
    ORDER_LEAF = 4 /* boxes that are not sorted further */
};

struct job {
    uint32_t begin, end, depth;
};

struct bin {
    struct box_bounds box;
    size_t count;
};

static const struct box_bounds nothing = {{INFINITY, INFINITY, INFINITY},
                                          {-INFINITY, -INFINITY, -INFINITY}};

static void bounds_take(struct box_bounds *box, const struct box_bounds *other)
{
    for (int i = 0; i < 3; i++) {
        box->min[i] = other->min[i] < box->min[i] ? other->min[i] : box->min[i];
        box->max[i] = other->max[i] > box->max[i] ? other->max[i] : box->max[i];
    }
}

/* Half of the surface. */
static double surface(const struct box_bounds *box)
{
    double x = (double)box->max[0] - (double)box->min[0];
    double y = (double)box->max[1] - (double)box->min[1];
    double z = (double)box->max[2] - (double)box->min[2];

    return box->min[0] <= box->max[0] ? x * y + y * z + z * x : 0;
}

static double middle(const struct box_bounds *box, int axis)
{
    return ((double)box->min[axis] + (double)box->max[axis]) / 2;
}

struct sides {
    int axis;
    double low, scale; /* bins a metre */
};

static unsigned bin_of(const struct sides *sides, const struct box_bounds *box)
{
    double at = (middle(box, sides->axis) - sides->low) * sides->scale;

    return at < BINS - 1 ? (unsigned)at : BINS - 1;
}

/* The longest side of the middles' box; false when it has none. */
static bool sides_of(const struct box_bounds *boxes, const uint32_t *items, size_t count,
                     struct sides *out)
{
    double longest = 0;

    for (int axis = 0; axis < 3; axis++) {
        double low = INFINITY, high = -INFINITY;

        for (size_t i = 0; i < count; i++) {
            double at = middle(&boxes[items[i]], axis);

            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        if (high - low > longest) {
            longest = high - low;
            *out = (struct sides){axis, low, BINS / longest};
        }
    }
    return longest > 0 && isfinite(out->scale);
}

/* The bin before which to cut, for the least surface times boxes; 0 when all are in one bin. */
static unsigned best_cut(const struct bin bins[BINS])
{
    double right[BINS], least = INFINITY;
    struct box_bounds box = nothing;
    size_t count = 0;
    unsigned best = 0;

    for (unsigned i = BINS; i-- > 1;) {
        bounds_take(&box, &bins[i].box);
        count += bins[i].count;
        right[i] = count ? surface(&box) * (double)count : INFINITY;
    }
    box = nothing;
    count = 0;
    for (unsigned i = 1; i < BINS; i++) {
        bounds_take(&box, &bins[i - 1].box);
        count += bins[i - 1].count;
        if (count > 0 && surface(&box) * (double)count + right[i] < least) {
            least = surface(&box) * (double)count + right[i];
            best = i;
        }
    }
    return best;
}

/* Puts the items of the left half first and returns how many they are: at least 1, never all. */
static uint32_t items_part(const struct box_bounds *boxes, uint32_t *items, uint32_t count,
                           uint32_t depth)
{
    struct bin bins[BINS];
    struct sides sides = {0};
    uint32_t left = 0;
    unsigned cut;

    if (depth >= DEPTH_BY_BINS || !sides_of(boxes, items, count, &sides))
        return count / 2;
    for (int i = 0; i < BINS; i++)
        bins[i] = (struct bin){nothing, 0};
    for (uint32_t i = 0; i < count; i++) {
        struct bin *bin = &bins[bin_of(&sides, &boxes[items[i]])];

        bounds_take(&bin->box, &boxes[items[i]]);
        bin->count++;
    }
    cut = best_cut(bins);
    for (uint32_t i = 0; i < count && cut > 0; i++)
        if (bin_of(&sides, &boxes[items[i]]) < cut) {
            uint32_t other = items[left];

            items[left++] = items[i];
            items[i] = other;
        }
    return left > 0 && left < count ? left : count / 2;
}

void box_order(const struct box_bounds *boxes, uint32_t count, uint32_t *items)
{
    struct job stack[DEPTH_MAX + 2];
    size_t waiting = 0;

    for (uint32_t i = 0; i < count; i++)
        items[i] = i;
    stack[waiting++] = (struct job){0, count, 0};
    while (waiting > 0) {
        struct job job = stack[--waiting];

        if (job.end - job.begin <= ORDER_LEAF)
            continue;
        uint32_t cut =
            job.begin + items_part(boxes, items + job.begin, job.end - job.begin, job.depth);

        CHECK(waiting + 2 <= sizeof stack / sizeof *stack);
        stack[waiting++] = (struct job){cut, job.end, job.depth + 1};
        stack[waiting++] = (struct job){job.begin, cut, job.depth + 1};
    }
}
