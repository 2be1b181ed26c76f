/*
 * Which vector instructions the work on terrain uses: one level for the process, chosen once. All
 * levels give the same answers, bit for bit.
 */
#ifndef KOTA_TERRAIN_SIMD_H
#define KOTA_TERRAIN_SIMD_H

#include <stdbool.h>

enum simd_level { SIMD_SCALAR, SIMD_AVX2, SIMD_AVX512 };

enum { SIMD_LEVELS = 3 };

/* The best level that this machine has. O(1). */
enum simd_level simd_best(void);

/* The level in use: the best one unless another was selected. */
enum simd_level simd_level(void);

/*
 * Selects a level; false when the machine does not have it. For the start of a program and for
 * tests: a query that runs meanwhile may be answered by either level.
 */
bool simd_select(enum simd_level level);

/* "scalar", "avx2", "avx512". */
const char *simd_level_name(enum simd_level level);

/* The level of such a name; false when there is none. */
bool simd_level_of_name(const char *name, enum simd_level *out);

#endif
