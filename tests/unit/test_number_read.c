/*
 * Decimal text to float64 against strtod, bit for bit: hard cases in their millions, and what is no
 * JSON number. And back: the shortest text against printf with as many digits.
 */
#include "base/text/json_number.h"
#include "base/text/number_read.h"
#include "tests/support/long_form.h"
#include "tests/support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20261121, LENGTH_MAX = 80 };

#define ROUNDS ((int)long_form(300000, 100000))

static double number_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Both read the same, or both say that it is too large. */
static void assert_read(const char *text)
{
    size_t length = strlen(text);
    double wanted = strtod(text, NULL), got = 0;
    const char *behind = json_number_read(text, text + length, LENGTH_MAX, &got);

    if (!isfinite(wanted)) {
        if (behind)
            fail_msg("%s was read as %.17g, it is too large", text, got);
        return;
    }
    if (behind != text + length)
        fail_msg("%s was not read", text);
    if (memcmp(&wanted, &got, sizeof got) != 0)
        fail_msg("%s was read as %.17g, not as %.17g", text, got, wanted);
}

static void texts_of_random_numbers(void **state)
{
    static const char *const formats[] = {"%.17g", "%.16e", "%.15g", "%.18e", "%.0f", "%.20e"};
    struct random random = {SEED};

    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < ROUNDS; i++) {
        double value = number_of_bits(random_bits(&random));
        char text[400];

        if (!isfinite(value))
            continue;
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            if (formats[k][2] == '0' && fabs(value) > 1e60)
                continue; /* longer than is read */
            snprintf(text, sizeof text, formats[k], value);
            assert_read(text);
        }
        snprintf(text, sizeof text, "%.14f", random_in(&random, -1e4, 1e4));
        assert_read(text);
    }
}

static void random_digits_and_exponents(void **state)
{
    struct random random = {SEED + 1};
    char text[LENGTH_MAX];

    (void)state;
    print_message("seed %d\n", SEED + 1);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t digits = random_bits(&random) >> random_below(&random, 60);

        snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits,
                 (int)random_below(&random, 700) - 370);
        assert_read(text);
        snprintf(text, sizeof text, "%u.%020llue%d", random_below(&random, 100),
                 (unsigned long long)random_bits(&random), (int)random_below(&random, 60) - 30);
        assert_read(text);
    }
}

/* Halfway between two neighbours and a hair beside it: where rounding is decided by the last digit.
 * Of a value of few bits the middle has few digits; of others it is cut to what can be read. */
static void the_middles_between_neighbours(void **state)
{
    struct random random = {SEED + 2};

    (void)state;
    print_message("seed %d\n", SEED + 2);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bits = random_bits(&random) >> 1;
        int digits = 15 + (int)random_below(&random, 50);
        long double middle;
        char text[LENGTH_MAX + 8];
        size_t last;

        if (i % 2) /* 2^53..2^73: the middle is a whole number */
            bits = (1076ull + random_below(&random, 20)) << 52 | bits >> 11;
        if (!isfinite(number_of_bits(bits)) || !isfinite(number_of_bits(bits + 1)))
            continue;
        middle = ((long double)number_of_bits(bits) + (long double)number_of_bits(bits + 1)) / 2;
        if (i % 2)
            snprintf(text, sizeof text, "%.0Lf", middle);
        else
            snprintf(text, sizeof text, "%.*Le", digits, middle);
        assert_read(text);
        last = strcspn(text, "e") - 1;
        text[last] = (char)(text[last] == '9' ? '8' : text[last] + 1);
        assert_read(text);
    }
}

static void the_edges_of_float64(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e999999999999",
        "0.000e-99999",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272e-324",
        "2.4703282292062327208e-324",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "2.225073858507201136057409796709131975934819546351645e-308",
        "1e-400",
        "1e-342",
        "1e-343",
        "18446744073709551615e-342",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.797693134862315807e308",
        "1.797693134862315808e308",
        "1e308",
        "1e309",
        "0.00000000000000000001e328",
        "1e999999999",
        "1e-999999999",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740992.9999999999",
        "9007199254740993.00000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "99999999999999999999",
        "1e22",
        "1e23",
        "8.5e22",
        "1e-22",
        "1e-23",
        "123456789012345678901234567890123456789012345678901234567890",
        "0.123456789012345678901234567890123456789012345678901234567890",
        "0.00000000000000000000000000000000000000000000000000000000001",
        "1.00000000000000011102230246"
        "251565",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "7.2057594037927933e16",
        "6929495644600919.5",
        "3.7455744005952583e15",
        "10000000000000000000000000000000000000000",
    };
    char text[LENGTH_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_read(texts[i]);
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        for (int digits = 0; digits < 40; digits++) {
            snprintf(text, sizeof text, "%.*e", digits, ldexp(1, exponent));
            assert_read(text);
        }
    }
    for (int exponent = -350; exponent <= 310; exponent++) {
        for (unsigned digits = 1; digits < 200; digits++) {
            snprintf(text, sizeof text, "%ue%d", digits, exponent);
            assert_read(text);
        }
    }
}

static void what_is_no_number_is_not_read(void **state)
{
    static const char *const texts[] = {"",    "-",  "+1",  ".5",  "-.5", "5.",    "5.e1",  "1e",
                                        "1e+", "01", "-01", "00",  "1.x", "NaN",   "inf",   "-inf",
                                        "e5",  " 1", "--1", "1e-", "0x",  "1e999", "-1e999"};
    /* a number ends where its grammar ends: what follows is for the caller */
    static const struct {
        const char *text;
        size_t length;
    } cut[] = {{"1 ", 1},           {"1,2", 1}, {"1.5]", 3},  {"1e5}", 3},
               {"12:", 2},          {"0x", 1},  {"1.5.5", 3}, {"12345678a", 8},
               {"1.12345678/", 10}, {"1-2", 1}, {"1\xff", 1}, {"1:", 1}};
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *behind =
            json_number_read(texts[i], texts[i] + strlen(texts[i]), LENGTH_MAX, &value);

        if (behind && strcmp(texts[i], "0x") != 0)
            fail_msg("\"%s\" was read as %.17g", texts[i], value);
    }
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const char *text = cut[i].text;

        assert_ptr_equal(json_number_read(text, text + strlen(text), LENGTH_MAX, &value),
                         text + cut[i].length);
    }
}

/* Every beginning of a text, in a block of its own, so that a read past its end is seen. */
static void nothing_beyond_the_end_is_read(void **state)
{
    static const char text[] = "-1234567890.12345678901234e-12";

    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        char *copy = malloc(length + (length == 0)), whole[sizeof text] = "";
        const char *behind;
        double value = 0;

        assert_non_null(copy);
        memcpy(copy, text, length);
        memcpy(whole, text, length);
        behind = json_number_read(copy, copy + length, LENGTH_MAX, &value);
        if (behind) {
            assert_ptr_equal(behind, copy + length);
            assert_true(value == strtod(whole, NULL));
        }
        /* nor are more characters read than may be */
        if (behind)
            assert_null(json_number_read(copy, copy + length, length - 1, &value));
        free(copy);
    }
}

/* Digits without sign, point and zeros around them; the place of the first one. */
static int split(const char *text, size_t length, char digits[32])
{
    const char *e = memchr(text, 'e', length), *end = e ? e : text + length;
    int exponent = e ? atoi(e + 1) : 0, point = 0, count = 0;
    bool is_behind = false;

    for (const char *at = text; at < end; at++) {
        if (*at == '.')
            is_behind = true;
        if (*at < '0' || *at > '9')
            continue;
        if (count > 0 || *at != '0')
            digits[count++] = *at;
        else if (is_behind)
            point--;
        if (count > 0 && !is_behind)
            point++;
    }
    while (count > 0 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    return point + exponent;
}

static void assert_printed_as_printf(double value)
{
    char ours[JSON_NUMBER_TEXT_MAX + 1], theirs[64], a[32], b[32];
    size_t length = json_number_text(value, ours);
    int place, their_place, count;

    ours[length] = '\0';
    place = split(ours, length, a);
    count = (int)strlen(a);
    if (strtod(ours, NULL) != value)
        fail_msg("%.17g was printed as %s", value, ours);
    snprintf(theirs, sizeof theirs, "%.*e", count - 1, value);
    if (strtod(theirs, NULL) != value)
        return; /* the nearest text of that length reads as a neighbour: ours is the one that fits
                 */
    their_place = split(theirs, strlen(theirs), b);
    if (strcmp(a, b) != 0 || place != their_place)
        fail_msg("%.17g was printed as %s, printf says %s", value, ours, theirs);
    if (count > 1) {
        snprintf(theirs, sizeof theirs, "%.*e", count - 2, value);
        if (strtod(theirs, NULL) == value)
            fail_msg("%.17g was printed as %s, %s is shorter", value, ours, theirs);
    }
}

static void the_shortest_text_is_what_printf_says_with_as_many_digits(void **state)
{
    struct random random = {SEED + 3};

    (void)state;
    print_message("seed %d\n", SEED + 3);
    for (int i = 0; i < ROUNDS / 3; i++) {
        double any = number_of_bits(random_bits(&random));
        double power = pow(10, (double)random_below(&random, 30) - 12);

        if (isfinite(any) && any != 0)
            assert_printed_as_printf(any);
        assert_printed_as_printf((double)(float)random_in(&random, -5000, 5000));
        assert_printed_as_printf(random_in(&random, -5000, 5000));
        /* few digits, with zeros at either end */
        assert_printed_as_printf((double)(1 + random_below(&random, 100000)) * power);
        assert_printed_as_printf((double)(1 + random_below(&random, 100000)) / power);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_random_numbers),
        cmocka_unit_test(random_digits_and_exponents),
        cmocka_unit_test(the_middles_between_neighbours),
        cmocka_unit_test(the_edges_of_float64),
        cmocka_unit_test(what_is_no_number_is_not_read),
        cmocka_unit_test(nothing_beyond_the_end_is_read),
        cmocka_unit_test(the_shortest_text_is_what_printf_says_with_as_many_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
