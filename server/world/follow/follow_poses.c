/*
 * Poses of moved layers, to and from the nodes that share the log.
 *
 * A node publishes a pose at once and puts it into the log 50 ms later, with all others of that
 * time. The log has the last pose of each layer, in the order in which the nodes have put them, so
 * all nodes end with the same one. A pose that this node has yet to put is newer than the one that
 * it reads, and stays.
 *
 * A pose of a revision that is not applied here is left for the poll that applies it.
 */
#include "world/follow/follow.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct pose) == CLUSTER_POSE_NUMBERS * sizeof(double),
               "a pose is the numbers of one in the log");

void follow_share_poses(struct world *world)
{
    const struct world_snapshot *snapshot = atomic_load(&world->published);
    struct cluster_pose *poses = calloc(moves_count(world->moves) + 1, sizeof *poses);
    const struct move_event *event;
    struct err err = {.code = ERR_OK};
    size_t at = 0, count = 0;

    while (poses && (event = moves_next_unshared(world->moves, &at)) != NULL) {
        const struct locale *locale = snapshot_locale(snapshot, event->locale);
        const struct followed *followed = follow_find(world->follow, event->locale);
        struct cluster_pose *pose = &poses[count];

        if (!locale || !followed)
            continue;
        memcpy(pose->locale, event->locale, sizeof pose->locale);
        memcpy(pose->layer, event->layer, sizeof pose->layer);
        pose->revision = followed->applied;
        memcpy(pose->numbers, &event->motion.pose, sizeof pose->numbers);
        count++;
    }
    if (!poses)
        err_set(&err, ERR_NO_MEMORY, "no memory");
    else if (count > 0)
        cluster_put_poses(world->follow->log, poses, count, &err);
    free(poses);
    if (err.code == ERR_OK) {
        moves_shared(world->moves);
        return;
    }
    log_warn("poses are not in the shared log yet: %s", err_for_log(&err));
    moves_share_later(world->moves, monotonic_s());
}

/* False: it is left for a later poll. */
static bool take_pose(struct world *world, const struct cluster_pose *pose, struct err *err)
{
    const struct followed *followed = follow_find(world->follow, pose->locale);
    const struct locale *locale = snapshot_locale(atomic_load(&world->published), pose->locale);
    const struct layer *layer = locale ? locale_layer(locale, pose->layer) : NULL;
    struct world_change change = {.kind = WORLD_MOVE_LAYER, .is_followed = true};

    if (!followed || !followed->is_served)
        return true;
    if (followed->applied < pose->revision)
        return followed->reason[0] != '\0'; /* one that cannot be followed holds up no other */
    memcpy(&change.pose, pose->numbers, sizeof change.pose);
    if (!layer || layer->kind != LAYER_MESH ||
        (layer->is_moved && pose_is_equal(&layer->motion.pose, &change.pose)) ||
        moves_is_unshared(world->moves, pose->locale, pose->layer))
        return true;
    memcpy(change.locale_id, pose->locale, sizeof change.locale_id);
    memcpy(change.layer_id, pose->layer, sizeof change.layer_id);
    return world_submit(world, &change, err) == ERR_OK;
}

enum err_code follow_take_poses(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;
    struct cluster_pose *poses;
    size_t count, taken = 0;

    if (cluster_poses(follow->log, follow->pose_number, follow->pose_number == 0, &poses, &count,
                      err))
        return err->code;
    while (taken < count && take_pose(world, &poses[taken], err))
        follow->pose_number = poses[taken++].number;
    free(poses);
    return err->code;
}
