/*
 * GET /v1/locales/{locale}/events?since=REVISION  ->  text/event-stream of that locale
 * GET /v1/events?since=SEQUENCE               ->  text/event-stream of all locales
 *
 *   retry: 2000
 *   : kota
 *
 *   event: edit
 *   id: 12
 *   data: {"locale":"hills","revision":12,"rect":[c0,r0,cols,rows],"bounds":{"min","max"},
 *          "source":"edit","layer":"ground"}
 *
 *   event: transform
 *   data: {"locale":"hills","layer":"lift","transform_seq":7,"translation":[x,y,z],"yaw_deg":0}
 *
 * (data is one line.) A stream begins with the pose of each moved layer, and then sends each new
 * one, or the newest of several that came while it was busy (moves.h). The id is the locale's
 * revision, or the sequence over all locales. A reader with Last-Event-ID or `since` is sent
 * everything after that; if this is not held any more, or is in the future, it is sent `event:
 * resync` and continues from the present: it must fetch its state again. A stream of a locale ends
 * with the locale; a deletion that is replayed for a locale that was made again is an event like
 * others.
 *
 * A subscription is only a position in the feed: the feed keeps nothing of its readers, and a
 * stream reads from it when it has room. A reader that falls out of the feed's ring is cut off
 * (BEHIND), and gets a resync when it returns with its Last-Event-ID.
 *
 * A stream of a locale counts by revisions: it begins after the snapshot's, and skips entries that
 * are not above the last one it sent.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/encode.h"
#include "api/text.h"
#include "json/json_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_A_READ = 8, EVENT_BYTES_MAX = 8192 };

#define GREETING "retry: 2000\n: kota\n\n"

struct subscription {
    struct feed *feed;
    struct moves *moves;
    uint64_t after;                /* sequence: the place in the feed */
    uint64_t moved_after;          /* the position in the moves; from 0 on, all current poses */
    uint64_t known;                /* revision of the locale that was sent last */
    uint64_t opened_at;            /* its revision when the stream began */
    char locale[WORLD_ID_MAX + 1]; /* "": all */
};

/* ---- encode ---------------------------------------------------------------------------------- */

static void put_id(struct json_writer *w, const char *id)
{
    if (id[0] != '\0')
        json_string(w, id);
    else
        json_null(w);
}

static void put_event(struct json_writer *w, const struct feed_event *event)
{
    json_begin_object(w);
    json_key(w, "locale");
    json_string(w, event->locale);
    json_key(w, "revision");
    json_integer(w, event->revision);
    json_key(w, "rect");
    if (event->has_rect)
        encode_rect(w, &event->rect);
    else
        json_null(w);
    json_key(w, "bounds");
    if (event->has_bounds)
        json_box3(w, event->bounds);
    else
        json_null(w);
    json_key(w, "source");
    json_string(w, event->source);
    json_key(w, "layer");
    put_id(w, event->layer);
    json_end_object(w);
}

/* The data of an event as JSON, and its length; it always fits. */
static size_t encode(const struct feed_event *event, char out[EVENT_BYTES_MAX])
{
    struct json_buffer data = {.at = out, .size = EVENT_BYTES_MAX, .size_max = EVENT_BYTES_MAX};
    struct json_writer w;

    json_init(&w, json_sink_of_buffer(&data));
    put_event(&w, event);
    json_finish(&w);
    return data.length;
}

/*
 * The loop's thread keeps the last event's data: all its streams send the same one after another.
 * (1,000 streams at 50 events a second: 0.04 of a core instead of 0.07 to 0.12, beside 0.4 for the
 * system calls.)
 */
static bool send_event(struct http_stream *stream, const struct subscription *s,
                       const struct feed_event *event)
{
    static _Thread_local struct {
        const struct feed *feed;
        uint64_t sequence;
        char data[EVENT_BYTES_MAX];
        size_t length;
    } memo;
    char head[64];
    int length = snprintf(head, sizeof head, "event: edit\nid: %llu\ndata: ",
                          (unsigned long long)(s->locale[0] ? event->revision : event->sequence));

    if (memo.feed != s->feed || memo.sequence != event->sequence) {
        memo.length = encode(event, memo.data);
        memo.feed = s->feed;
        memo.sequence = event->sequence;
    }
    return http_stream_write(stream, head, (size_t)length) &&
           http_stream_write(stream, memo.data, memo.length) &&
           http_stream_write(stream, "\n\n", 2);
}

/* A locale was replaced as a whole, by a shared log's snapshot: it must be fetched again. */
static bool send_resync(struct http_stream *stream, const struct subscription *s,
                        const struct feed_event *event)
{
    char block[160 + WORLD_ID_MAX];
    int length;

    if (s->locale[0])
        length =
            snprintf(block, sizeof block,
                     "event: resync\nid: %llu\ndata: {\"locale\":\"%s\",\"revision\":%llu}\n\n",
                     (unsigned long long)event->revision, event->locale,
                     (unsigned long long)event->revision);
    else
        length = snprintf(block, sizeof block,
                          "event: resync\nid: %llu\ndata: {\"locale\":\"%s\",\"revision\":%llu,"
                          "\"sequence\":%llu}\n\n",
                          (unsigned long long)event->sequence, event->locale,
                          (unsigned long long)event->revision, (unsigned long long)event->sequence);
    return http_stream_write(stream, block, (size_t)length);
}

/* A pose has no id: Last-Event-ID counts edits only. */
static bool send_move(struct http_stream *stream, const struct move_event *event)
{
    static const char head[] = "event: transform\ndata: ";
    struct json_writer w;
    char room[EVENT_BYTES_MAX];
    struct json_buffer data = {.at = room, .size = sizeof room, .size_max = sizeof room};

    json_init(&w, json_sink_of_buffer(&data));
    json_begin_object(&w);
    json_key(&w, "locale");
    json_string(&w, event->locale);
    json_key(&w, "layer");
    json_string(&w, event->layer);
    json_key(&w, "transform_seq");
    json_integer(&w, event->transform_seq);
    encode_pose_members(&w, &event->pose);
    json_end_object(&w);
    json_finish(&w);
    return http_stream_write(stream, head, sizeof head - 1) &&
           http_stream_write(stream, data.at, data.length) && http_stream_write(stream, "\n\n", 2);
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* False when the stream is over. */
static bool send_events(struct http_stream *stream, struct subscription *s,
                        const struct feed_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_resync = events[i].is_resync;

        if (s->locale[0] && events[i].revision <= s->known && !is_resync)
            continue;
        s->known = events[i].revision;
        if (is_resync ? !send_resync(stream, s, &events[i]) : !send_event(stream, s, &events[i]))
            return false;
        if (s->locale[0] && events[i].revision > s->opened_at &&
            strcmp(events[i].source, "delete") == 0) {
            http_stream_end(stream, HTTP_STREAM_OVER);
            return false;
        }
    }
    return true;
}

/* Poses come after the edits: a pose of a replaced layer is not sent before the replacement. */
static void pull_moves(struct subscription *s, struct http_stream *stream)
{
    while (s->moved_after != moves_last(s->moves) && http_stream_has_room(stream)) {
        struct move_event events[EVENTS_A_READ];
        size_t count = moves_read(s->moves, s->locale[0] ? s->locale : NULL, &s->moved_after,
                                  events, EVENTS_A_READ);

        for (size_t i = 0; i < count; i++)
            if (!send_move(stream, &events[i]))
                return;
    }
}

static void events_pull(void *context, struct http_stream *stream)
{
    struct subscription *s = context;

    while (s->after != feed_last(s->feed) && http_stream_has_room(stream)) {
        struct feed_event events[EVENTS_A_READ];
        bool is_held;
        size_t count = feed_read(s->feed, s->locale[0] ? s->locale : NULL, &s->after, events,
                                 EVENTS_A_READ, &is_held);

        if (!is_held) {
            http_stream_end(stream, HTTP_STREAM_BEHIND);
            return;
        }
        if (!send_events(stream, s, events, count))
            return;
    }
    pull_moves(s, stream);
}

static void events_ended(void *context, enum http_stream_end reason)
{
    (void)reason;
    free(context);
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* What the reader has seen: Last-Event-ID, or `since` without that header. */
static enum err_code decode_since(struct call *call, bool *is_given, uint64_t *since,
                                  struct err *err)
{
    static const char *const names[] = {"since", NULL};
    struct span header = {NULL, 0}, query = {NULL, 0};

    if (options_open_query(call, names, err))
        return err->code;
    for (size_t i = 0; i < call->query_count; i++)
        if (span_equals(call->query[i].name, "since"))
            query = call->query[i].value.at ? call->query[i].value : (struct span){"", 0};
    if (call->request)
        header = http_request_header(call->request, "last-event-id");
    *is_given = header.at || query.at;
    if (query.at && !span_count(query, since)) {
        err_set(err, ERR_BAD_INPUT, "since=%.*s: a whole number was expected",
                query.length < 64 ? (int)query.length : 64, query.at);
        return err_at(err, "since");
    }
    if (header.at && !span_count(header, since)) {
        err_set(err, ERR_BAD_INPUT,
                "Last-Event-ID is no id of an event: a whole number was "
                "expected");
        return err_at(err, "Last-Event-ID");
    }
    return ERR_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum err_code open_stream(struct call *call, const struct subscription *place,
                                 struct err *err)
{
    static const struct http_stream_calls calls = {events_pull, events_ended};
    struct subscription *s;

    call_content_type(call, "text/event-stream");
    call_header(call, "Cache-Control", "no-store");
    call_header(call, "X-Accel-Buffering", "no");
    if (!call->request)
        return ERR_OK;
    s = malloc(sizeof *s);
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "no memory for a subscription");
    *s = *place;
    if (http_reply_stream(call->request, call->reply, &calls, s, err))
        free(s);
    return err->code;
}

enum err_code locale_events_get_answer(struct call *call, struct err *err)
{
    struct subscription s = {.feed = world_feed(call->api->world),
                             .moves = world_moves(call->api->world),
                             .known = call->locale->revision};
    uint64_t current = call->locale->revision;
    bool is_given;

    s.opened_at = current;
    if (decode_since(call, &is_given, &s.known, err))
        return err->code;
    snprintf(s.locale, sizeof s.locale, "%s", call->locale->id);
    text_append(call, GREETING);
    if (!feed_find(s.feed, s.locale, s.known, current, &s.after)) {
        s.known = current;
        feed_find(s.feed, s.locale, current, current, &s.after);
        text_append(call,
                    "event: resync\nid: %llu\ndata: {\"locale\":\"%s\",\"revision\":%llu}\n\n",
                    (unsigned long long)current, s.locale, (unsigned long long)current);
    }
    return open_stream(call, &s, err);
}
API_HANDLER(locale_events_get, 1, CALL_NEEDS_LOCALE)

/* Is everything after that place still to be had? */
static bool is_held(struct feed *feed, uint64_t after, uint64_t last)
{
    struct feed_event event;
    bool held = true;

    if (after > last)
        return false;
    feed_read(feed, NULL, &after, &event, 1, &held);
    return held;
}

enum err_code events_get_answer(struct call *call, struct err *err)
{
    struct subscription s = {.feed = world_feed(call->api->world),
                             .moves = world_moves(call->api->world)};
    uint64_t last = feed_last(s.feed);
    bool is_given;

    s.after = last;
    if (decode_since(call, &is_given, &s.after, err))
        return err->code;
    text_append(call, GREETING);
    if (!is_held(s.feed, s.after, last)) {
        s.after = last;
        text_append(call,
                    "event: resync\nid: %llu\ndata: {\"locale\":null,\"revision\":null,"
                    "\"sequence\":%llu}\n\n",
                    (unsigned long long)last, (unsigned long long)last);
    }
    return open_stream(call, &s, err);
}
API_HANDLER(events_get, 0, CALL_NEEDS_NOTHING)
