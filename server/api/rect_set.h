/*
 * Rectangles of samples, together: which samples may have changed.
 */
#ifndef KOTA_API_RECT_SET_H
#define KOTA_API_RECT_SET_H

#include "terrain/field/edit.h"

enum {
    RECT_SET_MAX = 1000,              /* rectangles of a finished set */
    RECT_SET_ROOM = 2 * RECT_SET_MAX, /* with more they are united */
};

/*
 * Holds every sample that was added, and while at most RECT_SET_MAX rectangles are needed no other.
 * No rectangle lies inside another one.
 */
struct rect_set {
    struct sample_rect rects[RECT_SET_ROOM];
    size_t count;
};

/* O(count). */
void rect_set_add(struct rect_set *set, const struct sample_rect *rect);

/* Unites neighbours for the fewest samples more, as far as that goes without trying all pairs,
 * until at most RECT_SET_MAX are left; sorts by row and column. O(count log count). */
void rect_set_finish(struct rect_set *set);

#endif
