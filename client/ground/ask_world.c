/*
 * Questions over all locales of a view, in the world's frame: world/ask/across.h and locate.h.
 */
#include "client/ground/ask.h"

#include <string.h>

/* May a locale that is held in part be the one that is asked for at that point? */
static bool is_absent_at(const struct kota_ground_view *view, struct vec3 world)
{
    for (size_t i = 0; view->has_parts && i < view->snapshot->locale_count; i++) {
        const struct kota_ground_locale *at = &view->locales[i];
        const struct layer_choice all = {at->locale, at->locale->layers, at->locale->layer_count};

        if (at->parts && is_absent_along_gravity(
                             at, &all, placement_to_locale(&at->locale->manifest.placement, world)))
            return true;
    }
    return false;
}

/* The hint of item i if the view has that locale; *is_unknown: it has not. */
static const char *hint_of(const struct kota_ground_view *view, const char *const *hints, size_t i,
                           uint32_t *is_unknown)
{
    const char *hint = hints ? hints[i] : NULL;

    *is_unknown = hint && !snapshot_locale(view->snapshot, hint);
    return *is_unknown ? NULL : hint;
}

bool kota_ground_locates(const struct kota_ground_view *view, const double *xyz,
                         const char *const *hints, size_t count, struct kota_ground_place *places,
                         struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};

    if (!ground_finite(xyz, count, 3, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++) {
        struct vec3 world = get_vec3(xyz + 3 * i);
        struct kota_ground_place *out = &places[i];
        struct located located = {NULL, GROUND_NOWHERE, GROUND_NOWHERE};
        const char *hint;

        *out = (struct kota_ground_place){.is_absent = is_absent_at(view, world)};
        hint = hint_of(view, hints, i, &out->hint_is_unknown);
        if (!out->is_absent)
            snapshot_locate(view->snapshot, world, hint, 0, &located);
        put_vec3(out->point, located.point);
        out->is_changed = out->hint_is_unknown;
        if (located.locale) {
            out->locale = located.locale->id;
            out->revision = located.locale->revision;
        }
        if (hint && !out->is_absent)
            out->is_changed = !out->locale || strcmp(hint, out->locale) != 0;
    }
    return true;
}

static struct kota_ground_contact contact_of(const struct located *located,
                                             const struct contacts *found, struct vec3 world,
                                             const struct ground_terms *terms)
{
    struct contacts in_world = *found;
    struct kota_ground_contact out;

    if (found->has_floor)
        in_world.floor = contact_in_world(located->locale, &found->floor);
    if (found->has_ceiling)
        in_world.ceiling = contact_in_world(located->locale, &found->ceiling);
    out = ground_contact(&in_world, located->locale ? located->locale->id : NULL);
    if (terms->has_clearance && found->has_floor) {
        struct vec3 gravity = placement_turn_to_world(
            &located->locale->manifest.placement, locale_gravity(located->locale, located->held));

        put_vec3(out.placed, contact_place(&in_world.floor, gravity, world, &terms->clearance));
    }
    return out;
}

bool kota_ground_world_contacts(const struct kota_ground_view *view,
                                const struct kota_ground_reach *reach, const double *xyz,
                                const char *const *hints, size_t count,
                                struct kota_ground_contact *contacts,
                                struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct ground_terms terms;

    if (!ground_terms(reach, &terms, &err) || !ground_finite(xyz, count, 3, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++) {
        struct vec3 world = get_vec3(xyz + 3 * i);
        uint32_t hint_is_unknown;
        const char *hint = hint_of(view, hints, i, &hint_is_unknown);
        struct located located;
        struct contacts found;

        if (is_absent_at(view, world)) {
            contacts[i] = ground_contact_absent();
        } else {
            snapshot_contact(view->snapshot, world, hint, terms.reach, &located, &found);
            contacts[i] = contact_of(&located, &found, world, &terms);
        }
        contacts[i].hint_is_unknown = hint_is_unknown;
    }
    return true;
}

/* Does the ray, up to `end` of t, meet ground of any locale that is not held? */
static bool is_absent_on_way(const struct kota_ground_view *view, const struct ray *world,
                             double end)
{
    for (size_t i = 0; view->has_parts && i < view->snapshot->locale_count; i++) {
        const struct kota_ground_locale *at = &view->locales[i];
        const struct placement *placement = &at->locale->manifest.placement;
        const struct layer_choice all = {at->locale, at->locale->layers, at->locale->layer_count};
        const struct ray ray = {placement_to_locale(placement, world->origin),
                                placement_turn_to_locale(placement, world->direction),
                                world->t_max};

        if (at->parts && is_absent_along_ray(at, &all, &ray, end))
            return true;
    }
    return false;
}

_Static_assert(sizeof(struct kota_ground_crossing) == sizeof(struct crossing),
               "a crossing becomes its result where it lies");

/* In place: of each one the locale becomes its id. */
static void name_crossings(struct kota_ground_crossing *crossings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct crossing crossing;

        memcpy(&crossing, &crossings[i], sizeof crossing);
        crossings[i] =
            (struct kota_ground_crossing){crossing.t_enter, crossing.t_leave, crossing.locale->id};
    }
}

void kota_ground_world_ray(const struct kota_ground_view *view, bool any,
                           const struct kota_ground_ray *ray, struct kota_ground_hit *hit,
                           struct kota_ground_crossing *crossings, size_t *crossed)
{
    const struct ray world = {get_vec3(ray->origin), get_vec3(ray->direction), ray->t_max};
    enum kota_ground_ray_status status = KOTA_GROUND_RAY_INVALID;
    struct across_hit found = {.locale = NULL};

    *crossed = 0;
    if (ray_is_valid(&world)) {
        snapshot_ray(view->snapshot, &world, any ? RAY_ANY : RAY_CLOSEST,
                     (struct crossing *)(void *)crossings, &found);
        *crossed = found.crossed;
        name_crossings(crossings, found.crossed);
        status = found.locale ? KOTA_GROUND_RAY_HIT : KOTA_GROUND_RAY_MISS;
        if (!(any && found.locale) &&
            is_absent_on_way(view, &world, found.locale ? found.hit.at.t : world.t_max))
            status = KOTA_GROUND_RAY_ABSENT;
    }
    *hit = ground_hit(status, &world, &found.hit, found.locale ? found.locale->id : NULL);
}
