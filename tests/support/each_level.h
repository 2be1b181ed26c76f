/*
 * The same tests for each level of vector instructions (terrain/kernels/simd.h). After cmocka.h.
 */
#ifndef KOTA_TESTS_EACH_LEVEL_H
#define KOTA_TESTS_EACH_LEVEL_H

#include "terrain/kernels/simd.h"

#include <stdio.h>

static inline int select_level(void **state)
{
    const enum simd_level *level = *state;

    return simd_select(*level) ? 0 : -1;
}

/* All tests once for each level that this machine has. */
static inline int run_at_every_level(const char *group, const struct CMUnitTest *tests,
                                     size_t count)
{
    static enum simd_level levels[SIMD_LEVELS];
    static struct CMUnitTest all[SIMD_LEVELS * 16];
    static char names[SIMD_LEVELS * 16][128];
    size_t n = 0;

    for (int level = 0; level <= (int)simd_best(); level++) {
        levels[level] = (enum simd_level)level;
        for (size_t i = 0; i < count; i++, n++) {
            snprintf(names[n], sizeof names[n], "%s_%s", tests[i].name,
                     simd_level_name(levels[level]));
            all[n] = tests[i];
            all[n].name = names[n];
            all[n].setup_func = select_level;
            all[n].initial_state = &levels[level];
        }
    }
    return _cmocka_run_group_tests(group, all, n, NULL, NULL);
}

#endif
