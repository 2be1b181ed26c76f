/*
 * Which locale contains a point of the world (text Q, "Other uses"): placements and hysteresis.
 */
#ifndef KOTA_WORLD_LOCATE_H
#define KOTA_WORLD_LOCATE_H

#include "world/values/placement.h"
#include "world/values/snapshot.h"

/* Padding of a point or a box in ulps: a rotation and a difference round less. */
#define PADDING_ULPS 64

/* How far outside its border the last locale still holds a point, in metres. */
#define LOCATE_BORDER_TOLERANCE 1e-6

struct located {
    const struct locale *locale; /* borrowed from the snapshot; NULL: no locale holds the point */
    struct vec3 point;           /* in its frame */
    struct vec3 held; /* the point, or one a step of the tolerance away: it contains it */
};

/*
 * The locale of id `last_locale` (NULL: none) while it contains the point, up to
 * LOCATE_BORDER_TOLERANCE beyond its border; else the one with the smallest id that contains it, as
 * locale_contains decides in the locale's own frame; a placement's rounding opens no gap between
 * locales that touch. O(log n), and a question to each locale whose box is above or below.
 *
 * up_m  over 0: when none contains the point, a locale is found in the same order that has a floor
 *       above the point by at most up_m and contains the place on it (locale_contains_above)
 */
void snapshot_locate(const struct world_snapshot *snapshot, struct vec3 world,
                     const char *last_locale, double up_m, struct located *out);

#endif
