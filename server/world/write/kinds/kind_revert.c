/*
 * WORLD_REVERT: samples as they were before earlier edits (world/write/revert.h).
 *
 * A worker has read the history up to the client's snapshot. The writer reads the revisions since,
 * those of the same commit included, so that the edit is of the field as it is; then it is an edit
 * as any other: a row in the log with its samples, one in the history with what it replaced. A
 * shared log has the samples that are reverted, and which those are.
 */
#include "world/write/kinds/kind.h"

#include "world/write/revert.h"

#include <stdlib.h>
#include <string.h>

static bool is_set(const uint8_t *bits, size_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

/* As another node has made it. */
static enum err_code make_logged(struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct layer *layer = locale_layer(result->before, change->layer_id);
    const struct sample_rect *rect = &change->edit.rect;
    const uint8_t *changed = revert_plan_changed(change->revert);
    const float *next_m = change->edit.heights_m;
    const size_t count = (size_t)rect->cols * rect->rows;

    if (!layer || !layer->field || !sample_rect_fits(rect, heightfield_spec(layer->field)))
        return err_set(err, ERR_DAMAGED, "there are no such samples to revert");
    result->outcome.rect = *rect;
    result->outcome.heights_m = malloc(count * sizeof *result->outcome.heights_m);
    if (!result->outcome.heights_m)
        return err_set(err, ERR_NO_MEMORY, "no memory to revert");
    heightfield_read_samples(layer->field, rect, result->outcome.heights_m);
    for (size_t i = 0; i < count; i++)
        if (is_set(changed, i))
            result->outcome.heights_m[i] = *next_m++;
    return kind_make_samples(result, layer, err);
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    if (draft->is_followed)
        return make_logged(result, err);

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
    return kind_check_rect(change, heightfield_spec(layer->field), &result->outcome.rect, err)
               ? err->code
               : kind_make_samples(result, layer, err);
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    const struct edit_outcome *outcome = &result->outcome;
    const size_t count = (size_t)outcome->rect.cols * outcome->rect.rows;
    const uint8_t *changed = revert_plan_changed(result->change->revert);

    record_put(sink, changed, (count + 7) / 8);
    for (size_t i = 0; i < count; i++)
        if (is_set(changed, i))
            record_put(sink, &outcome->heights_m[i], sizeof *outcome->heights_m);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    const uint32_t *rect = entry->rect;
    const uint64_t count = entry->has_rect ? (uint64_t)rect[2] * rect[3] : 0;
    size_t set = 0;
    float *heights_m;
    uint8_t *changed;

    if (record_is_bad(reader))
        return;
    if (count == 0 || (count + 7) / 8 > reader->left) {
        record_damaged(reader, "a revert has less bits than its rectangle has samples");
        return;
    }
    for (size_t i = 0; i < count; i++)
        set += is_set(reader->at, i);
    if (reader->left - (count + 7) / 8 != set * sizeof *heights_m) {
        record_damaged(reader, "a revert has another number of samples than its bits say");
        return;
    }
    changed = malloc((count + 7) / 8);
    heights_m = malloc(set * sizeof *heights_m + 1);
    if (!changed || !heights_m) {
        free(changed);
        free(heights_m);
        err_set(reader->err, ERR_NO_MEMORY, "no memory for a revert");
        return;
    }
    record_get(reader, changed, (count + 7) / 8);
    record_get(reader, heights_m, set * sizeof *heights_m);
    out->edit = (struct edit){
        .kind = EDIT_SET, .rect = {rect[0], rect[1], rect[2], rect[3]}, .heights_m = heights_m};
    out->revert = revert_plan_logged(changed, reader->err);
}

const struct change_kind revert_kind = {
    .source = "revert",
    .scope = CHANGE_OF_LOCALE,
    .logs_layer = true,
    .make = make,
    .persist = kind_persist_samples,
    .encode = encode,
    .decode = decode,
    .announce = announce_nothing,
    .count = kind_count_samples,
};
