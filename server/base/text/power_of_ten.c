/*
 * The table of powers of ten.
 *
 * Problem: printing the shortest text of a float64 (json_number.c) and reading a text as the
 * nearest one (number_read.c) both multiply by a power of ten of 128 bits. Approach: the 667
 * powers are not numbers in the source: they are computed once, exactly, from big integers, each
 * rounded up. Reading needs those above 10^55 rounded down; that is one less, because 5^56 and all
 * above have more than 128 bits and are odd. A power of five has the same leading bits as the power
 * of ten, in fewer words. Invariant: the leading bit of each entry is set.
 */
#include "base/text/power_of_ten.h"

#include <pthread.h>
#include <stdbool.h>

enum { BIG_WORDS = 13 }; /* 5^342 has 795 bits */

static struct power_of_ten powers[POWER_OF_TEN_MAX - POWER_OF_TEN_MIN + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

const struct power_of_ten *_Atomic power_of_ten_table;

/* A big integer, least significant word first. */
struct big {
    uint64_t word[BIG_WORDS];
};

static void big_times_five(struct big *b)
{
    unsigned __int128 carry = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        carry += (unsigned __int128)b->word[i] * 5;
        b->word[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

static int big_bits(const struct big *b)
{
    for (int i = BIG_WORDS - 1; i >= 0; i--)
        if (b->word[i] != 0)
            return i * 64 + 64 - __builtin_clzll(b->word[i]);
    return 0;
}

static bool big_bit(const struct big *b, int n)
{
    return n >= 0 && (b->word[n / 64] >> (n % 64) & 1) != 0;
}

static void big_double(struct big *b)
{
    uint64_t carry = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        uint64_t top = b->word[i] >> 63;

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
    __int128 borrow = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        __int128 d = (__int128)a->word[i] - b->word[i] + borrow;

        a->word[i] = (uint64_t)d;
        borrow = d >> 64;
    }
}

static struct power_of_ten pair_of(unsigned __int128 value)
{
    return (struct power_of_ten){(uint64_t)(value >> 64), (uint64_t)value};
}

/* The top 128 bits of b, rounded up. */
static struct power_of_ten big_top(const struct big *b)
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
static struct power_of_ten big_reciprocal(const struct big *b)
{
    struct big rest = {{0}};
    unsigned __int128 quotient = 0;
    int bits = big_bits(b);

    /* 2^bits / b lies in 1..2: its first quotient bit is set. */
    rest.word[bits / 64] = UINT64_C(1) << (bits % 64);
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

    for (int k = 0; k <= -POWER_OF_TEN_MIN; k++) {
        if (k <= POWER_OF_TEN_MAX)
            powers[k - POWER_OF_TEN_MIN] = big_top(&power);
        if (k > 0)
            powers[-k - POWER_OF_TEN_MIN] = big_reciprocal(&power);
        big_times_five(&power);
    }
    atomic_store_explicit(&power_of_ten_table, &powers[-POWER_OF_TEN_MIN], memory_order_release);
}

const struct power_of_ten *power_of_ten_fill(void)
{
    pthread_once(&powers_once, powers_fill);
    return &powers[-POWER_OF_TEN_MIN];
}
