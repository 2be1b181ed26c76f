/*
 * Extents of questions, and the index of them.
 *
 * Problem: of a hundred thousand questions that wait for another answer, an edit of forty metres
 * concerns some hundred.
 * Approach: a question is a part of a line: a ray, a segment, the column along gravity through a
 * point. The box of the line's plan puts it into the squares of a grid that it meets, about one
 * square a question; a long one is in a list instead. The box of a change gives candidates, and a
 * slab test along the line decides. The grid is built again when questions come or go, in one pass
 * of counting and one of filling.
 */
#include "terrain/swept_box.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SQUARES_OF_ONE = 16, SQUARES_MAX = 1 << 20 };

#define SLACK 1e-6

static double slack_of(double a, double b, double c)
{
    return SLACK * (1 + fmax(fabs(a), fmax(fabs(b), fabs(c))));
}

bool swept_box_meets(const struct swept_box *extent, const struct box3 *box)
{
    const double *o = &extent->origin.x, *d = &extent->direction.x, *half = &extent->half.x;
    const double *low = &box->min.x, *high = &box->max.x;
    double enter = extent->t_min, leave = extent->t_max;

    if (extent->is_everywhere || extent->is_none)
        return !extent->is_none;
    for (int axis = 0; axis < 3; axis++) {
        double slack = slack_of(o[axis], isfinite(low[axis]) ? low[axis] : 0,
                                isfinite(high[axis]) ? high[axis] : 0);
        double a = low[axis] - half[axis] - slack - o[axis];
        double b = high[axis] + half[axis] + slack - o[axis];

        if (d[axis] == 0) {
            if (a > 0 || b < 0)
                return false;
            continue;
        }
        a /= d[axis];
        b /= d[axis];
        enter = fmax(enter, fmin(a, b));
        leave = fmin(leave, fmax(a, b));
    }
    return enter <= leave;
}

/* The rectangle of the plan x0 y0 x1 y1; false: not bounded. */
static bool plan_of(const struct swept_box *extent, double rect[4])
{
    const double *o = &extent->origin.x, *d = &extent->direction.x, *half = &extent->half.x;

    for (int axis = 0; axis < 2; axis++) {
        double a = d[axis] == 0 ? o[axis] : o[axis] + extent->t_min * d[axis];
        double b = d[axis] == 0 ? o[axis] : o[axis] + extent->t_max * d[axis];
        double slack = slack_of(o[axis], isfinite(a) ? a : 0, isfinite(b) ? b : 0) + half[axis];

        rect[axis] = fmin(a, b) - slack;
        rect[2 + axis] = fmax(a, b) + slack;
    }
    return !extent->is_everywhere && isfinite(rect[0]) && isfinite(rect[1]) && isfinite(rect[2]) &&
           isfinite(rect[3]);
}

static uint32_t square(double at, double origin, double side, uint32_t count)
{
    double index = floor((at - origin) / side);

    return index > 0 ? index < count - 1.0 ? (uint32_t)index : count - 1 : 0;
}

/* Columns c0..c1 and rows r0..r1 that a rectangle meets; returns how many squares. */
static double squares_of(const struct swept_box_index *index, const double rect[4], uint32_t out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = square(rect[i], index->origin[i & 1], index->side,
                        i & 1 ? index->rows : index->columns);
    return (out[2] - out[0] + 1.0) * (out[3] - out[1] + 1.0);
}

void swept_box_index_free(struct swept_box_index *index)
{
    free(index->starts);
    free(index->entries);
    free(index->wide);
    free(index->stamps);
    *index = (struct swept_box_index){.side = 1};
}

/* Origin, side and size of the grid over all bounded extents. */
static void lay_out(struct swept_box_index *index, const struct swept_box *extents, size_t count)
{
    double all[4] = {INFINITY, INFINITY, -INFINITY, -INFINITY}, rect[4], side, bounded = 0;

    for (size_t i = 0; i < count; i++) {
        if (extents[i].is_none || !plan_of(&extents[i], rect))
            continue;
        bounded++;
        for (int k = 0; k < 2; k++) {
            all[k] = fmin(all[k], rect[k]);
            all[2 + k] = fmax(all[2 + k], rect[2 + k]);
        }
    }
    if (bounded == 0)
        return;
    bounded = fmin(bounded, SQUARES_MAX / 4);
    side = fmax(sqrt((all[2] - all[0]) * (all[3] - all[1]) / bounded),
                fmax(all[2] - all[0], all[3] - all[1]) / bounded);
    index->side = fmax(side, 1e-6);
    index->origin[0] = all[0];
    index->origin[1] = all[1];
    index->columns = (uint32_t)fmin(bounded, floor((all[2] - all[0]) / index->side)) + 1;
    index->rows = (uint32_t)fmin(bounded, floor((all[3] - all[1]) / index->side)) + 1;
}

bool swept_box_index_build(struct swept_box_index *index, const struct swept_box *extents,
                           size_t count)
{
    size_t squares, entries = 0;
    uint32_t at[4];
    double rect[4];

    swept_box_index_free(index);
    lay_out(index, extents, count);
    squares = (size_t)index->columns * index->rows;
    index->count = count;
    index->starts = calloc(squares + 2, sizeof *index->starts);
    index->entries = malloc((SQUARES_OF_ONE * count + 1) * sizeof *index->entries);
    index->wide = malloc((count + 1) * sizeof *index->wide);
    index->stamps = calloc(count + 1, sizeof *index->stamps);
    if (!index->starts || !index->entries || !index->wide || !index->stamps) {
        swept_box_index_free(index);
        return false;
    }
    /* starts[s + 2] counts those of square s, then starts[s + 1] is where its next one goes */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            if (extents[i].is_none)
                continue;
            if (!plan_of(&extents[i], rect) || squares_of(index, rect, at) > SQUARES_OF_ONE) {
                if (pass == 0)
                    index->wide[index->wide_count++] = (uint32_t)i;
                continue;
            }
            for (uint32_t row = at[1]; row <= at[3]; row++)
                for (uint32_t column = at[0]; column <= at[2]; column++) {
                    size_t s = (size_t)row * index->columns + column;

                    if (pass == 0)
                        index->starts[s + 2]++;
                    else
                        index->entries[index->starts[s + 1]++] = (uint32_t)i;
                }
        }
        for (size_t s = 0; s < squares && pass == 0; s++) {
            entries += index->starts[s + 2];
            index->starts[s + 2] = (uint32_t)entries;
        }
    }
    return true;
}

void swept_box_index_begin(struct swept_box_index *index)
{
    index->stamp++;
    if (index->stamp == 0) {
        memset(index->stamps, 0, index->count * sizeof *index->stamps);
        index->stamp = 1;
    }
}

static size_t take(struct swept_box_index *index, const struct swept_box *extents,
                   const struct box3 *box, uint32_t which, uint32_t *out, size_t found)
{
    if (index->stamps[which] == index->stamp || !swept_box_meets(&extents[which], box))
        return found;
    index->stamps[which] = index->stamp;
    out[found] = which;
    return found + 1;
}

size_t swept_box_index_find(struct swept_box_index *index, const struct swept_box *extents,
                            const struct box3 *box, uint32_t *out)
{
    const double rect[4] = {box->min.x, box->min.y, box->max.x, box->max.y};
    double slack =
        SLACK * (1 + fmax(fmax(fabs(rect[0]), fabs(rect[1])), fmax(fabs(rect[2]), fabs(rect[3]))));
    const double wider[4] = {rect[0] - slack, rect[1] - slack, rect[2] + slack, rect[3] + slack};
    size_t found = 0;
    uint32_t at[4];

    for (size_t i = 0; i < index->wide_count; i++)
        found = take(index, extents, box, index->wide[i], out, found);
    if (index->columns == 0)
        return found;
    squares_of(index, wider, at);
    for (uint32_t row = at[1]; row <= at[3]; row++)
        for (uint32_t column = at[0]; column <= at[2]; column++) {
            size_t s = (size_t)row * index->columns + column;

            for (uint32_t k = index->starts[s]; k < index->starts[s + 1]; k++)
                found = take(index, extents, box, index->entries[k], out, found);
        }
    return found;
}
