/*
 * A growing text.
 *
 * A request is made of a hundred pieces; a check of memory after each would hide the code. So a
 * text that could not grow stays broken, and its reader checks once. Capacity doubles, so that n
 * bytes cost O(n).
 *
 * Numbers are written by base/json_number, whose texts read back as the same float64 and do not
 * depend on the process's locale, as printf's do.
 */
#include "client/lib/text.h"

#include "base/text/json_number.h"

#include <stdlib.h>
#include <string.h>

bool text_reserve(struct text *text, size_t more)
{
    size_t capacity = text->capacity ? text->capacity : 64;
    char *grown;

    if (text->is_broken)
        return false;
    if (more >= SIZE_MAX / 4 - text->length) {
        text->is_broken = true;
        return false;
    }
    if (text->length + more + 1 <= text->capacity)
        return true;
    while (capacity < text->length + more + 1)
        capacity *= 2;
    grown = realloc(text->at, capacity);
    if (!grown) {
        text->is_broken = true;
        return false;
    }
    text->at = grown;
    text->at[text->length] = '\0';
    text->capacity = capacity;
    return true;
}

bool text_add(struct text *text, const void *bytes, size_t length)
{
    if (!text_reserve(text, length))
        return false;
    if (length > 0)
        memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = '\0';
    return true;
}

bool text_adds(struct text *text, const char *string)
{
    return text_add(text, string, strlen(string));
}

void text_add_number(struct text *text, double value)
{
    char digits[JSON_NUMBER_TEXT_MAX];

    text_add(text, digits, json_number_text(value, digits));
}

void text_add_uint(struct text *text, uint64_t value)
{
    char digits[20];
    size_t from = sizeof(digits);

    do
        digits[--from] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    text_add(text, digits + from, sizeof(digits) - from);
}

/* Length of the UTF-8 character at `at`, 0: none. Source: RFC 3629, section 4. */
static size_t utf8_length(const unsigned char *at)
{
    unsigned least = 0x80, most = 0xBF;
    size_t length;

    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xC2 || at[0] > 0xF4)
        return 0;
    length = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (at[0] == 0xE0)
        least = 0xA0;
    else if (at[0] == 0xED)
        most = 0x9F;
    else if (at[0] == 0xF0)
        least = 0x90;
    else if (at[0] == 0xF4)
        most = 0x8F;
    if (at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (at[i] < 0x80 || at[i] > 0xBF)
            return 0;
    return length;
}

bool text_add_json(struct text *text, const char *string)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)string;

    for (const unsigned char *c = at; *c; c += utf8_length(c))
        if (utf8_length(c) == 0)
            return false;
    text_add(text, "\"", 1);
    for (; *at; at++) {
        if (*at < 0x20) {
            char escaped[6] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};

            text_add(text, escaped, sizeof(escaped));
        } else {
            if (*at == '"' || *at == '\\')
                text_add(text, "\\", 1);
            text_add(text, at, 1);
        }
    }
    text_add(text, "\"", 1);
    return true;
}

void text_add_escaped(struct text *text, const char *string)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,";
    static const char hex[] = "0123456789ABCDEF";

    for (const unsigned char *at = (const unsigned char *)string; *at; at++) {
        char escaped[3] = {'%', hex[*at >> 4], hex[*at & 15]};

        if (strchr(plain, *at))
            text_add(text, at, 1);
        else
            text_add(text, escaped, sizeof(escaped));
    }
}

const char *text_string(const struct text *text)
{
    return text->at ? text->at : "";
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->is_broken = false;
    if (text->at)
        text->at[0] = '\0';
}

void text_free(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}
