/*
 * The monotonic clock, in four units; and the time of day.
 */
#ifndef KOTA_BASE_CLOCK_H
#define KOTA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t monotonic_us(void)
{
    return monotonic_ns() / 1000;
}

static inline uint64_t monotonic_ms(void)
{
    return monotonic_ns() / 1000000;
}

static inline double monotonic_s(void)
{
    return (double)monotonic_ns() * 1e-9;
}

/* Milliseconds since 1970. */
static inline int64_t realtime_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
