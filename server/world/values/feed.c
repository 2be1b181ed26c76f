/*
 * The change feed: see feed.h.
 *
 * Events are in a ring in the order of their sequences. A reader's position is a sequence, found
 * again by binary search, so the feed has no state of readers. A ring that is filled from a log may
 * have gaps, where rows have been trimmed: then a reader of one locale is served as long as that
 * locale's revisions have none, and a reader of all locales only from after the last gap.
 *
 * The lock is held for a search and for copying some events. Only the feed's readers take it, never
 * a query; an atomic counter shows without it whether there are new events.
 *
 * Contents are in the events, which share them with their readers. The bytes of all contents are
 * bounded by dropping the oldest ones.
 *
 * Invariants: sequences grow; `count` never shrinks, event p is at p % capacity while
 * p >= count - held; dropped is the greatest sequence that has left the ring, gap the greatest one
 * that was never in it although greater ones are.
 */
#include "world/values/feed.h"

#include "base/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct feed {
    _Atomic uint64_t last;
    pthread_mutex_t mutex; /* guards the members below */
    size_t capacity;
    uint64_t count; /* appended ever */
    size_t held;
    uint64_t dropped, gap;
    uint64_t content_from; /* no event before this position has content */
    uint64_t content_bytes;
    struct feed_event events[];
};

struct feed *feed_create(size_t events_max, struct err *err)
{
    struct feed *feed;

    CHECK(events_max > 0);
    feed = calloc(1, sizeof *feed + events_max * sizeof feed->events[0]);
    if (!feed) {
        err_set(err, ERR_NO_MEMORY, "no memory for a feed of %zu events", events_max);
        return NULL;
    }
    pthread_mutex_init(&feed->mutex, NULL);
    feed->capacity = events_max;
    return feed;
}

static struct feed_event *event_at(struct feed *feed, uint64_t position)
{
    return &feed->events[position % feed->capacity];
}

/* The content of the oldest event that may have one. */
static void drop_content(struct feed *feed)
{
    struct feed_event *event = event_at(feed, feed->content_from++);

    if (event->content)
        feed->content_bytes -= event->content->length;
    feed_content_unref(event->content);
    event->content = NULL;
}

struct feed_content *feed_content_create(const void *bytes, size_t length, bool is_polygons)
{
    struct feed_content *content =
        length <= FEED_CONTENT_BYTES_MAX ? malloc(sizeof *content + length) : NULL;

    if (!content)
        return NULL;
    *content = (struct feed_content){.refs = 1, .is_polygons = is_polygons, .length = length};
    memcpy(content->bytes, bytes, length);
    return content;
}

void feed_content_unref(struct feed_content *content)
{
    if (content && __atomic_fetch_sub(&content->refs, 1, __ATOMIC_ACQ_REL) == 1)
        free(content);
}

void feed_destroy(struct feed *feed)
{
    if (!feed)
        return;
    while (feed->content_from < feed->count)
        drop_content(feed);
    pthread_mutex_destroy(&feed->mutex);
    free(feed);
}

void feed_begin(struct feed *feed)
{
    pthread_mutex_lock(&feed->mutex);
}

void feed_end(struct feed *feed)
{
    pthread_mutex_unlock(&feed->mutex);
}

void feed_append(struct feed *feed, const struct feed_event *event)
{
    uint64_t last = atomic_load_explicit(&feed->last, memory_order_relaxed);

    CHECK(event->sequence > last);
    if (event->sequence != last + 1)
        feed->gap = event->sequence - 1;
    if (feed->content_from + feed->capacity == feed->count)
        drop_content(feed);
    if (feed->held == feed->capacity)
        feed->dropped = event_at(feed, feed->count)->sequence;
    else
        feed->held++;
    *event_at(feed, feed->count++) = *event;
    if (event->content) {
        __atomic_fetch_add(&event->content->refs, 1, __ATOMIC_RELAXED);
        feed->content_bytes += event->content->length;
    }
    while (feed->content_bytes > FEED_HELD_BYTES_MAX)
        drop_content(feed);
    atomic_store_explicit(&feed->last, event->sequence, memory_order_release);
}

uint64_t feed_last(const struct feed *feed)
{
    return atomic_load_explicit(&feed->last, memory_order_acquire);
}

/* Position of the first held event with a sequence above `after`; count when there is none. */
static uint64_t first_above(struct feed *feed, uint64_t after)
{
    uint64_t low = feed->count - feed->held, high = feed->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (event_at(feed, middle)->sequence <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t feed_read(struct feed *feed, const char *locale, uint64_t *after, struct feed_event *out,
                 size_t max, bool *held)
{
    size_t copied = 0;

    *held = true;
    pthread_mutex_lock(&feed->mutex);
    if (*after < feed->dropped || (!locale && *after < feed->gap)) {
        *held = false;
    } else {
        for (uint64_t at = first_above(feed, *after); at < feed->count && copied < max; at++) {
            const struct feed_event *event = event_at(feed, at);

            *after = event->sequence;
            if (locale && strcmp(event->locale, locale) != 0)
                continue;
            out[copied] = *event;
            out[copied++].content = NULL;
        }
    }
    pthread_mutex_unlock(&feed->mutex);
    return copied;
}

struct feed_content *feed_content_of(struct feed *feed, uint64_t sequence)
{
    struct feed_content *content = NULL;
    uint64_t at;

    pthread_mutex_lock(&feed->mutex);
    at = first_above(feed, sequence - 1);
    if (at < feed->count && event_at(feed, at)->sequence == sequence)
        content = event_at(feed, at)->content;
    if (content)
        __atomic_fetch_add(&content->refs, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&feed->mutex);
    return content;
}

/* The same under the lock: from the newest back to the last one that the reader has. */
static bool find(struct feed *feed, const char *locale, uint64_t revision, uint64_t current,
                 uint64_t *after)
{
    uint64_t oldest = feed->count - feed->held;
    const struct feed_event *next = NULL; /* the oldest one so far that the reader does not have */

    for (uint64_t at = feed->count; at-- > oldest;) {
        const struct feed_event *event = event_at(feed, at);

        if (strcmp(event->locale, locale) != 0)
            continue;
        if (event->is_resync && event->revision != revision)
            return false;
        if (event->is_resync || event->revision <= revision)
            break;
        next = event;
    }
    if (!next) {
        *after = atomic_load_explicit(&feed->last, memory_order_relaxed);
        return revision == current;
    }
    *after = next->sequence - 1;
    return next->revision == revision + 1;
}

bool feed_find(struct feed *feed, const char *locale, uint64_t revision, uint64_t current,
               uint64_t *after)
{
    bool found;

    if (revision > current)
        return false;
    pthread_mutex_lock(&feed->mutex);
    found = find(feed, locale, revision, current, after);
    pthread_mutex_unlock(&feed->mutex);
    return found;
}
