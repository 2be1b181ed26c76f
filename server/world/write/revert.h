/*
 * Earlier edits of a heightfield taken back: what each sample was before them, by the history
 * (docs/internals/history.md).
 *
 * Of each sample, of the edits after a revision: those by the author are to be reverted, those by
 * others stay. Where another one is later than one of the author's, the sample is a conflict.
 *   keep       a sample whose last edit is the author's becomes what it was before the author's
 *              edits since the last one by others; a sample whose last edit is another's stays
 *   overwrite  each sample that the author edited becomes what it was before his first edit
 * Without an author all edits are to be reverted, and there are no conflicts.
 */
#ifndef KOTA_WORLD_REVERT_H
#define KOTA_WORLD_REVERT_H

#include "store/store.h"
#include "terrain/field/edit.h"

struct revert_question {
    char locale[STORE_ID_MAX + 1];
    char layer[STORE_ID_MAX + 1]; /* a heightfield's */
    bool names_layer; /* it was asked for: revisions of other layers are not in question */
    bool has_rect, has_author;
    struct sample_rect rect;
    char author[STORE_AUTHOR_MAX + 1];
    uint64_t since; /* revisions after it */
    bool overwrites;
    uint64_t samples_max; /* of the edit that reverts */
};

struct revert_plan;
struct world;

/* NULL and ERR_NO_MEMORY. The heightfield has that grid. A change takes it (world_drop). */
struct revert_plan *revert_plan_create(const struct revert_question *question,
                                       const struct heightfield_spec *spec, struct err *err);

/* Of a revert that another node has made: bit i of its rectangle's samples, malloc and taken, also
 * on an error. Only for revert_plan_changed. NULL and ERR_NO_MEMORY. */
struct revert_plan *revert_plan_logged(uint8_t *changed, struct err *err);

const struct revert_question *revert_plan_question(const struct revert_plan *plan);
/* Is the grid still the one that the plan was made for? */
bool revert_plan_is_of(const struct revert_plan *plan, const struct heightfield_spec *spec);

/*
 * Reads the history up to a revision, from where the last call ended.
 * ERR_GONE       not all of it is held
 * ERR_TOO_LARGE  the edits touch more than samples_max samples
 * ERR_DAMAGED, ERR_NO_MEMORY
 */
enum err_code revert_plan_read(struct revert_plan *plan, struct world *world, uint64_t upto,
                               bool is_writer, struct err *err);

/*
 * The edit that reverts, on the layer's field as it is: *out stays empty (heights_m NULL) where
 * there is nothing to revert. ERR_TOO_LARGE, ERR_NO_MEMORY
 */
enum err_code revert_plan_make(struct revert_plan *plan, const struct heightfield *field,
                               struct edit_outcome *out, struct err *err);

/* After revert_plan_make: bit i of the rectangle's samples is set where they are reverted. */
const uint8_t *revert_plan_changed(const struct revert_plan *plan);

/*
 * The conflicts: runs of samples along rows, by row; of more than REVERT_RUNS_MAX the bounds of
 * those in each square of 64 × 64 samples.
 */
enum { REVERT_RUNS_MAX = 8192 };
void revert_plan_conflicts(const struct revert_plan *plan,
                           void (*take)(void *context, const struct sample_rect *run),
                           void *context);

/* The revisions that are not reverted, rising: they changed more than samples, or a later one
 * replaced the layer as a whole. */
const uint64_t *revert_plan_left(const struct revert_plan *plan, size_t *count);

#endif
