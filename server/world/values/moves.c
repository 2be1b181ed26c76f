/*
 * The last pose of each layer that was moved: see moves.h.
 *
 * Problem: 60 layers that move 60 times a second make 3,600 events a second. They would overwrite
 * the ring of the change feed in seconds, with the edits in it, which are not repeated. Old poses
 * are of no use. Approach: one entry a layer, found by a hash of its names, in a list in the order
 * of the last moves. A reader walks back from the end to its position. Poses that it missed were
 * replaced by later ones.
 *
 * An entry also has the writer's pending work: to publish the layer at rest, when no pose has come
 * for a quarter of a second, and to write its pose to the store. Both are found by a walk over all
 * entries, and only when one is due.
 *
 * Invariants: an entry in the list has a sequence, and the list is sorted by it; entries without
 * one are reserved. The mutex guards entries and list; the writer reads without it.
 */
#include "world/values/moves.h"

#include "base/array_reserve.h"
#include "base/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

/* Without a move for so long a layer is at rest: games move theirs more often. */
#define REST_AFTER_S 0.25
/* A pose is in the store at most this long after it was published, and again after an error. */
#define KEEP_AFTER_S 1.0
#define KEEP_AGAIN_S 2.0
/* The same of the log that daemons share. */
#define SHARE_AFTER_S 0.05
#define SHARE_AGAIN_S 1.0

struct entry {
    struct move_event event; /* sequence 0: not in the list */
    struct entry *older, *newer;
    struct entry *next_in_bucket;
    size_t index;
    double rest_due_s; /* INFINITY: it rests */
    bool is_to_keep, is_to_share;
};

struct moves {
    _Atomic uint64_t last;
    pthread_mutex_t mutex; /* guards the members below; the writer reads them without it */
    struct entry *buckets[BUCKETS];
    struct entry **entries;
    size_t count, room;
    struct entry *oldest, *newest;
    double rest_due_s, keep_due_s, share_due_s; /* writer only: the earliest */
};

struct moves *moves_create(struct err *err)
{
    struct moves *moves = calloc(1, sizeof *moves);

    if (!moves) {
        err_set(err, ERR_NO_MEMORY, "no memory for the moves of layers");
        return NULL;
    }
    pthread_mutex_init(&moves->mutex, NULL);
    moves->rest_due_s = moves->keep_due_s = moves->share_due_s = INFINITY;
    return moves;
}

void moves_destroy(struct moves *moves)
{
    if (!moves)
        return;
    for (size_t i = 0; i < moves->count; i++)
        free(moves->entries[i]);
    free(moves->entries);
    pthread_mutex_destroy(&moves->mutex);
    free(moves);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* FNV-1a over both names. */
static struct entry **bucket_of(struct moves *moves, const char *locale, const char *layer)
{
    uint32_t hash = 2166136261u;

    for (; *locale; locale++)
        hash = (hash ^ (uint8_t)*locale) * 16777619u;
    hash = (hash ^ '/') * 16777619u;
    for (; *layer; layer++)
        hash = (hash ^ (uint8_t)*layer) * 16777619u;
    return &moves->buckets[hash % BUCKETS];
}

static struct entry *entry_find(const struct moves *moves, const char *locale, const char *layer)
{
    struct entry *entry = *bucket_of((struct moves *)(uintptr_t)moves, locale, layer);

    while (entry &&
           (strcmp(entry->event.locale, locale) != 0 || strcmp(entry->event.layer, layer) != 0))
        entry = entry->next_in_bucket;
    return entry;
}

enum err_code moves_reserve(struct moves *moves, const char *locale, const char *layer,
                            struct err *err)
{
    struct entry *entry = entry_find(moves, locale, layer), **bucket;
    bool has_room;

    if (entry)
        return ERR_OK;
    entry = calloc(1, sizeof *entry);
    pthread_mutex_lock(&moves->mutex);
    has_room = entry && array_reserve((void **)&moves->entries, &moves->room, moves->count + 1,
                                      sizeof *moves->entries);
    if (has_room) {
        snprintf(entry->event.locale, sizeof entry->event.locale, "%s", locale);
        snprintf(entry->event.layer, sizeof entry->event.layer, "%s", layer);
        entry->rest_due_s = INFINITY;
        entry->index = moves->count;
        moves->entries[moves->count++] = entry;
        bucket = bucket_of(moves, locale, layer);
        entry->next_in_bucket = *bucket;
        *bucket = entry;
    }
    pthread_mutex_unlock(&moves->mutex);
    if (has_room)
        return ERR_OK;
    free(entry);
    return err_set(err, ERR_NO_MEMORY, "no memory for the moves of layer %s", layer);
}

static void unlink_entry(struct moves *moves, struct entry *entry)
{
    if (entry->event.sequence == 0)
        return;
    if (entry->older)
        entry->older->newer = entry->newer;
    else
        moves->oldest = entry->newer;
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        moves->newest = entry->older;
    entry->event.sequence = 0;
}

void moves_note(struct moves *moves, const char *locale, const char *layer, uint64_t transform_seq,
                const struct motion *motion)
{
    struct entry *entry = entry_find(moves, locale, layer);
    uint64_t sequence = atomic_load_explicit(&moves->last, memory_order_relaxed) + 1;

    CHECK(entry);
    pthread_mutex_lock(&moves->mutex);
    unlink_entry(moves, entry);
    entry->event.sequence = sequence;
    entry->event.transform_seq = transform_seq;
    entry->event.motion = *motion;
    entry->older = moves->newest;
    entry->newer = NULL;
    if (moves->newest)
        moves->newest->newer = entry;
    else
        moves->oldest = entry;
    moves->newest = entry;
    atomic_store_explicit(&moves->last, sequence, memory_order_release);
    pthread_mutex_unlock(&moves->mutex);
}

static void entry_remove(struct moves *moves, struct entry *entry)
{
    struct entry **link = bucket_of(moves, entry->event.locale, entry->event.layer);

    while (*link != entry)
        link = &(*link)->next_in_bucket;
    *link = entry->next_in_bucket;
    unlink_entry(moves, entry);
    moves->entries[entry->index] = moves->entries[--moves->count];
    moves->entries[entry->index]->index = entry->index;
    free(entry);
}

void moves_forget(struct moves *moves, const char *locale, const char *layer)
{
    struct entry *entry = layer ? entry_find(moves, locale, layer) : NULL;

    pthread_mutex_lock(&moves->mutex);
    if (entry)
        entry_remove(moves, entry);
    for (size_t i = moves->count; !layer && i-- > 0;)
        if (strcmp(moves->entries[i]->event.locale, locale) == 0)
            entry_remove(moves, moves->entries[i]);
    pthread_mutex_unlock(&moves->mutex);
}

/* ---- readers --------------------------------------------------------------------------------- */

uint64_t moves_last(const struct moves *moves)
{
    return atomic_load_explicit(&moves->last, memory_order_acquire);
}

size_t moves_read(struct moves *moves, const char *locale, uint64_t *after, struct move_event *out,
                  size_t max)
{
    const struct entry *entry;
    size_t copied = 0;

    pthread_mutex_lock(&moves->mutex);
    entry = moves->newest;
    while (entry && entry->event.sequence > *after && entry->older)
        entry = entry->older;
    if (entry && entry->event.sequence <= *after)
        entry = entry->newer;
    for (; entry && copied < max; entry = entry->newer) {
        *after = entry->event.sequence;
        if (!locale || strcmp(entry->event.locale, locale) == 0)
            out[copied++] = entry->event;
    }
    if (!entry)
        *after = atomic_load_explicit(&moves->last, memory_order_relaxed);
    pthread_mutex_unlock(&moves->mutex);
    return copied;
}

/* ---- the writer ------------------------------------------------------------------------------ */

double moves_rest_due_s(const struct moves *moves)
{
    return moves->rest_due_s;
}

double moves_write_due_s(const struct moves *moves)
{
    return moves->keep_due_s;
}

void moves_touch(struct moves *moves, const char *locale, const char *layer, double now_s,
                 bool keep)
{
    struct entry *entry = entry_find(moves, locale, layer);

    CHECK(entry);
    entry->rest_due_s = now_s + REST_AFTER_S;
    moves->rest_due_s = fmin(moves->rest_due_s, entry->rest_due_s);
    entry->is_to_keep = keep;
    if (keep)
        moves->keep_due_s = fmin(moves->keep_due_s, now_s + KEEP_AFTER_S);
}

const struct move_event *moves_take_rest(struct moves *moves, double now_s)
{
    moves->rest_due_s = INFINITY;
    for (size_t i = 0; i < moves->count; i++) {
        struct entry *entry = moves->entries[i];

        if (entry->rest_due_s <= now_s) {
            entry->rest_due_s = INFINITY;
            moves->rest_due_s = now_s; /* there may be more */
            return &entry->event;
        }
        moves->rest_due_s = fmin(moves->rest_due_s, entry->rest_due_s);
    }
    return NULL;
}

void moves_rest_later(struct moves *moves, const struct move_event *event, double now_s)
{
    struct entry *entry = entry_find(moves, event->locale, event->layer);

    CHECK(entry);
    entry->rest_due_s = now_s + REST_AFTER_S;
    moves->rest_due_s = fmin(moves->rest_due_s, entry->rest_due_s);
}

const struct move_event *moves_next_unwritten(const struct moves *moves, size_t *at)
{
    while (*at < moves->count) {
        const struct entry *entry = moves->entries[(*at)++];

        if (entry->event.sequence != 0 && entry->is_to_keep)
            return &entry->event;
    }
    return NULL;
}

void moves_written(struct moves *moves)
{
    for (size_t i = 0; i < moves->count; i++)
        moves->entries[i]->is_to_keep = false;
    moves->keep_due_s = INFINITY;
}

void moves_write_later(struct moves *moves, double now_s)
{
    moves->keep_due_s = now_s + KEEP_AGAIN_S;
}

/* ---- the shared log -------------------------------------------------------------------------- */

void moves_share(struct moves *moves, const char *locale, const char *layer, double now_s)
{
    struct entry *entry = entry_find(moves, locale, layer);

    CHECK(entry);
    entry->is_to_share = true;
    moves->share_due_s = fmin(moves->share_due_s, now_s + SHARE_AFTER_S);
}

double moves_share_due_s(const struct moves *moves)
{
    return moves->share_due_s;
}

bool moves_is_unshared(const struct moves *moves, const char *locale, const char *layer)
{
    const struct entry *entry = entry_find(moves, locale, layer);

    return entry && entry->is_to_share;
}

const struct move_event *moves_next_unshared(const struct moves *moves, size_t *at)
{
    while (*at < moves->count) {
        const struct entry *entry = moves->entries[(*at)++];

        if (entry->event.sequence != 0 && entry->is_to_share)
            return &entry->event;
    }
    return NULL;
}

size_t moves_count(const struct moves *moves)
{
    return moves->count;
}

void moves_shared(struct moves *moves)
{
    for (size_t i = 0; i < moves->count; i++)
        moves->entries[i]->is_to_share = false;
    moves->share_due_s = INFINITY;
}

void moves_share_later(struct moves *moves, double now_s)
{
    moves->share_due_s = now_s + SHARE_AGAIN_S;
}
