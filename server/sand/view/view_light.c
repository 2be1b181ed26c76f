/*
 * Light: the colour of a pixel.
 *
 * The sun reaches a point unless the shadow map has a smaller depth there; four cells are read and
 * weighted, which makes the rim of a shadow a cell wide. The point is lifted off its surface by a
 * part of a sphere's radius first, so that none shadows itself.
 *
 * The sky reaches a point the less, the deeper it lies under the granules around: their heights are
 * taken in cells of two radii and smoothed twice over a granule's width. That is what makes a
 * crater's floor and the gaps between granules dark.
 *
 * Materials: each granule has its own shade of its material, by a hash of its index. The ground has
 * the mean of it, and a grain by place that is finer the nearer it is seen; the bed is damp, the
 * walls of the cut are layered. Bodies take colours in turn.
 */
#include "sand/view/view_data.h"

#include <stdlib.h>
#include <string.h>

#define SUN_CELLS 900.0 /* of the map, along its longer side */
#define LIFT 0.25       /* of the radius: offset before the shadow map is read */
#define HAZE_LENGTH_M 4000.0
#define GROUND_DARK 0.76 /* the ground, for its grains' own shadows, which it does not have */

enum { OPEN_CELLS_MAX = 512 };

static const struct vec3 to_sun = {-0.66, 0.30, 0.62};
static const struct colour sun_light = {3.3, 2.95, 2.4}, sky_light = {0.44, 0.56, 0.80};
static const struct colour bounce = {0.22, 0.17, 0.11};
/* How a material looks. Rough ground has more grain, and granules that differ more. */
static const struct {
    struct colour colour, damp;
    double spread; /* of the lightness of granules */
    double grain;  /* of the ground, as a part of sand's */
    double gloss;  /* of granules */
} looks[MATERIAL_COUNT] = {
    [MATERIAL_SAND] = {{0.38, 0.255, 0.135}, {0.13, 0.085, 0.05}, 0.36, 1, 0},
    [MATERIAL_PEBBLES] = {{0.30, 0.28, 0.25}, {0.10, 0.095, 0.09}, 0.60, 1.6, 0.12},
    [MATERIAL_RUBBLE] = {{0.235, 0.215, 0.195}, {0.085, 0.08, 0.075}, 0.75, 2.4, 0},
    [MATERIAL_SNOW] = {{0.80, 0.83, 0.88}, {0.52, 0.57, 0.66}, 0.08, 0.3, 0.04},
};
static const struct colour horizon = {0.80, 0.86, 0.93}, zenith = {0.20, 0.38, 0.72};
static const struct colour body_colours[] = {{0.40, 0.085, 0.04}, {0.07, 0.17, 0.33},
                                             {0.33, 0.32, 0.30},  {0.09, 0.22, 0.09},
                                             {0.42, 0.30, 0.04},  {0.22, 0.11, 0.26}};

/* ---- the sun's map --------------------------------------------------------------------------- */

struct bounds2 {
    double u0, u1, v0, v1;
};

static void grow(struct bounds2 *b, const struct sun_map *map, struct vec3 at, double r)
{
    double u = vec3_dot(at, map->u), v = vec3_dot(at, map->v);

    b->u0 = fmin(b->u0, u - r);
    b->u1 = fmax(b->u1, u + r);
    b->v0 = fmin(b->v0, v - r);
    b->v1 = fmax(b->v1, v + r);
}

static bool sun_init(const struct view *view, struct sun_map *map)
{
    struct bounds2 b = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    struct vec3 sun = vec3_unit(to_sun), centre;
    double longer;

    map->along = vec3_opposite(sun);
    map->u = vec3_unit(vec3_cross((struct vec3){0, 0, 1}, sun));
    map->v = vec3_cross(sun, map->u);
    for (uint32_t i = 0; i < view->scene->sphere_count; i++)
        if (view_sphere(view->scene, i, &centre))
            grow(&b, map, centre, (double)view->scene->radius_m);
    for (size_t i = 0; i < 3 * (size_t)view->triangle_count; i++)
        grow(&b, map, view->corners[i], 0);
    if (!(b.u1 > b.u0) || !(b.v1 > b.v0)) /* nothing that casts a shadow */
        b = (struct bounds2){0, 1, 0, 1};
    longer = fmax(b.u1 - b.u0, b.v1 - b.v0);
    map->cell_m = longer / SUN_CELLS;
    map->u0 = b.u0 - map->cell_m;
    map->v0 = b.v0 - map->cell_m;
    map->cols = (uint32_t)((b.u1 - b.u0) / map->cell_m) + 3;
    map->rows = (uint32_t)((b.v1 - b.v0) / map->cell_m) + 3;
    map->depth = malloc((size_t)map->cols * map->rows * sizeof *map->depth);
    if (!map->depth)
        return false;
    for (size_t i = 0; i < (size_t)map->cols * map->rows; i++)
        map->depth[i] = INFINITY;
    view_splat_sun(view, map);
    return true;
}

/* 1 in the sun, 0 in the shadow. */
static double sun_share(const struct sun_map *map, struct vec3 at)
{
    double u = (vec3_dot(at, map->u) - map->u0) / map->cell_m - 0.5;
    double v = (vec3_dot(at, map->v) - map->v0) / map->cell_m - 0.5;
    float along = (float)vec3_dot(at, map->along);
    const float *depth;
    double s, t;

    if (!(u >= 0) || !(v >= 0) || !(u < map->cols - 1) || !(v < map->rows - 1))
        return 1;
    s = u - floor(u);
    t = v - floor(v);
    depth = map->depth + (size_t)v * map->cols + (size_t)u;
    return (depth[0] > along ? (1 - s) * (1 - t) : 0) + (depth[1] > along ? s * (1 - t) : 0) +
           (depth[map->cols] > along ? (1 - s) * t : 0) +
           (depth[map->cols + 1] > along ? s * t : 0);
}

/* ---- the sky --------------------------------------------------------------------------------- */

static void smooth_lines(float *at, size_t count, size_t step, size_t lines, size_t line_step)
{
    for (size_t line = 0; line < lines; line++) {
        float *p = at + line * line_step, before = p[0];

        for (size_t i = 0; i < count; i++) {
            float here = p[i * step], after = p[(i + 1 < count ? i + 1 : i) * step];

            p[i * step] = (before + 2 * here + after) / 4;
            before = here;
        }
    }
}

static void open_fill(const struct view *view, struct openness *open)
{
    struct vec3 centre;
    double r = (double)view->scene->radius_m, low = INFINITY;
    size_t cells = (size_t)open->cols * open->rows;

    for (size_t i = 0; i < cells; i++)
        open->height_m[i] = -INFINITY;
    for (uint32_t i = 0; i < view->scene->sphere_count; i++) {
        double x, y;
        float *height;

        if (!view_sphere(view->scene, i, &centre))
            continue;
        x = (centre.x - open->x0) / open->cell_m;
        y = (centre.y - open->y0) / open->cell_m;
        low = fmin(low, centre.z);
        if (!(x >= 0) || !(y >= 0) || !(x < open->cols) || !(y < open->rows))
            continue;
        height = &open->height_m[(size_t)y * open->cols + (size_t)x];
        *height = fmaxf(*height, (float)(centre.z + r));
    }
    for (size_t i = 0; i < cells; i++)
        if (isinf(open->height_m[i]))
            open->height_m[i] = isfinite(low) ? (float)low : -INFINITY; /* no granule */
    for (int i = 0; i < 4; i++) {
        smooth_lines(open->height_m, open->cols, 1, open->rows, open->cols);
        smooth_lines(open->height_m, open->rows, open->cols, open->cols, 1);
    }
}

static bool open_init(const struct view *view, struct openness *open)
{
    const struct view_scene *scene = view->scene;
    double width = scene->max[0] - scene->min[0], height = scene->max[1] - scene->min[1];

    open->x0 = scene->min[0];
    open->y0 = scene->min[1];
    open->cell_m = fmax(2 * (double)scene->radius_m, fmax(width, height) / OPEN_CELLS_MAX);
    open->cols = (uint32_t)(width / open->cell_m) + 1;
    open->rows = (uint32_t)(height / open->cell_m) + 1;
    open->height_m = malloc((size_t)open->cols * open->rows * sizeof *open->height_m);
    if (!open->height_m)
        return false;
    open_fill(view, open);
    return true;
}

/* 1 under the free sky, less below the smoothed height of the granules. */
static double sky_share(const struct view *view, struct vec3 at)
{
    const struct openness *open = &view->open;
    double x = (at.x - open->x0) / open->cell_m - 0.5, y = (at.y - open->y0) / open->cell_m - 0.5;
    double s, t, above, top = open->cols - 1, high = open->rows - 1;
    const float *h;
    uint32_t next, over;

    if (!(x > -1) || !(y > -1) || !(x < top + 1) || !(y < high + 1))
        return 1;
    x = fmin(fmax(x, 0), top);
    y = fmin(fmax(y, 0), high);
    s = x - floor(x);
    t = y - floor(y);
    h = open->height_m + (size_t)y * open->cols + (size_t)x;
    next = x < top ? 1 : 0;
    over = y < high ? open->cols : 0;
    above = (1 - t) * ((1 - s) * (double)h[0] + s * (double)h[next]) +
            t * ((1 - s) * (double)h[over] + s * (double)h[over + next]) - at.z;
    return above > 0 ? 1 / (1 + 0.36 * above / (double)view->scene->radius_m) : 1;
}

bool view_light_init(struct view *view)
{
    if (sun_init(view, &view->sun) && open_init(view, &view->open))
        return true;
    view_light_free(view);
    return false;
}

void view_light_free(struct view *view)
{
    free(view->sun.depth);
    free(view->open.height_m);
    view->sun.depth = NULL;
    view->open.height_m = NULL;
}

/* ---- materials ------------------------------------------------------------------------------- */

static struct colour granule_colour(const struct view *view, uint32_t sphere)
{
    uint32_t h = granule_hash(sphere / view->scene->spheres_of_granule + 1);
    const struct colour base = looks[view->scene->material].colour;
    const double spread = looks[view->scene->material].spread;
    double light = 0.98 - spread / 2 + spread * (h & 0xff) / 255,
           red = 0.96 + 0.08 * (h >> 8 & 0xff) / 255;

    if ((h >> 16 & 0xff) < 14)
        light *= 1 - 0.4 * fmin(spread / 0.36, 1);
    return (struct colour){base.r * light * red, base.g * light, base.b * light / red};
}

/* Grain of the ground: each square of `cell` has its own lightness, blended between them. */
static double grain(struct vec3 at, double cell)
{
    double x = at.x / cell, y = at.y / cell, value[4];
    double s = x - floor(x), t = y - floor(y);

    for (int i = 0; i < 4; i++) {
        uint32_t column = (uint32_t)(int64_t)floor(x) + (uint32_t)(i & 1);
        uint32_t row = (uint32_t)(int64_t)floor(y) + (uint32_t)(i >> 1);

        value[i] =
            (granule_hash(column * 0x9e3779b1u + granule_hash(row)) & 0xffff) / 65535.0 - 0.5;
    }
    return (1 - t) * ((1 - s) * value[0] + s * value[1]) + t * ((1 - s) * value[2] + s * value[3]);
}

static struct colour ground_colour(const struct view *view, struct vec3 at, double depth_m)
{
    double pixel_m = depth_m / view->lens.pixels, light = GROUND_DARK;

    light += looks[view->scene->material].grain *
             (0.10 * grain(at, fmax(0.12, 2 * pixel_m)) + 0.06 * grain(at, fmax(0.9, 6 * pixel_m)));
    return colour_scale(looks[view->scene->material].colour, light);
}

static struct colour wall_colour(const struct view *view, struct vec3 at)
{
    const struct colour dry = looks[view->scene->material].colour,
                        damp = looks[view->scene->material].damp;
    double layer = grain((struct vec3){at.z * 4, 0.5, 0}, 1), speck = grain(at, 0.07);

    return colour_scale(colour_mix(dry, damp, 0.55 + 0.5 * layer), 0.95 + 0.25 * speck);
}

static struct colour sky_colour(struct vec3 way)
{
    double up = way.z > 0 ? way.z : 0, thin = 1 - up;

    return colour_mix(zenith, horizon, thin * thin * thin);
}

/* ---- a pixel --------------------------------------------------------------------------------- */

struct surface {
    struct vec3 at, normal;
    struct colour colour;
    double gloss;
};

static struct surface surface_of(const struct view *view, const struct pixel *pixel,
                                 struct vec3 way)
{
    struct surface s = {.at = vec3_add(view->lens.eye, vec3_scale(way, (double)pixel->depth))};

    s.normal =
        (struct vec3){(double)pixel->normal[0], (double)pixel->normal[1], (double)pixel->normal[2]};
    if (pixel->what < VIEW_TRIANGLE) {
        struct vec3 centre = s.at;

        view_sphere(view->scene, pixel->what, &centre);
        s.normal = vec3_scale(vec3_sub(s.at, centre), 1 / (double)view->scene->radius_m);
        s.colour = granule_colour(view, pixel->what);
        s.gloss = looks[view->scene->material].gloss;
    } else if (pixel->what == VIEW_GROUND) {
        s.colour = ground_colour(view, s.at, (double)pixel->depth);
    } else if (pixel->what == VIEW_BED) {
        s.colour = looks[view->scene->material].damp;
    } else if (pixel->what == VIEW_WALL) {
        s.colour = wall_colour(view, s.at);
    } else {
        uint32_t triangle = pixel->what - VIEW_TRIANGLE;

        s.normal = view->normals[triangle];
        if (vec3_dot(s.normal, way) > 0)
            s.normal = vec3_opposite(s.normal);
        s.colour =
            body_colours[view->body_of[triangle] % (sizeof body_colours / sizeof *body_colours)];
        s.gloss = 0.35;
    }
    return s;
}

struct colour view_shade(const struct view *view, const struct pixel *pixel, uint32_t column,
                         uint32_t row)
{
    struct vec3 way = lens_way(&view->lens, column, row), sun = vec3_opposite(view->sun.along);
    double facing, lit = 0, sky, haze, shine;
    struct surface s;
    struct colour light;

    if (pixel->what == VIEW_SKY)
        return sky_colour(vec3_unit(way));
    s = surface_of(view, pixel, way);
    facing = vec3_dot(s.normal, sun);
    if (facing > 0)
        lit = sun_share(&view->sun, vec3_add(s.at, vec3_scale(vec3_add(s.normal, sun),
                                                              LIFT * (double)view->scene->radius_m +
                                                                  view->sun.cell_m)));
    sky = sky_share(view, s.at) * (0.62 + 0.38 * s.normal.z);
    light = colour_add(colour_scale(sun_light, facing > 0 ? facing * lit : 0),
                       colour_scale(sky_light, sky));
    light = colour_add(light, colour_scale(bounce, (1.15 - 0.6 * s.normal.z) * (0.4 + 0.6 * sky)));
    light = colour_times(s.colour, light);
    if (s.gloss > 0 && lit > 0) {
        struct vec3 half = vec3_unit(vec3_sub(sun, vec3_unit(way)));

        shine = vec3_dot(half, s.normal);
        if (shine > 0)
            light = colour_add(light, colour_scale(sun_light, lit * s.gloss * pow(shine, 40)));
    }
    haze = 1 - exp(-(double)pixel->depth / HAZE_LENGTH_M);
    return colour_mix(light, colour_scale(horizon, 0.9), haze);
}
