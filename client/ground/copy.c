/*
 * Copies: what is published, and how it is freed.
 *
 * Problem: readers on any thread must neither wait for the thread that changes the copy nor make it
 * wait, and a reader may sleep for an hour. Approach: hazard pointers (M. Michael, "Hazard
 * Pointers: Safe Memory Reclamation for Lock-Free Objects", 2004). A reader has one word that names
 * the view it uses. It writes the word and looks whether that view is still the published one; if
 * so, a later retirement of the view sees the word. A publication retires the view before it, and
 * frees those retired ones that no reader names. So a sleeping reader holds one view and nothing
 * else; with epochs it would hold all later ones.
 *
 * Invariants: `published` is never NULL. A view is freed once, by the thread that changes the copy.
 * Readers stay in the list until the copy is closed; one that was closed is used again.
 */
#include "client/ground/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *kota_ground_version(void)
{
    return KOTA_VERSION;
}

bool ground_fail(struct kota_ground_error *error, const struct err *err)
{
    if (!error)
        return false;
    snprintf(error->code, sizeof error->code, "%s", err_word(err->code));
    snprintf(error->pointer, sizeof error->pointer, "%s", err->pointer);
    snprintf(error->message, sizeof error->message, "%s", err->msg);
    return false;
}

/* ---- views ----------------------------------------------------------------------------------- */

static void view_free(struct kota_ground_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->snapshot->locale_count; i++)
        free(view->locales[i].parts);
    snapshot_destroy(view->snapshot);
    free(view);
}

static bool set_parts(struct kota_ground_locale *locale, const struct following *following,
                      bool *has_parts)
{
    const struct locale *value = locale->locale;
    bool is_any = false;

    for (size_t i = 0; following && i < value->layer_count; i++)
        is_any |= following_part(following, value->layers[i]->id).is_part;
    if (!is_any)
        return true;
    *has_parts = true;
    locale->parts = calloc(value->layer_count, sizeof *locale->parts);
    for (size_t i = 0; locale->parts && i < value->layer_count; i++)
        locale->parts[i] = following_part(following, value->layers[i]->id);
    return locale->parts != NULL;
}

static void set_ground(struct kota_ground_locale *locale)
{
    struct err ignored = {.code = ERR_OK};
    const struct layer *ground;

    if (locale_choose_ground(locale->locale, NULL, &locale->ground, &ignored)) {
        locale->ground.count = 0;
        return;
    }
    ground = locale->ground.layers[0];
    if (ground->kind == LAYER_HEIGHTFIELD && !locale->parts)
        locale->field = ground->field;
}

/* Takes the snapshot. */
static struct kota_ground_view *view_create(const struct kota_ground_copy *copy,
                                            struct world_snapshot *snapshot, struct err *err)
{
    struct kota_ground_view *view =
        calloc(1, sizeof *view + snapshot->locale_count * sizeof *view->locales);
    bool is_made = view != NULL;

    for (size_t i = 0; is_made && i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot_at(snapshot, i);
        const struct held_locale *held = copy_find(copy, locale->id);

        view->locales[i].locale = locale;
        is_made = set_parts(&view->locales[i], held ? held->following : NULL, &view->has_parts);
        set_ground(&view->locales[i]);
    }
    if (is_made) {
        view->snapshot = snapshot;
        return view;
    }
    err_set(err, ERR_NO_MEMORY, "no memory for a view of %zu locales", snapshot->locale_count);
    for (size_t i = 0; view && i < snapshot->locale_count; i++)
        free(view->locales[i].parts);
    free(view);
    snapshot_destroy(snapshot);
    return NULL;
}

/* ---- readers --------------------------------------------------------------------------------- */

struct kota_ground_reader *kota_ground_reader_open(struct kota_ground_copy *copy)
{
    struct kota_ground_reader *reader = atomic_load(&copy->readers);

    for (; reader; reader = reader->next)
        if (!atomic_exchange(&reader->is_used, true))
            return reader;
    reader = aligned_alloc(_Alignof(struct kota_ground_reader), sizeof *reader);
    if (!reader)
        return NULL;
    memset(reader, 0, sizeof *reader);
    reader->copy = copy;
    atomic_init(&reader->is_used, true);
    reader->next = atomic_load(&copy->readers);
    while (!atomic_compare_exchange_weak(&copy->readers, &reader->next, reader))
        continue;
    return reader;
}

void kota_ground_reader_close(struct kota_ground_reader *reader)
{
    if (!reader)
        return;
    atomic_store(&reader->held, NULL);
    atomic_store(&reader->is_used, false);
}

const struct kota_ground_view *kota_ground_newest(struct kota_ground_reader *reader)
{
    struct kota_ground_copy *copy = reader->copy;
    struct kota_ground_view *view = atomic_load(&copy->published), *again;

    if (view == atomic_load_explicit(&reader->held, memory_order_relaxed))
        return view;
    for (;; view = again) {
        atomic_store(&reader->held, view);
        again = atomic_load(&copy->published);
        if (again == view)
            return view;
    }
}

static bool is_held(const struct kota_ground_copy *copy, const struct kota_ground_view *view)
{
    struct kota_ground_reader *reader = atomic_load(&copy->readers);

    for (; reader; reader = reader->next)
        if (atomic_load(&reader->held) == view)
            return true;
    return false;
}

static void free_retired(struct kota_ground_copy *copy)
{
    for (struct kota_ground_view **at = &copy->retired; *at;) {
        struct kota_ground_view *view = *at;

        if (is_held(copy, view)) {
            at = &view->next;
        } else {
            *at = view->next;
            view_free(view);
        }
    }
}

size_t kota_ground_locale_count(const struct kota_ground_view *view)
{
    return view->snapshot->locale_count;
}

const struct kota_ground_locale *kota_ground_locale_at(const struct kota_ground_view *view,
                                                       size_t index)
{
    return index < view->snapshot->locale_count ? &view->locales[index] : NULL;
}

const struct kota_ground_locale *kota_ground_locale(const struct kota_ground_view *view,
                                                    const char *id)
{
    const struct world_snapshot *snapshot = view->snapshot;
    size_t after = snapshot_after(snapshot, id);

    return after > 0 && strcmp(snapshot_at(snapshot, after - 1)->id, id) == 0
               ? &view->locales[after - 1]
               : NULL;
}

const char *kota_ground_id(const struct kota_ground_locale *locale)
{
    return locale->locale->id;
}

uint64_t kota_ground_revision(const struct kota_ground_locale *locale)
{
    return locale->locale->revision;
}

uint64_t kota_ground_transform_seq(const struct kota_ground_locale *locale)
{
    return locale->locale->transform_seq;
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct kota_ground_copy *kota_ground_open(void)
{
    struct err ignored = {.code = ERR_OK};
    struct kota_ground_copy *copy = calloc(1, sizeof *copy);
    struct world_snapshot *snapshot = copy ? snapshot_create(0, &ignored) : NULL;
    struct kota_ground_view *view = snapshot ? view_create(copy, snapshot, &ignored) : NULL;

    if (!view) {
        free(copy);
        return NULL;
    }
    atomic_init(&copy->published, view);
    return copy;
}

void kota_ground_close(struct kota_ground_copy *copy)
{
    if (!copy)
        return;
    while (copy->locales)
        copy_remove(copy, copy->locales);
    for (struct kota_ground_reader *reader = atomic_load(&copy->readers), *next; reader;
         reader = next) {
        next = reader->next;
        free(reader);
    }
    atomic_store(&copy->readers, NULL);
    free_retired(copy);
    view_free(atomic_load(&copy->published));
    free(copy);
}

struct held_locale *copy_find(const struct kota_ground_copy *copy, const char *id)
{
    struct held_locale *held = copy->locales;

    while (held && strcmp(held->id, id) != 0)
        held = held->next;
    return held;
}

struct held_locale *copy_add(struct kota_ground_copy *copy, const char *id, struct err *err)
{
    struct held_locale *held = id ? copy_find(copy, id) : NULL;

    if (held)
        return held;
    if (!id || !world_id_is_valid(id, strlen(id))) {
        err_set(err, ERR_BAD_INPUT, "\"%.64s\" is no id: 1 to %d characters of A-Za-z0-9_-",
                id ? id : "", WORLD_ID_MAX);
        err_at(err, "locale");
        return NULL;
    }
    held = calloc(1, sizeof *held);
    if (!held) {
        err_set(err, ERR_NO_MEMORY, "no memory for locale %s", id);
        return NULL;
    }
    snprintf(held->id, sizeof held->id, "%s", id);
    held->next = copy->locales;
    copy->locales = held;
    return held;
}

void copy_remove(struct kota_ground_copy *copy, struct held_locale *held)
{
    struct held_locale **at = &copy->locales;

    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    locale_unref(held->draft);
    locale_unref(held->shown);
    following_free(held->following);
    free(held);
}

void held_draft(struct held_locale *held, struct locale *draft)
{
    locale_unref(held->draft);
    held->draft = draft;
}

void held_show(struct held_locale *held, bool is_shown)
{
    struct locale *shown = is_shown && held->draft ? locale_ref(held->draft) : NULL;

    locale_unref(held->shown);
    held->shown = shown;
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* *snapshot becomes the next one, with `locale` (NULL: without) under that id. */
static bool replace(struct world_snapshot **snapshot, const char *id, struct locale *locale,
                    struct err *err)
{
    struct world_snapshot *next = snapshot_next(*snapshot, id, locale, err);

    if (!next)
        return false;
    snapshot_destroy(*snapshot);
    *snapshot = next;
    return true;
}

/* Locales of the view that are not held any more, and those that are others by now. */
static bool update(const struct kota_ground_copy *copy, const struct world_snapshot *now,
                   struct world_snapshot **next, struct err *err)
{
    const struct locale *locale;

    for (size_t at = 0; (locale = snapshot_step(now, &at)) != NULL;)
        if (!copy_find(copy, locale->id) && !replace(next, locale->id, NULL, err))
            return false;
    for (const struct held_locale *held = copy->locales; held; held = held->next) {
        const struct locale *shown = snapshot_locale(now, held->id);

        if (shown != held->shown && !replace(next, held->id, held->shown, err))
            return false;
    }
    return true;
}

static bool has_news(const struct kota_ground_copy *copy, const struct world_snapshot *now)
{
    size_t shown = 0;

    for (const struct held_locale *held = copy->locales; held; held = held->next) {
        if (snapshot_locale(now, held->id) != held->shown)
            return true;
        shown += held->shown != NULL;
    }
    return shown != now->locale_count;
}

bool kota_ground_publish(struct kota_ground_copy *copy, struct kota_ground_error *error)
{
    struct kota_ground_view *before = atomic_load(&copy->published), *view;
    struct err err = {.code = ERR_OK};
    struct world_snapshot *next;

    free_retired(copy);
    if (!has_news(copy, before->snapshot))
        return true;
    next = snapshot_with_models(before->snapshot, NULL, &err);
    if (!next)
        return ground_fail(error, &err);
    if (!update(copy, before->snapshot, &next, &err)) {
        snapshot_destroy(next);
        return ground_fail(error, &err);
    }
    view = view_create(copy, next, &err);
    if (!view)
        return ground_fail(error, &err);
    atomic_store(&copy->published, view);
    before->next = copy->retired;
    copy->retired = before;
    free_retired(copy);
    return true;
}
