/*
 * Base64 without padding. Source: RFC 4648, sections 4 and 5.
 */
#ifndef KOTA_BASE_BASE64_H
#define KOTA_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#define BASE64_OTHERS "+/"
#define BASE64URL_OTHERS "-_"

/* 0 to 63; -1 when c is no digit. others: the digits of 62 and 63. */
static inline int base64_value(char c, const char others[static 2])
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == others[0] ? 62 : c == others[1] ? 63 : -1;
}

/*
 * Decodes into out[size], which may be text itself. Returns how many bytes; -1 when it is none, has
 * unused bits that are not 0, or does not fit.
 */
static inline long base64_read(const char *text, size_t length, const char others[static 2],
                               uint8_t *out, size_t size)
{
    uint32_t bits = 0;
    int held = 0;
    size_t written = 0;

    if (length % 4 == 1)
        return -1;
    for (size_t i = 0; i < length; i++) {
        const int value = base64_value(text[i], others);

        if (value < 0)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (written == size)
                return -1;
            out[written++] = (uint8_t)(bits >> held);
        }
    }
    return (bits & (((uint32_t)1 << held) - 1)) == 0 ? (long)written : -1;
}

#endif
