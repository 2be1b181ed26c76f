/*
 * The inside of a locale that is followed: what is fetched, and what waits for it.
 */
#ifndef KOTA_GROUND_FOLLOW_H
#define KOTA_GROUND_FOLLOW_H

#include "client/ground/copy.h"

#include "formats/feed_frames.h"

enum fetch_kind {
    FETCH_FEED,
    FETCH_DOCUMENT, /* the locale's manifest and list of layers */
    FETCH_STRIP,    /* samples of a field in the making */
    FETCH_WINDOW,   /* samples of a field that is there */
    FETCH_IMAGE,
    FETCH_POLYGONS,
    FETCH_DIFF
};

enum { FETCH_TAG_BYTES = 64, CONTENT_TAG_CHARS = 33 /* a quote and 32 digits */ };

struct fetch {
    uint32_t number;
    enum fetch_kind kind;
    bool is_under_way;
    bool is_check; /* of a window or an image: the answer may be that it is still the same */
    char layer[WORLD_ID_MAX + 1];
    struct sample_rect rect;
    struct fetch *next;
};

struct followed_layer {
    char id[WORLD_ID_MAX + 1];
    enum layer_kind kind;
    enum layer_role role;
    struct heightfield_spec spec; /* of a field */
    struct held_part part;
    float range[2];        /* the least and greatest sample of the daemon's field */
    bool is_range_changed; /* since the value was made */
    struct layer *value;   /* NULL: it is not whole yet */
    bool is_stale;         /* another one by now: fetched again after the next document */
    uint64_t low, high;    /* the revisions of what it was made of */
    bool is_posed;         /* the document has a pose: */
    struct pose posed;
    bool has_pose; /* so has the feed: its last one */
    struct kota_ground_pose pose;
    uint64_t pose_seq;
    /* in the making: */
    struct heightfield_builder *builder;
    uint32_t strips_left;
    void *image, *polygons;
    size_t image_bytes, polygons_bytes;
    char image_tag[FETCH_TAG_BYTES], polygons_tag[FETCH_TAG_BYTES];
};

struct queued_frame {
    struct queued_frame *next;
    size_t length;
    _Alignas(8) char bytes[];
};

struct following {
    struct held_locale *held;
    struct kota_ground_copy *copy;
    bool has_bounds;
    double bounds[4];
    struct fetch *fetches;
    struct frames frames;
    struct queued_frame *first, **last; /* frames that wait for fetches */
    size_t queued_bytes;
    bool is_fed;     /* hello has come */
    bool is_loaded;  /* a document was taken */
    bool is_changed; /* since it was shown */
    bool is_gone, is_refused;
    uint32_t reloads;      /* of layers that were others meanwhile, since it was shown */
    uint64_t hello;        /* where the present feed began */
    uint64_t taken;        /* the last revision of the feed that was taken; where it goes on */
    uint64_t applied;      /* the same, applied */
    uint64_t must;         /* the greatest revision of all that was fetched: shown from there on */
    uint64_t fetched;      /* the same since the feed was opened */
    uint64_t document;     /* the revision of the last document */
    uint64_t document_seq; /* its transform_seq */
    uint64_t missed_since; /* of a resync: what was applied before */
    uint64_t transform_seq;
    uint64_t frame_count;
    struct locale_manifest manifest;
    struct followed_layer *layers; /* [layer_count] in the order of the document */
    size_t layer_count;
    struct kota_ground_error error;
};

/* ---- fetches: follow.c ----------------------------------------------------------------------- */

/* rect NULL: none. False: no memory. */
bool fetch_add(struct following *f, enum fetch_kind kind, const char *layer,
               const struct sample_rect *rect, bool is_check);
/* All of a layer; NULL: all but the feed. */
void fetches_drop(struct following *f, const char *layer);
/* Does anything but the feed have to come yet? */
bool is_waiting(const struct following *f);

struct followed_layer *followed_layer(struct following *f, const char *id);
void followed_layer_clear(struct followed_layer *layer);
/* Takes the value; false: it is NULL. */
bool followed_layer_set(struct following *f, struct followed_layer *layer, struct layer *value);

/* Gives parts of fields the ranges that have changed. False: no memory. */
bool following_widen(struct following *f);

/* It ends for good, with the error. Returns false. */
bool following_refuse(struct following *f, const struct err *err);
/* The locale is not there. */
void following_leave(struct following *f);
/* A layer is another one by now: the document is asked for again. False: too often. */
bool following_reload(struct following *f, struct followed_layer *layer, struct err *err);

/* ---- answers: follow_answer.c ---------------------------------------------------------------- */

/* The path of a fetch, and its header If-None-Match. */
void fetch_need(const struct following *f, const struct fetch *fetch, struct kota_ground_need *out);
/* The answer to a fetch that has left the list. False: refused, or not what was asked (err). */
bool following_take(struct following *f, const struct fetch *fetch,
                    const struct kota_ground_answer *answer, struct err *err);
/* Once all was fetched: poses of layers that are new. False, and the error: no memory. */
bool following_settle(struct following *f, struct err *err);
/* Where all poses are those of the document, transform_seq is at least the document's. */
void following_count_poses(struct following *f);
/* Asks whether all that is held is still the same. */
bool following_check(struct following *f);
/* Asks for the part of a layer that may have changed. False: no memory. */
bool following_window(struct following *f, const struct followed_layer *layer,
                      const struct sample_rect *rect);

/* ---- frames: follow_frame.c ------------------------------------------------------------------ */

/* For frames_read: takes a frame, or queues it. */
bool following_frame(void *context, const struct frame *frame);
/* Applies the frames that wait, as far as nothing has to be fetched for them. */
void following_drain(struct following *f);

#endif
