/*
 * Frames of a binary feed: see proto/feed.md, which this file follows member by member.
 *
 * Bytes are held until a frame is whole, so samples lie at a multiple of 4 of allocated memory and
 * need no copy. Numbers are little-endian, as in memory. Lengths come from outside: each is held
 * against the frame's before it is used.
 */
#include "formats/feed_frames.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 4, LENGTH_MIN = FRAME_HEAD_BYTES - LENGTH_BYTES };

static const size_t member_bytes[] = {
    [FRAME_HELLO] = 16, [FRAME_EDIT] = 64, [FRAME_POSE] = 8 * FRAME_POSE_NUMBERS,
    [FRAME_RESYNC] = 0, [FRAME_TICK] = 0,  [FRAME_RANGE] = 8,
    [FRAME_PATCH] = 56};

static bool take_name(const char *at, size_t length, char *out, size_t size)
{
    if (length >= size || memchr(at, '\0', length))
        return false;
    memcpy(out, at, length);
    out[length] = '\0';
    return true;
}

static bool read_edit(struct frame *frame, const char *members, unsigned flags, const char *content,
                      size_t content_bytes)
{
    uint64_t count;

    memcpy(frame->rect, members, sizeof frame->rect);
    memcpy(frame->bounds, members + sizeof frame->rect, sizeof frame->bounds);
    frame->has_rect = flags & FRAME_HAS_RECT;
    frame->has_bounds = flags & FRAME_HAS_BOUNDS;
    count = (uint64_t)frame->rect[2] * frame->rect[3];
    if (flags & FRAME_HAS_SAMPLES) {
        if (!frame->has_rect || count == 0 || content_bytes / sizeof(float) != count ||
            content_bytes % sizeof(float) != 0)
            return false;
        frame->samples = (const float *)(const void *)content;
    } else if (flags & FRAME_HAS_POLYGONS) {
        frame->polygons = content;
        frame->polygons_bytes = content_bytes;
    }
    return true;
}

static bool read_patch(struct frame *frame, const char *members, const char *content,
                       size_t content_bytes)
{
    uint32_t state[2];

    memcpy(frame->bounds, members, sizeof frame->bounds);
    memcpy(state, members + sizeof frame->bounds, sizeof state);
    frame->has_bounds = true;
    frame->state = state[0];
    frame->bodies = (const uint32_t *)(const void *)content;
    frame->body_count = state[1];
    return frame->body_count <= content_bytes / sizeof *frame->bodies;
}

bool frame_read(const void *bytes, size_t length, struct frame *out)
{
    const char *at = bytes;
    unsigned flags = (unsigned char)at[5], kind = (unsigned char)at[4];
    size_t layer = (unsigned char)at[6], source = (unsigned char)at[7], names, end;
    uint32_t version;

    if (kind >= sizeof member_bytes / sizeof *member_bytes)
        return false;
    *out = (struct frame){.kind = (enum frame_kind)kind, .bytes = bytes, .length = length};
    names = FRAME_HEAD_BYTES + member_bytes[kind];
    end = (names + layer + source + 3) / 4 * 4;
    if (end > length || !take_name(at + names, layer, out->layer, sizeof out->layer) ||
        !take_name(at + names + layer, source, out->source, sizeof out->source))
        return false;
    memcpy(&out->revision, at + 8, sizeof out->revision);
    if (out->kind == FRAME_EDIT)
        return read_edit(out, at + FRAME_HEAD_BYTES, flags, at + end, length - end);
    if (out->kind == FRAME_PATCH)
        return read_patch(out, at + FRAME_HEAD_BYTES, at + end, length - end);
    if (out->kind == FRAME_POSE)
        memcpy(out->pose, at + FRAME_HEAD_BYTES, sizeof out->pose);
    if (out->kind == FRAME_RANGE)
        memcpy(out->range, at + FRAME_HEAD_BYTES, sizeof out->range);
    if (out->kind != FRAME_HELLO)
        return true;
    memcpy(&version, at + FRAME_HEAD_BYTES + 8, sizeof version);
    return memcmp(at + FRAME_HEAD_BYTES, "kotafeed", 8) == 0 && version == FRAME_VERSION;
}

static bool hold(struct frames *frames, const char *bytes, size_t length)
{
    size_t needed = frames->length + length;

    if (needed > frames->capacity) {
        size_t capacity = needed < 4096 ? 4096 : 2 * needed;
        char *held = realloc(frames->held, capacity);

        if (!held)
            return false;
        frames->held = held;
        frames->capacity = capacity;
    }
    memcpy(frames->held + frames->length, bytes, length);
    frames->length = needed;
    return true;
}

/* How long the frame is, once its length is held; before that the length of its length. */
static size_t whole_length(const struct frames *frames)
{
    uint32_t size;

    if (frames->length < LENGTH_BYTES)
        return LENGTH_BYTES;
    memcpy(&size, frames->held, sizeof size);
    return size < LENGTH_MIN || size > FRAME_BYTES_MAX || size % 4 != 0
               ? 0
               : LENGTH_BYTES + (size_t)size;
}

bool frames_read(struct frames *frames, const char *bytes, size_t length, bool *is_malformed)
{
    struct frame frame;

    *is_malformed = false;
    while (length > 0) {
        size_t left = whole_length(frames) - frames->length;
        size_t part = left < length ? left : length;

        *is_malformed = !hold(frames, bytes, part) || whole_length(frames) == 0;
        if (*is_malformed)
            return false;
        bytes += part;
        length -= part;
        if (frames->length < whole_length(frames) || frames->length == LENGTH_BYTES)
            continue;
        if ((size_t)(unsigned char)frames->held[4] < sizeof member_bytes / sizeof *member_bytes) {
            *is_malformed = !frame_read(frames->held, frames->length, &frame);
            if (*is_malformed || !frames->take(frames->context, &frame))
                return false;
        }
        frames->length = 0;
    }
    return true;
}

void frames_cut(struct frames *frames)
{
    frames->length = 0;
}

void frames_free(struct frames *frames)
{
    free(frames->held);
    *frames = (struct frames){.held = NULL};
}
