/*
 * Snapshots: the locales sorted by id, in chunks that snapshots share.
 *
 * Problem: each write publishes a snapshot, and a world has up to 100,000 locales. Approach: an
 * array of counted chunks of up to 256 locales. A change copies one chunk and the array, so both
 * have about the square root of all. Chunks that are full are halved; the last one, which grows at
 * its end when ids come in order, goes on in a new one. Sums over all locales are carried on by the
 * difference that a change makes. The places of locales are in a tree (locale_index.h).
 *
 * Invariants: ids rise over all chunks, and no chunk is empty; firsts[] are the sums of counts.
 */
#include "world/values/snapshot.h"

#include "base/check.h"
#include "base/text/nearest_word.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LOCALES_MAX = 256 };

struct locale_chunk {
    uint32_t refs; /* atomic */
    uint32_t count;
    struct locale *locales[]; /* references */
};

/* ---- chunks ---------------------------------------------------------------------------------- */

static struct locale_chunk *chunk_create(struct locale *const *locales, size_t count)
{
    struct locale_chunk *chunk = malloc(sizeof *chunk + count * sizeof *locales);

    if (!chunk)
        return NULL;
    chunk->refs = 1;
    chunk->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        chunk->locales[i] = locale_ref(locales[i]);
    return chunk;
}

static struct locale_chunk *chunk_ref(struct locale_chunk *chunk)
{
    __atomic_fetch_add(&chunk->refs, 1, __ATOMIC_RELAXED);
    return chunk;
}

static void chunk_unref(struct locale_chunk *chunk)
{
    if (__atomic_fetch_sub(&chunk->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < chunk->count; i++)
        locale_unref(chunk->locales[i]);
    free(chunk);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Room for so many chunks, none yet. */
static struct world_snapshot *allocate(size_t chunks_max, size_t reader_count, struct err *err)
{
    struct world_snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (!snapshot)
        goto no_memory;
    snapshot->refs = 1;
    snapshot->serial = 1;
    snapshot->reader_count = reader_count;
    snapshot->chunks = calloc(chunks_max + 1, sizeof *snapshot->chunks);
    snapshot->firsts = calloc(chunks_max + 1, sizeof *snapshot->firsts);
    if (!snapshot->chunks || !snapshot->firsts)
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
    err_set(err, ERR_NO_MEMORY, "no memory for a snapshot");
    if (snapshot)
        snapshot_destroy(snapshot);
    return NULL;
}

struct world_snapshot *snapshot_create(size_t reader_count, struct err *err)
{
    return allocate(0, reader_count, err);
}

void snapshot_destroy(struct world_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->chunk_count; i++)
        chunk_unref(snapshot->chunks[i]);
    locale_index_unref(snapshot->index);
    model_list_unref(snapshot->models);
    free(snapshot->chunks);
    free(snapshot->firsts);
    free(snapshot->holds);
    free(snapshot);
}

struct world_snapshot snapshot_showing(const struct world_snapshot *snapshot,
                                       bool (*shows)(const void *context,
                                                     const struct locale *locale),
                                       const void *shows_context)
{
    /* not what the writer and other readers change: references, the epoch, lists */
    return (struct world_snapshot){
        .serial = snapshot->serial,
        .chunks = snapshot->chunks,
        .firsts = snapshot->firsts,
        .chunk_count = snapshot->chunk_count,
        .locale_count = snapshot->locale_count,
        .index = snapshot->index,
        .sums = snapshot->sums,
        .shows = shows,
        .shows_context = shows_context,
        .models = snapshot->models,
        .memory_bytes = snapshot->memory_bytes,
    };
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The place of an id: its chunk, and where it is or would be inserted in it. */
struct place {
    size_t chunk, at;
    bool is_found;
};

/* The chunk is the last one whose first id is not greater, or the first one. */
static struct place find(const struct world_snapshot *snapshot, const char *id)
{
    struct place place = {0, 0, false};
    const struct locale_chunk *chunk;
    size_t low = 0, high = snapshot->chunk_count;

    if (high == 0)
        return place;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(snapshot->chunks[middle]->locales[0]->id, id) <= 0)
            low = middle;
        else
            high = middle;
    }
    place.chunk = low;
    chunk = snapshot->chunks[low];
    for (low = 0, high = chunk->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(chunk->locales[middle]->id, id);

        if (order == 0) {
            place.is_found = true;
            low = middle;
            break;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    place.at = low;
    return place;
}

bool snapshot_shows(const struct world_snapshot *snapshot, const struct locale *locale)
{
    return !snapshot->shows || snapshot->shows(snapshot->shows_context, locale);
}

struct locale *snapshot_locale(const struct world_snapshot *snapshot, const char *id)
{
    struct place place = find(snapshot, id);
    struct locale *locale =
        place.is_found ? snapshot->chunks[place.chunk]->locales[place.at] : NULL;

    return locale && snapshot_shows(snapshot, locale) ? locale : NULL;
}

struct locale *snapshot_base(const struct world_snapshot *snapshot,
                             const struct locale_manifest *manifest, const char *id)
{
    char from[WORLD_ID_MAX + 1];
    struct locale *base;

    locale_manifest_base(manifest, from);
    if (from[0] == '\0')
        return NULL;
    base = snapshot_locale(snapshot, from);
    if (base && strcmp(base->id, id) != 0)
        return base;
    for (size_t i = 0; i < snapshot->locale_count; i++) {
        struct locale *other = snapshot_at(snapshot, i);

        if (other->manifest.from_revision == manifest->from_revision &&
            strcmp(other->manifest.from, manifest->from) == 0 && strcmp(other->id, id) != 0)
            return other;
    }
    return NULL;
}

size_t snapshot_after(const struct world_snapshot *snapshot, const char *id)
{
    struct place place = find(snapshot, id);

    return snapshot->chunk_count == 0 ? 0
                                      : snapshot->firsts[place.chunk] + place.at + place.is_found;
}

struct locale *snapshot_at(const struct world_snapshot *snapshot, size_t index)
{
    size_t low = 0, high = snapshot->chunk_count;

    CHECK(index < snapshot->locale_count);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (snapshot->firsts[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return snapshot->chunks[low]->locales[index - snapshot->firsts[low]];
}

struct locale *snapshot_step(const struct world_snapshot *snapshot, size_t *at)
{
    while (*at < snapshot->locale_count) {
        struct locale *locale = snapshot_at(snapshot, (*at)++);

        if (snapshot_shows(snapshot, locale))
            return locale;
    }
    return NULL;
}

enum err_code snapshot_no_locale(const struct world_snapshot *snapshot, const char *id,
                                 struct err *err)
{
    enum { GUESSES_MAX = 256 };
    const char *names[GUESSES_MAX + 1] = {NULL}, *guess;
    size_t at = snapshot_after(snapshot, id),
           from = at > GUESSES_MAX / 2 ? at - GUESSES_MAX / 2 : 0;
    const struct locale *locale;

    for (size_t i = 0; i < GUESSES_MAX && (locale = snapshot_step(snapshot, &from)) != NULL; i++)
        names[i] = locale->id;
    guess = nearest_word(id, strlen(id), names);
    return err_set_at(err, ERR_LOCALE_UNKNOWN, "locale", "there is no locale %s%s%s%s", id,
                      guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Adds a locale to sums, or with -1 takes it from them. */
static void count_locale(struct locale_sums *sums, const struct locale *locale, int sign)
{
    uint64_t one = (uint64_t)(int64_t)sign; /* modulo 2^64 */

    sums->memory_bytes += one * locale->memory_bytes;
    sums->pin_bytes += locale->pins ? one * locale->pins->bytes : 0;
    sums->past_bytes += locale->past ? one * locale->past->bytes : 0;
    sums->pins += locale->pins ? one * locale->pins->count : 0;
    sums->forks += locale->manifest.from[0] ? one : 0;
    sums->moved += locale->transform_seq > 0 ? one : 0;
    sums->layers += one * locale->layer_count;
    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct layer *layer = locale->layers[i];

        if (layer->kind != LAYER_MESH)
            continue;
        sums->mesh_layers += one;
        sums->mesh_polygons += one * layer->mesh_stats.polygons;
        sums->mesh_bytes += one * layer->memory_bytes;
    }
}

static void count_bytes(struct world_snapshot *snapshot)
{
    const struct locale_sums *sums = &snapshot->sums;

    snapshot->memory_bytes = sums->memory_bytes + (snapshot->models ? snapshot->models->bytes : 0);
    snapshot->earlier_bytes = sums->pin_bytes + sums->past_bytes;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Adds a chunk, which it takes; false when it is NULL. */
static bool add_chunk(struct world_snapshot *snapshot, struct locale_chunk *chunk)
{
    if (!chunk)
        return false;
    snapshot->firsts[snapshot->chunk_count] = snapshot->locale_count;
    snapshot->chunks[snapshot->chunk_count++] = chunk;
    snapshot->locale_count += chunk->count;
    return true;
}

/* Adds the chunk of a place with `locale` (NULL: none) there. */
static bool add_changed(struct world_snapshot *next, const struct world_snapshot *from,
                        struct place place, struct locale *locale)
{
    struct locale *locales[CHUNK_LOCALES_MAX + 1];
    const struct locale_chunk *chunk = from->chunk_count ? from->chunks[place.chunk] : NULL;
    size_t count = 0, own = chunk ? chunk->count : 0, split;

    for (size_t i = 0; i < place.at; i++)
        locales[count++] = chunk->locales[i];
    if (locale)
        locales[count++] = locale;
    for (size_t i = place.at + place.is_found; i < own; i++)
        locales[count++] = chunk->locales[i];
    if (count <= CHUNK_LOCALES_MAX)
        return count == 0 || add_chunk(next, chunk_create(locales, count));
    split = place.at == own && place.chunk + 1 == from->chunk_count ? own : count / 2;
    return add_chunk(next, chunk_create(locales, split)) &&
           add_chunk(next, chunk_create(locales + split, count - split));
}

/* The next one, still without locales and index. */
static struct world_snapshot *begin_next(const struct world_snapshot *snapshot, struct err *err)
{
    struct world_snapshot *next = allocate(snapshot->chunk_count + 1, snapshot->reader_count, err);

    if (!next)
        return NULL;
    next->serial = snapshot->serial + 1;
    next->sums = snapshot->sums;
    return next;
}

struct world_snapshot *snapshot_next(const struct world_snapshot *snapshot, const char *id,
                                     struct locale *locale, struct err *err)
{
    struct place place = find(snapshot, id);
    const struct locale *before =
        place.is_found ? snapshot->chunks[place.chunk]->locales[place.at] : NULL;
    struct world_snapshot *next = begin_next(snapshot, err);
    bool is_made = true;

    if (!next)
        return NULL;
    next->models = model_list_ref(snapshot->models);
    for (size_t i = 0; is_made && (i < snapshot->chunk_count || i == 0); i++)
        is_made = i == place.chunk ? add_changed(next, snapshot, place, locale)
                                   : add_chunk(next, chunk_ref(snapshot->chunks[i]));
    if (!is_made)
        err_set(err, ERR_NO_MEMORY, "no memory for a snapshot");
    if (!is_made || locale_index_next(snapshot->index, before, locale, &next->index, err)) {
        snapshot_destroy(next);
        return NULL;
    }
    if (before)
        count_locale(&next->sums, before, -1);
    if (locale)
        count_locale(&next->sums, locale, 1);
    count_bytes(next);
    return next;
}

struct world_snapshot *snapshot_with_models(const struct world_snapshot *snapshot,
                                            struct model_list *models, struct err *err)
{
    struct world_snapshot *next = begin_next(snapshot, err);

    if (!next)
        return NULL;
    next->models = model_list_ref(models);
    next->index = locale_index_ref(snapshot->index);
    for (size_t i = 0; i < snapshot->chunk_count; i++)
        add_chunk(next, chunk_ref(snapshot->chunks[i]));
    count_bytes(next);
    return next;
}

/* Beside tiles and meshes. */
static uint64_t other_bytes(const struct world_snapshot *snapshot)
{
    return (snapshot->models ? snapshot->models->bytes : 0) +
           (snapshot->sums.layers + snapshot->locale_count) * sizeof(struct locale);
}

uint64_t snapshot_shared_bytes(const struct world_snapshot *snapshot)
{
    const struct locale_sums *sums = &snapshot->sums;
    uint64_t counted = snapshot->memory_bytes + sums->pin_bytes;
    uint64_t held = heightfield_all_tiles_bytes() + layer_all_meshes_bytes();

    if (sums->forks == 0)
        return counted;
    held = (held > sums->past_bytes ? held - sums->past_bytes : 0) + other_bytes(snapshot);
    return held < counted ? held : counted;
}

void snapshot_count_memory(const struct world_snapshot *snapshot, uint64_t *now, uint64_t *earlier)
{
    uint64_t held =
        heightfield_all_tiles_bytes() + layer_all_meshes_bytes() + other_bytes(snapshot);

    *now = snapshot->memory_bytes;
    *earlier = snapshot->earlier_bytes;
    if (snapshot->sums.forks == 0)
        return;
    *now = *now < held ? *now : held;
    *earlier = *earlier < held - *now ? *earlier : held - *now;
}

/* ---- validation ------------------------------------------------------------------------------ */

static bool chunks_validate(const struct world_snapshot *snapshot, struct err *err)
{
    const char *last = "";
    size_t count = 0;

    for (size_t i = 0; i < snapshot->chunk_count; i++) {
        const struct locale_chunk *chunk = snapshot->chunks[i];

        if (snapshot->firsts[i] != count || chunk->count == 0 || chunk->count > CHUNK_LOCALES_MAX)
            goto wrong;
        for (size_t k = 0; k < chunk->count; k++) {
            if (strcmp(last, chunk->locales[k]->id) >= 0)
                goto wrong;
            last = chunk->locales[k]->id;
        }
        count += chunk->count;
    }
    if (count == snapshot->locale_count)
        return true;
wrong:
    err_set(err, ERR_INTERNAL, "the locales after %.64s are out of order or miscounted", last);
    return false;
}

bool snapshot_validate(const struct world_snapshot *snapshot, struct err *err)
{
    struct world_snapshot counted = *snapshot;
    const struct locale *locale;
    size_t placed = 0, indexed;

    if (!chunks_validate(snapshot, err) || !locale_index_validate(snapshot->index, &indexed, err))
        return false;
    memset(&counted.sums, 0, sizeof counted.sums);
    for (size_t at = 0; (locale = snapshot_step(snapshot, &at)) != NULL;) {
        if (!locale_validate(locale, err))
            return false;
        count_locale(&counted.sums, locale, 1);
        placed += locale->has_bounds;
    }
    count_bytes(&counted);
    if (memcmp(&counted.sums, &snapshot->sums, sizeof counted.sums) != 0 ||
        counted.memory_bytes != snapshot->memory_bytes ||
        counted.earlier_bytes != snapshot->earlier_bytes || placed != indexed) {
        err_set(err, ERR_INTERNAL, "the snapshot's sums are not those of its locales");
        return false;
    }
    return true;
}
