/*
 * One change against a draft of the next snapshot.
 *
 * Problem: changes that wait together share one commit, each must see what the ones before it did
 * (a second `add`, an If-Match), and any of them may be refused without the others. Approach: a
 * draft, which is a snapshot that nobody else sees. Each change makes the next draft from the last
 * one; they share all but one locale, so this costs little more than publishing each of them would.
 * What is refused leaves the draft as it was; when the commit fails the draft is let go as a whole.
 *
 * A change with a known op_id makes nothing: it has been made, its first answer is given again.
 *
 * Revisions go on across deletion, so that whoever follows a locale never sees one revision stand
 * for two states. The store keeps the number of each deleted locale; without a store a bounded list
 * of tombstones does, and when one of them is dropped, every new locale begins above its number.
 *
 * Invariant: a draft's sequence is the published one plus the steps made in it.
 */
#include "world/world_data.h"

#include "base/check.h"
#include "world/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOMBSTONES_MAX = 10000 };

/* ---- tombstones ---------------------------------------------------------------------------------
 */

uint64_t tombstones_find(const struct tombstones *tombstones, const char *locale_id)
{
    for (size_t i = tombstones->count; i-- > 0;)
        if (strcmp(tombstones->at[i].locale_id, locale_id) == 0)
            return tombstones->at[i].revision;
    return tombstones->dropped;
}

void tombstones_add(struct tombstones *tombstones, const char *locale_id, uint64_t revision)
{
    struct tombstone *at = tombstones->at;

    for (size_t i = 0; i < tombstones->count; i++)
        if (strcmp(at[i].locale_id, locale_id) == 0) {
            memmove(at + i, at + i + 1, (tombstones->count - i - 1) * sizeof *at);
            tombstones->count--;
            break;
        }
    if (tombstones->count == TOMBSTONES_MAX) {
        if (at[0].revision > tombstones->dropped)
            tombstones->dropped = at[0].revision;
        memmove(at, at + 1, --tombstones->count * sizeof *at);
    }
    if (tombstones->count == tombstones->capacity) {
        size_t capacity = tombstones->capacity ? 2 * tombstones->capacity : 16;

        at = realloc(at, capacity * sizeof *at);
        if (!at) {
            if (revision > tombstones->dropped)
                tombstones->dropped = revision;
            return;
        }
        tombstones->at = at;
        tombstones->capacity = capacity;
    }
    snprintf(at[tombstones->count].locale_id, sizeof at->locale_id, "%s", locale_id);
    at[tombstones->count++].revision = revision;
}

/* ---- drafts -------------------------------------------------------------------------------------
 */

void draft_begin(struct draft *draft, struct world *world)
{
    *draft = (struct draft){
        .world = world,
        .snapshot = atomic_load(&world->published),
        .sequence = world->sequence,
    };
}

void draft_end(struct draft *draft)
{
    if (draft->is_own)
        snapshot_destroy(draft->snapshot);
    free(draft->buried.at);
    *draft = (struct draft){.world = draft->world};
}

void draft_fork(const struct draft *draft, struct draft *out)
{
    *out = *draft;
    out->is_own = false;
    out->buried = (struct tombstones){.dropped = draft->buried.dropped};
    for (size_t i = 0; i < draft->buried.count; i++)
        tombstones_add(&out->buried, draft->buried.at[i].locale_id, draft->buried.at[i].revision);
}

void draft_join(struct draft *draft, struct draft *fork)
{
    if (!fork->is_own) { /* repeats alone */
        draft_end(fork);
        return;
    }
    draft_end(draft);
    *draft = *fork;
    *fork = (struct draft){.world = draft->world};
}

void draft_publish_begin(struct draft *draft)
{
    struct world *world = draft->world;

    CHECK(draft->is_own);
    draft->is_own = false; /* taken */
    world_make_room(world);
    feed_begin(world->feed);
    world_publish(world, draft->snapshot);
}

void draft_publish_end(struct draft *draft)
{
    struct world *world = draft->world;

    feed_end(world->feed);
    world_wake(world);
    world->sequence = draft->sequence;
    for (size_t i = 0; !world->store && i < draft->buried.count; i++)
        tombstones_add(&world->tombstones, draft->buried.at[i].locale_id,
                       draft->buried.at[i].revision);
}

/* The number after which a locale that is not there goes on counting. */
static enum err_code revision_before(const struct draft *draft, const char *locale_id,
                                     uint64_t *revision, struct err *err)
{
    struct world *world = draft->world;

    *revision = tombstones_find(&draft->buried, locale_id);
    if (*revision == 0 && world->store)
        return store_find_deleted(world->store, locale_id, revision, err);
    if (*revision == 0)
        *revision = tombstones_find(&world->tombstones, locale_id);
    return ERR_OK;
}

static enum err_code check_room(const struct draft *draft, const struct world_snapshot *next,
                                struct err *err)
{
    const struct world_limits *limits = &draft->world->limits;
    const struct world_snapshot *now = draft->snapshot;

    if (draft->is_followed)
        return ERR_OK;
    if (next->locale_count > now->locale_count && next->locale_count > limits->locales_max)
        return err_limit(err, ERR_TOO_LARGE, (double)limits->locales_max,
                         (double)next->locale_count, "the world takes %zu locales, it is full",
                         limits->locales_max);
    if (next->memory_bytes > now->memory_bytes && next->memory_bytes > limits->bytes_max)
        return err_limit(err, ERR_TOO_LARGE, (double)limits->bytes_max, (double)next->memory_bytes,
                         "the world would hold %llu bytes, the most is %llu",
                         (unsigned long long)next->memory_bytes,
                         (unsigned long long)limits->bytes_max);
    return ERR_OK;
}

enum err_code draft_advance(struct draft *draft, struct world_snapshot *next, struct err *err)
{
    if (!next)
        return err->code;
    if (check_room(draft, next, err)) {
        snapshot_destroy(next);
        return err->code;
    }
    if (draft->is_own)
        snapshot_destroy(draft->snapshot);
    draft->snapshot = next;
    draft->is_own = true;
    return ERR_OK;
}

/* The draft in which step->after (NULL: nothing) stands at the locale. */
static enum err_code draft_replace(struct draft *draft, const char *locale_id,
                                   const struct step *step, struct err *err)
{
    struct world_snapshot *next = snapshot_next(draft->snapshot, locale_id, step->after, err);

    if (draft_advance(draft, next, err))
        return err->code;
    draft->sequence++;
    if (!step->after)
        tombstones_add(&draft->buried, locale_id, step->event.revision);
    return ERR_OK;
}

/* ---- was it made before? ------------------------------------------------------------------------
 */

static enum err_code copy_answer(struct step *step, const void *answer, size_t bytes,
                                 struct err *err)
{
    step->answer = malloc(bytes ? bytes : 1);
    if (!step->answer)
        return err_set(err, ERR_NO_MEMORY, "no memory for an answer");
    memcpy(step->answer, answer, bytes);
    step->answer_bytes = bytes;
    return ERR_OK;
}

static enum err_code find_repeat(struct draft *draft, const struct world_change *change,
                                 struct step *step, struct err *err)
{
    struct world *world = draft->world;
    const struct op *op = world->store ? NULL : ops_find(world->ops, change->op_id);
    struct store_edit row = {.revision = 0};
    const uint8_t *request = op ? op->request : row.request;
    bool found = op != NULL;

    if (world->store && store_find_op(world->store, change->op_id, &found, &row, err))
        return err->code;
    if (!found)
        return ERR_OK;
    if (memcmp(request, change->request, STORE_REQUEST_BYTES) != 0) {
        err_set(err, ERR_UNPROCESSABLE,
                "the key \"%.64s\" was used before for another request; a repeat must be the same",
                change->op_id);
        return err_at(err, "Idempotency-Key");
    }
    step->is_repeat = true;
    step->event.revision = op ? op->revision : row.revision;
    step->outcome.rect = op ? op->rect : row.rect;
    return op ? copy_answer(step, op->answer, op->answer_bytes, err)
              : copy_answer(step, row.answer, row.answer_bytes, err);
}

/* What the change is answered with, to be kept. */
static enum err_code ask_answer(struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    struct world_outcome outcome = step_outcome(step, NULL);

    if (!change->answer)
        return ERR_OK;
    step->answer = change->answer(change->context, &outcome, &step->answer_bytes);
    return step->answer ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory for an answer");
}

/* A store keeps it with the change's row. */
static void keep_answer(struct draft *draft, const struct step *step)
{
    struct op op = {.revision = step->event.revision,
                    .rect = step->outcome.rect,
                    .answer = step->answer,
                    .answer_bytes = step->answer_bytes};

    if (draft->world->store || step->change->op_id[0] == '\0')
        return;
    memcpy(op.id, step->change->op_id, sizeof op.id);
    memcpy(op.request, step->change->request, sizeof op.request);
    ops_put(draft->world->ops, &op);
}

/* ---- what each kind does ------------------------------------------------------------------------
 */

static enum err_code unknown(const char *locale_id, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no locale %s", locale_id);
}

static void box_of(const struct locale *locale, struct feed_event *event)
{
    event->has_bounds = locale->has_bounds;
    event->bounds = locale->bounds;
}

static void box_of_layer(const struct layer *layer, struct feed_event *event)
{
    struct box3 box;

    if (!layer || !layer_bounds(layer, &box))
        return;
    event->bounds = event->has_bounds ? box3_union(event->bounds, box) : box;
    event->has_bounds = true;
}

static bool changes_ground(const struct locale_manifest *a, const struct locale_manifest *b)
{
    return a->triangulation != b->triangulation || a->open_sky != b->open_sky ||
           memcmp(&a->gravity, &b->gravity, sizeof a->gravity) != 0 ||
           memcmp(&a->placement, &b->placement, sizeof a->placement) != 0;
}

static enum err_code make_locale(struct draft *draft, struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    const struct locale *now = step->before;
    uint64_t last = 0;

    step->is_new = now == NULL;
    if (!now && revision_before(draft, change->locale_id, &last, err))
        return err->code;
    CHECK(!change->is_whole || !draft->world->store);
    if (now && change->is_whole)
        step->after = locale_assemble(now->id, now->revision + 1, &change->manifest, NULL, 0, err);
    else if (now)
        step->after = locale_next(now, &change->manifest, NULL, NULL, change->prepared, err);
    else
        step->after = locale_create(change->locale_id, &change->manifest, err);
    if (!step->after)
        return err->code;
    if (!now)
        step->after->revision = last + 1;
    else if (change->is_whole)
        box_of(now, &step->event);
    else if (changes_ground(&now->manifest, &change->manifest))
        box_of(step->after, &step->event);
    return ERR_OK;
}

static enum err_code make_layer(struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    const struct layer *old = locale_layer(step->before, change->layer_id);
    struct layer *put = change->layer;

    step->is_new = old == NULL;
    CHECK((change->kind == WORLD_PUT_LAYER) == (put != NULL));
    if (put)
        CHECK(strcmp(put->id, change->layer_id) == 0);
    else if (!old)
        return err_set(err, ERR_NOT_FOUND, "there is no layer %s in locale %s", change->layer_id,
                       change->locale_id);
    step->after = locale_next(step->before, NULL, put, put ? NULL : change->layer_id, NULL, err);
    if (!step->after)
        return err->code;
    step->layer = put ? locale_layer(step->after, change->layer_id) : NULL;
    box_of_layer(old, &step->event);
    box_of_layer(step->layer, &step->event);
    if (step->layer && step->layer->field) {
        const struct heightfield_spec *spec = heightfield_spec(step->layer->field);

        step->event.has_rect = true;
        step->event.rect = (struct sample_rect){0, 0, spec->cols, spec->rows};
    }
    snprintf(step->event.layer, sizeof step->event.layer, "%s", change->layer_id);
    return ERR_OK;
}

/* The box of the cells that touch a rect's samples, as they were and as they are. */
static void box_of_edit(const struct heightfield *before, const struct heightfield *after,
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
    event->bounds = (struct box3){{spec->origin_x_m + c0 * spec->spacing_x_m,
                                   spec->origin_y_m + r0 * spec->spacing_y_m, (double)min},
                                  {spec->origin_x_m + c1 * spec->spacing_x_m,
                                   spec->origin_y_m + r1 * spec->spacing_y_m, (double)max}};
}

static enum err_code make_edit(struct draft *draft, struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    const char *wanted = change->layer_id[0] != '\0' ? change->layer_id : NULL;
    uint64_t samples_max = draft->is_followed ? UINT64_MAX : draft->world->limits.edit_samples_max;
    const struct layer *old;
    struct heightfield *field;
    struct layer *layer;

    if (locale_choose_field(step->before, wanted, &old, err) ||
        edit_evaluate(old->field, &change->edit, samples_max, &step->outcome, err))
        return err->code;
    field = heightfield_with_samples(old->field, &step->outcome.rect, step->outcome.heights_m, err);
    layer = field ? layer_create_heightfield(old->id, field, err) : NULL;
    if (!layer)
        return err->code;
    step->after = locale_next(step->before, NULL, layer, NULL, NULL, err);
    layer_unref(layer);
    if (!step->after)
        return err->code;
    step->layer = locale_layer(step->after, old->id);
    step->event.has_rect = true;
    step->event.rect = step->outcome.rect;
    memcpy(step->event.layer, old->id, sizeof step->event.layer);
    box_of_edit(old->field, step->layer->field, &step->outcome.rect, &step->event);
    return ERR_OK;
}

/* What was made ahead of this very layer, or makes it now. */
static struct layer *polygons_edited(const struct layer *old, const struct world_change *change,
                                     struct err *err)
{
    if (change->layer && change->base->mesh == old->mesh && change->base->polygons == old->polygons)
        return layer_moving_as(change->layer, old, err);
    return layer_edited(old, &change->polygons, err);
}

static enum err_code make_polygons(struct draft *draft, struct step *step, struct err *err)
{
    static const struct polygon_limits none = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const struct world_change *change = step->change;
    const struct layer *old = locale_layer(step->before, change->layer_id);
    struct layer *layer;

    CHECK((change->layer == NULL) == (change->base == NULL));
    if (!old)
        return err_set(err, ERR_NOT_FOUND, "there is no layer %s in locale %s", change->layer_id,
                       change->locale_id);
    if (old->kind != LAYER_MESH)
        return err_set(err, ERR_UNPROCESSABLE,
                       "layer %s of locale %s is a heightfield: polygons belong to meshes", old->id,
                       change->locale_id);
    if (polygon_edit_check(layer_polygon_set(old), &change->polygons,
                           draft->is_followed ? &none : &draft->world->limits.polygon, err))
        return err->code;
    layer = polygons_edited(old, change, err);
    if (!layer)
        return err->code;
    step->after = locale_next(step->before, NULL, layer, NULL, NULL, err);
    layer_unref(layer);
    if (!step->after)
        return err->code;
    step->layer = locale_layer(step->after, old->id);
    step->first_polygon = layer_added(old, step->layer, &step->import);
    if (step->import.kept == 0 && change->polygons.removed_count == 0)
        return err_set(err, ERR_UNPROCESSABLE,
                       "no polygon is left of %zu: all are degenerate or not simple",
                       change->polygons.add.polygon_count);
    memcpy(step->event.layer, old->id, sizeof step->event.layer);
    step->event.has_bounds = layer_changed_box(old, step->layer, &step->event.bounds);
    return ERR_OK;
}

static enum err_code make_model(struct draft *draft, struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    struct model_list *now = draft->snapshot->models, *next;
    size_t most = draft->world->limits.models_max;
    bool is_put = change->kind == WORLD_PUT_MODEL;

    CHECK(is_put == (change->model != NULL) && change->op_id[0] == '\0');
    step->is_of_model = true;
    step->is_new = model_list_find(now, change->model_id) == NULL;
    if (!is_put && step->is_new)
        return err_set(err, ERR_NOT_FOUND, "there is no model %s", change->model_id);
    if (is_put && step->is_new && now && now->count >= most && !draft->is_followed)
        return err_limit(err, ERR_TOO_LARGE, (double)most, (double)now->count + 1,
                         "the world takes %zu models, it is full", most);
    next = model_list_next(now, change->model, change->model_id, err);
    if (!next)
        return err->code;
    draft_advance(draft, snapshot_with_models(draft->snapshot, next, err), err);
    model_list_unref(next);
    return err->code;
}

static enum err_code make(struct draft *draft, struct step *step, struct err *err)
{
    const struct world_change *change = step->change;

    switch (change->kind) {
    case WORLD_PUT_LOCALE:
        return make_locale(draft, step, err);
    case WORLD_DELETE_LOCALE:
        box_of(step->before, &step->event);
        return ERR_OK;
    case WORLD_PUT_LAYER:
    case WORLD_DELETE_LAYER:
        return make_layer(step, err);
    case WORLD_EDIT:
        return make_edit(draft, step, err);
    case WORLD_EDIT_POLYGONS:
        return make_polygons(draft, step, err);
    case WORLD_MOVE_LAYER:
        return move_make(draft, step, err);
    case WORLD_PUT_MODEL:
    case WORLD_DELETE_MODEL:
    case WORLD_FIND_OP:
    case WORLD_KEEP_SHELL:
        break;
    }
    CHECK(false); /* a change of no kind */
    return ERR_INTERNAL;
}

/* ---- a step -------------------------------------------------------------------------------------
 */

static const char *source_of(const struct world_change *change)
{
    if (change->source[0] != '\0')
        return change->source;
    switch (change->kind) {
    case WORLD_PUT_LOCALE:
        return "manifest";
    case WORLD_DELETE_LOCALE:
        return "delete";
    case WORLD_PUT_LAYER:
    case WORLD_DELETE_LAYER:
        return "layer";
    case WORLD_EDIT:
        return change->edit.kind == EDIT_BRUSH ? "brush" : "edit";
    case WORLD_EDIT_POLYGONS:
        return "polygons";
    case WORLD_MOVE_LAYER:
    case WORLD_PUT_MODEL:
    case WORLD_DELETE_MODEL:
    case WORLD_FIND_OP:
    case WORLD_KEEP_SHELL:
        break;
    }
    return "";
}

bool world_is_of_layer(enum world_change_kind kind)
{
    return kind == WORLD_PUT_LAYER || kind == WORLD_DELETE_LAYER || kind == WORLD_MOVE_LAYER ||
           kind == WORLD_EDIT_POLYGONS;
}

/* Is what the change is about there: the layer, or else the locale? */
static bool target_is_there(const struct step *step)
{
    const struct world_change *change = step->change;

    if (!world_is_of_layer(change->kind))
        return step->before != NULL;
    return step->before && locale_layer(step->before, change->layer_id) != NULL;
}

static enum err_code failed_condition(const struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    bool is_layer = world_is_of_layer(change->kind);
    bool wants_it = change->condition == WORLD_IF_PRESENT;

    err_set(err, ERR_PRECONDITION_FAILED, "%s %s is %sthere", is_layer ? "layer" : "locale",
            is_layer ? change->layer_id : change->locale_id, wants_it ? "not " : "already ");
    return err_at(err, wants_it ? "If-Match" : "If-None-Match");
}

/* What must hold before a change is looked at. */
static enum err_code check_conditions(const struct draft *draft, const struct step *step,
                                      struct err *err)
{
    const struct world_change *change = step->change;
    const char *damage = world_damage(draft->world, change->locale_id);
    uint64_t revision = step->before ? step->before->revision : 0;

    if (damage)
        return err_set(err, ERR_DAMAGED, "%s", damage);
    if (!step->before && change->kind != WORLD_PUT_LOCALE)
        return unknown(change->locale_id, err);
    if (change->if_revision != 0 && change->if_revision != revision) {
        err_set(err, ERR_PRECONDITION_FAILED, "locale %s is at revision %llu, not at %llu",
                change->locale_id, (unsigned long long)revision,
                (unsigned long long)change->if_revision);
        return err_at(err, "If-Match");
    }
    if (change->condition != WORLD_IF_ANY &&
        target_is_there(step) != (change->condition == WORLD_IF_PRESENT))
        return failed_condition(step, err);
    return ERR_OK;
}

enum err_code step_make(struct draft *draft, const struct world_change *change, struct step *step,
                        struct err *err)
{
    struct feed_event *event = &step->event;

    *step = (struct step){.change = change};
    err->code = ERR_OK;
    step->is_of_model = change->kind == WORLD_KEEP_SHELL;
    if (step->is_of_model) /* the store has it, nobody sees it */
        return ERR_OK;
    if (change->kind == WORLD_PUT_MODEL || change->kind == WORLD_DELETE_MODEL)
        return make_model(draft, step, err);
    if (change->kind == WORLD_FIND_OP)
        return find_repeat(draft, change, step, err);
    if (change->op_id[0] != '\0' && (find_repeat(draft, change, step, err) || step->is_repeat))
        return err->code;
    step->before = snapshot_locale(draft->snapshot, change->locale_id);
    if (step->before)
        locale_ref(step->before);
    if (check_conditions(draft, step, err) || make(draft, step, err))
        return err->code;
    if (change->kind == WORLD_MOVE_LAYER) {
        event->revision = step->after->revision;
        return draft_advance(
            draft, snapshot_next(draft->snapshot, change->locale_id, step->after, err), err);
    }
    event->sequence = draft->sequence + 1;
    event->revision = step->after ? step->after->revision : step->before->revision + 1;
    memcpy(event->locale, change->locale_id, sizeof event->locale);
    snprintf(event->source, sizeof event->source, "%s", source_of(change));
    if ((change->op_id[0] != '\0' && ask_answer(step, err)) ||
        draft_replace(draft, change->locale_id, step, err))
        return err->code;
    keep_answer(draft, step);
    return ERR_OK;
}

void step_announce(struct world *world, const struct step *step)
{
    if (step_makes_nothing(step) || step->is_of_model)
        return;
    if (step_is_durable(step))
        feed_append(world->feed, &step->event);
    move_announce(world, step);
    builder_note(world->builder, step);
}

bool step_is_durable(const struct step *step)
{
    return !step_makes_nothing(step) && step->change->kind != WORLD_MOVE_LAYER;
}

bool step_makes_nothing(const struct step *step)
{
    return step->is_repeat || step->change->kind == WORLD_FIND_OP;
}

void step_finish(struct step *step)
{
    locale_unref(step->before);
    locale_unref(step->after);
    edit_outcome_free(&step->outcome);
    free(step->answer);
    *step = (struct step){.change = step->change};
}

struct world_outcome step_outcome(const struct step *step, const struct err *err)
{
    static const struct err none = {.code = ERR_OK};

    if (err && err->code != ERR_OK)
        return (struct world_outcome){.code = err->code, .err = err};
    return (struct world_outcome){
        .code = ERR_OK,
        .err = &none,
        .locale = step->after,
        .revision = step->event.revision,
        .is_new = step->is_new,
        .rect = step->outcome.rect,
        .polygons = step->change->kind == WORLD_EDIT_POLYGONS ? &step->change->polygons : NULL,
        .layer = step->layer,
        .first_polygon = step->first_polygon,
        .import = step->import,
        .answer = step->is_repeat ? step->answer : NULL,
        .answer_bytes = step->is_repeat ? step->answer_bytes : 0,
    };
}
