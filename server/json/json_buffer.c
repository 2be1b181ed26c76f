/*
 * JSON that is kept, or sent as a whole, after it is written.
 *
 * Room doubles when it is full, so a byte is copied about once; never beyond the bound.
 */
#include "json/json_buffer.h"

#include <stdlib.h>

static char *reserve(void *to, size_t bytes)
{
    struct json_buffer *b = to;

    if (b->size - b->length < bytes) {
        size_t size;
        char *grown;

        if (b->size_max - b->length < bytes)
            return NULL;
        size = b->length + bytes;
        size = size < b->size_max / 2 ? 2 * size : b->size_max;
        grown = realloc(b->at, size);
        if (!grown)
            return NULL;
        b->at = grown;
        b->size = size;
    }
    return b->at + b->length;
}

static void advance(void *to, size_t bytes)
{
    ((struct json_buffer *)to)->length += bytes;
}

struct json_sink json_sink_of_buffer(struct json_buffer *buffer)
{
    return (struct json_sink){buffer, reserve, advance};
}
