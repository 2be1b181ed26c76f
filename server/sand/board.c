/*
 * Reports of patches for readers on other threads.
 *
 * Problem: a loop that answers GET …/patches/7 must not wait for a simulation, and the simulation
 * must not wait for readers. Approach: reports are immutable and counted; the board is an array of
 * pointers to the newest ones, under a mutex that is held to swap one or to count references.
 * A patch's reports only get newer.
 */
#include "sand/board.h"

#include <stdlib.h>
#include <string.h>

void board_init(struct board *board)
{
    *board = (struct board){.count = 0};
    pthread_mutex_init(&board->mutex, NULL);
}

void board_finish(struct board *board)
{
    for (size_t i = 0; i < board->count; i++)
        patch_report_unref(board->reports[i]);
    free(board->reports);
    pthread_mutex_destroy(&board->mutex);
}

/* Where a patch's report is or would be. */
static size_t place_of(const struct board *board, uint64_t number)
{
    size_t low = 0, high = board->count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (board->reports[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct board *board, size_t place, uint64_t number)
{
    return place < board->count && board->reports[place]->number == number;
}

/* The mutex is held. Returns what is no longer on the board. */
static struct patch_report *put(struct board *board, struct patch_report *report)
{
    const size_t place = place_of(board, report->number);
    struct patch_report *old;

    if (is_at(board, place, report->number)) {
        old = board->reports[place];
        board->reports[place] = report;
        return old;
    }
    if (board->count == board->room) {
        const size_t room = 2 * board->room + 16;
        struct patch_report **grown = realloc(board->reports, room * sizeof(struct patch_report *));

        if (!grown)
            return report;
        board->reports = grown;
        board->room = room;
    }
    memmove(board->reports + place + 1, board->reports + place,
            (board->count - place) * sizeof(struct patch_report *));
    board->reports[place] = report;
    board->count++;
    return NULL;
}

void board_put(struct board *board, struct patch_report *report)
{
    struct patch_report *old;

    pthread_mutex_lock(&board->mutex);
    old = put(board, report);
    pthread_mutex_unlock(&board->mutex);
    patch_report_unref(old);
}

void board_forget(struct board *board, uint64_t number)
{
    struct patch_report *old = NULL;
    size_t place;

    pthread_mutex_lock(&board->mutex);
    place = place_of(board, number);
    if (is_at(board, place, number)) {
        old = board->reports[place];
        board->count--;
        memmove(board->reports + place, board->reports + place + 1,
                (board->count - place) * sizeof(struct patch_report *));
    }
    pthread_mutex_unlock(&board->mutex);
    patch_report_unref(old);
}

struct patch_report *board_find(struct board *board, const char *locale, uint64_t number)
{
    struct patch_report *report = NULL;
    size_t place;

    pthread_mutex_lock(&board->mutex);
    place = place_of(board, number);
    if (is_at(board, place, number) && strcmp(board->reports[place]->locale, locale) == 0)
        report = patch_report_ref(board->reports[place]);
    pthread_mutex_unlock(&board->mutex);
    return report;
}

struct patch_report **board_list(struct board *board, const char *locale, size_t *count)
{
    struct patch_report **list;

    *count = 0;
    pthread_mutex_lock(&board->mutex);
    list = malloc((board->count + 1) * sizeof(struct patch_report *));
    for (size_t i = 0; list && i < board->count; i++)
        if (strcmp(board->reports[i]->locale, locale) == 0)
            list[(*count)++] = patch_report_ref(board->reports[i]);
    pthread_mutex_unlock(&board->mutex);
    return list;
}
