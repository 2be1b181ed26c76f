/*
 * Numbers of the command line: what is taken, what is refused, and that no locale changes it.
 *
 * The accepted and refused texts are tables; the round trip is checked on random bit patterns under
 * a printed seed.
 */
#include "client/number.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void decimal_numbers_are_read_to_the_last_bit(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},           {"-0", -0.0},
        {"7", 7},           {"+7", 7},
        {"-12.5", -12.5},   {".5", 0.5},
        {"5.", 5},          {"1e3", 1000},
        {"1E-3", 0.001},    {"-1.5e+2", -150},
        {"0.1", 0.1},       {"1.7976931348623157e308", 1.7976931348623157e308},
        {"5e-324", 5e-324}, {"9007199254740993", 9007199254740992.0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double value = NAN;
        size_t length = number_scan(cases[i].text, &value);

        if (length != strlen(cases[i].text) || memcmp(&value, &cases[i].value, sizeof(value)) != 0)
            fail_msg("'%s': read %zu bytes as %.17g, expected %.17g", cases[i].text, length, value,
                     cases[i].value);
    }
}

static void what_is_no_finite_decimal_number_is_refused(void **state)
{
    static const char *const cases[] = {
        "",     " 1",    "nan",   "NaN",   "inf",  "-inf", "infinity", "1e999", "-1e999",
        "0x10", "0x1p3", "1.2.3", "1,5,",  ",1",   "1,,2", "1e",       "1e+",   "e5",
        ".",    "-",     "+",     "--1",   "1-",   "1m",   "1 2",      "[1",    "1]",
        "[]",   "[1]x",  "[1],",  "[1 2]", "[[1]", "1;2",  "1_000",    "1'000", "١",
        "1d5",  "1f",    "null",  "\"1\"", "1.e",  "0b1",  "1\v2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        double value = 99;
        size_t count = 99;
        /* " 1" is refused by number_scan alone: a list may have blanks around its numbers. */
        bool is_taken = i == 1 ? number_scan(cases[i], &value) != 0
                               : number_list(cases[i], &value, 1, 1, &count, &err) == ERR_OK;

        if (is_taken)
            fail_msg("'%s' was taken as %g", cases[i], value);
        if (i != 1 && err.msg[0] == '\0')
            fail_msg("'%s' was refused without a word", cases[i]);
    }
}

static void lists_are_parted_by_commas_blanks_or_as_json(void **state)
{
    static const char *const cases[] = {"1,-2.5,3e2",      "1, -2.5 ,3e2", "1 -2.5 3e2",
                                        "1\t-2.5\t300",    "[1,-2.5,300]", "[ 1 , -2.5 , 300 ]",
                                        " 1,-2.5,300 \r\n"};
    static const double expected[] = {1, -2.5, 300};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double values[7] = {0};
        struct err err = {0};
        size_t count = 0;

        if (number_list(cases[i], values, 2, 7, &count, &err))
            fail_msg("'%s' was refused: %s", cases[i], err.msg);
        if (count != 3 || memcmp(values, expected, sizeof(expected)) != 0)
            fail_msg("'%s': %zu numbers, %g %g %g", cases[i], count, values[0], values[1],
                     values[2]);
    }
}

static void a_list_with_too_few_or_too_many_numbers_is_refused_and_says_how_many(void **state)
{
    double values[3];
    struct err err = {0};
    size_t count;

    (void)state;
    assert_int_equal(number_exact_list("1", values, 2, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "exactly 2 numbers"));
    assert_int_equal(number_exact_list("1,2,3", values, 2, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "exactly 2 numbers"));
    assert_int_equal(number_list("1", values, 2, 3, &count, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "2 to 3 numbers"));
}

static void a_long_refused_text_is_quoted_in_part(void **state)
{
    char text[5000];
    double value;
    struct err err = {0};

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(number_exact_list(text, &value, 1, &err), ERR_BAD_INPUT);
    assert_true(strlen(err.msg) < 120);
}

static void counts_are_whole_numbers_within_their_range(void **state)
{
    static const struct {
        const char *text;
        bool is_taken;
    } cases[] = {{"2", true},    {"10000", true}, {"1", false},   {"10001", false}, {"", false},
                 {"-3", false},  {"+3", false},   {"3.0", false}, {"3x", false},    {"1e3", false},
                 {"nan", false}, {" 3", false},   {"3 ", false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        double value = 0;
        bool is_taken = number_count(cases[i].text, 2, 10000, &value, &err) == ERR_OK;

        if (is_taken != cases[i].is_taken)
            fail_msg("'%s': taken %d, expected %d", cases[i].text, is_taken, cases[i].is_taken);
    }
}

static void every_double_survives_being_written_and_read(void **state)
{
    uint64_t seed = 20170611, bits;

    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 20000; i++) {
        char text[NUMBER_TEXT_MAX];
        double value, back = 0;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bits = seed ^ seed >> 29;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        number_format(value, text);
        if (number_scan(text, &back) != strlen(text) || memcmp(&back, &value, sizeof(back)) != 0)
            fail_msg("%a was written as %s and read as %a", value, text, back);
    }
}

static void numbers_are_written_as_short_as_they_can_be(void **state)
{
    char text[NUMBER_TEXT_MAX];

    (void)state;
    number_format(0.1, text);
    assert_string_equal(text, "0.1");
    number_format(-3, text);
    assert_string_equal(text, "-3");
    number_format(1.0 / 3, text);
    assert_string_equal(text, "0.3333333333333333");
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    char text[NUMBER_TEXT_MAX];
    double value = 0;
    size_t i = 0, length;

    (void)state;
    while (i < sizeof(names) / sizeof(names[0]) && !setlocale(LC_ALL, names[i]))
        i++;
    if (i == sizeof(names) / sizeof(names[0])) {
        print_message("# no locale with a decimal comma is installed\n");
        skip();
    }
    length = number_scan("1.5", &value);
    number_format(2.25, text);
    setlocale(LC_ALL, "C");
    assert_int_equal(length, 3);
    assert_true(value == 1.5);
    assert_string_equal(text, "2.25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal_numbers_are_read_to_the_last_bit),
        cmocka_unit_test(what_is_no_finite_decimal_number_is_refused),
        cmocka_unit_test(lists_are_parted_by_commas_blanks_or_as_json),
        cmocka_unit_test(a_list_with_too_few_or_too_many_numbers_is_refused_and_says_how_many),
        cmocka_unit_test(a_long_refused_text_is_quoted_in_part),
        cmocka_unit_test(counts_are_whole_numbers_within_their_range),
        cmocka_unit_test(every_double_survives_being_written_and_read),
        cmocka_unit_test(numbers_are_written_as_short_as_they_can_be),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
