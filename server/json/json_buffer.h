/*
 * A sink of JSON in memory: room of a fixed size, or one that grows up to a bound.
 */
#ifndef KOTA_JSON_JSON_BUFFER_H
#define KOTA_JSON_JSON_BUFFER_H

#include "json/json_write.h"

/*
 * All zero but size_max: empty, and grows; the owner frees `at`. One that begins with size ==
 * size_max never grows, so its `at` may be any memory.
 */
struct json_buffer {
    char *at;
    size_t length, size, size_max;
};

/* Beyond size_max, and without memory, the writer fails. Borrows the buffer. */
struct json_sink json_sink_of_buffer(struct json_buffer *buffer);

#endif
