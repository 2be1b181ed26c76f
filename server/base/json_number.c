/*
 * Shortest round-trip float64 to decimal: Schubfach (R. Giulietti, "The Schubfach way to render
 * doubles", 2020; the arrangement of A. Neumann's Drachennest).
 *
 * Problem: C17 has no shortest conversion. "%.17g" is never short, and trying 15, 16 and 17 digits
 * with strtod costs over a microsecond a number; a batch of 10,000 rays prints 70,000 of them.
 * Approach: a float64 c·2^q and the ends of its rounding interval are scaled by one 128-bit power
 * of ten to 64-bit integers, rounded to odd so that comparisons stay exact; the interval holds one
 * multiple of ten (one digit fewer) or else one of two neighbours is nearest.
 * The 617 powers of ten are not a table in the source: they are computed once, exactly, from
 * big integers (a few milliseconds), each rounded up to 128 bits.
 * Invariant: g[k] = ceil(10^k · 2^(127 - floor(log2 10^k))), the leading bit set.
 * Dropped: Grisu2 (not always shortest), Ryu (tables of the same size, longer code).
 */
#include "base/json_number.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { POWER_MIN = -292, POWER_MAX = 324, BIG_WORDS = 40 };

struct pair {
    uint64_t high, low;
};

static struct pair powers[POWER_MAX - POWER_MIN + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

/* ---- the powers of ten ------------------------------------------------------------------------
 */

/* A big integer, least significant word first. */
struct big {
    uint32_t word[BIG_WORDS];
};

static void big_times_ten(struct big *b)
{
    uint64_t carry = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        carry += (uint64_t)b->word[i] * 10;
        b->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static int big_bits(const struct big *b)
{
    for (int i = BIG_WORDS - 1; i >= 0; i--)
        if (b->word[i] != 0)
            return i * 32 + 32 - __builtin_clz(b->word[i]);
    return 0;
}

static bool big_bit(const struct big *b, int n)
{
    return n >= 0 && (b->word[n / 32] >> (n % 32) & 1) != 0;
}

static void big_double(struct big *b)
{
    uint32_t carry = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        uint32_t top = b->word[i] >> 31;

        b->word[i] = b->word[i] << 1 | carry;
        carry = top;
    }
}

static bool big_at_least(const struct big *a, const struct big *b)
{
    for (int i = BIG_WORDS - 1; i >= 0; i--)
        if (a->word[i] != b->word[i])
            return a->word[i] > b->word[i];
    return true;
}

static void big_subtract(struct big *a, const struct big *b)
{
    int64_t borrow = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        int64_t d = (int64_t)a->word[i] - b->word[i] + borrow;

        a->word[i] = (uint32_t)d;
        borrow = d >> 32;
    }
}

static struct pair pair_of(unsigned __int128 value)
{
    return (struct pair){(uint64_t)(value >> 64), (uint64_t)value};
}

/* The top 128 bits of b, rounded up. */
static struct pair big_top(const struct big *b)
{
    int bits = big_bits(b);
    unsigned __int128 top = 0;
    bool rest = false;

    for (int i = 0; i < 128; i++)
        top = top << 1 | (unsigned __int128)big_bit(b, bits - 1 - i);
    for (int i = 0; i < bits - 128; i++)
        rest |= big_bit(b, i);
    return pair_of(top + (rest ? 1 : 0));
}

/* The top 128 bits of 1 / b, b no power of two, rounded up: long division, bit by bit. */
static struct pair big_reciprocal(const struct big *b)
{
    struct big rest = {{0}};
    unsigned __int128 quotient = 0;
    int bits = big_bits(b);

    /* 2^bits / b lies in 1..2: its first quotient bit is set. */
    rest.word[bits / 32] = 1u << (bits % 32);
    for (int i = 0; i < 128; i++) {
        quotient <<= 1;
        if (big_at_least(&rest, b)) {
            big_subtract(&rest, b);
            quotient |= 1;
        }
        big_double(&rest);
    }
    return pair_of(quotient + 1);
}

static void powers_fill(void)
{
    struct big power = {{1}};

    for (int k = 0; k <= POWER_MAX; k++) {
        powers[k - POWER_MIN] = big_top(&power);
        if (k > 0 && -k >= POWER_MIN)
            powers[-k - POWER_MIN] = big_reciprocal(&power);
        big_times_ten(&power);
    }
}

/* ---- Schubfach --------------------------------------------------------------------------------
 */

struct decimal {
    uint64_t digits;
    int exponent;
};

static int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* The high part of g · cp, its last bit set when anything below was lost. */
static uint64_t round_to_odd(struct pair g, uint64_t cp)
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
    int h = q + floor_log2_pow10(-k) + 1;
    struct pair g = powers[-k - POWER_MIN];
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

/* ---- text -------------------------------------------------------------------------------------
 */

static size_t put_digits(uint64_t digits, char *out)
{
    char reversed[20];
    size_t count = 0;

    do {
        reversed[count++] = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits != 0);
    for (size_t i = 0; i < count; i++)
        out[i] = reversed[count - 1 - i];
    return count;
}

static size_t put_exponent(int exponent, char *out)
{
    size_t n = 0;

    out[n++] = 'e';
    if (exponent < 0)
        out[n++] = '-';
    return n + put_digits((uint64_t)(exponent < 0 ? -exponent : exponent), out + n);
}

/* `point` digits stand before the decimal point. */
static size_t put_decimal(const char *digits, size_t count, int point, char *out)
{
    size_t n = 0;

    if (point > 0 && point <= 21) {
        size_t whole = (size_t)point;

        for (size_t i = 0; i < whole || i < count; i++) {
            if (i == whole)
                out[n++] = '.';
            out[n++] = i < count ? digits[i] : '0';
        }
        return n;
    }
    if (point <= 0 && point > -6) {
        memcpy(out, "0.00000", 7);
        n = 2 + (size_t)-point;
        memcpy(out + n, digits, count);
        return n + count;
    }
    out[n++] = digits[0];
    if (count > 1) {
        out[n++] = '.';
        memcpy(out + n, digits + 1, count - 1);
        n += count - 1;
    }
    return n + put_exponent(point - 1, out + n);
}

size_t json_number_text(double value, char out[static JSON_NUMBER_TEXT_MAX])
{
    uint64_t bits;
    struct decimal decimal;
    char digits[20];
    size_t count, n = 0;

    memcpy(&bits, &value, sizeof bits);
    if (bits >> 63)
        out[n++] = '-';
    if (bits << 1 == 0) {
        memcpy(out + n, "0.0", 3);
        return n == 0 ? 1 : 4;
    }
    pthread_once(&powers_once, powers_fill);
    decimal = to_decimal(bits & ((1ull << 52) - 1), (int)(bits >> 52 & 0x7ff));
    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    count = put_digits(decimal.digits, digits);
    return n + put_decimal(digits, count, (int)count + decimal.exponent, out + n);
}
