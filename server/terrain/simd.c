/*
 * Choosing vector instructions at run time.
 *
 * Problem: one program for all machines of a kind, which uses what each has. Approach: what gains
 * from wide vectors exists once a level, in files of its own (ray_avx2.c, ray_avx512.c), compiled
 * for it by a target pragma; a query asks simd_level, one relaxed load, and branches. cpuid is
 * asked once. What every processor of a kind has needs no level: SSE2 and NEON are in the scalar
 * one.
 *
 * AVX-512 stands for F, BW, DQ and VL, which every processor with AVX2 and the three others has.
 */
#include "terrain/simd.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[SIMD_LEVELS] = {"scalar", "avx2", "avx512"};

static atomic_int selected = -1;

#if defined(__x86_64__)
enum simd_level simd_best(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
        return SIMD_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return SIMD_AVX512;
    return SIMD_AVX2;
}
#else
enum simd_level simd_best(void)
{
    return SIMD_SCALAR;
}
#endif

enum simd_level simd_level(void)
{
    int level = atomic_load_explicit(&selected, memory_order_relaxed);

    if (level < 0) {
        level = (int)simd_best();
        atomic_store_explicit(&selected, level, memory_order_relaxed);
    }
    return (enum simd_level)level;
}

bool simd_select(enum simd_level level)
{
    if (level > simd_best())
        return false;
    atomic_store_explicit(&selected, (int)level, memory_order_relaxed);
    return true;
}

const char *simd_level_name(enum simd_level level)
{
    return names[level];
}

bool simd_level_of_name(const char *name, enum simd_level *out)
{
    for (int i = 0; i < SIMD_LEVELS; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum simd_level)i;
            return true;
        }
    return false;
}
