/*
 * Fuzzes the reader of places: pairs and encoded polylines. What it reads is on the Earth, and
 * there is never more of it than places_max has said.
 */
#include "base/check.h"
#include "formats/polyline.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct err err = {.code = ERR_OK};
    size_t most = places_max((const char *)bytes, size), count = 0;
    struct geo_place *places = malloc(most * sizeof *places);

    CHECK(places && most >= 1 && most <= size + 1);
    if (places_read((const char *)bytes, size, places, &count, &err) == ERR_OK) {
        CHECK(count == most);
        for (size_t i = 0; i < count; i++)
            CHECK(fabs(places[i].lat) <= 90 && fabs(places[i].lng) <= 180);
    } else {
        CHECK(err.code == ERR_BAD_INPUT && err.msg[0] != '\0' && count <= most);
    }
    free(places);
    return 0;
}
