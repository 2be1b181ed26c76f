/*
 * The forms of events: see event_form.h. The text of an edit with samples is the one without, and
 * one member more before its end. Numbers of frames are little-endian, as in memory.
 */
#include "api/feed/event_form.h"

#include "base/text/base64.h"

#include "api/encode.h"
#include "formats/feed_frames.h"
#include "json/json_buffer.h"

#include <stdio.h>
#include <string.h>

enum { JSON_BYTES_MAX = 8192 }; /* of the data of a text */
enum { FRAME_EDIT_BYTES = 80 };

_Static_assert(EVENT_TEXT_BYTES_MAX > FRAME_EDIT_BYTES + WORLD_ID_MAX + FEED_SOURCE_MAX + 8,
               "a frame with content fits");

/* ---- text ------------------------------------------------------------------------------------ */

static size_t put_text(char *out, const char *text)
{
    size_t length = strlen(text);

    memcpy(out, text, length);
    return length;
}

/* A writer of JSON to out[JSON_BYTES_MAX]. */
static struct json_writer json_at(struct json_buffer *data, char *out)
{
    struct json_writer w;

    *data = (struct json_buffer){.at = out, .size = JSON_BYTES_MAX, .size_max = JSON_BYTES_MAX};
    json_init(&w, json_sink_of_buffer(data));
    return w;
}

static void put_change(struct json_writer *w, const struct feed_event *event)
{
    json_begin_object(w);
    json_put_string(w, "locale", event->locale);
    json_put_integer(w, "revision", event->revision);
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
    json_put_string(w, "source", event->source);
    json_put_string_or_null(w, "layer", event->layer);
    json_end_object(w);
}

static size_t text_change(enum event_form form, const struct feed_event *event,
                          const struct feed_content *content, uint64_t id, char *out)
{
    size_t at = (size_t)snprintf(out, 64, "event: edit\nid: %llu\ndata: ", (unsigned long long)id);
    struct json_buffer data;
    struct json_writer w = json_at(&data, out + at);

    put_change(&w, event);
    json_finish(&w);
    at += data.length;
    if (form == EVENT_TEXT_SAMPLES) {
        at--; /* the last brace */
        if (content && !content->is_polygons) {
            at += put_text(out + at, ",\"samples\":\"");
            at += base64_write(out + at, content->bytes, content->length);
            at += put_text(out + at, "\"}");
        } else {
            at += put_text(out + at, ",\"samples\":null}");
        }
    }
    return at + put_text(out + at, "\n\n");
}

/* A pose has no id: Last-Event-ID counts edits only. */
static size_t text_pose(const struct move_event *event, char *out)
{
    size_t at = put_text(out, "event: transform\ndata: ");
    struct json_buffer data;
    struct json_writer w = json_at(&data, out + at);

    json_begin_object(&w);
    json_put_string(&w, "locale", event->locale);
    json_put_string(&w, "layer", event->layer);
    json_put_integer(&w, "transform_seq", event->transform_seq);
    encode_pose_members(&w, &event->motion.pose);
    json_end_object(&w);
    json_finish(&w);
    at += data.length;
    return at + put_text(out + at, "\n\n");
}

static size_t text_patch(const struct patch_report *report, const char *change, char *out)
{
    size_t at = put_text(out, "event: patch\ndata: ");
    struct json_buffer data;
    struct json_writer w = json_at(&data, out + at);

    json_begin_object(&w);
    json_put_string(&w, "locale", report->locale);
    json_put_integer(&w, "patch", report->number);
    json_put_string(&w, "layer", report->layer);
    json_put_string(&w, "change", change);
    json_put_string(&w, "state", patch_state_name(report->state));
    json_put_box3(&w, "bounds", patch_report_bounds(report));
    json_put_array(&w, "bodies");
    for (uint32_t i = 0; i < report->body_count; i++)
        if (!report->bodies[i].is_removed)
            json_integer(&w, i);
    json_end_array(&w);
    json_end_object(&w);
    json_finish(&w);
    at += data.length;
    return at + put_text(out + at, "\n\n");
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct frame_head {
    enum frame_kind kind;
    unsigned flags;
    uint64_t revision;
    const char *layer, *source;
    size_t member_bytes; /* those of the kind, from FRAME_HEAD_BYTES on; written before */
};

/* Head and names of a frame whose members are there; the content comes after it. */
static size_t frame_close(const struct frame_head *frame, size_t content_bytes, char *out)
{
    size_t layer = strlen(frame->layer), source = strlen(frame->source);
    size_t at = FRAME_HEAD_BYTES + frame->member_bytes;
    uint32_t length;

    memcpy(out + at, frame->layer, layer);
    memcpy(out + at + layer, frame->source, source);
    at += layer + source;
    while (at % 4 != 0)
        out[at++] = 0;
    length = (uint32_t)(at + content_bytes - sizeof length);
    memcpy(out, &length, sizeof length);
    out[4] = (char)frame->kind;
    out[5] = (char)frame->flags;
    out[6] = (char)layer;
    out[7] = (char)source;
    memcpy(out + 8, &frame->revision, sizeof frame->revision);
    return at;
}

static size_t frame_plain(enum frame_kind kind, uint64_t revision, char *out)
{
    return frame_close(&(struct frame_head){kind, 0, revision, "", "", 0}, 0, out);
}

static size_t frame_change(const struct feed_event *event, const struct feed_content *content,
                           char *out)
{
    const struct box3 *b = &event->bounds;
    const uint32_t rect[4] = {event->rect.column, event->rect.row, event->rect.cols,
                              event->rect.rows};
    const double bounds[6] = {b->min.x, b->min.y, b->min.z, b->max.x, b->max.y, b->max.z};
    struct frame_head frame = {FRAME_EDIT,      0,
                               event->revision, event->layer,
                               event->source,   FRAME_EDIT_BYTES - FRAME_HEAD_BYTES};
    size_t at, content_bytes = content ? content->length : 0;

    memset(out, 0, FRAME_EDIT_BYTES);
    if (event->has_rect)
        memcpy(out + 16, rect, sizeof rect);
    if (event->has_bounds)
        memcpy(out + 32, bounds, sizeof bounds);
    frame.flags =
        (event->has_rect ? FRAME_HAS_RECT : 0) | (event->has_bounds ? FRAME_HAS_BOUNDS : 0);
    if (content)
        frame.flags |= content->is_polygons ? FRAME_HAS_POLYGONS : FRAME_HAS_SAMPLES;
    at = frame_close(&frame, content_bytes, out);
    if (content)
        memcpy(out + at, content->bytes, content_bytes);
    return at + content_bytes;
}

static size_t frame_pose(const struct move_event *event, char *out)
{
    const struct motion *m = &event->motion;
    const struct vec3 *by = &m->pose.translation;
    const double *q = m->pose.rotation;
    const double members[FRAME_POSE_NUMBERS] = {
        by->x, by->y,         by->z,         m->pose.yaw_deg, q[0],      q[1],      q[2],
        q[3],  m->velocity.x, m->velocity.y, m->velocity.z,   m->spin.x, m->spin.y, m->spin.z};

    memcpy(out + FRAME_HEAD_BYTES, members, sizeof members);
    return frame_close(
        &(struct frame_head){FRAME_POSE, 0, event->transform_seq, event->layer, "", sizeof members},
        0, out);
}

static size_t frame_patch(const struct patch_report *report, const char *change, char *out)
{
    const struct box3 b = patch_report_bounds(report);
    const double bounds[6] = {b.min.x, b.min.y, b.min.z, b.max.x, b.max.y, b.max.z};
    uint32_t state[2] = {(uint32_t)report->state, 0}, numbers[SAND_BODIES_MAX];
    size_t at;

    for (uint32_t i = 0; i < report->body_count; i++)
        if (!report->bodies[i].is_removed)
            numbers[state[1]++] = i;
    memcpy(out + FRAME_HEAD_BYTES, bounds, sizeof bounds);
    memcpy(out + FRAME_HEAD_BYTES + sizeof bounds, state, sizeof state);
    at = frame_close(&(struct frame_head){FRAME_PATCH, FRAME_HAS_BOUNDS, report->number,
                                          report->layer, change, sizeof bounds + sizeof state},
                     state[1] * sizeof *numbers, out);
    memcpy(out + at, numbers, state[1] * sizeof *numbers);
    return at + state[1] * sizeof *numbers;
}

size_t event_range(const char *layer, uint64_t revision, const float range[2], char *out)
{
    memcpy(out + FRAME_HEAD_BYTES, range, 2 * sizeof *range);
    return frame_close(&(struct frame_head){FRAME_RANGE, 0, revision, layer, "", 2 * sizeof *range},
                       0, out);
}

/* ---- both ------------------------------------------------------------------------------------ */

size_t event_hello(enum event_form form, uint64_t revision, char *out)
{
    const struct {
        char word[8];
        uint32_t version, zero;
    } members = {"kotafee", FRAME_VERSION, 0};

    if (form != EVENT_FRAME)
        return put_text(out, "retry: 2000\n: kota\n\n");
    memcpy(out + FRAME_HEAD_BYTES, &members, sizeof members);
    out[FRAME_HEAD_BYTES + 7] = 'd';
    return frame_close(&(struct frame_head){FRAME_HELLO, 0, revision, "", "", sizeof members}, 0,
                       out);
}

size_t event_change(enum event_form form, const struct feed_event *event,
                    const struct feed_content *content, bool by_sequence, char *out)
{
    if (form == EVENT_FRAME)
        return frame_change(event, content, out);
    return text_change(form, event, content, by_sequence ? event->sequence : event->revision, out);
}

size_t event_resync(enum event_form form, const char *locale, uint64_t revision, uint64_t sequence,
                    bool by_sequence, char *out)
{
    int length;

    if (form == EVENT_FRAME)
        return frame_plain(FRAME_RESYNC, revision, out);
    if (!by_sequence)
        length =
            snprintf(out, EVENT_TEXT_BYTES_MAX,
                     "event: resync\nid: %llu\ndata: {\"locale\":\"%s\",\"revision\":%llu}\n\n",
                     (unsigned long long)revision, locale, (unsigned long long)revision);
    else if (locale[0] != '\0')
        length = snprintf(out, EVENT_TEXT_BYTES_MAX,
                          "event: resync\nid: %llu\ndata: {\"locale\":\"%s\",\"revision\":%llu,"
                          "\"sequence\":%llu}\n\n",
                          (unsigned long long)sequence, locale, (unsigned long long)revision,
                          (unsigned long long)sequence);
    else
        length = snprintf(out, EVENT_TEXT_BYTES_MAX,
                          "event: resync\nid: %llu\ndata: {\"locale\":null,\"revision\":null,"
                          "\"sequence\":%llu}\n\n",
                          (unsigned long long)sequence, (unsigned long long)sequence);
    return (size_t)length;
}

size_t event_pose(enum event_form form, const struct move_event *event, char *out)
{
    return form == EVENT_FRAME ? frame_pose(event, out) : text_pose(event, out);
}

size_t event_patch(enum event_form form, const struct patch_report *report, const char *change,
                   char *out)
{
    return form == EVENT_FRAME ? frame_patch(report, change, out) : text_patch(report, change, out);
}

size_t event_tick(enum event_form form, uint64_t revision, char *out)
{
    if (form == EVENT_FRAME)
        return frame_plain(FRAME_TICK, revision, out);
    return (size_t)snprintf(out, EVENT_TEXT_BYTES_MAX, "id: %llu\n\n",
                            (unsigned long long)revision);
}
