/*
 * A patch as a picture.
 *
 * Everything is a depth and a name for each pixel first: spheres and triangles are splatted into
 * it (view_splat.c), rays find the ground where nothing is nearer (view_ground.c). Then each pixel
 * is shaded once (view_light.c): the sun by a shadow map, the sky by the depth of the point among
 * the granules. So the cost goes with the pixels and not with the spheres, of which most lie under
 * others.
 *
 * Edges: where the names and the depths of neighbours differ, the pixel is mixed with its
 * neighbours a little; four samples for each pixel would look better and take four times as long.
 *
 * Order never matters: the nearest wins, equal depths go to the smaller name.
 *
 * Dropped: OpenGL. The picture is wanted where there is none, and llvmpipe is no faster.
 */
#include "sand/view/view.h"

#include "base/check.h"
#include "sand/view/view_data.h"

#include <stdlib.h>
#include <string.h>

#define CAMERA_FOV_DEG 32.0
#define CAMERA_FROM_DEG 35.0
#define CAMERA_STEEPEST_DEG 80.0
#define CAMERA_FILL 0.92 /* of the half picture: where the patch ends */

/* ---- the camera ------------------------------------------------------------------------------ */

static double ground_height(const struct heightfield *field, double x, double y)
{
    struct ground_point ground;

    heightfield_height(field, (struct vec2){x, y}, INTERPOLATION_TRIANGLE, &ground);
    return ground.status == GROUND_OK ? ground.height_m : NAN;
}

/* The middle of the patch, on its ground, and a radius around it that holds all of it. */
static struct vec3 patch_middle(const struct view_scene *scene, double *radius_m)
{
    double half_x = (scene->max[0] - scene->min[0]) / 2,
           half_y = (scene->max[1] - scene->min[1]) / 2;
    struct vec3 middle = {scene->min[0] + half_x, scene->min[1] + half_y, 0};

    middle.z = ground_height(scene->field, middle.x, middle.y);
    if (!isfinite(middle.z))
        middle.z = scene->origin.z;
    *radius_m = sqrt(half_x * half_x + half_y * half_y);
    return middle;
}

/* Do the patch's corners, a little above and below the middle, keep off the picture's border? */
static bool has_corners(const struct view_scene *scene, const struct camera *camera, double lift_m,
                        double aspect)
{
    struct vec3 forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    struct vec3 right = vec3_unit(vec3_cross(forward, camera->up)), up = vec3_cross(right, forward);
    double most = CAMERA_FILL * tan(camera->fov_y_deg * M_PI / 360);

    for (int i = 0; i < 8; i++) {
        struct vec3 at = {i & 1 ? scene->max[0] : scene->min[0],
                          i & 2 ? scene->max[1] : scene->min[1],
                          camera->target.z + (i & 4 ? lift_m : -lift_m)};
        struct vec3 from = vec3_sub(at, camera->eye);
        double z = vec3_dot(from, forward);

        if (!(z > 0) || fabs(vec3_dot(from, up)) > most * z ||
            fabs(vec3_dot(from, right)) > most * aspect * z)
            return false;
    }
    return true;
}

struct camera view_camera(const struct view_scene *scene, uint32_t width, uint32_t height)
{
    double radius_m, degrees, aspect = (double)width / height, distance_m;
    struct vec3 target = patch_middle(scene, &radius_m);
    struct camera camera = {.target = target, .up = {0, 0, 1}, .fov_y_deg = CAMERA_FOV_DEG};

    for (degrees = CAMERA_FROM_DEG; degrees <= CAMERA_STEEPEST_DEG; degrees += 5) {
        double slope = degrees * M_PI / 180;
        struct vec3 away = {-0.5 * cos(slope), -0.866025403784 * cos(slope), sin(slope)};
        struct ray sight = {target, away, 0};
        struct ray_hit hit;

        for (distance_m = radius_m; distance_m < 50 * radius_m; distance_m *= 1.03) {
            camera.eye = vec3_add(target, vec3_scale(away, distance_m));
            if (has_corners(scene, &camera, 0.15 * radius_m, aspect))
                break;
        }
        sight.t_max = distance_m;
        sight.origin.z += 0.3 * radius_m;
        if (!heightfield_ray(scene->field, &sight, RAY_ANY, &hit, NULL))
            break;
    }
    return camera;
}

static enum err_code lens_init(struct view *view, const struct camera *camera, struct err *err)
{
    struct viewport middle = {view->width, view->height, view->width / 2.0, view->height / 2.0};
    struct lens *lens = &view->lens;
    struct ray ray;

    if (pick_camera_ray(camera, &middle, &ray, err))
        return err->code;
    lens->eye = camera->eye;
    lens->forward = ray.direction;
    lens->right = vec3_unit(vec3_cross(lens->forward, camera->up));
    lens->up = vec3_cross(lens->right, lens->forward);
    lens->pixels = view->height / 2.0 / tan(camera->fov_y_deg * M_PI / 360);
    lens->middle[0] = view->width / 2.0;
    lens->middle[1] = view->height / 2.0;
    return ERR_OK;
}

/* ---- the scene ------------------------------------------------------------------------------- */

bool view_sphere(const struct view_scene *scene, uint32_t i, struct vec3 *centre)
{
    const float *s = scene->spheres[i];

    if (!(s[3] < 0) || !isfinite(s[0]) || !isfinite(s[1]) || !isfinite(s[2]))
        return false;
    *centre = (struct vec3){scene->origin.x + (double)s[0], scene->origin.y + (double)s[1],
                            scene->origin.z + (double)s[2]};
    return true;
}

static struct vec3 turned(struct vec3 v, const double q[4])
{
    struct vec3 axis = {q[0], q[1], q[2]};
    struct vec3 t = vec3_scale(vec3_cross(axis, v), 2);

    return vec3_add(vec3_add(v, vec3_scale(t, q[3])), vec3_cross(axis, t));
}

static void place_body(struct view *view, uint32_t index)
{
    const struct view_body *body = &view->scene->bodies[index];

    for (uint32_t i = 0; i < body->mesh.triangles; i++) {
        uint32_t to = view->triangle_count++;
        struct vec3 *v = view->corners + 3 * (size_t)to;

        for (size_t j = 0; j < 3; j++)
            v[j] = vec3_add(body->origin,
                            turned(body->mesh.vertices[body->mesh.corners[3 * (size_t)i + j]],
                                   body->orientation));
        view->normals[to] = vec3_unit(vec3_cross(vec3_sub(v[1], v[0]), vec3_sub(v[2], v[0])));
        view->body_of[to] = index;
    }
}

static enum err_code allocate(struct view *view, struct err *err)
{
    size_t triangles = 1, pixels = (size_t)view->width * view->height;

    for (uint32_t i = 0; i < view->scene->body_count; i++)
        triangles += view->scene->bodies[i].mesh.triangles;
    CHECK(triangles < VIEW_TRIANGLE - 16);
    view->pixels = malloc(pixels * sizeof *view->pixels);
    view->corners = malloc(3 * triangles * sizeof *view->corners);
    view->normals = malloc(triangles * sizeof *view->normals);
    view->body_of = malloc(triangles * sizeof *view->body_of);
    if (!view->pixels || !view->corners || !view->normals || !view->body_of)
        return err_set(err, ERR_NO_MEMORY, "no memory for a view of %u × %u pixels", view->width,
                       view->height);
    for (size_t i = 0; i < pixels; i++)
        view->pixels[i] = (struct pixel){INFINITY, VIEW_SKY, {0, 0, 1}};
    for (uint32_t i = 0; i < view->scene->body_count; i++)
        place_body(view, i);
    return ERR_OK;
}

static void release(struct view *view)
{
    free(view->pixels);
    free(view->corners);
    free(view->normals);
    free(view->body_of);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static uint8_t developed(const struct view *view, double light)
{
    double at = light * (sizeof view->film - 1) / VIEW_FILM_LIGHT;

    return view
        ->film[at > 0 ? at < sizeof view->film - 1 ? (size_t)(at + 0.5) : sizeof view->film - 1
                      : 0];
}

static void shade_all(const struct view *view, uint8_t *rgb)
{
    for (uint32_t row = 0; row < view->height; row++) {
        for (uint32_t column = 0; column < view->width; column++, rgb += 3) {
            const struct pixel *pixel = &view->pixels[(size_t)row * view->width + column];
            struct colour light = view_shade(view, pixel, column, row);

            rgb[0] = developed(view, light.r);
            rgb[1] = developed(view, light.g);
            rgb[2] = developed(view, light.b);
        }
    }
}

static bool is_edge(const struct pixel *a, const struct pixel *b)
{
    return a->what != b->what && (!(fabsf(a->depth - b->depth) < 0.003F * a->depth) ||
                                  (a->what < VIEW_TRIANGLE) != (b->what < VIEW_TRIANGLE));
}

/* Pixels at edges become half their own, half the mean of the four beside. */
static void soften(const struct view *view, const uint8_t *sharp, uint8_t *rgb)
{
    size_t stride = view->width;

    memcpy(rgb, sharp, 3 * stride * view->height);
    for (uint32_t row = 1; row + 1 < view->height; row++) {
        for (uint32_t column = 1; column + 1 < view->width; column++) {
            size_t at = row * stride + column;
            const size_t beside[4] = {at - 1, at + 1, at - stride, at + stride};
            const struct pixel *pixel = &view->pixels[at];

            if (!is_edge(pixel, pixel - 1) && !is_edge(pixel, pixel + 1) &&
                !is_edge(pixel, pixel - stride) && !is_edge(pixel, pixel + stride))
                continue;
            for (size_t c = 0; c < 3; c++) {
                unsigned sum = 4u * sharp[3 * at + c];

                for (int i = 0; i < 4; i++)
                    sum += sharp[3 * beside[i] + c];
                rgb[3 * at + c] = (uint8_t)((sum + 4) / 8);
            }
        }
    }
}

static enum err_code check_options(const struct view_options *options, struct err *err)
{
    const uint32_t sides[2] = {options->width, options->height};

    for (int i = 0; i < 2; i++)
        if (sides[i] < VIEW_SIDE_MIN || sides[i] > VIEW_SIDE_MAX)
            return err_set(err, ERR_BAD_INPUT, "%s is %u pixels, must be %d to %d",
                           i == 0 ? "width" : "height", sides[i], VIEW_SIDE_MIN, VIEW_SIDE_MAX);
    return err->code = ERR_OK;
}

static enum err_code render(struct view *view, uint8_t *rgb, struct err *err)
{
    uint8_t *sharp;

    if (allocate(view, err))
        return err->code;
    sharp = malloc(3 * (size_t)view->width * view->height);
    if (!sharp || !view_light_init(view)) {
        free(sharp);
        return err_set(err, ERR_NO_MEMORY, "no memory for the light of a view");
    }
    for (size_t i = 0; i < sizeof view->film; i++)
        view->film[i] = shade_developed((double)i * VIEW_FILM_LIGHT / (sizeof view->film - 1));
    view_splat(view);
    view_ground(view);
    shade_all(view, sharp);
    soften(view, sharp, rgb);
    view_light_free(view);
    free(sharp);
    return ERR_OK;
}

enum err_code view_render(const struct view_scene *scene, const struct view_options *options,
                          uint8_t *rgb, struct err *err)
{
    struct view view = {.scene = scene, .width = options->width, .height = options->height};
    struct camera camera;

    CHECK(scene->field && scene->spheres_of_granule >= 1 && scene->sphere_count < VIEW_TRIANGLE);
    if (check_options(options, err))
        return err->code;
    camera = options->camera ? *options->camera : view_camera(scene, view.width, view.height);
    if (lens_init(&view, &camera, err) == ERR_OK)
        render(&view, rgb, err);
    release(&view);
    return err->code;
}

enum err_code view_png(const struct view_scene *scene, const struct view_options *options,
                       struct raster_bytes *out, struct err *err)
{
    uint8_t *rgb;

    if (check_options(options, err))
        return err->code;
    rgb = malloc(3 * (size_t)options->width * options->height);
    if (!rgb)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture");
    if (view_render(scene, options, rgb, err) == ERR_OK)
        png_encode(options->width, options->height, 3, rgb, 1, out, err);
    free(rgb);
    return err->code;
}
