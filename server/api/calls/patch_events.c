/*
 * GET …/patches/{patch}/events?granules=  ->  text/event-stream
 *
 *   event: state
 *   id: 3
 *   data: {"id","locale","state","at_s"} and at the end {"reason","mass_ledger","revision",
 *         "edit_rect"}
 *
 *   event: poses
 *   data: {"id","time_s","kinetic_energy_j","behind_ms","revision",
 *         "bodies":[{"body","position",…}]}
 *
 *   event: granules               with granules=N, at most N values a second
 *   data: {"id","granules"}       a frame as base64 (feed/granule_frame.h)
 *
 * A stream holds only a number: it reads the report table when it is woken. So of poses it sends
 * the newest, when the manager has reported new ones (20 times a second at most, with any number of
 * orders); states come in order, of many changes the last 32. Of granules it sends those that moved
 * since its last frame, when it has room for a whole one. A reader with Last-Event-ID gets the
 * states after it. The stream ends after a final state.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/calls/encode_patch.h"
#include "api/calls/patches.h"
#include "api/feed/granule_frame.h"
#include "api/text.h"
#include "base/text/base64.h"
#include "base/clock.h"
#include "json/json_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENT_ROOM = 60 * 1024,
    GRANULE_RATE_MAX = 20,
    GRANULE_TEXT_BYTES = 4 * (GRANULE_FRAME_BYTES_MAX + 2) / 3 + 96,
};
#define RATE_SLACK_S 0.01 /* reports are made 20 times a second */

struct follower {
    struct sand *sand;
    char locale[WORLD_ID_MAX + 1];
    uint64_t number;
    uint64_t sent;   /* the last transition */
    uint64_t serial; /* of the last report */
    uint64_t poses;  /* of the last report whose poses were sent; UINT64_MAX before the first */
    uint64_t granule_rate; /* values a second; 0: none are sent */
    struct granule_reader granules;
};

static bool send_event(struct http_stream *stream, const char *name, uint64_t id,
                       const struct patch_report *report, const struct patch_transition *transition)
{
    static _Thread_local char room[EVENT_ROOM];
    struct json_buffer data = {.at = room, .size = sizeof room, .size_max = sizeof room};
    struct json_writer w;
    char head[64];
    int length;

    if (id > 0)
        length = snprintf(head, sizeof head, "event: %s\nid: %llu\ndata: ", name,
                          (unsigned long long)id);
    else
        length = snprintf(head, sizeof head, "event: %s\ndata: ", name);
    json_init(&w, json_sink_of_buffer(&data));
    if (transition)
        encode_patch_state(&w, report, transition);
    else
        encode_patch_poses(&w, report);
    if (!json_finish(&w))
        return true; /* it does not fit; the next one may */
    return http_stream_write(stream, head, (size_t)length) &&
           http_stream_write(stream, data.at, data.length) && http_stream_write(stream, "\n\n", 2);
}

static bool send_states(struct http_stream *stream, struct follower *follower,
                        const struct patch_report *report)
{
    uint64_t next = follower->sent + 1;

    if (report->transition_count > PATCH_TRANSITIONS_KEPT &&
        next <= report->transition_count - PATCH_TRANSITIONS_KEPT)
        next = report->transition_count - PATCH_TRANSITIONS_KEPT + 1;
    for (; next <= report->transition_count; next++) {
        if (!send_event(stream, "state", next, report,
                        &report->transitions[next % PATCH_TRANSITIONS_KEPT]))
            return false;
        follower->sent = next;
    }
    return true;
}

static void send_poses(struct http_stream *stream, struct follower *follower,
                       const struct patch_report *report)
{
    if (report->body_count > 0 && report->poses != follower->poses)
        send_event(stream, "poses", 0, report, NULL);
    follower->poses = report->poses;
}

/* A value that was begun goes on, and the last one before a rest waits for nothing. */
static bool is_granule_due(const struct follower *follower, const struct patch_report *report)
{
    return follower->granules.next > 0 || report->state == PATCH_RESTING ||
           monotonic_s() >=
               follower->granules.begun_at_s + 1.0 / (double)follower->granule_rate - RATE_SLACK_S;
}

static void send_granules(struct http_stream *stream, struct follower *follower,
                          const struct patch_report *report)
{
    static _Thread_local uint8_t frame[GRANULE_FRAME_BYTES_MAX];
    static _Thread_local char text[GRANULE_TEXT_BYTES];
    struct granule_set *set;
    size_t length, bytes;
    bool is_begin;

    if (follower->granule_rate == 0 || report->state == PATCH_FILLING ||
        patch_state_is_end(report->state) || !is_granule_due(follower, report) ||
        !http_stream_has_room_for(stream, sizeof text))
        return;
    set = sand_granules_now(follower->sand, report);
    if (!set)
        return;
    is_begin = follower->granules.next == 0;
    bytes = granule_frame_next(&follower->granules, set, frame);
    granule_set_unref(set);
    if (bytes == 0)
        return;
    if (is_begin)
        follower->granules.begun_at_s = monotonic_s();
    length =
        (size_t)snprintf(text, sizeof text, "event: granules\ndata: {\"id\":%llu,\"granules\":\"",
                         (unsigned long long)follower->number);
    length += base64_write(text + length, frame, bytes);
    memcpy(text + length, "\"}\n\n", 4);
    http_stream_write(stream, text, length + 4);
}

/* The state that is comes first, and the one that ends the patch is the last word. */
static void patch_pull(void *context, struct http_stream *stream)
{
    struct follower *follower = context;
    struct patch_report *report = sand_report(follower->sand, follower->locale, follower->number);

    if (!report) {
        http_stream_end(stream, HTTP_STREAM_OVER);
        return;
    }
    if (report->serial != follower->serial && http_stream_has_room(stream)) {
        if (patch_state_is_end(report->state))
            send_poses(stream, follower, report);
        if (send_states(stream, follower, report)) {
            follower->serial = report->serial;
            send_poses(stream, follower, report);
            if (patch_state_is_end(report->state))
                http_stream_end(stream, HTTP_STREAM_OVER);
        }
    }
    send_granules(stream, follower, report);
    patch_report_unref(report);
}

static void patch_ended(void *context, enum http_stream_end reason)
{
    struct follower *follower = context;

    (void)reason;
    sand_follow(follower->sand, -1);
    free(follower);
}

/* Last-Event-ID: the last state that was seen. */
static enum err_code decode_seen(const struct call *call, const struct patch_report *report,
                                 uint64_t *seen, struct err *err)
{
    struct span header = call_request_header(call, "last-event-id");

    if (header.at && !span_count(header, seen))
        return err_set_at(err, ERR_BAD_INPUT, "Last-Event-ID",
                          "Last-Event-ID is no id of an event: a whole number was expected");
    if (*seen > report->transition_count)
        *seen = 0;
    /* Without it the stream begins with the state that is. */
    if (!header.at)
        *seen = report->transition_count - 1;
    return ERR_OK;
}

enum err_code patch_events_get_answer(struct call *call, struct err *err)
{
    static const struct http_stream_calls calls = {.pull = patch_pull, .ended = patch_ended};
    static const char *const names[] = {"granules", NULL};
    struct follower *follower;
    struct patch_report *report;
    uint64_t seen = 0, rate = 0;

    if (options_open_query(call, names, err) ||
        option_integer(call, "granules", 1, GRANULE_RATE_MAX, &rate, err))
        return err->code;
    report = patch_find(call, err);
    if (!report)
        return err->code;
    follower = calloc(1, sizeof *follower);
    if (!follower)
        err_set(err, ERR_NO_MEMORY, "no memory for a stream");
    else
        decode_seen(call, report, &seen, err);
    if (err->code == ERR_OK) {
        *follower = (struct follower){.sand = call->api->sand,
                                      .number = report->number,
                                      .sent = seen,
                                      .poses = UINT64_MAX,
                                      .granule_rate = rate};
        memcpy(follower->locale, report->locale, sizeof follower->locale);
        call_stream_head(call, "text/event-stream");
        text_append(call, "retry: 2000\n: kota\n\n");
        sand_follow(follower->sand, 1);
        if (call->request &&
            http_reply_stream(call->request, call->reply, &calls, follower, err) == ERR_OK)
            follower = NULL;
        else
            sand_follow(follower->sand, -1);
    }
    patch_report_unref(report);
    free(follower);
    return err->code;
}
API_HANDLER(patch_events_get, 2, CALL_NEEDS_NOTHING)
