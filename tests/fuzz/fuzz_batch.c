/*
 * Fuzzes batches in JSON: byte 0 chooses the shape, the rest is the body. What is read from the
 * tape must be what the strict checker, cJSON and the getters make of it: verdict, error
 * with its pointer, numbers bit by bit, and the options around them.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_batch_check.h"
#include "api/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct api api;
    bool is_plain;

    if (size == 0)
        return 0;
    api_limits_init(&api.limits);
    api.limits.items_max = 20; /* small, so that it is met */
    json_batch_check(&api, json_batch_shapes[bytes[0] % JSON_BATCH_SHAPES],
                     (struct span){(const char *)bytes + 1, size - 1}, &is_plain);
    return 0;
}
