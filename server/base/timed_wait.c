/*
 * Monotonic time-outs of conditions: see timed_wait.h.
 *
 * Problem: a condition waits by CLOCK_REALTIME by default, so that a step of the wall clock (NTP,
 * an operator, a machine that was suspended) lengthens or cuts each wait under way. A writer that
 * waited a quarter of a second then waited an hour. Approach: one function makes the condition, one
 * the deadline, and both mean the same clock.
 */
#include "base/timed_wait.h"

#include "base/check.h"

#define NS_A_SECOND 1000000000L

void timed_wait_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(condition, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

struct timespec timed_wait_until(double seconds)
{
    struct timespec until;
    time_t whole = (time_t)seconds;

    CHECK(seconds >= 0 && seconds <= 1e9);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += whole;
    until.tv_nsec += (long)((seconds - (double)whole) * 1e9);
    if (until.tv_nsec >= NS_A_SECOND) {
        until.tv_sec++;
        until.tv_nsec -= NS_A_SECOND;
    }
    return until;
}
