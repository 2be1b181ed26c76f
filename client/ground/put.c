/*
 * A copy that is changed by values: each change makes the locale's next state, which shares all but
 * what was changed, and the next publication shows it.
 */
#include "client/ground/put.h"

#include "world/values/placement.h"

#include <stdlib.h>
#include <string.h>

/* ---- values of the header -------------------------------------------------------------------- */

bool manifest_check(struct locale_manifest *manifest, struct err *err)
{
    struct locale_manifest normalised = *manifest;
    const double *q = manifest->placement.rotation;
    double turned = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];

    if (locale_manifest_check(&normalised, err))
        return false;
    if (!(fabs(vec3_length(manifest->gravity) - 1) < 1e-12))
        manifest->gravity = normalised.gravity;
    if (!(fabs(turned - 1) < 1e-12))
        manifest->placement = normalised.placement;
    return true;
}

bool manifest_of(const struct kota_ground_manifest *in, struct locale_manifest *out,
                 struct err *err)
{
    *out = locale_manifest_default;
    if (!in)
        return true;
    out->gravity = (struct vec3){in->gravity[0], in->gravity[1], in->gravity[2]};
    out->placement.translation =
        (struct vec3){in->translation[0], in->translation[1], in->translation[2]};
    memcpy(out->placement.rotation, in->rotation, sizeof out->placement.rotation);
    out->open_sky = in->is_open_to_sky;
    out->triangulation = (enum triangulation)in->triangulation;
    if (in->triangulation > KOTA_GROUND_ALTERNATING) {
        err_set(err, ERR_BAD_INPUT, "triangulation is %u, it may be 0 to 2", in->triangulation);
        err_at(err, "/triangulation");
        return false;
    }
    return manifest_check(out, err);
}

struct layer *mesh_layer_of(const char *id, enum layer_role role, struct vec3 gravity,
                            const void *image, size_t image_bytes, const void *polygons,
                            size_t polygons_bytes, struct err *err)
{
    struct mesh *mesh = mesh_open(image, image_bytes, NULL, NULL, err);
    struct polygon_edit all = {.removed = NULL};
    struct layer *layer = NULL;

    if (!mesh)
        return NULL;
    if (!polygons) {
        all.add.starts = calloc(1, sizeof *all.add.starts);
        if (!all.add.starts)
            err_set(err, ERR_NO_MEMORY, "no memory for layer %s", id);
    } else if (polygon_edit_decode(polygons, polygons_bytes, &all, err) == ERR_OK &&
               all.removed_count > 0) {
        err_set(err, ERR_DAMAGED, "the polygons of layer %s are an edit that removes some", id);
        polygon_edit_free(&all);
    }
    if (all.add.starts)
        layer = layer_adopt_mesh(id, role, mesh, &all.add, gravity, err); /* takes both */
    else
        mesh_unref(mesh);
    polygon_edit_free(&all);
    return layer;
}

struct layer *layer_after_polygons(const struct layer *layer, const void *bytes, size_t length,
                                   struct err *err)
{
    static const struct polygon_limits none = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct polygon_edit edit;
    struct layer *next = NULL;

    if (layer->kind != LAYER_MESH || layer_polygon_set(layer)->polygon_count == 0) {
        err_set(err, ERR_LAYER_KIND, "layer %s %s", layer->id,
                layer->kind == LAYER_MESH ? "was put without its polygons, it cannot be edited"
                                          : "is a heightfield, it has no polygons");
        return NULL;
    }
    if (polygon_edit_decode(bytes, length, &edit, err))
        return NULL;
    if (polygon_edit_check(layer_polygon_set(layer), &edit, &none, err) == ERR_OK)
        next = layer_edited(layer, &edit, NULL, NULL, err);
    polygon_edit_free(&edit);
    return next;
}

struct layer *layer_after_samples(const struct layer *layer, const struct sample_rect *rect,
                                  const float *heights_m, struct err *err)
{
    const struct heightfield_spec *spec;
    struct heightfield *field;

    if (layer->kind != LAYER_HEIGHTFIELD) {
        err_set(err, ERR_LAYER_KIND, "layer %s is a mesh, it has no samples", layer->id);
        return NULL;
    }
    spec = heightfield_spec(layer->field);
    if (rect->cols == 0 || rect->rows == 0 || rect->column >= spec->cols ||
        rect->cols > spec->cols - rect->column || rect->row >= spec->rows ||
        rect->rows > spec->rows - rect->row) {
        err_set(err, ERR_UNPROCESSABLE,
                "rect %u,%u,%u,%u is not inside layer %s of %u × %u samples", rect->column,
                rect->row, rect->cols, rect->rows, layer->id, spec->cols, spec->rows);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)rect->cols * rect->rows; i++)
        if (isinf(heights_m[i])) {
            err_set(err, ERR_BAD_INPUT, "height %zu of the rect is infinite", i);
            return NULL;
        }
    field = heightfield_with_samples(layer->field, rect, heights_m, err);
    return field ? layer_create_heightfield(layer->id, field, err) : NULL;
}

struct layer *layer_widened(const struct layer *layer, const float range[2])
{
    struct err ignored = {.code = ERR_OK};
    struct heightfield *field = heightfield_widened(layer->field, range[0], range[1], &ignored);

    return field ? layer_create_heightfield(layer->id, field, &ignored) : NULL;
}

struct layer *layer_posed(const struct layer *layer, const struct kota_ground_pose *pose,
                          uint64_t transform_seq, struct err *err)
{
    struct pose to = {
        {pose->translation[0], pose->translation[1], pose->translation[2]}, pose->yaw_deg, {0}};
    struct vec3 velocity = {pose->velocity[0], pose->velocity[1], pose->velocity[2]};
    struct vec3 spin = {pose->spin[0], pose->spin[1], pose->spin[2]};
    struct layer *moved;
    double length;

    if (layer->kind != LAYER_MESH || layer->space.frame != MESH_CARTESIAN) {
        err_set(err, ERR_LAYER_KIND, "layer %s cannot be moved", layer->id);
        return NULL;
    }
    memcpy(to.rotation, pose->rotation, sizeof to.rotation);
    if (!vec3_is_finite(to.translation) || !isfinite(to.yaw_deg) || !vec3_is_finite(velocity) ||
        !vec3_is_finite(spin)) {
        err_set(err, ERR_BAD_INPUT, "the pose of layer %s is not finite", layer->id);
        return NULL;
    }
    if (pose_is_tilted(&to) && !rotation_is_unit(to.rotation, &length)) {
        err_set(err, ERR_UNPROCESSABLE, "the rotation of layer %s has length %g, must be 1",
                layer->id, length);
        return NULL;
    }
    moved = layer_moved(layer, &to, 0, transform_seq, err);
    if (moved) { /* the daemon's velocity, and none of our own clock */
        moved->motion.velocity = velocity;
        moved->motion.spin = spin;
    }
    return moved;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The locale that is to be changed; NULL, and the error: there is none, or it is followed. */
static struct held_locale *held_of(const struct kota_ground_copy *copy, const char *id,
                                   struct err *err)
{
    struct held_locale *held = id ? copy_find(copy, id) : NULL;

    if (held && held->draft && !held->following)
        return held;
    if (held && held->following)
        err_set(err, ERR_CONFLICT, "locale %s is followed: only its daemon changes it", id);
    else
        err_set(err, ERR_LOCALE_UNKNOWN, "there is no locale %s", id ? id : "");
    err_at(err, "locale");
    return NULL;
}

static const struct layer *layer_of(const struct held_locale *held, const char *id, struct err *err)
{
    const struct layer *layer = held && id ? locale_layer(held->draft, id) : NULL;

    if (held && !layer)
        locale_no_layer(held->draft, id ? id : "", ERR_LAYER_UNKNOWN, err);
    return layer;
}

static bool is_layer_id(const char *id, struct err *err)
{
    if (id && world_id_is_valid(id, strlen(id)))
        return true;
    err_set(err, ERR_BAD_INPUT, "\"%.64s\" is no id: 1 to %d characters of A-Za-z0-9_-",
            id ? id : "", WORLD_ID_MAX);
    err_at(err, "layer");
    return false;
}

/* Takes `next`, which may be NULL: then there is an error. */
static bool change(struct held_locale *held, struct locale *next, uint64_t revision,
                   const struct err *err, struct kota_ground_error *error)
{
    if (!next)
        return ground_fail(error, err);
    next->revision = revision;
    held_draft(held, next);
    held_show(held, true);
    return true;
}

/* The locale with that layer (taken; NULL: there is an error) added or replaced. */
static bool put(struct held_locale *held, struct layer *layer, uint64_t revision, struct err *err,
                struct kota_ground_error *error)
{
    struct locale *next = layer ? locale_next(held->draft, NULL, layer, NULL, NULL, err) : NULL;

    layer_unref(layer);
    return change(held, next, revision, err, error);
}

bool kota_ground_put_locale(struct kota_ground_copy *copy, const char *locale,
                            const struct kota_ground_manifest *manifest, uint64_t revision,
                            struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct locale_manifest checked;
    struct held_locale *held;

    if (!manifest_of(manifest, &checked, &err))
        return ground_fail(error, &err);
    held = copy_add(copy, locale, &err);
    if (!held)
        return ground_fail(error, &err);
    if (held->following)
        return held_of(copy, locale, &err) ? true : ground_fail(error, &err);
    return change(held,
                  held->draft ? locale_next(held->draft, &checked, NULL, NULL, NULL, &err)
                              : locale_create(locale, &checked, &err),
                  revision, &err, error);
}

bool kota_ground_put_field(struct kota_ground_copy *copy, const char *locale, const char *layer,
                           const struct kota_ground_field *field, const float *heights_m,
                           uint64_t revision, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);
    struct heightfield_spec spec = {
        field->cols,       field->rows,       field->origin[0],   field->origin[1],
        field->spacing[0], field->spacing[1], TRIANGULATION_ANTI, 0};
    struct heightfield *made;

    if (!held || !is_layer_id(layer, &err))
        return ground_fail(error, &err);
    spec.triangulation = held->draft->manifest.triangulation;
    made = heightfield_create(&spec, heights_m, &err);
    return put(held, made ? layer_create_heightfield(layer, made, &err) : NULL, revision, &err,
               error);
}

bool kota_ground_put_samples(struct kota_ground_copy *copy, const char *locale, const char *layer,
                             const uint32_t rect[4], const float *heights_m, uint64_t revision,
                             struct kota_ground_error *error)
{
    const struct sample_rect samples = {rect[0], rect[1], rect[2], rect[3]};
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);
    const struct layer *old = layer_of(held, layer, &err);

    return old ? put(held, layer_after_samples(old, &samples, heights_m, &err), revision, &err,
                     error)
               : ground_fail(error, &err);
}

bool kota_ground_put_mesh(struct kota_ground_copy *copy, const char *locale, const char *layer,
                          bool is_ceiling, const void *image, size_t image_bytes,
                          const void *polygons, size_t polygons_bytes, uint64_t revision,
                          struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);

    if (!held || !is_layer_id(layer, &err))
        return ground_fail(error, &err);
    return put(held,
               mesh_layer_of(layer, is_ceiling ? LAYER_CEILING : LAYER_GROUND,
                             held->draft->manifest.gravity, image, image_bytes, polygons,
                             polygons_bytes, &err),
               revision, &err, error);
}

bool kota_ground_edit_polygons(struct kota_ground_copy *copy, const char *locale, const char *layer,
                               const void *edit, size_t edit_bytes, uint64_t revision,
                               struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);
    const struct layer *old = layer_of(held, layer, &err);

    return old ? put(held, layer_after_polygons(old, edit, edit_bytes, &err), revision, &err, error)
               : ground_fail(error, &err);
}

bool kota_ground_put_pose(struct kota_ground_copy *copy, const char *locale, const char *layer,
                          const struct kota_ground_pose *pose, uint64_t transform_seq,
                          struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);
    const struct layer *old = layer_of(held, layer, &err);
    struct layer *moved = old ? layer_posed(old, pose, transform_seq, &err) : NULL;
    struct locale *next = moved ? locale_with_moved(held->draft, moved, transform_seq, &err) : NULL;

    layer_unref(moved);
    return next ? change(held, next, held->draft->revision, &err, error) : ground_fail(error, &err);
}

bool kota_ground_drop(struct kota_ground_copy *copy, const char *locale, const char *layer,
                      uint64_t revision, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct held_locale *held = held_of(copy, locale, &err);

    if (!held || (layer && !layer_of(held, layer, &err)))
        return ground_fail(error, &err);
    if (!layer) {
        copy_remove(copy, held);
        return true;
    }
    return change(held, locale_next(held->draft, NULL, NULL, layer, NULL, &err), revision, &err,
                  error);
}
