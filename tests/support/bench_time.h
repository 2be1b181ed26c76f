/*
 * Time in benchmarks: always several rounds, what is compared in turns, and their medians.
 */
#ifndef KOTA_TESTS_BENCH_TIME_H
#define KOTA_TESTS_BENCH_TIME_H

#include <stddef.h>

/* Seconds of a clock that only goes forward. */
double bench_now_s(void);

/* Seconds of processor time that this thread has taken: what others do beside it counts less. */
double bench_thread_s(void);

/* The middle one (of an even count the upper of two); sorts the values. count > 0. */
double bench_median(double *values, size_t count);

/*
 * Asks by several ways in turns, `rounds` times, each twice and the second time timed (processor
 * time of this thread): seconds[way] is the median. ways <= 8, rounds <= 64.
 */
void bench_in_turns(unsigned ways, unsigned rounds, void (*ask)(void *context, unsigned way),
                    void *context, double *seconds);

#endif
