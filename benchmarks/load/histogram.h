/* Latencies of any number of messages in bounded memory, and their percentiles: a log-linear histogram.
 *
 * A power of two is divided into 128 buckets of one width, so that a bucket is at most 1/128 (0.8 %) as wide as the
 * values in it; below 128 ns each value has its own. This is the layout of Gil Tene's HdrHistogram. A percentile is the
 * upper end of its bucket: never less than the true one, and at most 0.8 % more. The largest value is kept exactly.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#define LINEAR_BITS 7
#define LINEAR (1u << LINEAR_BITS)
#define BUCKETS ((64u - LINEAR_BITS + 1u) * LINEAR)

struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t total;
    uint64_t largest;
};

void note(struct histogram *histogram, uint64_t value_ns);

/* The value below or at which so many of a thousand of all values lie; 0 where there are none. */
uint64_t percentile(const struct histogram *histogram, unsigned per_thousand);

/* As JSON: {"p50": ..., "p90": ..., "p99": ..., "p99.9": ..., "max": ..., "count": ...}, in milliseconds. */
void print_histogram(FILE *file, const struct histogram *histogram);

#endif
