/*
 * The moves of layers: the last pose of each layer that was moved, in the order of the moves.
 *
 * It is separate from the change feed (feed.h): poses are a state and no history. A slow reader
 * misses old poses, but never the last one, and there is no state of readers. The writer adds; any
 * thread reads copies under a short lock, never during a query.
 */
#ifndef KOTA_WORLD_MOVES_H
#define KOTA_WORLD_MOVES_H

#include "base/err.h"
#include "terrain/motion.h"
#include "world/values/layer.h"

struct move_event {
    uint64_t sequence; /* over all locales, rising; of this process */
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    uint64_t transform_seq; /* of the locale */
    struct motion motion;
};

struct moves;

/* NULL and ERR_NO_MEMORY. */
struct moves *moves_create(struct err *err);
void moves_destroy(struct moves *moves); /* NULL is fine */

/* Reserves a layer's entry, so that moves_note cannot fail. Writer. */
enum err_code moves_reserve(struct moves *moves, const char *locale, const char *layer,
                            struct err *err);

/* The layer moves like that now. Its entry was reserved. Writer. */
void moves_note(struct moves *moves, const char *locale, const char *layer, uint64_t transform_seq,
                const struct motion *motion);

/* Removes the pose of the layer, with NULL those of all layers of the locale. Writer. */
void moves_forget(struct moves *moves, const char *locale, const char *layer);

/* Sequence of the last move, 0 when there is none. Any thread, no lock. */
uint64_t moves_last(const struct moves *moves);

/*
 * Copies moves with a sequence above *after that are still the last of their layer, oldest first,
 * of one locale (NULL: of all), at most `max`, and sets *after to the last sequence that was
 * examined. Returns their number. Any thread.
 */
size_t moves_read(struct moves *moves, const char *locale, uint64_t *after, struct move_event *out,
                  size_t max);

/* ---- the writer's pending work, on its thread ------------------------------------------------ */

/* When the next layer comes to rest, or the next pose is to be written; INFINITY: none. */
double moves_rest_due_s(const struct moves *moves);
double moves_write_due_s(const struct moves *moves);

/* The layer has moved at now_s; its pose is to be written (if keep) within a bounded time. */
void moves_touch(struct moves *moves, const char *locale, const char *layer, double now_s,
                 bool keep);

/* Takes the event of one layer whose rest is due by then; NULL: none. */
const struct move_event *moves_take_rest(struct moves *moves, double now_s);

/* The rest of that layer could not be published: retried in a while. */
void moves_rest_later(struct moves *moves, const struct move_event *event, double now_s);

/* The next layer whose pose is to be written, from *at = 0 on; NULL: no more. */
const struct move_event *moves_next_unwritten(const struct moves *moves, size_t *at);

/* The layer's pose is to be put into the log that daemons share. */
void moves_share(struct moves *moves, const char *locale, const char *layer, double now_s);
/* When the poses are to be put; INFINITY: none are. */
double moves_share_due_s(const struct moves *moves);
bool moves_is_unshared(const struct moves *moves, const char *locale, const char *layer);
/* The next layer whose pose is to be put, from *at = 0 on; NULL: no more. */
const struct move_event *moves_next_unshared(const struct moves *moves, size_t *at);
size_t moves_count(const struct moves *moves); /* of layers that have moved */
/* All of them have been put; or are retried in a while. */
void moves_shared(struct moves *moves);
void moves_share_later(struct moves *moves, double now_s);

/* All of them have been written; or are retried in a while. */
void moves_written(struct moves *moves);
void moves_write_later(struct moves *moves, double now_s);

#endif
