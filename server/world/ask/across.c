/*
 * Rays and contacts in world coordinates.
 *
 * Problem: a world is many locales, each with its own frame. A ray continues where a locale ends,
 * and the first surface on it may be in any locale that it crosses; locales may overlap. Approach:
 * a placement is a rotation and a translation, so a ray turned into a locale's frame has the same
 * t. Each locale's box gives the interval of t in which it can be hit. The locales are tested in
 * the order of their entry, until the next entry is after the nearest hit. Each is tested with the
 * whole ray, so its t has the bits of the locale's own call. A box is grown by the rounding errors
 * of the ray on its way into the frame, so that a flat floor (a box without height) is not missed
 * and no gap opens between locales that touch. A contact is of one locale: the one that contains
 * the point or a floor within its reach (locate.h).
 *
 * Which boxes are tested is the answer of the snapshot's index (locale_index.h), which leaves out
 * only what the ray misses. Source: J. Barrus and others, "Locales", 1996, for the term locale.
 */
#include "world/ask/across.h"

#include "world/values/bounding_sphere.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static double rounding_of(const struct locale *locale, struct vec3 world)
{
    double reach = vec3_length(world) + vec3_length(locale->manifest.placement.translation) +
                   vec3_length(locale->bounds.min) + vec3_length(locale->bounds.max);

    return PADDING_ULPS * DBL_EPSILON * reach;
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
    *enter = 0;
    *leave = ray->t_max;
    return box3_clip(box, ray->origin, ray->direction, enter, leave) && isfinite(*enter);
}

static int by_entry(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    if (x->t_enter != y->t_enter)
        return x->t_enter < y->t_enter ? -1 : 1;
    return strcmp(x->locale->id, y->locale->id);
}

static void count_locale(void *count, const struct locale *locale)
{
    (void)locale;
    ++*(size_t *)count;
}

size_t snapshot_crossings_max(const struct world_snapshot *snapshot, const struct ray *world)
{
    size_t count = 0;

    locale_index_ray(snapshot->index, world, count_locale, &count);
    return count;
}

struct crossing_search {
    const struct world_snapshot *snapshot;
    const struct ray *world;
    struct crossing *out;
    size_t count;
};

static void add_crossing(void *context, const struct locale *locale)
{
    struct crossing_search *search = context;
    struct crossing crossing = {.locale = locale};
    struct ray ray = to_locale(&locale->manifest.placement, search->world);
    struct box3 box = grown(&locale->bounds, rounding_of(locale, search->world->origin));

    if (!snapshot_shows(search->snapshot, locale) || !ray_is_valid(&ray) ||
        !clip(&ray, &box, &crossing.t_enter, &crossing.t_leave))
        return;
    search->out[search->count++] = crossing;
}

static size_t find_crossings(const struct world_snapshot *snapshot, const struct ray *world,
                             struct crossing *out)
{
    struct crossing_search search = {snapshot, world, out, 0};

    locale_index_ray(snapshot->index, world, add_crossing, &search);
    if (search.count > 1)
        qsort(out, search.count, sizeof *out, by_entry);
    return search.count;
}

/* Is the hit in `locale` nearer than the nearest so far? */
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

/* ---- contact --------------------------------------------------------------------------------- */

void snapshot_contact(const struct world_snapshot *snapshot, struct vec3 world,
                      const char *last_locale, struct contact_reach reach, struct located *out,
                      struct contacts *contacts)
{
    snapshot_locate(snapshot, world, last_locale, reach.up_m, out);
    if (out->locale) {
        const struct locale *locale = out->locale;
        const struct layer_choice all = {locale, locale->layers, locale->layer_count};

        locale_contact(&all, out->held, reach, contacts);
        return;
    }
    memset(contacts, 0, sizeof *contacts);
    contacts->status = CONTACT_OUTSIDE;
}

struct contact contact_in_world(const struct locale *locale, const struct contact *contact)
{
    const struct placement *placement = &locale->manifest.placement;
    struct contact out = *contact;

    out.point = placement_to_world(placement, contact->point);
    out.normal = placement_turn_to_world(placement, contact->normal);
    out.velocity = placement_turn_to_world(placement, contact->velocity);
    return out;
}
