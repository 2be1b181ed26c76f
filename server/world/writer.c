/*
 * The writer's thread: takes the changes that wait, makes them together durable and then visible.
 *
 *   changes that wait -> draft and store, one by one -> COMMIT -> publish -> feed -> answers
 *
 * Problem: a commit waits for the disk for milliseconds, an edit takes microseconds. Approach:
 * group commit. While one commit waits, changes gather; the next takes all of them (within bounds)
 * into one transaction. Each of them is made against the draft that the ones before it left
 * (change.c), refused by itself, and answered after the one publication.
 *
 * Nobody sees what is not durable: nothing is published before COMMIT has returned. When anything
 * fails between BEGIN and COMMIT nobody in the batch is acknowledged and the draft is dropped.
 *
 * Behind the log: edits are durable by their row in the log; their tiles are written when nothing
 * else is to be done for a while, or when much waits (store_materialise).
 *
 * Moves of layers (move.c) need no commit: they have a queue of their own, and a batch of them is
 * made and published while no other waits before it.
 *
 * Invariant: world->sequence is that of the published snapshot; the feed ends there.
 */
#include "world/world_data.h"

#include "base/check.h"
#include "base/log.h"
#include "base/timed_wait.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
    POLL_FIRST_MS = 1,
    POLL_LAST_MS = 64,
    IDLE_MS = 200, /* without a change before the tiles are brought up to date */
    RETRY_MS = 2000,
    BATCH_CHANGES_MAX = 256
};
#define BATCH_BYTES_MAX ((uint64_t)64 << 20)
#define BEHIND_BYTES_MAX ((uint64_t)64 << 20)
#define BEHIND_EDITS_MAX 4096u

/* What became of a unit. */
struct made {
    struct unit *unit;
    struct step *steps; /* [unit->count]; NULL without memory */
    bool is_on_draft;   /* made against changes of this batch, which nobody has seen */
    struct err err;
};

struct batch {
    struct world *world;
    struct draft draft;
    struct made made[BATCH_CHANGES_MAX];
    size_t count;
    bool is_begun;  /* the store's transaction */
    struct err err; /* of the whole batch */
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

    if (!store || !is_durable(made))
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
}

static void announce(struct world *world, const struct made *made)
{
    for (size_t i = 0; i < made->unit->count; i++) {
        const struct step *step = &made->steps[i];

        if (step_makes_nothing(step) || step->is_of_model)
            continue;
        if (step_is_durable(step))
            feed_append(world->feed, &step->event);
        move_announce(world, step);
        builder_note(world->builder, step);
    }
}

static void batch_publish(struct batch *batch)
{
    struct world *world = batch->world;
    struct draft *draft = &batch->draft;

    if (batch->err.code != ERR_OK || !draft->is_own)
        return;
    draft->is_own = false; /* taken */
    world_make_room(world);
    feed_begin(world->feed);
    world_publish(world, draft->snapshot);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->made[i].err.code == ERR_OK)
            announce(world, &batch->made[i]);
    feed_end(world->feed);
    world_wake(world);
    world->sequence = draft->sequence;
    for (size_t i = 0; !world->store && i < draft->buried.count; i++)
        tombstones_add(&world->tombstones, draft->buried.at[i].locale_id,
                       draft->buried.at[i].revision);
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

static void batch_run(struct world *world, struct unit *units)
{
    struct batch batch = {.world = world, .err = {.code = ERR_OK}};

    draft_begin(&batch.draft, world);
    while (units) {
        struct unit *next = units->next;

        batch_add(&batch, units);
        units = next;
    }
    batch_commit(&batch);
    batch_publish(&batch);
    draft_end(&batch.draft);
    for (size_t i = 0; i < batch.count; i++)
        answer(world, &batch.made[i], &batch.err);
}

static void load_run(struct world *world, struct unit *unit)
{
    struct err err = {.code = ERR_OK};
    struct draft draft;

    draft_begin(&draft, world);
    if (persist_load(world, &draft, &err) == ERR_OK) {
        world->sequence = draft.sequence; /* goes on also where every locale was deleted */
        if (draft.is_own) {
            draft.is_own = false;
            world_publish(world, draft.snapshot);
        }
    }
    draft_end(&draft);
    unit->done(unit->context, &err);
    free(unit);
}

/* ---- behind the log -----------------------------------------------------------------------------
 */

static bool has_behind(const struct world *world)
{
    struct store_behind behind;

    if (!world->store || world->is_store_broken)
        return false;
    store_behind(world->store, &behind);
    return behind.edits > 0;
}

static bool is_far_behind(const struct world *world)
{
    struct store_behind behind;

    if (!world->store || world->is_store_broken)
        return false;
    store_behind(world->store, &behind);
    return behind.log_bytes > BEHIND_BYTES_MAX || behind.edits > BEHIND_EDITS_MAX;
}

static enum err_code materialise(struct world *world)
{
    struct err err = {.code = ERR_OK};

    if (store_materialise(world->store, persist_field_of, atomic_load(&world->published), &err) ==
        ERR_OK)
        return ERR_OK;
    if (err.code == ERR_BUSY || err.code == ERR_NO_MEMORY) { /* nothing was written; again later */
        log_warn("tiles are not written yet: %s", err.msg);
    } else {
        world->is_store_broken = true;
        log_error("the store takes no more changes: %s", err.msg);
    }
    return err.code;
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

static uint64_t bytes_of(const struct unit *unit)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < unit->count; i++) {
        const struct world_change *change = &unit->changes[i];

        bytes += change->layer ? change->layer->memory_bytes : 0;
        bytes += change->shell.length;
        if (change->kind == WORLD_EDIT && change->edit.kind != EDIT_BRUSH)
            bytes += sizeof(float) * change->edit.rect.cols * change->edit.rect.rows;
        bytes += polygon_edit_bytes(&change->polygons);
    }
    return bytes;
}

/* The first units of a queue, as many as one batch takes; a load comes alone. Under the mutex. */
static struct unit *take_from(struct world *world, struct unit **first, struct unit ***end)
{
    struct unit *units = *first, *last = NULL;
    uint64_t bytes = 0;
    size_t taken = 0;

    while (*first && taken < BATCH_CHANGES_MAX) {
        struct unit *unit = *first;

        bytes += bytes_of(unit);
        if (last && (unit->is_load || last->is_load || bytes > BATCH_BYTES_MAX))
            break;
        last = unit;
        *first = unit->next;
        world->queued_count -= unit->count;
        taken++;
    }
    if (!*first)
        *end = first;
    if (last)
        last->next = NULL;
    return last ? units : NULL;
}

/* Moves go first, in turn with the others where both wait. Under the mutex. */
static struct unit *take(struct world *world)
{
    world->had_moves = world->first_move && (!world->first || !world->had_moves);
    return world->had_moves ? take_from(world, &world->first_move, &world->last_move)
                            : take_from(world, &world->first, &world->last);
}

static void wait_ms(struct world *world, int ms)
{
    struct timespec until = timed_wait_until(ms * 1e-3);

    pthread_cond_timedwait(&world->changed, &world->mutex, &until);
}

/* When the writer looks about although nothing comes. */
struct pause {
    int poll_ms;        /* while snapshots wait for readers to pass; grows */
    double behind_at_s; /* the tiles may be written then */
};

/* How long nothing is to be done, in milliseconds; -1: without end. */
static int pause_ms(const struct world *world, const struct pause *pause)
{
    double wait_s = fmin(move_wait_s(world), builder_wait_s(world));

    if (has_behind(world))
        wait_s = fmin(wait_s, fmax(0, pause->behind_at_s - move_now_s()));
    if (world->retired)
        wait_s = fmin(wait_s, pause->poll_ms * 1e-3);
    return isinf(wait_s) ? -1 : (int)ceil(wait_s * 1e3);
}

/* Under the mutex. */
static bool has_work(const struct world *world)
{
    return world->first || world->first_move || world->garbage || world->is_stopping ||
           world->is_poked;
}

static struct unit *next_units(struct world *world, const struct pause *pause, bool *is_over)
{
    int ms = pause_ms(world, pause);
    struct unit *units;

    pthread_mutex_lock(&world->mutex);
    while (!has_work(world) && ms < 0)
        pthread_cond_wait(&world->changed, &world->mutex);
    if (!has_work(world) && ms > 0)
        wait_ms(world, ms);
    world->is_poked = false;
    world->limits = world->wanted;
    units = take(world);
    *is_over = world->is_stopping && !units;
    pthread_mutex_unlock(&world->mutex);
    return units;
}

static void run(struct world *world, struct unit *units)
{
    if (units->is_load)
        load_run(world, units);
    else
        batch_run(world, units);
}

/* Nothing has come for a while. */
static void look_about(struct world *world, struct pause *pause)
{
    if (world->retired) {
        world_wake(world);
        pause->poll_ms = pause->poll_ms < POLL_LAST_MS ? pause->poll_ms * 2 : POLL_LAST_MS;
    }
    if (has_behind(world) && move_now_s() >= pause->behind_at_s && materialise(world) != ERR_OK)
        pause->behind_at_s = move_now_s() + RETRY_MS * 1e-3;
}

void *writer_main(void *argument)
{
    struct world *world = argument;
    struct pause pause = {POLL_FIRST_MS, 0};
    bool is_over = false;

    pthread_setname_np(pthread_self(), "writer");
    while (!is_over) {
        struct unit *units = next_units(world, &pause, &is_over);

        atomic_fetch_add_explicit(&world->writer_turns, 1, memory_order_relaxed);
        if (units) {
            run(world, units);
            pause.poll_ms = POLL_FIRST_MS;
            if (!world->had_moves)
                pause.behind_at_s = move_now_s() + IDLE_MS * 1e-3;
            if (is_far_behind(world))
                materialise(world);
        } else {
            look_about(world, &pause);
        }
        move_look(world);
        builder_look(world);
        world_reclaim(world);
    }
    if (has_behind(world))
        materialise(world);
    builder_finish(world);
    move_finish(world);
    return NULL;
}
