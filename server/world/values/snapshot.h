/*
 * Everything a reader may see, at one moment: the locales, sorted by id. Immutable; published by
 * the writer (world.h).
 */
#ifndef KOTA_WORLD_SNAPSHOT_H
#define KOTA_WORLD_SNAPSHOT_H

#include "world/values/locale.h"
#include "world/values/models.h"
#include "world/values/bounding_sphere.h"

/* The number of requests of one reader that hold a snapshot; only that reader's thread uses it. */
struct snapshot_hold {
    _Alignas(64) uint64_t count;
};

struct world_snapshot {
    uint64_t serial;                          /* 1 for the first one published */
    struct locale **locales;                  /* sorted by id; a reference on each */
    struct bounding_sphere *bounding_spheres; /* of each locale */
    size_t locale_count;
    struct model_list *models;   /* a reference; NULL: none */
    uint64_t memory_bytes;       /* of the locales and models */
    uint64_t earlier_bytes;      /* of pins and earlier revisions, besides */
    struct snapshot_hold *holds; /* [reader_count] */
    size_t reader_count;
    uint32_t refs;               /* atomic: the writer's, and one for each reader that holds it */
    uint64_t retired_epoch;      /* writer only: releasable once every reader has seen it */
    struct world_snapshot *next; /* writer's lists */
};

/* Room for `locales_max` locales, none yet. NULL and ERR_NO_MEMORY. One reference. */
struct world_snapshot *snapshot_create(size_t locales_max, size_t reader_count, struct err *err);

/* The one with locale `id` replaced by `locale` (takes a reference; NULL: removed). */
struct world_snapshot *snapshot_next(const struct world_snapshot *snapshot, const char *id,
                                     struct locale *locale, struct err *err);

/* The one with another list of models (takes a reference). */
struct world_snapshot *snapshot_with_models(const struct world_snapshot *snapshot,
                                            struct model_list *models, struct err *err);

/* Frees it and releases its locales. */
void snapshot_destroy(struct world_snapshot *snapshot);

/* NULL when there is none. O(log n). */
struct locale *snapshot_locale(const struct world_snapshot *snapshot, const char *id);

/* ERR_LOCALE_UNKNOWN, with a guess at a misspelt id among the 256 whose ids are next in order. */
enum err_code snapshot_no_locale(const struct world_snapshot *snapshot, const char *id,
                                 struct err *err);

/* The index of the first locale after `id`, which need not exist. O(log n). */
size_t snapshot_after(const struct world_snapshot *snapshot, const char *id);

/* Recomputes order, bytes and every locale. O(samples). */
bool snapshot_validate(const struct world_snapshot *snapshot, struct err *err);

#endif
