/*
 * GET …/patches/{patch}/view.png?width=&height=&eye=&target=&up=&fov_y_deg=  ->  image/png
 *
 * The current patch: its spheres, the models of its bodies, the ground around. The spheres are
 * copied by the sand thread and the picture is drawn by the processor, on a worker. A picture takes
 * a second for a million pixels: there are limits to its size and to how many are drawn at once, so
 * that the pool is left to others. A patch that has no granules (it waits, or has ended) is shown
 * as the ground that it is.
 */
#include "api/calls.h"

#include "api/answer/file.h"
#include "api/drawing/camera_decode.h"
#include "api/options.h"
#include "api/calls/patches.h"
#include "sand/view/view.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH_DEFAULT = 640, HEIGHT_DEFAULT = 480, AT_ONCE_MAX = 2 };

#define PIXELS_MAX (1920.0 * 1080.0)

/* What a scene borrows. */
struct picture {
    struct view_scene scene;
    float (*spheres)[4];
    struct view_body *bodies;
    struct polygon_set *meshes; /* of the bodies */
    size_t mesh_count;
};

static void picture_free(struct picture *picture)
{
    for (size_t i = 0; i < picture->mesh_count; i++)
        polygon_set_free(&picture->meshes[i]);
    free(picture->meshes);
    free(picture->bodies);
    free(picture->spheres);
}

/* A model that was deleted meanwhile is not drawn. */
static enum err_code add_body(struct call *call, const struct patch_report_body *body,
                              struct picture *picture, struct err *err)
{
    const struct model *model = model_list_find(call->snapshot->models, body->model);
    struct polygon_set *mesh = &picture->meshes[picture->mesh_count];
    struct view_body *out = &picture->bodies[picture->scene.body_count];

    if (!model)
        return ERR_OK;
    if (polygon_decode(POLYGON_OBJ, model->bytes, model->length, NULL, &call_limits(call)->polygon,
                       mesh, err))
        return err->code;
    picture->mesh_count++;
    out->mesh =
        (struct triangle_mesh){mesh->vertices, mesh->corners, (uint32_t)mesh->polygon_count};
    out->origin = (struct vec3){body->position[0], body->position[1], body->position[2]};
    memcpy(out->orientation, body->orientation, sizeof out->orientation);
    picture->scene.body_count++;
    return ERR_OK;
}

static enum err_code add_bodies(struct call *call, const struct patch_report *report,
                                struct picture *picture, struct err *err)
{
    picture->meshes = calloc((size_t)report->body_count + 1, sizeof *picture->meshes);
    picture->bodies = calloc((size_t)report->body_count + 1, sizeof *picture->bodies);
    if (!picture->meshes || !picture->bodies)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u bodies", report->body_count);
    picture->scene.bodies = picture->bodies;
    for (uint32_t i = 0; i < report->body_count; i++)
        if (add_body(call, &report->bodies[i], picture, err))
            return err->code;
    return ERR_OK;
}

/* The spheres, unless there are none. */
static enum err_code add_spheres(struct call *call, const struct patch_report *report,
                                 struct picture *picture, struct err *err)
{
    if (report->state == PATCH_FILLING || patch_state_is_end(report->state))
        return ERR_OK;
    if (sand_patch_spheres(call->api->sand, report->number, &picture->spheres,
                           &picture->scene.sphere_count, err) == ERR_CONFLICT)
        err->code = ERR_OK; /* it has ended just now */
    picture->scene.spheres = (const float(*)[4])picture->spheres;
    return err->code;
}

static enum err_code draw(struct call *call, const struct patch_report *report,
                          const struct view_options *options, struct raster_bytes *png,
                          struct err *err)
{
    const struct layer *layer = call->locale ? locale_layer(call->locale, report->layer) : NULL;
    const struct convert_place *place = &report->place;
    struct picture picture = {.spheres = NULL};

    if (!layer || !layer->field)
        return err_set(err, ERR_NOT_FOUND, "the ground of patch %llu is gone",
                       (unsigned long long)report->number);
    picture.scene = (struct view_scene){
        .field = layer->field,
        .min = {place->low.x, place->low.y},
        .max = {place->low.x + place->size_m[0], place->low.y + place->size_m[1]},
        .depth_m = place->depth_m,
        .spheres_of_granule = GRANULE_SPHERES,
        .radius_m = scale_radius_m(report->scale),
        .material =
            report->material == MATERIAL_OWN ? material_like(&report->numbers) : report->material,
        .origin = {place->low.x, place->low.y, place->z_m},
    };
    if (add_spheres(call, report, &picture, err) == ERR_OK &&
        add_bodies(call, report, &picture, err) == ERR_OK)
        view_png(&picture.scene, options, png, err);
    picture_free(&picture);
    return err->code;
}

static bool has_camera(const struct call *call)
{
    for (size_t i = 0; i < call->query_count; i++)
        if (!span_equals(call->query[i].name, "width") &&
            !span_equals(call->query[i].name, "height"))
            return true;
    return false;
}

enum err_code patch_view_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"width", "height",    "eye", "target",
                                        "up",    "fov_y_deg", NULL};
    uint64_t width = WIDTH_DEFAULT, height = HEIGHT_DEFAULT;
    struct view_options options = {.camera = NULL};
    struct camera camera;
    struct raster_bytes png = {0};
    struct patch_report *report;

    if (options_open_query(call, names, err) ||
        option_integer(call, "width", VIEW_SIDE_MIN, VIEW_SIDE_MAX, &width, err) ||
        option_integer(call, "height", VIEW_SIDE_MIN, VIEW_SIDE_MAX, &height, err))
        return err->code;
    if ((double)width * (double)height > PIXELS_MAX)
        return err_limit(err, ERR_BAD_INPUT, PIXELS_MAX, (double)width * (double)height,
                         "a picture has at most %.0f pixels", PIXELS_MAX);
    if (has_camera(call)) {
        if (camera_of_query(call, &camera, err))
            return err->code;
        if (pick_camera_check(&camera, err))
            return err->code = ERR_BAD_INPUT;
        options.camera = &camera;
    }
    report = patch_find(call, err);
    if (!report)
        return err->code;
    options.width = (uint32_t)width;
    options.height = (uint32_t)height;
    if (atomic_fetch_add(&call->api->pictures, 1) < AT_ONCE_MAX)
        draw(call, report, &options, &png, err);
    else
        err_limit(err, ERR_BUSY, AT_ONCE_MAX, AT_ONCE_MAX + 1, "%d pictures are drawn already",
                  AT_ONCE_MAX);
    atomic_fetch_sub(&call->api->pictures, 1);
    patch_report_unref(report);
    if (err->code != ERR_OK)
        return err->code;
    call_content_type(call, "image/png");
    call_header(call, "Cache-Control", "no-store");
    answer_append(call, png.at, png.length, err);
    free(png.at);
    return err->code;
}
API_HANDLER(patch_view_get, 2, CALL_NEEDS_NOTHING)
