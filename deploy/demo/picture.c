/*
 * A small ray caster.
 *
 * Light at a point of the ground is the sun, if a ray towards it meets nothing (towards a random
 * point of its disc, so that shadows have soft rims), and the sky, as the share of a few rays
 * over the hemisphere that get away (ambient occlusion, 160 m far). Haze takes light away with
 * distance and puts the sky's in its place, thicker near the ground. Normals are interpolated from
 * the samples, because a facet two metres wide should not be seen from one kilometre; where a
 * sample is missing the triangle's own normal is taken.
 *
 * Random numbers are hashes of pixel and sample: the picture is the same for any number of threads.
 * All colours are linear light until the last step (terrain/shade.h).
 */
#include "deploy/demo/picture.h"

#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"

#include <string.h>

enum { SUBSAMPLES = 2, SKY_RAYS = 4 };

#define SUN_DISC 0.012 /* radius over distance; twice the real one */
#define SKY_REACH_M 160.0
#define HAZE_LENGTH_M 11000.0 /* at the lowest ground; light falls to 1/e over it */
#define HAZE_HEIGHT_M 650.0   /* haze thins to half over it */
#define SEA_CLEARNESS_M 7.0

static const struct colour sun_light = {3.3, 2.85, 2.25}, sky_light = {0.38, 0.54, 0.84};
static const struct colour horizon = {0.74, 0.84, 0.95}, zenith = {0.11, 0.27, 0.64};

struct scene {
    const struct heightfield *field;
    const struct picture_view *view;
    enum palette palette;
    struct vec3 sun;
    struct box3 bounds;
    double low_m; /* where the palette and the haze begin */
    uint8_t *rgb;
};

static enum err_code scene_init(struct scene *scene, const struct heightfield *field,
                                const struct picture_view *view, uint8_t *rgb, struct err *err)
{
    *scene = (struct scene){.field = field, .view = view, .palette = view->palette, .rgb = rgb};
    if (!heightfield_bounds(field, &scene->bounds))
        return err_set(err, ERR_UNPROCESSABLE, "the locale has no ground to draw");
    if (scene->palette == PALETTE_AUTO)
        scene->palette = scene->bounds.min.z < 0 ? PALETTE_ISLANDS : PALETTE_ALPINE;
    scene->low_m = scene->palette == PALETTE_ISLANDS ? 0 : scene->bounds.min.z;
    if (!(scene->bounds.max.z > scene->low_m + 1))
        scene->bounds.max.z = scene->low_m + 1;
    scene->sun = vec3_unit(view->sun);
    return ERR_OK;
}

/* ---- surface ------------------------------------------------------------------------------ */

/* A direction over the normal, more likely the nearer to it (the cosine law). */
static struct vec3 hemisphere(struct vec3 normal, double a, double b)
{
    double z = 2 * a - 1, r = sqrt(1 - z * z), turn = 6.283185307179586 * b;
    struct vec3 ball = {r * cos(turn), r * sin(turn), z};

    return vec3_unit(vec3_add(vec3_scale(normal, 1.0001), ball));
}

static bool is_free(const struct scene *scene, struct vec3 from, struct vec3 way, double reach_m)
{
    struct ray ray = {from, way, reach_m};
    struct ray_hit hit;

    return !heightfield_ray(scene->field, &ray, RAY_ANY, &hit, NULL);
}

static double sun_share(const struct scene *scene, struct vec3 from, uint32_t key)
{
    struct vec3 jitter = hemisphere(scene->sun, noise_uniform(key, 1, 5), noise_uniform(key, 2, 5));

    return is_free(scene, from, vec3_add(scene->sun, vec3_scale(jitter, SUN_DISC)), INFINITY);
}

static double sky_share(const struct scene *scene, struct vec3 from, struct vec3 normal,
                        uint32_t key)
{
    int free_count = 0;

    for (uint32_t i = 0; i < SKY_RAYS; i++) {
        double a = (i + noise_uniform(key, 10 + i, 6)) / SKY_RAYS;

        free_count +=
            is_free(scene, from, hemisphere(normal, a, noise_uniform(key, 20 + i, 6)), SKY_REACH_M);
    }
    return (double)free_count / SKY_RAYS;
}

static struct colour lit(const struct scene *scene, struct colour albedo, struct vec3 point,
                         struct vec3 normal, uint32_t key)
{
    struct vec3 from = vec3_add(point, vec3_scale(normal, 0.05));
    double facing = vec3_dot(normal, scene->sun);
    double sun = facing > 0 ? facing * sun_share(scene, from, key) : 0;
    double sky = (0.35 + 0.65 * sky_share(scene, from, normal, key)) * (0.6 + 0.4 * normal.z);
    struct colour light = colour_add(colour_scale(sun_light, sun), colour_scale(sky_light, sky));

    /* A little of the sunlight comes back from the slopes around. */
    light =
        colour_add(light, colour_scale((struct colour){0.16, 0.13, 0.09}, 1.1 - normal.z * 0.5));
    return colour_times(albedo, light);
}

/* ---- sky, haze, sea ----------------------------------------------------------------------- */

static struct colour sky_colour(const struct scene *scene, struct vec3 way)
{
    double up = way.z > 0 ? way.z : 0, sun = vec3_dot(way, scene->sun);
    double glow = sun > 0 ? sun : 0, thin = 1 - up;
    struct colour sky = colour_mix(zenith, horizon, thin * thin * thin * thin);

    if (up > 0.01) {
        struct noise_sum cloud = {.wavelength = 2.2, .octaves = 6, .gain = 0.55};
        double u = way.x / (up + 0.12), v = way.y / (up + 0.12);
        double cover = smooth_step(0.02, 0.45, noise_fbm(&cloud, 0.7 * u, 1.6 * v, 313));

        sky = colour_mix(sky, (struct colour){1.05, 1.04, 1.03},
                         0.55 * cover * smooth_step(0, 0.2, up));
    }
    glow *= glow;
    glow *= glow;
    glow *= glow;
    return colour_add(sky, colour_scale((struct colour){0.34, 0.25, 0.13}, glow));
}

static struct colour hazed(const struct scene *scene, struct colour colour, struct vec3 from,
                           struct vec3 way, double distance_m)
{
    double middle_m = from.z + way.z * distance_m / 2 - scene->low_m;
    double thin = exp(-0.69 * (middle_m > 0 ? middle_m : 0) / HAZE_HEIGHT_M);
    double depth = distance_m * thin / HAZE_LENGTH_M;
    struct vec3 level = {way.x, way.y, way.z > 0.02 ? way.z : 0.02};
    struct colour far =
        colour_scale(sky_colour(scene, vec3_unit((struct vec3){level.x, level.y, 0})), 0.92);

    /* Blue goes first: the near haze is bluer than the far one. */
    return (struct colour){mix(far.r, colour.r, exp(-depth * 0.80)),
                           mix(far.g, colour.g, exp(-depth * 0.95)),
                           mix(far.b, colour.b, exp(-depth * 1.25))};
}

static struct colour sea_colour(const struct scene *scene, struct vec3 point, struct vec3 way,
                                double distance_m, uint32_t key)
{
    const struct colour deep = {0.008, 0.055, 0.115}, shallow = {0.10, 0.42, 0.40};
    struct noise_sum waves = {.wavelength = 14, .octaves = 4, .gain = 0.6};
    double calm = 0.16 / (1 + distance_m / 500);
    struct vec3 normal =
        vec3_unit((struct vec3){calm * noise_fbm(&waves, point.x, point.y, 71),
                                calm * noise_fbm(&waves, point.x, point.y, 72), 1});
    double facing = -vec3_dot(way, normal), graze = facing > 0 ? 1 - facing : 1, mirror, glint;
    struct vec3 away = vec3_add(way, vec3_scale(normal, 2 * facing));
    struct ground_point floor_point;
    double clear = 0, sun;
    struct colour water, bed = {0.55, 0.50, 0.36};

    heightfield_height(scene->field, (struct vec2){point.x, point.y}, INTERPOLATION_BILINEAR,
                       &floor_point);
    if (floor_point.status == GROUND_OK)
        clear = exp(floor_point.height_m / SEA_CLEARNESS_M);
    water = colour_mix(deep, shallow, clear);
    water = colour_mix(water, bed, clear * clear * clear * clear * 0.55);
    sun = sun_share(scene, vec3_add(point, (struct vec3){0, 0, 0.05}), key);
    water = colour_scale(water, 0.45 + 0.75 * sun);
    mirror = 0.02 + 0.98 * graze * graze * graze * graze * graze;
    away.z = fabs(away.z);
    glint = vec3_dot(away, scene->sun);
    glint = glint > 0 ? pow(glint, 260) * 3 * sun : 0;
    water = colour_mix(water, sky_colour(scene, vec3_unit(away)), mirror * 0.8);
    return colour_add(water, colour_scale(sun_light, glint));
}

/* What comes to the eye along one ray. */
static struct colour radiance(const struct scene *scene, const struct ray *ray, uint32_t key)
{
    struct ray_hit hit;
    double sea_t = INFINITY;
    bool ground = heightfield_ray(scene->field, ray, RAY_CLOSEST, &hit, NULL);
    struct vec3 normal;
    struct colour albedo;

    if (scene->palette == PALETTE_ISLANDS && ray->direction.z < 0 && ray->origin.z > 0)
        sea_t = -ray->origin.z / ray->direction.z;
    if (sea_t < 60000 && (!ground || sea_t < hit.t)) {
        struct vec3 point = vec3_add(ray->origin, vec3_scale(ray->direction, sea_t));

        return hazed(scene, sea_colour(scene, point, ray->direction, sea_t, key), ray->origin,
                     ray->direction, sea_t);
    }
    if (!ground)
        return sky_colour(scene, ray->direction);
    normal = shade_smooth_normal(scene->field, &hit);
    albedo = palette_ground(scene->palette, hit.point, normal, scene->low_m, scene->bounds.max.z);
    return hazed(scene, lit(scene, albedo, hit.point, normal, key), ray->origin, ray->direction,
                 hit.t);
}

/* ---- pixels ------------------------------------------------------------------------------- */

static void pixel_set(const struct scene *scene, uint32_t x, uint32_t y, struct colour colour)
{
    uint8_t *out = scene->rgb + 3 * ((size_t)y * scene->view->width + x);

    out[0] = shade_developed(colour.r);
    out[1] = shade_developed(colour.g);
    out[2] = shade_developed(colour.b);
}

static void perspective_rows(void *context, uint32_t first, uint32_t end)
{
    const struct scene *scene = context;
    const struct picture_view *view = scene->view;
    struct viewport viewport = {.width_px = view->width, .height_px = view->height};

    for (uint32_t y = first; y < end; y++) {
        for (uint32_t x = 0; x < view->width; x++) {
            struct colour sum = {0, 0, 0};

            for (uint32_t i = 0; i < SUBSAMPLES * SUBSAMPLES; i++) {
                struct err ignored; /* the camera was tried before the threads started */
                struct ray ray;

                viewport.pixel_x = x + (i % SUBSAMPLES + 0.5) / SUBSAMPLES;
                viewport.pixel_y = y + (i / SUBSAMPLES + 0.5) / SUBSAMPLES;
                if (!pick_camera_ray(&view->camera, &viewport, &ray, &ignored))
                    sum = colour_add(sum, radiance(scene, &ray, noise_hash(x, y, i)));
            }
            pixel_set(scene, x, y, colour_scale(sum, 1.0 / (SUBSAMPLES * SUBSAMPLES)));
        }
    }
}

enum err_code picture_perspective(const struct heightfield *field, const struct picture_view *view,
                                  uint8_t *rgb, struct err *err)
{
    struct viewport middle = {view->width, view->height, view->width / 2.0, view->height / 2.0};
    struct scene scene;
    struct ray ray;

    if (pick_camera_ray(&view->camera, &middle, &ray, err) ||
        scene_init(&scene, field, view, rgb, err))
        return err->code;
    parallel_rows(view->threads, view->height, 4, perspective_rows, &scene);
    return ERR_OK;
}

static struct colour map_colour(const struct scene *scene, double x, double y, uint32_t key)
{
    struct ray down = {{x, y, scene->bounds.max.z + 1}, {0, 0, -1}, INFINITY};
    struct ray_hit hit;
    struct vec3 normal;
    struct colour albedo;

    if (!heightfield_ray(scene->field, &down, RAY_CLOSEST, &hit, NULL))
        return (struct colour){0.6, 0, 0.6};
    if (scene->palette == PALETTE_ISLANDS && hit.point.z < 0)
        return sea_colour(scene, (struct vec3){x, y, 0}, down.direction, 100, key);
    normal = shade_smooth_normal(scene->field, &hit);
    albedo = palette_ground(scene->palette, hit.point, normal, scene->low_m, scene->bounds.max.z);
    return lit(scene, albedo, hit.point, normal, key);
}

static void map_rows(void *context, uint32_t first, uint32_t end)
{
    const struct scene *scene = context;
    const struct picture_view *view = scene->view;
    const struct box3 *bounds = &scene->bounds;

    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < view->width; column++) {
            double x = mix(bounds->min.x, bounds->max.x, (column + 0.5) / view->width);
            double y = mix(bounds->max.y, bounds->min.y, (row + 0.5) / view->height);

            pixel_set(scene, column, row, map_colour(scene, x, y, noise_hash(column, row, 0)));
        }
    }
}

enum err_code picture_map(const struct heightfield *field, const struct picture_view *view,
                          uint8_t *rgb, struct err *err)
{
    struct scene scene;

    if (scene_init(&scene, field, view, rgb, err))
        return err->code;
    parallel_rows(view->threads, view->height, 4, map_rows, &scene);
    return ERR_OK;
}
