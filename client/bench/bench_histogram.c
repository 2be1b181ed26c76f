/*
 * A histogram for latencies from nanoseconds to minutes.
 *
 * Problem: millions of times, of which the last thousandth matters, and no memory or sorting while
 * they are taken. Equal buckets are too wide below or too many above.
 * Approach: the position of the highest bit and the six bits below it name the bucket, so each is
 * at most 1/64 of its times wide; times below 64 ns have one bucket each. A quantile is the upper
 * end of its bucket: never below the true value.
 *
 * Source: G. Tene, HdrHistogram, 2012, for the layout.
 */
#include "client/bench/bench_histogram.h"

#include <math.h>
#include <stddef.h>

static size_t bucket_of(uint64_t ns)
{
    int high;

    if (ns >> BENCH_SUB_BITS == 0)
        return (size_t)ns;
    high = 63 - __builtin_clzll(ns);
    return ((size_t)(high - BENCH_SUB_BITS + 1) << BENCH_SUB_BITS) +
           (size_t)(ns >> (high - BENCH_SUB_BITS) & ((1u << BENCH_SUB_BITS) - 1));
}

/* The greatest time of a bucket. */
static uint64_t upper_end(size_t bucket)
{
    size_t group = bucket >> BENCH_SUB_BITS;
    uint64_t sub = bucket & ((1u << BENCH_SUB_BITS) - 1);

    if (group == 0)
        return sub;
    return (((1u << BENCH_SUB_BITS) + sub + 1) << (group - 1)) - 1;
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns)
{
    histogram->buckets[bucket_of(ns)]++;
    histogram->count++;
    histogram->sum_ns += ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double q)
{
    double wanted = ceil(q * (double)histogram->count);
    uint64_t seen = 0;

    if (histogram->count == 0)
        return 0;
    for (size_t i = 0; i < BENCH_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            return upper_end(i) < histogram->max_ns ? upper_end(i) : histogram->max_ns;
    }
    return histogram->max_ns;
}
