/*
 * Everything a reader may see, at one moment: the locales, sorted by id. Immutable; published by
 * the writer (world.h).
 */
#ifndef KOTA_WORLD_SNAPSHOT_H
#define KOTA_WORLD_SNAPSHOT_H

#include "world/values/locale.h"
#include "world/values/locale_index.h"
#include "world/values/models.h"

/* The number of requests of one reader that hold a snapshot; only that reader's thread uses it. */
struct snapshot_hold {
    _Alignas(64) uint64_t count;
};

/* Sums over locales. */
struct locale_sums {
    uint64_t memory_bytes; /* of the locales */
    uint64_t pin_bytes, past_bytes, pins;
    uint64_t layers, mesh_layers, mesh_polygons, mesh_bytes;
    uint64_t forks;
    uint64_t moved; /* locales with a layer that has moved */
};

struct locale_chunk; /* locales whose ids follow one another */

struct world_snapshot {
    uint64_t serial; /* 1 for the first one published */
    struct locale_chunk **chunks;
    size_t *firsts; /* of each chunk: the index of its first locale */
    size_t chunk_count;
    size_t locale_count;
    struct locale_index *index; /* NULL: no locale has bounds */
    struct locale_sums sums;    /* over all locales */
    /* NULL: all locales may be seen. Not of counts and sums */
    bool (*shows)(const void *context, const struct locale *locale);
    const void *shows_context;
    struct model_list *models;   /* a reference; NULL: none */
    uint64_t memory_bytes;       /* of the locales and models */
    uint64_t earlier_bytes;      /* of pins and earlier revisions, besides */
    struct snapshot_hold *holds; /* [reader_count] */
    size_t reader_count;
    uint32_t refs;               /* atomic: the writer's, and one for each reader that holds it */
    uint64_t retired_epoch;      /* writer only: releasable once every reader has seen it */
    struct world_snapshot *next; /* writer's lists */
};

/* One without locales. NULL and ERR_NO_MEMORY. One reference. */
struct world_snapshot *snapshot_create(size_t reader_count, struct err *err);

/*
 * The one with locale `id` replaced by `locale` (takes a reference; NULL: removed). O(sqrt n), and
 * it shares all else: some 50 microseconds with 100,000 locales.
 */
struct world_snapshot *snapshot_next(const struct world_snapshot *snapshot, const char *id,
                                     struct locale *locale, struct err *err);

/* The one with another list of models (takes a reference). */
struct world_snapshot *snapshot_with_models(const struct world_snapshot *snapshot,
                                            struct model_list *models, struct err *err);

/*
 * A copy that shows only some locales, to be dropped before the snapshot and not to be destroyed:
 * of `shows`, `shows_context` lives as long as it.
 */
struct world_snapshot snapshot_showing(const struct world_snapshot *snapshot,
                                       bool (*shows)(const void *context,
                                                     const struct locale *locale),
                                       const void *shows_context);

/*
 * Bytes of locales, models and pins where tiles and meshes that forks share count once. Without a
 * fork it is the sum. With one, tiles and meshes are all that the process has but for the past, so
 * those of a snapshot that is not published yet, or that a reader still holds, count, too. O(1)
 */
uint64_t snapshot_shared_bytes(const struct world_snapshot *snapshot);

/*
 * Bytes of the locales as they are and of the models, and those that pins and earlier revisions
 * hold besides. Forks share: with one, no tile or mesh counts twice in the two together.
 */
void snapshot_count_memory(const struct world_snapshot *snapshot, uint64_t *now, uint64_t *earlier);

/* Frees it and releases its locales. */
void snapshot_destroy(struct world_snapshot *snapshot);

/* The locale of an index, in the order of ids. O(log n). */
struct locale *snapshot_at(const struct world_snapshot *snapshot, size_t index);

/* The first locale from index *at on that is shown, *at is after it then; NULL: no more. */
struct locale *snapshot_step(const struct world_snapshot *snapshot, size_t *at);

bool snapshot_shows(const struct world_snapshot *snapshot, const struct locale *locale);

/* NULL when there is none. O(log n). */
struct locale *snapshot_locale(const struct world_snapshot *snapshot, const char *id);

/*
 * A locale that shares most with a fork of that manifest: what it was made of, or, where that is
 * gone, another fork of the same; not the one of the id. NULL: there is none, or it is no fork.
 * O(log n), or O(n log n).
 */
struct locale *snapshot_base(const struct world_snapshot *snapshot,
                             const struct locale_manifest *manifest, const char *id);

/* ERR_LOCALE_UNKNOWN, with a guess at a misspelt id among the 256 whose ids are next in order. */
enum err_code snapshot_no_locale(const struct world_snapshot *snapshot, const char *id,
                                 struct err *err);

/* The index of the first locale after `id`, which need not exist. O(log n). */
size_t snapshot_after(const struct world_snapshot *snapshot, const char *id);

/* Recomputes order, sums, the index and every locale. O(samples). */
bool snapshot_validate(const struct world_snapshot *snapshot, struct err *err);

#endif
