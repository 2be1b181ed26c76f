/*
 * Group commit: changes that wait together are made against one draft, made durable in one
 * transaction, published, answered.
 *
 * Problem: a commit waits for the disk for milliseconds, a change takes microseconds. Approach: all
 * groups that wait share a transaction. Each group is made against the draft that the ones before
 * it left (change.c), is refused by itself, and is answered after the one publication. When
 * anything fails between BEGIN and COMMIT, no group is acknowledged and the draft is dropped.
 *
 * Where a kill -9 may fall, and its effect:
 *   kill -9 falls                       after a restart
 *   before the store's commit           nothing was made
 *   after it, before the publication    the load publishes it; under its key a client gets the
 *                                       first answer
 *
 * With a shared log more can happen in between: commit_shared.c.
 */
#include "world/write/group_commit.h"

#include "base/check.h"
#include "base/log.h"
#include "base/clock.h"
#include "world/write/history.h"
#include "world/write/kinds/kind.h"

#include <stdlib.h>

/* ---- one group ------------------------------------------------------------------------------- */

bool commit_group_is_durable(const struct change_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (result_is_durable(&group->results[i]))
            return true;
    return false;
}

/* All results of a group in a draft of its own; on error that draft is dropped. */
static enum err_code make_results(struct draft *draft, struct change_group *group)
{
    struct err *err = &group->err;

    group->results = calloc(group->count, sizeof *group->results);
    if (!group->results)
        return err_set(err, ERR_NO_MEMORY, "no memory for a change");
    for (size_t i = 0; i < group->count; i++)
        if (change_make(draft, &group->changes[i], &group->results[i], err))
            return err->code;
    return ERR_OK;
}

static enum err_code persist(struct group_commit *commit, const struct change_group *group)
{
    struct store *store = commit->world->store;
    struct err *err = &commit->err;

    if (commit->is_shared || !commit_group_is_durable(group))
        return ERR_OK;
    for (size_t i = 0; !store && i < group->count; i++)
        if (result_is_durable(&group->results[i]) &&
            history_remember(commit->world, &group->results[i], err))
            return err->code;
    if (!store)
        return ERR_OK;
    if (!commit->is_begun && store_begin(store, err))
        return err->code;
    commit->is_begun = true;
    for (size_t i = 0; i < group->count; i++)
        if (result_is_durable(&group->results[i]) && persist_result(store, &group->results[i], err))
            return err->code;
    return ERR_OK;
}

void commit_add(struct group_commit *commit, struct change_group *group)
{
    struct draft own;

    commit->groups[commit->count++] = group;
    group->results = NULL;
    group->is_on_draft = commit->draft.is_own;
    group->is_refused = false;
    group->err.code = ERR_OK;
    if (commit->err.code != ERR_OK)
        return;
    draft_fork(&commit->draft, &own);
    if (make_results(&own, group) == ERR_OK && persist(commit, group) == ERR_OK)
        draft_join(&commit->draft, &own);
    else
        draft_end(&own);
}

/* ---- commit and publish ---------------------------------------------------------------------- */

static void end_transaction(struct group_commit *commit)
{
    struct world *world = commit->world;

    if (commit->is_begun && commit->err.code == ERR_OK)
        store_commit(world->store, &commit->err);
    else if (commit->is_begun)
        store_rollback(world->store);
    if (commit->err.code == ERR_READ_ONLY || commit->err.code == ERR_DISK_FULL) {
        if (!world->is_store_broken)
            log_error("the store takes no more changes: %s", err_for_log(&commit->err));
        world->is_store_broken = true;
    }
    if (commit->err.code != ERR_OK && commit->is_shared)
        commit_shared_failed(commit);
}

static void publish(struct group_commit *commit)
{
    struct draft *draft = &commit->draft;
    bool is_published = commit->err.code == ERR_OK && draft->is_own;

    if (is_published)
        draft_publish_begin(draft);
    if (commit->is_shared)
        commit_shared_settle(commit);
    if (!is_published)
        return;
    for (size_t i = 0; i < commit->count; i++) {
        const struct change_group *group = commit->groups[i];

        for (size_t k = 0; group->err.code == ERR_OK && k < group->count; k++)
            result_announce(commit->world, &group->results[k]);
    }
    draft_publish_end(draft);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t bucket_of(uint64_t us)
{
    size_t bucket = 0;

    while (bucket + 1 < WORLD_CHANGE_BUCKETS && us >= (uint64_t)64 << bucket)
        bucket++;
    return bucket;
}

static void count(struct world *world, const struct change_group *group, const struct err *err)
{
    struct world_stats *counted = &world->counted;
    uint64_t us = monotonic_us() - group->queued_us;
    bool is_ok = err->code == ERR_OK;

    pthread_mutex_lock(&world->mutex);
    counted->change_us_sum += us;
    counted->change_count[bucket_of(us)]++;
    if (!is_ok)
        counted->refused += group->count;
    for (size_t i = 0; i < group->count; i++) {
        const struct change_kind *kind = change_kind(group->changes[i].kind);
        const struct change_result *result = is_ok ? &group->results[i] : NULL;

        if (kind->scope != CHANGE_OF_POSE)
            counted->changes += !result || result->is_repeat || !result_makes_nothing(result);
        if (!result)
            continue;
        counted->repeats += result->is_repeat;
        if (!result->is_repeat && !result->is_nothing)
            kind->count(counted, result);
    }
    pthread_mutex_unlock(&world->mutex);
}

/* Calls back and frees the group. */
static void answer(struct world *world, struct change_group *group, const struct err *commit_err)
{
    const struct err *err = commit_err->code != ERR_OK ? commit_err : &group->err;

    /* A group's own error is reported also when the commit failed, except where the group was made
     * after changes of the same commit, which then do not exist. */
    if (group->err.code != ERR_OK && !group->is_on_draft)
        err = &group->err;
    count(world, group, err);
    for (size_t i = 0; i < group->count; i++) {
        struct world_change *change = &group->changes[i];
        struct change_result none = {.change = change};
        struct world_outcome outcome =
            result_outcome(group->results ? &group->results[i] : &none, err);

        if (change->done)
            change->done(change->context, &outcome);
        if (group->results)
            result_finish(&group->results[i]);
        world_drop(change);
    }
    if (group->done)
        group->done(group->context, err);
    free(group->results);
    free(group);
}

/* The changes that the commit has made have their lines before they are acknowledged. */
static void audit(const struct group_commit *commit)
{
    const struct world_audit *audit = &commit->world->audit;
    bool has_line = false;

    if (!audit->made || commit->err.code != ERR_OK)
        return;
    for (size_t i = 0; i < commit->count; i++) {
        const struct change_group *group = commit->groups[i];

        for (size_t k = 0; group->err.code == ERR_OK && group->results && k < group->count; k++) {
            const struct world_outcome outcome = result_outcome(&group->results[k], NULL);

            if (!group->changes[k].origin || result_makes_nothing(&group->results[k]))
                continue;
            audit->made(audit->context, &group->changes[k], &outcome);
            has_line = true;
        }
    }
    if (has_line)
        audit->flush(audit->context);
}

void commit_finish(struct group_commit *commit)
{
    end_transaction(commit);
    publish(commit);
    audit(commit);
    draft_end(&commit->draft);
    for (size_t i = 0; i < commit->count; i++)
        answer(commit->world, commit->groups[i], &commit->err);
}

void group_commit_run(struct world *world, struct change_group *groups)
{
    struct group_commit commit = {.world = world, .err = {.code = ERR_OK}};

    if (world->follow) {
        commit_shared_run(world, groups);
        return;
    }
    draft_begin(&commit.draft, world);
    while (groups) {
        struct change_group *next = groups->next;

        commit_add(&commit, groups);
        groups = next;
    }
    commit_finish(&commit);
}
