/*
 * WORLD_PUT_LOCALE, WORLD_DELETE_LOCALE: a manifest, and the end of a locale.
 *
 * A new manifest keeps the layers. Meshes whose gravity it changes are built again, on a worker
 * (change->prepared) where possible. The first revision of a locale that was deleted before is one
 * more than its last one, so no revision ever means two states. The event has bounds where the
 * ground may have changed.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"

#include <string.h>

static bool changes_ground(const struct locale_manifest *a, const struct locale_manifest *b)
{
    return a->triangulation != b->triangulation || a->open_sky != b->open_sky ||
           memcmp(&a->gravity, &b->gravity, sizeof a->gravity) != 0 ||
           memcmp(&a->placement, &b->placement, sizeof a->placement) != 0;
}

static enum err_code make_put(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct locale *now = result->before;
    struct locale_manifest manifest = change->manifest;
    uint64_t last = 0;

    if (now) { /* a fork stays one */
        memcpy(manifest.from, now->manifest.from, sizeof manifest.from);
        manifest.from_revision = now->manifest.from_revision;
    }
    result->is_new = now == NULL;
    if (!now && draft_last_revision(draft, change->locale_id, &last, err))
        return err->code;
    CHECK(!change->is_whole || !draft->world->store);
    if (now && change->is_whole)
        result->after = locale_assemble(now->id, now->revision + 1, &manifest, NULL, 0, err);
    else if (now)
        result->after = locale_next(now, &manifest, NULL, NULL, change->prepared, err);
    else
        result->after = locale_create(change->locale_id, &manifest, err);
    if (!result->after)
        return err->code;
    if (!now)
        result->after->revision = last + 1;
    else if (change->is_whole)
        kind_bound_locale(now, &result->event);
    else if (changes_ground(&now->manifest, &change->manifest))
        kind_bound_locale(result->after, &result->event);
    return ERR_OK;
}

static enum err_code make_deletion(struct draft *draft, struct change_result *result,
                                   struct err *err)
{
    (void)draft;
    (void)err;
    kind_bound_locale(result->before, &result->event);
    return ERR_OK;
}

/* The manifest, and the meshes that were built again for it; samples stay those they were. */
static enum err_code persist_put(struct store *store, const struct change_result *result,
                                 struct store_edit *row, struct err *err)
{
    const struct locale *after = result->after;

    (void)row;
    if (persist_manifest(store, after, err))
        return err->code;
    for (size_t i = 0; i < after->layer_count; i++) {
        const struct layer *layer = after->layers[i];

        if (layer->kind == LAYER_MESH && locale_layer(result->before, layer->id) != layer &&
            persist_layer(store, after, layer, err))
            return err->code;
    }
    return ERR_OK;
}

static enum err_code persist_deletion(struct store *store, const struct change_result *result,
                                      struct store_edit *row, struct err *err)
{
    (void)row;
    return persist_tombstone(store, result->before, result->event.revision, err);
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    record_put_manifest(sink, &result->after->manifest);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    (void)entry;
    out->manifest = record_get_manifest(reader);
}

static void announce_deletion(struct world *world, const struct change_result *result)
{
    moves_forget(world->moves, result->change->locale_id, NULL);
}

const struct change_kind put_locale_kind = {
    .source = "manifest",
    .scope = CHANGE_OF_LOCALE,
    .makes_locale = true,
    .make = make_put,
    .persist = persist_put,
    .encode = encode,
    .decode = decode,
    .announce = announce_nothing,
    .count = count_nothing,
};

const struct change_kind delete_locale_kind = {
    .source = "delete",
    .scope = CHANGE_OF_LOCALE,
    .make = make_deletion,
    .persist = persist_deletion,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce_deletion,
    .count = count_nothing,
};
