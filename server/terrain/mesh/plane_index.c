/*
 * Points or edges of one ring, sorted along a space-filling curve (Morton 1966) and packed eight to
 * a node, level upon level, in arrays of fixed size.
 *
 * Nothing is rounded outward: rounding never changes the order of two sums, so values that two
 * things have in common lie within the rounded bounds of both.
 */
#include "terrain/mesh/plane_index.h"

#include "base/check.h"
#include "base/morton.h"

#include <math.h>
#include <stdlib.h>

static void box_take(struct plane_box *box, struct vec2 p)
{
    const double along[4] = {p.x, p.y, p.x + p.y, p.x - p.y};

    for (int i = 0; i < 4; i++) {
        box->low[i] = along[i] < box->low[i] ? along[i] : box->low[i];
        box->high[i] = along[i] > box->high[i] ? along[i] : box->high[i];
    }
}

static struct plane_box box_empty(void)
{
    return (struct plane_box){{INFINITY, INFINITY, INFINITY, INFINITY},
                              {-INFINITY, -INFINITY, -INFINITY, -INFINITY}};
}

struct plane_box plane_box_of(const struct vec2 *points, uint32_t count)
{
    struct plane_box box = box_empty();

    for (uint32_t i = 0; i < count; i++)
        box_take(&box, points[i]);
    return box;
}

static void box_widen(struct plane_box *box, const struct plane_box *by)
{
    for (int i = 0; i < 4; i++) {
        box->low[i] = fmin(box->low[i], by->low[i]);
        box->high[i] = fmax(box->high[i], by->high[i]);
    }
}

static bool boxes_meet(const struct plane_box *a, const struct plane_box *b)
{
    for (int i = 0; i < 4; i++)
        if (a->low[i] > b->high[i] || b->low[i] > a->high[i])
            return false;
    return true;
}

/* ---- building ------------------------------------------------------------------------------- */

static uint32_t scaled(double x, double low, double high)
{
    return high > low ? (uint32_t)(65535 * ((x - low) / (high - low))) & 0xffff : 0;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* `length` points make an item: 1, or 2 of an edge. */
static struct plane_box item_box(const struct vec2 *points, uint32_t count, uint32_t item,
                                 int length)
{
    struct plane_box box = box_empty();

    box_take(&box, points[item]);
    if (length == 2)
        box_take(&box, points[item + 1 < count ? item + 1 : 0]);
    return box;
}

static void sort_items(struct plane_index *index, const struct vec2 *points, int length)
{
    struct plane_box all = plane_box_of(points, index->count);
    uint64_t keys[PLANE_ITEMS_MAX];

    for (uint32_t i = 0; i < index->count; i++) {
        struct plane_box box = item_box(points, index->count, i, length);
        uint32_t x = scaled(box.low[0] / 2 + box.high[0] / 2, all.low[0], all.high[0]);
        uint32_t y = scaled(box.low[1] / 2 + box.high[1] / 2, all.low[1], all.high[1]);

        keys[i] = morton2(x, y) << 32 | i;
    }
    qsort(keys, index->count, sizeof *keys, by_key);
    for (uint32_t i = 0; i < index->count; i++)
        index->order[i] = (uint16_t)keys[i];
}

static void build(struct plane_index *index, const struct vec2 *points, uint32_t count, int length)
{
    uint32_t begin = 0, width = (count + PLANE_FANOUT - 1) / PLANE_FANOUT;

    CHECK(count >= 1 && count <= PLANE_ITEMS_MAX);
    index->count = count;
    sort_items(index, points, length);
    for (uint32_t i = 0; i < width; i++) {
        index->nodes[i] = box_empty();
        index->live[i] = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t item = index->order[i];
        struct plane_box box = item_box(points, count, item, length);

        index->place[item] = (uint16_t)i;
        index->is_live[item] = true;
        index->live[i / PLANE_FANOUT]++;
        box_widen(&index->nodes[i / PLANE_FANOUT], &box);
    }
    index->first[0] = 0;
    for (index->levels = 1; width > 1; index->levels++) {
        uint32_t above = begin + width, fewer = (width + PLANE_FANOUT - 1) / PLANE_FANOUT;

        for (uint32_t i = 0; i < fewer; i++) {
            index->nodes[above + i] = box_empty();
            index->live[above + i] = 0;
        }
        for (uint32_t i = 0; i < width; i++) {
            box_widen(&index->nodes[above + i / PLANE_FANOUT], &index->nodes[begin + i]);
            index->live[above + i / PLANE_FANOUT] =
                (uint16_t)(index->live[above + i / PLANE_FANOUT] + index->live[begin + i]);
        }
        index->first[index->levels] = above;
        begin = above;
        width = fewer;
    }
}

void plane_index_points(struct plane_index *index, const struct vec2 *points, uint32_t count)
{
    build(index, points, count, 1);
}

void plane_index_edges(struct plane_index *index, const struct vec2 *points, uint32_t count)
{
    build(index, points, count, 2);
}

void plane_index_set(struct plane_index *index, uint32_t item, bool is_live)
{
    uint32_t node = index->place[item];

    if (index->is_live[item] == is_live)
        return;
    index->is_live[item] = is_live;
    for (uint32_t level = 0; level < index->levels; level++) {
        node /= PLANE_FANOUT;
        uint16_t *live = &index->live[index->first[level] + node];

        *live = (uint16_t)(is_live ? *live + 1 : *live - 1);
    }
}

/* ---- walking -------------------------------------------------------------------------------- */

static void visit(struct plane_walk *walk, uint32_t level, uint32_t node)
{
    uint32_t at = walk->index->first[level] + node;

    if (walk->index->live[at] == 0 || !boxes_meet(&walk->index->nodes[at], &walk->box))
        return;
    walk->stack[walk->top].level = level;
    walk->stack[walk->top++].node = node;
}

void plane_walk_begin(struct plane_walk *walk, const struct plane_index *index,
                      const struct plane_box *box)
{
    walk->index = index;
    walk->box = *box;
    walk->at = walk->end = walk->top = 0;
    visit(walk, index->levels - 1, 0);
}

bool plane_walk_next(struct plane_walk *walk, uint32_t *item)
{
    const struct plane_index *index = walk->index;

    for (;;) {
        while (walk->at < walk->end) {
            *item = index->order[walk->at++];
            if (index->is_live[*item])
                return true;
        }
        if (walk->top == 0)
            return false;
        uint32_t level = walk->stack[--walk->top].level;
        uint32_t first = walk->stack[walk->top].node * PLANE_FANOUT, end = first + PLANE_FANOUT;

        if (level == 0) {
            walk->at = first;
            walk->end = end < index->count ? end : index->count;
            continue;
        }
        uint32_t below = index->first[level] - index->first[level - 1];

        for (uint32_t node = first; node < end && node < below; node++)
            visit(walk, level - 1, node);
    }
}
