/*
 * WORLD_EDIT: new samples of a rectangle of a heightfield (terrain/field/edit.h): set, added, or
 * changed by a brush.
 *
 * The writer evaluates it on the field as it is then, so two edits that wait together both count.
 * The store's log and the shared log have the resulting samples, never the brush: applying them
 * gives the same bits on every machine. The tiles are written later, from the log
 * (store_materialise.c).
 */
#include "world/write/kinds/kind.h"

#include "world/ask/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The box of the cells that touch a rect's samples, as they were and as they are. */
static void bound_edit(const struct heightfield *before, const struct heightfield *after,
                       const struct sample_rect *rect, struct feed_event *event)
{
    const struct heightfield_spec *spec = heightfield_spec(after);
    uint32_t c0 = rect->column > 0 ? rect->column - 1 : 0, r0 = rect->row > 0 ? rect->row - 1 : 0;
    uint32_t c1 = rect->column + rect->cols, r1 = rect->row + rect->rows;
    float low, high, min = INFINITY, max = -INFINITY;

    c1 = c1 < spec->cols ? c1 : spec->cols - 1;
    r1 = r1 < spec->rows ? r1 : spec->rows - 1;
    for (int i = 0; i < 2; i++)
        if (heightfield_range(i ? after : before, c0, r0, c1, r1, &low, &high)) {
            min = low < min ? low : min;
            max = high > max ? high : max;
        }
    event->has_bounds = min <= max;
    event->has_area = true;
    event->bounds = (struct box3){{spec->origin_x_m + c0 * spec->spacing_x_m,
                                   spec->origin_y_m + r0 * spec->spacing_y_m, (double)min},
                                  {spec->origin_x_m + c1 * spec->spacing_x_m,
                                   spec->origin_y_m + r1 * spec->spacing_y_m, (double)max}};
}

/* The least and greatest sample where the edit has changed them. */
static void range_edit(const struct heightfield *before, const struct heightfield *after,
                       struct feed_event *event)
{
    struct box3 was, is;
    bool had_data = heightfield_bounds(before, &was), has_data = heightfield_bounds(after, &is);

    event->has_range = had_data != has_data || was.min.z != is.min.z || was.max.z != is.max.z;
    event->range[0] = has_data ? (float)is.min.z : INFINITY;
    event->range[1] = has_data ? (float)is.max.z : -INFINITY;
}

void kind_describe_samples(const struct heightfield *before, const struct heightfield *after,
                           struct feed_event *event)
{
    bound_edit(before, after, &event->rect, event);
    range_edit(before, after, event);
}

enum err_code kind_check_rect(const struct world_change *change,
                              const struct heightfield_spec *spec, const struct sample_rect *rect,
                              struct err *err)
{
    double box_m[4] = {spec->origin_x_m + rect->column * spec->spacing_x_m,
                       spec->origin_y_m + rect->row * spec->spacing_y_m,
                       spec->origin_x_m +
                           ((double)rect->column + rect->cols - 1) * spec->spacing_x_m,
                       spec->origin_y_m + ((double)rect->row + rect->rows - 1) * spec->spacing_y_m};

    return change->has_bounds ? world_check_bounds(change->bounds_m, box_m, err) : ERR_OK;
}

enum err_code kind_check_box(const struct world_change *change, const struct box3 *box,
                             struct err *err)
{
    if (!change->has_bounds || !box)
        return ERR_OK;
    return world_check_bounds(change->bounds_m,
                              (double[4]){box->min.x, box->min.y, box->max.x, box->max.y}, err);
}

/* A brush changes the square around it, other edits the samples of their rect. */
static enum err_code check_bounds(const struct world_change *change,
                                  const struct heightfield_spec *spec, struct err *err)
{
    const struct brush *brush = &change->edit.brush;
    double box_m[4] = {brush->center.x - brush->radius_m, brush->center.y - brush->radius_m,
                       brush->center.x + brush->radius_m, brush->center.y + brush->radius_m};

    if (change->edit.kind != EDIT_BRUSH)
        return kind_check_rect(change, spec, &change->edit.rect, err);
    return change->has_bounds ? world_check_bounds(change->bounds_m, box_m, err) : ERR_OK;
}

enum err_code kind_make_samples(struct change_result *result, const struct layer *old,
                                struct err *err)
{
    struct heightfield *field;
    struct layer *layer;

    field =
        heightfield_with_samples(old->field, &result->outcome.rect, result->outcome.heights_m, err);
    if (field && result->before->manifest.from[0] != '\0')
        heightfield_share(field, old->field, &result->outcome.rect);
    layer = field ? layer_create_heightfield(old->id, field, err) : NULL;
    if (!layer)
        return err->code;
    result->after = locale_next(result->before, NULL, layer, NULL, NULL, err);
    layer_unref(layer);
    if (!result->after)
        return err->code;
    result->layer = locale_layer(result->after, old->id);
    result->event.has_rect = true;
    result->event.rect = result->outcome.rect;
    memcpy(result->event.layer, old->id, sizeof result->event.layer);
    kind_describe_samples(old->field, result->layer->field, &result->event);
    result->event.content = feed_content_create(
        result->outcome.heights_m,
        (size_t)result->outcome.rect.cols * result->outcome.rect.rows * sizeof(float), false);
    return ERR_OK;
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const char *wanted = change->layer_id[0] != '\0' ? change->layer_id : NULL;
    uint64_t samples_max = draft->is_followed ? UINT64_MAX : draft->world->limits.edit_samples_max;
    const struct layer *old;

    if (locale_choose_field(result->before, wanted, &old, err) ||
        check_bounds(change, heightfield_spec(old->field), err) ||
        edit_evaluate(old->field, &change->edit, samples_max, &result->outcome, err))
        return err->code;
    if (change->edit.kind == EDIT_BRUSH)
        snprintf(result->event.source, sizeof result->event.source, "brush");
    return kind_make_samples(result, old, err);
}

enum err_code kind_persist_samples(struct store *store, const struct change_result *result,
                                   struct store_edit *row, struct err *err)
{
    (void)store;
    (void)err;
    row->heights_m = result->outcome.heights_m;
    return ERR_OK;
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    const struct edit_outcome *outcome = &result->outcome;

    record_put(sink, outcome->heights_m,
               (size_t)outcome->rect.cols * outcome->rect.rows * sizeof *outcome->heights_m);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    const uint32_t *rect = entry->rect;
    uint64_t samples = (uint64_t)rect[2] * rect[3];
    float *heights_m;

    if (record_is_bad(reader))
        return;
    if (!entry->has_rect || samples == 0 || reader->left / sizeof *heights_m != samples ||
        reader->left % sizeof *heights_m != 0) {
        record_damaged(reader, "an edit has another number of samples than its rectangle");
        return;
    }
    heights_m = malloc(reader->left);
    if (!heights_m) {
        err_set(reader->err, ERR_NO_MEMORY, "no memory for an edit");
        return;
    }
    record_get(reader, heights_m, reader->left);
    out->edit = (struct edit){
        .kind = EDIT_SET, .rect = {rect[0], rect[1], rect[2], rect[3]}, .heights_m = heights_m};
}

void kind_count_samples(struct world_stats *counted, const struct change_result *result)
{
    counted->edits++;
    counted->edit_samples += (uint64_t)result->outcome.rect.cols * result->outcome.rect.rows;
}

const struct change_kind edit_kind = {
    .source = "edit",
    .scope = CHANGE_OF_LOCALE,
    .logs_layer = true,
    .make = make,
    .persist = kind_persist_samples,
    .encode = encode,
    .decode = decode,
    .announce = announce_nothing,
    .count = kind_count_samples,
};
