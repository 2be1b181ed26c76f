/*
 * Server-sent events: bytes in, events out.
 */
#ifndef KOTA_LIB_SSE_H
#define KOTA_LIB_SSE_H

#include "client/lib/text.h"

enum { SSE_BYTES_MAX = 4 << 20, SSE_WORD_MAX = 128 };

/* A stream under way; zeroed before the first byte. */
struct sse {
    struct text line, data;
    bool has_data, is_after_cr;
    char name[SSE_WORD_MAX];                            /* "" is "message" */
    char next_id[SSE_WORD_MAX], id[SSE_WORD_MAX];       /* of this event, of the last whole one */
    long retry_ms;                                      /* of the stream; 0: none */
    bool (*take)(void *context, const struct sse *sse); /* a whole event; false ends reading */
    void *context;
};

/*
 * Bytes cut anywhere. False: take ended it, or a line or an event is over SSE_BYTES_MAX (or
 * memory): *is_too_long.
 */
bool sse_read(struct sse *sse, const char *bytes, size_t length, bool *is_too_long);
/* The connection has ended: half an event is dropped; the id stays. */
void sse_cut(struct sse *sse);
void sse_free(struct sse *sse);

#endif
