/*
 * Loops: see loop.h.
 *
 * Each loop has a listening socket of its own on the same port (SO_REUSEPORT), so the kernel
 * spreads connections and no loop ever hands one to another. The option must be set before bind;
 * libuv 1.44 has no flag for it, and its listener would close connections when no file is free; so
 * the socket is made here and libuv only polls it. Of an inherited socket, and of a Unix socket,
 * each loop has a duplicate: all poll the one queue, and the first accepts.
 *
 * One repeating timer a loop drives the wheel of deadlines; it runs only while there are
 * connections, or one waits for memory, so an idle daemon sleeps.
 *
 * The end: draining closes idle connections. While others finish, the listener stays, so that a
 * probe gets the answer that this server ends (each new connection has one answer); the end does
 * not wait for those late connections. Without any others the listener is closed. An inherited
 * socket outlives the process: it is closed at once, and new connections wait for the next process.
 * When the last connection and the last request are gone the remaining handles are closed and
 * uv_run returns. Requests that a worker or another thread still has are waited for, since their
 * memory is theirs until then. A loop that drains ticks, so that the world's writer, which waits
 * for it to be quiet, is not delayed.
 *
 * All signals are blocked in the loops' threads: they belong to the main thread, and a write to a
 * vanished peer then is an error code and not SIGPIPE.
 */
#include "http/loop.h"

#include "base/check.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/exchange.h"
#include "http/request.h"
#include "http/server_data.h"
#include "http/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKLOG 1024
#define TICK_MS_MAX 500
#define TICK_MS_MIN 5
#define DRAIN_TICK_MS 10
#define STREAMS_PER_ITERATION 128
#define SLICE_NS 100000

/*
 * The unsent bytes of a connection that the kernel buffers. Without this bound tcp_wmem lets each
 * slow reader hold megabytes, and a thousand of them all of the machine's TCP memory: the p99 of
 * other clients was then 400 to 7,000 ms instead of 0.5 to 8. Accepted sockets inherit it. The rest
 * waits in our own output, which answers_bytes_max bounds.
 */
#define UNSENT_BYTES_MAX (128 * 1024)

static void on_tick(uv_timer_t *timer)
{
    struct http_loop *loop = timer->data;

    http_wheel_advance(&loop->wheel, uv_now(&loop->uv), http_connection_expired);
    http_connection_retry_accept(loop);
    http_spares_age(&loop->spares);
}

/* From the first input of an iteration until the loop waits again: the delay of input meanwhile.
 */
static void count_iteration(struct http_loop *loop)
{
    uint64_t us;

    if (loop->iteration_ns == 0)
        return;
    us = (uv_hrtime() - loop->iteration_ns) / 1000;
    loop->iteration_ns = 0;
    http_count(&loop->counters.iteration_us_sum, us);
    http_count(&loop->counters.iteration_count[http_latency_bucket(us)], 1);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct http_loop *loop = prepare->data;
    const struct http_app *app = &loop->server->app;

    count_iteration(loop);
    loop->bulk_share = loop->bulk_count > 1 ? loop->bulk_count : 1;
    loop->bulk_count = 0;
    loop->is_clock_fresh = false;
    http_count(&loop->counters.iterations, 1);
    if (app->loop_quiet)
        app->loop_quiet(app->context, loop->index);
}

static void on_check(uv_check_t *check)
{
    http_connection_process_reads(check->data);
}

static void on_connection(uv_poll_t *listener, int status, int events)
{
    (void)status; /* accept(2) returns the error */
    (void)events;
    http_connection_accept(listener->data, listener);
}

void http_loop_listen(struct http_loop *loop)
{
    for (size_t i = 0; i < loop->listener_count; i++)
        CHECK(uv_poll_start(&loop->listeners[i], UV_READABLE, on_connection) == 0);
}

static void close_listeners(struct http_loop *loop)
{
    for (size_t i = 0; i < loop->listener_count; i++) {
        uv_close((uv_handle_t *)&loop->listeners[i], NULL);
        close(loop->listener_fds[i]);
    }
    loop->listener_count = 0;
}

/* A tick fine enough for the shortest limit, coarse enough to sleep. */
static uint64_t tick_ms_for(const struct http_limits *limits)
{
    const uint32_t others[] = {limits->header_ms, limits->body_ms, limits->write_ms,
                               limits->stream_silence_ms, limits->park_ms_max};
    uint32_t least = limits->idle_ms;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] && others[i] < least)
            least = others[i];
    least /= 8;
    return least < TICK_MS_MIN ? TICK_MS_MIN : least > TICK_MS_MAX ? TICK_MS_MAX : least;
}

void http_loop_tick(struct http_loop *loop)
{
    if (loop->is_ticking)
        return;
    loop->is_ticking = true;
    http_wheel_advance(&loop->wheel, uv_now(&loop->uv), http_connection_expired);
    uv_timer_start(&loop->tick, on_tick, loop->wheel.tick_ms, loop->wheel.tick_ms);
}

void http_loop_connection_opened(struct http_loop *loop)
{
    loop->connection_count++;
    http_loop_tick(loop);
}

static void close_handles(struct http_loop *loop)
{
    while (atomic_load_explicit(&loop->finishing, memory_order_acquire))
        sched_yield();
    loop->is_ending = true;
    uv_close((uv_handle_t *)&loop->woken, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    uv_close((uv_handle_t *)&loop->tick, NULL);
    uv_close((uv_handle_t *)&loop->drain_timer, NULL);
}

/* Accepts the connections in the queues, which the kernel would reset, then closes these. */
static void become_deaf(struct http_loop *loop)
{
    loop->is_deaf = true;
    for (size_t i = 0; i < loop->listener_count; i++)
        http_connection_accept(loop, &loop->listeners[i]);
    close_listeners(loop);
}

/* Only connections accepted while draining are left: accepts no more, and closes the idle ones. */
static void stop_listening(struct http_loop *loop)
{
    struct http_connection *next;

    if (!loop->is_deaf)
        become_deaf(loop);
    for (struct http_connection *at = loop->connections; at; at = next) {
        next = at->next;
        if (at->is_late && at->state < HTTP_CONNECTION_HANDLING && at->output.bytes == 0 &&
            (at->state != HTTP_CONNECTION_HEAD || at->pending_length))
            http_connection_close(at); /* the end does not wait for its request */
        else
            http_connection_drain(at);
    }
}

void http_loop_something_ended(struct http_loop *loop)
{
    if (loop->is_draining && !loop->is_deaf && loop->connection_count == loop->late_count)
        stop_listening(loop);
    if (loop->connection_count == 0 && !loop->accept_waits && loop->is_ticking &&
        !loop->is_draining && !loop->is_deaf) {
        loop->is_ticking = false;
        uv_timer_stop(&loop->tick);
        http_spares_drop(&loop->spares);
    }
    if (loop->is_draining && !loop->is_ending && loop->connection_count == 0 &&
        loop->requests_begun == 0)
        close_handles(loop);
}

static void on_drained(uv_timer_t *timer)
{
    struct http_loop *loop = timer->data;

    if (!loop->is_deaf)
        stop_listening(loop);
    while (loop->connections)
        http_connection_close(loop->connections);
}

/* All parked requests, once, and their connections. */
static void retry_parked(struct http_loop *loop)
{
    for (size_t left = loop->parked_count; left && loop->parked; left--) {
        struct http_connection *connection = loop->parked->connection;

        http_exchange_retry(loop->parked, false);
        http_connection_continue(connection);
    }
}

static void drain(struct http_loop *loop)
{
    struct http_connection *next;

    loop->is_draining = true;
    if (loop->server->is_inherited) {
        loop->is_deaf = true;
        close_listeners(loop);
    }
    for (struct http_connection *at = loop->connections; at; at = next) {
        next = at->next;
        http_connection_drain(at);
    }
    retry_parked(loop);
    loop->is_ticking = true;
    uv_timer_start(&loop->tick, on_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
    uv_timer_start(&loop->drain_timer, on_drained, loop->server->drain_ms, 0);
    http_loop_something_ended(loop);
}

/* Takes the whole list and reverses it, so that requests are answered in order of arrival. */
static struct http_request *take_arrived(struct http_loop *loop, enum http_arrival arrival)
{
    struct http_request *list =
        atomic_exchange_explicit(&loop->arrived[arrival], NULL, memory_order_acquire);
    struct http_request *turned = NULL;

    while (list) {
        struct http_request *next = list->next_arrived[arrival];

        list->next_arrived[arrival] = turned;
        turned = list;
        list = next;
    }
    return turned;
}

static void answer_arrived(struct http_loop *loop, enum http_arrival arrival)
{
    struct http_request *list = take_arrived(loop, arrival);

    while (list) {
        struct http_request *request = list;
        struct http_connection *connection = request->connection;

        list = request->next_arrived[arrival];
        if (http_exchange_arrived(request, arrival) && connection)
            http_connection_continue(connection);
    }
}

/* Pulls streams that are due; true when some are left for the next iteration. */
static bool run_streams(struct http_loop *loop)
{
    struct http_stream *stream = NULL;

    for (int i = 0; i < STREAMS_PER_ITERATION && (stream = http_streams_next(loop)); i++)
        http_connection_continue(stream->connection);
    return stream && loop->streams && loop->streams_due;
}

static void on_woken(uv_poll_t *woken, int status, int events)
{
    struct http_loop *loop = woken->data;

    (void)status;
    (void)events;
    wake_take(&loop->wake);
    http_connection_process_reads(loop); /* else a drain would take them for idle */
    answer_arrived(loop, HTTP_RETURNED);
    answer_arrived(loop, HTTP_FINISHED);
    if (atomic_exchange_explicit(&loop->is_woken, false, memory_order_acquire)) {
        http_streams_wake(loop);
        retry_parked(loop);
    }
    if (run_streams(loop))
        wake_send(&loop->wake);
    if (!loop->is_draining &&
        atomic_load_explicit(&loop->server->is_draining, memory_order_acquire))
        drain(loop);
}

void http_loop_wake(struct http_loop *loop)
{
    atomic_store_explicit(&loop->is_woken, true, memory_order_release);
    wake_send(&loop->wake);
}

/* host as an address; its length, 0 when it is none. */
static socklen_t address_of(const char *host, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)(void *)out) == 0)
        return sizeof(struct sockaddr_in);
    if (uv_ip6_addr(host, port, (struct sockaddr_in6 *)(void *)out) == 0)
        return sizeof(struct sockaddr_in6);
    return 0;
}

/* Binds and listens; NULL, or the step that failed, with errno. Connections inherit options. */
static const char *open_listener(int fd, struct sockaddr *any, socklen_t length)
{
    int yes = 1, unsent = UNSENT_BYTES_MAX;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)
        return "share";
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) != 0)
        return "bound";
    if (bind(fd, any, length) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, any, &length) != 0)
        return "listen on";
    return NULL;
}

/* A descriptor of this loop for a socket that listens: the queue of connections is the same. */
static int listener_given(int listener, bool is_tcp)
{
    int yes = 1, unsent = UNSENT_BYTES_MAX, fd = fcntl(listener, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 || ((!is_tcp || (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 &&
                                setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
                                           sizeof unsent) == 0)) &&
                   fcntl(fd, F_SETFL, O_NONBLOCK) == 0))
        return fd;
    close(fd);
    return -1;
}

/* Takes fd: polls it, or closes it. */
static enum err_code add_listener(struct http_loop *loop, int fd, const char *where,
                                  struct err *err)
{
    uv_poll_t *listener = &loop->listeners[loop->listener_count];

    if (uv_poll_init(&loop->uv, listener, fd) != 0) {
        err_set(err, ERR_BUSY, "cannot wait for %s: %s", where, strerror(errno));
        close(fd);
        return err->code;
    }
    listener->data = loop;
    loop->listener_fds[loop->listener_count++] = fd;
    return ERR_OK;
}

static enum err_code listen_unix(struct http_loop *loop, struct err *err)
{
    const int fd = listener_given(loop->server->unix_listener, false);

    if (fd < 0)
        return err_set(err, ERR_BUSY, "cannot share the Unix socket: %s", strerror(errno));
    return add_listener(loop, fd, "the Unix socket", err);
}

static enum err_code listen_tcp(struct http_loop *loop, const char *host, uint16_t *port,
                                struct err *err)
{
    struct sockaddr_storage address;
    struct sockaddr *any = (struct sockaddr *)&address;
    socklen_t length = address_of(host, *port, &address);
    const bool is_given = loop->server->listener >= 0;
    const char *failed;
    char where[80];
    int fd;

    snprintf(where, sizeof where, "%s port %u", host, *port);
    if (length == 0)
        return err_set(err, ERR_BUSY, "cannot listen on %s: %s", where, uv_strerror(UV_EINVAL));
    fd = is_given ? listener_given(loop->server->listener, true)
                  : socket(any->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, ERR_BUSY, "cannot make a socket: %s", strerror(errno));
    failed = is_given ? NULL : open_listener(fd, any, length);
    if (failed) {
        err_set(err, ERR_BUSY, "cannot %s %s: %s", failed, where, strerror(errno));
        close(fd);
        return err->code;
    }
    *port = ntohs(any->sa_family == AF_INET ? ((struct sockaddr_in *)(void *)&address)->sin_port
                                            : ((struct sockaddr_in6 *)(void *)&address)->sin6_port);
    return add_listener(loop, fd, where, err);
}

static enum err_code listen_on(struct http_loop *loop, const char *host, uint16_t *port,
                               struct err *err)
{
    if ((host[0] && listen_tcp(loop, host, port, err)) ||
        (loop->server->unix_listener >= 0 && listen_unix(loop, err))) {
        close_listeners(loop);
        return err->code;
    }
    http_loop_listen(loop);
    return ERR_OK;
}

/* Beside connections: the store's, uploads', pipes and libraries. */
#define OTHER_FILES_MAX 1000

/* The largest number that a descriptor will have, or that the system allows. */
static int highest_file(const struct http_loop *loop)
{
    uint64_t most = loop->server->limits.connections_max + OTHER_FILES_MAX;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && most >= files.rlim_cur)
        most = files.rlim_cur - 1;
    return most < INT_MAX ? (int)most : INT_MAX;
}

/*
 * libuv keeps a table of a loop's descriptors by their number, and ends the process when it cannot
 * grow. So it grows to its largest at once, after a trial allocation, whose failure can be
 * reported.
 */
static enum err_code table_reserve(struct http_loop *loop, struct err *err)
{
    int most = highest_file(loop), low = eventfd(0, EFD_CLOEXEC);
    int high = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, most) : -1;
    void *trial = malloc(2 * ((size_t)most + 8) * sizeof(void *)); /* a power of two, and 2 */
    int status = !trial || high < 0 ? UV_ENOMEM : uv_poll_init(&loop->uv, &loop->highest, high);

    free(trial);
    if (status == 0) {
        uv_poll_start(&loop->highest, UV_READABLE, NULL);
        uv_close((uv_handle_t *)&loop->highest, NULL);
    }
    if (high >= 0)
        close(high);
    if (low >= 0)
        close(low);
    return status == 0 ? ERR_OK
                       : err_set(err, ERR_NO_MEMORY, "no memory for the files of a loop: %d", most);
}

/* libuv ends the process when its first loop finds no pipe for signals: so one is tried before. */
static int init_loop(uv_loop_t *uv)
{
    int trial[2];

    if (pipe2(trial, O_CLOEXEC) != 0)
        return uv_translate_sys_error(errno);
    close(trial[0]);
    close(trial[1]);
    return uv_loop_init(uv);
}

/* The first two steps take memory and descriptors and may fail; the others cannot. */
static enum err_code init_handles(struct http_loop *loop, struct err *err)
{
    int status = init_loop(&loop->uv);

    if (status != 0)
        return err_set(err, ERR_BUSY, "cannot make a loop: %s", uv_strerror(status));
    if (!wake_open(&loop->wake)) {
        CHECK(uv_loop_close(&loop->uv) == 0);
        return err_set(err, ERR_BUSY, "cannot make a loop: %s", strerror(errno));
    }
    CHECK(uv_poll_init(&loop->uv, &loop->woken, loop->wake.fd) == 0);
    CHECK(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
    CHECK(uv_check_init(&loop->uv, &loop->check) == 0);
    CHECK(uv_timer_init(&loop->uv, &loop->tick) == 0);
    CHECK(uv_timer_init(&loop->uv, &loop->drain_timer) == 0);
    loop->woken.data = loop->prepare.data = loop->check.data = loop;
    loop->tick.data = loop->drain_timer.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    CHECK(uv_poll_start(&loop->woken, UV_READABLE, on_woken) == 0);
    http_wheel_init(&loop->wheel, uv_now(&loop->uv), tick_ms_for(&loop->server->limits));
    return ERR_OK;
}

void http_loop_free(struct http_loop *loop)
{
    while (loop->free_requests) {
        struct http_request *request = loop->free_requests;

        loop->free_requests = request->next;
        http_request_free(request);
    }
    http_chunk_pool_finish(&loop->chunks);
    http_spares_drop(&loop->spares);
    if (loop->wake.fd >= 0)
        wake_close(&loop->wake);
    free(loop->route_counters);
    free(loop->read_buffer);
    free(loop);
}

struct http_loop *http_loop_create(struct http_server *server, size_t index, const char *host,
                                   uint16_t *port, struct err *err)
{
    struct http_loop *loop = aligned_alloc(64, (sizeof *loop + 63) & ~(size_t)63);
    size_t routes_bytes = (server->app.route_count + 1) * sizeof *loop->route_counters;

    if (!loop) {
        err_set(err, ERR_NO_MEMORY, "no memory for a loop");
        return NULL;
    }
    memset(loop, 0, sizeof *loop);
    loop->server = server;
    loop->index = index;
    loop->bulk_share = 1;
    loop->wake.fd = -1;
    loop->read_buffer = malloc(HTTP_READ_BYTES);
    loop->route_counters = aligned_alloc(64, (routes_bytes + 63) & ~(size_t)63);
    if (!loop->read_buffer || !loop->route_counters) {
        err_set(err, ERR_NO_MEMORY, "no memory for a loop");
        http_loop_free(loop);
        return NULL;
    }
    memset(loop->route_counters, 0, routes_bytes);
    if (getrandom(&loop->id_state, sizeof loop->id_state, 0) != sizeof loop->id_state)
        loop->id_state = uv_hrtime() + index;
    if (init_handles(loop, err)) {
        http_loop_free(loop);
        return NULL;
    }
    if (table_reserve(loop, err) || listen_on(loop, host, port, err)) {
        close_handles(loop);
        http_loop_join(loop, false);
        http_loop_free(loop);
        return NULL;
    }
    return loop;
}

/*
 * A loop that wakes runs before a worker that computes. Its time slices are the shortest ones:
 * since Linux 6.12 the thread with the shorter slice goes first, for no larger share of the core.
 * Older kernels ignore it. The C library has no function for it.
 */
static void wake_soon(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attr = {.size = sizeof attr, .nice = getpriority(PRIO_PROCESS, 0), .runtime_ns = SLICE_NS};

    (void)syscall(SYS_sched_setattr, 0, &attr, 0u);
}

static void run(void *argument)
{
    struct http_loop *loop = argument;
    const struct http_app *app = &loop->server->app;
    char name[16];

    snprintf(name, sizeof name, loop->server->probes_only ? "probes" : "loop-%zu", loop->index);
    pthread_setname_np(pthread_self(), name);
    wake_soon();
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (app->loop_gone)
        app->loop_gone(app->context, loop->index);
}

enum err_code http_loop_start(struct http_loop *loop, struct err *err)
{
    sigset_t all, before;
    int status;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = uv_thread_create(&loop->thread, run, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0)
        return err_set(err, ERR_BUSY, "cannot start a thread: %s", uv_strerror(status));
    return ERR_OK;
}

void http_loop_join(struct http_loop *loop, bool is_started)
{
    if (is_started)
        CHECK(uv_thread_join(&loop->thread) == 0);
    else
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop->uv) == 0);
}
