/*
 * Server-sent events.
 *
 * A stream is lines; a line is "field: value", a comment (":…"), or empty, which ends an event.
 * Lines end in CR, LF or both, and bytes come cut anywhere, even between the two. An event without
 * data is none, but its id counts. The id outlives its event and the connection: the next
 * connection continues after it.
 *
 * Source: WHATWG, "HTML Living Standard", section 9.2 (server-sent events), 2024.
 */
#include "client/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends and keeps a NUL after it. */
static enum err_code append(char **at, size_t *length, size_t *size, const char *bytes,
                            size_t count, struct err *err)
{
    if (count > EVENTS_BYTES_MAX - *length)
        return err_set(err, ERR_INTERNAL, "an event is longer than %zu bytes", EVENTS_BYTES_MAX);
    if (*length + count + 1 > *size) {
        size_t grown_size = 2 * (*length + count) + 256;
        char *grown = realloc(*at, grown_size);

        if (!grown)
            return err_set(err, ERR_NO_MEMORY, "out of memory");
        *at = grown;
        *size = grown_size;
    }
    memcpy(*at + *length, bytes, count);
    *length += count;
    (*at)[*length] = '\0';
    return ERR_OK;
}

static enum err_code dispatch(struct events *events, struct err *err)
{
    struct event event = {*events->name ? events->name : "message", events->id, events->data};
    enum err_code code = ERR_OK;

    memcpy(events->id, events->next_id, sizeof(events->id));
    if (events->has_data)
        code = events->take(events->context, &event, err);
    events->has_data = false;
    events->data_length = 0;
    events->name[0] = '\0';
    return code;
}

static enum err_code field(struct events *events, const char *value, size_t name_length,
                           struct err *err)
{
    const char *line = events->line;
    size_t length = events->line_length - (size_t)(value - line);

    if (name_length == 5 && memcmp(line, "event", 5) == 0) {
        snprintf(events->name, sizeof(events->name), "%s", value);
    } else if (name_length == 2 && memcmp(line, "id", 2) == 0) {
        if (strlen(value) == length && length < sizeof(events->next_id))
            memcpy(events->next_id, value, length + 1);
    } else if (name_length == 5 && memcmp(line, "retry", 5) == 0) {
        if (length > 0 && length < 7 && strspn(value, "0123456789") == length)
            events->retry_ms = atol(value);
    } else if (name_length == 4 && memcmp(line, "data", 4) == 0) {
        if (events->has_data &&
            append(&events->data, &events->data_length, &events->data_size, "\n", 1, err))
            return err->code;
        events->has_data = true;
        return append(&events->data, &events->data_length, &events->data_size, value, length, err);
    }
    return ERR_OK;
}

static enum err_code line_end(struct events *events, struct err *err)
{
    enum err_code code;
    const char *colon, *value;

    if (events->line_length == 0)
        return dispatch(events, err);
    colon = memchr(events->line, ':', events->line_length);
    value = colon ? colon + 1 : events->line + events->line_length;
    if (*value == ' ')
        value++;
    code = field(events, value, colon ? (size_t)(colon - events->line) : events->line_length, err);
    events->line_length = 0;
    return code;
}

enum err_code events_read(struct events *events, const char *bytes, size_t length, struct err *err)
{
    size_t from = 0;

    for (size_t i = 0; i < length; i++) {
        bool is_second = bytes[i] == '\n' && events->is_after_cr;

        events->is_after_cr = bytes[i] == '\r';
        if (bytes[i] != '\r' && bytes[i] != '\n')
            continue;
        if (!is_second && (append(&events->line, &events->line_length, &events->line_size,
                                  bytes + from, i - from, err) ||
                           line_end(events, err)))
            return err->code;
        from = i + 1;
    }
    return append(&events->line, &events->line_length, &events->line_size, bytes + from,
                  length - from, err);
}

void events_cut(struct events *events)
{
    events->line_length = events->data_length = 0;
    events->has_data = events->is_after_cr = false;
    memcpy(events->next_id, events->id, sizeof(events->id));
    events->name[0] = '\0';
}

void events_free(struct events *events)
{
    free(events->line);
    free(events->data);
    events->line = events->data = NULL;
}
