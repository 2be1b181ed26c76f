/*
 * Questions to one locale: decode, ask world/ask, write the result. No memory is allocated. What
 * the calls of the daemon refuse is refused here with the same words.
 */
#include "client/ground/ask.h"

#include <string.h>

enum { TOGETHER = 64 }; /* of a batch; their data stays in the first-level cache */

static size_t some_of(size_t count, size_t first)
{
    return count - first < TOGETHER ? count - first : TOGETHER;
}

bool ground_finite(const double *numbers, size_t count, size_t per_item, struct err *err)
{
    for (size_t i = 0; i < count * per_item; i++)
        if (!isfinite(numbers[i])) {
            err_set(err, ERR_BAD_INPUT, "number %zu of item %zu is %g, it must be finite",
                    i % per_item, i / per_item, numbers[i]);
            err_at(err, "/%zu/%zu", i / per_item, i % per_item);
            return false;
        }
    return true;
}

/* ---- heights --------------------------------------------------------------------------------- */

double kota_ground_height(const struct kota_ground_locale *locale, double x, double y)
{
    struct ground_height ground;

    if (locale->field)
        return heightfield_interpolate(locale->field, (struct vec2){x, y}, INTERPOLATION_TRIANGLE)
            .height_m;
    if (locale->ground.count == 0 || !isfinite(x) || !isfinite(y) ||
        is_absent_along_gravity(locale, &locale->ground, (struct vec3){x, y, 0}))
        return NAN;
    locale_heights_only(&locale->ground, &(struct vec2){x, y}, 1, INTERPOLATION_TRIANGLE, &ground);
    return ground.height_m;
}

static bool choose_ground(const struct kota_ground_locale *locale, const char *layer,
                          enum kota_ground_interpolation interpolation, const double *xy,
                          size_t count, struct layer_choice *ground, struct err *err)
{
    if (locale_choose_ground(locale->locale, layer, ground, err))
        return false;
    if (interpolation > KOTA_GROUND_NEAREST ||
        (ground->layers[0]->kind == LAYER_MESH && interpolation != KOTA_GROUND_TRIANGLE)) {
        err_set(err, ERR_UNPROCESSABLE,
                interpolation > KOTA_GROUND_NEAREST
                    ? "there is no such interpolation"
                    : "polygons have no samples: only interp=triangle");
        err_at(err, "interp");
        return false;
    }
    return ground_finite(xy, count, 2, err);
}

static struct kota_ground_point point_of(const struct layer_choice *choice,
                                         const struct ground_point *ground)
{
    static const uint32_t statuses[] = {[GROUND_OK] = KOTA_GROUND_IS_OK,
                                        [GROUND_HOLE] = KOTA_GROUND_IS_HOLE,
                                        [GROUND_OUTSIDE] = KOTA_GROUND_IS_OUTSIDE};
    struct kota_ground_point out = {.height_m = ground->height_m,
                                    .status = statuses[ground->status]};

    put_vec3(out.normal, ground->status == GROUND_OK && ground->triangle >= 0 ? ground->normal
                                                                              : GROUND_NOWHERE);
    if (ground->status != GROUND_OUTSIDE && choice->layers[0]->kind == LAYER_HEIGHTFIELD) {
        out.has_cell = true;
        memcpy(out.cell, ground->cell, sizeof out.cell);
    }
    return out;
}

bool kota_ground_heights(const struct kota_ground_locale *locale, const char *layer,
                         enum kota_ground_interpolation interpolation, const double *xy,
                         size_t count, struct kota_ground_point *points,
                         struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice ground;

    if (!choose_ground(locale, layer, interpolation, xy, count, &ground, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i += TOGETHER) {
        const struct vec2 *at = (const struct vec2 *)(const void *)xy + i;
        struct ground_point found[TOGETHER];
        size_t some = some_of(count, i);

        locale_heights(&ground, at, some, (enum interpolation)interpolation, found);
        for (size_t k = 0; k < some; k++) {
            points[i + k] = point_of(&ground, &found[k]);
            if (!is_absent_along_gravity(locale, &ground, (struct vec3){at[k].x, at[k].y, 0}))
                continue;
            points[i + k] =
                (struct kota_ground_point){NAN, {NAN, NAN, NAN}, KOTA_GROUND_IS_ABSENT, 0, {0, 0}};
        }
    }
    return true;
}

bool kota_ground_heights_only(const struct kota_ground_locale *locale, const char *layer,
                              enum kota_ground_interpolation interpolation, const double *xy,
                              size_t count, double *heights_m, struct kota_ground_error *error)
{
    const struct vec2 *at = (const struct vec2 *)(const void *)xy;
    struct err err = {.code = ERR_OK};
    struct layer_choice ground;

    if (!choose_ground(locale, layer, interpolation, xy, count, &ground, &err))
        return ground_fail(error, &err);
    locale_heights_plain(&ground, at, count, (enum interpolation)interpolation, heights_m);
    for (size_t i = 0; locale->parts && i < count; i++)
        if (is_absent_along_gravity(locale, &ground, (struct vec3){at[i].x, at[i].y, 0}))
            heights_m[i] = NAN;
    return true;
}

/* ---- rays ------------------------------------------------------------------------------------ */

struct kota_ground_hit ground_hit(enum kota_ground_ray_status status, const struct ray *ray,
                                  const struct locale_hit *hit, const char *locale)
{
    struct kota_ground_hit out = {.t = NAN, .distance_m = NAN, .status = status};

    put_vec3(out.point, GROUND_NOWHERE);
    put_vec3(out.normal, GROUND_NOWHERE);
    put_vec3(out.velocity, GROUND_NOWHERE);
    if (status != KOTA_GROUND_RAY_HIT)
        return out;
    out.t = hit->at.t;
    out.distance_m = ray ? ray_distance_m(ray, hit->at.t) : hit->at.t;
    put_vec3(out.point, hit->at.point);
    put_vec3(out.normal, hit->at.normal);
    if (hit->layer->is_moved)
        put_vec3(out.velocity, hit->velocity);
    out.layer = hit->layer->id;
    out.locale = locale;
    out.has_cell = hit->layer->kind == LAYER_HEIGHTFIELD;
    if (out.has_cell) {
        memcpy(out.cell, hit->at.cell, sizeof out.cell);
        out.triangle = (uint32_t)hit->at.triangle;
    } else {
        out.polygon = hit->polygon;
    }
    return out;
}

const char *kota_ground_ray_fault(const struct kota_ground_ray *ray)
{
    const struct ray asked = {get_vec3(ray->origin), get_vec3(ray->direction), ray->t_max};

    return ray_fault(&asked);
}

/* The rays that may be cast; the others are in `hits` already. */
static void cast(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                 bool any, const struct kota_ground_ray *rays, size_t count,
                 struct kota_ground_hit *hits)
{
    static const struct ray some = {{0, 0, 0}, {0, 0, 1}, 0};
    struct ray valid[TOGETHER];
    struct locale_hit found[TOGETHER];
    bool is_valid[TOGETHER];

    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct ray ray = {get_vec3(rays[i].origin), get_vec3(rays[i].direction),
                                rays[i].t_max};

        is_valid[i] = ray_is_valid(&ray);
        valid[i] = is_valid[i] ? ray : some;
    }
    locale_rays(choice, valid, count, any ? RAY_ANY : RAY_CLOSEST, found);
    for (size_t i = 0; i < count; i++) {
        bool is_hit = found[i].at.t < INFINITY;
        double end = is_hit ? found[i].at.t : valid[i].t_max;
        enum kota_ground_ray_status status = !is_valid[i] ? KOTA_GROUND_RAY_INVALID
                                             : is_hit     ? KOTA_GROUND_RAY_HIT
                                                          : KOTA_GROUND_RAY_MISS;

        if (is_valid[i] && !(any && is_hit) && is_absent_along_ray(locale, choice, &valid[i], end))
            status = KOTA_GROUND_RAY_ABSENT;
        hits[i] = ground_hit(status, &valid[i], &found[i], locale->locale->id);
    }
}

bool kota_ground_rays(const struct kota_ground_locale *locale, const char *layer, bool any,
                      const struct kota_ground_ray *rays, size_t count,
                      struct kota_ground_hit *hits, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;

    if (locale_choose(locale->locale, layer, &choice, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i += TOGETHER)
        cast(locale, &choice, any, rays + i, some_of(count, i), hits + i);
    return true;
}

/* ---- sight ----------------------------------------------------------------------------------- */

static bool check_ends(const struct kota_ground_segment *segments, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 6; k++) {
            double value = k < 3 ? segments[i].from[k] : segments[i].to[k - 3];

            if (fabs(value) <= SIGHT_END_MAX)
                continue;
            err_limit(err, ERR_BAD_INPUT, SIGHT_END_MAX, value, "%g is beyond %g", value,
                      SIGHT_END_MAX);
            err_at(err, "/segments/%zu/%s", i, k < 3 ? "from" : "to");
            return false;
        }
    return true;
}

static struct kota_ground_sight sight(const struct kota_ground_locale *locale,
                                      const struct layer_choice *choice,
                                      const struct kota_ground_segment *segment)
{
    struct vec3 from = get_vec3(segment->from), to = get_vec3(segment->to);
    const struct ray line = {from, vec3_sub(to, from), 1};
    struct kota_ground_sight out = {.fraction = NAN};
    struct locale_hit blocker;

    put_vec3(out.point, GROUND_NOWHERE);
    out.is_visible = locale_line_of_sight(choice, from, to, &blocker);
    out.is_absent = is_absent_along_ray(locale, choice, &line, out.is_visible ? 1 : blocker.at.t);
    if (out.is_absent) {
        out.is_visible = false;
    } else if (!out.is_visible) {
        out.fraction = blocker.at.t;
        put_vec3(out.point, blocker.at.point);
    }
    return out;
}

bool kota_ground_sights(const struct kota_ground_locale *locale, const char *layer,
                        const struct kota_ground_segment *segments, size_t count,
                        struct kota_ground_sight *sights, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;

    if (locale_choose(locale->locale, layer, &choice, &err) || !check_ends(segments, count, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++)
        sights[i] = sight(locale, &choice, &segments[i]);
    return true;
}

/* ---- contact --------------------------------------------------------------------------------- */

static bool check_term(double value, const char *name, struct err *err)
{
    if (value >= 0)
        return true;
    err_limit(err, ERR_BAD_INPUT, 0, value, "%s must be at least 0 m, it is %.17g", name, value);
    err_at(err, "/%s", name);
    return false;
}

bool ground_terms(const struct kota_ground_reach *reach, struct ground_terms *out, struct err *err)
{
    static const struct kota_ground_reach defaults = {NAN, NAN, NAN, 0, 0};

    if (!reach)
        reach = &defaults;
    out->has_clearance = !isnan(reach->clearance_m);
    out->clearance = (struct clearance){reach->clearance_m, reach->is_exact};
    out->reach.up_m = !isnan(reach->reach_up_m) ? reach->reach_up_m
                      : out->has_clearance      ? INFINITY
                                                : CONTACT_REACH_UP_M;
    out->reach.down_m = isnan(reach->max_distance_m) ? INFINITY : reach->max_distance_m;
    return check_term(out->reach.up_m, "reach_up", err) &&
           check_term(out->reach.down_m, "max_distance", err) &&
           (!out->has_clearance || check_term(out->clearance.above_m, "clearance", err));
}

static struct kota_ground_surface surface_of(bool is_there, const struct contact *contact)
{
    struct kota_ground_surface out = {.distance_m = NAN, .slope_deg = NAN};

    put_vec3(out.point, is_there ? contact->point : GROUND_NOWHERE);
    put_vec3(out.normal, is_there ? contact->normal : GROUND_NOWHERE);
    put_vec3(out.velocity,
             is_there && contact->layer->is_moved ? contact->velocity : GROUND_NOWHERE);
    if (!is_there)
        return out;
    out.distance_m = contact->distance_m;
    out.slope_deg = contact->slope_deg;
    out.layer = contact->layer->id;
    out.has_cell = contact->layer->kind == LAYER_HEIGHTFIELD;
    if (out.has_cell)
        memcpy(out.cell, contact->cell, sizeof out.cell);
    else
        out.polygon = contact->polygon;
    return out;
}

struct kota_ground_contact ground_contact(const struct contacts *contacts, const char *locale)
{
    static const uint32_t statuses[] = {
        [CONTACT_OK] = KOTA_GROUND_IS_OK,           [CONTACT_BELOW] = KOTA_GROUND_IS_BELOW,
        [CONTACT_HOLE] = KOTA_GROUND_IS_HOLE,       [CONTACT_OUTSIDE] = KOTA_GROUND_IS_OUTSIDE,
        [CONTACT_TOO_FAR] = KOTA_GROUND_IS_TOO_FAR,
    };
    struct kota_ground_contact out = {
        .floor = surface_of(contacts->has_floor, &contacts->floor),
        .ceiling = surface_of(contacts->has_ceiling, &contacts->ceiling),
        .locale = locale,
        .status = statuses[contacts->status],
    };

    put_vec3(out.placed, GROUND_NOWHERE);
    return out;
}

struct kota_ground_contact ground_contact_absent(void)
{
    static const struct contacts none = {.has_floor = false};
    struct kota_ground_contact out = ground_contact(&none, NULL);

    out.status = KOTA_GROUND_IS_ABSENT;
    return out;
}

bool kota_ground_contacts(const struct kota_ground_locale *locale, const char *layer,
                          const struct kota_ground_reach *reach, const double *xyz, size_t count,
                          struct kota_ground_contact *contacts, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;
    struct ground_terms terms;

    if (locale_choose(locale->locale, layer, &choice, &err) || !ground_terms(reach, &terms, &err) ||
        !ground_finite(xyz, count, 3, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++) {
        struct vec3 point = get_vec3(xyz + 3 * i);
        struct contacts found;

        if (is_absent_along_gravity(locale, &choice, point)) {
            contacts[i] = ground_contact_absent();
            continue;
        }
        locale_contact(&choice, point, terms.reach, &found);
        contacts[i] = ground_contact(&found, locale->locale->id);
        if (terms.has_clearance && found.has_floor)
            put_vec3(contacts[i].placed,
                     contact_place(&found.floor, locale_gravity(locale->locale, point), point,
                                   &terms.clearance));
    }
    return true;
}

bool kota_ground_contained(const struct kota_ground_locale *locale, const char *layer,
                           const double *xyz, size_t count, uint8_t *bits,
                           struct kota_ground_error *error)
{
    static const uint8_t statuses[] = {
        [CONTAINED_INSIDE] = KOTA_GROUND_INSIDE,
        [CONTAINED_BELOW] = 0,
        [CONTAINED_HOLE] = KOTA_GROUND_OVER_HOLE,
        [CONTAINED_OUTSIDE] = KOTA_GROUND_OUTSIDE_OF_ALL,
    };
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;

    if (locale_choose(locale->locale, layer, &choice, &err) || !ground_finite(xyz, count, 3, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++) {
        struct vec3 point = get_vec3(xyz + 3 * i);
        bool has_floor, has_ceiling;

        if (is_absent_along_gravity(locale, &choice, point)) {
            bits[i] = KOTA_GROUND_ABSENT;
            continue;
        }
        bits[i] = statuses[locale_contains(&choice, point, &has_floor, &has_ceiling)];
        bits[i] |= (uint8_t)((has_floor ? KOTA_GROUND_HAS_FLOOR : 0) |
                             (has_ceiling ? KOTA_GROUND_HAS_CEILING : 0));
    }
    return true;
}

/* ---- picking --------------------------------------------------------------------------------- */

/* The view with its pixel; false and the error where the camera cannot be. */
static bool pick_ray(const struct kota_ground_camera *camera, const double pixel[2],
                     struct ray *ray, struct err *err)
{
    const struct viewport viewport = {camera->viewport[0], camera->viewport[1], pixel[0], pixel[1]};
    struct camera view = {.eye = get_vec3(camera->eye),
                          .target = get_vec3(camera->target),
                          .up = get_vec3(camera->up),
                          .fov_y_deg = camera->fov_y_deg};

    if (pick_viewport_check(&viewport, err) || pick_pixel_check(&viewport, err))
        return false;
    if (camera->is_matrix)
        return pick_unproject_ray(camera->inverse_view_projection, (enum depth_range)camera->depth,
                                  &viewport, ray, err) == ERR_OK;
    if (isnan(view.up.x))
        view.up = pick_default_up(&view);
    return pick_camera_check(&view, err) == ERR_OK &&
           pick_camera_ray(&view, &viewport, ray, err) == ERR_OK;
}

static bool check_camera(const struct kota_ground_camera *camera, struct err *err)
{
    if (camera->depth > KOTA_GROUND_REVERSED) {
        err_set(err, ERR_BAD_INPUT, "there is no such range of depth");
        err_at(err, "/depth");
        return false;
    }
    if (camera->tile_side > HEIGHTFIELD_SIDE_MAX) {
        err_limit(err, ERR_BAD_INPUT, HEIGHTFIELD_SIDE_MAX, camera->tile_side,
                  "tile_side is %u, it may be %d", camera->tile_side, HEIGHTFIELD_SIDE_MAX);
        err_at(err, "/tile_side");
        return false;
    }
    if (camera->is_matrix)
        return ground_finite(camera->inverse_view_projection, 1, 16, err);
    return ground_finite(camera->eye, 1, 3, err) && ground_finite(camera->target, 1, 3, err);
}

static struct kota_ground_picked picked_of(const struct kota_ground_locale *locale,
                                           const struct layer_choice *choice, const struct ray *ray,
                                           uint32_t side)
{
    struct kota_ground_picked out = {.has_tile = false};
    const struct logical_tile none = {.center = GROUND_NOWHERE,
                                      .bounds = {GROUND_NOWHERE, GROUND_NOWHERE}};
    struct logical_tile tile = none;
    struct locale_hit hit;
    bool is_hit = locale_ray(choice, ray, RAY_CLOSEST, &hit, NULL);
    enum kota_ground_ray_status status = is_hit ? KOTA_GROUND_RAY_HIT : KOTA_GROUND_RAY_MISS;

    if (is_absent_along_ray(locale, choice, ray, is_hit ? hit.at.t : ray->t_max))
        status = KOTA_GROUND_RAY_ABSENT;
    if (status == KOTA_GROUND_RAY_HIT && hit.layer->kind == LAYER_HEIGHTFIELD) {
        pick_logical_tile(hit.layer->field, hit.at.cell, side > 0 ? side : 1, &tile);
        if (is_absent_tile(locale, hit.layer, &tile)) {
            status = KOTA_GROUND_RAY_ABSENT;
            tile = none;
        }
    }
    out.hit = ground_hit(status, NULL, &hit, locale->locale->id);
    out.has_tile = out.hit.has_cell;
    out.tile_column = tile.column;
    out.tile_row = tile.row;
    out.tile_side = tile.side;
    put_vec3(out.tile_center, tile.center);
    put_vec3(out.tile_min, tile.bounds.min);
    put_vec3(out.tile_max, tile.bounds.max);
    return out;
}

bool kota_ground_picks(const struct kota_ground_locale *locale, const char *layer,
                       const struct kota_ground_camera *camera, const double *pixels, size_t count,
                       struct kota_ground_picked *picked, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;
    struct ray ray;

    if (locale_choose(locale->locale, layer, &choice, &err) || !check_camera(camera, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++) {
        if (!pick_ray(camera, pixels + 2 * i, &ray, &err))
            return ground_fail(error, &err);
        picked[i] = picked_of(locale, &choice, &ray, camera->tile_side);
    }
    return true;
}
