/*
 * KOTA_SIMD=scalar|avx2 for test programs and benchmarks, as the daemon reads it: all of
 * them run at that level. One that this machine does not have ends the program, which otherwise
 * would test another one.
 */
#include "terrain/kernels/simd.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void simd_from_environment(void)
{
    const char *name = getenv("KOTA_SIMD");
    struct err err;

    if (name == NULL || *name == '\0')
        return;
    if (simd_select_name(name, &err)) {
        fprintf(stderr, "KOTA_SIMD: %s\n", err.msg);
        exit(2);
    }
}
