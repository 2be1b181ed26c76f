/*
 * WORLD_FORK: a new locale with the value of another one, or of an earlier value of it.
 *
 * In memory the fork has the same layers, at rest; from then on each changes by itself, because
 * layers and tiles are immutable. In the store it shares tiles, too (store_bases.c), when the value
 * is the present one or a pin's. Of another revision that is still held the store has no rows: the
 * fork begins as the present one then, and what differs is written, as for a restore.
 *
 * Written whole: a mesh with edits that are only in the other one's log, and a heightfield that is
 * a fork of a fork of a fork …: a read of a tile follows BASE_DEPTH_MAX of them at most.
 *
 * The event is a resync: subscribers read the new locale.
 *
 * A shared log has the value by the hashes of its tiles and meshes, so a node needs nothing but the
 * log to have the fork. Where it has the other locale, at whatever revision, it shares what is the
 * same, in memory and in the store.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASE_DEPTH_MAX = 64 };

/* The value that the fork's rows begin from, the one of that revision where the store has it, and
 * its pin's name (NULL: the present one). */
static const struct locale *first_rows(const struct locale *from, uint64_t revision,
                                       const char **pin)
{
    const struct earlier_list *pins = from->pins;

    *pin = NULL;
    for (size_t i = 0; pins && i < pins->count && revision != from->revision; i++)
        if (pins->at[i].value->revision == revision) {
            *pin = pins->at[i].name;
            return pins->at[i].value;
        }
    return from;
}

static const struct locale *value_of(const struct locale *from, const struct world_fork *fork,
                                     struct err *err)
{
    const struct locale *value = from;

    if (fork->pin[0]) {
        value = locale_pin(from, fork->pin);
        if (!value)
            err_set(err, ERR_PIN_UNKNOWN, "locale %s has no pin %s", from->id, fork->pin);
    } else if (fork->revision != 0) {
        value = locale_at_revision(from, fork->revision);
        if (!value)
            err_set(err, ERR_GONE,
                    "revision %llu of locale %s is not held: it is at %llu; a pin keeps a revision",
                    (unsigned long long)fork->revision, from->id,
                    (unsigned long long)from->revision);
    }
    if (!value)
        err_at(err, "/from");
    return value;
}

/* The value's layers at rest, in the order of `rows`, then those that it has not. *count are made,
 * also on an error. */
static enum err_code layers_of(const struct locale *value, const struct locale *rows,
                               struct layer **layers, size_t *count, struct err *err)
{
    const struct locale *orders[] = {rows, value};

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < orders[k]->layer_count; i++) {
            const char *id = orders[k]->layers[i]->id;
            struct layer *layer = (struct layer *)(uintptr_t)locale_layer(value, id);

            if (!layer || (k == 1 && locale_layer(rows, id)))
                continue;
            layers[*count] = layer->is_moved ? layer_rested(layer, err) : layer_ref(layer);
            if (!layers[*count])
                return err->code;
            ++*count;
        }
    return ERR_OK;
}

static struct locale_manifest manifest_of(const struct locale *value,
                                          const struct world_change *change)
{
    struct locale_manifest m = value->manifest;

    if (change->fork.has_title)
        memcpy(m.title, change->manifest.title, sizeof m.title);
    if (change->fork.has_placement)
        m.placement = change->manifest.placement;
    memcpy(m.from, change->manifest.from, sizeof m.from);
    m.from_revision = value->revision;
    return m;
}

static enum err_code assemble(struct draft *draft, struct change_result *result,
                              const struct locale *value, struct err *err)
{
    const struct world_change *change = result->change;
    const struct locale_manifest manifest = manifest_of(value, change);
    struct layer *layers[LOCALE_LAYERS_MAX];
    const char *pin;
    size_t count = 0;
    uint64_t last = 0;

    if (draft_last_revision(draft, change->locale_id, &last, err))
        return err->code;
    if (layers_of(value, first_rows(result->from, value->revision, &pin), layers, &count, err)) {
        while (count > 0)
            layer_unref(layers[--count]);
        return err->code;
    }
    result->after = locale_assemble(change->locale_id, last + 1, &manifest, layers, count, err);
    if (!result->after ||
        kind_check_box(change, result->after->has_bounds ? &result->after->bounds : NULL, err))
        return err->code;
    result->after->transform_seq = value->transform_seq;
    return ERR_OK;
}

/* As another node has made it. */
static enum err_code take_prepared(struct draft *draft, struct change_result *result,
                                   struct err *err)
{
    uint64_t last = 0;

    if (draft_last_revision(draft, result->change->locale_id, &last, err))
        return err->code;
    result->after = locale_copy(result->change->prepared, err);
    if (result->after)
        result->after->revision = last + 1;
    return err->code;
}

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    struct locale *from =
        draft->is_followed
            ? snapshot_base(draft->snapshot, &change->prepared->manifest, change->locale_id)
            : snapshot_locale(draft->snapshot, change->fork.from);
    const char *damage = world_damage(draft->world, change->fork.from);
    const struct locale *value;

    if (result->before) {
        err_set(err, ERR_CONFLICT, "there is a locale %s already", change->locale_id);
        return err_at(err, "/id");
    }
    result->is_new = true;
    if (from)
        result->from = locale_ref(from);
    if (!from && !draft->is_followed) {
        if (damage)
            err_set(err, ERR_DAMAGED, "%s", damage);
        else
            err_set(err, ERR_LOCALE_UNKNOWN, "there is no locale %s", change->fork.from);
        return err_at(err, "/from");
    }
    if (draft->is_followed) {
        if (take_prepared(draft, result, err))
            return err->code;
    } else {
        value = value_of(from, &change->fork, err);
        if (!value || assemble(draft, result, value, err))
            return err->code;
    }
    result->event.is_resync = true;
    snprintf(result->event.source, sizeof result->event.source, FEED_RESYNC);
    kind_bound_locale(result->after, &result->event);
    return ERR_OK;
}

static enum err_code persist_layers(struct store *store, const struct locale *from,
                                    const struct locale *rows, const struct locale *after,
                                    struct err *err)
{
    for (size_t i = 0; i < after->layer_count; i++) {
        const struct layer *layer = after->layers[i], *old = locale_layer(rows, layer->id);
        struct store_mesh_behind behind = {.edits = 0};

        if (layer->kind == LAYER_MESH)
            store_mesh_behind(store, from->id, layer->id, &behind);
        if (behind.edits > 0 || store_base_depth(store, after->id, layer->id) > BASE_DEPTH_MAX) {
            if (persist_layer(store, after, layer, err))
                return err->code;
        } else if (!(old && kind_has_same_surface(layer, old)) &&
                   kind_persist_difference(store, old, after, layer, err)) {
            return err->code;
        }
    }
    return ERR_OK;
}

enum err_code kind_persist_fork(struct store *store, const struct locale *from,
                                const struct locale *after, struct err *err)
{
    const char *pin = NULL;
    const struct locale *rows = from ? first_rows(from, after->manifest.from_revision, &pin) : NULL;

    if (rows && kind_keeps_order(rows, after)) {
        if (persist_manifest(store, after, err) ||
            store_put_fork(store, after->id, from->id, pin, err))
            return err->code;
        for (size_t i = 0; i < rows->layer_count; i++)
            if (!locale_layer(after, rows->layers[i]->id) &&
                store_drop_layer(store, after->id, rows->layers[i]->id, err))
                return err->code;
        if (persist_layers(store, from, rows, after, err))
            return err->code;
    } else if (kind_persist_value(store, NULL, after, err)) {
        return err->code;
    }
    for (size_t i = 0; i < after->layer_count; i++)
        if (after->layers[i]->is_moved && persist_pose(store, after, after->layers[i], err))
            return err->code;
    return persist_transform_seq(store, after, PERSIST_SEQ_SPARE, err);
}

static enum err_code persist(struct store *store, const struct change_result *result,
                             struct store_edit *row, struct err *err)
{
    (void)row;
    return kind_persist_fork(store, result->from, result->after, err);
}

static void encode(struct record_sink *sink, const struct change_result *result)
{
    record_put_value(sink, result->after);
    record_put_poses(sink, result->after);
}

static void decode(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out)
{
    struct locale *value = record_get_value(reader, entry->locale, 1);
    struct world_poses *poses = value ? record_get_poses(reader) : NULL;

    if (poses && value->manifest.from[0] == '\0')
        record_damaged(reader, "a fork is of nothing");
    if (poses && !record_is_bad(reader)) {
        out->prepared = persist_posed(value, poses, reader->err);
    }
    locale_unref(value);
    free(poses);
}

static void announce(struct world *world, const struct change_result *result)
{
    for (size_t i = 0; i < result->after->layer_count; i++) {
        const struct layer *layer = result->after->layers[i];
        struct err err;

        if (!layer->is_moved)
            continue;
        /* not in make: a deletion before it in the same commit forgets the locale's entries */
        if (moves_reserve(world->moves, result->after->id, layer->id, &err)) {
            log_warn("the pose of a fork is not announced: %s", err.msg);
            continue;
        }
        moves_note(world->moves, result->after->id, layer->id, layer->transform_seq,
                   &layer->motion);
        if (world->follow && !result->change->prepared) /* for who gets it by a snapshot */
            moves_share(world->moves, result->after->id, layer->id, monotonic_s());
    }
}

const struct change_kind fork_kind = {
    .source = "fork",
    .scope = CHANGE_OF_LOCALE,
    .makes_locale = true,
    .make = make,
    .persist = persist,
    .encode = encode,
    .decode = decode,
    .announce = announce,
    .count = count_nothing,
};
