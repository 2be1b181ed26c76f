/*
 * Frames of a binary feed: what proto/feed.md says, cut anywhere, truncated and damaged.
 */
#include "formats/feed_frames.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STREAM_MAX = 4096 };

struct bytes {
    unsigned char at[STREAM_MAX];
    size_t length;
};

struct seen {
    enum frame_kind kinds[64];
    size_t count, stop_after;
    struct frame last_edit, last_pose;
    float samples[6];
};

static void put(struct bytes *out, const void *at, size_t length)
{
    assert_true(out->length + length <= STREAM_MAX);
    memcpy(out->at + out->length, at, length);
    out->length += length;
}

static void put_frame(struct bytes *out, unsigned kind, unsigned flags, uint64_t revision,
                      const void *members, size_t member_count, const char *layer,
                      const char *source, const void *content, size_t content_bytes)
{
    static const char zeros[4];
    size_t names = strlen(layer) + strlen(source), pad = (4 - names % 4) % 4;
    uint32_t length = (uint32_t)(12 + member_count + names + pad + content_bytes);
    unsigned char head[4] = {(unsigned char)kind, (unsigned char)flags,
                             (unsigned char)strlen(layer), (unsigned char)strlen(source)};

    put(out, &length, 4);
    put(out, head, 4);
    put(out, &revision, 8);
    put(out, members, member_count);
    put(out, layer, strlen(layer));
    put(out, source, strlen(source));
    put(out, zeros, pad);
    put(out, content, content_bytes);
}

/* hello, an edit with samples, a kind to come, polygons, a pose, a tick, a resync */
static struct bytes stream(void)
{
    static const struct {
        char word[8];
        uint32_t version, zero;
    } hello = {{'k', 'o', 't', 'a', 'f', 'e', 'e', 'd'}, FRAME_VERSION, 0};
    struct {
        uint32_t rect[4];
        double bounds[6];
    } edit = {{7, 8, 3, 2}, {1, 2, 3, 4, 5, 6}};
    static const float samples[6] = {1, 2, 3, 4, 5, 6.5f};
    static const double pose[FRAME_POSE_NUMBERS] = {1, 2, 3, 30, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0.5};
    struct bytes out = {.length = 0};

    put_frame(&out, FRAME_HELLO, 0, 40, &hello, sizeof hello, "", "", "", 0);
    put_frame(&out, FRAME_EDIT, 7, 41, &edit, sizeof edit, "ground", "edit", samples,
              sizeof samples);
    put_frame(&out, 77, 255, 1, "abcd", 4, "x", "", "1234", 4);
    put_frame(&out, FRAME_EDIT, 8, 42, &edit, sizeof edit, "deck", "polygons", "12345678", 8);
    put_frame(&out, FRAME_POSE, 0, 9, pose, sizeof pose, "lift", "", "", 0);
    put_frame(&out, FRAME_TICK, 0, 50, "", 0, "", "", "", 0);
    put_frame(&out, FRAME_RESYNC, 0, 60, "", 0, "", "", "later members", 12);
    return out;
}

static bool take(void *context, const struct frame *frame)
{
    struct seen *seen = context;

    assert_true(seen->count < 64);
    seen->kinds[seen->count++] = frame->kind;
    if (frame->kind == FRAME_EDIT)
        seen->last_edit = *frame;
    if (frame->kind == FRAME_POSE)
        seen->last_pose = *frame;
    for (size_t i = 0; frame->samples && i < 6 && i < (size_t)frame->rect[2] * frame->rect[3]; i++)
        seen->samples[i] = frame->samples[i];
    return seen->count != seen->stop_after;
}

/* Read in pieces, each of memory of its own size. */
static bool read_all(const struct bytes *bytes, size_t piece, struct seen *seen, bool *is_malformed)
{
    struct frames frames = {.take = take, .context = seen};
    bool is_good = true;

    *is_malformed = false;
    for (size_t at = 0, part; is_good && at < bytes->length; at += part) {
        char *own;

        part = piece < bytes->length - at ? piece : bytes->length - at;
        own = malloc(part);
        assert_non_null(own);
        memcpy(own, bytes->at + at, part);
        is_good = frames_read(&frames, own, part, is_malformed);
        free(own);
    }
    frames_free(&frames);
    return is_good;
}

static void frames_come_whole_however_they_are_cut(void **state)
{
    static const enum frame_kind wanted[] = {FRAME_HELLO, FRAME_EDIT, FRAME_EDIT,
                                             FRAME_POSE,  FRAME_TICK, FRAME_RESYNC};
    struct bytes bytes = stream();
    bool is_malformed;

    (void)state;
    for (size_t piece = 1; piece <= bytes.length; piece++) {
        struct seen seen = {.count = 0};

        assert_true(read_all(&bytes, piece, &seen, &is_malformed));
        assert_int_equal(seen.count, 6);
        assert_memory_equal(seen.kinds, wanted, sizeof wanted);
        assert_true(seen.samples[0] == 1 && seen.samples[5] == 6.5f);
        assert_string_equal(seen.last_edit.source, "polygons");
        assert_string_equal(seen.last_edit.layer, "deck");
        assert_int_equal(seen.last_edit.revision, 42);
        assert_int_equal(seen.last_edit.polygons_bytes, 8);
        assert_false(seen.last_edit.has_rect);
        assert_true(seen.last_pose.pose[3] == 30 && seen.last_pose.pose[13] == 0.5);
        assert_string_equal(seen.last_pose.layer, "lift");
    }
}

static void a_callback_may_stop(void **state)
{
    struct bytes bytes = stream();
    struct seen seen = {.stop_after = 2};
    bool is_malformed;

    (void)state;
    assert_false(read_all(&bytes, 1000, &seen, &is_malformed));
    assert_false(is_malformed);
    assert_int_equal(seen.count, 2);
}

static void a_patch_has_bounds_and_bodies(void **state)
{
    struct {
        double bounds[6];
        uint32_t state, bodies;
    } members = {{1, 2, 3, 4, 5, 6}, 3, 2};
    static const uint32_t numbers[2] = {0, 5};
    struct bytes out = {.length = 0};
    struct frame frame;

    (void)state;
    put_frame(&out, FRAME_PATCH, 2, 7, &members, sizeof members, "ground", "gone", numbers,
              sizeof numbers);
    assert_true(frame_read(out.at, out.length, &frame));
    assert_true(frame.kind == FRAME_PATCH && frame.revision == 7 && frame.state == 3);
    assert_true(frame.has_bounds && frame.bounds[0] == 1 && frame.bounds[5] == 6);
    assert_string_equal(frame.layer, "ground");
    assert_string_equal(frame.source, "gone");
    assert_true(frame.body_count == 2 && frame.bodies[0] == 0 && frame.bodies[1] == 5);
    members.bodies = 3; /* more than there are */
    out.length = 0;
    put_frame(&out, FRAME_PATCH, 2, 7, &members, sizeof members, "ground", "gone", numbers,
              sizeof numbers);
    assert_false(frame_read(out.at, out.length, &frame));
}

static void what_is_no_frame_is_refused(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
    } cases[] = {
        {0, 3},                  /* a length that is no multiple of 4 */
        {0, 8},                  /* shorter than a head */
        {3, 9},                  /* 150 MB */
        {6, 200},                /* a name beyond the frame */
        {16, 0},                 /* another word */
        {24, FRAME_VERSION + 1}, /* another version */
    };
    bool is_malformed;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = stream();
        struct seen seen = {.count = 0};

        bytes.at[cases[i].at] = cases[i].value;
        assert_false(read_all(&bytes, 7, &seen, &is_malformed));
        assert_true(is_malformed);
        assert_int_equal(seen.count, 0);
    }
}

/* Any bytes end in frames or in a refusal; what is taken keeps its promises. */
static void damaged_streams_end_well(void **state)
{
    struct random random = {2027};
    bool is_malformed;

    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct bytes bytes = stream();
        struct seen seen = {.count = 0};

        for (unsigned k = 0; k < 5; k++)
            bytes.at[random_below(&random, (uint32_t)bytes.length)] =
                (unsigned char)random_below(&random, 256);
        bytes.length -=
            random_below(&random, 3) ? 0 : random_below(&random, (uint32_t)bytes.length);
        assert_true(read_all(&bytes, 1 + random_below(&random, 99), &seen, &is_malformed) ||
                    is_malformed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_whole_however_they_are_cut),
        cmocka_unit_test(a_callback_may_stop),
        cmocka_unit_test(a_patch_has_bounds_and_bodies),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(damaged_streams_end_well),
    };

    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
