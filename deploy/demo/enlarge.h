/* A DEM made larger, for benchmarks: as smooth as it was, and as rough as its surroundings. */
#ifndef KOTA_DEMO_ENLARGE_H
#define KOTA_DEMO_ENLARGE_H

#include "deploy/demo/grid.h"

/*
 * Rows first <= row < end of a side × side version of `from`, corner sample on corner sample, into
 * out[end - first][side]: bicubic, plus fBm whose amplitude follows the relief between neighbouring
 * source samples and whose longest wave is one of their spacings. What is NaN stays NaN.
 *
 * side >= 2. Pure: any rows on any thread, the same bits. Allocates nothing.
 */
void enlarge_rows(const struct grid *from, uint32_t side, uint32_t seed, uint32_t first,
                  uint32_t end, float *out);

/*
 * Reads IN (PNG: the codes, HGT, ASC), writes SIDE² little-endian float32 to OUT, row 0 at the
 * smallest y for HGT and ASC. Memory: the source and 256 rows.
 * ERR_BAD_INPUT, ERR_NOT_FOUND, ERR_INTERNAL (the system's reason).
 */
enum err_code enlarge_file(const char *in, const char *out, uint32_t side, uint32_t seed,
                           uint32_t threads, struct err *err);

#endif
