/*
 * The fates of impacts: what became of each one that was acknowledged. Any thread.
 *
 * An impact is known by its locale and its number, the revision that its crater made. While
 * granules refine the crater it is pending; then it is written. Pending ones are all held; of those
 * that are written, the last IMPACTS_KEPT.
 */
#ifndef KOTA_SAND_FATES_H
#define KOTA_SAND_FATES_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum { IMPACTS_KEPT = 4096, FATE_REASON_BYTES = 320 };

struct fate {
    char locale[STORE_ID_MAX + 1], layer[STORE_ID_MAX + 1];
    uint64_t number;
    bool is_written;
    bool is_refined;   /* or is to be, by granules; else it is a crater */
    uint64_t patch;    /* of those; 0: not known */
    uint64_t revision; /* of the ground that has it: of the crater, then of the patch's edit */
    struct sample_rect rect;        /* of the crater */
    double point[3];                /* where the body met the ground */
    char reason[FATE_REASON_BYTES]; /* why there were no granules, or "" */
};

struct fates_stats {
    uint64_t craters, refined; /* written, since the start */
    uint64_t pending;
};

struct fates;

struct fates *fates_create(struct err *err); /* NULL: ERR_NO_MEMORY */
void fates_destroy(struct fates *fates);     /* NULL is fine */

/* A new impact. ERR_NO_MEMORY: it is not known from here on. */
enum err_code fates_add(struct fates *fates, const struct fate *fate, struct err *err);

/* False: it is not known (any more). */
bool fates_find(struct fates *fates, const char *locale, uint64_t number, struct fate *out);

/* A pending one is to come into a patch. */
void fates_set_patch(struct fates *fates, const char *locale, uint64_t number, uint64_t patch);

/*
 * A pending one is written. revision: of the edit with which the granules of a patch took the
 * crater's place; 0: the crater stays, for this reason.
 */
void fates_end(struct fates *fates, const char *locale, uint64_t number, uint64_t patch,
               uint64_t revision, const char *reason);

/* What came of an impact; called once, on the thread of fates_end. */
typedef void (*fates_done)(void *context, const struct fate *fate);

/*
 * Calls done when a pending impact is written. False: it is not pending, or there is no memory, and
 * done is not called.
 */
bool fates_wait(struct fates *fates, const char *locale, uint64_t number, fates_done done,
                void *context);

void fates_stats(struct fates *fates, struct fates_stats *out);

#endif
