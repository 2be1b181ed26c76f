/*
 * Which vector instructions the work on terrain uses: one level for the process, chosen once by
 * CPUID. All levels give the same answers, bit for bit.
 */
#ifndef KOTA_TERRAIN_SIMD_H
#define KOTA_TERRAIN_SIMD_H

#include "base/err.h"

#include <stdbool.h>

enum simd_level { SIMD_SCALAR, SIMD_AVX2 };

enum { SIMD_LEVELS = 2 };

/* The best level that this machine has. O(1). */
enum simd_level simd_best(void);

/* The level in use: the best one unless another was selected. */
enum simd_level simd_level(void);

/*
 * Selects a level; false when the machine does not have it. For the start of a program and for
 * tests: a query that runs meanwhile may be answered by either level.
 */
bool simd_select(enum simd_level level);

/*
 * Selects the level of a name, "scalar" or "avx2". ERR_BAD_INPUT: there is none of that name, or
 * the machine does not have it.
 */
enum err_code simd_select_name(const char *name, struct err *err);

/* "scalar", "avx2". */
const char *simd_level_name(enum simd_level level);

#endif
