/*
 * Questions over the layers of a locale.
 *
 * Each layer answers for itself (server/terrain); here the answers are brought together: the
 * nearest of several hits, the highest floor, the lowest ceiling. Every layer is asked with the ray
 * as it came: one that was shortened to the nearest hit so far would save time, but give a t that
 * differs in its last bit from what the layer answers alone.
 * Contact under gravity -Z asks each heightfield for its height: a heightfield has one surface over
 * a point, so floor and ceiling are a comparison. Under another gravity a line can meet one
 * heightfield several times, and a ray along gravity, and one against it, find the nearest meeting
 * on either side; the ray upwards starts a hair above the floor, since the ceiling is above it.
 * The plane under a footprint is fitted about the points' mean, in axes of which one is "up"; the
 * normal equations are 2×2 then.
 * Source: J. Barrus and R. Waters, "QOTA", 1996 (text Q): floors, ceilings, containment, footprint.
 */
#include "world/query.h"

#include <stdlib.h>
#include <string.h>

/* How far above a floor its ceiling begins, relative to the coordinates: float64's own precision
 * after a ray's arithmetic. Only for gravity other than -Z. */
#define ABOVE_FLOOR_RELATIVE 1e-9

enum err_code locale_choose(const struct locale *locale, const char *layer_id,
                            struct layer_choice *out, struct err *err)
{
    *out = (struct layer_choice){locale, locale->layers, locale->layer_count};
    if (!layer_id)
        return ERR_OK;
    for (size_t i = 0; i < locale->layer_count; i++) {
        if (strcmp(locale->layers[i]->id, layer_id) == 0) {
            out->layers = locale->layers + i;
            out->count = 1;
            return ERR_OK;
        }
    }
    err_set(err, ERR_UNPROCESSABLE, "there is no layer \"%.64s\" in locale %s", layer_id,
            locale->id);
    return err_at(err, "/layer");
}

enum err_code locale_choose_field(const struct locale *locale, const char *layer_id,
                                  const struct layer **out, struct err *err)
{
    struct layer_choice choice;

    if (locale_choose(locale, layer_id, &choice, err))
        return err->code;
    if (choice.count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "locale %s has no heightfield", locale->id);
    if (choice.count > 1) {
        err_set(err, ERR_UNPROCESSABLE, "locale %s has %zu heightfields: choose one with `layer`",
                locale->id, choice.count);
        return err_at(err, "/layer");
    }
    *out = choice.layers[0];
    return ERR_OK;
}

static struct vec3 against(struct vec3 normal, struct vec3 gravity)
{
    return vec3_dot(normal, gravity) > 0 ? vec3_opposite(normal) : normal;
}

bool locale_ray(const struct layer_choice *choice, const struct ray *ray, enum ray_mode mode,
                struct locale_hit *out, struct ray_trace *trace)
{
    bool is_hit = false;

    for (size_t i = 0; i < choice->count; i++) {
        struct ray_hit hit;

        if (!heightfield_ray(choice->layers[i]->field, ray, mode, &hit, trace))
            continue;
        if (is_hit && hit.t >= out->at.t)
            continue;
        is_hit = true;
        out->at = hit;
        out->at.normal = against(hit.normal, choice->locale->manifest.gravity);
        out->layer = choice->layers[i];
        if (mode == RAY_ANY)
            break;
    }
    return is_hit;
}

bool locale_line_of_sight(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                          struct locale_hit *blocker)
{
    bool is_visible = true;

    for (size_t i = 0; i < choice->count; i++) {
        struct ray_hit hit;

        if (heightfield_line_of_sight(choice->layers[i]->field, from, to, &hit))
            continue;
        if (!is_visible && hit.t >= blocker->at.t)
            continue;
        is_visible = false;
        blocker->at = hit;
        blocker->at.normal = against(hit.normal, choice->locale->manifest.gravity);
        blocker->layer = choice->layers[i];
    }
    return is_visible;
}

/* ---- contact ----------------------------------------------------------------------------------
 */

static double slope_deg(struct vec3 normal, struct vec3 gravity)
{
    double along = -vec3_dot(normal, gravity);
    double across = vec3_length(vec3_cross(normal, gravity));

    return atan2(across, along) * (180 / M_PI);
}

/* Is the point over (or under) the rectangle that all layers together cover? */
static bool is_over_extents(const struct layer_choice *choice, struct vec3 p)
{
    struct box3 all = {{INFINITY, INFINITY, 0}, {-INFINITY, -INFINITY, 0}};

    for (size_t i = 0; i < choice->count; i++) {
        struct box3 box;

        heightfield_bounds(choice->layers[i]->field, &box);
        all.min.x = fmin(all.min.x, box.min.x);
        all.min.y = fmin(all.min.y, box.min.y);
        all.max.x = fmax(all.max.x, box.max.x);
        all.max.y = fmax(all.max.y, box.max.y);
    }
    return p.x >= all.min.x && p.x <= all.max.x && p.y >= all.min.y && p.y <= all.max.y;
}

static struct contact contact_of_ground(const struct layer *layer, struct vec3 point,
                                        const struct ground_point *ground, struct vec3 gravity)
{
    struct contact contact = {.layer = layer, .cell = {ground->cell[0], ground->cell[1]}};

    contact.point = (struct vec3){point.x, point.y, ground->height_m};
    contact.distance_m = fabs(point.z - ground->height_m);
    contact.normal = against(ground->normal, gravity);
    contact.slope_deg = slope_deg(contact.normal, gravity);
    return contact;
}

/* Gravity is -Z. */
static void contact_by_height(const struct layer_choice *choice, struct vec3 point,
                              double reach_up_m, struct contacts *out)
{
    struct vec3 gravity = choice->locale->manifest.gravity;
    struct vec2 at = {point.x, point.y};
    double lifted = point.z + reach_up_m;

    for (int pass = 0; pass < 2; pass++) { /* floors first: a ceiling is above the floor */
        for (size_t i = 0; i < choice->count; i++) {
            const struct layer *layer = choice->layers[i];
            struct ground_point ground;
            double h;

            heightfield_height(layer->field, at, INTERPOLATION_TRIANGLE, &ground);
            h = ground.height_m;
            if (ground.status != GROUND_OK)
                continue;
            if (pass == 0 && h <= lifted && layer->role == LAYER_GROUND &&
                (!out->has_floor || h > out->floor.point.z)) {
                out->has_floor = true;
                out->floor = contact_of_ground(layer, point, &ground, gravity);
            }
            if (pass == 1 && h >= lifted && (!out->has_floor || h > out->floor.point.z) &&
                (!out->has_ceiling || h < out->ceiling.point.z)) {
                out->has_ceiling = true;
                out->ceiling = contact_of_ground(layer, point, &ground, gravity);
            }
        }
    }
}

/* How far `box` reaches from p along a unit vector, at least 0. */
static double reach_of_box(const struct box3 *box, struct vec3 p, struct vec3 along)
{
    struct vec3 corner = {along.x > 0 ? box->max.x : box->min.x,
                          along.y > 0 ? box->max.y : box->min.y,
                          along.z > 0 ? box->max.z : box->min.z};

    return fmax(0, vec3_dot(vec3_sub(corner, p), along));
}

/* Does the endless line through p along d meet the box? (slabs) */
static bool line_meets_box(const struct box3 *box, struct vec3 p, struct vec3 d)
{
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    const double from[3] = {p.x, p.y, p.z}, to[3] = {d.x, d.y, d.z};
    double enter = -INFINITY, leave = INFINITY;

    for (int i = 0; i < 3; i++) {
        double a, b;

        if (to[i] == 0) {
            if (from[i] < low[i] || from[i] > high[i])
                return false;
            continue;
        }
        a = (low[i] - from[i]) / to[i];
        b = (high[i] - from[i]) / to[i];
        enter = fmax(enter, fmin(a, b));
        leave = fmin(leave, fmax(a, b));
    }
    return enter <= leave;
}

static struct contact contact_of_hit(const struct locale_hit *hit, struct vec3 point,
                                     struct vec3 gravity)
{
    struct contact contact = {.point = hit->at.point, .normal = hit->at.normal};

    contact.distance_m = fabs(vec3_dot(vec3_sub(hit->at.point, point), gravity));
    contact.slope_deg = slope_deg(hit->at.normal, gravity);
    contact.cell[0] = hit->at.cell[0];
    contact.cell[1] = hit->at.cell[1];
    contact.layer = hit->layer;
    return contact;
}

/* Any other gravity. Every layer is ground here: heightfields have no other role. */
static void contact_by_ray(const struct layer_choice *choice, struct vec3 point, double reach_up_m,
                           struct contacts *out)
{
    struct vec3 gravity = choice->locale->manifest.gravity;
    struct vec3 up = vec3_opposite(gravity);
    const struct box3 *box = &choice->locale->bounds;
    double lift = fmin(reach_up_m, reach_of_box(box, point, up) + 1);
    struct vec3 lifted = vec3_add(point, vec3_scale(up, lift));
    struct ray ray = {lifted, gravity, INFINITY};
    double scale = fmax(1, vec3_length(lifted)) * ABOVE_FLOOR_RELATIVE;
    struct locale_hit hit;

    out->has_floor = locale_ray(choice, &ray, RAY_CLOSEST, &hit, NULL);
    if (out->has_floor)
        out->floor = contact_of_hit(&hit, point, gravity);
    ray.direction = up;
    if (out->has_floor && hit.at.t <= scale)
        ray.origin = vec3_add(lifted, vec3_scale(up, scale));
    out->has_ceiling = locale_ray(choice, &ray, RAY_CLOSEST, &hit, NULL);
    if (out->has_ceiling)
        out->ceiling = contact_of_hit(&hit, point, gravity);
}

static bool is_minus_z(struct vec3 gravity)
{
    return gravity.x == 0 && gravity.y == 0 && gravity.z == -1;
}

void locale_contact(const struct layer_choice *choice, struct vec3 point, double reach_up_m,
                    struct contacts *out)
{
    const struct locale *locale = choice->locale;
    bool is_vertical = is_minus_z(locale->manifest.gravity);
    bool is_inside;

    memset(out, 0, sizeof *out);
    if (is_vertical)
        contact_by_height(choice, point, reach_up_m, out);
    else
        contact_by_ray(choice, point, reach_up_m, out);
    if (out->has_floor || out->has_ceiling) {
        out->status = GROUND_OK;
        return;
    }
    is_inside = is_vertical ? is_over_extents(choice, point)
                            : locale->has_bounds &&
                                  line_meets_box(&locale->bounds, point, locale->manifest.gravity);
    out->status = is_inside ? GROUND_HOLE : GROUND_OUTSIDE;
}

bool locale_contains(const struct layer_choice *choice, struct vec3 point, bool *has_floor,
                     bool *has_ceiling)
{
    struct contacts contacts;

    locale_contact(choice, point, 0, &contacts);
    *has_floor = contacts.has_floor;
    *has_ceiling = contacts.has_ceiling;
    return contacts.has_floor && (choice->locale->manifest.open_sky || contacts.has_ceiling);
}

/* ---- footprints -------------------------------------------------------------------------------
 */

/* Two unit vectors across `up`; for +Z they are X and Y. */
static void axes_across(struct vec3 up, struct vec3 *u, struct vec3 *v)
{
    struct vec3 x = fabs(up.x) < 0.9 ? (struct vec3){1, 0, 0} : (struct vec3){0, 1, 0};

    *u = vec3_unit(vec3_sub(x, vec3_scale(up, vec3_dot(x, up))));
    *v = vec3_cross(up, *u);
}

static struct vec3 mean_of(const struct vec3 *points, size_t count)
{
    struct vec3 sum = {0, 0, 0};

    for (size_t i = 0; i < count; i++)
        sum = vec3_add(sum, points[i]);
    return vec3_scale(sum, 1 / (double)count);
}

/* height = a·u + b·v about the mean; false when u and v of the points are (nearly) on a line. */
static bool fit(const struct vec3 *points, size_t count, struct vec3 mean, struct vec3 up,
                struct vec3 *normal)
{
    struct vec3 u, v;
    double uu = 0, uv = 0, vv = 0, uh = 0, vh = 0, determinant;

    axes_across(up, &u, &v);
    for (size_t i = 0; i < count; i++) {
        struct vec3 p = vec3_sub(points[i], mean);
        double pu = vec3_dot(p, u), pv = vec3_dot(p, v), ph = vec3_dot(p, up);

        uu += pu * pu;
        uv += pu * pv;
        vv += pv * pv;
        uh += pu * ph;
        vh += pv * ph;
    }
    determinant = uu * vv - uv * uv;
    if (!(determinant > 1e-12 * (uu + vv) * (uu + vv)))
        return false;
    double a = (uh * vv - vh * uv) / determinant, b = (vh * uu - uh * uv) / determinant;

    *normal = vec3_unit(vec3_sub(up, vec3_add(vec3_scale(u, a), vec3_scale(v, b))));
    return true;
}

bool plane_through(const struct vec3 *points, size_t count, struct vec3 up, struct plane *out)
{
    struct vec3 mean, normal;

    if (count < 3)
        return false;
    mean = mean_of(points, count);
    if (!fit(points, count, mean, up, &normal))
        return false;
    if (count == 3) { /* the exact one: a cross product has no rounding of sums */
        normal =
            vec3_unit(vec3_cross(vec3_sub(points[1], points[0]), vec3_sub(points[2], points[0])));
        if (vec3_dot(normal, up) < 0)
            normal = vec3_opposite(normal);
        mean = points[0];
    }
    *out = (struct plane){normal, 0 - vec3_dot(normal, mean)};
    return true;
}
