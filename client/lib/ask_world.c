/*
 * Requests about the world: locales, layers, edits, tiles, maps, models, patches, events,
 * operation.
 *
 * Every write of a locale gets an Idempotency-Key, so that it can be sent again when its answer is
 * lost. Models take no key: PUT of one is the same however often it is made; DELETE is not, because
 * its repeat is 404.
 */
#include "client/lib/ask.h"

#include <math.h>
#include <string.h>

#define LOCALE "/v1/locales/%i"
#define LAYER LOCALE "/layers/%i"
#define PIN LOCALE "/pins/%i"
#define PATCH LOCALE "/patches/%u"

/* ---- operation ------------------------------------------------------------------------------- */

struct kota_request *kota_livez(void)
{
    return ask_new("GET", "/livez");
}

struct kota_request *kota_healthz(void)
{
    return ask_new("GET", "/healthz");
}

struct kota_request *kota_readyz(void)
{
    struct kota_request *request = ask_new("GET", "/readyz");

    /* "not ready" is an answer */
    kota_request_may_repeat(request, false);
    return request;
}

struct kota_request *kota_metrics(void)
{
    return ask_accept(ask_new("GET", "/metrics"), "text/plain");
}

struct kota_request *kota_openapi(void)
{
    return ask_new("GET", "/openapi.json");
}

struct kota_request *kota_calls(void)
{
    return ask_new("GET", "/v1");
}

struct kota_request *kota_limits(void)
{
    return ask_new("GET", "/v1/limits");
}

struct kota_request *kota_audit(void)
{
    return ask_new("GET", "/v1/audit");
}

struct kota_request *kota_stats(void)
{
    return ask_new("GET", "/v1/stats");
}

struct kota_request *kota_index(void)
{
    return ask_accept(ask_new("GET", "/"), "text/html");
}

struct kota_request *kota_web(const char *file)
{
    bool is_name = file && *file && !file[strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789._-")];
    struct kota_request *request = ask_new("GET", "/web/");

    if (!is_name)
        request_fail(request, "'%.60s' is no file of the inspector", file ? file : "NULL");
    else if (request)
        text_adds(&request->path, file);
    return ask_accept(request, NULL);
}

struct kota_request *kota_docs(void)
{
    return ask_accept(ask_new("GET", "/docs"), "text/html");
}

struct kota_request *kota_docs_errors(void)
{
    return ask_accept(ask_new("GET", "/docs/errors"), "text/html");
}

/* ---- elevation ------------------------------------------------------------------------------- */

#define COMPAT "/v1/compat/"

static struct kota_request *with_locations(struct kota_request *request, const char *locations)
{
    kota_request_query(request, "locations", locations);
    return request;
}

/* {"locations":"…"}; it only reads */
static struct kota_request *post_locations(struct kota_request *request, const char *locations)
{
    kota_request_may_repeat(request, true);
    ask_raw(request, "{\"locations\":");
    ask_string(request, locations, "locations");
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_get_elevation(const char *locations)
{
    return with_locations(ask_new("GET", COMPAT "elevation"), locations);
}

struct kota_request *kota_elevation(const char *locations)
{
    return post_locations(ask_new("POST", COMPAT "elevation"), locations);
}

struct kota_request *kota_google_elevation(const char *locations)
{
    return with_locations(ask_new("GET", COMPAT "maps/api/elevation/json"), locations);
}

/* Ids with commas between them. */
static struct kota_request *of_dataset(const char *method, const char *dataset)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,-";
    struct kota_request *request = ask_new(method, COMPAT "elevation/");

    if (!dataset || !*dataset || dataset[strspn(dataset, letters)])
        request_fail(request, "'%.100s' is no dataset", dataset ? dataset : "NULL");
    else if (request)
        text_adds(&request->path, dataset);
    return request;
}

struct kota_request *kota_get_dataset_elevation(const char *dataset, const char *locations)
{
    return with_locations(of_dataset("GET", dataset), locations);
}

struct kota_request *kota_dataset_elevation(const char *dataset, const char *locations)
{
    return post_locations(of_dataset("POST", dataset), locations);
}

/* ---- locales and layers ---------------------------------------------------------------------- */

struct kota_request *kota_locales(void)
{
    return ask_new("GET", "/v1/locales");
}

struct kota_request *kota_locale(const char *id)
{
    return ask_new("GET", LOCALE, id);
}

static struct kota_request *with_json(struct kota_request *request, const char *json)
{
    kota_request_body(request, "application/json", json, strlen(json));
    return request;
}

struct kota_request *kota_put_locale(const char *id, const char *manifest)
{
    return with_json(ask_write("PUT", LOCALE, id), manifest ? manifest : "{}");
}

struct kota_request *kota_post_locale(const char *id, const char *from)
{
    struct kota_request *request = ask_write("POST", "/v1/locales");

    ask_raw(request, "{\"id\":");
    ask_string(request, id, "id");
    ask_raw(request, ",\"from\":");
    ask_string(request, from, "from");
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_delete_locale(const char *id)
{
    return ask_write("DELETE", LOCALE, id);
}

struct kota_request *kota_layer(const char *locale, const char *layer, const char *format)
{
    struct kota_request *request = ask_accept(ask_new("GET", LAYER, locale, layer), NULL);

    if (format)
        kota_request_query(request, "format", format);
    return request;
}

struct kota_request *kota_put_layer(const char *locale, const char *layer, const char *media_type,
                                    const void *bytes, size_t length)
{
    struct kota_request *request = ask_write("PUT", LAYER, locale, layer);

    kota_request_body(request, media_type, bytes, length);
    return request;
}

struct kota_request *kota_put_layer_mesh(const char *locale, const char *layer,
                                         const char *media_type, const void *bytes, size_t length,
                                         const struct kota_mesh_options *options)
{
    static const char *const frames[] = {"cartesian", "spherical", "cylindrical"};
    static const char *const gravities[] = {"", "in", "out"};
    struct kota_request *request = kota_put_layer(locale, layer, media_type, bytes, length);

    if (!request || !options)
        return request;
    if ((unsigned)options->frame > KOTA_CYLINDRICAL ||
        (unsigned)options->gravity > KOTA_GRAVITY_OUT) {
        request_fail(request, "there is no such frame or gravity");
        return request;
    }
    if (options->is_ceiling)
        kota_request_query(request, "role", "ceiling");
    if (options->is_up_y)
        kota_request_query(request, "up", "y");
    if (options->scale != 0)
        kota_request_query_number(request, "scale", options->scale);
    if (options->frame != KOTA_CARTESIAN)
        kota_request_query(request, "frame", frames[options->frame]);
    if (options->gravity !=
        KOTA_GRAVITY_USUAL) /* with a cartesian frame the daemon reports the error */
        kota_request_query(request, "gravity", gravities[options->gravity]);
    return request;
}

struct kota_request *kota_put_layer_heights(const char *locale, const char *layer,
                                            const float *heights_m, uint32_t cols, uint32_t rows,
                                            double spacing_x_m, double spacing_y_m)
{
    struct kota_request *request = ask_write("PUT", LAYER, locale, layer);
    const double spacing[2] = {spacing_x_m, spacing_y_m};

    ask_query_numbers(request, "spacing", spacing, 2);
    kota_request_query_number(request, "cols", cols);
    kota_request_query_number(request, "rows", rows);
    kota_request_body(request, "application/vnd.kota.f32", heights_m, sizeof(float) * cols * rows);
    return request;
}

struct kota_request *kota_delete_layer(const char *locale, const char *layer)
{
    return ask_write("DELETE", LAYER, locale, layer);
}

struct kota_request *kota_pins(const char *locale)
{
    return ask_new("GET", LOCALE "/pins", locale);
}

struct kota_request *kota_pin(const char *locale, const char *pin)
{
    return ask_new("GET", PIN, locale, pin);
}

struct kota_request *kota_put_pin(const char *locale, const char *pin)
{
    return ask_write("PUT", PIN, locale, pin);
}

struct kota_request *kota_delete_pin(const char *locale, const char *pin)
{
    return ask_write("DELETE", PIN, locale, pin);
}

struct kota_request *kota_restore_pin(const char *locale, const char *pin)
{
    return ask_write("POST", PIN "/restore", locale, pin);
}

struct kota_request *kota_history(const char *locale)
{
    return ask_new("GET", LOCALE "/history", locale);
}

struct kota_request *kota_revert(const char *locale, const char *author, uint64_t since,
                                 enum kota_conflicts conflicts)
{
    struct kota_request *request = ask_write("POST", LOCALE "/revert", locale);

    ask_raw(request, "{\"since\":");
    ask_uint(request, since);
    ask_optional_string(request, "author", author);
    ask_raw(request, conflicts == KOTA_OVERWRITE ? ",\"conflicts\":\"overwrite\"}" : "}");
    return ask_json(request);
}

/* A pose that lacks its turn and the closing brace. */
static struct kota_request *put_pose(const char *locale, const char *layer,
                                     const double translation_m[3])
{
    struct kota_request *request = ask_new("PUT", LAYER "/transform", locale, layer);

    ask_raw(request, "{\"translation\":");
    ask_vector(request, translation_m, 3, "translation", 0);
    return request;
}

struct kota_request *kota_put_transform(const char *locale, const char *layer,
                                        const double translation_m[3], double yaw_deg)
{
    struct kota_request *request = put_pose(locale, layer, translation_m);

    ask_optional(request, "yaw_deg", yaw_deg);
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_put_rotation(const char *locale, const char *layer,
                                       const double translation_m[3], const double rotation[4])
{
    struct kota_request *request = put_pose(locale, layer, translation_m);

    ask_member(request, "rotation", rotation, 4, 0);
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_polygons(const char *locale, const char *layer, const double *xyz,
                                   const size_t *corner_counts, size_t polygon_count,
                                   const uint32_t *removed, size_t removed_count)
{
    struct kota_request *request = ask_write("POST", LAYER "/polygons", locale, layer);

    ask_raw(request, "{\"polygons\":[");
    for (size_t i = 0; i < polygon_count; i++) {
        ask_raw(request, i > 0 ? "," : "");
        ask_vectors(request, xyz, corner_counts[i], 3, "corner");
        xyz += 3 * corner_counts[i];
    }
    ask_raw(request, "],\"remove\":[");
    for (size_t i = 0; i < removed_count; i++) {
        ask_raw(request, i > 0 ? "," : "");
        ask_uint(request, removed[i]);
    }
    ask_raw(request, "]}");
    return ask_json(request);
}

struct kota_request *kota_layer_stats(const char *locale, const char *layer)
{
    return ask_new("GET", LAYER "/stats", locale, layer);
}

/* ---- edits ----------------------------------------------------------------------------------- */

struct kota_request *kota_edit(const char *locale, const uint32_t rect[4], enum kota_edit_op op,
                               const float *heights_m)
{
    struct kota_request *request = ask_write("POST", LOCALE "/edits", locale);
    const double numbers[4] = {rect[0], rect[1], rect[2], rect[3]};

    ask_query_numbers(request, "rect", numbers, 4);
    kota_request_query(request, "op", op == KOTA_ADD ? "add" : "set");
    kota_request_body(request, "application/vnd.kota.f32", heights_m,
                      sizeof(float) * rect[2] * rect[3]);
    return request;
}

struct kota_request *kota_edit_brush(const char *locale, enum kota_brush shape, double x, double y,
                                     double radius_m, double amount_m)
{
    static const char *const names[] = {"crater", "raise", "flatten", "smooth", "relax"};
    struct kota_request *request = ask_write("POST", LOCALE "/edits", locale);
    double center[2] = {x, y};

    if ((size_t)shape >= sizeof(names) / sizeof(names[0])) {
        request_fail(request, "there is no brush %d", (int)shape);
        return request;
    }
    ask_raw(request, "{\"brush\":{\"shape\":\"");
    ask_raw(request, names[shape]);
    ask_raw(request, "\",\"center\":");
    ask_vector(request, center, 2, "center", 0);
    if (isnan(radius_m))
        request_fail(request, "radius is not a number");
    ask_optional(request, "radius", radius_m);
    ask_optional(request, shape == KOTA_RELAX ? "slope_deg" : "amount", amount_m);
    ask_raw(request, "}}");
    return ask_json(request);
}

struct kota_request *kota_diff(const char *locale, uint64_t since)
{
    return ask_new("GET", LOCALE "/diff?since=%l", locale, since);
}

/* ---- tiles and models ------------------------------------------------------------------------ */

struct kota_request *kota_tile(const char *locale, unsigned level, unsigned column, unsigned row,
                               enum kota_tile_format format, enum kota_tile_kind kind)
{
    static const char *const formats[] = {"f32", "png16", "terrarium"};
    static const char *const kinds[] = {"sampled", "min", "max"};
    struct kota_request *request =
        ask_new("GET", LOCALE "/tiles/%u/%u/%u", locale, level, column, row);

    ask_accept(request, NULL);
    if ((size_t)format >= 3 || (size_t)kind >= 3) {
        request_fail(request, "there is no tile of format %d and kind %d", (int)format, (int)kind);
        return request;
    }
    kota_request_query(request, "format", formats[format]);
    kota_request_query(request, "kind", kinds[kind]);
    return request;
}

struct kota_request *kota_samples(const char *locale, const char *layer, const uint32_t *rect,
                                  unsigned step)
{
    struct kota_request *request = ask_new("GET", LAYER "/samples?step=%u", locale, layer, step);

    if (rect) {
        const double numbers[4] = {rect[0], rect[1], rect[2], rect[3]};

        ask_query_numbers(request, "rect", numbers, 4);
    }
    return ask_accept(request, NULL);
}

struct kota_request *kota_layer_tif(const char *locale, const char *layer)
{
    return ask_accept(ask_new("GET", LAYER ".tif", locale, layer), "image/tiff");
}

struct kota_request *kota_tileset(const char *locale)
{
    return ask_new("GET", LOCALE "/3dtiles/tileset.json", locale);
}

struct kota_request *kota_layer_glb(const char *locale, const char *layer)
{
    return ask_accept(ask_new("GET", LOCALE "/3dtiles/%i.glb", locale, layer), "model/gltf-binary");
}

struct kota_request *kota_terrain_layer(const char *locale)
{
    return ask_new("GET", LOCALE "/terrain/layer.json", locale);
}

struct kota_request *kota_terrain(const char *locale, unsigned z, unsigned x, unsigned y)
{
    return ask_accept(ask_new("GET", LOCALE "/terrain/%u/%u/%u.terrain", locale, z, x, y), NULL);
}

struct kota_request *kota_dem_json(const char *locale)
{
    return ask_new("GET", LOCALE "/dem.json", locale);
}

#define DEM_FORMS(path)                                                                            \
    {                                                                                              \
        LOCALE path ".png", LOCALE path "@2x.png", LOCALE path ".f32", LOCALE path ".tif"          \
    }

static struct kota_request *dem(const char *const patterns[4], const char *locale, unsigned z,
                                unsigned x, unsigned y, enum kota_dem_form form)
{
    bool is_known = (size_t)form < 4;
    struct kota_request *request = ask_new("GET", patterns[is_known ? form : 0], locale, z, x, y);

    if (!is_known)
        request_fail(request, "there is no tile of form %d", (int)form);
    return ask_accept(request, NULL);
}

struct kota_request *kota_dem(const char *locale, unsigned z, unsigned x, unsigned y,
                              enum kota_dem_form form)
{
    static const char *const patterns[] = DEM_FORMS("/dem/%u/%u/%u");

    return dem(patterns, locale, z, x, y, form);
}

struct kota_request *kota_dem_geodetic(const char *locale, unsigned z, unsigned x, unsigned y,
                                       enum kota_dem_form form)
{
    static const char *const patterns[] = DEM_FORMS("/dem/geodetic/%u/%u/%u");

    return dem(patterns, locale, z, x, y, form);
}

struct kota_request *kota_models(void)
{
    return ask_new("GET", "/v1/models");
}

struct kota_request *kota_model(const char *id)
{
    return ask_accept(ask_new("GET", "/v1/models/%i", id), "model/obj");
}

struct kota_request *kota_put_model(const char *id, const char *obj, size_t length)
{
    struct kota_request *request = ask_new("PUT", "/v1/models/%i", id);

    kota_request_may_repeat(request, true);
    kota_request_body(request, "model/obj", obj, length);
    return request;
}

struct kota_request *kota_delete_model(const char *id)
{
    return ask_new("DELETE", "/v1/models/%i", id);
}

/* ---- patches --------------------------------------------------------------------------------- */

void kota_body_init(struct kota_body *body, size_t size)
{
    struct kota_body defaults = {.size = size,
                                 .orientation = {0, 0, 0, 1},
                                 .mass_kg = (double)NAN,
                                 .density_kg_m3 = (double)NAN};

    ask_init(body, size, &defaults, sizeof(defaults));
}

void kota_patch_options_init(struct kota_patch_options *options, size_t size)
{
    struct kota_patch_options defaults = {
        .size = size, .depth_m = (double)NAN, .deadline_ms = (double)NAN};

    ask_init(options, size, &defaults, sizeof(defaults));
}

static void add_path(struct kota_request *request, const struct kota_body *body)
{
    ask_raw(request, ",\"path\":[");
    for (size_t i = 0; i < body->path_count; i++) {
        ask_raw(request, i > 0 ? ",{\"position\":" : "{\"position\":");
        ask_vector(request, body->path[i].position, 3, "position", i);
        ask_optional(request, "t", body->path[i].t_s);
        ask_member(request, "orientation", body->path[i].orientation, 4, i);
        ask_raw(request, "}");
    }
    ask_raw(request, "]");
}

static void add_body(struct kota_request *request, const struct kota_body *body, size_t index)
{
    ask_raw(request, "{\"model\":");
    ask_string(request, body->model, "the model of a body");
    if (body->path) {
        add_path(request, body);
    } else {
        ask_member(request, "position", body->position, 3, index);
        ask_member(request, "orientation", body->orientation, 4, index);
        ask_member(request, "velocity", body->velocity, 3, index);
        ask_member(request, "angular_velocity", body->angular_velocity, 3, index);
    }
    ask_optional(request, "mass", body->mass_kg);
    ask_optional(request, "density", body->density_kg_m3);
    ask_raw(request, "}");
}

/* The caller's array may have a larger stride than ours, or a smaller one. */
static void body_at(const struct kota_body *bodies, size_t index, struct kota_body *body)
{
    size_t size = bodies->size;

    kota_body_init(body, sizeof(*body));
    memcpy(body, (const char *)bodies + index * size, size < sizeof(*body) ? size : sizeof(*body));
}

struct kota_request *kota_patches(const char *locale)
{
    return ask_new("GET", LOCALE "/patches", locale);
}

struct kota_request *kota_post_patch(const char *locale, const struct kota_patch_options *given)
{
    struct kota_request *request = ask_write("POST", LOCALE "/patches", locale);
    struct kota_patch_options known, *options = &known; /* the caller's may be an older one */

    kota_patch_options_init(options, sizeof(known));
    memcpy(options, given, given->size < sizeof(known) ? given->size : sizeof(known));
    ask_raw(request, "{\"center\":");
    ask_vector(request, options->center, 2, "center", 0);
    ask_member(request, "size", options->size_m, 2, 0);
    ask_optional_string(request, "scale", options->scale);
    ask_optional_string(request, "leave", options->leave);
    if (options->overflow)
        ask_raw(request, ",\"overflow\":true");
    if (options->material && options->material[0] == '{') {
        ask_raw(request, ",\"material\":");
        ask_raw(request, options->material);
    } else {
        ask_optional_string(request, "material", options->material);
    }
    ask_optional(request, "depth", options->depth_m);
    ask_optional(request, "deadline_ms", options->deadline_ms);
    if (options->has_seed)
        ask_optional(request, "seed", options->seed);
    if (options->has_observer)
        ask_member(request, "observer", options->observer, 3, 0);
    if (options->body_count > 0) {
        ask_raw(request, ",\"bodies\":[");
        for (size_t i = 0; i < options->body_count; i++) {
            struct kota_body one;

            body_at(options->bodies, i, &one);
            ask_raw(request, i > 0 ? "," : "");
            add_body(request, &one, i);
        }
        ask_raw(request, "]");
    }
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_patch(const char *locale, uint32_t patch)
{
    return ask_new("GET", PATCH, locale, patch);
}

struct kota_request *kota_delete_patch(const char *locale, uint32_t patch, bool discard)
{
    struct kota_request *request = ask_new("DELETE", PATCH, locale, patch);

    /* Of a patch that has ended nothing changes. */
    kota_request_may_repeat(request, true);
    if (discard)
        kota_request_query(request, "discard", "true");
    return request;
}

struct kota_request *kota_post_patch_body(const char *locale, uint32_t patch,
                                          const struct kota_body *body)
{
    struct kota_request *request = ask_write("POST", PATCH "/bodies", locale, patch);
    struct kota_body one;

    body_at(body, 0, &one);
    add_body(request, &one, 0);
    return ask_json(request);
}

struct kota_request *kota_patch_patch_body(const char *locale, uint32_t patch, uint32_t body,
                                           const double *velocity, const double *angular_velocity,
                                           const double *impulse)
{
    const struct {
        const char *name;
        const double *numbers;
    } members[] = {
        {"velocity", velocity}, {"angular_velocity", angular_velocity}, {"impulse", impulse}};
    struct kota_request *request = ask_write("PATCH", PATCH "/bodies/%u", locale, patch, body);
    const char *comma = "";

    ask_raw(request, "{");
    for (size_t i = 0; i < 3; i++) {
        if (!members[i].numbers)
            continue;
        ask_raw(request, comma);
        ask_string(request, members[i].name, "");
        ask_raw(request, ":");
        ask_vector(request, members[i].numbers, 3, members[i].name, 0);
        comma = ",";
    }
    ask_raw(request, "}");
    return ask_json(request);
}

struct kota_request *kota_delete_patch_body(const char *locale, uint32_t patch, uint32_t body)
{
    return ask_write("DELETE", PATCH "/bodies/%u", locale, patch, body);
}

void kota_impact_options_init(struct kota_impact_options *options, size_t size)
{
    struct kota_impact_options defaults = {.size = size, .radius_m = (double)NAN};

    ask_init(options, size, &defaults, sizeof(defaults));
}

struct kota_request *kota_post_impact(const char *locale, const struct kota_impact_options *given)
{
    struct kota_request *request = ask_write("POST", LOCALE "/impacts", locale);
    struct kota_impact_options known, *options = &known; /* the caller's may be an older one */

    kota_impact_options_init(options, sizeof(known));
    memcpy(options, given, given->size < sizeof(known) ? given->size : sizeof(known));
    ask_raw(request, "{\"position\":");
    ask_vector(request, options->position, 3, "position", 0);
    ask_member(request, "velocity", options->velocity, 3, 0);
    ask_optional(request, "mass", options->mass_kg);
    ask_optional(request, "radius", options->radius_m);
    ask_optional_string(request, "model", options->model);
    if (options->has_observer)
        ask_member(request, "observer", options->observer, 3, 0);
    ask_raw(request, options->until_written ? ",\"until\":\"written\"}" : "}");
    return ask_json(request);
}

struct kota_request *kota_impact(const char *locale, uint64_t number)
{
    return ask_new("GET", LOCALE "/impacts/%l", locale, number);
}

struct kota_request *kota_patch_view(const char *locale, uint32_t patch, unsigned width,
                                     unsigned height)
{
    struct kota_request *request =
        ask_accept(ask_new("GET", PATCH "/view.png", locale, patch), NULL);

    if (width > 0)
        kota_request_query_number(request, "width", width);
    if (height > 0)
        kota_request_query_number(request, "height", height);
    return request;
}

struct kota_request *kota_patch_surface(const char *locale, uint32_t patch, unsigned per_cell)
{
    struct kota_request *request =
        ask_accept(ask_new("GET", PATCH "/surface.f32", locale, patch), NULL);

    if (per_cell > 0)
        kota_request_query_number(request, "per_cell", per_cell);
    return request;
}

struct kota_request *kota_patch_granules(const char *locale, uint32_t patch, const uint64_t *since)
{
    struct kota_request *request =
        ask_accept(ask_new("GET", PATCH "/granules", locale, patch), NULL);

    if (since)
        kota_request_query_number(request, "since", (double)*since);
    return request;
}

/* ---- events ---------------------------------------------------------------------------------- */

#define STREAM "text/event-stream"

struct kota_request *kota_events(void)
{
    return ask_accept(ask_new("GET", "/v1/events"), STREAM);
}

struct kota_request *kota_locale_events(const char *locale)
{
    return ask_accept(ask_new("GET", LOCALE "/events", locale), STREAM);
}

struct kota_request *kota_patch_events(const char *locale, uint32_t patch)
{
    return ask_accept(ask_new("GET", PATCH "/events", locale, patch), STREAM);
}

/* ---- watches --------------------------------------------------------------------------------- */

struct kota_request *kota_post_watch(const char *locale, const char *questions)
{
    return with_json(ask_new("POST", LOCALE "/watches", locale), questions);
}

struct kota_request *kota_patch_watch(const char *watch, const char *change)
{
    return with_json(ask_new("PATCH", "/v1/watches/%i", watch), change);
}

struct kota_request *kota_delete_watch(const char *watch)
{
    return ask_new("DELETE", "/v1/watches/%i", watch);
}

struct kota_request *kota_watch_events(const char *watch)
{
    return ask_accept(ask_new("GET", "/v1/watches/%i", watch), STREAM);
}
