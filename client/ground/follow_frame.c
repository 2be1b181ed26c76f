/*
 * Frames of the feed, applied in their order.
 *
 * A frame whose change the copy cannot make itself (too many samples, another layer) asks for
 * bytes; the frames after it wait in the queue until these are there.
 */
#include "client/ground/follow.h"

#include "client/ground/put.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_BYTES_MAX = 64 << 20 };

/* ---- edits ----------------------------------------------------------------------------------- */

/* A change that could not be made: the layer is fetched again. */
static void instead_fetch(struct following *f, struct followed_layer *layer)
{
    struct err err = {.code = ERR_OK};

    if (!following_reload(f, layer, &err))
        following_refuse(f, &err);
}

/* The part of a rect that is held; false: nothing of it. */
static bool clip(const struct held_part *part, struct sample_rect *rect)
{
    uint32_t c1 = rect->column + rect->cols, r1 = rect->row + rect->rows;
    uint32_t held_c1 = part->rect.column + part->rect.cols;
    uint32_t held_r1 = part->rect.row + part->rect.rows;

    if (!part->is_part)
        return true;
    rect->column = rect->column > part->rect.column ? rect->column : part->rect.column;
    rect->row = rect->row > part->rect.row ? rect->row : part->rect.row;
    c1 = c1 < held_c1 ? c1 : held_c1;
    r1 = r1 < held_r1 ? r1 : held_r1;
    if (rect->column >= c1 || rect->row >= r1)
        return false;
    rect->cols = c1 - rect->column;
    rect->rows = r1 - rect->row;
    return true;
}

bool following_window(struct following *f, const struct followed_layer *layer,
                      const struct sample_rect *rect)
{
    struct sample_rect held = *rect;

    return !clip(&layer->part, &held) || fetch_add(f, FETCH_WINDOW, layer->id, &held, false);
}

/* The layer with the samples of the frame in the held part of its rect; NULL and the error. */
static struct layer *with_samples(const struct followed_layer *layer, const struct frame *frame,
                                  const struct sample_rect *rect, struct err *err)
{
    const float *from = frame->samples;
    size_t stride = frame->rect[2];
    struct layer *next = NULL;
    float *part;

    if (rect->cols == frame->rect[2] && rect->rows == frame->rect[3])
        return layer_after_samples(layer->value, rect, from, err);
    part = malloc((size_t)rect->cols * rect->rows * sizeof *part);
    if (!part) {
        err_set(err, ERR_NO_MEMORY, "no memory for an edit");
        return NULL;
    }
    from += (rect->row - frame->rect[1]) * stride + rect->column - frame->rect[0];
    for (uint32_t r = 0; r < rect->rows; r++)
        memcpy(part + (size_t)r * rect->cols, from + r * stride, rect->cols * sizeof *part);
    next = layer_after_samples(layer->value, rect, part, err);
    free(part);
    return next;
}

static void apply_samples(struct following *f, struct followed_layer *layer,
                          const struct frame *frame)
{
    struct sample_rect rect = {frame->rect[0], frame->rect[1], frame->rect[2], frame->rect[3]};
    struct err err = {.code = ERR_OK};

    if (layer->kind != LAYER_HEIGHTFIELD || !layer->value) {
        instead_fetch(f, layer);
    } else if (!frame->samples) {
        if (!following_window(f, layer, &rect))
            instead_fetch(f, layer);
    } else if (clip(&layer->part, &rect) &&
               !followed_layer_set(f, layer, with_samples(layer, frame, &rect, &err))) {
        instead_fetch(f, layer);
    }
}

static void apply_polygons(struct following *f, struct followed_layer *layer,
                           const struct frame *frame)
{
    struct err err = {.code = ERR_OK};

    if (layer->kind == LAYER_MESH && frame->revision <= layer->high)
        return; /* the image has it */
    if (layer->kind != LAYER_MESH || !layer->value || !frame->polygons ||
        !followed_layer_set(
            f, layer,
            layer_after_polygons(layer->value, frame->polygons, frame->polygons_bytes, &err)))
        instead_fetch(f, layer);
    else
        layer->image_tag[0] = '\0';
}

/* A layer or the manifest is another: the document says which. */
static void apply_other(struct following *f, struct followed_layer *layer,
                        const struct frame *frame)
{
    if (layer && (frame->revision > layer->low || (layer->value && layer->value->is_moved)))
        layer->is_stale = true;
    else if (frame->revision <= f->document)
        return;
    if (!fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false))
        instead_fetch(f, NULL);
}

static void apply_edit(struct following *f, const struct frame *frame)
{
    struct followed_layer *layer = frame->layer[0] ? followed_layer(f, frame->layer) : NULL;
    bool is_polygons = strcmp(frame->source, "polygons") == 0;

    if (strcmp(frame->source, "delete") == 0)
        following_leave(f);
    else if (layer && frame->has_rect)
        apply_samples(f, layer, frame);
    else if (layer && is_polygons)
        apply_polygons(f, layer, frame);
    else
        apply_other(f, layer, frame);
}

/* ---- poses and gaps -------------------------------------------------------------------------- */

static void apply_pose(struct following *f, const struct frame *frame)
{
    struct followed_layer *layer = followed_layer(f, frame->layer);
    struct err err = {.code = ERR_OK};
    struct kota_ground_pose pose;

    _Static_assert(sizeof pose == sizeof frame->pose, "a pose lies in a frame as in the header");
    memcpy(&pose, frame->pose, sizeof pose);
    if (!layer || !layer->value || layer->is_stale)
        return;
    layer->has_pose = true;
    layer->pose = pose;
    layer->pose_seq = frame->revision;
    if (!followed_layer_set(f, layer, layer_posed(layer->value, &pose, frame->revision, &err)))
        instead_fetch(f, layer);
    if (frame->revision > f->transform_seq)
        f->transform_seq = frame->revision;
    following_count_poses(f); /* the daemon may have been started again since that pose */
}

/* Changes were missed. Fields ask what has changed, all else is compared by its tag. */
static void apply_resync(struct following *f, const struct frame *frame)
{
    bool is_asked = fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false);

    for (size_t i = 0; i < f->layer_count; i++) {
        struct followed_layer *layer = &f->layers[i];

        if (layer->value)
            is_asked &= fetch_add(f, layer->kind == LAYER_MESH ? FETCH_IMAGE : FETCH_DIFF,
                                  layer->id, NULL, true);
    }
    f->missed_since = f->applied;
    f->must = frame->revision > f->fetched ? frame->revision : f->fetched;
    if (!is_asked)
        instead_fetch(f, NULL);
}

/* For the next edit or tick. */
static void apply_range(struct following *f, const struct frame *frame)
{
    struct followed_layer *layer = frame->layer[0] ? followed_layer(f, frame->layer) : NULL;

    if (isnan(frame->range[0])) {
        if (!fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false))
            instead_fetch(f, NULL);
    } else if (layer) {
        memcpy(layer->range, frame->range, sizeof layer->range);
        layer->is_range_changed = true;
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void apply(struct following *f, const struct frame *frame)
{
    if ((frame->kind == FRAME_EDIT || frame->kind == FRAME_TICK) && !following_widen(f))
        instead_fetch(f, NULL);
    switch (frame->kind) {
    case FRAME_EDIT:
        apply_edit(f, frame);
        break;
    case FRAME_RANGE:
        apply_range(f, frame);
        return;
    case FRAME_POSE:
        apply_pose(f, frame);
        return;
    case FRAME_RESYNC:
        apply_resync(f, frame);
        break;
    case FRAME_TICK:
    case FRAME_HELLO:
    case FRAME_PATCH:
        break;
    }
    if (f->is_loaded)
        f->applied = frame->revision;
}

void following_drain(struct following *f)
{
    while (f->first && !is_waiting(f) && !f->is_refused) {
        struct queued_frame *queued = f->first;
        struct frame frame;

        f->first = queued->next;
        if (!f->first)
            f->last = &f->first;
        f->queued_bytes -= queued->length;
        if (frame_read(queued->bytes, queued->length, &frame))
            apply(f, &frame);
        free(queued);
    }
}

/* False: the queue is full; the feed is closed and asked for again from there. */
static bool enqueue(struct following *f, const struct frame *frame)
{
    struct queued_frame *queued = f->queued_bytes + frame->length > QUEUE_BYTES_MAX
                                      ? NULL
                                      : malloc(sizeof *queued + frame->length);

    if (!queued)
        return false;
    queued->next = NULL;
    queued->length = frame->length;
    memcpy(queued->bytes, frame->bytes, frame->length);
    *f->last = queued;
    f->last = &queued->next;
    f->queued_bytes += frame->length;
    return true;
}

/* The feed has begun. */
static bool take_hello(struct following *f, const struct frame *frame)
{
    f->is_fed = true;
    f->is_gone = false;
    f->hello = frame->revision;
    f->fetched = 0;
    f->transform_seq = 0; /* the last poses before a crash may be lost: those that follow count */
    if (f->is_loaded)
        return following_check(f);
    if (is_waiting(f))
        return true; /* it is being loaded */
    f->taken = f->applied = frame->revision;
    return fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false);
}

bool following_frame(void *context, const struct frame *frame)
{
    struct following *f = context;

    f->frame_count++;
    if (frame->kind == FRAME_HELLO)
        return take_hello(f, frame);
    if (!f->is_fed)
        return false;
    if (frame->kind == FRAME_PATCH)
        return true; /* a copy has settled ground only */
    if (!f->first && !is_waiting(f))
        apply(f, frame);
    else if (!enqueue(f, frame))
        return false;
    if (frame->kind != FRAME_POSE && frame->kind != FRAME_RANGE && !f->is_gone)
        f->taken = frame->revision;
    return !f->is_refused;
}
