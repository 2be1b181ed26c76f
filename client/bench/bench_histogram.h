/*
 * Times sorted into buckets whose width grows with the time.
 */
#ifndef KOTA_CLIENT_BENCH_HISTOGRAM_H
#define KOTA_CLIENT_BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* 64 buckets for each power of two: a quantile is at most 1/64 too large. */
#define BENCH_SUB_BITS 6
#define BENCH_BUCKETS ((size_t)(64 - BENCH_SUB_BITS + 1) << BENCH_SUB_BITS)

/* Zeroed before first use. */
struct bench_histogram {
    uint64_t count, sum_ns, max_ns;
    uint64_t buckets[BENCH_BUCKETS];
};

/* O(1), no allocation. */
void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns);

/*
 * The least bound that a share q (0..1) of the times does not exceed, up to the width of a bucket;
 * never above max_ns. 0 when there are no times.
 */
uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double q);

#endif
