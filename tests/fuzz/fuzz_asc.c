/*
 * Fuzzes the decoder of ESRI ASCII grids; see fuzz_raster.h for the first byte.
 */
#include "tests/fuzz/fuzz_raster.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 1)
        fuzz_raster_decode(RASTER_ASC, bytes[0], 0, 0, bytes + 1, size - 1);
    return 0;
}
