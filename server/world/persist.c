/*
 * Between the world's values and the store's: locales, manifests, layers and events become rows,
 * and rows become a world again.
 *
 * The load runs on the writer's thread, once, into a draft that is then published whole. A locale
 * of which anything is damaged is not in it; what was said about it stays in world->damages, so
 * that calls on it and the readiness probe can tell.
 */
#include "world/record.h"
#include "world/world_data.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)WORLD_ID_MAX == (int)STORE_ID_MAX, "ids are as long in the store");
_Static_assert((int)LOCALE_TITLE_BYTES_MAX == (int)STORE_TITLE_MAX,
               "titles are as long in the store");
_Static_assert((int)FEED_SOURCE_MAX == (int)STORE_SOURCE_MAX, "sources are as long in the store");

/* ---- to the store -------------------------------------------------------------------------------
 */

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
    };

    memcpy(row.id, locale->id, sizeof row.id);
    memcpy(row.title, m->title, sizeof row.title);
    memcpy(row.rotation, m->placement.rotation, sizeof row.rotation);
    return row;
}

static uint32_t position_of(const struct locale *locale, const struct layer *layer)
{
    uint32_t i = 0;

    while (locale->layers[i] != layer)
        i++;
    return i;
}

static enum err_code put_layer(struct store *store, const struct locale *locale,
                               const struct layer *layer, struct err *err)
{
    struct store_layer row = {
        .position = position_of(locale, layer),
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

/* The manifest, and the meshes that were built anew for it; samples stay those they were. */
static enum err_code put_locale(struct store *store, const struct step *step, struct err *err)
{
    const struct locale *after = step->after;
    struct store_locale row = locale_row(after);

    if (store_put_locale(store, &row, err))
        return err->code;
    for (size_t i = 0; i < after->layer_count; i++) {
        const struct layer *layer = after->layers[i];

        if (layer->kind == LAYER_MESH && locale_layer(step->before, layer->id) != layer &&
            put_layer(store, after, layer, err))
            return err->code;
    }
    return ERR_OK;
}

static enum err_code bury_locale(struct store *store, const struct step *step, struct err *err)
{
    struct store_locale row = locale_row(step->before);

    row.revision = step->event.revision;
    row.is_deleted = true;
    return store_put_locale(store, &row, err);
}

enum err_code persist_model(struct store *store, const struct model *model, struct err *err)
{
    struct store_model row = {
        .media_type = "model/obj", .bytes = model->bytes, .length = model->length};

    memcpy(row.id, model->id, sizeof row.id);
    return store_put_model(store, &row, err);
}

static enum err_code put_values(struct store *store, const struct step *step, struct err *err)
{
    const struct world_change *change = step->change;

    switch (change->kind) {
    case WORLD_PUT_LOCALE:
        return put_locale(store, step, err);
    case WORLD_DELETE_LOCALE:
        return bury_locale(store, step, err);
    case WORLD_PUT_LAYER:
        if (put_layer(store, step->after, step->layer, err))
            return err->code;
        return store_drop_pose(store, change->locale_id, change->layer_id, err);
    case WORLD_DELETE_LAYER:
        return store_drop_layer(store, change->locale_id, change->layer_id, err);
    case WORLD_EDIT:
    case WORLD_EDIT_POLYGONS:
        return ERR_OK; /* the log has its samples or polygons */
    case WORLD_PUT_MODEL:
        return persist_model(store, change->model, err);
    case WORLD_DELETE_MODEL:
        return store_drop_model(store, change->model_id, err);
    case WORLD_KEEP_SHELL:
        return store_put_shell(store, &change->shell, err);
    case WORLD_FIND_OP:
    case WORLD_MOVE_LAYER: /* later: persist_pose */
        break;
    }
    CHECK(false); /* a change of no kind */
    return ERR_INTERNAL;
}

enum err_code persist_pose(struct store *store, const struct locale *locale,
                           const struct layer *layer, uint64_t spare, struct err *err)
{
    const struct pose *pose = &layer->motion.pose;
    const struct vec3 *by = &pose->translation;
    struct store_pose row = {.translation = {by->x, by->y, by->z},
                             .yaw_deg = pose->yaw_deg,
                             .transform_seq = layer->transform_seq,
                             .locale_seq = locale->transform_seq + spare};

    return store_put_pose(store, locale->id, layer->id, &row, err);
}

/* What was made of the edit, so that nothing has to be judged again when it is loaded. */
static enum err_code log_polygons(struct store *store, const struct step *step,
                                  struct store_edit *row, struct err *err)
{
    const struct layer *before = locale_layer(step->before, step->layer->id);
    struct polygon_edit edit;
    void *bytes;

    if (polygon_edit_between(layer_polygon_set(before), layer_polygon_set(step->layer), &edit, err))
        return err->code;
    bytes = polygon_edit_encode(&edit, &row->polygons_bytes);
    polygon_edit_free(&edit);
    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "no memory for an edit of polygons");
    row->polygons = bytes;
    store_log(store, row, err);
    free(bytes);
    return err->code;
}

enum err_code persist_step(struct store *store, const struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    const struct feed_event *event = &step->event;
    struct store_edit row = {
        .revision = event->revision,
        .sequence = event->sequence,
        .kind = (int)change->kind,
        .has_rect = event->has_rect,
        .rect = event->rect,
        .heights_m = step->outcome.heights_m,
        .has_bounds = event->has_bounds,
        .bounds = event->bounds,
        .answer = step->answer,
        .answer_bytes = step->answer_bytes,
    };

    memcpy(row.locale, event->locale, sizeof row.locale);
    memcpy(row.layer, event->layer, sizeof row.layer);
    memcpy(row.source, event->source, sizeof row.source);
    memcpy(row.op_id, change->op_id, sizeof row.op_id);
    memcpy(row.request, change->request, sizeof row.request);
    if (put_values(store, step, err) || step->is_of_model)
        return err->code;
    if (change->kind == WORLD_EDIT_POLYGONS)
        return log_polygons(store, step, &row, err);
    return store_log(store, &row, err);
}

enum err_code persist_anew(struct store *store, const char *locale_id, const struct locale *locale,
                           const struct feed_event *event, struct err *err)
{
    struct store_locale gone = {.revision = event->revision, .is_deleted = true};
    struct store_locale row = locale ? locale_row(locale) : gone;
    struct store_edit log = {
        .revision = event->revision,
        .sequence = event->sequence,
        .kind = (int)WORLD_PUT_LOCALE,
        .has_bounds = event->has_bounds,
        .bounds = event->bounds,
    };

    snprintf(row.id, sizeof row.id, "%s", locale_id);
    memcpy(log.locale, event->locale, sizeof log.locale);
    memcpy(log.source, event->source, sizeof log.source);
    if (store_forget_locale(store, locale_id, err) || store_put_locale(store, &row, err))
        return err->code;
    for (size_t i = 0; locale && i < locale->layer_count; i++)
        if (put_layer(store, locale, locale->layers[i], err))
            return err->code;
    return store_log(store, &log, err);
}

const struct heightfield *persist_field_of(void *context, const char *locale, const char *layer)
{
    const struct locale *at = snapshot_locale(context, locale);
    const struct layer *found = at ? locale_layer(at, layer) : NULL;

    return found ? found->field : NULL;
}

/* ---- from the store -----------------------------------------------------------------------------
 */

/* The locale that is being read; its layers follow. */
struct load {
    struct world *world;
    struct draft *draft;
    bool is_open;
    struct store_locale row;
    struct layer *layers[LOCALE_LAYERS_MAX];
    size_t layer_count;
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
    return m;
}

static bool draft_add(struct draft *draft, struct locale *locale, struct err *err)
{
    struct world_snapshot *next = snapshot_next(draft->snapshot, locale->id, locale, err);

    if (!next)
        return false;
    if (draft->is_own)
        snapshot_destroy(draft->snapshot);
    draft->snapshot = next;
    draft->is_own = true;
    return true;
}

/* The locale is complete: puts it into the draft. */
static bool close_locale(struct load *load, struct err *err)
{
    struct locale_manifest manifest;
    struct locale *locale;
    bool is_added;

    if (!load->is_open)
        return true;
    load->is_open = false;
    manifest = manifest_of(&load->row);
    locale = locale_assemble(load->row.id, load->row.revision, &manifest, load->layers,
                             load->layer_count, err);
    load->layer_count = 0;
    if (!locale)
        return false;
    locale->transform_seq = load->row.transform_seq;
    is_added = draft_add(load->draft, locale, err);
    locale_unref(locale);
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

/* The layer where it was last, at rest; takes it. */
static struct layer *posed(struct load *load, struct layer *layer, const struct store_pose *row,
                           struct err *err)
{
    struct pose pose = {{row->translation[0], row->translation[1], row->translation[2]},
                        row->yaw_deg};
    struct layer *moved = NULL;

    if (moves_reserve(load->world->moves, load->row.id, layer->id, err) == ERR_OK)
        moved = layer_moved(layer, &pose, 0, row->transform_seq, err);
    layer_unref(layer);
    if (!moved)
        return NULL;
    moved->pace.count = 0; /* when that was nobody knows any more */
    moves_note(load->world->moves, load->row.id, moved->id, row->transform_seq, &pose);
    return moved;
}

static bool on_layer(void *context, struct store_loaded_layer *loaded, struct err *err)
{
    struct load *load = context;
    struct vec3 gravity = {loaded->gravity[0], loaded->gravity[1], loaded->gravity[2]};
    struct layer *layer;

    CHECK(load->is_open && strcmp(load->row.id, loaded->locale) == 0);
    CHECK(load->layer_count < LOCALE_LAYERS_MAX);
    layer = loaded->kind == STORE_MESH
                ? layer_adopt_mesh(loaded->id, (enum layer_role)loaded->role, loaded->mesh,
                                   &loaded->polygons, gravity, err)
                : layer_create_heightfield(loaded->id, loaded->field, err);
    if (layer && loaded->is_behind)
        builder_note_behind(load->world->builder, loaded->locale, loaded->id);
    if (layer && loaded->has_pose)
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

/* What came of a locale before it turned out to be damaged. */
static void drop_locale(struct load *load)
{
    if (load->is_open)
        moves_forget(load->world->moves, load->row.id, NULL);
    while (load->layer_count > 0)
        layer_unref(load->layers[--load->layer_count]);
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

/* What was measured once fits any limit: the file is in the store because it did. */
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
    if (!next)
        return false;
    if (draft->is_own)
        snapshot_destroy(draft->snapshot);
    draft->snapshot = next;
    draft->is_own = true;
    return true;
}

/* Behind the rows of damaged locales, too, which were not told. */
static enum err_code go_on_counting(struct load *load, struct err *err)
{
    uint64_t last = 0;

    if (store_last_sequence(load->world->store, &last, err) == ERR_OK &&
        last > load->draft->sequence)
        load->draft->sequence = last;
    if (err->code == ERR_DAMAGED) { /* nothing can be written then; what is whole is served */
        on_damage(load, "", err->msg);
        err->code = ERR_OK;
    }
    return err->code;
}

enum err_code persist_load(struct world *world, struct draft *draft, struct err *err)
{
    struct load *load = calloc(1, sizeof *load);
    struct store_sink sink = {load, on_locale, on_layer, on_edit, on_damage};

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
    pthread_mutex_lock(&world->mutex);
    world->counted.damaged = world->damage_count;
    pthread_mutex_unlock(&world->mutex);
    return err->code;
}
