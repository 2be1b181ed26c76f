/*
 * WORLD_MOVE_LAYER: the pose of a mesh layer.
 *
 * It makes a new layer and a new locale at the same revision; both share everything else with the
 * old ones. It is published without a commit and written about a second later (move.c). Daemons
 * that share a log get its last poses (follow_poses.c).
 */
#include "world/write/kinds/kind.h"

#include "base/clock.h"

static enum err_code make(struct draft *draft, struct change_result *result, struct err *err)
{
    const struct world_change *change = result->change;
    const struct layer *old = locale_layer(result->before, change->layer_id);
    uint64_t seq = result->before->transform_seq + 1;
    struct layer *moved;

    if (!old)
        return locale_no_layer(result->before, change->layer_id, ERR_LAYER_UNKNOWN, err);
    if (old->kind != LAYER_MESH)
        return err_set(err, ERR_LAYER_KIND,
                       "layer %s of locale %s is a heightfield: only meshes can be moved", old->id,
                       change->locale_id);
    if (old->space.frame != MESH_CARTESIAN)
        return err_set(err, ERR_UNPROCESSABLE,
                       "layer %s of locale %s has a gravity of its own: it cannot move", old->id,
                       change->locale_id);
    if (moves_reserve(draft->world->moves, change->locale_id, change->layer_id, err))
        return err->code;
    moved = layer_moved(old, &change->pose, monotonic_s(), seq, err);
    if (!moved)
        return err->code;
    result->after = locale_with_moved(result->before, moved, seq, err);
    layer_unref(moved);
    if (!result->after)
        return err->code;
    result->layer = locale_layer(result->after, change->layer_id);
    return ERR_OK;
}

static void announce(struct world *world, const struct change_result *result)
{
    const struct world_change *change = result->change;

    moves_note(world->moves, change->locale_id, change->layer_id, result->layer->transform_seq,
               &result->layer->motion);
    moves_touch(world->moves, change->locale_id, change->layer_id, monotonic_s(),
                world->store != NULL);
    if (world->follow && !change->is_followed)
        moves_share(world->moves, change->locale_id, change->layer_id, monotonic_s());
}

static void count(struct world_stats *counted, const struct change_result *result)
{
    (void)result;
    counted->moves++;
}

const struct change_kind move_layer_kind = {
    .source = "",
    .scope = CHANGE_OF_POSE,
    .is_of_layer = true,
    .make = make,
    .persist = persist_nothing,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce,
    .count = count,
};
