/*
 * build/release/bench/bench_view [ground.png]: what a picture of the daemon's own view costs on
 * Mesa's software renderer, and how many of its pixels show what rays meet and `lit` answers.
 *
 * The ground is that of the demo world's highlands (build/demo, made by `make run`). Each picture
 * is made as view.c makes it, but for the PNG; times are the least of ROUNDS, in seconds of the
 * clock and of the processor.
 */
#include "view/draw.h"

#include "formats/raster/raster.h"
#include "support/bench_time.h"
#include "world/ask/lit.h"
#include "world/ask/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 3, RAYS_EVERY = 7 };

static const struct camera cameras[] = {
    {{1000, 2000, 700}, {3000, 4000, 100}, {0, 0, 1}, 60}, /* over it */
    {{1450, 3000, 132}, {1800, 3300, 120}, {0, 0, 1}, 60}, /* standing on it */
};
static const struct vec3 sun = {0.68, 0.39, -0.42};
static const uint32_t sizes[][2] = {{800, 600}, {1920, 1080}};

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench_view: %s\n", what);
    exit(1);
}

static struct locale *ground_read(const char *path)
{
    const struct raster_options options = {
        .flip_y = true, .height_scale = 0.015625, .height_offset = -1};
    struct locale_manifest manifest = locale_manifest_default;
    struct heightfield_spec spec = {.spacing_x_m = 2, .spacing_y_m = 2};
    struct raster raster;
    struct layer *layer;
    struct heightfield *field;
    struct err err = {.msg = "no memory"};
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 26);
    size_t length;

    must(file != NULL, "no ground.png: make run makes the demo world, or name one");
    must(bytes != NULL, "no memory");
    length = fread(bytes, 1, 1 << 26, file);
    fclose(file);
    must(raster_decode(RASTER_PNG, bytes, length, &options, NULL, &raster, &err) == ERR_OK,
         err.msg);
    free(bytes);
    spec.cols = raster.cols;
    spec.rows = raster.rows;
    field = heightfield_create(&spec, raster.heights_m, &err);
    must(field != NULL, err.msg);
    raster_free(&raster);
    layer = layer_create_heightfield("ground", field, &err);
    must(layer != NULL, err.msg);
    struct locale *locale = locale_assemble("highlands", 1, &manifest, &layer, 1, &err);
    must(locale != NULL, err.msg);
    return locale;
}

static double light_of(const uint8_t *rgb)
{
    return pow(rgb[0] / 255.0, 2.2) + pow(rgb[1] / 255.0, 2.2) + pow(rgb[2] / 255.0, 2.2);
}

/* The shares of pixels that show the cell of their ray or its neighbour, and that are lit as it. */
static void compare(const struct locale *locale, const struct camera *camera,
                    const struct lens_frame *lens, const float *distance_m, const uint8_t *rgb,
                    const uint8_t *bare)
{
    struct layer_choice choice;
    struct lighting lighting;
    struct light light;
    size_t asked = 0, good = 0, facing = 0, same = 0;
    struct err err;

    must(locale_choose(locale, NULL, &choice, &err) == ERR_OK, err.msg);
    must(light_from_direction(sun, &light) &&
             lighting_open(&lighting, &choice, &light, 1, NULL, true),
         "no light");
    for (uint32_t i = 0; i < lens->width * lens->height; i += RAYS_EVERY) {
        const struct viewport pixel = {lens->width, lens->height, i % lens->width + 0.5,
                                       i / lens->width + 0.5};
        const double d = (double)distance_m[i];
        struct locale_hit hit, occluder;
        struct ray ray;

        must(pick_camera_ray(camera, &pixel, &ray, &err) == ERR_OK, err.msg);
        locale_rays(&choice, &ray, 1, RAY_CLOSEST, &hit);
        asked++;
        if (hit.at.t == INFINITY || d <= 0) {
            good += hit.at.t == INFINITY && d <= 0;
            continue;
        }
        const struct vec3 way = vec3_unit(vec3_sub(hit.at.point, lens->eye));
        const struct vec3 at = vec3_add(lens->eye, vec3_scale(way, d));
        const double c = at.x / 2 - hit.at.cell[0], r = at.y / 2 - hit.at.cell[1];

        good += c >= -1 && c <= 2 && r >= -1 && r <= 2;
        if (vec3_dot(hit.at.normal, vec3_unit(sun)) > -0.02)
            continue; /* turned away from the sun */
        lighting_occluders(&lighting, &hit.at.point, 1, &occluder);
        facing++;
        same +=
            (occluder.at.t == INFINITY) == (light_of(rgb + 3 * i) > 0.67 * light_of(bare + 3 * i));
    }
    lighting_close(&lighting);
    printf("    %.3f %% of %zu pixels show the ray's cell or its neighbour, %.3f %% of %zu are as "
           "lit\n",
           100.0 * (double)good / (double)asked, asked, 100.0 * (double)same / (double)facing,
           facing);
}

static void measure(struct draw *draw, const struct locale *locale, const struct camera *camera,
                    const uint32_t size[2])
{
    const size_t pixels = (size_t)size[0] * size[1];
    uint8_t *rgb[2] = {malloc(3 * pixels), malloc(3 * pixels)}; /* without, with shadows */
    float *distance_m = malloc(pixels * sizeof *distance_m);
    struct draw_light light = {vec3_unit(sun), true};
    struct lens_frame lens;
    struct scene scene;
    struct err err;

    must(rgb[0] && rgb[1] && distance_m, "no memory");
    must(lens_frame_make(camera, size[0], size[1], &lens, &err) == ERR_OK, err.msg);
    for (int shadows = 0; shadows < 2; shadows++) {
        double wall = INFINITY, processor = INFINITY;

        light.has_shadows = shadows;
        for (int i = 0; i < ROUNDS; i++) {
            const double start = bench_now_s(), own = bench_thread_s();

            must(scene_make(locale, &lens, SCENE_BLOCKS_SOFTWARE, 1 << 30, &scene, &err) == ERR_OK,
                 err.msg);
            must(draw_picture(draw, &scene, &lens, &light, rgb[shadows], i == 0 ? distance_m : NULL,
                              &err) == ERR_OK,
                 err.msg);
            wall = fmin(wall, bench_now_s() - start);
            processor = fmin(processor, bench_thread_s() - own);
            if (i < ROUNDS - 1)
                scene_finish(&scene);
        }
        printf("%4u x %-4u %s  %.2f s, %.2f s of the processor; %u blocks\n", size[0], size[1],
               shadows ? "shadows   " : "no shadows", wall, processor, scene.block_count);
        scene_finish(&scene);
    }
    compare(locale, camera, &lens, distance_m, rgb[1], rgb[0]);
    free(rgb[0]);
    free(rgb[1]);
    free(distance_m);
}

int main(int count, char **words)
{
    struct locale *locale = ground_read(count > 1 ? words[1] : "build/demo/highlands/ground.png");
    struct context *context;
    struct draw *draw;
    struct err err;

    setvbuf(stdout, NULL, _IOLBF, 0);
    context_prepare();
    context = context_create("software", 0, &err);
    must(context != NULL, err.msg);
    draw = draw_create(context, &err);
    must(draw != NULL, err.msg);
    for (size_t k = 0; k < sizeof cameras / sizeof *cameras; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure(draw, locale, &cameras[k], sizes[i]);
    draw_destroy(draw);
    context_destroy(context);
    locale_unref(locale);
    return 0;
}
