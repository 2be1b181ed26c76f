/*
 * Moving layers: when they come to rest, and when their poses are written. A single move is in
 * kinds/kind_move.c.
 *
 * Problem: a game moves sixty layers sixty times a second. A commit for each would be 3,600 waits
 * for the disk, and a revision for each would drown the edits. Approach: a move makes a new layer
 * and a new locale, which share everything else with the old ones, and publishes them without a
 * transaction, a revision or a row in the log. A request still sees one snapshot and one pose of
 * each layer. Moves have a queue of their own, which is served before the other one; a move waits
 * for one commit at most, the one under way.
 *
 * Poses are written about a second later, all of them in one transaction. The locale's
 * transform_seq is written with the pose, increased by PERSIST_SEQ_SPARE until a clean end: after a
 * crash it continues above every number that a client has seen. It outlives the moved layer, so it
 * is also written when a layer is replaced or deleted (kinds/kind_layer.c), and at the end for each
 * locale.
 *
 * Velocity comes with the pose (layer.c), and readers have no clock. So the writer publishes a
 * layer once more, at rest, when no move has come for a while (world/values/moves.c).
 *
 * Dropped: publishing from the requesting thread (a second publisher, for the milliseconds of a
 * commit); a revision for each move (diff, If-Match and the log concern only durable changes).
 */
#include "world/world_data.h"

#include "base/check.h"
#include "base/log.h"
#include "base/clock.h"
#include "world/follow/follow.h"

#include <math.h>

/* ---- at rest --------------------------------------------------------------------------------- */

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

static void publish_at_rest(struct world *world, double now_s)
{
    struct world_snapshot *published = atomic_load(&world->published), *next = published;
    const struct move_event *event;
    struct err err = {.code = ERR_OK};
    struct motion still;

    while ((event = moves_take_rest(world->moves, now_s)) != NULL) {
        struct world_snapshot *after = rested(next, event, &err);

        if (!after) {
            log_warn("layer %s of %s is not told to rest: %s", event->layer, event->locale,
                     err_for_log(&err));
            moves_rest_later(world->moves, event, now_s);
            continue;
        }
        if (next != published)
            snapshot_destroy(next);
        next = after;
        still = motion_at(&event->motion.pose, event->motion.axis);
        moves_note(world->moves, event->locale, event->layer, event->transform_seq, &still);
    }
    if (next == published)
        return;
    world_make_room(world);
    world_publish(world, next);
    world_wake(world);
}

/* ---- poses are written ----------------------------------------------------------------------- */

static enum err_code write_rows(struct world *world, bool is_end, struct err *err)
{
    const struct world_snapshot *snapshot = atomic_load(&world->published);
    const struct move_event *event;
    size_t at = 0;

    while ((event = moves_next_unwritten(world->moves, &at)) != NULL) {
        const struct locale *locale = snapshot_locale(snapshot, event->locale);
        const struct layer *layer = locale ? locale_layer(locale, event->layer) : NULL;

        CHECK(layer && layer->is_moved);
        if (persist_pose(world->store, locale, layer, err) ||
            persist_transform_seq(world->store, locale, PERSIST_SEQ_SPARE, err))
            return err->code;
    }
    for (size_t i = 0; is_end && i < snapshot->locale_count; i++)
        if (persist_transform_seq(world->store, snapshot_at(snapshot, i), 0, err))
            return err->code;
    return ERR_OK;
}

static enum err_code write_poses(struct world *world, bool is_end, struct err *err)
{
    if (store_begin(world->store, err))
        return err->code;
    if (write_rows(world, is_end, err)) {
        store_rollback(world->store);
        return err->code;
    }
    return store_commit(world->store, err);
}

static void keep(struct world *world, bool is_end)
{
    struct err err = {.code = ERR_OK};
    size_t none = 0;

    if (!world->store || world->is_store_broken ||
        (!moves_next_unwritten(world->moves, &none) &&
         !(is_end && atomic_load(&world->published)->sums.moved > 0))) {
        moves_written(world->moves);
        return;
    }
    if (write_poses(world, is_end, &err) == ERR_OK) {
        moves_written(world->moves);
        return;
    }
    moves_write_later(world->moves, monotonic_s());
    if (err.code == ERR_BUSY || err.code == ERR_NO_MEMORY) { /* nothing was written */
        log_warn("poses of layers are not written yet: %s", err_for_log(&err));
        return;
    }
    world->is_store_broken = true;
    log_error("the store takes no more changes: %s", err_for_log(&err));
}

/* ---- when ------------------------------------------------------------------------------------ */

double move_wait_s(const struct world *world)
{
    double due = fmin(moves_rest_due_s(world->moves), moves_write_due_s(world->moves));

    due = fmin(due, moves_share_due_s(world->moves));
    return isinf(due) ? INFINITY : fmax(0, due - monotonic_s());
}

void move_poll(struct world *world)
{
    double now_s = monotonic_s();

    if (moves_rest_due_s(world->moves) <= now_s)
        publish_at_rest(world, now_s);
    if (moves_write_due_s(world->moves) <= now_s)
        keep(world, false);
    if (moves_share_due_s(world->moves) <= now_s)
        follow_share_poses(world);
}

void move_finish(struct world *world)
{
    keep(world, true);
    if (world->follow && !isinf(moves_share_due_s(world->moves)))
        follow_share_poses(world);
}
