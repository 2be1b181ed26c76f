/*
 * WORLD_REVERT: samples as they were before earlier edits (world/write/revert.h).
 *
 * A worker has read the history up to the client's snapshot. The writer reads the revisions since,
 * those of the same commit included, so that the edit is of the field as it is; then it is an edit
 * as any other: a row in the log with its samples, one in the history with what it replaced.
 */
#include "world/write/kinds/kind.h"

#include "world/write/revert.h"

#include <string.h>

static enum err_code check_bounds(const struct world_change *change,
                                  const struct heightfield_spec *spec,
                                  const struct sample_rect *rect, struct err *err)
{
    double box_m[4] = {spec->origin_x_m + rect->column * spec->spacing_x_m,
                       spec->origin_y_m + rect->row * spec->spacing_y_m,
                       spec->origin_x_m +
                           ((double)rect->column + rect->cols - 1) * spec->spacing_x_m,
                       spec->origin_y_m + ((double)rect->row + rect->rows - 1) * spec->spacing_y_m};

    return change->has_bounds ? world_check_bounds(change->bounds_m, box_m, err) : ERR_OK;
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct revert_question *question = revert_plan_question(change->revert);
    const struct layer *layer = locale_layer(result->before, question->layer);

    if (!layer || !layer->field ||
        !revert_plan_is_of(change->revert, heightfield_spec(layer->field)))
        return err_set(err, ERR_CONFLICT, "layer %s has been replaced meanwhile", question->layer);
    if (revert_plan_read(change->revert, draft->world, result->before->revision, true, err) ||
        revert_plan_make(change->revert, layer->field, &result->outcome, err))
        return err->code;
    if (!result->outcome.heights_m) {
        result->is_nothing = true;
        result->after = locale_ref(result->before);
        return ERR_OK;
    }
    return check_bounds(change, heightfield_spec(layer->field), &result->outcome.rect, err)
               ? err->code
               : kind_make_samples(result, layer, err);
}

const struct change_kind revert_kind = {
    .source = "revert",
    .scope = CHANGE_OF_LOCALE,
    .make = make,
    .persist = kind_persist_samples,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce_nothing,
    .count = kind_count_samples,
};
