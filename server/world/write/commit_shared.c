/*
 * Group commit with a log that several daemons share (follow.h).
 *
 * A group commit is durable when the log has it. The order is: all results in memory; BEGIN in the
 * store, so that a store that refuses to write refuses before other nodes see anything; append to
 * the log; rows and COMMIT in the store, together with the position in the log; publish.
 *
 * Another node may append first. Then nothing was appended, and all is made again on top of that
 * node's entries. After LOST_MAX lost rounds the locales are locked in the log, so that no node
 * starves.
 *
 * Where a kill -9 may fall, and its effect:
 *   kill -9 falls               in the log    in the store   after a restart
 *   before the log's commit     nothing       nothing        nothing was made
 *   after it, before the        the entries   nothing,       the entries are followed like those of
 *   store's commit                            not applied    other nodes
 *   after the store's commit,   the entries   the rows,      the load publishes them; nothing is
 *   before publish                            applied        applied twice
 *
 * In none of the three had the client an answer; under its key it gets the first one.
 *
 * When the answer to an append is lost, the log is searched for its op_ids (cluster.h). If that
 * fails, too, the client's answer says that the outcome is unknown, nothing is written here, and
 * following the log finds out.
 *
 * The store finds repeats by rows, and the rows come after the append. So a commit ends before the
 * second change with the same key, and before a revert, which reads rows of the history.
 */
#include "world/write/group_commit.h"

#include "world/follow/follow.h"
#include "world/follow/record.h"
#include "world/write/kinds/kind.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOST_MAX = 3,  /* rounds lost before the locales are locked */
    ROUNDS_MAX = 8 /* then the client may try again */
};

/* ---- the end --------------------------------------------------------------------------------- */

void commit_shared_failed(struct group_commit *commit)
{
    struct follow *follow = commit->world->follow;
    struct err why = commit->err;

    if (follow->sent_count == 0)
        return;
    follow->has_news = true; /* following the log brings it, here and on the other nodes */
    err_set(&commit->err, ERR_UNAVAILABLE,
            "the change is in the shared log, and this node cannot write it down now (%.160s): ask "
            "again under the same Idempotency-Key",
            why.msg);
    err_log_only(&commit->err, "%s", why.log_only);
}

void commit_shared_settle(struct group_commit *commit)
{
    if (commit->is_begun && commit->err.code == ERR_OK)
        follow_applied(commit->world);
    else
        follow_dropped(commit->world);
}

/* ---- one round ------------------------------------------------------------------------------- */

/* Drops all results, for another round. */
static void reset(struct group_commit *commit)
{
    draft_end(&commit->draft);
    for (size_t i = 0; i < commit->count; i++) {
        struct change_group *group = commit->groups[i];

        for (size_t k = 0; group->results && k < group->count; k++)
            result_finish(&group->results[k]);
        free(group->results);
        group->results = NULL;
    }
    commit->err.code = ERR_OK;
    draft_begin(&commit->draft, commit->world);
}

static void make_all(struct group_commit *commit)
{
    size_t count = commit->count;

    commit->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct change_group *group = commit->groups[i];

        if (group->is_refused) {
            group->is_on_draft = false;
            commit->count++;
        } else {
            commit_add(commit, group);
        }
    }
}

static bool has_rows(const struct group_commit *commit)
{
    for (size_t i = 0; i < commit->count; i++)
        if (commit->groups[i]->err.code == ERR_OK && commit_group_is_durable(commit->groups[i]))
            return true;
    return false;
}

static size_t count_changes(const struct group_commit *commit)
{
    size_t all = 0;

    for (size_t i = 0; i < commit->count; i++)
        all += commit->groups[i]->count;
    return all;
}

/* The results that the log takes, and the index of the group of each; NULL without memory (the
 * commit's err). Both are to be freed. */
static const struct change_result **results_for_log(struct group_commit *commit, size_t **groups,
                                                    size_t *count)
{
    size_t all = count_changes(commit);
    const struct change_result **results = calloc(all + 1, sizeof *results);

    *groups = calloc(all + 1, sizeof **groups);
    *count = 0;
    if (!results || !*groups) {
        err_set(&commit->err, ERR_NO_MEMORY, "no memory for the shared log");
        free(results);
        return NULL;
    }
    for (size_t i = 0; i < commit->count; i++) {
        const struct change_group *group = commit->groups[i];

        for (size_t k = 0; group->err.code == ERR_OK && k < group->count; k++)
            if (record_takes(&group->results[k])) {
                (*groups)[*count] = i;
                results[(*count)++] = &group->results[k];
            }
    }
    return results;
}

/* The rows of all results, in the open transaction. */
static void persist_all(struct group_commit *commit)
{
    struct world *world = commit->world;
    struct err *err = &commit->err;

    for (size_t i = 0; i < commit->count; i++) {
        const struct change_group *group = commit->groups[i];

        for (size_t k = 0; group->err.code == ERR_OK && k < group->count; k++)
            if (result_is_durable(&group->results[k]) &&
                persist_result(world->store, &group->results[k], err))
                return;
    }
    follow_persist(world, err);
}

/* Ends the transaction, into which nothing was written. */
static void end_unused(struct group_commit *commit)
{
    struct err err = {.code = ERR_OK};

    if (commit->is_begun)
        store_commit(commit->world->store, &err);
    commit->is_begun = false;
}

/* Was it refused for a state that another node may have changed? */
static bool may_be_outdated(const struct change_group *group)
{
    enum err_code code = group->err.code;

    return !group->is_refused && (err_http_status(code) == 404 || code == ERR_CONFLICT ||
                                  code == ERR_PRECONDITION_FAILED);
}

static bool has_fork(const struct change_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->changes[i].kind == WORLD_FORK)
            return true;
    return false;
}

/*
 * A group may have been refused for a state that another node has changed and acknowledged, or
 * have made a fork of one. So before such an answer is given, all entries of the log are applied,
 * and all is made again, once. True: it is to be made again.
 */
static bool update_refused(struct group_commit *commit)
{
    struct world *world = commit->world;
    struct err err = {.code = ERR_OK};
    bool is_wanted = false;

    for (size_t i = 0; i < commit->count; i++)
        is_wanted |= may_be_outdated(commit->groups[i]) || has_fork(commit->groups[i]);
    if (!is_wanted || commit->was_updated || cluster_is_away(world->follow->log))
        return false;
    commit->was_updated = true;
    reset(commit);
    draft_end(&commit->draft); /* of the state before; following must be the only writer */
    follow_all(world, &err);   /* where that fails, the answer is of the state here */
    draft_begin(&commit->draft, world);
    return true;
}

/*
 * One round: makes all, appends, writes. False: another round may succeed, because another node
 * has appended first, or because the log has refused one group.
 */
static bool share_once(struct group_commit *commit)
{
    struct world *world = commit->world;
    struct err *err = &commit->err;
    const struct change_result **results;
    size_t *groups, count, at = 0;
    enum err_code code = ERR_OK;

    make_all(commit);
    if (commit->err.code == ERR_OK && update_refused(commit))
        make_all(commit);
    if (!has_rows(commit))
        return true;
    results = results_for_log(commit, &groups, &count);
    if (!results || store_begin(world->store, err)) {
        free(results);
        free(groups);
        return true;
    }
    commit->is_begun = true;
    if (count > 0)
        code = follow_append(world, results, count, &at, err);
    if (code == ERR_PRECONDITION_FAILED) {
        struct change_group *group = commit->groups[groups[at]];

        group->err = *err;
        group->is_refused = true;
    }
    free(results);
    free(groups);
    if (code == ERR_OK)
        persist_all(commit);
    else
        end_unused(commit);
    return code != ERR_CONFLICT && code != ERR_PRECONDITION_FAILED;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Locks the locales of the commit in the log until it appends. */
static enum err_code lock_locales(struct group_commit *commit)
{
    char(*locales)[CLUSTER_ID_MAX + 1] = calloc(count_changes(commit), sizeof *locales);
    size_t count = 0;
    enum err_code code;

    if (!locales)
        return err_set(&commit->err, ERR_NO_MEMORY, "no memory to hold locales");
    for (size_t i = 0; i < commit->count; i++)
        for (size_t k = 0; k < commit->groups[i]->count; k++) {
            const struct world_change *change = &commit->groups[i]->changes[k];
            bool is_of_model = change_kind(change->kind)->scope == CHANGE_OF_MODEL;
            const char *id = is_of_model ? RECORD_MODELS : change->locale_id;
            bool is_listed = id[0] == '\0' || change_log_number(change->kind) == 0;

            for (size_t n = 0; n < count && !is_listed; n++)
                is_listed = strcmp(locales[n], id) == 0;
            if (!is_listed)
                memcpy(locales[count++], id, strlen(id) + 1);
        }
    code = cluster_hold(commit->world->follow->log, (const char(*)[CLUSTER_ID_MAX + 1]) locales,
                        count, &commit->err);
    free(locales);
    return code;
}

/* Is that entry of the log applied here? */
static bool has_applied(const struct world *world, const char *locale, uint64_t number)
{
    const struct followed *f = follow_find(world->follow, locale);

    return f && f->applied >= number;
}

/*
 * Refuses a group with a key that the log has and this node does not: of a locale that is not
 * followed here, or from before a snapshot was taken. The change was made; its answer is not here.
 */
static void refuse_known_key(struct world *world, struct change_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const char *key = group->changes[i].op_id;
        char locale[CLUSTER_ID_MAX + 1];
        struct err err = {.code = ERR_OK};
        uint64_t revision;

        if (key[0] == '\0' ||
            cluster_find_op(world->follow->log, key, locale, &revision, &err) != ERR_OK ||
            (world_serves(world, locale) && !has_applied(world, locale, revision)))
            continue;
        err_set(&group->err, ERR_CONFLICT,
                "the change under this Idempotency-Key was made: it is entry %llu of the log of "
                "%s; its answer is not kept by this node",
                (unsigned long long)revision, locale);
        err_at(&group->err, "Idempotency-Key");
        group->is_refused = true;
    }
}

/*
 * Follows the log after a lost round, which was lost to another node or to an append of this one
 * whose answer was lost. After LOST_MAX rounds the locales are locked, and keys are looked up that
 * the store does not know. (A lock ends with its connection, so a round that is lost under one
 * proves nothing.)
 */
static enum err_code catch_up(struct group_commit *commit, int round, bool *is_locked)
{
    struct world *world = commit->world;

    follow_count_race(world->follow);
    if (round + 1 >= LOST_MAX && lock_locales(commit) != ERR_OK)
        return commit->err.code;
    *is_locked = round + 1 >= LOST_MAX;
    if (follow_all(world, &commit->err))
        return commit->err.code;
    for (size_t i = 0; round + 1 >= LOST_MAX && i < commit->count; i++)
        if (!commit->groups[i]->is_refused)
            refuse_known_key(world, commit->groups[i]);
    draft_end(&commit->draft);
    draft_begin(&commit->draft, world);
    return ERR_OK;
}

/*
 * Rounds until the log has taken the commit, or an error. False: it is more than one append takes,
 * and each group is to be committed by itself.
 */
static bool share(struct group_commit *commit)
{
    struct world *world = commit->world;
    bool is_locked = false;

    for (int round = 0; !share_once(commit); round++) {
        bool is_lost = commit->err.code == ERR_CONFLICT;

        if (is_lost && round >= ROUNDS_MAX) {
            err_set(&commit->err, ERR_BUSY,
                    "other nodes change the same again and again; try again in a moment");
            break;
        }
        reset(commit);
        is_locked = false; /* the append has ended it */
        if (is_lost && catch_up(commit, round, &is_locked))
            break;
    }
    if (is_locked)
        cluster_release(world->follow->log);
    return commit->err.code != ERR_TOO_LARGE || commit->count == 1 || world->follow->sent_count > 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void run_list(struct world *world, struct change_group *groups)
{
    struct group_commit commit = {.world = world, .err = {.code = ERR_OK}, .is_shared = true};

    draft_begin(&commit.draft, world);
    for (; groups; groups = groups->next) {
        groups->results = NULL;
        groups->is_refused = false;
        commit.groups[commit.count++] = groups;
    }
    if (share(&commit)) {
        commit_finish(&commit);
        return;
    }
    reset(&commit);
    draft_end(&commit.draft);
    for (size_t i = 0; i < commit.count; i++) {
        commit.groups[i]->next = NULL;
        run_list(world, commit.groups[i]);
    }
}

static bool has_key_of(const struct change_group *group, const struct change_group *other)
{
    for (size_t i = 0; i < group->count; i++)
        for (size_t k = 0; group->changes[i].op_id[0] != '\0' && k < other->count; k++)
            if (strcmp(group->changes[i].op_id, other->changes[k].op_id) == 0)
                return true;
    return false;
}

static bool reads_history(const struct change_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->changes[i].kind == WORLD_REVERT)
            return true;
    return false;
}

/* Cuts a list before the first group that needs the rows of an earlier one; returns the rest. */
static struct change_group *cut_before_rows(struct change_group *groups)
{
    for (struct change_group *last = groups; last->next; last = last->next) {
        bool is_cut = reads_history(last->next);

        for (const struct change_group *before = groups; before != last->next && !is_cut;
             before = before->next)
            is_cut = has_key_of(last->next, before);
        if (is_cut) {
            struct change_group *rest = last->next;

            last->next = NULL;
            return rest;
        }
    }
    return NULL;
}

void commit_shared_run(struct world *world, struct change_group *groups)
{
    while (groups) {
        struct change_group *rest = cut_before_rows(groups);

        run_list(world, groups);
        groups = rest;
    }
}
