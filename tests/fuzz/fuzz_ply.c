/*
 * Fuzzes the reader of PLY: fuzz_polygons.h says what an input is.
 */
#include "tests/fuzz/fuzz_polygons.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_polygons(POLYGON_PLY, bytes, size);
}
