/*
 * WORLD_PUT_MODEL, WORLD_DELETE_MODEL: the draft's list of models without or with the model. It
 * belongs to no locale, so there is no event and no revision; other daemons get its file.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    struct model_list *now = draft->snapshot->models, *next;
    size_t most = draft->world->limits.models_max;
    bool is_put = change->kind == WORLD_PUT_MODEL;

    CHECK(is_put == (change->model != NULL) && change->op_id[0] == '\0');
    result->is_new = model_list_find(now, change->model_id) == NULL;
    if (!is_put && result->is_new)
        return err_set_at(err, ERR_MODEL_UNKNOWN, "model", "there is no model %s",
                          change->model_id);
    if (is_put && result->is_new && now && now->count >= most && !draft->is_followed)
        return err_limit(err, ERR_WORLD_FULL, (double)most, (double)now->count + 1,
                         "the world takes %zu models, it is full", most);
    next = model_list_next(now, change->model, change->model_id, err);
    if (!next)
        return err->code;
    draft_advance(draft, snapshot_with_models(draft->snapshot, next, err), err);
    model_list_unref(next);
    return err->code;
}

static enum err_code persist_put(struct store *store, const struct change_result *result,
                                 struct store_edit *row, struct err *err)
{
    (void)row;
    return persist_model(store, result->change->model, err);
}

static enum err_code persist_deletion(struct store *store, const struct change_result *result,
                                      struct store_edit *row, struct err *err)
{
    (void)row;
    return store_drop_model(store, result->change->model_id, err);
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    record_put_model(sink, result->change->model);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    (void)entry;
    out->model = record_get_model(reader, out->model_id);
}

const struct change_kind put_model_kind = {
    .source = "",
    .scope = CHANGE_OF_MODEL,
    .make = make,
    .persist = persist_put,
    .encode = encode,
    .decode = decode,
    .announce = announce_nothing,
    .count = count_nothing,
};

const struct change_kind delete_model_kind = {
    .source = "",
    .scope = CHANGE_OF_MODEL,
    .make = make,
    .persist = persist_deletion,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce_nothing,
    .count = count_nothing,
};
