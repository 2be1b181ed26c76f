/*
 * Decimal numbers: the grammar by a table, the value against strtod() in the C locale over random
 * texts, and once more in a locale with a decimal comma where the machine has one.
 */
#include "base/text/decimal.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* From an exact-size block: a read past the end is seen by AddressSanitizer. */
static enum decimal_status parse(const char *text, double *out)
{
    size_t length = strlen(text);
    char *exact = malloc(length);
    enum decimal_status status;

    memcpy(exact, text, length);
    *out = 7777;
    status = decimal_parse(exact, length, out);
    free(exact);
    return status;
}

static void the_grammar_is_decimal_and_nothing_else(void **state)
{
    static const struct {
        const char *text;
        enum decimal_status status;
        double value;
    } cases[] = {
        {"0", DECIMAL_OK, 0},
        {"-0", DECIMAL_OK, 0},
        {"12.5", DECIMAL_OK, 12.5},
        {"+12.5", DECIMAL_OK, 12.5},
        {"-.5", DECIMAL_OK, -0.5},
        {"5.", DECIMAL_OK, 5},
        {"007", DECIMAL_OK, 7},
        {"1e3", DECIMAL_OK, 1000},
        {"1E+3", DECIMAL_OK, 1000},
        {"25e-1", DECIMAL_OK, 2.5},
        {"0.1", DECIMAL_OK, 0.1},
        {"9007199254740993", DECIMAL_OK, 9007199254740992},
        {"123456789012345678901234567890", DECIMAL_OK, 123456789012345678901234567890.0},
        {"-3.4028230607370965e+38", DECIMAL_OK, -3.4028230607370965e+38},
        {"1e-999", DECIMAL_OK, 0},
        {"0e999999999999999999999", DECIMAL_OK, 0},
        {"4.9e-324", DECIMAL_OK, 4.9e-324},
        {"1e999", DECIMAL_INFINITE, 0},
        {"-1e999999999999999999999", DECIMAL_INFINITE, 0},
        {"1.8e308", DECIMAL_INFINITE, 0},
        {"inf", DECIMAL_INFINITE, 0},
        {"-Infinity", DECIMAL_INFINITE, 0},
        {"nan", DECIMAL_NAN, 0},
        {"-NaN", DECIMAL_NAN, 0},
        {"", DECIMAL_MALFORMED, 0},
        {"-", DECIMAL_MALFORMED, 0},
        {".", DECIMAL_MALFORMED, 0},
        {"1e", DECIMAL_MALFORMED, 0},
        {"1e+", DECIMAL_MALFORMED, 0},
        {"e5", DECIMAL_MALFORMED, 0},
        {"12,5", DECIMAL_MALFORMED, 0},
        {"0x10", DECIMAL_MALFORMED, 0},
        {"1 ", DECIMAL_MALFORMED, 0},
        {" 1", DECIMAL_MALFORMED, 0},
        {"1.2.3", DECIMAL_MALFORMED, 0},
        {"--1", DECIMAL_MALFORMED, 0},
        {"1f", DECIMAL_MALFORMED, 0},
        {"nanx", DECIMAL_MALFORMED, 0},
        {"nan(1)", DECIMAL_MALFORMED, 0},
        {"1.#QNAN", DECIMAL_MALFORMED, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double got;
        enum decimal_status status = parse(cases[i].text, &got);
        double expected = cases[i].status == DECIMAL_OK ? cases[i].value : 7777;

        if (status != cases[i].status || got != expected)
            fail_msg("\"%s\": got status %d, %.17g; expected %d, %.17g", cases[i].text, (int)status,
                     got, (int)cases[i].status, expected);
    }
}

static void a_number_of_more_than_255_characters_is_malformed(void **state)
{
    char text[DECIMAL_LENGTH_MAX + 2];
    double got;

    (void)state;
    memset(text, '0', sizeof text);
    text[DECIMAL_LENGTH_MAX - 1] = '8';
    text[DECIMAL_LENGTH_MAX] = '\0';
    assert_int_equal(parse(text, &got), DECIMAL_OK);
    assert_true(got == 8);
    text[DECIMAL_LENGTH_MAX] = '0';
    text[DECIMAL_LENGTH_MAX + 1] = '\0';
    assert_int_equal(parse(text, &got), DECIMAL_MALFORMED);
}

/* A small generator of its own, so that the seed names the sequence on every machine. */
static uint64_t random_next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Digits, a point somewhere, an exponent sometimes: both sides of the exact range. */
static void random_number(uint64_t *random, char *text)
{
    size_t digits = 1 + random_next(random) % 22;
    size_t point = random_next(random) % (digits + 3);

    if (random_next(random) % 2)
        *text++ = '-';
    for (size_t i = 0; i < digits; i++) {
        if (i == point)
            *text++ = '.';
        *text++ = (char)('0' + random_next(random) % 10);
    }
    *text = '\0';
    if (random_next(random) % 2)
        sprintf(text, "e%d", (int)(random_next(random) % 80) - 40);
}

static void random_numbers_compare(uint64_t seed, int count)
{
    uint64_t random = seed;

    for (int i = 0; i < count; i++) {
        char text[64];
        double got, expected;

        random_number(&random, text);
        expected = strtod(text, NULL);
        if (parse(text, &got) != DECIMAL_OK || memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("seed %llu, number %d, \"%s\": got %.17g, expected %.17g",
                     (unsigned long long)seed, i, text, got, expected);
    }
}

static void random_numbers_have_the_bits_of_strtod(void **state)
{
    const uint64_t seed = 20251121;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    random_numbers_compare(seed, 100000);
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "fr_FR.UTF-8",
                                        "nl_NL.UTF-8", "sv_SE.UTF-8", "de_DE"};
    const char *set = NULL;
    double got_short, got_long, got_comma;
    enum decimal_status comma;

    (void)state;
    for (size_t i = 0; !set && i < sizeof names / sizeof names[0]; i++)
        set = setlocale(LC_ALL, names[i]);
    if (!set) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    parse("12.5", &got_short);
    parse("0.12345678901234567890123", &got_long);
    comma = parse("12,5", &got_comma);
    setlocale(LC_ALL, "C");
    assert_true(got_short == 12.5);
    assert_true(got_long == 0.12345678901234567890123);
    assert_int_equal(comma, DECIMAL_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grammar_is_decimal_and_nothing_else),
        cmocka_unit_test(a_number_of_more_than_255_characters_is_malformed),
        cmocka_unit_test(random_numbers_have_the_bits_of_strtod),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
    };

    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
