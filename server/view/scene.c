/*
 * The scene of a view: its frame, its meshes, its bytes.
 *
 * Meshes are the polygons as they were sent, cut into triangles, where their layers lie now. The
 * places are rounded to float32 only after the eye was subtracted.
 */
#include "view/scene.h"

#include "formats/polygon/polygon_triangles.h"
#include "terrain/trig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the frame ------------------------------------------------------------------------------- */

enum err_code lens_frame_make(const struct camera *camera, uint32_t width, uint32_t height,
                              struct lens_frame *out, struct err *err)
{
    const struct viewport corner = {width, height, 0, 0};
    struct ray ray;

    if (pick_camera_check(camera, err))
        return err->code = ERR_BAD_INPUT;
    if (pick_camera_ray(camera, &corner, &ray, err))
        return err->code = ERR_BAD_INPUT;
    out->eye = camera->eye;
    out->forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    out->right = vec3_unit(vec3_cross(out->forward, vec3_unit(camera->up)));
    out->up = vec3_cross(out->right, out->forward);
    out->tangent[1] = trig_tan(camera->fov_y_deg * (M_PI / 360));
    out->tangent[0] = out->tangent[1] * width / height;
    out->width = width;
    out->height = height;
    return ERR_OK;
}

bool lens_frame_sees(const struct lens_frame *lens, const struct box3 *box)
{
    const double signs[5][3] = {{0, 0, 1}, {1, 0, 1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, 1}};

    for (int i = 0; i < 5; i++) { /* planes through the eye */
        const struct vec3 inward = vec3_add(
            vec3_scale(lens->forward, i == 0             ? 1
                                      : signs[i][0] != 0 ? lens->tangent[0]
                                                         : lens->tangent[1]),
            vec3_add(vec3_scale(lens->right, signs[i][0]), vec3_scale(lens->up, signs[i][1])));
        const double most = (inward.x > 0 ? box->max.x : box->min.x) * inward.x +
                            (inward.y > 0 ? box->max.y : box->min.y) * inward.y +
                            (inward.z > 0 ? box->max.z : box->min.z) * inward.z;

        if (most < 0)
            return false;
    }
    return true;
}

/* ---- meshes ---------------------------------------------------------------------------------- */

/* While the polygons of a layer are added. */
struct adding {
    struct scene *scene;
    const struct layer *layer;
    struct vec3 eye;
    struct box3 box;
};

static void add_triangle(void *context, const struct vec3 corners[3])
{
    struct adding *adding = context;

    for (int i = 0; i < 3; i++) {
        const struct vec3 at = adding->layer->is_moved
                                   ? motion_point_out(&adding->layer->motion, corners[i])
                                   : corners[i];
        const struct vec3 from = vec3_sub(at, adding->eye);
        float *to = adding->scene->corners[adding->scene->corner_count++];

        to[0] = (float)from.x;
        to[1] = (float)from.y;
        to[2] = (float)from.z;
        adding->box = box3_union(adding->box, (struct box3){from, from});
    }
}

static uint64_t triangles_of(const struct locale *locale)
{
    uint64_t count = 0;

    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct polygon_set *set = layer_polygon_set(locale->layers[i]);

        if (set && set->instances.count > 0) { /* which have no gaps */
            count += polygon_set_corners(set) - 2 * polygon_set_numbers(set);
            continue;
        }
        for (size_t k = 0; set && k < set->polygon_count; k++)
            if (set->starts[k + 1] - set->starts[k] >= 3)
                count += set->starts[k + 1] - set->starts[k] - 2;
    }
    return count;
}

static enum err_code add_meshes(const struct locale *locale, struct vec3 eye, struct scene *scene,
                                struct err *err)
{
    scene->corners = malloc((size_t)(triangles_of(locale) + 1) * sizeof(float[3][3]));
    scene->normals = calloc((size_t)triangles_of(locale) + 1, sizeof(float[3][3]));
    scene->parts = calloc(locale->layer_count + 1, sizeof *scene->parts);
    if (!scene->corners || !scene->normals || !scene->parts)
        return err_set(err, ERR_NO_MEMORY, "no memory for the meshes of a view");
    for (size_t i = 0; i < locale->layer_count; i++) {
        const struct layer *layer = locale->layers[i];
        const struct polygon_set *set = layer_polygon_set(layer);
        struct scene_part *part = &scene->parts[scene->part_count];
        struct adding adding = {
            .scene = scene,
            .layer = layer,
            .eye = eye,
            .box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}}};

        if (!set)
            continue;
        part->first = scene->corner_count;
        part->is_body = layer->body.patch != 0;
        part->casts = layer->role != LAYER_CEILING || layer->space.frame == MESH_CARTESIAN;
        if (polygon_triangles(set, add_triangle, &adding, err))
            return err->code;
        part->count = scene->corner_count - part->first;
        part->box = adding.box;
        if (part->is_body && scene_smooth((const float(*)[3])scene->corners + part->first,
                                          (uint32_t)part->count, scene->normals + part->first, err))
            return err->code;
        scene->part_count += part->count > 0;
    }
    return ERR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err_code scene_make(const struct locale *locale, const struct lens_frame *lens,
                         uint32_t blocks_max, uint64_t bytes_max, struct scene *out,
                         struct err *err)
{
    /* twice: here, and for OpenGL */
    const uint64_t bytes = 2 * (triangles_of(locale) * 2 * sizeof(float[3][3]) +
                                (uint64_t)blocks_max * SCENE_STORED * SCENE_STORED * 4);

    *out = (struct scene){.fields = NULL};
    err->code = ERR_OK;
    if (bytes > bytes_max)
        return err_limit(err, ERR_UNPROCESSABLE, (double)bytes_max, (double)bytes,
                         "a view of locale %s would take %llu bytes, the most is %llu", locale->id,
                         (unsigned long long)bytes, (unsigned long long)bytes_max);
    if (scene_add_fields(locale, lens, blocks_max, out, err) ||
        add_meshes(locale, lens->eye, out, err))
        scene_finish(out);
    return err->code;
}

void scene_finish(struct scene *scene)
{
    free(scene->fields);
    free(scene->blocks);
    free(scene->boxes);
    free(scene->heights);
    free(scene->parts);
    free(scene->corners);
    free(scene->normals);
    *scene = (struct scene){.fields = NULL};
}
