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

/* What one question took in the rounds of a race, in seconds. */
struct bench_time {
    double median_s;
    double least_s; /* nearest to what it takes while nobody else uses the processor */
};

/* ways <= 8, rounds <= 64. */
struct bench_race {
    unsigned ways, rounds;
    unsigned warm;    /* how often each is asked before it is timed, in every round */
    size_t questions; /* of one call */
    /* All questions, by one of the ways; one that is absent does nothing. */
    void (*ask)(void *context, unsigned way);
    void *context;
};

/* Asks in turns, each round begun by another way; times[ways], by processor time of this thread. */
void bench_in_turns(const struct bench_race *race, struct bench_time *times);

#endif
