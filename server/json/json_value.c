/*
 * Values of a tape as they are: see json_value.h. Invariant: `next` of a token is at most the count
 * of the tape, and never before the token.
 */
#include "json/json_value.h"

#include "base/text/hex.h"

#include <string.h>

/* ---- strings --------------------------------------------------------------------------------- */

static unsigned hex4(const char *at)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++)
        code = code * 16 + (unsigned)hex_value(at[i]);
    return code;
}

/* Writes a code point as UTF-8; returns the count of its bytes. */
static size_t write_utf8(unsigned code, char *out)
{
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0}; /* by the count */
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

/* Reads an escape of a checked string; returns the count of the bytes that it is. */
static size_t read_escape(const char **at, char *out)
{
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    char kind = (*at)[1];
    const char *letter = strchr(letters, kind);
    unsigned code;

    *at += 2;
    if (kind != 'u') {
        *out = letter ? controls[letter - letters] : kind;
        return 1;
    }
    code = hex4(*at);
    *at += 4;
    if (code >> 10 == 0xd800 >> 10) { /* a pair of surrogates */
        code = 0x10000 + ((code & 0x3ff) << 10 | (hex4(*at + 2) & 0x3ff));
        *at += 6;
    }
    return write_utf8(code, out);
}

/* The same of a byte or an escape. */
static inline size_t read_letter(const char **at, char *out)
{
    if (**at == '\\')
        return read_escape(at, out);
    *out = *(*at)++;
    return 1;
}

void json_tape_string(const struct json_tape *tape, uint32_t value, char *out)
{
    const char *at = tape->text + tape->tokens[value].begin + 1;
    const char *end = tape->text + tape->tokens[value].end - 1;

    while (at < end)
        out += read_letter(&at, out);
    *out = '\0';
}

bool json_tape_is(const struct json_tape *tape, uint32_t value, const char *name)
{
    const char *at = tape->text + tape->tokens[value].begin + 1;
    const char *end = tape->text + tape->tokens[value].end - 1;

    while (at < end) {
        char bytes[4];
        size_t length = read_letter(&at, bytes);

        for (size_t i = 0; i < length; i++)
            if (bytes[i] != *name++)
                return false;
    }
    return *name == '\0';
}

/* ---- values ---------------------------------------------------------------------------------- */

uint32_t json_tape_find(const struct json_tape *tape, uint32_t object, const char *name)
{
    if (tape->count == 0 || tape->tokens[object].kind != JSON_OBJECT)
        return 0;
    for (uint32_t at = object + 1; at < tape->tokens[object].next; at = tape->tokens[at + 1].next)
        if (json_tape_is(tape, at, name))
            return at + 1;
    return 0;
}

uint32_t json_tape_array(const struct json_tape *tape, uint32_t object, const char *name)
{
    uint32_t value = json_tape_find(tape, object, name);

    return value != 0 && tape->tokens[value].kind == JSON_ARRAY ? value : 0;
}
