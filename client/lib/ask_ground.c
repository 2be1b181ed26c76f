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

static const char *const question_names[] = {"height", "contact", "ray", "contains"};
static const unsigned char question_numbers[] = {2, 3, 7, 3};

/* A question whose body begins with `{"name":`; NULL without memory. */
static struct kota_request *question(const char *locale, const char *what, const char *name)
{
    struct kota_request *request = ask_question(locale, what);

    if (!request)
        return NULL;
    text_adds(&request->own_body, "{\"");
    text_adds(&request->own_body, name);
    text_adds(&request->own_body, "\":");
    return request;
}

/* The same in the world's frame. */
static struct kota_request *world_question(const char *path, const char *name)
{
    struct kota_request *request = ask_new("POST", path);

    if (!request)
        return NULL;
    request->may_repeat = true;
    text_adds(&request->own_body, "{\"");
    text_adds(&request->own_body, name);
    text_adds(&request->own_body, "\":");
    return request;
}

static struct kota_request *question_end(struct kota_request *request)
{
    text_adds(&request->own_body, "}");
    return ask_json(request);
}

/* `,"hints":[…]` unless they are NULL. */
static void add_hints(struct kota_request *request, size_t count, const char *const *hints)
{
    if (!hints)
        return;
    text_adds(&request->own_body, ",\"hints\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_adds(&request->own_body, ",");
        if (!hints[i])
            text_adds(&request->own_body, "null");
        else if (!text_add_json(&request->own_body, hints[i]))
            request_fail(request, "hint %zu is not UTF-8", i);
    }
    text_adds(&request->own_body, "]");
}

/* ---- height and profile ---------------------------------------------------------------------- */

struct kota_request *kota_get_height(const char *locale, double x, double y, unsigned with)
{
    struct kota_request *request = ask_new("GET", "/v1/locales/%i/height", locale);

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
    struct kota_request *request = question(locale, "height", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xy, count, 2, "point");
    if (with & (KOTA_WITH_NORMAL | KOTA_WITH_CELL)) {
        text_adds(&request->own_body, ",\"fields\":[\"height\"");
        if (with & KOTA_WITH_NORMAL)
            text_adds(&request->own_body, ",\"normal\"");
        if (with & KOTA_WITH_CELL)
            text_adds(&request->own_body, ",\"cell\"");
        text_adds(&request->own_body, "]");
    }
    return question_end(request);
}

struct kota_request *kota_profile(const char *locale, const double *xy, size_t count,
                                  unsigned samples, double step_m)
{
    struct kota_request *request = question(locale, "profile", "path");

    if (!request)
        return NULL;
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

    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static struct kota_request *contact_end(struct kota_request *request,
                                        const struct kota_contact_options *options)
{
    if (options) {
        ask_optional(request, "reach_up", options->reach_up_m);
        ask_optional(request, "max_distance", options->max_distance_m);
        ask_optional(request, "clearance", options->clearance_m);
        if (options->clearance_exact)
            text_adds(&request->own_body, ",\"clearance_mode\":\"exact\"");
    }
    return question_end(request);
}

struct kota_request *kota_contact(const char *locale, const double *xyz, size_t count,
                                  const struct kota_contact_options *options)
{
    struct kota_request *request = question(locale, "contact", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xyz, count, 3, "point");
    return contact_end(request, options);
}

struct kota_request *kota_world_contact(const double *xyz, size_t count, const char *const *hints,
                                        const struct kota_contact_options *options)
{
    struct kota_request *request = world_question("/v1/contact", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xyz, count, 3, "point");
    add_hints(request, count, hints);
    return contact_end(request, options);
}

struct kota_request *kota_contact_footprints(const char *locale, const double *xyz,
                                             const size_t *feet, size_t count,
                                             const struct kota_contact_options *options)
{
    struct kota_request *request = question(locale, "contact", "footprints");
    size_t from = 0;

    if (!request)
        return NULL;
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count && !request->error.kind; i++) {
        if (i > 0)
            text_adds(&request->own_body, ",");
        ask_vectors(request, xyz + 3 * from, feet[i], 3, "foot");
        from += feet[i];
    }
    text_adds(&request->own_body, "]");
    return contact_end(request, options);
}

/* ---- rays, sight, picking -------------------------------------------------------------------- */

static void add_rays(struct kota_request *request, const struct kota_ray *rays, size_t count)
{
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count && !request->error.kind; i++) {
        text_adds(&request->own_body, i > 0 ? ",{\"origin\":" : "{\"origin\":");
        ask_vector(request, rays[i].origin, 3, "the origin of ray", i);
        text_adds(&request->own_body, ",\"direction\":");
        ask_vector(request, rays[i].direction, 3, "the direction of ray", i);
        if (isnan(rays[i].t_max))
            request_fail(request, "t_max of ray %zu is not a number", i);
        if (!isinf(rays[i].t_max) || rays[i].t_max < 0)
            ask_optional(request, "t_max", rays[i].t_max);
        text_adds(&request->own_body, "}");
    }
    text_adds(&request->own_body, "]");
}

struct kota_request *kota_ray(const char *locale, const struct kota_ray *rays, size_t count,
                              bool any)
{
    struct kota_request *request = question(locale, "ray", "rays");

    if (!request)
        return NULL;
    add_rays(request, rays, count);
    if (any)
        text_adds(&request->own_body, ",\"mode\":\"any\"");
    return question_end(request);
}

static struct kota_request *all_end(struct kota_request *request, unsigned hits_max)
{
    text_adds(&request->own_body, ",\"mode\":\"all\"");
    ask_optional(request, "hits_max", hits_max);
    return question_end(request);
}

struct kota_request *kota_ray_all(const char *locale, const struct kota_ray *rays, size_t count,
                                  unsigned hits_max)
{
    struct kota_request *request = question(locale, "ray", "rays");

    if (!request)
        return NULL;
    add_rays(request, rays, count);
    return all_end(request, hits_max);
}

struct kota_request *kota_world_ray(const struct kota_ray *rays, size_t count)
{
    struct kota_request *request = world_question("/v1/ray", "rays");

    if (!request)
        return NULL;
    add_rays(request, rays, count);
    return question_end(request);
}

static void add_segments(struct kota_request *request, const struct kota_segment *segments,
                         size_t count)
{
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count && !request->error.kind; i++) {
        text_adds(&request->own_body, i > 0 ? ",{\"from\":" : "{\"from\":");
        ask_vector(request, segments[i].from, 3, "segment", i);
        text_adds(&request->own_body, ",\"to\":");
        ask_vector(request, segments[i].to, 3, "segment", i);
        text_adds(&request->own_body, "}");
    }
    text_adds(&request->own_body, "]");
}

struct kota_request *kota_los(const char *locale, const struct kota_segment *segments, size_t count)
{
    struct kota_request *request = question(locale, "los", "segments");

    if (!request)
        return NULL;
    add_segments(request, segments, count);
    return question_end(request);
}

struct kota_request *kota_los_all(const char *locale, const struct kota_segment *segments,
                                  size_t count, unsigned hits_max)
{
    struct kota_request *request = question(locale, "los", "segments");

    if (!request)
        return NULL;
    add_segments(request, segments, count);
    return all_end(request, hits_max);
}

struct kota_request *kota_lit(const char *locale, const double *xyz, size_t count,
                              const struct kota_light *light)
{
    struct kota_request *request = question(locale, "lit", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xyz, count, 3, "point");
    text_adds(&request->own_body,
              light->has_position ? ",\"light\":{\"position\":" : ",\"light\":{\"direction\":");
    ask_vector(request, light->vector, 3, "light", 0);
    text_adds(&request->own_body, "}");
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
    text_adds(&request->own_body, begins[shape->kind]);
    if (shape->kind != KOTA_SPHERE) {
        ask_vector(request, shape->sizes, sizes[shape->kind], "shape", i);
    } else if (isfinite(shape->sizes[0])) {
        text_add_number(&request->own_body, shape->sizes[0]);
    } else {
        request_fail(request, "the radius of shape %zu is not finite", i);
    }
    text_adds(&request->own_body, "}");
}

struct kota_request *kota_sweep(const char *locale, const struct kota_sweep *sweeps, size_t count)
{
    struct kota_request *request = question(locale, "sweep", "items");

    if (!request)
        return NULL;
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_adds(&request->own_body, ",");
        add_shape(request, &sweeps[i].shape, i);
        text_adds(&request->own_body, ",\"from\":");
        ask_vector(request, sweeps[i].from, 3, "sweep", i);
        text_adds(&request->own_body, ",\"to\":");
        ask_vector(request, sweeps[i].to, 3, "sweep", i);
        text_adds(&request->own_body, "}");
    }
    text_adds(&request->own_body, "]");
    return question_end(request);
}

struct kota_request *kota_move(const char *locale, const struct kota_move *moves, size_t count)
{
    struct kota_request *request = question(locale, "move", "items");

    if (!request)
        return NULL;
    text_adds(&request->own_body, "[");
    for (size_t i = 0; i < count; i++) {
        const struct kota_move *move = &moves[i];

        if (i > 0)
            text_adds(&request->own_body, ",");
        add_shape(request, &move->shape, i);
        text_adds(&request->own_body, ",\"from\":");
        ask_vector(request, move->from, 3, "move", i);
        text_adds(&request->own_body, ",\"velocity\":");
        ask_vector(request, move->velocity, 3, "move", i);
        ask_optional(request, "dt", move->dt_s);
        ask_optional(request, "slope_max_deg", move->slope_max_deg);
        ask_optional(request, "step_up", move->step_up_m);
        ask_optional(request, "snap_down", move->snap_down_m);
        if (move->has_claimed) {
            text_adds(&request->own_body, ",\"claimed\":");
            ask_vector(request, move->claimed, 3, "move", i);
        }
        text_adds(&request->own_body, "}");
    }
    text_adds(&request->own_body, "]");
    return question_end(request);
}

void kota_pick_init(struct kota_pick *pick, size_t size)
{
    struct kota_pick defaults = {
        .size = size, .up = {0, 0, 1}, .fov_y_deg = (double)NAN, .tile_side = 1};

    memset(pick, 0, size);
    memcpy(pick, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static struct kota_request *pick_of(struct kota_request *request, const struct kota_pick *pick)
{
    static const char *const depths[] = {"gl", "webgpu", "reversed"};
    struct text *body;

    if (!request)
        return NULL;
    body = &request->own_body;
    ask_vector(request, pick->viewport, 2, "viewport", 0);
    text_adds(body, ",\"pixel\":");
    ask_vector(request, pick->pixel, 2, "pixel", 0);
    if (pick->size >= sizeof(*pick) && pick->plan_side_m > 0) {
        text_adds(body, pick->plan_shape == KOTA_PLAN_SQUARE ? ",\"tile\":{\"shape\":\"square\""
                                                             : ",\"tile\":{\"shape\":\"hex\"");
        ask_optional(request, "side", pick->plan_side_m);
        text_adds(body, "}");
    } else {
        ask_optional(request, "tile_side", pick->tile_side);
    }
    if (isnan(pick->fov_y_deg)) {
        text_adds(body, ",\"inverse_view_projection\":");
        ask_vector(request, pick->inverse_view_projection, 16, "inverse_view_projection", 0);
        if ((unsigned)pick->depth > KOTA_DEPTH_REVERSED) {
            request_fail(request, "there is no depth %d", (int)pick->depth);
            return request;
        }
        text_adds(body, ",\"depth\":\"");
        text_adds(body, depths[pick->depth]);
        text_adds(body, "\"");
    } else {
        text_adds(body, ",\"camera\":{\"eye\":");
        ask_vector(request, pick->eye, 3, "eye", 0);
        text_adds(body, ",\"target\":");
        ask_vector(request, pick->target, 3, "target", 0);
        text_adds(body, ",\"up\":");
        ask_vector(request, pick->up, 3, "up", 0);
        ask_optional(request, "fov_y_deg", pick->fov_y_deg);
        text_adds(body, "}");
    }
    return question_end(request);
}

struct kota_request *kota_pick(const char *locale, const struct kota_pick *pick)
{
    return pick_of(question(locale, "pick", "viewport"), pick);
}

struct kota_request *kota_world_pick(const struct kota_pick *pick)
{
    return pick_of(world_question("/v1/pick", "viewport"), pick);
}

void kota_view_init(struct kota_view *view, size_t size)
{
    struct kota_view defaults = {.size = size,
                                 .up = {0, 0, 1},
                                 .fov_y_deg = 60,
                                 .width = 640,
                                 .height = 480,
                                 .light = {(double)NAN, (double)NAN, (double)NAN}};

    memset(view, 0, size);
    memcpy(view, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

struct kota_request *kota_view(const char *locale, const struct kota_view *view)
{
    struct kota_request *request = question(locale, "view.png", "size");
    struct text *body;

    if (!request)
        return NULL;
    body = &request->own_body;
    ask_vector(request, (const double[2]){view->width, view->height}, 2, "size", 0);
    text_adds(body, ",\"camera\":{\"eye\":");
    ask_vector(request, view->eye, 3, "eye", 0);
    text_adds(body, ",\"target\":");
    ask_vector(request, view->target, 3, "target", 0);
    text_adds(body, ",\"up\":");
    ask_vector(request, view->up, 3, "up", 0);
    ask_optional(request, "fov_y_deg", view->fov_y_deg);
    text_adds(body, "}");
    if (!isnan(view->light[0])) {
        text_adds(body, ",\"sun\":{\"direction\":");
        ask_vector(request, view->light, 3, "light", 0);
        text_adds(body, "}");
    }
    text_adds(body, view->has_no_shadows ? ",\"shadows\":false" : "");
    request = question_end(request);
    if (request) {
        request->accept = NULL;
        kota_request_timeout(request, VIEW_S);
    }
    return request;
}

/* ---- containment ----------------------------------------------------------------------------- */

struct kota_request *kota_contains(const char *locale, const double *xyz, size_t count)
{
    struct kota_request *request = question(locale, "contains", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xyz, count, 3, "point");
    return question_end(request);
}

struct kota_request *kota_locate(const double *xyz, size_t count, const char *const *hints)
{
    struct kota_request *request = world_question("/v1/locate", "points");

    if (!request)
        return NULL;
    ask_vectors(request, xyz, count, 3, "point");
    add_hints(request, count, hints);
    return question_end(request);
}

/* ---- binary batches -------------------------------------------------------------------------- */

static struct kota_request *batch(enum kota_question what, const char *locale, const void *items,
                                  size_t count, size_t bytes_each, const double *base,
                                  const char *media_type)
{
    bool is_known = (size_t)what < sizeof(question_numbers);
    struct kota_request *request = ask_question(locale, is_known ? question_names[what] : "-");
    size_t item_bytes = is_known ? question_numbers[what] * bytes_each : 1;

    if (!request)
        return NULL;
    request->accept = NULL;
    if (!is_known || count > SIZE_MAX / item_bytes) {
        request_fail(request, "there is no question %d of %zu items", (int)what, count);
        return request;
    }
    if (base) {
        struct text text = {0};

        for (size_t i = 0; i < 3; i++) {
            if (!isfinite(base[i])) {
                request_fail(request, "base has %g, which is not finite", base[i]);
                continue;
            }
            text_adds(&text, i > 0 ? "," : "");
            text_add_number(&text, base[i]);
        }
        kota_request_query(request, "base", text_string(&text));
        request->path.is_broken |= text.is_broken;
        text_free(&text);
    }
    kota_request_body(request, media_type, items, count * item_bytes);
    return request;
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
