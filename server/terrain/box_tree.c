/*
 * Building trees of boxes, from the top down.
 *
 * A node's boxes are sorted by their middles into bins along the longest side of the middles' box,
 * and cut between two bins where the surfaces of both halves, weighted by the boxes in them, are
 * least (the surface area heuristic: MacDonald and Booth, "Heuristics for ray tracing using space
 * subdivision", 1990; binned: Wald, "On fast construction of SAH-based bounding volume
 * hierarchies", 2007). Bins along one axis instead of all three take a third of the time, and lines
 * then look at a few percent more.
 *
 * Invariants: an inner node's box holds its children's; a leaf has 1 to BOX_TREE_LEAF items; each
 * item is in one leaf. Where bins do not separate (middles that coincide, or a tree that got deep
 * by evil boxes) the list is halved as it stands, so depth and time are bounded for any input.
 */
#include "terrain/box_tree.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

enum {
    BINS = 16,
    DEPTH_BY_BINS = 40 /* below it lists are halved: 32 levels more at most */
};

struct job {
    uint32_t node, begin, end, depth;
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

/* Puts the items of the left half first and tells how many they are: at least 1, never all. */
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

static void build(const struct box_bounds *boxes, struct box_tree *tree)
{
    struct job stack[BOX_TREE_DEPTH + 2];
    size_t waiting = 0;

    stack[waiting++] = (struct job){0, 0, (uint32_t)tree->item_count, 0};
    tree->node_count = 1;
    while (waiting > 0) {
        struct job job = stack[--waiting];
        struct box_node *node = &tree->nodes[job.node];
        uint32_t count = job.end - job.begin, left;

        node->box = nothing;
        for (uint32_t i = job.begin; i < job.end; i++)
            bounds_take(&node->box, &boxes[tree->items[i]]);
        tree->depth = job.depth > tree->depth ? job.depth : tree->depth;
        if (count <= BOX_TREE_LEAF) {
            node->first = job.begin;
            node->count = count;
            continue;
        }
        left = job.begin + items_part(boxes, tree->items + job.begin, count, job.depth);
        node->first = (uint32_t)tree->node_count;
        node->count = 0;
        tree->node_count += 2;
        CHECK(waiting + 2 <= sizeof stack / sizeof *stack);
        stack[waiting++] = (struct job){node->first + 1, left, job.end, job.depth + 1};
        stack[waiting++] = (struct job){node->first, job.begin, left, job.depth + 1};
    }
}

enum err_code box_tree_build(const struct box_bounds *boxes, size_t count, struct box_tree *out,
                             struct err *err)
{
    CHECK(count > 0 && count < (size_t)1 << 31);
    *out = (struct box_tree){.item_count = count};
    out->nodes = malloc((2 * count - 1) * sizeof *out->nodes);
    out->items = malloc(count * sizeof *out->items);
    if (!out->nodes || !out->items) {
        box_tree_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu boxes", count);
    }
    for (size_t i = 0; i < count; i++)
        out->items[i] = (uint32_t)i;
    build(boxes, out);
    struct box_node *fewer = realloc(out->nodes, out->node_count * sizeof *fewer);

    out->nodes = fewer ? fewer : out->nodes;
    return ERR_OK;
}

void box_tree_free(struct box_tree *tree)
{
    free(tree->nodes);
    free(tree->items);
    *tree = (struct box_tree){0};
}

size_t box_tree_bytes(const struct box_tree *tree)
{
    return tree->node_count * sizeof *tree->nodes + tree->item_count * sizeof *tree->items;
}

double box_tree_tests(const struct box_tree *tree)
{
    double all = surface(&tree->nodes[0].box), sum = 0;

    for (size_t i = 0; i < tree->node_count; i++)
        sum += surface(&tree->nodes[i].box) * tree->nodes[i].count;
    return all > 0 ? sum / all : (double)tree->item_count;
}

static bool holds(const struct box_bounds *box, const struct box_bounds *inner)
{
    for (int i = 0; i < 3; i++)
        if (!(box->min[i] <= inner->min[i] && box->max[i] >= inner->max[i]))
            return false;
    return true;
}

static bool node_is_right(const struct box_tree *tree, const struct box_bounds *boxes, size_t i,
                          uint8_t *seen)
{
    const struct box_node *node = &tree->nodes[i];

    if (node->count == 0)
        return node->first > i && node->first + 1 < tree->node_count &&
               holds(&node->box, &tree->nodes[node->first].box) &&
               holds(&node->box, &tree->nodes[node->first + 1].box);
    if (node->count > BOX_TREE_LEAF || (size_t)node->first + node->count > tree->item_count)
        return false;
    for (uint32_t k = node->first; k < node->first + node->count; k++) {
        uint32_t item = tree->items[k];

        if (item >= tree->item_count || seen[item]++ || !holds(&node->box, &boxes[item]))
            return false;
    }
    return true;
}

bool box_tree_validate(const struct box_tree *tree, const struct box_bounds *boxes, size_t count,
                       struct err *err)
{
    uint8_t *seen = calloc(count, 1);
    bool is_right = seen && tree->item_count == count && tree->depth <= BOX_TREE_DEPTH;

    for (size_t i = 0; i < tree->node_count && is_right; i++)
        is_right = node_is_right(tree, boxes, i, seen);
    for (size_t i = 0; i < count && is_right; i++)
        is_right = seen[i] == 1;
    free(seen);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the tree of %zu boxes is wrong, or there is no memory", count);
    return is_right;
}
