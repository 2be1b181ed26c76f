/*
 * A pause, for what can only be asked again and again. Never the proof that something has happened:
 * what a test waits for it asks for, up to a bound.
 */
#ifndef KOTA_TESTS_PAUSE_H
#define KOTA_TESTS_PAUSE_H

#include <time.h>

static inline void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

#endif
