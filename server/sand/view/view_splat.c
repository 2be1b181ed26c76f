/*
 * Spheres and triangles into depths.
 *
 * A sphere covers pixels whose ray meets it: b² >= a (c² - r²), with the ray's direction scaled to
 * a forward part of 1, so that the solution is the depth along the camera's axis. Only pixels of
 * the square around its image are tried. Triangles are filled by their edges in the picture; their
 * depth is that of their plane under the pixel. Those that reach behind the camera are left out:
 * the camera is far from a patch.
 *
 * The sun's map is the same along a direction instead of from a point.
 */
#include "sand/view/view_data.h"

#define NEAR_M 0.05

/* Pixels from..to of 0..size-1 between low and high; false when there are none. */
static bool clip(double low, double high, uint32_t size, uint32_t *from, uint32_t *to)
{
    low = floor(low);
    high = ceil(high);
    if (!(high >= 0) || !(low < size))
        return false;
    *from = low > 0 ? (uint32_t)low : 0;
    *to = high < size - 1 ? (uint32_t)high : size - 1;
    return *from <= *to;
}

static void put(struct pixel *pixel, double depth, uint32_t what)
{
    float d = (float)depth;

    if (d < pixel->depth || (d == pixel->depth && what < pixel->what)) {
        pixel->depth = d;
        pixel->what = what;
    }
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void splat_sphere(struct view *view, uint32_t index, struct vec3 centre)
{
    const struct lens *lens = &view->lens;
    struct vec3 from = vec3_sub(centre, lens->eye);
    double x = vec3_dot(from, lens->right), y = vec3_dot(from, lens->up);
    double z = vec3_dot(from, lens->forward), r = (double)view->scene->radius_m;
    double slant = sqrt(1 + (x * x + y * y) / (z * z)); /* images are drawn out off the middle */
    double reach = r * lens->pixels / z * slant * 1.05 + 1, c = x * x + y * y + z * z - r * r;
    double column = lens->middle[0] + x / z * lens->pixels;
    double row = lens->middle[1] - y / z * lens->pixels;
    uint32_t c0, c1, r0, r1;

    if (!(z - r > NEAR_M) || !clip(column - reach, column + reach, view->width, &c0, &c1) ||
        !clip(row - reach, row + reach, view->height, &r0, &r1))
        return;
    for (uint32_t j = r0; j <= r1; j++) {
        double q = (lens->middle[1] - j - 0.5) / lens->pixels;
        struct pixel *pixel = &view->pixels[(size_t)j * view->width];

        for (uint32_t i = c0; i <= c1; i++) {
            double p = (i + 0.5 - lens->middle[0]) / lens->pixels;
            double a = 1 + p * p + q * q, b = p * x + q * y + z, under = b * b - a * c;

            if (under > 0)
                put(pixel + i, (b - sqrt(under)) / a, index);
        }
    }
}

struct flat {
    double x, y;
};

/* Twice the area of a, b, p: positive when p lies left of a to b. */
static double left_of(struct flat a, struct flat b, double x, double y)
{
    return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
}

static bool covers(const struct flat f[3], double x, double y)
{
    double a = left_of(f[0], f[1], x, y), b = left_of(f[1], f[2], x, y);
    double c = left_of(f[2], f[0], x, y);

    return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0);
}

static bool flat_range(const struct flat f[3], uint32_t cols, uint32_t rows, uint32_t range[4])
{
    return clip(fmin(f[0].x, fmin(f[1].x, f[2].x)) - 1, fmax(f[0].x, fmax(f[1].x, f[2].x)), cols,
                &range[0], &range[1]) &&
           clip(fmin(f[0].y, fmin(f[1].y, f[2].y)) - 1, fmax(f[0].y, fmax(f[1].y, f[2].y)), rows,
                &range[2], &range[3]);
}

static void splat_triangle(struct view *view, uint32_t index)
{
    const struct lens *lens = &view->lens;
    struct vec3 n = view->normals[index];
    struct flat f[3];
    uint32_t range[4];
    double low = INFINITY, high = 0, plane;

    for (size_t k = 0; k < 3; k++) {
        struct vec3 from = vec3_sub(view->corners[3 * (size_t)index + k], lens->eye);
        double z = vec3_dot(from, lens->forward);

        if (!(z > NEAR_M))
            return;
        low = fmin(low, z);
        high = fmax(high, z);
        f[k].x = lens->middle[0] + vec3_dot(from, lens->right) / z * lens->pixels - 0.5;
        f[k].y = lens->middle[1] - vec3_dot(from, lens->up) / z * lens->pixels - 0.5;
        plane = vec3_dot(from, n);
    }
    if (!flat_range(f, view->width, view->height, range))
        return;
    for (uint32_t j = range[2]; j <= range[3]; j++) {
        for (uint32_t i = range[0]; i <= range[1]; i++) {
            double depth;

            if (!covers(f, i, j))
                continue;
            depth = plane / vec3_dot(n, lens_way(lens, i, j));
            depth = depth >= low ? fmin(depth, high) : low; /* an edge-on plane has none */
            put(&view->pixels[(size_t)j * view->width + i], depth, VIEW_TRIANGLE + index);
        }
    }
}

void view_splat(struct view *view)
{
    struct vec3 centre;

    for (uint32_t i = 0; i < view->scene->sphere_count; i++)
        if (view_sphere(view->scene, i, &centre))
            splat_sphere(view, i, centre);
    for (uint32_t i = 0; i < view->triangle_count; i++)
        splat_triangle(view, i);
}

/* ---- the sun's map --------------------------------------------------------------------------- */

static void splat_sphere_sun(struct sun_map *map, struct vec3 centre, double radius_m)
{
    double u = (vec3_dot(centre, map->u) - map->u0) / map->cell_m;
    double v = (vec3_dot(centre, map->v) - map->v0) / map->cell_m;
    double along = vec3_dot(centre, map->along), r = radius_m / map->cell_m;
    uint32_t c0, c1, r0, r1;

    if (!clip(u - r, u + r, map->cols, &c0, &c1) || !clip(v - r, v + r, map->rows, &r0, &r1))
        return;
    for (uint32_t j = r0; j <= r1; j++) {
        for (uint32_t i = c0; i <= c1; i++) {
            double du = i + 0.5 - u, dv = j + 0.5 - v, under = r * r - du * du - dv * dv;
            float *depth = &map->depth[(size_t)j * map->cols + i];

            if (under > 0)
                *depth = fminf(*depth, (float)(along - sqrt(under) * map->cell_m));
        }
    }
}

static void splat_triangle_sun(struct sun_map *map, const struct vec3 v[3])
{
    struct flat f[3];
    double along[3], area;
    uint32_t range[4];

    for (int k = 0; k < 3; k++) {
        f[k].x = (vec3_dot(v[k], map->u) - map->u0) / map->cell_m - 0.5;
        f[k].y = (vec3_dot(v[k], map->v) - map->v0) / map->cell_m - 0.5;
        along[k] = vec3_dot(v[k], map->along);
    }
    area = left_of(f[0], f[1], f[2].x, f[2].y);
    if (!flat_range(f, map->cols, map->rows, range) || area == 0)
        return;
    for (uint32_t j = range[2]; j <= range[3]; j++) {
        for (uint32_t i = range[0]; i <= range[1]; i++) {
            float *depth = &map->depth[(size_t)j * map->cols + i];
            double a, b;

            if (!covers(f, i, j))
                continue;
            a = left_of(f[1], f[2], i, j) / area;
            b = left_of(f[2], f[0], i, j) / area;
            *depth = fminf(*depth, (float)(a * along[0] + b * along[1] + (1 - a - b) * along[2]));
        }
    }
}

void view_splat_sun(const struct view *view, struct sun_map *map)
{
    struct vec3 centre;

    for (uint32_t i = 0; i < view->scene->sphere_count; i++)
        if (view_sphere(view->scene, i, &centre))
            splat_sphere_sun(map, centre, (double)view->scene->radius_m);
    for (uint32_t i = 0; i < view->triangle_count; i++)
        splat_triangle_sun(map, view->corners + 3 * (size_t)i);
}
