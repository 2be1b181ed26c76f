/*
 * Decimal to binary.
 *
 * Problem: strtod costs 40 to 200 ns a number, follows the process's locale and needs a terminator;
 * a batch of 1,000 points has 2,000 numbers, many with 17 digits. Approach: digits are gathered
 * eight at a time, as bytes of one word; a word shifted by what is no digit has leading zeros
 * instead, so a run of any length below eight takes no loop. An integer of at most 53 bits and a
 * power of at most 10^22 are one exact multiplication or division (W. D. Clinger, "How to read
 * floating point numbers accurately", 1990). All else is multiplied by a power of ten of 128 bits,
 * of which the upper 64 nearly always decide (D. Lemire, "Number parsing at a gigabyte per second",
 * 2021, after M. Eisel); that the 128 bits always do is shown by N. Mushtak and D. Lemire, "Fast
 * number parsing without fallback", 2022. A number of more than 19 digits lies between its first 19
 * and those plus one: when both round to the same float64 that is the result, else strtod decides,
 * in the C locale.
 */
#include "base/text/number_read.h"

#include "base/check.h"
#include "base/text/power_of_ten.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

enum {
    CLINGER_POWER_MAX = 22,
    POWER_LEAST = -342, /* below it 2^64 · 10^power is 0, above POWER_MOST 1 · 10^power too large */
    POWER_MOST = 308,
    POWER_EXACT_MAX = 55, /* 5^55 < 2^128 */
    EXPONENT_MAX = 100000,
    LENGTH_MAX = 255
};

#define CLINGER_DIGITS_MAX ((uint64_t)1 << 53)
#define HIDDEN_BIT ((uint64_t)1 << 52)

static const double clinger_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* ---- Eisel and Lemire ------------------------------------------------------------------------ */

/* The upper 128 bits of w · 10^power, truncated; the lower half only as exact as they must be. */
static struct power_of_ten product_of(uint64_t w, int power)
{
    struct power_of_ten g = powers_of_ten()[power];
    unsigned __int128 first, second;

    if (power > POWER_EXACT_MAX) { /* the table is rounded up, here it must be down */
        g.high -= g.low == 0;
        g.low--;
    }
    first = (unsigned __int128)w * g.high;
    if (((uint64_t)(first >> 64) & 0x1ff) == 0x1ff) {
        second = (unsigned __int128)w * g.low;
        first += (uint64_t)(second >> 64);
    }
    return (struct power_of_ten){(uint64_t)(first >> 64), (uint64_t)first};
}

static double double_of(uint64_t mantissa, int biased)
{
    uint64_t bits = (mantissa & ~HIDDEN_BIT) | (uint64_t)biased << 52;
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double subnormal(uint64_t mantissa, int biased)
{
    if (1 - biased >= 64)
        return 0;
    mantissa >>= 1 - biased;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    return double_of(mantissa, mantissa >= HIDDEN_BIT);
}

static bool eisel_lemire(uint64_t digits, int power, double *out)
{
    int shifted = __builtin_clzll(digits), upper, biased;
    struct power_of_ten product = product_of(digits << shifted, power);
    uint64_t mantissa;

    upper = (int)(product.high >> 63);
    mantissa = product.high >> (upper + 9); /* 53 bits and one to round by */
    biased = floor_log2_power_of_ten(power) + 63 + upper - shifted + 1023;
    if (biased <= 0) {
        *out = subnormal(mantissa, biased);
        return true;
    }
    /* exactly between two neighbours: only these powers can be, and the even one is taken */
    if (product.low <= 1 && power >= -4 && power <= 23 && (mantissa & 3) == 1 &&
        mantissa << (upper + 9) == product.high)
        mantissa &= ~(uint64_t)1;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa == HIDDEN_BIT << 1) {
        mantissa = HIDDEN_BIT;
        biased++;
    }
    if (biased >= 0x7ff)
        return false;
    *out = double_of(mantissa, biased);
    return true;
}

bool number_from_decimal(uint64_t digits, int exponent, double *out)
{
    if (digits <= CLINGER_DIGITS_MAX && exponent >= -CLINGER_POWER_MAX &&
        exponent <= CLINGER_POWER_MAX) {
        *out = exponent < 0 ? (double)digits / clinger_powers[-exponent]
                            : (double)digits * clinger_powers[exponent];
        return true;
    }
    if (digits == 0 || exponent < POWER_LEAST) {
        *out = 0;
        return true;
    }
    return exponent <= POWER_MOST && eisel_lemire(digits, exponent, out);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* How many of the first bytes of a word are digits, 0..8. */
static unsigned digits_in(uint64_t word)
{
    uint64_t x = word ^ 0x3030303030303030u; /* a digit is 0..9 now */
    uint64_t other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;

    return other == 0 ? 8 : (unsigned)__builtin_ctzll(other) / 8;
}

/* The number that the first `count` bytes (1..8) of a word are. */
static uint64_t value_of(uint64_t word, unsigned count)
{
    word = (word ^ 0x3030303030303030u) << (64 - 8 * count);
    word = word * 10 + (word >> 8); /* four pairs, in every other byte */
    return (((word & 0x000000ff000000ffu) * 0x000f424000000064u) +
            ((word >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u)) >>
           32;
}

/* Appends a run of digits to *digits, which wraps around beyond 19; returns its end. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *digits)
{
    static const uint32_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

    while (end - at >= 8) {
        uint64_t word;
        unsigned count;

        memcpy(&word, at, 8);
        count = digits_in(word);
        if (count == 0)
            return at;
        *digits = *digits * powers[count] + value_of(word, count);
        at += count;
        if (count < 8)
            return at;
    }
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    return at;
}

/* After the e of an exponent; NULL without a digit. */
static const char *read_exponent(const char *at, const char *end, int *power)
{
    bool is_negative = at < end && *at == '-';
    int exponent = 0;
    const char *first;

    at += at < end && (*at == '-' || *at == '+');
    for (first = at; at < end && *at >= '0' && *at <= '9'; at++)
        exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*at - '0') : exponent;
    *power += is_negative ? -exponent : exponent;
    return at == first ? NULL : at;
}

static double read_slowly(const char *at, size_t length)
{
    char copy[LENGTH_MAX + 1];
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library */
    double value;

    CHECK(plain && length <= LENGTH_MAX);
    memcpy(copy, at, length);
    copy[length] = '\0';
    value = strtod_l(copy, NULL, plain);
    freelocale(plain);
    return value;
}

/* A number of more than 19 digits without its sign; the last digit has the weight 10^power. */
static bool read_long(const char *at, size_t length, int power, double *out)
{
    uint64_t digits = 0;
    int count = 0;
    double next;

    for (const char *end = at + length; at < end && (*at | 0x20) != 'e'; at++) {
        if (*at == '.' || (count == 0 && *at == '0'))
            continue;
        if (count++ < NUMBER_DIGITS_EXACT)
            digits = digits * 10 + (uint64_t)(*at - '0');
        else
            power++; /* one more at the end that was left out */
    }
    if (count <= NUMBER_DIGITS_EXACT)
        return number_from_decimal(digits, power, out);
    if (number_from_decimal(digits, power, out) && number_from_decimal(digits + 1, power, &next) &&
        *out == next)
        return true;
    return false;
}

/*
 * Both grammars. JSON takes no plus, no zero before another digit, wants digits on both sides of a
 * point, and refuses a number that is too large; else *out is infinite then.
 */
static inline __attribute__((always_inline)) const char *read_number(const char *at,
                                                                     const char *end, bool is_json,
                                                                     size_t length_max, double *out)
{
    const bool is_negative = at < end && *at == '-';
    const char *start = at, *first, *past;
    uint64_t digits = 0;
    size_t count;
    int power = 0;
    bool is_read;

    first = at += is_negative || (!is_json && at < end && *at == '+');
    at = read_digits(at, end, &digits);
    count = (size_t)(at - first);
    if (is_json && (count == 0 || (*first == '0' && count > 1)))
        return NULL;
    if (at < end && *at == '.') {
        past = read_digits(at + 1, end, &digits);
        power = -(int)(past - at - 1);
        if (is_json && power == 0)
            return NULL;
        count += (size_t)-power;
        at = past;
    }
    if (count == 0)
        return NULL;
    if (at < end && (*at | 0x20) == 'e' && !(at = read_exponent(at + 1, end, &power)))
        return NULL;
    if ((size_t)(at - start) > length_max)
        return NULL;
    is_read = count <= NUMBER_DIGITS_EXACT ? number_from_decimal(digits, power, out)
                                           : read_long(first, (size_t)(at - first), power, out);
    if (!is_read) {
        *out = count <= NUMBER_DIGITS_EXACT ? (double)INFINITY
                                            : read_slowly(first, (size_t)(at - first));
        if (is_json && isinf(*out))
            return NULL;
    }
    *out = is_negative ? -*out : *out;
    return at;
}

const char *json_number_read(const char *at, const char *end, size_t length_max, double *out)
{
    return read_number(at, end, true, length_max, out);
}

const char *decimal_read(const char *at, const char *end, double *out)
{
    return read_number(at, end, false, LENGTH_MAX, out);
}
