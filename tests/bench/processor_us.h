/* Of the programs that bench_library.py compiles by themselves. */
#ifndef KOTA_PROCESSOR_US_H
#define KOTA_PROCESSOR_US_H

#include <sys/resource.h>

/* Microseconds of processor time of this process, user and system. */
static inline double processor_us(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return 1e6 * (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

#endif
