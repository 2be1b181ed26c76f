/*
 * Points of the world to locales.
 *
 * Text Q divides a world into locales and asks, as objects move, whether one has left its locale's
 * volume. Two locales share a border: a point on it belongs to both, and a point that moves along
 * it must not change sides with each rounding. So the caller says where the point was (the hint),
 * and that locale keeps it within a tolerance around its border; only then are the others asked.
 *
 * Containment by tolerance asks the neighbours of the point: a step of the tolerance up, down, to
 * each side along and across gravity, and all their sums. Borders are met by one of them whatever
 * way they run, up to an angle's factor.
 * A point on the border of two locales that are turned against each other may be rounded out of
 * both on its way into their frames. Therefore, when nobody contains it, it is asked again with a
 * step of that rounding's size.
 *
 * Boxes come first: a floor at or below the point and on the gravity line through it is in the
 * locale's box, so a line that misses the box contains nothing. Before them comes what is coarser
 * and lies side by side for all locales (reach.h).
 * Source: J. Barrus and R. Waters, "QOTA", 1996; J. Barrus and others, "Locales", 1996.
 */
#include "world/locate.h"

#include "world/query.h"

#include <float.h>
#include <string.h>

/* Steps of the rounding of a point on its way into a frame, in units in the last place. */
#define ROUNDING_STEPS 64

/* v turned by the quaternion x, y, z, w; its inverse has the vector part negated. */
static struct vec3 turn(struct vec3 q, double w, struct vec3 v)
{
    struct vec3 t = vec3_scale(vec3_cross(q, v), 2);

    return vec3_add(v, vec3_add(vec3_scale(t, w), vec3_cross(q, t)));
}

struct vec3 placement_to_locale(const struct placement *placement, struct vec3 world)
{
    const double *q = placement->rotation;

    return turn((struct vec3){-q[0], -q[1], -q[2]}, q[3], vec3_sub(world, placement->translation));
}

struct vec3 placement_to_world(const struct placement *placement, struct vec3 local)
{
    const double *q = placement->rotation;

    return vec3_add(turn((struct vec3){q[0], q[1], q[2]}, q[3], local), placement->translation);
}

struct vec3 placement_turn_to_locale(const struct placement *placement, struct vec3 world)
{
    const double *q = placement->rotation;

    return turn((struct vec3){-q[0], -q[1], -q[2]}, q[3], world);
}

struct vec3 placement_turn_to_world(const struct placement *placement, struct vec3 local)
{
    const double *q = placement->rotation;

    return turn((struct vec3){q[0], q[1], q[2]}, q[3], local);
}

static bool contains(const struct locale *locale, struct vec3 point)
{
    const struct layer_choice all = {locale, locale->layers, locale->layer_count};
    bool has_floor, has_ceiling;

    return locale_contains(&all, point, &has_floor, &has_ceiling);
}

static bool may_contain(const struct locale *locale, struct vec3 point, double tolerance_m)
{
    struct vec3 grown = {2 * tolerance_m, 2 * tolerance_m, 2 * tolerance_m};
    struct box3 box = {vec3_sub(locale->bounds.min, grown), vec3_add(locale->bounds.max, grown)};

    return locale->has_bounds && locale_gravity_meets(locale, point, &box);
}

/* Does the locale contain the point, or one that is a step of tolerance_m away? That is *held. */
static bool contains_nearly(const struct locale *locale, struct vec3 point, double tolerance_m,
                            struct vec3 *held)
{
    *held = point;
    if (!may_contain(locale, point, tolerance_m))
        return false;
    if (contains(locale, point))
        return true;
    for (int step = 0; step < 27; step++) {
        struct vec3 by = {step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1};

        *held = vec3_add(point, vec3_scale(by, tolerance_m));
        if (contains(locale, *held))
            return true;
    }
    return false;
}

/* What rounding may have done to a point on its way into the locale's frame. */
static double rounding_of(const struct locale *locale, struct vec3 world)
{
    return ROUNDING_STEPS * DBL_EPSILON *
           (vec3_length(world) + vec3_length(locale->manifest.placement.translation));
}

static bool locate_among_all(const struct world_snapshot *snapshot, struct vec3 world,
                             bool by_rounding, struct located *out)
{
    for (size_t i = 0; i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot->locales[i];
        struct vec3 point, held;
        double rounding;

        if (!reach_meets_gravity(&snapshot->reaches[i], world))
            continue;
        point = held = placement_to_locale(&locale->manifest.placement, world);
        rounding = rounding_of(locale, world);

        if (!may_contain(locale, point, rounding) ||
            !(by_rounding ? contains_nearly(locale, point, rounding, &held)
                          : contains(locale, point)))
            continue;
        *out = (struct located){locale, point, held};
        return true;
    }
    return false;
}

void snapshot_locate(const struct world_snapshot *snapshot, struct vec3 world, const char *hint,
                     struct located *out)
{
    const struct locale *hinted = hint ? snapshot_locale(snapshot, hint) : NULL;

    *out = (struct located){NULL, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
    if (hinted) {
        struct vec3 point = placement_to_locale(&hinted->manifest.placement, world), held;

        if (contains_nearly(hinted, point, LOCATE_BORDER_TOLERANCE, &held)) {
            *out = (struct located){hinted, point, held};
            return;
        }
    }
    if (!locate_among_all(snapshot, world, false, out))
        locate_among_all(snapshot, world, true, out);
}
