/*
 * The union of many rectangles, in few of them.
 *
 * Problem: a client that was away for ten thousand edits wants a short list of what to fetch again,
 * most of it the same places over and over. Approach: a rectangle inside another one is dropped
 * either way. When there are too many the set is sorted along a Z curve, so that what is near in
 * the list is near on the ground, and runs of it are united; that may name samples that did not
 * change, never the reverse.
 * Invariant: between calls no rectangle lies inside another one.
 * Dropped: exact unions of overlapping rectangles (more rectangles, not fewer).
 * Source: G. Morton, "A computer oriented geodetic data base", 1966.
 */
#include "api/rect_set.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_inside(const struct sample_rect *inner, const struct sample_rect *outer)
{
    return inner->column >= outer->column && inner->row >= outer->row &&
           inner->column + inner->cols <= outer->column + outer->cols &&
           inner->row + inner->rows <= outer->row + outer->rows;
}

/* Drops what lies inside `rect`. */
static void drop_inside(struct rect_set *set, const struct sample_rect *rect)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++)
        if (!is_inside(&set->rects[i], rect))
            set->rects[kept++] = set->rects[i];
    set->count = kept;
}

static uint64_t spread(uint64_t x)
{
    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    x = (x | x << 2) & 0x3333333333333333u;
    return (x | x << 1) & 0x5555555555555555u;
}

/* Of the middle, in half samples. */
static uint64_t z_order(const struct sample_rect *r)
{
    return spread(2 * r->row + r->rows) << 1 | spread(2 * r->column + r->cols);
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

/* To at most RECT_SET_MAX. */
static void unite(struct rect_set *set)
{
    struct rect_set fewer = {.count = 0};
    size_t run = (set->count + RECT_SET_MAX - 1) / RECT_SET_MAX;

    if (run < 2)
        return;
    qsort(set->rects, set->count, sizeof *set->rects, compare_z);
    for (size_t i = 0; i < set->count; i += run) {
        struct sample_rect all = set->rects[i];

        for (size_t k = i + 1; k < i + run && k < set->count; k++)
            all = united(&all, &set->rects[k]);
        rect_set_add(&fewer, &all);
    }
    *set = fewer;
}

void rect_set_add(struct rect_set *set, const struct sample_rect *rect)
{
    for (size_t i = 0; i < set->count; i++)
        if (is_inside(rect, &set->rects[i]))
            return;
    drop_inside(set, rect);
    if (set->count == sizeof set->rects / sizeof *set->rects)
        unite(set);
    set->rects[set->count++] = *rect;
}

void rect_set_finish(struct rect_set *set)
{
    unite(set);
    qsort(set->rects, set->count, sizeof *set->rects, compare_rows);
}
