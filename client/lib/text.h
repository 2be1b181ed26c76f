/*
 * A text that grows: requests, answers, JSON.
 */
#ifndef KOTA_LIB_TEXT_H
#define KOTA_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. After a failed allocation it is broken and takes nothing more. */
struct text {
    char *at; /* malloc; NUL after length bytes, or NULL while empty */
    size_t length, capacity;
    bool is_broken;
};

/* False without memory. */
bool text_reserve(struct text *text, size_t more); /* so that text_add of so many cannot fail */
bool text_add(struct text *text, const void *bytes, size_t length);
bool text_adds(struct text *text, const char *string);
/* The shortest form that reads back the same; finite, or it is a broken promise. */
void text_add_number(struct text *text, double value);
void text_add_uint(struct text *text, uint64_t value);
/* A JSON string with its quotes. False: not UTF-8; nothing is added. */
bool text_add_json(struct text *text, const char *string);
/* For a query: all but unreserved characters become %XX. */
void text_add_escaped(struct text *text, const char *string);
/* "" while empty. */
const char *text_string(const struct text *text);
void text_clear(struct text *text); /* keeps the memory */
void text_free(struct text *text);

#endif
