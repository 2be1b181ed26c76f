/*
 * The outcome of an edit: set, add, and the frame around brushes.
 *
 * Problem: an edit comes from outside with numbers of any kind, and its effect on a rectangle
 * must be known before anything is changed. Approach: check all that can be checked without the
 * samples (edit_rect), read the rectangle as it is, compute each new sample in float64 and round it
 * once. The outcome is a plain array: no later step depends on the kind of edit.
 *
 * A sample that an edit does not change keeps its bits, those of a NaN included; a hole that an add
 * makes is the one NaN of __builtin_nanf(""). Brushes: brush.c.
 */
#include "terrain/field/edit.h"

#include "terrain/field/brush.h"
#include "terrain/field/relax.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static enum err_code rect_check(const struct heightfield_spec *spec, const struct sample_rect *rect,
                                struct err *err)
{
    if (rect->cols == 0 || rect->rows == 0)
        return err_set(err, ERR_BAD_INPUT, "rect has %u×%u samples, must have at least one",
                       rect->cols, rect->rows);
    if (rect->column >= spec->cols || rect->cols > spec->cols - rect->column)
        return err_limit(err, ERR_UNPROCESSABLE, spec->cols,
                         (double)rect->column + (double)rect->cols,
                         "rect's columns %u..%.0f are not inside 0..%u", rect->column,
                         (double)rect->column + (double)rect->cols - 1, spec->cols - 1);
    if (rect->row >= spec->rows || rect->rows > spec->rows - rect->row)
        return err_limit(err, ERR_UNPROCESSABLE, spec->rows, (double)rect->row + (double)rect->rows,
                         "rect's rows %u..%.0f are not inside 0..%u", rect->row,
                         (double)rect->row + (double)rect->rows - 1, spec->rows - 1);
    return ERR_OK;
}

enum err_code edit_rect(const struct heightfield *field, const struct edit *edit,
                        uint64_t samples_max, struct sample_rect *out, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct sample_rect rect = edit->rect;

    if (edit->kind == EDIT_BRUSH ? brush_rect(spec, &edit->brush, &rect, err)
                                 : rect_check(spec, &rect, err))
        return err->code;
    uint64_t samples = (uint64_t)rect.cols * rect.rows;

    const struct brush *brush = &edit->brush;
    const bool is_relaxed =
        edit->kind == EDIT_BRUSH &&
        (brush->shape == BRUSH_RELAX || (brush->shape == BRUSH_CRATER && brush->slope_deg != 0));

    if (is_relaxed && samples_max > RELAX_SAMPLES_MAX)
        samples_max = RELAX_SAMPLES_MAX;
    if (samples > samples_max)
        return err_limit(err, ERR_TOO_LARGE, (double)samples_max, (double)samples,
                         "the edit is of %u×%u samples, must be at most %llu samples", rect.cols,
                         rect.rows, (unsigned long long)samples_max);
    *out = rect;
    return ERR_OK;
}

static enum err_code infinite_check(const struct edit *edit, struct err *err)
{
    size_t count = (size_t)edit->rect.cols * edit->rect.rows;

    for (size_t i = 0; i < count; i++)
        if (isinf(edit->heights_m[i]))
            return err_set(err, ERR_BAD_INPUT, "height (%zu, %zu) of the rect is infinite",
                           i % edit->rect.cols, i / edit->rect.cols);
    return ERR_OK;
}

static enum err_code add(const struct edit *edit, float *heights_m, struct err *err)
{
    size_t count = (size_t)edit->rect.cols * edit->rect.rows;

    for (size_t i = 0; i < count; i++) {
        double sum = (double)heights_m[i] + (double)edit->heights_m[i];

        if (isnan(heights_m[i]))
            continue;
        heights_m[i] = isnan(sum) ? __builtin_nanf("") : (float)sum;
        if (isinf(heights_m[i]))
            return err_limit(err, ERR_UNPROCESSABLE, (double)__FLT_MAX__, sum,
                             "sample (%zu, %zu) would become %g, beyond float32",
                             edit->rect.column + i % edit->rect.cols,
                             edit->rect.row + i / edit->rect.cols, sum);
    }
    return ERR_OK;
}

static enum err_code outcome_fill(const struct heightfield *field, const struct edit *edit,
                                  struct edit_outcome *outcome, struct err *err)
{
    size_t count = (size_t)outcome->rect.cols * outcome->rect.rows;

    if (edit->kind != EDIT_BRUSH && infinite_check(edit, err))
        return err->code;
    if (edit->kind == EDIT_SET) {
        memcpy(outcome->heights_m, edit->heights_m, count * sizeof *outcome->heights_m);
        return ERR_OK;
    }
    heightfield_read_samples(field, &outcome->rect, outcome->heights_m);
    if (edit->kind == EDIT_ADD)
        return add(edit, outcome->heights_m, err);
    return brush_apply(field, &edit->brush, &outcome->rect, outcome->heights_m, err);
}

enum err_code edit_evaluate(const struct heightfield *field, const struct edit *edit,
                            uint64_t samples_max, struct edit_outcome *out, struct err *err)
{
    struct edit_outcome outcome;

    CHECK(edit->kind == EDIT_BRUSH || edit->heights_m != NULL);
    if (edit_rect(field, edit, samples_max, &outcome.rect, err))
        return err->code;
    outcome.heights_m =
        malloc((size_t)outcome.rect.cols * outcome.rect.rows * sizeof *outcome.heights_m);
    if (outcome.heights_m == NULL)
        return err_set(err, ERR_NO_MEMORY, "no memory for an edit of %u×%u samples",
                       outcome.rect.cols, outcome.rect.rows);
    if (outcome_fill(field, edit, &outcome, err)) {
        free(outcome.heights_m);
        return err->code;
    }
    *out = outcome;
    return ERR_OK;
}

void edit_outcome_free(struct edit_outcome *outcome)
{
    free(outcome->heights_m);
    outcome->heights_m = NULL;
}
