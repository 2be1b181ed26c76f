/*
 * Which locale holds a point of the world (text Q, "Other uses"): placements and hysteresis.
 */
#ifndef KOTA_WORLD_LOCATE_H
#define KOTA_WORLD_LOCATE_H

#include "world/snapshot.h"

/* How far outside its border the locale of a hint still holds a point, in metres. */
#define LOCATE_BORDER_TOLERANCE 1e-6

/* A point of the world in a locale's frame: the inverse of the placement. */
struct vec3 placement_to_locale(const struct placement *placement, struct vec3 world);

/* A point of a locale's frame in the world. */
struct vec3 placement_to_world(const struct placement *placement, struct vec3 local);

/* The same for directions, which are turned alone. */
struct vec3 placement_turn_to_locale(const struct placement *placement, struct vec3 world);
struct vec3 placement_turn_to_world(const struct placement *placement, struct vec3 local);

struct located {
    const struct locale *locale; /* borrowed from the snapshot; NULL: no locale holds the point */
    struct vec3 point;           /* in its frame */
    struct vec3 held; /* the point, or one a step of the tolerance away: it contains it */
};

/*
 * The locale of id `hint` (NULL: none) while it contains the point, by LOCATE_BORDER_TOLERANCE
 * beyond its border; else the one with the smallest id that contains it. To contain is what
 * locale_contains says in the locale's own frame; a placement's rounding opens no gap between
 * locales that touch. O(locales), a cache line for each that does not matter.
 */
void snapshot_locate(const struct world_snapshot *snapshot, struct vec3 world, const char *hint,
                     struct located *out);

#endif
