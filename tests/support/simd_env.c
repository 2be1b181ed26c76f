/*
 * KOTA_SIMD=scalar|avx2|avx512 for test programs and benchmarks, as the daemon reads it: all of
 * them run at that level. One that this machine does not have ends the program, which otherwise
 * would test another one.
 */
#include "terrain/simd.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void simd_from_environment(void)
{
    const char *name = getenv("KOTA_SIMD");
    enum simd_level level;

    if (name == NULL || *name == '\0')
        return;
    if (!simd_level_of_name(name, &level) || !simd_select(level)) {
        fprintf(stderr, "KOTA_SIMD=%s: none of scalar, avx2, avx512 that this machine has\n", name);
        exit(2);
    }
}
