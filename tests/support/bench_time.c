/*
 * Time in benchmarks: see bench_time.h.
 */
#include "tests/support/bench_time.h"

#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now_s(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double bench_thread_s(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

void bench_in_turns(unsigned ways, unsigned rounds, void (*ask)(void *context, unsigned way),
                    void *context, double *seconds)
{
    enum { WAYS_MAX = 8, ROUNDS_MAX = 64 };
    double times[WAYS_MAX][ROUNDS_MAX];

    if (ways > WAYS_MAX || rounds == 0 || rounds > ROUNDS_MAX)
        abort();
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned turn = 0; turn < ways; turn++) {
            unsigned way = (round + turn) % ways;
            double start;

            ask(context, way);
            start = bench_thread_s();
            ask(context, way);
            times[way][round] = bench_thread_s() - start;
        }
    for (unsigned way = 0; way < ways; way++)
        seconds[way] = bench_median(times[way], rounds);
}
