/*
 * Questions about ground, as JSON and as binary batches.
 *
 * Each function writes the body that proto/openapi.yaml describes. All of them only ask, so they
 * may be repeated. A binary batch goes out as the caller's numbers are: little-endian, which this
 * file refuses to be compiled without.
 */
#include "client/lib/ask.h"

#include <math.h>
#include <string.h>

enum { VIEW_S = 120 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary batches are little-endian");

#define LOCALE "/v1/locales/%i/"

/* A POST that only reads, whose body begins with `{"name":`. */
static struct kota_request *question(const char *pattern, const char *locale, const char *name)
{
    struct kota_request *request = ask_new("POST", pattern, locale);

    kota_request_may_repeat(request, true);
    ask_raw(request, "{\"");
    ask_raw(request, name);
    ask_raw(request, "\":");
    return request;
}

static struct kota_request *question_end(struct kota_request *request)
{
    ask_raw(request, "}");
    return ask_json(request);
}

/* `,"hints":[…]` unless they are NULL. */
static void add_hints(struct kota_request *request, size_t count, const char *const *hints)
{
    if (!hints)
        return;
    ask_raw(request, ",\"hints\":[");
    for (size_t i = 0; i < count; i++) {
        ask_raw(request, i > 0 ? "," : "");
        if (hints[i])
            ask_string(request, hints[i], "a hint");
        else
            ask_raw(request, "null");
    }
    ask_raw(request, "]");
}

/* ---- height and profile ---------------------------------------------------------------------- */

struct kota_request *kota_get_height(const char *locale, double x, double y, unsigned with)
{
    struct kota_request *request = ask_new("GET", LOCALE "height", locale);

    kota_request_query_number(request, "x", x);
    kota_request_query_number(request, "y", y);
    if (with & KOTA_WITH_NORMAL)
        kota_request_query(request, "fields",
                           with & KOTA_WITH_CELL ? "height,normal,cell" : "height,normal");
    else if (with & KOTA_WITH_CELL)
        kota_request_query(request, "fields", "height,cell");
    return request;
}

struct kota_request *kota_height(const char *locale, const double *xy, size_t count, unsigned with)
{
    struct kota_request *request = question(LOCALE "height", locale, "points");

    ask_vectors(request, xy, count, 2, "point");
    if (with & (KOTA_WITH_NORMAL | KOTA_WITH_CELL)) {
        ask_raw(request, ",\"fields\":[\"height\"");
        if (with & KOTA_WITH_NORMAL)
            ask_raw(request, ",\"normal\"");
        if (with & KOTA_WITH_CELL)
            ask_raw(request, ",\"cell\"");
        ask_raw(request, "]");
    }
    return question_end(request);
}

struct kota_request *kota_profile(const char *locale, const double *xy, size_t count,
                                  unsigned samples, double step_m)
{
    struct kota_request *request = question(LOCALE "profile", locale, "path");

    ask_vectors(request, xy, count, 2, "corner");
    if (samples > 0)
        ask_optional(request, "samples", samples);
    if (step_m != 0)
        ask_optional(request, "step", step_m);
    return question_end(request);
}

/* ---- contact --------------------------------------------------------------------------------- */

void kota_contact_options_init(struct kota_contact_options *options, size_t size)
{
    struct kota_contact_options defaults = {.size = size,
                                            .reach_up_m = (double)NAN,
                                            .clearance_m = (double)NAN,
                                            .max_distance_m = (double)NAN};

    ask_init(options, size, &defaults, sizeof(defaults));
}

static struct kota_request *contact_end(struct kota_request *request,
                                        const struct kota_contact_options *options)
{
    if (options) {
        ask_optional(request, "reach_up", options->reach_up_m);
        ask_optional(request, "max_distance", options->max_distance_m);
        ask_optional(request, "clearance", options->clearance_m);
        if (options->clearance_exact)
            ask_raw(request, ",\"clearance_mode\":\"exact\"");
    }
    return question_end(request);
}

struct kota_request *kota_contact(const char *locale, const double *xyz, size_t count,
                                  const struct kota_contact_options *options)
{
    struct kota_request *request = question(LOCALE "contact", locale, "points");

    ask_vectors(request, xyz, count, 3, "point");
    return contact_end(request, options);
}

struct kota_request *kota_world_contact(const double *xyz, size_t count, const char *const *hints,
                                        const struct kota_contact_options *options)
{
    struct kota_request *request = question("/v1/contact", NULL, "points");

    ask_vectors(request, xyz, count, 3, "point");
    add_hints(request, count, hints);
    return contact_end(request, options);
}

struct kota_request *kota_contact_footprints(const char *locale, const double *xyz,
                                             const size_t *feet, size_t count,
                                             const struct kota_contact_options *options)
{
    struct kota_request *request = question(LOCALE "contact", locale, "footprints");
    size_t from = 0;

    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        ask_raw(request, i > 0 ? "," : "");
        ask_vectors(request, xyz + 3 * from, feet[i], 3, "foot");
        from += feet[i];
    }
    ask_raw(request, "]");
    return contact_end(request, options);
}

/* ---- rays, sight, picking -------------------------------------------------------------------- */

static void add_rays(struct kota_request *request, const struct kota_ray *rays, size_t count)
{
    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        ask_raw(request, i > 0 ? ",{\"origin\":" : "{\"origin\":");
        ask_vector(request, rays[i].origin, 3, "the origin of ray", i);
        ask_raw(request, ",\"direction\":");
        ask_vector(request, rays[i].direction, 3, "the direction of ray", i);
        if (isnan(rays[i].t_max))
            request_fail(request, "t_max of ray %zu is not a number", i);
        if (!isinf(rays[i].t_max) || rays[i].t_max < 0)
            ask_optional(request, "t_max", rays[i].t_max);
        ask_raw(request, "}");
    }
    ask_raw(request, "]");
}

struct kota_request *kota_ray(const char *locale, const struct kota_ray *rays, size_t count,
                              bool any)
{
    struct kota_request *request = question(LOCALE "ray", locale, "rays");

    add_rays(request, rays, count);
    if (any)
        ask_raw(request, ",\"mode\":\"any\"");
    return question_end(request);
}

static struct kota_request *all_end(struct kota_request *request, unsigned hits_max)
{
    ask_raw(request, ",\"mode\":\"all\"");
    ask_optional(request, "hits_max", hits_max);
    return question_end(request);
}

struct kota_request *kota_ray_all(const char *locale, const struct kota_ray *rays, size_t count,
                                  unsigned hits_max)
{
    struct kota_request *request = question(LOCALE "ray", locale, "rays");

    add_rays(request, rays, count);
    return all_end(request, hits_max);
}

struct kota_request *kota_world_ray(const struct kota_ray *rays, size_t count)
{
    struct kota_request *request = question("/v1/ray", NULL, "rays");

    add_rays(request, rays, count);
    return question_end(request);
}

static void add_segments(struct kota_request *request, const struct kota_segment *segments,
                         size_t count)
{
    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        ask_raw(request, i > 0 ? ",{\"from\":" : "{\"from\":");
        ask_vector(request, segments[i].from, 3, "segment", i);
        ask_raw(request, ",\"to\":");
        ask_vector(request, segments[i].to, 3, "segment", i);
        ask_raw(request, "}");
    }
    ask_raw(request, "]");
}

struct kota_request *kota_los(const char *locale, const struct kota_segment *segments, size_t count)
{
    struct kota_request *request = question(LOCALE "los", locale, "segments");

    add_segments(request, segments, count);
    return question_end(request);
}

struct kota_request *kota_los_all(const char *locale, const struct kota_segment *segments,
                                  size_t count, unsigned hits_max)
{
    struct kota_request *request = question(LOCALE "los", locale, "segments");

    add_segments(request, segments, count);
    return all_end(request, hits_max);
}

struct kota_request *kota_lit(const char *locale, const double *xyz, size_t count,
                              const struct kota_light *light)
{
    struct kota_request *request = question(LOCALE "lit", locale, "points");

    ask_vectors(request, xyz, count, 3, "point");
    ask_raw(request,
            light->has_position ? ",\"light\":{\"position\":" : ",\"light\":{\"direction\":");
    ask_vector(request, light->vector, 3, "light", 0);
    ask_raw(request, "}");
    return question_end(request);
}

static void add_shape(struct kota_request *request, const struct kota_shape *shape, size_t i)
{
    static const char *const begins[] = {
        "{\"shape\":{\"sphere\":", "{\"shape\":{\"capsule\":", "{\"shape\":{\"box\":"};
    static const size_t sizes[] = {1, 2, 4};

    if ((unsigned)shape->kind > KOTA_BOX) {
        request_fail(request, "there is no shape %d", (int)shape->kind);
        return;
    }
    ask_raw(request, begins[shape->kind]);
    if (shape->kind != KOTA_SPHERE) {
        ask_vector(request, shape->sizes, sizes[shape->kind], "shape", i);
    } else if (isfinite(shape->sizes[0])) {
        ask_number(request, shape->sizes[0]);
    } else {
        request_fail(request, "the radius of shape %zu is not finite", i);
    }
    ask_raw(request, "}");
}

struct kota_request *kota_sweep(const char *locale, const struct kota_sweep *sweeps, size_t count)
{
    struct kota_request *request = question(LOCALE "sweep", locale, "items");

    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        ask_raw(request, i > 0 ? "," : "");
        add_shape(request, &sweeps[i].shape, i);
        ask_raw(request, ",\"from\":");
        ask_vector(request, sweeps[i].from, 3, "sweep", i);
        ask_raw(request, ",\"to\":");
        ask_vector(request, sweeps[i].to, 3, "sweep", i);
        ask_raw(request, "}");
    }
    ask_raw(request, "]");
    return question_end(request);
}

struct kota_request *kota_move(const char *locale, const struct kota_move *moves, size_t count)
{
    struct kota_request *request = question(LOCALE "move", locale, "items");

    ask_raw(request, "[");
    for (size_t i = 0; i < count; i++) {
        const struct kota_move *move = &moves[i];

        ask_raw(request, i > 0 ? "," : "");
        add_shape(request, &move->shape, i);
        ask_raw(request, ",\"from\":");
        ask_vector(request, move->from, 3, "move", i);
        ask_raw(request, ",\"velocity\":");
        ask_vector(request, move->velocity, 3, "move", i);
        ask_optional(request, "dt", move->dt_s);
        ask_optional(request, "slope_max_deg", move->slope_max_deg);
        ask_optional(request, "step_up", move->step_up_m);
        ask_optional(request, "snap_down", move->snap_down_m);
        if (move->has_claimed) {
            ask_raw(request, ",\"claimed\":");
            ask_vector(request, move->claimed, 3, "move", i);
        }
        ask_raw(request, "}");
    }
    ask_raw(request, "]");
    return question_end(request);
}

void kota_pick_init(struct kota_pick *pick, size_t size)
{
    struct kota_pick defaults = {
        .size = size, .up = {0, 0, 1}, .fov_y_deg = (double)NAN, .tile_side = 1};

    ask_init(pick, size, &defaults, sizeof(defaults));
}

static void add_camera(struct kota_request *request, const double eye[3], const double target[3],
                       const double up[3], double fov_y_deg)
{
    ask_raw(request, ",\"camera\":{\"eye\":");
    ask_vector(request, eye, 3, "eye", 0);
    ask_member(request, "target", target, 3, 0);
    ask_member(request, "up", up, 3, 0);
    ask_optional(request, "fov_y_deg", fov_y_deg);
    ask_raw(request, "}");
}

static struct kota_request *pick_of(struct kota_request *request, const struct kota_pick *pick)
{
    static const char *const depths[] = {"gl", "webgpu", "reversed"};

    ask_vector(request, pick->viewport, 2, "viewport", 0);
    ask_member(request, "pixel", pick->pixel, 2, 0);
    if (pick->size >= sizeof(*pick) && pick->plan_side_m > 0) {
        ask_raw(request, pick->plan_shape == KOTA_PLAN_SQUARE ? ",\"tile\":{\"shape\":\"square\""
                                                              : ",\"tile\":{\"shape\":\"hex\"");
        ask_optional(request, "side", pick->plan_side_m);
        ask_raw(request, "}");
    } else {
        ask_optional(request, "tile_side", pick->tile_side);
    }
    if (isnan(pick->fov_y_deg)) {
        ask_member(request, "inverse_view_projection", pick->inverse_view_projection, 16, 0);
        if ((unsigned)pick->depth > KOTA_DEPTH_REVERSED) {
            request_fail(request, "there is no depth %d", (int)pick->depth);
            return request;
        }
        ask_raw(request, ",\"depth\":\"");
        ask_raw(request, depths[pick->depth]);
        ask_raw(request, "\"");
    } else {
        add_camera(request, pick->eye, pick->target, pick->up, pick->fov_y_deg);
    }
    return question_end(request);
}

struct kota_request *kota_pick(const char *locale, const struct kota_pick *pick)
{
    return pick_of(question(LOCALE "pick", locale, "viewport"), pick);
}

struct kota_request *kota_world_pick(const struct kota_pick *pick)
{
    return pick_of(question("/v1/pick", NULL, "viewport"), pick);
}

void kota_view_init(struct kota_view *view, size_t size)
{
    struct kota_view defaults = {.size = size,
                                 .up = {0, 0, 1},
                                 .fov_y_deg = 60,
                                 .width = 640,
                                 .height = 480,
                                 .light = {(double)NAN, (double)NAN, (double)NAN}};

    ask_init(view, size, &defaults, sizeof(defaults));
}

struct kota_request *kota_view(const char *locale, const struct kota_view *view)
{
    struct kota_request *request = question(LOCALE "view.png", locale, "size");

    ask_vector(request, (const double[2]){view->width, view->height}, 2, "size", 0);
    add_camera(request, view->eye, view->target, view->up, view->fov_y_deg);
    if (!isnan(view->light[0])) {
        ask_raw(request, ",\"sun\":{\"direction\":");
        ask_vector(request, view->light, 3, "light", 0);
        ask_raw(request, "}");
    }
    ask_raw(request, view->has_no_shadows ? ",\"shadows\":false" : "");
    kota_request_timeout(request, VIEW_S);
    return ask_accept(question_end(request), NULL);
}

/* ---- containment ----------------------------------------------------------------------------- */

struct kota_request *kota_contains(const char *locale, const double *xyz, size_t count)
{
    struct kota_request *request = question(LOCALE "contains", locale, "points");

    ask_vectors(request, xyz, count, 3, "point");
    return question_end(request);
}

struct kota_request *kota_locate(const double *xyz, size_t count, const char *const *hints)
{
    struct kota_request *request = question("/v1/locate", NULL, "points");

    ask_vectors(request, xyz, count, 3, "point");
    add_hints(request, count, hints);
    return question_end(request);
}

/* ---- binary batches -------------------------------------------------------------------------- */

static struct kota_request *batch(enum kota_question what, const char *locale, const void *items,
                                  size_t count, size_t bytes_each, const double *base,
                                  const char *media_type)
{
    static const char *const patterns[] = {LOCALE "height", LOCALE "contact", LOCALE "ray",
                                           LOCALE "contains"};
    static const unsigned char numbers[] = {2, 3, 7, 3};
    bool is_known = (size_t)what < sizeof(numbers);
    struct kota_request *request = ask_new("POST", is_known ? patterns[what] : LOCALE "-", locale);
    size_t item_bytes = is_known ? numbers[what] * bytes_each : 1;

    kota_request_may_repeat(request, true);
    if (is_known && count <= SIZE_MAX / item_bytes)
        kota_request_body(request, media_type, items, count * item_bytes);
    else
        request_fail(request, "there is no question %d of %zu items", (int)what, count);
    if (base)
        ask_query_numbers(request, "base", base, 3);
    return ask_accept(request, NULL);
}

struct kota_request *kota_batch_f32(enum kota_question what, const char *locale, const float *items,
                                    size_t count, const double *base)
{
    return batch(what, locale, items, count, sizeof(*items), base, "application/vnd.kota.f32");
}

struct kota_request *kota_batch_f64(enum kota_question what, const char *locale,
                                    const double *items, size_t count, const double *base)
{
    return batch(what, locale, items, count, sizeof(*items), base, "application/vnd.kota.f64");
}
