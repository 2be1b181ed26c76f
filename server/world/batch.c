/*
 * Changes that share a commit: made against one draft, made durable together, published, answered.
 *
 * Each unit of changes is made against the draft that the ones before it left (change.c), refused
 * by itself, and answered after the one publication. When anything fails between BEGIN and COMMIT
 * nobody in the batch is acknowledged and the draft is dropped.
 *
 * With a shared log (follow.h) a batch is durable when the log has it, and the order is: all steps
 * in memory; BEGIN in the store, so that a store that takes nothing refuses before anything was
 * said to others; append to the log; rows and COMMIT in the store, with them how far it has come in
 * the log; publish. Another node may be faster: then nothing was appended, and all is made anew
 * against what that node did. After LOST_MAX such rounds the locales are held in the log, so that
 * nobody is starved.
 *
 * Where a kill -9 may fall, and what comes of it:
 *   before the log's commit            nothing was made; nobody was answered
 *   after it, before the store's       the log has the entries, applied says that we have not: they
 *                                      are followed at the next start like anybody's. The client
 * had no answer; under its key it gets the first one after the store's, before publish  the load
 * publishes them; applied says that we have them, so they are not applied twice. The client as
 * before An append whose answer is lost is asked for by its op_ids (cluster.h). When even that
 * fails the client is told that it is open, nothing is kept here, and following finds out.
 *
 * A key may stand twice in what waits. The store finds repeats by rows; with a shared log the rows
 * come after the append, so a batch ends before the second one.
 */
#include "world/follow.h"
#include "world/world_data.h"

#include "base/check.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOST_MAX = 3,  /* rounds that others may win */
    ROUNDS_MAX = 8 /* then the client may try again */
};

/* What became of a unit. */
struct made {
    struct unit *unit;
    struct step *steps; /* [unit->count]; NULL without memory */
    bool is_on_draft;   /* made against changes of this batch, which nobody has seen */
    bool is_refused;    /* by the log: it is not made again */
    struct err err;
};

struct batch {
    struct world *world;
    struct draft draft;
    struct made made[BATCH_CHANGES_MAX];
    size_t count;
    bool is_begun;   /* the store's transaction */
    bool is_shared;  /* rows are written after the append */
    bool has_looked; /* at the log, because units were refused */
    struct err err;  /* of the whole batch */
};

/* ---- one unit -----------------------------------------------------------------------------------
 */

static bool is_durable(const struct made *made)
{
    for (size_t i = 0; i < made->unit->count; i++)
        if (step_is_durable(&made->steps[i]))
            return true;
    return false;
}

/* All steps of a unit in a draft of its own; on error that draft is dropped. */
static enum err_code make_steps(struct draft *draft, struct made *made)
{
    struct err *err = &made->err;

    made->steps = calloc(made->unit->count, sizeof *made->steps);
    if (!made->steps)
        return err_set(err, ERR_NO_MEMORY, "no memory for a change");
    for (size_t i = 0; i < made->unit->count; i++)
        if (step_make(draft, &made->unit->changes[i], &made->steps[i], err))
            return err->code;
    return ERR_OK;
}

static enum err_code persist(struct batch *batch, const struct made *made)
{
    struct store *store = batch->world->store;
    struct err *err = &batch->err;

    if (!store || batch->is_shared || !is_durable(made))
        return ERR_OK;
    if (!batch->is_begun && store_begin(store, err))
        return err->code;
    batch->is_begun = true;
    for (size_t i = 0; i < made->unit->count; i++)
        if (step_is_durable(&made->steps[i]) && persist_step(store, &made->steps[i], err))
            return err->code;
    return ERR_OK;
}

static void batch_add(struct batch *batch, struct unit *unit)
{
    struct made *made = &batch->made[batch->count++];
    struct draft own;

    *made =
        (struct made){.unit = unit, .is_on_draft = batch->draft.is_own, .err = {.code = ERR_OK}};
    if (batch->err.code != ERR_OK)
        return;
    draft_fork(&batch->draft, &own);
    if (make_steps(&own, made) == ERR_OK && persist(batch, made) == ERR_OK)
        draft_join(&batch->draft, &own);
    else
        draft_end(&own);
}

/* ---- commit and publish -------------------------------------------------------------------------
 */

/* The log has it, this store has not: following brings it, here and on the other nodes. */
static void say_appended(struct batch *batch)
{
    struct err why = batch->err;

    batch->world->follow->has_news = true;
    err_set(&batch->err, ERR_UNAVAILABLE,
            "the change is in the shared log, and this node cannot write it down now (%.160s): ask "
            "again under the same Idempotency-Key",
            why.msg);
}

static void batch_commit(struct batch *batch)
{
    struct world *world = batch->world;

    if (batch->is_begun && batch->err.code == ERR_OK)
        store_commit(world->store, &batch->err);
    else if (batch->is_begun)
        store_rollback(world->store);
    if (batch->err.code == ERR_READ_ONLY || batch->err.code == ERR_DISK_FULL) {
        if (!world->is_store_broken)
            log_error("the store takes no more changes: %s", batch->err.msg);
        world->is_store_broken = true;
    }
    if (batch->err.code != ERR_OK && world->follow && world->follow->sent_count > 0)
        say_appended(batch);
}

/* How far it is in the log now. */
static void batch_settle(struct batch *batch)
{
    if (batch->is_shared && batch->is_begun && batch->err.code == ERR_OK)
        follow_applied(batch->world);
    else if (batch->is_shared)
        follow_dropped(batch->world);
}

static void batch_publish(struct batch *batch)
{
    struct draft *draft = &batch->draft;

    if (batch->err.code != ERR_OK || !draft->is_own) {
        batch_settle(batch);
        return;
    }
    draft_publish_begin(draft);
    batch_settle(batch);
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; batch->made[i].err.code == ERR_OK && k < batch->made[i].unit->count; k++)
            step_announce(batch->world, &batch->made[i].steps[k]);
    draft_publish_end(draft);
}

static size_t bucket_of(uint64_t us)
{
    size_t bucket = 0;

    while (bucket + 1 < WORLD_CHANGE_BUCKETS && us >= (uint64_t)64 << bucket)
        bucket++;
    return bucket;
}

static void count(struct world *world, const struct made *made, const struct err *err)
{
    struct world_stats *counted = &world->counted;
    uint64_t us = world_now_us() - made->unit->queued_us;

    pthread_mutex_lock(&world->mutex);
    counted->change_us_sum += us;
    counted->change_count[bucket_of(us)]++;
    for (size_t i = 0; i < made->unit->count; i++)
        if (made->unit->changes[i].kind == WORLD_MOVE_LAYER)
            counted->moves += err->code == ERR_OK;
        else
            counted->changes += err->code != ERR_OK || made->steps[i].is_repeat ||
                                !step_makes_nothing(&made->steps[i]);
    if (err->code != ERR_OK)
        counted->refused += made->unit->count;
    for (size_t i = 0; err->code == ERR_OK && i < made->unit->count; i++) {
        const struct step *step = &made->steps[i];

        counted->repeats += step->is_repeat;
        counted->polygon_edits += !step->is_repeat && step->change->kind == WORLD_EDIT_POLYGONS;
        if (step->is_repeat || step->change->kind != WORLD_EDIT)
            continue;
        counted->edits++;
        counted->edit_samples += (uint64_t)step->outcome.rect.cols * step->outcome.rect.rows;
    }
    pthread_mutex_unlock(&world->mutex);
}

static void answer(struct world *world, struct made *made, const struct err *batch_err)
{
    const struct err *err = batch_err->code != ERR_OK ? batch_err : &made->err;
    struct unit *unit = made->unit;

    /* Refused by itself, whatever became of the others; unless by what they had not made. */
    if (made->err.code != ERR_OK && !made->is_on_draft)
        err = &made->err;
    count(world, made, err);
    for (size_t i = 0; i < unit->count; i++) {
        struct world_change *change = &unit->changes[i];
        struct step none = {.change = change};
        struct world_outcome outcome = step_outcome(made->steps ? &made->steps[i] : &none, err);

        if (change->done)
            change->done(change->context, &outcome);
        if (made->steps)
            step_finish(&made->steps[i]);
        world_drop(change);
    }
    if (unit->done)
        unit->done(unit->context, err);
    free(made->steps);
    free(unit);
}

/* ---- with a shared log --------------------------------------------------------------------------
 */

/* Makes what was made unmade, for another round. */
static void batch_reset(struct batch *batch)
{
    draft_end(&batch->draft);
    for (size_t i = 0; i < batch->count; i++) {
        struct made *made = &batch->made[i];

        for (size_t k = 0; made->steps && k < made->unit->count; k++)
            step_finish(&made->steps[k]);
        free(made->steps);
        made->steps = NULL;
    }
    batch->err.code = ERR_OK;
    draft_begin(&batch->draft, batch->world);
}

/* The steps that the log takes, and the unit of each; NULL: none, or no memory (the batch's err).
 */
static const struct step **steps_for_log(struct batch *batch, size_t **units, size_t *count)
{
    const struct step **steps = NULL;
    size_t all = 0;

    *units = NULL;
    *count = 0;
    for (size_t i = 0; i < batch->count; i++)
        all += batch->made[i].unit->count;
    steps = calloc(all + 1, sizeof *steps);
    *units = calloc(all + 1, sizeof **units);
    if (!steps || !*units) {
        err_set(&batch->err, ERR_NO_MEMORY, "no memory for the shared log");
        free(steps);
        return NULL;
    }
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; batch->made[i].err.code == ERR_OK && k < batch->made[i].unit->count; k++)
            if (record_takes(&batch->made[i].steps[k])) {
                (*units)[*count] = i;
                steps[(*count)++] = &batch->made[i].steps[k];
            }
    return steps;
}

static void make_all(struct batch *batch)
{
    size_t count = batch->count;

    batch->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct made *made = &batch->made[i];

        if (made->is_refused) {
            made->is_on_draft = false;
            batch->count++;
        } else {
            batch_add(batch, made->unit);
        }
    }
}

static bool has_rows(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->made[i].err.code == ERR_OK && is_durable(&batch->made[i]))
            return true;
    return false;
}

/* The rows of all that was made, in the open transaction. */
static void persist_all(struct batch *batch)
{
    struct world *world = batch->world;
    struct err *err = &batch->err;

    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; batch->made[i].err.code == ERR_OK && k < batch->made[i].unit->count;
             k++) {
            const struct step *step = &batch->made[i].steps[k];

            if (step_is_durable(step) && persist_step(world->store, step, err))
                return;
        }
    follow_persist(world, err);
}

/* Nothing was written: the transaction ends as if it had not been. */
static void end_unused(struct batch *batch)
{
    struct err err = {.code = ERR_OK};

    if (batch->is_begun)
        store_commit(batch->world->store, &err);
    batch->is_begun = false;
}

static bool is_of_old_ground(const struct made *made)
{
    enum err_code code = made->err.code;

    return !made->is_refused &&
           (code == ERR_NOT_FOUND || code == ERR_CONFLICT || code == ERR_PRECONDITION_FAILED);
}

/*
 * Of what a unit was refused for another node may have made the opposite, and acknowledged it: all
 * that the log has is applied before such an answer is given, and the batch is made anew, once.
 */
static bool looks_again(struct batch *batch)
{
    struct world *world = batch->world;
    struct err err = {.code = ERR_OK};
    bool is_wanted = false;

    for (size_t i = 0; i < batch->count; i++)
        is_wanted |= is_of_old_ground(&batch->made[i]);
    if (!is_wanted || batch->has_looked || cluster_is_away(world->follow->log))
        return false;
    batch->has_looked = true;
    batch_reset(batch);
    draft_end(&batch->draft); /* of the ground before; nothing is made on it any more */
    follow_all(world, &err);  /* where that fails the answer is of what is here */
    draft_begin(&batch->draft, world);
    return true;
}

/*
 * One round: makes all, appends, writes. False: another round may do better, because the log was
 * further, or because it refused one unit.
 */
static bool share_once(struct batch *batch)
{
    struct world *world = batch->world;
    struct err *err = &batch->err;
    const struct step **steps;
    size_t *units, count, at = 0;
    enum err_code code = ERR_OK;

    make_all(batch);
    if (batch->err.code == ERR_OK && looks_again(batch))
        make_all(batch);
    if (!has_rows(batch))
        return true;
    steps = steps_for_log(batch, &units, &count);
    if (!steps || store_begin(world->store, err)) {
        free(steps);
        free(units);
        return true;
    }
    batch->is_begun = true;
    if (count > 0)
        code = follow_append(world, steps, count, &at, err);
    if (code == ERR_PRECONDITION_FAILED) {
        struct made *made = &batch->made[units[at]];

        made->err = *err;
        made->is_refused = true;
    }
    free(steps);
    free(units);
    if (code == ERR_OK)
        persist_all(batch);
    else
        end_unused(batch);
    return code != ERR_CONFLICT && code != ERR_PRECONDITION_FAILED;
}

/* So that nobody else appends until this batch has. */
static enum err_code hold(struct batch *batch)
{
    char(*locales)[CLUSTER_ID_MAX + 1] = NULL;
    size_t all = 0, count = 0;
    enum err_code code;

    for (size_t i = 0; i < batch->count; i++)
        all += batch->made[i].unit->count;
    locales = calloc(all, sizeof *locales);
    if (!locales)
        return err_set(&batch->err, ERR_NO_MEMORY, "no memory to hold locales");
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; k < batch->made[i].unit->count; k++) {
            const struct world_change *change = &batch->made[i].unit->changes[k];
            const char *id = change->kind == WORLD_PUT_MODEL || change->kind == WORLD_DELETE_MODEL
                                 ? RECORD_MODELS
                                 : change->locale_id;
            bool is_known = id[0] == '\0';

            for (size_t n = 0; n < count && !is_known; n++)
                is_known = strcmp(locales[n], id) == 0;
            if (!is_known)
                memcpy(locales[count++], id, strlen(id) + 1);
        }
    code = cluster_hold(batch->world->follow->log, (const char(*)[CLUSTER_ID_MAX + 1]) locales,
                        count, &batch->err);
    free(locales);
    return code;
}

/*
 * A key that the log has and this node does not: of a locale that is not followed here, or from
 * before a snapshot was taken. The change was made; what it was answered is not here.
 */
static void refuse_known_key(struct batch *batch, struct made *made)
{
    struct world *world = batch->world;

    for (size_t i = 0; i < made->unit->count; i++) {
        const char *key = made->unit->changes[i].op_id;
        char locale[CLUSTER_ID_MAX + 1];
        struct err err = {.code = ERR_OK};
        uint64_t revision;

        if (key[0] == '\0' ||
            cluster_find_op(world->follow->log, key, locale, &revision, &err) != ERR_OK ||
            (world_serves(world, locale) && world_applied(world, locale) < revision))
            continue;
        err_set(&made->err, ERR_CONFLICT,
                "the change under this Idempotency-Key was made: it is revision %llu of %s; its "
                "answer is not kept by this node",
                (unsigned long long)revision, locale);
        err_at(&made->err, "Idempotency-Key");
        made->is_refused = true;
    }
}

/*
 * What another node, or an append of ours whose answer was lost, has done: follows, so that the
 * next round sees it. After LOST_MAX rounds nobody else may append, and keys are looked at that
 * repeats in the store do not tell of. (A hold ends with its connection: that the batch lost again
 * under one proves nothing.)
 */
static enum err_code catch_up(struct batch *batch, int round, bool *is_held)
{
    struct world *world = batch->world;

    follow_count_race(world->follow);
    if (round + 1 >= LOST_MAX && hold(batch) != ERR_OK)
        return batch->err.code;
    *is_held = round + 1 >= LOST_MAX;
    if (follow_all(world, &batch->err))
        return batch->err.code;
    for (size_t i = 0; round + 1 >= LOST_MAX && i < batch->count; i++)
        if (!batch->made[i].is_refused)
            refuse_known_key(batch, &batch->made[i]);
    draft_end(&batch->draft);
    draft_begin(&batch->draft, world);
    return ERR_OK;
}

/*
 * Rounds until the log has taken the batch, or an error. False: the batch is more than one append
 * takes, and to be made unit by unit.
 */
static bool batch_share(struct batch *batch)
{
    struct world *world = batch->world;
    bool is_held = false;

    for (int round = 0; !share_once(batch); round++) {
        bool is_lost = batch->err.code == ERR_CONFLICT;

        if (is_lost && round >= ROUNDS_MAX) {
            err_set(&batch->err, ERR_BUSY,
                    "other nodes change the same again and again; try again in a moment");
            break;
        }
        batch_reset(batch);
        is_held = false; /* the append has ended it */
        if (is_lost && catch_up(batch, round, &is_held))
            break;
    }
    if (is_held)
        cluster_release(world->follow->log);
    return batch->err.code != ERR_TOO_LARGE || batch->count == 1 || world->follow->sent_count > 0;
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

static void batch_finish(struct batch *batch)
{
    batch_commit(batch);
    batch_publish(batch);
    draft_end(&batch->draft);
    for (size_t i = 0; i < batch->count; i++)
        answer(batch->world, &batch->made[i], &batch->err);
}

/* One batch of a list with a shared log. */
static void run_shared(struct world *world, struct unit *units)
{
    struct batch batch = {.world = world, .err = {.code = ERR_OK}, .is_shared = true};

    draft_begin(&batch.draft, world);
    for (; units; units = units->next)
        batch.made[batch.count++].unit = units;
    if (batch_share(&batch)) {
        batch_finish(&batch);
        return;
    }
    batch_reset(&batch);
    draft_end(&batch.draft);
    for (size_t i = 0; i < batch.count; i++) {
        batch.made[i].unit->next = NULL;
        run_shared(world, batch.made[i].unit);
    }
}

static bool has_key_of(const struct unit *unit, const struct unit *other)
{
    for (size_t i = 0; i < unit->count; i++)
        for (size_t k = 0; unit->changes[i].op_id[0] != '\0' && k < other->count; k++)
            if (strcmp(unit->changes[i].op_id, other->changes[k].op_id) == 0)
                return true;
    return false;
}

/* Cuts a list before the first unit whose key stands in it already; the rest. */
static struct unit *cut_before_repeat(struct unit *units)
{
    for (struct unit *last = units; last->next; last = last->next)
        for (const struct unit *before = units; before != last->next; before = before->next)
            if (has_key_of(last->next, before)) {
                struct unit *rest = last->next;

                last->next = NULL;
                return rest;
            }
    return NULL;
}

static void run_alone(struct world *world, struct unit *units)
{
    struct batch batch = {.world = world, .err = {.code = ERR_OK}};

    draft_begin(&batch.draft, world);
    while (units) {
        struct unit *next = units->next;

        batch_add(&batch, units);
        units = next;
    }
    batch_finish(&batch);
}

void batch_run(struct world *world, struct unit *units)
{
    if (!world->follow) {
        run_alone(world, units);
        return;
    }
    while (units) {
        struct unit *rest = cut_before_repeat(units);

        run_shared(world, units);
        units = rest;
    }
}
