/*
 * A borrowed run of bytes, not NUL-terminated, and readers of it.
 */
#ifndef KOTA_BASE_SPAN_H
#define KOTA_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *at; /* NULL: absent */
    size_t length;
};

static inline bool span_equals(struct span s, const char *text)
{
    return s.at && s.length == strlen(text) && memcmp(s.at, text, s.length) == 0;
}

/* Copies into a C string; false when it does not fit or holds a NUL. */
bool span_copy(struct span s, char *out, size_t size);

/* A whole number of at most 18 digits, nothing else. */
bool span_count(struct span s, uint64_t *out);

/* The same in a path, where each thing has one name: without zeros before it. */
bool span_index(struct span s, uint64_t *out);

/* A finite decimal number of at most 63 characters, nothing else. */
bool span_number(struct span s, double *out);

#endif
