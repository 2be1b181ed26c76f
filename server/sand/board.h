/*
 * The board: the newest report of each patch, written by the sand thread, read by all others. Its
 * lock is held for a copy of pointers and no longer.
 */
#ifndef KOTA_SAND_BOARD_H
#define KOTA_SAND_BOARD_H

#include "sand/patch.h"

#include <pthread.h>

struct board {
    pthread_mutex_t mutex;
    struct patch_report **reports; /* by number */
    size_t count, room;
};

void board_init(struct board *board);
void board_finish(struct board *board);

/* Puts a report (taken) in the place of the patch's former one. Without memory it is dropped. */
void board_put(struct board *board, struct patch_report *report);
void board_forget(struct board *board, uint64_t number);

/* A reference, or NULL: no such patch of this locale. */
struct patch_report *board_find(struct board *board, const char *locale, uint64_t number);
/* References on all of a locale; malloc. NULL without memory. */
struct patch_report **board_list(struct board *board, const char *locale, size_t *count);

#endif
