/*
 * Bodies at rest become layers.
 *
 * Problem: a patch with "leave": "layer" ends at its first rest, and its bodies stay as layers, in
 * one transaction and one publication with the ground: no reader sees one without the other.
 * Approach: a group of changes (world_submit_all): the edit, then one PUT of a mesh layer for each
 * body. Its triangles are those of the model in the pose of the body, so such a layer is one like
 * all others: it may be removed, moved, edited.
 *
 * The pose is that of a body that stands on the ground as it will be written, which is known here
 * only: the edit is made of the field of the change's revision, and at any other revision the
 * change is refused, and all is made again.
 *
 * Building and saving meshes takes as long as an upload, so it has a thread of its own for that
 * time. The sand thread joins it when its write comes back; the patch takes no orders meanwhile.
 *
 * A layer is called patch-NUMBER-body-NUMBER. Patches count from 1 again after a restart: where
 * that name is taken, the first of -2, -3, … that is free follows it.
 */
#include "sand/sand_data.h"

#include "world/values/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the sand thread ---------------------------------------------------------------------- */

/* The field with the change's edit; NULL: it cannot be. */
static struct heightfield *field_after(const struct layer *layer, const struct edit *edit,
                                       struct err *err)
{
    struct edit_outcome outcome = {.heights_m = NULL};
    struct heightfield *field = NULL;

    if (edit->rect.cols == 0)
        return heightfield_ref(layer->field);
    if (edit_evaluate(layer->field, edit, UINT64_MAX, &outcome, err) == ERR_OK)
        field = heightfield_with_samples(layer->field, &outcome.rect, outcome.heights_m, err);
    edit_outcome_free(&outcome);
    return field;
}

static void name_layer(const struct locale *locale, uint64_t patch, struct patch_left *left)
{
    int length = snprintf(left->layer, sizeof left->layer, "patch-%llu-body-%u",
                          (unsigned long long)patch, left->number);

    for (unsigned n = 2; locale_layer(locale, left->layer); n++)
        snprintf(left->layer + length, sizeof left->layer - (size_t)length, "-%u", n);
}

/* Where the bodies stay, and their names, by the locale as it is at the change's revision. */
static enum err_code look(struct written *written, const struct locale *locale, struct err *err)
{
    const struct world_change *ground = &written->ground;
    const struct layer *layer = locale ? locale_layer(locale, written->layer) : NULL;
    struct heightfield *field;

    if (!layer || !layer->field || locale->revision != ground->if_revision)
        return err_set(err, ERR_PRECONDITION_FAILED, "locale %s has changed", ground->locale_id);
    field = field_after(layer, &ground->edit, err);
    if (!field)
        return err->code;
    written->gravity = locale->manifest.gravity;
    written->left_count =
        manager_leave(written->sand->manager, written->number, field, written->left);
    heightfield_unref(field);
    for (uint32_t i = 0; i < written->left_count; i++)
        name_layer(locale, written->number, &written->left[i]);
    return ERR_OK;
}

/* ---- on a thread of its own ------------------------------------------------------------------ */

/* The model's triangles where the body is. */
static enum err_code bake(const struct patch_left *left, struct polygon_set *out, struct err *err)
{
    const struct polygon_set *set = layer_polygon_set(left->surface);
    const double *at = left->position, *q = left->orientation;
    const struct placement pose = {{at[0], at[1], at[2]}, {q[0], q[1], q[2], q[3]}};
    const size_t corners = set->starts[set->polygon_count];

    if (polygon_set_allocate(set->vertex_count, set->polygon_count, corners, out, err))
        return err->code;
    memcpy(out->corners, set->corners, corners * sizeof *out->corners);
    memcpy(out->starts, set->starts, (set->polygon_count + 1) * sizeof *out->starts);
    for (size_t i = 0; i < set->vertex_count; i++)
        out->vertices[i] = placement_to_world(&pose, set->vertices[i]);
    return ERR_OK;
}

/* The change that puts a body's layer; false: nothing of it is to be let go. */
static bool make_change(const struct written *written, const struct patch_left *left,
                        struct world_change *out, struct err *err)
{
    struct polygon_set set = {0};
    struct world_change change = {.kind = WORLD_PUT_LAYER,
                                  .fence = written->ground.fence,
                                  .origin = written->ground.origin,
                                  .author = written->ground.author,
                                  .condition = WORLD_IF_ABSENT};

    if (bake(left, &set, err))
        return false;
    change.layer = layer_create_mesh(left->layer, LAYER_GROUND, &set, written->gravity, NULL, err);
    if (!change.layer)
        return false;
    if (world_save_layer(written->sand->world, change.layer, err)) {
        layer_unref(change.layer);
        return false;
    }
    memcpy(change.locale_id, written->ground.locale_id, sizeof change.locale_id);
    memcpy(change.layer_id, left->layer, sizeof change.layer_id);
    *out = change;
    return true;
}

/* The changes, and their number; that of an error is to be let go. */
static size_t make_changes(const struct written *written, struct world_change *changes,
                           struct err *err)
{
    size_t count = 0;

    err->code = ERR_OK;
    if (written->ground.edit.rect.cols > 0)
        changes[count++] = written->ground;
    for (uint32_t i = 0; i < written->left_count && err->code == ERR_OK; i++)
        count += make_change(written, &written->left[i], &changes[count], err);
    if (count > 0) {
        changes[0].if_revision = written->ground.if_revision;
        changes[count - 1].done = sand_write_done;
        changes[count - 1].context = written->ground.context;
    }
    return count;
}

static void *leave(void *context)
{
    struct written *written = context;
    struct world_change *changes = calloc(1 + written->left_count, sizeof *changes);
    struct world_outcome outcome = {.err = NULL};
    size_t count = 0;
    struct err err;

    if (!changes) {
        err_set(&err, ERR_NO_MEMORY, "no memory for its layers");
        world_drop(&written->ground);
    } else {
        count = make_changes(written, changes, &err);
        if (err.code == ERR_OK)
            world_submit_all(written->sand->world, changes, count, &err);
        else
            while (count > 0)
                world_drop(&changes[--count]);
    }
    free(changes);
    if (err.code == ERR_OK)
        return NULL; /* the writer calls back */
    outcome.code = err.code;
    outcome.err = &err;
    sand_write_done(written, &outcome);
    return NULL;
}

enum err_code sand_leave(struct written *written, const struct world_change *ground,
                         struct err *err)
{
    struct world *world = written->sand->world;
    const struct world_snapshot *snapshot = world_hold(world);

    written->ground = *ground;
    written->ground.done = NULL;
    look(written, snapshot_locale(snapshot, ground->locale_id), err);
    world_release(world, snapshot);
    if (err->code == ERR_OK && pthread_create(&written->thread, NULL, leave, written) != 0)
        err_set(err, ERR_INTERNAL, "no thread for its layers");
    written->is_leaving = err->code == ERR_OK;
    if (!written->is_leaving)
        world_drop(ground);
    return err->code;
}
