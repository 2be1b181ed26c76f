/*
 * The boxes are sorted along a Z curve through their middles (Morton 1966), and the sorted list is
 * halved down to LEAF boxes: a tree without a decision, the same wherever it is made.
 *
 * What a line meets must never be left out. Boxes are rounded outward to float32, the line's own
 * rounding is added to them where it is asked, and ends are compared with some roundings to spare.
 */
#include "terrain/instances/instance_tree.h"

#include "base/check.h"
#include "base/morton.h"
#include "terrain/float_round.h"
#include "terrain/power.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { LEAF = 4, KEY_BITS = 21, DEPTH_MAX = 40 };

#define ENDS_OFF 1e-12     /* roundings of t, relative */
#define LEAST_SLOPE 1e-200 /* of a line's largest component: it stays where it is */

/* ---- making ---------------------------------------------------------------------------------- */

struct keyed {
    uint64_t key;
    uint32_t item;
};

static uint64_t key_of(struct vec3 from_low, double size)
{
    const double most = (1 << KEY_BITS) - 1;
    double scale = size > 0 ? most / size : 0;

    return morton3((uint64_t)(from_low.x * scale), (uint64_t)(from_low.y * scale),
                   (uint64_t)(from_low.z * scale));
}

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static void node_box_set(struct instance_node *node, const struct box3 *box)
{
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};

    for (int i = 0; i < 3; i++) {
        node->min[i] = float_down(low[i]);
        node->max[i] = float_up(high[i]);
    }
}

/* Returns the box of the node that it fills in. */
static struct box3 node_make(struct instance_tree *tree, const struct box3 *boxes, size_t at,
                             size_t first, size_t count)
{
    struct box3 box;

    if (count <= LEAF) {
        box = boxes[tree->order[first]];
        for (size_t i = 1; i < count; i++)
            box = box3_union(box, boxes[tree->order[first + i]]);
        tree->nodes[at].first = (uint32_t)first;
        tree->nodes[at].count = (uint32_t)count;
    } else {
        size_t children = tree->node_count, half = count / 2;

        tree->node_count += 2;
        tree->nodes[at].first = (uint32_t)children;
        tree->nodes[at].count = 0;
        box = node_make(tree, boxes, children, first, half);
        box = box3_union(box, node_make(tree, boxes, children + 1, first + half, count - half));
    }
    node_box_set(&tree->nodes[at], &box);
    return box;
}

enum err_code instance_tree_make(const struct box3 *boxes, size_t count, struct instance_tree *out,
                                 struct err *err)
{
    struct keyed *keyed = malloc(count * sizeof *keyed);
    struct box3 all = boxes[0];

    *out = (struct instance_tree){.nodes = malloc(2 * count * sizeof *out->nodes),
                                  .order = malloc(count * sizeof *out->order),
                                  .count = count};
    if (!keyed || !out->nodes || !out->order) {
        free(keyed);
        instance_tree_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory for a tree of %zu instances", count);
    }
    for (size_t i = 1; i < count; i++)
        all = box3_union(all, boxes[i]);
    struct vec3 way = vec3_sub(all.max, all.min);

    for (size_t i = 0; i < count; i++) {
        struct vec3 size = vec3_sub(boxes[i].max, boxes[i].min);
        struct vec3 middle = vec3_add(boxes[i].min, vec3_scale(size, 0.5));

        keyed[i] = (struct keyed){key_of(vec3_sub(middle, all.min), largest_of(way)), (uint32_t)i};
    }
    qsort(keyed, count, sizeof *keyed, by_key);
    for (size_t i = 0; i < count; i++)
        out->order[i] = keyed[i].item;
    free(keyed);
    out->node_count = 1;
    node_make(out, boxes, 0, 0, count);
    return err->code = ERR_OK;
}

void instance_tree_free(struct instance_tree *tree)
{
    free(tree->nodes);
    free(tree->order);
    *tree = (struct instance_tree){.nodes = NULL};
}

size_t instance_tree_bytes(const struct instance_tree *tree)
{
    return 2 * tree->count * sizeof *tree->nodes + tree->count * sizeof *tree->order;
}

static bool is_in(const struct box3 *box, const struct instance_node *node)
{
    return (double)node->min[0] <= box->min.x && (double)node->max[0] >= box->max.x &&
           (double)node->min[1] <= box->min.y && (double)node->max[1] >= box->max.y &&
           (double)node->min[2] <= box->min.z && (double)node->max[2] >= box->max.z;
}

/* All items below a node lie in it; adds them to seen. */
static bool node_check(const struct instance_tree *tree, const struct box3 *boxes, size_t at,
                       const struct instance_node *above, uint8_t *seen)
{
    const struct instance_node *node = &tree->nodes[at];

    for (int i = 0; i < 3; i++)
        if (node->min[i] < above->min[i] || node->max[i] > above->max[i])
            return false;
    if (node->count == 0)
        return node->first + 1 < tree->node_count && node->first > at &&
               node_check(tree, boxes, node->first, node, seen) &&
               node_check(tree, boxes, node->first + 1, node, seen);
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t item = tree->order[node->first + i];

        if (seen[item]++ || !is_in(&boxes[item], node))
            return false;
    }
    return true;
}

bool instance_tree_validate(const struct instance_tree *tree, const struct box3 *boxes,
                            struct err *err)
{
    uint8_t *seen = calloc(tree->count, 1);
    bool is_right =
        seen && node_check(tree, boxes, 0, &tree->nodes[0], seen) && !memchr(seen, 0, tree->count);

    free(seen);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the tree of %zu instances leaves some out", tree->count);
    return is_right;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The line as slabs are cut: t counts the largest component of a slope between 1/2 and 1. */
struct slabs {
    double from[3], inverse[3], grow[3];
    bool is_still[3];
    int exponent;
    double low, high;
};

static void slabs_set(struct slabs *s, const struct instance_line *line)
{
    const double from[3] = {line->from.x, line->from.y, line->from.z};
    const double reach[3] = {line->reach.x, line->reach.y, line->reach.z};
    bool is_point = largest_of(line->along) == 0;
    struct vec3 along = line->along;

    s->exponent = is_point ? 0 : exponent_of(along);
    along = vec3_scaled(along, -s->exponent);
    const double slope[3] = {along.x, along.y, along.z};

    for (int i = 0; i < 3; i++) {
        s->from[i] = from[i];
        s->grow[i] = reach[i] + 8 * DBL_EPSILON * fabs(from[i]);
        s->is_still[i] = fabs(slope[i]) < LEAST_SLOPE;
        s->inverse[i] = s->is_still[i] ? 0 : 1 / slope[i];
    }
    s->low = scaled(line->low, s->exponent);
    s->high = scaled(line->high, s->exponent);
}

static bool ends_before(double leave, double enter)
{
    return enter > leave + ENDS_OFF * fabs(enter);
}

/* Where the line enters a node's box; false: it does not meet it. */
static bool node_enter(const struct slabs *s, const struct instance_node *node, double *enter)
{
    double low = s->low, high = s->high;

    for (int i = 0; i < 3; i++) {
        double near = (double)node->min[i] - s->grow[i] - s->from[i];
        double far = (double)node->max[i] + s->grow[i] - s->from[i];

        if (s->is_still[i]) {
            if (near > 0 || far < 0)
                return false;
            continue;
        }
        near *= s->inverse[i];
        far *= s->inverse[i];
        low = fmax(low, near < far ? near : far);
        high = fmin(high, near < far ? far : near);
    }
    *enter = low;
    return !ends_before(high, low);
}

static void trace_add(struct ray_tree_trace *trace, const struct instance_node *node,
                      uint32_t level, uint32_t child, bool is_entered)
{
    const float *min = node->min, *max = node->max;

    if (trace)
        ray_tree_trace_box(trace, &(struct ray_tree_box){
                                      .level = level,
                                      .bounds = {{(double)min[0], (double)min[1], (double)min[2]},
                                                 {(double)max[0], (double)max[1], (double)max[2]}},
                                      .is_entered = is_entered,
                                      .child = child,
                                  });
}

struct waiting {
    uint32_t node, level;
    double enter;
};

void instance_tree_ask(const struct instance_tree *tree, struct instance_line *line)
{
    struct waiting stack[DEPTH_MAX] = {{0, 0, 0}};
    struct slabs s;
    size_t depth;

    slabs_set(&s, line);
    depth = node_enter(&s, &tree->nodes[0], &stack[0].enter);
    trace_add(line->trace, &tree->nodes[0], 0, 0, depth > 0);
    while (depth > 0) {
        struct waiting at = stack[--depth];
        const struct instance_node *node = &tree->nodes[at.node];

        if (ends_before(s.high, at.enter))
            continue;
        for (uint32_t i = 0; i < node->count; i++)
            line->visit(line, tree->order[node->first + i]);
        if (node->count > 0) {
            s.high = scaled(line->high, s.exponent);
            continue;
        }
        struct waiting next[2] = {{node->first, at.level + 1, 0},
                                  {node->first + 1, at.level + 1, 0}};
        bool is_met[2];

        for (uint32_t i = 0; i < 2; i++) {
            is_met[i] = node_enter(&s, &tree->nodes[next[i].node], &next[i].enter);
            trace_add(line->trace, &tree->nodes[next[i].node], at.level + 1, i, is_met[i]);
        }
        unsigned far = is_met[0] && is_met[1] && next[1].enter >= next[0].enter;

        CHECK(depth + 2 <= DEPTH_MAX);
        if (is_met[far])
            stack[depth++] = next[far];
        if (is_met[!far])
            stack[depth++] = next[!far];
    }
}
