/*
 * POST …/pick  {"camera":{"eye","target","up":[0,0,1],"fov_y_deg":60},"viewport":[w,h],
 *               "pixel":[px,py] or "pixels":[[px,py]…],"tile_side":1,"layer"}
 *         or   {"inverse_view_projection":[16],"depth":"gl|webgpu|reversed",…}
 *   ->  {"locale","revision","status":"hit|miss","hit":Hit|null,"tile":Tile|null}
 *   ->  of pixels: results: {"status","hit","tile"}
 * GET  …/pick?eye=&target=&up=&fov_y_deg=&viewport=&pixel=&tile_side=&layer=  ->  as of one pixel
 *
 * The tile is the logical one of the heightfield that was hit (text P); a mesh has none. A camera
 * without `up` that looks along the Z axis has +Y upwards in its picture, as a map has north.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/encode.h"

#include <stdio.h>

/* Where the rays come from: a camera, or a matrix. */
struct view {
    bool is_matrix;
    struct camera camera;
    double inverse[16];
    enum depth_range depth;
    struct viewport viewport; /* its pixel is that of the ray that is asked */
};

struct pick_options {
    struct layer_choice choice;
    struct view view;
    uint64_t tile_side;
};

static enum err_code decode_camera(const cJSON *json, struct camera *out, struct err *err)
{
    static const char *const members[] = {"eye", "target", "up", "fov_y_deg", NULL};
    const cJSON *up = json_given(json, "up"), *fov = json_given(json, "fov_y_deg");

    if (json_only_members(json, members, "/camera", err))
        return err->code;
    if (json_get_vec3(json_member(json, "eye"), &out->eye, err))
        return err_at(err, "/camera/eye");
    if (json_get_vec3(json_member(json, "target"), &out->target, err))
        return err_at(err, "/camera/target");
    out->up = pick_default_up(out);
    if (up && json_get_vec3(up, &out->up, err))
        return err_at(err, "/camera/up");
    if (fov && json_get_number(fov, &out->fov_y_deg, err))
        return err_at(err, "/camera/fov_y_deg");
    return ERR_OK;
}

/* Is the view given in exactly one of the two ways? */
static enum err_code check_given(struct call *call, struct err *err)
{
    const cJSON *view = json_given(call->json, "camera");
    const cJSON *inverse = json_given(call->json, "inverse_view_projection");
    bool has_pixel = json_given(call->json, "pixel") != NULL;

    if ((view != NULL) == (inverse != NULL)) {
        err_set(err, ERR_BAD_INPUT,
                "exactly one of camera and inverse_view_projection must be given, not %s",
                view ? "both" : "neither");
        return err_at(err, view ? "/inverse_view_projection" : "/camera");
    }
    if (view && json_given(call->json, "depth")) {
        err_set(err, ERR_BAD_INPUT, "depth belongs to inverse_view_projection, not to camera");
        return err_at(err, "/depth");
    }
    if (has_pixel == (json_given(call->json, "pixels") != NULL)) {
        err_set(err, ERR_BAD_INPUT, "exactly one of pixel and pixels must be given, not %s",
                has_pixel ? "both" : "neither");
        return err_at(err, has_pixel ? "/pixels" : "/pixel");
    }
    return ERR_OK;
}

/* The error of a viewport or camera that cannot be: its member is in the pointer. */
static enum err_code check_view(const struct view *view, const char *camera, const char *slash,
                                struct err *err)
{
    char member[sizeof err->pointer];

    if (pick_viewport_check(&view->viewport, err))
        return err_at(err, "%sviewport", slash);
    if (view->is_matrix || !pick_camera_check(&view->camera, err))
        return err->code;
    snprintf(member, sizeof member, "%s", err->pointer);
    return err_at(err, "%s%s", camera, member);
}

static enum err_code decode_view(struct call *call, struct view *out, struct err *err)
{
    static const char *const depths[] = {"gl", "webgpu", "reversed", NULL};
    const cJSON *camera = json_given(call->json, "camera");
    int depth = DEPTH_GL;

    *out = (struct view){.is_matrix = !camera, .camera.fov_y_deg = PICK_FOV_Y_DEG};
    if (json_get_numbers(json_member(call->json, "viewport"), 2, &out->viewport.width_px, err))
        return err_at(err, "/viewport");
    if (camera && decode_camera(camera, &out->camera, err))
        return err->code;
    if (!camera &&
        json_get_numbers(json_member(call->json, "inverse_view_projection"), 16, out->inverse, err))
        return err_at(err, "/inverse_view_projection");
    if (option_word(call, "depth", depths, &depth, err))
        return err->code;
    out->depth = (enum depth_range)depth;
    return check_view(out, "/camera/", "/", err);
}

static enum err_code decode_options(struct call *call, struct pick_options *out, struct err *err)
{
    out->tile_side = 1;
    if (option_integer(call, "tile_side", 1, HEIGHTFIELD_SIDE_MAX, &out->tile_side, err) ||
        option_choose(call, &out->choice, err) || call_check_budget_rays(call, &out->choice, err))
        return err->code;
    return ERR_OK;
}

/* An error that has no pointer yet is the pixel's. */
static enum err_code ray_of(const struct view *view, const double pixel[2], struct ray *ray,
                            struct err *err)
{
    const struct viewport viewport = {view->viewport.width_px, view->viewport.height_px, pixel[0],
                                      pixel[1]};

    if (pick_pixel_check(&viewport, err))
        return err->code;
    if (!view->is_matrix)
        return pick_camera_ray(&view->camera, &viewport, ray, err);
    return pick_unproject_ray(view->inverse, view->depth, &viewport, ray, err)
               ? err_at(err, "/inverse_view_projection")
               : ERR_OK;
}

static void encode_tile(struct json_writer *w, const struct logical_tile *tile)
{
    json_begin_object(w);
    json_key(w, "column");
    json_integer(w, tile->column);
    json_key(w, "row");
    json_integer(w, tile->row);
    json_key(w, "side");
    json_integer(w, tile->side);
    json_key(w, "center");
    json_vec3(w, tile->center);
    json_key(w, "bounds");
    json_box3(w, tile->bounds);
    json_end_object(w);
}

/* The ray's answer as members of an open object. */
static void answer_ray(struct call *call, const struct pick_options *options, const struct ray *ray)
{
    struct json_writer *w = &call->out;
    struct logical_tile tile;
    struct locale_hit hit;
    bool is_hit = locale_ray(&options->choice, ray, RAY_CLOSEST, &hit, NULL);

    json_key(w, "status");
    json_string(w, is_hit ? "hit" : "miss");
    json_key(w, "hit");
    if (is_hit) {
        json_begin_object(w);
        encode_hit_members(w, &hit);
        json_end_object(w);
    } else {
        json_null(w);
    }
    json_key(w, "tile");
    if (is_hit && hit.layer->kind == LAYER_HEIGHTFIELD) {
        pick_logical_tile(hit.layer->field, hit.at.cell, (uint32_t)options->tile_side, &tile);
        encode_tile(w, &tile);
    } else {
        json_null(w);
    }
}

static enum err_code answer_one(struct call *call, const struct pick_options *options,
                                const double pixel[2], const char *slash, struct err *err)
{
    struct ray ray;

    if (ray_of(&options->view, pixel, &ray, err))
        return err->pointer[0] ? err->code : err_at(err, "%spixel", slash);
    call_begin_answer(call);
    answer_ray(call, options, &ray);
    json_end_object(&call->out);
    return ERR_OK;
}

static enum err_code answer_many(struct call *call, const struct pick_options *options,
                                 const struct json_batch *batch, struct err *err)
{
    call_begin_results(call);
    for (size_t i = 0; i < batch->count; i++) {
        struct ray ray;

        if (call_check_budget(call, i, err))
            return err->code;
        if (ray_of(&options->view, batch->numbers + 2 * i, &ray, err))
            return err->pointer[0] ? err->code : err_at(err, "/pixels/%zu", i);
        json_begin_object(&call->out);
        answer_ray(call, options, &ray);
        json_end_object(&call->out);
    }
    call_end_results(call);
    return ERR_OK;
}

enum err_code pick_post_answer(struct call *call, struct err *err)
{
    static const char *const batches[] = {"pixels", NULL};
    static const char *const items[] = {
        "camera", "inverse_view_projection", "depth", "viewport", "pixel", "pixels", NULL};
    static const char *const names[] = {"tile_side", "layer", NULL};
    struct pick_options options;
    struct json_batch batch;
    double pixel[2];

    if (options_open_mixed(call, batches, items, names, err) || check_given(call, err) ||
        decode_view(call, &options.view, err))
        return err->code;
    if (json_given(call->json, "pixels"))
        return option_batch(call, &json_shape_pixels, &batch, err) ||
                       decode_options(call, &options, err)
                   ? err->code
                   : answer_many(call, &options, &batch, err);
    if (json_get_numbers(json_member(call->json, "pixel"), 2, pixel, err))
        return err_at(err, "/pixel");
    return decode_options(call, &options, err) ? err->code
                                               : answer_one(call, &options, pixel, "/", err);
}
API_HANDLER(pick_post, 1, CALL_NEEDS_LOCALE)

enum err_code pick_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"eye",   "target",    "up",    "fov_y_deg", "viewport",
                                        "pixel", "tile_side", "layer", NULL};
    struct pick_options options = {.view.camera.fov_y_deg = PICK_FOV_Y_DEG};
    struct camera *camera = &options.view.camera;
    double pixel[2];

    if (options_open_query(call, names, err) ||
        option_needed(call, "eye", 3, &camera->eye.x, err) ||
        option_needed(call, "target", 3, &camera->target.x, err))
        return err->code;
    camera->up = pick_default_up(camera);
    if (option_numbers(call, "up", 3, &camera->up.x, NULL, err) ||
        option_number(call, "fov_y_deg", &camera->fov_y_deg, NULL, err) ||
        option_needed(call, "viewport", 2, &options.view.viewport.width_px, err) ||
        option_needed(call, "pixel", 2, pixel, err) || check_view(&options.view, "", "", err) ||
        decode_options(call, &options, err))
        return err->code;
    return answer_one(call, &options, pixel, "", err);
}
API_HANDLER(pick_get, 1, CALL_NEEDS_LOCALE)
