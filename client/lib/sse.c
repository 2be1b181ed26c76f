/*
 * Server-sent events.
 *
 * A stream is lines; a line is "field: value", a comment (":…"), or empty, which ends an event.
 * Lines end in CR, LF or both, and bytes come cut anywhere, even between the two. An event without
 * data is none, but its id counts. The id outlives its event and the connection: the next
 * connection continues after it; it counts once its event was taken whole.
 *
 * Source: WHATWG, "HTML Living Standard", section 9.2 (server-sent events), 2024.
 */
#include "client/lib/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool append(struct text *text, const char *bytes, size_t length)
{
    return length <= (size_t)SSE_BYTES_MAX - text->length && text_add(text, bytes, length);
}

static bool dispatch(struct sse *sse)
{
    bool goes_on = true;

    memcpy(sse->id, sse->next_id, sizeof(sse->id));
    if (sse->has_data)
        goes_on = sse->take(sse->context, sse);
    sse->has_data = false;
    text_clear(&sse->data);
    sse->name[0] = '\0';
    return goes_on;
}

static bool is_named(const char *line, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(line, name, length) == 0;
}

static bool field(struct sse *sse, const char *value, size_t name_length)
{
    const char *line = text_string(&sse->line);
    size_t length = sse->line.length - (size_t)(value - line);

    if (is_named(line, name_length, "event")) {
        snprintf(sse->name, sizeof(sse->name), "%s", value);
    } else if (is_named(line, name_length, "id")) {
        if (strlen(value) == length && length < sizeof(sse->next_id))
            memcpy(sse->next_id, value, length + 1);
    } else if (is_named(line, name_length, "retry")) {
        if (length > 0 && length < 7 && strspn(value, "0123456789") == length)
            sse->retry_ms = atol(value);
    } else if (is_named(line, name_length, "data")) {
        if (sse->has_data && !append(&sse->data, "\n", 1))
            return false;
        sse->has_data = true;
        return append(&sse->data, value, length);
    }
    return true;
}

static bool line_end(struct sse *sse, bool *is_too_long)
{
    const char *line = text_string(&sse->line), *colon, *value;
    bool is_fine;

    if (sse->line.length == 0)
        return dispatch(sse);
    colon = memchr(line, ':', sse->line.length);
    value = colon ? colon + 1 : line + sse->line.length;
    if (*value == ' ')
        value++;
    is_fine = field(sse, value, colon ? (size_t)(colon - line) : sse->line.length);
    *is_too_long |= !is_fine;
    text_clear(&sse->line);
    return is_fine;
}

bool sse_read(struct sse *sse, const char *bytes, size_t length, bool *is_too_long)
{
    size_t from = 0;

    *is_too_long = false;
    for (size_t i = 0; i < length; i++) {
        bool is_second = bytes[i] == '\n' && sse->is_after_cr;

        sse->is_after_cr = bytes[i] == '\r';
        if (bytes[i] != '\r' && bytes[i] != '\n')
            continue;
        if (!is_second) {
            *is_too_long = !append(&sse->line, bytes + from, i - from);
            if (*is_too_long || !line_end(sse, is_too_long))
                return false;
        }
        from = i + 1;
    }
    *is_too_long = !append(&sse->line, bytes + from, length - from);
    return !*is_too_long;
}

void sse_cut(struct sse *sse)
{
    text_clear(&sse->line);
    text_clear(&sse->data);
    sse->has_data = sse->is_after_cr = false;
    memcpy(sse->next_id, sse->id, sizeof(sse->next_id));
    sse->name[0] = '\0';
}

void sse_free(struct sse *sse)
{
    text_free(&sse->line);
    text_free(&sse->data);
}
