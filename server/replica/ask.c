/*
 * Queries to the engine ("asks").
 *
 * libpq's pipeline answers in the order of the queries, so asks are in one list and each answer
 * belongs to the first. Between two synchronisations the engine runs all statements as one
 * transaction: after a failure it skips the rest, and rolls back at the synchronisation. The commit
 * is over when the synchronisation is answered; an error of the commit itself comes before that.
 *
 * An ask without an answer at its deadline ends the connection: its effect is unknown, and later
 * answers would be late, too. Before that the socket is read once more, because the process may
 * have been stopped itself, or the caller may not have run the loop.
 *
 * The deadline is wait_ms after the last byte that was sent or received, so that 64 MiB may pass a
 * slow line, and a stopped engine is still given up. A trickle must not hold the owner for ever, so
 * the limit is ASK_WAITS times wait_ms.
 *
 * Only a caller that waits for an ask runs the loop; heartbeats (leases.c) are in the same list
 * without a waiting caller.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASK_WAITS = 6 };

/* ---- sending --------------------------------------------------------------------------------- */

void ask_statement(struct cluster *cluster, struct ask *ask, enum statement statement,
                   const struct params *params)
{
    static const int binary[PARAMS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    char name[16];

    ask->cluster = cluster;
    if (cluster->state != LINK_READY || ask->has_failed_to_send)
        return;
    snprintf(name, sizeof name, "s%d", (int)statement);
    if ((params && params->has_failed) ||
        !PQsendQueryPrepared(cluster->conn, name, params ? params->count : 0,
                             params ? params->values : NULL, params ? params->lengths : NULL,
                             binary, 1))
        ask->has_failed_to_send = true;
    ask->sent++;
}

void ask_sql(struct cluster *cluster, struct ask *ask, const char *sql)
{
    ask->cluster = cluster;
    if (cluster->state != LINK_READY || ask->has_failed_to_send)
        return;
    if (!PQsendQueryParams(cluster->conn, sql, 0, NULL, NULL, NULL, NULL, 1))
        ask->has_failed_to_send = true;
    ask->sent++;
}

static void finish(struct ask *ask, enum ask_end end)
{
    ask->end = end;
    ask->next = NULL;
    if (ask->ended)
        ask->ended(ask);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static uint64_t deadline_of(const struct cluster *cluster, const struct ask *ask)
{
    uint64_t wait_ms = cluster->wait_ms, moved = cluster->moved_ms + wait_ms;
    uint64_t last = ask->deadline_ms + (ASK_WAITS - 1) * wait_ms;

    if (moved <= ask->deadline_ms)
        return ask->deadline_ms;
    return moved < last ? moved : last;
}

static void on_deadline(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;
    const struct ask *ask = cluster->first;

    if (!ask || cluster->state != LINK_READY)
        return;
    asks_read(cluster);
    if (cluster->state == LINK_READY && cluster->first == ask &&
        uv_now(&cluster->loop) >= deadline_of(cluster, ask)) {
        char why[64];

        snprintf(why, sizeof why, "no answer within %" PRIu64 " ms",
                 uv_now(&cluster->loop) - (ask->deadline_ms - cluster->wait_ms));
        link_lose(cluster, why);
    }
}

/* The timer, by the first of the asks that wait. */
static void set_deadline(struct cluster *cluster)
{
    uint64_t now = uv_now(&cluster->loop), deadline;

    if (!cluster->first) {
        uv_timer_stop(&cluster->ask_timer);
        return;
    }
    deadline = deadline_of(cluster, cluster->first);
    uv_timer_start(&cluster->ask_timer, on_deadline, deadline > now ? deadline - now : 1, 0);
}

/* ---- sending --------------------------------------------------------------------------------- */

void ask_send(struct cluster *cluster, struct ask *ask)
{
    ask->cluster = cluster;
    if (cluster->state != LINK_READY) {
        finish(ask, ASK_LOST);
        return;
    }
    if (ask->has_failed_to_send || !PQpipelineSync(cluster->conn)) {
        /* half a question is in the pipeline, and cannot be taken back */
        link_lose(cluster, PQerrorMessage(cluster->conn));
        finish(ask, ASK_LOST);
        return;
    }
    uv_update_time(&cluster->loop);
    ask->deadline_ms = uv_now(&cluster->loop) + cluster->wait_ms;
    if (cluster->last)
        cluster->last->next = ask;
    else
        cluster->first = ask;
    cluster->last = ask;
    set_deadline(cluster);
    link_flush(cluster);
}

enum err_code ask_run(struct cluster *cluster, struct ask *ask, struct err *err)
{
    ask_send(cluster, ask);
    return ask_wait(cluster, ask, err);
}

enum err_code ask_refused(const struct ask *ask, struct err *err)
{
    err_set(err, ERR_UNAVAILABLE, "the shared log refuses what it was asked");
    return err_log_only(err, "%.180s (%s)", ask->message, ask->sqlstate);
}

enum err_code ask_wait(struct cluster *cluster, struct ask *ask, struct err *err)
{
    while (ask->end == ASK_OPEN)
        uv_run(&cluster->loop, UV_RUN_ONCE);
    if (ask->end == ASK_LOST)
        return cluster_away(cluster, err);
    if (ask->end == ASK_REFUSED) {
        if (cluster->is_held)
            cluster_release(cluster);
        return ask_refused(ask, err);
    }
    return err->code = ERR_OK;
}

enum err_code ask_one(struct cluster *cluster, enum statement statement,
                      const struct params *params,
                      void (*take)(struct ask *ask, unsigned index, const PGresult *result),
                      void *context, struct err *err)
{
    struct ask ask = {.take = take, .context = context};

    if (cluster_ready(cluster, err))
        return err->code;
    if (params && params->has_failed)
        return err_set(err, ERR_NO_MEMORY, "no memory for a question to the shared log");
    ask_statement(cluster, &ask, statement, params);
    return ask_run(cluster, &ask, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void note(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text ? text : "");
}

static void refused(struct ask *ask, const PGresult *result)
{
    if (ask->sqlstate[0]) /* the first reason counts */
        return;
    note(ask->sqlstate, sizeof ask->sqlstate, PQresultErrorField(result, PG_DIAG_SQLSTATE));
    note(ask->message, sizeof ask->message, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    note(ask->detail, sizeof ask->detail, PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
    if (!ask->sqlstate[0]) /* libpq's own: the connection broke */
        note(ask->sqlstate, sizeof ask->sqlstate, "08006");
    if (!ask->message[0])
        note(ask->message, sizeof ask->message, PQresultErrorMessage(result));
}

/* The engine has ended, or is about to end, this session: the effect is unknown. */
static bool is_the_end(const char *sqlstate)
{
    return strncmp(sqlstate, "08", 2) == 0 || strncmp(sqlstate, "57P", 3) == 0 ||
           strcmp(sqlstate, "25P03") == 0 || strcmp(sqlstate, "25006") == 0;
}

static void synchronised(struct cluster *cluster)
{
    struct ask *ask = cluster->first;
    bool is_refused = ask->sqlstate[0] != '\0';

    cluster->first = ask->next;
    if (!cluster->first)
        cluster->last = NULL;
    finish(ask, is_refused ? ASK_REFUSED : ASK_DONE);
}

/* True: the ask holds it. */
static bool take_result(struct cluster *cluster, PGresult *result)
{
    struct ask *ask = cluster->first;
    bool is_kept = false;

    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_SINGLE_TUPLE:
    case PGRES_COMMAND_OK:
        if (ask->take && !ask->sqlstate[0])
            ask->take(ask, ask->index, result);
        is_kept = ask->kept == result;
        break;
    case PGRES_PIPELINE_ABORTED:
        break;
    case PGRES_PIPELINE_SYNC:
        synchronised(cluster);
        break;
    default:
        refused(ask, result);
        break;
    }
    return is_kept;
}

/* Returns false when the connection was lost. */
static bool read_results(struct cluster *cluster)
{
    while (cluster->first && !PQisBusy(cluster->conn)) {
        PGresult *result = PQgetResult(cluster->conn);
        struct ask *ask = cluster->first;

        if (!result) {
            if (PQstatus(cluster->conn) == CONNECTION_BAD)
                return false;
            ask->index++;
            /* one NULL a statement, and one for an error at the commit */
            if (ask->index > ask->sent + 1)
                return false;
            continue;
        }
        pthread_mutex_lock(&cluster->mutex);
        cluster->has_contact = true;
        cluster->contact_ns = uv_hrtime();
        pthread_mutex_unlock(&cluster->mutex);
        if (!take_result(cluster, result))
            PQclear(result);
        if (!cluster->conn) /* handling it has ended the connection */
            return true;
        if (cluster->first == ask && is_the_end(ask->sqlstate)) {
            snprintf(cluster->why, sizeof cluster->why, "%s", ask->message);
            return false;
        }
    }
    return true;
}

static void read_notifications(struct cluster *cluster)
{
    PGnotify *notify;

    while ((notify = PQnotifies(cluster->conn)) != NULL) {
        /* this node's own entries are no news */
        if (notify->be_pid != PQbackendPID(cluster->conn)) {
            cluster->has_news = true;
            cluster_count(cluster, &cluster->stats.notifications, 1);
        }
        PQfreemem(notify);
    }
}

void asks_read(struct cluster *cluster)
{
    bool is_there = PQconsumeInput(cluster->conn);

    /* results before the end count */
    cluster->why[0] = '\0';
    if (!read_results(cluster)) {
        link_lose(cluster, cluster->why[0] ? cluster->why : PQerrorMessage(cluster->conn));
        return;
    }
    if (!cluster->conn)
        return;
    read_notifications(cluster);
    if (!is_there || PQstatus(cluster->conn) == CONNECTION_BAD) {
        link_lose(cluster, PQerrorMessage(cluster->conn));
        return;
    }
    set_deadline(cluster);
}

void asks_lost(struct cluster *cluster)
{
    struct ask *ask = cluster->first;

    cluster->first = cluster->last = NULL;
    uv_timer_stop(&cluster->ask_timer);
    while (ask) {
        struct ask *next = ask->next;

        finish(ask, ASK_LOST);
        ask = next;
    }
}
