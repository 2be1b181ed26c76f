/*
 * Craters that granules refine.
 *
 * Problem: an impact must be in everybody's ground at once, and exactly once when its granules rest
 * many seconds later, whatever happens in between. Approach: the crater is an ordinary edit,
 * durable before the impact is acknowledged. The patch is cut from the ground without it
 * (patch_dent_undo), so that its difference holds the whole impact; the edit that writes this
 * difference takes the crater back as well. Before that edit the ground has the crater, after it
 * the granules' ground; a kill at any moment, a patch that fails or is discarded, leaves one of the
 * two.
 *
 * Both are sums in float32 on samples that others may have edited meanwhile, so taking back is
 * exact to half a unit in the last place of a sample.
 */
#include "sand/patch/patch.h"

#include <stdlib.h>
#include <string.h>

void patch_dents_end(struct patch_dent *dents, uint64_t patch, uint64_t revision, const char *why)
{
    while (dents) {
        struct patch_dent *next = dents->next;

        dents->end(dents->context, patch, revision, why);
        free(dents->added_m);
        free(dents);
        dents = next;
    }
}

static void grow(struct sample_rect *rect, const struct sample_rect *by)
{
    const uint32_t column1 = rect->column + rect->cols, row1 = rect->row + rect->rows;
    const uint32_t by_column1 = by->column + by->cols, by_row1 = by->row + by->rows;

    if (rect->cols == 0) {
        *rect = *by;
        return;
    }
    rect->column = rect->column < by->column ? rect->column : by->column;
    rect->row = rect->row < by->row ? rect->row : by->row;
    rect->cols = (column1 > by_column1 ? column1 : by_column1) - rect->column;
    rect->rows = (row1 > by_row1 ? row1 : by_row1) - rect->row;
}

/* to[…] += sign · from[…]; from's rectangle is inside. */
static void add(const struct sample_rect *to_rect, float *to, const struct sample_rect *from_rect,
                const float *from, float sign)
{
    for (uint32_t r = 0; r < from_rect->rows; r++)
        for (uint32_t c = 0; c < from_rect->cols; c++) {
            const size_t at = (size_t)(from_rect->row - to_rect->row + r) * to_rect->cols +
                              from_rect->column - to_rect->column + c;

            to[at] += sign * from[(size_t)r * from_rect->cols + c];
        }
}

enum err_code patch_dents_take_back(const struct patch_dent *dents, struct convert_change *change,
                                    struct err *err)
{
    struct sample_rect rect = change->rect;
    size_t count;
    float *heights_m;

    err->code = ERR_OK;
    if (!dents)
        return ERR_OK;
    for (const struct patch_dent *dent = dents; dent; dent = dent->next)
        grow(&rect, &dent->rect);
    count = (size_t)rect.cols * rect.rows;
    heights_m = malloc(count * sizeof *heights_m);
    if (!heights_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for an edit of %zu samples", count);
    for (size_t i = 0; i < count; i++)
        heights_m[i] = -0.0F; /* keeps the bits of a sample */
    if (change->rect.cols > 0)
        add(&rect, heights_m, &change->rect, change->heights_m, 1);
    for (const struct patch_dent *dent = dents; dent; dent = dent->next)
        add(&rect, heights_m, &dent->rect, dent->added_m, -1);
    free(change->heights_m);
    change->heights_m = heights_m;
    change->rect = rect;
    return ERR_OK;
}

struct heightfield *patch_dent_undo(const struct heightfield *field, const struct patch_dent *dent,
                                    struct err *err)
{
    const size_t count = (size_t)dent->rect.cols * dent->rect.rows;
    float *heights_m = malloc(count * sizeof *heights_m);
    struct heightfield *out = NULL;

    if (!heights_m) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu samples", count);
        return NULL;
    }
    heightfield_read_samples(field, &dent->rect, heights_m);
    add(&dent->rect, heights_m, &dent->rect, dent->added_m, -1);
    out = heightfield_with_samples(field, &dent->rect, heights_m, err);
    free(heights_m);
    return out;
}
