/*
 * Layers that move.
 *
 * Problem: a game moves sixty layers sixty times a second. A commit for each would be 3,600 waits
 * for the disk, and a revision for each would bury the edits. Approach: a move makes a new head of
 * one layer and one locale, which share all else, and is published like any change, but without a
 * transaction, a revision or a row in the log. So readers keep what they have: one request, one
 * snapshot, one pose of each layer. Moves wait in a queue of their own, which is served before the
 * other one; a move waits for one commit at most, the one that is under way.
 *
 * Behind it: what has moved is written about a second later, all of it in one transaction. With a
 * pose the locale's transform_seq is written, and until a clean end SEQ_SPARE more than it: after a
 * crash it goes on from there, above every number that was told.
 *
 * Velocity comes with the pose (world/layer.c). A layer that is not moved any more must not carry
 * anybody on, and readers have no clock: so the writer publishes it once more, at rest, when no
 * move has come for a while (world/moves.c).
 *
 * Dropped: publishing from the thread that asks (a second one that publishes, for the milliseconds
 * of a commit); a revision for each move (diff, If-Match and the log speak of what is kept).
 */
#include "world/world_data.h"

#include "base/check.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* More moves of a locale than that do not come between two writes. */
#define SEQ_SPARE ((uint64_t)1 << 20)

double move_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- one move ---------------------------------------------------------------------------------
 */

enum err_code move_make(struct draft *draft, struct step *step, struct err *err)
{
    const struct world_change *change = step->change;
    const struct layer *old = locale_layer(step->before, change->layer_id);
    uint64_t seq = step->before->transform_seq + 1;
    struct layer *moved;

    if (!old)
        return err_set(err, ERR_NOT_FOUND, "there is no layer %s in locale %s", change->layer_id,
                       change->locale_id);
    if (old->kind != LAYER_MESH)
        return err_set(err, ERR_UNPROCESSABLE,
                       "layer %s of locale %s is a heightfield: meshes alone can be moved", old->id,
                       change->locale_id);
    if (old->space.frame != MESH_CARTESIAN)
        return err_set(err, ERR_UNPROCESSABLE,
                       "layer %s of locale %s has a gravity of its own: it stands still", old->id,
                       change->locale_id);
    if (moves_reserve(draft->world->moves, change->locale_id, change->layer_id, err))
        return err->code;
    moved = layer_moved(old, &change->pose, move_now_s(), seq, err);
    if (!moved)
        return err->code;
    step->after = locale_with_moved(step->before, moved, seq, err);
    layer_unref(moved);
    if (!step->after)
        return err->code;
    step->layer = locale_layer(step->after, change->layer_id);
    return ERR_OK;
}

void move_announce(struct world *world, const struct step *step)
{
    const struct world_change *change = step->change;

    switch (change->kind) {
    case WORLD_MOVE_LAYER:
        moves_note(world->moves, change->locale_id, change->layer_id, step->layer->transform_seq,
                   &change->pose);
        moves_touch(world->moves, change->locale_id, change->layer_id, move_now_s(),
                    world->store != NULL);
        return;
    case WORLD_PUT_LAYER:
    case WORLD_DELETE_LAYER:
        moves_forget(world->moves, change->locale_id, change->layer_id);
        return;
    case WORLD_DELETE_LOCALE:
        moves_forget(world->moves, change->locale_id, NULL);
        return;
    case WORLD_PUT_LOCALE:
    case WORLD_EDIT:
    case WORLD_EDIT_POLYGONS:
    case WORLD_PUT_MODEL:
    case WORLD_DELETE_MODEL:
    case WORLD_FIND_OP:
    case WORLD_KEEP_SHELL:
        return;
    }
}

/* ---- at rest ----------------------------------------------------------------------------------
 */

/* The snapshot with one layer at rest, which is there; NULL without memory. */
static struct world_snapshot *rested(const struct world_snapshot *snapshot,
                                     const struct move_event *event, struct err *err)
{
    const struct locale *locale = snapshot_locale(snapshot, event->locale);
    const struct layer *layer = locale ? locale_layer(locale, event->layer) : NULL;
    struct layer *still = layer ? layer_rested(layer, err) : NULL;
    struct locale *next =
        still ? locale_with_moved(locale, still, locale->transform_seq, err) : NULL;
    struct world_snapshot *out = next ? snapshot_next(snapshot, event->locale, next, err) : NULL;

    layer_unref(still);
    locale_unref(next);
    return out;
}

static void publish_rested(struct world *world, double now_s)
{
    struct world_snapshot *published = atomic_load(&world->published), *next = published;
    const struct move_event *event;
    struct err err = {.code = ERR_OK};

    while ((event = moves_take_rest(world->moves, now_s)) != NULL) {
        struct world_snapshot *after = rested(next, event, &err);

        if (!after) {
            log_warn("layer %s of %s is not told to rest: %s", event->layer, event->locale,
                     err.msg);
            moves_rest_later(world->moves, event, now_s);
            continue;
        }
        if (next != published)
            snapshot_destroy(next);
        next = after;
    }
    if (next == published)
        return;
    world_make_room(world);
    world_publish(world, next);
    world_wake(world);
}

/* ---- kept -------------------------------------------------------------------------------------
 */

static enum err_code write_poses(struct world *world, bool is_end, struct err *err)
{
    const struct world_snapshot *snapshot = atomic_load(&world->published);
    const struct move_event *event;
    size_t at = 0;

    if (store_begin(world->store, err))
        return err->code;
    while ((event = moves_next_kept(world->moves, is_end, &at)) != NULL) {
        const struct locale *locale = snapshot_locale(snapshot, event->locale);
        const struct layer *layer = locale ? locale_layer(locale, event->layer) : NULL;

        CHECK(layer && layer->is_moved);
        if (persist_pose(world->store, locale, layer, is_end ? 0 : SEQ_SPARE, err)) {
            store_rollback(world->store);
            return err->code;
        }
    }
    return store_commit(world->store, err);
}

static void keep(struct world *world, bool is_end)
{
    struct err err = {.code = ERR_OK};
    size_t none = 0;

    if (!world->store || world->is_store_broken || !moves_next_kept(world->moves, is_end, &none)) {
        moves_kept(world->moves);
        return;
    }
    if (write_poses(world, is_end, &err) == ERR_OK) {
        moves_kept(world->moves);
        return;
    }
    moves_keep_later(world->moves, move_now_s());
    if (err.code == ERR_BUSY || err.code == ERR_NO_MEMORY) { /* nothing was written */
        log_warn("poses of layers are not written yet: %s", err.msg);
        return;
    }
    world->is_store_broken = true;
    log_error("the store takes no more changes: %s", err.msg);
}

/* ---- when ---------------------------------------------------------------------------------------
 */

double move_wait_s(const struct world *world)
{
    double due = fmin(moves_rest_due_s(world->moves), moves_keep_due_s(world->moves));

    return isinf(due) ? INFINITY : fmax(0, due - move_now_s());
}

void move_look(struct world *world)
{
    double now_s = move_now_s();

    if (moves_rest_due_s(world->moves) <= now_s)
        publish_rested(world, now_s);
    if (moves_keep_due_s(world->moves) <= now_s)
        keep(world, false);
}

void move_finish(struct world *world)
{
    keep(world, true);
}
