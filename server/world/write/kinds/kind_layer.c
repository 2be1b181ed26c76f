/*
 * WORLD_PUT_LAYER, WORLD_DELETE_LAYER: a layer that was decoded on a worker is put into the
 * locale, or a layer is removed. The event's bounds include the old layer and the new one. A pose
 * ends with its layer; the locale's transform_seq does not, so it is written here, too (move.c).
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

/* Has the change given its locale a place on the Earth? */
static bool has_placed(const struct change_result *result)
{
    return locale_manifest_is_placed(&result->after->manifest) &&
           !locale_manifest_is_placed(&result->before->manifest);
}

/* The manifest with the place of the layer's file, into *out; false: it stays as it is. */
static bool place(const struct locale *before, const struct world_change *change,
                  struct locale_manifest *out)
{
    bool is_alone = before->layer_count == 0 ||
                    (before->layer_count == 1 && locale_layer(before, change->layer_id));

    if (!locale_manifest_is_placed(&change->manifest) ||
        locale_manifest_is_placed(&before->manifest) || !is_alone)
        return false;
    *out = before->manifest;
    out->has_geo = change->manifest.has_geo;
    out->geo_lat_deg = change->manifest.geo_lat_deg;
    out->geo_lng_deg = change->manifest.geo_lng_deg;
    out->crs = change->manifest.crs;
    return true;
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct layer *old = locale_layer(result->before, change->layer_id);
    struct layer *put = change->layer;
    struct locale_manifest placed;

    (void)draft;
    result->is_new = old == NULL;
    CHECK((change->kind == WORLD_PUT_LAYER) == (put != NULL));
    if (put)
        CHECK(strcmp(put->id, change->layer_id) == 0);
    else if (!old)
        return locale_no_layer(result->before, change->layer_id, ERR_LAYER_UNKNOWN, err);
    result->after =
        locale_next(result->before, put && place(result->before, change, &placed) ? &placed : NULL,
                    put, put ? NULL : change->layer_id, NULL, err);
    if (!result->after)
        return err->code;
    result->layer = put ? locale_layer(result->after, change->layer_id) : NULL;
    kind_bound_layer(old, &result->event);
    kind_bound_layer(result->layer, &result->event);
    if (result->layer && result->layer->field) {
        const struct heightfield_spec *spec = heightfield_spec(result->layer->field);

        result->event.has_rect = true;
        result->event.rect = (struct sample_rect){0, 0, spec->cols, spec->rows};
    }
    snprintf(result->event.layer, sizeof result->event.layer, "%s", change->layer_id);
    return ERR_OK;
}

static enum err_code persist_put(struct store *store, const struct change_result *result,
                                 struct store_edit *row, struct err *err)
{
    const struct world_change *change = result->change;

    (void)row;
    if ((has_placed(result) && persist_manifest(store, result->after, err)) ||
        persist_layer(store, result->after, result->layer, err) ||
        store_drop_pose(store, change->locale_id, change->layer_id, err))
        return err->code;
    return persist_transform_seq(store, result->after, PERSIST_SEQ_SPARE, err);
}

static enum err_code persist_deletion(struct store *store, const struct change_result *result,
                                      struct store_edit *row, struct err *err)
{
    const struct world_change *change = result->change;

    (void)row;
    if (store_drop_layer(store, change->locale_id, change->layer_id, err))
        return err->code;
    return persist_transform_seq(store, result->after, PERSIST_SEQ_SPARE, err);
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    if (has_placed(result))
        record_put_place(sink, &result->after->manifest);
    record_put_layer(sink, result->layer);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    (void)entry;
    if (reader->left > 0 && *reader->at == RECORD_PLACE) {
        record_get(reader, &(uint8_t){0}, 1);
        out->manifest = record_get_manifest(reader);
    }
    out->layer = record_get_layer(reader, out->layer_id);
}

static void announce(struct world *world, const struct change_result *result)
{
    moves_forget(world->moves, result->change->locale_id, result->change->layer_id);
}

const struct change_kind put_layer_kind = {
    .source = "layer",
    .scope = CHANGE_OF_LOCALE,
    .is_of_layer = true,
    .logs_layer = true,
    .make = make,
    .persist = persist_put,
    .encode = encode,
    .decode = decode,
    .announce = announce,
    .count = count_nothing,
};

const struct change_kind delete_layer_kind = {
    .source = "layer",
    .scope = CHANGE_OF_LOCALE,
    .is_of_layer = true,
    .logs_layer = true,
    .make = make,
    .persist = persist_deletion,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce,
    .count = count_nothing,
};
