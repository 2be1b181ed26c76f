/*
 * Times of RFC 3339.
 */
#include "base/clock.h"
#include "base/text/utc_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void times_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t time_ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1969-12-31T23:59:59.5Z", -500},
        {"2000-02-29T12:00:00.1239Z", 951825600123},
        {"2000-02-29T12:00:00+01:30", 951820200000},
        {"2000-02-29T12:00:00.25-23:59", 951911940250},
        {"2016-12-31T23:59:60Z", 1483228800000}, /* a leap second */
    };
    int64_t time_ms;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!utc_read(cases[i].text, &time_ms))
            fail_msg("%s was refused", cases[i].text);
        assert_int_equal(time_ms, cases[i].time_ms);
    }
}

static void what_is_none_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "2026-12-31",
        "2026-12-31T18:00:00",
        "2026-12-31 18:00:00Z",
        "2026-12-31T18:00Z",
        "2026-1-31T18:00:00Z",
        " 026-12-31T18:00:00Z",
        "+026-12-31T18:00:00Z",
        "2026-02-30T18:00:00Z",
        "2026-13-01T18:00:00Z",
        "2026-12-32T18:00:00Z",
        "2026-12-31T24:00:00Z",
        "2026-12-31T18:60:00Z",
        "2026-12-31T18:00:61Z",
        "2026-12-31T18:00:00.Z",
        "2026-12-31T18:00:00.5",
        "2026-12-31T18:00:00ZZ",
        "2026-12-31T18:00:00+1:30",
        "2026-12-31T18:00:00+01:60",
        "2026-12-31T18:00:00+24:00",
        "2026-12-31T18:00:00+0130",
        "2026-12-31T18:00:00+01:30Z",
        "2026-12-31T18:00:00-+1:30",
    };
    int64_t time_ms;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (utc_read(cases[i], &time_ms))
            fail_msg("'%s' was accepted", cases[i]);
}

static void what_utc_text_writes_is_read(void **state)
{
    int64_t time_ms;

    (void)state;
    for (int64_t ms = 0; ms < 4000000000000; ms += 9999999877) {
        char text[UTC_TEXT_BYTES];

        utc_text(ms, text);
        assert_true(utc_read(text, &time_ms));
        assert_int_equal(time_ms, ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(what_utc_text_writes_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
