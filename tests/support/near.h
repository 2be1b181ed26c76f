/*
 * assert_near: two doubles within an absolute slack, both printed when not. (cmocka 1.1.5 compares
 * floats only.) Include cmocka.h before.
 */
#ifndef KOTA_TESTS_NEAR_H
#define KOTA_TESTS_NEAR_H

#include <math.h>

#define assert_near(got, want, slack)                                                              \
    do {                                                                                           \
        double near_got = (got), near_want = (want);                                               \
                                                                                                   \
        if (!(fabs(near_got - near_want) <= (slack)))                                              \
            fail_msg("%s is %.17g, expected %.17g", #got, near_got, near_want);                    \
    } while (0)

#endif
