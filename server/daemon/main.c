/*
 * kotad: configuration, signals, start and drain. It only connects the rooms.
 *
 * The order of the start: configuration, tokens, store, world (the store's locales, then those of
 * the command line: all of them, or no start; in between those of a shared log), server, readiness,
 * port file. With --ops-listen its server runs from before the world is loaded until the other has
 * drained. The order of the end: readiness off, server drained while patches settle, writer joined,
 * store closed. The daemon starts with a damaged store: undamaged locales are served, and readiness
 * reports the damage.
 *
 * A reload (SIGHUP) reads everything before it changes anything: the configuration, the tokens,
 * then the world, whose change is one publication. Whatever cannot be read leaves all as it was.
 * Options that are not live keep the value of the start, and the log names them.
 *
 * Signals are blocked in every thread and taken by sigwait() here, or by the watchdog while this
 * thread loads or drains (daemon/watchdog.h), so that no handler runs.
 */
#include "api/api.h"
#include "api/feed/watches.h"
#include "daemon/config.h"
#include "daemon/healthcheck.h"
#include "daemon/watchdog.h"
#include "daemon/load.h"
#include "daemon/sharing.h"
#include "daemon/unix_socket.h"
#include "base/exit_code.h"
#include "daemon/confine.h"
#include "base/log.h"
#include "base/standard_files.h"
#include "daemon/notify.h"
#include "sand/engine_gl/driver_places.h"
#include "terrain/kernels/simd.h"
#include "view/view.h"
#include "world/values/threads.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum {
    OPS_CONNECTIONS_MAX = 64,
    OTHER_FILES_MAX = 128,
    OTHER_FILES_LOOP_MAX = 64,
    FILES_CONFINED_MAX = 1000
};

extern char **environ;

struct daemon {
    struct config config; /* in force; lowered to the limits of the system */
    struct config given;  /* as it was read, at the start or by the last reload */
    int argc;
    char *const *argv;
    struct notify_sockets sockets;  /* handed over by the service manager */
    struct unix_socket unix_socket; /* of --listen unix:PATH */
    struct watchdog *watchdog;
    struct auth *auth;
    struct audit *audit; /* NULL: none */
    struct store *store; /* NULL: everything lives in memory */
    struct sharing sharing;
    struct world *world;
    struct sand *sand;
    struct daemon_view *view;
    struct api api;
    struct http_server *server;
    struct http_server *ops; /* NULL: no --ops-listen */
};

/*
 * The file appears whole or not at all. It holds the port, or without TCP the URL of the Unix
 * socket.
 */
static enum err_code port_file_write(const char *path, uint16_t port, const char *unix_path,
                                     struct err *err)
{
    char temporary[CONFIG_TEXT_MAX + 8];
    FILE *stream;
    bool is_written;

    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    stream = fopen(temporary, "we");
    is_written = stream && (unix_path ? fprintf(stream, "unix:%s\n", unix_path)
                                      : fprintf(stream, "%u\n", port)) > 0;
    if (stream && fclose(stream) != 0)
        is_written = false;
    if (!is_written || rename(temporary, path) != 0)
        return err_set(err, ERR_BAD_INPUT, "port file %s: %s", path, strerror(errno));
    return ERR_OK;
}

static void server_wake(void *context)
{
    http_server_wake(context);
}

/* Something was published. */
static void world_woke(void *context)
{
    struct daemon *d = context;

    http_server_wake(d->server);
    watches_wake(d->api.watches);
}

static enum err_code terrain_load(struct daemon *d, struct err *err)
{
    err->code = ERR_OK;
    if (d->config.world[0] != '\0' && load_world(&d->api, d->config.world, err))
        return err->code;
    atomic_fetch_add(&d->api.loading.total, d->config.file_count);
    for (size_t i = 0; i < d->config.file_count; i++) {
        if (load_file(&d->api, d->config.files[i], err))
            return err->code;
        atomic_fetch_add(&d->api.loading.done, 1);
    }
    return ERR_OK;
}

static struct store_options store_options_of(const struct config *config)
{
    static struct threads threads;

    threads = threads_of_machine();
    return (struct store_options){
        .directory = config->data, .wal_bytes_max = config->wal_bytes_max, .crew = &threads.crew};
}

static enum err_code open_store(struct daemon *d, struct err *err)
{
    const struct store_options options = store_options_of(&d->config);

    err->code = ERR_OK;
    if (d->config.data[0] != '\0')
        d->store = store_open(&options, err);
    return err->code;
}

/* Probes and counters on an address of their own: before the world is loaded, until all has ended.
 */
static enum err_code ops_serve(struct daemon *d, struct err *err)
{
    const struct config *config = &d->config;
    const struct http_app app = api_ops_app(&d->api);
    struct http_config http = {
        .host = config->ops_host,
        .port = config->ops_port,
        .loops = 1,
        .limits = config->limits.http,
        .slow_request_ms = (uint32_t)config->slow_ms,
        .access_log = config->has_access_log,
        .probes_only = true,
        .listener = d->sockets.ops,
        .has_listener = d->sockets.ops >= 0,
        .is_inherited = d->sockets.ops >= 0,
    };

    if (config->ops_host[0] == '\0')
        return ERR_OK;
    http.limits.connections_max = http.limits.connections_per_address_max = OPS_CONNECTIONS_MAX;
    d->ops = http_server_start(&http, &app, err);
    if (!d->ops)
        return err->code;
    log_info("probes and counters at %s port %u", config->ops_host, http_server_port(d->ops));
    if (config->ops_port_file[0] != '\0')
        return port_file_write(config->ops_port_file, http_server_port(d->ops), NULL, err);
    return ERR_OK;
}

static struct world *make_world(struct daemon *d, struct err *err)
{
    const struct config *config = &d->config;
    const struct world_sharing sharing = {
        .log = d->sharing.log,
        .node = d->sharing.node,
        .locales = config->cluster.locales,
        .snapshot_every = config->cluster.snapshot_every,
        .keep_entries = config->cluster.keep_entries,
    };

    return world_create_shared((size_t)config->loops, &config->limits.world, d->store,
                               d->sharing.log ? &sharing : NULL, err);
}

static enum err_code open_audit(struct daemon *d, struct err *err)
{
    const struct config *config = &d->config;

    if (config->audit[0] == '\0' && config->is_audit_sync)
        return err_set(err, ERR_BAD_INPUT, "--audit-sync needs --audit FILE");
    if (config->audit[0] == '\0')
        return ERR_OK;
    d->audit = audit_create(config->audit, config->is_audit_sync, err);
    return d->audit ? ERR_OK : err->code;
}

static enum err_code daemon_prepare(struct daemon *d, struct err *err)
{
    const struct config *config = &d->config;
    const char *tokens = config->token_file[0] != '\0' ? config->token_file : NULL;

    if (!config_is_loopback(config) && !tokens && !config->is_read_only)
        return err_set(err, ERR_BAD_INPUT,
                       "listening on %s, where other machines can connect, needs --token-file or "
                       "--read-only",
                       config->host);
    d->auth = auth_create(tokens, config->is_read_only, err);
    if (!d->auth || open_store(d, err) || open_audit(d, err))
        return err->code;
    if (sharing_open(&d->sharing, config, d->store, err))
        return err->code;
    d->world = make_world(d, err);
    if (!d->world || api_init(&d->api, d->world, d->auth, &config->limits, err))
        return err->code;
    d->api.public_url = config->public_url;
    d->api.proxies = config->proxies;
    if (d->audit)
        api_set_audit(&d->api, d->audit);
    d->api.staleness_s_max = config->cluster.max_staleness_s;
    d->watchdog = watchdog_create(
        &d->api, &(struct watchdog_config){config->port_file, config->ops_port_file}, err);
    if (!d->watchdog || ops_serve(d, err) || world_load(d->world, err))
        return err->code;
    if (terrain_load(d, err))
        return err->code;
    d->sand = d->api.sand = sand_create(d->world, &config->limits.sand, err);
    if (!d->sand)
        return err->code;
    d->view = d->api.view = daemon_view_create(config->limits.sand.device.gpu, d->sand, err);
    return d->view ? ERR_OK : err->code;
}

/* Where a socket that was handed over is bound is where we listen. A different --listen has no
 * effect with an inherited socket, so it is logged.
 */
static enum err_code take_socket(int fd, const char *option, const char *otherwise, char *host,
                                 uint16_t *port, struct err *err)
{
    char before[CONFIG_HOST_MAX + 8], now[CONFIG_HOST_MAX + 8];

    snprintf(before, sizeof before, "%s:%u", host, (unsigned)*port);
    if (fd < 0 || notify_socket_address(fd, host, port, err))
        return err->code;
    snprintf(now, sizeof now, "%s:%u", host, (unsigned)*port);
    if (strcmp(before, otherwise) != 0 && strcmp(before, now) != 0)
        log_warn("%s %s is not used: the socket that was handed over is at %s (with systemd: "
                 "systemctl edit kotad.socket)",
                 option, before, now);
    return ERR_OK;
}

/* Sockets that are handed over are used in the place of --listen, all of it. */
static enum err_code take_sockets(struct daemon *d, struct err *err)
{
    struct config *config = &d->config;
    char before[CONFIG_UNIX_MAX];

    if (notify_sockets(&d->sockets, err) ||
        take_socket(d->sockets.main, "listen", "127.0.0.1:7420", config->host, &config->port, err))
        return err->code;
    if (d->sockets.main >= 0 || d->sockets.unix_main >= 0) {
        snprintf(before, sizeof before, "%s", config->unix_path);
        notify_socket_path(d->sockets.unix_main, config->unix_path);
        if (before[0] != '\0' && strcmp(before, config->unix_path) != 0)
            log_warn(
                "listen unix:%s is not used: sockets were handed over (with systemd: systemctl "
                "edit kotad.socket)",
                before);
        if (d->sockets.main < 0)
            config->host[0] = '\0';
    }
    return take_socket(d->sockets.ops, "ops-listen", ":0", config->ops_host, &config->ops_port,
                       err);
}

static bool is_low(uint16_t port)
{
    return port > 0 && port < 1024;
}

/* Gives up root and the file system, before any thread is made. The data directory is made first.
 */
static enum err_code confine(const struct config *config, const struct sharing *sharing,
                             struct err *err)
{
    struct confine_path paths[9 + CONNINFO_FILES_MAX + DRIVER_PLACES_MAX + FILES_CONFINED_MAX] = {
        {config->data, CONFINE_WRITE},       {config->port_file, CONFINE_WRITE},
        {config->token_file, CONFINE_READ},  {config->world, CONFINE_READ},
        {config->config_file, CONFINE_READ}, {config->ops_port_file, CONFINE_WRITE},
        {config->unix_path, CONFINE_SOCKET}, {config->audit, CONFINE_WRITE},
    };
    struct driver_places drivers = {.count = 0};
    size_t count = 8;
    int version;

    if (config->data[0] != '\0' && access(config->data, F_OK) != 0) {
        if (!store_make_directory(config->data))
            return err_set(err, ERR_BAD_INPUT, "data directory %s: %s", config->data,
                           strerror(errno));
        if (config->user[0] != '\0' && confine_give(config->data, config->user, err))
            return err->code;
    }
    if (config->user[0] != '\0' &&
        confine_user(config->user, is_low(config->port) || is_low(config->ops_port), err))
        return err->code;
    if (config->has_no_sandbox || config->file_count > FILES_CONFINED_MAX) {
        log_info("sandbox: Landlock is off");
        return ERR_OK;
    }
    for (size_t i = 0; i < config->file_count; i++)
        paths[count++] = (struct confine_path){config->files[i], CONFINE_READ};
    for (size_t i = 0; i < sharing->file_count; i++)
        if (access(sharing->files[i], F_OK) == 0) /* a missing one opens no directory */
            paths[count++] = (struct confine_path){sharing->files[i], CONFINE_READ};
    if (device_may_open_driver(&config->limits.sand.device))
        driver_places_find(&drivers);
    for (size_t i = 0; i < drivers.count; i++)
        paths[count++] = (struct confine_path){
            drivers.paths[i], drivers.is_written[i] ? CONFINE_WRITE : CONFINE_READ};
    version = confine_files(paths, count, err);
    if (version > 0)
        log_info("sandbox: Landlock %d is in force", version);
    else
        log_warn("sandbox: not in force: %s", err->msg);
    return err->code = ERR_OK;
}

/*
 * The usual soft limit of 1,024 open files is less than the connections that are promised: it is
 * raised. Where it cannot be raised, fewer connections are accepted, and further ones get 503. A
 * process without a free descriptor cannot even reject a peer, and libuv's loops then retry for
 * ever.
 */
static void files_allow(struct config *config)
{
    size_t *most = &config->limits.http.connections_max;
    rlim_t others = OTHER_FILES_MAX + OTHER_FILES_LOOP_MAX * (rlim_t)config->loops;
    rlim_t wanted = (rlim_t)*most + others;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
        return;
    files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur >= wanted)
        return;
    *most = (size_t)(files.rlim_cur > 2 * others ? files.rlim_cur - others : files.rlim_cur / 2);
    log_warn("this process may open %llu files only: at most %zu connections are taken",
             (unsigned long long)files.rlim_cur, *most);
}

static enum err_code daemon_serve(struct daemon *d, int unix_listener, struct err *err)
{
    const struct config *config = &d->config;
    const bool is_inherited = d->sockets.main >= 0 || d->sockets.unix_main >= 0;
    const struct http_config http = {
        .host = config->host,
        .port = config->port,
        .loops = (size_t)config->loops,
        .limits = config->limits.http,
        .slow_request_ms = (uint32_t)config->slow_ms,
        .access_log = config->has_access_log,
        .cors_allow_origin = strcmp(config->cors_origin, "none") == 0 ? NULL : config->cors_origin,
        .listener = d->sockets.main,
        .has_listener = d->sockets.main >= 0,
        .unix_listener = unix_listener,
        .has_unix_listener = unix_listener >= 0,
        .is_inherited = is_inherited,
    };
    const struct http_app app = api_http_app(&d->api);

    world_readers_begin(d->world);
    if (is_inherited) /* clients wait in its queue, and are answered as soon as a loop runs */
        atomic_store(&d->api.state, API_READY);
    d->server = http_server_start(&http, &app, err);
    if (!d->server)
        return err->code;
    atomic_store(&d->api.server, d->server);
    sharing_listens(&d->sharing, config, http_server_port(d->server));
    world_set_wake(d->world, world_woke, d);
    sand_set_wake(d->sand, server_wake, d->server);
    atomic_store(&d->api.state, API_READY);
    watchdog_set_phase(d->watchdog, WATCHDOG_SERVING, 0, d->server, d->ops);
    if (config->port_file[0] != '\0' &&
        port_file_write(config->port_file, http_server_port(d->server),
                        config->host[0] == '\0' ? config->unix_path : NULL, err))
        return err->code;
    return ERR_OK;
}

static enum err_code open_unix_socket(struct daemon *d, struct err *err)
{
    if (d->config.unix_path[0] == '\0' || d->sockets.unix_main >= 0)
        return err->code = ERR_OK;
    return unix_socket_open(&d->unix_socket, d->config.unix_path, d->config.unix_mode, err);
}

static void report_start(struct daemon *d)
{
    const struct config *config = &d->config;
    bool is_v6 = strchr(config->host, ':') != NULL;
    struct world_stats stats;
    char url[CONFIG_HOST_MAX + 32] = "", local[CONFIG_UNIX_MAX + 16] = "";

    world_stats(d->world, &stats);
    if (config->host[0] != '\0')
        snprintf(url, sizeof url, "http://%s%s%s:%u/", is_v6 ? "[" : "", config->host,
                 is_v6 ? "]" : "", http_server_port(d->server));
    if (config->unix_path[0] != '\0')
        snprintf(local, sizeof local, "%sunix:%s", url[0] ? " and " : "", config->unix_path);
    log_info("kotad %s serves %llu locales (%llu bytes) at %s%s", KOTA_VERSION,
             (unsigned long long)stats.locales, (unsigned long long)stats.memory_bytes, url, local);
    notify_status("serving %llu locales at %s%s", (unsigned long long)stats.locales, url, local);
    notify_ready();
}

/* ---- reload ---------------------------------------------------------------------------------- */

static void report_difference(void *context, const char *name, bool is_live)
{
    (void)context;
    if (is_live)
        log_info("SIGHUP: %s has changed", name);
    else
        log_warn("SIGHUP: %s has changed, which needs a restart; the value of the start stays",
                 name);
}

/* A signal to end has come: a reload is given up. */
static bool is_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* What the start has loaded into memory; a store keeps its own. */
static enum err_code reload_world(struct daemon *d, struct err *err)
{
    const struct config *config = &d->config;
    struct load_news news;

    err->code = ERR_OK;
    if (d->store || (config->world[0] == '\0' && config->file_count == 0))
        return ERR_OK;
    if (load_again(&d->api, config->world, config->files, config->file_count, is_to_end, &news,
                   err))
        return err->code;
    log_info("SIGHUP: locales: %zu replaced, %zu added, %zu removed, %zu as they were",
             news.replaced, news.added, news.removed, news.kept);
    return ERR_OK;
}

/* Puts the limits of the configuration in force. */
static enum err_code apply_limits(struct daemon *d, const struct config *fresh, struct err *err)
{
    struct config *config = &d->config;
    struct http_limits ops;

    config_adopt(config, fresh);
    ops = config->limits.http;
    ops.connections_per_address_max = OPS_CONNECTIONS_MAX;
    if (api_set_limits(&d->api, &config->limits, err) ||
        http_server_set(d->server, &config->limits.http, (uint32_t)config->slow_ms,
                        config->has_access_log, err))
        return err->code;
    if (d->ops &&
        http_server_set(d->ops, &ops, (uint32_t)config->slow_ms, config->has_access_log, err))
        return err->code;
    log_init(config->log_level, config->log_format);
    return ERR_OK;
}

/* The world is read under the new limits, so they come first; an error restores the old ones.
 */
static enum err_code reload_all(struct daemon *d, struct config *fresh, struct err *err)
{
    struct token_list *tokens = NULL;
    struct err ignored = {.code = ERR_OK};

    if (config_read(fresh, d->argc, d->argv, environ, isatty(STDERR_FILENO) == 1, err) ||
        auth_read(d->auth, &tokens, err))
        return err->code;
    if (apply_limits(d, fresh, err) || reload_world(d, err)) {
        auth_drop(tokens);
        apply_limits(d, &d->given, &ignored); /* they are kept: this takes no memory */
        return err->code;
    }
    if (d->audit && audit_reopen(d->audit, &ignored))
        log_error("SIGHUP: %s", ignored.msg);
    auth_swap(d->auth, tokens);
    http_server_wake(d->server); /* streams of tokens that are gone end */
    config_differences(&d->given, fresh, report_difference, NULL);
    config_adopt(&d->given, fresh);
    return ERR_OK;
}

static void reload(struct daemon *d)
{
    struct config *fresh = calloc(1, sizeof *fresh);
    struct err err = {.code = ERR_OK};

    notify_reloading();
    if (!fresh)
        log_error("SIGHUP: everything stays as it was: no memory");
    else if (reload_all(d, fresh, &err))
        log_error("SIGHUP: everything stays as it was: %s", err_for_log(&err));
    else if (auth_has_token_file(d->auth))
        log_info("SIGHUP: tokens read again from %s, %zu are in force", d->config.token_file,
                 auth_tokens(d->auth));
    else
        log_info("SIGHUP: read again");
    if (fresh)
        free((void *)fresh->files);
    free(fresh);
    notify_ready();
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Until SIGTERM or SIGINT, which it returns. */
static int wait_for_the_end(struct daemon *d, const sigset_t *signals)
{
    int signal_number = 0;

    while (sigwait(signals, &signal_number) == 0 && signal_number == SIGHUP)
        reload(d);
    log_info("%s: draining", signal_number == SIGINT ? "SIGINT" : "SIGTERM");
    return signal_number;
}

/*
 * Patches settle and requests finish in the same time; a tenth of it is left for the answers.
 * False: as sand_stop.
 */
static bool drain(struct daemon *d, int first_signal)
{
    const struct config *config = &d->config;
    bool is_whole;

    atomic_store(&d->api.state, API_DRAINING);
    notify_stopping();
    if (d->watchdog)
        watchdog_set_phase(d->watchdog, WATCHDOG_DRAINING, first_signal, NULL, NULL);
    daemon_view_end(d->view);
    sand_end(d->sand, config->saves_patches, (double)config->drain_ms * 0.9e-3);
    if (d->server) {
        world_set_wake(d->world, NULL, NULL);
        http_server_drain(d->server, (uint32_t)config->drain_ms);
        if (config->port_file[0] != '\0')
            unlink(config->port_file);
    }
    unix_socket_close(&d->unix_socket, config->unix_path);
    is_whole = sand_stop(d->sand);
    return daemon_view_stop(d->view) && is_whole;
}

/* The status of the process, which ends here where a thread cannot be joined. */
static int daemon_finish(struct daemon *d, int first_signal, int status)
{
    const bool is_whole = drain(d, first_signal);

    http_server_stop(d->ops, 0); /* after the drain, which its probes report; before the world that
                                  * it reads */
    if (d->ops && d->config.ops_port_file[0] != '\0')
        unlink(d->config.ops_port_file);
    if (d->api.routes)
        api_stop(&d->api);     /* its thread wakes the loops */
    if (d->server && is_whole) /* a thread that cannot be joined may wake its loops */
        http_server_free(d->server);
    watchdog_destroy(d->watchdog);
    if (d->world)
        world_destroy(d->world);
    if (is_whole) {
        daemon_view_destroy(d->view);
        sand_destroy(d->sand);
    }
    sharing_close(&d->sharing);
    store_close(d->store);
    if (d->api.routes) {
        load_finish(&d->api);
        api_finish(&d->api);
    }
    auth_destroy(d->auth);
    audit_destroy(d->audit);
    free((void *)d->config.files);
    if (status == EXIT_DONE)
        log_info("kotad has ended");
    if (!is_whole)
        _exit(status); /* exit would take the driver apart under the thread that opens it */
    return status;
}

static int print_help(const char *how)
{
    char *text = config_help(how);

    if (text)
        fputs(text, stdout);
    free(text);
    return text ? EXIT_DONE : EXIT_FAILED;
}

static void report_damage(void *context, const char *message)
{
    (void)context;
    printf("%s\n", message);
}

/* kotad --check: the damage of the data directory, one line each on standard output. */
static int check(const struct config *config)
{
    struct store_options options = store_options_of(config);
    struct err err = {.code = ERR_OK};
    struct store *store = NULL;
    long wrong = -1;

    options.is_read_only = true;
    if (config->data[0] == '\0') {
        log_error("kotad does not start: --check needs --data DIR");
        return EXIT_MISUSED;
    }
    store = store_open(&options, &err);
    if (store)
        wrong = store_check(store, report_damage, NULL, &err);
    store_close(store);
    if (wrong < 0) {
        log_error("kotad does not start: %s", err_for_log(&err));
        return EXIT_FAILED;
    }
    printf("%s: %ld damaged\n", config->data, wrong);
    return wrong == 0 ? EXIT_DONE : EXIT_FAILED;
}

/*
 * libuv calls abort() when the first table of a loop finds no memory (its later ones do: loop.c);
 * this ends the start like any other lack of memory.
 */
static void *realloc_or_end(void *old, size_t bytes)
{
    void *got = realloc(old, bytes);

    if (!got && bytes > 0) {
        log_error("kotad does not start: no memory for a loop");
        _exit(EXIT_FAILED);
    }
    return got;
}

/*
 * Bodies and answers of more than 128 KiB are mapped one by one and go back to the system when they
 * are done. glibc would raise that threshold with the first of them, and a soak then grows by the
 * gaps that uploads of all sizes leave in the heap.
 */
static void heap_prepare(void)
{
    uv_replace_allocator(malloc, realloc_or_end, calloc, free);
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

static void signals_block(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write over RLIMIT_FSIZE is an error, like one on a full disk */
}

/* Is the configuration wrong, or did the start fail? */
static int code_of_start(const struct err *err)
{
    int status = err_http_status(err->code);

    return status == 400 || status == 422 ? EXIT_MISUSED : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct err err = {.code = ERR_OK};
    sigset_t signals;

    standard_files_hold();
    if (config_read(&d.config, argc, argv, environ, isatty(STDERR_FILENO) == 1, &err)) {
        log_init(LOG_ERROR, d.config.log_format);
        log_error("kotad does not start: %s", err_for_log(&err));
        return EXIT_MISUSED;
    }
    log_init(d.config.log_level, d.config.log_format);
    if (d.config.simd[0] != '\0' && simd_select_name(d.config.simd, &err)) {
        log_error("kotad does not start: %s", err.msg);
        return EXIT_MISUSED;
    }
    if (d.config.help[0] != '\0' || d.config.is_version) {
        free((void *)d.config.files);
        if (d.config.help[0] != '\0')
            return print_help(d.config.help);
        return printf("kotad %s\n", KOTA_VERSION) > 0 ? EXIT_DONE : EXIT_FAILED;
    }
    if (d.config.is_healthcheck) {
        free((void *)d.config.files);
        if (healthcheck(&d.config, &err) == ERR_OK)
            return EXIT_DONE;
        log_error("kotad is not ready: %s", err_for_log(&err));
        return EXIT_FAILED;
    }
    if (d.config.is_check) {
        free((void *)d.config.files);
        return check(&d.config);
    }
    heap_prepare();
    signals_block(&signals);
    d.given = d.config;
    d.argc = argc;
    d.argv = argv;
    if (d.config.loops == 0)
        d.config.loops = uv_available_parallelism();
    if (take_sockets(&d, &err) || sharing_read(&d.sharing, &d.config, &err) ||
        confine(&d.config, &d.sharing, &err)) {
        log_error("kotad does not start: %s", err_for_log(&err));
        free((void *)d.config.files);
        return code_of_start(&err);
    }
    device_prepare(&d.config.limits.sand.device);
    files_allow(&d.config);
    d.unix_socket.fd = -1;
    if (daemon_prepare(&d, &err) || open_unix_socket(&d, &err) ||
        daemon_serve(&d, d.unix_socket.fd >= 0 ? d.unix_socket.fd : d.sockets.unix_main, &err)) {
        log_error("kotad does not start: %s", err_for_log(&err));
        return daemon_finish(&d, 0, code_of_start(&err));
    }
    report_start(&d);
    return daemon_finish(&d, wait_for_the_end(&d, &signals), EXIT_DONE);
}
