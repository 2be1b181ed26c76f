/*
 * Questions over the layers of a locale.
 *
 * Each layer answers for itself (server/terrain); here the answers are combined: the nearest of
 * several hits, the highest floor, the lowest ceiling. Every layer gets the whole ray: a ray that
 * is shortened to the nearest hit so far would save time, but its t could differ in the last bit
 * from the layer's own answer. Contact compares levels: heights against gravity, which under -Z are
 * exactly z. A mesh is built for the locale's gravity and searched along it. A heightfield under -Z
 * is sampled: it has one surface over a point, so floor and ceiling are a comparison. Under another
 * gravity a line can meet one heightfield several times; a ray along gravity and one against it
 * find the nearest meeting on either side. The ray upwards starts floor_epsilon_m above the floor,
 * since the ceiling is above it.
 *
 * An end of a sight line that touches a mesh is on top of it. If only one end does, it may also be
 * seen from below, as on heightfields (terrain/sight.c); two feet on either side of a hill do not
 * see each other. Polygons do not show whether the space below them is the inside of a hill or the
 * room under a bridge. Between two ends on polygons it is a room when the polygon of one end, or
 * its neighbours no higher than its plane, are over the other end. Vertical polygons have no top:
 * hits within a quarter of the end tolerance are ignored, so that a line may begin and end on a
 * wall.
 *
 * The plane under a footprint is fitted about the points' mean, in axes of which one is "up"; the
 * normal equations are 2×2 then.
 * Source: J. Barrus and R. Waters, "QOTA", 1996 (text Q): floors, ceilings, containment, footprint.
 */
#include "world/ask/query.h"

#include "terrain/trig.h"
#include "world/ask/layer_ask.h"
#include "world/values/bounding_sphere.h"

#include <stdlib.h>
#include <string.h>

/* How far above a floor its ceiling begins, relative to the coordinates: float64's own precision
 * after a ray's arithmetic. For heightfields, under a gravity other than -Z or over polygons. */
#define FLOOR_EPSILON_RELATIVE 1e-9

static struct vec3 against(struct vec3 normal, struct vec3 gravity)
{
    return vec3_dot(normal, gravity) > 0 ? vec3_opposite(normal) : normal;
}

/* ---- choosing -------------------------------------------------------------------------------- */

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
    return locale_no_layer(locale, layer_id, ERR_LAYER_UNKNOWN_OPTION, err);
}

enum err_code locale_choose_field(const struct locale *locale, const char *layer_id,
                                  const struct layer **out, struct err *err)
{
    struct layer_choice choice;
    size_t fields = 0;

    if (locale_choose(locale, layer_id, &choice, err))
        return err->code;
    for (size_t i = 0; i < choice.count; i++) {
        if (choice.layers[i]->kind == LAYER_HEIGHTFIELD && fields++ == 0)
            *out = choice.layers[i];
    }
    if (fields == 1)
        return ERR_OK;
    if (fields == 0 && !layer_id)
        err_set(err, ERR_NO_HEIGHTFIELD, "locale %s has no heightfield%s", locale->id,
                locale->layer_count ? "; it has meshes: ask for contact" : "; it has no layers");
    else if (fields == 0)
        err_set(err, ERR_LAYER_KIND, "layer %s of locale %s is a mesh, not a heightfield", layer_id,
                locale->id);
    else
        err_set(err, ERR_LAYER_AMBIGUOUS, "locale %s has %zu heightfields: choose one with `layer`",
                locale->id, fields);
    return err_at(err, "/layer");
}

static bool has_ground_mesh(const struct layer_choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        if (choice->layers[i]->kind == LAYER_MESH && choice->layers[i]->role == LAYER_GROUND)
            return true;
    return false;
}

enum err_code locale_choose_ground(const struct locale *locale, const char *layer_id,
                                   struct layer_choice *out, struct err *err)
{
    const struct layer *ignored;
    size_t fields = 0, field = 0;

    if (locale_choose(locale, layer_id, out, err))
        return err->code;
    if (locale_space(locale).frame != MESH_CARTESIAN)
        return err_set_at(err, ERR_NO_HEIGHTFIELD, "locale",
                          "heights are along Z, and gravity in locale %s is %s: ask for contact",
                          locale->id,
                          locale_space(locale).frame == MESH_SPHERICAL
                              ? "along the lines through its origin (frame=spherical)"
                              : "along the lines through its Z axis (frame=cylindrical)");
    for (size_t i = 0; i < out->count; i++) {
        if (out->layers[i]->kind == LAYER_HEIGHTFIELD) {
            fields++;
            field = i;
        }
    }
    if (fields == 1) {
        out->layers += field;
        out->count = 1;
        return ERR_OK;
    }
    if (fields == 0 && has_ground_mesh(out)) {
        if (gravity_is_minus_z(locale->manifest.gravity))
            return ERR_OK;
        return err_set_at(err, ERR_NO_HEIGHTFIELD, "locale",
                          "heights are along Z, and gravity in locale %s is not: ask for contact",
                          locale->id);
    }
    if (fields == 0 && layer_id)
        return err_set_at(err, ERR_LAYER_KIND, "/layer",
                          "layer %s of locale %s is a ceiling and has no ground", layer_id,
                          locale->id);
    return locale_choose_field(locale, layer_id, &ignored, err); /* sets the reason */
}

/* ---- heights --------------------------------------------------------------------------------- */

/* The box of all chosen layers; with none it has no inside. */
static struct box3 choice_bounds(const struct layer_choice *choice)
{
    struct box3 all = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    for (size_t i = 0; i < choice->count; i++) {
        struct box3 box;

        layer_bounds(choice->layers[i], &box);
        all = box3_union(all, box);
    }
    return all;
}

static bool is_over_extents(const struct layer_choice *choice, struct vec2 p)
{
    struct box3 all = choice_bounds(choice);

    return p.x >= all.min.x && p.x <= all.max.x && p.y >= all.min.y && p.y <= all.max.y;
}

static void height_of_meshes(const struct layer_choice *ground, struct vec2 at,
                             struct ground_point *out)
{
    const struct vec3 point = {at.x, at.y, 0};

    *out = (struct ground_point){.status = GROUND_HOLE, .height_m = NAN, .triangle = -1};
    out->normal = (struct vec3){NAN, NAN, NAN};
    for (size_t i = 0; i < ground->count; i++) {
        const struct layer *layer = ground->layers[i];
        struct mesh_contact top;

        if (layer->role != LAYER_GROUND || !layer_mesh_floor(layer, point, INFINITY, &top) ||
            (out->status == GROUND_OK && top.point.z <= out->height_m))
            continue;
        out->status = GROUND_OK;
        out->height_m = top.point.z;
        out->normal = top.normal;
        out->triangle = 0;
    }
    if (out->status != GROUND_OK && !is_over_extents(ground, at))
        out->status = GROUND_OUTSIDE;
}

void locale_height(const struct layer_choice *ground, struct vec2 at,
                   enum interpolation interpolation, struct ground_point *out)
{
    if (ground->layers[0]->kind == LAYER_MESH) {
        height_of_meshes(ground, at, out);
        return;
    }
    heightfield_height(ground->layers[0]->field, at, interpolation, out);
    out->normal = against(out->normal, ground->locale->manifest.gravity);
}

void locale_height_prefetch(const struct layer_choice *ground, struct vec2 at)
{
    if (ground->layers[0]->kind == LAYER_HEIGHTFIELD)
        heightfield_prefetch(ground->layers[0]->field, at);
}

void locale_heights(const struct layer_choice *ground, const struct vec2 *points, size_t count,
                    enum interpolation interpolation, struct ground_point *out)
{
    if (ground->layers[0]->kind == LAYER_HEIGHTFIELD)
        for (size_t i = 0; i < count; i++)
            heightfield_prefetch(ground->layers[0]->field, points[i]);
    for (size_t i = 0; i < count; i++)
        locale_height(ground, points[i], interpolation, &out[i]);
}

enum { TOGETHER = 64 }; /* of a batch; their data stays in the first-level cache */

/* The topmost ground of several meshes, as height_of_meshes finds it. */
static void heights_of_meshes(const struct layer_choice *ground, const struct vec2 *points,
                              size_t count, struct ground_height *out)
{
    struct vec3 places[TOGETHER];
    struct mesh_height tops[TOGETHER];

    for (size_t i = 0; i < count; i++) {
        places[i] = (struct vec3){points[i].x, points[i].y, 0};
        out[i] = (struct ground_height){NAN, GROUND_HOLE};
    }
    for (size_t k = 0; k < ground->count; k++) {
        if (ground->layers[k]->role != LAYER_GROUND)
            continue;
        layer_mesh_heights(ground->layers[k], places, count, tops);
        for (size_t i = 0; i < count; i++)
            if (tops[i].polygon != MESH_NO_POLYGON &&
                (out[i].status != GROUND_OK || tops[i].height_m > out[i].height_m))
                out[i] = (struct ground_height){tops[i].height_m, GROUND_OK};
    }
    for (size_t i = 0; i < count; i++)
        if (out[i].status != GROUND_OK && !is_over_extents(ground, points[i]))
            out[i].status = GROUND_OUTSIDE;
}

void locale_heights_only(const struct layer_choice *ground, const struct vec2 *points, size_t count,
                         enum interpolation interpolation, struct ground_height *out)
{
    const struct layer *layer = ground->layers[0];

    if (layer->kind == LAYER_HEIGHTFIELD && count == 1) { /* as many as a vector has lanes */
        out[0] = heightfield_interpolate(layer->field, points[0], interpolation);
        return;
    }
    if (layer->kind == LAYER_HEIGHTFIELD) {
        heightfield_heights(layer->field, points, count, interpolation, out);
        return;
    }
    for (size_t i = 0; i < count; i += TOGETHER)
        heights_of_meshes(ground, points + i, count - i < TOGETHER ? count - i : TOGETHER, out + i);
}

void locale_heights_plain(const struct layer_choice *ground, const struct vec2 *points,
                          size_t count, enum interpolation interpolation, double *heights_m)
{
    struct ground_height out[TOGETHER];

    if (ground->layers[0]->kind == LAYER_HEIGHTFIELD) {
        heightfield_heights_plain(ground->layers[0]->field, points, count, interpolation,
                                  heights_m);
        return;
    }
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

        heights_of_meshes(ground, points + i, some, out);
        for (size_t k = 0; k < some; k++)
            heights_m[i + k] = out[k].height_m;
    }
}

/* ---- rays ------------------------------------------------------------------------------------ */

static struct locale_hit hit_on_field(const struct layer *layer, const struct ray_hit *hit,
                                      struct vec3 gravity)
{
    struct locale_hit out = {.at = *hit, .layer = layer};

    out.at.normal = against(hit->normal, gravity);
    return out;
}

struct locale_hit locale_hit_on_mesh(const struct layer *layer, const struct mesh_hit *hit)
{
    return (struct locale_hit){
        .at = {.t = hit->t, .point = hit->point, .normal = hit->normal, .triangle = -1},
        .polygon = hit->polygon,
        .layer = layer,
        .velocity = layer_velocity(layer, hit->point),
    };
}

/* The ball around a body; its gravity is the locale's at a point. */
static struct bounding_sphere ball_of(const struct layer *layer, struct vec3 gravity)
{
    return (struct bounding_sphere){layer->body.middle, gravity, layer->body.ball_m,
                                    layer->body.ball_m};
}

/* False where the ray misses the ball around a body, of which there may be many. */
static bool may_meet(const struct layer *layer, const struct ray *ray)
{
    const struct bounding_sphere ball = ball_of(layer, (struct vec3){0, 0, 0});
    struct bounding_sphere_ray line;

    if (layer->body.patch == 0)
        return true;
    line = bounding_sphere_ray_of(ray);
    return bounding_sphere_meets_ray(&ball, &line);
}

static bool layer_ray(const struct layer *layer, struct vec3 gravity, const struct ray *ray,
                      enum ray_mode mode, struct locale_hit *out, struct ray_trace *trace)
{
    struct ray_hit on_field;
    struct mesh_hit on_mesh;

    if (layer->kind == LAYER_MESH) {
        if (!may_meet(layer, ray) || !layer_mesh_ray(layer, ray, mode, &on_mesh))
            return false;
        *out = locale_hit_on_mesh(layer, &on_mesh);
        return true;
    }
    if (!heightfield_ray(layer->field, ray, mode, &on_field, trace))
        return false;
    *out = hit_on_field(layer, &on_field, gravity);
    return true;
}

bool locale_ray(const struct layer_choice *choice, const struct ray *ray, enum ray_mode mode,
                struct locale_hit *out, struct ray_trace *trace)
{
    bool is_hit = false;

    for (size_t i = 0; i < choice->count; i++) {
        struct locale_hit hit;

        if (!layer_ray(choice->layers[i], choice->locale->manifest.gravity, ray, mode, &hit,
                       trace) ||
            (is_hit && hit.at.t >= out->at.t))
            continue;
        is_hit = true;
        *out = hit;
        if (ray_takes_any(mode))
            break;
    }
    return is_hit;
}

static void layer_rays_on_mesh(const struct layer *layer, const struct ray *rays, size_t count,
                               enum ray_mode mode, struct locale_hit *out)
{
    struct mesh_hit hits[TOGETHER];

    layer_mesh_rays(layer, rays, count, mode, hits);
    for (size_t i = 0; i < count; i++)
        if (hits[i].t < INFINITY)
            out[i] = locale_hit_on_mesh(layer, &hits[i]);
        else
            out[i].at.t = INFINITY;
}

/* Up to TOGETHER rays against one layer; hits as in locale_rays. */
static void layer_rays(const struct layer *layer, struct vec3 gravity, const struct ray *rays,
                       size_t count, enum ray_mode mode, struct locale_hit *out)
{
    struct ray_hit hits[TOGETHER];

    if (layer->body.patch != 0) {
        for (size_t i = 0; i < count; i++)
            if (!layer_ray(layer, gravity, &rays[i], mode, &out[i], NULL))
                out[i].at.t = INFINITY;
        return;
    }
    if (layer->kind == LAYER_MESH) {
        layer_rays_on_mesh(layer, rays, count, mode, out);
        return;
    }
    heightfield_rays(layer->field, rays, count, hits);
    for (size_t i = 0; i < count; i++)
        if (hits[i].t < INFINITY)
            out[i] = hit_on_field(layer, &hits[i], gravity);
        else
            out[i].at.t = INFINITY;
}

static void rays_together(const struct layer_choice *choice, const struct ray *rays, size_t count,
                          enum ray_mode mode, struct locale_hit *out)
{
    struct locale_hit hits[TOGETHER];

    for (size_t i = 0; i < count; i++)
        out[i].at.t = INFINITY;
    for (size_t k = 0; k < choice->count; k++) {
        layer_rays(choice->layers[k], choice->locale->manifest.gravity, rays, count, mode,
                   k == 0 ? out : hits);
        for (size_t i = 0; k > 0 && i < count; i++)
            if (ray_takes_any(mode) ? out[i].at.t == INFINITY : hits[i].at.t < out[i].at.t)
                out[i] = hits[i];
    }
}

void locale_rays(const struct layer_choice *choice, const struct ray *rays, size_t count,
                 enum ray_mode mode, struct locale_hit *out)
{
    for (size_t i = 0; i < count; i += TOGETHER)
        rays_together(choice, rays + i, count - i < TOGETHER ? count - i : TOGETHER, mode, out + i);
}

/*
 * Is `other` on the lower side of the ground that was met at `on`: below its plane, with a surface
 * overhead that is no higher? A point across a ridge is below the plane of this side, too, but has
 * nothing overhead.
 */
static bool is_underneath(const struct layer *layer, struct vec3 other, double tolerance,
                          const struct mesh_contact *on)
{
    struct mesh_contact over;

    return vec3_dot(vec3_sub(other, on->point), on->normal) < -tolerance &&
           layer_own_ceiling(layer, other, tolerance, 0, &over) &&
           vec3_dot(vec3_sub(over.point, on->point), on->normal) <= tolerance;
}

/* An end of a sight line: where it is, and how far it is moved along `up` when it is on a polygon.
 */
struct sight_end {
    struct vec3 point, up;
    double tolerance; /* how near a surface it is on it; by its height, as on heightfields */
    double by;        /* 0 when it is on no polygon */
};

static struct sight_end sight_end(const struct layer *layer, struct vec3 point, struct vec3 other)
{
    struct sight_end end = {.point = point, .up = vec3_opposite(layer_own_down(layer, point))};
    struct mesh_contact on;

    end.tolerance = sight_end_tolerance(vec3_dot(point, end.up));
    if (!layer_own_floor(layer, point, end.tolerance, &on) || fabs(on.distance_m) > end.tolerance)
        return end;
    end.point = on.point;
    end.by = is_underneath(layer, other, end.tolerance, &on) ? -end.tolerance : end.tolerance;
    return end;
}

static bool mesh_is_free(const struct layer *layer, struct sight_end from, struct sight_end to,
                         struct mesh_hit *hit)
{
    struct vec3 start = vec3_add(from.point, vec3_scale(from.up, from.by));
    struct vec3 along = vec3_sub(vec3_add(to.point, vec3_scale(to.up, to.by)), start);
    double margin = fmax(from.tolerance, to.tolerance) / (4 * vec3_length(along));
    struct ray ray = {start, along, 1 - margin};

    if (!(margin < 0.5) || !ray_is_valid(&ray) || !mesh_ray(layer->mesh, &ray, RAY_CLOSEST, hit))
        return true;
    if (hit->t >= margin)
        return false;
    ray.origin = vec3_add(start, vec3_scale(along, margin)); /* it begins on a wall: the next hit */
    ray.t_max = 1 - 2 * margin;
    if (!mesh_ray(layer->mesh, &ray, RAY_CLOSEST, hit))
        return true;
    hit->t += margin;
    return false;
}

static bool mesh_line_of_sight(const struct layer *layer, struct vec3 from, struct vec3 to,
                               struct locale_hit *blocker)
{
    struct sight_end a = sight_end(layer, from, to), b = sight_end(layer, to, from);
    struct mesh_hit hit, below;

    if (mesh_is_free(layer, a, b, &hit))
        return true;
    *blocker = locale_hit_on_mesh(layer, &hit);
    if ((a.by != 0) == (b.by != 0))
        return false;
    a.by = -a.by;
    b.by = -b.by;
    return mesh_is_free(layer, a, b, &below);
}

/* A layer that was moved sees in its own frame. */
static bool moved_line_of_sight(const struct layer *layer, struct vec3 from, struct vec3 to,
                                struct locale_hit *blocker)
{
    const struct motion *motion = &layer->motion;

    if (mesh_line_of_sight(layer, motion_point_in(motion, from), motion_point_in(motion, to),
                           blocker))
        return true;
    blocker->at.point = motion_point_out(motion, blocker->at.point);
    blocker->at.normal = layer_normal_out(layer, blocker->at.normal, vec3_sub(to, from));
    blocker->velocity = layer_velocity(layer, blocker->at.point);
    return false;
}

static bool layer_line_of_sight(const struct layer *layer, struct vec3 gravity, struct vec3 from,
                                struct vec3 to, struct locale_hit *blocker)
{
    struct ray_hit hit;

    if (layer->kind == LAYER_MESH && layer->is_moved)
        return moved_line_of_sight(layer, from, to, blocker);
    if (layer->kind == LAYER_MESH)
        return mesh_line_of_sight(layer, from, to, blocker);
    if (heightfield_line_of_sight(layer->field, from, to, &hit))
        return true;
    *blocker = hit_on_field(layer, &hit, gravity);
    return false;
}

bool locale_line_of_sight(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                          struct locale_hit *blocker)
{
    bool is_visible = true;

    for (size_t i = 0; i < choice->count; i++) {
        struct locale_hit hit;

        if (layer_line_of_sight(choice->layers[i], choice->locale->manifest.gravity, from, to,
                                &hit) ||
            (!is_visible && hit.at.t >= blocker->at.t))
            continue;
        is_visible = false;
        *blocker = hit;
    }
    return is_visible;
}

/* ---- contact --------------------------------------------------------------------------------- */

/* One question for contact, the same for all layers. */
struct probe {
    const struct layer_choice *choice;
    struct vec3 point, gravity;
    double reach_up_m;
    bool is_vertical;   /* gravity is -Z */
    double lifted;      /* level of the lifted point; may be INFINITY */
    struct vec3 beyond; /* other gravity: where rays start, the lifted point or past everything */
};

/* Height against gravity; under -Z exactly z. */
static double level_of(struct vec3 p, struct vec3 gravity)
{
    return -vec3_dot(p, gravity);
}

static double floor_epsilon_m(struct vec3 p)
{
    return fmax(1, vec3_length(p)) * FLOOR_EPSILON_RELATIVE;
}

static double slope_deg(struct vec3 normal, struct vec3 gravity)
{
    double along = -vec3_dot(normal, gravity);
    double across = vec3_length(vec3_cross(normal, gravity));

    return trig_atan2(across, along) * (180 / M_PI);
}

static struct contact contact_of_height(const struct probe *probe, const struct layer *layer,
                                        const struct ground_point *ground)
{
    struct contact contact = {.layer = layer, .cell = {ground->cell[0], ground->cell[1]}};

    contact.point = (struct vec3){probe->point.x, probe->point.y, ground->height_m};
    contact.distance_m = fabs(probe->point.z - ground->height_m);
    contact.normal = against(ground->normal, probe->gravity);
    contact.slope_deg = slope_deg(contact.normal, probe->gravity);
    return contact;
}

static struct contact contact_of_hit(const struct probe *probe, const struct locale_hit *hit)
{
    struct contact contact = {.point = hit->at.point, .normal = hit->at.normal};

    contact.distance_m = fabs(vec3_dot(vec3_sub(hit->at.point, probe->point), probe->gravity));
    contact.slope_deg = slope_deg(hit->at.normal, probe->gravity);
    contact.cell[0] = hit->at.cell[0];
    contact.cell[1] = hit->at.cell[1];
    contact.layer = hit->layer;
    return contact;
}

static struct contact contact_of_polygon(const struct probe *probe, const struct layer *layer,
                                         const struct mesh_contact *on)
{
    return (struct contact){
        .point = on->point,
        .distance_m = fabs(on->distance_m),
        .normal = on->normal,
        .slope_deg = slope_deg(on->normal, probe->gravity),
        .polygon = on->polygon,
        .layer = layer,
        .velocity = layer_velocity(layer, on->point),
    };
}

/* A heightfield under -Z: its one surface over the point. */
static bool field_height(const struct probe *probe, const struct layer *layer, struct contact *out)
{
    const struct vec2 at = {probe->point.x, probe->point.y};
    struct ground_point ground;

    heightfield_height(layer->field, at, INTERPOLATION_TRIANGLE, &ground);
    if (ground.status != GROUND_OK)
        return false;
    *out = contact_of_height(probe, layer, &ground);
    return true;
}

static bool field_ray(const struct probe *probe, const struct layer *layer, struct vec3 origin,
                      struct vec3 direction, struct contact *out)
{
    const struct ray ray = {origin, direction, INFINITY};
    struct locale_hit hit;

    if (!layer_ray(layer, probe->gravity, &ray, RAY_CLOSEST, &hit, NULL))
        return false;
    *out = contact_of_hit(probe, &hit);
    return true;
}

/* False where the line of gravity misses the ball around a body. */
static bool may_be_over(const struct probe *probe, const struct layer *layer)
{
    const struct bounding_sphere ball = ball_of(layer, probe->gravity);

    return layer->body.patch == 0 || bounding_sphere_meets_gravity(&ball, probe->point);
}

static bool layer_floor(const struct probe *probe, const struct layer *layer, struct contact *out)
{
    struct mesh_contact on;

    if (layer->kind == LAYER_MESH) {
        if (!may_be_over(probe, layer) ||
            !layer_mesh_floor(layer, probe->point, probe->reach_up_m, &on))
            return false;
        *out = contact_of_polygon(probe, layer, &on);
        return true;
    }
    if (probe->is_vertical)
        return field_height(probe, layer, out) && out->point.z <= probe->lifted;
    return field_ray(probe, layer, probe->beyond, probe->gravity, out);
}

/* floor: the level of the floor that was found, or -INFINITY. */
static bool layer_ceiling(const struct probe *probe, const struct layer *layer, double floor,
                          struct contact *out)
{
    struct vec3 up = vec3_opposite(probe->gravity), origin = probe->beyond;
    struct mesh_contact on;

    if (layer->kind == LAYER_MESH) {
        if (!may_be_over(probe, layer) ||
            !layer_mesh_ceiling(layer, probe->point, floor - level_of(probe->point, probe->gravity),
                                probe->reach_up_m, &on))
            return false;
        *out = contact_of_polygon(probe, layer, &on);
        return true;
    }
    if (probe->is_vertical)
        return field_height(probe, layer, out) && out->point.z >= probe->lifted &&
               out->point.z > floor;
    if (floor >= level_of(origin, probe->gravity) - floor_epsilon_m(origin))
        origin = vec3_add(origin, vec3_scale(up, floor_epsilon_m(origin)));
    return field_ray(probe, layer, origin, up, out);
}

static void find_floor(const struct probe *probe, struct contacts *out)
{
    double best = -INFINITY;

    for (size_t i = 0; i < probe->choice->count; i++) {
        const struct layer *layer = probe->choice->layers[i];
        struct contact contact;

        if (layer->role != LAYER_GROUND || !layer_floor(probe, layer, &contact) ||
            !(level_of(contact.point, probe->gravity) > best))
            continue;
        best = level_of(contact.point, probe->gravity);
        out->has_floor = true;
        out->floor = contact;
    }
}

static void find_ceiling(const struct probe *probe, struct contacts *out)
{
    double floor = out->has_floor ? level_of(out->floor.point, probe->gravity) : -INFINITY;
    double best = INFINITY, epsilon_m = 0;

    /* a polygon on a heightfield is rounded in another way; meshes handle their own rounding */
    if (out->has_floor && out->floor.layer->kind == LAYER_MESH)
        epsilon_m = floor_epsilon_m(out->floor.point);
    for (size_t i = 0; i < probe->choice->count; i++) {
        const struct layer *layer = probe->choice->layers[i];
        double above = layer->kind == LAYER_MESH ? floor : floor + epsilon_m;
        struct contact contact;

        if (!layer_ceiling(probe, layer, above, &contact) ||
            !(level_of(contact.point, probe->gravity) < best))
            continue;
        best = level_of(contact.point, probe->gravity);
        out->has_ceiling = true;
        out->ceiling = contact;
    }
}

/* How far `box` reaches from p along a unit vector, at least 0. */
static double box_reach_along(const struct box3 *box, struct vec3 p, struct vec3 along)
{
    struct vec3 corner = {along.x > 0 ? box->max.x : box->min.x,
                          along.y > 0 ? box->max.y : box->min.y,
                          along.z > 0 ? box->max.z : box->min.z};

    return fmax(0, vec3_dot(vec3_sub(corner, p), along));
}

static struct probe probe_at(const struct layer_choice *choice, struct vec3 point,
                             double reach_up_m)
{
    const struct locale *locale = choice->locale;
    struct vec3 gravity = locale_gravity(locale, point), up = vec3_opposite(gravity);
    bool is_cartesian = locale_space(locale).frame == MESH_CARTESIAN;
    double lift = fmin(reach_up_m, box_reach_along(&locale->bounds, point, up) + 1);

    return (struct probe){
        .choice = choice,
        .point = point,
        .gravity = gravity,
        .reach_up_m = reach_up_m,
        .is_vertical = is_cartesian && gravity_is_minus_z(gravity),
        .lifted = level_of(point, gravity) + reach_up_m,
        .beyond = vec3_add(point, vec3_scale(up, lift)),
    };
}

/* Without a floor: why there is none. */
static enum contact_status status_without_floor(const struct probe *probe,
                                                const struct contacts *contacts)
{
    const struct layer_choice *choice = probe->choice;
    struct probe from_above = probe_at(choice, probe->point, INFINITY);
    struct contacts highest = {0};
    struct box3 bounds;

    find_floor(&from_above, &highest);
    if (highest.has_floor)
        return CONTACT_BELOW;
    bounds = choice_bounds(choice);
    return contacts->has_ceiling || locale_gravity_meets(choice->locale, probe->point, &bounds)
               ? CONTACT_HOLE
               : CONTACT_OUTSIDE;
}

void locale_contact(const struct layer_choice *choice, struct vec3 point,
                    struct contact_reach reach, struct contacts *out)
{
    const struct probe probe = probe_at(choice, point, reach.up_m);

    memset(out, 0, sizeof *out);
    find_floor(&probe, out);
    find_ceiling(&probe, out);
    if (!out->has_floor) {
        out->status = status_without_floor(&probe, out);
    } else if (out->floor.distance_m > reach.down_m &&
               level_of(out->floor.point, probe.gravity) < level_of(point, probe.gravity)) {
        out->status = CONTACT_TOO_FAR;
        out->has_floor = false;
    }
}

struct vec3 contact_place(const struct contact *floor, struct vec3 gravity, struct vec3 point,
                          const struct clearance *clearance)
{
    double above = vec3_dot(vec3_sub(floor->point, point), gravity);

    if (!clearance->is_exact && above >= clearance->above_m)
        return point;
    return vec3_sub(floor->point, vec3_scale(gravity, clearance->above_m));
}

enum contained locale_contains(const struct layer_choice *choice, struct vec3 point,
                               bool *has_floor, bool *has_ceiling)
{
    struct contacts contacts;

    locale_contact(choice, point, (struct contact_reach){0, INFINITY}, &contacts);
    *has_floor = contacts.has_floor;
    *has_ceiling = contacts.has_ceiling;
    switch (contacts.status) {
    case CONTACT_BELOW:
        return CONTAINED_BELOW;
    case CONTACT_HOLE:
        return CONTAINED_HOLE;
    case CONTACT_OK:
        return choice->locale->manifest.open_sky || contacts.has_ceiling ? CONTAINED_INSIDE
                                                                         : CONTAINED_OUTSIDE;
    case CONTACT_OUTSIDE:
    case CONTACT_TOO_FAR:
        break;
    }
    return CONTAINED_OUTSIDE;
}

bool locale_contains_above(const struct layer_choice *choice, struct vec3 point, double up_m)
{
    struct vec3 gravity = locale_gravity(choice->locale, point);
    struct contact_reach reach = {up_m, 0};
    struct contacts contacts;

    locale_contact(choice, point, reach, &contacts);
    if (!contacts.has_floor)
        return false;
    if (choice->locale->manifest.open_sky)
        return true;
    /* the ceiling over that floor; from farther up there may be none */
    reach.up_m = fmax(0, level_of(contacts.floor.point, gravity) - level_of(point, gravity)) +
                 floor_epsilon_m(contacts.floor.point);
    locale_contact(choice, point, reach, &contacts);
    return contacts.has_ceiling;
}

/* ---- footprints ------------------------------------------------------------------------------ */

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

    vec3_across(up, &u, &v);
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
