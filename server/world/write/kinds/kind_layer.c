/*
 * WORLD_PUT_LAYER, WORLD_DELETE_LAYER: a layer that was decoded on a worker is put into the
 * locale, or a layer is removed. The event's bounds include the old layer and the new one. A pose
 * ends with its layer; the locale's transform_seq does not, so it is written here, too (move.c).
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct layer *old = locale_layer(result->before, change->layer_id);
    struct layer *put = change->layer;

    (void)draft;
    result->is_new = old == NULL;
    CHECK((change->kind == WORLD_PUT_LAYER) == (put != NULL));
    if (put)
        CHECK(strcmp(put->id, change->layer_id) == 0);
    else if (!old)
        return locale_no_layer(result->before, change->layer_id, ERR_LAYER_UNKNOWN, err);
    result->after =
        locale_next(result->before, NULL, put, put ? NULL : change->layer_id, NULL, err);
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
    if (persist_layer(store, result->after, result->layer, err) ||
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
    record_put_layer(sink, result->layer);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    (void)entry;
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
