/*
 * Base64: read without padding, written with it. Source: RFC 4648, sections 4 and 5.
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

/* Encodes with padding (section 4); returns how many characters: 4 for each 3 bytes, rounded up. */
static inline size_t base64_write(char *out, const void *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = bytes;
    char *to = out;

    for (; length >= 3; length -= 3, at += 3, to += 4) {
        to[0] = digits[at[0] >> 2];
        to[1] = digits[(at[0] & 3) << 4 | at[1] >> 4];
        to[2] = digits[(at[1] & 15) << 2 | at[2] >> 6];
        to[3] = digits[at[2] & 63];
    }
    if (length > 0) {
        uint8_t second = length > 1 ? at[1] : 0;

        to[0] = digits[at[0] >> 2];
        to[1] = digits[(at[0] & 3) << 4 | second >> 4];
        to[2] = length > 1 ? digits[(second & 15) << 2] : '=';
        to[3] = '=';
        to += 4;
    }
    return (size_t)(to - out);
}

#endif
