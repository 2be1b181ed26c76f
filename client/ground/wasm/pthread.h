/*
 * The pthread.h of a program with one thread: wasi-libc has none. What the ground uses of
 * it: locks are free, work that is to be done once is, and no thread can be made.
 */
#ifndef KOTA_WASM_PTHREAD_H
#define KOTA_WASM_PTHREAD_H

#include <errno.h>

#define pthread_t int
#define pthread_mutex_t int
#define pthread_once_t int

#define PTHREAD_MUTEX_INITIALIZER 0
#define PTHREAD_ONCE_INIT 0

static inline int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
{
    (void)attributes;
    return *mutex = 0;
}

static inline int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_once(pthread_once_t *once, void (*work)(void))
{
    if (*once == 0)
        work();
    *once = 1;
    return 0;
}

static inline int pthread_create(pthread_t *thread, const void *attributes, void *(*work)(void *),
                                 void *context)
{
    (void)thread, (void)attributes, (void)work, (void)context;
    return EAGAIN;
}

static inline int pthread_join(pthread_t thread, void **result)
{
    (void)thread, (void)result;
    return EINVAL;
}

#endif
