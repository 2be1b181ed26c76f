/*
 * Watches: standing questions about one locale, and the readers of their answers.
 *
 * A thread of its own, which sleeps while nothing is published, asks after each publication those
 * items again that it can have changed. Streams read the answers that are new to them. A watch ends
 * when it has had no reader for a while, with its locale, or when it is deleted.
 */
#ifndef KOTA_API_WATCHES_H
#define KOTA_API_WATCHES_H

#include "api/feed/watch_set.h"

struct watches;
struct watch;

enum { WATCH_NAME_CHARS = 32 }; /* random, of [0-9a-f] */

struct watches_stats {
    uint64_t watches, items; /* now */
    uint64_t asked;          /* items asked again after a change, since the start */
    uint64_t changed;        /* of them, those whose answer was another one */
};

/* Borrows the api, whose world and server it uses. NULL and ERR_NO_MEMORY. */
struct watches *watches_create(struct api *api, struct err *err);
/* Ends their thread, before the world ends. */
void watches_stop(struct watches *watches);
/* After the server has ended. NULL is fine. */
void watches_destroy(struct watches *watches);

/* Something was published. Any thread; does not wait for a question. */
void watches_wake(struct watches *watches);
void watches_stats(struct watches *watches, struct watches_stats *out);

/* How much more all watches may have. */
size_t watches_room(struct watches *watches);

/*
 * A new watch with the questions of `set`, which it takes, also on error; at the call's snapshot. A
 * reference, or NULL and the errors of watch_set_ask, ERR_BUSY (the limits of /v1/limits),
 * ERR_BAD_INPUT (an id is given twice). On a worker.
 */
struct watch *watches_add(struct call *call, struct watch_set *set, struct err *err);

/* The watch of that name: a reference; NULL: there is none, or none that the claims may know. */
struct watch *watches_find(struct watches *watches, const char *name, size_t length,
                           const struct claims *claims);
void watch_unref(struct watch *watch);

/*
 * Removes items by their ids, then adds those of `set`, which is taken, also on error; one with an
 * id that is there replaces that. All or nothing. ERR_NOT_FOUND: the watch has ended. On a worker.
 */
enum err_code watch_change(struct watches *watches, struct watch *watch, struct watch_set *set,
                           char (*removed)[WATCH_ID_BYTES], size_t removed_count, struct err *err);

/* The members watch, locale, revision, items of an open object. */
void watch_encode(struct json_writer *w, struct watch *watch);
const char *watch_name(const struct watch *watch);

/* Ends it, and its streams. */
void watches_end(struct watches *watches, struct watch *watch);

/* One reader more or, with -1, less. */
void watch_follow(struct watches *watches, struct watch *watch, int readers);

/* Writes what changed after *seen, as far as there is room, or ends the stream. Loop's thread. */
void watch_pull(struct watch *watch, uint64_t *seen, struct http_stream *stream);

#endif
