/*
 * The union of many rectangles, in few of them.
 *
 * Problem: a client that missed ten thousand edits needs a short list of rectangles to fetch again;
 * most edits repeat the same places. Approach: a rectangle inside another one is dropped either
 * way. When there are too many the set is sorted along a Z curve, so that neighbours in the list
 * are near on the ground. Each rectangle finds the one of the next NEIGHBOURS that it is united
 * with for the fewest samples more, and the cheapest pairs are united, in rounds, until there are
 * few enough. That may name samples that did not change, never the reverse. Invariant: between
 * calls no rectangle lies inside another one. Dropped: exact unions of overlapping rectangles (more
 * rectangles, not fewer). Source: G. Morton, "A computer oriented geodetic data base", 1966.
 */
#include "api/rect_set.h"

#include "base/morton.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    NEIGHBOURS = 16,
    ROUND_SHARE = 4 /* a round unites a quarter: its results may be cheaper to unite further */
};

/* Drops the rectangles inside `rect`. */
static void drop_inside(struct rect_set *set, const struct sample_rect *rect)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++)
        if (!sample_rect_is_inside(&set->rects[i], rect))
            set->rects[kept++] = set->rects[i];
    set->count = kept;
}

/* Of the middle, in half samples. */
static uint64_t z_order(const struct sample_rect *r)
{
    return morton2(2 * r->column + r->cols, 2 * r->row + r->rows);
}

static int compare_z(const void *a, const void *b)
{
    uint64_t x = z_order(a), y = z_order(b);

    return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b)
{
    const struct sample_rect *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static struct sample_rect united(const struct sample_rect *a, const struct sample_rect *b)
{
    uint32_t column = a->column < b->column ? a->column : b->column;
    uint32_t row = a->row < b->row ? a->row : b->row;
    uint32_t right_a = a->column + a->cols, right_b = b->column + b->cols;
    uint32_t top_a = a->row + a->rows, top_b = b->row + b->rows;

    return (struct sample_rect){column, row, (right_a > right_b ? right_a : right_b) - column,
                                (top_a > top_b ? top_a : top_b) - row};
}

/* What two rectangles cost as one: samples that are in neither, or less where they overlap. */
struct union_cost {
    int64_t samples;
    uint32_t first, second;
};

static int compare_cost(const void *a, const void *b)
{
    const struct union_cost *x = a, *y = b;

    if (x->samples != y->samples)
        return x->samples < y->samples ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static int64_t samples_of(const struct sample_rect *r)
{
    return (int64_t)r->cols * r->rows;
}

/* The cheapest partner of rects[i] among those that follow it. */
static struct union_cost cheapest(const struct rect_set *set, size_t i)
{
    struct union_cost best = {INT64_MAX, (uint32_t)i, (uint32_t)i};
    const struct sample_rect *a = &set->rects[i];

    for (size_t k = i + 1; k < set->count && k <= i + NEIGHBOURS; k++) {
        const struct sample_rect *b = &set->rects[k];
        struct sample_rect both = united(a, b);
        int64_t samples = samples_of(&both) - samples_of(a) - samples_of(b);

        if (samples < best.samples)
            best = (struct union_cost){samples, (uint32_t)i, (uint32_t)k};
    }
    return best;
}

/* Unites at most `most` pairs, the cheapest first, each rectangle once. */
static void unite_pairs(struct rect_set *set, size_t most)
{
    struct union_cost costs[RECT_SET_ROOM];
    bool is_taken[RECT_SET_ROOM] = {false}, is_gone[RECT_SET_ROOM] = {false};
    size_t kept = 0;

    qsort(set->rects, set->count, sizeof *set->rects, compare_z);
    for (size_t i = 0; i + 1 < set->count; i++)
        costs[i] = cheapest(set, i);
    qsort(costs, set->count - 1, sizeof *costs, compare_cost);
    for (size_t i = 0; i + 1 < set->count && most > 0; i++) {
        uint32_t a = costs[i].first, b = costs[i].second;

        if (is_taken[a] || is_taken[b])
            continue;
        is_taken[a] = is_taken[b] = is_gone[b] = true;
        set->rects[a] = united(&set->rects[a], &set->rects[b]);
        most--;
    }
    for (size_t i = 0; i < set->count; i++)
        if (!is_gone[i])
            set->rects[kept++] = set->rects[i];
    set->count = kept;
}

/* To at most RECT_SET_MAX. */
static void unite(struct rect_set *set)
{
    struct rect_set apart = {.count = 0};

    if (set->count <= RECT_SET_MAX)
        return;
    while (set->count > RECT_SET_MAX)
        unite_pairs(set, (set->count - RECT_SET_MAX + ROUND_SHARE - 1) / ROUND_SHARE);
    for (size_t i = 0; i < set->count; i++) /* a grown one may contain others */
        rect_set_add(&apart, &set->rects[i]);
    *set = apart;
}

void rect_set_add(struct rect_set *set, const struct sample_rect *rect)
{
    for (size_t i = 0; i < set->count; i++)
        if (sample_rect_is_inside(rect, &set->rects[i]))
            return;
    drop_inside(set, rect);
    if (set->count == RECT_SET_ROOM)
        unite(set);
    set->rects[set->count++] = *rect;
}

void rect_set_finish(struct rect_set *set)
{
    unite(set);
    qsort(set->rects, set->count, sizeof *set->rects, compare_rows);
}
