/*
 * Questions to the whole world, in its coordinates: over all locales of a snapshot, each asked in
 * its own frame. Pure reading; any thread that holds the snapshot.
 */
#ifndef KOTA_WORLD_ACROSS_H
#define KOTA_WORLD_ACROSS_H

#include "world/locate.h"
#include "world/query.h"

/* A ray's way through the box of one locale. */
struct crossing {
    const struct locale *locale;
    double t_enter, t_leave; /* 0 <= t_enter <= t_leave <= t_max, as t of the ray */
};

struct across_hit {
    const struct locale *locale; /* NULL: nothing was hit */
    struct locale_hit hit; /* point, normal and velocity in the world, all else as in the locale */
    size_t crossed;        /* so many of crossings[] were met up to the hit, or t_max */
};

/*
 * The nearest hit over all locales whose bounds a valid ray of the world meets (RAY_ANY: some hit).
 * A locale is asked with the ray turned into its frame, so t is the locale's own answer; of two
 * that are met at the same t the smaller id has it.
 *
 * crossings  room for snapshot->locale_count of them; out->crossed are filled, by t_enter, the one
 *            that the hit is in with t_leave at the hit at most
 *
 * Cost: a box test for each locale, and locale_ray for those that are entered before the hit.
 */
void snapshot_ray(const struct world_snapshot *snapshot, const struct ray *world,
                  enum ray_mode mode, struct crossing *crossings, struct across_hit *out);

/*
 * What is below and above a point of the world, along the gravity of its locale. *out is the locale
 * that answers and the point in its frame, *contacts what locale_contact says there (at out->held).
 *
 * The locale is the one that snapshot_locate finds. A point that no locale contains (below the
 * ground, over a gap, where a ceiling is missing) belongs to the first, the hinted one before all
 * and then by id, where contact finds something; then to the first where it is over a hole; else
 * out->locale is NULL and the status outside.
 */
void snapshot_contact(const struct world_snapshot *snapshot, struct vec3 world, const char *hint,
                      double reach_up_m, struct located *out, struct contacts *contacts);

#endif
