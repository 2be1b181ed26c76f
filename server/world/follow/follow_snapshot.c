/*
 * Whole locales: into the log, so that it can be trimmed, and out of it, for a node that was away
 * too long or whose copy is not to be trusted.
 *
 * A snapshot replaces a locale in one transaction of the store and one publication, so readers see
 * the one or the other. The feed gets one event that skips revisions (FEED_RESYNC); its subscribers
 * read the locale again.
 *
 * A snapshot is made by the node that appended last, when the log after the newest one is long, and
 * by any node when it is longer still, so that usually one node does it; the log refuses a second.
 * Tiles are named by their content, so few are written each time. Many are written in steps, with a
 * turn of the writer in between, and tiles that have changed meanwhile are hashed again.
 *
 * A kill -9: to take one is one transaction, as following is; to make one is one transaction of the
 * log, and a later trim removes unreferenced blobs.
 */
#include "world/follow/follow.h"

#include "base/log.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_US UINT64_C(30000000)
enum { BLOBS_AT_ONCE = 32 }; /* that one step towards a snapshot puts, of some 260 KB each */

static bool is_of_models(const char *locale)
{
    return strcmp(locale, RECORD_MODELS) == 0;
}

static void count_taken(struct world *world)
{
    pthread_mutex_lock(&world->follow->mutex);
    world->follow->reported.snapshots_taken++;
    pthread_mutex_unlock(&world->follow->mutex);
}

/* The damage of a locale that is whole again; before anybody serves. */
static void clear_damage(struct world *world, const char *locale)
{
    size_t kept = 0;

    if (!world->follow->is_starting)
        return;
    for (size_t i = 0; i < world->damage_count; i++)
        if (strcmp(world->damages[i].locale_id, locale) != 0)
            world->damages[kept++] = world->damages[i];
    world->damage_count = kept;
    pthread_mutex_lock(&world->mutex);
    world->counted.damaged = kept;
    pthread_mutex_unlock(&world->mutex);
}

/* ---- in the place of a locale ---------------------------------------------------------------- */

static void add_box(const struct locale *locale, struct feed_event *event)
{
    if (!locale || !locale->has_bounds)
        return;
    event->bounds = event->has_bounds ? box3_union(event->bounds, locale->bounds) : locale->bounds;
    event->has_bounds = true;
}

static struct feed_event leap(const struct world *world, const struct followed *f,
                              uint64_t revision, const struct locale *before,
                              const struct locale *after)
{
    struct feed_event event = {
        .sequence = world->sequence + 1, .revision = revision, .is_resync = true};

    snprintf(event.locale, sizeof event.locale, "%s", f->locale);
    snprintf(event.source, sizeof event.source, "%s", FEED_RESYNC);
    add_box(before, &event);
    add_box(after, &event);
    return event;
}

/* What comes into the place of a locale. */
struct taken {
    struct locale *locale;     /* NULL: it is deleted */
    uint64_t number, revision; /* of the entry, and of the locale then */
    const char *op_id;         /* "": it is removed without a trace */
    const void *snapshot;      /* which has its history */
    size_t length;
};

struct past_to {
    struct store *store;
    const char *locale;
};

static bool put_past(void *context, const struct store_past *past, struct err *err)
{
    const struct past_to *to = context;

    return store_put_past(to->store, to->locale, past, err) == ERR_OK;
}

/* event is NULL where the locale is removed without a trace. */
static enum err_code write_locale(struct world *world, const struct followed *f,
                                  const struct taken *taken, const struct feed_event *event,
                                  struct err *err)
{
    struct store *store = world->store;
    const struct locale *locale = taken->locale;
    struct store_applied applied = {.revision = taken->number};
    struct past_to to = {store, f->locale};
    struct record_source source = follow_source(world);
    const struct locale *from =
        locale ? snapshot_base(atomic_load(&world->published), &locale->manifest, f->locale) : NULL;

    snprintf(applied.locale, sizeof applied.locale, "%s", f->locale);
    snprintf(applied.op_id, sizeof applied.op_id, "%s", taken->op_id);
    if (store_begin(store, err))
        return err->code;
    if (event ? persist_replacement(store, f->locale, locale, from, event, err) ||
                    (locale && record_read_history(taken->snapshot, taken->length, &source,
                                                   put_past, &to, err)) ||
                    store_put_applied(store, &applied, err)
              : store_forget_locale(store, f->locale, err)) {
        store_rollback(store);
        return err->code;
    }
    return store_commit(store, err);
}

/* Publishes the locale (NULL: none) in the place of the old one. */
static enum err_code show_locale(struct world *world, struct draft *draft, const char *id,
                                 struct locale *locale, struct err *err)
{
    draft_begin(draft, world);
    draft->is_followed = true;
    return draft_advance(draft, snapshot_next(draft->snapshot, id, locale, err), err);
}

/* The store's rows of forks of the locale go with it: they are taken again after it. */
static void doubt_forks(struct world *world, const struct followed *f)
{
    struct follow *follow = world->follow;

    for (size_t i = 0; i < follow->count; i++)
        if (&follow->at[i] != f && follow->at[i].applied > 0 &&
            store_shares(world->store, follow->at[i].locale, f->locale))
            follow->at[i].is_doubtful = follow->has_news = true;
}

static enum err_code replace_locale(struct world *world, struct followed *f,
                                    const struct taken *taken, struct err *err)
{
    const struct locale *before = snapshot_locale(atomic_load(&world->published), f->locale);
    struct locale *locale = taken->locale;
    struct feed_event event = leap(world, f, taken->revision, before, locale);
    struct draft draft;

    f->history_key = record_history_key();
    if (locale && before)
        locale->transform_seq = before->transform_seq;
    doubt_forks(world, f);
    if (show_locale(world, &draft, f->locale, locale, err) == ERR_OK &&
        write_locale(world, f, taken, taken->op_id[0] ? &event : NULL, err) == ERR_OK) {
        draft.sequence++;
        draft_publish_begin(&draft);
        follow_set_applied(world->follow, f, taken->number, taken->revision, taken->op_id);
        feed_append(world->feed, &event);
        moves_forget(world->moves, f->locale, NULL);
        world->follow->pose_number = 0; /* a snapshot has none: all are read again */
        draft_publish_end(&draft);
    }
    draft_end(&draft);
    return err->code;
}

static enum err_code take_locale(struct world *world, struct followed *f, const void *bytes,
                                 size_t length, uint64_t number, const char *op_id, struct err *err)
{
    struct record_source source = follow_source(world);
    struct taken taken = {.number = number, .op_id = op_id, .snapshot = bytes, .length = length};

    if (record_read_locale(f->locale, number, bytes, length, &source, &taken.locale,
                           &taken.revision, err))
        return err->code;
    replace_locale(world, f, &taken, err);
    locale_unref(taken.locale);
    return err->code;
}

/* ---- in the place of the models -------------------------------------------------------------- */

static enum err_code write_models(struct world *world, const struct model_list *models,
                                  const struct store_applied *applied, struct err *err)
{
    struct store *store = world->store;

    if (store_begin(store, err))
        return err->code;
    store_forget_models(store, err);
    for (size_t i = 0; err->code == ERR_OK && models && i < models->count; i++)
        persist_model(store, models->at[i], err);
    if (err->code == ERR_OK)
        store_put_applied(store, applied, err);
    if (err->code != ERR_OK) {
        store_rollback(store);
        return err->code;
    }
    return store_commit(store, err);
}

/* Takes the list. */
static enum err_code replace_models(struct world *world, struct followed *f,
                                    struct model_list *models, uint64_t revision, const char *op_id,
                                    struct err *err)
{
    struct store_applied applied = {.locale = RECORD_MODELS, .revision = revision};
    struct draft draft;

    snprintf(applied.op_id, sizeof applied.op_id, "%s", op_id);
    draft_begin(&draft, world);
    draft.is_followed = true;
    err->code = ERR_OK;
    if (draft_advance(&draft, snapshot_with_models(draft.snapshot, models, err), err) == ERR_OK &&
        write_models(world, models, &applied, err) == ERR_OK) {
        draft_publish_begin(&draft);
        follow_set_applied(world->follow, f, revision, revision, op_id);
        draft_publish_end(&draft);
    }
    draft_end(&draft);
    model_list_unref(models);
    return err->code;
}

static enum err_code take_models(struct world *world, struct followed *f, const void *bytes,
                                 size_t length, uint64_t revision, const char *op_id,
                                 struct err *err)
{
    struct record_source source = follow_source(world);
    struct model_list *models;

    if (record_read_models(bytes, length, &source, &models, err))
        return err->code;
    return replace_models(world, f, models, revision, op_id, err);
}

/* ---- replacing ------------------------------------------------------------------------------- */

enum err_code follow_forget(struct world *world, struct followed *f, struct err *err)
{
    err->code = ERR_OK;
    if (f->is_in_log && f->is_served)
        follow_mark_coming(world->follow, f);
    if (is_of_models(f->locale) ? replace_models(world, f, NULL, 0, "", err)
                                : replace_locale(world, f, &(struct taken){.op_id = ""}, err))
        return err->code;
    f->is_doubtful = f->is_adopting = false;
    clear_damage(world, f->locale);
    return ERR_OK;
}

enum err_code follow_take_anew(struct world *world, struct followed *f, struct err *err)
{
    char op_id[CLUSTER_OP_ID_MAX + 1];
    uint64_t revision = 0, before = f->applied;
    void *bytes = NULL;
    size_t length;

    err->code = ERR_OK;
    if (!f->is_in_log)
        return follow_forget(world, f, err);
    if (cluster_get_snapshot(world->follow->log, f->locale, &revision, op_id, &bytes, &length,
                             err) == ERR_NOT_FOUND &&
        f->first == 1)
        return follow_forget(world, f, err); /* all of its entries are there */
    if (err->code != ERR_OK)
        return err->code;
    if (is_of_models(f->locale))
        take_models(world, f, bytes, length, revision, op_id, err);
    else
        take_locale(world, f, bytes, length, revision, op_id, err);
    free(bytes);
    if (err->code != ERR_OK)
        return err->code;
    log_info("%s was taken from the shared log's snapshot of revision %llu (it was at %llu)",
             f->locale, (unsigned long long)revision, (unsigned long long)before);
    f->is_doubtful = f->is_adopting = false;
    clear_damage(world, f->locale);
    count_taken(world);
    return ERR_OK;
}

/* ---- making one ------------------------------------------------------------------------------ */

enum err_code follow_record(struct world *world, const struct followed *f, struct record *out,
                            struct err *err)
{
    const char *id = f->locale;
    const struct world_snapshot *snapshot = atomic_load(&world->published);
    const struct locale *locale;
    uint64_t deleted = 0;

    err->code = ERR_OK;
    if (is_of_models(id))
        return record_models(snapshot->models, out, err);
    locale = snapshot_locale(snapshot, id);
    if (!locale && store_find_deleted(world->store, id, &deleted, err))
        return err->code;
    if (!locale && deleted == 0) /* damaged, perhaps; that is no deletion */
        return err_set(err, ERR_DAMAGED, "%s is not here, and was not deleted", id);
    return record_locale(locale, deleted, f->applied,
                         &(struct record_history){world->store, f->history_key}, out, err);
}

static bool is_due(const struct follow *follow, const struct followed *f)
{
    uint64_t from = f->snapshot > 0 ? f->snapshot : f->first - 1;
    uint64_t tail = f->applied > from ? f->applied - from : 0;
    uint64_t every = follow->snapshot_every;

    return f->is_served && f->is_in_log && f->applied > 0 && f->applied == f->head &&
           !f->is_doubtful && tail >= (f->is_ours ? every : every + every / 2);
}

/* One step towards a snapshot. *is_whole: it was made; else more blobs are to be put. */
static enum err_code make_one(struct world *world, struct followed *f, bool *is_whole,
                              struct err *err)
{
    struct follow *follow = world->follow;
    struct record record;

    *is_whole = false;
    if (follow_record(world, f, &record, err))
        return err->code;
    if (follow_put_some(follow, &record, BLOBS_AT_ONCE, is_whole, err) == ERR_OK && *is_whole)
        cluster_put_snapshot(follow->log, f->locale, f->applied, f->op_id, record.data,
                             record.bytes, (const uint8_t(*)[CLUSTER_HASH_BYTES])record.hashes,
                             record.blob_count, follow->keep_entries, err);
    record_finish(&record);
    return err->code;
}

bool follow_make_snapshot(struct world *world)
{
    struct follow *follow = world->follow;
    struct err err = {.code = ERR_OK};

    if (monotonic_us() < follow->snapshot_after_us)
        return false;
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *f = &follow->at[i];
        bool is_whole;

        if (!is_due(follow, f))
            continue;
        if (make_one(world, f, &is_whole, &err) == ERR_OK) {
            if (!is_whole)
                return true; /* clients' changes come before the next step */
            pthread_mutex_lock(&follow->mutex);
            follow->reported.snapshots_made++;
            pthread_mutex_unlock(&follow->mutex);
            log_info("the shared log has a snapshot of %s, revision %llu", f->locale,
                     (unsigned long long)f->applied);
        } else if (err.code == ERR_CONFLICT) {
            char op_id[CLUSTER_OP_ID_MAX + 1];
            struct err failed = {.code = ERR_OK};

            /* Perhaps because the log has another entry at this revision. */
            if (cluster_op_at(follow->log, f->locale, f->applied, op_id, &failed) == ERR_OK &&
                op_id[0] != '\0' && strcmp(op_id, f->op_id) != 0) {
                follow_doubt(follow, f);
                return true;
            }
        } else {
            log_warn("no snapshot of %s: %s", f->locale, err_for_log(&err));
            follow->snapshot_after_us = monotonic_us() + PAUSE_US;
            return false;
        }
        f->snapshot = f->applied;
        return true;
    }
    return false;
}
