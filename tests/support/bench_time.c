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

void bench_in_turns(const struct bench_race *race, struct bench_time *times)
{
    enum { WAYS_MAX = 8, ROUNDS_MAX = 64 };
    double took_s[WAYS_MAX][ROUNDS_MAX];

    if (race->ways > WAYS_MAX || race->rounds == 0 || race->rounds > ROUNDS_MAX)
        abort();
    for (unsigned round = 0; round < race->rounds; round++)
        for (unsigned turn = 0; turn < race->ways; turn++) {
            unsigned way = (round + turn) % race->ways;
            double start;

            /* what the one before has put out of the cache comes back first */
            for (unsigned i = 0; i < race->warm; i++)
                race->ask(race->context, way);
            start = bench_thread_s();
            race->ask(race->context, way);
            took_s[way][round] = (bench_thread_s() - start) / (double)race->questions;
        }
    for (unsigned way = 0; way < race->ways; way++) {
        times[way].median_s = bench_median(took_s[way], race->rounds);
        times[way].least_s = took_s[way][0]; /* sorted now */
    }
}
