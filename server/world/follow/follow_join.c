/*
 * The identity of the log, and whether store and log agree.
 *
 * A store has the identity of its log. A store of another log, or one with a locale of its own
 * under an id that the log has, too, is refused for good: two histories of one locale cannot be
 * merged. Locales that only this store has are put into the log (adoption).
 *
 * Adoption, and where a kill -9 may fall: first the store writes that it belongs to this log and,
 * as `applied`, an op_id that begins with FOLLOW_ADOPTING for each of its locales. Then each is put
 * into the log under that op_id, and the store writes that the log has it. A start that finds such
 * an op_id in the store and no such locale in the log continues from there. When the log then has
 * another locale of that id, the start is refused; the log is not touched, and the store belongs to
 * no log again. An adopted locale is like any other one.
 *
 * After each new connection the log is compared: an engine that was replaced by an older standby
 * may have lost applied entries. The op_id at a revision shows it. A locale that differs is
 * replaced (follow_snapshot.c), and its revision may go back. Entries that the log has acknowledged
 * under a synchronous standby are never lost so.
 */
#include "world/follow/follow.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static enum err_code refuse(struct follow *follow, struct err *err)
{
    follow->has_refused = true;
    err->code = ERR_CONFLICT;
    pthread_mutex_lock(&follow->mutex);
    snprintf(follow->reported.reason, sizeof follow->reported.reason, "%s", err->msg);
    pthread_mutex_unlock(&follow->mutex);
    return ERR_CONFLICT;
}

/* The store's word for an op_id: one that begins with FOLLOW_ADOPTING is not known to the log. */
static void write_op_id(const struct followed *f, char out[CLUSTER_OP_ID_MAX + 1])
{
    memcpy(out, f->op_id, sizeof f->op_id);
    if (f->is_adopting)
        memcpy(out, FOLLOW_ADOPTING, strlen(FOLLOW_ADOPTING));
}

static bool read_op_id(const char *stored, char out[CLUSTER_OP_ID_MAX + 1])
{
    size_t length = strlen(FOLLOW_ADOPTING);
    bool is_adopting = strncmp(stored, FOLLOW_ADOPTING, length) == 0;

    memcpy(out, stored, CLUSTER_OP_ID_MAX + 1);
    if (is_adopting)
        memcpy(out, FOLLOW_ADOPTED, length);
    return is_adopting;
}

static bool is_adopted(const struct followed *f)
{
    return strncmp(f->op_id, FOLLOW_ADOPTED, strlen(FOLLOW_ADOPTED)) == 0;
}

static const struct world_snapshot *published(struct world *world)
{
    return atomic_load(&world->published);
}

/* ---- the store's rows ------------------------------------------------------------------------ */

static bool take_applied(void *context, const struct store_applied *applied, struct err *err)
{
    struct followed *f = follow_add(context, applied->locale, err);
    char op_id[CLUSTER_OP_ID_MAX + 1];
    bool is_adopting;

    if (!f)
        return false;
    is_adopting = read_op_id(applied->op_id, op_id);
    follow_set_applied(context, f, applied->revision, applied->revision, op_id);
    f->is_adopting = is_adopting;
    return true;
}

static void set_revision(struct follow *follow, struct followed *f, uint64_t revision)
{
    pthread_mutex_lock(&follow->mutex);
    f->revision = revision;
    pthread_mutex_unlock(&follow->mutex);
}

/* A locale without its row, or with one from before its revision, is compared with the log. */
static enum err_code check_locales(struct world *world, struct err *err)
{
    const struct world_snapshot *snapshot = published(world);

    for (size_t i = 0; i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot_at(snapshot, i);
        struct followed *f = follow_add(world->follow, locale->id, err);

        if (!f)
            return err->code;
        f->is_doubtful = f->applied < locale->revision;
        set_revision(world->follow, f, locale->revision);
    }
    for (size_t i = 0; i < world->follow->count; i++) {
        struct followed *f = &world->follow->at[i];
        uint64_t revision = 0;

        if (store_find_deleted(world->store, f->locale, &revision, err))
            return err->code;
        if (revision > 0)
            set_revision(world->follow, f, revision);
    }
    for (size_t i = 0; i < world->damage_count; i++) {
        const char *id = world->damages[i].locale_id;
        struct followed *f = id[0] != '\0' ? follow_add(world->follow, id, err) : NULL;

        if (f)
            f->is_doubtful = true;
    }
    return ERR_OK;
}

enum err_code follow_read_store(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;
    struct store_shared_log log;

    if (store_get_shared_log(world->store, &log, err) ||
        store_each_applied(world->store, take_applied, follow, err))
        return err->code;
    memcpy(follow->identity, log.identity, sizeof follow->identity);
    return follow->identity[0] != '\0' ? check_locales(world, err) : ERR_OK;
}

/* ---- adoption -------------------------------------------------------------------------------- */

static void make_adopted_id(char out[CLUSTER_OP_ID_MAX + 1])
{
    uint8_t random[16];
    int used = snprintf(out, CLUSTER_OP_ID_MAX + 1, "%s", FOLLOW_ADOPTED);

    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        used += snprintf(out + used, 3, "%02x", random[i]);
}

/* The log has it: from here on it is a locale like any other. */
static enum err_code confirm(struct world *world, struct followed *f, struct err *err)
{
    struct store_applied applied = {.revision = f->applied};

    if (!f->is_adopting)
        return ERR_OK;
    memcpy(applied.locale, f->locale, sizeof applied.locale);
    memcpy(applied.op_id, f->op_id, sizeof applied.op_id);
    if (store_begin(world->store, err))
        return err->code;
    if (store_put_applied(world->store, &applied, err)) {
        store_rollback(world->store);
        return err->code;
    }
    if (store_commit(world->store, err))
        return err->code;
    f->is_adopting = false;
    return ERR_OK;
}

static enum err_code adopt(struct world *world, struct followed *f, struct err *err)
{
    struct follow *follow = world->follow;
    struct record record;

    if (follow_record(world, f, &record, err))
        return err->code;
    if (follow_put_blobs(follow, &record, err) == ERR_OK)
        cluster_adopt(follow->log, f->locale, f->applied, f->op_id, record.data, record.bytes,
                      (const uint8_t(*)[CLUSTER_HASH_BYTES])record.hashes, record.blob_count, err);
    record_finish(&record);
    if (err->code != ERR_OK)
        return err->code;
    f->is_in_log = true;
    f->head = f->snapshot = f->applied;
    f->first = f->applied + 1;
    log_info("%s, revision %llu, has come into the shared log", f->locale,
             (unsigned long long)f->applied);
    return confirm(world, f, err);
}

static enum err_code own_locale(struct world *world, const char *id, uint64_t revision,
                                struct err *err)
{
    struct followed *f = follow_add(world->follow, id, err);
    char op_id[CLUSTER_OP_ID_MAX + 1];

    if (!f)
        return err->code;
    if (f->is_in_log) {
        err_set(err, ERR_CONFLICT,
                "the data directory has %s of its own, and the shared log has one, too: start "
                "with an empty --data, which is filled from the log",
                strcmp(id, RECORD_MODELS) == 0 ? "models" : id);
        return refuse(world->follow, err);
    }
    make_adopted_id(op_id);
    follow_set_applied(world->follow, f, revision, revision, op_id);
    f->is_adopting = true;
    return ERR_OK;
}

/* All that a store of no log has, deleted locales included: to be adopted. */
static enum err_code list_own(struct world *world, struct err *err)
{
    const struct world_snapshot *snapshot = published(world);

    if (world->damage_count > 0) {
        err_set(err, ERR_CONFLICT, "a damaged data directory cannot come into a shared log: %.200s",
                world->damages[0].message);
        return refuse(world->follow, err);
    }
    for (size_t i = 0; i < snapshot->locale_count; i++)
        if (own_locale(world, snapshot_at(snapshot, i)->id, snapshot_at(snapshot, i)->revision,
                       err))
            return err->code;
    for (size_t i = 0; i < world->stored_count; i++) {
        uint64_t revision = 0;

        if (store_find_deleted(world->store, world->stored[i], &revision, err) ||
            (revision > 0 && own_locale(world, world->stored[i], revision, err)))
            return err->code;
    }
    return snapshot->models && snapshot->models->count > 0
               ? own_locale(world, RECORD_MODELS, 1, err)
               : ERR_OK;
}

static enum err_code write_place(struct world *world, const char *identity, struct err *err)
{
    struct follow *follow = world->follow;
    struct store_shared_log log = {.identity = ""};

    snprintf(log.identity, sizeof log.identity, "%s", identity);
    snprintf(log.node, sizeof log.node, "%s", follow->node);
    if (store_begin(world->store, err))
        return err->code;
    if (identity[0] == '\0')
        store_leave_shared_log(world->store, err);
    else
        store_put_shared_log(world->store, &log, err);
    for (size_t i = 0; identity[0] != '\0' && err->code == ERR_OK && i < follow->count; i++) {
        struct store_applied applied = {.revision = follow->at[i].applied};

        memcpy(applied.locale, follow->at[i].locale, sizeof applied.locale);
        write_op_id(&follow->at[i], applied.op_id);
        if (applied.revision > 0)
            store_put_applied(world->store, &applied, err);
    }
    if (err->code != ERR_OK) {
        store_rollback(world->store);
        return err->code;
    }
    return store_commit(world->store, err);
}

/* Names of own locales: those that the log has, or those that it does not have. */
static void name_own(const struct follow *follow, bool is_in_log, char *out, size_t room)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < follow->count && used < room; i++)
        if (is_adopted(&follow->at[i]) && follow->at[i].is_in_log == is_in_log)
            used += (size_t)snprintf(out + used, room - used, "%s%s", used > 0 ? ", " : "",
                                     follow->at[i].locale);
    if (used == 0 || used >= room)
        snprintf(out, room, "%s", used == 0 ? "none" : "more than fit here");
}

/* Of two simultaneous adoptions the log has taken the other one. */
static enum err_code refuse_adoption(struct world *world, const struct followed *f, struct err *err)
{
    struct err own = {.code = ERR_OK};
    char there[96], here[96];

    name_own(world->follow, true, there, sizeof there);
    name_own(world->follow, false, here, sizeof here);
    err_set(err, ERR_CONFLICT,
            "another node has just brought a %s of its own into the shared log; in the log from "
            "this data directory: %s; only here: %s: keep a copy of it, then start with an empty "
            "--data",
            f->locale, there, here);
    write_place(world, "", &own);
    return refuse(world->follow, err);
}

/* Unfinished adoptions. */
static enum err_code adopt_all(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;

    for (size_t i = 0; i < follow->count; i++) {
        struct followed *f = &follow->at[i];

        if (f->is_in_log || f->applied == 0 || !is_adopted(f))
            continue;
        if (adopt(world, f, err) == ERR_CONFLICT && f->is_adopting)
            return refuse_adoption(world, f, err);
        if (err->code != ERR_OK && err->code != ERR_CONFLICT)
            return err->code;
        err->code = ERR_OK; /* the log may have another copy of an adopted one: it is compared */
    }
    return ERR_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Removes locales that the log has and the pattern excludes. */
static enum err_code forget_others(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;

    for (size_t i = 0; i < follow->count; i++) {
        struct followed *f = &follow->at[i];

        if (!f->is_served && f->applied > 0 && f->is_in_log && follow_forget(world, f, err))
            return err->code;
    }
    return ERR_OK;
}

/* Ids that files on the command line must not add again. The list has no readers yet. */
static enum err_code note_stored(struct world *world, struct err *err)
{
    const struct follow *follow = world->follow;
    char(*stored)[WORLD_ID_MAX + 1] =
        realloc(world->stored, (world->stored_count + follow->count + 1) * sizeof *stored);
    size_t count = world->stored_count; /* more are not sorted yet */

    if (!stored)
        return err_set(err, ERR_NO_MEMORY, "no memory for the locales of the shared log");
    world->stored = stored;
    for (size_t i = 0; i < follow->count; i++)
        if (follow->at[i].is_in_log && !world_is_stored(world, follow->at[i].locale))
            memcpy(stored[count++], follow->at[i].locale, sizeof *stored);
    world->stored_count = count;
    if (count > 0)
        qsort(stored, count, sizeof *stored, world_id_order);
    return ERR_OK;
}

enum err_code follow_join(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;
    char identity[33];

    if (cluster_identity(follow->log, identity, err) || follow_read_heads(follow, err))
        return err->code;
    if (follow->identity[0] != '\0' && strcmp(follow->identity, identity) != 0) {
        err_set(err, ERR_CONFLICT,
                "the data directory belongs to the shared log %s, and --cluster leads to %s: start "
                "with the --data of that log, or with an empty one",
                follow->identity, identity);
        return refuse(follow, err);
    }
    if (follow->identity[0] == '\0') {
        if (list_own(world, err) || write_place(world, identity, err))
            return err->code;
        memcpy(follow->identity, identity, sizeof follow->identity);
    }
    if (adopt_all(world, err) || forget_others(world, err) ||
        (follow->is_starting && note_stored(world, err)))
        return err->code;
    pthread_mutex_lock(&follow->mutex);
    memcpy(follow->reported.identity, identity, sizeof follow->reported.identity);
    pthread_mutex_unlock(&follow->mutex);
    follow->is_joined = true;
    log_info("node %s follows the shared log %s", follow->node, identity);
    return ERR_OK;
}

/* ---- does the log still have it? ------------------------------------------------------------- */

/* Does the log have the applied entry of a locale? */
static enum err_code compare(struct follow *follow, struct followed *f, bool *is_there,
                             struct err *err)
{
    char op_id[CLUSTER_OP_ID_MAX + 1] = "";
    uint64_t revision;
    void *bytes;
    size_t length;

    *is_there = false;
    if (f->head < f->applied)
        return ERR_OK;
    if (cluster_op_at(follow->log, f->locale, f->applied, op_id, err))
        return err->code;
    if (op_id[0] == '\0' && f->snapshot == f->applied) {
        if (cluster_get_snapshot(follow->log, f->locale, &revision, op_id, &bytes, &length, err))
            return err->code;
        free(bytes);
        if (revision != f->applied)
            op_id[0] = '\0';
    }
    *is_there = strcmp(op_id, f->op_id) == 0;
    return ERR_OK;
}

/*
 * Has the log lost every followed locale? Then it was emptied, or restored from an old backup; to
 * follow it would empty each node.
 */
static bool has_lost_all(const struct follow *follow, size_t *lost)
{
    *lost = 0;
    for (size_t i = 0; i < follow->count; i++) {
        const struct followed *f = &follow->at[i];

        if (!f->is_served || f->applied == 0 || is_adopted(f))
            continue;
        if (f->is_in_log)
            return false;
        ++*lost;
    }
    return *lost > 0;
}

enum err_code follow_compare(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;
    size_t lost;

    err->code = ERR_OK;
    if (has_lost_all(follow, &lost)) {
        err_set(err, ERR_BUSY,
                "the shared log has none of the %zu locales that this node has followed in it: "
                "restore the log; or, if it is to be as it is now, keep a copy of --data and start "
                "with an empty one",
                lost);
        if (strcmp(follow->reported.reason, err->msg) != 0)
            log_error("%s", err->msg);
        return err->code;
    }
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *f = &follow->at[i];
        bool is_there = false;

        if (f->applied == 0 || !f->is_served || f->is_doubtful)
            continue;
        if (!f->is_in_log && is_adopted(f)) {
            if (adopt(world, f, err) && err->code != ERR_CONFLICT)
                return err->code;
            err->code = ERR_OK; /* another node has made one: at the next poll */
            continue;
        }
        if (f->is_in_log && compare(follow, f, &is_there, err))
            return err->code;
        if (is_there && confirm(world, f, err))
            return err->code;
        if (is_there)
            continue;
        if (f->is_in_log && f->is_adopting) {
            err_set(err, ERR_CONFLICT,
                    "the data directory has %s of its own, and the shared log has another: start "
                    "with an empty --data, which is filled from the log",
                    f->locale);
            return refuse(follow, err);
        }
        if (f->is_in_log && f->first > f->applied && f->head >= f->applied)
            f->is_doubtful = true; /* trimmed: not comparable; there is a snapshot */
        else
            follow_doubt(follow, f);
    }
    return ERR_OK;
}
