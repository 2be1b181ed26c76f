/*
 * Shortest round-trip float64 to decimal: Schubfach (R. Giulietti, "The Schubfach way to render
 * doubles", 2020; the arrangement of A. Neumann's Drachennest).
 *
 * Problem: C17 has no shortest conversion. "%.17g" is never short, and trying 15, 16 and 17 digits
 * with strtod costs over a microsecond a number; a batch of 10,000 rays prints 70,000 of them.
 * Approach: a float64 c·2^q and the ends of its rounding interval are scaled by one 128-bit power
 * of ten (power_of_ten.h) to 64-bit integers, rounded to odd so that comparisons stay exact; the
 * interval holds one multiple of ten (one digit fewer) or else one of two neighbours is nearest.
 * The digits become text eight at a time, as bytes of one word; the zeros at the end are counted in
 * the words, so that nothing is divided digit by digit. Words are stored where they belong and
 * overwrite each other; reading back bytes that were just stored in other pieces stalls (a first
 * version did, and a quarter of its samples were there).
 * Dropped: Grisu2 (not always shortest), Ryu (tables of the same size, longer code).
 */
#include "base/text/json_number.h"

#include "base/text/power_of_ten.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ZEROS 0x3030303030303030u /* eight digits 0 as text */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

/* ---- Schubfach ------------------------------------------------------------------------------- */

struct decimal {
    uint64_t digits;
    int exponent;
};

/* The high part of g · cp, its last bit set when anything below was lost. */
static uint64_t round_to_odd(struct power_of_ten g, uint64_t cp)
{
    unsigned __int128 low = (unsigned __int128)g.low * cp;
    unsigned __int128 high = (unsigned __int128)g.high * cp + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct decimal to_decimal(uint64_t fraction, int biased)
{
    uint64_t c = biased != 0 ? (fraction | 1ull << 52) : fraction;
    int q = (biased != 0 ? biased : 1) - 1075;
    bool lower_is_closer = fraction == 0 && biased > 1;
    uint64_t out = c & 1; /* an odd c does not own the ends of its interval */
    int k = (q * 1262611 - (lower_is_closer ? 524031 : 0)) >> 22;
    int h = q + floor_log2_power_of_ten(-k) + 1;
    struct power_of_ten g = powers_of_ten()[-k];
    uint64_t lower = round_to_odd(g, (4 * c - 2 + lower_is_closer) << h) + out;
    uint64_t value = round_to_odd(g, (4 * c) << h);
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - out;
    uint64_t s = value / 4;
    bool below_fits, above_fits;

    if (s >= 10) {
        uint64_t tens = s / 10;

        below_fits = lower <= 40 * tens;
        above_fits = 40 * tens + 40 <= upper;
        if (below_fits != above_fits)
            return (struct decimal){tens + above_fits, k + 1};
    }
    below_fits = lower <= 4 * s;
    above_fits = 4 * s + 4 <= upper;
    if (below_fits != above_fits)
        return (struct decimal){s + above_fits, k};
    value -= 4 * s;
    return (struct decimal){s + (value > 2 || (value == 2 && (s & 1) != 0)), k};
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A number as seventeen digits, the first of which is not 0: one, eight and eight as text. */
struct digits {
    char first;
    uint64_t middle, last;
    unsigned count; /* without zeros at the end */
};

#define LEAST_OF_17_DIGITS 10000000000000000u

/* The decimal digits of n < 10^8 as text, the first one in the lowest byte. */
static inline uint64_t text_of_8(uint64_t n)
{
    uint64_t v = n / 10000 | (n % 10000) << 32, part;

    part = (v * 10486 >> 20) & 0x0000007f0000007fu; /* /100 of both halves below 10^4 */
    v = (v - part * 100) << 16 | part;
    part = (v * 103 >> 10) & 0x000f000f000f000fu; /* /10 of four quarters below 100 */
    return ((v - part * 10) << 8 | part) + ZEROS;
}

/* How many of the eight are 0 at the end. */
static inline unsigned zeros_behind(uint64_t text)
{
    return (unsigned)__builtin_clzll(text - ZEROS) / 8;
}

static struct digits digits_of(struct decimal *decimal)
{
    uint64_t top;
    struct digits d;

    for (; decimal->digits < LEAST_OF_17_DIGITS; decimal->digits *= 10)
        decimal->exponent--;
    top = decimal->digits / 100000000;
    d.last = text_of_8(decimal->digits % 100000000);
    d.middle = text_of_8(top % 100000000);
    d.first = (char)('0' + top / 100000000);
    d.count = d.last != ZEROS     ? 17 - zeros_behind(d.last)
              : d.middle != ZEROS ? 9 - zeros_behind(d.middle)
                                  : 1;
    return d;
}

static inline void put_word(char *out, uint64_t word)
{
    memcpy(out, &word, sizeof word);
}

static inline void put_digits(char *out, const struct digits *d)
{
    out[0] = d->first;
    put_word(out + 1, d->middle);
    put_word(out + 9, d->last);
}

static size_t put_exponent(int exponent, char *out)
{
    size_t n = 0;
    int size = exponent < 0 ? -exponent : exponent;

    out[n++] = 'e';
    if (exponent < 0)
        out[n++] = '-';
    if (size >= 100)
        out[n++] = (char)('0' + size / 100);
    if (size >= 10)
        out[n++] = (char)('0' + size / 10 % 10);
    out[n++] = (char)('0' + size % 10);
    return n;
}

/* `whole` digits, 1..16, a point, and the rest. */
static void put_fraction(const struct digits *d, unsigned whole, char *out)
{
    uint64_t plain, low;

    if (whole >= 8) {
        put_digits(out, d);
        memmove(out + whole + 1, out + whole, 17 - whole);
        out[whole] = '.';
        return;
    }
    /* the digits one place to the right, and over them a word whose low bytes are where they were
     */
    put_word(out + 2, d->middle);
    put_word(out + 10, d->last);
    plain = d->middle << 8 | (unsigned char)d->first;
    low = ((uint64_t)1 << 8 * whole) - 1;
    put_word(out, (plain & low) | (uint64_t)'.' << 8 * whole | (plain & ~low) << 8);
}

/* `point` digits are before the decimal point. */
static size_t put_decimal(const struct digits *d, int point, char *out)
{
    if (point > 0 && point <= 21) {
        if (d->count > (unsigned)point) {
            put_fraction(d, (unsigned)point, out);
            return d->count + 1;
        }
        put_digits(out, d);
        memset(out + 17, '0', 4);
        return (size_t)point;
    }
    if (point <= 0 && point > -6) {
        memcpy(out, "0.00000", 7);
        put_digits(out + 2 - point, d);
        return 2 + (size_t)-point + d->count;
    }
    put_digits(out + 1, d);
    out[0] = d->first;
    if (d->count == 1)
        return 1 + put_exponent(point - 1, out + 1);
    out[1] = '.';
    return d->count + 1 + put_exponent(point - 1, out + d->count + 1);
}

size_t json_number_text(double value, char out[static JSON_NUMBER_TEXT_MAX])
{
    struct decimal decimal;
    struct digits digits;
    uint64_t bits;
    size_t sign;

    memcpy(&bits, &value, sizeof bits);
    out[0] = '-';
    sign = bits >> 63;
    if (bits << 1 == 0) {
        memcpy(out + sign, "0.0", 3);
        return sign == 0 ? 1 : 4;
    }
    decimal = to_decimal(bits & ((1ull << 52) - 1), (int)(bits >> 52 & 0x7ff));
    digits = digits_of(&decimal);
    return sign + put_decimal(&digits, 17 + decimal.exponent, out + sign);
}
