#include "histogram.h"

#include <inttypes.h>

#include "clock.h"

#define ALL_PER_THOUSAND 1000u

static const struct {
    const char *name;
    unsigned per_thousand;
} told[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99.9", 999}};

static unsigned bucket_of(uint64_t value)
{
    if (value < LINEAR)
        return (unsigned)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    unsigned shift = exponent - LINEAR_BITS;
    return (shift + 1u) * LINEAR + (unsigned)((value >> shift) - LINEAR);
}

static uint64_t upper_end_of(unsigned bucket)
{
    if (bucket < LINEAR)
        return bucket;
    unsigned shift = bucket / LINEAR - 1u;
    uint64_t lower = (uint64_t)(LINEAR + bucket % LINEAR) << shift;
    return lower + ((UINT64_C(1) << shift) - 1u);
}

void note(struct histogram *histogram, uint64_t value_ns)
{
    histogram->counts[bucket_of(value_ns)]++;
    histogram->total++;
    if (value_ns > histogram->largest)
        histogram->largest = value_ns;
}

uint64_t percentile(const struct histogram *histogram, unsigned per_thousand)
{
    /* Rounded up: the 99th percentile of 50 values is the 50th, as 49 of them are not yet 99 %. */
    uint64_t wanted = histogram->total / ALL_PER_THOUSAND * per_thousand
                      + (histogram->total % ALL_PER_THOUSAND * per_thousand + ALL_PER_THOUSAND - 1u) / ALL_PER_THOUSAND;
    uint64_t passed = 0;
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        passed += histogram->counts[bucket];
        if (passed >= wanted && passed > 0) {
            uint64_t end = upper_end_of(bucket);
            return end < histogram->largest ? end : histogram->largest;
        }
    }
    return histogram->largest;
}

void print_histogram(FILE *file, const struct histogram *histogram)
{
    fputc('{', file);
    for (size_t place = 0; place < sizeof told / sizeof told[0]; place++)
        fprintf(file, "\"%s\": %.6f, ", told[place].name,
                (double)percentile(histogram, told[place].per_thousand) / NS_A_MS);
    fprintf(file, "\"max\": %.6f, \"count\": %" PRIu64 "}", (double)histogram->largest / NS_A_MS, histogram->total);
}
