/*
 * CHECK(): a broken promise between our own functions ends the process, in release builds too.
 * VALIDATE_THAT(): O(n) checks of whole structures, in debug and sanitizer builds only.
 * Bad input is no reason for it; it returns an error (err.h).
 */
#ifndef KOTA_BASE_CHECK_H
#define KOTA_BASE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            fprintf(stderr, "%s:%d: %s: check failed: %s\n", __FILE__, __LINE__, __func__,         \
                    #condition);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#ifdef KOTA_VALIDATE
#define VALIDATE_THAT(condition) CHECK(condition)
#else
#define VALIDATE_THAT(condition) ((void)0)
#endif

#endif
