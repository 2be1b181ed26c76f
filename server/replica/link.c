/*
 * The connection: made, watched, lost, and made again.
 *
 * The hosts of the string are tried in turn, each with its own timeout. When all have failed there
 * is a pause, which grows from 20 ms to 2 s and is reset by a success: after a failover the new
 * primary is found soon, and an unreachable engine is not flooded.
 *
 * libpq owns the socket, and closes it and opens another under the same number while it tries the
 * addresses of a host. epoll forgets a closed socket, but libuv does not notice: it would modify a
 * registration that does not exist, and abort. So the poll handle is stopped before each step of
 * libpq's handshake and started again after it; when libpq has dropped the connection, it is
 * stopped before the number is used again.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 20, PAUSE_MS_MAX = 2000 };

struct watch {
    uv_poll_t poll;
    int socket;
};

static void connect_host(struct cluster *cluster);

/* ---- watching -------------------------------------------------------------------------------- */

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void watch_end(struct cluster *cluster)
{
    if (!cluster->watch)
        return;
    uv_poll_stop(&cluster->watch->poll);
    uv_close((uv_handle_t *)&cluster->watch->poll, on_watch_closed);
    cluster->watch = NULL;
}

static void connect_step(struct cluster *cluster);

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct cluster *cluster = poll->loop->data;

    (void)status; /* an error of the socket is one that libpq will find */
    if (events & (UV_READABLE | UV_WRITABLE))
        cluster->moved_ms = uv_now(&cluster->loop);
    if (cluster->state == LINK_CONNECTING)
        connect_step(cluster);
    else if (cluster->state == LINK_SETTING_UP)
        setup_read(cluster);
    else if (cluster->state == LINK_READY)
        asks_read(cluster);
    if (cluster->conn && cluster->state != LINK_CONNECTING && PQisnonblocking(cluster->conn))
        link_flush(cluster);
}

/* False: no memory, or no socket. */
static bool watch(struct cluster *cluster, int events)
{
    int socket = PQsocket(cluster->conn);

    if (socket < 0)
        return false;
    if (cluster->watch && cluster->watch->socket != socket)
        watch_end(cluster);
    if (!cluster->watch) {
        struct watch *new = calloc(1, sizeof *new);

        if (!new || uv_poll_init(&cluster->loop, &new->poll, socket) != 0) {
            free(new);
            return false;
        }
        new->socket = socket;
        new->poll.data = new;
        cluster->watch = new;
    }
    return uv_poll_start(&cluster->watch->poll, events, on_socket) == 0;
}

void link_flush(struct cluster *cluster)
{
    int left = PQflush(cluster->conn);

    if (left < 0 || PQstatus(cluster->conn) == CONNECTION_BAD) {
        /* earlier answers come first, and have the reason */
        if (cluster->state == LINK_READY)
            asks_read(cluster);
        else
            link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
        return;
    }
    if (!watch(cluster, left > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE))
        link_lose(cluster, "its socket cannot be watched");
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void drop(struct cluster *cluster)
{
    watch_end(cluster);
    uv_timer_stop(&cluster->link_timer);
    if (cluster->conn)
        PQfinish(cluster->conn);
    cluster->conn = NULL;
    cluster->is_held = false;
    cluster->state = LINK_PAUSING;
}

static void on_pause_over(uv_timer_t *timer)
{
    connect_host(timer->data);
}

static void pause_and_try(struct cluster *cluster)
{
    uv_timer_start(&cluster->link_timer, on_pause_over, cluster->pause_ms, 0);
    cluster->pause_ms = cluster->pause_ms * 2 < PAUSE_MS_MAX ? cluster->pause_ms * 2 : PAUSE_MS_MAX;
}

void link_lose(struct cluster *cluster, const char *why)
{
    bool was_there = !atomic_exchange(&cluster->is_away, true);
    char reason[sizeof cluster->why], sqlstate[6];

    /* the engine's last message is more exact than a closed socket */
    conninfo_reason(&cluster->info, cluster->parting[0] ? cluster->parting : why, reason,
                    sizeof reason, sqlstate);
    cluster->parting[0] = '\0';
    if (!reason[0])
        snprintf(reason, sizeof reason, "the connection was lost");
    memcpy(cluster->why, reason, sizeof reason);
    drop(cluster);
    if (was_there) {
        log_warn("the shared log is away: %s", reason);
        snprintf(cluster->logged, sizeof cluster->logged, "%s", reason);
        cluster_count(cluster, &cluster->stats.losses, 1);
        beat_stop(cluster);
    }
    /* the same host first: often it is a session that ended, and not the engine */
    cluster->fruitless = 0;
    cluster->pause_ms = PAUSE_MS;
    asks_lost(cluster);
    pause_and_try(cluster);
}

void link_no_use(struct cluster *cluster, enum link_fault fault, const char *why)
{
    char name[CONNINFO_NAME_MAX], reason[200], sqlstate[6];

    conninfo_reason(&cluster->info, why, reason, sizeof reason, sqlstate);
    /* an operator must change it, waiting does not help: authentication, database, privilege */
    if (strncmp(sqlstate, "28", 2) == 0 || strcmp(sqlstate, "3D000") == 0 ||
        strcmp(sqlstate, "42501") == 0)
        fault = LINK_REFUSES;
    if (fault == LINK_REFUSES)
        cluster->refused_once = true;
    else
        cluster->was_away_once = true;
    conninfo_name(&cluster->info, cluster->host, name);
    snprintf(cluster->why, sizeof cluster->why, "%.100s: %.140s", name, reason);
    if (strcmp(cluster->why, cluster->logged) != 0) {
        log_warn("the shared log at %s", cluster->why);
        memcpy(cluster->logged, cluster->why, sizeof cluster->logged);
    }
    drop(cluster);
    asks_lost(cluster); /* the statements that were being prepared */
    cluster->host = (cluster->host + 1) % cluster->info.count;
    if (++cluster->fruitless < cluster->info.count) {
        uv_timer_start(&cluster->link_timer, on_pause_over, 0, 0);
    } else {
        cluster->fruitless = 0;
        pause_and_try(cluster);
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void on_connect_slow(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;
    char why[64];

    snprintf(why, sizeof why, "no answer within %u ms", cluster->info.connect_ms);
    link_no_use(cluster, LINK_AWAY, why);
}

/* Notices of the engine: a warning during an ask is noted, since one at a commit can mean that the
 * standby did not get it. */
static void on_notice(void *context, const PGresult *result)
{
    struct cluster *cluster = context;
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (cluster->state != LINK_READY || !sqlstate || strncmp(sqlstate, "00", 2) == 0)
        return;
    if (cluster->first)
        cluster->first->is_warned = true;
    if (strncmp(sqlstate, "57P", 3) == 0 || strncmp(sqlstate, "25P", 3) == 0) {
        snprintf(cluster->parting, sizeof cluster->parting, "%s", message ? message : sqlstate);
        return; /* link_lose reports it */
    }
    log_warn("the shared log says: %s (%s)", message ? message : "", sqlstate);
}

static void connect_host(struct cluster *cluster)
{
    const char *reason;

    cluster->conn = conninfo_start(&cluster->info, cluster->host, cluster->node, cluster->wait_ms);
    if (!cluster->conn) {
        link_no_use(cluster, LINK_AWAY, "no memory");
        return;
    }
    if (PQstatus(cluster->conn) == CONNECTION_BAD) {
        reason = PQerrorMessage(cluster->conn);
        /* before any network: a value of the string is wrong */
        link_no_use(cluster, strncmp(reason, "invalid ", 8) == 0 ? LINK_REFUSES : LINK_AWAY,
                    reason);
        return;
    }
    cluster->state = LINK_CONNECTING;
    PQsetErrorVerbosity(cluster->conn, PQERRORS_VERBOSE); /* with the SQLSTATE */
    PQsetNoticeReceiver(cluster->conn, on_notice, cluster);
    uv_timer_start(&cluster->link_timer, on_connect_slow, cluster->info.connect_ms, 0);
    if (!watch(cluster, UV_WRITABLE))
        link_no_use(cluster, LINK_AWAY, "its socket cannot be watched");
}

static void connect_step(struct cluster *cluster)
{
    bool is_watched = true;

    watch_end(cluster);
    switch (PQconnectPoll(cluster->conn)) {
    case PGRES_POLLING_READING:
        is_watched = watch(cluster, UV_READABLE);
        break;
    case PGRES_POLLING_WRITING:
        is_watched = watch(cluster, UV_WRITABLE);
        break;
    case PGRES_POLLING_OK:
        PQsetErrorVerbosity(cluster->conn, PQERRORS_DEFAULT);
        PQsetnonblocking(cluster->conn, 1);
        cluster->state = LINK_SETTING_UP;
        /* the same clock: an engine that does not answer now is of no use either */
        uv_timer_start(&cluster->link_timer, on_connect_slow,
                       cluster->info.connect_ms + cluster->wait_ms, 0);
        setup_begin(cluster);
        break;
    default:
        link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
        break;
    }
    if (!is_watched)
        link_no_use(cluster, LINK_AWAY, "its socket cannot be watched");
}

void link_is_ready(struct cluster *cluster)
{
    char name[CONNINFO_NAME_MAX];

    uv_timer_stop(&cluster->link_timer);
    cluster->state = LINK_READY;
    cluster->fruitless = 0;
    cluster->pause_ms = PAUSE_MS;
    cluster->logged[0] = '\0';
    cluster->has_news = true;
    atomic_store(&cluster->is_away, false);
    cluster_count(cluster, &cluster->stats.connects, 1);
    conninfo_name(&cluster->info, cluster->host, name);
    log_info("the shared log at %s is there", name);
    beat_start(cluster);
}

void link_start(struct cluster *cluster)
{
    cluster->pause_ms = PAUSE_MS;
    connect_host(cluster);
}

void link_stop(struct cluster *cluster)
{
    drop(cluster);
    asks_lost(cluster);
}
