/*
 * Progress, watchdog, and signals during load and drain.
 *
 * Problem: a service manager restarts a daemon whose signs of life stop; a timer that sends them
 * while the loops hang would be worse than none. Approach: between two signs of life the watchdog
 * wakes every loop and the writer; the next sign is sent only after an iteration of each of them
 * (http_server_iterations, world_writer_turns). It checks four times per period, so that one long
 * commit has no effect. A thread that hangs is logged by name. The sand's thread is not checked: a
 * driver that hangs fails patches, not ground.
 *
 * During the load the time for the start is extended while the load makes progress: its counters
 * grow, or the process uses the processor or reads.
 *
 * Signals: the main thread waits for them (sigwait) only while it serves. Before, the watchdog
 * takes SIGTERM and SIGINT: the load is left as it is, which is as safe as kill -9. While draining
 * it ends the process at the second signal of a kind: one Ctrl-C at a terminal may reach the
 * daemon as SIGINT, and as SIGTERM from the script that started it, and is still one. So are two
 * of a kind in the same moment: timeout(1) sends one to its child and one to its group. A signal
 * that it takes when its phase is over is sent again.
 *
 * Invariant: it holds the mutex while it reads loops; watchdog_set_phase takes it, so that loops
 * live meanwhile.
 */
#include "daemon/watchdog.h"

#include "api/numbers.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "daemon/notify.h"
#include "base/timed_wait.h"
#include "base/clock.h"

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

struct watchdog {
    struct api *api;
    struct watchdog_config config;
    pthread_t thread;
    uint64_t watchdog_ms;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t is_changed;
    enum watchdog_phase phase;
    bool is_over;
    uint64_t first_ms[2];           /* SIGINT, SIGTERM: the time of its arrival while draining, 0:
                                     * not yet */
    struct http_server *servers[2]; /* NULL: none */

    /* the watchdog's own */
    uint64_t iterations[LOOPS_MAX], writer_turns;
    bool has_looked;
    char hanging[40]; /* the thread that the log has named; "": all run */
    uint64_t status_ms, logged_ms, worked;
};

/* ---- loading --------------------------------------------------------------------------------- */

/* A number that grows with the progress of the load: processor time, blocks read. */
static uint64_t work_done(void)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) != 0)
        return 0;
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000 +
           (uint64_t)used.ru_inblock;
}

static void report_progress(struct watchdog *watchdog)
{
    uint64_t now = monotonic_ms(), worked;
    char text[API_LOADING_BYTES];

    if (now - watchdog->status_ms < STATUS_MS)
        return;
    watchdog->status_ms = now;
    api_loading_text(watchdog->api, text, sizeof text);
    worked = work_done();
    notify_status("%s", text);
    if (worked >= watchdog->worked + 10) /* the watchdog itself uses less */
        notify_extend(EXTEND_MS);
    watchdog->worked = worked;
    if (now - watchdog->logged_ms < LOG_MS)
        return;
    watchdog->logged_ms = now;
    log_info("%s", text);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The process ends here. */
static void end_now(struct watchdog *watchdog, int status)
{
    if (watchdog->config.port_file[0] != '\0')
        unlink(watchdog->config.port_file);
    if (watchdog->config.ops_port_file[0] != '\0')
        unlink(watchdog->config.ops_port_file);
    _exit(status);
}

/* With the mutex. */
static void take_signal(struct watchdog *watchdog, int number)
{
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    uint64_t *first_ms = &watchdog->first_ms[number == SIGTERM];

    if (watchdog->phase == WATCHDOG_SERVING) {
        kill(getpid(), number);
    } else if (watchdog->phase == WATCHDOG_LOADING) {
        log_info("%s while the world is loaded: kotad ends", name);
        notify_stopping();
        end_now(watchdog, EXIT_DONE);
    } else if (*first_ms == 0) {
        *first_ms = monotonic_ms();
    } else if (monotonic_ms() - *first_ms >= SAME_SIGNAL_MS) {
        log_warn("%s again: kotad ends at once, what is under way is cut off", name);
        end_now(watchdog, EXIT_FAILED);
    }
}

/* Waits a moment for a signal; without the mutex. */
static void wait_for_signal(struct watchdog *watchdog)
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
    pthread_mutex_lock(&watchdog->mutex);
    take_signal(watchdog, number);
    pthread_mutex_unlock(&watchdog->mutex);
}

/* ---- serving --------------------------------------------------------------------------------- */

/* Has its counter advanced since the last check? Updates *before. */
static bool has_advanced(uint64_t *before, uint64_t now)
{
    bool has = now != *before;

    *before = now;
    return has;
}

/*
 * With the mutex: the thread that has not advanced since the last check, "" when all have. Wakes
 * all of them.
 */
static void look(struct watchdog *watchdog, char *late, size_t size)
{
    size_t at = 0;

    late[0] = '\0';
    for (size_t s = 0; s < 2; s++) {
        struct http_server *server = watchdog->servers[s];
        size_t loops = server ? http_server_loops(server) : 0;

        for (size_t i = 0; i < loops && at < LOOPS_MAX; i++, at++)
            if (!has_advanced(&watchdog->iterations[at], http_server_iterations(server, i)) &&
                !late[0])
                snprintf(late, size, s == 0 ? "loop %zu" : "the loop of the probes", i);
        if (server)
            http_server_wake(server);
    }
    if (!has_advanced(&watchdog->writer_turns, world_writer_turns(watchdog->api->world)) &&
        !late[0])
        snprintf(late, size, "the writer");
}

/* With the mutex. */
static void watch(struct watchdog *watchdog)
{
    char late[sizeof watchdog->hanging];

    look(watchdog, late, sizeof late);
    if (!watchdog->has_looked) { /* nothing to compare with yet */
        watchdog->has_looked = true;
        notify_alive();
        return;
    }
    if (late[0] == '\0') {
        if (watchdog->hanging[0])
            log_warn("all threads run again, the watchdog is fed");
        watchdog->hanging[0] = '\0';
        notify_alive();
        return;
    }
    if (strcmp(late, watchdog->hanging) != 0)
        log_error("%s has not turned for %llu ms: the watchdog is not fed", late,
                  (unsigned long long)(watchdog->watchdog_ms / LOOKS));
    memcpy(watchdog->hanging, late, sizeof late);
}

/* With the mutex; gives it up while waiting. */
static void serve(struct watchdog *watchdog)
{
    uint64_t wait_ms = watchdog->watchdog_ms / LOOKS + 1;
    struct timespec until;

    if (watchdog->watchdog_ms == 0) {
        pthread_cond_wait(&watchdog->is_changed, &watchdog->mutex);
        return;
    }
    watch(watchdog);
    until = timed_wait_until((double)wait_ms * 1e-3);
    while (watchdog->phase == WATCHDOG_SERVING && !watchdog->is_over &&
           pthread_cond_timedwait(&watchdog->is_changed, &watchdog->mutex, &until) == 0)
        ;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run(void *context)
{
    struct watchdog *watchdog = context;

    pthread_setname_np(pthread_self(), "watchdog");
    pthread_mutex_lock(&watchdog->mutex);
    while (!watchdog->is_over) {
        if (watchdog->phase == WATCHDOG_SERVING) {
            serve(watchdog);
            continue;
        }
        if (watchdog->phase == WATCHDOG_LOADING)
            report_progress(watchdog);
        pthread_mutex_unlock(&watchdog->mutex);
        wait_for_signal(watchdog);
        pthread_mutex_lock(&watchdog->mutex);
    }
    pthread_mutex_unlock(&watchdog->mutex);
    return NULL;
}

struct watchdog *watchdog_create(struct api *api, const struct watchdog_config *config,
                                 struct err *err)
{
    struct watchdog *watchdog = calloc(1, sizeof *watchdog);
    int failed;

    if (!watchdog) {
        err_set(err, ERR_NO_MEMORY, "no memory for the watchdog");
        return NULL;
    }
    watchdog->api = api;
    watchdog->config = *config;
    watchdog->watchdog_ms = notify_watchdog_ms();
    watchdog->status_ms = watchdog->logged_ms = monotonic_ms();
    watchdog->worked = work_done();
    pthread_mutex_init(&watchdog->mutex, NULL);
    timed_wait_init(&watchdog->is_changed);
    failed = pthread_create(&watchdog->thread, NULL, run, watchdog);
    if (!failed)
        return watchdog;
    err_set(err, ERR_INTERNAL, "no thread for the watchdog: %s", strerror(failed));
    free(watchdog);
    return NULL;
}

void watchdog_set_phase(struct watchdog *watchdog, enum watchdog_phase phase, int first_signal,
                        struct http_server *server, struct http_server *ops)
{
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->phase = phase;
    if (phase == WATCHDOG_DRAINING)
        watchdog->first_ms[first_signal == SIGTERM] = monotonic_ms();
    watchdog->servers[0] = server;
    watchdog->servers[1] = ops;
    watchdog->has_looked = false;
    pthread_cond_signal(&watchdog->is_changed);
    pthread_mutex_unlock(&watchdog->mutex);
}

void watchdog_destroy(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->mutex);
    watchdog->is_over = true;
    pthread_cond_signal(&watchdog->is_changed);
    pthread_mutex_unlock(&watchdog->mutex);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->is_changed);
    pthread_mutex_destroy(&watchdog->mutex);
    free(watchdog);
}
