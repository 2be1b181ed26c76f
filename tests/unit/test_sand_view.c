/*
 * Pictures of patches: what is in front is seen, what casts a shadow darkens, nothing else changes.
 */
#include "sand/view/view.h"

#include "support/solid_make.h"

#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

enum { WIDTH = 160, HEIGHT = 120, PIXELS = WIDTH * HEIGHT };

/* Level ground of 60 m with a step of `step_m` at y = 45, and a patch of 8 m around (30, 30). */
struct stage {
    struct heightfield *field;
    struct view_scene scene;
    float spheres[4096][4];
    struct polygon_set box;
    struct view_body body;
};

static void stage_make(struct stage *s, double step_m)
{
    struct heightfield_spec spec = {
        .cols = 61, .rows = 61, .spacing_x_m = 1, .spacing_y_m = 1, .origin_x_m = 0};
    float heights[61 * 61];
    struct err err;

    memset(s, 0, sizeof *s);
    for (int i = 0; i < 61 * 61; i++)
        heights[i] = i / 61 >= 45 ? (float)step_m : 0;
    s->field = heightfield_create(&spec, heights, &err);
    assert_non_null(s->field);
    s->box = solid_box((struct vec3){-0.5, -0.5, -0.5}, (struct vec3){0.5, 0.5, 0.5});
    s->body = (struct view_body){.mesh = {s->box.vertices, s->box.corners, 12},
                                 .origin = {30, 30, 1.5},
                                 .orientation[3] = 1};
    s->scene = (struct view_scene){.field = s->field,
                                   .min = {26, 26},
                                   .max = {34, 34},
                                   .depth_m = 1,
                                   .spheres = (const float(*)[4])s->spheres,
                                   .spheres_of_granule = 1,
                                   .radius_m = 0.2F,
                                   .origin = {26, 26, 0},
                                   .bodies = &s->body};
}

static void stage_free(struct stage *s)
{
    heightfield_unref(s->field);
    polygon_set_free(&s->box);
}

/* A layer of spheres, their tops at z. */
static void stage_pave(struct stage *s, float top_m)
{
    s->scene.sphere_count = 0;
    for (int i = 0; i < 20 * 20; i++) {
        float *p = s->spheres[s->scene.sphere_count++];

        p[0] = 0.2F + 0.4F * (float)(i % 20);
        p[1] = 0.2F + 0.4F * (float)(i / 20);
        p[2] = top_m - 0.2F;
        p[3] = -1;
    }
}

static uint8_t *shoot(const struct view_scene *scene, const struct camera *camera)
{
    struct view_options options = {WIDTH, HEIGHT, camera};
    uint8_t *rgb = malloc(3 * PIXELS);
    struct err err;

    if (view_render(scene, &options, rgb, &err))
        fail_msg("%s", err.msg);
    return rgb;
}

static int brightness(const uint8_t *rgb, int column, int row)
{
    const uint8_t *p = rgb + 3 * (row * WIDTH + column);

    return p[0] + p[1] + p[2];
}

static struct ray pixel_ray(const struct camera *camera, double column, double row)
{
    struct viewport viewport = {WIDTH, HEIGHT, column, row};
    struct ray ray;
    struct err err;

    assert_int_equal(pick_camera_ray(camera, &viewport, &ray, &err), ERR_OK);
    return ray;
}

/* Where a point is in the picture. */
static void project(const struct camera *camera, struct vec3 at, double width, double height,
                    double pixel[2])
{
    struct vec3 forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    struct vec3 right = vec3_unit(vec3_cross(forward, camera->up)), up = vec3_cross(right, forward);
    struct vec3 from = vec3_sub(at, camera->eye);
    double scale = height / 2 / tan(camera->fov_y_deg * M_PI / 360) / vec3_dot(from, forward);

    assert_true(vec3_dot(from, forward) > 0);
    pixel[0] = width / 2 + vec3_dot(from, right) * scale;
    pixel[1] = height / 2 - vec3_dot(from, up) * scale;
}

/* ---- the camera ------------------------------------------------------------------------------ */

static void all_of_a_patch_is_in_the_picture(void **state)
{
    static const double sizes[][2] = {{8, 8}, {3, 12}, {12, 3}, {0.5, 0.5}};
    static const uint32_t shapes[][2] = {{640, 480}, {480, 640}, {1000, 300}, {300, 1000}};
    struct stage s;

    (void)state;
    stage_make(&s, 0);
    for (size_t i = 0; i < 16; i++) {
        const double *size = sizes[i % 4];
        const uint32_t *shape = shapes[i / 4];
        struct camera camera;

        for (int axis = 0; axis < 2; axis++) {
            s.scene.min[axis] = 30 - size[axis] / 2;
            s.scene.max[axis] = 30 + size[axis] / 2;
        }
        camera = view_camera(&s.scene, shape[0], shape[1]);
        for (int corner = 0; corner < 4; corner++) {
            struct vec3 at = {corner & 1 ? s.scene.max[0] : s.scene.min[0],
                              corner & 2 ? s.scene.max[1] : s.scene.min[1], 0};
            double pixel[2];

            project(&camera, at, shape[0], shape[1], pixel);
            if (!(pixel[0] >= 0 && pixel[0] <= shape[0] && pixel[1] >= 0 && pixel[1] <= shape[1]))
                fail_msg("%g × %g m in %u × %u: a corner is at (%g, %g)", size[0], size[1],
                         shape[0], shape[1], pixel[0], pixel[1]);
        }
    }
    stage_free(&s);
}

/* A wall of 30 m between the patch and the south-west: the camera looks over it. */
static void a_hill_does_not_hide_the_patch(void **state)
{
    struct heightfield_spec spec = {.cols = 61, .rows = 61, .spacing_x_m = 1, .spacing_y_m = 1};
    struct stage s;
    float heights[61 * 61];
    struct camera camera;
    struct ray_hit hit;
    struct ray ray;
    struct err err;

    (void)state;
    stage_make(&s, 0);
    for (int i = 0; i < 61 * 61; i++)
        heights[i] = i / 61 < 22 && i / 61 > 18 ? 30 : 0;
    heightfield_unref(s.field);
    s.scene.field = s.field = heightfield_create(&spec, heights, &err);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    ray = pixel_ray(&camera, WIDTH / 2.0, HEIGHT / 2.0);
    assert_true(heightfield_ray(s.field, &ray, RAY_CLOSEST, &hit, NULL));
    assert_near(hit.point.x, 30, 0.5);
    assert_near(hit.point.y, 30, 0.5);
    stage_free(&s);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static bool box_is_hit(const struct stage *s, const struct ray *ray)
{
    double near = 0, far = INFINITY;
    const double *o = &ray->origin.x, *d = &ray->direction.x, *c = &s->body.origin.x;

    for (int i = 0; i < 3; i++) {
        double a = (c[i] - 0.5 - o[i]) / d[i], b = (c[i] + 0.5 - o[i]) / d[i];

        near = fmax(near, fmin(a, b));
        far = fmin(far, fmax(a, b));
    }
    return near < far;
}

/* The body is red, the ground is not: exactly the pixels whose rays meet it, but for its edge. */
static void a_body_is_seen_where_rays_meet_it(void **state)
{
    struct stage s;
    struct camera camera;
    uint8_t *rgb;
    int hits = 0;

    (void)state;
    stage_make(&s, 0);
    s.scene.body_count = 1;
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    rgb = shoot(&s.scene, &camera);
    for (int row = 1; row + 1 < HEIGHT; row++) {
        for (int column = 1; column + 1 < WIDTH; column++) {
            const uint8_t *p = rgb + 3 * (row * WIDTH + column);
            int around = 0;

            for (int i = 0; i < 9; i++) {
                struct ray ray = pixel_ray(&camera, column + i % 3 - 0.5, row + i / 3 - 0.5);

                around += box_is_hit(&s, &ray);
            }
            if (around != 0 && around != 9)
                continue;
            hits += around == 9;
            if ((p[0] > 2 * p[1]) != (around == 9))
                fail_msg("pixel (%d, %d) is %d %d %d, on the body: %d", column, row, p[0], p[1],
                         p[2], around == 9);
        }
    }
    assert_true(hits > 50);
    free(rgb);
    stage_free(&s);
}

static void a_body_casts_a_shadow(void **state)
{
    struct stage s;
    struct camera camera;
    uint8_t *with, *without;
    int darker = 0, lighter = 0, changed_far = 0;

    (void)state;
    stage_make(&s, 0);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    without = shoot(&s.scene, &camera);
    s.scene.body_count = 1;
    with = shoot(&s.scene, &camera);
    for (int i = 0; i < PIXELS; i++) {
        struct ray ray = pixel_ray(&camera, i % WIDTH + 0.5, i / WIDTH + 0.5);
        struct ray_hit hit = {.t = 0};
        int a = brightness(with, i % WIDTH, i / WIDTH);
        int b = brightness(without, i % WIDTH, i / WIDTH);

        if (box_is_hit(&s, &ray) || !heightfield_ray(s.field, &ray, RAY_CLOSEST, &hit, NULL))
            continue;
        if (hypot(hit.point.x - 30, hit.point.y - 30) > 5)
            changed_far += a != b;
        darker += a < 0.6 * b;
        lighter += a > b + 30;
    }
    assert_true(darker > 50);
    assert_true(lighter < 60); /* its edge is mixed with it */
    assert_int_equal(changed_far, 0);
    free(with);
    free(without);
    stage_free(&s);
}

static void what_is_under_the_ground_is_not_seen(void **state)
{
    struct stage s;
    struct camera camera;
    uint8_t *with, *without;

    (void)state;
    stage_make(&s, 6);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    without = shoot(&s.scene, &camera);
    s.scene.body_count = 1;
    s.body.origin = (struct vec3){30, 30, -1};
    with = shoot(&s.scene, &camera);
    assert_memory_equal(with, without, 3 * PIXELS);
    free(with);
    s.body.origin = (struct vec3){30, 50, 3}; /* in the hill behind */
    with = shoot(&s.scene, &camera);
    assert_memory_equal(with, without, 3 * PIXELS);
    free(with);
    free(without);
    stage_free(&s);
}

/* Spheres stand in the hole that the patch is; without them there is no hole. */
static void spheres_are_seen_in_the_hole(void **state)
{
    struct stage s;
    struct camera camera;
    uint8_t *ground, *paved, *elsewhere, *sunk;
    int inside = 0, changed_outside = 0, dark = 0;

    (void)state;
    stage_make(&s, 0);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    ground = shoot(&s.scene, &camera);
    s.scene.min[0] -= 2;
    elsewhere = shoot(&s.scene, &camera);
    assert_memory_equal(ground, elsewhere, 3 * PIXELS);
    s.scene.min[0] += 2;
    stage_pave(&s, 0.05F);
    paved = shoot(&s.scene, &camera);
    stage_pave(&s, -0.7F);
    sunk = shoot(&s.scene, &camera);
    for (int i = 0; i < PIXELS; i++) {
        struct ray ray = pixel_ray(&camera, i % WIDTH + 0.5, i / WIDTH + 0.5);
        struct ray_hit hit = {.t = 0};
        bool is_far = !heightfield_ray(s.field, &ray, RAY_CLOSEST, &hit, NULL) ||
                      fmax(fabs(hit.point.x - 30), fabs(hit.point.y - 30)) > 4.6;
        bool differs = memcmp(ground + 3 * i, paved + 3 * i, 3) != 0;

        inside += !is_far && differs;
        changed_outside += is_far && differs;
        dark +=
            brightness(sunk, i % WIDTH, i / WIDTH) < brightness(ground, i % WIDTH, i / WIDTH) - 60;
    }
    assert_true(inside > 3000);
    assert_int_equal(changed_outside, 0);
    assert_true(dark > 1000); /* walls, and the shadow that they do not cast is made up by depth */
    free(ground);
    free(elsewhere);
    free(paved);
    free(sunk);
    stage_free(&s);
}

static void shells_and_lost_spheres_are_left_out(void **state)
{
    struct stage s;
    struct camera camera;
    uint8_t *all, *more;
    uint32_t count;

    (void)state;
    stage_make(&s, 0);
    stage_pave(&s, 0);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    all = shoot(&s.scene, &camera);
    count = s.scene.sphere_count;
    for (int i = 0; i < 4; i++) {
        float *p = s.spheres[s.scene.sphere_count++];

        p[0] = i == 1 ? NAN : 4;
        p[1] = i == 2 ? INFINITY : 4;
        p[2] = i == 3 ? -NAN : 2;
        p[3] = i == 0 ? 0 : -1; /* the first is of body 0 */
    }
    more = shoot(&s.scene, &camera);
    assert_memory_equal(all, more, 3 * PIXELS);
    free(more);
    s.scene.sphere_count = count;
    more = shoot(&s.scene, &camera); /* and again */
    assert_memory_equal(all, more, 3 * PIXELS);
    free(all);
    free(more);
    stage_free(&s);
}

/* A patch whose granules are all lost is as light 20 m below 0 as it is above. */
static void lost_spheres_do_not_hide_the_sky(void **state)
{
    struct heightfield_spec spec = {.cols = 61, .rows = 61, .spacing_x_m = 1, .spacing_y_m = 1};
    float heights[61 * 61];
    int sum[2] = {0};
    struct err err;

    (void)state;
    for (int below = 0; below < 2; below++) {
        struct stage s;
        struct camera camera;
        uint8_t *rgb;

        stage_make(&s, 0);
        heightfield_unref(s.field);
        for (int i = 0; i < 61 * 61; i++)
            heights[i] = below ? -20 : 20;
        s.field = heightfield_create(&spec, heights, &err);
        assert_non_null(s.field);
        s.scene.field = s.field;
        stage_pave(&s, NAN);
        camera = view_camera(&s.scene, WIDTH, HEIGHT);
        rgb = shoot(&s.scene, &camera);
        for (int i = 0; i < PIXELS; i++)
            sum[below] += brightness(rgb, i, 0);
        free(rgb);
        stage_free(&s);
    }
    assert_in_range(sum[1], sum[0] - PIXELS, sum[0] + PIXELS);
}

/* A granule's side towards the sun, in the west, is in light, the other one in its own shadow. */
static void a_sphere_has_a_side_in_light(void **state)
{
    struct camera camera = {{30, 30, 4}, {30, 30, 0}, {0, 1, 0}, 20};
    struct stage s;
    double west[2], east[2];
    uint8_t *rgb;

    (void)state;
    stage_make(&s, 0);
    s.scene.sphere_count = 1;
    s.spheres[0][0] = s.spheres[0][1] = 4; /* at (30, 30, 1) */
    s.spheres[0][2] = 1;
    s.spheres[0][3] = -1;
    project(&camera, (struct vec3){29.85, 30, 1}, WIDTH, HEIGHT, west);
    project(&camera, (struct vec3){30.17, 30, 1}, WIDTH, HEIGHT, east);
    rgb = shoot(&s.scene, &camera);
    assert_true(brightness(rgb, (int)west[0], (int)west[1]) >
                2 * brightness(rgb, (int)east[0], (int)east[1]));
    free(rgb);
    stage_free(&s);
}

/* Beyond the field there is sky, which is blue. */
static void there_is_sky_beyond_the_ground(void **state)
{
    struct stage s;
    struct camera camera = {{30, -40, 8}, {30, 30, 8}, {0, 0, 1}, 40};
    uint8_t *rgb;

    (void)state;
    stage_make(&s, 0);
    rgb = shoot(&s.scene, &camera);
    for (int column = 0; column < WIDTH; column++) {
        const uint8_t *top = rgb + 3 * column, *low = top + (ptrdiff_t)3 * WIDTH * (HEIGHT - 45);

        assert_true(top[2] > top[0] + 10);
        if (column > 40 && column < 120)
            assert_true(low[0] > low[2] + 10);
    }
    free(rgb);
    stage_free(&s);
}

/* ---- files and bad input --------------------------------------------------------------------- */

static void sizes_and_cameras_are_checked(void **state)
{
    struct camera blind = {{1, 2, 3}, {1, 2, 3}, {0, 0, 1}, 40};
    struct view_options options = {15, 480, NULL};
    struct raster_bytes out = {NULL, 0};
    struct stage s;
    struct err err;

    (void)state;
    stage_make(&s, 0);
    assert_int_equal(view_png(&s.scene, &options, &out, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "width is 15"));
    options = (struct view_options){640, 1921, NULL};
    assert_int_equal(view_png(&s.scene, &options, &out, &err), ERR_BAD_INPUT);
    assert_non_null(strstr(err.msg, "height is 1921"));
    options = (struct view_options){64, 48, &blind};
    assert_int_equal(view_png(&s.scene, &options, &out, &err), ERR_UNPROCESSABLE);
    assert_null(out.at);
    stage_free(&s);
}

static uint8_t *read_png(const struct raster_bytes *png, uint32_t *width, uint32_t *height)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    uint8_t *rgb;

    assert_true(png_image_begin_read_from_memory(&image, png->at, png->length));
    image.format = PNG_FORMAT_RGB;
    rgb = malloc(PNG_IMAGE_SIZE(image));
    assert_true(png_image_finish_read(&image, NULL, rgb, 0, NULL));
    *width = image.width;
    *height = image.height;
    return rgb;
}

static void a_png_holds_the_picture(void **state)
{
    struct view_options options = {WIDTH, HEIGHT, NULL};
    struct raster_bytes png;
    uint32_t width, height;
    uint8_t *rgb, *read;
    struct camera camera;
    struct stage s;
    struct err err;

    (void)state;
    stage_make(&s, 0);
    stage_pave(&s, 0);
    camera = view_camera(&s.scene, WIDTH, HEIGHT);
    rgb = shoot(&s.scene, &camera);
    assert_int_equal(view_png(&s.scene, &options, &png, &err), ERR_OK);
    read = read_png(&png, &width, &height);
    assert_int_equal(width, WIDTH);
    assert_int_equal(height, HEIGHT);
    assert_memory_equal(read, rgb, 3 * PIXELS);
    free(read);
    free(rgb);
    free(png.at);
    stage_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_patch_is_in_the_picture),
        cmocka_unit_test(a_hill_does_not_hide_the_patch),
        cmocka_unit_test(a_body_is_seen_where_rays_meet_it),
        cmocka_unit_test(a_body_casts_a_shadow),
        cmocka_unit_test(what_is_under_the_ground_is_not_seen),
        cmocka_unit_test(spheres_are_seen_in_the_hole),
        cmocka_unit_test(shells_and_lost_spheres_are_left_out),
        cmocka_unit_test(lost_spheres_do_not_hide_the_sky),
        cmocka_unit_test(a_sphere_has_a_side_in_light),
        cmocka_unit_test(there_is_sky_beyond_the_ground),
        cmocka_unit_test(sizes_and_cameras_are_checked),
        cmocka_unit_test(a_png_holds_the_picture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
