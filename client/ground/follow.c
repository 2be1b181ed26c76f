/*
 * Following a daemon: what is to be fetched, and when what was fetched is shown.
 *
 * Problem: windows and images arrive in any order, each of a revision of its own, while changes go
 * on. Approach (proto/feed.md, "Keeping a copy"): the feed is opened first, then everything is
 * fetched; frames wait in a queue as long as anything is under way, and are applied in order after
 * that. Edits carry outcomes, so an edit of samples that a window already has is applied again
 * without harm; edits of polygons are skipped up to the revision of their image. The locale is
 * shown only when the feed has been applied up to the greatest revision that any answer named: then
 * all of it is of the revision of the last frame. Until then the view keeps the state before.
 *
 * When a feed was cut and is open again, everything that is held is compared with the daemon by its
 * tag, which is a hash of the content: a daemon that was started again with another world is
 * noticed though its revisions are the same.
 *
 * The core does no I/O: the caller asks for needs (kota_ground_next) and brings the bytes. A need
 * that becomes superfluous leaves the list, and its late answer is ignored by its number.
 */
#include "client/ground/follow.h"

#include "client/ground/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RELOADS_MAX = 16 };

/* ---- fetches --------------------------------------------------------------------------------- */

bool fetch_add(struct following *f, enum fetch_kind kind, const char *layer,
               const struct sample_rect *rect, bool is_check)
{
    struct fetch **at = &f->fetches, *fetch;

    for (; *at; at = &(*at)->next)
        if ((*at)->kind == kind && kind == FETCH_DOCUMENT && !(*at)->is_under_way)
            return true; /* one that was sent before may be older than its reason */
    fetch = calloc(1, sizeof *fetch);
    if (!fetch)
        return false;
    fetch->number = ++f->copy->last_number;
    fetch->kind = kind;
    fetch->is_check = is_check;
    snprintf(fetch->layer, sizeof fetch->layer, "%s", layer ? layer : "");
    if (rect)
        fetch->rect = *rect;
    *at = fetch;
    return true;
}

void fetches_drop(struct following *f, const char *layer)
{
    for (struct fetch **at = &f->fetches; *at;) {
        struct fetch *fetch = *at;

        if (fetch->kind == FETCH_FEED || (layer && strcmp(fetch->layer, layer) != 0)) {
            at = &fetch->next;
            continue;
        }
        *at = fetch->next;
        free(fetch);
    }
}

bool is_waiting(const struct following *f)
{
    for (const struct fetch *fetch = f->fetches; fetch; fetch = fetch->next)
        if (fetch->kind != FETCH_FEED)
            return true;
    return false;
}

/* The fetch of that number and whose it is; NULL: it is gone. */
static struct fetch *fetch_find(const struct kota_ground_copy *copy, uint32_t number,
                                struct following **f)
{
    for (struct held_locale *held = copy->locales; held; held = held->next) {
        struct fetch *fetch = held->following ? held->following->fetches : NULL;

        while (fetch && fetch->number != number)
            fetch = fetch->next;
        if (fetch) {
            *f = held->following;
            return fetch;
        }
    }
    return NULL;
}

/* ---- layers ---------------------------------------------------------------------------------- */

struct followed_layer *followed_layer(struct following *f, const char *id)
{
    for (size_t i = 0; i < f->layer_count; i++)
        if (strcmp(f->layers[i].id, id) == 0)
            return &f->layers[i];
    return NULL;
}

void followed_layer_clear(struct followed_layer *layer)
{
    layer_unref(layer->value);
    heightfield_builder_free(layer->builder);
    free(layer->image);
    free(layer->polygons);
    layer->value = NULL;
    layer->builder = NULL;
    layer->image = layer->polygons = NULL;
    layer->image_tag[0] = layer->polygons_tag[0] = '\0';
}

bool followed_layer_set(struct following *f, struct followed_layer *layer, struct layer *value)
{
    if (value && value->kind == LAYER_HEIGHTFIELD && layer->part.is_part) {
        struct layer *part = value;

        value = layer_widened(part, layer->range);
        layer_unref(part);
    }
    if (!value)
        return false;
    layer_unref(layer->value);
    layer->value = value;
    layer->is_range_changed = false;
    f->is_changed = true;
    return true;
}

bool following_widen(struct following *f)
{
    for (size_t i = 0; i < f->layer_count; i++) {
        struct followed_layer *layer = &f->layers[i];

        if (layer->is_range_changed && layer->value && layer->part.is_part &&
            !followed_layer_set(f, layer, layer_ref(layer->value)))
            return false;
    }
    return true;
}

struct held_part following_part(const struct following *following, const char *layer)
{
    for (size_t i = 0; i < following->layer_count; i++)
        if (strcmp(following->layers[i].id, layer) == 0)
            return following->layers[i].part;
    return (struct held_part){.is_part = false};
}

/* ---- states ---------------------------------------------------------------------------------- */

static void drop_all(struct following *f)
{
    fetches_drop(f, NULL);
    for (size_t i = 0; i < f->layer_count; i++)
        followed_layer_clear(&f->layers[i]);
    free(f->layers);
    f->layers = NULL;
    f->layer_count = 0;
    while (f->first) {
        struct queued_frame *frame = f->first;

        f->first = frame->next;
        free(frame);
    }
    f->last = &f->first;
    f->queued_bytes = 0;
    f->is_loaded = f->is_changed = false;
    f->taken = f->applied = f->must = f->transform_seq = 0;
    held_draft(f->held, NULL);
    held_show(f->held, false);
}

bool following_refuse(struct following *f, const struct err *err)
{
    drop_all(f);
    free(f->fetches); /* the feed */
    f->fetches = NULL;
    f->is_refused = true;
    f->is_fed = false;
    return ground_fail(&f->error, err);
}

void following_leave(struct following *f)
{
    drop_all(f);
    f->is_gone = true;
}

bool following_reload(struct following *f, struct followed_layer *layer, struct err *err)
{
    if (layer) {
        layer->is_stale = true;
        fetches_drop(f, layer->id);
        followed_layer_clear(layer);
    }
    if (++f->reloads <= RELOADS_MAX)
        return fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false) ||
               (err_set(err, ERR_NO_MEMORY, "no memory to follow locale %s", f->held->id), false);
    if (!err->code)
        err_set(err, ERR_CONFLICT, "locale %s is another one at each answer", f->held->id);
    return false;
}

void following_free(struct following *following)
{
    if (!following)
        return;
    for (size_t i = 0; i < following->layer_count; i++)
        followed_layer_clear(&following->layers[i]);
    free(following->layers);
    while (following->first) {
        struct queued_frame *frame = following->first;

        following->first = frame->next;
        free(frame);
    }
    while (following->fetches) {
        struct fetch *fetch = following->fetches;

        following->fetches = fetch->next;
        free(fetch);
    }
    frames_free(&following->frames);
    free(following);
}

/* The state of all layers as a locale; NULL and the error. */
static struct locale *assembled(const struct following *f, struct err *err)
{
    struct layer *layers[LOCALE_LAYERS_MAX];
    struct locale *locale;

    for (size_t i = 0; i < f->layer_count; i++)
        layers[i] = layer_ref(f->layers[i].value);
    locale = locale_assemble(f->held->id, f->applied, &f->manifest, layers, f->layer_count, err);
    if (locale)
        locale->transform_seq = f->transform_seq;
    return locale;
}

/* Shows what is there, once it is of one revision. */
static bool show(struct following *f, struct err *err)
{
    const struct locale *shown = f->held->shown;
    struct locale *locale;

    if (!f->is_loaded || f->is_refused || is_waiting(f) || f->applied < f->must ||
        (shown && !f->is_changed && shown->revision == f->applied &&
         shown->transform_seq == f->transform_seq))
        return true;
    locale = assembled(f, err);
    if (!locale)
        return false;
    held_draft(f->held, locale);
    held_show(f->held, true);
    f->is_changed = false;
    f->reloads = 0;
    return true;
}

/* ---- the calls ------------------------------------------------------------------------------- */

bool kota_ground_follow(struct kota_ground_copy *copy, const char *locale, const double bounds[4],
                        struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held;
    struct following *f;

    if (bounds && !(bounds[0] <= bounds[2] && bounds[1] <= bounds[3] && isfinite(bounds[0]) &&
                    isfinite(bounds[1]) && isfinite(bounds[2]) && isfinite(bounds[3]))) {
        err_set(&err, ERR_BAD_INPUT, "bounds are x0, y0, x1, y1 with x0 <= x1 and y0 <= y1");
        err_at(&err, "bounds");
        return ground_fail(error, &err);
    }
    held = copy_add(copy, locale, &err);
    if (held && (held->following || held->draft))
        err_set(&err, ERR_CONFLICT, "locale %s is in the copy already", locale);
    f = err.code ? NULL : calloc(1, sizeof *f);
    if (!f) {
        if (!err.code)
            err_set(&err, ERR_NO_MEMORY, "no memory to follow locale %s", locale);
        if (held && !held->following && !held->draft)
            copy_remove(copy, held);
        return ground_fail(error, &err);
    }
    f->held = held;
    f->copy = copy;
    f->has_bounds = bounds != NULL;
    if (bounds)
        memcpy(f->bounds, bounds, sizeof f->bounds);
    f->frames.take = following_frame;
    f->frames.context = f;
    f->last = &f->first;
    held->following = f;
    if (fetch_add(f, FETCH_FEED, NULL, NULL, false))
        return true;
    copy_remove(copy, held);
    err_set(&err, ERR_NO_MEMORY, "no memory to follow locale %s", locale);
    return ground_fail(error, &err);
}

void kota_ground_unfollow(struct kota_ground_copy *copy, const char *locale)
{
    struct held_locale *held = copy_find(copy, locale);

    if (held && held->following)
        copy_remove(copy, held);
}

bool kota_ground_next(struct kota_ground_copy *copy, struct kota_ground_need *need)
{
    for (struct held_locale *held = copy->locales; held; held = held->next) {
        struct fetch *fetch = held->following ? held->following->fetches : NULL;

        while (fetch && fetch->is_under_way)
            fetch = fetch->next;
        if (!fetch)
            continue;
        fetch->is_under_way = true;
        fetch_need(held->following, fetch, need);
        return true;
    }
    return false;
}

/* The fetch out of its list. */
static void fetch_take_out(struct following *f, struct fetch *fetch)
{
    struct fetch **at = &f->fetches;

    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
}

/* A feed is answered only by a refusal. */
static bool feed_refused(struct following *f, struct fetch *fetch,
                         const struct kota_ground_answer *answer, struct err *err)
{
    fetch->is_under_way = false;
    f->is_fed = false;
    frames_cut(&f->frames);
    if (answer->status == 404) {
        following_leave(f);
        return true;
    }
    err_set(err, ERR_FORBIDDEN, "the feed of locale %s is refused: %.*s", f->held->id,
            answer->body ? (int)(answer->length < 200 ? answer->length : 200) : 0,
            answer->body ? (const char *)answer->body : "");
    return false;
}

bool kota_ground_give(struct kota_ground_copy *copy, uint32_t number,
                      const struct kota_ground_answer *answer, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct following *f;
    struct fetch *fetch = fetch_find(copy, number, &f);
    bool is_taken;

    if (!fetch)
        return true;
    if (fetch->kind == FETCH_FEED) {
        is_taken = feed_refused(f, fetch, answer, &err);
    } else {
        fetch_take_out(f, fetch);
        is_taken = following_take(f, fetch, answer, &err);
        free(fetch);
    }
    if (is_taken && !is_waiting(f) && !f->is_refused)
        is_taken = following_settle(f, &err);
    if (is_taken) {
        following_drain(f);
        is_taken = f->is_refused || show(f, &err);
    }
    if (is_taken && !f->is_refused)
        return true;
    if (!f->is_refused)
        following_refuse(f, &err);
    if (error)
        *error = f->error;
    return false;
}

void kota_ground_give_up(struct kota_ground_copy *copy, uint32_t number)
{
    struct following *f;
    struct fetch *fetch = fetch_find(copy, number, &f);

    if (!fetch)
        return;
    fetch->is_under_way = false;
    if (fetch->kind == FETCH_FEED) {
        frames_cut(&f->frames);
        f->is_fed = false;
    }
}

bool kota_ground_feed(struct kota_ground_copy *copy, uint32_t number, const void *bytes,
                      size_t length, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct following *f;
    struct fetch *fetch = fetch_find(copy, number, &f);
    bool is_malformed, is_read;

    if (!fetch || fetch->kind != FETCH_FEED)
        return true;
    is_read = frames_read(&f->frames, bytes, length, &is_malformed);
    if (!f->is_refused && is_malformed) {
        err_set(&err, ERR_DAMAGED, "the feed of locale %s has no frames of version %d", f->held->id,
                FRAME_VERSION);
        if (!f->is_fed) /* not even the first one: a daemon that speaks another version */
            following_refuse(f, &err);
        return ground_fail(error, &err);
    }
    if (!f->is_refused && !show(f, &err))
        following_refuse(f, &err);
    if (f->is_refused && error)
        *error = f->error;
    return is_read && !f->is_refused;
}

bool kota_ground_following(const struct kota_ground_copy *copy, const char *locale,
                           struct kota_ground_following *following)
{
    const struct held_locale *held = copy_find(copy, locale);
    const struct following *f = held ? held->following : NULL;
    const struct locale *shown = held ? held->shown : NULL;

    if (!f)
        return false;
    *following = (struct kota_ground_following){
        .revision = shown ? shown->revision : 0,
        .transform_seq = shown ? shown->transform_seq : 0,
        .heard = f->taken > f->hello ? f->taken : f->hello,
        .frames = f->frame_count,
        .is_fed = f->is_fed,
        .error = f->error,
    };
    if (f->is_refused)
        following->state = KOTA_GROUND_REFUSED;
    else if (f->is_gone)
        following->state = KOTA_GROUND_GONE;
    else if (!shown)
        following->state = KOTA_GROUND_LOADING;
    else if (f->is_fed && !f->first && !is_waiting(f) && shown->revision == f->applied &&
             f->applied >= f->must)
        following->state = KOTA_GROUND_CURRENT;
    else
        following->state = KOTA_GROUND_BEHIND;
    return true;
}
