/*
 * Locales as values.
 *
 * Problem: a reader must see one consistent locale for as long as it works on a request, while the
 * writer replaces layers and manifests. Approach: a locale is never changed after it was made. A
 * change copies the small struct (manifest, layer pointers) and shares every layer it does not
 * touch. A changed triangulation wraps the same tiles again, a changed gravity rebuilds meshes of
 * the same polygons. Building takes long, so a worker may do it first: it makes the next locale of
 * the state that it sees, and passes it as "prepared". The writer takes from it the layers that
 * have not changed since; only a layer that was put in between is built on the writer's thread.
 * Invariants: layer ids differ; every field is split, and every cartesian mesh pulled, as the
 * manifest says; all layers are of one space, for a locale has one gravity; bounds are the box of
 * all layers' boxes; memory_bytes sums the layers (locale_validate).
 */
#include "world/values/locale.h"

#include "base/check.h"
#include "base/text/nearest_word.h"

#include <stdlib.h>
#include <string.h>

const struct locale_manifest locale_manifest_default = {
    .gravity = {0, 0, -1},
    .placement = {.rotation = {0, 0, 0, 1}},
    .open_sky = true,
    .triangulation = TRIANGULATION_ANTI,
};

/* how far from length 1 a unit vector may be: 1e-3, so that [0, -0.7071, -0.7071] is one */
#define UNIT_TOLERANCE 1e-3

static bool is_unit(double length)
{
    return fabs(length - 1) <= UNIT_TOLERANCE;
}

static enum err_code check_crs(const struct locale_manifest *manifest, struct err *err)
{
    uint32_t crs = manifest->crs;

    if (crs == 0)
        return ERR_OK;
    if (crs < LOCALE_CRS_MIN || crs > LOCALE_CRS_MAX)
        err_limit(err, ERR_BAD_INPUT, crs < LOCALE_CRS_MIN ? LOCALE_CRS_MIN : LOCALE_CRS_MAX, crs,
                  "EPSG:%u is outside EPSG:%d..%d", crs, LOCALE_CRS_MIN, LOCALE_CRS_MAX);
    else if (manifest->has_geo)
        err_set(err, ERR_UNPROCESSABLE,
                "a frame is either a plane at a place (geo) or in a coordinate system (crs)");
    else
        return ERR_OK;
    return err_at(err, "/crs");
}

enum err_code locale_manifest_check(struct locale_manifest *manifest, struct err *err)
{
    double *q = manifest->placement.rotation;
    double length = vec3_length(manifest->gravity);

    if (!is_unit(length))
        return err_set_at(err, ERR_UNPROCESSABLE, "/gravity",
                          "gravity must be a unit vector, its length is %.17g", length);
    manifest->gravity = (struct vec3){manifest->gravity.x / length, manifest->gravity.y / length,
                                      manifest->gravity.z / length};
    length = length_xy(length_xy(q[0], q[1]), length_xy(q[2], q[3]));
    if (!is_unit(length))
        return err_set_at(err, ERR_UNPROCESSABLE, "/placement/rotation",
                          "rotation must be a unit quaternion, its length is %.17g", length);
    for (int i = 0; i < 4; i++)
        q[i] /= length;
    if (!vec3_is_finite(manifest->placement.translation))
        return err_set_at(err, ERR_BAD_INPUT, "/placement/translation",
                          "translation must be finite");
    if (manifest->has_geo && !(fabs(manifest->geo_lat_deg) <= 90))
        return err_limit_at(err, ERR_BAD_INPUT, "/geo/lat", 90, manifest->geo_lat_deg,
                            "lat %.17g is outside -90..90", manifest->geo_lat_deg);
    if (manifest->has_geo && !(fabs(manifest->geo_lng_deg) <= 180))
        return err_limit_at(err, ERR_BAD_INPUT, "/geo/lng", 180, manifest->geo_lng_deg,
                            "lng %.17g is outside -180..180", manifest->geo_lng_deg);
    return check_crs(manifest, err);
}

static struct locale *locale_allocate(const char *id, size_t layers_max, struct err *err)
{
    struct locale *locale = calloc(1, sizeof *locale);

    if (locale && layers_max > 0)
        locale->layers = calloc(layers_max, sizeof(struct layer *));
    if (!locale || (layers_max > 0 && !locale->layers)) {
        free(locale);
        err_set(err, ERR_NO_MEMORY, "no memory for locale %s", id);
        return NULL;
    }
    memcpy(locale->id, id, strlen(id) + 1);
    locale->refs = 1;
    return locale;
}

void locale_manifest_base(const struct locale_manifest *manifest, char out[static WORLD_ID_MAX + 1])
{
    snprintf(out, WORLD_ID_MAX + 1, "%.*s", (int)strcspn(manifest->from, "@"), manifest->from);
}

struct locale *locale_create(const char *id, const struct locale_manifest *manifest,
                             struct err *err)
{
    struct locale *locale;

    CHECK(world_id_is_valid(id, strlen(id)));
    locale = locale_allocate(id, 0, err);
    if (!locale)
        return NULL;
    locale->revision = 1;
    locale->manifest = *manifest;
    locale->memory_bytes = sizeof *locale;
    return locale;
}

static void locale_measure(const struct locale *locale, bool *has_bounds, struct box3 *bounds,
                           uint64_t *memory_bytes)
{
    *has_bounds = false;
    *bounds = (struct box3){{0, 0, 0}, {0, 0, 0}};
    *memory_bytes = sizeof *locale;
    for (size_t i = 0; i < locale->layer_count; i++) {
        struct box3 box;

        if (layer_bounds(locale->layers[i], &box)) {
            *bounds = *has_bounds ? box3_union(*bounds, box) : box;
            *has_bounds = true;
        }
        *memory_bytes += locale->layers[i]->memory_bytes;
    }
}

/* The layer that fits the manifest: from `prepared`, or made now. */
static struct layer *layer_for(const struct locale_manifest *manifest, struct layer *layer,
                               const struct locale *prepared, struct err *err)
{
    for (size_t i = 0; prepared && i < prepared->layer_count; i++) {
        struct layer *made = prepared->layers[i];

        if (layer_is_rebuilt(made, layer) &&
            layer_fits(made, manifest->triangulation, manifest->gravity))
            return layer_carried(made, layer, err);
    }
    return layer_fitted(layer, manifest->triangulation, manifest->gravity, err);
}

/* Fills the layers of a new locale; false when one could not be made. */
static bool locale_fill(struct locale *next, const struct locale *locale, struct layer *put,
                        const char *dropped, const struct locale *prepared, struct err *err)
{
    bool is_placed = put == NULL;

    for (size_t i = 0; i < locale->layer_count || !is_placed; i++) {
        struct layer *layer = i < locale->layer_count ? locale->layers[i] : put;
        struct layer *fitted;

        if (layer == put || (put && strcmp(layer->id, put->id) == 0)) {
            layer = put;
            is_placed = true;
        } else if (dropped && strcmp(layer->id, dropped) == 0) {
            continue;
        }
        fitted = layer_for(&next->manifest, layer, prepared, err);
        if (!fitted)
            return false;
        next->layers[next->layer_count++] = fitted;
    }
    return true;
}

static bool spaces_differ(struct mesh_space a, struct mesh_space b)
{
    return a.frame != b.frame || a.is_outward != b.is_outward;
}

/* Are all layers beside `put` in its space? */
static enum err_code check_space(const struct locale *locale, const struct layer *put,
                                 struct err *err)
{
    static const char *const names[] = {"cartesian", "spherical", "cylindrical"};
    static const char *const pulls[] = {", gravity in", ", gravity out"};

    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct layer *layer = locale->layers[i];
        struct mesh_space a = layer->space, b = put->space;

        if (strcmp(layer->id, put->id) == 0 || !spaces_differ(a, b))
            continue;
        return err_set_at(
            err, ERR_UNPROCESSABLE, "frame",
            "a locale has one gravity: layer %s is %s%s, and this one would be %s%s; put it into "
            "a locale of its own",
            layer->id, names[a.frame], a.frame ? pulls[a.is_outward] : "", names[b.frame],
            b.frame ? pulls[b.is_outward] : "");
    }
    return ERR_OK;
}

struct locale *locale_next(const struct locale *locale, const struct locale_manifest *manifest,
                           struct layer *put, const char *dropped, const struct locale *prepared,
                           struct err *err)
{
    struct locale *next;

    if (put && !locale_layer(locale, put->id) && locale->layer_count >= LOCALE_LAYERS_MAX) {
        err_limit(err, ERR_WORLD_FULL, LOCALE_LAYERS_MAX, (double)(locale->layer_count + 1),
                  "a locale takes %d layers, %s is full", LOCALE_LAYERS_MAX, locale->id);
        return NULL;
    }
    if (put && check_space(locale, put, err))
        return NULL;
    next = locale_allocate(locale->id, locale->layer_count + 1, err);
    if (!next)
        return NULL;
    next->revision = locale->revision + 1;
    next->transform_seq = locale->transform_seq;
    next->manifest = manifest ? *manifest : locale->manifest;
    if (!locale_fill(next, locale, put, dropped, prepared, err)) {
        locale_unref(next);
        return NULL;
    }
    locale_measure(next, &next->has_bounds, &next->bounds, &next->memory_bytes);
    return next;
}

struct locale *locale_with_moved(const struct locale *locale, struct layer *moved,
                                 uint64_t transform_seq, struct err *err)
{
    struct locale *next = locale_allocate(locale->id, locale->layer_count, err);

    if (!next)
        return NULL;
    next->revision = locale->revision;
    next->transform_seq = transform_seq;
    next->manifest = locale->manifest;
    for (size_t i = 0; i < locale->layer_count; i++) {
        struct layer *layer = locale->layers[i];

        next->layers[next->layer_count++] =
            layer_ref(moved && strcmp(layer->id, moved->id) == 0 ? moved : layer);
    }
    next->pins = earlier_list_ref(locale->pins);
    next->past = earlier_list_ref(locale->past);
    locale_measure(next, &next->has_bounds, &next->bounds, &next->memory_bytes);
    return next;
}

struct locale *locale_copy(const struct locale *locale, struct err *err)
{
    return locale_with_moved(locale, NULL, locale->transform_seq, err);
}

struct locale *locale_assemble(const char *id, uint64_t revision,
                               const struct locale_manifest *manifest, struct layer *const *layers,
                               size_t layer_count, struct err *err)
{
    struct locale *locale = locale_allocate(id, layer_count, err);

    for (size_t i = 0; i < layer_count; i++) {
        if (locale)
            locale->layers[locale->layer_count++] = layers[i];
        else
            layer_unref(layers[i]);
    }
    if (!locale)
        return NULL;
    locale->revision = revision;
    locale->manifest = *manifest;
    locale_measure(locale, &locale->has_bounds, &locale->bounds, &locale->memory_bytes);
    return locale;
}

struct locale *locale_with_bodies(const struct locale *locale, struct layer *const *bodies,
                                  size_t count, struct err *err)
{
    struct locale *next = locale_allocate(locale->id, locale->layer_count + count, err);

    for (size_t i = 0; next && i < locale->layer_count; i++)
        next->layers[next->layer_count++] = layer_ref(locale->layers[i]);
    for (size_t i = 0; i < count; i++) {
        if (next)
            next->layers[next->layer_count++] = bodies[i];
        else
            layer_unref(bodies[i]);
    }
    if (!next)
        return NULL;
    next->revision = locale->revision;
    next->transform_seq = locale->transform_seq;
    next->manifest = locale->manifest;
    locale_measure(next, &next->has_bounds, &next->bounds, &next->memory_bytes);
    return next;
}

struct locale *locale_ref(struct locale *locale)
{
    __atomic_fetch_add(&locale->refs, 1, __ATOMIC_RELAXED);
    return locale;
}

void locale_unref(struct locale *locale)
{
    if (!locale || __atomic_fetch_sub(&locale->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < locale->layer_count; i++)
        layer_unref(locale->layers[i]);
    earlier_list_unref(locale->pins);
    earlier_list_unref(locale->past);
    free(locale->layers);
    free(locale);
}

const struct layer *locale_layer(const struct locale *locale, const char *id)
{
    for (size_t i = 0; i < locale->layer_count; i++)
        if (strcmp(locale->layers[i]->id, id) == 0)
            return locale->layers[i];
    return NULL;
}

enum err_code locale_no_layer(const struct locale *locale, const char *id, enum err_code code,
                              struct err *err)
{
    const char *names[LOCALE_LAYERS_MAX + 1] = {NULL}, *guess;

    for (size_t i = 0; i < locale->layer_count; i++)
        names[i] = locale->layers[i]->id;
    guess = nearest_word(id, strlen(id), names);
    return err_set_at(err, code, code == ERR_LAYER_UNKNOWN ? "layer" : "/layer",
                      "there is no layer \"%.64s\" in locale %s%s%s%s", id, locale->id,
                      guess ? " (did you mean \"" : "", guess ? guess : "", guess ? "\"?)" : "");
}

static bool layers_validate(const struct locale *locale, struct err *err)
{
    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct layer *layer = locale->layers[i];

        if (!world_id_is_valid(layer->id, strlen(layer->id)) ||
            locale_layer(locale, layer->id) != layer) {
            err_set(err, ERR_INTERNAL, "%s: layer id \"%s\" is wrong or double", locale->id,
                    layer->id);
            return false;
        }
        if (!layer_fits(layer, locale->manifest.triangulation, locale->manifest.gravity)) {
            err_set(err, ERR_INTERNAL, "%s/%s is split or pulled another way than its locale",
                    locale->id, layer->id);
            return false;
        }
        if (spaces_differ(layer->space, locale->layers[0]->space)) {
            err_set(err, ERR_INTERNAL, "%s/%s is in another space than %s", locale->id, layer->id,
                    locale->layers[0]->id);
            return false;
        }
        if (!layer_validate(layer, err))
            return false;
    }
    return true;
}

struct mesh_space locale_space(const struct locale *locale)
{
    return locale->layer_count > 0 ? locale->layers[0]->space
                                   : (struct mesh_space){.frame = MESH_CARTESIAN};
}

struct vec3 locale_gravity(const struct locale *locale, struct vec3 point)
{
    struct mesh_space space = locale_space(locale);

    return space.frame == MESH_CARTESIAN ? locale->manifest.gravity
                                         : mesh_space_gravity(space, point);
}

/* Does the line through p along d, from `enter` lengths of d on, meet the box? */
static bool box_meets_line(const struct box3 *box, struct vec3 p, struct vec3 d, double enter)
{
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    const double from[3] = {p.x, p.y, p.z}, to[3] = {d.x, d.y, d.z};
    double leave = INFINITY;

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

bool locale_gravity_meets(const struct locale *locale, struct vec3 point, const struct box3 *box)
{
    struct mesh_space space = locale_space(locale);
    struct vec3 gravity = locale_gravity(locale, point), foot;

    if (space.frame == MESH_CARTESIAN)
        return box_meets_line(box, point, gravity, -INFINITY);
    foot = (struct vec3){0, 0, space.frame == MESH_SPHERICAL ? 0 : point.z};
    return box_meets_line(box, foot, space.is_outward ? gravity : vec3_opposite(gravity), 0);
}

bool locale_needs_build(const struct locale *locale, const struct locale_manifest *manifest)
{
    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct layer *layer = locale->layers[i];

        if (layer->kind == LAYER_MESH &&
            !layer_fits(layer, manifest->triangulation, manifest->gravity))
            return true;
    }
    return false;
}

bool locale_validate(const struct locale *locale, struct err *err)
{
    struct locale_manifest manifest = locale->manifest;
    struct box3 bounds;
    bool has_bounds;
    uint64_t memory_bytes;

    if (!world_id_is_valid(locale->id, strlen(locale->id)) || locale->revision == 0) {
        err_set(err, ERR_INTERNAL, "locale \"%s\" at revision %llu: id or revision is wrong",
                locale->id, (unsigned long long)locale->revision);
        return false;
    }
    if (locale_manifest_check(&manifest, err) || !layers_validate(locale, err))
        return false;
    locale_measure(locale, &has_bounds, &bounds, &memory_bytes);
    if (has_bounds != locale->has_bounds || memory_bytes != locale->memory_bytes ||
        memcmp(&bounds, &locale->bounds, sizeof bounds) != 0) {
        err_set(err, ERR_INTERNAL, "%s: bounds or bytes are not those of its layers", locale->id);
        return false;
    }
    return true;
}
