/*
 * The priority of threads that compute for long: pool workers, and the sand thread with those that
 * it starts.
 *
 * A service, a container and a session are scheduled as a group, so that others gain nothing by
 * it; where there are no groups, other programs that take all cores leave such a thread half of
 * what each of them takes. At 10 they would leave a tenth.
 */
#ifndef KOTA_BASE_BACKGROUND_H
#define KOTA_BASE_BACKGROUND_H

#include <sys/resource.h>
#include <unistd.h>

#define BACKGROUND_NICER 3

/* Takes the calling thread behind the process's first one. Threads inherit it; twice is as once. */
static inline void background_enter(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(),
                      getpriority(PRIO_PROCESS, (id_t)getpid()) +
                          BACKGROUND_NICER); /* all works without, too */
}

#endif
