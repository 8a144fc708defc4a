/* The clock of all figures: nanoseconds since some moment, never set back. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_A_SECOND 1000000000u
#define NS_A_MS 1000000u
#define NS_A_US 1000u

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

#endif
