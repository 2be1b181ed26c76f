/*
 * Fuzzes the headers that choose the form of an answer, and the layouts of samples. Byte 0: 0 a
 * list like Accept-Encoding, else samples in rows of so many. Samples come back from each layout,
 * and any bytes are samples.
 */
#include "api/answer/coding.h"
#include "api/answer/header_list.h"
#include "base/check.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void read_list(struct span header)
{
    enum content_coding best = CODING_GZIP, other = CODING_GZIP;
    bool is_any = coding_accepted(header, true, &best);

    CHECK(coding_accepted(header, false, &other) == is_any);
    CHECK(is_any || (best == CODING_IDENTITY && other == CODING_IDENTITY));
    CHECK(other == CODING_IDENTITY || other == best); /* refused identity: the same coding */
    while (header.length > 0) {
        size_t before = header.length;
        struct span rest = header_part(&header, ','), version;
        int q;

        CHECK(header.length < before && rest.length <= before);
        header_part(&rest, ';');
        version = header_parameter(rest, "version");
        q = header_weight(rest);
        CHECK(q >= -1 && q <= 1000);
        CHECK(!version.at || version.length <= rest.length);
    }
}

static void lay_out(const uint8_t *bytes, size_t cols, size_t rows)
{
    size_t length = 4 * cols * rows;
    uint8_t *to = malloc(length), *back = malloc(length);

    CHECK(to && back);
    for (enum float_layout layout = LAYOUT_BYTES; layout <= LAYOUT_DELTA; layout++) {
        float_layout_write(layout, bytes, cols, rows, to);
        float_layout_read(layout, to, cols, rows, back);
        CHECK(memcmp(bytes, back, length) == 0);
        float_layout_read(layout, bytes, cols, rows, back);
        float_layout_write(layout, back, cols, rows, to);
        CHECK(memcmp(bytes, to, length) == 0);
    }
    free(to);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t cols = size ? bytes[0] : 0, rows = cols ? (size - 1) / (4 * cols) : 0;
    char *text;

    if (size < 2)
        return 0;
    text = malloc(size - 1);
    CHECK(text);
    memcpy(text, bytes + 1, size - 1);
    if (cols == 0)
        read_list((struct span){text, size - 1});
    else if (rows > 0)
        lay_out((const uint8_t *)text, cols, rows);
    free(text);
    return 0;
}
