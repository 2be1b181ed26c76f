/*
 * JSON string escaping for the few documents that are written without a JSON library: problem
 * documents and log lines. They quote bytes of clients, so the input may be anything.
 *
 * Approach: take one character at a time. A well-formed UTF-8 sequence (shortest form, no
 * surrogates, at most U+10FFFF) is copied; `"`, `\` and bytes below 0x20 and 0x7f are escaped; any
 * other byte becomes U+FFFD. A character that does not fit ends the output, so a sequence or an
 * escape is never cut in the middle.
 *
 * Source: RFC 8259 section 7, RFC 3629 section 4 (the table of well-formed sequences).
 */
#include "base/text/json_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_tail(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Length of the well-formed sequence at text, 0 when there is none. */
static size_t utf8_sequence(const unsigned char *text, size_t length)
{
    unsigned char first = text[0];

    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return length >= 2 && is_tail(text[1]) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        if (length < 3 || !is_tail(text[1]) || !is_tail(text[2]))
            return 0;
        if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f))
            return 0;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (length < 4 || !is_tail(text[1]) || !is_tail(text[2]) || !is_tail(text[3]))
            return 0;
        if ((first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
            return 0;
        return 4;
    }
    return 0;
}

/* The escaped form of one ASCII byte in piece[8]; returns its length. */
static size_t escape_byte(char *piece, unsigned char byte)
{
    static const char short_forms[] = "b\bf\fn\nr\rt\t\"\"\\\\";

    for (size_t i = 0; i + 1 < sizeof short_forms; i += 2) {
        if ((unsigned char)short_forms[i + 1] == byte) {
            piece[0] = '\\';
            piece[1] = short_forms[i];
            return 2;
        }
    }
    if (byte < 0x20 || byte == 0x7f)
        return (size_t)snprintf(piece, 8, "\\u%04x", byte);
    piece[0] = (char)byte;
    return 1;
}

size_t json_text_escape(char *out, size_t size, const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t used = 0;

    for (size_t i = 0; i < length;) {
        char piece[8];
        size_t sequence = utf8_sequence(bytes + i, length - i);
        size_t count;

        if (sequence > 1) {
            memcpy(piece, bytes + i, sequence);
            count = sequence;
        } else if (sequence == 1) {
            count = escape_byte(piece, bytes[i]);
        } else {
            memcpy(piece, "\xef\xbf\xbd", 3);
            count = 3;
            sequence = 1;
        }
        if (used + count + 1 > size)
            break;
        memcpy(out + used, piece, count);
        used += count;
        i += sequence;
    }
    out[used] = '\0';
    return used;
}

bool json_text_is_plain(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;

    for (size_t i = 0, sequence; i < length; i += sequence) {
        sequence = utf8_sequence(bytes + i, length - i);
        if (sequence == 0 || bytes[i] < 0x20 || bytes[i] == 0x7f)
            return false;
    }
    return true;
}
