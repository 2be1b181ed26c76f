/*
 * The monotonic clock, in four units; the processor time of a thread; and the time of day.
 */
#ifndef KOTA_BASE_CLOCK_H
#define KOTA_BASE_CLOCK_H

#include <stdint.h>
#include <stdio.h>
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

/* The processor time of the calling thread. A system call: some 0.2 us. */
static inline uint64_t thread_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Milliseconds since 1970. */
static inline int64_t realtime_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Milliseconds since 1970 as RFC 3339 in UTC, like 2026-01-31T12:00:00.123Z. */
enum { UTC_TEXT_BYTES = 40 };
static inline void utc_text(int64_t time_ms, char out[UTC_TEXT_BYTES])
{
    const time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    size_t length;

    gmtime_r(&seconds, &tm);
    length = strftime(out, UTC_TEXT_BYTES - 8, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + length, UTC_TEXT_BYTES - length, ".%03dZ", (int)(time_ms % 1000));
}

#endif
