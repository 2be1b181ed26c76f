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
static struct locale *stages[3];

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

/* Made once. */
static struct locale *stage(enum triangulation triangulation)
{
    struct locale_manifest manifest = locale_manifest_default;
    struct layer *layers[2];
    struct err err;

    if (!stages[triangulation]) {
        manifest.triangulation = triangulation;
        layers[0] = field_layer(triangulation);
        layers[1] = deck_layer();
        stages[triangulation] = locale_assemble("here", 1, &manifest, layers, 2, &err);
        assert_non_null(stages[triangulation]);
    }
    return locale_ref(stages[triangulation]);
}

struct shot {
    struct locale *locale;
    const struct locale *casters; /* what `lit` is asked of */
    struct lens_frame lens;
    struct camera camera;
    struct scene scene;
    struct draw_light light;
    uint8_t *rgb, *bare; /* rgb: with shadows, by compare_light */
    float *distance_m;
    struct locale_hit *hits; /* what rays say */
};

static void take(struct shot *shot, struct locale *locale, struct camera camera, struct vec3 light,
                 uint32_t width, uint32_t height, uint32_t blocks_max,
                 const struct scene_sphere *spheres, uint32_t sphere_count)
{
    const size_t pixels = (size_t)width * height;
    struct ray *rays = malloc(width * sizeof *rays);
    struct layer_choice choice;
    struct err err;

    *shot = (struct shot){
        .locale = locale, .casters = locale, .camera = camera, .light = {vec3_unit(light), false}};
    shot->rgb = malloc(3 * pixels);
    shot->bare = malloc(3 * pixels);
    shot->distance_m = malloc(pixels * sizeof(float));
    shot->hits = malloc(pixels * sizeof *shot->hits);
    if (lens_frame_make(&camera, width, height, &shot->lens, &err) ||
        scene_make(locale, &shot->lens, blocks_max, 1 << 30, &shot->scene, &err))
        fail_msg("%s", err_for_log(&err));
    for (size_t k = 0; k < shot->scene.field_count; k++)
        for (int i = 0; i < 2; i++) /* counted from a sample beside the eye: float32 is enough */
            assert_true(fabsf(shot->scene.fields[k].base[i]) <= shot->scene.fields[k].spacing[i]);
    shot->scene.spheres = spheres;
    shot->scene.sphere_count = sphere_count;
    if (draw_picture(draw, &shot->scene, &shot->lens, &shot->light, shot->bare, shot->distance_m,
                     &err))
        fail_msg("%s", err_for_log(&err));
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
    const uint32_t width = long_form(1920, 320), height = long_form(1080, 180);
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
             SCENE_BLOCKS_MAX, NULL, 0);
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
         (struct vec3){0.5, 0.6, -0.5}, 480, 270, 60, NULL, 0);
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

static double sphere_distance(const struct scene_sphere *s, struct vec3 from, struct vec3 way)
{
    const struct vec3 at = {(double)s->at[0], (double)s->at[1], (double)s->at[2]};
    const struct vec3 c = vec3_sub(at, from);
    const double b = vec3_dot(c, way), r = (double)s->radius_m;
    const double under = b * b - vec3_dot(c, c) + r * r;

    return under > 0 && b - sqrt(under) > 0 ? b - sqrt(under) : INFINITY;
}

/* What light meets: ground and meshes as `lit` has them, spheres one by one. */
struct judge {
    struct lighting lighting;
    const struct shot *shot;
    struct cascade cascades[CASCADES_MAX];
    int count;
};

static bool is_lit(const struct judge *judge, struct vec3 point)
{
    const struct shot *shot = judge->shot;
    const struct vec3 from = vec3_sub(point, shot->lens.eye);
    const struct vec3 way = vec3_opposite(shot->light.direction);
    struct locale_hit hit;

    for (uint32_t i = 0; i < shot->scene.sphere_count; i++)
        if (sphere_distance(&shot->scene.spheres[i], from, way) < INFINITY)
            return false;
    lighting_occluders(&judge->lighting, &point, 1, &hit);
    return hit.at.t == INFINITY;
}

/* Where the ray of a pixel goes first, ground, mesh or sphere; false: nowhere, or the picture shows
 * something else. */
static bool meets(const struct shot *shot, size_t i, struct vec3 *point, struct vec3 *normal,
                  bool *is_round)
{
    const struct locale_hit *hit = &shot->hits[i];
    const struct viewport pixel = {shot->lens.width, shot->lens.height,
                                   (double)(i % shot->lens.width) + 0.5,
                                   (double)(i / shot->lens.width) + 0.5};
    double first = hit->at.t;
    struct ray ray;
    struct err err;

    *is_round = false;
    *point = hit->at.point;
    *normal = hit->at.normal;
    assert_int_equal(pick_camera_ray(&shot->camera, &pixel, &ray, &err), ERR_OK);
    if (vec3_dot(*normal, ray.direction) > 0) /* through a hole, from below */
        *normal = vec3_opposite(*normal);
    for (uint32_t k = 0; k < shot->scene.sphere_count; k++) {
        const struct scene_sphere *s = &shot->scene.spheres[k];
        const struct vec3 at = {(double)s->at[0], (double)s->at[1], (double)s->at[2]};
        const double t = sphere_distance(s, (struct vec3){0, 0, 0}, ray.direction);

        if (t >= first)
            continue;
        first = t;
        *is_round = true;
        *normal = vec3_unit(vec3_sub(vec3_scale(ray.direction, t), at));
        *point = vec3_add(shot->lens.eye,
                          vec3_add(vec3_scale(ray.direction, t), vec3_scale(*normal, 1e-6)));
    }
    return *is_round ? fabs((double)shot->distance_m[i] - first) < 0.01
                     : first < INFINITY && is_same(shot, i);
}

/* Does the light change within two texels around? */
static bool is_edge(const struct judge *judge, struct vec3 point, bool lit)
{
    const struct cascade *cascades = judge->cascades;
    const struct vec3 from = vec3_sub(point, judge->shot->lens.eye);
    const struct box3 box = {from, from};
    int k = 0;

    while (k < judge->count - 1 && !cascade_sees(&cascades[k], &box))
        k++;
    if (k < judge->count - 1)
        k++; /* it may be blended with the next one */
    for (int i = 0; i < 48; i++) {
        const double angle = i * M_PI / 8, *texel_m = cascades[k].texel_m;
        const double deep = fmax(texel_m[0], texel_m[1]);
        const double a = (i / 16 + 1) * texel_m[0], b = (i / 16 + 1) * texel_m[1];
        const struct vec3 beside =
            vec3_add(point, vec3_add(vec3_scale(cascades[k].across, a * cos(angle)),
                                     vec3_scale(cascades[k].upwards, b * sin(angle))));

        for (int j = -2; j <= 2; j++) /* beside it on the slope, not in the air */
            if (is_lit(judge, vec3_add(beside, vec3_scale(cascades[k].along, j * deep))) != lit)
                return true;
    }
    return false;
}

/* Each pixel that faces the sun beside the judge, at the first place that its ray meets. */
static void compare_light(struct shot *shot, const char *what, size_t dark_least)
{
    const size_t pixels = (size_t)shot->lens.width * shot->lens.height;
    struct judge judge = {.shot = shot};
    struct layer_choice choice;
    struct light light;
    struct err err;
    size_t asked = 0, same = 0, edges = 0, dark = 0, round = 0;

    assert_int_equal(locale_choose(shot->casters, NULL, &choice, &err), ERR_OK);
    assert_true(light_from_direction(shot->light.direction, &light));
    assert_true(lighting_open(&judge.lighting, &choice, &light, 1, NULL, true));
    judge.count = cascades_make(&shot->scene, &shot->lens, shot->light.direction, judge.cascades);
    assert_true(judge.count > 0);
    shot->light.has_shadows = true;
    if (draw_picture(draw, &shot->scene, &shot->lens, &shot->light, shot->rgb, shot->distance_m,
                     &err))
        fail_msg("%s", err_for_log(&err));
    for (size_t i = 0; i < pixels; i++) {
        struct vec3 point, normal;
        bool is_round, lit;

        if (!meets(shot, i, &point, &normal, &is_round) ||
            -vec3_dot(normal, shot->light.direction) < (is_round ? 0.1 : 0.02))
            continue;
        lit = is_lit(&judge, point);
        asked++;
        dark += !lit;
        round += is_round;
        if (lit == (light_of(shot->rgb + 3 * i) > 0.67 * light_of(shot->bare + 3 * i)))
            same++;
        else
            edges += is_edge(&judge, point, lit);
    }
    print_message("# %s: %.3f %% of %zu pixels as lit, %zu of the other %zu at an edge, %zu dark, "
                  "%zu on spheres\n",
                  what, 100.0 * (double)same / (double)asked, asked, edges, asked - same, dark,
                  round);
    assert_true(asked > 1000 && dark > dark_least + asked / 1000);
    assert_true(shot->scene.sphere_count == 0 || round > 200);
    if ((double)same < 0.99 * (double)asked || same + edges < asked - asked / 5000)
        fail_msg("%s: %zu of %zu, %zu at edges", what, same, asked, edges);
    lighting_close(&judge.lighting);
}

static void sun_reaches_where_lit_says(void **state)
{
    const uint32_t width = long_form(1280, 320), height = long_form(720, 180);
    static const struct vec3 lights[] = {{0.7, 0.6, -0.25}, {-0.9, 0.2, -0.2}, {0.3, -0.2, -1}};
    static const struct camera cameras[] = {{{99990, -260, 90}, {100250, 90, 0}, {0, 0, 1}, 60},
                                            {{100300, 20, 75}, {100260, 110, 20}, {0, 0, 1}, 75},
                                            {{100250, 90, 320}, {100250, 90, 0}, {0, 1, 0}, 50}};
    static const char *const names[] = {"light 0", "light 1", "light 2"};

    (void)state;
    if (!draw)
        skip();
    for (int k = 0; k < (int)long_form(3, 2); k++) {
        struct locale *locale = stage(TRIANGULATION_ANTI);
        struct shot shot;

        take(&shot, locale, cameras[k], lights[k], width, height, SCENE_BLOCKS_MAX, NULL, 0);
        compare_light(&shot, names[k], 0);
        put_away(&shot);
        locale_unref(locale);
    }
}

/* Spheres over the ground, and on each other: what they cast, and what they receive. */
static void spheres_cast_and_receive_shadows(void **state)
{
    enum { COUNT = 60 };
    const struct camera camera = {{100120, 60, 60}, {100150, 110, 10}, {0, 0, 1}, 50};
    struct locale *locale;
    struct scene_sphere spheres[COUNT];
    struct random random = {11};
    struct shot shot;

    (void)state;
    if (!draw)
        skip();
    locale = stage(TRIANGULATION_ANTI);
    for (int i = 0; i < COUNT; i++) {
        const double x = random_in(&random, 100135, 100175), y = random_in(&random, 90, 130);
        const double z = (double)height_at((int)(x - 100000.5), (int)((y + 200) / 1.25)) +
                         random_in(&random, 1, 9);

        spheres[i] = (struct scene_sphere){
            {(float)(x - camera.eye.x), (float)(y - camera.eye.y), (float)(z - camera.eye.z)},
            (float)random_in(&random, 1, 2.5),
            0.5F};
    }
    take(&shot, locale, camera, (struct vec3){0.5, 0.3, -0.9}, 400, 225, SCENE_BLOCKS_MAX, spheres,
         COUNT);
    compare_light(&shot, "spheres", 500);
    put_away(&shot);
    locale_unref(locale);
}

/* A ball of ground with a tower, a body that falls onto it and, with_sky, a sky. */
static struct locale *planet(bool with_sky)
{
    const struct mesh_space space = {.frame = MESH_SPHERICAL};
    const struct vec3 down = {0, 0, -1};
    const struct motion motion =
        motion_at(&(struct pose){.translation = {-30, 18, 52}}, (struct vec3){0, 0, 1});
    struct polygon_set sets[] = {solid_sphere(50, 40),
                                 solid_box((struct vec3){-3, -3, 45}, (struct vec3){3, 3, 70}),
                                 solid_sphere(400, 12), solid_sphere(5, 12)};
    static const char *const names[] = {"ground", "tower", "sky", "ball"};
    struct locale_manifest manifest = locale_manifest_default;
    struct layer *layers[4], *body;
    struct locale *still, *locale;
    struct err err;

    for (int i = 0; i < 4; i++)
        layers[i] = i == 3 ? layer_create_mesh("ball", LAYER_GROUND, &sets[i], down, NULL, &err)
                           : layer_create_mesh_in(names[i], i == 2 ? LAYER_CEILING : LAYER_GROUND,
                                                  &sets[i], space, down, NULL, NULL, &err);
    for (int i = 0; i < 4; i++)
        assert_non_null(layers[i]);
    body = layer_create_body((struct layer_body){.patch = 1, .number = 1, .ball_m = 5}, layers[3],
                             &motion, down, &err);
    assert_non_null(body);
    layer_unref(layers[3]);
    if (!with_sky)
        layer_unref(layers[2]);
    still = locale_assemble("planet", 1, &manifest, layers, with_sky ? 3 : 2, &err);
    assert_non_null(still);
    locale = locale_with_bodies(still, &body, 1, &err);
    assert_non_null(locale);
    locale_unref(still);
    return locale;
}

/* From two sides and under two suns; the sky is seen and casts nothing. */
static void planets_and_bodies_cast_and_receive_shadows(void **state)
{
    const uint32_t width = long_form(1280, 320), height = long_form(720, 180);
    static const struct vec3 lights[] = {{0.8, -0.5, -0.4}, {-0.6, -0.7, -0.4}};
    static const struct camera cameras[] = {{{-90, -60, 95}, {-5, 0, 50}, {0, 0, 1}, 30},
                                            {{-70, 60, 90}, {-5, 0, 50}, {0, 0, 1}, 30}};

    (void)state;
    if (!draw)
        skip();
    for (int k = 0; k < 2; k++) {
        struct locale *with_sky = planet(true), *without = planet(false);
        struct shot shot;

        take(&shot, with_sky, cameras[k], lights[k], width, height, SCENE_BLOCKS_MAX, NULL, 0);
        shot.casters = without;
        compare_light(&shot, k == 0 ? "planet 0" : "planet 1", 300);
        put_away(&shot);
        locale_unref(with_sky);
        locale_unref(without);
    }
}

/* ---- spheres --------------------------------------------------------------------------------- */

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
                want =
                    fmin(want, sphere_distance(&spheres[i], (struct vec3){0, 0, 0}, ray.direction));
            met += want < INFINITY;
            wrong += want < INFINITY ? !(fabs(got - want) < 1e-2) : got > 0;
        }
    print_message("# %zu of %d pixels show spheres, %zu differ\n", met, WIDTH * HEIGHT, wrong);
    assert_true(met > 2000 && wrong * 1000 <= met);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* A ball's normals are its radii; a box keeps its edges. */
static void bodies_are_smooth_up_to_a_crease(void **state)
{
    enum { RINGS = 9, SIDES = 20, CORNERS = RINGS * SIDES * 6 };
    static float corners[CORNERS][3], normals[CORNERS][3];
    static const int quad[6][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 0}, {1, 1}, {0, 1}};
    static const float face[6][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0},
                                     {0, 0, 0}, {1, 0, 1}, {1, 0, 0}};
    float edge[6][3];
    struct err err;
    double worst = 1;

    (void)state;
    for (int i = 0; i < CORNERS; i++) {
        const int ring = i / 6 / SIDES + quad[i % 6][0];
        const double polar = M_PI * ring / RINGS, radius = ring % RINGS ? sin(polar) : 0;
        const double turn = 2 * M_PI * ((i / 6 + quad[i % 6][1]) % SIDES) / SIDES;

        corners[i][0] = (float)(radius * cos(turn));
        corners[i][1] = (float)(radius * sin(turn));
        corners[i][2] = (float)cos(polar);
    }
    assert_int_equal(scene_smooth((const float(*)[3])corners, CORNERS, normals, &err), ERR_OK);
    for (int i = 0; i < CORNERS; i++) {
        double cosine = 0, length = 0;

        for (int k = 0; k < 3; k++) {
            cosine += (double)corners[i][k] * (double)normals[i][k];
            length += (double)normals[i][k] * (double)normals[i][k];
        }
        if (length > 0) /* triangles at the poles have no area */
            worst = fmin(worst, fabs(cosine));
    }
    print_message("# the worst normal of a ball is off by %.2f degrees\n",
                  acos(worst) * 180 / M_PI);
    assert_true(worst > cos(3 * M_PI / 180));
    assert_int_equal(scene_smooth(face, 6, edge, &err), ERR_OK); /* two faces at a right angle */
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++)
            assert_true(fabsf(edge[i][k]) < 1e-6F || fabsf(fabsf(edge[i][k]) - 1) < 1e-6F);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_show_what_rays_meet),
        cmocka_unit_test(coarse_ground_has_no_gaps),
        cmocka_unit_test(sun_reaches_where_lit_says),
        cmocka_unit_test(spheres_are_where_rays_meet_them),
        cmocka_unit_test(spheres_cast_and_receive_shadows),
        cmocka_unit_test(planets_and_bodies_cast_and_receive_shadows),
        cmocka_unit_test(bodies_are_smooth_up_to_a_crease),
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
    for (int i = 0; i < 3; i++)
        locale_unref(stages[i]);
    draw_destroy(draw);
    context_destroy(context);
    return failed;
}
