/*
 * Ground for benchmarks: the Puget Sound map of the shared test data, or noise drawn by the seed
 * KOTA_BENCH_SEED, enlarged by the generator of kota-worldgen.
 */
#ifndef KOTA_TESTS_BENCH_MAP_H
#define KOTA_TESTS_BENCH_MAP_H

#include "terrain/field/heightfield.h"
#include "tests/bench/field_peers.h"

/*
 * side × side samples over 164 km; heights_m is malloc'ed and stays the caller's. False, and a line
 * on standard error, when the test data is absent. O(side²): some seconds at 4096².
 */
bool bench_map(uint32_t side, struct field_map *map);

/* The same as a heightfield; ends the program when there is no memory. */
struct heightfield *bench_map_field(const struct field_map *map);

#endif
