/*
 * A group commit: groups of changes that share one transaction. Private to world/write/.
 *
 * With a shared log (commit_shared.c) the rows are written after the append to it, and a group
 * commit may be made in several rounds; all else is the same.
 */
#ifndef KOTA_WORLD_GROUP_COMMIT_H
#define KOTA_WORLD_GROUP_COMMIT_H

#include "world/world_data.h"

struct group_commit {
    struct world *world;
    struct draft draft;
    struct change_group *groups[COMMIT_GROUPS_MAX];
    size_t count;
    bool is_begun;    /* the store's transaction */
    bool is_shared;   /* rows are written after the append */
    bool was_updated; /* from the log, because groups were refused */
    struct err err;   /* of the whole commit */
};

/* Makes one more group, which it takes, against the draft. Where nothing is shared its rows are
 * written into the store's transaction. */
void commit_add(struct group_commit *commit, struct change_group *group);

/* Has the group rows for the store? */
bool commit_group_is_durable(const struct change_group *group);

/* Ends the transaction, publishes the draft, answers and frees the groups. */
void commit_finish(struct group_commit *commit);

/* ---- commit_shared.c ------------------------------------------------------------------------- */

/* As group_commit_run, with a shared log. */
void commit_shared_run(struct world *world, struct change_group *groups);

/* The store has failed, perhaps after the append: sets the error for the clients. */
void commit_shared_failed(struct group_commit *commit);

/* Notes the position in the log after the end of the transaction. */
void commit_shared_settle(struct group_commit *commit);

#endif
