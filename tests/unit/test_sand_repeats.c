/*
 * Orders under an Idempotency-Key: the first answer, for the same request alone, and how many are
 * known.
 */
#include "sand/patch/repeats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct order_key key_of(const char *name, uint8_t request)
{
    struct order_key key = {.request = {request}};

    snprintf(key.key, sizeof key.key, "%s", name);
    return key;
}

static struct order_key numbered(unsigned number)
{
    char name[16];

    snprintf(name, sizeof name, "key-%u", number);
    return key_of(name, 1);
}

/* Keeps a report of that number; the reference is the table's then. */
static void keep(struct repeats *repeats, struct order_key key, uint64_t number)
{
    struct patch_report *report = calloc(1, sizeof *report);

    assert_non_null(report);
    report->refs = 1;
    report->number = number;
    repeats_keep(repeats, &key, report);
    patch_report_unref(report);
}

/* The number of the answer; 0: the key is new. */
static uint64_t number_of(struct repeats *repeats, struct order_key key)
{
    struct err err;
    struct patch_report *report = repeats_find(repeats, &key, &err);
    uint64_t number = report ? report->number : 0;

    assert_int_equal(err.code, ERR_OK);
    patch_report_unref(report);
    return number;
}

static void a_key_has_its_first_answer_for_the_same_request(void **state)
{
    struct repeats *repeats = repeats_create();
    struct order_key other = key_of("a", 2), none = key_of("", 1);
    struct err err;

    (void)state;
    assert_non_null(repeats);
    assert_int_equal(number_of(repeats, key_of("a", 1)), 0);
    keep(repeats, key_of("a", 1), 5);
    keep(repeats, key_of("b", 1), 6);
    assert_int_equal(number_of(repeats, key_of("a", 1)), 5);
    assert_int_equal(number_of(repeats, key_of("b", 1)), 6);
    assert_null(repeats_find(repeats, &other, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    keep(repeats, none, 7);
    assert_int_equal(number_of(repeats, none), 0);
    repeats_destroy(repeats);
}

static void the_last_ones_are_known(void **state)
{
    struct repeats *repeats = repeats_create();

    (void)state;
    assert_non_null(repeats);
    for (unsigned i = 1; i <= REPEATS_MAX; i++)
        keep(repeats, numbered(i), i);
    for (unsigned i = 1; i <= REPEATS_MAX; i++)
        assert_int_equal(number_of(repeats, numbered(i)), i);
    keep(repeats, numbered(REPEATS_MAX + 1), REPEATS_MAX + 1);
    assert_int_equal(number_of(repeats, numbered(1)), 0);
    assert_int_equal(number_of(repeats, numbered(2)), 2);
    assert_int_equal(number_of(repeats, numbered(REPEATS_MAX + 1)), REPEATS_MAX + 1);
    repeats_destroy(repeats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_its_first_answer_for_the_same_request),
        cmocka_unit_test(the_last_ones_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
