/*
 * Granules, quantised.
 *
 * A frame has the box of its own granules, so that they are within it wherever they fly: a place is
 * a 16-bit number along each of its edges, off by at most half of edge / 65535 (and float32). An
 * orientation is the three components of a unit quaternion that are not its largest, 10 bits each
 * ("smallest three"; G. Fiedler, Snapshot compression, 2015): off by less than 0.3 degrees.
 *
 * A value that has more than fits goes on in the next frame, of the newest value then. What moved
 * meanwhile and was sent already comes again after it: `since` becomes the step of the value that
 * the round began with.
 */
#include "api/feed/granule_frame.h"

#include <math.h>
#include <string.h>

static uint32_t orientation_pack(const float q[4])
{
    uint32_t largest = 0, bits = 0;
    int shift = 0;

    for (uint32_t k = 1; k < 4; k++)
        if (fabsf(q[k]) > fabsf(q[largest]))
            largest = k;
    for (uint32_t k = 0; k < 4; k++) {
        const double part = (double)(q[largest] < 0 ? -q[k] : q[k]) * M_SQRT2; /* -1 to 1 */

        if (k == largest)
            continue;
        bits |= (uint32_t)lrint(fmin(fmax((part + 1) / 2, 0), 1) * 1023) << shift;
        shift += 10;
    }
    return bits | largest << 30;
}

/* The numbers of those to send; moves the reader on. */
static uint32_t choose(struct granule_reader *reader, const struct granule_set *set,
                       uint32_t chosen[GRANULE_FRAME_RECORDS_MAX])
{
    uint32_t count = 0, i = reader->next;

    if (reader->next == 0)
        reader->step = set->step;
    for (; i < set->count && count < GRANULE_FRAME_RECORDS_MAX; i++)
        if (set->granules[i].moved_step > reader->since)
            chosen[count++] = i;
    if (i < set->count) {
        reader->next = i;
    } else {
        reader->next = 0;
        reader->since = reader->step;
    }
    return count;
}

static void write_head(const struct granule_set *set, const uint32_t *chosen, uint32_t count,
                       float box[2][3], uint8_t *out)
{
    const uint32_t numbers[3] = {GRANULE_FRAME_VERSION, set->count, count};

    for (int k = 0; k < 3; k++) {
        float high = box[0][k] = set->granules[chosen[0]].numbers[k];

        for (uint32_t i = 1; i < count; i++) {
            box[0][k] = fminf(box[0][k], set->granules[chosen[i]].numbers[k]);
            high = fmaxf(high, set->granules[chosen[i]].numbers[k]);
        }
        box[1][k] = (high - box[0][k]) / 65535;
    }
    memcpy(out, numbers, sizeof numbers);
    memcpy(out + 12, &set->granules[chosen[0]].numbers[7], sizeof(float));
    memcpy(out + 16, box[0], 2 * sizeof box[0]);
    memcpy(out + 40, &set->step, sizeof set->step);
}

size_t granule_frame_next(struct granule_reader *reader, const struct granule_set *set,
                          uint8_t out[static GRANULE_FRAME_BYTES_MAX])
{
    static _Thread_local uint32_t chosen[GRANULE_FRAME_RECORDS_MAX];
    const uint32_t count = choose(reader, set, chosen);
    uint8_t *at = out + GRANULE_FRAME_HEAD_BYTES;
    float box[2][3]; /* low, and metres a unit */

    if (count == 0)
        return 0;
    write_head(set, chosen, count, box, out);
    for (uint32_t i = 0; i < count; i++, at += GRANULE_FRAME_RECORD_BYTES) {
        const float *numbers = set->granules[chosen[i]].numbers;
        const uint32_t orientation = orientation_pack(numbers + 3);
        uint16_t place[3];

        for (int k = 0; k < 3; k++)
            place[k] = (uint16_t)(box[1][k] > 0
                                      ? lrintf(fminf((numbers[k] - box[0][k]) / box[1][k], 65535))
                                      : 0);
        memcpy(at, &chosen[i], 4);
        memcpy(at + 4, &orientation, 4);
        memcpy(at + 8, place, 6);
        at[14] = (uint8_t)lrintf(numbers[8] * 255);
        at[15] = 0;
    }
    return (size_t)(at - out);
}
