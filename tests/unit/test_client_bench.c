/*
 * Parts of `kota bench` by themselves: the histogram against sorted times, the requests that are
 * made ahead.
 */
#include "client/bench/bench_histogram.h"
#include "client/bench/bench_shots.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIMES 20000
#define SEED 2012

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void quantiles_are_those_of_the_sorted_times(void **state)
{
    static const double shares[] = {0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
    static uint64_t times[TIMES];
    struct bench_histogram *histogram = calloc(1, sizeof *histogram);
    struct random random = {SEED};

    (void)state;
    print_message("seed %d\n", SEED);
    for (size_t i = 0; i < TIMES; i++) {
        times[i] = random_bits(&random) >> (20 + random_below(&random, 44));
        bench_histogram_add(histogram, times[i]);
    }
    qsort(times, TIMES, sizeof *times, order);
    assert_int_equal(histogram->count, TIMES);
    assert_int_equal(histogram->max_ns, times[TIMES - 1]);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double rank = ceil(shares[i] * TIMES);
        uint64_t want = times[rank >= 1 ? (size_t)rank - 1 : 0];
        uint64_t got = bench_histogram_quantile(histogram, shares[i]);

        if (got < want || got > want + want / 64)
            fail_msg("share %g: %llu instead of %llu", shares[i], (unsigned long long)got,
                     (unsigned long long)want);
    }
    free(histogram);
}

static void extreme_times_have_a_place(void **state)
{
    struct bench_histogram *histogram = calloc(1, sizeof *histogram);

    (void)state;
    assert_int_equal(bench_histogram_quantile(histogram, 0.5), 0);
    bench_histogram_add(histogram, UINT64_MAX);
    assert_true(bench_histogram_quantile(histogram, 0.5) == UINT64_MAX);
    bench_histogram_add(histogram, 0);
    assert_int_equal(bench_histogram_quantile(histogram, 0.5), 0);
    free(histogram);
}

static void any_run_of_requests_is_one_piece(void **state)
{
    static const struct bench_text targets[] = {{"/a", 2}, {"/bb?x=1", 7}, {"/c", 2}};
    static const struct bench_text bodies[] = {{"one", 3}, {"", 0}};
    const struct bench_words words = {.targets = targets,
                                      .target_count = 3,
                                      .bodies = bodies,
                                      .body_count = 2,
                                      .host = "h:1",
                                      .prefix = "/p",
                                      .authorization = "Authorization: Bearer t",
                                      .media_type = "text/x"};
    static const char want[] = "POST /p/bb?x=1 HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer t\r\n"
                               "Content-Type: text/x\r\nContent-Length: 0\r\n\r\n"
                               "POST /p/c HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer t\r\n"
                               "Content-Type: text/x\r\nContent-Length: 3\r\n\r\none"
                               "POST /p/a HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer t\r\n"
                               "Content-Type: text/x\r\nContent-Length: 3\r\n\r\none";
    struct bench_shots shots;
    struct err err;

    (void)state;
    assert_int_equal(bench_shots_make(&shots, &words, 3, &err), ERR_OK);
    assert_int_equal(shots.count, 3);
    assert_int_equal(shots.starts[4] - shots.starts[1], sizeof want - 1);
    assert_memory_equal(shots.bytes + shots.starts[1], want, sizeof want - 1);
    bench_shots_free(&shots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_sorted_times),
        cmocka_unit_test(extreme_times_have_a_place),
        cmocka_unit_test(any_run_of_requests_is_one_piece),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
