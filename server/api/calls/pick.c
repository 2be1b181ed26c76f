/*
 * POST …/pick  {"camera":{"eye","target","up","fov_y_deg"},"viewport":[w,h],"pixel":[px,py],
 *               "tile_side":1,"layer"}
 *         or   {"inverse_view_projection":[16],"depth":"gl|d3d",…}
 *   ->  {"locale","revision","status":"hit|miss","hit":Hit|null,"tile":Tile|null}
 *
 * The tile is the logical one of the heightfield that was hit (text P); a mesh has none.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/encode.h"

static const char *const items[] = {
    "camera", "inverse_view_projection", "depth", "viewport", "pixel", NULL};

static enum err_code decode_viewport(struct call *call, struct viewport *out, struct err *err)
{
    struct vec2 size, pixel;

    if (json_get_vec2(json_member(call->json, "viewport"), &size, err))
        return err_at(err, "/viewport");
    if (json_get_vec2(json_member(call->json, "pixel"), &pixel, err))
        return err_at(err, "/pixel");
    *out = (struct viewport){size.x, size.y, pixel.x, pixel.y};
    return pick_viewport_check(out, err) ? err_at(err, "/viewport") : ERR_OK;
}

static enum err_code decode_camera(const cJSON *json, struct camera *out, struct err *err)
{
    static const char *const members[] = {"eye", "target", "up", "fov_y_deg", NULL};

    if (json_only_members(json, members, "/camera", err))
        return err->code;
    if (json_get_vec3(json_member(json, "eye"), &out->eye, err))
        return err_at(err, "/camera/eye");
    if (json_get_vec3(json_member(json, "target"), &out->target, err))
        return err_at(err, "/camera/target");
    if (json_get_vec3(json_member(json, "up"), &out->up, err))
        return err_at(err, "/camera/up");
    if (json_get_number(json_member(json, "fov_y_deg"), &out->fov_y_deg, err))
        return err_at(err, "/camera/fov_y_deg");
    return ERR_OK;
}

/* Is the view given in exactly one of the two ways? */
static enum err_code check_view(struct call *call, struct err *err)
{
    const cJSON *view = json_given(call->json, "camera");
    const cJSON *inverse = json_given(call->json, "inverse_view_projection");

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
    return ERR_OK;
}

/* The ray through the pixel, from whichever of the two ways was given. */
static enum err_code decode_ray(struct call *call, const struct viewport *viewport, struct ray *ray,
                                struct err *err)
{
    static const char *const depths[] = {"gl", "d3d", NULL};
    const cJSON *view = json_given(call->json, "camera");
    const cJSON *inverse = json_given(call->json, "inverse_view_projection");
    struct camera camera;
    double m[16];
    int depth = DEPTH_GL;

    if (view) {
        if (decode_camera(view, &camera, err))
            return err->code;
        return pick_camera_ray(&camera, viewport, ray, err) && !err->pointer[0]
                   ? err_at(err, "/camera")
                   : err->code;
    }
    if (json_get_numbers(inverse, 16, m, err))
        return err_at(err, "/inverse_view_projection");
    if (option_word(call, "depth", depths, &depth, err))
        return err->code;
    return pick_unproject_ray(m, (enum depth_range)depth, viewport, ray, err)
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

static void encode(struct call *call, const struct locale_hit *hit, uint32_t tile_side)
{
    struct json_writer *w = &call->out;
    struct logical_tile tile;

    call_begin_answer(call);
    json_key(w, "status");
    json_string(w, hit ? "hit" : "miss");
    json_key(w, "hit");
    if (hit) {
        json_begin_object(w);
        encode_hit_members(w, hit);
        json_end_object(w);
    } else {
        json_null(w);
    }
    json_key(w, "tile");
    if (hit && hit->layer->kind == LAYER_HEIGHTFIELD) {
        pick_logical_tile(hit->layer->field, hit->at.cell, tile_side, &tile);
        encode_tile(w, &tile);
    } else {
        json_null(w);
    }
    json_end_object(w);
}

enum err_code pick_post_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"tile_side", "layer", NULL};
    uint64_t tile_side = 1;
    struct layer_choice choice;
    struct viewport viewport;
    struct locale_hit hit;
    struct ray ray;
    bool is_hit;

    if (options_open_json(call, items, names, err) || decode_viewport(call, &viewport, err) ||
        check_view(call, err) ||
        option_integer(call, "tile_side", 1, HEIGHTFIELD_SIDE_MAX, &tile_side, err) ||
        option_choose(call, &choice, err) || decode_ray(call, &viewport, &ray, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    is_hit = locale_ray(&choice, &ray, RAY_CLOSEST, &hit, NULL);
    encode(call, is_hit ? &hit : NULL, (uint32_t)tile_side);
    return ERR_OK;
}
API_HANDLER(pick_post, 1, CALL_NEEDS_LOCALE)
