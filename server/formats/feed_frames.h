/*
 * Frames of a binary feed (proto/feed.md): bytes in, frames out.
 */
#ifndef KOTA_FORMATS_FEED_FRAMES_H
#define KOTA_FORMATS_FEED_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_VERSION = 2, FRAME_BYTES_MAX = 1 << 20 };
#define FRAME_MEDIA_TYPE "application/vnd.kota.feed"

enum { FRAME_HEAD_BYTES = 16, FRAME_POSE_NUMBERS = 14 };
enum { FRAME_HAS_RECT = 1, FRAME_HAS_BOUNDS = 2, FRAME_HAS_SAMPLES = 4, FRAME_HAS_POLYGONS = 8 };

enum frame_kind {
    FRAME_HELLO,
    FRAME_EDIT,
    FRAME_POSE,
    FRAME_RESYNC,
    FRAME_TICK,
    FRAME_RANGE,
    FRAME_PATCH
};

/* One frame; pointers are borrowed until the callback returns. */
struct frame {
    enum frame_kind kind;
    uint64_t revision; /* of a pose its transform_seq, of a patch its number */
    char layer[65], source[33];
    bool has_rect, has_bounds;
    uint32_t rect[4];
    double bounds[6];
    double pose[FRAME_POSE_NUMBERS]; /* translation, yaw in degrees, rotation, velocity, spin */
    float range[2];                  /* the least and greatest sample of a layer; NaN: not known */
    uint32_t state;                  /* of a patch, and the numbers of its bodies */
    const uint32_t *bodies;          /* [body_count] */
    size_t body_count;
    const float *samples; /* [rect[3]][rect[2]]; NULL: none */
    const void *polygons; /* an edit of polygons; NULL: none */
    size_t polygons_bytes;
    const void *bytes; /* the frame itself */
    size_t length;
};

/* A whole frame; false: it is malformed, a hello of another version, or of an unknown kind. */
bool frame_read(const void *bytes, size_t length, struct frame *out);

/* A stream under way; zeroed before the first byte. */
struct frames {
    char *held; /* the beginning of a frame */
    size_t length, capacity;
    bool (*take)(void *context, const struct frame *frame); /* false ends reading */
    void *context;
};

/*
 * Bytes cut anywhere. Frames of kinds that are not known are skipped. False: take ended it, or
 * *is_malformed: what came is no frame, a hello of another version, or there is no memory.
 */
bool frames_read(struct frames *frames, const char *bytes, size_t length, bool *is_malformed);
/* The connection has ended: half a frame is dropped. */
void frames_cut(struct frames *frames);
void frames_free(struct frames *frames);

#endif
