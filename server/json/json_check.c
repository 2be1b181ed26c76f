/*
 * A strict JSON checker (T. Bray, "The JavaScript Object Notation (JSON) Data Interchange Format",
 * RFC 8259, 2017).
 *
 * Problem: the parser of cJSON takes more than JSON. A daemon that accepts malformed JSON hides a
 * client's bug until another implementation refuses it. And of a batch of 1,000 points cJSON makes
 * 3,000 nodes of 64 bytes and calls strtod 2,000 times. Approach: one pass of recursive descent
 * over the bytes; depth is bounded, so the recursion is. Each value becomes a token of 16 bytes on
 * a flat tape (as in G. Langdale and D. Lemire, "Parsing gigabytes of JSON per second", 2019),
 * numbers as float64; the long arrays of batches and edits are read from there, and for the rest
 * nodes of cJSON are built from there (json_tape.h). Invariant: `at` never passes `end`; every
 * reader checks before it reads. Not done: duplicate names inside an object are legal JSON; the
 * decoders refuse them where they would be ambiguous.
 */
#include "json/json_check.h"

#include "base/text/hex.h"
#include "base/text/number_read.h"

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
    struct json_tape *tape;
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
        err_set(c->err, ERR_BAD_JSON, "JSON ends at byte %zu: %s", offset(c), what);
    else if (*c->at > 0x20 && *c->at < 0x7f)
        err_set(c->err, ERR_BAD_JSON, "JSON is wrong at byte %zu ('%c'): %s", offset(c), *c->at,
                what);
    else
        err_set(c->err, ERR_BAD_JSON, "JSON is wrong at byte %zu (0x%02x): %s", offset(c), *c->at,
                what);
    return false;
}

/* ---- the tape -------------------------------------------------------------------------------- */

static bool grow(struct checker *c)
{
    struct json_tape *tape = c->tape;
    size_t left = (size_t)(c->end - c->at);
    /* a first guess that fits numbers of 17 digits; a token has at least one byte of the text */
    size_t more = tape->count > 0 ? tape->count : left / 12 + 16;
    struct json_token *tokens;

    if (more > left + 1)
        more = left + 1;
    tokens = realloc(tape->tokens, (tape->capacity + more) * sizeof *tokens);
    if (!tokens) {
        err_set(c->err, ERR_NO_MEMORY, "no memory to read %zu bytes of JSON",
                (size_t)(c->end - c->text));
        return false;
    }
    tape->tokens = tokens;
    tape->capacity += more;
    return true;
}

static inline bool keep(struct checker *c, struct json_token token)
{
    struct json_tape *tape = c->tape;

    if (tape->count == tape->capacity && !grow(c))
        return false;
    tape->tokens[tape->count] = token;
    tape->tokens[tape->count].next = (uint32_t)tape->count + 1;
    tape->count++;
    return true;
}

/* A value without items, from `start` to here. */
static bool keep_scalar(struct checker *c, enum json_token_kind kind, const unsigned char *start)
{
    return keep(c, (struct json_token){.begin = (uint32_t)(start - c->text),
                                       .end = (uint32_t)offset(c),
                                       .kind = kind});
}

/* ---- the grammar ----------------------------------------------------------------------------- */

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

/* A number by its grammar, from `start` to here: it is too long, or beyond float64. */
static bool refuse_size(struct checker *c, const unsigned char *start)
{
    size_t length = (size_t)(c->at - start);

    c->at = start;
    if (length > JSON_NUMBER_BYTES_MAX)
        err_limit(c->err, ERR_BAD_JSON, JSON_NUMBER_BYTES_MAX, (double)length,
                  "the number at byte %zu has %zu characters, the most is %d", offset(c), length,
                  JSON_NUMBER_BYTES_MAX);
    else
        err_set(c->err, ERR_BAD_JSON, "the number %.*s at byte %zu is not a finite float64",
                (int)length, (const char *)start, offset(c));
    return false;
}

/* What is wrong with a number that json_number_read did not read. */
static bool refuse_number(struct checker *c)
{
    const unsigned char *start = c->at;

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
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        if (!digits(c, "a digit was expected in the exponent"))
            return false;
    }
    return refuse_size(c, start);
}

static bool check_number(struct checker *c)
{
    struct json_token token = {.kind = JSON_NUMBER};
    const char *after = json_number_read((const char *)c->at, (const char *)c->end,
                                         JSON_NUMBER_BYTES_MAX, &token.number);

    if (!after)
        return refuse_number(c);
    c->at = (const unsigned char *)after;
    return keep(c, token);
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
        int digit = c->at < c->end ? hex_value((char)*c->at) : -1;

        if (digit < 0)
            return refuse(c, "four hexadecimal digits were expected after \\u");
        *out = *out * 16 + (unsigned)digit;
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
 * A value was refused: each level on the way back prepends its own name or index, so that the error
 * has the path of the value. A name that is no plain word would need escapes, and a long path
 * exceeds the buffer: then only the byte is reported.
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
    const unsigned char *start = c->at++; /* the quote */

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
    return keep_scalar(c, JSON_STRING, start);
}

static bool check_word(struct checker *c, const char *word, enum json_token_kind kind)
{
    const unsigned char *start = c->at;
    size_t length = strlen(word);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return refuse(c, "a value was expected");
    c->at += length;
    return keep_scalar(c, kind, start);
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

static bool count_value(struct checker *c)
{
    if (++c->values <= c->limits->values_max)
        return true;
    err_limit(c->err, ERR_TOO_LARGE, (double)c->limits->values_max, (double)c->values,
              "JSON has more than %zu values", c->limits->values_max);
    return false;
}

static bool check_item(struct checker *c, size_t index)
{
    bool is_number = is_digit(c) || (c->at < c->end && *c->at == '-'); /* most are */

    if (is_number ? count_value(c) && check_number(c) : check_value(c))
        return true;
    point_at(c, NULL, 0, index);
    return false;
}

/* Items between brackets, separated by commas. */
static bool check_list(struct checker *c, unsigned char closing, uint32_t *count)
{
    c->at++;
    skip_space(c);
    if (c->at < c->end && *c->at == closing)
        return true;
    for (size_t index = 0;; index++) {
        skip_space(c);
        if (!(closing == '}' ? check_member(c) : check_item(c, index)))
            return false;
        skip_space(c);
        if (c->at < c->end && *c->at == closing) {
            *count = (uint32_t)index + 1;
            return true;
        }
        if (c->at >= c->end || *c->at != ',')
            return refuse(c,
                          closing == '}' ? "',' or '}' was expected" : "',' or ']' was expected");
        c->at++;
    }
}

/* An array or an object. */
static bool check_items(struct checker *c, unsigned char closing)
{
    size_t place = c->tape->count;
    const unsigned char *start = c->at;
    struct json_token *token;
    uint32_t count = 0;

    if (++c->depth > c->limits->depth_max) {
        err_limit(c->err, ERR_BAD_JSON, (double)c->limits->depth_max, (double)c->depth,
                  "JSON is nested deeper than %zu levels at byte %zu", c->limits->depth_max,
                  offset(c));
        return false;
    }
    if (!keep_scalar(c, closing == '}' ? JSON_OBJECT : JSON_ARRAY, start) ||
        !check_list(c, closing, &count))
        return false;
    c->at++;
    c->depth--;
    token = &c->tape->tokens[place];
    token->end = (uint32_t)offset(c);
    token->next = (uint32_t)c->tape->count;
    token->count = count & 0x1fffffff; /* values_max is below */
    return true;
}

static bool check_value(struct checker *c)
{
    skip_space(c);
    if (c->at >= c->end)
        return refuse(c, "a value was expected");
    if (!count_value(c))
        return false;
    switch (*c->at) {
    case '{':
        return check_items(c, '}');
    case '[':
        return check_items(c, ']');
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true", JSON_TRUE);
    case 'f':
        return check_word(c, "false", JSON_FALSE);
    case 'n':
        return check_word(c, "null", JSON_NULL);
    default:
        if (*c->at == '-' || is_digit(c))
            return check_number(c);
        return refuse(c, "a value was expected");
    }
}

enum err_code json_scan(const char *text, size_t length, const struct json_limits *limits,
                        struct json_tape *tape, struct err *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    struct checker c;

    if (length >= UINT32_MAX)
        return err_limit(err, ERR_TOO_LARGE, UINT32_MAX - 1.0, (double)length,
                         "a JSON text has at most %u bytes, this has %zu", UINT32_MAX - 1, length);
    tape->text = text;
    c = (struct checker){.text = bytes,
                         .at = bytes,
                         .end = bytes + length,
                         .limits = limits,
                         .tape = tape,
                         .err = err};
    if (!check_value(&c))
        return err->code;
    skip_space(&c);
    if (c.at == c.end)
        return ERR_OK;
    refuse(&c, "nothing may follow the value");
    return err->code;
}
