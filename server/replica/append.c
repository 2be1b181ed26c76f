/*
 * Appending: one statement in one transaction, sent in one message (schema/001.sql, append).
 *
 * One message, in case this process is stopped in the middle: a transaction that waits for its next
 * statement holds the locales' rows, and no timeout of the engine runs while it waits for a client.
 * In one message the engine has all of it before it begins. (A session that is stopped within
 * cluster_hold's transaction is ended by idle_in_transaction_session_timeout. A session that waits
 * too long for a row ends other sessions of this program that are idle in a transaction.)
 *
 * In doubt: when the connection is lost before the answer, the commit may have happened, may happen
 * later, or never. The same entries are sent again, with again_: the engine first takes the rows'
 * locks, which the first transaction holds until it ends, and then searches the op_ids. If they are
 * found, that is the answer; the commit of this search is after the first one in the WAL and waits
 * for the standby like any other, so a commit that was only on a crashed primary is not
 * acknowledged. If they are not found, they are appended; if the first transaction continues after
 * that, it finds another revision and is rolled back.
 *
 * A warning at the commit ("canceling wait for synchronous replication …") is such a doubt, too.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sending ---------------------------------------------------------------------------- */

enum column {
    LOCALES,
    REVISIONS,
    OP_IDS,
    BEFORES,
    KINDS,
    LAYERS,
    SOURCES,
    REQUESTS,
    RECTS,
    FENCES,
    BLOBS,
    DIGESTS,
    DATA,
    COLUMNS
};

struct columns {
    struct array of[COLUMNS];
};

static void columns_free(struct columns *columns)
{
    for (int i = 0; i < COLUMNS; i++)
        array_free(&columns->of[i]);
}

static void columns_begin(struct columns *columns, size_t count)
{
    static const enum array_of kinds[COLUMNS] = {
        ARRAY_TEXT,  ARRAY_INT8, ARRAY_TEXT, ARRAY_TEXT,  ARRAY_INT4,  ARRAY_TEXT,  ARRAY_TEXT,
        ARRAY_BYTES, ARRAY_INT8, ARRAY_INT8, ARRAY_BYTES, ARRAY_BYTES, ARRAY_BYTES,
    };

    for (int i = 0; i < COLUMNS; i++)
        array_begin(&columns->of[i], kinds[i], i == RECTS ? 4 * count : count);
}

static void columns_add(struct columns *columns, const char *node,
                        const struct cluster_entry *entry)
{
    struct array *of = columns->of;
    uint8_t digest[CLUSTER_HASH_BYTES];

    entry_digest(entry, node, digest);
    array_text(&of[LOCALES], entry->locale);
    array_int8(&of[REVISIONS], (int64_t)entry->revision);
    array_text(&of[OP_IDS], entry->op_id);
    array_text(&of[BEFORES], entry->before);
    array_int4(&of[KINDS], entry->kind);
    array_text(&of[LAYERS], entry->layer);
    array_text(&of[SOURCES], entry->source);
    array_bytes(&of[REQUESTS], entry->request, sizeof entry->request);
    for (int i = 0; i < 4; i++)
        array_int8(&of[RECTS], entry->has_rect ? (int64_t)entry->rect[i] : -1);
    array_int8(&of[FENCES], (int64_t)entry->fence);
    array_bytes(&of[BLOBS], entry->blobs, entry->blob_count * CLUSTER_HASH_BYTES);
    array_bytes(&of[DIGESTS], digest, sizeof digest);
    array_bytes(&of[DATA], entry->data, entry->bytes);
}

static enum err_code check_entries(const struct cluster_entry *entries, size_t count,
                                   struct err *err)
{
    size_t bytes = 0;

    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        const struct cluster_entry *entry = &entries[i];

        CHECK(entry->locale[0] && entry->op_id[0] && entry->revision > 0);
        CHECK(entry->revision < INT64_MAX && entry->fence < INT64_MAX);
        bytes += entry->bytes + entry->blob_count * CLUSTER_HASH_BYTES;
    }
    if (bytes > CLUSTER_APPEND_BYTES_MAX)
        return err_limit(err, ERR_TOO_LARGE, CLUSTER_APPEND_BYTES_MAX, (double)bytes,
                         "the change has %zu bytes for the shared log; the limit is %d", bytes,
                         (int)CLUSTER_APPEND_BYTES_MAX);
    return ERR_OK;
}

/* ---- results ------------------------------------------------------------------------- */

struct append {
    const struct cluster_entry *entries;
    size_t count;
    struct columns columns;
    uint64_t give_up_ms;
    bool in_doubt, was_rolled_back;
};

static void take_append(struct ask *ask, unsigned index, const PGresult *result)
{
    struct append *append = ask->context;

    /* the COMMIT of a failed transaction reports ROLLBACK */
    if (index == 1)
        append->was_rolled_back = strcmp(PQcmdStatus((PGresult *)result), "COMMIT") != 0;
}

enum outcome { OUTCOME_DONE, OUTCOME_REFUSED, OUTCOME_DOUBT, OUTCOME_AGAIN };

static enum outcome refused(struct cluster *cluster, const struct ask *ask, size_t *at,
                            struct err *err)
{
    const char *state = ask->sqlstate;

    if (strcmp(state, "40P01") == 0 || strcmp(state, "40001") == 0)
        return OUTCOME_AGAIN;
    if (strcmp(state, "KT001") == 0 || strcmp(state, "KT003") == 0 || strcmp(state, "23505") == 0) {
        cluster_count(cluster, &cluster->stats.conflicts, 1);
        err_set(err, ERR_CONFLICT, "%s",
                strcmp(state, "23505") == 0 ? "an op_id is in the log already" : ask->message);
    } else if (strcmp(state, "KT002") == 0) {
        *at = (size_t)strtoull(ask->detail, NULL, 10);
        cluster_count(cluster, &cluster->stats.fenced, 1);
        err_set(err, ERR_PRECONDITION_FAILED, "%s: the lease was lost", ask->message);
    } else if (strcmp(state, "55P03") == 0) {
        err_set(err, ERR_UNAVAILABLE,
                "the shared log is busy: a locale's row was not free within "
                "%u ms",
                cluster->wait_ms / 2);
    } else {
        log_error("the shared log refuses an append: %s (%s)", ask->message, state);
        ask_refused(ask, err);
    }
    return OUTCOME_REFUSED;
}

static void end_stopped(struct cluster *cluster)
{
    struct params params = {0};
    struct err ignored;

    params_int8(&params, cluster->wait_ms / 2);
    ask_one(cluster, STATEMENT_END_STOPPED, &params, NULL, NULL, &ignored);
}

static enum outcome try(struct cluster *cluster, struct append *append, bool again, size_t *at,
                        struct err *err)
{
    struct ask ask = {.take = take_append, .context = append};
    struct params params = {0};
    bool was_held = cluster->is_held;

    params_text(&params, cluster->node);
    params_bool(&params, again);
    for (int i = 0; i < COLUMNS; i++)
        params_array(&params, &append->columns.of[i]);
    append->was_rolled_back = false;
    ask_statement(cluster, &ask, STATEMENT_APPEND, &params);
    if (was_held)
        ask_sql(cluster, &ask, "COMMIT");
    ask_run(cluster, &ask, err);
    if (ask.end == ASK_LOST)
        return ask.sent > 0 ? OUTCOME_DOUBT : OUTCOME_AGAIN;
    if (ask.end == ASK_REFUSED) {
        bool is_busy = strcmp(ask.sqlstate, "55P03") == 0;
        enum outcome outcome = refused(cluster, &ask, at, err);

        if (is_busy)
            end_stopped(cluster);
        return outcome;
    }
    if (was_held)
        cluster->is_held = false;
    return ask.is_warned || append->was_rolled_back ? OUTCOME_DOUBT : OUTCOME_DONE;
}

static void on_late(uv_timer_t *timer)
{
    (void)timer; /* ends the wait for events */
}

/* Turns the loop until the engine is there; false: not in time. */
static bool wait_for_engine(struct cluster *cluster, uint64_t give_up_ms)
{
    uv_update_time(&cluster->loop);
    while (atomic_load(&cluster->is_away) && uv_now(&cluster->loop) < give_up_ms) {
        uv_timer_start(&cluster->wait_timer, on_late, give_up_ms - uv_now(&cluster->loop), 0);
        uv_run(&cluster->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&cluster->wait_timer);
    return !atomic_load(&cluster->is_away);
}

static void acknowledged(struct cluster *cluster, const struct append *append, uint64_t began_ns)
{
    uint64_t us = (uv_hrtime() - began_ns) / 1000;
    int bucket = 0;

    while (bucket < CLUSTER_APPEND_BUCKETS - 1 && us >= UINT64_C(64) << bucket)
        bucket++;
    pthread_mutex_lock(&cluster->mutex);
    cluster->stats.appends++;
    cluster->stats.entries += append->count;
    cluster->stats.append_us_sum += us;
    cluster->stats.append_count[bucket]++;
    pthread_mutex_unlock(&cluster->mutex);
}

static enum err_code append_until_known(struct cluster *cluster, struct append *append, size_t *at,
                                        struct err *err)
{
    uint64_t began_ns = uv_hrtime();
    bool again = false;

    for (;;) {
        switch (try(cluster, append, again, at, err)) {
        case OUTCOME_DONE:
            acknowledged(cluster, append, began_ns);
            return ERR_OK;
        case OUTCOME_REFUSED:
            /* an append that is refused for its revision or its op_id was not, and will not be,
             * committed by the first try; with a busy or failing engine it is unknown */
            append->in_doubt = append->in_doubt && err->code == ERR_UNAVAILABLE;
            return err->code;
        case OUTCOME_DOUBT:
            if (!append->in_doubt)
                cluster_count(cluster, &cluster->stats.in_doubt, 1);
            append->in_doubt = again = true;
            break;
        case OUTCOME_AGAIN:
            break;
        }
        if (!wait_for_engine(cluster, append->give_up_ms) ||
            uv_now(&cluster->loop) >= append->give_up_ms)
            return cluster_away(cluster, err);
        cluster_count(cluster, &cluster->stats.retried, 1);
    }
}

enum err_code cluster_append(struct cluster *cluster, const struct cluster_entry *entries,
                             size_t count, size_t *at, bool *in_doubt, struct err *err)
{
    struct append append = {.entries = entries, .count = count};

    *in_doubt = false;
    *at = 0;
    if (check_entries(entries, count, err) || cluster_ready(cluster, err))
        return err->code;
    append.give_up_ms = uv_now(&cluster->loop) + cluster->wait_ms;
    columns_begin(&append.columns, count);
    for (size_t i = 0; i < count; i++)
        columns_add(&append.columns, cluster->node, &entries[i]);
    err->code = ERR_OK;
    for (int i = 0; i < COLUMNS; i++)
        if (append.columns.of[i].has_failed)
            err_set(err, ERR_NO_MEMORY, "no memory for an append to the shared log");
    if (err->code == ERR_OK)
        append_until_known(cluster, &append, at, err);
    columns_free(&append.columns);
    *in_doubt = append.in_doubt && err->code == ERR_UNAVAILABLE;
    return err->code;
}

/* ---- holding --------------------------------------------------------------------------------- */

enum err_code cluster_hold(struct cluster *cluster, const char (*locales)[CLUSTER_ID_MAX + 1],
                           size_t count, struct err *err)
{
    struct array ids = {0};
    struct params params = {0};
    struct ask ask = {0};

    if (cluster_ready(cluster, err))
        return err->code;
    cluster_release(cluster);
    array_begin(&ids, ARRAY_TEXT, count);
    for (size_t i = 0; i < count; i++)
        array_text(&ids, locales[i]);
    params_array(&params, &ids);
    if (ids.has_failed) {
        array_free(&ids);
        return err_set(err, ERR_NO_MEMORY, "no memory for a question to the shared log");
    }
    ask_sql(cluster, &ask, "BEGIN");
    ask_statement(cluster, &ask, STATEMENT_HOLD, &params);
    cluster->is_held = true; /* a failure releases it */
    ask_run(cluster, &ask, err);
    array_free(&ids);
    if (ask.end == ASK_REFUSED && strcmp(ask.sqlstate, "55P03") == 0)
        end_stopped(cluster);
    if (ask.end != ASK_DONE)
        cluster->is_held = false;
    return ask.end == ASK_DONE ? ERR_OK : err->code;
}

void cluster_release(struct cluster *cluster)
{
    struct ask ask = {0};
    struct err ignored;

    if (!cluster->is_held)
        return;
    cluster->is_held = false;
    ask_sql(cluster, &ask, "ROLLBACK");
    ask_run(cluster, &ask, &ignored);
}
