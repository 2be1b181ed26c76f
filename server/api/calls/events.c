/*
 * GET /v1/locales/{locale}/events?since=REVISION&bounds=x0,y0,x1,y1&layer=&samples=f32
 *     ->  text/event-stream of that locale, or with Accept: application/vnd.kota.feed its frames
 * GET /v1/events?since=SEQUENCE&samples=f32  ->  text/event-stream of all locales
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
 *   event: patch
 *   data: {"locale":"hills","patch":3,"layer":"ground","change":"born|state|bodies|gone",
 *          "state":"filling","bounds":{"min","max"},"bodies":[0,1]}
 *
 * (data is one line; proto/feed.md has the frames.) A stream begins with the pose of each moved
 * layer, and then sends each new one, or the newest of several that came while it was busy
 * (moves.h). It is the same with the states and bodies of patches of sand (report_table.h). The id
 * is the locale's revision, or the sequence over all locales. A reader with
 * Last-Event-ID or `since` is sent everything after that; if this is not held any more, or is in
 * the future, it is sent `event: resync` and continues from the present: it must fetch its state
 * again. A stream of a locale ends with the locale; a deletion that is replayed for a locale that
 * was made again is an event like others.
 *
 * A subscription is only a position in the feed: the feed keeps nothing of its readers, and a
 * stream reads from it when it has room. A reader that falls out of the feed's ring is cut off
 * (BEHIND), and gets a resync when it returns with its Last-Event-ID. A change that a reader did
 * not ask for is not written; its number goes with the next keep-alive, so that the reader, when it
 * comes back, need not be sent again what it did not want.
 *
 * A stream of a locale counts by revisions: it begins after the snapshot's, and skips what is not
 * above the last one it sent.
 */
#include "api/calls.h"

#include "api/answer/file.h"
#include "api/answer/header_list.h"
#include "api/feed/event_form.h"
#include "api/options.h"
#include "formats/feed_frames.h"
#include "sand/sand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_A_READ = 8, RANGES_MAX = 4 };

/* The least and greatest sample of a layer, which a reader of a part of it has to know. */
struct range {
    char layer[WORLD_ID_MAX + 1]; /* "": of any, not known */
    float range[2];
};

struct subscription {
    struct feed *feed;
    struct moves *moves;
    struct sand *sand;    /* NULL: this daemon has none */
    uint64_t after;       /* sequence: the place in the feed */
    uint64_t moved_after; /* the position in the moves; from 0 on, all current poses */
    uint64_t patch_after; /* the last change of a patch that was sent or skipped */
    uint64_t patch_first; /* the last one when the stream began */
    uint64_t known;       /* revision of the locale that was sent or skipped last */
    uint64_t opened_at;   /* its revision when the stream began */
    enum event_form form;
    const struct claims *claims;     /* of the token; NULL: none was needed */
    bool has_skipped;                /* `known` was not written yet */
    bool has_area;                   /* only changes that meet it */
    double area[4];                  /* x0, y0, x1, y1 */
    char layer[WORLD_ID_MAX + 1];    /* only changes of it; "": of all */
    char locale[WORLD_ID_MAX + 1];   /* "": all */
    struct range ranges[RANGES_MAX]; /* those that have changed and were not written yet */
    size_t range_count;
};

/* ---- the stream ------------------------------------------------------------------------------ */

/* May the reader know of that locale? */
static bool is_seen(const struct subscription *s, const char *locale)
{
    return !s->claims || claims_has_locale(s->claims, locale, strlen(locale));
}

static bool is_in_area(const struct subscription *s, const struct box3 *b)
{
    return !s->has_area || (b->min.x <= s->area[2] && b->max.x >= s->area[0] &&
                            b->min.y <= s->area[3] && b->max.y >= s->area[1]);
}

/* Is the event one that the reader asked for? */
static bool is_wanted(const struct subscription *s, const struct feed_event *event)
{
    if (!is_seen(s, event->locale))
        return false;
    if (event->is_resync || event->layer[0] == '\0')
        return true;
    if (s->layer[0] != '\0' && strcmp(s->layer, event->layer) != 0)
        return false;
    return !(event->has_bounds || event->has_area) || is_in_area(s, &event->bounds);
}

/* The last change in the last form, kept: all streams of a loop send the same one after another. */
static const char *form_change(const struct subscription *s, const struct feed_event *event,
                               size_t *length)
{
    static _Thread_local struct {
        const struct feed *feed;
        uint64_t sequence;
        enum event_form form;
        bool by_sequence;
        size_t length;
        char bytes[EVENT_BYTES_MAX];
    } memo;
    bool by_sequence = s->locale[0] == '\0';
    struct feed_content *content;

    if (memo.feed != s->feed || memo.sequence != event->sequence || memo.form != s->form ||
        memo.by_sequence != by_sequence) {
        content = s->form == EVENT_TEXT ? NULL : feed_content_of(s->feed, event->sequence);
        memo.length = event_change(s->form, event, content, by_sequence, memo.bytes);
        feed_content_unref(content);
        memo.feed = s->feed;
        memo.sequence = event->sequence;
        memo.form = s->form;
        memo.by_sequence = by_sequence;
    }
    *length = memo.length;
    return memo.bytes;
}

/* Only a reader of frames with an area asks: what it holds is a part of a layer. */
static void note_range(struct subscription *s, const struct feed_event *event)
{
    struct range *range = s->ranges;

    if (!event->has_range || !s->has_area || s->form != EVENT_FRAME)
        return;
    while (range < s->ranges + s->range_count && strcmp(range->layer, event->layer) != 0)
        range++;
    if (range == s->ranges + RANGES_MAX) {
        s->range_count = 1;
        s->ranges[0] = (struct range){"", {NAN, NAN}};
        return;
    }
    s->range_count += range == s->ranges + s->range_count;
    memcpy(range->layer, event->layer, sizeof range->layer);
    memcpy(range->range, event->range, sizeof range->range);
}

/* False when the stream has no room for them now, or has ended. */
static bool send_ranges(struct http_stream *stream, struct subscription *s, uint64_t revision)
{
    char bytes[EVENT_TEXT_BYTES_MAX];

    for (; s->range_count > 0; s->range_count--) {
        const struct range *range = &s->ranges[s->range_count - 1];
        size_t length = event_range(range->layer, revision, range->range, bytes);

        if (!http_stream_has_room_for(stream, length) || !http_stream_write(stream, bytes, length))
            return false;
    }
    return true;
}

/* False when the stream has no room for it now, or has ended. */
static bool send_event(struct http_stream *stream, const struct subscription *s,
                       const struct feed_event *event)
{
    char resync[EVENT_TEXT_BYTES_MAX];
    const char *bytes = resync;
    size_t length;

    if (event->is_resync)
        length = event_resync(s->form, event->locale, event->revision, event->sequence,
                              s->locale[0] == '\0', resync);
    else
        bytes = form_change(s, event, &length);
    return http_stream_has_room_for(stream, length) && http_stream_write(stream, bytes, length);
}

/* False when the stream has no room any more, or is over. */
static bool send_events(struct http_stream *stream, struct subscription *s,
                        const struct feed_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_wanted_here = is_wanted(s, &events[i]);

        if (s->locale[0] && events[i].revision <= s->known && !events[i].is_resync)
            continue;
        note_range(s, &events[i]);
        if (is_wanted_here &&
            !(send_ranges(stream, s, events[i].revision) && send_event(stream, s, &events[i]))) {
            s->after = events[i].sequence - 1;
            return false;
        }
        s->known = events[i].revision;
        s->has_skipped = !is_wanted_here;
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
        char bytes[EVENT_TEXT_BYTES_MAX];
        size_t count = moves_read(s->moves, s->locale[0] ? s->locale : NULL, &s->moved_after,
                                  events, EVENTS_A_READ);

        for (size_t i = 0; i < count; i++)
            if (is_seen(s, events[i].locale) &&
                (s->layer[0] == '\0' || strcmp(s->layer, events[i].layer) == 0) &&
                !http_stream_write(stream, bytes, event_pose(s->form, &events[i], bytes)))
                return;
    }
}

/* The patch's change as the reader sees it: what came while it was busy is one. */
static const char *change_of(const struct subscription *s, const struct patch_report *report)
{
    if (patch_state_is_end(report->state))
        return "gone";
    if (report->born_change > s->patch_after)
        return "born";
    return report->state_change > s->patch_after ? "state" : "bodies";
}

/* At the beginning of a stream only the patches that live. */
static bool is_patch_wanted(const struct subscription *s, const struct patch_report *report)
{
    struct box3 bounds = patch_report_bounds(report);

    return is_seen(s, report->locale) &&
           (report->change > s->patch_first || !patch_state_is_end(report->state)) &&
           (s->layer[0] == '\0' || strcmp(s->layer, report->layer) == 0) && is_in_area(s, &bounds);
}

static void pull_patches(struct subscription *s, struct http_stream *stream)
{
    const uint64_t last = s->sand ? sand_last_change(s->sand) : 0;

    while (s->patch_after < last && http_stream_has_room(stream)) {
        struct patch_report *report =
            sand_next_change(s->sand, s->locale[0] ? s->locale : NULL, s->patch_after);
        char bytes[EVENT_TEXT_BYTES_MAX];
        bool is_open = true;

        if (report && is_patch_wanted(s, report))
            is_open = http_stream_write(stream, bytes,
                                        event_patch(s->form, report, change_of(s, report), bytes));
        s->patch_after = report ? report->change : last;
        patch_report_unref(report);
        if (!is_open)
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
    pull_patches(s, stream);
}

static void events_silent(void *context, struct http_stream *stream)
{
    struct subscription *s = context;
    char bytes[EVENT_TEXT_BYTES_MAX];

    if (!send_ranges(stream, s, s->known))
        return;
    if (s->has_skipped || s->form == EVENT_FRAME)
        http_stream_write(stream, bytes, event_tick(s->form, s->known, bytes));
    s->has_skipped = false;
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
    struct span header = call_request_header(call, "last-event-id"), query = {NULL, 0};
    const struct http_query_item *item = call_query(call, "since");

    if (item)
        query = item->value.at ? item->value : (struct span){"", 0};
    *is_given = header.at || query.at;
    if (query.at && !span_count(query, since))
        return err_set_at(err, ERR_BAD_INPUT, "since", "since=%.*s: a whole number was expected",
                          query.length < 64 ? (int)query.length : 64, query.at);
    if (header.at && !span_count(header, since))
        return err_set_at(err, ERR_BAD_INPUT, "Last-Event-ID",
                          "Last-Event-ID is no id of an event: a whole number was "
                          "expected");
    return ERR_OK;
}

static enum err_code decode_samples(struct call *call, struct subscription *s, struct err *err)
{
    static const char *const words[] = {"f32", NULL};
    int word = -1;

    if (option_word(call, "samples", words, &word, err))
        return err->code;
    s->form = word < 0 ? EVENT_TEXT : EVENT_TEXT_SAMPLES;
    return ERR_OK;
}

static enum err_code decode_layer(struct call *call, struct subscription *s, struct err *err)
{
    if (option_layer(call, s->layer, err))
        return err->code;
    if (s->layer[0] == '\0' || locale_layer(call->locale, s->layer))
        return ERR_OK;
    locale_no_layer(call->locale, s->layer, ERR_LAYER_UNKNOWN_OPTION, err);
    return err_at(err, "layer");
}

/* Accept: frames only for a reader that names them, in a version that is known. */
static enum err_code decode_form(struct call *call, struct subscription *s, struct err *err)
{
    struct span accept = call_request_header(call, "accept");

    while (accept.length > 0) {
        struct span rest = header_part(&accept, ','), type = header_part(&rest, ';');
        struct span version = header_parameter(rest, "version");
        uint64_t number = FRAME_VERSION;

        if (!header_is(type, FRAME_MEDIA_TYPE) || header_weight(rest) <= 0)
            continue;
        if (version.at && (!span_count(version, &number) || number != FRAME_VERSION))
            return err_set_at(err, ERR_NOT_ACCEPTABLE, "Accept",
                              "there is version %d of %s, not version %.*s", FRAME_VERSION,
                              FRAME_MEDIA_TYPE, version.length < 32 ? (int)version.length : 32,
                              version.at);
        s->form = EVENT_FRAME;
    }
    return ERR_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum err_code open_stream(struct call *call, const struct subscription *place,
                                 struct err *err)
{
    static const struct http_stream_calls calls = {
        .pull = events_pull, .ended = events_ended, .silent = events_silent};
    struct subscription *s;

    call_stream_head(call, place->form == EVENT_FRAME ? FRAME_MEDIA_TYPE : "text/event-stream");
    if (!call->request)
        return ERR_OK;
    s = malloc(sizeof *s);
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "no memory for a subscription");
    *s = *place;
    s->sand = call->api->sand;
    s->patch_first = s->sand ? sand_last_change(s->sand) : 0;
    s->claims = call_claims(call); /* the stream holds the token's owner as long as it lives */
    if (http_reply_stream(call->request, call->reply, &calls, s, err))
        free(s);
    return err->code;
}

enum err_code locale_events_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"since", "bounds", "layer", "samples", NULL};
    struct subscription s = {.feed = world_feed(call->api->world),
                             .moves = world_moves(call->api->world),
                             .known = call->locale->revision,
                             .opened_at = call->locale->revision};
    uint64_t current = call->locale->revision;
    char bytes[EVENT_TEXT_BYTES_MAX];
    bool is_given, is_found;

    if (options_open_query(call, names, err) || decode_since(call, &is_given, &s.known, err) ||
        decode_samples(call, &s, err) || option_bounds(call, s.area, &s.has_area, err) ||
        decode_layer(call, &s, err) || decode_form(call, &s, err))
        return err->code;
    snprintf(s.locale, sizeof s.locale, "%s", call->locale->id);
    is_found = feed_find(s.feed, s.locale, s.known, current, &s.after);
    if (!is_found) {
        s.known = current;
        feed_find(s.feed, s.locale, current, current, &s.after);
    }
    if (answer_append(call, bytes, event_hello(s.form, s.known, bytes), err) ||
        (!is_found &&
         answer_append(call, bytes, event_resync(s.form, s.locale, current, 0, false, bytes), err)))
        return err->code;
    call_header(call, "Vary", "Accept");
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
    static const char *const names[] = {"since", "samples", NULL};
    struct subscription s = {.feed = world_feed(call->api->world),
                             .moves = world_moves(call->api->world)};
    uint64_t last = feed_last(s.feed);
    char bytes[EVENT_TEXT_BYTES_MAX];
    bool is_given, is_found;

    s.after = last;
    if (options_open_query(call, names, err) || decode_since(call, &is_given, &s.after, err) ||
        decode_samples(call, &s, err))
        return err->code;
    is_found = is_held(s.feed, s.after, last);
    if (!is_found)
        s.after = last;
    if (answer_append(call, bytes, event_hello(s.form, 0, bytes), err) ||
        (!is_found &&
         answer_append(call, bytes, event_resync(s.form, "", 0, last, true, bytes), err)))
        return err->code;
    return open_stream(call, &s, err);
}
API_HANDLER(events_get, 0, CALL_NEEDS_NOTHING)
