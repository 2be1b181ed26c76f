/*
 * The daemon's own view against the rays that answer clients: what each pixel shows, and where the
 * sun reaches. On Mesa's software renderer.
 */
#include "view/cascade.h"
#include "view/draw.h"

#include "support/long_form.h"
#include "support/solid_make.h"
#include "world/ask/lit.h"
#include "world/ask/query.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/field_make.h"

static struct context *context;
static struct draw *draw;

enum { SIDE = 601 };

/* ---- the stage ------------------------------------------------------------------------------- */

static float height_at(int c, int r)
{
    const double x = c * 0.06, y = r * 0.05;
    double h = 22 * sin(0.31 * x) * cos(0.27 * y) + 6 * sin(1.3 * x + 0.7 * y) + 1.5 * sin(4.1 * y);

    if (hypot(c - 300, r - 200) < 25)
        h += 40; /* a cliff all around */
    return (float)h;
}

static struct layer *field_layer(enum triangulation triangulation)
{
    const struct heightfield_spec spec = {.cols = SIDE,
                                          .rows = SIDE - 40,
                                          .spacing_x_m = 1,
                                          .spacing_y_m = 1.25,
                                          .origin_x_m = 100000.5,
                                          .origin_y_m = -200,
                                          .triangulation = triangulation};
    float *heights = malloc(sizeof(float) * SIDE * SIDE);
    struct layer *layer;
    struct err err;

    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            heights[r * SIDE + c] = (c / 7 + r / 5) % 90 == 3 ? NAN : height_at(c, r);
    layer = layer_create_heightfield("ground", field_make(&spec, heights), &err);
    free(heights);
    assert_non_null(layer);
    return layer;
}

/* A long deck in the air, turned and shifted: a layer that was moved. */
static struct layer *deck_layer(void)
{
    const struct pose pose = {.translation = {100250, 90, 60}, .yaw_deg = 33};
    struct polygon_set box = solid_box((struct vec3){-60, -8, -1}, (struct vec3){60, 8, 1});
    struct err err;
    struct layer *own =
        layer_create_mesh("deck", LAYER_GROUND, &box, (struct vec3){0, 0, -1}, NULL, &err);
    struct layer *moved;

    assert_non_null(own);
    moved = layer_moved(own, &pose, 1, 1, &err);
    assert_non_null(moved);
    layer_unref(own);
    return moved;
}

static struct locale *stage(enum triangulation triangulation)
{
    struct locale_manifest manifest = locale_manifest_default;
    struct layer *layers[2];
    struct locale *locale;
    struct err err;

    manifest.triangulation = triangulation;
    layers[0] = field_layer(triangulation);
    layers[1] = deck_layer();
    locale = locale_assemble("here", 1, &manifest, layers, 2, &err);
    assert_non_null(locale);
    return locale;
}

struct shot {
    struct locale *locale;
    struct lens_frame lens;
    struct camera camera;
    struct scene scene;
    struct draw_light light;
    uint8_t *rgb, *bare; /* bare: without shadows */
    float *distance_m;
    struct locale_hit *hits; /* what rays say */
};

static void take(struct shot *shot, struct locale *locale, struct camera camera, struct vec3 light,
                 uint32_t width, uint32_t height, uint32_t blocks_max)
{
    const size_t pixels = (size_t)width * height;
    struct ray *rays = malloc(width * sizeof *rays);
    struct layer_choice choice;
    struct err err;

    *shot = (struct shot){.locale = locale, .camera = camera, .light = {vec3_unit(light), true}};
    shot->rgb = malloc(3 * pixels);
    shot->bare = malloc(3 * pixels);
    shot->distance_m = malloc(pixels * sizeof(float));
    shot->hits = malloc(pixels * sizeof *shot->hits);
    if (lens_frame_make(&camera, width, height, &shot->lens, &err) ||
        scene_make(locale, &shot->lens, blocks_max, 1 << 30, &shot->scene, &err) ||
        draw_picture(draw, &shot->scene, &shot->lens, &shot->light, shot->rgb, shot->distance_m,
                     &err))
        fail_msg("%s", err_for_log(&err));
    shot->light.has_shadows = false;
    assert_int_equal(
        draw_picture(draw, &shot->scene, &shot->lens, &shot->light, shot->bare, NULL, &err),
        ERR_OK);
    assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const struct viewport pixel = {width, height, x + 0.5, y + 0.5};

            assert_int_equal(pick_camera_ray(&camera, &pixel, &rays[x], &err), ERR_OK);
        }
        locale_rays(&choice, rays, width, RAY_CLOSEST, shot->hits + (size_t)y * width);
    }
    free(rays);
}

static void put_away(struct shot *shot)
{
    scene_finish(&shot->scene);
    free(shot->rgb);
    free(shot->bare);
    free(shot->distance_m);
    free(shot->hits);
}

/* ---- what a pixel shows ---------------------------------------------------------------------- */

/* The same cell or its neighbour; of a mesh the same place. */
static bool is_same(const struct shot *shot, size_t i)
{
    const struct locale_hit *hit = &shot->hits[i];
    const double distance_m = (double)shot->distance_m[i];
    const double t = hit->at.t;

    if (distance_m <= 0 || t == INFINITY)
        return distance_m <= 0 && t == INFINITY;
    if (hit->layer->field) {
        const struct heightfield_spec *spec = heightfield_spec(hit->layer->field);
        const struct vec3 way = vec3_unit(vec3_sub(hit->at.point, shot->lens.eye));
        const struct vec3 at = vec3_add(shot->lens.eye, vec3_scale(way, distance_m));
        const double c = (at.x - spec->origin_x_m) / spec->spacing_x_m - hit->at.cell[0];
        const double r = (at.y - spec->origin_y_m) / spec->spacing_y_m - hit->at.cell[1];

        return c >= -1 && c <= 2 && r >= -1 && r <= 2;
    }
    return fabs(distance_m - t) < 1e-3 * t;
}

static void pixels_show_what_rays_meet(void **state)
{
    const uint32_t width = long_form(1920, 480), height = long_form(1080, 270);
    static const struct camera cameras[] = {
        {{99990, -260, 90}, {100250, 90, 0}, {0, 0, 1}, 60},     /* over it from outside */
        {{100300, 150, 75}, {100400, 300, -10}, {0, 0, 1}, 75},  /* from the cliff */
        {{100250.3, 90.7, 320}, {100250, 90, 0}, {0, 1, 0}, 50}, /* straight down */
        {{100200, -150, 4}, {100260, 60, 30}, {0.1, 0, 1}, 40},  /* low, and tilted */
    };

    (void)state;
    if (!draw)
        skip();
    for (int k = 0; k < 4; k++) {
        struct locale *locale = stage((enum triangulation)(k % 3));
        struct shot shot;
        size_t good = 0, ground = 0, sky = 0;
        const size_t pixels = (size_t)width * height;

        take(&shot, locale, cameras[k], (struct vec3){0.5, 0.6, -0.5}, width, height,
             SCENE_BLOCKS_MAX);
        for (size_t i = 0; i < pixels; i++) {
            good += is_same(&shot, i);
            sky += shot.hits[i].at.t == INFINITY;
            ground += shot.hits[i].at.t != INFINITY;
        }
        print_message("# camera %d: %.4f %% of %zu pixels, %zu of them sky\n", k,
                      100.0 * (double)good / (double)pixels, pixels, sky);
        assert_true(ground > pixels / 4);
        if ((double)good < 0.999 * (double)pixels)
            fail_msg("camera %d: only %zu of %zu pixels", k, good, pixels);
        put_away(&shot);
        locale_unref(locale);
    }
}

/* With few blocks the ground is coarser, but no pixel of it is missing, and none is far off. */
static void coarse_ground_has_no_gaps(void **state)
{
    struct locale *locale;
    struct shot shot;
    size_t wrong = 0, gaps = 0, pixels = 480 * 270;

    (void)state;
    if (!draw)
        skip();
    locale = stage(TRIANGULATION_ANTI);
    take(&shot, locale, (struct camera){{99990, -260, 90}, {100250, 90, 0}, {0, 0, 1}, 60},
         (struct vec3){0.5, 0.6, -0.5}, 480, 270, 60);
    assert_true(shot.scene.block_count <= 60 && shot.scene.fields[0].has_hems);
    for (size_t i = 0; i < pixels; i++) {
        const double t = shot.hits[i].at.t, d = (double)shot.distance_m[i];

        gaps += t != INFINITY && d <= 0;
        wrong += t != INFINITY && d > 0 && fabs(d - t) > 0.05 * t;
    }
    print_message("# %u blocks: %zu gaps, %zu of %zu off by more than a twentieth\n",
                  shot.scene.block_count, gaps, wrong, pixels);
    assert_true(gaps < pixels / 200 && wrong < pixels / 30);
    put_away(&shot);
    locale_unref(locale);
}

/* ---- shadows --------------------------------------------------------------------------------- */

static double light_of(const uint8_t *rgb)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        const double c = rgb[i] / 255.0;

        sum += c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
    }
    return sum;
}

static bool is_lit(const struct lighting *lighting, struct vec3 point)
{
    struct locale_hit hit;

    lighting_occluders(lighting, &point, 1, &hit);
    return hit.at.t == INFINITY;
}

/* Does the light change within two texels around? */
static bool is_edge(const struct lighting *lighting, const struct cascade *cascades, int count,
                    const struct lens_frame *lens, struct vec3 point, bool lit)
{
    const struct vec3 from = vec3_sub(point, lens->eye);
    const struct box3 box = {from, from};
    int k = 0;

    while (k < count - 1 && !cascade_sees(&cascades[k], &box))
        k++;
    if (k < count - 1)
        k++; /* it may be blended with the next one */
    for (int i = 0; i < 48; i++) {
        const double angle = i * M_PI / 8, r = (i / 16 + 1) * cascades[k].texel_m;
        const struct vec3 beside =
            vec3_add(point, vec3_add(vec3_scale(cascades[k].across, r * cos(angle)),
                                     vec3_scale(cascades[k].upwards, r * sin(angle))));

        for (int j = -2; j <= 2; j++) /* beside it on the slope, not in the air */
            if (is_lit(lighting, vec3_add(beside, vec3_scale(cascades[k].along,
                                                             j * cascades[k].texel_m))) != lit)
                return true;
    }
    return false;
}

static void sun_reaches_where_lit_says(void **state)
{
    const uint32_t width = long_form(1280, 400), height = long_form(720, 225);
    static const struct vec3 lights[] = {{0.7, 0.6, -0.25}, {-0.9, 0.2, -0.2}, {0.3, -0.2, -1}};
    static const struct camera cameras[] = {{{99990, -260, 90}, {100250, 90, 0}, {0, 0, 1}, 60},
                                            {{100300, 20, 75}, {100260, 110, 20}, {0, 0, 1}, 75},
                                            {{100250, 90, 320}, {100250, 90, 0}, {0, 1, 0}, 50}};

    (void)state;
    if (!draw)
        skip();
    for (int k = 0; k < 3; k++) {
        struct locale *locale = stage(TRIANGULATION_ANTI);
        struct cascade cascades[CASCADES_MAX];
        struct lighting lighting;
        struct layer_choice choice;
        struct light light;
        struct shot shot;
        struct err err;
        size_t asked = 0, same = 0, edges = 0, dark = 0, half = 0;
        int count;

        take(&shot, locale, cameras[k], lights[k], width, height, SCENE_BLOCKS_MAX);
        assert_int_equal(locale_choose(locale, NULL, &choice, &err), ERR_OK);
        assert_true(light_from_direction(lights[k], &light));
        assert_true(lighting_open(&lighting, &choice, &light, 1, NULL, true));
        count = cascades_make(&shot.scene, &shot.lens, shot.light.direction, cascades);
        assert_true(count > 0);
        for (size_t i = 0; i < (size_t)width * height; i++) {
            const struct locale_hit *hit = &shot.hits[i];
            const double facing = -vec3_dot(hit->at.normal, shot.light.direction);
            double part;
            bool lit;

            if (hit->at.t == INFINITY || !is_same(&shot, i) || facing < 0.02)
                continue;
            part = light_of(shot.rgb + 3 * i) / light_of(shot.bare + 3 * i);
            lit = is_lit(&lighting, hit->at.point);
            asked++;
            dark += !lit;
            half += !lit && part > 0.5 && part < 0.99;
            if (lit == (part > 0.67))
                same++;
            else
                edges += is_edge(&lighting, cascades, count, &shot.lens, hit->at.point, lit);
        }
        print_message("# light %d: %.3f %% of %zu pixels as lit, %zu of the other %zu at an edge, "
                      "%zu dark, %zu of them lighter than half\n",
                      k, 100.0 * (double)same / (double)asked, asked, edges, asked - same, dark,
                      half);
        assert_true(asked > 1000 && dark > asked / 1000);
        if ((double)same < 0.99 * (double)asked || same + edges < asked - asked / 5000)
            fail_msg("light %d: %zu of %zu, %zu at edges", k, same, asked, edges);
        lighting_close(&lighting);
        put_away(&shot);
        locale_unref(locale);
    }
}

/* ---- spheres --------------------------------------------------------------------------------- */

static double sphere_distance(const struct scene_sphere *s, struct vec3 way)
{
    const struct vec3 c = {(double)s->at[0], (double)s->at[1], (double)s->at[2]};
    const double b = vec3_dot(c, way), r = (double)s->radius_m;
    const double under = b * b - vec3_dot(c, c) + r * r;

    return under > 0 && b - sqrt(under) > 0 ? b - sqrt(under) : INFINITY;
}

static void spheres_are_where_rays_meet_them(void **state)
{
    const struct camera camera = {{5, -20, 9}, {5, 5, 0}, {0, 0, 1}, 45};
    struct draw_light light = {{0, 0, -1}, true};
    enum { COUNT = 300, WIDTH = 320, HEIGHT = 200 };
    static struct scene_sphere spheres[COUNT];
    static uint8_t rgb[3 * WIDTH * HEIGHT];
    static float distance_m[WIDTH * HEIGHT];
    struct random random = {7};
    struct scene scene = {.spheres = spheres, .sphere_count = COUNT};
    struct lens_frame lens;
    struct err err;
    size_t met = 0, wrong = 0;

    (void)state;
    if (!draw)
        skip();
    assert_int_equal(lens_frame_make(&camera, WIDTH, HEIGHT, &lens, &err), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        spheres[i] = (struct scene_sphere){{(float)random_in(&random, -8, 8),
                                            (float)random_in(&random, 5, 40),
                                            (float)random_in(&random, -12, 0)},
                                           (float)random_in(&random, 0.1, 1.5),
                                           0.5F};
    if (draw_picture(draw, &scene, &lens, &light, rgb, distance_m, &err))
        fail_msg("%s", err_for_log(&err));
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const struct viewport pixel = {WIDTH, HEIGHT, x + 0.5, y + 0.5};
            const double got = (double)distance_m[y * WIDTH + x];
            double want = INFINITY;
            struct ray ray;

            assert_int_equal(pick_camera_ray(&camera, &pixel, &ray, &err), ERR_OK);
            for (int i = 0; i < COUNT; i++)
                want = fmin(want, sphere_distance(&spheres[i], ray.direction));
            met += want < INFINITY;
            wrong += want < INFINITY ? !(fabs(got - want) < 1e-2) : got > 0;
        }
    print_message("# %zu of %d pixels show spheres, %zu differ\n", met, WIDTH * HEIGHT, wrong);
    assert_true(met > 2000 && wrong * 1000 <= met);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_show_what_rays_meet),
        cmocka_unit_test(coarse_ground_has_no_gaps),
        cmocka_unit_test(sun_reaches_where_lit_says),
        cmocka_unit_test(spheres_are_where_rays_meet_them),
    };
    struct err err;
    int failed;

    context_prepare();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    context = context_create("software", CONTEXT_DEBUG, &err);
    draw = context ? draw_create(context, &err) : NULL;
    if (!draw)
        print_message("# skipped: %s\n", err.msg);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    draw_destroy(draw);
    context_destroy(context);
    return failed;
}
