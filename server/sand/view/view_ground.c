/*
 * The ground around a patch, by the rays that answer clients.
 *
 * A ray for each pixel would take most of the time. So rays go through every fourth pixel each way;
 * where the four corners of such a block see ground outside the patch that lies nearly in one
 * plane, the pixels between are interpolated: the inverse of the depth of a plane is linear in the
 * picture. All other blocks trace each pixel, unless it is nearer already.
 *
 * The patch is a hole in the ground: a ray that meets the ground over it continues to the bed,
 * which is the same ground `depth_m` lower, or to the wall on the far side.
 */
#include "sand/view/view_data.h"

#include <stdlib.h>

enum { BLOCK = 4 };

#define NEARLY_FLAT 0.004 /* of the inverse depth: how far the corners may be off a plane */
#define NEARLY_ALIKE 0.98 /* cosine between the corners' normals */

struct seen {
    double inverse; /* of the depth; 0: sky */
    uint32_t what;
    struct vec3 normal;
};

static bool is_over_patch(const struct view_scene *scene, struct vec3 at)
{
    return scene->sphere_count > 0 && at.x > scene->min[0] && at.x < scene->max[0] &&
           at.y > scene->min[1] && at.y < scene->max[1];
}

/* Where a ray that is over the patch leaves its square, and the wall's normal there. */
static double leave(const struct view_scene *scene, const struct ray *ray, struct vec3 *normal)
{
    const double o[2] = {ray->origin.x, ray->origin.y};
    const double d[2] = {ray->direction.x, ray->direction.y};
    double t = INFINITY;

    for (int i = 0; i < 2; i++) {
        double at = d[i] > 0   ? (scene->max[i] - o[i]) / d[i]
                    : d[i] < 0 ? (scene->min[i] - o[i]) / d[i]
                               : INFINITY;

        if (at >= t)
            continue;
        t = at;
        *normal =
            (struct vec3){i == 0 ? (d[0] > 0 ? -1 : 1) : 0, i == 1 ? (d[1] > 0 ? -1 : 1) : 0, 0};
    }
    return t;
}

static struct seen see_into_patch(const struct view_scene *scene, const struct ray *ray)
{
    struct seen seen = {.what = VIEW_WALL};
    double t = leave(scene, ray, &seen.normal);
    struct ray lower = *ray;
    struct ray_hit hit;

    lower.origin.z += scene->depth_m;
    lower.t_max = t;
    if (heightfield_ray(scene->field, &lower, RAY_CLOSEST, &hit, NULL)) {
        seen.what = VIEW_BED;
        seen.normal = hit.normal;
        t = hit.t;
    }
    seen.inverse = 1 / t;
    return seen;
}

static struct seen see(const struct view *view, double column, double row)
{
    struct ray ray = {view->lens.eye, lens_way(&view->lens, column, row), INFINITY};
    struct ray_hit hit;

    if (!heightfield_ray(view->scene->field, &ray, RAY_CLOSEST, &hit, NULL))
        return (struct seen){0, VIEW_SKY, {0, 0, 1}};
    if (is_over_patch(view->scene, hit.point))
        return see_into_patch(view->scene, &ray);
    return (struct seen){1 / hit.t, VIEW_GROUND, shade_smooth_normal(view->scene->field, &hit)};
}

static void put(struct pixel *pixel, double inverse, uint32_t what, struct vec3 normal)
{
    float depth = (float)(1 / inverse); /* infinite for the sky */

    if (!(depth < pixel->depth))
        return;
    *pixel = (struct pixel){depth, what, {(float)normal.x, (float)normal.y, (float)normal.z}};
}

/* corner: upper left, upper right, lower left, lower right */
static bool is_plain(const struct seen corner[4])
{
    double bend = corner[0].inverse + corner[3].inverse - corner[1].inverse - corner[2].inverse;

    for (int i = 0; i < 4; i++) {
        if (corner[i].what != corner[0].what)
            return false;
        if (vec3_dot(corner[i].normal, corner[0].normal) < NEARLY_ALIKE)
            return false;
    }
    if (corner[0].what == VIEW_SKY)
        return true;
    return corner[0].what == VIEW_GROUND && fabs(bend) < NEARLY_FLAT * corner[0].inverse;
}

static struct seen mixed(const struct seen *a, const struct seen *b, double t)
{
    return (struct seen){a->inverse + (b->inverse - a->inverse) * t, a->what,
                         vec3_add(a->normal, vec3_scale(vec3_sub(b->normal, a->normal), t))};
}

static void fill_block(struct view *view, uint32_t column, uint32_t row,
                       const struct seen corner[4])
{
    bool plain = is_plain(corner);
    uint32_t right = column + BLOCK < view->width ? column + BLOCK : view->width;
    uint32_t low = row + BLOCK < view->height ? row + BLOCK : view->height;
    double nearest = 0;

    for (int i = 0; i < 4; i++)
        nearest = fmax(nearest, corner[i].inverse);
    for (uint32_t j = row; j < low; j++) {
        struct seen left = mixed(&corner[0], &corner[2], (double)(j - row) / BLOCK);
        struct seen other = mixed(&corner[1], &corner[3], (double)(j - row) / BLOCK);

        for (uint32_t i = column; i < right; i++) {
            struct pixel *pixel = &view->pixels[(size_t)j * view->width + i];
            struct seen seen;

            if (plain)
                seen = mixed(&left, &other, (double)(i - column) / BLOCK);
            else if (1.5 * nearest * (double)pixel->depth > 1 || isinf(pixel->depth))
                seen = see(view, i, j);
            else
                continue;
            if (seen.what != VIEW_SKY)
                put(pixel, seen.inverse, seen.what, seen.normal);
        }
    }
}

void view_ground(struct view *view)
{
    uint32_t cols = (view->width + BLOCK - 1) / BLOCK + 1;
    struct seen *above = malloc(2 * (size_t)cols * sizeof *above), *below = above + cols;

    if (!above) { /* slower, the same */
        for (size_t i = 0; i < (size_t)view->width * view->height; i++) {
            struct seen seen = see(view, (double)(i % view->width), (double)(i / view->width));

            if (seen.what != VIEW_SKY)
                put(&view->pixels[i], seen.inverse, seen.what, seen.normal);
        }
        return;
    }
    for (uint32_t i = 0; i < cols; i++)
        below[i] = see(view, i * BLOCK, 0);
    for (uint32_t row = 0; row < view->height; row += BLOCK) {
        struct seen *swap = above;

        above = below;
        below = swap;
        for (uint32_t i = 0; i < cols; i++)
            below[i] = see(view, i * BLOCK, row + BLOCK);
        for (uint32_t i = 0; i + 1 < cols; i++)
            fill_block(view, i * BLOCK, row,
                       (struct seen[4]){above[i], above[i + 1], below[i], below[i + 1]});
    }
    free(above < below ? above : below);
}
