/*
 * Conditions that are waited for at most so long. The time is monotonic: a wall clock that is set
 * back would make pthread_cond_timedwait() wait as much longer.
 */
#ifndef KOTA_BASE_TIMED_WAIT_H
#define KOTA_BASE_TIMED_WAIT_H

#include <pthread.h>
#include <time.h>

/* A condition for waits until timed_wait_until(); cannot fail. */
void timed_wait_init(pthread_cond_t *condition);

/* So many seconds from now, 0 to 1e9, for pthread_cond_timedwait() on such a condition. */
struct timespec timed_wait_until(double seconds);

#endif
