/*
 * Fuzzes what a copy takes of a daemon: the feed and the answers to its fetches.
 *
 * An input is a list of pieces: a byte, a little-endian u16 length, so many bytes. The low two bits
 * of the byte say what the piece is: 0 bytes of the feed, 1 an answer to the oldest fetch, 2 the
 * same for the newest one, 3 no answer to it; the others are the revision, of which 63 is a 404.
 * Whatever comes, the copy answers questions or has none to ask.
 */
#include "client/ground/kota-ground.h"

#include "base/check.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_MAX = 64, GONE = 63 };

struct needs {
    uint32_t feed, others[NEEDS_MAX];
    size_t count;
};

static void ask_next(struct kota_ground_copy *copy, struct needs *needs)
{
    struct kota_ground_need need;

    while (needs->count < NEEDS_MAX && kota_ground_next(copy, &need))
        if (need.kind == KOTA_GROUND_NEED_FEED)
            needs->feed = need.number;
        else
            needs->others[needs->count++] = need.number;
}

/* The bytes in a block of their own, so that one read beyond them is found. */
static void give(struct kota_ground_copy *copy, uint32_t number, unsigned mark, const void *bytes,
                 size_t length)
{
    void *body = malloc(length > 0 ? length : 1);
    const struct kota_ground_answer answer = {.body = body,
                                              .length = length,
                                              .etag = "\"0123456789abcdef0123456789abcdef-f32\"",
                                              .revision = mark,
                                              .status = mark == GONE ? 404 : 200};

    CHECK(body);
    memcpy(body, bytes, length);
    kota_ground_give(copy, number, &answer, NULL);
    free(body);
}

static void take(struct kota_ground_copy *copy, struct needs *needs, unsigned head,
                 const uint8_t *bytes, size_t length)
{
    size_t at = (head & 3) == 1 ? 0 : needs->count - 1;
    uint32_t number;

    if ((head & 3) == 0) {
        kota_ground_feed(copy, needs->feed, (const char *)bytes, length, NULL);
        return;
    }
    if (needs->count == 0)
        return;
    number = needs->others[at];
    memmove(needs->others + at, needs->others + at + 1,
            (needs->count - at - 1) * sizeof *needs->others);
    needs->count--;
    if ((head & 3) == 3)
        kota_ground_give_up(copy, number);
    else
        give(copy, number, head >> 2, bytes, length);
}

static void question(struct kota_ground_reader *reader)
{
    const struct kota_ground_locale *locale =
        kota_ground_locale(kota_ground_newest(reader), "land");
    const struct kota_ground_ray ray = {{1, 1, 50}, {0.1, 0.2, -1}, INFINITY};
    const double point[3] = {1.5, 1.5, 9};
    struct kota_ground_contact contact;
    struct kota_ground_hit hit;

    if (!locale)
        return;
    kota_ground_height(locale, 1.5, 2);
    kota_ground_rays(locale, NULL, false, &ray, 1, &hit, NULL);
    kota_ground_contacts(locale, NULL, NULL, point, 1, &contact, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const double bounds[4] = {0.5, 0.5, 2.5, 2.5};
    struct kota_ground_copy *copy = kota_ground_open();
    struct kota_ground_reader *reader = copy ? kota_ground_reader_open(copy) : NULL;
    struct needs needs = {0};

    CHECK(reader && kota_ground_follow(copy, "land", size % 2 ? bounds : NULL, NULL));
    while (size >= 3) {
        size_t length = bytes[1] | (size_t)bytes[2] << 8;

        length = length < size - 3 ? length : size - 3;
        ask_next(copy, &needs);
        take(copy, &needs, bytes[0], bytes + 3, length);
        kota_ground_publish(copy, NULL);
        question(reader);
        bytes += 3 + length;
        size -= 3 + length;
    }
    kota_ground_reader_close(reader);
    kota_ground_close(copy);
    return 0;
}
