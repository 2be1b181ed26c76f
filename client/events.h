/*
 * Server-sent events: bytes in, events out.
 */
#ifndef KOTA_CLIENT_EVENTS_H
#define KOTA_CLIENT_EVENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A longer line or event is an error. */
#define EVENTS_BYTES_MAX ((size_t)16 << 20)
#define EVENTS_WORD_MAX 128

struct event {
    const char *name; /* "message" when the stream has none */
    const char *id;   /* of the last event that had one, "" before */
    const char *data; /* lines joined by '\n' */
};

/* A stream under way; zeroed before the first byte. */
struct events {
    char *line, *data; /* malloc */
    size_t line_length, line_size, data_length, data_size;
    bool has_data, is_after_cr;
    char name[EVENTS_WORD_MAX];
    char next_id[EVENTS_WORD_MAX], id[EVENTS_WORD_MAX]; /* of this event, of the last whole one */
    long retry_ms;                                      /* of the stream; 0: none */
    enum err_code (*take)(void *context, const struct event *event, struct err *err);
    void *context;
};

/*
 * Reads the next bytes, cut anywhere, and gives whole events to `take`, whose error ends it.
 * ERR_NO_MEMORY, ERR_INTERNAL (over EVENTS_BYTES_MAX).
 */
enum err_code events_read(struct events *events, const char *bytes, size_t length, struct err *err);

/* The connection has ended: half an event is dropped; the id stays. */
void events_cut(struct events *events);
void events_free(struct events *events);

#endif
