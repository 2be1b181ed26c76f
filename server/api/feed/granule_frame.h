/*
 * Frames of granules on a patch's stream (proto/feed.md): those that moved, in 16 bytes each.
 */
#ifndef KOTA_API_GRANULE_FRAME_H
#define KOTA_API_GRANULE_FRAME_H

#include "sand/sand.h"

enum {
    GRANULE_FRAME_VERSION = 1,
    GRANULE_FRAME_HEAD_BYTES = 48,
    GRANULE_FRAME_RECORD_BYTES = 16,
    GRANULE_FRAME_RECORDS_MAX = 4096,
    GRANULE_FRAME_BYTES_MAX =
        GRANULE_FRAME_HEAD_BYTES + GRANULE_FRAME_RECORDS_MAX * GRANULE_FRAME_RECORD_BYTES,
};

/* How far a reader is: some numbers, however slow it is. Zeros: it has nothing. */
struct granule_reader {
    uint64_t since;    /* it has all that moved up to this step */
    uint64_t step;     /* of the value whose granules are being sent, where next > 0 */
    uint32_t next;     /* the first granule that it has not been sent of that; 0: none is begun */
    double begun_at_s; /* sending that value */
};

/*
 * The next frame for the reader: granules that have moved since it was sent them, at most
 * GRANULE_FRAME_RECORDS_MAX; the others come in further frames. Returns bytes, 0: nothing moved.
 * Cost O(granules of the patch).
 */
size_t granule_frame_next(struct granule_reader *reader, const struct granule_set *set,
                          uint8_t out[static GRANULE_FRAME_BYTES_MAX]);

#endif
