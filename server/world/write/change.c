/*
 * One change against a draft of the next snapshot.
 *
 * Problem: queued changes share one commit, each must see the ones before it (a second `add`, an
 * If-Match), and any of them may be refused without the others. Approach: a draft, which is a
 * snapshot that is not published. Each change makes the next draft from the last one; they share
 * all but one locale, so this costs little more than publishing each of them would. A refused
 * change leaves the draft as it was; when the commit fails, the draft is dropped as a whole.
 *
 * A change with a known op_id is a repeat: nothing is made, its first answer is returned.
 *
 * Revisions continue across deletion, so that one revision never means two states. The store has
 * the number of each deleted locale; without a store a bounded list of tombstones has it, and when
 * one of them is dropped, every new locale begins above its number.
 *
 * Invariant: a draft's sequence is the published one plus the results made in it.
 */
#include "world/write/kinds/kind.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOMBSTONES_MAX = 10000 };

/* ---- tombstones ------------------------------------------------------------------------------ */

/* The revision of a locale's tombstone; without one the greatest that was dropped, or 0. */
static uint64_t tombstones_find(const struct tombstones *tombstones, const char *locale_id)
{
    for (size_t i = tombstones->count; i-- > 0;)
        if (strcmp(tombstones->at[i].locale_id, locale_id) == 0)
            return tombstones->at[i].revision;
    return tombstones->dropped;
}

/* Adds or renews one; the oldest is dropped when there are too many, the new one without memory. */
static void tombstones_add(struct tombstones *tombstones, const char *locale_id, uint64_t revision)
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
    if (!array_reserve((void **)&tombstones->at, &tombstones->capacity, tombstones->count + 1,
                       sizeof *at)) {
        if (revision > tombstones->dropped)
            tombstones->dropped = revision;
        return;
    }
    at = tombstones->at;
    snprintf(at[tombstones->count].locale_id, sizeof at->locale_id, "%s", locale_id);
    at[tombstones->count++].revision = revision;
}

/* ---- drafts ---------------------------------------------------------------------------------- */

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
    free(draft->deleted.at);
    *draft = (struct draft){.world = draft->world};
}

void draft_fork(const struct draft *draft, struct draft *out)
{
    *out = *draft;
    out->is_own = false;
    out->deleted = (struct tombstones){.dropped = draft->deleted.dropped};
    for (size_t i = 0; i < draft->deleted.count; i++)
        tombstones_add(&out->deleted, draft->deleted.at[i].locale_id,
                       draft->deleted.at[i].revision);
}

void draft_join(struct draft *draft, struct draft *fork)
{
    if (!fork->is_own) { /* only repeats */
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
    for (size_t i = 0; !world->store && i < draft->deleted.count; i++)
        tombstones_add(&world->tombstones, draft->deleted.at[i].locale_id,
                       draft->deleted.at[i].revision);
}

enum err_code draft_last_revision(const struct draft *draft, const char *locale_id,
                                  uint64_t *revision, struct err *err)
{
    struct world *world = draft->world;

    *revision = tombstones_find(&draft->deleted, locale_id);
    if (*revision == 0 && world->store)
        return store_find_deleted(world->store, locale_id, revision, err);
    if (*revision == 0)
        *revision = tombstones_find(&world->tombstones, locale_id);
    return ERR_OK;
}

/* Of locales, models and pins; the past has a limit of its own. Each fork counts as a
 * whole. */
static uint64_t bytes_of(const struct world_snapshot *snapshot)
{
    return snapshot->memory_bytes + snapshot->sums.pin_bytes;
}

static enum err_code check_room(const struct draft *draft, const struct world_snapshot *next,
                                struct err *err)
{
    const struct world_limits *limits = &draft->world->limits;
    const struct world_snapshot *now = draft->snapshot;
    uint64_t held;

    if (draft->is_followed)
        return ERR_OK;
    if (next->locale_count > now->locale_count && next->locale_count > limits->locales_max)
        return err_limit(err, ERR_WORLD_FULL, (double)limits->locales_max,
                         (double)next->locale_count, "the world takes %zu locales, it is full",
                         limits->locales_max);
    held = snapshot_shared_bytes(next);
    if (bytes_of(next) > bytes_of(now) && held > limits->bytes_max)
        return err_limit(err, ERR_WORLD_FULL, (double)limits->bytes_max, (double)held,
                         "the world would hold %llu bytes, the most is %llu",
                         (unsigned long long)held, (unsigned long long)limits->bytes_max);
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

/* The draft in which result->after (NULL: no locale) replaces the locale. */
static enum err_code draft_replace(struct draft *draft, const char *locale_id,
                                   const struct change_result *result, struct err *err)
{
    struct world_snapshot *next = snapshot_next(draft->snapshot, locale_id, result->after, err);

    if (draft_advance(draft, next, err))
        return err->code;
    draft->sequence++;
    if (!result->after)
        tombstones_add(&draft->deleted, locale_id, result->event.revision);
    return ERR_OK;
}

/* ---- was it made before? --------------------------------------------------------------------- */

static enum err_code copy_answer(struct change_result *result, const void *answer, size_t bytes,
                                 struct err *err)
{
    result->answer = malloc(bytes ? bytes : 1);
    if (!result->answer)
        return err_set(err, ERR_NO_MEMORY, "no memory for an answer");
    memcpy(result->answer, answer, bytes);
    result->answer_bytes = bytes;
    return ERR_OK;
}

static enum err_code find_repeat(struct draft *draft, const struct world_change *change,
                                 struct change_result *result, struct err *err)
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
    if (memcmp(request, change->request, STORE_REQUEST_BYTES) != 0)
        return err_set_at(
            err, ERR_KEY_REUSED, "Idempotency-Key",
            "the key \"%.64s\" was used before for another request; a repeat must be the same",
            change->op_id);
    result->is_repeat = true;
    result->event.revision = op ? op->revision : row.revision;
    result->outcome.rect = op ? op->rect : row.rect;
    return op ? copy_answer(result, op->answer, op->answer_bytes, err)
              : copy_answer(result, row.answer, row.answer_bytes, err);
}

/* Encodes the answer to the change, to be stored. */
static enum err_code encode_answer(struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    struct world_outcome outcome = result_outcome(result, NULL);

    if (!change->answer)
        return ERR_OK;
    result->answer = change->answer(change->context, &outcome, &result->answer_bytes);
    return result->answer ? ERR_OK : err_set(err, ERR_NO_MEMORY, "no memory for an answer");
}

/* Without a store; a store has it in the change's row. */
static void remember_answer(struct draft *draft, const struct change_result *result)
{
    struct op op = {.revision = result->event.revision,
                    .rect = result->outcome.rect,
                    .answer = result->answer,
                    .answer_bytes = result->answer_bytes};

    if (draft->world->store || result->change->op_id[0] == '\0')
        return;
    memcpy(op.id, result->change->op_id, sizeof op.id);
    memcpy(op.request, result->change->request, sizeof op.request);
    ops_put(draft->world->ops, &op);
}

/* ---- one change ------------------------------------------------------------------------------ */

/* Does the target of the change exist: the pin, the layer, or else the locale? */
static bool target_is_there(const struct change_result *result)
{
    const struct world_change *change = result->change;

    if (change->kind == WORLD_PUT_PIN)
        return result->before && locale_pin(result->before, change->pin) != NULL;
    if (!world_is_of_layer(change->kind))
        return result->before != NULL;
    return result->before && locale_layer(result->before, change->layer_id) != NULL;
}

static enum err_code failed_condition(const struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    bool is_layer = world_is_of_layer(change->kind), is_pin = change->kind == WORLD_PUT_PIN;
    bool wants_it = change->condition == WORLD_IF_PRESENT;

    return err_set_at(err, ERR_PRECONDITION_FAILED, wants_it ? "If-Match" : "If-None-Match",
                      "%s %s is %sthere",
                      is_pin     ? "pin"
                      : is_layer ? "layer"
                                 : "locale",
                      is_pin     ? change->pin
                      : is_layer ? change->layer_id
                                 : change->locale_id,
                      wants_it ? "not " : "already ");
}

/* The conditions that hold for every kind. */
static enum err_code check_conditions(const struct draft *draft, const struct change_result *result,
                                      struct err *err)
{
    const struct world_change *change = result->change;
    const char *damage = world_damage(draft->world, change->locale_id);
    uint64_t revision = result->before ? result->before->revision : 0;

    if (damage)
        return err_set(err, ERR_DAMAGED, "%s", damage);
    if (!result->before && !world_makes_locale(change->kind))
        return err_set_at(err, ERR_LOCALE_UNKNOWN, "locale", "there is no locale %s",
                          change->locale_id);
    if (change->if_revision != 0 && change->if_revision != revision)
        return err_set_at(err, ERR_PRECONDITION_FAILED, "If-Match",
                          "locale %s is at revision %llu, not at %llu", change->locale_id,
                          (unsigned long long)revision, (unsigned long long)change->if_revision);
    if (change->condition != WORLD_IF_ANY &&
        target_is_there(result) != (change->condition == WORLD_IF_PRESENT))
        return failed_condition(result, err);
    return ERR_OK;
}

/* Finds the change's locale in the draft, checks the conditions, and lets the kind make it. */
static enum err_code make_next(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;

    result->before = snapshot_locale(draft->snapshot, change->locale_id);
    if (result->before)
        locale_ref(result->before);
    if (check_conditions(draft, result, err))
        return err->code;
    return change_kind(change->kind)->make(draft, result, err);
}

/*
 * What the past of one locale may hold: what others leave, and at least its share of all. Earlier
 * revisions of a locale that is no longer edited stay.
 */
static uint64_t past_bytes_max(const struct draft *draft, const struct locale *before)
{
    const struct world_snapshot *now = draft->snapshot;
    uint64_t most = draft->world->limits.past_bytes_max, share = most / (now->locale_count + 1);
    uint64_t own = before->past ? before->past->bytes : 0, all = now->sums.past_bytes;

    return all - own < most && most - (all - own) > share ? most - (all - own) : share;
}

static enum err_code make_revision(struct draft *draft, struct change_result *result,
                                   struct err *err)
{
    const struct world_change *change = result->change;
    struct feed_event *event = &result->event;
    bool has_op_id = change->op_id[0] != '\0';

    if (has_op_id && (find_repeat(draft, change, result, err) || result->is_repeat))
        return err->code;
    if (make_next(draft, result, err))
        return err->code;
    if (result->is_nothing) {
        event->revision = result->before->revision;
        return ERR_OK;
    }
    if ((result->before && result->after &&
         locale_succeed(result->after, result->before, past_bytes_max(draft, result->before), err)))
        return err->code;
    event->sequence = draft->sequence + 1;
    event->revision = result->after ? result->after->revision : result->before->revision + 1;
    memcpy(event->locale, change->locale_id, sizeof event->locale);
    if (change->source[0] != '\0')
        memcpy(event->source, change->source, sizeof event->source);
    else if (event->source[0] == '\0')
        snprintf(event->source, sizeof event->source, "%s", change_kind(change->kind)->source);
    if ((has_op_id && encode_answer(result, err)) ||
        draft_replace(draft, change->locale_id, result, err))
        return err->code;
    remember_answer(draft, result);
    return ERR_OK;
}

/* The next state of a locale at its revision. */
static enum err_code make_state(struct draft *draft, struct change_result *result, struct err *err)
{
    if (make_next(draft, result, err))
        return err->code;
    result->event.revision = result->after->revision;
    return draft_advance(
        draft, snapshot_next(draft->snapshot, result->change->locale_id, result->after, err), err);
}

enum err_code change_make(struct draft *draft, const struct world_change *change,
                          struct change_result *result, struct err *err)
{
    *result = (struct change_result){.change = change, .time_ms = change->author.time_ms};
    if (result->time_ms == 0)
        result->time_ms = realtime_ms();
    err->code = ERR_OK;
    switch (change_kind(change->kind)->scope) {
    case CHANGE_OF_NOTHING:
        return find_repeat(draft, change, result, err);
    case CHANGE_OF_MODEL:
        return change_kind(change->kind)->make(draft, result, err);
    case CHANGE_OF_POSE:
    case CHANGE_OF_PIN:
        return make_state(draft, result, err);
    case CHANGE_OF_LOCALE:
        return make_revision(draft, result, err);
    }
    CHECK(false); /* change_kinds_check */
    return ERR_INTERNAL;
}

void result_announce(struct world *world, const struct change_result *result)
{
    enum change_scope scope = change_kind(result->change->kind)->scope;

    if (result_makes_nothing(result) || (scope != CHANGE_OF_LOCALE && scope != CHANGE_OF_POSE))
        return;
    if (scope == CHANGE_OF_LOCALE)
        feed_append(world->feed, &result->event);
    change_kind(result->change->kind)->announce(world, result);
}

bool result_is_of_model(const struct change_result *result)
{
    return change_kind(result->change->kind)->scope == CHANGE_OF_MODEL;
}

bool result_is_of_pin(const struct change_result *result)
{
    return change_kind(result->change->kind)->scope == CHANGE_OF_PIN;
}

bool result_is_of_locale(const struct change_result *result)
{
    return change_kind(result->change->kind)->scope == CHANGE_OF_LOCALE;
}

bool result_is_durable(const struct change_result *result)
{
    return !result_makes_nothing(result) &&
           change_kind(result->change->kind)->scope != CHANGE_OF_POSE;
}

bool result_makes_nothing(const struct change_result *result)
{
    return result->is_repeat || result->is_nothing ||
           change_kind(result->change->kind)->scope == CHANGE_OF_NOTHING;
}

void result_finish(struct change_result *result)
{
    locale_unref(result->before);
    locale_unref(result->after);
    locale_unref(result->from);
    edit_outcome_free(&result->outcome);
    feed_content_unref(result->event.content);
    free(result->answer);
    *result = (struct change_result){.change = result->change};
}

struct world_outcome result_outcome(const struct change_result *result, const struct err *err)
{
    static const struct err none = {.code = ERR_OK};

    if (err && err->code != ERR_OK)
        return (struct world_outcome){.code = err->code, .err = err};
    return (struct world_outcome){
        .code = ERR_OK,
        .err = &none,
        .locale = result->after,
        .before = result->after ? result->before : NULL,
        .revision = result->event.revision,
        .is_new = result->is_new,
        .rect = result->outcome.rect,
        .polygons = &result->change->polygons,
        .layer = result->layer,
        .first_polygon = result->first_polygon,
        .import = result->import,
        .pin = result->change->pin,
        .revert = result->change->revert,
        .answer = result->is_repeat ? result->answer : NULL,
        .answer_bytes = result->is_repeat ? result->answer_bytes : 0,
    };
}
