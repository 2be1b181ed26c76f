/*
 * The moves of layers: the last pose of each layer that was moved, in the order of the moves.
 *
 * It stands beside the change feed (feed.h): poses are a state and no history, so a reader who is
 * slow misses poses that are past and never the last one, and nothing is held for it. The writer
 * notes; any thread reads copies under a short lock, never on the way of a query.
 */
#ifndef KOTA_WORLD_MOVES_H
#define KOTA_WORLD_MOVES_H

#include "base/err.h"
#include "terrain/motion.h"
#include "world/layer.h"

struct move_event {
    uint64_t sequence; /* over all locales, rising; of this process */
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    uint64_t transform_seq; /* of the locale */
    struct pose pose;
};

struct moves;

/* NULL and ERR_NO_MEMORY. */
struct moves *moves_create(struct err *err);
void moves_destroy(struct moves *moves); /* NULL is fine */

/* Room for a layer's event, so that moves_note cannot fail. Writer. */
enum err_code moves_reserve(struct moves *moves, const char *locale, const char *layer,
                            struct err *err);

/* The layer has that pose now. Its room was made. Writer. */
void moves_note(struct moves *moves, const char *locale, const char *layer, uint64_t transform_seq,
                const struct pose *pose);

/* The layer, with NULL each of the locale, has no pose any more. Writer. */
void moves_forget(struct moves *moves, const char *locale, const char *layer);

/* Sequence of the last move, 0 when there is none. Any thread, no lock. */
uint64_t moves_last(const struct moves *moves);

/*
 * Copies moves with a sequence above *after that are still the last of their layer, oldest first,
 * of one locale (NULL: of all), at most `max`, and moves *after behind what was looked at. How
 * many. Any thread.
 */
size_t moves_read(struct moves *moves, const char *locale, uint64_t *after, struct move_event *out,
                  size_t max);

/* ---- what is left to do for the writer, on its thread -------------------------------------------
 */

/* When the next layer is to be at rest, or the next pose is to be kept; INFINITY: none. */
double moves_rest_due_s(const struct moves *moves);
double moves_keep_due_s(const struct moves *moves);

/* The layer goes on until now_s; its pose is to be kept (where keep) within a bounded time. */
void moves_touch(struct moves *moves, const char *locale, const char *layer, double now_s,
                 bool keep);

/* The event of one layer whose rest is due by then, which is then not told again; NULL: none. */
const struct move_event *moves_take_rest(struct moves *moves, double now_s);

/* That layer could not be told to rest: its event comes again in a while. */
void moves_rest_later(struct moves *moves, const struct move_event *event, double now_s);

/* The next one whose pose is to be kept, from *at = 0 on; with all also those that were. NULL. */
const struct move_event *moves_next_kept(const struct moves *moves, bool all, size_t *at);

/* All of them have been kept; or will be tried again in a while. */
void moves_kept(struct moves *moves);
void moves_keep_later(struct moves *moves, double now_s);

#endif
