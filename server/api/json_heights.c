/*
 * Heights of an edit, straight from the text.
 *
 * Problem: cJSON makes a node of 64 bytes of each number and calls strtod, 0.2 µs and more each; an
 * edit of 128×128 would take milliseconds on its way in and a megabyte. Approach: the text has
 * passed the strict checker, so a scanner may trust its grammar: it finds the array, which is then
 * cut out of what the parser gets, and reads the numbers itself.
 * A decimal of at most 19 digits whose integer part fits 53 bits and whose power of ten is at most
 * 22 is one exact multiplication or division in float64 (W. Clinger, "How to read floating point
 * numbers accurately", 1990); all others go to strtod. A height is that float64 rounded to float32.
 * Invariant: nothing is read beyond the array, whose last byte is its bracket.
 */
#include "api/json_heights.h"

#include "api/json_check.h"
#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 19, EXACT_POWER_MAX = 22 };

#define EXACT_INTEGER_MAX ((uint64_t)1 << 53)

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* Behind the closing quote. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* Behind the value; a checked text has its brackets in pairs. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
        } else if (*at == '[' || *at == '{') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '}') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (depth == 0) {
            while (at<end && * at> ' ' && *at != ',' && *at != ']' && *at != '}')
                at++;
            return at;
        } else {
            at++;
        }
        if (depth == 0)
            return at;
    }
    return end;
}

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* A name as it is, or with letters as \u00xx; no other escape stands for a letter. */
static bool is_name(const char *at, const char *end, const char *name)
{
    for (; *name != '\0'; name++) {
        if (end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
            int code = 0;

            for (int i = 2; i < 6; i++)
                code = code * 16 + hex_value(at[i]);
            if (code != *name)
                return false;
            at += 6;
        } else if (at < end && *at == *name) {
            at++;
        } else {
            return false;
        }
    }
    return at == end;
}

struct span json_find_array(struct span text, const char *name)
{
    const char *end = text.at + text.length, *at = skip_space(text.at, end);
    struct span found = {NULL, 0};
    size_t count = 0;

    if (at >= end || *at != '{')
        return found;
    for (at = skip_space(at + 1, end); at < end && *at == '"'; at = skip_space(at, end)) {
        const char *label = at + 1, *value;
        bool is_it;

        at = skip_string(at, end);
        is_it = is_name(label, at - 1, name);
        at = skip_space(at, end);
        value = at < end ? skip_space(at + 1, end) : end; /* behind the colon */
        at = skip_value(value, end);
        if (is_it && count++ == 0 && value < end && *value == '[')
            found = (struct span){value, (size_t)(at - value)};
        at = skip_space(at, end);
        if (at < end && *at == ',')
            at = skip_space(at + 1, end);
    }
    return count == 1 ? found : (struct span){NULL, 0};
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static double read_slowly(const char *at, size_t length)
{
    char copy[JSON_NUMBER_BYTES_MAX + 1];

    CHECK(length <= JSON_NUMBER_BYTES_MAX); /* the checker has looked */
    memcpy(copy, at, length);
    copy[length] = '\0';
    return strtod(copy, NULL);
}

static double power_of_ten(unsigned power)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    return exact[power];
}

/* A number of the grammar; returns behind it. */
static const char *read_number(const char *at, const char *end, double *out)
{
    const char *start = at;
    bool is_negative = *at == '-', is_long = false;
    uint64_t digits = 0;
    int count = 0, power = 0;

    at += is_negative;
    for (bool is_fraction = false; at < end; at++) {
        if (*at == '.') {
            is_fraction = true;
            continue;
        }
        if (*at < '0' || *at > '9')
            break;
        if (digits != 0 || *at != '0')
            is_long |= ++count > DIGITS_MAX;
        if (!is_long)
            digits = digits * 10 + (uint64_t)(*at - '0');
        power -= is_fraction;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        bool is_small = *++at == '-';
        int exponent = 0;

        for (at += *at == '-' || *at == '+'; at < end && *at >= '0' && *at <= '9'; at++)
            exponent = exponent < 10000 ? exponent * 10 + (*at - '0') : exponent;
        power += is_small ? -exponent : exponent;
    }
    if (is_long || digits > EXACT_INTEGER_MAX || power > EXACT_POWER_MAX ||
        power < -EXACT_POWER_MAX) {
        *out = read_slowly(start, (size_t)(at - start));
        return at;
    }
    *out = power < 0 ? (double)digits / power_of_ten((unsigned)-power)
                     : (double)digits * power_of_ten((unsigned)power);
    *out = is_negative ? -*out : *out;
    return at;
}

/* One item. NULL: it is no height. */
static const char *read_height(const char *at, const char *end, float *out, struct err *err)
{
    double value;

    if (end - at >= 4 && memcmp(at, "null", 4) == 0) {
        *out = NAN;
        return at + 4;
    }
    if (*at != '-' && (*at < '0' || *at > '9')) {
        err_set(err, ERR_BAD_INPUT, "a height is a number, or null for a hole");
        return NULL;
    }
    at = read_number(at, end, &value);
    *out = (float)value;
    if (isfinite(*out))
        return at;
    err_set(err, ERR_BAD_INPUT, "the height %.17g is beyond float32", value);
    return NULL;
}

/* The first item, or the closing bracket, which is at `end`. */
static const char *first_item(struct span array, const char **end)
{
    *end = array.at + array.length - 1;
    return skip_space(array.at + 1, *end);
}

static const char *next_item(const char *behind, const char *end)
{
    behind = skip_space(behind, end);
    return behind < end ? skip_space(behind + 1, end) : end; /* behind the comma */
}

size_t json_count_items(struct span array)
{
    const char *end, *at = first_item(array, &end);
    size_t count = 0;

    for (; at < end; count++)
        at = next_item(skip_value(at, end), end);
    return count;
}

enum err_code json_read_heights(struct span array, const char *place, float *out, struct err *err)
{
    const char *end, *at = first_item(array, &end);

    for (size_t n = 0; at < end; n++) {
        at = read_height(at, end, &out[n], err);
        if (!at)
            return err_at(err, "%s/%zu", place, n);
        at = next_item(at, end);
    }
    return ERR_OK;
}
