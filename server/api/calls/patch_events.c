/*
 * GET …/patches/{patch}/events  ->  text/event-stream
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
 * A stream holds only a number: it reads the report table when it is woken. So of poses it sends
 * the newest, when the manager has reported new ones (20 times a second at most, with any number of
 * orders); states come in order, of many changes the last 32. A reader with Last-Event-ID gets the
 * states after it. The stream ends after a final state.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/calls/encode_patch.h"
#include "api/calls/patches.h"
#include "api/text.h"
#include "json/json_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_ROOM = 60 * 1024 };

struct follower {
    struct sand *sand;
    char locale[WORLD_ID_MAX + 1];
    uint64_t number;
    uint64_t sent;   /* the last transition */
    uint64_t serial; /* of the last report */
    uint64_t poses;  /* of the last report whose poses were sent; UINT64_MAX before the first */
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
    struct follower *follower;
    struct patch_report *report;
    uint64_t seen = 0;

    if (options_open_query(call, NULL, err))
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
        *follower = (struct follower){
            .sand = call->api->sand, .number = report->number, .sent = seen, .poses = UINT64_MAX};
        memcpy(follower->locale, report->locale, sizeof follower->locale);
        call_content_type(call, "text/event-stream");
        call_header(call, "Cache-Control", "no-store");
        call_header(call, "X-Accel-Buffering", "no");
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
