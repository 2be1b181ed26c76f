/*
 * WORLD_PUT_PIN, WORLD_DELETE_PIN, WORLD_RESTORE: the value of a locale under a name, and back to
 * it.
 *
 * A pin is a reference (world/values/pins.h) and some small rows (store_pins.c): it is no revision
 * and has no event. A restore is one: the next revision has the manifest and the layers of the pin.
 * Layers that are the same, or that the pin has with other samples or polygons, stay in their order
 * and in their pose; those that come back follow, unmoved.
 *
 * The event of a restore has the rectangle of samples that differ when nothing but one heightfield
 * of the same grid differs. Otherwise it is a resync, after which subscribers read the locale
 * again.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pins ------------------------------------------------------------------------------------ */

static enum err_code no_pin(const struct world_change *change, struct err *err)
{
    err_set(err, ERR_PIN_UNKNOWN, "locale %s has no pin %s", change->locale_id, change->pin);
    return err_at(err, "pin");
}

static enum err_code make_put(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct earlier_list *pins = result->before->pins;
    size_t most = draft->world->limits.pins_max, count = pins ? pins->count : 0;
    struct locale *value = NULL;

    result->is_new = !locale_pin(result->before, change->pin);
    if (result->is_new && count >= most && !draft->is_followed)
        return err_limit(err, ERR_WORLD_FULL, (double)most, (double)count + 1,
                         "a locale takes %zu pins, %s is full", most, change->locale_id);
    if (change->poses) {
        value = persist_posed(result->before, change->poses, err);
        if (!value)
            return err->code;
    }
    result->after = locale_with_pin(result->before, change->pin, value, err);
    locale_unref(value);
    return result->after ? ERR_OK : err->code;
}

static enum err_code make_deletion(struct draft *draft, struct change_result *result,
                                   struct err *err)
{
    const struct world_change *change = result->change;

    (void)draft;
    if (!locale_pin(result->before, change->pin))
        return no_pin(change, err);
    result->after = locale_without_pin(result->before, change->pin, err);
    return result->after ? ERR_OK : err->code;
}

static enum err_code persist_put(struct store *store, const struct change_result *result,
                                 struct store_edit *row, struct err *err)
{
    const char *name = result->change->pin;

    (void)row;
    return persist_pin(store, name, locale_pin(result->after, name), err);
}

static void encode_name(struct record_sink *sink, const struct change_result *result)
{
    record_put_id(sink, result->change->pin);
}

static void decode_name(struct record_reader *reader, const struct cluster_entry *entry,
                        struct world_change *out)
{
    (void)entry;
    record_get_id(reader, out->pin);
}

static void encode_put(struct record_sink *sink, const struct change_result *result)
{
    encode_name(sink, result);
    record_put_poses(sink, locale_pin(result->after, result->change->pin));
}

static void decode_put(struct record_reader *reader, const struct cluster_entry *entry,
                       struct world_change *out)
{
    decode_name(reader, entry, out);
    out->poses = record_get_poses(reader);
}

static enum err_code persist_deletion(struct store *store, const struct change_result *result,
                                      struct store_edit *row, struct err *err)
{
    (void)row;
    return store_drop_pin(store, result->change->locale_id, result->change->pin, err);
}

/* ---- restore --------------------------------------------------------------------------------- */

bool kind_has_same_surface(const struct layer *a, const struct layer *b)
{
    return a->kind == b->kind && a->role == b->role && a->field == b->field && a->mesh == b->mesh &&
           a->polygons == b->polygons;
}

/* The layer of the pin where the locale's one of that id (NULL: none) is; a new reference. */
static struct layer *restored_layer(struct layer *pinned, struct layer *now, struct err *err)
{
    static const struct layer unmoved = {.is_moved = false};

    if (now && kind_has_same_surface(pinned, now))
        return layer_ref(now);
    if (pinned->kind != LAYER_MESH)
        return layer_ref(pinned);
    return layer_carried(pinned, now && now->kind == LAYER_MESH ? now : &unmoved, err);
}

/* Survivors in the order of now, then those that come back. *count are made, also on an error. */
static enum err_code restored_layers(const struct locale *pin, const struct locale *now,
                                     struct layer **layers, size_t *count, struct err *err)
{
    const struct locale *orders[] = {now, pin};

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < orders[k]->layer_count; i++) {
            const char *id = orders[k]->layers[i]->id;
            struct layer *pinned = (struct layer *)(uintptr_t)locale_layer(pin, id);
            struct layer *old = (struct layer *)(uintptr_t)locale_layer(now, id);

            if (!pinned || (k == 1 && old))
                continue;
            layers[*count] = restored_layer(pinned, old, err);
            if (!layers[*count])
                return err->code;
            ++*count;
        }
    return ERR_OK;
}

/* The only layer of `after` that is not as before, a heightfield of the same grid; NULL: more than
 * that differs, or nothing does. */
static const struct layer *only_field(const struct locale *before, const struct locale *after)
{
    const struct layer *found = NULL;

    if (memcmp(&before->manifest, &after->manifest, sizeof before->manifest) != 0 ||
        before->layer_count != after->layer_count)
        return NULL;
    for (size_t i = 0; i < after->layer_count; i++) {
        const struct layer *layer = after->layers[i], *old = before->layers[i];

        if (layer == old)
            continue;
        if (found || strcmp(layer->id, old->id) != 0 || !layer->field || !old->field ||
            memcmp(heightfield_spec(layer->field), heightfield_spec(old->field),
                   sizeof(struct heightfield_spec)) != 0)
            return NULL;
        found = layer;
    }
    return found;
}

/* The bits of a sample, of no data those of one NaN. */
static bool samples_differ(float a, float b)
{
    return memcmp(&a, &b, sizeof a) != 0 && (a == a || b == b);
}

/* Grows a box by the samples of a tile that differ. */
static void grow(const struct heightfield *before, const struct heightfield *after, uint32_t tx,
                 uint32_t ty, uint32_t box[4])
{
    uint32_t cols, rows; /* they are of one size */

    if (heightfield_tile_serial(before, tx, ty) == heightfield_tile_serial(after, tx, ty))
        return;
    heightfield_tile_size(heightfield_spec(after), tx, ty, &cols, &rows);
    for (uint32_t row = 0; row < rows; row++) {
        const float *a = heightfield_tile_row(before, tx, ty, row);
        const float *b = heightfield_tile_row(after, tx, ty, row);

        for (uint32_t column = 0; column < cols; column++) {
            uint32_t c = tx * 256 + column, r = ty * 256 + row;

            if (!samples_differ(a[column], b[column]))
                continue;
            box[0] = c < box[0] ? c : box[0];
            box[1] = r < box[1] ? r : box[1];
            box[2] = c > box[2] ? c : box[2];
            box[3] = r > box[3] ? r : box[3];
        }
    }
}

/* The rectangle of all samples that differ; false: none do. */
static bool differing(const struct heightfield *before, const struct heightfield *after,
                      struct sample_rect *out)
{
    struct heightfield_tile_layout tiles = heightfield_tile_layout(heightfield_spec(after));
    uint32_t box[4] = {UINT32_MAX, UINT32_MAX, 0, 0};

    for (uint32_t ty = 0; ty < tiles.tile_rows; ty++)
        for (uint32_t tx = 0; tx < tiles.tile_cols; tx++)
            grow(before, after, tx, ty, box);
    *out = (struct sample_rect){box[0], box[1], box[2] - box[0] + 1, box[3] - box[1] + 1};
    return box[0] <= box[2];
}

/* The new samples, when the feed holds so many. */
static struct feed_content *content_of(const struct heightfield *field,
                                       const struct sample_rect *rect)
{
    size_t samples = (size_t)rect->cols * rect->rows;
    struct feed_content *content;
    float *heights_m;

    if (samples > FEED_CONTENT_BYTES_MAX / sizeof *heights_m)
        return NULL;
    heights_m = malloc(samples * sizeof *heights_m);
    if (!heights_m)
        return NULL;
    for (uint32_t row = 0; row < rect->rows; row++)
        for (uint32_t column = 0; column < rect->cols; column++)
            heights_m[(size_t)row * rect->cols + column] =
                heightfield_sample(field, rect->column + column, rect->row + row);
    content = feed_content_create(heights_m, samples * sizeof *heights_m, false);
    free(heights_m);
    return content;
}

/* Another node has found what differs. */
static void decode_restore(struct record_reader *reader, const struct cluster_entry *entry,
                           struct world_change *out)
{
    const uint32_t *rect = entry->rect;

    decode_name(reader, entry, out);
    memcpy(out->layer_id, entry->layer, sizeof out->layer_id);
    if (entry->has_rect)
        out->edit.rect = (struct sample_rect){rect[0], rect[1], rect[2], rect[3]};
}

/* The rectangle that differs, of one layer: found here, or by the node that has made the change. */
static enum err_code find_rect(struct change_result *result, bool is_followed, struct err *err)
{
    const struct sample_rect *rect = &result->change->edit.rect;
    const struct layer *layer = is_followed ? locale_layer(result->after, result->change->layer_id)
                                            : only_field(result->before, result->after);
    const struct layer *old = layer ? locale_layer(result->before, layer->id) : NULL;
    const struct heightfield_spec *spec;

    result->layer = layer;
    if (!is_followed) {
        result->event.has_rect = old && differing(old->field, layer->field, &result->event.rect);
        return ERR_OK;
    }
    result->event.has_rect = rect->cols > 0;
    result->event.rect = *rect;
    if (rect->cols == 0)
        return ERR_OK;
    spec = old && old->field && layer->field ? heightfield_spec(layer->field) : NULL;
    if (!spec || memcmp(spec, heightfield_spec(old->field), sizeof *spec) != 0 ||
        (uint64_t)rect->column + rect->cols > spec->cols ||
        (uint64_t)rect->row + rect->rows > spec->rows || rect->rows == 0)
        return err_set(err, ERR_DAMAGED, "a restored layer has no such rectangle");
    return ERR_OK;
}

static enum err_code describe(struct change_result *result, bool is_followed, struct err *err)
{
    struct feed_event *event = &result->event;
    const struct layer *layer;

    if (find_rect(result, is_followed, err))
        return err->code;
    layer = result->layer;
    result->layer = NULL;
    if (event->has_rect) {
        memcpy(event->layer, layer->id, sizeof event->layer);
        kind_describe_samples(locale_layer(result->before, layer->id)->field, layer->field, event);
        event->content = content_of(layer->field, &event->rect);
        return ERR_OK;
    }
    if (is_followed ? strcmp(result->change->source, FEED_RESYNC) != 0 : layer != NULL)
        return ERR_OK; /* nothing differs */
    event->is_resync = true;
    snprintf(event->source, sizeof event->source, FEED_RESYNC);
    kind_bound_locale(result->before, event);
    if (result->after->has_bounds) {
        event->bounds = event->has_bounds ? box3_union(event->bounds, result->after->bounds)
                                          : result->after->bounds;
        event->has_bounds = true;
    }
    return ERR_OK;
}

static enum err_code make_restore(struct draft *draft, struct change_result *result,
                                  struct err *err)
{
    const struct world_change *change = result->change;
    const struct locale *now = result->before, *pin = locale_pin(now, change->pin);
    struct layer *layers[LOCALE_LAYERS_MAX];
    struct locale_manifest manifest;
    size_t count = 0;

    if (!pin)
        return no_pin(change, err);
    if (restored_layers(pin, now, layers, &count, err)) {
        while (count > 0)
            layer_unref(layers[--count]);
        return err->code;
    }
    manifest = pin->manifest;
    memcpy(manifest.from, now->manifest.from, sizeof manifest.from);
    manifest.from_revision = now->manifest.from_revision;
    result->after = locale_assemble(now->id, now->revision + 1, &manifest, layers, count, err);
    if (!result->after)
        return err->code;
    result->after->transform_seq = now->transform_seq;
    if (kind_check_box(change, result->after->has_bounds ? &result->after->bounds : NULL, err))
        return err->code;
    return describe(result, draft->is_followed, err);
}

enum err_code kind_persist_difference(struct store *store, const struct layer *old,
                                      const struct locale *after, const struct layer *layer,
                                      struct err *err)
{
    const struct heightfield_spec *a, *b;

    if (layer == old)
        return ERR_OK;
    if (old && old->field && layer->field) {
        a = heightfield_spec(old->field);
        b = heightfield_spec(layer->field);
        if (a->cols == b->cols && a->rows == b->rows && a->leaf_cells == b->leaf_cells &&
            a->origin_x_m == b->origin_x_m && a->origin_y_m == b->origin_y_m &&
            a->spacing_x_m == b->spacing_x_m && a->spacing_y_m == b->spacing_y_m)
            return store_put_field(store, after->id, layer->id, old->field, layer->field,
                                   after->revision, err);
    }
    if (old && old->kind != layer->kind && store_drop_pose(store, after->id, layer->id, err))
        return err->code;
    return persist_layer(store, after, layer, err);
}

bool kind_keeps_order(const struct locale *before, const struct locale *after)
{
    size_t kept = 0;

    for (size_t i = 0; i < before->layer_count; i++)
        if (locale_layer(after, before->layers[i]->id) &&
            strcmp(after->layers[kept++]->id, before->layers[i]->id) != 0)
            return false;
    return true;
}

enum err_code kind_persist_value(struct store *store, const struct locale *before,
                                 const struct locale *after, struct err *err)
{
    const bool keeps = before && kind_keeps_order(before, after);

    if (persist_manifest(store, after, err))
        return err->code;
    for (size_t i = 0; before && i < before->layer_count; i++)
        if ((!keeps || !locale_layer(after, before->layers[i]->id)) &&
            store_drop_layer(store, before->id, before->layers[i]->id, err))
            return err->code;
    for (size_t i = 0; i < after->layer_count; i++)
        if (kind_persist_difference(store,
                                    keeps ? locale_layer(before, after->layers[i]->id) : NULL,
                                    after, after->layers[i], err))
            return err->code;
    return persist_transform_seq(store, after, PERSIST_SEQ_SPARE, err);
}

static enum err_code persist_restore(struct store *store, const struct change_result *result,
                                     struct store_edit *row, struct err *err)
{
    (void)row;
    return kind_persist_value(store, result->before, result->after, err);
}

static void announce_restore(struct world *world, const struct change_result *result)
{
    for (size_t i = 0; i < result->before->layer_count; i++) {
        const char *id = result->before->layers[i]->id;
        const struct layer *layer = locale_layer(result->after, id);

        if (!layer || !layer->is_moved)
            moves_forget(world->moves, result->before->id, id);
    }
}

const struct change_kind put_pin_kind = {
    .source = "",
    .scope = CHANGE_OF_PIN,
    .make = make_put,
    .persist = persist_put,
    .encode = encode_put,
    .decode = decode_put,
    .announce = announce_nothing,
    .count = count_nothing,
};

const struct change_kind delete_pin_kind = {
    .source = "",
    .scope = CHANGE_OF_PIN,
    .make = make_deletion,
    .persist = persist_deletion,
    .encode = encode_name,
    .decode = decode_name,
    .announce = announce_nothing,
    .count = count_nothing,
};

const struct change_kind restore_kind = {
    .source = "restore",
    .scope = CHANGE_OF_LOCALE,
    .make = make_restore,
    .persist = persist_restore,
    .encode = encode_name,
    .decode = decode_restore,
    .announce = announce_restore,
    .count = count_nothing,
};
