/*
 * Changes and poses as the bytes of a stream: server-sent events, or the frames of proto/feed.md.
 *
 * Each function writes to out[EVENT_BYTES_MAX] and returns the length, which always fits.
 */
#ifndef KOTA_API_EVENT_FORM_H
#define KOTA_API_EVENT_FORM_H

#include "sand/patch/patch.h"
#include "world/values/feed.h"
#include "world/values/moves.h"

enum event_form {
    EVENT_TEXT,         /* without samples */
    EVENT_TEXT_SAMPLES, /* with them in base64 */
    EVENT_FRAME
};

enum {
    EVENT_TEXT_BYTES_MAX = 8192 + 512, /* without samples */
    EVENT_BYTES_MAX = EVENT_TEXT_BYTES_MAX + (FEED_CONTENT_BYTES_MAX + 2) / 3 * 4
};

/* The start of a stream that continues after a revision of its locale. */
size_t event_hello(enum event_form form, uint64_t revision, char *out);

/* A change; content NULL: none, or not held. The id of a text is the sequence if by_sequence. */
size_t event_change(enum event_form form, const struct feed_event *event,
                    const struct feed_content *content, bool by_sequence, char *out);

/* Changes were missed; of all locales (by_sequence) locale may be "". */
size_t event_resync(enum event_form form, const char *locale, uint64_t revision, uint64_t sequence,
                    bool by_sequence, char *out);

/* A change of a patch of sand, in a word. */
size_t event_patch(enum event_form form, const struct patch_report *report, const char *change,
                   char *out);

size_t event_pose(enum event_form form, const struct move_event *event, char *out);

/* The least and greatest sample of a layer ("": of any) at a revision; a frame. */
size_t event_range(const char *layer, uint64_t revision, const float range[2], char *out);

/* Nothing that the reader asked for has changed up to a revision. */
size_t event_tick(enum event_form form, uint64_t revision, char *out);

#endif
