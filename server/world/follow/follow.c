/*
 * Following a log that other daemons append to, too.
 *
 * Problem: every node shall publish the same revisions of a locale in the same order, each once,
 * through crashes of any of them. Approach: the log decides. Entries of other nodes are applied
 * like local changes, without the append: made against a draft, written together with `applied` in
 * one transaction of the store, published, appended to the feed. So at any moment of a kill -9 the
 * store has exactly the entries up to `applied`, and the next poll continues after them.
 *
 * A notification only wakes the thread: a poll reads the head of each locale from the log, and then
 * the entries, so a lost notification does no harm. A poll is bounded, so that clients of this node
 * wait for one round and not until the node has caught up.
 *
 * A kill -9 while following: before the store's COMMIT nothing was applied, and the entries are
 * read again; after it the load publishes them.
 *
 * An entry that cannot be applied (damaged, of a newer version, or for another state) is not
 * skipped: the locale is replaced by a newer snapshot if there is one. Else it stays at its
 * revision, and readiness reports the reason. The other locales go on.
 *
 * Invariants: f->applied is the store's row, f->revision the published locale's; a revision is
 * published here only when the log has it.
 */
#include "world/follow/follow.h"

#include "base/check.h"
#include "base/log.h"
#include "base/clock.h"
#include "world/write/kinds/kind.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POLL_MS = 3000,     /* of a log without notifications */
    LOOK_READS_MAX = 16 /* of one poll, while clients wait; each of CLUSTER_READ_MAX entries */
};
#define READ_BYTES_MAX ((uint64_t)64 << 20) /* that entries of one transaction bring */

/* ---- patterns -------------------------------------------------------------------------------- */

bool world_pattern_takes(const char *pattern, const char *locale_id)
{
    char one[CLUSTER_URL_MAX + 1];

    if (pattern[0] == '\0')
        return true;
    while (*pattern) {
        size_t length = strcspn(pattern, ",");

        snprintf(one, sizeof one, "%.*s", (int)length, pattern);
        if (length > 0 && fnmatch(one, locale_id, 0) == 0)
            return true;
        pattern += length;
        pattern += *pattern == ',';
    }
    return false;
}

bool world_serves(const struct world *world, const char *locale_id)
{
    return !world->follow || world_pattern_takes(world->follow->locales, locale_id);
}

static bool is_served(const struct follow *follow, const char *locale)
{
    return strcmp(locale, RECORD_MODELS) == 0 || world_pattern_takes(follow->locales, locale);
}

/* ---- the table ------------------------------------------------------------------------------- */

static size_t place_of(const struct follow *follow, const char *locale)
{
    size_t low = 0, high = follow->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(follow->at[middle].locale, locale) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct followed *follow_find(struct follow *follow, const char *locale)
{
    size_t at = place_of(follow, locale);

    return at < follow->count && strcmp(follow->at[at].locale, locale) == 0 ? &follow->at[at]
                                                                            : NULL;
}

static bool reserve(struct follow *follow)
{
    size_t room = follow->room ? 2 * follow->room : 16;
    struct followed *grown;

    if (follow->count < follow->room)
        return true;
    grown = realloc(follow->at, room * sizeof *grown);
    if (!grown)
        return false;
    follow->at = grown;
    follow->room = room;
    return true;
}

struct followed *follow_add(struct follow *follow, const char *locale, struct err *err)
{
    size_t at = place_of(follow, locale);
    struct followed *found = follow_find(follow, locale);

    if (found)
        return found;
    pthread_mutex_lock(&follow->mutex);
    if (reserve(follow)) {
        memmove(follow->at + at + 1, follow->at + at, (follow->count - at) * sizeof *follow->at);
        follow->count++;
        found = &follow->at[at];
        *found = (struct followed){.is_served = is_served(follow, locale),
                                   .history_key = record_history_key()};
        snprintf(found->locale, sizeof found->locale, "%s", locale);
    }
    pthread_mutex_unlock(&follow->mutex);
    if (!found)
        err_set(err, ERR_NO_MEMORY, "no memory for locales of the shared log");
    return found;
}

void follow_set_applied(struct follow *follow, struct followed *followed, uint64_t applied,
                        uint64_t revision, const char *op_id)
{
    pthread_mutex_lock(&follow->mutex);
    followed->applied = applied;
    followed->revision = revision;
    snprintf(followed->op_id, sizeof followed->op_id, "%s", op_id);
    pthread_mutex_unlock(&follow->mutex);
}

void follow_mark_coming(struct follow *follow, struct followed *followed)
{
    pthread_mutex_lock(&follow->mutex);
    followed->coming = followed->head;
    pthread_mutex_unlock(&follow->mutex);
}

bool world_is_coming(struct world *world, const char *locale_id)
{
    const struct followed *followed;
    bool is_coming;

    if (!world->follow)
        return false;
    pthread_mutex_lock(&world->follow->mutex);
    followed = follow_find(world->follow, locale_id);
    is_coming = followed && followed->applied < followed->coming;
    pthread_mutex_unlock(&world->follow->mutex);
    return is_coming;
}

uint64_t world_applied(struct world *world, const char *locale_id)
{
    const struct followed *followed;
    uint64_t applied = 0;

    if (!world->follow)
        return 0;
    pthread_mutex_lock(&world->follow->mutex);
    followed = follow_find(world->follow, locale_id);
    if (followed)
        applied = followed->revision;
    pthread_mutex_unlock(&world->follow->mutex);
    return applied;
}

struct follow *follow_create(const struct world_sharing *sharing, struct err *err)
{
    struct follow *follow = calloc(1, sizeof *follow);

    if (!follow) {
        err_set(err, ERR_NO_MEMORY, "no memory for a shared log");
        return NULL;
    }
    follow->log = sharing->log;
    snprintf(follow->node, sizeof follow->node, "%s", sharing->node);
    snprintf(follow->locales, sizeof follow->locales, "%s", sharing->locales);
    snprintf(follow->reported.node, sizeof follow->reported.node, "%s", sharing->node);
    follow->snapshot_every = sharing->snapshot_every;
    follow->keep_entries = sharing->keep_entries;
    follow->quiet_us = UINT64_C(2000) * (sharing->poll_ms ? sharing->poll_ms : POLL_MS);
    atomic_store(&follow->is_stale, true);
    pthread_mutex_init(&follow->mutex, NULL);
    return follow;
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    pthread_mutex_destroy(&follow->mutex);
    free(follow->sent);
    free(follow->at);
    free(follow);
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static enum err_code get_blob(void *context, const uint8_t hash[CLUSTER_HASH_BYTES], void **bytes,
                              size_t *length, struct err *err)
{
    const struct world *world = context;

    return cluster_get_blob(world->follow->log, hash, bytes, length, err);
}

/* A locale that the log has and this node has not yet comes first, so that the fork shares with
 * it. */
static const struct locale *get_base(void *context, const struct locale_manifest *manifest,
                                     struct err *err)
{
    struct world *world = context;
    struct follow *follow = world->follow;
    const struct world_snapshot *snapshot = atomic_load(&world->published);
    const struct followed *f;

    locale_manifest_base(manifest, follow->wanted);
    f = snapshot_locale(snapshot, follow->wanted) ? NULL : follow_find(follow, follow->wanted);
    if (f && f->is_served && f->is_in_log && f->applied == 0 && f->reason[0] == '\0' && !f->is_base)
        err_set(err, ERR_BUSY, "%s comes first", f->locale);
    else
        follow->wanted[0] = '\0';
    return snapshot_base(snapshot, manifest, "");
}

struct record_source follow_source(struct world *world)
{
    return (struct record_source){get_blob, world, get_base};
}

/* Some blobs of a record, by their indexes; NULL: all of them. */
struct put_part {
    const struct record *record;
    const size_t *chosen;
};

static const void *put_bytes(void *context, size_t index, size_t *length, void **made,
                             struct err *err)
{
    const struct put_part *part = context;
    size_t blob = part->chosen ? part->chosen[index] : index;

    return record_blob_bytes(&part->record->blobs[blob], length, made, err);
}

enum err_code follow_put_blobs(struct follow *follow, const struct record *record, struct err *err)
{
    struct put_part all = {.record = record};

    err->code = ERR_OK;
    if (record->blob_count == 0)
        return ERR_OK;
    return cluster_put_blobs(follow->log, (const uint8_t(*)[CLUSTER_HASH_BYTES])record->hashes,
                             record->blob_count, put_bytes, &all, err);
}

enum err_code follow_put_some(struct follow *follow, const struct record *record, size_t most,
                              bool *is_all, struct err *err)
{
    bool *is_there = calloc(record->blob_count + 1, sizeof *is_there);
    size_t *chosen = calloc(most, sizeof *chosen), count = 0;
    uint8_t(*hashes)[CLUSTER_HASH_BYTES] = calloc(most, sizeof *hashes);
    struct put_part some = {record, chosen};

    *is_all = true;
    err->code = ERR_OK;
    if (!is_there || !chosen || !hashes)
        err_set(err, ERR_NO_MEMORY, "no memory for parts of the shared log");
    else if (record->blob_count > 0)
        cluster_have_blobs(follow->log, (const uint8_t(*)[CLUSTER_HASH_BYTES])record->hashes,
                           record->blob_count, is_there, err);
    for (size_t i = 0; i < record->blob_count && err->code == ERR_OK; i++) {
        if (is_there[i])
            continue;
        *is_all = count < most;
        if (!*is_all)
            break;
        memcpy(hashes[count], record->hashes[i], sizeof hashes[count]);
        chosen[count++] = i;
    }
    if (err->code == ERR_OK && count > 0)
        cluster_put_blobs(follow->log, (const uint8_t(*)[CLUSTER_HASH_BYTES])hashes, count,
                          put_bytes, &some, err);
    free(hashes);
    free(chosen);
    free(is_there);
    return err->code;
}

/* ---- reported state -------------------------------------------------------------------------- */

void follow_count_race(struct follow *follow)
{
    pthread_mutex_lock(&follow->mutex);
    follow->reported.races_lost++;
    pthread_mutex_unlock(&follow->mutex);
}

/* Everything is applied that there is; or that is not known now. */
static void set_in_step(struct follow *follow, bool is_in_step)
{
    follow->is_in_step = is_in_step;
    if (is_in_step)
        atomic_store(&follow->in_step_us, monotonic_us());
    atomic_store(&follow->is_stale, !is_in_step);
}

static void update_report(struct follow *follow, const struct err *err)
{
    struct world_shared *out = &follow->reported;

    pthread_mutex_lock(&follow->mutex);
    out->is_joined = follow->is_joined;
    out->followed = out->behind = out->lag = 0;
    if (!follow->has_refused)
        out->reason[0] = '\0';
    if (err->code != ERR_OK && err->code != ERR_UNAVAILABLE)
        snprintf(out->reason, sizeof out->reason, "%s", err->msg);
    for (size_t i = 0; i < follow->count; i++) {
        const struct followed *f = &follow->at[i];
        uint64_t lag = f->head > f->applied ? f->head - f->applied : 0;

        if (!f->is_served || !f->is_in_log)
            continue;
        out->followed++;
        out->behind += lag > 0;
        out->lag = lag > out->lag ? lag : out->lag;
        if (f->reason[0] != '\0' && out->reason[0] == '\0')
            snprintf(out->reason, sizeof out->reason, "%s", f->reason);
    }
    pthread_mutex_unlock(&follow->mutex);
}

double world_staleness_s(const struct world *world)
{
    const struct follow *follow = world->follow;
    uint64_t then, age_us;

    if (!follow)
        return 0;
    then = atomic_load_explicit(&follow->in_step_us, memory_order_relaxed);
    if (then == 0)
        return INFINITY;
    age_us = monotonic_us() - then;
    /* A writer that waits for a hanging engine cannot report it itself. */
    if (!atomic_load_explicit(&follow->is_stale, memory_order_relaxed) &&
        age_us <= follow->quiet_us)
        return 0;
    return (double)age_us * 1e-6;
}

bool world_shared(struct world *world, struct world_shared *out)
{
    struct follow *follow = world->follow;

    *out = (struct world_shared){.is_joined = false};
    if (!follow)
        return false;
    pthread_mutex_lock(&follow->mutex);
    *out = follow->reported;
    pthread_mutex_unlock(&follow->mutex);
    return true;
}

void follow_wake(struct follow *follow)
{
    cluster_wake(follow->log);
}

struct cluster *world_log(const struct world *world)
{
    return world->follow ? world->follow->log : NULL;
}

/* ---- entries of others ----------------------------------------------------------------------- */

/* Entries that are applied in one transaction. */
struct reading {
    struct world *world;
    struct followed *followed;
    struct draft draft;
    struct world_change changes[CLUSTER_READ_MAX];
    struct change_result results[CLUSTER_READ_MAX];
    size_t count;
    uint64_t applied, revision, bytes; /* as of struct followed */
    char op_id[CLUSTER_OP_ID_MAX + 1];
    bool is_full; /* there may be more */
    struct err err;
};

/* Drops a key that the store has already, from before it shared this log. */
static enum err_code drop_known_key(struct store *store, struct world_change *change,
                                    struct err *err)
{
    struct store_edit row;
    bool is_found = false;

    if (change->op_id[0] == '\0')
        return ERR_OK;
    if (store_find_op(store, change->op_id, &is_found, &row, err))
        return err->code;
    if (is_found) {
        change->op_id[0] = '\0';
        change->answer = NULL;
    }
    return ERR_OK;
}

/* The next entry against the draft. */
static enum err_code make_entry(struct reading *r, const struct cluster_entry *entry,
                                struct err *err)
{
    struct record_source source = follow_source(r->world);
    struct world_change *change = &r->changes[r->count];
    struct change_result *result = &r->results[r->count];
    struct draft own;
    uint64_t revision, expected;

    if (entry->revision != r->applied + 1)
        return err_set(err, ERR_DAMAGED, "the shared log's entry of %s after entry %llu is %llu",
                       entry->locale, (unsigned long long)r->applied,
                       (unsigned long long)entry->revision);
    if (record_change(entry, &source, change, err))
        return err->code;
    r->count++; /* from here on finish_reading frees both */
    draft_fork(&r->draft, &own);
    if (drop_known_key(r->world->store, change, err) || change_make(&own, change, result, err)) {
        draft_end(&own);
        return err->code;
    }
    expected = r->revision + !result_is_of_pin(result);
    revision = result_is_of_model(result) ? entry->revision : result->event.revision;
    if (result->is_repeat || revision != expected) {
        draft_end(&own);
        return err_set(err, ERR_DAMAGED,
                       "the shared log's entry of %s, revision %llu, would be revision %llu here",
                       entry->locale, (unsigned long long)expected, (unsigned long long)revision);
    }
    draft_join(&r->draft, &own);
    r->bytes += entry->bytes + (change->layer ? change->layer->memory_bytes : 0) +
                (change->model ? change->model->length : 0);
    r->applied = entry->revision;
    r->revision = revision;
    memcpy(r->op_id, entry->op_id, sizeof r->op_id);
    r->followed->is_ours = strcmp(entry->node, r->world->follow->node) == 0;
    return ERR_OK;
}

static bool take_entry(void *context, const struct cluster_entry *entry, struct err *err)
{
    struct reading *r = context;

    if (r->bytes >= READ_BYTES_MAX || r->count == CLUSTER_READ_MAX) {
        r->is_full = true;
        err_set(err, ERR_BUSY, "the rest comes with the next read");
        return false;
    }
    if (make_entry(r, entry, &r->err) == ERR_OK)
        return true;
    *err = r->err;
    return false;
}

/* Everything made so far becomes durable; it is published by the caller. */
static enum err_code persist_reading(struct reading *r, size_t made, struct err *err)
{
    struct store *store = r->world->store;
    struct store_applied applied = {.revision = r->applied};

    memcpy(applied.locale, r->followed->locale, sizeof applied.locale);
    memcpy(applied.op_id, r->op_id, sizeof applied.op_id);
    if (store_begin(store, err))
        return err->code;
    for (size_t i = 0; i < made; i++)
        if (persist_result(store, &r->results[i], err)) {
            store_rollback(store);
            return err->code;
        }
    if (store_put_applied(store, &applied, err)) {
        store_rollback(store);
        return err->code;
    }
    return store_commit(store, err);
}

static void note_broken_store(struct world *world, const struct err *err)
{
    if (err->code != ERR_READ_ONLY && err->code != ERR_DISK_FULL)
        return;
    if (!world->is_store_broken)
        log_error("the store takes no more changes: %s", err_for_log(err));
    world->is_store_broken = true;
}

static void finish_reading(struct reading *r)
{
    for (size_t i = 0; i < r->count; i++) {
        result_finish(&r->results[i]);
        free(r->changes[i].context);
        world_drop(&r->changes[i]);
    }
    draft_end(&r->draft);
    free(r);
}

/* Makes the first `made` results durable and publishes them. */
static enum err_code publish_reading(struct reading *r, size_t made, struct err *err)
{
    struct world *world = r->world;
    struct followed *f = r->followed;

    if (made == 0)
        return ERR_OK;
    if (persist_reading(r, made, err)) {
        note_broken_store(world, err);
        return err->code;
    }
    draft_publish_begin(&r->draft);
    follow_set_applied(world->follow, f, r->applied, r->revision, r->op_id);
    f->is_adopting = false;
    for (size_t i = 0; i < made; i++)
        result_announce(world, &r->results[i]);
    draft_publish_end(&r->draft);
    pthread_mutex_lock(&world->follow->mutex);
    world->follow->reported.entries_applied += made;
    pthread_mutex_unlock(&world->follow->mutex);
    atomic_fetch_add_explicit(&world->writer_turns, 1, memory_order_relaxed);
    return ERR_OK;
}

/*
 * Applies the next entries of a locale, up to CLUSTER_READ_MAX. ERR_NOT_FOUND: the log was trimmed;
 * ERR_DAMAGED and others: an entry cannot be applied, those before it were.
 */
static enum err_code read_some(struct world *world, struct followed *f, struct err *err)
{
    struct reading *r = calloc(1, sizeof *r);
    size_t count = 0, made;
    struct err failed = {.code = ERR_OK};

    if (!r)
        return err_set(err, ERR_NO_MEMORY, "no memory to follow the shared log");
    r->world = world;
    r->followed = f;
    r->applied = f->applied;
    r->revision = f->revision;
    draft_begin(&r->draft, world);
    r->draft.is_followed = true;
    cluster_read(world->follow->log, f->locale, f->applied, take_entry, r, &count, &failed);
    made = (size_t)(r->applied - f->applied);
    if (r->is_full)
        failed.code = ERR_OK;
    if (publish_reading(r, made, err) == ERR_OK && failed.code != ERR_OK)
        *err = failed;
    finish_reading(r);
    return err->code;
}

/* ---- one locale ------------------------------------------------------------------------------ */

/* Is it the log or the store, so that no locale can go on? */
static bool is_of_all(const struct err *err)
{
    return err->code == ERR_UNAVAILABLE || err->code == ERR_NO_MEMORY ||
           err->code == ERR_READ_ONLY || err->code == ERR_DISK_FULL || err->code == ERR_BUSY;
}

/* Applies the next entries, or a newer snapshot where they cannot be applied. */
static enum err_code follow_once(struct world *world, struct followed *f, struct err *err)
{
    world->follow->wanted[0] = '\0';
    if (f->is_doubtful)
        return follow_take_anew(world, f, err);
    if (read_some(world, f, err) == ERR_OK || is_of_all(err))
        return err->code;
    if (err->code != ERR_NOT_FOUND && strcmp(f->reason, err->msg) != 0) /* else it was logged */
        log_error("%s cannot be followed: %s", f->locale, err_for_log(err));
    if (err->code != ERR_NOT_FOUND && f->snapshot <= f->applied)
        return err->code;
    return follow_take_anew(world, f, err);
}

static enum err_code follow_locale(struct world *world, struct followed *f, int reads,
                                   struct err *err);

/* What stopped a fork was that its base is not here: follows that. */
static bool follow_wanted(struct world *world, int reads, struct err *err)
{
    struct followed *base = follow_find(world->follow, world->follow->wanted);

    if (!base)
        return false;
    world->follow->wanted[0] = '\0';
    base->is_base = true;
    err->code = ERR_OK;
    follow_locale(world, base, reads, err);
    base->is_base = false;
    return true;
}

static bool is_stopping(struct world *world)
{
    bool is_stopping;

    pthread_mutex_lock(&world->mutex);
    is_stopping = world->is_stopping;
    pthread_mutex_unlock(&world->mutex);
    return is_stopping;
}

/* At most `reads` times; ERR_OK also when there is more. */
static enum err_code follow_locale(struct world *world, struct followed *f, int reads,
                                   struct err *err)
{
    err->code = ERR_OK;
    while ((f->is_doubtful || f->applied < f->head) && reads-- > 0) {
        uint64_t before = f->applied;
        bool was_doubtful = f->is_doubtful;

        if (is_stopping(world))
            return err_set(err, ERR_BUSY, "the daemon stops");
        if (follow_once(world, f, err) && follow_wanted(world, reads, err) && !is_of_all(err)) {
            err->code = ERR_OK; /* without it, if it cannot be followed */
            continue;
        }
        if (err->code != ERR_OK) {
            if (!is_of_all(err))
                snprintf(f->reason, sizeof f->reason, "%s", err->msg);
            return err->code;
        }
        f->reason[0] = '\0';
        if (f->applied == before && !was_doubtful) /* the log went back meanwhile */
            return ERR_OK;
    }
    return ERR_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void follow_doubt(struct follow *follow, struct followed *f)
{
    if (f->is_doubtful)
        return;
    log_error(
        "the shared log has not what was applied here of %s, revision %llu: it is taken again",
        f->locale, (unsigned long long)f->applied);
    f->is_doubtful = true;
    pthread_mutex_lock(&follow->mutex);
    follow->reported.divergences++;
    pthread_mutex_unlock(&follow->mutex);
}

enum err_code follow_read_heads(struct follow *follow, struct err *err)
{
    struct cluster_head *heads;
    size_t count;

    if (cluster_heads(follow->log, &heads, &count, err))
        return err->code;
    for (size_t i = 0; i < follow->count; i++)
        follow->at[i].is_in_log = false;
    for (size_t i = 0; i < count; i++) {
        struct followed *f = follow_add(follow, heads[i].locale, err);

        if (!f)
            break;
        f->is_in_log = true;
        f->head = heads[i].revision;
        f->first = heads[i].first;
        f->snapshot = heads[i].snapshot;
        if (f->applied == 0 && f->is_served)
            follow_mark_coming(follow, f);
        if (f->head < f->applied)
            follow_doubt(follow, f);
    }
    free(heads);
    return err->code;
}

/* Follows each; a locale that cannot be followed does not stop the others. */
static enum err_code follow_each(struct world *world, int reads, bool *is_done, struct err *err)
{
    struct follow *follow = world->follow;

    *is_done = true;
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *f = &follow->at[i];
        struct err failed = {.code = ERR_OK};

        if (!f->is_served || (!f->is_in_log && !f->is_doubtful))
            continue;
        if (follow_locale(world, f, reads, &failed) && is_of_all(&failed)) {
            *is_done = false;
            *err = failed;
            return err->code;
        }
        *is_done &= f->applied >= f->head && !f->is_doubtful;
    }
    return ERR_OK;
}

static enum err_code look(struct world *world, int reads, bool *is_done, struct err *err)
{
    struct follow *follow = world->follow;
    struct cluster_stats stats;

    *is_done = false;
    err->code = ERR_OK;
    if (world->is_store_broken)
        return err_set(err, ERR_READ_ONLY, "the store takes no more changes");
    if (follow->has_refused) /* a client that asks now may be sent to another node */
        return err_set(err, ERR_BUSY, "%s", follow->reported.reason);
    if (!follow->is_joined && follow_join(world, err))
        return err->code;
    if (follow_read_heads(follow, err))
        return err->code;
    cluster_stats(follow->log, &stats);
    if (stats.connects != follow->connects) {
        if (follow_compare(world, err))
            return err->code;
        follow->connects = stats.connects;
        follow->pose_number = 0; /* it may be another copy of the log */
    }
    if (follow_each(world, reads, is_done, err))
        return err->code;
    return follow_take_poses(world, err);
}

/* Are there entries left after a poll? Locales that cannot be followed are retried with news. */
static bool has_more(const struct follow *follow)
{
    for (size_t i = 0; i < follow->count; i++) {
        const struct followed *f = &follow->at[i];

        if (f->is_served && f->reason[0] == '\0' &&
            (f->is_doubtful || (f->is_in_log && f->applied < f->head)))
            return true;
    }
    return false;
}

void follow_poll(struct world *world)
{
    struct follow *follow = world->follow;
    struct err err = {.code = ERR_OK};
    bool is_done;

    if (!follow->is_started)
        return;
    if (cluster_is_away(follow->log)) {
        if (follow->is_in_step)
            log_warn("the shared log is away: reads go on with what is here");
        set_in_step(follow, false);
        update_report(follow, &err);
        return;
    }
    if (!follow->has_news)
        return;
    follow->has_news = false;
    look(world, LOOK_READS_MAX, &is_done, &err);
    if (err.code == ERR_OK && !is_done)
        follow->has_news = !world->is_store_broken && has_more(follow);
    if (err.code == ERR_OK && is_done && !follow->is_in_step)
        log_info("all that the shared log has is applied");
    set_in_step(follow, err.code == ERR_OK && is_done);
    update_report(follow, &err);
    if (err.code == ERR_OK && is_done && follow_make_snapshot(world))
        follow->has_news = true;
}

/* Is there one that cannot be followed? To try again at once would not help. */
static bool is_stuck(const struct follow *follow)
{
    for (size_t i = 0; i < follow->count; i++)
        if (follow->at[i].is_served && follow->at[i].reason[0] != '\0')
            return true;
    return false;
}

enum err_code follow_all(struct world *world, struct err *err)
{
    bool is_done = false;

    while (!is_done && look(world, INT32_MAX, &is_done, err) == ERR_OK)
        if (!is_done && is_stuck(world->follow))
            break;
    set_in_step(world->follow, err->code == ERR_OK && is_done);
    update_report(world->follow, err);
    return err->code;
}

enum err_code follow_start(struct world *world, struct err *err)
{
    struct follow *follow = world->follow;

    follow->is_started = follow->is_starting = follow->has_news = true;
    if (follow_read_store(world, err) == ERR_OK)
        follow_all(world, err);
    follow->is_starting = false;
    if (follow->has_refused || err->code == ERR_NO_MEMORY || err->code == ERR_DAMAGED)
        return err->code;
    if (err->code != ERR_OK)
        log_warn("%s; served is what the data directory has", err_for_log(err));
    err->code = ERR_OK;
    return ERR_OK;
}

void follow_wait(struct world *world, int ms)
{
    struct follow *follow = world->follow;
    /* nothing can be read while the log is away; the link has news when it is back */
    const bool can_read = follow->has_news && !cluster_is_away(follow->log);
    bool is_busy;

    pthread_mutex_lock(&world->mutex);
    is_busy = writer_has_work(world);
    pthread_mutex_unlock(&world->mutex);
    if (cluster_wait(follow->log, is_busy || can_read ? 0 : ms))
        follow->has_news = follow->is_started;
}

/* ---- appending ------------------------------------------------------------------------------- */

static enum err_code append_records(struct follow *follow, struct cluster_entry *entries,
                                    struct record *records, size_t count, size_t *at,
                                    struct err *err)
{
    bool in_doubt = false;

    for (size_t i = 0; i < count; i++)
        if (follow_put_blobs(follow, &records[i], err))
            return err->code;
    if (cluster_append(follow->log, entries, count, at, &in_doubt, err) == ERR_UNAVAILABLE &&
        in_doubt)
        err_set(err, ERR_UNAVAILABLE,
                "the shared log went away during the commit: whether the change was made is open; "
                "ask again under the same Idempotency-Key");
    return err->code;
}

/* The number of an entry, after that of its locale's last one before it. */
static uint64_t next_number(struct follow *follow, const struct cluster_entry *entries, size_t at)
{
    const struct followed *f = follow_find(follow, entries[at].locale);

    for (size_t i = at; i-- > 0;)
        if (strcmp(entries[i].locale, entries[at].locale) == 0)
            return entries[i].revision + 1;
    return f ? f->applied + 1 : 1;
}

/*
 * Can these be appended after the applied entries? ERR_CONFLICT: not before the log was compared,
 * or a locale replaced. Else sets in each entry the op_id of the one before it.
 */
static enum err_code stand_on(struct follow *follow, struct cluster_entry *entries, size_t count,
                              struct err *err)
{
    struct cluster_stats stats;

    cluster_stats(follow->log, &stats);
    if (stats.connects != follow->connects)
        return err_set(err, ERR_CONFLICT, "the shared log was away, and is to be compared");
    for (size_t i = 0; i < count; i++) {
        const struct followed *f = follow_find(follow, entries[i].locale);

        if (!f)
            continue;
        if (f->is_doubtful && f->reason[0] != '\0')
            return err_set(err, ERR_UNAVAILABLE, "%s cannot be followed: %.200s", f->locale,
                           f->reason);
        if (f->is_doubtful)
            return err_set(err, ERR_CONFLICT, "%s is to be taken again", f->locale);
        if (f->applied > 0 && entries[i].revision == f->applied + 1)
            memcpy(entries[i].before, f->op_id, sizeof entries[i].before);
    }
    return ERR_OK;
}

enum err_code follow_append(struct world *world, const struct change_result *const *results,
                            size_t count, size_t *at, struct err *err)
{
    struct follow *follow = world->follow;
    struct record *records = calloc(count, sizeof *records);
    struct cluster_entry *entries = calloc(count, sizeof *entries);
    size_t made = 0;

    err->code = ERR_OK;
    *at = 0;
    follow_dropped(world);
    if (!follow->is_joined)
        err_set(err, ERR_UNAVAILABLE, "the shared log is away");
    else if (!records || !entries)
        err_set(err, ERR_NO_MEMORY, "no memory for the shared log");
    for (; err->code == ERR_OK && made < count; made++) {
        record_result(results[made], &records[made], &entries[made], err);
        entries[made].revision = next_number(follow, entries, made);
        entries[made].fence = results[made]->change->fence;
    }
    if (err->code == ERR_OK && stand_on(follow, entries, count, err) == ERR_OK)
        append_records(follow, entries, records, count, at, err);
    for (size_t i = 0; i < made; i++)
        record_finish(&records[i]);
    free(records);
    if (err->code == ERR_CONFLICT || err->code == ERR_UNAVAILABLE)
        follow->has_news = true;
    if (err->code != ERR_OK) {
        free(entries);
        return err->code;
    }
    follow->sent = entries;
    follow->sent_count = count;
    return ERR_OK;
}

/* Is it the last one of its locale? */
static bool is_last(const struct follow *follow, size_t i)
{
    for (size_t k = i + 1; k < follow->sent_count; k++)
        if (strcmp(follow->sent[k].locale, follow->sent[i].locale) == 0)
            return false;
    return true;
}

enum err_code follow_persist(struct world *world, struct err *err)
{
    const struct follow *follow = world->follow;

    for (size_t i = 0; i < follow->sent_count; i++) {
        struct store_applied applied = {.revision = follow->sent[i].revision};

        if (!is_last(follow, i))
            continue;
        memcpy(applied.locale, follow->sent[i].locale, sizeof applied.locale);
        memcpy(applied.op_id, follow->sent[i].op_id, sizeof applied.op_id);
        if (store_put_applied(world->store, &applied, err))
            return err->code;
    }
    return ERR_OK;
}

void follow_applied(struct world *world)
{
    struct follow *follow = world->follow;

    for (size_t i = 0; i < follow->sent_count; i++) {
        struct err err;
        struct followed *f = follow_add(follow, follow->sent[i].locale, &err);

        if (!f) { /* the next poll reads it back and finds it applied */
            follow->is_joined = false;
            continue;
        }
        follow_set_applied(follow, f, follow->sent[i].revision,
                           f->revision + !change_log_is_of_pin(follow->sent[i].kind),
                           follow->sent[i].op_id);
        f->is_adopting = false;
        f->head = f->head > f->applied ? f->head : f->applied;
        f->is_in_log = f->is_ours = true;
    }
    follow_dropped(world);
}

void follow_dropped(struct world *world)
{
    free(world->follow->sent);
    world->follow->sent = NULL;
    world->follow->sent_count = 0;
}
