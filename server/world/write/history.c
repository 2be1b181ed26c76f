/*
 * The row of the history of a change.
 *
 * A change that has a rectangle of samples (an edit, a revert, a restore of samples) gets a row
 * with the samples before. An uploaded `set` is said to change all samples of its rectangle, those
 * too that it sets to what they are: replayed elsewhere it would change them. The rectangle of all
 * others is only a bound (a brush, granules, an `add` of 0), so each sample has a bit.
 */
#include "world/write/history.h"

#include "world/values/history_list.h"
#include "world/write/revert.h"

#include <stdlib.h>
#include <string.h>

/* The field of that layer, with the event's rectangle in it. */
static const struct heightfield *field_of(const struct locale *locale,
                                          const struct feed_event *event)
{
    const struct layer *layer = locale ? locale_layer(locale, event->layer) : NULL;
    const struct sample_rect *rect = &event->rect;
    const struct heightfield_spec *spec =
        layer && layer->field ? heightfield_spec(layer->field) : NULL;

    return spec && sample_rect_fits(rect, spec) ? layer->field : NULL;
}

/* A bit for each sample of `before` that is another one now; NULL without memory. */
static uint8_t *differing(const struct heightfield *after, const struct sample_rect *rect,
                          const float *before_m)
{
    const size_t count = (size_t)rect->cols * rect->rows;
    float *after_m = malloc(count * sizeof *after_m);
    uint8_t *bits = calloc((count + 7) / 8, 1);

    if (after_m && bits) {
        heightfield_read_samples(after, rect, after_m);
        for (size_t i = 0; i < count; i++)
            if (memcmp(&before_m[i], &after_m[i], sizeof *after_m) != 0)
                bits[i / 8] |= (uint8_t)(1u << i % 8);
        free(after_m);
        return bits;
    }
    free(after_m);
    free(bits);
    return NULL;
}

bool history_is_set(const struct world_change *change)
{
    if (change->kind != WORLD_EDIT || change->edit.kind != EDIT_SET)
        return false;
    return change->author.time_ms != 0 ? change->author.is_set : change->source[0] == '\0';
}

static enum err_code describe_samples(const struct change_result *result, struct store_past *out,
                                      float **samples, uint8_t **changed, struct err *err)
{
    const struct world_change *change = result->change;
    const struct heightfield *before = field_of(result->before, &result->event);
    const struct heightfield *after = field_of(result->after, &result->event);
    const bool has_samples =
        change->kind == WORLD_EDIT || change->kind == WORLD_REVERT || change->kind == WORLD_RESTORE;
    const bool is_set = history_is_set(change);

    if (!has_samples || !before || !after)
        return ERR_OK;
    *samples = malloc((size_t)out->rect.cols * out->rect.rows * sizeof **samples);
    if (*samples)
        heightfield_read_samples(before, &out->rect, *samples);
    if (*samples && change->kind == WORLD_REVERT)
        out->changed = revert_plan_changed(change->revert);
    else if (*samples && !is_set)
        out->changed = *changed = differing(after, &out->rect, *samples);
    if (!*samples || (!is_set && !out->changed))
        return err_set(err, ERR_NO_MEMORY, "no memory for the history");
    out->before_m = *samples;
    out->has_before = true;
    return ERR_OK;
}

enum err_code history_describe(const struct change_result *result, struct store_past *out,
                               float **samples, uint8_t **changed, struct err *err)
{
    const struct world_change *change = result->change;
    const struct feed_event *event = &result->event;

    *out = (struct store_past){.revision = event->revision,
                               .time_ms = result->time_ms,
                               .kind = (int)change->kind,
                               .is_birth = !result->before,
                               .has_rect = event->has_rect,
                               .rect = event->rect};
    memcpy(out->layer, event->layer, sizeof out->layer);
    memcpy(out->source, event->source, sizeof out->source);
    memcpy(out->author, change->author.name, sizeof out->author);
    memcpy(out->note, change->author.note, sizeof out->note);
    return event->has_rect ? describe_samples(result, out, samples, changed, err) : ERR_OK;
}

enum err_code history_remember(struct world *world, const struct change_result *result,
                               struct err *err)
{
    const char *locale = result->change->locale_id;
    float *samples = NULL;
    uint8_t *changed = NULL;
    struct store_past past;

    err->code = ERR_OK;
    if (!result_is_of_locale(result))
        return ERR_OK;
    if (!result->after || history_describe(result, &past, &samples, &changed, err) == ERR_OK)
        history_list_append(world->history, locale, result->after ? &past : NULL,
                            world->limits.history_bytes_max, err);
    free(samples);
    free(changed);
    return err->code;
}
