/*
 * Snapshots: a sorted array of counted locales, and a parallel array of their bounding spheres
 * (bounding_sphere.h). A change copies both (of a thousand locales 72 KiB) and shares all locales
 * but one.
 */
#include "world/values/snapshot.h"

#include "base/check.h"
#include "base/nearest_word.h"

#include <stdlib.h>
#include <string.h>

struct world_snapshot *snapshot_create(size_t locales_max, size_t reader_count, struct err *err)
{
    struct world_snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (!snapshot)
        goto no_memory;
    snapshot->refs = 1;
    snapshot->serial = 1;
    snapshot->reader_count = reader_count;
    snapshot->locales = calloc(locales_max + 1, sizeof(struct locale *));
    snapshot->bounding_spheres =
        aligned_alloc(64, (locales_max + 1) * sizeof *snapshot->bounding_spheres);
    if (!snapshot->locales || !snapshot->bounding_spheres)
        goto no_memory;
    if (reader_count > 0) {
        size_t bytes = reader_count * sizeof(struct snapshot_hold);

        snapshot->holds = aligned_alloc(_Alignof(struct snapshot_hold), bytes);
        if (!snapshot->holds)
            goto no_memory;
        memset(snapshot->holds, 0, bytes);
    }
    return snapshot;
no_memory:
    err_set(err, ERR_NO_MEMORY, "no memory for a snapshot of %zu locales", locales_max);
    if (snapshot)
        snapshot_destroy(snapshot);
    return NULL;
}

void snapshot_destroy(struct world_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->locale_count; i++)
        locale_unref(snapshot->locales[i]);
    model_list_unref(snapshot->models);
    free(snapshot->locales);
    free(snapshot->bounding_spheres);
    free(snapshot->holds);
    free(snapshot);
}

/* The index of a locale, or where it would be inserted. */
static size_t snapshot_find(const struct world_snapshot *snapshot, const char *id, bool *found)
{
    size_t low = 0, high = snapshot->locale_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->locales[middle]->id, id);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

struct locale *snapshot_locale(const struct world_snapshot *snapshot, const char *id)
{
    bool found;
    size_t at = snapshot_find(snapshot, id, &found);

    return found ? snapshot->locales[at] : NULL;
}

size_t snapshot_after(const struct world_snapshot *snapshot, const char *id)
{
    bool found;
    size_t at = snapshot_find(snapshot, id, &found);

    return at + found;
}

enum err_code snapshot_no_locale(const struct world_snapshot *snapshot, const char *id,
                                 struct err *err)
{
    enum { GUESSES_MAX = 256 };
    const char *names[GUESSES_MAX + 1] = {NULL}, *guess;
    size_t at = snapshot_after(snapshot, id),
           from = at > GUESSES_MAX / 2 ? at - GUESSES_MAX / 2 : 0;

    for (size_t i = 0; i < GUESSES_MAX && from + i < snapshot->locale_count; i++)
        names[i] = snapshot->locales[from + i]->id;
    guess = nearest_word(id, strlen(id), names);
    err_set(err, ERR_LOCALE_UNKNOWN, "there is no locale %s%s%s%s", id,
            guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
    return err_at(err, "locale");
}

/* Appends those of `from` up to `end`. */
static void append(struct world_snapshot *snapshot, const struct world_snapshot *from, size_t first,
                   size_t end)
{
    size_t at = snapshot->locale_count;

    for (size_t i = first; i < end; i++)
        snapshot->locales[snapshot->locale_count++] = locale_ref(from->locales[i]);
    memcpy(&snapshot->bounding_spheres[at], &from->bounding_spheres[first],
           (end - first) * sizeof *from->bounding_spheres);
}

static void count_bytes(struct world_snapshot *snapshot)
{
    snapshot->memory_bytes = snapshot->models ? snapshot->models->bytes : 0;
    snapshot->earlier_bytes = 0;
    for (size_t i = 0; i < snapshot->locale_count; i++) {
        snapshot->memory_bytes += snapshot->locales[i]->memory_bytes;
        snapshot->earlier_bytes += locale_earlier_bytes(snapshot->locales[i]);
    }
}

struct world_snapshot *snapshot_next(const struct world_snapshot *snapshot, const char *id,
                                     struct locale *locale, struct err *err)
{
    bool found;
    size_t at = snapshot_find(snapshot, id, &found);
    struct world_snapshot *next =
        snapshot_create(snapshot->locale_count + 1, snapshot->reader_count, err);

    if (!next)
        return NULL;
    next->serial = snapshot->serial + 1;
    next->models = model_list_ref(snapshot->models);
    append(next, snapshot, 0, at);
    if (locale) {
        next->bounding_spheres[at] = bounding_sphere_of(locale);
        next->locales[next->locale_count++] = locale_ref(locale);
    }
    append(next, snapshot, at + (found ? 1 : 0), snapshot->locale_count);
    count_bytes(next);
    return next;
}

struct world_snapshot *snapshot_with_models(const struct world_snapshot *snapshot,
                                            struct model_list *models, struct err *err)
{
    struct world_snapshot *next =
        snapshot_create(snapshot->locale_count, snapshot->reader_count, err);

    if (!next)
        return NULL;
    next->serial = snapshot->serial + 1;
    next->models = model_list_ref(models);
    append(next, snapshot, 0, snapshot->locale_count);
    count_bytes(next);
    return next;
}

bool snapshot_validate(const struct world_snapshot *snapshot, struct err *err)
{
    for (size_t i = 0; i < snapshot->locale_count; i++) {
        if (i > 0 && strcmp(snapshot->locales[i - 1]->id, snapshot->locales[i]->id) >= 0) {
            err_set(err, ERR_INTERNAL, "locale %s is out of order", snapshot->locales[i]->id);
            return false;
        }
        struct bounding_sphere sphere = bounding_sphere_of(snapshot->locales[i]);

        if (memcmp(&snapshot->bounding_spheres[i], &sphere, sizeof sphere) != 0) {
            err_set(err, ERR_INTERNAL, "locale %s has another bounding sphere",
                    snapshot->locales[i]->id);
            return false;
        }
        if (!locale_validate(snapshot->locales[i], err))
            return false;
    }
    struct world_snapshot counted = *snapshot;

    count_bytes(&counted);
    if (counted.memory_bytes != snapshot->memory_bytes ||
        counted.earlier_bytes != snapshot->earlier_bytes) {
        err_set(err, ERR_INTERNAL, "the snapshot's bytes are not the sum of its locales");
        return false;
    }
    return true;
}
