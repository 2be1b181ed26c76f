/*
 * Feeds: a stream of events that is kept up.
 *
 * A feed is a call that does not end: it has a connection of its own, and when that breaks it
 * pauses and is sent again with the id of the last delivered event. Events that the daemon no
 * longer holds are its resync. One gap only the library can see: a connection that broke before
 * anything had an id. Then it continues from the Kota-Revision of the head; the feed of all locales
 * has none, and its reader gets a resync.
 *
 * Events are delivered as they are read. Events of the connection (LOST, ENDED) may occur within a
 * function of the caller, so they are kept and delivered by the `deliver` timer. A callback may
 * cancel its own feed: reading stops there, and the caller of the parser ends the call.
 */
#include "client/lib/client.h"

#include "client/lib/error.h"
#include "formats/feed_frames.h"
#include "client/lib/read.h"
#include "client/lib/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 2000, RETRY_MAX_MS = 30000 };

struct watch {
    struct call *call;
    kota_event_fn *event;
    void *context;
    struct sse sse; /* its id is that of frames, too */
    struct frames frames;
    bool is_binary;         /* of this try */
    char place[32];         /* Kota-Revision of the last head, where no event had an id */
    bool was_open, is_open; /* ever; in this try */
    bool is_gone;           /* the event that ends the stream for ever was delivered */
    bool is_cancelled, is_in_event;
    bool has_news; /* lost or ended: error is to be delivered */
    bool is_ended;
    unsigned failures; /* tries since the last one that was open */
    struct kota_error error;
};

/* ---- telling --------------------------------------------------------------------------------- */

/* False: the feed is to be read no further. */
static bool report(struct watch *watch, const struct kota_event *event)
{
    struct kota_client *client = watch->call->client;
    bool was_in_callback = client->in_callback;

    if (watch->is_cancelled || client->is_closing)
        return false;
    client->in_callback = watch->is_in_event = true;
    watch->event(event, watch->context);
    client->in_callback = was_in_callback;
    watch->is_in_event = false;
    client->callbacks_run++;
    return !watch->is_cancelled && !client->is_closing;
}

static void read_event(const cJSON *data, struct kota_event *event)
{
    cJSON *revision = cJSON_GetObjectItemCaseSensitive(data, "revision");

    event->locale = read_string(data, "locale");
    event->layer = read_string(data, "layer");
    event->source = read_string(data, "source");
    event->revision =
        cJSON_IsNumber(revision) && revision->valuedouble > 0 ? (uint64_t)revision->valuedouble : 0;
    event->has_rect = read_uints(data, "rect", event->rect, 4);
    event->sample_count = read_base64(data, "samples") / sizeof *event->samples;
    if (event->has_rect && event->sample_count > 0 &&
        event->sample_count == (size_t)event->rect[2] * event->rect[3])
        event->samples =
            (const float *)(const void *)cJSON_GetObjectItemCaseSensitive(data, "samples")
                ->valuestring;
    else
        event->sample_count = 0;
    event->has_bounds = read_box(data, "bounds", event->min, event->max);
}

/* The event after which the stream of one locale, or one patch, ends for good. */
static bool is_last(const struct watch *watch, const struct kota_event *event, const cJSON *data)
{
    const char *state = read_string(data, "state");

    if (strncmp(text_string(&watch->call->request->path), "/v1/events", 10) == 0)
        return false;
    if (event->kind == KOTA_EVENT_EDIT)
        return event->source && strcmp(event->source, "delete") == 0;
    return event->kind == KOTA_EVENT_OTHER && strcmp(event->name, "state") == 0 && state &&
           (strcmp(state, "written") == 0 || strcmp(state, "discarded") == 0 ||
            strcmp(state, "failed") == 0);
}

static bool take_event(void *context, const struct sse *sse)
{
    struct watch *watch = context;
    cJSON *data = cJSON_ParseWithLength(text_string(&sse->data), sse->data.length);
    struct kota_event event = {.kind = KOTA_EVENT_OTHER,
                               .name = *sse->name ? sse->name : "message",
                               .id = sse->id,
                               .data = text_string(&sse->data)};
    bool goes_on;

    if (strcmp(event.name, "edit") == 0)
        event.kind = KOTA_EVENT_EDIT;
    else if (strcmp(event.name, "resync") == 0)
        event.kind = KOTA_EVENT_RESYNC;
    read_event(data, &event);
    watch->is_gone = is_last(watch, &event, data);
    goes_on = report(watch, &event);
    cJSON_Delete(data);
    return goes_on;
}

static bool take_frame(void *context, const struct frame *frame)
{
    static const char *const names[] = {"hello", "edit",  "transform", "resync",
                                        "tick",  "range", "patch"};
    static const char *const states[] = {"filling", "settling",  "active", "resting",
                                         "written", "discarded", "failed"};
    struct watch *watch = context;
    struct kota_event event = {.kind = frame->kind == FRAME_EDIT     ? KOTA_EVENT_EDIT
                                       : frame->kind == FRAME_RESYNC ? KOTA_EVENT_RESYNC
                                                                     : KOTA_EVENT_OTHER,
                               .layer = *frame->layer ? frame->layer : NULL,
                               .source = *frame->source ? frame->source : NULL,
                               .has_rect = frame->has_rect,
                               .has_bounds = frame->has_bounds,
                               .name = names[frame->kind],
                               .id = watch->sse.id,
                               .data = "",
                               .samples = frame->samples,
                               .polygons = frame->polygons,
                               .polygons_bytes = frame->polygons_bytes};

    if (frame->kind == FRAME_POSE) {
        event.transform_seq = frame->revision;
        event.pose = frame->pose;
        return report(watch, &event);
    }
    memcpy(event.min, frame->bounds, sizeof(event.min));
    memcpy(event.max, frame->bounds + 3, sizeof(event.max));
    if (frame->kind == FRAME_PATCH) {
        event.patch = frame->revision;
        event.state = frame->state < sizeof(states) / sizeof(*states) ? states[frame->state] : NULL;
        event.bodies = frame->bodies;
        event.body_count = frame->body_count;
        return report(watch, &event);
    }
    event.revision = frame->revision;
    if (frame->kind != FRAME_HELLO && frame->kind != FRAME_RANGE)
        snprintf(watch->sse.id, sizeof(watch->sse.id), "%llu", (unsigned long long)frame->revision);
    memcpy(event.rect, frame->rect, sizeof(event.rect));
    if (frame->samples)
        event.sample_count = (size_t)frame->rect[2] * frame->rect[3];
    watch->is_gone = is_last(watch, &event, NULL);
    return report(watch, &event);
}

/* ---- a try ----------------------------------------------------------------------------------- */

void watch_headers(const struct watch *watch, struct text *lines)
{
    const struct kota_request *request = watch->call->request;

    if (!*watch->sse.id && !*watch->place && !request->has_since)
        return;
    text_adds(lines, "Last-Event-ID: ");
    if (*watch->sse.id)
        text_adds(lines, watch->sse.id);
    else if (request->has_since)
        text_add_uint(lines, request->since);
    else
        text_adds(lines, watch->place);
    text_add(lines, "", 1);
}

/* The head of a stream has come. False: it is none, or the callback has left it. */
static bool opened(struct watch *watch, struct kota_error *error)
{
    const struct text *headers = &watch->call->answer->headers;
    const char *type = headers_find(headers, "Content-Type");
    const char *revision = headers_find(headers, "Kota-Revision");
    struct kota_request *request = watch->call->request;
    bool has_gap = watch->was_open && !*watch->sse.id && !*watch->place && !request->has_since;
    struct kota_event event = {.kind = KOTA_EVENT_OPEN};

    watch->is_binary = type && strcmp(type, FRAME_MEDIA_TYPE) == 0;
    if (!watch->is_binary && (!type || strncmp(type, "text/event-stream", 17) != 0))
        return error_set(error, KOTA_ERROR_PROTOCOL, "the answer to a feed is '%.60s'",
                         type ? type : "");
    watch->is_open = watch->was_open = true;
    watch->failures = 0;
    if (!*watch->sse.id && !request->has_since && revision &&
        strspn(revision, "0123456789") == strlen(revision))
        snprintf(watch->place, sizeof(watch->place), "%.20s", revision);
    if (!report(watch, &event))
        return false;
    event =
        (struct kota_event){.kind = KOTA_EVENT_RESYNC, .name = "resync", .id = "", .data = "{}"};
    return !has_gap || report(watch, &event);
}

bool watch_take(struct call *call, const char *bytes, size_t length, struct kota_error *error)
{
    struct watch *watch = call->watch;
    bool is_too_long;

    call->due_ms = now_ms() + (uint64_t)(1000 * call->client->options.silence_s) + 1;
    client_due(call->client, call->due_ms);
    if (!watch->is_open && !opened(watch, error))
        return false;
    if (watch->is_binary)
        return frames_read(&watch->frames, bytes, length, &is_too_long) ||
               (is_too_long && error_set(error, KOTA_ERROR_PROTOCOL,
                                         "the feed has no frames of version %d", FRAME_VERSION));
    if (sse_read(&watch->sse, bytes, length, &is_too_long))
        return true;
    return is_too_long &&
           error_set(error, KOTA_ERROR_TOO_LONG, "an event is longer than %d bytes", SSE_BYTES_MAX);
}

void watch_begin(struct call *call)
{
    call->watch->is_open = false;
    sse_cut(&call->watch->sse);
    frames_cut(&call->watch->frames);
}

/* Asking again does not help. */
static bool is_final(const struct kota_error *error)
{
    if (error->kind == KOTA_ERROR_USAGE || error->kind == KOTA_ERROR_MEMORY)
        return true;
    return error->kind == KOTA_ERROR_PROBLEM && error->status < 500 && error->status != 408 &&
           error->status != 425 && error->status != 429;
}

void watch_ended(struct call *call, const struct kota_error *error)
{
    struct kota_client *client = call->client;
    struct watch *watch = call->watch;
    uint64_t pause_ms = watch->sse.retry_ms > 0 ? (uint64_t)watch->sse.retry_ms : RETRY_MS;

    if (call->answer)
        answer_clear(call->answer);
    watch->has_news = client->has_news = true;
    watch->error = *error;
    if (watch->is_gone || watch->is_cancelled || client->is_closing || is_final(error)) {
        watch->is_ended = true;
        if (watch->is_gone)
            error_clear(&watch->error);
        call_finish(call);
        return;
    }
    pause_ms <<= watch->failures < 5 ? watch->failures : 5;
    watch->failures++;
    if (pause_ms > RETRY_MAX_MS)
        pause_ms = RETRY_MAX_MS;
    pause_ms += uv_hrtime() / 1024 % (pause_ms / 8 + 1);
    if (error->retry_after_s > 0 && 1000 * error->retry_after_s > (double)pause_ms)
        pause_ms = (uint64_t)(1000 * (error->retry_after_s < 3600 ? error->retry_after_s : 3600));
    call->wake_ms = now_ms() + pause_ms;
    call->due_ms = UINT64_MAX;
    calls_add(&client->pausing, call);
    client_due(client, call->wake_ms);
    client_deliver(client);
}

bool watch_report(struct call *call)
{
    struct watch *watch = call->watch;
    struct kota_error error = watch->error;
    struct kota_event event = {.kind = watch->is_ended ? KOTA_EVENT_ENDED : KOTA_EVENT_LOST,
                               .error = error.kind ? &error : NULL};

    if (!watch->has_news)
        return false;
    watch->has_news = false;
    report(watch, &event);
    return true;
}

bool watch_cancel(struct call *call)
{
    call->watch->is_cancelled = true;
    return !call->watch->is_in_event || call->list != &call->client->sent;
}

/* ---- a feed ---------------------------------------------------------------------------------- */

uint64_t kota_watch(struct kota_client *client, struct kota_request *request, kota_event_fn *event,
                    void *context)
{
    struct call *call = request ? call_new(client, request) : NULL;
    uint64_t number = call ? call->number : 0;
    struct watch *watch;

    if (!call)
        return 0;
    watch = call->watch = calloc(1, sizeof(*watch));
    if (!watch) {
        call_finish(call); /* no callback */
        return 0;
    }
    watch->call = call;
    watch->event = event;
    watch->context = context;
    watch->sse.take = take_event;
    watch->sse.context = watch;
    watch->frames.take = take_frame;
    watch->frames.context = watch;
    call_begin(call);
    return number;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    sse_free(&watch->sse);
    frames_free(&watch->frames);
    free(watch);
}
