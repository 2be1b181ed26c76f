/*
 * Fates of impacts: a list of those that are pending, and a ring of those that are written.
 *
 * There are few pending ones (bodies of living patches), so they are searched one by one; the ring
 * is searched from its newest end. Waiting callers are called without the mutex.
 */
#include "sand/impact/fates.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct waiter {
    struct waiter *next;
    fates_done done;
    void *context;
};

struct pending {
    struct pending *next;
    struct fate fate;
    struct waiter *waiters;
};

struct fates {
    pthread_mutex_t mutex;
    struct pending *pending;
    struct fate *written; /* [IMPACTS_KEPT], a ring */
    uint64_t written_count;
    struct fates_stats stats;
};

struct fates *fates_create(struct err *err)
{
    struct fates *fates = calloc(1, sizeof *fates);

    if (fates)
        fates->written = calloc(IMPACTS_KEPT, sizeof *fates->written);
    if (!fates || !fates->written) {
        free(fates);
        err_set(err, ERR_NO_MEMORY, "no memory for the fates of impacts");
        return NULL;
    }
    pthread_mutex_init(&fates->mutex, NULL);
    return fates;
}

void fates_destroy(struct fates *fates)
{
    if (!fates)
        return;
    while (fates->pending) {
        struct pending *next = fates->pending->next;

        while (fates->pending->waiters) {
            struct waiter *waiter = fates->pending->waiters;

            fates->pending->waiters = waiter->next;
            free(waiter);
        }
        free(fates->pending);
        fates->pending = next;
    }
    free(fates->written);
    pthread_mutex_destroy(&fates->mutex);
    free(fates);
}

static bool is_it(const struct fate *fate, const char *locale, uint64_t number)
{
    return fate->number == number && strcmp(fate->locale, locale) == 0;
}

/* The mutex is held, here and below. The link that leads to it, to NULL when there is none. */
static struct pending **find_pending(struct fates *fates, const char *locale, uint64_t number)
{
    struct pending **at = &fates->pending;

    while (*at && !is_it(&(*at)->fate, locale, number))
        at = &(*at)->next;
    return at;
}

static void keep(struct fates *fates, const struct fate *fate)
{
    fates->written[fates->written_count++ % IMPACTS_KEPT] = *fate;
    if (fate->is_refined)
        fates->stats.refined++;
    else
        fates->stats.craters++;
}

enum err_code fates_add(struct fates *fates, const struct fate *fate, struct err *err)
{
    struct pending *pending = fate->is_written ? NULL : calloc(1, sizeof *pending);

    err->code = ERR_OK;
    if (!fate->is_written && !pending)
        return err_set(err, ERR_NO_MEMORY, "no memory for an impact");
    pthread_mutex_lock(&fates->mutex);
    if (pending) {
        pending->fate = *fate;
        pending->next = fates->pending;
        fates->pending = pending;
        fates->stats.pending++;
    } else {
        keep(fates, fate);
    }
    pthread_mutex_unlock(&fates->mutex);
    return ERR_OK;
}

bool fates_find(struct fates *fates, const char *locale, uint64_t number, struct fate *out)
{
    const struct fate *found = NULL;
    struct pending *pending;

    pthread_mutex_lock(&fates->mutex);
    pending = *find_pending(fates, locale, number);
    if (pending)
        found = &pending->fate;
    for (uint64_t i = 0; !found && i < fates->written_count && i < IMPACTS_KEPT; i++) {
        const struct fate *fate = &fates->written[(fates->written_count - 1 - i) % IMPACTS_KEPT];

        if (is_it(fate, locale, number))
            found = fate;
    }
    if (found)
        *out = *found;
    pthread_mutex_unlock(&fates->mutex);
    return found != NULL;
}

void fates_set_patch(struct fates *fates, const char *locale, uint64_t number, uint64_t patch)
{
    struct pending *pending;

    pthread_mutex_lock(&fates->mutex);
    pending = *find_pending(fates, locale, number);
    if (pending)
        pending->fate.patch = patch;
    pthread_mutex_unlock(&fates->mutex);
}

void fates_end(struct fates *fates, const char *locale, uint64_t number, uint64_t patch,
               uint64_t revision, const char *reason)
{
    struct pending **at, *pending;

    pthread_mutex_lock(&fates->mutex);
    at = find_pending(fates, locale, number);
    pending = *at;
    if (pending) {
        struct fate *fate = &pending->fate;

        *at = pending->next;
        fates->stats.pending--;
        fate->is_written = true;
        fate->is_refined = revision > 0;
        fate->patch = revision > 0 ? patch : 0;
        if (revision > 0)
            fate->revision = revision;
        snprintf(fate->reason, sizeof fate->reason, "%s", revision > 0 ? "" : reason);
        keep(fates, fate);
    }
    pthread_mutex_unlock(&fates->mutex);
    while (pending && pending->waiters) {
        struct waiter *waiter = pending->waiters;

        pending->waiters = waiter->next;
        waiter->done(waiter->context, &pending->fate);
        free(waiter);
    }
    free(pending);
}

bool fates_wait(struct fates *fates, const char *locale, uint64_t number, fates_done done,
                void *context)
{
    struct waiter *waiter = malloc(sizeof *waiter);
    struct pending *pending = NULL;

    pthread_mutex_lock(&fates->mutex);
    if (waiter)
        pending = *find_pending(fates, locale, number);
    if (pending) {
        *waiter = (struct waiter){pending->waiters, done, context};
        pending->waiters = waiter;
    }
    pthread_mutex_unlock(&fates->mutex);
    if (!pending)
        free(waiter);
    return pending != NULL;
}

void fates_stats(struct fates *fates, struct fates_stats *out)
{
    pthread_mutex_lock(&fates->mutex);
    *out = fates->stats;
    pthread_mutex_unlock(&fates->mutex);
}
