/*
 * The place of a node's cut, and the quadrants of its polygons.
 *
 * Q cuts each node into equal quadrants and expects most from cuts through vertices: only they can
 * part polygons that share a vertex. A good cut along one axis runs where many polygons end or
 * begin, so the candidates are the ends of the polygons' boxes. Each axis is swept once over the
 * sorted ends for the least of
 *
 *     (x - left) · polygons left of x  +  (right - x) · polygons right of x,
 *
 * the expected number of tests if there were only that cut. Then both lines together compete with
 * the middle, and each with the middle of the other axis, by the true number of tests.
 *
 * Only nodes with many queries and few polygons left choose (quadtree.c). Choosing in every
 * node was tried: building a race track of 13,004 triangles took half as long again, and its
 * average of tests, 1.80, stayed the same.
 */
#include "terrain/mesh/quadtree.h"

#include <string.h>

/* Nearer to a border than this, in slacks, a cut gains nothing. */
#define BORDER_SLACKS 8

enum { MANY = QUADTREE_CANDIDATES_MAX };

/* Is polygon p in quadrant q? Bit q of the answer. */
static inline uint8_t quadrants_of(const struct quadtree_task *t, const struct box2 box[4],
                                   struct vec2 cut, uint32_t polygon)
{
    const struct mesh_polygon *p = &t->set->polygons[polygon];
    const struct box2 *own = &t->set->boxes[polygon];
    const struct mesh_line *lines = t->set->lines + p->first;
    double least = reach_least(p->is_wall, t->set->slack);
    bool left = cut.x - own->x_min > least, right = own->x_max - cut.x > least;
    bool low = cut.y - own->y_min > least, high = own->y_max - cut.y > least;
    unsigned candidates =
        (unsigned)((left & low) | (right & low) << 1 | (left & high) << 2 | (right & high) << 3);
    unsigned is_in = 0;

    for (unsigned q = 0; q < 4; q++)
        if (candidates >> q & 1)
            is_in |= (unsigned)box_is_reached(&box[q], own, lines, p->count, least) << q;
    return (uint8_t)is_in;
}

double quadtree_part(const struct quadtree_task *t, struct vec2 cut, uint8_t *quadrants)
{
    struct box2 box[4];
    uint32_t count[4] = {0, 0, 0, 0};
    double sum = 0;

    for (unsigned q = 0; q < 4; q++)
        box[q] = box_quadrant(&t->box, cut, q);
    for (uint32_t i = 0; i < t->count; i++) {
        quadrants[i] = quadrants_of(t, box, cut, t->list[i]);
        for (unsigned q = 0; q < 4; q++)
            count[q] += quadrants[i] >> q & 1;
    }
    for (unsigned q = 0; q < 4; q++)
        sum += (box[q].x_max - box[q].x_min) * (box[q].y_max - box[q].y_min) * count[q];
    return sum;
}

/* Insertion: there are few. */
static void sort(double *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        double value = values[i];
        uint32_t at = i;

        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* The cut across one axis with the least tests; the middle when no polygon ends inside. */
static double best_line(const struct quadtree_task *t, bool is_y)
{
    double begins[MANY], ends[MANY], slack = t->set->slack;
    double low = is_y ? t->box.y_min : t->box.x_min, high = is_y ? t->box.y_max : t->box.x_max;
    double best = low + (high - low) / 2, least = INFINITY;
    uint32_t n = t->count, left = 0, right = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct box2 *b = &t->set->boxes[t->list[i]];

        begins[i] = is_y ? b->y_min : b->x_min;
        ends[i] = is_y ? b->y_max : b->x_max;
    }
    sort(begins, n);
    sort(ends, n);
    for (uint32_t i = 0, k = 0; i < n || k < n;) {
        double x = k >= n || (i < n && begins[i] <= ends[k]) ? begins[i++] : ends[k++];

        if (!(x > low + BORDER_SLACKS * slack && x < high - BORDER_SLACKS * slack))
            continue;
        while (left < n && begins[left] < x - slack)
            left++;
        while (right < n && ends[right] <= x + slack)
            right++;
        double tests = (x - low) * left + (high - x) * (n - right);

        if (tests < least) {
            least = tests;
            best = x;
        }
    }
    return best;
}

struct vec2 quadtree_cut(const struct quadtree_task *task, struct vec2 middle, double *tests,
                         uint8_t *quadrants)
{
    struct vec2 through = {best_line(task, false), best_line(task, true)};
    struct vec2 tried[4] = {middle, through, {through.x, middle.y}, {middle.x, through.y}};
    uint8_t others[MANY];

    *tests = quadtree_part(task, middle, quadrants);
    for (int i = 1; i < 4; i++) {
        double expected = quadtree_part(task, tried[i], others);

        if (expected < *tests) {
            *tests = expected;
            memcpy(quadrants, others, task->count);
            middle = tried[i];
        }
        if (i == 1 && expected == *tests) /* both lines are good: half of them is less */
            break;
    }
    return middle;
}
