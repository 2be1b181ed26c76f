/*
 * Choosing vector instructions at run time.
 *
 * Problem: one program for all machines of a kind, which uses the instructions of each. Approach:
 * the kernels that gain from wide vectors are compiled for AVX2, by a line in the Makefile; a query
 * reads the table of the level in use, one relaxed load (kernels.h). cpuid is read once. SSE2 and
 * NEON need no level: every processor of the kind has them, and they are in the scalar one.
 *
 * The level AVX2 is AVX2, FMA, BMI1 and BMI2, which come together.
 *
 * Tried and dropped: forms for AVX-512, 1,700 lines. On a Zen 4 batches of rays took 1.5 times as
 * long as with AVX2, on a Zen 5 1.1 to 1.4 times; docs/internals/heightfields.md has more. And
 * ray_stream.c compiled for AVX-512 with its four lanes: 1.02 of AVX2.
 */
#include "terrain/kernels/simd.h"

#include "terrain/kernels/kernels.h"

#include <string.h>

static const char *const names[SIMD_LEVELS] = {"scalar", "avx2"};

static const struct kernels tables[SIMD_LEVELS] = {
    {.level = SIMD_SCALAR,
     .height = height_scalar,
     .heights = heights_scalar,
     .heights_f32 = heights_f32_scalar,
     .ray = ray_exact,
     .rays = rays_exact,
     .mesh_column = mesh_column_scalar,
     .mesh_floor = mesh_floor_scalar,
     .mesh_heights = mesh_heights_scalar,
     .mesh_shadows = mesh_shadows_scalar,
     .tree_ray = tree_ray_scalar,
     .tree_sweep = tree_sweep_scalar,
     .tree_rays = tree_rays_scalar,
     .mesh_lane_test = mesh_lane_test_scalar},
#if defined(__x86_64__)
    {.level = SIMD_AVX2,
     .height = height_avx2,
     .heights = heights_avx2,
     .heights_f32 = heights_f32_avx2,
     .ray = ray_single_avx2,
     .rays = ray_stream_avx2,
     .mesh_column = mesh_column_avx2,
     .mesh_floor = mesh_floor_avx2,
     .mesh_heights = mesh_heights_avx2,
     .mesh_shadows = mesh_shadows_avx2,
     .tree_ray = tree_ray_avx2,
     .tree_sweep = tree_sweep_avx2,
     .tree_rays = tree_rays_avx2,
     .mesh_lane_test = mesh_lane_test_avx2,
     .mesh_walk_begin = mesh_walk_begin_avx2,
     .mesh_ray = mesh_ray_avx2},
#endif
};

_Atomic(const struct kernels *) kernels_chosen;

#if defined(__x86_64__)
enum simd_level simd_best(void)
{
    __builtin_cpu_init();
    bool has_all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");

    return has_all ? SIMD_AVX2 : SIMD_SCALAR;
}
#else
enum simd_level simd_best(void)
{
    return SIMD_SCALAR;
}
#endif

const struct kernels *kernels_choose(void)
{
    const struct kernels *none = NULL, *best = &tables[simd_best()];

    /* one that was selected meanwhile stays */
    return atomic_compare_exchange_strong(&kernels_chosen, &none, best) ? best : none;
}

enum simd_level simd_level(void)
{
    return kernels()->level;
}

bool simd_select(enum simd_level level)
{
    if (level > simd_best())
        return false;
    atomic_store_explicit(&kernels_chosen, &tables[level], memory_order_relaxed);
    return true;
}

const char *simd_level_name(enum simd_level level)
{
    return names[level];
}

enum err_code simd_select_name(const char *name, struct err *err)
{
    for (int i = 0; i < SIMD_LEVELS; i++)
        if (strcmp(name, names[i]) == 0) {
            if (simd_select((enum simd_level)i))
                return ERR_OK;
            return err_set(err, ERR_BAD_INPUT, "simd: this machine has no %s, its best is %s", name,
                           names[simd_best()]);
        }
    return err_set(err, ERR_BAD_INPUT, "simd: \"%s\" is none of scalar, avx2", name);
}
