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

#endif
