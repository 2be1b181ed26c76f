/*
 * Rays and contacts in world coordinates.
 *
 * Problem: a world is many locales, each with a frame of its own. A ray goes on where a locale
 * ends, and the first surface on its way may be in any of those that it crosses; locales may
 * overlap. Approach: a placement is a rotation and a translation, so a ray turned into a locale's
 * frame has the same t. Boxes come first: each locale's box gives the stretch of t in which it can
 * be hit. The locales are asked in the order in which they are entered, until the next is entered
 * behind the nearest hit. Each is asked with the whole ray: its t is to the bit what the locale's
 * own call answers for that ray. A box is grown by what rounding may have done to the ray on its
 * way into the frame, so that a flat floor (whose box has no height) is not missed and no gap opens
 * between locales that touch. A contact asks one locale: the one that holds the point, as POST
 * /v1/locate decides.
 *
 * Before its box a locale is asked by a ball around it, which all have side by side (reach.h).
 * Tried and dropped: a tree over the boxes in the world. A world has 1,000 locales unless it is
 * allowed more, and a ball is some nanoseconds; turned boxes would have to be wrapped in larger
 * ones. Source: J. Barrus and others, "Locales", 1996, for what a locale is.
 */
#include "world/across.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Units in the last place by which a box is grown: some more than a turn and a difference round. */
#define ROUNDING_STEPS 64

static double rounding_of(const struct locale *locale, struct vec3 world)
{
    double reach = vec3_length(world) + vec3_length(locale->manifest.placement.translation) +
                   vec3_length(locale->bounds.min) + vec3_length(locale->bounds.max);

    return ROUNDING_STEPS * DBL_EPSILON * reach;
}

static struct box3 grown(const struct box3 *box, double by)
{
    struct vec3 all = {by, by, by};

    return (struct box3){vec3_sub(box->min, all), vec3_add(box->max, all)};
}

static struct ray to_locale(const struct placement *placement, const struct ray *world)
{
    return (struct ray){placement_to_locale(placement, world->origin),
                        placement_turn_to_locale(placement, world->direction), world->t_max};
}

/* The stretch of 0..t_max in which the ray is in the box; false when it misses it. */
static bool clip(const struct ray *ray, const struct box3 *box, double *enter, double *leave)
{
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    const double from[3] = {ray->origin.x, ray->origin.y, ray->origin.z};
    const double to[3] = {ray->direction.x, ray->direction.y, ray->direction.z};

    *enter = 0;
    *leave = ray->t_max;
    for (int i = 0; i < 3; i++) {
        double a, b;

        if (to[i] == 0) {
            if (!(from[i] >= low[i] && from[i] <= high[i]))
                return false;
            continue;
        }
        a = (low[i] - from[i]) / to[i];
        b = (high[i] - from[i]) / to[i];
        *enter = fmax(*enter, fmin(a, b));
        *leave = fmin(*leave, fmax(a, b));
    }
    return *enter <= *leave && isfinite(*enter);
}

/* Locales are in the order of their ids, and so are crossings before they are sorted. */
static int by_entry(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    if (x->t_enter != y->t_enter)
        return x->t_enter < y->t_enter ? -1 : 1;
    return strcmp(x->locale->id, y->locale->id);
}

static size_t find_crossings(const struct world_snapshot *snapshot, const struct ray *world,
                             struct crossing *out)
{
    struct reach_ray asked = reach_ray_of(world);
    size_t count = 0;

    for (size_t i = 0; i < snapshot->locale_count; i++) {
        const struct locale *locale = snapshot->locales[i];
        struct ray ray;
        struct box3 box;

        if (!reach_meets_ray(&snapshot->reaches[i], &asked))
            continue;
        ray = to_locale(&locale->manifest.placement, world);
        box = grown(&locale->bounds, rounding_of(locale, world->origin));
        if (ray_is_valid(&ray) && clip(&ray, &box, &out[count].t_enter, &out[count].t_leave))
            out[count++].locale = locale;
    }
    if (count > 1)
        qsort(out, count, sizeof *out, by_entry);
    return count;
}

/* Is what was hit in `locale` nearer than the nearest so far? */
static bool is_nearer(const struct across_hit *best, const struct locale *locale, double t)
{
    return !best->locale || t < best->hit.at.t ||
           (t == best->hit.at.t && strcmp(locale->id, best->locale->id) < 0);
}

void snapshot_ray(const struct world_snapshot *snapshot, const struct ray *world,
                  enum ray_mode mode, struct crossing *crossings, struct across_hit *out)
{
    size_t count = find_crossings(snapshot, world, crossings), i;

    out->locale = NULL;
    for (i = 0; i < count; i++) {
        const struct locale *locale = crossings[i].locale;
        const struct layer_choice all = {locale, locale->layers, locale->layer_count};
        struct ray ray;
        struct locale_hit hit;

        if (out->locale && (ray_takes_any(mode) || crossings[i].t_enter > out->hit.at.t))
            break;
        ray = to_locale(&locale->manifest.placement, world);
        if (!locale_ray(&all, &ray, mode, &hit, NULL) || !is_nearer(out, locale, hit.at.t))
            continue;
        out->locale = locale;
        out->hit = hit;
    }
    out->crossed = count;
    if (!out->locale)
        return;
    for (out->crossed = 0; out->crossed < count; out->crossed++) {
        struct crossing *crossing = &crossings[out->crossed];

        if (crossing->t_enter > out->hit.at.t)
            break;
        crossing->t_leave = fmin(crossing->t_leave, out->hit.at.t);
    }
    out->hit.at.point = placement_to_world(&out->locale->manifest.placement, out->hit.at.point);
    out->hit.at.normal =
        placement_turn_to_world(&out->locale->manifest.placement, out->hit.at.normal);
    out->hit.velocity =
        placement_turn_to_world(&out->locale->manifest.placement, out->hit.velocity);
}

/* ---- contact ----------------------------------------------------------------------------------
 */

/* What the locale says of a point of the world; false when it is not over or under the locale. */
static bool ask_contact(const struct locale *locale, struct vec3 world, double reach_up_m,
                        struct located *out, struct contacts *contacts)
{
    const struct layer_choice all = {locale, locale->layers, locale->layer_count};
    struct vec3 point = placement_to_locale(&locale->manifest.placement, world);
    struct box3 box = grown(&locale->bounds, rounding_of(locale, world));

    if (!locale->has_bounds || !locale_gravity_meets(locale, point, &box))
        return false;
    *out = (struct located){locale, point, point};
    locale_contact(&all, point, reach_up_m, contacts);
    return contacts->status != GROUND_OUTSIDE;
}

void snapshot_contact(const struct world_snapshot *snapshot, struct vec3 world, const char *hint,
                      double reach_up_m, struct located *out, struct contacts *contacts)
{
    const struct locale *hinted = hint ? snapshot_locale(snapshot, hint) : NULL;
    struct located over_hole = {NULL, {NAN, NAN, NAN}, {NAN, NAN, NAN}};

    snapshot_locate(snapshot, world, hint, out);
    if (out->locale) {
        const struct locale *locale = out->locale;
        const struct layer_choice all = {locale, locale->layers, locale->layer_count};

        locale_contact(&all, out->held, reach_up_m, contacts);
        return;
    }
    for (size_t i = 0; i <= snapshot->locale_count; i++) {
        const struct locale *locale = i ? snapshot->locales[i - 1] : hinted;

        if (!locale || (i && locale == hinted) ||
            (i && !reach_meets_gravity(&snapshot->reaches[i - 1], world)) ||
            !ask_contact(locale, world, reach_up_m, out, contacts))
            continue;
        if (contacts->status == GROUND_OK)
            return;
        if (!over_hole.locale)
            over_hole = *out;
    }
    *out = over_hole;
    memset(contacts, 0, sizeof *contacts);
    contacts->status = over_hole.locale ? GROUND_HOLE : GROUND_OUTSIDE;
}
