/*
 * The world: one published snapshot, one thread that may publish the next, and readers that never
 * wait (design, section 2).
 *
 * A reader is a thread with an index 0..reader_count-1 (an HTTP loop). Between two calls of
 * world_reader_quiet it may load the snapshot with world_pin as often as it likes and keep it until
 * world_unpin; a pinned snapshot may be read on any thread.
 */
#ifndef KOTA_WORLD_WORLD_H
#define KOTA_WORLD_WORLD_H

#include "world/snapshot.h"

struct world_limits {
    size_t locales_max; /* 1,000 */
    uint64_t bytes_max; /* of all layers together, 8 GiB */
    size_t queue_max;   /* changes that wait, 1,000: ERR_BUSY */
    size_t retired_max; /* snapshots that wait to be let go before the writer slows down, 64 */
};

extern const struct world_limits world_limits_default;

enum world_change_kind {
    WORLD_PUT_LOCALE, /* manifest: a new locale, or the next revision of one */
    WORLD_DELETE_LOCALE,
    WORLD_PUT_LAYER, /* layer: added, or in the place of the layer of that id */
    WORLD_DELETE_LAYER
};

/* What came of a change; everything is borrowed for the time of the callback. */
struct world_outcome {
    enum err_code code;          /* ERR_OK: published */
    const struct err *err;       /* when not ERR_OK */
    const struct locale *locale; /* as published; NULL after WORLD_DELETE_LOCALE and on error */
    bool is_new;                 /* the locale or layer was not there before */
};

/* On the writer's thread, once for each submitted change, after it was published or refused. */
typedef void (*world_done)(void *context, const struct world_outcome *outcome);

struct world_change {
    enum world_change_kind kind;
    char locale_id[WORLD_ID_MAX + 1];
    char layer_id[WORLD_ID_MAX + 1];
    struct locale_manifest manifest;
    struct layer *layer;     /* WORLD_PUT_LAYER; taken, whatever comes of the change */
    struct locale *prepared; /* WORLD_PUT_LOCALE: the next revision, made before, or NULL; taken */
    world_done done;         /* may be NULL */
    void *context;
};

struct world_stats {
    uint64_t publications; /* snapshots published since the start */
    uint64_t changes, refused;
    uint64_t locales, layers, memory_bytes;
    uint64_t mesh_layers, mesh_polygons, mesh_bytes; /* of those */
    uint64_t queued, retired;
    uint64_t reclaimed; /* snapshots let go and freed */
};

struct world;

/*
 * An empty world and its writer's thread. ERR_NO_MEMORY, ERR_INTERNAL (no thread); NULL then.
 */
struct world *world_create(size_t reader_count, const struct world_limits *limits, struct err *err);

/* Finishes the queue, joins the writer, frees everything. All readers must be gone. */
void world_destroy(struct world *world);

/*
 * How the writer makes the readers pass world_reader_quiet soon; it may call this at any time from
 * its thread until it is set to NULL. Returns when no call of the former one is under way.
 */
void world_set_wake(struct world *world, void (*wake)(void *context), void *context);

/*
 * Queues a change. On error the change is not queued, done is not called, what it brings is let go:
 * ERR_BUSY when the queue is full, ERR_NO_MEMORY. Any thread.
 */
enum err_code world_submit(struct world *world, const struct world_change *change, struct err *err);

/* Queues a change and waits for its outcome. Any thread but the writer's and the readers'. */
enum err_code world_apply(struct world *world, const struct world_change *change, struct err *err);

/* The readers' threads are about to be started. Before this no reader holds anything back. */
void world_readers_begin(struct world *world);

/* The published snapshot, held for this reader until world_unpin. Reader's thread; never waits. */
const struct world_snapshot *world_pin(struct world *world, size_t reader);
void world_unpin(struct world *world, size_t reader, const struct world_snapshot *snapshot);

/* The reader holds nothing but what it has pinned. Reader's thread; never waits. */
void world_reader_quiet(struct world *world, size_t reader);

/* The reader's thread has ended: it no longer holds anything back. */
void world_reader_gone(struct world *world, size_t reader);

/* Numbers of one moment. Any thread. */
void world_stats(struct world *world, struct world_stats *out);

#endif
