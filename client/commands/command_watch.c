/*
 * kota watch: the changes of a locale, or of all, as they happen: printed, or forwarded to a
 * command or another server.
 *
 * It ends by a signal, not with a connection: libkota makes a broken one again and continues after
 * the last printed event, so a change is printed once and none is left out; events that the daemon
 * no longer holds are a `resync`. A first connection that fails is an error, since then most likely
 * the command line is wrong; so is a refusal (404, 401) at any time.
 */
#include "client/watch.h"

#include "client/lib/kota.h"
#include "client/print.h"

#include <stddef.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    struct kota *kota;
    const char *command;      /* of --exec: gets each event on its input; NULL: none */
    struct kota_client *post; /* of --post; NULL: none */
    const char *post_path;
    bool was_open;  /* a connection has been made */
    bool has_ended; /* nothing comes any more; kota->err has the reason, if any */
};

/* One line for people: kind, place, revision, and short details. */
static enum err_code show_event(const struct kota_event *event, const cJSON *data, struct err *err)
{
    static const char *const names[] = {
        "locale",   "revision", "id",     "state",         "layer",       "rect",
        "source",   "seq",      "at_s",   "transform_seq", "translation", "yaw_deg",
        "rotation", "patch",    "change", "bodies",        NULL};
    char line[512];
    size_t length = (size_t)snprintf(line, sizeof(line), "%-10.32s", event->name);

    for (size_t i = 0; names[i] && length < sizeof(line); i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(data, names[i]);
        char *text = value ? cJSON_PrintUnformatted(value) : NULL;

        if (text)
            length += (size_t)snprintf(line + length, sizeof(line) - length, "  %s %s", names[i],
                                       cJSON_IsString(value) ? value->valuestring : text);
        cJSON_free(text);
    }
    print_sanitize(line);
    if (printf("%s\n", line) < 0 || fflush(stdout) != 0)
        return err_set(err, ERR_INTERNAL, "standard output cannot be written");
    return ERR_OK;
}

/* Each event is forwarded once; what fails is said, and the next one is tried. */
static void forward(const struct watch *watch, const char *line)
{
    if (watch->command) {
        FILE *pipe = popen(watch->command, "w");
        int status;

        if (pipe)
            fprintf(pipe, "%s\n", line);
        status = pipe ? pclose(pipe) : -1;
        if (status != 0)
            fprintf(stderr, "kota: --exec: the command has failed (%d)\n", status);
    }
    if (watch->post) {
        struct kota_request *request = kota_request_new("POST", watch->post_path);
        struct kota_answer *answer;

        kota_request_body(request, "application/json", line, strlen(line));
        answer = kota_call(watch->post, request);
        if (kota_answer_error(answer))
            fprintf(stderr, "kota: --post: %s\n", kota_answer_error(answer)->message);
        kota_answer_free(answer);
    }
}

static enum err_code print_event(const struct watch *watch, const struct kota_event *event,
                                 struct err *err)
{
    const struct kota *kota = watch->kota;
    bool is_forwarded = watch->command || watch->post;
    cJSON *line, *data = cJSON_Parse(event->data);
    char *text;

    if (!kota->is_json && !is_forwarded) {
        show_event(event, data, err);
        cJSON_Delete(data);
        return err->code;
    }
    line = cJSON_CreateObject();
    if (!data)
        data = cJSON_CreateString(event->data);
    if (!cJSON_AddStringToObject(line, "event", event->name) ||
        !cJSON_AddStringToObject(line, "id", event->id) ||
        !cJSON_AddItemToObject(line, "data", data)) {
        cJSON_Delete(data);
        err_set(err, ERR_NO_MEMORY, "out of memory");
    } else if (is_forwarded) {
        text = cJSON_PrintUnformatted(line);
        if (text)
            forward(watch, text);
        else
            err_set(err, ERR_NO_MEMORY, "out of memory");
        cJSON_free(text);
    } else if (!print_json_line(stdout, line, err) && fflush(stdout) != 0) {
        err_set(err, ERR_INTERNAL, "standard output cannot be written");
    }
    cJSON_Delete(line);
    return err->code;
}

static void take(const struct kota_event *event, void *context)
{
    struct watch *watch = context;
    struct err *err = &watch->kota->err;

    switch (event->kind) {
    case KOTA_EVENT_OPEN:
        watch->was_open = true;
        break;
    case KOTA_EVENT_LOST:
        if (watch->was_open)
            fprintf(stderr, "kota: the stream has ended: %s; it is made again\n",
                    event->error->message);
        else
            watch->has_ended = call_error(event->error, err) != ERR_OK;
        break;
    case KOTA_EVENT_ENDED:
        watch->has_ended = true;
        call_error(event->error, err);
        break;
    default:
        watch->has_ended |= print_event(watch, event, err) != ERR_OK;
    }
}

static enum kota_exit follow(struct watch *watch, struct kota_request *feed)
{
    struct kota *kota = watch->kota;
    struct kota_client *client = call_client(kota->call);

    kota->err.code = ERR_OK;
    kota_request_header(feed, "Accept", "text/event-stream");
    if (!kota_watch(client, feed, take, watch)) {
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        return kota_failed(kota);
    }
    while (!watch->has_ended)
        kota_wait(client, 3600);
    return kota->err.code == ERR_OK ? KOTA_OK : kota_failed(kota);
}

enum kota_exit watch_feed(struct kota *kota, struct kota_request *feed)
{
    struct watch watch = {.kota = kota};

    return follow(&watch, feed);
}

struct watch_options {
    const char *bounds, *layer, *command, *post;
};

#define OPTION(...) COMMAND_OPTION(struct watch_options, __VA_ARGS__)

static const struct kota_option watch_table[] = {
    OPTION(bounds, "bounds", "X0,Y0,X1,Y1", "only changes that meet this rectangle, in metres"),
    OPTION(layer, "layer", "LAYER", "only changes of this layer, and of the locale as a whole",
           .words = ":layer"),
    OPTION(command, "exec", "COMMAND", "runs it with each event, as a line of JSON, on its input"),
    OPTION(post, "post", "URL", "sends each event there, as JSON, by POST"),
    {0},
};

/* A client for the host of --post, and the path there. */
static enum err_code open_post(struct watch *watch, const char *url, struct err *err)
{
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    char origin[512];
    struct kota_options options;

    snprintf(origin, sizeof(origin), "%.*s", path ? (int)(path - url) : (int)strlen(url), url);
    kota_options_init(&options, sizeof(options));
    options.url = origin;
    watch->post = kota_open(&options);
    watch->post_path = path ? path : "/";
    if (!watch->post)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (kota_open_error(watch->post))
        return err_set(err, ERR_BAD_INPUT, "--post: %s", kota_open_error(watch->post)->message);
    return ERR_OK;
}

static enum kota_exit watch_run(struct kota *kota)
{
    struct watch_options options = {NULL, NULL, NULL, NULL};
    struct watch watch = {.kota = kota};
    char path[KOTA_PATH_MAX] = "/v1/events";
    struct kota_request *feed;
    enum kota_exit done;

    if (!kota_begin(kota, &options, 0, 1, &done))
        return done;
    if (kota->word_count == 0 && (options.bounds || options.layer)) {
        err_set(&kota->err, ERR_BAD_INPUT, "--bounds and --layer are of one locale: name it");
        return kota_misused(kota);
    }
    if (kota->word_count == 1 && kota_locale_path(kota, "/events", path))
        return kota_misused(kota);
    feed = kota_request_new("GET", path);
    if (options.bounds)
        kota_request_query(feed, "bounds", options.bounds);
    if (options.layer)
        kota_request_query(feed, "layer", options.layer);
    watch.command = options.command;
    signal(SIGPIPE, SIG_IGN); /* of a command that does not read */
    if (options.post && open_post(&watch, options.post, &kota->err)) {
        kota_request_free(feed);
        done = kota_misused(kota);
    } else {
        done = follow(&watch, feed);
    }
    kota_close(watch.post, NULL, NULL);
    return done;
}

const struct kota_command command_watch = {
    .name = "watch",
    .synopsis = "[ID]",
    .summary = "prints changes as they happen",
    .help =
        "Of one locale, or of all. Each event is one line: edit; resync when changes may have\n"
        "been missed. In JSON it has event, id and data. A broken connection is made again and\n"
        "goes on where it was. Ends with Ctrl-C. --exec and --post forward events instead.\n",
    .words = {":locale", NULL},
    .options = watch_table,
    .run = watch_run,
};
