/*
 * kota watch: the changes of a locale, or of all, as they happen.
 *
 * It ends when it is told to, not when a connection does: a broken one is made again and goes on
 * behind the last event that was printed (Last-Event-ID), so a change is printed once and none is
 * left out; what the daemon no longer holds it tells as `resync`. A first connection that fails is
 * an error, since then most likely the command line is wrong; so is a refusal (404, 401) at any
 * time.
 */
#include "client/events.h"
#include "client/kota.h"
#include "client/print.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The daemon says something every 15 s. */
#define SILENCE_S 60
#define PAUSE_FIRST_MS 250
#define PAUSE_MAX_MS 30000

struct watch {
    struct events events;
    bool has_begun; /* this connection has brought something */
};

static enum err_code print_event(void *context, const struct event *event, struct err *err)
{
    cJSON *line = cJSON_CreateObject(), *data = cJSON_Parse(event->data);

    (void)context;
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

static enum kota_exit watch_run(struct kota *kota)
{
    static const struct args_option none[] = {{.name = NULL}};
    struct watch watch = {.events = {.take = print_event}};
    char path[KOTA_PATH_MAX] = "/v1/events";
    long pause = PAUSE_FIRST_MS;
    bool was_there = false;
    enum kota_exit done;

    if (!kota_begin(kota, none, 0, 1, &done))
        return done;
    if (kota->word_count == 1 && kota_locale_path(kota, "/events", path))
        return kota_misused(kota);
    for (;;) {
        enum err_code code = follow(kota, &watch, path);

        if (watch.has_begun || code == ERR_OK) {
            was_there = true;
            pause = watch.events.retry_ms ? watch.events.retry_ms : PAUSE_FIRST_MS;
        }
        if (!was_there || !is_passing(kota))
            break;
        fprintf(stderr, "kota: the stream has ended%s%s; again in %ld ms\n", code ? ": " : "",
                code ? kota->err.msg : "", pause);
        pause_ms(pause);
        pause = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
    }
    events_free(&watch.events);
    return kota_failed(kota);
}

const struct kota_command command_watch = {
    .name = "watch",
    .synopsis = "[ID]",
    .summary = "prints changes as they happen",
    .help = "Of one locale, or of all. Each event is one line of JSON: event (edit; resync when\n"
            "changes may have been missed), id, data. A broken connection is made again and goes\n"
            "on where it was. Ends with Ctrl-C.\n",
    .run = watch_run,
};
