/*
 * Points of the world to locales.
 *
 * Text Q divides a world into locales and asks, as objects move, whether one has left its locale's
 * volume. Two locales share a border: a point on it belongs to both, and a point that moves along
 * it must not change sides with each rounding. So the caller passes the locale that held the
 * point before, and that one keeps it within a tolerance around its border; the others come after.
 *
 * Containment within a tolerance tests the neighbours of the point: a step of the tolerance up,
 * down, to each side along and across gravity, and all their sums. One of them crosses a border of
 * any direction, up to the factor of an angle. A point on the border of two locales that are turned
 * against each other may be rounded out of both on its way into their frames. So when no locale
 * contains it, all are tested again with a step of that rounding's size.
 *
 * Boxes come first: a floor at or below the point and on the gravity line through it is in the
 * locale's box, so a line that misses the box has no floor. Which boxes are tested is the answer of
 * the snapshot's index (locale_index.h), in the order of its tree, so a locale is asked only if its
 * id is smaller than that of the best one so far.
 * Source: J. Barrus and R. Waters, "QOTA", 1996; J. Barrus and others, "Locales", 1996.
 */
#include "world/ask/locate.h"

#include "world/ask/query.h"

#include <float.h>
#include <string.h>

static bool contains(const struct locale *locale, struct vec3 point, double up_m)
{
    const struct layer_choice all = {locale, locale->layers, locale->layer_count};
    bool has_floor, has_ceiling;

    return up_m > 0 ? locale_contains_above(&all, point, up_m)
                    : locale_contains(&all, point, &has_floor, &has_ceiling) == CONTAINED_INSIDE;
}

static bool may_contain(const struct locale *locale, struct vec3 point, double tolerance_m)
{
    struct vec3 grown = {2 * tolerance_m, 2 * tolerance_m, 2 * tolerance_m};
    struct box3 box = {vec3_sub(locale->bounds.min, grown), vec3_add(locale->bounds.max, grown)};

    return locale->has_bounds && locale_gravity_meets(locale, point, &box);
}

/* Does the locale contain the point, or one that is a step of tolerance_m away? That is *held. */
static bool contains_nearly(const struct locale *locale, struct vec3 point, double up_m,
                            double tolerance_m, struct vec3 *held)
{
    *held = point;
    if (!may_contain(locale, point, tolerance_m))
        return false;
    if (contains(locale, point, up_m))
        return true;
    for (int step = 0; step < 27; step++) {
        struct vec3 by = {step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1};

        *held = vec3_add(point, vec3_scale(by, tolerance_m));
        if (contains(locale, *held, up_m))
            return true;
    }
    return false;
}

/* The rounding error of a point on its way into the locale's frame. */
static double rounding_of(const struct locale *locale, struct vec3 world)
{
    return PADDING_ULPS * DBL_EPSILON *
           (vec3_length(world) + vec3_length(locale->manifest.placement.translation));
}

struct search {
    const struct world_snapshot *snapshot;
    struct vec3 world;
    double up_m;
    bool by_rounding;
    struct located best;
};

static void locate_in(void *context, const struct locale *locale)
{
    struct search *search = context;
    const struct locale *best = search->best.locale;
    struct vec3 point, held;
    double rounding;

    if ((best && strcmp(locale->id, best->id) > 0) || !snapshot_shows(search->snapshot, locale))
        return;
    point = held = placement_to_locale(&locale->manifest.placement, search->world);
    rounding = rounding_of(locale, search->world);
    if (may_contain(locale, point, rounding) &&
        (search->by_rounding ? contains_nearly(locale, point, search->up_m, rounding, &held)
                             : contains(locale, point, search->up_m)))
        search->best = (struct located){locale, point, held};
}

static bool locate_among_all(const struct world_snapshot *snapshot, struct vec3 world, double up_m,
                             bool by_rounding, struct located *out)
{
    struct search search = {snapshot, world, up_m, by_rounding, {.locale = NULL}};

    locale_index_gravity(snapshot->index, world, locate_in, &search);
    if (search.best.locale)
        *out = search.best;
    return search.best.locale != NULL;
}

static bool locate(const struct world_snapshot *snapshot, struct vec3 world,
                   const struct locale *last, double up_m, struct located *out)
{
    if (last) {
        struct vec3 point = placement_to_locale(&last->manifest.placement, world), held;

        if (contains_nearly(last, point, up_m, LOCATE_BORDER_TOLERANCE, &held)) {
            *out = (struct located){last, point, held};
            return true;
        }
    }
    return locate_among_all(snapshot, world, up_m, false, out) ||
           locate_among_all(snapshot, world, up_m, true, out);
}

void snapshot_locate(const struct world_snapshot *snapshot, struct vec3 world,
                     const char *last_locale, double up_m, struct located *out)
{
    const struct locale *last = last_locale ? snapshot_locale(snapshot, last_locale) : NULL;

    *out = (struct located){NULL, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (!locate(snapshot, world, last, 0, out) && up_m > 0)
        locate(snapshot, world, last, up_m, out);
}
