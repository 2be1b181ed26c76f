/*
 * Progress, watchdog, and signals at the wrong time.
 *
 * Problem: a service manager restarts a daemon that hangs, if the daemon says by itself that it
 * does not; a timer that says so while the loops stand still would be worse than none. Approach:
 * between two signs of life the keeper wakes every loop and the writer, and the next sign is given
 * only when each of them has gone round since (http_server_turns, world_writer_turns). It looks
 * four times in the watchdog's time, so that one commit that takes long costs nothing. Who hangs is
 * logged by name. The sand's thread is not among them: a driver that hangs fails patches, not
 * ground.
 *
 * While the world is loaded the time for the start is extended as long as the load goes on: its
 * counters grow, or the process uses the processor or reads.
 *
 * Signals: the main thread waits for them (sigwait) only while it serves. Before, the keeper takes
 * SIGTERM and SIGINT: the load is left as it is, which is as safe as kill -9. While draining it
 * ends the process at the second signal of a kind: one Ctrl-C at a terminal may reach the daemon as
 * SIGINT, and as SIGTERM from the script that started it, and is still one. So are two of a kind in
 * the same moment: timeout(1) sends one to its child and one to its group. A signal that it takes
 * when its phase is over is sent again.
 *
 * Invariant: it holds the mutex while it looks at loops; keeper_go_on takes it, so that the loops
 * live as long as they are looked at.
 */
#include "api/keeper.h"

#include "api/numbers.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/timed_wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LOOPS_MAX = 256 + 1, /* the loops, and the one for probes */
    SIGNAL_WAIT_MS = 100,
    SAME_SIGNAL_MS = 250, /* two of a kind within it are one; no hand is as quick */
    STATUS_MS = 1000,
    LOG_MS = 5000,
    EXTEND_MS = 60000,
    LOOKS = 4 /* in the watchdog's time */
};

struct keeper {
    struct api *api;
    struct keeper_config config;
    pthread_t thread;
    uint64_t watchdog_ms;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t is_changed;
    enum keeper_phase phase;
    bool is_over;
    uint64_t first_ms[2];           /* SIGINT, SIGTERM: when it came while draining, 0: not yet */
    struct http_server *servers[2]; /* NULL: none */

    /* the keeper's own */
    uint64_t turns[LOOPS_MAX], writer_turns;
    bool has_looked, is_hanging;
    uint64_t status_ms, logged_ms, worked;
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- loading ----------------------------------------------------------------------------------
 */

/* A number that grows while the load goes on: time of the processor, blocks read. */
static uint64_t work_done(void)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) != 0)
        return 0;
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000 +
           (uint64_t)used.ru_inblock;
}

static void tell_progress(struct keeper *keeper)
{
    uint64_t now = now_ms(), worked;
    char text[API_LOADING_BYTES];

    if (now - keeper->status_ms < STATUS_MS)
        return;
    keeper->status_ms = now;
    api_loading_text(keeper->api, text, sizeof text);
    worked = work_done();
    notify_status("%s", text);
    if (worked >= keeper->worked + 10) /* the keeper itself uses less */
        notify_extend(EXTEND_MS);
    keeper->worked = worked;
    if (now - keeper->logged_ms < LOG_MS)
        return;
    keeper->logged_ms = now;
    log_info("%s", text);
}

/* ---- signals ----------------------------------------------------------------------------------
 */

/* The process ends here. */
static void end_now(struct keeper *keeper, int status)
{
    if (keeper->config.port_file[0] != '\0')
        unlink(keeper->config.port_file);
    if (keeper->config.ops_port_file[0] != '\0')
        unlink(keeper->config.ops_port_file);
    _exit(status);
}

/* With the mutex. */
static void take_signal(struct keeper *keeper, int number)
{
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    uint64_t *first_ms = &keeper->first_ms[number == SIGTERM];

    if (keeper->phase == KEEPER_SERVING) {
        kill(getpid(), number);
    } else if (keeper->phase == KEEPER_LOADING) {
        log_info("%s while the world is loaded: kotad ends", name);
        notify_stopping();
        end_now(keeper, EXIT_SUCCESS);
    } else if (*first_ms == 0) {
        *first_ms = now_ms();
    } else if (now_ms() - *first_ms >= SAME_SIGNAL_MS) {
        log_warn("%s again: kotad ends at once, what is under way is cut off", name);
        end_now(keeper, EXIT_FAILURE);
    }
}

/* Waits a moment for a signal; without the mutex. */
static void wait_for_signal(struct keeper *keeper)
{
    const struct timespec most = {.tv_nsec = SIGNAL_WAIT_MS * 1000000L};
    sigset_t signals;
    int number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    number = sigtimedwait(&signals, NULL, &most);
    if (number <= 0)
        return;
    pthread_mutex_lock(&keeper->mutex);
    take_signal(keeper, number);
    pthread_mutex_unlock(&keeper->mutex);
}

/* ---- serving ----------------------------------------------------------------------------------
 */

/* Has it gone round since the last look? Notes where it stands now. */
static bool has_turned(uint64_t *before, uint64_t now)
{
    bool has = now != *before;

    *before = now;
    return has;
}

/* With the mutex: who has not turned since the last look, "" when all have. Wakes all of them. */
static void look(struct keeper *keeper, char *late, size_t size)
{
    size_t at = 0;

    late[0] = '\0';
    for (size_t s = 0; s < 2; s++) {
        struct http_server *server = keeper->servers[s];
        size_t loops = server ? http_server_loops(server) : 0;

        for (size_t i = 0; i < loops && at < LOOPS_MAX; i++, at++)
            if (!has_turned(&keeper->turns[at], http_server_turns(server, i)) && !late[0])
                snprintf(late, size, s == 0 ? "loop %zu" : "the loop of the probes", i);
        if (server)
            http_server_wake(server);
    }
    if (!has_turned(&keeper->writer_turns, world_writer_turns(keeper->api->world)) && !late[0])
        snprintf(late, size, "the writer");
}

/* With the mutex. */
static void watch(struct keeper *keeper)
{
    char late[40];

    look(keeper, late, sizeof late);
    if (!keeper->has_looked) { /* nothing to compare with yet */
        keeper->has_looked = true;
        notify_alive();
        return;
    }
    if (late[0] == '\0') {
        if (keeper->is_hanging)
            log_warn("all threads turn again, the watchdog is fed");
        keeper->is_hanging = false;
        notify_alive();
        return;
    }
    if (!keeper->is_hanging)
        log_error("%s has not turned for %llu ms: the watchdog is not fed", late,
                  (unsigned long long)(keeper->watchdog_ms / LOOKS));
    keeper->is_hanging = true;
}

/* With the mutex; gives it up while waiting. */
static void serve(struct keeper *keeper)
{
    uint64_t wait_ms = keeper->watchdog_ms / LOOKS + 1;
    struct timespec until;

    if (keeper->watchdog_ms == 0) {
        pthread_cond_wait(&keeper->is_changed, &keeper->mutex);
        return;
    }
    watch(keeper);
    until = timed_wait_until((double)wait_ms * 1e-3);
    while (keeper->phase == KEEPER_SERVING && !keeper->is_over &&
           pthread_cond_timedwait(&keeper->is_changed, &keeper->mutex, &until) == 0)
        ;
}

/* ---- the thread -------------------------------------------------------------------------------
 */

static void *run(void *context)
{
    struct keeper *keeper = context;

    pthread_setname_np(pthread_self(), "keeper");
    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->is_over) {
        if (keeper->phase == KEEPER_SERVING) {
            serve(keeper);
            continue;
        }
        if (keeper->phase == KEEPER_LOADING)
            tell_progress(keeper);
        pthread_mutex_unlock(&keeper->mutex);
        wait_for_signal(keeper);
        pthread_mutex_lock(&keeper->mutex);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

struct keeper *keeper_create(struct api *api, const struct keeper_config *config, struct err *err)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    int failed;

    if (!keeper) {
        err_set(err, ERR_NO_MEMORY, "no memory for the keeper");
        return NULL;
    }
    keeper->api = api;
    keeper->config = *config;
    keeper->watchdog_ms = notify_watchdog_ms();
    keeper->status_ms = keeper->logged_ms = now_ms();
    keeper->worked = work_done();
    pthread_mutex_init(&keeper->mutex, NULL);
    timed_wait_init(&keeper->is_changed);
    failed = pthread_create(&keeper->thread, NULL, run, keeper);
    if (!failed)
        return keeper;
    err_set(err, ERR_INTERNAL, "no thread for the keeper: %s", strerror(failed));
    free(keeper);
    return NULL;
}

void keeper_go_on(struct keeper *keeper, enum keeper_phase phase, int first_signal,
                  struct http_server *server, struct http_server *ops)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->phase = phase;
    if (phase == KEEPER_DRAINING)
        keeper->first_ms[first_signal == SIGTERM] = now_ms();
    keeper->servers[0] = server;
    keeper->servers[1] = ops;
    keeper->has_looked = false;
    pthread_cond_signal(&keeper->is_changed);
    pthread_mutex_unlock(&keeper->mutex);
}

void keeper_destroy(struct keeper *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->mutex);
    keeper->is_over = true;
    pthread_cond_signal(&keeper->is_changed);
    pthread_mutex_unlock(&keeper->mutex);
    pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->is_changed);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}
