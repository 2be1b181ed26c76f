/*
 * A strict JSON checker (T. Bray, "The JavaScript Object Notation (JSON) Data Interchange Format",
 * RFC 8259, 2017).
 *
 * Problem: cJSON parses more than JSON. A daemon that takes what is not JSON works by accident, and
 * a client's bug stays hidden until another implementation refuses it.
 * Approach: one pass of recursive descent over the bytes, before the parser; depth is bounded, so
 * the recursion is. Nothing is built. Whatever passes here is parsed by cJSON without loss.
 * Invariant: `at` never passes `end`; every reader checks before it reads.
 * Not done: duplicate names inside an object are legal JSON; the decoders refuse them where they
 * would be ambiguous.
 */
#include "api/json_check.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct json_limits json_limits_default = {.depth_max = 32, .values_max = 1000000};

struct checker {
    const unsigned char *text, *at, *end;
    const struct json_limits *limits;
    size_t depth, values;
    bool is_lost; /* the place of an error cannot be written as a pointer */
    struct err *err;
};

static bool check_value(struct checker *c);

static size_t offset(const struct checker *c)
{
    return (size_t)(c->at - c->text);
}

static bool refuse(struct checker *c, const char *what)
{
    if (c->at >= c->end)
        err_set(c->err, ERR_BAD_INPUT, "JSON ends at byte %zu: %s", offset(c), what);
    else if (*c->at > 0x20 && *c->at < 0x7f)
        err_set(c->err, ERR_BAD_INPUT, "JSON is wrong at byte %zu ('%c'): %s", offset(c), *c->at,
                what);
    else
        err_set(c->err, ERR_BAD_INPUT, "JSON is wrong at byte %zu (0x%02x): %s", offset(c), *c->at,
                what);
    return false;
}

static void skip_space(struct checker *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool is_digit(const struct checker *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool digits(struct checker *c, const char *what)
{
    if (!is_digit(c))
        return refuse(c, what);
    while (is_digit(c))
        c->at++;
    return true;
}

static bool number_is_finite(struct checker *c, const unsigned char *start)
{
    char copy[JSON_NUMBER_BYTES_MAX + 1];
    size_t length = (size_t)(c->at - start);

    if (length > JSON_NUMBER_BYTES_MAX) {
        c->at = start;
        err_limit(c->err, ERR_BAD_INPUT, JSON_NUMBER_BYTES_MAX, (double)length,
                  "the number at byte %zu has %zu characters, the most is %d", offset(c), length,
                  JSON_NUMBER_BYTES_MAX);
        return false;
    }
    memcpy(copy, start, length);
    copy[length] = '\0';
    if (!isfinite(strtod(copy, NULL))) {
        c->at = start;
        err_set(c->err, ERR_BAD_INPUT, "the number %.63s at byte %zu is not a finite float64", copy,
                offset(c));
        return false;
    }
    return true;
}

static bool check_number(struct checker *c)
{
    const unsigned char *start = c->at;
    bool has_exponent = false;

    if (*c->at == '-')
        c->at++;
    if (c->at < c->end && *c->at == '0') {
        c->at++;
        if (is_digit(c))
            return refuse(c, "a number has a leading zero");
    } else if (!digits(c, "a digit was expected")) {
        return false;
    }
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!digits(c, "a digit was expected after the decimal point"))
            return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        has_exponent = true;
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        if (!digits(c, "a digit was expected in the exponent"))
            return false;
    }
    /* Without an exponent up to 63 characters are always finite. */
    if (!has_exponent && c->at - start <= JSON_NUMBER_BYTES_MAX)
        return true;
    return number_is_finite(c, start);
}

/* Length of the well-formed UTF-8 sequence at `at`, 0 when there is none (Unicode, table 3-7). */
static size_t utf8_length(const unsigned char *at, size_t room)
{
    unsigned char lead = at[0];
    unsigned char low = 0x80, high = 0xbf;
    size_t length;

    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        length = 2;
    else if (lead >= 0xe0 && lead <= 0xef)
        length = 3;
    else if (lead >= 0xf0 && lead <= 0xf4)
        length = 4;
    else
        return 0;
    if (room < length)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Four hexadecimal digits after \u. */
static bool hex4(struct checker *c, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        unsigned char d;

        if (c->at >= c->end)
            return refuse(c, "four hexadecimal digits were expected after \\u");
        d = *c->at;
        if (d >= '0' && d <= '9')
            *out = *out * 16 + (unsigned)(d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
            *out = *out * 16 + (unsigned)((d | 0x20) - 'a' + 10);
        else
            return refuse(c, "four hexadecimal digits were expected after \\u");
    }
    return true;
}

static bool check_unicode_escape(struct checker *c)
{
    unsigned first, second;

    if (!hex4(c, &first))
        return false;
    if (first == 0)
        return refuse(c, "the escape \\u0000 is not taken");
    if (first >= 0xdc00 && first <= 0xdfff)
        return refuse(c, "a low surrogate without a high one");
    if (first < 0xd800 || first > 0xdbff)
        return true;
    if (c->end - c->at < 2 || c->at[0] != '\\' || c->at[1] != 'u')
        return refuse(c, "a high surrogate without a low one");
    c->at += 2;
    if (!hex4(c, &second))
        return false;
    return (second >= 0xdc00 && second <= 0xdfff) ||
           refuse(c, "a high surrogate without a low one");
}

/*
 * A value was refused: each level on the way back puts its own name or index in front, so that the
 * error says where the value stands. A name that is no plain word would need escapes, and one too
 * many leaves the room: then only the byte tells.
 */
static void point_at(struct checker *c, const unsigned char *name, size_t length, size_t index)
{
    char part[sizeof c->err->pointer], below[sizeof c->err->pointer];
    int written;

    if (c->is_lost)
        return;
    for (size_t i = 0; i < length; i++)
        c->is_lost |= strchr("~/\\", name[i]) != NULL || name[i] < 0x20 || name[i] > 0x7e;
    if (name)
        written =
            snprintf(part, sizeof part, "/%.*s",
                     length < sizeof part ? (int)length : (int)sizeof part, (const char *)name);
    else
        written = snprintf(part, sizeof part, "/%zu", index);
    snprintf(below, sizeof below, "%s", c->err->pointer);
    c->is_lost |= (size_t)written + strlen(below) >= sizeof part;
    err_at(c->err, "%s%s", c->is_lost ? "" : part, c->is_lost ? "" : below);
}

static bool check_string(struct checker *c)
{
    c->at++; /* the quote */
    while (c->at < c->end && *c->at != '"') {
        if (*c->at < 0x20)
            return refuse(c, "a control character in a string must be escaped");
        if (*c->at == '\\') {
            c->at++;
            if (c->at >= c->end || *c->at == '\0' || !strchr("\"\\/bfnrtu", *c->at))
                return refuse(c, "an unknown escape");
            c->at++;
            if (c->at[-1] == 'u' && !check_unicode_escape(c))
                return false;
        } else {
            size_t length = utf8_length(c->at, (size_t)(c->end - c->at));

            if (length == 0)
                return refuse(c, "the bytes of a string are not UTF-8");
            c->at += length;
        }
    }
    if (c->at >= c->end)
        return refuse(c, "a string has no closing quote");
    c->at++;
    return true;
}

static bool check_word(struct checker *c, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return refuse(c, "a value was expected");
    c->at += length;
    return true;
}

static bool check_member(struct checker *c)
{
    const unsigned char *name = c->at + 1;
    size_t length;

    if (c->at >= c->end || *c->at != '"')
        return refuse(c, "a member name in quotes was expected");
    if (!check_string(c))
        return false;
    length = (size_t)(c->at - 1 - name);
    skip_space(c);
    if (c->at >= c->end || *c->at != ':')
        return refuse(c, "':' was expected");
    c->at++;
    if (check_value(c))
        return true;
    point_at(c, name, length, 0);
    return false;
}

static bool check_item(struct checker *c, size_t index)
{
    if (check_value(c))
        return true;
    point_at(c, NULL, 0, index);
    return false;
}

/* An array or an object: items between brackets, separated by commas. */
static bool check_items(struct checker *c, unsigned char closing)
{
    if (++c->depth > c->limits->depth_max) {
        err_limit(c->err, ERR_BAD_INPUT, (double)c->limits->depth_max, (double)c->depth,
                  "JSON is nested deeper than %zu levels at byte %zu", c->limits->depth_max,
                  offset(c));
        return false;
    }
    c->at++;
    skip_space(c);
    if (c->at < c->end && *c->at == closing) {
        c->at++;
        c->depth--;
        return true;
    }
    for (size_t index = 0;; index++) {
        skip_space(c);
        if (!(closing == '}' ? check_member(c) : check_item(c, index)))
            return false;
        skip_space(c);
        if (c->at < c->end && *c->at == closing)
            break;
        if (c->at >= c->end || *c->at != ',')
            return refuse(c,
                          closing == '}' ? "',' or '}' was expected" : "',' or ']' was expected");
        c->at++;
    }
    c->at++;
    c->depth--;
    return true;
}

static bool check_value(struct checker *c)
{
    skip_space(c);
    if (c->at >= c->end)
        return refuse(c, "a value was expected");
    if (++c->values > c->limits->values_max) {
        err_limit(c->err, ERR_TOO_LARGE, (double)c->limits->values_max, (double)c->values,
                  "JSON has more than %zu values", c->limits->values_max);
        return false;
    }
    switch (*c->at) {
    case '{':
        return check_items(c, '}');
    case '[':
        return check_items(c, ']');
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true");
    case 'f':
        return check_word(c, "false");
    case 'n':
        return check_word(c, "null");
    default:
        if (*c->at == '-' || is_digit(c))
            return check_number(c);
        return refuse(c, "a value was expected");
    }
}

enum err_code json_check(const char *text, size_t length, const struct json_limits *limits,
                         struct err *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    struct checker c = {
        .text = bytes, .at = bytes, .end = bytes + length, .limits = limits, .err = err};

    if (!check_value(&c))
        return err->code;
    skip_space(&c);
    if (c.at < c.end) {
        refuse(&c, "nothing may follow the value");
        return err->code;
    }
    return ERR_OK;
}
