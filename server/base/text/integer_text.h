/*
 * Whole numbers as decimal text.
 */
#ifndef KOTA_BASE_INTEGER_TEXT_H
#define KOTA_BASE_INTEGER_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { INTEGER_TEXT_MAX = 20 };

/* Writes value; its length, at most INTEGER_TEXT_MAX. No NUL is written. Any thread. */
static inline size_t integer_text(uint64_t value, char *out)
{
    size_t length = 1;

    for (uint64_t rest = value; rest >= 10; rest /= 10)
        length++;
    for (size_t i = length; i-- > 0; value /= 10)
        out[i] = (char)('0' + value % 10);
    return length;
}

#endif
