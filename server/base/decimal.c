/*
 * strtod() reads on until something is not a number, follows the process's locale (a German one
 * reads "12.5" as 12), and takes hexadecimal and "infinity". Files and requests need none of that,
 * so the text is checked against the decimal grammar first.
 *
 * Numbers of at most 19 digits are read by base/number_read.h. Longer ones go, in a terminated
 * copy, to strtod_l() in the C locale, which rounds correctly, too. Short ones without an exponent,
 * nearly all in practice, are read in one pass before all other checks.
 */
#include "base/decimal.h"

#include "base/check.h"
#include "base/number_read.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    EXPONENT_MAX = 100000,
    PLAIN_LENGTH_MAX = 19 /* the digits fit a uint64_t, with or without a point */
};

/* A number's parts: value = digits · 10^exponent, if digits_count <= NUMBER_DIGITS_EXACT. */
struct decimal {
    bool negative;
    uint64_t digits;
    int digits_count; /* significant ones, without leading zeros */
    int exponent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void decimal_digit(struct decimal *decimal, char c)
{
    if (decimal->digits_count == 0 && c == '0')
        return;
    if (decimal->digits_count < NUMBER_DIGITS_EXACT)
        decimal->digits = decimal->digits * 10 + (uint64_t)(c - '0');
    decimal->digits_count++;
}

/* Splits at[..end) into its parts; false when it is not in the grammar. */
static bool decimal_split(const char *at, const char *end, struct decimal *out)
{
    bool any = false, exponent_negative = false;
    int exponent = 0;

    *out = (struct decimal){0};
    if (at < end && (*at == '-' || *at == '+'))
        out->negative = *at++ == '-';
    for (; at < end && is_digit(*at); at++, any = true)
        decimal_digit(out, *at);
    if (at < end && *at == '.')
        for (at++; at < end && is_digit(*at); at++, any = true) {
            decimal_digit(out, *at);
            out->exponent--;
        }
    if (!any || at == end)
        return any;
    if (*at != 'e' && *at != 'E')
        return false;
    at++;
    if (at < end && (*at == '-' || *at == '+'))
        exponent_negative = *at++ == '-';
    if (at == end)
        return false;
    for (; at < end && is_digit(*at); at++)
        if (exponent < EXPONENT_MAX)
            exponent = exponent * 10 + (*at - '0');
    out->exponent += exponent_negative ? -exponent : exponent;
    return at == end;
}

/* The words that are no numbers but that number-writing programs write. */
static enum decimal_status decimal_word(const char *text, size_t length)
{
    if (length > 0 && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    if (length == 3 && strncasecmp(text, "nan", 3) == 0)
        return DECIMAL_NAN;
    if ((length == 3 && strncasecmp(text, "inf", 3) == 0) ||
        (length == 8 && strncasecmp(text, "infinity", 8) == 0))
        return DECIMAL_INFINITE;
    return DECIMAL_MALFORMED;
}

/* Appends the digits at `at` to *digits; returns their end. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *digits)
{
    for (; at < end && is_digit(*at); at++)
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    return at;
}

/* [-] digits [. digits], all of at[..end), which is no longer than PLAIN_LENGTH_MAX. */
static inline bool read_plain(const char *at, const char *end, double *out)
{
    const bool is_negative = at < end && *at == '-';
    const char *first = at + is_negative;
    uint64_t digits = 0;
    int exponent = 0;
    double value;

    at = read_digits(first, end, &digits);
    if (at == first)
        return false;
    if (at < end && *at == '.') {
        first = at + 1;
        at = read_digits(first, end, &digits);
        exponent = (int)(first - at);
    }
    if (at != end || !number_from_decimal(digits, exponent, &value))
        return false;
    *out = is_negative ? -value : value;
    return true;
}

static __attribute__((noinline)) enum decimal_status parse_any(const char *text, size_t length,
                                                               double *out)
{
    char copy[DECIMAL_LENGTH_MAX + 1];
    struct decimal decimal;
    locale_t plain;
    double value;

    if (length > DECIMAL_LENGTH_MAX)
        return DECIMAL_MALFORMED;
    if (!decimal_split(text, text + length, &decimal))
        return decimal_word(text, length);
    if (decimal.digits_count <= NUMBER_DIGITS_EXACT) {
        if (!number_from_decimal(decimal.digits, decimal.exponent, &value))
            return DECIMAL_INFINITE;
        *out = decimal.negative ? -value : value;
        return DECIMAL_OK;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library */
    CHECK(plain);
    value = strtod_l(copy, NULL, plain);
    freelocale(plain);
    if (isinf(value))
        return DECIMAL_INFINITE;
    *out = value;
    return DECIMAL_OK;
}

enum decimal_status decimal_parse(const char *text, size_t length, double *out)
{
    if (length <= PLAIN_LENGTH_MAX && read_plain(text, text + length, out))
        return DECIMAL_OK;
    return parse_any(text, length, out);
}
