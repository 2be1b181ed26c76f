/*
 * Questions over all locales of a snapshot, in world coordinates. Reads only; any thread that holds
 * the snapshot.
 */
#ifndef KOTA_WORLD_ACROSS_H
#define KOTA_WORLD_ACROSS_H

#include "world/ask/locate.h"
#include "world/ask/query.h"

/* A ray's way through the box of one locale. */
struct crossing {
    const struct locale *locale;
    double t_enter, t_leave; /* 0 <= t_enter <= t_leave <= t_max, as t of the ray */
};

struct across_hit {
    const struct locale *locale; /* NULL: no hit */
    struct locale_hit hit; /* point, normal and velocity in the world, all else as in the locale */
    size_t crossed;        /* so many of crossings[] were met up to the hit, or t_max */
};

/* So many locales may a ray cross at most. O(log n + that). */
size_t snapshot_crossings_max(const struct world_snapshot *snapshot, const struct ray *world);

/*
 * The nearest hit over all locales whose bounds a valid ray of the world meets (RAY_ANY: some hit).
 * The ray is turned into the frame of each locale, so t is the locale's own answer; of two hits at
 * the same t the one of the smaller id is returned.
 *
 * crossings  [snapshot_crossings_max]; out->crossed are filled, sorted by t_enter; t_leave of the
 *            locale of the hit is at most the t of the hit
 *
 * Cost: O(log n + crossings), and locale_ray for those that are entered before the hit.
 */
void snapshot_ray(const struct world_snapshot *snapshot, const struct ray *world,
                  enum ray_mode mode, struct crossing *crossings, struct across_hit *out);

/*
 * The surfaces below and above a point of the world, along the gravity of its locale. *out is that
 * locale and the point in its frame, *contacts the result of locale_contact there (at out->held).
 *
 * The locale is the one that snapshot_locate finds, up to reach.up_m above the point. Without one
 * out->locale is NULL and the status CONTACT_OUTSIDE.
 */
void snapshot_contact(const struct world_snapshot *snapshot, struct vec3 world,
                      const char *last_locale, struct contact_reach reach, struct located *out,
                      struct contacts *contacts);

/* A contact of that locale in world coordinates. */
struct contact contact_in_world(const struct locale *locale, const struct contact *contact);

#endif
