/*
 * Between the world's values and the store's: locales, manifests, layers and events become rows,
 * and rows become a world again.
 *
 * The load runs on the writer's thread, once, into a draft that is then published whole. A damaged
 * locale is left out of it; the messages about it are in world->damages, for calls on it and for
 * the readiness probe.
 */
#include "world/follow/record.h"
#include "world/write/history.h"
#include "world/write/kinds/kind.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)WORLD_ID_MAX == (int)STORE_ID_MAX, "ids are as long in the store");
_Static_assert((int)LOCALE_TITLE_BYTES_MAX == (int)STORE_TITLE_MAX,
               "titles are as long in the store");
_Static_assert((int)LOCALE_FROM_MAX == (int)STORE_ORIGIN_MAX, "origins are as long in the store");
_Static_assert((int)FEED_SOURCE_MAX == (int)STORE_SOURCE_MAX, "sources are as long in the store");

/* ---- to the store ---------------------------------------------------------------------------- */

static struct store_locale locale_row(const struct locale *locale)
{
    const struct locale_manifest *m = &locale->manifest;
    struct store_locale row = {
        .revision = locale->revision,
        .gravity = {m->gravity.x, m->gravity.y, m->gravity.z},
        .translation = {m->placement.translation.x, m->placement.translation.y,
                        m->placement.translation.z},
        .open_sky = m->open_sky,
        .triangulation = m->triangulation,
        .has_geo = m->has_geo,
        .geo_lat_deg = m->geo_lat_deg,
        .geo_lng_deg = m->geo_lng_deg,
        .crs = m->crs,
    };

    memcpy(row.id, locale->id, sizeof row.id);
    memcpy(row.title, m->title, sizeof row.title);
    memcpy(row.rotation, m->placement.rotation, sizeof row.rotation);
    memcpy(row.origin, m->from, sizeof row.origin);
    row.origin_revision = m->from_revision;
    return row;
}

static uint32_t position_of(const struct locale *locale, const struct layer *layer)
{
    uint32_t i = 0;

    while (locale->layers[i] != layer)
        i++;
    return i;
}

enum err_code persist_layer(struct store *store, const struct locale *locale,
                            const struct layer *layer, struct err *err)
{
    struct store_layer row = {
        .position = position_of(locale, layer),
        .revision = locale->revision,
        .kind = layer->kind == LAYER_MESH ? STORE_MESH : STORE_HEIGHTFIELD,
        .role = (int)layer->role,
        .field = layer->field,
        .mesh = layer->mesh,
        .polygons = layer_polygon_set(layer),
        .gravity = {layer->gravity.x, layer->gravity.y, layer->gravity.z},
    };

    memcpy(row.locale, locale->id, sizeof row.locale);
    memcpy(row.id, layer->id, sizeof row.id);
    return store_put_layer(store, &row, err);
}

enum err_code persist_manifest(struct store *store, const struct locale *locale, struct err *err)
{
    struct store_locale row = locale_row(locale);

    return store_put_locale(store, &row, err);
}

enum err_code persist_tombstone(struct store *store, const struct locale *locale, uint64_t revision,
                                struct err *err)
{
    struct store_locale row = locale_row(locale);

    row.revision = revision;
    row.is_deleted = true;
    return store_put_locale(store, &row, err);
}

enum err_code persist_transform_seq(struct store *store, const struct locale *locale,
                                    uint64_t spare, struct err *err)
{
    return locale->transform_seq > 0
               ? store_put_transform_seq(store, locale->id, locale->transform_seq + spare, err)
               : ERR_OK;
}

enum err_code persist_model(struct store *store, const struct model *model, struct err *err)
{
    struct store_model row = {
        .media_type = "model/obj", .bytes = model->bytes, .length = model->length};

    memcpy(row.id, model->id, sizeof row.id);
    return store_put_model(store, &row, err);
}

struct store_pose persist_pose_row(const struct layer *layer)
{
    const struct pose *pose = &layer->motion.pose;
    const struct vec3 *by = &pose->translation;

    struct store_pose row = {.translation = {by->x, by->y, by->z},
                             .yaw_deg = pose->yaw_deg,
                             .transform_seq = layer->transform_seq};

    memcpy(row.rotation, pose->rotation, sizeof row.rotation);
    return row;
}

enum err_code persist_pose(struct store *store, const struct locale *locale,
                           const struct layer *layer, struct err *err)
{
    struct store_pose row = persist_pose_row(layer);

    return store_put_pose(store, locale->id, layer->id, &row, err);
}

enum err_code persist_result(struct store *store, const struct change_result *result,
                             struct err *err)
{
    const struct world_change *change = result->change;
    const struct feed_event *event = &result->event;
    struct store_edit row = {
        .revision = event->revision,
        .sequence = event->sequence,
        .kind = (int)change->kind,
        .has_rect = event->has_rect,
        .rect = event->rect,
        .has_bounds = event->has_bounds,
        .bounds = event->bounds,
        .answer = result->answer,
        .answer_bytes = result->answer_bytes,
    };
    float *samples = NULL;
    uint8_t *changed = NULL;
    struct store_past past;
    enum err_code code;

    memcpy(row.locale, event->locale, sizeof row.locale);
    memcpy(row.layer, event->layer, sizeof row.layer);
    memcpy(row.source, event->source, sizeof row.source);
    memcpy(row.op_id, change->op_id, sizeof row.op_id);
    memcpy(row.request, change->request, sizeof row.request);
    code = change_kind(change->kind)->persist(store, result, &row, err);
    if (code == ERR_OK && result_is_of_locale(result) && result->after &&
        store_history_max(store) > 0) {
        code = history_describe(result, &past, &samples, &changed, err);
        row.past = &past;
    }
    if (code == ERR_OK && result_is_of_locale(result))
        code = store_log(store, &row, err);
    free(samples);
    free(changed);
    free((void *)(uintptr_t)row.polygons);
    return code;
}

enum err_code persist_pin(struct store *store, const char *name, const struct locale *value,
                          struct err *err)
{
    struct store_pin_pose poses[LOCALE_LAYERS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < value->layer_count; i++)
        if (value->layers[i]->is_moved) {
            memcpy(poses[count].layer, value->layers[i]->id, sizeof poses[count].layer);
            poses[count++].pose = persist_pose_row(value->layers[i]);
        }
    return store_put_pin(store, value->id, name, value->transform_seq, poses, count, err);
}

/* The pin after `last` (NULL: the first) in the order of revisions and names; NULL: no more. */
static const struct earlier *next_pin(const struct earlier_list *pins, const struct earlier *last)
{
    const struct earlier *next = NULL;

    for (size_t i = 0; pins && i < pins->count; i++) {
        const struct earlier *pin = &pins->at[i];
        bool is_later = !last || pin->value->revision > last->value->revision ||
                        (pin->value->revision == last->value->revision && pin > last);

        if (is_later && (!next || pin->value->revision < next->value->revision))
            next = pin;
    }
    return next;
}

/* A value after another one of the same locale, or the first. */
static enum err_code persist_next(struct store *store, const struct locale *before,
                                  const struct locale *from, const struct locale *value,
                                  struct err *err)
{
    return before ? kind_persist_value(store, before, value, err)
                  : kind_persist_fork(store, from, value, err);
}

/* The pins one after the other, as if each had been the locale, then the locale. */
static enum err_code persist_values(struct store *store, const struct locale *locale,
                                    const struct locale *from, struct err *err)
{
    const struct locale *before = NULL;

    for (const struct earlier *pin = NULL; (pin = next_pin(locale->pins, pin)) != NULL;) {
        if (persist_next(store, before, from, pin->value, err) ||
            persist_pin(store, pin->name, pin->value, err))
            return err->code;
        before = pin->value;
    }
    return persist_next(store, before, from, locale, err);
}

enum err_code persist_replacement(struct store *store, const char *locale_id,
                                  const struct locale *locale, const struct locale *from,
                                  const struct feed_event *event, struct err *err)
{
    struct store_locale gone = {.revision = event->revision, .is_deleted = true};
    struct store_edit log = {
        .revision = event->revision,
        .sequence = event->sequence,
        .kind = (int)WORLD_PUT_LOCALE,
        .has_bounds = event->has_bounds,
        .bounds = event->bounds,
    };

    snprintf(gone.id, sizeof gone.id, "%s", locale_id);
    memcpy(log.locale, event->locale, sizeof log.locale);
    memcpy(log.source, event->source, sizeof log.source);
    if (store_forget_locale(store, locale_id, err) ||
        (locale ? persist_values(store, locale, from, err) : store_put_locale(store, &gone, err)))
        return err->code;
    return store_log(store, &log, err);
}

const struct heightfield *persist_field_of(void *context, const char *locale, const char *layer)
{
    const struct locale *at = snapshot_locale(context, locale);
    const struct layer *found = at ? locale_layer(at, layer) : NULL;

    return found ? found->field : NULL;
}

/* ---- from the store -------------------------------------------------------------------------- */

/* The locale that is being read; its layers follow. */
struct load {
    struct world *world;
    struct draft *draft;
    bool is_open;
    struct store_locale row;
    struct layer *layers[LOCALE_LAYERS_MAX];
    size_t layer_count;
    struct locale *locale; /* the open one, once its layers are there; its pins follow */
    char pin[WORLD_ID_MAX + 1];
    struct store_locale pin_row;
};

static struct locale_manifest manifest_of(const struct store_locale *row)
{
    struct locale_manifest m = locale_manifest_default;

    memcpy(m.title, row->title, sizeof m.title);
    m.gravity = (struct vec3){row->gravity[0], row->gravity[1], row->gravity[2]};
    m.placement.translation =
        (struct vec3){row->translation[0], row->translation[1], row->translation[2]};
    memcpy(m.placement.rotation, row->rotation, sizeof m.placement.rotation);
    m.open_sky = row->open_sky;
    m.triangulation = row->triangulation;
    m.has_geo = row->has_geo;
    m.geo_lat_deg = row->geo_lat_deg;
    m.geo_lng_deg = row->geo_lng_deg;
    m.crs = row->crs;
    memcpy(m.from, row->origin, sizeof m.from);
    m.from_revision = row->origin_revision;
    return m;
}

/* Takes the next snapshot; NULL, and false: there is none. */
static bool draft_take(struct draft *draft, struct world_snapshot *next)
{
    if (!next)
        return false;
    if (draft->is_own)
        snapshot_destroy(draft->snapshot);
    draft->snapshot = next;
    draft->is_own = true;
    return true;
}

static bool draft_add(struct draft *draft, struct locale *locale, struct err *err)
{
    return draft_take(draft, snapshot_next(draft->snapshot, locale->id, locale, err));
}

/* The layers are complete: those of the locale, or those of a pin of it. */
static bool close_value(struct load *load, struct err *err)
{
    const struct store_locale *row = load->locale ? &load->pin_row : &load->row;
    struct locale_manifest manifest = manifest_of(row);
    struct locale *value;
    bool is_added;

    if (load->locale) { /* the row of a pin has none */
        memcpy(manifest.from, load->locale->manifest.from, sizeof manifest.from);
        manifest.from_revision = load->locale->manifest.from_revision;
    }
    value =
        locale_assemble(row->id, row->revision, &manifest, load->layers, load->layer_count, err);
    load->layer_count = 0;
    if (!value)
        return false;
    value->transform_seq = row->transform_seq;
    if (!load->locale) {
        load->locale = value;
        return true;
    }
    is_added = locale_add_pin(load->locale, load->pin, value, err) == ERR_OK;
    locale_unref(value);
    return is_added;
}

/* The locale is complete: puts it into the draft. */
static bool close_locale(struct load *load, struct err *err)
{
    bool is_added;

    if (!load->is_open)
        return true;
    load->is_open = false;
    is_added = close_value(load, err) && draft_add(load->draft, load->locale, err);
    locale_unref(load->locale);
    load->locale = NULL;
    return is_added;
}

static bool note_stored(struct world *world, const char *id, struct err *err)
{
    char(*stored)[WORLD_ID_MAX + 1] =
        realloc(world->stored, (world->stored_count + 1) * sizeof *world->stored);

    if (!stored) {
        err_set(err, ERR_NO_MEMORY, "no memory to load the store");
        return false;
    }
    world->stored = stored;
    snprintf(stored[world->stored_count++], sizeof *stored, "%s", id);
    return true;
}

static bool on_locale(void *context, const struct store_locale *row, struct err *err)
{
    struct load *load = context;

    if (!close_locale(load, err) || !note_stored(load->world, row->id, err))
        return false;
    if (row->is_deleted)
        return true;
    load->row = *row;
    load->is_open = true;
    return true;
}

/* The layer in its stored pose, at rest; takes it. */
static struct layer *posed(struct load *load, struct layer *layer, const struct store_pose *row,
                           struct err *err)
{
    struct pose pose = {
        {row->translation[0], row->translation[1], row->translation[2]}, row->yaw_deg, {0}};
    struct layer *moved = NULL;

    memcpy(pose.rotation, row->rotation, sizeof pose.rotation);
    if (moves_reserve(load->world->moves, load->row.id, layer->id, err) == ERR_OK)
        moved = layer_moved(layer, &pose, 0, row->transform_seq, err);
    layer_unref(layer);
    if (!moved)
        return NULL;
    moved->pace.count = 0; /* the time of the move is not stored */
    moves_note(load->world->moves, load->row.id, moved->id, row->transform_seq, &moved->motion);
    return moved;
}

static bool on_pin(void *context, const char *name, const struct store_locale *value,
                   struct err *err)
{
    struct load *load = context;

    CHECK(load->is_open);
    if (!close_value(load, err))
        return false;
    snprintf(load->pin, sizeof load->pin, "%s", name);
    load->pin_row = *value;
    return true;
}

/* The layer of a pin in its pose (NULL: unmoved), which that of the locale does not share; takes
 * it. */
static struct layer *pinned(struct layer *layer, const struct store_pose *row, struct err *err)
{
    static const struct layer unmoved = {.is_moved = false};
    struct pose pose = {.yaw_deg = 0};
    struct layer *out;

    if (!layer || layer->kind != LAYER_MESH || (!row && !layer->is_moved))
        return layer;
    if (row) {
        pose = (struct pose){
            {row->translation[0], row->translation[1], row->translation[2]}, row->yaw_deg, {0}};
        memcpy(pose.rotation, row->rotation, sizeof pose.rotation);
    }
    out = row ? layer_moved(layer, &pose, 0, row->transform_seq, err)
              : layer_carried(layer, &unmoved, err);
    if (out && row)
        out->pace.count = 0;
    layer_unref(layer);
    return out;
}

struct locale *persist_posed(const struct locale *value, const struct world_poses *poses,
                             struct err *err)
{
    struct layer *layers[LOCALE_LAYERS_MAX];
    struct locale *posed;
    size_t count = 0;

    for (; count < value->layer_count; count++) {
        const struct store_pose *row = NULL;

        for (size_t i = 0; i < poses->count && !row; i++)
            if (strcmp(poses->at[i].layer, value->layers[count]->id) == 0)
                row = &poses->at[i].pose;
        layers[count] = pinned(layer_ref(value->layers[count]), row, err);
        if (layers[count])
            continue;
        while (count > 0)
            layer_unref(layers[--count]);
        return NULL;
    }
    posed = locale_assemble(value->id, value->revision, &value->manifest, layers, count, err);
    if (posed)
        posed->transform_seq = poses->transform_seq;
    return posed;
}

/* A mesh of another locale, unmoved. */
static struct layer *shared(const struct load *load, const struct store_loaded_layer *loaded,
                            struct err *err)
{
    static const struct layer unmoved = {.is_moved = false};
    const struct locale *other = snapshot_locale(load->draft->snapshot, loaded->shares);

    CHECK(other);
    return layer_carried((struct layer *)(uintptr_t)locale_layer(other, loaded->id), &unmoved, err);
}

static bool on_layer(void *context, struct store_loaded_layer *loaded, struct err *err)
{
    struct load *load = context;
    struct vec3 gravity = {loaded->gravity[0], loaded->gravity[1], loaded->gravity[2]};
    struct layer *layer;

    CHECK(load->is_open && strcmp(load->row.id, loaded->locale) == 0);
    CHECK(load->layer_count < LOCALE_LAYERS_MAX);
    if (loaded->is_current)
        layer = layer_ref((struct layer *)(uintptr_t)locale_layer(load->locale, loaded->id));
    else if (loaded->shares)
        layer = shared(load, loaded, err);
    else
        layer = loaded->kind == STORE_MESH
                    ? layer_adopt_mesh(loaded->id, (enum layer_role)loaded->role, loaded->mesh,
                                       &loaded->polygons, gravity, err)
                    : layer_create_heightfield(loaded->id, loaded->field, err);
    if (load->locale)
        layer = pinned(layer, loaded->has_pose ? &loaded->pose : NULL, err);
    else if (layer && loaded->is_behind)
        builder_note_behind(load->world->builder, loaded->locale, loaded->id);
    if (layer && loaded->has_pose && !load->locale)
        layer = posed(load, layer, &loaded->pose, err);
    if (layer)
        load->layers[load->layer_count++] = layer;
    return layer != NULL;
}

static bool on_edit(void *context, const struct store_edit *row, struct err *err)
{
    struct load *load = context;
    struct feed_event event = {
        .sequence = row->sequence,
        .revision = row->revision,
        .has_rect = row->has_rect,
        .rect = row->rect,
        .has_bounds = row->has_bounds,
        .bounds = row->bounds,
        .has_range = row->has_rect,
        .range = {NAN, NAN},
        .is_resync = strcmp(row->source, FEED_RESYNC) == 0,
    };

    if (!close_locale(load, err))
        return false;
    memcpy(event.locale, row->locale, sizeof event.locale);
    memcpy(event.layer, row->layer, sizeof event.layer);
    memcpy(event.source, row->source, sizeof event.source);
    if (event.sequence <= load->draft->sequence) {
        err_set(err, ERR_DAMAGED, "the log of edits is out of order at %s, revision %llu",
                row->locale, (unsigned long long)row->revision);
        return false;
    }
    feed_begin(load->world->feed);
    feed_append(load->world->feed, &event);
    feed_end(load->world->feed);
    load->draft->sequence = event.sequence;
    return true;
}

/* Drops the part of a damaged locale that was read already. */
static void drop_locale(struct load *load)
{
    if (load->is_open)
        moves_forget(load->world->moves, load->row.id, NULL);
    while (load->layer_count > 0)
        layer_unref(load->layers[--load->layer_count]);
    locale_unref(load->locale);
    load->locale = NULL;
    load->is_open = false;
}

static void on_damage(void *context, const char *locale, const char *message)
{
    struct load *load = context;
    struct world *world = load->world;
    struct damage *damages =
        realloc(world->damages, (world->damage_count + 1) * sizeof *world->damages);
    struct damage *damage;

    log_error("damaged data: %s", message);
    if (load->is_open && strcmp(load->row.id, locale) == 0)
        drop_locale(load);
    if (!damages)
        return;
    world->damages = damages;
    damage = &damages[world->damage_count++];
    snprintf(damage->locale_id, sizeof damage->locale_id, "%s", locale);
    snprintf(damage->message, sizeof damage->message, "%s", message);
    note_stored(world, locale, &(struct err){.code = ERR_OK});
}

/* No limits: the file passed them before it was stored. */
static bool on_model(void *context, const struct store_model *row, struct err *err)
{
    struct draft *draft = ((struct load *)context)->draft;
    struct polygon_limits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct model *model = model_create(row->id, row->bytes, row->length, &limits, err);
    struct model_list *list =
        model ? model_list_next(draft->snapshot->models, model, NULL, err) : NULL;
    struct world_snapshot *next = list ? snapshot_with_models(draft->snapshot, list, err) : NULL;

    model_unref(model);
    model_list_unref(list);
    return draft_take(draft, next);
}

/* Continues after all rows, those of damaged locales included. */
static enum err_code go_on_counting(struct load *load, struct err *err)
{
    uint64_t last = 0;

    if (store_last_sequence(load->world->store, &last, err) == ERR_OK &&
        last > load->draft->sequence)
        load->draft->sequence = last;
    if (err->code == ERR_DAMAGED) { /* then nothing can be written; intact locales are served */
        on_damage(load, "", err->msg);
        err->code = ERR_OK;
    }
    return err->code;
}

enum err_code persist_load(struct world *world, struct draft *draft, struct err *err)
{
    struct load *load = calloc(1, sizeof *load);
    struct store_sink sink = {load, on_locale, on_layer, on_edit, on_damage, on_pin};

    if (!load)
        return err_set(err, ERR_NO_MEMORY, "no memory to load the store");
    load->world = world;
    load->draft = draft;
    if (store_load(world->store, &sink, err) == ERR_OK && close_locale(load, err) &&
        go_on_counting(load, err) == ERR_OK &&
        store_models(world->store, on_model, load, err) == ERR_DAMAGED) {
        on_damage(load, RECORD_MODELS, err->msg);
        err->code = ERR_OK;
    }
    drop_locale(load);
    free(load);
    if (world->stored_count > 0)
        qsort(world->stored, world->stored_count, sizeof *world->stored, world_id_order);
    pthread_mutex_lock(&world->mutex);
    world->counted.damaged = world->damage_count;
    pthread_mutex_unlock(&world->mutex);
    return err->code;
}
