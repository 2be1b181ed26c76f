/*
 * kota watch: the changes of a locale, or of all, as they happen.
 *
 * It ends by a signal, not with a connection: a broken one is made again and continues after the
 * last printed event (Last-Event-ID), so a change is printed once and none is left out; events that
 * the daemon no longer holds are a `resync`. A first connection that fails is an error, since then
 * most likely the command line is wrong; so is a refusal (404, 401) at any time.
 */
#include "client/watch.h"
#include "client/print.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The daemon sends something every 15 s. */
#define SILENCE_S 45
#define PAUSE_FIRST_MS 250
#define PAUSE_MAX_MS 30000

struct watch {
    struct events events;
    bool is_json;
    bool (*is_last)(const struct event *event);
    bool has_ended; /* the last event has come */
    bool has_begun; /* this connection has brought something */
};

/* One line for people: kind, place, revision, and short details. */
static enum err_code show_event(const struct event *event, const cJSON *data, struct err *err)
{
    static const char *const names[] = {"locale",      "revision", "id",  "state", "layer",
                                        "rect",        "source",   "seq", "at_s",  "transform_seq",
                                        "translation", "yaw_deg",  NULL};
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

static enum err_code print_event(void *context, const struct event *event, struct err *err)
{
    struct watch *watch = context;
    cJSON *line, *data = cJSON_Parse(event->data);

    watch->has_ended = watch->is_last && watch->is_last(event);
    if (!watch->is_json) {
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
    } else if (!print_json_line(stdout, line, err) && fflush(stdout) != 0) {
        err_set(err, ERR_INTERNAL, "standard output cannot be written");
    }
    cJSON_Delete(line);
    return err->code;
}

static enum err_code take(void *context, const char *bytes, size_t length, struct err *err)
{
    struct watch *watch = context;

    watch->has_begun = true;
    return events_read(&watch->events, bytes, length, err);
}

static void pause_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        continue;
}

/* One connection, from its beginning to its end. */
static enum err_code follow(struct kota *kota, struct watch *watch, const char *path)
{
    char header[32 + EVENTS_WORD_MAX];
    struct call_stream stream = {.silence_s = SILENCE_S, .take = take, .context = watch};

    snprintf(header, sizeof(header), "Last-Event-ID: %s", watch->events.id);
    if (*watch->events.id)
        stream.request_header = header;
    watch->has_begun = false;
    kota->err.code = ERR_OK;
    call_get_stream(kota->call, path, "text/event-stream", &stream, &kota->err);
    events_cut(&watch->events);
    return kota->err.code;
}

/* Is it worth another connection? */
static bool is_passing(const struct kota *kota)
{
    return kota->err.code == ERR_OK || call_was_lost(kota->call) || kota->err.code == ERR_BUSY;
}

enum kota_exit kota_watch(struct kota *kota, const char *path,
                          bool (*is_last)(const struct event *event))
{
    struct watch watch = {.is_json = kota->is_json, .is_last = is_last};
    long pause = PAUSE_FIRST_MS;
    bool was_there = false;

    watch.events.take = print_event;
    watch.events.context = &watch;
    for (;;) {
        enum err_code code = follow(kota, &watch, path);

        if (watch.has_begun || code == ERR_OK) {
            was_there = true;
            pause = watch.events.retry_ms ? watch.events.retry_ms : PAUSE_FIRST_MS;
        }
        if (watch.has_ended || !was_there || !is_passing(kota))
            break;
        fprintf(stderr, "kota: the stream has ended%s%s; again in %ld ms\n", code ? ": " : "",
                code ? kota->err.msg : "", pause);
        pause_ms(pause);
        pause = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
    }
    events_free(&watch.events);
    return watch.has_ended && (kota->err.code == ERR_OK || call_was_lost(kota->call))
               ? KOTA_OK
               : kota_failed(kota);
}

static enum kota_exit watch_run(struct kota *kota)
{
    char path[KOTA_PATH_MAX] = "/v1/events";
    enum kota_exit done;

    if (!kota_begin(kota, NULL, 0, 1, &done))
        return done;
    if (kota->word_count == 1 && kota_locale_path(kota, "/events", path))
        return kota_misused(kota);
    return kota_watch(kota, path, NULL);
}

const struct kota_command command_watch = {
    .name = "watch",
    .synopsis = "[ID]",
    .summary = "prints changes as they happen",
    .help =
        "Of one locale, or of all. Each event is one line: edit; resync when changes may have\n"
        "been missed. In JSON it has event, id and data. A broken connection is made again and\n"
        "goes on where it was. Ends with Ctrl-C.\n",
    .words = {":locale", NULL},
    .run = watch_run,
};
