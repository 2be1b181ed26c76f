/*
 * The change feed: the last changes of the world, in order, for subscribers.
 *
 * A ring of fixed size. The writer appends; any thread reads copies under a short lock, never
 * during a query. The feed has no state of subscribers, so a slow one delays nothing: its position
 * is overwritten.
 */
#ifndef KOTA_WORLD_FEED_H
#define KOTA_WORLD_FEED_H

#include "terrain/field/edit.h"
#include "terrain/vec.h"
#include "world/values/layer.h"

enum {
    FEED_SOURCE_MAX = 32,
    FEED_EVENTS_MAX = 16384,
    FEED_CONTENT_BYTES_MAX = 64 * 1024,    /* of one event */
    FEED_HELD_BYTES_MAX = 64 * 1024 * 1024 /* of the contents of all events */
};

/*
 * What a change has left: samples of the event's rectangle, or an edit of polygons as
 * polygon_edit_encode writes it. Immutable and counted.
 */
struct feed_content {
    uint32_t refs; /* atomic */
    bool is_polygons;
    size_t length;
    _Alignas(8) char bytes[];
};

/* A copy of the bytes, of one reference; NULL: without memory, or over FEED_CONTENT_BYTES_MAX. */
struct feed_content *feed_content_create(const void *bytes, size_t length, bool is_polygons);
void feed_content_unref(struct feed_content *content); /* NULL is fine */

/* The source of an event that skips revisions: subscribers have to read the locale again. */
#define FEED_RESYNC "snapshot"

struct feed_event {
    uint64_t sequence; /* over all locales, from 1, without gaps */
    uint64_t revision; /* of the locale */
    char locale[WORLD_ID_MAX + 1];
    char layer[WORLD_ID_MAX + 1];     /* "": it concerns all layers, or none */
    char source[FEED_SOURCE_MAX + 1]; /* edit, brush, polygons, layer, manifest, delete */
    bool has_rect;                    /* samples of a heightfield that may have changed */
    struct sample_rect rect;
    bool has_bounds; /* contains every changed point of the surface, before and after */
    struct box3 bounds;
    bool has_area;  /* x and y of bounds contain every changed sample, also without has_bounds */
    bool has_range; /* the least and greatest sample of the layer may be others now: */
    float range[2]; /* the present ones (least > greatest: there is none), or NaN: not known */
    struct feed_content *content; /* NULL: none, or not held */
    bool is_resync; /* the locale was replaced as a whole, perhaps by an earlier revision */
};

struct feed;

/* NULL and ERR_NO_MEMORY. */
struct feed *feed_create(size_t events_max, struct err *err);
void feed_destroy(struct feed *feed); /* NULL is fine */

/*
 * Between begin and end the writer publishes a snapshot and appends its changes; readers of the
 * feed wait meanwhile, for microseconds. So a thread that has seen a revision finds its event, and
 * no event is found before its revision can be seen. Writer.
 */
void feed_begin(struct feed *feed);
void feed_end(struct feed *feed);

/*
 * The event's sequence is above the last one's: by one, or else a gap is noted. It gets a reference
 * to its content; contents of the oldest events are dropped when all together have more than
 * FEED_HELD_BYTES_MAX. Between begin and end. Writer.
 */
void feed_append(struct feed *feed, const struct feed_event *event);

/* Sequence of the last event, 0 when there is none yet. Any thread, no lock. */
uint64_t feed_last(const struct feed *feed);

/*
 * Copies events with a sequence above *after, oldest first, of one locale (NULL: of all), at most
 * `max`, and sets *after to the last sequence that was examined. Returns their number. The copies
 * have no content.
 * False in *held: some of the events after *after have been overwritten; nothing was copied. Any
 * thread.
 */
size_t feed_read(struct feed *feed, const char *locale, uint64_t *after, struct feed_event *out,
                 size_t max, bool *held);

/* A new reference to the content of the event of that sequence; NULL: there is none, or none any
 * more. Any thread. */
struct feed_content *feed_content_of(struct feed *feed, uint64_t sequence);

/*
 * Where to begin for a reader that knows `revision` of a locale, which now is at `current`: the
 * sequence after which all later events of it come. False when some were overwritten, when revision
 * is above current, or when the locale was replaced since. Any thread.
 */
bool feed_find(struct feed *feed, const char *locale, uint64_t revision, uint64_t current,
               uint64_t *after);

#endif
