/*
 * Creation, waiting and numbers of a cluster; cluster_data.h lists the other files.
 *
 * The loop runs during calls: cluster_wait, or a call that queries the engine (ask_run). After a
 * longer pause timers are due at once on the next call; answers that came meanwhile are read before
 * a deadline counts as a loss.
 *
 * Other threads call cluster_wake (an atomic flag and base/wake.h) and read members that the mutex
 * guards. The mutex is never held over a call of libpq, libuv or the owner.
 */
#include "replica/cluster.h"

#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { WAIT_MS = 10000, POLL_MS = 3000, LEASE_MS = 10000, GOODBYE_MS = 1000 };

/* ---- making ---------------------------------------------------------------------------------- */

static enum err_code copy_text(char *out, size_t room, const char *text, const char *name,
                               struct err *err)
{
    size_t length = text ? strlen(text) : 0;

    if (length >= room)
        return err_limit(err, ERR_BAD_INPUT, (double)(room - 1), (double)length,
                         "%s has %zu bytes; the limit is %zu", name, length, room - 1);
    memcpy(out, text ? text : "", length + 1);
    return ERR_OK;
}

static enum err_code read_options(struct cluster *cluster, const struct cluster_options *options,
                                  struct err *err)
{
    const char *schema = options->schema && options->schema[0] ? options->schema : "kota";

    if (!options->node || !options->node[0])
        return err_set(err, ERR_BAD_INPUT, "node is empty");
    if (copy_text(cluster->node, sizeof cluster->node, options->node, "node", err) ||
        copy_text(cluster->url, sizeof cluster->url, options->url, "url", err) ||
        copy_text(cluster->locales, sizeof cluster->locales, options->locales, "locales", err) ||
        copy_text(cluster->schema, sizeof cluster->schema, schema, "schema", err))
        return err->code;
    for (const char *c = schema; *c; c++)
        if (!(islower((unsigned char)*c) || *c == '_' ||
              (c > schema && isdigit((unsigned char)*c))))
            return err_set(err, ERR_BAD_INPUT,
                           "schema is \"%s\"; it may have a-z, _ and, not at first, 0-9", schema);
    cluster->wait_ms = options->wait_ms ? options->wait_ms : WAIT_MS;
    cluster->poll_ms = options->poll_ms ? options->poll_ms : POLL_MS;
    cluster->lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS;
    cluster->patch_slots = options->patch_slots;
    return conninfo_read(&cluster->info, options->conninfo ? options->conninfo : "", err);
}

/* The flag is the message; this ends the wait for events. */
static void on_woken(uv_poll_t *woken, int status, int events)
{
    struct cluster *cluster = woken->data;

    (void)status;
    (void)events;
    wake_take(&cluster->wake);
}

static void on_wait_over(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;

    cluster->has_timed_out = true;
}

static void on_poll_due(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;

    if (atomic_load(&cluster->is_away))
        return;
    cluster->has_news = true;
    cluster_count(cluster, &cluster->stats.polls, 1);
}

static void loop_make(struct cluster *cluster)
{
    uv_timer_t *timers[] = {&cluster->link_timer, &cluster->ask_timer, &cluster->beat_timer,
                            &cluster->poll_timer, &cluster->wait_timer};

    CHECK(uv_loop_init(&cluster->loop) == 0);
    cluster->loop.data = cluster;
    CHECK(wake_open(&cluster->wake) &&
          uv_poll_init(&cluster->loop, &cluster->woken, cluster->wake.fd) == 0);
    cluster->woken.data = cluster;
    CHECK(uv_poll_start(&cluster->woken, UV_READABLE, on_woken) == 0);
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        CHECK(uv_timer_init(&cluster->loop, timers[i]) == 0);
        timers[i]->data = cluster;
    }
    uv_timer_start(&cluster->poll_timer, on_poll_due, cluster->poll_ms, cluster->poll_ms);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void cluster_free(struct cluster *cluster)
{
    link_stop(cluster);
    uv_walk(&cluster->loop, close_handle, NULL);
    uv_run(&cluster->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&cluster->loop) == 0);
    wake_close(&cluster->wake);
    conninfo_free(&cluster->info);
    pthread_mutex_destroy(&cluster->mutex);
    free(cluster->leases);
    free(cluster->nodes);
    free(cluster);
}

static void instance_make(char out[33])
{
    uint8_t bytes[16];

    CHECK(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

struct cluster *cluster_create(const struct cluster_options *options, struct err *err)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    uint64_t give_up;

    if (!cluster) {
        err_set(err, ERR_NO_MEMORY, "no memory for the shared log");
        return NULL;
    }
    if (read_options(cluster, options, err)) {
        free(cluster);
        return NULL;
    }
    CHECK(pthread_mutex_init(&cluster->mutex, NULL) == 0);
    instance_make(cluster->instance);
    atomic_store(&cluster->is_away, true);
    loop_make(cluster);
    link_start(cluster);
    give_up = uv_now(&cluster->loop) + cluster->wait_ms;
    uv_timer_start(&cluster->wait_timer, on_wait_over, cluster->wait_ms, 0);
    while (atomic_load(&cluster->is_away) && uv_now(&cluster->loop) < give_up &&
           !((cluster->was_away_once || cluster->refused_once) && cluster->fruitless == 0 &&
             cluster->state == LINK_PAUSING))
        uv_run(&cluster->loop, UV_RUN_ONCE);
    uv_timer_stop(&cluster->wait_timer);
    if (atomic_load(&cluster->is_away) && cluster->refused_once && !cluster->was_away_once) {
        err_set(err, ERR_BAD_INPUT, "the shared log at %.250s", cluster->why);
        cluster_free(cluster);
        return NULL;
    }
    return cluster;
}

void cluster_destroy(struct cluster *cluster)
{
    if (!cluster)
        return;
    if (!atomic_load(&cluster->is_away)) {
        cluster->wait_ms = cluster->wait_ms < GOODBYE_MS ? cluster->wait_ms : GOODBYE_MS;
        cluster_release(cluster);
        beat_goodbye(cluster);
    }
    cluster_free(cluster);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void cluster_wake(struct cluster *cluster)
{
    atomic_store(&cluster->is_woken, true);
    wake_send(&cluster->wake);
}

bool cluster_wait(struct cluster *cluster, int timeout_ms)
{
    bool has_news, is_woken = false;

    cluster->has_timed_out = false;
    uv_update_time(&cluster->loop);
    if (timeout_ms > 0)
        uv_timer_start(&cluster->wait_timer, on_wait_over, (uint64_t)timeout_ms, 0);
    if (timeout_ms == 0)
        uv_run(&cluster->loop, UV_RUN_NOWAIT);
    for (;;) {
        is_woken = atomic_exchange(&cluster->is_woken, false) || is_woken;
        if (is_woken || cluster->has_news || cluster->has_timed_out || timeout_ms == 0)
            break;
        uv_run(&cluster->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&cluster->wait_timer);
    has_news = cluster->has_news;
    cluster->has_news = false;
    if (has_news)
        uv_timer_again(&cluster->poll_timer);
    return has_news;
}

bool cluster_is_away(const struct cluster *cluster)
{
    return atomic_load(&cluster->is_away);
}

enum err_code cluster_away(const struct cluster *cluster, struct err *err)
{
    err_set(err, ERR_UNAVAILABLE, "the shared log is away");
    return err_log_only(err, "%.200s", cluster->why);
}

enum err_code cluster_ready(struct cluster *cluster, struct err *err)
{
    uv_run(&cluster->loop, UV_RUN_NOWAIT);
    if (atomic_load(&cluster->is_away))
        return cluster_away(cluster, err);
    return ERR_OK;
}

enum err_code cluster_identity(struct cluster *cluster, char out[33], struct err *err)
{
    if (cluster_ready(cluster, err))
        return err->code;
    if (strlen(cluster->identity) != 32)
        return err_set(err, ERR_DAMAGED, "the shared log's identity is \"%s\"", cluster->identity);
    memcpy(out, cluster->identity, 33);
    return ERR_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

void cluster_count(struct cluster *cluster, uint64_t *number, uint64_t by)
{
    pthread_mutex_lock(&cluster->mutex);
    *number += by;
    pthread_mutex_unlock(&cluster->mutex);
}

void cluster_stats(struct cluster *cluster, struct cluster_stats *out)
{
    pthread_mutex_lock(&cluster->mutex);
    *out = cluster->stats;
    out->contact_age_s =
        cluster->has_contact ? (double)(uv_hrtime() - cluster->contact_ns) * 1e-9 : INFINITY;
    pthread_mutex_unlock(&cluster->mutex);
    out->is_away = atomic_load(&cluster->is_away);
}
