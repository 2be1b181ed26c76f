/*
 * Fuzzes the decoder of raw float32; see fuzz_raster.h for the first three bytes.
 */
#include "tests/fuzz/fuzz_raster.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 3)
        fuzz_raster_decode(RASTER_F32, bytes[0], bytes[1], bytes[2], bytes + 3, size - 3);
    return 0;
}
